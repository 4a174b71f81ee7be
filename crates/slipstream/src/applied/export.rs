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
    pub(super) reply: oneshot::Sender<Result<ExportManifest, ArtifactError>>,
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
    /// Copies the fold, and leaves the rest to a thread that the fold does not wait for. Whoever has
    /// stopped waiting finds nothing.
    pub(super) fn answer<S: SnapshotStore>(self, store: &mut S, about: About) {
        let Self { dir, reply } = self;
        if reply.is_closed() {
            return;
        }
        match Export::begin(store, &dir, about) {
            Err(error) => {
                let _ = reply.send(Err(error));
            }
            Ok(export) => {
                tokio::task::spawn_blocking(move || match export.prepare() {
                    Ok(staged) => staged.publish_for(reply),
                    Err(error) => {
                        let _ = reply.send(Err(error));
                    }
                });
            }
        }
    }
}
