//! The suite, with the default options and with compactions all the time.

use std::ops::ControlFlow;
use std::path::Path;

use slipstream::{
    AppendLogOptions, AppendLogReader, AppendLogSnapshot, EntryRef, FoldFiles, KvEntry, KvUpdate,
    SnapshotError, SnapshotReader, SnapshotStore, WatchCursor,
};

mod default {
    slipstream::snapshot_conformance!(
        slipstream::AppendLogSnapshot,
        log = std::path::Path::to_path_buf
    );
}

mod eager {
    slipstream::snapshot_conformance!(super::Eager, log = std::path::Path::to_path_buf);
}

/// A log that is compacted whenever half of it is outdated.
pub(crate) struct Eager(pub(crate) AppendLogSnapshot);

impl SnapshotStore for Eager {
    type Reader = AppendLogReader;

    const FILES: Option<FoldFiles<Self>> = match AppendLogSnapshot::FILES {
        Some(files) => Some(FoldFiles {
            backend: files.backend,
            generation: files.generation,
            owns: files.owns,
            copy: |store, data| (AppendLogSnapshot::FILES.unwrap().copy)(&mut store.0, data),
            fold: files.fold,
            imported: files.imported,
            verify: files.verify,
            entries: files.entries,
        }),
        None => None,
    };

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        let mut options = AppendLogOptions::default();
        options.compact_threshold = 1;
        let (cursor, store) = AppendLogSnapshot::load_with(path, options)?;
        Ok((cursor, Self(store)))
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        self.0.apply(batch, cursor)?;
        assert!(self.0.compaction_error().is_none(), "{:?}", self.0.compaction_error());
        Ok(())
    }

    fn reader(&self) -> AppendLogReader {
        self.0.reader()
    }
}

impl SnapshotReader for Eager {
    fn cursor(&self) -> WatchCursor {
        self.0.cursor()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        self.0.get(key)
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.0.for_each_in_range(prefix, f)
    }
}
