//! The fold on RocksDB, by the suite of all backends.

use std::fs;
use std::path::{Path, PathBuf};

use slipstream::engine::EngineOptions;
use slipstream::snapshot_conformance::{
    Closed, as_nobody, assert_denied, closed_directory, failed_writes_heal, files, full_disk,
    labels, limited, making_on_a_full_disk, read_only_disk, set_mode, somebody_elses_database,
};
use slipstream::{
    KvEntry, KvUpdate, SnapshotError, SnapshotReader, SnapshotStore, VersionToken, WatchCursor,
};
use slipstream_rocksdb::RocksDbSnapshot;

#[path = "../../../slipstream/tests/it/bootstrap.rs"]
mod bootstrap;
mod faults;
#[path = "../../../slipstream-object-store/tests/it/fleet.rs"]
#[expect(dead_code, reason = "those of object stores do more with a fleet")]
mod fleet;
#[path = "../../../slipstream/tests/it/killed.rs"]
mod killed;
#[path = "../../../slipstream-object-store/tests/it/restored.rs"]
mod restored;
#[path = "../../../slipstream-object-store/tests/it/s3.rs"]
mod s3;
#[path = "../../../slipstream/tests/it/server.rs"]
#[expect(dead_code, reason = "slipstream's tests do more with a server")]
mod server;
#[path = "../../../gossip-object-store/tests/it/server.rs"]
#[expect(dead_code, reason = "those of sources do more with a server")]
mod weed;

// As the tests of object stores call it.
use server as nats;

mod conformance {
    slipstream::snapshot_conformance!(slipstream_rocksdb::RocksDbSnapshot, log = super::log);
}

/// The one that is written to.
fn log(path: &Path) -> PathBuf {
    let paths = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    // Their names are numbers of one length.
    paths.filter(|path| path.extension().is_some_and(|name| name == "log")).max().unwrap()
}

fn put(key: &str, value: &str) -> KvUpdate {
    let version = VersionToken::from_u64(1);
    KvUpdate::Put(KvEntry { key: key.into(), value: value.to_owned().into(), version })
}

#[test]
fn a_fold_with_other_options_is_like_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let at = WatchCursor::from_bytes(vec![1]).unwrap();
    let mut options = EngineOptions::default();
    options.sync = true;
    (options.cache_bytes, options.memtable_bytes) = (Some(1 << 20), Some(1 << 20));
    let (_, mut store) = RocksDbSnapshot::load_with(&path, options).unwrap();
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
fn a_database_of_somebody_else_is_refused_and_left_as_it_is() {
    for families in [&[][..], &["theirs"], &["data", "meta"], &["data", "meta", "theirs"]] {
        somebody_elses_database::<RocksDbSnapshot>(|path| {
            let mut options = rocksdb::Options::default();
            options.create_if_missing(true);
            options.create_missing_column_families(true);
            let theirs = rocksdb::DB::open_cf(&options, path, families).unwrap();
            theirs.put("cursor", "theirs").unwrap();
        });
    }
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

#[test]
fn a_fold_cannot_be_made_on_a_full_disk_and_can_be_once_there_is_room() {
    making_on_a_full_disk::<RocksDbSnapshot>(100_000);
}

#[test]
fn a_fold_on_a_read_only_disk_is_refused_and_left_as_it_is() {
    read_only_disk::<RocksDbSnapshot>(100_000);
}

#[test]
fn a_fold_of_a_newer_format_is_refused_and_left_as_it_is() {
    labels::<RocksDbSnapshot>();
}

/// The engine's threads are those of a process, and would stay nobody's: hence one of its own.
#[test]
fn a_fold_is_not_made_in_a_directory_that_may_not_be_written_to() {
    let name =
        concat!(module_path!(), "::a_fold_is_not_made_in_a_directory_that_may_not_be_written_to");
    limited(name, |_| closed_directory::<RocksDbSnapshot>(), |_| ());
}

#[test]
fn a_fold_that_may_not_be_written_to_is_refused_and_not_in_use() {
    let name =
        concat!(module_path!(), "::a_fold_that_may_not_be_written_to_is_refused_and_not_in_use");
    limited(name, |_| closed_folds(), |_| ());
}

fn closed_folds() {
    let dir = Closed::new();
    let path = dir.path();
    let at = WatchCursor::from_bytes(vec![1]).unwrap();
    as_nobody(|| RocksDbSnapshot::load(&path).unwrap().1.apply(&[put("a", "1")], &at)).unwrap();
    let contents = || {
        let mut files = files(&path);
        // What the engine says that it does, and its lock.
        files.retain(|name, _| {
            let name = name.file_name().unwrap().to_str().unwrap();
            !name.starts_with("LOG") && name != "LOCK"
        });
        files
    };
    let before = contents();
    let refused = || {
        assert_denied(as_nobody(|| RocksDbSnapshot::load(&path).err()));
        assert!(contents() == before, "something was written");
    };
    set_mode(&path, 0o500);
    refused();
    set_mode(&path, 0o700);
    set_mode(&path.join("LOCK"), 0o400);
    refused();
    fs::remove_file(path.join("LOCK")).unwrap();
    set_mode(&path, 0o500);
    refused();
    set_mode(&path, 0o700);
    assert_eq!(as_nobody(|| RocksDbSnapshot::load(&path).unwrap().0), at);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_node_is_sent_only_what_follows_the_artifact() {
    bootstrap::a_new_node_is_sent_only_what_follows_the_artifact::<RocksDbSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_proves_itself_where_its_cursor_does_not() {
    bootstrap::an_artifact_proves_itself_where_its_cursor_does_not::<RocksDbSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_fold_is_restored_on_nats_and_s3() {
    restored::on_nats_and_s3::<RocksDbSnapshot>().await;
}
