//! A worker's backend, reached over the wire: what a `WorkerSession` borrows.

use std::cell::RefCell;

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, ClaimError, CommitError,
    CompleteError, CoordinationBackend, IdempotentOutcome, Lease, ParkError, ParkReason,
    ReleaseError, RenewError, RenewResult, ShardClaiming, SplitReplaceError, SplitResidualError,
    TransactionalBackend,
};

use super::op::Operation;
use super::perform::{ToAnswer, accepted, idempotent};
use super::simulated::{Applicant, SimulatedBackend};
use super::wire::{Grant, Wire};

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
        let operation =
            Operation::Checkpoint { tenant, lease: *lease, cursor: cursor.into(), op_id };
        self.0.borrow_mut().call(now, operation, |backend| {
            let result = backend.checkpoint(now, tenant, lease, cursor, op_id);
            (idempotent(&result), None, result)
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

fn write_if_executed<R, E>(
    outcome: IdempotentOutcome<()>,
    writes: impl FnOnce(&()) -> Result<(), E>,
) -> Result<IdempotentOutcome<()>, CommitError<R, E>> {
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
}
