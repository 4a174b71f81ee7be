//! Claims: getting some shard rather than a particular one.

use std::collections::BTreeSet;

use gossip_contracts::identity::RunId;

use super::prelude::*;
use crate::error::{ClaimError, GetRunError};
use crate::scratch::AcquireScratch;
use crate::traits::ClaimCandidates;

/// What a claim is told while the first of the held shards has a lease until `deadline`.
fn none_until<H: Harness>(deadline: Option<LogicalTime>) -> ClaimError {
    ClaimError::NoneAvailable { earliest_deadline: deadline.map(|at| H::caps().free_from(at)) }
}

pub(crate) fn many_workers_claim_every_shard_exactly_once<H: Harness>() {
    let w = &mut World::<H>::new(20);
    let mut claimed = BTreeSet::new();
    let first = w.now;
    for turn in 0..20 {
        w.tick(1);
        let acquired = w.claim(turn % 7).unwrap();
        assert_eq!(acquired.lease.owner(), worker(turn % 7));
        assert!(claimed.insert(acquired.lease.shard()), "a shard was claimed twice");
    }
    let earliest = first.checked_add(1 + LEASE);
    for by in 0..8 {
        assert_eq!(w.claim(by), Err(none_until::<H>(earliest)));
    }
}

/// Workers that claim and complete until nothing is left, one of which dies now and then.
pub(crate) fn a_run_is_worked_off_although_workers_die<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.config.max_shard_retries = 100;
    w.begin(12);
    let (mut completed, mut turn) = (BTreeSet::new(), 0);
    while completed.len() < 12 {
        turn += 1;
        assert!(turn < 1_000, "the run does not end");
        match w.claim(turn % 5) {
            Ok(acquired) if turn % 4 != 0 => {
                let (op, key) = (w.op(), acquired.state.spec.as_ref().start().to_vec());
                w.complete(&acquired.lease, CursorUpdate::at(&key), op).unwrap();
                assert!(completed.insert(acquired.lease.shard()), "a shard was done twice");
            }
            Ok(_) => {}
            Err(ClaimError::NoneAvailable { earliest_deadline }) => {
                let free_from = earliest_deadline.expect("some shard is held");
                assert!(free_from > w.now, "a shard that is over is not free");
                w.now = free_from;
            }
            Err(other) => panic!("{other}"),
        }
    }
    let op = w.op();
    assert_eq!(w.complete_run(op), Ok(Executed(())));
}

pub(crate) fn a_held_shard_is_not_claimed_not_even_by_its_holder<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.claim(1).unwrap().lease;
    for by in [1, 2] {
        assert_eq!(w.claim(by), Err(none_until::<H>(Some(lease.deadline()))));
    }
    w.tick(LEASE - 1);
    assert_eq!(w.claim(1), Err(none_until::<H>(Some(lease.deadline()))));
    assert!(w.renew(&lease).is_ok());
}

pub(crate) fn an_expired_shard_is_claimed_with_its_cursor<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.claim(1).unwrap().lease, w.op(), within(0, "c"));
    w.checkpoint(&lease, CursorUpdate::new(Some(&key), Some(b"token")), op).unwrap();
    w.expire(&lease);
    let next = w.claim(2).unwrap();
    assert_eq!((next.lease.shard(), next.lease.fence()), (id(0), lease.fence().next()));
    assert_eq!(next.state.cursor.as_update(), CursorUpdate::new(Some(&key), Some(b"token")));
}

pub(crate) fn released_unparked_and_split_shards_are_claimable<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let (released, parked, split) = (w.lease(1, 0), w.lease(1, 1), w.lease(1, 2));
    assert!(w.claim(2).is_err());
    w.release(&released).unwrap();
    assert_eq!(w.claim(2).unwrap().lease.shard(), id(0));
    w.attempt_new(Operation::Park, &parked).unwrap();
    assert!(w.claim(2).is_err());
    let op = w.op();
    w.unpark(id(1), op).unwrap();
    assert_eq!(w.claim(2).unwrap().lease.shard(), id(1));
    w.attempt_new(Operation::SplitReplace, &split).unwrap();
    let children = [w.claim(2).unwrap(), w.claim(3).unwrap()];
    assert!(children.iter().all(|child| child.state.parent == Some(id(2))));
    assert!(w.claim(4).is_err());
}

pub(crate) fn a_run_whose_shards_are_settled_has_nothing_to_claim<H: Harness>() {
    let w = &mut World::<H>::new(2);
    w.parked(0);
    let lease = w.lease(1, 1);
    w.attempt_new(Operation::Complete, &lease).unwrap();
    assert_eq!(w.claim(1), Err(none_until::<H>(None)));
}

pub(crate) fn the_earliest_deadline_follows_renewals<H: Harness>() {
    let w = &mut World::<H>::new(2);
    let first = w.lease(1, 0);
    w.tick(10);
    let second = w.lease(2, 1);
    assert_eq!(w.claim(3), Err(none_until::<H>(Some(first.deadline()))));
    w.tick(10);
    let renewed = w.renew(&first).unwrap().new_deadline;
    assert_eq!(w.claim(3), Err(none_until::<H>(Some(second.deadline()))));
    w.attempt_new(Operation::Complete, &second).unwrap();
    assert_eq!(w.claim(3), Err(none_until::<H>(Some(renewed))));
}

pub(crate) fn an_unknown_run_has_nothing_to_claim<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    assert_eq!(w.claim(1), Err(ClaimError::RunNotFound));
    assert_eq!(w.candidates(1), Err(GetRunError::RunNotFound));
}

pub(crate) fn a_run_that_is_not_active_has_nothing_to_claim<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.create_run().unwrap();
    let refused = |w: &World<H>, status| Err(ClaimError::RunNotActive { run: w.run, status });
    let expected = refused(w, RunStatus::Initializing);
    assert_eq!(w.claim(1), expected);
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        let w = &mut World::<H>::new(1);
        w.bring_to(status);
        let expected = refused(w, status);
        assert_eq!(w.claim(1), expected);
    }
}

pub(crate) fn candidates_can_be_acquired<H: Harness>() {
    let w = &mut World::<H>::new(20);
    let held = w.lease(1, 0);
    w.parked(1);
    let candidates = w.candidates(2).unwrap();
    assert_eq!(candidates.status, RunStatus::Active);
    assert!((1..=ClaimCandidates::MAX).contains(&candidates.shards.len()));
    assert_eq!(candidates.earliest_deadline, Some(H::caps().free_from(held.deadline())));
    for &shard in &candidates.shards {
        assert!(w.acquire(2, shard).is_ok());
    }
    // Also when the buffer held something before.
    w.bring_to(RunStatus::Cancelled);
    let mut used = candidates;
    let (now, tenant, run) = (w.now, w.tenant, w.run);
    let backend = w.harness.backend();
    crate::traits::RunManagement::collect_claim_candidates_into(
        backend,
        now,
        tenant,
        run,
        worker(2),
        &mut used,
    )
    .unwrap();
    assert!(used.shards.is_empty() && used.status == RunStatus::Cancelled);
}

pub(crate) fn a_worker_that_found_nothing_waits<H: Harness>() {
    if !H::caps().claim_cooldown {
        return skip("the backend has no cooldown");
    }
    let w = &mut World::<H>::open(&Limits { claim_cooldown: 50, ..Limits::default() });
    w.begin(1);
    let lease = w.claim(1).unwrap().lease;
    assert_eq!(w.claim(2), Err(none_until::<H>(Some(lease.deadline()))));
    let retry_after = w.now.checked_add(50).unwrap();
    w.release(&lease).unwrap();
    // Something is free now, but the worker must wait; another need not.
    assert_eq!(w.claim(2), Err(ClaimError::Throttled { retry_after }));
    w.tick(49);
    assert_eq!(w.claim(2), Err(ClaimError::Throttled { retry_after }));
    let other = w.claim(3).unwrap().lease;
    w.release(&other).unwrap();
    w.tick(1);
    let mine = w.claim(2).unwrap().lease;
    // A claim that found something does not make anybody wait.
    w.release(&mine).unwrap();
    assert!(w.claim(2).is_ok());
}

pub(crate) fn a_worker_gets_back_what_it_holds_and_nothing_else<H: Harness>() {
    let w = &mut World::<H>::new(4);
    let (first, second, _) = (w.lease(1, 0), w.lease(1, 2), w.lease(2, 1));
    let (op, key) = (w.op(), within(0, "c"));
    w.checkpoint(&first, CursorUpdate::at(&key), op).unwrap();
    w.reopen();
    let mut back = Vec::new();
    while let Some(own) = w.reacquire_own(1).unwrap() {
        let lease = own.lease;
        let old = if lease.shard() == id(0) { first } else { second };
        assert_eq!((lease.owner(), lease.fence()), (worker(1), old.fence().next()));
        if lease.shard() == id(0) {
            assert_eq!(own.state.cursor.as_update(), CursorUpdate::at(&key));
        }
        // The lease of old is dead.
        assert!(w.renew(&old).is_err());
        w.attempt_new(Operation::Complete, &lease).unwrap();
        back.push(lease.shard());
    }
    back.sort_unstable();
    assert_eq!(back, [id(0), id(2)]);
    assert_eq!(w.reacquire_own(9), Ok(None));
}

/// Nobody else has taken it, so it is still the worker's own.
pub(crate) fn a_worker_gets_its_shard_back_after_its_lease<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.expire(&lease);
    let again = w.reacquire_own(1).unwrap().unwrap().lease;
    assert_eq!(again.fence(), lease.fence().next());
    w.expire(&again);
    w.lease(2, 0);
    assert_eq!(w.reacquire_own(1), Ok(None));
}

pub(crate) fn what_a_worker_gets_back_too_often_is_parked<H: Harness>() {
    let w = &mut World::<H>::new(2);
    w.lease(1, 0);
    for _ in 1..RETRIES {
        assert!(w.reacquire_own(1).unwrap().is_some());
    }
    assert_eq!(w.reacquire_own(1), Ok(None));
    assert_eq!(w.shard(id(0)).state.status, ShardStatus::Parked);
}

pub(crate) fn an_unknown_run_holds_nothing<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.run = RunId::from_raw(9);
    assert_eq!(w.reacquire_own(1), Err(ClaimError::RunNotFound));
}

pub(crate) fn a_run_that_is_not_active_gives_nothing_back<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.lease(1, 0);
    w.bring_to(RunStatus::Failed);
    let refused = ClaimError::RunNotActive { run: w.run, status: RunStatus::Failed };
    assert_eq!(w.reacquire_own(1), Err(refused));
}

/// Until they are granted a shard, and for one lease duration.
pub(crate) fn workers_without_work_are_counted<H: Harness>() {
    let w = &mut World::<H>::new(2);
    let lease = w.lease(1, 0);
    let idle = |w: &mut World<H>| {
        let op = w.op();
        let at = within(0, &format!("{:06}", op.as_raw()));
        let outcome = w.checkpoint_and_renew(&lease, CursorUpdate::at(&at), op);
        outcome.unwrap().into_inner().idle_workers
    };
    assert_eq!(idle(w), 0);
    w.note_idle(2).unwrap();
    w.note_idle(3).unwrap();
    w.note_idle(3).unwrap();
    assert_eq!(idle(w), 2);
    w.claim(2).unwrap();
    assert_eq!(idle(w), 1);
    w.tick(LEASE - 1);
    assert_eq!(idle(w), 1);
    w.tick(1);
    assert_eq!(idle(w), 0);
}

pub(crate) fn an_unknown_run_has_no_idle_workers<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.run = RunId::from_raw(9);
    assert_eq!(w.note_idle(1), Err(GetRunError::RunNotFound));
}

/// Where the backend gives handles to several processes, they race; else they take turns.
pub(crate) fn workers_on_their_own_handles_never_share_a_shard<H: Harness>() {
    const WORKERS: u64 = 4;
    let w = &mut World::<H>::new(60);
    let (now, tenant, run) = (w.now, w.tenant, w.run);
    let handles: Vec<_> = (0..WORKERS).map_while(|_| w.harness.connect()).collect();
    if handles.is_empty() {
        return many_workers_claim_every_shard_exactly_once::<H>();
    }
    let work = |mut backend: H::Backend, by: u64| {
        use crate::claim::ShardClaiming;
        let (mut scratch, mut claimed) = (Box::new(AcquireScratch::new()), Vec::new());
        loop {
            match backend.claim_next_available(now, tenant, run, worker(by), &mut scratch) {
                Ok(acquired) => claimed.push(acquired.lease.shard()),
                Err(ClaimError::NoneAvailable { .. }) => return claimed,
                Err(other) => panic!("{other}"),
            }
        }
    };
    let claimed: Vec<ShardId> = std::thread::scope(|scope| {
        let started: Vec<_> =
            (0..).zip(handles).map(|(by, handle)| scope.spawn(move || work(handle, by))).collect();
        started.into_iter().flat_map(|thread| thread.join().expect("no worker fails")).collect()
    });
    let distinct: BTreeSet<_> = claimed.iter().copied().collect();
    assert_eq!((claimed.len(), distinct.len()), (60, 60));
    // A worker may give up while others are faster, but then everything is taken.
    assert!(matches!(w.claim(9), Err(ClaimError::NoneAvailable { .. })));
}
