//! The fold on RocksDB, by the suite of all backends.

use std::fs;

use slipstream::snapshot_conformance::{failed_writes_heal, full_disk};
use slipstream::{
    KvEntry, KvUpdate, SnapshotError, SnapshotReader, SnapshotStore, VersionToken, WatchCursor,
};
use slipstream_rocksdb::RocksDbSnapshot;

mod faults;
#[path = "../../../slipstream/tests/it/server.rs"]
#[expect(dead_code, reason = "slipstream's tests do more with a server")]
mod server;

mod conformance {
    slipstream::snapshot_conformance!(slipstream_rocksdb::RocksDbSnapshot);
}

fn put(key: &str, value: &str) -> KvUpdate {
    let version = VersionToken::from_u64(1);
    KvUpdate::Put(KvEntry { key: key.into(), value: value.to_owned().into(), version })
}

#[test]
fn a_synced_fold_is_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let at = WatchCursor::from_bytes(vec![1]).unwrap();
    let (_, mut store) = RocksDbSnapshot::load_synced(&path).unwrap();
    store.apply(&[put("a", "1")], &at).unwrap();
    drop(store);
    let (cursor, store) = RocksDbSnapshot::load(&path).unwrap();
    assert_eq!((cursor, store.range("").unwrap().len()), (at, 1));
}

#[test]
fn a_fold_whose_making_was_interrupted_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    fs::create_dir(&path).unwrap();
    for name in ["LOCK", "LOG", "IDENTITY", "MANIFEST-000001"] {
        fs::write(path.join(name), "").unwrap();
    }
    assert!(RocksDbSnapshot::load(&path).unwrap().0.is_none());
}

#[test]
fn a_database_of_somebody_else_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let mut options = rocksdb::Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    drop(rocksdb::DB::open_cf(&options, &path, ["theirs"]).unwrap());
    let refused = RocksDbSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
}

#[test]
fn a_damaged_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    drop(RocksDbSnapshot::load(&path).unwrap());
    fs::write(path.join("CURRENT"), "nothing that is there").unwrap();
    let refused = RocksDbSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::Corrupted(_)), "{refused}");
}

#[test]
fn a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads() {
    failed_writes_heal::<RocksDbSnapshot>(concat!(
        module_path!(),
        "::a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads"
    ));
}

#[test]
fn a_fold_on_a_full_disk_goes_on_once_there_is_room() {
    // It reserves 70 MB for its log, fills them, and needs as much again for the table and the log
    // that follow.
    full_disk::<RocksDbSnapshot>(250_000);
}
