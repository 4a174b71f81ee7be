//! What must be covered: every operation with everything that it may answer.
//!
//! The refusals of an operation are read off its error type, whose variants are matched without a
//! wildcard: a new variant does not compile until it has a name here, and then no test passes until
//! a case covers it.

use gossip_contracts::coordination::{
    ManifestValidationError, ShardLimitScope, SplitValidationError,
};

use crate::error::{
    AcquireError, CheckpointError, ClaimError, CompleteError, CreateRunError, DeleteRunError,
    GetRunError, InfraError, ParkError, RegisterShardsError, ReleaseError, RenewError,
    RevokeLeaseError, RunTransitionError, SplitError, UnparkError,
};
use crate::run::{RunConfigError, RunStatus};

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($variant:ident)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names are those of the operations and their answers")]
        pub enum $name { $($variant),* }

        impl $name {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
        }
    };
}

named! {
    /// An operation of a coordinator.
    Operation {
        Acquire Renew Release Checkpoint CheckpointAndRenew Complete Park SplitReplace SplitResidual
        Claim ReacquireOwn CollectCandidates
        CreateRun RegisterShards CreateRunWithShards
        CompleteRun FailRun CancelRun DeleteRun Unpark RevokeLease NoteIdle
        GetRun GetRunProgress ListShards ListShardsPage ListRuns
    }
}

impl Operation {
    /// The operations that present a lease.
    pub const LEASED: &'static [Self] = &[
        Self::Renew,
        Self::Release,
        Self::Checkpoint,
        Self::CheckpointAndRenew,
        Self::Complete,
        Self::Park,
        Self::SplitReplace,
        Self::SplitResidual,
    ];

    /// The operations that present a lease and an operation id.
    pub const LOGGED: &'static [Self] = &[
        Self::Checkpoint,
        Self::CheckpointAndRenew,
        Self::Complete,
        Self::Park,
        Self::SplitReplace,
        Self::SplitResidual,
    ];
}

named! {
    /// Something that an operation may answer or do.
    Aspect {
        // It is carried out, or had been; it emits its event; the shard that it is about stays
        // active, or does not; a shard tried too often is parked on the way.
        Executes Replays Emits Keeps Ends Poisons
        // It is asked in a run that stands there.
        WhenInitializing WhenActive WhenDone WhenFailed WhenCancelled
        // Refusals.
        ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
        OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge
        SplitInvalid CheckpointMissingKey AlreadyLeased ResourceExhausted BackendError
        NoneAvailable RunNotFound Throttled
        InvalidConfig RunAlreadyExists RegisterShardsFailed GetRunFailed ConfigMismatch
        FenceNotGranted RunNotEnded WrongStatus ManifestInvalid Overtaken ShardLimitExceeded RunTerminal ShardsRemaining NotParked
        // What is wrong with a split, a manifest, a configuration.
        TooFewChildren TooManyChildren PartsTooLarge ChildInvalid StartMismatch Gap Overlap
        EndMismatch CursorNotKept SpawnLimitExceeded TenantCeiling GlobalCeiling DerivedIdCollision
        Empty TooManyShards DerivedShardId SpecInvalid UnboundedRange CursorInvalid
        DuplicateShardId OverlappingRanges
        ZeroLeaseDuration ZeroShardRetries
    }
}

impl From<RunStatus> for Aspect {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Initializing => Self::WhenInitializing,
            RunStatus::Active => Self::WhenActive,
            RunStatus::Done => Self::WhenDone,
            RunStatus::Failed => Self::WhenFailed,
            RunStatus::Cancelled => Self::WhenCancelled,
        }
    }
}

/// An operation and something that it may answer or do.
pub type Cell = (Operation, Aspect);

/// An operation with all that it may answer or do.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The operation that the row is of.
    pub operation: Operation,
    /// What it does, and what can be wrong with its input.
    pub aspects: &'static [Aspect],
    /// The variants of its error type.
    refusals: &'static [Aspect],
    /// Those of them that belong to another operation with the same error type.
    never: &'static [Aspect],
}

impl Row {
    /// The cells of the row.
    pub fn cells(self) -> impl Iterator<Item = Cell> {
        let refusals = self.refusals.iter().filter(move |aspect| !self.never.contains(aspect));
        let statuses = RunStatus::ALL.map(Aspect::from);
        let aspects = self.aspects.iter().chain(refusals).copied().chain(statuses);
        aspects.map(move |aspect| (self.operation, aspect))
    }
}

/// Why no case can cover this cell, if that is so.
#[must_use]
pub fn out_of_reach((operation, aspect): Cell) -> Option<&'static str> {
    match aspect {
        Aspect::BackendError => Some("a storage fault: the backend's own tests cause those"),
        Aspect::GetRunFailed => Some("needs a run that vanishes between two steps"),
        Aspect::Overtaken => {
            Some("needs two registrations that meet half-way: a test of the backend that has steps")
        }
        Aspect::TenantMismatch if !Operation::LEASED.contains(&operation) => {
            Some("look-up is by tenant: what belongs to another is not found")
        }
        _ => None,
    }
}

macro_rules! matrix {
    ($($operation:ident($error:ident) $(never [$($never:ident)*])?: $($aspect:ident)*;)*) => {
        /// Every operation with all that it may answer or do.
        pub static MATRIX: &[Row] = &[$(Row {
            operation: Operation::$operation,
            aspects: &[$(Aspect::$aspect),*],
            refusals: <$error as Refusal>::ASPECTS,
            never: &[$($(Aspect::$never),*)?],
        }),*];
    };
}

matrix! {
    Acquire(AcquireError): Executes Emits Keeps Poisons;
    Renew(RenewError): Executes Emits Keeps;
    Release(ReleaseError): Executes Emits Keeps;
    Checkpoint(CheckpointError): Executes Emits Keeps Replays;
    CheckpointAndRenew(CheckpointError): Executes Emits Keeps Replays;
    Complete(CompleteError): Executes Emits Ends Replays;
    Park(ParkError): Executes Emits Ends Replays;
    SplitReplace(SplitError): Executes Emits Ends Replays
        TooFewChildren TooManyChildren PartsTooLarge ChildInvalid StartMismatch Gap Overlap
        EndMismatch SpawnLimitExceeded TenantCeiling GlobalCeiling DerivedIdCollision;
    SplitResidual(SplitError): Executes Emits Keeps Replays PartsTooLarge
        ChildInvalid StartMismatch Gap Overlap EndMismatch CursorNotKept
        SpawnLimitExceeded TenantCeiling GlobalCeiling DerivedIdCollision;
    Claim(ClaimError): Executes Emits Keeps Poisons;
    ReacquireOwn(ClaimError) never [NoneAvailable Throttled]: Executes Emits Keeps Poisons;
    CollectCandidates(GetRunError): Executes;
    CreateRun(CreateRunError) never [RegisterShardsFailed GetRunFailed ConfigMismatch]:
        Executes Emits ZeroLeaseDuration ZeroShardRetries;
    RegisterShards(RegisterShardsError): Executes Emits Replays
        Empty TooManyShards DerivedShardId SpecInvalid UnboundedRange CursorInvalid
        CursorOutOfBounds DuplicateShardId OverlappingRanges TenantCeiling GlobalCeiling;
    CreateRunWithShards(CreateRunError) never [RunAlreadyExists]:
        Executes Emits Replays ZeroLeaseDuration;
    CompleteRun(RunTransitionError): Executes Emits Replays;
    FailRun(RunTransitionError) never [ShardsRemaining]: Executes Emits Replays;
    CancelRun(RunTransitionError) never [ShardsRemaining WrongStatus]: Executes Emits Replays;
    DeleteRun(DeleteRunError): Executes Emits;
    Unpark(UnparkError): Executes Emits Keeps Replays;
    RevokeLease(RevokeLeaseError): Executes Emits Keeps Replays;
    NoteIdle(GetRunError): Executes;
    GetRun(GetRunError): Executes;
    GetRunProgress(GetRunError): Executes;
    ListShards(GetRunError): Executes;
    ListShardsPage(GetRunError): Executes;
    ListRuns(InfraError): Executes;
}

/// A refusal that knows its place in the matrix.
pub(super) trait Refusal: Clone + PartialEq + core::fmt::Debug {
    /// Every variant.
    const ASPECTS: &'static [Aspect];

    fn aspect(&self) -> Aspect;

    /// What exactly was wrong with the input, where the variant has kinds.
    fn fault(&self) -> Option<Aspect>;
}

macro_rules! refusals {
    ($($error:ident $(($fault:path))?: $($variant:ident)*;)*) => {$(
        impl Refusal for $error {
            const ASPECTS: &'static [Aspect] = &[$(Aspect::$variant),*];

            fn aspect(&self) -> Aspect {
                match self {
                    $($error::$variant { .. } => Aspect::$variant,)*
                }
            }

            fn fault(&self) -> Option<Aspect> {
                #[allow(unused_mut, unused_assignments, reason = "most have no kinds")]
                let mut fault = None;
                $(fault = $fault(self);)?
                fault
            }
        }
    )*};
}

refusals! {
    AcquireError: ShardNotFound TenantMismatch ShardTerminal AlreadyLeased RunNotActive
        BackendError;
    RenewError: ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
        BackendError;
    ReleaseError: ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
        BackendError;
    CheckpointError: ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal
        RunNotActive OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
        CursorTokenTooLarge CheckpointMissingKey ResourceExhausted BackendError;
    CompleteError: ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal
        RunNotActive OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
        CursorTokenTooLarge CheckpointMissingKey ResourceExhausted BackendError;
    ParkError: ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
        OpIdConflict BackendError;
    SplitError(split_fault): ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal
        RunNotActive OpIdConflict SplitInvalid ResourceExhausted BackendError;
    ClaimError: NoneAvailable RunNotFound TenantMismatch RunNotActive Throttled BackendError;
    CreateRunError(config_fault): InvalidConfig RunAlreadyExists RegisterShardsFailed
        GetRunFailed ConfigMismatch BackendError;
    RegisterShardsError(manifest_fault): RunNotFound TenantMismatch WrongStatus ManifestInvalid
        OpIdConflict Overtaken ShardLimitExceeded ResourceExhausted BackendError;
    RunTransitionError: RunNotFound TenantMismatch RunTerminal WrongStatus ShardsRemaining
        OpIdConflict BackendError;
    UnparkError: ShardNotFound TenantMismatch RunTerminal NotParked OpIdConflict BackendError;
    GetRunError: RunNotFound TenantMismatch BackendError;
    DeleteRunError: RunNotFound TenantMismatch RunNotEnded BackendError;
    RevokeLeaseError: ShardNotFound TenantMismatch FenceNotGranted RunTerminal BackendError;
}

/// Of an operation that is never refused.
impl Refusal for InfraError {
    const ASPECTS: &'static [Aspect] = &[Aspect::BackendError];

    fn aspect(&self) -> Aspect {
        Aspect::BackendError
    }

    fn fault(&self) -> Option<Aspect> {
        None
    }
}

fn ceiling(scope: ShardLimitScope) -> Aspect {
    match scope {
        ShardLimitScope::Tenant => Aspect::TenantCeiling,
        ShardLimitScope::Global => Aspect::GlobalCeiling,
    }
}

fn split_fault(error: &SplitError) -> Option<Aspect> {
    use SplitValidationError as Fault;
    let SplitError::SplitInvalid(fault) = error else { return None };
    Some(match *fault {
        Fault::TooFewChildren { .. } => Aspect::TooFewChildren,
        Fault::TooManyChildren { .. } => Aspect::TooManyChildren,
        Fault::PartsTooLarge { .. } => Aspect::PartsTooLarge,
        Fault::ChildInvalid { .. } => Aspect::ChildInvalid,
        Fault::StartMismatch => Aspect::StartMismatch,
        Fault::Gap { .. } => Aspect::Gap,
        Fault::Overlap { .. } => Aspect::Overlap,
        Fault::EndMismatch => Aspect::EndMismatch,
        Fault::CursorNotKept => Aspect::CursorNotKept,
        Fault::SpawnLimitExceeded { .. } => Aspect::SpawnLimitExceeded,
        Fault::ShardLimitExceeded { scope, .. } => ceiling(scope),
        Fault::DerivedIdCollision { .. } => Aspect::DerivedIdCollision,
        ref other => panic!("the matrix has no name for {other:?}"),
    })
}

fn manifest_fault(error: &RegisterShardsError) -> Option<Aspect> {
    use ManifestValidationError as Fault;
    let fault = match error {
        RegisterShardsError::ShardLimitExceeded { scope, .. } => return Some(ceiling(*scope)),
        RegisterShardsError::ManifestInvalid(fault) => fault,
        _ => return None,
    };
    Some(match fault {
        Fault::Empty => Aspect::Empty,
        Fault::TooManyShards { .. } => Aspect::TooManyShards,
        Fault::DerivedShardId { .. } => Aspect::DerivedShardId,
        Fault::SpecInvalid { .. } => Aspect::SpecInvalid,
        Fault::UnboundedRange { .. } => Aspect::UnboundedRange,
        Fault::CursorInvalid { .. } => Aspect::CursorInvalid,
        Fault::CursorOutOfBounds { .. } => Aspect::CursorOutOfBounds,
        Fault::DuplicateShardId { .. } => Aspect::DuplicateShardId,
        Fault::OverlappingRanges { .. } => Aspect::OverlappingRanges,
        other => panic!("the matrix has no name for {other:?}"),
    })
}

fn config_fault(error: &CreateRunError) -> Option<Aspect> {
    let CreateRunError::InvalidConfig(fault) = error else { return None };
    Some(match fault {
        RunConfigError::ZeroLeaseDuration => Aspect::ZeroLeaseDuration,
        RunConfigError::ZeroShardRetries => Aspect::ZeroShardRetries,
    })
}
