//! The caller's writes and a checkpoint, both or neither, where SQLite has something to say in it. The
//! rest is in the suite of all backends.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, CommitError, CoordinationBackend, GetRunError, InfraError,
    Lease, RunManagement, ShardClaiming, TransactionalBackend,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use rusqlite::Transaction;

use crate::support::{NOW, Place, RUN, TENANT, assert_sound, begin, key, number, pages, shards};

fn claimed(place: &Place) -> (SqliteCoordinator, Lease) {
    let mut coordinator = place.open();
    begin(&mut coordinator, 1, 100, 60_000);
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let lease =
        coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap().lease;
    (coordinator, lease)
}

fn insert(page: u64) -> impl Fn(&Transaction<'_>) -> rusqlite::Result<()> {
    move |tx| tx.execute("INSERT INTO pages_rows VALUES (?1, 1)", [page as i64]).map(drop)
}

/// Cursor and rows as another connection sees them.
#[track_caller]
fn assert_stored(place: &Place, cursor: u64, rows: &[u64]) {
    let other = place.open();
    assert_eq!(shards(&other)[0].last_key.as_deref().map_or(0, number), cursor);
    assert_eq!(pages(&other), rows);
    assert_sound(&other);
}

#[test]
fn writes_that_end_the_transaction_do_not_take_the_checkpoint_with_them() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let (five, op) = (key(5), OpId::from_raw(1));
    let five = CursorUpdate::at(&five);
    for end in ["COMMIT", "ROLLBACK"] {
        let refused =
            coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, |tx| tx.execute_batch(end));
        let Err(CommitError::Refused(CheckpointError::BackendError(error))) = refused else {
            panic!("{refused:?}")
        };
        assert!(matches!(error, InfraError::Transient { operation: "checkpoint.writes", .. }));
        assert_stored(&place, 0, &[]);
    }
    let outcome = coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, insert(5));
    assert!(outcome.unwrap().is_executed());
}

#[test]
fn the_callers_own_transaction_is_stored_or_undone_whole() {
    let place = Place::new();
    let mut coordinator = place.open();
    coordinator.transaction(|tx| insert(1)(tx).and_then(|()| insert(2)(tx))).unwrap();
    let failed = coordinator.transaction(|tx| insert(3)(tx).and_then(|()| insert(2)(tx)));
    assert!(matches!(failed, Err(CommitError::Caller(_))));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        coordinator.transaction(|tx| -> Result<(), ()> {
            insert(4)(tx).unwrap();
            panic!("a bug of the caller")
        })
    }));
    assert!(panicked.is_err());
    // A read that writes is a mistake without consequences.
    coordinator.read(insert(5)).unwrap();
    assert_eq!(pages(&place.open()), [1, 2]);
}

/// SQLite's own answer was taken for damage.
#[test]
fn a_read_inside_a_read_is_refused_and_the_outer_goes_on() {
    let place = Place::new();
    let coordinator = place.open();
    let seen = coordinator.read(|tx| {
        let inner = coordinator.get_run(TENANT, RUN);
        let Err(GetRunError::BackendError(error)) = inner else { panic!("{inner:?}") };
        assert!(matches!(error, InfraError::Transient { operation: "get_run.begin", .. }));
        assert!(error.to_string().contains("inside a transaction"), "{error}");
        tx.query_row("SELECT count(*) FROM pages_rows", [], |row| row.get::<_, i64>(0))
    });
    assert_eq!(seen, Ok(0));
    assert_eq!(coordinator.get_run(TENANT, RUN), Err(GetRunError::RunNotFound));
}

#[test]
fn a_broken_invariant_panics_before_anything_is_stored() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let zero = gossip_contracts::identity::LogicalTime::ZERO;
    let five = key(5);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        coordinator.checkpoint(zero, TENANT, &lease, CursorUpdate::at(&five), OpId::from_raw(1))
    }));
    assert!(panicked.is_err());
    assert_stored(&place, 0, &[]);
    coordinator.get_run(TENANT, RUN).unwrap();
    coordinator.release(NOW, TENANT, &lease).unwrap();
}

#[test]
fn debug_shows_no_key() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let five = key(5);
    let token = CursorUpdate::new(Some(&five), Some(b"hushhush"));
    coordinator.checkpoint(NOW, TENANT, &lease, token, OpId::from_raw(1)).unwrap();
    let shown = format!("{coordinator:?}");
    assert!(shown.contains("gossip.db") && !shown.contains("hush"), "{shown}");
    assert!(!shown.contains("104, 117, 115, 104"), "{shown}");
}
