//! Taking a shard.

use gossip_contracts::coordination::{Cursor, CursorSemantics};

use super::prelude::*;
use crate::error::AcquireError;

pub(crate) fn a_free_shard_is_granted_as_it_was_registered<H: Harness>() {
    for semantics in [CursorSemantics::Completed, CursorSemantics::Dispatched] {
        let w = &mut World::<H>::open(&Limits::default());
        w.config.cursor_semantics = semantics;
        w.begin(2);
        let acquired = w.acquire(7, id(1)).unwrap();
        let lease = acquired.lease;
        assert_eq!((lease.tenant(), lease.key()), (w.tenant, w.key(id(1))));
        assert_eq!((lease.owner(), lease.fence()), (worker(7), FenceEpoch::INITIAL.next()));
        assert_eq!(Some(lease.deadline()), w.now.checked_add(LEASE));
        let range = ShardSpecRef::new(b"000001", b"000002", b"about 1");
        assert_eq!((acquired.state.key, acquired.state.spec.as_ref()), (lease.key(), range));
        assert_eq!(acquired.state.cursor, Cursor::initial());
        assert_eq!((acquired.state.cursor_semantics, acquired.state.parent), (semantics, None));
        assert_eq!(acquired.spawned, []);
    }
}

pub(crate) fn the_next_worker_goes_on_where_the_last_one_stopped<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let (key, op) = (within(0, "k"), w.op());
    let cursor = CursorUpdate::new(Some(&key), Some(b"token"));
    w.checkpoint(&lease, cursor, op).unwrap();
    w.expire(&lease);
    w.reopen();
    let next = w.acquire(2, id(0)).unwrap();
    assert_eq!(next.state.cursor.as_update(), cursor);
}

pub(crate) fn every_acquire_raises_the_fence_by_one<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let first = w.lease(1, 0);
    w.release(&first).unwrap();
    let second = w.lease(1, 0);
    w.expire(&second);
    let third = w.lease(2, 0);
    assert_eq!(second.fence(), first.fence().next());
    assert_eq!(third.fence(), second.fence().next());
}

pub(crate) fn an_unknown_shard_is_not_found<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let missing =
        |w: &World<H>, shard| Err(AcquireError::ShardNotFound { shard: w.key(id(shard)) });
    let refused = missing(w, 1);
    assert_eq!(w.acquire(1, id(1)), refused);
    w.run = gossip_contracts::identity::RunId::from_raw(9);
    let refused = missing(w, 0);
    assert_eq!(w.acquire(1, id(0)), refused);
}

pub(crate) fn a_settled_shard_is_refused<H: Harness>() {
    for (end, status) in [
        (Operation::Complete, ShardStatus::Done),
        (Operation::Park, ShardStatus::Parked),
        (Operation::SplitReplace, ShardStatus::Split),
    ] {
        let w = &mut World::<H>::new(1);
        let lease = w.lease(1, 0);
        w.attempt_new(end, &lease).unwrap();
        for by in [1, 2] {
            let refused = Err(AcquireError::ShardTerminal { shard: w.key(id(0)), status });
            assert_eq!(w.acquire(by, id(0)), refused);
        }
    }
}

pub(crate) fn a_shard_is_anothers_until_its_lease_is_over<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let lease_deadline = H::caps().free_from(lease.deadline());
    let held = AcquireError::AlreadyLeased { current_owner: worker(1), lease_deadline };
    assert_eq!(w.acquire(2, id(0)), Err(held.clone()));
    w.tick(LEASE + H::caps().takeover_delay - 1);
    assert_eq!(w.acquire(2, id(0)), Err(held));
    w.tick(1);
    assert_eq!(w.acquire(2, id(0)).unwrap().lease.owner(), worker(2));
}

/// An answer that was lost must not lock the worker out.
pub(crate) fn the_holder_may_acquire_its_own_shard_again<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lost, op) = (w.lease(1, 0), w.op());
    w.checkpoint(&lost, CursorUpdate::at(&within(0, "c")), op).unwrap();
    w.tick(5);
    let again = w.acquire(1, id(0)).unwrap();
    assert_eq!(again.lease.fence(), lost.fence().next());
    assert_eq!(Some(again.lease.deadline()), w.now.checked_add(LEASE));
    assert_eq!(again.state.cursor.as_update(), CursorUpdate::at(&within(0, "c")));
    assert!(w.renew(&lost).is_err());
    assert!(w.renew(&again.lease).is_ok());
}

pub(crate) fn the_holder_may_take_an_expired_shard_back<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.now = lease.deadline();
    assert_eq!(w.acquire(1, id(0)).unwrap().lease.fence(), lease.fence().next());
}

pub(crate) fn a_released_shard_is_free_at_once<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    w.checkpoint(&lease, CursorUpdate::at(&within(0, "c")), op).unwrap();
    w.release(&lease).unwrap();
    let next = w.acquire(2, id(0)).unwrap();
    assert_eq!(next.lease.fence(), lease.fence().next());
    assert_eq!(next.state.cursor.as_update(), CursorUpdate::at(&within(0, "c")));
}

pub(crate) fn a_run_that_is_over_grants_nothing<H: Harness>() {
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        // One shard is free and one settled; the run is named before either.
        let w = &mut World::<H>::new(2);
        let lease = w.lease(1, 0);
        w.attempt_new(Operation::Complete, &lease).unwrap();
        if status == RunStatus::Done {
            let lease = w.lease(1, 1);
            w.attempt_new(Operation::Complete, &lease).unwrap();
        }
        w.bring_to(status);
        for shard in [0, 1] {
            let refused = Err(AcquireError::RunNotActive { run: w.run, status });
            assert_eq!(w.acquire(1, id(shard)), refused);
        }
    }
}

/// The first fault in the documented order is the one that is named.
pub(crate) fn run_status_and_holder_are_checked_in_order<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let mut lease = w.lease(1, 0);
    for _ in 1..RETRIES {
        lease = w.lease(1, 0);
    }
    // Tried too often, but held: who holds it matters first, and nothing is parked.
    let lease_deadline = H::caps().free_from(lease.deadline());
    let held = AcquireError::AlreadyLeased { current_owner: worker(1), lease_deadline };
    assert_eq!(w.acquire(2, id(0)), Err(held));
    w.attempt_new(Operation::Park, &lease).unwrap();
    let status = ShardStatus::Parked;
    let refused = Err(AcquireError::ShardTerminal { shard: w.key(id(0)), status });
    assert_eq!(w.acquire(2, id(0)), refused);
    w.bring_to(RunStatus::Cancelled);
    let status = RunStatus::Cancelled;
    assert_eq!(w.acquire(2, id(0)), Err(AcquireError::RunNotActive { run: w.run, status }));
}
