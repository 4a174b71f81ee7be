//! Deleting runs: whatever a kill leaves, the next deletion finds.

use gossip_contracts::identity::{LogicalTime, RunId, TenantId};
use gossip_coordination::{GetRunError, RunManagement, RunStatus};
use gossip_coordination_sqlite::{SqliteConfig, SqliteCoordinator};
use gossip_runtime::{Admin, Pruning, Reports};

use super::support::Place;

const TENANT: TenantId = TenantId::from_bytes(*b"gossip: what this machine scans.");

fn coordinator(place: &Place) -> SqliteCoordinator {
    SqliteCoordinator::open(place.state.database_path(), SqliteConfig::default()).unwrap()
}

fn prune(place: &Place) -> Vec<u64> {
    let pruned = Admin::open(&place.state).unwrap().prune(&Pruning::default()).unwrap();
    pruned.iter().map(|run| run.run.as_raw()).collect()
}

fn runs(place: &Place) -> Vec<(u64, RunStatus)> {
    let runs = Reports::open(&place.state).unwrap().runs().unwrap();
    runs.iter().map(|run| (run.run.as_raw(), run.status)).collect()
}

#[test]
fn a_deletion_that_was_killed_between_its_two_steps_is_finished_by_the_next() {
    let place = Place::with_files(9);
    let first = place.scan(&place.source()).unwrap();
    let second = place.scan(&place.source()).unwrap();
    let found = place.findings(&second);
    let (now, mut coordinator) = (LogicalTime::from_raw(1), coordinator(&place));
    coordinator.delete_run(now, TENANT, first.run).unwrap();
    assert_eq!(runs(&place), [(1, RunStatus::Done), (2, RunStatus::Done)]);
    assert_eq!(prune(&place), [1]);
    assert_eq!(runs(&place), [(2, RunStatus::Done)]);
    assert_eq!(place.findings(&second), found);
    assert_eq!(prune(&place), [0; 0]);
}

/// Its process died once the end was written down and before the run was completed in coordination.
#[test]
fn a_run_that_ended_but_in_coordination_can_be_deleted() {
    let place = Place::with_files(9);
    let first = place.scan(&place.source()).unwrap();
    place.scan(&place.source()).unwrap();
    let mut coordinator = coordinator(&place);
    let record = coordinator.get_run(TENANT, first.run).unwrap();
    let now = LogicalTime::from_raw(1);
    coordinator.delete_run(now, TENANT, first.run).unwrap();
    coordinator.create_run(now, TENANT, first.run, record.config).unwrap();
    assert_eq!(prune(&place), [1]);
    assert_eq!(coordinator.get_run(TENANT, first.run), Err(GetRunError::RunNotFound));
    assert_eq!(Admin::open(&place.state).unwrap().verify().unwrap(), [""; 0]);
}

#[test]
fn a_run_that_others_depend_on_is_not_deleted() {
    let place = Place::with_files(9);
    place.scan(&place.source()).unwrap();
    assert_eq!(prune(&place), [0; 0]);
    // One that goes on, and has finished nothing yet.
    let stop = std::sync::atomic::AtomicBool::new(true);
    place.scan_until(&place.source(), &stop).unwrap();
    assert_eq!(runs(&place), [(1, RunStatus::Done), (2, RunStatus::Active)]);
    assert_eq!(prune(&place), [0; 0]);
    // Called off.
    Admin::open(&place.state).unwrap().cancel(RunId::from_raw(2)).unwrap();
    assert_eq!(prune(&place), [0; 0]);
    place.scan(&place.source()).unwrap();
    assert_eq!(prune(&place), [1, 2]);
    assert_eq!(runs(&place), [(3, RunStatus::Done)]);
}
