//! Refusals of a claim, which tries shard after shard and so is coarser than an acquire.

use gossip_contracts::identity::{LogicalTime, RunId, TenantId};

use super::infra::InfraError;
use super::run::GetRunError;
use crate::run::RunStatus;

/// Why no shard was claimed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ClaimError {
    /// Every shard is held or finished.
    #[error("no shard is free{}", match earliest_deadline {
        Some(deadline) => format!(" before {deadline}"),
        None => String::new(),
    })]
    NoneAvailable {
        /// When the first of the shards that are held is free for others, at the latest; the backend's
        /// allowance for clocks that differ is in it.
        earliest_deadline: Option<LogicalTime>,
    },
    /// The tenant has no such run.
    #[error("there is no such run")]
    RunNotFound,
    /// The run belongs to another tenant.
    #[error("the run does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// The run is not active.
    #[error("run {run} is {status:?}")]
    RunNotActive { run: RunId, status: RunStatus },
    /// The worker came back too soon after finding nothing.
    #[error("this worker may claim again at {retry_after}")]
    Throttled {
        /// When it may claim again.
        retry_after: LogicalTime,
    },
    /// The backend failed.
    #[error("{0}")]
    BackendError(#[from] InfraError),
}

impl ClaimError {
    /// Whether the same claim may succeed later, with nobody doing anything but work.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoneAvailable { .. } | Self::Throttled { .. } => true,
            Self::RunNotActive { status, .. } => !status.is_terminal(),
            Self::RunNotFound | Self::TenantMismatch { .. } => false,
            Self::BackendError(error) => error.is_retryable(),
        }
    }
}

impl From<GetRunError> for ClaimError {
    fn from(error: GetRunError) -> Self {
        match error {
            GetRunError::RunNotFound => Self::RunNotFound,
            GetRunError::TenantMismatch { expected } => Self::TenantMismatch { expected },
            GetRunError::BackendError(source) => Self::BackendError(source),
        }
    }
}
