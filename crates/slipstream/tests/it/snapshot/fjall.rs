//! The fold on fjall.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use slipstream::engine::EngineOptions;
use slipstream::snapshot_conformance::{
    failed_writes_heal, files, labels, somebody_elses_database,
};
use slipstream::{FjallSnapshot, SnapshotError, SnapshotStore};

use super::append_log::support::{cursor, place, put, state};

mod conformance {
    slipstream::snapshot_conformance!(slipstream::FjallSnapshot, log = super::journal);
}

/// The one that is written to.
fn journal(path: &Path) -> PathBuf {
    let names = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_suffix(".jnl")?.parse::<u64>().ok());
    path.join(format!("{}.jnl", numbers.max().unwrap()))
}

#[test]
fn a_fold_with_other_options_is_like_any_other() {
    let (_dir, path) = place();
    let mut options = EngineOptions::default();
    options.sync = true;
    (options.cache_bytes, options.memtable_bytes) = (Some(0), Some(0));
    let (_, mut store) = FjallSnapshot::load_with(&path, options).unwrap();
    for at in 1..100 {
        store.apply(&[put("a", "1", at), put("b", "2", at)], &cursor(at)).unwrap();
    }
    let before = state(&store);
    drop(store);
    assert_eq!(state(&FjallSnapshot::load(&path).unwrap().1), before);
}

/// With the engine's own 64 MiB it would stay in memory.
#[test]
fn entries_beyond_the_size_of_a_memtable_become_a_file() {
    let (_dir, path) = place();
    let mut options = EngineOptions::default();
    options.memtable_bytes = Some(64 << 10);
    let (_, mut store) = FjallSnapshot::load_with(&path, options).unwrap();
    let value = "v".repeat(1000);
    for at in 1..=100 {
        store.apply(&[put(&format!("k.{at}"), &*value, at)], &cursor(at)).unwrap();
    }
    let began = Instant::now();
    while count_tables(&path.join("keyspaces")) == 0 {
        assert!(began.elapsed() < Duration::from_secs(60), "no file was made");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn count_tables(dir: &Path) -> usize {
    let count = |entry: fs::DirEntry| match entry.file_type().unwrap().is_dir() {
        true => count_tables(&entry.path()),
        false => usize::from(dir.ends_with("tables")),
    };
    fs::read_dir(dir).unwrap().map(|entry| count(entry.unwrap())).sum()
}

#[test]
fn a_fold_whose_making_was_interrupted_is_made_again() {
    for version in [None, Some(""), Some("F"), Some("FJL")] {
        let (_dir, path) = place();
        fs::create_dir_all(path.join("keyspaces")).unwrap();
        fs::write(path.join("lock"), "").unwrap();
        fs::write(path.join("0.jnl"), "").unwrap();
        if let Some(version) = version {
            fs::write(path.join("version"), version).unwrap();
        }
        let (at, mut store) = FjallSnapshot::load(&path).unwrap();
        assert!(at.is_none());
        store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    }
}

/// Whoever removes a fold may be killed in the middle: what is left is no fold, and not an empty one.
#[test]
fn a_fold_of_which_a_part_was_removed_is_refused() {
    let parts =
        ["0.jnl", "version", "keyspaces", "keyspaces/0", "keyspaces/1", "keyspaces/2/current"];
    for gone in parts {
        let (_dir, path) = place();
        let (_, mut store) = FjallSnapshot::load(&path).unwrap();
        store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
        drop(store);
        let part = path.join(gone);
        match part.is_dir() {
            true => fs::remove_dir_all(&part).unwrap(),
            false => fs::remove_file(&part).unwrap(),
        }
        let before = files(&path);
        let refused = FjallSnapshot::load(&path).err().expect(gone);
        assert!(matches!(refused, SnapshotError::Corrupted(_)), "{gone}: {refused}");
        assert_eq!(files(&path), before, "{gone}");
    }
}

/// The journal is theirs.
#[test]
fn a_fold_that_somebody_else_is_making_is_left_alone() {
    let (_dir, path) = place();
    fs::create_dir_all(path.join("keyspaces")).unwrap();
    let lock = fs::File::create(path.join("lock")).unwrap();
    lock.try_lock().unwrap();
    fs::write(path.join("0.jnl"), "theirs").unwrap();
    assert!(matches!(FjallSnapshot::load(&path), Err(SnapshotError::InUse)));
    assert_eq!(fs::read(path.join("0.jnl")).unwrap(), b"theirs");
}

#[test]
fn a_newer_database_is_refused() {
    let (_dir, path) = place();
    drop(FjallSnapshot::load(&path).unwrap());
    let mut version = fs::read(path.join("version")).unwrap();
    *version.last_mut().unwrap() = 200;
    fs::write(path.join("version"), &version).unwrap();
    let refused = FjallSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    assert_eq!(fs::read(path.join("version")).unwrap(), version);
}

#[test]
fn a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads() {
    failed_writes_heal::<FjallSnapshot>(concat!(
        module_path!(),
        "::a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads"
    ));
}

#[test]
fn a_database_of_somebody_else_is_refused_and_left_as_it_is() {
    for names in [&[][..], &["theirs"], &["data", "meta"], &["data", "meta", "theirs"]] {
        somebody_elses_database::<FjallSnapshot>(|path| {
            let theirs = fjall::Database::builder(path).open().unwrap();
            for name in names {
                let keyspace = theirs.keyspace(name, Default::default).unwrap();
                keyspace.insert("cursor", "theirs").unwrap();
            }
        });
    }
}

#[test]
fn a_fold_of_a_newer_format_is_refused_and_left_as_it_is() {
    labels::<FjallSnapshot>();
}
