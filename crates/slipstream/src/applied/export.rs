//! Requests for a copy of the fold, answered between two batches.

use std::path::PathBuf;

use tokio::sync::oneshot;

/// Asks a running fold for an artifact of itself, as it is after everything that waits has been
/// stored.
pub(super) struct ExportRequest {
    /// Where the artifact goes.
    #[expect(dead_code, reason = "stores cannot export yet")]
    pub(super) dir: PathBuf,
    /// The answer.
    pub(super) reply: oneshot::Sender<Result<(), ExportError>>,
}

/// Why there is no artifact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Stores cannot export yet.
    #[error("this store cannot export itself")]
    Unsupported,
    /// The fold has ended.
    #[error("the fold has ended")]
    Ended,
}
