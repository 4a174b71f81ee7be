//! An engine that can be opened to read while it cannot be opened to write, as on a disk without room
//! for what the engine writes when it is opened: fjall writes nothing then.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::WatchScope;
use crate::artifact::About;
use crate::kv::{Key, VersionToken};
use crate::snapshot::fjall::Fjall;

/// Only one test uses it.
static IS_FULL: AtomicBool = AtomicBool::new(false);

struct NeedsRoom(Fjall);

fn room() -> Result<(), SnapshotError> {
    match IS_FULL.load(Ordering::SeqCst) {
        true => Err(io_error("opening")(io::ErrorKind::StorageFull.into())),
        false => Ok(()),
    }
}

impl Engine for NeedsRoom {
    const NAME: &'static str = "needs-room";

    fn is_complete(path: &Path) -> io::Result<bool> {
        Fjall::is_complete(path)
    }

    fn is_unfinished(name: &str) -> bool {
        Fjall::is_unfinished(name)
    }

    fn open(
        path: &Path,
        options: &EngineOptions,
    ) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        room()?;
        Fjall::open(path, options).map(|(engine, cursor)| (Self(engine), cursor))
    }

    fn open_to_read(path: &Path) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        Fjall::open_to_read(path).map(|(engine, cursor)| (Self(engine), cursor))
    }

    fn write(
        &self,
        changes: &[Change<'_>],
        cursor: &WatchCursor,
        sync: bool,
    ) -> Result<(), SnapshotError> {
        room()?;
        self.0.write(changes, cursor, sync)
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<(), SnapshotError> {
        room()?;
        self.0.copy(from, to)
    }

    fn owns(name: &str) -> bool {
        Fjall::owns(name)
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

fn entry(key: &str) -> KvEntry {
    KvEntry { key: Key::from(key), value: "1".into(), version: VersionToken::from_u64(1) }
}

#[test]
fn readers_go_on_while_the_database_cannot_be_opened_again() {
    let dir = tempfile::tempdir().unwrap();
    let (path, artifact) = (dir.path().join("fold"), dir.path().join("artifact"));
    let (_, mut store) = EngineSnapshot::<NeedsRoom>::load(&path).unwrap();
    let cursors = [1, 2].map(|n| WatchCursor::from_bytes(vec![n]).unwrap());
    store.apply(&[KvUpdate::Put(entry("a"))], &cursors[0]).unwrap();
    let reader = store.reader();
    IS_FULL.store(true, Ordering::SeqCst);
    for _ in 0..3 {
        store.export_to(&artifact, About::new(WatchScope::All)).unwrap_err();
        assert_eq!(reader.get("a").unwrap(), Some(entry("a")));
    }
    // Nor do batches take it from them.
    for _ in 0..3 {
        store.apply(&[KvUpdate::Put(entry("b"))], &cursors[1]).unwrap_err();
        assert_eq!(
            (reader.get("a").unwrap(), reader.cursor()),
            (Some(entry("a")), cursors[0].clone())
        );
    }
    IS_FULL.store(false, Ordering::SeqCst);
    store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    store.apply(&[KvUpdate::Put(entry("b"))], &cursors[1]).unwrap();
    assert_eq!((reader.range("").unwrap().len(), reader.cursor()), (2, cursors[1].clone()));
}
