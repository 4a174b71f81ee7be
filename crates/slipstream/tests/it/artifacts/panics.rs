//! An engine that panics at files which no engine has written, though their hashes are right.

use std::ops::ControlFlow;
use std::path::Path;

use slipstream::artifact::{About, ArtifactError, ArtifactInvalid};
use slipstream::{
    AppendLogSnapshot, CursorOnly, EntryRef, FoldFiles, KvEntry, KvUpdate, SnapshotError,
    SnapshotReader, SnapshotStore, WatchCursor, WatchScope,
};

use crate::snapshot::append_log::support::{cursor, put};

/// Takes the files of an append log.
struct Panics(CursorOnly);

impl SnapshotStore for Panics {
    type Reader = CursorOnly;

    const FILES: Option<FoldFiles<Self>> = match AppendLogSnapshot::FILES {
        Some(files) => Some(FoldFiles {
            backend: files.backend,
            generation: files.generation,
            owns: files.owns,
            copy: |_, _| unreachable!("it is not exported"),
            fold: files.fold,
            imported: files.imported,
            verify: |_| panic!("on purpose: a sequence number that cannot be"),
            entries: files.entries,
        }),
        None => None,
    };

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        CursorOnly::load(path).map(|(cursor, store)| (cursor, Self(store)))
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        self.0.apply(batch, cursor)
    }

    fn reader(&self) -> CursorOnly {
        self.0.reader()
    }
}

impl SnapshotReader for Panics {
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

#[test]
fn an_artifact_that_its_engine_panics_at_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut store) = AppendLogSnapshot::load(&dir.path().join("fold")).unwrap();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let artifact = dir.path().join("artifact");
    store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    let refused = Panics::import(&artifact, &dir.path().join("imported"), &WatchScope::All);
    assert!(
        matches!(refused, Err(ArtifactError::Invalid(ArtifactInvalid::Fold(_)))),
        "{refused:?}"
    );
    let names = std::fs::read_dir(dir.path()).unwrap();
    assert_eq!(names.count(), 2, "nothing is left");
}
