//! Compaction beside the appends.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use slipstream::{
    AppendLogOptions, AppendLogSnapshot, KvUpdate, Snapshot, SnapshotError, SnapshotStore,
};

use super::support::{cursor, open, place, put, state};

fn with_threshold(path: &Path, compact_threshold: u64) -> AppendLogSnapshot {
    let mut options = AppendLogOptions::default();
    options.compact_threshold = compact_threshold;
    AppendLogSnapshot::load_with(path, options).unwrap().1
}

/// Sets each of `keys` keys once.
fn round(keys: u64, round: u64) -> Vec<KvUpdate> {
    (0..keys).map(|key| put(&format!("k.{key:05}"), format!("{round:0100}"), round)).collect()
}

fn inode(path: &Path) -> u64 {
    fs::metadata(path).unwrap().ino()
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("compact")
}

#[test]
fn a_log_that_is_mostly_outdated_is_compacted_while_batches_go_on() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 50_000);
    let mut inodes = vec![inode(&path)];
    let (mut written, mut longest) = (0, 0);
    for n in 1..=400 {
        let before = store.log_len();
        store.apply(&round(100, n), &cursor(n)).unwrap();
        written += store.log_len().saturating_sub(before);
        longest = longest.max(store.log_len());
        if inodes.last() != Some(&inode(&path)) {
            inodes.push(inode(&path));
        }
        // So that a compaction gets somewhere, on however few cores.
        thread::sleep(Duration::from_millis(1));
    }
    assert!(store.compaction_error().is_none());
    assert!(inodes.len() > 2, "{} files", inodes.len());
    assert!(longest < written / 2, "{longest} bytes of {written}");
    let last = state(&store);
    drop(store);
    assert_eq!(state(&open(&path)), last);
    assert!(!beside(&path).exists());
}

/// However small the threshold: what is written anew is no more than what was appended.
#[test]
fn a_log_is_compacted_no_more_often_than_it_was_overwritten() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 10_000);
    let all = round(1500, 1);
    store.apply(&all, &cursor(1)).unwrap();
    let live = store.log_len();
    assert!(live > 15 * 10_000, "{live} bytes are live");
    let mut inodes = vec![inode(&path)];
    for n in 2..=6 {
        for batch in round(1500, n).chunks(50) {
            store.apply(batch, &cursor(n)).unwrap();
            while beside(&path).exists() {
                thread::sleep(Duration::from_millis(1));
            }
            if inodes.last() != Some(&inode(&path)) {
                inodes.push(inode(&path));
            }
        }
    }
    assert!((2..=6).contains(&inodes.len()), "{} files for five times the log", inodes.len());
}

#[test]
fn the_file_at_the_path_holds_every_applied_batch_at_any_moment() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 1);
    let [applied, looks] = [const { AtomicU64::new(0) }; 2];
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let looker = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                let at_least = applied.load(Ordering::SeqCst);
                let read = Snapshot::load(&path).unwrap();
                let at_most = applied.load(Ordering::SeqCst) + 1;
                let n = read.cursor.as_bytes().try_into().map_or(0, u64::from_be_bytes);
                assert!((at_least..=at_most).contains(&n), "{n} outside {at_least}..={at_most}");
                assert!(read.entries.values().all(|entry| entry.version.as_u64() == Some(n)));
                looks.fetch_add(1, Ordering::SeqCst);
            }
        });
        let mut n = 0;
        while n < 300 || looks.load(Ordering::SeqCst) < 50 {
            assert!(!looker.is_finished(), "it has seen something wrong");
            n += 1;
            store.apply(&round(50, n), &cursor(n)).unwrap();
            applied.store(n, Ordering::SeqCst);
        }
        done.store(true, Ordering::SeqCst);
    });
}

#[test]
fn reopening_a_log_does_not_compact_it() {
    let (_dir, path) = place();
    let mut store = open(&path);
    for n in 1..=3 {
        store.apply(&round(100, n), &cursor(n)).unwrap();
    }
    drop(store);
    let (before, bytes) = (inode(&path), fs::read(&path).unwrap());
    let mut store = open(&path);
    assert_eq!((inode(&path), fs::read(&path).unwrap()), (before, bytes));
    store.apply(&round(1, 4), &cursor(4)).unwrap();
    drop(store);
    assert_eq!(inode(&path), before);
}

#[test]
fn a_fold_without_outdated_entries_is_never_compacted() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 1000);
    let before = inode(&path);
    for n in 0..200 {
        let batch: Vec<_> = (0..50).map(|key| put(&format!("k.{n}.{key}"), [1; 100], n)).collect();
        store.apply(&batch, &cursor(n + 1)).unwrap();
    }
    drop(store);
    assert_eq!(inode(&path), before);
}

#[test]
fn a_compaction_that_fails_is_reported_and_leaves_the_old_log() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 1000);
    let before = inode(&path);
    // Nothing can be written there.
    fs::create_dir(beside(&path)).unwrap();
    let mut n = 0;
    while store.compaction_error().is_none() {
        n += 1;
        store.apply(&round(20, n), &cursor(n)).unwrap();
    }
    assert!(matches!(store.compaction_error(), Some(SnapshotError::Io { .. })));
    assert!(matches!(store.compact(), Err(SnapshotError::Io { .. })));
    assert_eq!(inode(&path), before);
    assert_eq!(Snapshot::load(&path).unwrap().cursor, cursor(n));
    fs::remove_dir(beside(&path)).unwrap();
    store.compact().unwrap();
    assert_ne!(inode(&path), before);
    n += 1;
    store.apply(&round(20, n), &cursor(n)).unwrap();
    let last = state(&store);
    drop(store);
    assert_eq!(state(&open(&path)), last);
}

#[test]
fn what_a_killed_compaction_left_is_removed() {
    let (_dir, path) = place();
    let mut store = open(&path);
    store.apply(&round(5, 1), &cursor(1)).unwrap();
    let before = state(&store);
    drop(store);
    let log = fs::read(&path).unwrap();
    // What was synced of it, or what the machine's crash made of it.
    for left in [&[][..], &log[..4], &log[..20], &[0; 100]] {
        fs::write(beside(&path), left).unwrap();
        assert_eq!(state(&open(&path)), before);
        assert!(!beside(&path).exists());
    }
}

#[test]
fn what_no_compaction_left_is_not_removed() {
    let (_dir, path) = place();
    let mut store = open(&path);
    store.apply(&round(5, 1), &cursor(1)).unwrap();
    let before = state(&store);
    drop(store);
    fs::write(beside(&path), "a letter").unwrap();
    let refused = AppendLogSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    assert_eq!(fs::read(beside(&path)).unwrap(), b"a letter");
    // Nor can a fold be where the next one's compactions go.
    let refused = AppendLogSnapshot::load(&beside(&path)).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    fs::remove_file(beside(&path)).unwrap();
    assert_eq!(state(&open(&path)), before);
}

#[test]
fn a_store_that_is_dropped_in_the_middle_of_a_compaction_can_be_opened_at_once() {
    let (_dir, path) = place();
    let mut n = 0;
    for _ in 0..20 {
        let mut store = with_threshold(&path, 1);
        for _ in 0..3 {
            n += 1;
            store.apply(&round(200, n), &cursor(n)).unwrap();
        }
        let last = state(&store);
        drop(store);
        let store = with_threshold(&path, 1);
        assert_eq!(state(&store), last);
    }
}

#[test]
fn a_reader_outlives_its_store_and_its_compactions() {
    let (_dir, path) = place();
    let mut store = with_threshold(&path, 1);
    let reader = store.reader();
    for n in 1..=50 {
        store.apply(&round(50, n), &cursor(n)).unwrap();
    }
    store.compact().unwrap();
    let last = state(&store);
    drop(store);
    assert_eq!(state(&reader), last);
}

#[test]
fn a_log_is_for_its_owner_only() {
    let (_dir, path) = place();
    let mut store = open(&path);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    store.apply(&round(5, 1), &cursor(1)).unwrap();
    store.compact().unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[test]
fn a_log_behind_a_link_stays_where_it_is() {
    let (dir, path) = place();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    fs::write(&path, "").unwrap();
    let mut store = open(&link);
    store.apply(&round(5, 1), &cursor(1)).unwrap();
    store.compact().unwrap();
    let last = state(&store);
    drop(store);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(state(&open(&path)), last);
}

#[test]
fn a_synced_log_is_like_any_other() {
    let (_dir, path) = place();
    let mut options = AppendLogOptions::default();
    options.sync = true;
    options.compact_threshold = 1;
    let (_, mut store) = AppendLogSnapshot::load_with(&path, options).unwrap();
    for n in 1..=30 {
        store.apply(&round(10, n), &cursor(n)).unwrap();
    }
    let last = state(&store);
    drop(store);
    assert_eq!(state(&open(&path)), last);
}
