//! What an imported or restored fold remembers of its artifact, in a file of its own, until it goes on: the
//! manifest proves a log that the fold's cursor by itself may not.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::ExportManifest;
use super::import::read_manifest_at;
use crate::kv::{LogCursor, WatchCursor};

/// The artifact of a fold that stands where it did.
pub(crate) struct Imported {
    path: PathBuf,
    manifest: Option<ExportManifest>,
}

impl Imported {
    /// Of a fold that stands at a cursor. A file of another one is of no use, and goes.
    pub(crate) fn load(path: PathBuf, at: &WatchCursor) -> Self {
        let manifest = match path.try_exists() {
            Ok(false) => None,
            _ => read_manifest_at(&path)
                .inspect_err(|error| tracing::warn!(%error, "of the artifact of the fold"))
                .ok(),
        };
        let mut imported = Self { path, manifest };
        imported.passed(at);
        imported
    }

    pub(crate) fn manifest(&self) -> Option<&ExportManifest> {
        self.manifest.as_ref()
    }

    /// The fold is about to stand where an artifact does. Counts for nothing until it is there.
    pub(crate) fn set(&mut self, manifest: &ExportManifest) -> io::Result<()> {
        write_imported(&self.path, manifest)?;
        self.manifest = Some(manifest.clone());
        Ok(())
    }

    /// The fold stands at a cursor now.
    pub(crate) fn passed(&mut self, at: &WatchCursor) {
        let is_there = |manifest: &ExportManifest| {
            LogCursor::decode(at).is_ok_and(|at| manifest.known_at(&at).is_some())
        };
        if self.manifest.take_if(|manifest| !is_there(manifest)).is_some() {
            // It is not looked at again in any case.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Writes the file for a fold that is about to be at its place.
pub(super) fn write_imported(path: &Path, manifest: &ExportManifest) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(&manifest.encode())?;
    file.sync_all()
}
