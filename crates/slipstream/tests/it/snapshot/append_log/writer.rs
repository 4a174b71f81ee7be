//! The pieces by themselves.

use std::fs;

use slipstream::{Snapshot, SnapshotError, SnapshotWriter};

use super::support::{cursor, delete, open, place, put, state};

#[test]
fn what_a_writer_wrote_is_read_and_can_be_compacted() {
    let (_dir, path) = place();
    let mut writer = SnapshotWriter::open(&path, 2_000).unwrap();
    let mut due = false;
    for n in 1..=100u64 {
        writer.write_update(&put(&format!("k.{}", n % 5), n.to_string(), n)).unwrap();
        due = writer.checkpoint(&cursor(n)).unwrap();
    }
    assert!(due);
    let before = Snapshot::load(&path).unwrap();
    assert_eq!((before.entries.len(), &before.cursor), (5, &cursor(100)));
    let long = fs::metadata(&path).unwrap().len();
    writer.compact().unwrap();
    assert!(fs::metadata(&path).unwrap().len() * 5 < long);
    assert_eq!(Snapshot::load(&path).unwrap(), before);
    assert!(!writer.checkpoint(&cursor(101)).unwrap());
    assert!(matches!(SnapshotWriter::open(&path, 1), Err(SnapshotError::InUse)));
    drop(writer);
    assert_eq!(state(&open(&path)).0, cursor(101));
}

#[test]
fn updates_without_a_checkpoint_survive_a_compaction_and_leave_the_cursor() {
    let (_dir, path) = place();
    let mut writer = SnapshotWriter::open(&path, 1).unwrap();
    writer.write_update(&put("a", "1", 1)).unwrap();
    writer.checkpoint(&cursor(1)).unwrap();
    writer.write_update(&put("b", "1", 2)).unwrap();
    writer.write_update(&delete("a", 3)).unwrap();
    writer.compact().unwrap();
    let read = Snapshot::load(&path).unwrap();
    assert_eq!(read.cursor, cursor(1));
    assert_eq!(read.entries.keys().map(|key| key.as_str()).collect::<Vec<_>>(), ["b"]);
}

#[test]
fn many_updates_reach_the_file_before_their_checkpoint() {
    let (_dir, path) = place();
    let mut writer = SnapshotWriter::open(&path, 1).unwrap();
    for n in 0..10 {
        writer.write_update(&put(&format!("k.{n}"), vec![1; 100_000], n)).unwrap();
    }
    let read = Snapshot::load(&path).unwrap();
    assert!(
        read.cursor.is_none() && (5..10).contains(&read.entries.len()),
        "{}",
        read.entries.len()
    );
    writer.checkpoint(&cursor(10)).unwrap();
    assert_eq!(Snapshot::load(&path).unwrap().entries.len(), 10);
}

#[test]
fn stale_keys_are_those_that_are_not_live() {
    let (_dir, path) = place();
    let mut writer = SnapshotWriter::open(&path, 1).unwrap();
    for (key, n) in ["c", "a", "b", "d"].iter().zip(1..) {
        writer.write_update(&put(key, "1", n)).unwrap();
    }
    writer.checkpoint(&cursor(4)).unwrap();
    let read = Snapshot::load(&path).unwrap();
    assert_eq!(read.stale_keys(["b", "x"]).collect::<Vec<_>>(), ["a", "c", "d"]);
    assert_eq!(read.stale_keys([]).count(), 4);
}

#[test]
fn no_log_is_nothing_folded() {
    let (dir, path) = place();
    assert_eq!(Snapshot::load(&path).unwrap(), Snapshot::default());
    assert!(!path.exists());
    assert!(matches!(Snapshot::load(dir.path()), Err(SnapshotError::Io { .. })));
}
