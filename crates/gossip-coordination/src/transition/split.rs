//! Cutting a shard into several.
//!
//! - X1: what a split makes covers exactly what it took (P1 of the contracts).
//! - X2: the ids of the new shards follow from the operation, so a retry names the same ones.
//! - X3: a residual split leaves the parent with its lease and with its cursor inside its range.
//! - X4: nothing is split beyond what a shard may spawn, a tenant may have, or the backend commits in
//!   one step.

use gossip_contracts::coordination::{
    MAX_SPAWNED_PER_SHARD, ShardSpecRef, SplitReplacePlan, SplitResidualPlan, SplitValidationError,
    validate_residual_split, validate_split_coverage,
};
use gossip_contracts::identity::{LogicalTime, OpId, ShardId, TenantId};
use gossip_stdx::InlineVec;

use super::Decision;
use super::progress::entry;
use crate::error::CoordError;
use crate::lease::Lease;
use crate::op_log::OpKind;
use crate::payload::{self, DerivedShardKind, derive_split_shard_id};
use crate::record::{FoundShard, ShardRecordView, ShardState, ShardUpdate};
use crate::shard_limits::ShardRoom;
use crate::status::ShardStatus;
use crate::validation::{check_op_idempotency, check_run_active, find_leased, validate_lease};

/// Replace a shard by children.
#[derive(Clone, Copy, Debug)]
pub struct SplitReplaceRequest<'r> {
    /// Who asks.
    pub tenant: TenantId,
    /// With which lease.
    pub lease: &'r Lease,
    /// Into what.
    pub plan: &'r SplitReplacePlan<'r>,
    /// Under which id.
    pub op_id: OpId,
}

/// Give away the rest of a shard.
#[derive(Clone, Copy, Debug)]
pub struct SplitResidualRequest<'r> {
    /// Who asks.
    pub tenant: TenantId,
    /// With which lease.
    pub lease: &'r Lease,
    /// What stays and what goes.
    pub plan: &'r SplitResidualPlan<'r>,
    /// Under which id.
    pub op_id: OpId,
}

/// The ids of the children, in key order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitReplaceResult {
    /// The new shards, in key order.
    pub children: InlineVec<ShardId, 4>,
}

/// The id of the shard that took the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitResidualResult {
    /// The shard that has the rest of the range.
    pub residual: ShardId,
}

/// A shard that a split makes. [`ShardRecordView::child`] has its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewShard<'r> {
    /// Its number in the run.
    pub id: ShardId,
    /// The keys that it covers.
    pub spec: ShardSpecRef<'r>,
}

/// What a split changes: all of it is stored, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitUpdate<'r> {
    /// The parent's change.
    pub parent: ShardUpdate<'r>,
    /// The shards to create.
    pub shards: InlineVec<NewShard<'r>, 4>,
}

impl SplitUpdate<'_> {
    /// Refuses the split if one of its ids is in use in the run. The store says which are.
    pub fn check_ids_free<E>(
        &self,
        mut is_taken: impl FnMut(ShardId) -> Result<bool, E>,
    ) -> Result<(), E>
    where
        E: From<CoordError>,
    {
        for new in &self.shards {
            if is_taken(new.id)? {
                return Err(collision(new.id).into());
            }
        }
        Ok(())
    }
}

/// Decides whether the shard is replaced by children.
pub fn split_replace<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    room: &ShardRoom,
    request: &SplitReplaceRequest<'r>,
) -> Result<Decision<SplitUpdate<'r>, SplitReplaceResult>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let children = request.plan.children();
    let hash = payload::split_replace(request.plan);
    if check_op_idempotency(shard.op_log, request.op_id, hash)?.is_some() {
        // The split was the shard's last operation, so its children are the last it spawned.
        let first = shard.spawned.len().saturating_sub(children.len());
        return Ok(Decision::Replay(SplitReplaceResult {
            children: InlineVec::from(&shard.spawned[first..]),
        }));
    }
    check_run_active(run, shard.key)?;
    validate_lease(now, request.tenant, request.lease, shard)?;
    room.split.check_count(children.len()).map_err(CoordError::SplitInvalid)?;
    validate_split_coverage(shard.spec, children).map_err(CoordError::SplitInvalid)?;
    room.split.check_bytes(children).map_err(CoordError::SplitInvalid)?;
    check_room(shard, room, children.len())?;

    let first_index = shard.spawned.len() as u32;
    let shards: InlineVec<NewShard<'r>, 4> = (first_index..)
        .zip(children)
        .map(|(index, &spec)| {
            let kind = DerivedShardKind::Child;
            let id =
                derive_split_shard_id(shard.key.run, shard.key.shard, request.op_id, kind, index);
            NewShard { id, spec }
        })
        .collect();
    check_ids_distinct(&shards)?;
    let state = ShardState { status: ShardStatus::Split, lease: None, ..shard.state };
    let parent = ShardUpdate {
        spawned: shards.iter().map(|new| new.id).collect(),
        log: Some(entry(request.op_id, OpKind::SplitReplace, hash, now)),
        ..ShardUpdate::of_state(state)
    };
    Ok(Decision::Execute(SplitUpdate { parent: parent.checked_against(shard), shards }))
}

/// Decides whether the shard gives away the rest of its range.
pub fn split_residual<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    room: &ShardRoom,
    request: &SplitResidualRequest<'r>,
) -> Result<Decision<SplitUpdate<'r>, SplitResidualResult>, CoordError> {
    let FoundShard { shard, run } = find_leased(found, request.tenant, request.lease)?;
    let residual = derive_split_shard_id(
        shard.key.run,
        shard.key.shard,
        request.op_id,
        DerivedShardKind::Residual,
        0,
    );
    let hash = payload::split_residual(request.plan);
    if check_op_idempotency(shard.op_log, request.op_id, hash)?.is_some() {
        return Ok(Decision::Replay(SplitResidualResult { residual }));
    }
    // The parent works on, so the log may have forgotten; what it spawned is never forgotten.
    if shard.spawned.contains(&residual) {
        return replay_forgotten(shard, request.plan, residual);
    }
    check_run_active(run, shard.key)?;
    validate_lease(now, request.tenant, request.lease, shard)?;
    validate_residual_split(shard.spec, shard.cursor, request.plan)
        .map_err(CoordError::SplitInvalid)?;
    let parts = [request.plan.parent, request.plan.residual];
    room.split.check_bytes(&parts).map_err(CoordError::SplitInvalid)?;
    check_room(shard, room, 1)?;

    let parent = ShardUpdate {
        spec: Some(request.plan.parent),
        spawned: std::iter::once(residual).collect(),
        log: Some(entry(request.op_id, OpKind::SplitResidual, hash, now)),
        ..ShardUpdate::of_state(shard.state)
    };
    Ok(Decision::Execute(SplitUpdate {
        parent: parent.checked_against(shard),
        shards: std::iter::once(NewShard { id: residual, spec: request.plan.residual }).collect(),
    }))
}

/// The answer to a split whose id the parent has spawned, but whose parameters it has forgotten. A
/// parent only ever gives up the end of its range, so the plan that was carried out kept at least
/// what the parent has now. One that keeps less is another plan under a used id: to call it done
/// would leave the keys between to nobody.
fn replay_forgotten<'r>(
    shard: &ShardRecordView<'_>,
    plan: &SplitResidualPlan<'_>,
    residual: ShardId,
) -> Result<Decision<SplitUpdate<'r>, SplitResidualResult>, CoordError> {
    let (kept, has) = (plan.parent, shard.spec);
    let keeps_as_much = kept.end().is_empty() || (!has.end().is_empty() && kept.end() >= has.end());
    if kept.start() == has.start() && keeps_as_much {
        Ok(Decision::Replay(SplitResidualResult { residual }))
    } else {
        Err(collision(residual))
    }
}

/// X4.
fn check_room(
    shard: &ShardRecordView<'_>,
    room: &ShardRoom,
    additional: usize,
) -> Result<(), CoordError> {
    let current = shard.spawned.len();
    if additional > MAX_SPAWNED_PER_SHARD.saturating_sub(current) {
        return Err(CoordError::SplitInvalid(SplitValidationError::SpawnLimitExceeded {
            current,
            additional,
            max: MAX_SPAWNED_PER_SHARD,
        }));
    }
    room.check(additional).map_err(|violation| CoordError::SplitInvalid(violation.into()))
}

/// Two children under one id would lose a range. One chance in 2^48 even for the largest split.
fn check_ids_distinct(shards: &[NewShard<'_>]) -> Result<(), CoordError> {
    let mut ids: InlineVec<ShardId, 16> = shards.iter().map(|new| new.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(collision(pair[0])),
        None => Ok(()),
    }
}

fn collision(shard: ShardId) -> CoordError {
    CoordError::SplitInvalid(SplitValidationError::DerivedIdCollision { shard })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_children_under_one_id_are_refused() {
        let spec = ShardSpecRef::new(b"a", b"b", b"");
        let new = |raw| NewShard { id: ShardId::derived_from_raw(raw), spec };
        assert_eq!(check_ids_distinct(&[new(3), new(1), new(2)]), Ok(()));
        let taken = collision(ShardId::derived_from_raw(3));
        assert_eq!(check_ids_distinct(&[new(3), new(1), new(3), new(2)]), Err(taken));
    }
}
