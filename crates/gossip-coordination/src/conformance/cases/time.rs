//! Leases and the clock, which may step back.

use super::prelude::*;
use crate::conformance::attempt::Payload;
use crate::error::CoordError;
use crate::lease::Lease;

pub(crate) fn renewing_extends_a_lease_from_now<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.tick(LEASE - 1);
    let deadline = w.renew(&lease).unwrap().new_deadline;
    assert_eq!(Some(deadline), w.now.checked_add(LEASE));
    assert_eq!(w.shard(id(0)).state.fence, lease.fence());
    // The lease of old has the old deadline; what counts is the record's.
    w.now = lease.deadline();
    assert!(w.attempt_new(Operation::Checkpoint, &lease).is_ok());
    w.now = deadline;
    assert!(w.attempt_new(Operation::Checkpoint, &lease).is_err());
}

pub(crate) fn renewing_keeps_others_out<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.tick(LEASE - 1);
    w.renew(&lease).unwrap();
    w.tick(LEASE - 1);
    assert!(w.acquire(2, id(0)).is_err());
    assert!(w.claim(2).is_err());
}

pub(crate) fn renewing_twice_is_harmless<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.tick(7);
    let first = w.renew(&lease).unwrap().new_deadline;
    assert_eq!(w.renew(&lease).unwrap().new_deadline, first);
}

pub(crate) fn a_checkpoint_that_renews_extends_the_lease_from_now<H: Harness>() {
    let w = &mut World::<H>::new(2);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.tick(LEASE - 1);
    let cursor = CursorUpdate::new(Some(&key), Some(b"token"));
    let outcome = w.checkpoint_and_renew(&lease, cursor, op).unwrap();
    let Executed(renewal) = outcome else { panic!("{outcome:?}") };
    assert_eq!(Some(renewal.new_deadline), w.now.checked_add(LEASE));
    assert_eq!((renewal.capacity.available_count, renewal.idle_workers), (1, 0));
    let record = w.shard(id(0));
    assert_eq!(record.cursor.as_update(), cursor);
    assert_eq!((record.state.fence, record.state.acquires_since_progress), (lease.fence(), 0));
    w.now = lease.deadline();
    assert!(w.attempt_new(Operation::Renew, &lease).is_ok());
}

/// An answer that was lost is given again, and the lease is as it was.
pub(crate) fn a_checkpoint_that_renews_extends_the_lease_once<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.tick(5);
    let cursor = CursorUpdate::at(&key);
    let first = w.checkpoint_and_renew(&lease, cursor, op).unwrap().into_inner().new_deadline;
    w.tick(100);
    w.reopen();
    let again = w.checkpoint_and_renew(&lease, cursor, op).unwrap();
    assert!(again.is_replay());
    assert_eq!(again.into_inner().new_deadline, first);
    assert_eq!(w.shard(id(0)).state.lease.unwrap().deadline(), first);
}

pub(crate) fn a_checkpoint_that_renews_shortens_no_lease<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.now = LogicalTime::from_raw(w.now.as_raw() - 5_000);
    for _ in 0..2 {
        let outcome = w.checkpoint_and_renew(&lease, CursorUpdate::at(&key), op).unwrap();
        assert_eq!(outcome.into_inner().new_deadline, lease.deadline());
    }
    assert_eq!(w.shard(id(0)).state.lease.unwrap().deadline(), lease.deadline());
}

/// Whatever deadline the repetition's lease claims, and whoever it is of.
pub(crate) fn a_replay_says_no_later_deadline_than_the_shard_is_held<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.tick(5);
    let cursor = CursorUpdate::at(&key);
    let first = w.checkpoint_and_renew(&lease, cursor, op).unwrap().into_inner().new_deadline;
    let later = first.checked_add(10 * LEASE).unwrap();
    let again = |w: &mut World<H>, fence| {
        let forged = Lease::new(lease.tenant(), lease.key(), lease.owner(), fence, later);
        let again = w.checkpoint_and_renew(&forged, cursor, op).unwrap();
        assert!(again.is_replay());
        again.into_inner().new_deadline
    };
    let (own, others) = (lease.fence(), lease.fence().next());
    assert_eq!([again(w, own), again(w, others)], [first; 2]);
    // Renewed since, it is held for longer, and its holder may be told so.
    w.tick(50);
    let renewed = w.renew(&lease).unwrap().new_deadline;
    assert!(renewed > first);
    assert_eq!([again(w, own), again(w, others)], [renewed, first]);
    assert_eq!(w.shard(id(0)).state.lease.unwrap().deadline(), renewed);
}

pub(crate) fn a_checkpoint_is_one_that_renews_or_one_that_does_not<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, plain, renewing) = (w.lease(1, 0), w.op(), w.op());
    w.attempt(Operation::Checkpoint, &lease, plain, Payload::Usual).unwrap();
    w.attempt(Operation::CheckpointAndRenew, &lease, renewing, Payload::Usual).unwrap();
    for (operation, op) in
        [(Operation::CheckpointAndRenew, plain), (Operation::Checkpoint, renewing)]
    {
        let refused = w.attempt(operation, &lease, op, Payload::Usual);
        assert!(matches!(refused, Err(CoordError::OpIdConflict { .. })), "{refused:?}");
    }
}

pub(crate) fn a_clock_that_steps_back_shortens_no_lease<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.now = LogicalTime::from_raw(w.now.as_raw() - 5_000);
    assert_eq!(w.renew(&lease).unwrap().new_deadline, lease.deadline());
    assert_eq!(w.shard(id(0)).state.lease.unwrap().deadline(), lease.deadline());
}

pub(crate) fn a_clock_that_steps_back_stops_no_work<H: Harness>() {
    let w = &mut World::<H>::new(2);
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::Checkpoint, &lease).unwrap();
    w.now = LogicalTime::from_raw(1);
    assert!(w.renew(&lease).is_ok());
    assert_eq!(w.claim(2).unwrap().lease.shard(), id(1));
    assert!(w.acquire(2, id(0)).is_err());
    assert_eq!(w.attempt_new(Operation::Complete, &lease), Ok(Executed(())));
}

/// Deadlines that were granted out of order expire in theirs.
pub(crate) fn leases_granted_by_clocks_that_differ_expire_each_in_its_time<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let late = w.lease(1, 0);
    w.now = LogicalTime::from_raw(w.now.as_raw() - 4_000);
    let early = w.lease(1, 1);
    w.now = LogicalTime::from_raw(w.now.as_raw() + 2_000);
    let middle = w.lease(1, 2);
    for lease in [early, middle, late] {
        w.expire(&lease);
        assert_eq!(w.claim(2).unwrap().lease.shard(), lease.shard());
        assert!(w.claim(2).is_err());
    }
}

pub(crate) fn a_lease_may_outlive_the_clock<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.now = LogicalTime::from_raw(u64::MAX - 5);
    let lease = w.lease(1, 0);
    assert_eq!(lease.deadline(), LogicalTime::from_raw(u64::MAX));
    assert_eq!(w.renew(&lease).unwrap().new_deadline, LogicalTime::from_raw(u64::MAX));
    assert_eq!(w.attempt_new(Operation::Complete, &lease), Ok(Executed(())));
}

pub(crate) fn the_lease_lasts_as_long_as_the_run_says<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.config.lease_duration = 77;
    w.begin(1);
    let lease = w.lease(1, 0);
    assert_eq!(Some(lease.deadline()), w.now.checked_add(77));
    w.tick(5);
    assert_eq!(Some(w.renew(&lease).unwrap().new_deadline), w.now.checked_add(77));
}
