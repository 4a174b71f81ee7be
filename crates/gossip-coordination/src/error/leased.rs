//! What every refusal of an operation under a lease can tell.

use super::commit::CommitError;
use super::infra::InfraError;
use super::operation::{
    CheckpointError, CompleteError, ParkError, ReleaseError, RenewError, SplitError,
};

/// The error of an operation that needs a lease.
pub trait LeasedOperationError {
    /// Whether the lease is known to be over: whoever holds it stops working on its shard. If not, the
    /// request was refused for itself before the lease was looked at, or the lease is live, or nobody
    /// knows because the backend failed.
    fn lease_is_over(&self) -> bool;

    /// How the backend failed, if that is what happened.
    fn backend_error(&self) -> Option<&InfraError>;

    /// Whether the same request under the same operation id may succeed later.
    fn is_retryable(&self) -> bool;
}

macro_rules! leased {
    ($($error:ident [$($full:ident)?])*) => {$(
        impl LeasedOperationError for $error {
            fn lease_is_over(&self) -> bool {
                matches!(
                    self,
                    Self::ShardNotFound { .. }
                        | Self::TenantMismatch { .. }
                        | Self::StaleFence { .. }
                        | Self::LeaseExpired { .. }
                        | Self::ShardTerminal { .. }
                        | Self::RunNotActive { .. }
                )
            }

            fn backend_error(&self) -> Option<&InfraError> {
                match self {
                    Self::BackendError(error) => Some(error),
                    _ => None,
                }
            }

            fn is_retryable(&self) -> bool {
                match self {
                    Self::BackendError(error) => error.is_retryable(),
                    $(Self::$full(_) => true,)?
                    _ => false,
                }
            }
        }
    )*};
}

leased! {
    RenewError []
    ReleaseError []
    ParkError []
    CheckpointError [ResourceExhausted]
    CompleteError [ResourceExhausted]
    SplitError [ResourceExhausted]
}

/// Writes of the caller that fail end no lease, and are the caller's to judge.
impl<R: LeasedOperationError, E> LeasedOperationError for CommitError<R, E> {
    fn lease_is_over(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.lease_is_over())
    }

    fn backend_error(&self) -> Option<&InfraError> {
        match self {
            Self::Refused(refusal) => refusal.backend_error(),
            Self::Caller(_) => None,
        }
    }

    fn is_retryable(&self) -> bool {
        matches!(self, Self::Refused(refusal) if refusal.is_retryable())
    }
}
