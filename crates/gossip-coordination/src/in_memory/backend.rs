//! Workers' operations: look up, decide, store.

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId, WorkerId};
use gossip_stdx::{ByteSlab, InlineVec, SlabFull};

use super::shard::Shard;
use super::{Found, InMemoryCoordinator, decide, emit, find};
use crate::error::{
    AcquireError, CheckpointError, CompleteError, IdempotentOutcome, ParkError, ReleaseError,
    RenewError, SplitError, SplitReplaceError, SplitResidualError,
};
use crate::events::EventCollector;
use crate::lease::Lease;
use crate::record::ShardUpdate;
use crate::scratch::{AcquireResultView, AcquireScratch, CheckpointRenewal, RenewResult};
use crate::status::ParkReason;
use crate::traits::CoordinationBackend;
use crate::transition::{
    self, AcquireDecision, CursorRequest, Decision, ParkRequest, RenewingCheckpoint,
    SplitReplaceRequest, SplitReplaceResult, SplitResidualRequest, SplitResidualResult,
    SplitUpdate,
};

/// Changes of status, lease and fence need no room in the slab.
const NO_BYTES: &str = "this update carries no bytes";

impl CoordinationBackend for InMemoryCoordinator {
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let takeover = self.takeover();
        let found = find(&mut self.tenants, tenant, key);
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::acquire(shard, now, takeover, tenant, key, worker)
        })?;
        let mut found = decided(found);
        match decision {
            AcquireDecision::Grant { lease, update } => {
                apply(&mut found, &mut self.slab, &mut self.events, now, &update).expect(NO_BYTES);
                let Found { run, index } = found;
                run.idle.remove(&worker);
                let record = run.view(index, &self.slab);
                scratch.write_record(&record);
                let snapshot =
                    scratch.view(record.state.status, record.cursor_semantics, record.parent);
                Ok(AcquireResultView { lease, snapshot, capacity: run.capacity(now, takeover) })
            }
            AcquireDecision::Poison { update, refusal } => {
                apply(&mut found, &mut self.slab, &mut self.events, now, &update).expect(NO_BYTES);
                Err(refusal)
            }
        }
    }

    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        let takeover = self.takeover();
        let found = find(&mut self.tenants, tenant, lease.key());
        let (new_deadline, update) = decide(found.as_ref(), &self.slab, |shard| {
            transition::renew(shard, now, tenant, lease)
        })?;
        let mut found = decided(found);
        apply(&mut found, &mut self.slab, &mut self.events, now, &update).expect(NO_BYTES);
        Ok(RenewResult { new_deadline, capacity: found.run.capacity(now, takeover) })
    }

    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        let found = find(&mut self.tenants, tenant, lease.key());
        let update = decide(found.as_ref(), &self.slab, |shard| {
            transition::release(shard, now, tenant, lease)
        })?;
        let mut found = decided(found);
        apply(&mut found, &mut self.slab, &mut self.events, now, &update).expect(NO_BYTES);
        Ok(())
    }

    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::checkpoint(shard, now, &request)
        })?;
        Ok(carry_out(found, &mut self.slab, &mut self.events, now, decision)?)
    }

    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let takeover = self.takeover();
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::checkpoint_and_renew(shard, now, &request)
        })?;
        let mut found = decided(found);
        let deadline = match decision {
            Decision::Execute(RenewingCheckpoint { update, new_deadline }) => {
                apply(&mut found, &mut self.slab, &mut self.events, now, &update)?;
                IdempotentOutcome::Executed(new_deadline)
            }
            Decision::Replay(new_deadline) => IdempotentOutcome::Replayed(new_deadline),
        };
        let (capacity, idle_workers) = (found.run.capacity(now, takeover), found.run.idle(now));
        Ok(deadline.map(|new_deadline| CheckpointRenewal { new_deadline, capacity, idle_workers }))
    }

    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision =
            decide(found.as_ref(), &self.slab, |shard| transition::complete(shard, now, &request))?;
        Ok(carry_out(found, &mut self.slab, &mut self.events, now, decision)?)
    }

    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        let request = ParkRequest { tenant, lease, reason, op_id };
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision =
            decide(found.as_ref(), &self.slab, |shard| transition::park(shard, now, &request))?;
        Ok(carry_out(found, &mut self.slab, &mut self.events, now, decision).expect(NO_BYTES))
    }

    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        let request = SplitReplaceRequest { tenant, lease, plan, op_id };
        let room = self.room(tenant);
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::split_replace(shard, now, &room, &request)
        })?;
        let update = match decision {
            Decision::Execute(update) => update,
            Decision::Replay(result) => return Ok(IdempotentOutcome::Replayed(result)),
        };
        carry_out_split(decided(found), &mut self.slab, &mut self.events, now, &update)?;
        self.count_new_shards(tenant, update.shards.len());
        let children: InlineVec<_, 4> = update.shards.iter().map(|new| new.id).collect();
        Ok(IdempotentOutcome::Executed(SplitReplaceResult { children }))
    }

    fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        let request = SplitResidualRequest { tenant, lease, plan, op_id };
        let room = self.room(tenant);
        let found = find(&mut self.tenants, tenant, lease.key());
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::split_residual(shard, now, &room, &request)
        })?;
        let update = match decision {
            Decision::Execute(update) => update,
            Decision::Replay(result) => return Ok(IdempotentOutcome::Replayed(result)),
        };
        carry_out_split(decided(found), &mut self.slab, &mut self.events, now, &update)?;
        self.count_new_shards(tenant, 1);
        let residual = update.shards[0].id;
        Ok(IdempotentOutcome::Executed(SplitResidualResult { residual }))
    }
}

fn decided(found: Option<Found<'_>>) -> Found<'_> {
    found.expect("transitions refuse to act on a shard that is not there")
}

/// Applies an update to one shard and reports it; nothing, when its bytes do not fit.
fn apply(
    Found { run, index }: &mut Found<'_>,
    slab: &mut ByteSlab,
    events: &mut Option<EventCollector>,
    now: LogicalTime,
    update: &ShardUpdate<'_>,
) -> Result<(), SlabFull> {
    let before = run.view(*index, slab);
    let (tenant, key, state) = (before.tenant, before.key, before.state);
    run.apply(*index, slab, update)?;
    emit(events, tenant, key.run, now, || Some(update.event(key.shard, &state)));
    Ok(())
}

/// Carries out a decision about one shard; nothing, when its bytes do not fit.
pub(super) fn carry_out(
    found: Option<Found<'_>>,
    slab: &mut ByteSlab,
    events: &mut Option<EventCollector>,
    now: LogicalTime,
    decision: Decision<ShardUpdate<'_>, ()>,
) -> Result<IdempotentOutcome<()>, SlabFull> {
    match decision {
        Decision::Replay(()) => Ok(IdempotentOutcome::Replayed(())),
        Decision::Execute(update) => {
            apply(&mut decided(found), slab, events, now, &update)?;
            Ok(IdempotentOutcome::Executed(()))
        }
    }
}

/// Stores the parent and every new shard, or nothing.
fn carry_out_split(
    Found { run, index }: Found<'_>,
    slab: &mut ByteSlab,
    events: &mut Option<EventCollector>,
    now: LogicalTime,
    update: &SplitUpdate<'_>,
) -> Result<(), SplitError> {
    update.check_ids_free(|id| Ok::<_, SplitError>(run.find(id).is_some()))?;
    let mut stored: Vec<Shard> = Vec::with_capacity(update.shards.len());
    let all_stored = update.shards.iter().try_for_each(|new| {
        // The bytes of new shards come from the plan, but whose they are from the parent.
        let record = run.view(index, slab).child(new.id, new.spec);
        stored.push(Shard::store(slab, &record)?);
        Ok(())
    });
    let before = run.view(index, slab);
    let (tenant, key, state) = (before.tenant, before.key, before.state);
    if let Err(full) = all_stored.and_then(|()| run.apply(index, slab, &update.parent)) {
        stored.into_iter().for_each(|shard| shard.release(slab));
        return Err(SplitError::ResourceExhausted(full));
    }
    run.reserve(stored.len());
    stored.into_iter().for_each(|shard| run.add(shard));
    emit(events, tenant, key.run, now, || Some(update.parent.event(key.shard, &state)));
    Ok(())
}
