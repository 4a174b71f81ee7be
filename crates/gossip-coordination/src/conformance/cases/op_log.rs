//! The short memory that makes retries harmless, and what happens when it forgets.

use gossip_contracts::coordination::plan_split_residual_at_point;
use gossip_contracts::identity::OpId;

use super::prelude::*;
use crate::conformance::attempt::Payload;
use crate::error::CheckpointError;
use crate::lease::Lease;
use crate::op_log::OP_LOG_CAP;

/// So many checkpoints, each a step further.
fn advance<H: Harness>(w: &mut World<H>, lease: &Lease, from: usize, steps: usize) -> Vec<OpId> {
    let step = |index: usize| {
        let (op, key) = (w.op(), within(0, &format!("{index:04}")));
        w.checkpoint(lease, CursorUpdate::at(&key), op).unwrap();
        op
    };
    (from..from + steps).map(step).collect()
}

pub(crate) fn the_last_sixteen_operations_replay<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let ops = advance(w, &lease, 0, OP_LOG_CAP);
    w.reopen();
    for (index, &op) in ops.iter().enumerate() {
        let key = within(0, &format!("{index:04}"));
        assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&key), op), Ok(Replayed(())));
    }
}

pub(crate) fn what_was_forgotten_is_judged_anew<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let ops = advance(w, &lease, 0, OP_LOG_CAP + 1);
    let key = |index: usize| within(0, &format!("{index:04}"));
    // The first is forgotten, and so would move the cursor back.
    let refused = CheckpointError::CursorRegression { old_key: Some(11), new_key: Some(11) };
    assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&key(0)), ops[0]), Err(refused));
    // The second is not.
    assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&key(1)), ops[1]), Ok(Replayed(())));
    // A replay is not remembered again: one more operation still forgets the second.
    advance(w, &lease, OP_LOG_CAP + 1, 1);
    assert!(w.checkpoint(&lease, CursorUpdate::at(&key(1)), ops[1]).is_err());
}

pub(crate) fn a_refused_operation_may_be_retried_under_its_id<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    assert!(w.checkpoint(&lease, CursorUpdate::at(&within(1, "a")), op).is_err());
    assert!(w.checkpoint(&lease, CursorUpdate::initial(), op).is_err());
    let key = within(0, "a");
    assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&key), op), Ok(Executed(())));
    assert_eq!(w.checkpoint(&lease, CursorUpdate::at(&key), op), Ok(Replayed(())));
}

pub(crate) fn op_ids_are_a_shards_own<H: Harness>() {
    let w = &mut World::<H>::new(2);
    let op = w.op();
    for shard in [0, 1] {
        let lease = w.lease(1, shard);
        let outcome = w.attempt(Operation::Checkpoint, &lease, op, Payload::Usual);
        assert_eq!(outcome, Ok(Executed(())));
    }
}

pub(crate) fn a_checkpoint_and_a_completion_at_one_cursor_are_not_the_same<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    w.attempt(Operation::Checkpoint, &lease, op, Payload::Usual).unwrap();
    assert!(w.attempt(Operation::Complete, &lease, op, Payload::Usual).is_err());
    assert_eq!(w.shard(id(0)).state.status, ShardStatus::Active);
}

/// The parent of a residual split works on, so its log forgets; what it spawned it remembers.
pub(crate) fn a_residual_split_replays_after_the_log_forgot_it<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    let (from, until, about, point) = (start(0), start(1), about(0), within(0, "x"));
    let range = ShardSpecRef::new(&from, &until, &about);
    let plan = plan_split_residual_at_point(range, &point).unwrap();
    let first = w.split_residual(&lease, &plan, op).unwrap().into_inner();
    advance(w, &lease, 0, OP_LOG_CAP);
    let again = w.split_residual(&lease, &plan, op).unwrap();
    assert_eq!(again, Replayed(first));
    w.reopen();
    w.expire(&lease);
    w.lease(2, 0);
    assert_eq!(w.split_residual(&lease, &plan, op).unwrap(), Replayed(first));
}

/// A replaced parent does nothing more, so its log never forgets.
pub(crate) fn a_replace_split_replays_for_ever<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    advance(w, &lease, 0, OP_LOG_CAP);
    let op = w.op();
    w.attempt(Operation::SplitReplace, &lease, op, Payload::Usual).unwrap();
    for _ in 0..3 {
        w.tick(LEASE * 1_000);
        w.reopen();
        let again = w.attempt(Operation::SplitReplace, &lease, op, Payload::Usual);
        assert_eq!(again, Ok(Replayed(())));
    }
}
