//! The checks that workers' operations share, in the order in which they are asked.
//!
//! 1. The lease's tenant is the request's, and the record's, so that nothing of another tenant is
//!    ever answered.
//! 2. The op-log: a retry of what was done gets its first answer, whatever has happened since.
//! 3. The run is active.
//! 4. The lease: tenant, terminal status, fence, expiry, owner.
//! 5. What the operation itself demands.

use gossip_contracts::coordination::{CursorInputError, CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId};

use crate::error::{CoordError, CursorOutOfBoundsDetail};
use crate::lease::Lease;
use crate::op_log::{OpKind, OpLog, OpLogEntry, Remembered};
use crate::record::{FoundShard, ShardRecordView};
use crate::run::{RunGate, RunStatus};

/// Step 1, and that there is a record at all. Look-up is by tenant, so the shard of another tenant
/// is not found; a store that offers one all the same is caught before its op-log is read.
pub fn find_leased<'v, 'a>(
    found: Option<FoundShard<'v, 'a>>,
    tenant: TenantId,
    lease: &Lease,
) -> Result<FoundShard<'v, 'a>, CoordError> {
    if lease.tenant() != tenant {
        return Err(CoordError::TenantMismatch { expected: tenant });
    }
    let found = found.filter(FoundShard::is_visible);
    let found = found.ok_or(CoordError::ShardNotFound { shard: lease.key() })?;
    if found.shard.tenant != tenant {
        return Err(CoordError::TenantMismatch { expected: tenant });
    }
    Ok(found)
}

/// Step 2: `None` means that the operation is new; an entry, that it was executed before.
///
/// # Panics
/// If `payload_hash` is 0.
pub fn check_op_idempotency(
    op_log: &OpLog,
    op_id: OpId,
    payload_hash: u64,
) -> Result<Option<OpLogEntry<OpKind>>, CoordError> {
    match op_log.look_up(op_id, payload_hash) {
        Remembered::New => Ok(None),
        Remembered::Before(entry) => Ok(Some(entry)),
        Remembered::Otherwise(expected_hash) => {
            Err(CoordError::OpIdConflict { op_id, expected_hash, actual_hash: payload_hash })
        }
    }
}

/// Step 3.
pub fn check_run_active(run: &RunGate, key: ShardKey) -> Result<(), CoordError> {
    match run.status {
        RunStatus::Active => Ok(()),
        status => Err(CoordError::RunNotActive { run: key.run, status }),
    }
}

/// Step 4. The order gives nothing away: whoever fails a check learns only that one.
///
/// # Panics
/// If `now` is [`LogicalTime::ZERO`].
pub fn validate_lease(
    now: LogicalTime,
    tenant: TenantId,
    lease: &Lease,
    shard: &ShardRecordView<'_>,
) -> Result<(), CoordError> {
    assert!(now > LogicalTime::ZERO, "an operation happens at some time");
    if shard.tenant != tenant {
        return Err(CoordError::TenantMismatch { expected: tenant });
    }
    if shard.state.status.is_terminal() {
        return Err(CoordError::ShardTerminal { shard: shard.key, status: shard.state.status });
    }
    let stale = CoordError::StaleFence { presented: lease.fence(), current: shard.state.fence };
    if lease.fence() != shard.state.fence {
        return Err(stale);
    }
    // The fence is current but nobody holds the shard: it was released, or never leased. Either
    // way the presenter must acquire it again.
    let Some(holder) = shard.state.lease else {
        return Err(stale);
    };
    if !holder.is_live_at(now) {
        return Err(CoordError::LeaseExpired { deadline: holder.deadline(), now });
    }
    if holder.owner() != lease.owner() {
        return Err(stale);
    }
    Ok(())
}

/// Step 5 of a checkpoint or completion: key presence, key size, token size, monotonicity, bounds.
pub fn validate_cursor_update(
    new: CursorUpdate<'_>,
    old: CursorUpdate<'_>,
    spec: ShardSpecRef<'_>,
) -> Result<(), CoordError> {
    let Some(last_key) = new.last_key() else {
        return Err(CoordError::CheckpointMissingKey);
    };
    new.validate_sizes().map_err(|error| match error {
        CursorInputError::KeyTooLarge { size, max } => CoordError::CursorKeyTooLarge { size, max },
        CursorInputError::TokenTooLarge { size, max } => {
            CoordError::CursorTokenTooLarge { size, max }
        }
        _ => unreachable!("cursors have no other size"),
    })?;
    if !old.may_advance_to(&new) {
        return Err(CoordError::CursorRegression {
            old_key: old.last_key().map(<[u8]>::len),
            new_key: Some(last_key.len()),
        });
    }
    if !spec.contains(last_key) {
        return Err(CoordError::CursorOutOfBounds(CursorOutOfBoundsDetail {
            last_key: last_key.len(),
            spec_start: spec.start().len(),
            spec_end: spec.end().len(),
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
