//! Deleting runs.

use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{AcquireScratch, RunManagement, ShardClaiming};
use gossip_coordination_sqlite::rusqlite;

use crate::support::{NOW, Place, RUN, TENANT, assert_sound, begin};

/// Nothing of it is left in any table, and its room is used again.
#[test]
fn a_deleted_run_leaves_no_row() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 50, 10, 1000);
    let mut scratch = Box::new(AcquireScratch::new());
    coordinator
        .claim_next_available(NOW, TENANT, RUN, WorkerId::from_raw(1), &mut scratch)
        .unwrap();
    coordinator.note_idle(NOW, TENANT, RUN, WorkerId::from_raw(2)).unwrap();
    coordinator.cancel_run(NOW, TENANT, RUN, OpId::from_raw(77)).unwrap();
    coordinator.delete_run(NOW, TENANT, RUN).unwrap();
    let rows = coordinator.read(|tx| {
        ["coord_runs", "coord_run_records", "coord_shards", "coord_idle"]
            .iter()
            .map(|table| {
                let sql = format!("SELECT count(*) FROM {table}");
                tx.query_row(&sql, [], |row| row.get::<_, i64>(0))
            })
            .sum::<rusqlite::Result<i64>>()
    });
    assert_eq!(rows.unwrap(), 0);
    assert_sound(&coordinator);
}
