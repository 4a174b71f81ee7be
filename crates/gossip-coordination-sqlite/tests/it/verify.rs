//! What a look over the whole database notices.

use gossip_coordination_sqlite::SqliteCoordinator;
use rusqlite::Connection;

use crate::support::{Place, assert_sound, begin};

/// Breaks one thing behind the coordinator's back.
#[track_caller]
fn notices(sql: &str, what: &str) {
    let place = Place::new();
    begin(&mut place.open(), 3, 10, 1000);
    let other = Connection::open(place.db()).unwrap();
    other.execute_batch(&format!("PRAGMA ignore_check_constraints = ON; {sql}")).unwrap();
    let coordinator: SqliteCoordinator = place.open();
    let report = coordinator.verify().unwrap();
    let found = report.faults.iter().any(|fault| fault.to_string().contains(what));
    assert!(found, "{sql}: {report:?}");
}

#[test]
fn a_sound_database_has_no_faults() {
    let place = Place::new();
    let mut coordinator = place.open();
    assert_sound(&coordinator);
    begin(&mut coordinator, 3, 10, 1000);
    let report = coordinator.verify().unwrap();
    assert_eq!((report.runs, report.shards, report.faults), (1, 3, vec![]));
}

#[test]
fn everything_that_the_coordinator_relies_on_is_checked() {
    notices("UPDATE coord_shards SET status = 1 WHERE shard = 1", "shard 1: Q1");
    notices("UPDATE coord_shards SET deadline = 5, owner = 1 WHERE shard = 1", "shard 1: Q1");
    notices("UPDATE coord_runs SET status = 2", "run 1: Q1");
    notices("UPDATE coord_runs SET lease_duration = 2", "run 1: Q1");
    notices("UPDATE coord_runs SET active = 2", "run 1: Q2");
    notices("UPDATE coord_runs SET leased = 1", "run 1: Q2");
    notices("UPDATE coord_runs SET run = 2", "another run's");
    notices("UPDATE coord_tenants SET shards = 4", "a tenant: Q2");
    notices("DELETE FROM coord_tenants", "a tenant: Q2");
    notices("UPDATE coord_totals SET shards = 4", "the database: Q2");
    notices("DELETE FROM coord_shards WHERE shard = 2", "root shard 2 is missing");
    notices("DELETE FROM coord_run_records", "the record of a run is missing");
    notices("DELETE FROM coord_runs", "its run is missing");
    notices("UPDATE coord_shards SET shard = 9 WHERE shard = 2", "another shard's");
    notices("UPDATE coord_shards SET record = x'00' WHERE shard = 2", "shard 2: ");
    notices("UPDATE coord_run_records SET record = x'00'", "run 1: ");
}
