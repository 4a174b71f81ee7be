//! The traits of a coordinator: what workers may ask ([`CoordinationBackend`]) and what whoever runs
//! a scan may ask ([`RunManagement`]), and [`crate::AsyncCoordinationBackend`] with its sibling for async callers.
//!
//! Every operation is one atomic step: it is carried out whole, or refused, or fails with an
//! [`InfraError`] after which it may have been carried out; retrying it under
//! the same operation id then settles the matter. `now` must not be [`LogicalTime::ZERO`].

use core::num::NonZeroUsize;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_stdx::InlineVec;

use crate::error::{
    AcquireError, CheckpointError, CommitError, CompleteError, CreateRunError, DeleteRunError,
    GetRunError, IdempotentOutcome, InfraError, ParkError, RegisterShardsError, ReleaseError,
    RenewError, RevokeLeaseError, RunTransitionError, SplitReplaceError, SplitResidualError,
    UnparkError,
};
use crate::lease::Lease;
use crate::run::{
    RunConfig, RunProgress, RunRecord, RunStatus, RunSummary, ShardFilter, ShardSummary,
};
use crate::scratch::{AcquireResultView, AcquireScratch, CheckpointRenewal, RenewResult};
use crate::status::ParkReason;
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// What workers ask of a coordinator. Most do it through a [`WorkerSession`](crate::WorkerSession), which
/// keeps tenant and lease together and ends with its lease.
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

    /// Extends a lease by the run's `lease_duration` from now; never shortens it. A worker that
    /// checkpoints in time uses [`CoordinationBackend::checkpoint_and_renew`] instead.
    fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError>;

    /// Releases a shard at once, its cursor kept: for a worker that is told to stop. Whoever claims it
    /// next goes on at the cursor, and the try does not count against the shard.
    fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError>;

    /// Moves a shard's cursor: everything up to its last key is handled, and whoever takes the shard
    /// over begins behind it. The key is at or behind the old one and inside the shard; while it stays,
    /// the token is not less than the old one in byte order. The lease's deadline stays as it is.
    fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError>;

    /// Moves a shard's cursor and extends its lease with it, as [`CoordinationBackend::renew`] does:
    /// a worker that checkpoints in time needs no renewals, and learns without asking whether others
    /// wait for work. A replay extends nothing.
    fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError>;

    /// Marks a shard as done at a final cursor, under the rules of a checkpoint. One without
    /// anything in it is completed at its start key.
    fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError>;

    /// Halts a shard, its cursor kept, until somebody unparks it: for what trying again does not mend. A
    /// run with parked shards cannot be completed.
    fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError>;

    /// Replaces a shard by children that cover its range. They begin with nothing done, so this is for
    /// a shard on which no work has begun; one that is worked on gives away its rest instead
    /// ([`CoordinationBackend::split_residual`]).
    fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError>;

    /// Gives the rest of a shard's range, behind its cursor, to a new shard and keeps the lease: how
    /// work gets to workers that have none.
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

    /// [`CoordinationBackend::checkpoint_and_renew`] with what `writes` writes, under the same rules.
    fn checkpoint_and_renew_with<E>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&Self::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CommitError<CheckpointError, E>>;

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

    /// Takes the lease that was granted under `fence` from its holder at once, however long it would
    /// last: for a worker whose clock was a year ahead. The fence goes up, so the holder does nothing
    /// more; the shard is free, its cursor kept. A lease that is over is a replay.
    fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError>;

    /// Replaces what `out` holds by the tenant's runs behind `after` in id order, `limit` at most.
    /// Returns behind which run the next page begins, if there is one.
    fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError>;

    /// [`RunManagement::list_shards_into`], a page at a time: looks at the shards behind `after` in id
    /// order, `limit` of them at most, and shows those that `filter` admits. Returns behind which
    /// shard the next page begins, if there is one. Each page is a view by itself.
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
    ) -> Result<Option<ShardId>, GetRunError>;

    /// Deletes a run that has ended, and its shards: ceilings count what exists. A failure may leave
    /// some of it; asking again deletes the rest, and is told `RunNotFound` when nothing was left.
    ///
    /// The id must not be used again: a worker of the deleted run could take the new one's shards for
    /// its own.
    fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError>;

    /// Notes that `worker` looks for work in the run in vain. It counts as idle until it is granted a
    /// shard of the run, and for one lease duration at most; so a worker that goes on waiting says so
    /// again.
    fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
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
    /// When the first of the shards that are held is free for others, at the latest; the backend's
    /// allowance for clocks that differ is in it.
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
