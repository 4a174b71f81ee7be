//! The same traits for async callers, and an adapter that implements them for a sync backend.
//!
//! Semantics are those of [`CoordinationBackend`], [`RunManagement`] and [`ShardClaiming`]. The rules
//! themselves are in [`crate::transition`] for both; only the waiting differs.
//!
//! # Futures that are dropped
//!
//! A future that is dropped before it is ready leaves behind what a lost answer leaves: its operation
//! was carried out whole, or not at all, or will be yet. What to do is the same, too. An operation
//! with an id is asked again under that id, unchanged. A renewal or a release is asked again as it
//! was. After a claim or an acquire the worker may hold a shard that it does not know of:
//! [`AsyncShardClaiming::reacquire_own`] gets it back, and until then its lease keeps others out.

use core::future::Future;
use core::num::NonZeroUsize;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};

use crate::claim::ShardClaiming;
use crate::error::{
    AcquireError, CheckpointError, ClaimError, CompleteError, CreateRunError, DeleteRunError,
    GetRunError, IdempotentOutcome, InfraError, ParkError, RegisterShardsError, ReleaseError,
    RenewError, RevokeLeaseError, RunTransitionError, SplitReplaceError, SplitResidualError,
    UnparkError,
};
use crate::lease::Lease;
use crate::run::{RunConfig, RunProgress, RunRecord, RunSummary, ShardFilter, ShardSummary};
use crate::scratch::{AcquireResultView, AcquireScratch, CheckpointRenewal, RenewResult};
use crate::status::ParkReason;
use crate::traits::{
    ClaimCandidates, CoordinationBackend, RunManagement, check_same_config, exists_already,
};
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// [`CoordinationBackend`] for async callers.
pub trait AsyncCoordinationBackend {
    /// See [`CoordinationBackend::acquire_and_restore_into`].
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> impl Future<Output = Result<AcquireResultView<'s>, AcquireError>> + Send;

    /// See [`CoordinationBackend::renew`].
    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> impl Future<Output = Result<RenewResult, RenewError>> + Send;

    /// See [`CoordinationBackend::release`].
    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> impl Future<Output = Result<(), ReleaseError>> + Send;

    /// See [`CoordinationBackend::checkpoint`].
    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, CheckpointError>> + Send;

    /// See [`CoordinationBackend::checkpoint_and_renew`].
    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError>> + Send;

    /// See [`CoordinationBackend::complete`].
    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, CompleteError>> + Send;

    /// See [`CoordinationBackend::park_shard`].
    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, ParkError>> + Send;

    /// See [`CoordinationBackend::split_replace`].
    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError>> + Send;

    /// See [`CoordinationBackend::split_residual`].
    fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError>> + Send;
}

/// [`RunManagement`] for async callers.
pub trait AsyncRunManagement {
    /// See [`RunManagement::create_run`].
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> impl Future<Output = Result<(), CreateRunError>> + Send;

    /// See [`RunManagement::register_shards`].
    fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RegisterShardsError>> + Send;

    /// See [`RunManagement::get_run`].
    fn get_run(
        &self,
        tenant: TenantId,
        run: RunId,
    ) -> impl Future<Output = Result<RunRecord, GetRunError>> + Send;

    /// See [`RunManagement::get_run_progress`].
    fn get_run_progress(
        &self,
        tenant: TenantId,
        run: RunId,
    ) -> impl Future<Output = Result<RunProgress, GetRunError>> + Send;

    /// See [`RunManagement::list_shards_into`].
    fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> impl Future<Output = Result<(), GetRunError>> + Send;

    /// See [`RunManagement::complete_run_with`].
    fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RunTransitionError>> + Send;

    /// See [`RunManagement::complete_run`].
    fn complete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RunTransitionError>> + Send {
        self.complete_run_with(now, tenant, run, None, op_id)
    }

    /// See [`RunManagement::fail_run`].
    fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RunTransitionError>> + Send;

    /// See [`RunManagement::cancel_run`].
    fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RunTransitionError>> + Send;

    /// See [`RunManagement::unpark_shard`].
    fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, UnparkError>> + Send;

    /// See [`RunManagement::collect_claim_candidates_into`].
    fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> impl Future<Output = Result<(), GetRunError>> + Send;

    /// See [`RunManagement::revoke_lease`].
    fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, RevokeLeaseError>> + Send;

    /// See [`RunManagement::list_runs_into`].
    fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> impl Future<Output = Result<Option<RunId>, InfraError>> + Send;

    /// See [`RunManagement::list_shards_page_into`].
    #[allow(clippy::too_many_arguments, reason = "a listing, and where in it")]
    fn list_shards_page_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        out: &mut Vec<ShardSummary>,
    ) -> impl Future<Output = Result<Option<ShardId>, GetRunError>> + Send;

    /// See [`RunManagement::delete_run`].
    fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> impl Future<Output = Result<(), DeleteRunError>> + Send;

    /// See [`RunManagement::note_idle`].
    fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> impl Future<Output = Result<(), GetRunError>> + Send;

    /// See [`RunManagement::create_run_with_shards`].
    fn create_run_with_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> impl Future<Output = Result<IdempotentOutcome<()>, CreateRunError>> + Send
    where
        Self: Send,
    {
        async move {
            if exists_already(self.create_run(now, tenant, run, config).await)? {
                check_same_config(self.get_run(tenant, run).await, run, config)?;
            }
            self.register_shards(now, tenant, run, shards, op_id)
                .await
                .map_err(CreateRunError::RegisterShardsFailed)
        }
    }
}

/// [`ShardClaiming`] for async callers.
pub trait AsyncShardClaiming {
    /// See [`ShardClaiming::claim_next_available`].
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> impl Future<Output = Result<AcquireResultView<'s>, ClaimError>> + Send;

    /// See [`ShardClaiming::reacquire_own`].
    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> impl Future<Output = Result<Option<AcquireResultView<'s>>, ClaimError>> + Send;
}

/// A sync backend behind the async traits. It answers at once and on the caller's thread, so it is
/// for backends that do not wait: the one in memory, or one whose disk is fast enough.
#[derive(Debug)]
pub struct Immediate<B>(pub B);

impl<B: CoordinationBackend + Send + Sync> AsyncCoordinationBackend for Immediate<B> {
    async fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        self.0.acquire_and_restore_into(now, tenant, key, worker, scratch)
    }

    async fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        self.0.renew(now, tenant, lease)
    }

    async fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        self.0.release(now, tenant, lease)
    }

    async fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        self.0.checkpoint(now, tenant, lease, cursor, op_id)
    }

    async fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        self.0.checkpoint_and_renew(now, tenant, lease, cursor, op_id)
    }

    async fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        self.0.complete(now, tenant, lease, cursor, op_id)
    }

    async fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        self.0.park_shard(now, tenant, lease, reason, op_id)
    }

    async fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        self.0.split_replace(now, tenant, lease, plan, op_id)
    }

    async fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        self.0.split_residual(now, tenant, lease, plan, op_id)
    }
}

impl<B: RunManagement + Send + Sync> AsyncRunManagement for Immediate<B> {
    async fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        self.0.create_run(now, tenant, run, config)
    }

    async fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        self.0.register_shards(now, tenant, run, shards, op_id)
    }

    async fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        self.0.get_run(tenant, run)
    }

    async fn get_run_progress(
        &self,
        tenant: TenantId,
        run: RunId,
    ) -> Result<RunProgress, GetRunError> {
        self.0.get_run_progress(tenant, run)
    }

    async fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        self.0.list_shards_into(now, tenant, run, filter, out)
    }

    async fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.0.complete_run_with(now, tenant, run, result, op_id)
    }

    async fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.0.fail_run(now, tenant, run, op_id)
    }

    async fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.0.cancel_run(now, tenant, run, op_id)
    }

    async fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        self.0.unpark_shard(now, tenant, key, op_id)
    }

    async fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        self.0.collect_claim_candidates_into(now, tenant, run, worker, out)
    }

    async fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        self.0.revoke_lease(now, tenant, key, fence)
    }

    async fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        self.0.list_runs_into(tenant, after, limit, out)
    }

    async fn list_shards_page_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        out: &mut Vec<ShardSummary>,
    ) -> Result<Option<ShardId>, GetRunError> {
        self.0.list_shards_page_into(now, tenant, run, filter, after, limit, out)
    }

    async fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError> {
        self.0.delete_run(now, tenant, run)
    }

    async fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        self.0.note_idle(now, tenant, run, worker)
    }
}

impl<B: ShardClaiming + Send + Sync> AsyncShardClaiming for Immediate<B> {
    async fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        self.0.claim_next_available(now, tenant, run, worker, scratch)
    }

    async fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        self.0.reacquire_own(now, tenant, run, worker, scratch)
    }
}
