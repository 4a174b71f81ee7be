//! [`WorkerSession`](crate::WorkerSession) for async callers.
//!
//! A future of a session that is dropped before it is ready leaves behind what a lost answer leaves
//! ([`AsyncCoordinationBackend`]); the session itself then knows nothing of it, and its caller asks
//! again as it would after a lost answer. The operations that end a session take it along, so whoever
//! drops one of their futures has no session left, and may still hold the shard.

use core::ops::Deref;

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardKey, TenantId, WorkerId};

use crate::async_traits::{AsyncCoordinationBackend, AsyncShardClaiming};
use crate::error::{
    AcquireError, CheckpointError, ClaimError, CompleteError, IdempotentOutcome,
    LeasedOperationError, ParkError, ReleaseError, RenewError, SplitReplaceError,
    SplitResidualError,
};
use crate::scratch::{AcquireResultView, AcquireScratch, CheckpointRenewal, Granted, RenewResult};
use crate::session::{EndError, HeldShard};
use crate::status::ParkReason;
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// A shard held by an async worker.
#[derive(Debug)]
pub struct AsyncWorkerSession<'b, B> {
    backend: &'b mut B,
    held: HeldShard,
}

impl<B> Deref for AsyncWorkerSession<'_, B> {
    type Target = HeldShard;

    fn deref(&self) -> &HeldShard {
        &self.held
    }
}

impl<'b, B: AsyncCoordinationBackend> AsyncWorkerSession<'b, B> {
    /// Acquires a shard.
    pub async fn new(
        backend: &'b mut B,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
    ) -> Result<Self, AcquireError> {
        let mut scratch = AcquireScratch::new();
        let acquired =
            backend.acquire_and_restore_into(now, tenant, key, worker, &mut scratch).await?;
        let granted = Granted::of(&acquired);
        Ok(Self { backend, held: HeldShard::new(granted, scratch) })
    }

    /// Claims some free shard of a run.
    pub async fn claim(
        backend: &'b mut B,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<Self, ClaimError>
    where
        B: AsyncShardClaiming,
    {
        let mut scratch = AcquireScratch::new();
        let acquired = backend.claim_next_available(now, tenant, run, worker, &mut scratch).await?;
        let granted = Granted::of(&acquired);
        Ok(Self { backend, held: HeldShard::new(granted, scratch) })
    }

    /// Takes over a shard that was acquired already.
    #[must_use]
    pub fn from_acquire_result(backend: &'b mut B, acquired: &AcquireResultView<'_>) -> Self {
        Self { backend, held: HeldShard::copy_of(acquired) }
    }

    /// The backend, for reading beside the work.
    #[must_use]
    pub const fn backend(&self) -> &B {
        self.backend
    }

    /// Extends the lease.
    pub async fn renew(&mut self, now: LogicalTime) -> Result<RenewResult, RenewError> {
        let renewed = self.backend.renew(now, self.held.tenant(), self.held.lease()).await?;
        self.held.renewed(renewed.new_deadline, renewed.capacity);
        Ok(renewed)
    }

    /// Moves the cursor.
    pub async fn checkpoint(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        self.backend.checkpoint(now, self.held.tenant(), self.held.lease(), cursor, op_id).await
    }

    /// Moves the cursor and extends the lease with it.
    pub async fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let outcome = self.backend.checkpoint_and_renew(now, tenant, lease, cursor, op_id).await?;
        let renewal = outcome.as_ref().into_inner();
        self.held.renewed(renewal.new_deadline, renewal.capacity);
        Ok(outcome)
    }

    /// Gives the rest of the range to a new shard and goes on with what is left.
    pub async fn split_residual(
        &mut self,
        now: LogicalTime,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let outcome = self.backend.split_residual(now, tenant, lease, plan, op_id).await?;
        self.held.gave_away(plan, outcome.as_ref().into_inner().residual);
        Ok(outcome)
    }

    /// Marks the shard as done.
    pub async fn complete(
        self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, EndError<Self, CompleteError>> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let ended = self.backend.complete(now, tenant, lease, cursor, op_id).await;
        self.end(ended)
    }

    /// Halts the shard.
    pub async fn park(
        self,
        now: LogicalTime,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, EndError<Self, ParkError>> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let ended = self.backend.park_shard(now, tenant, lease, reason, op_id).await;
        self.end(ended)
    }

    /// Replaces the shard by children.
    pub async fn split_replace(
        self,
        now: LogicalTime,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, EndError<Self, SplitReplaceError>> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let ended = self.backend.split_replace(now, tenant, lease, plan, op_id).await;
        self.end(ended)
    }

    /// Releases the shard, its cursor kept.
    pub async fn release(self, now: LogicalTime) -> Result<(), EndError<Self, ReleaseError>> {
        let ended = self.backend.release(now, self.held.tenant(), self.held.lease()).await;
        self.end(ended)
    }

    fn end<T, E: LeasedOperationError>(self, ended: Result<T, E>) -> Result<T, EndError<Self, E>> {
        ended.map_err(|error| EndError::of(error, self))
    }
}
