//! Setting a parked shard going again: an administrator's operation, without a lease.
//!
//! - N1: unparking raises the fence, so that whoever parked the shard cannot come back.
//! - N2: tries start from zero; otherwise a poisoned shard would be parked at once again.

use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId};

use super::Decision;
use super::progress::entry;
use crate::error::{RunOpIdConflict, UnparkError};
use crate::op_log::{OpKind, Remembered};
use crate::payload;
use crate::record::{FoundShard, ShardState, ShardUpdate};
use crate::status::ShardStatus;

/// Decides whether the shard is set going again. The op-log is asked before anything else.
///
/// # Panics
/// If `now` is [`LogicalTime::ZERO`].
pub fn unpark(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    tenant: TenantId,
    key: ShardKey,
    op_id: OpId,
) -> Result<Decision<ShardUpdate<'static>, ()>, UnparkError> {
    assert!(now > LogicalTime::ZERO, "an operation happens at some time");
    let found = found.filter(FoundShard::is_visible);
    let FoundShard { shard, run } = found.ok_or(UnparkError::ShardNotFound)?;
    if shard.tenant != tenant {
        return Err(UnparkError::TenantMismatch { expected: tenant });
    }
    let hash = payload::unpark(key);
    match shard.op_log.look_up(op_id, hash) {
        Remembered::New => {}
        Remembered::Before(_) => return Ok(Decision::Replay(())),
        Remembered::Otherwise(expected) => {
            return Err(RunOpIdConflict::new(op_id, expected, hash).into());
        }
    }
    if run.status.is_terminal() {
        return Err(UnparkError::RunTerminal { status: run.status });
    }
    if shard.state.status != ShardStatus::Parked {
        return Err(UnparkError::NotParked { status: shard.state.status });
    }
    let state = ShardState {
        status: ShardStatus::Active,
        park_reason: None,
        fence: shard.state.fence.next(),
        lease: None,
        acquires_since_progress: 0,
    };
    let update = ShardUpdate {
        log: Some(entry(op_id, OpKind::Unpark, hash, now)),
        ..ShardUpdate::of_state(state)
    };
    Ok(Decision::Execute(update.checked_against(shard)))
}
