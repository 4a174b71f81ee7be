//! A worker's backend, reached over the wire: what a `WorkerSession` borrows.

use std::cell::RefCell;

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CheckpointRenewal,
    ClaimError, CommitError, CompleteError, CoordinationBackend, IdempotentOutcome, Lease,
    ParkError, ParkReason, ReleaseError, RenewError, RenewResult, ShardClaiming, SplitReplaceError,
    SplitResidualError, TransactionalBackend,
};

use super::op::Operation;
use super::perform::{ToAnswer, accepted, idempotent};
use super::simulated::{Applicant, SimulatedBackend};
use super::wire::{Grant, Wire};

fn checkpoint(
    tenant: TenantId,
    lease: &Lease,
    cursor: CursorUpdate<'_>,
    renews: bool,
    op_id: OpId,
) -> Operation {
    Operation::Checkpoint { tenant, lease: *lease, cursor: cursor.into(), renews, op_id }
}

/// Every session gets its own.
pub(super) struct Port<'w, S>(pub(super) &'w RefCell<Wire<S>>);

impl<S: SimulatedBackend> CoordinationBackend for Port<'_, S> {
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let operation = Operation::Acquire { tenant, key, worker };
        let mut wire = self.0.borrow_mut();
        let grant: Result<Grant, AcquireError> = wire.call(now, operation, |backend| {
            let result = backend.acquire_and_restore_into(now, tenant, key, worker, scratch);
            let hint = result.as_ref().ok().map(|acquired| acquired.capacity);
            (result.answer(), hint, result.map(|acquired| Grant::of(&acquired)))
        });
        Ok(wire.granted.insert(grant?).restore(scratch))
    }

    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        let operation = Operation::Renew { tenant, lease: *lease };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.renew(now, tenant, lease);
            let hint = result.as_ref().ok().map(|renewed| renewed.capacity);
            (result.answer(), hint, result)
        })
    }

    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        let operation = Operation::Release { tenant, lease: *lease };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.release(now, tenant, lease);
            (accepted(&result), None, result)
        })
    }

    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        let operation = checkpoint(tenant, lease, cursor, false, op_id);
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.checkpoint(now, tenant, lease, cursor, op_id);
            (idempotent(&result), None, result)
        })
    }

    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let operation = checkpoint(tenant, lease, cursor, true, op_id);
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.checkpoint_and_renew(now, tenant, lease, cursor, op_id);
            let hint = result.as_ref().ok().map(|outcome| outcome.as_ref().into_inner().capacity);
            (result.answer(), hint, result)
        })
    }

    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        let operation = Operation::Complete { tenant, lease: *lease, cursor: cursor.into(), op_id };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.complete(now, tenant, lease, cursor, op_id);
            (idempotent(&result), None, result)
        })
    }

    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        let operation = Operation::Park { tenant, lease: *lease, reason, op_id };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.park_shard(now, tenant, lease, reason, op_id);
            (idempotent(&result), None, result)
        })
    }

    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        let children = plan.children().iter().map(|&child| child.into()).collect();
        let operation = Operation::SplitReplace { tenant, lease: *lease, children, op_id };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.split_replace(now, tenant, lease, plan, op_id);
            (result.answer(), None, result)
        })
    }

    fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        let (kept, residual) = (plan.parent.into(), plan.residual.into());
        let operation = Operation::SplitResidual { tenant, lease: *lease, kept, residual, op_id };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.split_residual(now, tenant, lease, plan, op_id);
            (result.answer(), None, result)
        })
    }
}

/// Every cursor move brings a row of the caller's along where the backend has transactions
/// (`sqlite::Store`), late and doubled ones too. What a session is given to write runs here.
impl<S: SimulatedBackend> TransactionalBackend for Port<'_, S> {
    type Transaction<'t> = ();

    fn checkpoint_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&()) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, CommitError<CheckpointError, E>> {
        let moved = self.checkpoint(now, tenant, lease, cursor, op_id);
        write_if_executed(moved.map_err(CommitError::Refused)?, writes)
    }

    fn checkpoint_and_renew_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&()) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CommitError<CheckpointError, E>> {
        let moved = self.checkpoint_and_renew(now, tenant, lease, cursor, op_id);
        write_if_executed(moved.map_err(CommitError::Refused)?, writes)
    }

    fn complete_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&()) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, CommitError<CompleteError, E>> {
        let done = self.complete(now, tenant, lease, cursor, op_id);
        write_if_executed(done.map_err(CommitError::Refused)?, writes)
    }
}

fn write_if_executed<T, R, E>(
    outcome: IdempotentOutcome<T>,
    writes: impl FnOnce(&()) -> Result<(), E>,
) -> Result<IdempotentOutcome<T>, CommitError<R, E>> {
    if outcome.is_executed() {
        writes(&()).map_err(CommitError::Caller)?;
    }
    Ok(outcome)
}

impl<S: SimulatedBackend> ShardClaiming for Port<'_, S> {
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        let mut wire = self.0.borrow_mut();
        let grant = wire.claim(Applicant { now, tenant, run, worker })?;
        Ok(wire.granted.insert(grant).restore(scratch))
    }

    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        let mut wire = self.0.borrow_mut();
        let own = wire.reacquire_own(Applicant { now, tenant, run, worker })?;
        Ok(own.map(|grant| wire.granted.insert(grant).restore(scratch)))
    }
}
