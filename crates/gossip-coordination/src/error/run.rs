//! Refusals of operations on runs.

use core::fmt;

use gossip_contracts::coordination::{ManifestValidationError, ShardLimitScope};
use gossip_contracts::identity::{FenceEpoch, OpId, RunId, TenantId};

use super::infra::InfraError;
use crate::run::{RunConfigError, RunStatus};
use crate::status::ShardStatus;

/// An operation id that was used before with other parameters. Its hashes cannot be taken out.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("operation {op_id} was used before with other parameters")]
pub struct RunOpIdConflict {
    op_id: OpId,
    expected_hash: u64,
    actual_hash: u64,
}

impl RunOpIdConflict {
    pub(crate) const fn new(op_id: OpId, expected_hash: u64, actual_hash: u64) -> Self {
        Self { op_id, expected_hash, actual_hash }
    }

    /// The operation id that was used twice.
    #[must_use]
    pub const fn op_id(&self) -> OpId {
        self.op_id
    }
}

impl fmt::Debug for RunOpIdConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunOpIdConflict({self})")
    }
}

/// Why a run was not created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum CreateRunError {
    /// The configuration cannot work.
    #[error("the run's configuration is not valid: {0}")]
    InvalidConfig(#[from] RunConfigError),
    /// The id is taken.
    #[error("run {run} exists already")]
    RunAlreadyExists { run: RunId },
    /// The run was created, but its shards were refused.
    #[error("the run's shards were not registered: {0}")]
    RegisterShardsFailed(#[source] RegisterShardsError),
    /// The run exists, but could not be looked at.
    #[error("the existing run could not be read: {0}")]
    GetRunFailed(#[source] GetRunError),
    /// The run exists with another configuration.
    #[error("run {run} exists with another configuration")]
    ConfigMismatch { run: RunId },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why shards were not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum RegisterShardsError {
    /// The tenant has no such run.
    #[error("there is no such run")]
    RunNotFound,
    /// The run belongs to another tenant.
    #[error("the run does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// Shards are registered once, before the run is active.
    #[error("shards cannot be registered while the run is {status:?}")]
    WrongStatus { status: RunStatus },
    /// The manifest is faulty.
    #[error("the manifest is not valid: {0}")]
    ManifestInvalid(#[from] ManifestValidationError),
    /// The operation id was used for something else.
    #[error("{0}")]
    OpIdConflict(#[from] RunOpIdConflict),
    /// Another registration of the run has begun meanwhile, and this one may not go on, nor begin
    /// again under its id.
    #[error("operation {by} registers the run's shards, and has taken this one's place")]
    Overtaken {
        /// The other one's id.
        by: OpId,
    },
    /// A ceiling on the number of shards would be passed.
    #[error(
        "the {scope:?} ceiling of {max} shards leaves no room: {current} exist, {additional} more were asked for"
    )]
    ShardLimitExceeded {
        /// Existing shards under that ceiling.
        current: usize,
        /// Asked for.
        additional: usize,
        max: usize,
        /// Whether the tenant or the run is full.
        scope: ShardLimitScope,
    },
    /// The backend has no room.
    #[error("the backend has run out of {resource}")]
    ResourceExhausted {
        /// Of what.
        resource: &'static str,
    },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why a run could not be looked at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GetRunError {
    /// The tenant has no such run.
    #[error("there is no such run")]
    RunNotFound,
    /// The run belongs to another tenant.
    #[error("the run does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why a run was not completed, failed or cancelled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum RunTransitionError {
    /// The tenant has no such run.
    #[error("there is no such run")]
    RunNotFound,
    /// The run belongs to another tenant.
    #[error("the run does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// The run has ended.
    #[error("the run is {status:?}")]
    RunTerminal {
        /// How.
        status: RunStatus,
    },
    /// The run cannot go there from where it is.
    #[error("a run cannot go from {status:?} to {target:?}")]
    WrongStatus {
        status: RunStatus,
        /// Where it was to go.
        target: RunStatus,
    },
    /// A run is complete when every shard is done or split.
    #[error("{active} shards are active and {parked} parked")]
    ShardsRemaining {
        /// Shards with work left.
        active: u64,
        /// Halted shards.
        parked: u64,
    },
    /// The operation id was used for something else.
    #[error("{0}")]
    OpIdConflict(#[from] RunOpIdConflict),
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why a shard was not set going again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum UnparkError {
    /// The tenant has no such shard.
    #[error("there is no such shard")]
    ShardNotFound,
    /// The shard belongs to another tenant.
    #[error("the shard does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// The run has ended.
    #[error("the run is {status:?}")]
    RunTerminal {
        /// How.
        status: RunStatus,
    },
    /// The shard is not parked.
    #[error("the shard is {status:?}, not parked")]
    NotParked { status: ShardStatus },
    /// The operation id was used for something else.
    #[error("{0}")]
    OpIdConflict(#[from] RunOpIdConflict),
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why a run was not deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum DeleteRunError {
    /// The tenant has no such run: it never had, or it is deleted.
    #[error("there is no such run")]
    RunNotFound,
    /// The run belongs to another tenant.
    #[error("the run does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// Only a run that has ended is deleted.
    #[error("the run is {status:?}; only one that has ended is deleted")]
    RunNotEnded { status: RunStatus },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Why a lease was not revoked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RevokeLeaseError {
    /// The tenant has no such shard.
    #[error("there is no such shard")]
    ShardNotFound,
    /// The shard belongs to another tenant.
    #[error("the shard does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// The shard has not reached that fence, so no lease was granted under it.
    #[error("the shard is at fence {current}; no lease was granted under {presented}")]
    FenceNotGranted {
        /// The fence of the request.
        presented: FenceEpoch,
        /// The shard's fence.
        current: FenceEpoch,
    },
    /// The run has ended, and with it every lease.
    #[error("the run is {status:?}")]
    RunTerminal {
        /// How.
        status: RunStatus,
    },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

/// Only the backend's own failures pass by themselves.
macro_rules! retryable_if_the_backend_is {
    ($($error:ident)*) => {$(
        impl $error {
            /// Whether the same request, under the same operation id if it has one, may succeed later.
            #[must_use]
            pub const fn is_retryable(&self) -> bool {
                matches!(self, Self::BackendError(error) if error.is_retryable())
            }
        }
    )*};
}

retryable_if_the_backend_is! { GetRunError UnparkError DeleteRunError RevokeLeaseError }

impl CreateRunError {
    /// Whether the same request under the same operation id may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::RegisterShardsFailed(error) => error.is_retryable(),
            Self::GetRunFailed(error) => error.is_retryable(),
            Self::BackendError(error) => error.is_retryable(),
            Self::InvalidConfig(_)
            | Self::RunAlreadyExists { .. }
            | Self::ConfigMismatch { .. } => false,
        }
    }
}

impl RegisterShardsError {
    /// Whether the same request under the same operation id may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::ResourceExhausted { .. } => true,
            Self::BackendError(error) => error.is_retryable(),
            _ => false,
        }
    }
}

impl RunTransitionError {
    /// Whether the same request under the same operation id may succeed later, with nobody doing
    /// anything but work: shards that are active get done, parked ones stay.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::ShardsRemaining { active, .. } => *active > 0,
            Self::BackendError(error) => error.is_retryable(),
            _ => false,
        }
    }
}
