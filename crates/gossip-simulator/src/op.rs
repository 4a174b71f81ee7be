//! Requests and answers as owned values, so that they can wait in a queue, be repeated, be compared
//! with what a model says, and be shown.
//!
//! Only requests whose answer follows from the state are here. Which shard a claim gets is the
//! backend's choice; the simulator takes claims apart into what they decided.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ManifestValidationError, ShardLimitScope,
    ShardSpecRef, SplitValidationError,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    Lease, ParkReason, RunConfig, RunConfigError, RunOpKind, RunProgress, RunStatus, ShardFilter,
    ShardStatus, ShardSummary,
};
use gossip_stdx::InlineVec;

/// A key, a token or metadata. The simulator's are short.
pub type Bytes = InlineVec<u8, 24>;

/// A range with its metadata.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnedRange {
    /// First key.
    pub start: Bytes,
    /// First key behind it; empty for an open end.
    pub end: Bytes,
    /// What travels with it.
    pub metadata: Bytes,
}

impl OwnedRange {
    /// The range as requests carry it.
    #[must_use]
    pub fn as_ref(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(&self.start, &self.end, &self.metadata)
    }
}

impl From<ShardSpecRef<'_>> for OwnedRange {
    fn from(range: ShardSpecRef<'_>) -> Self {
        Self {
            start: range.start().into(),
            end: range.end().into(),
            metadata: range.metadata().into(),
        }
    }
}

/// A cursor that a schedule can keep.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct OwnedCursor {
    /// The last key handled.
    pub last_key: Option<Bytes>,
    /// The source's own token.
    pub token: Option<Bytes>,
}

impl OwnedCursor {
    /// The cursor as requests carry it.
    #[must_use]
    pub fn as_update(&self) -> CursorUpdate<'_> {
        CursorUpdate::new(self.last_key.as_deref(), self.token.as_deref())
    }
}

impl From<CursorUpdate<'_>> for OwnedCursor {
    fn from(cursor: CursorUpdate<'_>) -> Self {
        Self { last_key: cursor.last_key().map(Into::into), token: cursor.token().map(Into::into) }
    }
}

/// A row of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OwnedShardInput {
    /// The id asked for.
    pub shard: ShardId,
    /// The keys that it covers.
    pub range: OwnedRange,
    /// Where it starts.
    pub cursor: OwnedCursor,
}

impl OwnedShardInput {
    /// The row as requests carry it.
    #[must_use]
    pub fn as_ref(&self) -> InitialShardInput<'_> {
        InitialShardInput::new(self.shard, self.range.as_ref(), self.cursor.as_update())
    }
}

impl From<InitialShardInput<'_>> for OwnedShardInput {
    fn from(row: InitialShardInput<'_>) -> Self {
        Self { shard: row.shard, range: row.spec.into(), cursor: row.cursor.into() }
    }
}

/// A request whose answer follows from the state and the time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields are those of the traits' methods")]
pub enum Operation {
    CreateRun {
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    },
    RegisterShards {
        tenant: TenantId,
        run: RunId,
        shards: Vec<OwnedShardInput>,
        op_id: OpId,
    },
    GetRun {
        tenant: TenantId,
        run: RunId,
    },
    GetRunProgress {
        tenant: TenantId,
        run: RunId,
    },
    ListShards {
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
    },
    CompleteRun {
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    },
    FailRun {
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    },
    CancelRun {
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    },
    DeleteRun {
        tenant: TenantId,
        run: RunId,
    },
    RevokeLease {
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    },
    NoteIdle {
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    },
    Unpark {
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    },
    Acquire {
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
    },
    Renew {
        tenant: TenantId,
        lease: Lease,
    },
    Release {
        tenant: TenantId,
        lease: Lease,
    },
    /// With `renews`, `checkpoint_and_renew`.
    Checkpoint {
        tenant: TenantId,
        lease: Lease,
        cursor: OwnedCursor,
        renews: bool,
        op_id: OpId,
    },
    Complete {
        tenant: TenantId,
        lease: Lease,
        cursor: OwnedCursor,
        op_id: OpId,
    },
    Park {
        tenant: TenantId,
        lease: Lease,
        reason: ParkReason,
        op_id: OpId,
    },
    SplitReplace {
        tenant: TenantId,
        lease: Lease,
        children: Vec<OwnedRange>,
        op_id: OpId,
    },
    SplitResidual {
        tenant: TenantId,
        lease: Lease,
        kept: OwnedRange,
        residual: OwnedRange,
        op_id: OpId,
    },
}

/// What a request was answered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A request without an operation id was carried out: a creation, a deletion, a release, a note.
    Accepted,
    /// Carried out by this request.
    Executed(Effect),
    /// Carried out by an earlier request with the same id and parameters.
    Replayed(Effect),
    /// The shard is the worker's.
    Acquired(Box<Acquired>),
    /// The lease ends then.
    Renewed {
        /// When.
        deadline: LogicalTime,
    },
    /// A run's record.
    Run(Box<RunView>),
    /// A run's counts.
    Progress(RunProgress),
    /// A listing, by id.
    Shards(Vec<ShardSummary>),
    /// Nothing was changed, except that an acquire may have parked a poisoned shard.
    Refused(Refusal),
}

/// What an idempotent operation brought about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing to tell.
    Nothing,
    /// Children, in key order.
    Children(Vec<ShardId>),
    /// The shard that took the rest.
    Residual(ShardId),
    /// The lease of a checkpoint that renewed it.
    Renewed {
        /// When it ends.
        deadline: LogicalTime,
        /// Workers without work; `None` where the store has the checkpoint and then could not say, so
        /// that the hint knows nothing.
        idle: Option<u32>,
    },
}

/// An acquired shard; without the hint about other work, which is advice and not an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acquired {
    /// The lease that was granted.
    pub lease: Lease,
    /// Where the shard stood.
    pub status: ShardStatus,
    /// The keys left to read.
    pub range: OwnedRange,
    /// Where the holder before had got to.
    pub cursor: OwnedCursor,
    /// What its cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
    /// The shards that were split from it, oldest first.
    pub spawned: Vec<ShardId>,
}

/// A run's record without fingerprints, which a model does not compute.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RunView {
    /// What it was created with.
    pub config: RunConfig,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: LogicalTime,
    /// When it ended.
    pub completed_at: Option<LogicalTime>,
    /// The shards with which it began.
    pub root_shards: Vec<ShardId>,
    /// Its last operations, oldest first, and when they were carried out.
    pub op_log: Vec<(OpId, RunOpKind, LogicalTime)>,
    /// What it came to.
    pub result: Option<RunResult>,
}

/// Why a request was refused: the variants of all error enums, without fingerprints and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants and fields are those of the error enums")]
pub enum Refusal {
    ShardNotFound,
    RunNotFound,
    TenantMismatch {
        expected: TenantId,
    },
    StaleFence {
        presented: FenceEpoch,
        current: FenceEpoch,
    },
    LeaseExpired {
        deadline: LogicalTime,
        now: LogicalTime,
    },
    ShardTerminal {
        shard: ShardKey,
        status: ShardStatus,
    },
    RunNotActive {
        run: RunId,
        status: RunStatus,
    },
    AlreadyLeased {
        owner: WorkerId,
        deadline: LogicalTime,
    },
    OpIdConflict {
        op_id: OpId,
    },
    CursorRegression {
        old_key: Option<usize>,
        new_key: Option<usize>,
    },
    CursorOutOfBounds {
        last_key: usize,
        start: usize,
        end: usize,
    },
    CursorKeyTooLarge {
        size: usize,
        max: usize,
    },
    CursorTokenTooLarge {
        size: usize,
        max: usize,
    },
    CheckpointMissingKey,
    SplitInvalid(SplitValidationError),
    ManifestInvalid(ManifestValidationError),
    ShardLimitExceeded {
        current: usize,
        additional: usize,
        max: usize,
        scope: ShardLimitScope,
    },
    InvalidConfig(RunConfigError),
    RunAlreadyExists {
        run: RunId,
    },
    ConfigMismatch {
        run: RunId,
    },
    /// Of a run's end, or of an unpark.
    RunTerminal {
        status: RunStatus,
    },
    /// A registration's target is `Active`.
    WrongStatus {
        status: RunStatus,
        target: RunStatus,
    },
    ShardsRemaining {
        active: u64,
        parked: u64,
    },
    NotParked {
        status: ShardStatus,
    },
    FenceNotGranted {
        presented: FenceEpoch,
        current: FenceEpoch,
    },
    RunNotEnded {
        status: RunStatus,
    },
    /// The backend has no room. No model can know.
    ResourceExhausted,
    /// The backend failed; the request may have been carried out. No model can know.
    Backend {
        retryable: bool,
    },
}

impl Operation {
    /// Who asks.
    #[must_use]
    pub fn tenant(&self) -> TenantId {
        match self {
            Self::CreateRun { tenant, .. }
            | Self::RegisterShards { tenant, .. }
            | Self::GetRun { tenant, .. }
            | Self::GetRunProgress { tenant, .. }
            | Self::ListShards { tenant, .. }
            | Self::CompleteRun { tenant, .. }
            | Self::FailRun { tenant, .. }
            | Self::CancelRun { tenant, .. }
            | Self::DeleteRun { tenant, .. }
            | Self::RevokeLease { tenant, .. }
            | Self::NoteIdle { tenant, .. }
            | Self::Unpark { tenant, .. }
            | Self::Acquire { tenant, .. }
            | Self::Renew { tenant, .. }
            | Self::Release { tenant, .. }
            | Self::Checkpoint { tenant, .. }
            | Self::Complete { tenant, .. }
            | Self::Park { tenant, .. }
            | Self::SplitReplace { tenant, .. }
            | Self::SplitResidual { tenant, .. } => *tenant,
        }
    }

    /// The lease that it presents.
    #[must_use]
    pub fn lease(&self) -> Option<&Lease> {
        match self {
            Self::Renew { lease, .. }
            | Self::Release { lease, .. }
            | Self::Checkpoint { lease, .. }
            | Self::Complete { lease, .. }
            | Self::Park { lease, .. }
            | Self::SplitReplace { lease, .. }
            | Self::SplitResidual { lease, .. } => Some(lease),
            _ => None,
        }
    }

    /// Under which id it can be retried.
    #[must_use]
    pub fn op_id(&self) -> Option<OpId> {
        match self {
            Self::RegisterShards { op_id, .. }
            | Self::CompleteRun { op_id, .. }
            | Self::FailRun { op_id, .. }
            | Self::CancelRun { op_id, .. }
            | Self::Unpark { op_id, .. }
            | Self::Checkpoint { op_id, .. }
            | Self::Complete { op_id, .. }
            | Self::Park { op_id, .. }
            | Self::SplitReplace { op_id, .. }
            | Self::SplitResidual { op_id, .. } => Some(*op_id),
            _ => None,
        }
    }

    /// Whether it changes nothing, whatever is answered.
    #[must_use]
    pub const fn only_reads(&self) -> bool {
        matches!(self, Self::GetRun { .. } | Self::GetRunProgress { .. } | Self::ListShards { .. })
    }

    /// The shard that it is about, as the request's tenant would find it.
    #[must_use]
    pub fn shard(&self) -> Option<(TenantId, ShardKey)> {
        match self {
            Self::Unpark { tenant, key, .. }
            | Self::RevokeLease { tenant, key, .. }
            | Self::Acquire { tenant, key, .. } => Some((*tenant, *key)),
            _ => self.lease().map(|lease| (self.tenant(), lease.key())),
        }
    }

    /// The run that it is about, unless it is about a shard.
    #[must_use]
    pub fn run(&self) -> Option<(TenantId, RunId)> {
        match self {
            Self::CreateRun { tenant, run, .. }
            | Self::RegisterShards { tenant, run, .. }
            | Self::GetRun { tenant, run }
            | Self::GetRunProgress { tenant, run }
            | Self::ListShards { tenant, run, .. }
            | Self::CompleteRun { tenant, run, .. }
            | Self::FailRun { tenant, run, .. }
            | Self::CancelRun { tenant, run, .. }
            | Self::DeleteRun { tenant, run }
            | Self::NoteIdle { tenant, run, .. } => Some((*tenant, *run)),
            _ => None,
        }
    }

    /// Whether it asks for the same as `other` under one id: the lease with which it is asked is
    /// not part of that.
    #[must_use]
    pub fn asks_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::RegisterShards { shards: a, .. }, Self::RegisterShards { shards: b, .. }) => {
                a == b
            }
            (
                Self::Checkpoint { cursor: a, renews: c, .. },
                Self::Checkpoint { cursor: b, renews: d, .. },
            ) => (a, c) == (b, d),
            (Self::Complete { cursor: a, .. }, Self::Complete { cursor: b, .. }) => a == b,
            (Self::Park { reason: a, .. }, Self::Park { reason: b, .. }) => a == b,
            (Self::SplitReplace { children: a, .. }, Self::SplitReplace { children: b, .. }) => {
                a == b
            }
            (
                Self::SplitResidual { kept: a, residual: b, .. },
                Self::SplitResidual { kept: c, residual: d, .. },
            ) => (a, b) == (c, d),
            (Self::CompleteRun { result: a, .. }, Self::CompleteRun { result: b, .. }) => a == b,
            (Self::FailRun { .. }, Self::FailRun { .. })
            | (Self::CancelRun { .. }, Self::CancelRun { .. })
            | (Self::Unpark { .. }, Self::Unpark { .. }) => true,
            _ => false,
        }
    }
}
