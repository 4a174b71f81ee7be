//! Refusals of an acquire, which needs no lease and so has a vocabulary of its own.

use core::fmt;

use gossip_contracts::identity::{LogicalTime, RunId, ShardKey, TenantId, WorkerId};

use super::infra::InfraError;
use crate::run::RunStatus;
use crate::status::ShardStatus;

/// Why a shard was not granted.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum AcquireError {
    /// The tenant has no such shard.
    #[error("there is no shard {shard}")]
    ShardNotFound { shard: ShardKey },
    /// The record found belongs to another tenant. A backend that looks up by tenant never
    /// returns this.
    #[error("the shard does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// Workers are finished with the shard.
    #[error("shard {shard} is {status:?}")]
    ShardTerminal { shard: ShardKey, status: ShardStatus },
    /// Another worker holds it.
    #[error("another worker holds the shard until {lease_deadline}")]
    AlreadyLeased {
        /// That worker; never shown.
        current_owner: WorkerId,
        /// When the shard is free for others, at the latest: the end of its lease, and the backend's
        /// allowance for clocks that differ.
        lease_deadline: LogicalTime,
    },
    /// The shard's run is not active.
    #[error("run {run} is {status:?}")]
    RunNotActive { run: RunId, status: RunStatus },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

impl AcquireError {
    /// Whether the same acquire may succeed later, with nobody doing anything but work.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::AlreadyLeased { .. } => true,
            Self::ShardNotFound { .. }
            | Self::TenantMismatch { .. }
            | Self::ShardTerminal { .. }
            | Self::RunNotActive { .. } => false,
            Self::BackendError(error) => error.is_retryable(),
        }
    }
}

/// The variant, and as `Display`: the owner is not for showing.
impl fmt::Debug for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self {
            Self::ShardNotFound { .. } => "ShardNotFound",
            Self::TenantMismatch { .. } => "TenantMismatch",
            Self::ShardTerminal { .. } => "ShardTerminal",
            Self::AlreadyLeased { .. } => "AlreadyLeased",
            Self::RunNotActive { .. } => "RunNotActive",
            Self::BackendError(_) => "BackendError",
        };
        write!(f, "AcquireError::{variant}({self})")
    }
}
