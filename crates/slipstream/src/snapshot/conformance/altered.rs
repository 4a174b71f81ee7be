//! An append log that does some things otherwise.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use super::super::append_log::{AppendLogOptions, AppendLogReader, AppendLogSnapshot};
use super::super::{EntryRef, FoldFiles, SnapshotError, SnapshotReader, SnapshotStore};
use crate::artifact::ExportManifest;
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

const LOG: FoldFiles<AppendLogSnapshot> = AppendLogSnapshot::FILES.expect("a log has files");

/// What an [`Altered`] log does otherwise.
pub trait Alter: Default + Send + 'static {
    fn options() -> AppendLogOptions {
        AppendLogOptions::default()
    }

    fn apply(
        &mut self,
        log: &mut AppendLogSnapshot,
        batch: &[KvUpdate],
        cursor: &WatchCursor,
    ) -> Result<(), SnapshotError> {
        log.apply(batch, cursor)
    }

    /// Of an artifact.
    fn verify(data: &Path) -> Result<WatchCursor, SnapshotError> {
        (LOG.verify)(data)
    }
}

/// The log.
pub struct Altered<A> {
    log: AppendLogSnapshot,
    alter: A,
}

impl<A: Alter> SnapshotStore for Altered<A> {
    type Reader = AppendLogReader;

    const FILES: Option<FoldFiles<Self>> = Some(FoldFiles {
        backend: LOG.backend,
        generation: LOG.generation,
        owns: LOG.owns,
        copy: |store, data| (LOG.copy)(&mut store.log, data),
        fold: LOG.fold,
        imported: LOG.imported,
        verify: A::verify,
        entries: LOG.entries,
    });

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        let (cursor, log) = AppendLogSnapshot::load_with(path, A::options())?;
        Ok((cursor, Self { log, alter: A::default() }))
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        self.alter.apply(&mut self.log, batch, cursor)
    }

    fn reader(&self) -> AppendLogReader {
        self.log.reader()
    }

    fn imported(&self) -> Option<&ExportManifest> {
        self.log.imported()
    }

    fn set_imported(&mut self, manifest: &ExportManifest) -> io::Result<()> {
        self.log.set_imported(manifest)
    }
}

impl<A: Alter> SnapshotReader for Altered<A> {
    fn cursor(&self) -> WatchCursor {
        self.log.cursor()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        self.log.get(key)
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.log.for_each_in_range(prefix, f)
    }
}
