use std::path::{Path, PathBuf};

use proptest::prelude::*;
use slipstream::{
    AppendLogSnapshot, Key, KvEntry, KvUpdate, SnapshotReader, SnapshotStore, VersionToken,
    WatchCursor,
};
use tempfile::TempDir;

pub(crate) fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    (dir, path)
}

pub(crate) fn put(key: &str, value: impl Into<Vec<u8>>, revision: u64) -> KvUpdate {
    let version = VersionToken::from_u64(revision);
    KvUpdate::Put(KvEntry { key: Key::from(key), value: value.into().into(), version })
}

pub(crate) fn delete(key: &str, revision: u64) -> KvUpdate {
    KvUpdate::Delete { key: Key::from(key), version: VersionToken::from_u64(revision) }
}

pub(crate) fn cursor(n: u64) -> WatchCursor {
    if n == 0 {
        return WatchCursor::none();
    }
    WatchCursor::from_bytes(n.to_be_bytes().to_vec()).unwrap()
}

pub(crate) fn open(path: &Path) -> AppendLogSnapshot {
    AppendLogSnapshot::load(path).unwrap().1
}

/// Cursor and entries.
pub(crate) type State = (WatchCursor, Vec<KvEntry>);

pub(crate) fn state(store: &impl SnapshotReader) -> State {
    (store.cursor(), store.range("").unwrap())
}

/// A batch of a few short keys.
pub(crate) fn batches() -> impl Strategy<Value = Vec<Vec<KvUpdate>>> {
    let version = prop::collection::vec(any::<u8>(), 0..=10)
        .prop_map(|bytes| VersionToken::from_bytes(&bytes).unwrap());
    let value = prop::collection::vec(any::<u8>(), 0..40);
    let update = ("[abé]{1,2}", version, value, 0..6u8).prop_map(|(key, version, value, kind)| {
        let key = Key::from(key);
        match kind {
            0 => KvUpdate::Delete { key, version },
            1 => KvUpdate::Purge { key, version },
            _ => KvUpdate::Put(KvEntry { key, value: value.into(), version }),
        }
    });
    prop::collection::vec(prop::collection::vec(update, 0..5), 1..6)
}
