//! Failures of operations that commit the caller's writes.

use super::infra::InfraError;

/// Why an operation with the caller's writes was not carried out. Neither part was committed, unless
/// the refusal is a failed commit: then both were or neither.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommitError<R, E> {
    /// The coordinator refused or failed.
    #[error("{0}")]
    Refused(R),
    /// The caller's writes failed.
    #[error("{0}")]
    Caller(E),
}

impl<R: From<InfraError>, E> From<InfraError> for CommitError<R, E> {
    fn from(error: InfraError) -> Self {
        Self::Refused(error.into())
    }
}

impl<R> CommitError<R, core::convert::Infallible> {
    /// The refusal; there were no writes that could have failed.
    #[must_use]
    pub fn into_refusal(self) -> R {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Caller(never) => match never {},
        }
    }
}
