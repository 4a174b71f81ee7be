//! Requests for an artifact of the fold, answered between two batches.

use std::path::PathBuf;

use tokio::sync::oneshot;

use crate::artifact::{About, ArtifactError, Export, ExportManifest};
use crate::snapshot::SnapshotStore;

/// Asks a running fold for an artifact of itself, as it is after everything that waits has been
/// stored.
pub(super) struct ExportRequest {
    /// Where the artifact goes.
    pub(super) dir: PathBuf,
    /// The answer.
    pub(super) reply: oneshot::Sender<Result<ExportManifest, ExportError>>,
}

/// Why there is no artifact.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The fold could not be exported. It goes on.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The fold has ended.
    #[error("the fold has ended")]
    Ended,
}

impl ExportRequest {
    /// Copies the fold, and leaves the rest to a thread that the fold does not wait for.
    pub(super) fn answer<S: SnapshotStore>(self, store: &mut S, about: About) {
        let Self { dir, reply } = self;
        match Export::begin(store, &dir, about) {
            Err(error) => {
                let _ = reply.send(Err(error.into()));
            }
            Ok(export) => {
                tokio::task::spawn_blocking(move || {
                    let _ = reply.send(export.finish().map_err(ExportError::Artifact));
                });
            }
        }
    }
}
