//! Workers' operations: look up, decide, store, in one transaction each.

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{
    self, Decision, ParkRequest, SplitReplaceRequest, SplitReplaceResult, SplitResidualRequest,
    SplitResidualResult, SplitUpdate,
};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CheckpointRenewal,
    CommitError, CompleteError, CoordError, CoordinationBackend, FoundShard, IdempotentOutcome,
    Lease, ParkError, ParkReason, ReleaseError, RenewError, RenewResult, ShardRoom, SplitError,
    SplitReplaceError, SplitResidualError, TransactionalBackend,
};

use crate::acquire::{self, Applicant};
use crate::commit::nothing;
use crate::coordinator::SqliteCoordinator;
use crate::error::{Steps, steps};
use crate::runs::room;
use crate::shards::{self, Buffers, Shard, Stored};
use crate::sql;

const DECIDED: &str = "transitions refuse to act on a shard that is not there";

impl CoordinationBackend for SqliteCoordinator {
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let steps = steps!("acquire");
        let by = Applicant { now, tenant, worker };
        let Self { conn, buffers, .. } = self;
        let attempt =
            sql::write(conn, steps, |tx| acquire::attempt(tx, steps, by, key, buffers, scratch))?;
        self.report(now, Some(attempt.stored));
        match attempt.outcome {
            Ok(granted) => Ok(granted.view(scratch)),
            Err(refusal) => Err(refusal),
        }
    }

    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        let steps = steps!("renew");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let (renewed, stored) = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let (new_deadline, update) =
                transition::renew(found.as_ref().map(Shard::found), now, tenant, lease)?;
            let shard = found.expect(DECIDED);
            shard.store(tx, steps, &update, encoded)?;
            let capacity = shard.run.capacity(tx, steps.load, now)?;
            let renewed = RenewResult { new_deadline, capacity };
            Ok::<_, RenewError>((renewed, Stored::new(&shard, update)))
        })?;
        self.report(now, Some(stored));
        Ok(renewed)
    }

    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        let steps = steps!("release");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let stored = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let update = transition::release(found.as_ref().map(Shard::found), now, tenant, lease)?;
            let shard = found.expect(DECIDED);
            shard.store(tx, steps, &update, encoded)?;
            Ok::<_, ReleaseError>(Stored::new(&shard, update))
        })?;
        self.report(now, Some(stored));
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
        self.checkpoint_with(now, tenant, lease, cursor, op_id, nothing)
            .map_err(CommitError::into_refusal)
    }

    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        self.checkpoint_and_renew_with(now, tenant, lease, cursor, op_id, nothing)
            .map_err(CommitError::into_refusal)
    }

    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        self.complete_with(now, tenant, lease, cursor, op_id, nothing)
            .map_err(CommitError::into_refusal)
    }

    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        let steps = steps!("park");
        let request = ParkRequest { tenant, lease, reason, op_id };
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let stored = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let decision = transition::park(found.as_ref().map(Shard::found), now, &request)?;
            let Decision::Execute(update) = decision else {
                return Ok::<_, ParkError>(None);
            };
            let shard = found.expect(DECIDED);
            shard.store(tx, steps, &update, encoded)?;
            Ok(Some(Stored::new(&shard, update)))
        })?;
        Ok(self.report(now, stored))
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
        self.split(
            steps!("split_replace"),
            now,
            tenant,
            lease,
            |found, room| transition::split_replace(found, now, room, &request),
            |update| SplitReplaceResult {
                children: update.shards.iter().map(|new| new.id).collect(),
            },
        )
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
        self.split(
            steps!("split_residual"),
            now,
            tenant,
            lease,
            |found, room| transition::split_residual(found, now, room, &request),
            |update| SplitResidualResult { residual: update.shards[0].id },
        )
    }
}

impl SqliteCoordinator {
    /// Stores the parent and every new shard, or nothing.
    fn split<'r, R>(
        &mut self,
        steps: &Steps,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        decide: impl FnOnce(
            Option<FoundShard<'_, '_>>,
            &ShardRoom,
        ) -> Result<Decision<SplitUpdate<'r>, R>, CoordError>,
        result: impl FnOnce(&SplitUpdate<'r>) -> R,
    ) -> Result<IdempotentOutcome<R>, SplitError> {
        let Self { conn, config, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let (outcome, stored) = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let room = room(tx, steps.load, config.limits, tenant)?;
            let update = match decide(found.as_ref().map(Shard::found), &room)? {
                Decision::Execute(update) => update,
                Decision::Replay(result) => {
                    return Ok::<_, SplitError>((IdempotentOutcome::Replayed(result), None));
                }
            };
            let shard = found.expect(DECIDED);
            update.check_ids_free(|id| {
                shards::exists(tx, steps.load, &shard.run, id).map_err(SplitError::from)
            })?;
            shard.store(tx, steps, &update.parent, encoded)?;
            let children = update.shards.iter().map(|new| shard.view.child(new.id, new.spec));
            shards::insert(tx, steps, tenant, &shard.run, children, encoded)?;
            let outcome = IdempotentOutcome::Executed(result(&update));
            Ok((outcome, Some(Stored::new(&shard, update.parent))))
        })?;
        self.report(now, stored);
        Ok(outcome)
    }
}
