//! Looking at a run: records, listings, progress, capacity.

use super::prelude::*;
use crate::error::GetRunError;
use crate::run::{RunProgress, RunTerminalEvaluation, ShardFilter, evaluate_run_terminal};
use crate::traits::RunManagement;

/// A run with a shard of each kind: 0 free, 1 held, 2 over, 3 done, 4 parked, 5 split in two.
fn varied<H: Harness>() -> World<H> {
    let mut w = World::<H>::new(6);
    let over = w.lease(1, 2);
    w.expire(&over);
    w.lease(1, 1);
    w.parked(4);
    for (shard, operation) in [(3, Operation::Complete), (5, Operation::SplitReplace)] {
        let lease = w.lease(1, shard);
        w.attempt_new(operation, &lease).unwrap();
    }
    w
}

pub(crate) fn filters_show_what_they_say<H: Harness>() {
    let w = &mut varied::<H>();
    let children = w.shard(id(5)).spawned;
    let mut listed = |filter| -> Vec<ShardId> {
        w.list(filter).unwrap().iter().map(|shard| shard.shard).collect()
    };
    let with_children = |roots: &[u64]| {
        let mut ids: Vec<_> =
            roots.iter().map(|&shard| id(shard)).chain(children.clone()).collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(listed(ShardFilter::all()), with_children(&[0, 1, 2, 3, 4, 5]));
    assert_eq!(listed(ShardFilter::active()), with_children(&[0, 1, 2]));
    assert_eq!(listed(ShardFilter::available()), with_children(&[0, 2]));
    assert_eq!(listed(ShardFilter::parked()), [id(4)]);
    assert_eq!(listed(ShardFilter::all().roots()), [0, 1, 2, 3, 4, 5].map(id));
    assert_eq!(listed(ShardFilter::available().roots()), [0, 2].map(id));
    for (status, expected) in [(ShardStatus::Done, 3), (ShardStatus::Split, 5)] {
        let filter = ShardFilter { status: Some(status), ..ShardFilter::all() };
        assert_eq!(listed(filter), [id(expected)]);
    }
}

pub(crate) fn what_is_available_depends_on_the_time_of_asking<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    assert_eq!(w.list(ShardFilter::available()).unwrap(), []);
    w.expire(&lease);
    assert_eq!(w.list(ShardFilter::available()).unwrap().len(), 1);
}

pub(crate) fn a_listing_replaces_what_the_buffer_held<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let mut out = w.list(ShardFilter::all()).unwrap();
    let (now, tenant, run) = (w.now, w.tenant, w.run);
    let backend = w.harness.backend();
    backend.list_shards_into(now, tenant, run, ShardFilter::parked(), &mut out).unwrap();
    assert_eq!(out, []);
}

/// The audit compares every listing with the records; this is what a reader sees.
pub(crate) fn a_summary_tells_what_matters<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "c"));
    w.checkpoint(&lease, CursorUpdate::at(&key), op).unwrap();
    w.attempt_new(Operation::SplitResidual, &lease).unwrap();
    let listed = w.list(ShardFilter::all()).unwrap();
    let (parent, child) = (&listed[0], &listed[1]);
    assert_eq!((parent.shard, parent.status), (id(0), ShardStatus::Active));
    assert_eq!((&*parent.start, &*parent.end), (&start(0)[..], &within(0, "p")[..]));
    assert_eq!(parent.last_key.as_deref(), Some(&key[..]));
    assert_eq!(parent.lease_deadline, Some(lease.deadline()));
    assert_eq!((parent.acquires_since_progress, parent.spawned_count), (0, 1));
    assert_eq!((child.parent, child.lease_deadline, &child.last_key), (Some(id(0)), None, &None));
    assert_eq!((&*child.start, &*child.end), (&within(0, "p")[..], &start(1)[..]));
}

pub(crate) fn progress_counts_where_shards_stand<H: Harness>() {
    let w = &mut varied::<H>();
    let expected = RunProgress { active: 5, done: 1, split: 1, parked: 1, watermark: 2 };
    assert_eq!(w.progress(), Ok(expected));
    assert_eq!(evaluate_run_terminal(&expected), RunTerminalEvaluation::StillActive);
}

pub(crate) fn an_unknown_run_cannot_be_looked_at<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    assert_eq!(w.get_run(), Err(GetRunError::RunNotFound));
    assert_eq!(w.progress(), Err(GetRunError::RunNotFound));
    assert_eq!(w.list(ShardFilter::all()), Err(GetRunError::RunNotFound));
}

/// The audit compares every hint with the records; here is one of each kind.
pub(crate) fn capacity_hints_tell_how_much_waits<H: Harness>() {
    let w = &mut World::<H>::new(5);
    let first = w.acquire(1, id(0)).unwrap();
    assert!(first.capacity.available_count > 0);
    let free_from = H::caps().free_from(first.lease.deadline());
    assert_eq!(first.capacity.earliest_deadline, Some(free_from));
    for shard in 1..4 {
        w.lease(1, shard);
    }
    let last = w.claim(2).unwrap();
    assert_eq!((last.capacity.available_count, last.capacity.is_estimate), (0, false));
    assert_eq!(w.renew(&last.lease).unwrap().capacity.available_count, 0);
    w.expire(&first.lease);
    let late = w.acquire(3, id(0)).unwrap();
    assert!(late.capacity.available_count > 0, "three shards are over");
}

pub(crate) fn shards_of_a_run_that_is_not_active_are_not_available<H: Harness>() {
    for status in [RunStatus::Cancelled, RunStatus::Failed] {
        let w = &mut World::<H>::new(2);
        assert_eq!(w.list(ShardFilter::available()).unwrap().len(), 2);
        w.bring_to(status);
        assert_eq!(w.list(ShardFilter::available()).unwrap(), []);
        assert_eq!(w.list(ShardFilter::active()).unwrap().len(), 2);
    }
}
