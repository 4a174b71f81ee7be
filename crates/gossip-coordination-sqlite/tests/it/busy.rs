//! A database that another process holds.

use std::path::Path;
use std::time::{Duration, Instant};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, CoordinationBackend, InfraError, RunManagement, ShardClaiming,
};
use gossip_coordination_sqlite::{OpenError, SqliteConfig, SqliteCoordinator};

use crate::children::{Running, say, wait_for_parent};
use crate::support::{NOW, Place, RUN, TENANT, assert_sound, begin, config, key};

const BOUND: Duration = Duration::from_millis(300);

/// The child: holds the database in a transaction until the parent says so.
pub(crate) fn holds(database: &Path) {
    let connection = rusqlite::Connection::open(database).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    say("held");
    wait_for_parent();
    connection.execute_batch("ROLLBACK").unwrap();
}

fn impatient() -> SqliteConfig {
    SqliteConfig { busy_timeout: BOUND, ..config() }
}

#[test]
fn an_operation_on_a_held_database_gives_up_in_time_and_works_afterwards() {
    let place = Place::new();
    begin(&mut place.open(), 1, 100, 60_000);
    let mut coordinator = SqliteCoordinator::open(place.db(), impatient()).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let lease =
        coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap().lease;
    let mut child = Running::start("holds", &place.db());
    child.expect("held");

    let (cursor, op) = (key(5), OpId::from_raw(1));
    let cursor = CursorUpdate::at(&cursor);
    let start = Instant::now();
    let refused = coordinator.checkpoint(NOW, TENANT, &lease, cursor, op).unwrap_err();
    let waited = start.elapsed();
    let CheckpointError::BackendError(error @ InfraError::Transient { operation, .. }) = &refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!(*operation, "checkpoint.begin");
    assert!(error.to_string().contains("other processes held the database"), "{error}");
    assert!(waited >= BOUND && waited < 20 * BOUND, "{waited:?}");
    // Reading goes on, and so does opening.
    assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().active, 1);
    drop(SqliteCoordinator::open(place.db(), impatient()).unwrap());

    child.finish();
    assert!(coordinator.checkpoint(NOW, TENANT, &lease, cursor, op).unwrap().is_executed());
    assert_sound(&coordinator);
}

#[test]
fn opening_a_database_that_is_held_while_it_must_be_set_up_gives_up_in_time() {
    let place = Place::new();
    std::fs::write(place.db(), b"").unwrap();
    let mut child = Running::start("holds", &place.db());
    child.expect("held");
    let start = Instant::now();
    let refused = SqliteCoordinator::open(place.db(), impatient()).unwrap_err();
    assert!(matches!(refused, OpenError::Busy { .. }), "{refused:?}");
    assert!(refused.to_string().contains("try again later"), "{refused}");
    assert!(start.elapsed() >= BOUND && start.elapsed() < 20 * BOUND);
    child.finish();
    assert_sound(&SqliteCoordinator::open(place.db(), impatient()).unwrap());
}

#[test]
fn a_short_wait_is_not_noticed() {
    let place = Place::new();
    begin(&mut place.open(), 1, 100, 60_000);
    let mut coordinator = place.open();
    let mut child = Running::start("holds", &place.db());
    child.expect("held");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(100));
            child.finish();
        });
        let mut scratch = Box::new(AcquireScratch::new());
        let worker = WorkerId::from_raw(1);
        coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
    });
}
