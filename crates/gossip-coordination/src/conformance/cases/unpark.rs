//! Setting a parked shard going again.

use super::prelude::*;
use crate::error::{RunOpIdConflict, UnparkError};
use crate::payload;

pub(crate) fn an_unparked_shard_starts_over_from_its_cursor<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, key) = (w.lease(1, 0), within(0, "c"));
    let (checkpoint, park, unpark) = (w.op(), w.op(), w.op());
    w.checkpoint(&lease, CursorUpdate::at(&key), checkpoint).unwrap();
    w.park(&lease, ParkReason::NotFound, park).unwrap();
    assert_eq!(w.unpark(id(0), unpark), Ok(Executed(())));
    let state = w.shard(id(0)).state;
    assert_eq!((state.status, state.park_reason, state.lease), (ShardStatus::Active, None, None));
    assert_eq!((state.fence, state.acquires_since_progress), (lease.fence().next(), 0));
    let again = w.claim(2).unwrap();
    assert_eq!(again.lease.fence(), lease.fence().next().next());
    assert_eq!(again.state.cursor.as_update(), CursorUpdate::at(&key));
}

pub(crate) fn only_a_parked_shard_is_unparked<H: Harness>() {
    let w = &mut World::<H>::new(3);
    for (shard, end) in [(1, Operation::Complete), (2, Operation::SplitReplace)] {
        let lease = w.lease(1, shard);
        w.attempt_new(end, &lease).unwrap();
    }
    let statuses = [ShardStatus::Active, ShardStatus::Done, ShardStatus::Split];
    for (shard, status) in (0..).zip(statuses) {
        let op = w.op();
        assert_eq!(w.unpark(id(shard), op), Err(UnparkError::NotParked { status }));
    }
}

pub(crate) fn an_unknown_shard_is_not_unparked<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let op = w.op();
    assert_eq!(w.unpark(id(9), op), Err(UnparkError::ShardNotFound));
    w.run = gossip_contracts::identity::RunId::from_raw(9);
    assert_eq!(w.unpark(id(0), op), Err(UnparkError::ShardNotFound));
}

pub(crate) fn a_run_that_is_over_stays_over<H: Harness>() {
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        let w = &mut World::<H>::new(2);
        w.parked(0);
        w.bring_to(status);
        // Also for a shard that is not parked: the run is named first.
        for shard in [0, 1] {
            let op = w.op();
            assert_eq!(w.unpark(id(shard), op), Err(UnparkError::RunTerminal { status }));
        }
    }
}

pub(crate) fn a_used_op_id_is_refused<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    w.park(&lease, ParkReason::Other, op).unwrap();
    let (expected, actual) = (payload::park(ParkReason::Other), payload::unpark(w.key(id(0))));
    let conflict = RunOpIdConflict::new(op, expected, actual);
    assert_eq!(w.unpark(id(0), op), Err(UnparkError::OpIdConflict(conflict.clone())));
    // And before the run's end is noticed.
    w.bring_to(RunStatus::Failed);
    assert_eq!(w.unpark(id(0), op), Err(UnparkError::OpIdConflict(conflict)));
}

/// The op-log is asked before anything else: a late retry must not undo what came after.
pub(crate) fn a_retry_is_answered_whatever_has_happened_since<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.parked(0);
    let op = w.op();
    assert_eq!(w.unpark(id(0), op), Ok(Executed(())));
    assert_eq!(w.unpark(id(0), op), Ok(Replayed(())));
    w.reopen();
    w.parked(0);
    assert_eq!(w.unpark(id(0), op), Ok(Replayed(())));
    assert_eq!(w.shard(id(0)).state.status, ShardStatus::Parked);
    w.bring_to(RunStatus::Cancelled);
    assert_eq!(w.unpark(id(0), op), Ok(Replayed(())));
}

pub(crate) fn whoever_parked_a_shard_cannot_come_back<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, park, unpark) = (w.lease(1, 0), w.op(), w.op());
    w.park(&lease, ParkReason::Other, park).unwrap();
    w.unpark(id(0), unpark).unwrap();
    for &operation in Operation::LEASED {
        assert!(w.attempt_new(operation, &lease).is_err());
    }
    // But a retry of the park is still answered.
    assert_eq!(w.park(&lease, ParkReason::Other, park), Ok(Replayed(())));
}
