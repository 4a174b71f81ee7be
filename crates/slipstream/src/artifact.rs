//! Artifacts: a fold as files that travel.
//!
//! When a log has evicted what it held, the folds are the only full copies, and a new node can begin
//! from one of them: it imports an artifact and reads on from the artifact's cursor.
//!
//! An artifact is a directory. `MANIFEST.json` says what it is ([`ExportManifest`]), and the files of
//! the fold are below `data`. [F4, F5 and F6](crate::SnapshotStore) are about it. What this module
//! leaves to others: where artifacts are kept, and which of them is the newest.

mod early;
mod export;
mod import;
mod imported;
mod manifest;
mod stage;

use std::io;
use std::path::Path;

pub(crate) use self::early::ReadBehind;
pub use self::export::{About, Export};
pub(crate) use self::import::Taking;
pub use self::import::{Import, TakeFiles, import, read_manifest};
pub(crate) use self::imported::Imported;
pub use self::manifest::{
    ArtifactFile, ArtifactInvalid, Compression, ExportManifest, MAX_MANIFEST_LEN,
};
pub(crate) use self::stage::Staged;
use crate::snapshot::SnapshotError;

/// The name of the manifest in an artifact.
pub const MANIFEST: &str = "MANIFEST.json";
/// The name of the directory of the fold's files in an artifact.
pub const DATA: &str = "data";

/// Why there is no artifact, or no fold of it. Nothing is where it would be, but for
/// [`NotDurable`](Self::NotDurable).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactError {
    /// The artifact is not what it should be: another one may be.
    #[error("the artifact is invalid: {0}")]
    Invalid(#[from] ArtifactInvalid),
    /// Something is where the artifact, or the fold, would be.
    #[error("there is something at the destination already")]
    Exists,
    /// The store has no files that could travel.
    #[error("this store cannot export itself")]
    Unsupported,
    /// The fold is of other keys than its artifact would say.
    #[error("the fold is of another scope")]
    OtherScope,
    /// The fold has no cursor, or is being repaired: what it holds is no state of the bucket.
    #[error("the fold is not complete")]
    Incomplete,
    /// The copy of the fold, opened again, is not what the fold was.
    #[error("the copy of the fold is not the fold: {0}")]
    Copy(String),
    /// The fold could not be copied, or what was imported could not be opened by the file system's
    /// fault.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// It is at the destination, and whole; but that it is there was not synced, so that a crash of the
    /// machine may take it away.
    #[error("it is there, and may not be after a crash of the machine: {0}")]
    NotDurable(#[source] io::Error),
    /// The file system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Removes the artifact at a path, if there is one; anything else that is there is somebody's, and stays.
///
/// # Errors
/// What the file system says.
pub fn remove(artifact: &Path) -> io::Result<()> {
    match artifact.join(MANIFEST).try_exists()? {
        true => std::fs::remove_dir_all(artifact),
        false => Ok(()),
    }
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> ArtifactError {
    move |source| ArtifactError::Io { doing, source }
}
