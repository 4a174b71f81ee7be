//! Acquire, renew, release and revoke.
//!
//! - T1: a shard has at most one live lease, and every grant raises its fence.
//! - T2: the current owner may acquire again, so that a lost answer does not lock it out; the lease
//!   that it had is dead.
//! - T3: a renewal never shortens a lease, whatever the clock does.
//! - T4: a shard acquired as often as its run allows without its cursor moving is parked as
//!   poisoned instead of being granted again.
//! - T5: revoking a lease raises the fence, so that its holder, if it lives after all, does nothing
//!   more; and the holder's acquire counts, as it may have died of the shard.

use gossip_contracts::identity::{FenceEpoch, LogicalTime, ShardKey, TenantId, WorkerId};

use super::Decision;
use crate::error::{AcquireError, CoordError, RevokeLeaseError};
use crate::lease::{Lease, LeaseHolder, Takeover};
use crate::record::{FoundShard, ShardState, ShardUpdate};
use crate::run::RunStatus;
use crate::status::{ParkReason, ShardStatus};
use crate::validation::{check_run_active, find_leased, validate_lease};

/// What to do about an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AcquireDecision {
    /// Store the update and hand out the lease.
    Grant {
        /// What the worker proves its ownership with.
        lease: Lease,
        /// The record's change.
        update: ShardUpdate<'static>,
    },
    /// Store the update, which parks the shard, and return the refusal (T4).
    Poison {
        /// The record's change.
        update: ShardUpdate<'static>,
        /// What the worker is told.
        refusal: AcquireError,
    },
}

/// Decides whether `worker` gets the shard. Asks in this order: is there such a shard, is its run
/// active, does it have work, is it free or the worker's own, has it been tried too often.
///
/// # Panics
/// If `now` is [`LogicalTime::ZERO`].
pub fn acquire(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    takeover: Takeover,
    tenant: TenantId,
    key: ShardKey,
    worker: WorkerId,
) -> Result<AcquireDecision, AcquireError> {
    assert!(now > LogicalTime::ZERO, "an acquire happens at some time");
    let found = found.filter(FoundShard::is_visible);
    let FoundShard { shard, run } = found.ok_or(AcquireError::ShardNotFound { shard: key })?;
    if shard.tenant != tenant {
        return Err(AcquireError::TenantMismatch { expected: tenant });
    }
    if run.status != RunStatus::Active {
        return Err(AcquireError::RunNotActive { run: key.run, status: run.status });
    }
    let state = &shard.state;
    if state.status.is_terminal() {
        return Err(AcquireError::ShardTerminal { shard: key, status: state.status });
    }
    if let Some(holder) = state.holder_at(now, takeover)
        && holder.owner() != worker
    {
        return Err(AcquireError::AlreadyLeased {
            current_owner: holder.owner(),
            lease_deadline: takeover.free_from(holder.deadline()),
        });
    }
    if state.acquires_since_progress >= run.config.max_shard_retries {
        let update = ShardUpdate::of_state(ShardState {
            status: ShardStatus::Parked,
            park_reason: Some(ParkReason::Poisoned),
            lease: None,
            ..*state
        });
        let refusal = AcquireError::ShardTerminal { shard: key, status: ShardStatus::Parked };
        return Ok(AcquireDecision::Poison { update: update.checked_against(shard), refusal });
    }
    let fence = state.fence.next();
    let deadline = run.config.lease_deadline(now);
    let update = ShardUpdate::of_state(ShardState {
        fence,
        lease: Some(LeaseHolder::new(worker, deadline)),
        acquires_since_progress: state.acquires_since_progress + 1,
        ..*state
    });
    Ok(AcquireDecision::Grant {
        lease: Lease::new(tenant, key, worker, fence, deadline),
        update: update.checked_against(shard),
    })
}

/// Decides whether a lease is extended. The update's lease carries the new deadline.
pub fn renew(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    tenant: TenantId,
    lease: &Lease,
) -> Result<(LogicalTime, ShardUpdate<'static>), CoordError> {
    let (FoundShard { shard, run }, holder) = find_held(found, now, tenant, lease)?;
    let deadline = holder.deadline().max(run.config.lease_deadline(now));
    let update = ShardUpdate::of_state(ShardState {
        lease: Some(LeaseHolder::new(holder.owner(), deadline)),
        ..shard.state
    });
    Ok((deadline, update.checked_against(shard)))
}

/// Decides whether a shard is released. Its cursor stays, and the acquire that led here does not
/// count towards T4: the worker is alive.
pub fn release(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    tenant: TenantId,
    lease: &Lease,
) -> Result<ShardUpdate<'static>, CoordError> {
    let (FoundShard { shard, .. }, _) = find_held(found, now, tenant, lease)?;
    let update = ShardUpdate::of_state(ShardState {
        lease: None,
        acquires_since_progress: shard.state.acquires_since_progress.saturating_sub(1),
        ..shard.state
    });
    Ok(update.checked_against(shard))
}

/// Decides whether the lease that was granted under `fence` ends now, whoever holds it and however
/// long it would last: an administrator's operation, without a lease. A lease that is over, or that
/// another has followed, is not there to be revoked any more; that is a replay, so that asking twice
/// never takes the shard from whoever got it in between.
pub fn revoke_lease(
    found: Option<FoundShard<'_, '_>>,
    tenant: TenantId,
    fence: FenceEpoch,
) -> Result<Decision<ShardUpdate<'static>, ()>, RevokeLeaseError> {
    let found = found.filter(FoundShard::is_visible);
    let FoundShard { shard, run } = found.ok_or(RevokeLeaseError::ShardNotFound)?;
    if shard.tenant != tenant {
        return Err(RevokeLeaseError::TenantMismatch { expected: tenant });
    }
    let (current, lease) = (shard.state.fence, shard.state.lease);
    if fence > current {
        return Err(RevokeLeaseError::FenceNotGranted { presented: fence, current });
    }
    if fence < current || lease.is_none() {
        return Ok(Decision::Replay(()));
    }
    if run.status.is_terminal() {
        return Err(RevokeLeaseError::RunTerminal { status: run.status });
    }
    let update =
        ShardUpdate::of_state(ShardState { fence: current.next(), lease: None, ..shard.state });
    Ok(Decision::Execute(update.checked_against(shard)))
}

/// The checks of an operation that only touches the lease: all but the op-log.
fn find_held<'v, 'a>(
    found: Option<FoundShard<'v, 'a>>,
    now: LogicalTime,
    tenant: TenantId,
    lease: &Lease,
) -> Result<(FoundShard<'v, 'a>, LeaseHolder), CoordError> {
    let found = find_leased(found, tenant, lease)?;
    let FoundShard { shard, run } = found;
    check_run_active(run, shard.key)?;
    validate_lease(now, tenant, lease, shard)?;
    Ok((found, shard.state.lease.expect("a validated lease has a holder")))
}
