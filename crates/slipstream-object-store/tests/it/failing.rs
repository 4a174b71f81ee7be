//! A fold whose every third batch fails once.

use std::ops::ControlFlow;
use std::path::Path;

use slipstream::{
    AppendLogReader, AppendLogSnapshot, EntryRef, FoldFiles, KvEntry, KvUpdate, SnapshotError,
    SnapshotReader, SnapshotStore, WatchCursor,
};

pub(crate) struct Failing {
    store: AppendLogSnapshot,
    applies: u32,
}

impl SnapshotStore for Failing {
    type Reader = AppendLogReader;

    const FILES: Option<FoldFiles<Self>> = match AppendLogSnapshot::FILES {
        Some(files) => Some(FoldFiles {
            backend: files.backend,
            generation: files.generation,
            owns: files.owns,
            copy: |store, data| (AppendLogSnapshot::FILES.unwrap().copy)(&mut store.store, data),
            fold: files.fold,
            imported: files.imported,
            verify: files.verify,
            entries: files.entries,
        }),
        None => None,
    };

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        let (cursor, store) = AppendLogSnapshot::load(path)?;
        Ok((cursor, Self { store, applies: 0 }))
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        self.applies += 1;
        if self.applies.is_multiple_of(3) {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(SnapshotError::Io { doing: "writing", source });
        }
        self.store.apply(batch, cursor)
    }

    fn reader(&self) -> AppendLogReader {
        self.store.reader()
    }
}

impl SnapshotReader for Failing {
    fn cursor(&self) -> WatchCursor {
        self.store.cursor()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        self.store.get(key)
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.store.for_each_in_range(prefix, f)
    }
}
