//! The fold on RocksDB, by the suite of all backends.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slipstream::{
    KvEntry, KvUpdate, SnapshotError, SnapshotReader, SnapshotStore, VersionToken, WatchCursor,
};
use slipstream_rocksdb::RocksDbSnapshot;

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

const CHILD: &str = "SLIPSTREAM_ROCKSDB_FULL_CHILD";

/// Files of this process may not grow beyond a limit, for a while.
#[test]
fn a_failed_write_heals_when_the_disk_has_room_again() {
    if let Some(path) = std::env::var_os(CHILD) {
        return fail_and_heal(Path::new(&path));
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    // Without the trap the limit kills.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_failed_write_heals_when_the_disk_has_room_again", "--nocapture"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&limited.stdout);
    let errors = String::from_utf8_lossy(&limited.stderr);
    assert!(limited.status.success() && said.contains("1 passed"), "{said}{errors}");
    let (_, store) = RocksDbSnapshot::load(&path).unwrap();
    assert_eq!(store.range("").unwrap().len(), 2);
}

fn fail_and_heal(path: &Path) {
    let (_, mut store) = RocksDbSnapshot::load(path).unwrap();
    let reader = store.reader();
    let [first, second] = [[1], [2]].map(|bytes| WatchCursor::from_bytes(bytes.to_vec()).unwrap());
    store.apply(&[put("a", "1")], &first).unwrap();
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(100), maximum: unlimited.maximum }).unwrap();
    let batch = [put("b", &"long".repeat(1000))];
    for _ in 0..3 {
        assert!(store.apply(&batch, &second).is_err());
        assert_eq!(store.cursor(), first);
    }
    setrlimit(Resource::Fsize, unlimited).unwrap();
    store.apply(&batch, &second).unwrap();
    assert_eq!((reader.cursor(), reader.range("").unwrap().len()), (second, 2));
}
