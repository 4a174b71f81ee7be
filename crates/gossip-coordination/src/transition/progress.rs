//! Moving the cursor, and ending work on a shard.
//!
//! - G1: only the holder of the current fence, inside its lease, moves a cursor.
//! - G2: a cursor never moves back and never leaves the shard's range. That holds of its token while
//!   its key stays (C1), so every change of a cursor is progress, and there is an end to it.
//! - G3: done and parked shards hold no lease.
//! - G4: a checkpoint that renews extends the lease once, however often it is asked for.

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId, TenantId};

use super::Decision;
use crate::error::CoordError;
use crate::lease::{Lease, LeaseHolder};
use crate::op_log::{OpKind, OpLogEntry, OpResult};
use crate::payload;
use crate::record::{FoundShard, ShardRecordView, ShardState, ShardUpdate};
use crate::run::RunGate;
use crate::status::{ParkReason, ShardStatus};
use crate::validation::{
    check_op_idempotency, check_run_active, find_leased, validate_cursor_update, validate_lease,
};

/// A checkpoint or a completion.
#[derive(Clone, Copy, Debug)]
pub struct CursorRequest<'r> {
    /// Who asks.
    pub tenant: TenantId,
    /// With which lease.
    pub lease: &'r Lease,
    /// Where the cursor shall go.
    pub cursor: CursorUpdate<'r>,
    /// Under which id.
    pub op_id: OpId,
}

/// What parks a shard: the holder's proof, and why.
#[derive(Clone, Copy, Debug)]
pub struct ParkRequest<'r> {
    /// Who asks.
    pub tenant: TenantId,
    /// With which lease.
    pub lease: &'r Lease,
    /// Why.
    pub reason: ParkReason,
    /// Under which id.
    pub op_id: OpId,
}

/// Decides whether the cursor moves.
pub fn checkpoint<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    request: &CursorRequest<'r>,
) -> Result<Decision<ShardUpdate<'r>, ()>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let hash = payload::checkpoint(request.cursor);
    if check_op_idempotency(shard.op_log, request.op_id, hash)?.is_some() {
        return Ok(Decision::Replay(()));
    }
    check_held_and_cursor(shard, run, now, request)?;
    let update = ShardUpdate {
        cursor: Some(request.cursor),
        log: Some(entry(request.op_id, OpKind::Checkpoint, hash, now)),
        ..ShardUpdate::of_state(state_at(shard, request.cursor))
    };
    Ok(Decision::Execute(update.checked_against(shard)))
}

/// A checkpoint that renews, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RenewingCheckpoint<'r> {
    /// The record's change.
    pub update: ShardUpdate<'r>,
    /// When the lease ends now.
    pub new_deadline: LogicalTime,
}

/// Decides whether the cursor moves and the lease is extended with it, as [`renew`](super::renew)
/// extends one. A replay says when the lease ended after the first execution (G4), or, where the
/// presented lease was renewed since, when it ends now: no later than the shard is held, whatever the
/// presented lease says.
pub fn checkpoint_and_renew<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    request: &CursorRequest<'r>,
) -> Result<Decision<RenewingCheckpoint<'r>, LogicalTime>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let hash = payload::checkpoint_and_renew(request.cursor);
    if let Some(first) = check_op_idempotency(shard.op_log, request.op_id, hash)? {
        let renewed = run.config.lease_deadline(first.executed_at());
        return Ok(Decision::Replay(replayed_deadline(shard, request.lease, renewed)));
    }
    check_held_and_cursor(shard, run, now, request)?;
    let holder = shard.state.lease.expect("a validated lease has a holder");
    let new_deadline = holder.deadline().max(run.config.lease_deadline(now));
    let state = ShardState {
        lease: Some(LeaseHolder::new(holder.owner(), new_deadline)),
        ..state_at(shard, request.cursor)
    };
    let update = ShardUpdate {
        cursor: Some(request.cursor),
        log: Some(entry(request.op_id, OpKind::Checkpoint, hash, now)),
        ..ShardUpdate::of_state(state)
    };
    let update = update.checked_against(shard);
    Ok(Decision::Execute(RenewingCheckpoint { update, new_deadline }))
}

/// When a lease ended that was extended until `renewed` at least. Where it ended later by then, because
/// the clock had stepped back, only its holder knows: the presented lease says, if it is the shard's,
/// and is believed as far as the shard is held.
fn replayed_deadline(
    shard: &ShardRecordView<'_>,
    lease: &Lease,
    renewed: LogicalTime,
) -> LogicalTime {
    match shard.state.lease {
        Some(holder) if (holder.owner(), shard.state.fence) == (lease.owner(), lease.fence()) => {
            lease.deadline().min(holder.deadline()).max(renewed)
        }
        _ => renewed,
    }
}

/// Decides whether the shard is done.
pub fn complete<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    request: &CursorRequest<'r>,
) -> Result<Decision<ShardUpdate<'r>, ()>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let hash = payload::complete(request.cursor);
    if check_op_idempotency(shard.op_log, request.op_id, hash)?.is_some() {
        return Ok(Decision::Replay(()));
    }
    check_held_and_cursor(shard, run, now, request)?;
    let state =
        ShardState { status: ShardStatus::Done, lease: None, ..state_at(shard, request.cursor) };
    let update = ShardUpdate {
        cursor: Some(request.cursor),
        log: Some(entry(request.op_id, OpKind::Complete, hash, now)),
        ..ShardUpdate::of_state(state)
    };
    Ok(Decision::Execute(update.checked_against(shard)))
}

/// Decides whether the shard is halted.
pub fn park(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    request: &ParkRequest<'_>,
) -> Result<Decision<ShardUpdate<'static>, ()>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let hash = payload::park(request.reason);
    if check_op_idempotency(shard.op_log, request.op_id, hash)?.is_some() {
        return Ok(Decision::Replay(()));
    }
    check_run_active(run, shard.key)?;
    validate_lease(now, request.tenant, request.lease, shard)?;
    let state = ShardState {
        status: ShardStatus::Parked,
        park_reason: Some(request.reason),
        lease: None,
        ..shard.state
    };
    let update = ShardUpdate {
        log: Some(entry(request.op_id, OpKind::Park, hash, now)),
        ..ShardUpdate::of_state(state)
    };
    Ok(Decision::Execute(update.checked_against(shard)))
}

/// The shard's state once its cursor stands at `cursor`: tries are counted from when it last moved.
/// A new token at the same key is a move, too: that is how a worker gets through a large item.
fn state_at(shard: &ShardRecordView<'_>, cursor: CursorUpdate<'_>) -> ShardState {
    let moved = shard.cursor != cursor;
    ShardState {
        acquires_since_progress: if moved { 0 } else { shard.state.acquires_since_progress },
        ..shard.state
    }
}

fn check_held_and_cursor(
    shard: &ShardRecordView<'_>,
    run: &RunGate,
    now: LogicalTime,
    request: &CursorRequest<'_>,
) -> Result<(), CoordError> {
    check_run_active(run, shard.key)?;
    validate_lease(now, request.tenant, request.lease, shard)?;
    validate_cursor_update(request.cursor, shard.cursor, shard.spec)
}

pub(super) fn entry(op_id: OpId, kind: OpKind, hash: u64, now: LogicalTime) -> OpLogEntry<OpKind> {
    OpLogEntry::new(op_id, kind, OpResult::Completed, hash, now)
}
