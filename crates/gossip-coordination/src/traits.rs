//! The traits of a coordinator: what workers may ask ([`CoordinationBackend`]) and what whoever runs
//! a scan may ask ([`RunManagement`]), and [`crate::AsyncCoordinationBackend`] with its sibling for async callers.
//!
//! Every operation is one atomic step: it is carried out whole, or refused, or fails with an
//! [`InfraError`](crate::InfraError) after which it may have been carried out; retrying it under
//! the same operation id then settles the matter. `now` must not be [`LogicalTime::ZERO`].

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_stdx::InlineVec;

use crate::error::{
    AcquireError, CheckpointError, CommitError, CompleteError, CreateRunError, GetRunError,
    IdempotentOutcome, ParkError, RegisterShardsError, ReleaseError, RenewError,
    RunTransitionError, SplitReplaceError, SplitResidualError, UnparkError,
};
use crate::lease::Lease;
use crate::run::{RunConfig, RunProgress, RunRecord, RunStatus, ShardFilter, ShardSummary};
use crate::scratch::{AcquireResultView, AcquireScratch, RenewResult};
use crate::status::ParkReason;
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// What workers ask of a coordinator.
pub trait CoordinationBackend {
    /// Takes a shard, raising its fence, and copies where to go on into `scratch`. Each success
    /// kills earlier leases of the shard, also those of the same worker. A shard that was tried too
    /// often is parked instead, and the refusal says that it is terminal.
    fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError>;

    /// Extends a lease.
    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError>;

    /// Releases a shard at once, its cursor kept.
    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError>;

    /// Moves a shard's cursor.
    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError>;

    /// Marks a shard as done at a final cursor.
    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError>;

    /// Halts a shard.
    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError>;

    /// Replaces a shard by children that cover its range.
    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError>;

    /// Gives the rest of a shard's range to a new shard and keeps the lease.
    fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError>;
}

/// A backend that commits writes of the caller together with a cursor.
///
/// - W1: the caller's writes and the checkpoint or completion are committed together or not at all.
/// - W2: the caller's writes run only when the operation is executed: a replay has committed them
///   before, a refusal must not.
pub trait TransactionalBackend: CoordinationBackend {
    /// What the caller writes through.
    type Transaction<'t>;

    /// Moves a shard's cursor and commits what `writes` writes (W1).
    ///
    /// `writes` runs inside the transaction once the checkpoint has been accepted; not at all when
    /// it is refused or had been carried out before (W2). If it fails or panics, nothing is
    /// committed. It must neither begin nor end a transaction.
    fn checkpoint_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Self::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, CommitError<CheckpointError, E>>;

    /// Marks a shard as done and commits what `writes` writes, under the same rules.
    fn complete_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Self::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, CommitError<CompleteError, E>>;
}

/// What whoever runs a scan asks of a coordinator. None of it needs a lease.
pub trait RunManagement {
    /// Creates a run without shards.
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError>;

    /// Gives a run its shards, once; with that it is active.
    fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError>;

    /// The run's record.
    fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError>;

    /// How many of the run's shards stand where.
    fn get_run_progress(&self, tenant: TenantId, run: RunId) -> Result<RunProgress, GetRunError>;

    /// Replaces what `out` holds by the run's shards that `filter` admits, in id order.
    fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError>;

    /// Ends an active run whose shards are all done or split, and keeps `result` with it, which
    /// [`RunManagement::get_run`] returns.
    fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError>;

    /// Ends an active run whose shards are all done or split.
    fn complete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.complete_run_with(now, tenant, run, None, op_id)
    }

    /// Gives an active run up.
    fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError>;

    /// Calls off a run that has not ended.
    fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError>;

    /// Sets a parked shard going again.
    fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError>;

    /// Replaces what `out` holds by a few shards that `worker` could acquire now. The cost must not
    /// grow with the number of shards.
    fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError>;

    /// Creates a run and gives it its shards. Safe to repeat: a run that an earlier call left
    /// without shards gets them now.
    fn create_run_with_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CreateRunError> {
        if exists_already(self.create_run(now, tenant, run, config))? {
            check_same_config(self.get_run(tenant, run), run, config)?;
        }
        self.register_shards(now, tenant, run, shards, op_id)
            .map_err(CreateRunError::RegisterShardsFailed)
    }
}

/// Whether a creation failed only because the run is there.
pub(crate) fn exists_already(created: Result<(), CreateRunError>) -> Result<bool, CreateRunError> {
    match created {
        Ok(()) => Ok(false),
        Err(CreateRunError::RunAlreadyExists { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether a run that is there is the one that was to be created.
pub(crate) fn check_same_config(
    existing: Result<RunRecord, GetRunError>,
    run: RunId,
    config: RunConfig,
) -> Result<(), CreateRunError> {
    if existing.map_err(CreateRunError::GetRunFailed)?.config == config {
        Ok(())
    } else {
        Err(CreateRunError::ConfigMismatch { run })
    }
}

/// A few shards that could be acquired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimCandidates {
    /// Where the run stands; only an active one has candidates.
    pub status: RunStatus,
    /// The shards, best first; at most [`ClaimCandidates::MAX`].
    pub shards: InlineVec<ShardId, { ClaimCandidates::MAX }>,
    /// When the first of the current leases ends, if there are any.
    pub earliest_deadline: Option<LogicalTime>,
}

impl ClaimCandidates {
    /// Most candidates in one collection.
    pub const MAX: usize = 8;

    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { status: RunStatus::Initializing, shards: InlineVec::new(), earliest_deadline: None }
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl Default for ClaimCandidates {
    fn default() -> Self {
        Self::new()
    }
}
