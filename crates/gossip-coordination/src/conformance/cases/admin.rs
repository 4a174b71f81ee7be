//! What an administrator does about leases and runs that have ended.

use gossip_contracts::identity::RunId;

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::{DeleteRunError, GetRunError, RevokeLeaseError};
use crate::run::{RunSummary, ShardFilter};

/// A clock that was a year ahead does not hold a shard for a year.
pub(crate) fn a_revoked_shard_is_free_at_once_and_its_holder_shut_out<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let now = w.now;
    w.tick(31_536_000_000);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.checkpoint(&lease, CursorUpdate::at(&key), op).unwrap();
    w.now = now;
    let listed = w.list(ShardFilter::active()).unwrap();
    assert_eq!(
        (listed[0].lease_deadline, listed[0].fence),
        (Some(lease.deadline()), lease.fence())
    );
    assert_eq!(w.revoke(id(0), lease.fence()), Ok(Executed(())));
    w.reopen();
    for &operation in Operation::LEASED {
        assert!(w.attempt_new(operation, &lease).is_err(), "{operation:?}");
    }
    let next = w.claim(2).unwrap();
    assert_eq!(next.lease.fence(), lease.fence().next().next());
    assert_eq!(next.state.cursor.as_update(), CursorUpdate::at(&key));
}

pub(crate) fn revoking_again_takes_nothing_from_the_next_holder<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.revoke(id(0), lease.fence()).unwrap();
    assert_eq!(w.revoke(id(0), lease.fence()), Ok(Replayed(())));
    let next = w.lease(2, 0);
    assert_eq!(w.revoke(id(0), lease.fence()), Ok(Replayed(())));
    assert!(w.renew(&next).is_ok());
    w.release(&next).unwrap();
    assert_eq!(w.revoke(id(0), next.fence()), Ok(Replayed(())));
}

pub(crate) fn a_fence_that_was_never_granted_is_not_revoked<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let current = w.lease(1, 0).fence();
    let presented = current.next();
    let refused = RevokeLeaseError::FenceNotGranted { presented, current };
    assert_eq!(w.revoke(id(0), presented), Err(refused));
    assert_eq!(w.revoke(id(7), current), Err(RevokeLeaseError::ShardNotFound));
}

pub(crate) fn a_run_that_is_over_has_no_lease_to_revoke<H: Harness>() {
    for status in [RunStatus::Failed, RunStatus::Cancelled] {
        let w = &mut World::<H>::new(1);
        let lease = w.lease(1, 0);
        w.bring_to(status);
        let refused = Err(RevokeLeaseError::RunTerminal { status });
        assert_eq!(w.revoke(id(0), lease.fence()), refused);
    }
}

pub(crate) fn a_run_that_has_ended_is_deleted_with_its_shards<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::SplitResidual, &lease).unwrap();
    let other = w.run;
    w.run = RunId::from_raw(2);
    w.begin(1);
    w.run = other;
    w.bring_to(RunStatus::Cancelled);
    assert_eq!(w.delete_run(), Ok(()));
    w.reopen();
    assert_eq!(w.get_run(), Err(GetRunError::RunNotFound));
    assert_eq!(w.list(ShardFilter::all()), Err(GetRunError::RunNotFound));
    assert!(w.renew(&lease).is_err());
    // A retry finds that it was done; other runs are as they were.
    assert_eq!(w.delete_run(), Err(DeleteRunError::RunNotFound));
    w.run = RunId::from_raw(2);
    assert_eq!(w.progress().unwrap().active, 1);
}

pub(crate) fn a_run_that_has_not_ended_is_not_deleted<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.create_run().unwrap();
    let refused = |status| Err(DeleteRunError::RunNotEnded { status });
    assert_eq!(w.delete_run(), refused(RunStatus::Initializing));
    let (manifest, op) = (Manifest::of(0..1), w.op());
    w.register(&manifest.rows(), op).unwrap();
    assert_eq!(w.delete_run(), refused(RunStatus::Active));
}

/// Ceilings count what exists.
pub(crate) fn deleting_runs_makes_room<H: Harness>() {
    let caps = H::caps();
    let limits = Limits {
        shards_per_tenant: if caps.shard_ceilings { 3 } else { 100_000 },
        byte_capacity: caps.byte_capacity.then_some(512),
        ..Limits::default()
    };
    let w = &mut World::<H>::open(&limits);
    for run in 1..=20 {
        w.run = RunId::from_raw(run);
        w.begin(3);
        w.bring_to(RunStatus::Failed);
        w.delete_run().unwrap();
    }
    assert_eq!(w.list_runs(None, 9), Ok((vec![], None)));
}

pub(crate) fn runs_are_listed_a_page_at_a_time_in_the_order_of_their_ids<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    let ids = [u64::MAX, 1, 9, (1 << 63) - 1, 1 << 63, 10];
    for id in ids {
        w.run = RunId::from_raw(id);
        w.create_run().unwrap();
    }
    w.tenant = tenant(2);
    w.create_run().unwrap();
    w.tenant = tenant(1);
    let mut sorted = ids.map(RunId::from_raw);
    sorted.sort_unstable();
    for limit in [1, 2, 4, 6, 99] {
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = w.list_runs(after, limit).unwrap();
            assert!(page.len() <= limit);
            for summary in page {
                w.run = summary.run;
                assert_eq!(summary, RunSummary::of(&w.get_run().unwrap()));
                seen.push(summary.run);
            }
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
        assert_eq!(seen, sorted, "pages of {limit}");
    }
}

pub(crate) fn shards_are_listed_a_page_at_a_time<H: Harness>() {
    let w = &mut World::<H>::new(5);
    for shard in [1, 3] {
        let lease = w.lease(1, shard);
        w.attempt_new(Operation::SplitReplace, &lease).unwrap();
    }
    w.parked(0);
    for filter in [ShardFilter::all(), ShardFilter::active(), ShardFilter::parked()] {
        let all = w.list(filter).unwrap();
        for limit in [1, 2, 5, 9, 10] {
            let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
            loop {
                let (page, next) = w.list_page(filter, after, limit).unwrap();
                assert!(page.len() <= limit);
                pages += 1;
                seen.extend(page);
                match next {
                    Some(next) => after = Some(next),
                    None => break,
                }
            }
            assert_eq!((seen, pages), (all.clone(), 9_usize.div_ceil(limit)));
        }
    }
    w.run = RunId::from_raw(9);
    assert_eq!(w.list_page(ShardFilter::all(), None, 1), Err(GetRunError::RunNotFound));
}
