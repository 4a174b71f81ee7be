//! Workers' operations: look up, decide, store, in one transaction each.

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{
    self, Decision, ParkRequest, SplitReplaceRequest, SplitReplaceResult, SplitResidualRequest,
    SplitResidualResult, SplitUpdate,
};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CommitError, CompleteError,
    CoordError, CoordinationBackend, EventKind, FoundShard, IdempotentOutcome, Lease, ParkError,
    ParkReason, ReleaseError, RenewError, RenewResult, ShardRoom, SplitError, SplitReplaceError,
    SplitResidualError, TransactionalBackend,
};

use crate::acquire::{self, Applicant, Attempt};
use crate::commit::nothing;
use crate::coordinator::SqliteCoordinator;
use crate::error::{Steps, steps};
use crate::runs::room;
use crate::shards::{self, Buffers, Shard};
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
        match attempt {
            Attempt::Granted(granted) => {
                self.emit_granted(by, &granted);
                Ok(granted.view(scratch))
            }
            Attempt::Poisoned(refusal) => {
                self.emit_poisoned(by, key);
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
        let steps = steps!("renew");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let renewed = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let (new_deadline, update) =
                transition::renew(found.as_ref().map(Shard::found), now, tenant, lease)?;
            let shard = found.expect(DECIDED);
            shard.store(tx, steps, &update, encoded)?;
            let capacity = shard.run.capacity(tx, steps.load, now)?;
            Ok::<_, RenewError>(RenewResult { new_deadline, capacity })
        })?;
        self.emit(tenant, lease.run(), now, || EventKind::ShardLeaseRenewed {
            shard: lease.shard(),
            new_deadline: renewed.new_deadline,
        });
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
        sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let update = transition::release(found.as_ref().map(Shard::found), now, tenant, lease)?;
            found.expect(DECIDED).store(tx, steps, &update, encoded)?;
            Ok::<_, ReleaseError>(())
        })?;
        let shard = lease.shard();
        self.emit(tenant, lease.run(), now, || EventKind::ShardReleased { shard });
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
        let outcome = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let decision = transition::park(found.as_ref().map(Shard::found), now, &request)?;
            let Decision::Execute(update) = decision else {
                return Ok::<_, ParkError>(IdempotentOutcome::Replayed(()));
            };
            found.expect(DECIDED).store(tx, steps, &update, encoded)?;
            Ok(IdempotentOutcome::Executed(()))
        })?;
        if outcome.is_executed() {
            let shard = lease.shard();
            self.emit(tenant, lease.run(), now, || EventKind::ShardParked { shard, reason });
        }
        Ok(outcome)
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
        let outcome = self.split(
            steps!("split_replace"),
            tenant,
            lease,
            |found, room| transition::split_replace(found, now, room, &request),
            |update| SplitReplaceResult {
                children: update.shards.iter().map(|new| new.id).collect(),
            },
        )?;
        if let IdempotentOutcome::Executed(result) = &outcome {
            self.emit(tenant, lease.run(), now, || EventKind::ShardSplit {
                parent: lease.shard(),
                children: result.children.to_vec(),
            });
        }
        Ok(outcome)
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
        let outcome = self.split(
            steps!("split_residual"),
            tenant,
            lease,
            |found, room| transition::split_residual(found, now, room, &request),
            |update| SplitResidualResult { residual: update.shards[0].id },
        )?;
        if let IdempotentOutcome::Executed(SplitResidualResult { residual }) = outcome {
            let parent = lease.shard();
            self.emit(tenant, lease.run(), now, || EventKind::ShardResidualCreated {
                parent,
                residual,
            });
        }
        Ok(outcome)
    }
}

impl SqliteCoordinator {
    /// Stores the parent and every new shard, or nothing.
    fn split<'r, R>(
        &mut self,
        steps: &Steps,
        tenant: TenantId,
        lease: &Lease,
        decide: impl FnOnce(
            Option<FoundShard<'_, '_>>,
            &ShardRoom,
        ) -> Result<Decision<SplitUpdate<'r>, R>, CoordError>,
        result: impl FnOnce(&SplitUpdate<'r>) -> R,
    ) -> Result<IdempotentOutcome<R>, SplitError> {
        let Self { conn, config, buffers: Buffers { record, decoded, encoded }, .. } = self;
        sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, lease.key(), record, decoded)?;
            let room = room(tx, steps.load, config.limits, tenant)?;
            let update = match decide(found.as_ref().map(Shard::found), &room)? {
                Decision::Execute(update) => update,
                Decision::Replay(result) => return Ok(IdempotentOutcome::Replayed(result)),
            };
            let shard = found.expect(DECIDED);
            update.check_ids_free(|id| {
                shards::exists(tx, steps.load, &shard.run, id).map_err(SplitError::from)
            })?;
            shard.store(tx, steps, &update.parent, encoded)?;
            let children = update.shards.iter().map(|new| shard.view.child(new.id, new.spec));
            shards::insert(tx, steps, tenant, &shard.run, children, encoded)?;
            Ok(IdempotentOutcome::Executed(result(&update)))
        })
    }
}
