//! Listing runs.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{OpId, RunId, TenantId};
use gossip_coordination::{RunConfig, RunManagement, RunStatus};

use crate::support::{NOW, Place, RUN, TENANT, begin};

#[test]
fn the_runs_of_a_tenant_are_listed_oldest_first_with_their_progress() {
    let place = Place::new();
    let mut coordinator = place.open();
    assert_eq!(coordinator.list_runs(TENANT).unwrap(), []);
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Dispatched,
        lease_duration: u64::MAX,
        max_shard_retries: 3,
    };
    let (other, last) = (TenantId::from_bytes([8; 32]), RunId::from_raw(u64::MAX));
    coordinator.create_run(NOW, TENANT, last, config).unwrap();
    coordinator.create_run(NOW, other, RUN, config).unwrap();
    begin(&mut coordinator, 3, 10, 1000);
    coordinator.cancel_run(NOW, TENANT, last, OpId::from_raw(1)).unwrap();

    let runs = coordinator.list_runs(TENANT).unwrap();
    let seen: Vec<_> =
        runs.iter().map(|run| (run.record.run, run.record.status, run.progress.active)).collect();
    assert_eq!(seen, [(last, RunStatus::Cancelled, 0), (RUN, RunStatus::Active, 3)]);
    assert_eq!(runs[0].record, coordinator.get_run(TENANT, last).unwrap());
    assert_eq!(runs[0].record.config, config);
    assert_eq!(coordinator.list_runs(other).unwrap().len(), 1);
}
