//! One worker's lease on one shard, from acquire to end.
//!
//! A session remembers tenant and lease, so that they cannot be mixed up, and is consumed by the
//! operations that end it, so that using it afterwards does not compile. One that fails in passing
//! hands the session back ([`EndError`]), for a retry under the same operation id. A session never
//! renews by itself.

use core::fmt;
use core::ops::Deref;

use gossip_contracts::coordination::{
    CursorUpdate, ShardSpecRef, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};

use crate::claim::ShardClaiming;
use crate::error::{
    AcquireError, CheckpointError, ClaimError, CommitError, CompleteError, IdempotentOutcome,
    LeasedOperationError, ParkError, ReleaseError, RenewError, SplitReplaceError,
    SplitResidualError,
};
use crate::lease::Lease;
use crate::scratch::{
    AcquireResultView, AcquireScratch, CapacityHint, CheckpointRenewal, Granted, RenewResult,
    ShardSnapshotView,
};
use crate::status::ParkReason;
use crate::traits::{CoordinationBackend, TransactionalBackend};
use crate::transition::{SplitReplaceResult, SplitResidualResult};

/// An operation that should have ended a session, and did not.
pub struct EndError<S, E> {
    /// Why.
    pub error: E,
    /// The session, unless its lease is over.
    pub session: Option<Box<S>>,
}

impl<S, E: LeasedOperationError> EndError<S, E> {
    pub(crate) fn of(error: E, session: S) -> Self {
        let session = (!error.lease_is_over()).then(|| Box::new(session));
        Self { error, session }
    }
}

impl<S, E> EndError<S, E> {
    /// The error alone, for whoever gives the session up.
    pub fn into_error(self) -> E {
        self.error
    }
}

impl<S, E: fmt::Display> fmt::Display for EndError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

/// Whether the session came back, not the backend that it borrows.
impl<S, E: fmt::Debug> fmt::Debug for EndError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndError")
            .field("error", &self.error)
            .field("came_back", &self.session.is_some())
            .finish()
    }
}

impl<S, E: core::error::Error> core::error::Error for EndError<S, E> {}

/// A shard as its session knows it: the lease, and the shard as it was acquired.
#[derive(Debug)]
pub struct HeldShard {
    granted: Granted,
    scratch: AcquireScratch,
}

impl HeldShard {
    /// `scratch` is what the shard was acquired into.
    pub(crate) const fn new(granted: Granted, scratch: AcquireScratch) -> Self {
        Self { granted, scratch }
    }

    /// A copy of a shard that was acquired into somebody else's scratch.
    pub(crate) fn copy_of(acquired: &AcquireResultView<'_>) -> Self {
        let mut scratch = AcquireScratch::new();
        scratch.write_spec(acquired.snapshot.spec);
        scratch.write_cursor(acquired.snapshot.cursor);
        scratch.write_spawned_iter(acquired.snapshot.spawned.iter().copied());
        Self::new(Granted::of(acquired), scratch)
    }

    /// The lease. Its deadline follows renewals.
    #[must_use]
    pub const fn lease(&self) -> &Lease {
        &self.granted.lease
    }

    /// The shard as it was acquired, except that a residual split narrows its range and adds to
    /// what it spawned. Checkpoints do not show here.
    #[must_use]
    pub fn initial_snapshot(&self) -> ShardSnapshotView<'_> {
        self.granted.view(&self.scratch).snapshot
    }

    /// The keys to work on, narrowed by residual splits.
    #[must_use]
    pub fn spec(&self) -> ShardSpecRef<'_> {
        self.initial_snapshot().spec
    }

    /// Where to start. Checkpoints do not show here.
    #[must_use]
    pub fn cursor(&self) -> CursorUpdate<'_> {
        self.initial_snapshot().cursor
    }

    /// Whose shard it is.
    #[must_use]
    pub const fn tenant(&self) -> TenantId {
        self.granted.lease.tenant()
    }

    /// Who holds it.
    #[must_use]
    pub const fn worker(&self) -> WorkerId {
        self.granted.lease.owner()
    }

    /// Which shard it is.
    #[must_use]
    pub const fn shard_key(&self) -> ShardKey {
        self.granted.lease.key()
    }

    /// What else there was to do at the acquire or the last renewal.
    #[must_use]
    pub const fn capacity(&self) -> CapacityHint {
        self.granted.capacity
    }

    /// Takes over what a renewal brought. A replayed one may know less than the lease does.
    pub(crate) fn renewed(&mut self, new_deadline: LogicalTime, capacity: CapacityHint) {
        let lease = &mut self.granted.lease;
        lease.set_deadline(new_deadline.max(lease.deadline()));
        self.granted.capacity = capacity;
    }

    /// Takes over what a residual split left.
    pub(crate) fn gave_away(&mut self, plan: &SplitResidualPlan<'_>, residual: ShardId) {
        // A replay of a split that later ones have overtaken must not widen the range again.
        let (new_end, end) = (plan.parent.end(), self.spec().end());
        let narrows = !new_end.is_empty() && (end.is_empty() || new_end < end);
        if narrows {
            self.scratch.write_spec(plan.parent);
        }
        self.scratch.note_spawned(residual);
    }
}

/// A shard held by a worker.
#[derive(Debug)]
pub struct WorkerSession<'b, B> {
    backend: &'b mut B,
    held: HeldShard,
}

impl<B> Deref for WorkerSession<'_, B> {
    type Target = HeldShard;

    fn deref(&self) -> &HeldShard {
        &self.held
    }
}

impl<'b, B: CoordinationBackend> WorkerSession<'b, B> {
    /// Acquires a shard.
    pub fn new(
        backend: &'b mut B,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
    ) -> Result<Self, AcquireError> {
        let mut scratch = AcquireScratch::new();
        let acquired = backend.acquire_and_restore_into(now, tenant, key, worker, &mut scratch)?;
        let granted = Granted::of(&acquired);
        Ok(Self { backend, held: HeldShard::new(granted, scratch) })
    }

    /// Claims some free shard of a run.
    pub fn claim(
        backend: &'b mut B,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<Self, ClaimError>
    where
        B: ShardClaiming,
    {
        let mut scratch = AcquireScratch::new();
        let acquired = backend.claim_next_available(now, tenant, run, worker, &mut scratch)?;
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
    pub fn renew(&mut self, now: LogicalTime) -> Result<RenewResult, RenewError> {
        let renewed = self.backend.renew(now, self.held.tenant(), self.held.lease())?;
        self.held.renewed(renewed.new_deadline, renewed.capacity);
        Ok(renewed)
    }

    /// Moves the cursor.
    pub fn checkpoint(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        self.backend.checkpoint(now, self.held.tenant(), self.held.lease(), cursor, op_id)
    }

    /// Moves the cursor and commits the caller's writes with it; see
    /// [`TransactionalBackend::checkpoint_with`].
    pub fn checkpoint_with<E>(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&B::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, CommitError<CheckpointError, E>>
    where
        B: TransactionalBackend,
    {
        let tenant = self.held.tenant();
        self.backend.checkpoint_with(now, tenant, self.held.lease(), cursor, op_id, writes)
    }

    /// Moves the cursor and extends the lease with it.
    pub fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let outcome = self.backend.checkpoint_and_renew(now, tenant, lease, cursor, op_id)?;
        let renewal = outcome.as_ref().into_inner();
        self.held.renewed(renewal.new_deadline, renewal.capacity);
        Ok(outcome)
    }

    /// Moves the cursor, extends the lease and commits the caller's writes; see
    /// [`TransactionalBackend::checkpoint_and_renew_with`].
    pub fn checkpoint_and_renew_with<E>(
        &mut self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&B::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CommitError<CheckpointError, E>>
    where
        B: TransactionalBackend,
    {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let outcome =
            self.backend.checkpoint_and_renew_with(now, tenant, lease, cursor, op_id, writes)?;
        let renewal = outcome.as_ref().into_inner();
        self.held.renewed(renewal.new_deadline, renewal.capacity);
        Ok(outcome)
    }

    /// Gives the rest of the range to a new shard and goes on with what is left.
    pub fn split_residual(
        &mut self,
        now: LogicalTime,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        let (tenant, lease) = (self.held.tenant(), self.held.lease());
        let outcome = self.backend.split_residual(now, tenant, lease, plan, op_id)?;
        self.held.gave_away(plan, outcome.as_ref().into_inner().residual);
        Ok(outcome)
    }

    /// Marks the shard as done.
    pub fn complete(
        self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, EndError<Self, CompleteError>> {
        let ended =
            self.backend.complete(now, self.held.tenant(), self.held.lease(), cursor, op_id);
        self.end(ended)
    }

    /// Marks the shard as done and commits the caller's writes with it; see
    /// [`TransactionalBackend::complete_with`].
    pub fn complete_with<E>(
        self,
        now: LogicalTime,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
        writes: impl FnOnce(&B::Transaction<'_>) -> Result<(), E>,
    ) -> Result<IdempotentOutcome<()>, EndError<Self, CommitError<CompleteError, E>>>
    where
        B: TransactionalBackend,
    {
        let tenant = self.held.tenant();
        let ended =
            self.backend.complete_with(now, tenant, self.held.lease(), cursor, op_id, writes);
        self.end(ended)
    }

    /// Halts the shard.
    pub fn park(
        self,
        now: LogicalTime,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, EndError<Self, ParkError>> {
        let ended =
            self.backend.park_shard(now, self.held.tenant(), self.held.lease(), reason, op_id);
        self.end(ended)
    }

    /// Replaces the shard by children.
    pub fn split_replace(
        self,
        now: LogicalTime,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, EndError<Self, SplitReplaceError>> {
        let ended =
            self.backend.split_replace(now, self.held.tenant(), self.held.lease(), plan, op_id);
        self.end(ended)
    }

    /// Releases the shard, its cursor kept.
    pub fn release(self, now: LogicalTime) -> Result<(), EndError<Self, ReleaseError>> {
        let ended = self.backend.release(now, self.held.tenant(), self.held.lease());
        self.end(ended)
    }

    /// Hands the session back unless the error says that its lease is over.
    fn end<T, E: LeasedOperationError>(self, ended: Result<T, E>) -> Result<T, EndError<Self, E>> {
        ended.map_err(|error| EndError::of(error, self))
    }
}
