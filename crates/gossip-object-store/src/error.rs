//! What a store answers, for the caller.

use gossip_contracts::connector::ConnectorError;
use object_store::Error;

/// Why an address cannot be a source.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is no address of a bucket.
    #[error("{url}: it is no address of a bucket; one looks like s3://bucket/prefix")]
    NotABucket {
        /// The address as given.
        url: String,
    },
    /// It has a user or a password in it. Neither is repeated.
    #[error("{scheme}://…: it names credentials, which are read from the environment")]
    Credentials {
        /// The scheme of the address.
        scheme: String,
    },
    /// What is configured does not do.
    #[error("{url}: {message}")]
    Config {
        /// The address as given.
        url: String,
        /// What is wrong.
        message: String,
    },
    /// The store does not answer, or not with what was asked for.
    #[error("{url}: {reason}")]
    Store {
        /// The address as given.
        url: String,
        /// What happened.
        reason: String,
    },
}

/// The HTTP status of an answer for which object_store has no variant. It is in words only.
pub(crate) fn status(error: &Error) -> Option<u16> {
    let text = error.to_string();
    let (_, status) = text.split_once("status code: ")?;
    status.get(..3)?.parse().ok()
}

/// An answer in the contract's words. They hold no key: the store's own may.
pub(crate) fn connector_error(operation: &'static str, error: &Error) -> ConnectorError {
    let permanent = |message: &str| {
        let message = message.to_owned();
        ConnectorError::Permanent { operation, message }
    };
    match error {
        Error::NotFound { .. } => ConnectorError::NotFound { operation },
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            ConnectorError::PermissionDenied { operation }
        }
        Error::Precondition { .. } | Error::NotModified { .. } => ConnectorError::Retryable {
            operation,
            message: "the object changed while it was read".to_owned(),
        },
        Error::InvalidPath { .. } => permanent("the bucket has a name that cannot be listed"),
        Error::Generic { .. } => match status(error) {
            Some(404) => ConnectorError::NotFound { operation },
            Some(401 | 403) => ConnectorError::PermissionDenied { operation },
            Some(status @ 400..500) if status != 408 && status != 429 => {
                permanent(&format!("the store refuses it with status {status}"))
            }
            _ => ConnectorError::Retryable {
                operation,
                message: "the store did not answer as it should".to_owned(),
            },
        },
        _ => permanent("the store cannot do that"),
    }
}
