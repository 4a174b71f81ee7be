//! Cutting shards: what comes out, and that it covers what went in.

use gossip_contracts::coordination::{
    Cursor, CursorSemantics, SplitReplacePlan, SplitResidualPlan, plan_split_replace_at_points,
    plan_split_residual_at_point,
};
use gossip_contracts::identity::OpId;

use super::prelude::*;
use crate::conformance::attempt::widen;
use crate::error::{CoordError, CursorOutOfBoundsDetail};
use crate::payload::{DerivedShardKind, derive_split_shard_id};
use crate::record::ShardState;
use crate::run::ShardFilter;

/// The id that the operation gives the shard.
fn derived<H: Harness>(
    w: &World<H>,
    parent: ShardId,
    op: OpId,
    kind: DerivedShardKind,
    index: u32,
) -> ShardId {
    derive_split_shard_id(w.run, parent, op, kind, index)
}

pub(crate) fn a_replaced_shard_hands_its_range_to_its_children<H: Harness>() {
    for semantics in [CursorSemantics::Completed, CursorSemantics::Dispatched] {
        let w = &mut World::<H>::open(&Limits::default());
        w.config.cursor_semantics = semantics;
        w.begin(1);
        let (lease, op, at) = (w.lease(1, 0), w.op(), w.op());
        let key = within(0, "a");
        w.checkpoint(&lease, CursorUpdate::new(Some(&key), Some(b"token")), at).unwrap();

        let points = [within(0, "h"), within(0, "p")];
        let bounds = [&start(0), &points[0], &points[1], &start(1)].map(|key| key.to_vec());
        let specs: Vec<_> = (0..3)
            .map(|part| {
                ShardSpecRef::new(&bounds[part], &bounds[part + 1], [b"x", b"y", b"z"][part])
            })
            .collect();
        let plan = SplitReplacePlan::new(specs.iter().copied());
        let outcome = w.split_replace(&lease, &plan, op).unwrap();

        assert!(outcome.is_executed());
        let children = outcome.into_inner().children;
        assert_eq!(children.len(), 3);
        let parent = w.shard(id(0));
        assert_eq!((parent.state.status, parent.state.lease), (ShardStatus::Split, None));
        assert_eq!(parent.spawned, *children);
        for (index, &child) in children.iter().enumerate() {
            let kind = DerivedShardKind::Child;
            assert_eq!(child, derived(w, id(0), op, kind, index as u32));
            let record = w.shard(child);
            assert_eq!(record.spec.as_ref(), specs[index]);
            assert_eq!(record.cursor, Cursor::initial());
            assert_eq!((record.parent, record.cursor_semantics), (Some(id(0)), semantics));
            assert_eq!((record.state, record.spawned.len()), (ShardState::NEW, 0));
            assert!(record.op_log.is_empty());
        }
        assert_eq!(w.progress().unwrap().active, 3);
    }
}

pub(crate) fn a_residual_split_leaves_the_parent_at_work<H: Harness>() {
    for semantics in [CursorSemantics::Completed, CursorSemantics::Dispatched] {
        let w = &mut World::<H>::open(&Limits::default());
        w.config.cursor_semantics = semantics;
        w.begin(1);
        let (lease, op, at) = (w.lease(1, 0), w.op(), w.op());
        let (key, point) = (within(0, "a"), within(0, "p"));
        let cursor = CursorUpdate::new(Some(&key), Some(b"token"));
        w.checkpoint(&lease, cursor, at).unwrap();
        let (from, until) = (start(0), start(1));
        let kept = ShardSpecRef::new(&from, &point, b"kept");
        let given = ShardSpecRef::new(&point, &until, b"given");
        let before = w.shard(id(0));
        let outcome = w.split_residual(&lease, &SplitResidualPlan::new(kept, given), op).unwrap();

        assert!(outcome.is_executed());
        let residual = outcome.into_inner().residual;
        assert_eq!(residual, derived(w, id(0), op, DerivedShardKind::Residual, 0));
        let parent = w.shard(id(0));
        assert_eq!((parent.state, parent.spec.as_ref()), (before.state, kept));
        assert_eq!((parent.cursor.as_update(), &parent.spawned[..]), (cursor, &[residual][..]));
        let record = w.shard(residual);
        assert_eq!((record.spec.as_ref(), record.cursor.clone()), (given, Cursor::initial()));
        assert_eq!((record.parent, record.cursor_semantics), (Some(id(0)), semantics));
        assert_eq!(record.state, ShardState::NEW);

        // The lease goes on, up to where the range now ends.
        let op = w.op();
        let outside = CursorOutOfBoundsDetail { last_key: 8, spec_start: 6, spec_end: 8 };
        assert_eq!(
            w.checkpoint(&lease, CursorUpdate::at(&point), op).map_err(widen),
            Err(CoordError::CursorOutOfBounds(outside))
        );
        let last = within(0, "oz");
        assert_eq!(w.complete(&lease, CursorUpdate::at(&last), op), Ok(Executed(())));
        assert_eq!(w.claim(2).unwrap().lease.shard(), residual);
    }
}

pub(crate) fn children_are_found_by_claims_and_listings<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::SplitResidual, &lease).unwrap();
    let residual = w.claim(2).unwrap();
    assert_eq!((residual.state.parent, residual.spawned.len()), (Some(id(0)), 0));
    let listed = w.list(ShardFilter::all()).unwrap();
    let roots = w.list(ShardFilter::all().roots()).unwrap();
    assert_eq!((listed.len(), roots.len(), roots[0].spawned_count), (2, 1, 1));
    // A worker that takes the parent over is told what was split off.
    w.release(&lease).unwrap();
    assert_eq!(w.acquire(3, id(0)).unwrap().spawned, [residual.lease.shard()]);
}

pub(crate) fn a_retry_names_the_same_children<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    let (from, until, about) = (start(0), start(1), about(0));
    let range = ShardSpecRef::new(&from, &until, &about);
    let points: Vec<Vec<u8>> = (0..5).map(|point| within(0, &format!("{point}"))).collect();
    let points: Vec<&[u8]> = points.iter().map(Vec::as_slice).collect();
    // Residuals first, so that the children are not all that the shard has spawned.
    let residual_at = within(0, "x");
    let plan = plan_split_residual_at_point(range, &residual_at).unwrap();
    let residual_op = w.op();
    let residual = w.split_residual(&lease, &plan, residual_op).unwrap().into_inner().residual;
    let narrowed = ShardSpecRef::new(&from, &residual_at, &about);
    let plan = plan_split_replace_at_points(narrowed, &points).unwrap();
    let first = w.split_replace(&lease, &plan, op).unwrap().into_inner();
    assert_eq!(first.children.len(), 6);
    let kind = DerivedShardKind::Child;
    assert_eq!(first.children[0], derived(w, id(0), op, kind, 1));
    assert_eq!(w.shard(id(0)).spawned[0], residual);
    for &child in &first.children[..3] {
        let lease = w.acquire(2, child).unwrap().lease;
        let (op, key) = (w.op(), w.shard(child).spec.as_ref().start().to_vec());
        w.complete(&lease, CursorUpdate::at(&key), op).unwrap();
    }
    w.reopen();
    assert_eq!(w.split_replace(&lease, &plan, op), Ok(Replayed(first)));
}

pub(crate) fn children_can_be_split_again<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let mut shard = id(0);
    let mut bounds = (start(0), start(1));
    for depth in 0..4 {
        let lease = w.acquire(1, shard).unwrap().lease;
        let point = within(0, &"m".repeat(depth + 1));
        let range = ShardSpecRef::new(&bounds.0, &bounds.1, b"deep");
        let plan = plan_split_replace_at_points(range, &[&point]).unwrap();
        let op = w.op();
        let children = w.split_replace(&lease, &plan, op).unwrap().into_inner().children;
        assert_eq!(w.shard(children[1]).parent, Some(shard));
        drop(plan);
        (shard, bounds.0) = (children[1], point);
    }
    assert_leaves_cover(w, &start(0), &start(1));
}

/// However it is cut, every key belongs to exactly one shard that is not split.
pub(crate) fn the_leaves_cover_the_range_after_many_splits<H: Harness>() {
    let w = &mut World::<H>::new(1);
    for round in 0..12u8 {
        let free = w.list(ShardFilter::available()).unwrap();
        let shard = &free[usize::from(round) * 7 % free.len()];
        let lease = w.acquire(1, shard.shard).unwrap().lease;
        let range = ShardSpecRef::new(&shard.start, &shard.end, b"");
        let middle = (number(&shard.start, 0) + number(&shard.end, 9_999)) / 2;
        let point = within(0, &format!("{middle:04}"));
        let op = w.op();
        if round % 2 == 0 {
            let plan = plan_split_replace_at_points(range, &[&point]).unwrap();
            w.split_replace(&lease, &plan, op).unwrap();
        } else {
            let plan = plan_split_residual_at_point(range, &point).unwrap();
            w.split_residual(&lease, &plan, op).unwrap();
            w.release(&lease).unwrap();
        }
        assert_leaves_cover(w, &start(0), &start(1));
    }
}

/// The number in a key that was cut at; the given one for the ends of the root shard.
fn number(key: &[u8], otherwise: u32) -> u32 {
    let digits = key.get(7..).and_then(|tail| std::str::from_utf8(tail).ok());
    digits.map_or(otherwise, |digits| digits.parse().expect("points are numbered"))
}

#[track_caller]
fn assert_leaves_cover<H: Harness>(w: &mut World<H>, from: &[u8], until: &[u8]) {
    let mut leaves = w.list(ShardFilter::all()).unwrap();
    leaves.retain(|shard| shard.status != ShardStatus::Split);
    leaves.sort_by(|a, b| a.start.cmp(&b.start));
    let mut at = from;
    for leaf in &leaves {
        assert_eq!(&*leaf.start, at, "a gap or an overlap");
        at = &leaf.end;
    }
    assert_eq!(at, until);
}
