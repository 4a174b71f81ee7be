//! The caller's writes and a checkpoint: both or neither.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, CommitError, CompleteError, CoordinationBackend,
    EventCollector, EventKind, InfraError, Lease, RunManagement, ShardClaiming,
    TransactionalBackend,
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
fn writes_are_stored_with_the_checkpoint_and_not_again_by_a_replay() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let (five, op) = (key(5), OpId::from_raw(1));
    let five = CursorUpdate::at(&five);
    let first = coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, insert(5));
    assert!(first.unwrap().is_executed());
    assert_stored(&place, 5, &[5]);

    let again = coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, |_| {
        panic!("K2: a replay has stored them before")
    });
    assert!(again.map_err(|error: CommitError<_, ()>| error).unwrap().is_replay());

    let (nine, op) = (key(9), OpId::from_raw(2));
    let done = coordinator
        .complete_with(NOW, TENANT, &lease, CursorUpdate::at(&nine), op, insert(9))
        .unwrap();
    assert!(done.is_executed());
    assert_stored(&place, 9, &[5, 9]);
}

#[test]
fn a_refusal_never_runs_the_writes() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let never = |_: &Transaction<'_>| -> Result<(), ()> { panic!("K2: it was refused") };
    let late = lease.deadline();
    let five = key(5);
    let refused = coordinator.complete_with(
        late,
        TENANT,
        &lease,
        CursorUpdate::at(&five),
        OpId::from_raw(1),
        never,
    );
    assert!(matches!(refused, Err(CommitError::Refused(CompleteError::LeaseExpired { .. }))));
    let outside = key(1000);
    let refused = coordinator.checkpoint_with(
        NOW,
        TENANT,
        &lease,
        CursorUpdate::at(&outside),
        OpId::from_raw(1),
        never,
    );
    assert!(matches!(refused, Err(CommitError::Refused(CheckpointError::CursorOutOfBounds(_)))));
    assert_stored(&place, 0, &[]);
}

#[test]
fn writes_that_fail_undo_the_checkpoint_too() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let (five, op) = (key(5), OpId::from_raw(1));
    let five = CursorUpdate::at(&five);
    let mut events = EventCollector::new();
    let failed = coordinator.with_events(&mut events, |coordinator| {
        coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, |tx| {
            insert(5)(tx).unwrap();
            Err("the caller changed its mind")
        })
    });
    assert_eq!(failed, Err(CommitError::Caller("the caller changed its mind")));
    assert!(events.is_empty(), "nothing happened");
    assert_stored(&place, 0, &[]);

    // The operation id is not used up.
    let outcome = coordinator.with_events(&mut events, |coordinator| {
        coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, insert(5))
    });
    assert!(outcome.unwrap().is_executed());
    assert!(matches!(events.drain()[..], [ref event]
        if matches!(event.kind, EventKind::ShardCheckpointed { .. })));
    assert_stored(&place, 5, &[5]);
}

#[test]
fn writes_that_panic_undo_the_checkpoint_too() {
    let place = Place::new();
    let (mut coordinator, lease) = claimed(&place);
    let (five, op) = (key(5), OpId::from_raw(1));
    let five = CursorUpdate::at(&five);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, |tx| -> Result<(), ()> {
            insert(5)(tx).unwrap();
            panic!("a bug of the caller")
        })
    }));
    assert!(panicked.is_err());
    assert_stored(&place, 0, &[]);
    let outcome = coordinator.checkpoint_with(NOW, TENANT, &lease, five, op, insert(5));
    assert!(outcome.unwrap().is_executed());
    assert_stored(&place, 5, &[5]);
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
