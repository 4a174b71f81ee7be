//! Failures of a backend's storage, as opposed to refusals of the protocol.

/// A backend could not do its work. The operation may or may not have been carried out; retrying
/// it under the same operation id is safe.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum InfraError {
    /// It may work another time: a timeout, a lost connection, contention.
    #[error("{operation}: {message}")]
    Transient {
        /// The failing step, such as `checkpoint.txn`.
        operation: &'static str,
        /// What happened. Never holds keys, tokens or owners.
        message: String,
    },
    /// The same request is refused again until somebody changes the program, its settings or the
    /// store: missing rights, a limit that it breaks, a full cluster.
    #[error("{operation}: {message}")]
    Refused {
        /// The step that failed, as in `renew.txn`.
        operation: &'static str,
        /// Why, and what to change. Never holds keys, tokens or owners.
        message: String,
    },
    /// What is stored cannot be right: bytes that do not decode, a record that must be there.
    #[error("{operation}: stored data is damaged: {message}")]
    Corruption {
        /// The step that failed, as in `renew.txn`.
        operation: &'static str,
        /// What is wrong. Never holds keys, tokens or owners.
        message: String,
    },
}

impl InfraError {
    /// A failure that may pass.
    pub fn transient(operation: &'static str, message: impl Into<String>) -> Self {
        Self::Transient { operation, message: message.into() }
    }

    /// A refusal that trying again does not change.
    pub fn refused(operation: &'static str, message: impl Into<String>) -> Self {
        Self::Refused { operation, message: message.into() }
    }

    /// Damaged data.
    pub fn corruption(operation: &'static str, message: impl Into<String>) -> Self {
        Self::Corruption { operation, message: message.into() }
    }

    /// Whether trying again may help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Transient { .. })
    }
}
