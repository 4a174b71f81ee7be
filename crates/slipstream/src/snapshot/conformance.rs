//! One suite for every backend: write one line, in a module of its own, and get a test per case.
//!
//! ```text
//! mod conformance {
//!     slipstream::snapshot_conformance!(
//!         slipstream::AppendLogSnapshot,
//!         log = std::path::Path::to_path_buf
//!     );
//! }
//! ```
//!
//! `log` is a function from the path of a fold to that of the file that was appended to last.
//!
//! Some of the cases kill processes: the test binary, started again with the variable [`CHILD`] set.
//!
//! Besides, for backends to call where they apply: [`failed_writes_heal`], [`labels`] and
//! [`somebody_elses_database`], of engines; [`full_disk`], [`making_on_a_full_disk`] and
//! [`read_only_disk`]; [`closed_directory`]. And [`Altered`], a log for tests of what is around a store.

#![allow(missing_docs, reason = "the names of the cases say it")]

mod altered;
mod artifact;
mod closed;
mod disk;
mod foreign;
mod kill;
mod limit;
mod paused;
mod torn;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, io, thread};

use bytes::Bytes;
use tempfile::TempDir;

pub use self::altered::{Alter, Altered};
pub use self::artifact::{
    a_changed_artifact_is_refused_and_nothing_is_left, an_artifact_becomes_the_same_fold,
    an_artifact_is_written_over_nothing, an_artifact_of_something_else_is_refused,
    killed_exports_and_imports,
};
pub use self::closed::{Closed, as_nobody, assert_denied, closed_directory, set_mode};
pub use self::disk::{
    SmallDisk, assert_full, export_on_a_full_disk, full_disk, making_on_a_full_disk,
    read_only_disk, readers_while_exports_fail_on_a_full_disk,
};
pub use self::foreign::{files, labels, somebody_elses_database};
pub use self::kill::{CHILD, killed};
pub use self::limit::{LIMITED, failed_writes_heal, limited, with_a_limit};
use self::paused::Paused;
pub use self::torn::torn;
use super::{SnapshotError, SnapshotReader, SnapshotStore};
use crate::kv::{Key, KvEntry, KvUpdate, VersionToken, WatchCursor};

/// Emits the suite for a [`SnapshotStore`].
#[macro_export]
macro_rules! snapshot_conformance {
    ($store:ty, log = $log:expr) => {
        $crate::snapshot_conformance! { $store:
            an_empty_fold_has_no_cursor_and_no_entries
            a_fold_is_as_it_was_after_reopening
            the_last_update_of_a_key_in_a_batch_counts
            ranges_ascend_by_bytes_and_hold_their_prefix_only
            a_range_stops_when_it_is_told_to
            keys_are_visited_in_order
            an_empty_value_is_a_delete
            purges_and_deletes_of_unknown_keys_change_nothing_else
            versions_are_kept_as_they_are
            cursors_are_kept_as_they_are
            an_empty_batch_moves_the_cursor
            large_values_are_kept
            a_key_beyond_the_limit_is_refused_and_nothing_changes
            an_empty_key_is_refused_and_nothing_changes
            readers_see_what_is_applied_later
            a_range_is_of_one_moment_while_batches_are_applied
            a_fold_is_opened_once
            something_else_at_the_path_is_refused_and_left_as_it_is
            a_path_that_cannot_be_is_refused
            random_lives_are_those_of_a_map
            an_artifact_becomes_the_same_fold
            a_changed_artifact_is_refused_and_nothing_is_left
            an_artifact_of_something_else_is_refused
            an_artifact_is_written_over_nothing
        }

        #[test]
        fn a_torn_log_is_a_batch_boundary_or_told_to_be_damaged() {
            $crate::snapshot_conformance::torn::<$store>($log);
        }

        /// What the suite is run against.
        type ConformanceSubject = $store;

        mod faults {
            #[test]
            fn a_killed_process_leaves_a_batch_boundary() {
                $crate::snapshot_conformance::killed::<super::ConformanceSubject>(concat!(
                    module_path!(),
                    "::a_killed_process_leaves_a_batch_boundary"
                ));
            }

            #[test]
            fn a_killed_export_or_import_leaves_a_whole_one_or_none() {
                $crate::snapshot_conformance::killed_exports_and_imports::<super::ConformanceSubject>(
                    concat!(
                        module_path!(),
                        "::a_killed_export_or_import_leaves_a_whole_one_or_none"
                    ),
                );
            }
        }
    };
    ($store:ty: $($case:ident)*) => {$(
        #[test]
        fn $case() {
            $crate::snapshot_conformance::$case::<$store>();
        }
    )*};
}

type Model = BTreeMap<String, (Vec<u8>, VersionToken)>;

fn place() -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("fold");
    (dir, path)
}

/// The name of a test as libtest knows it, without the crate's before it.
fn libtest_name(name: &str) -> &str {
    name.split_once("::").map_or(name, |(_crate, name)| name)
}

fn open<S: SnapshotStore>(path: &Path) -> S {
    S::load(path).expect("the fold opens").1
}

fn put(key: &str, value: impl Into<Bytes>, revision: u64) -> KvUpdate {
    let version = VersionToken::from_u64(revision);
    KvUpdate::Put(KvEntry { key: Key::from(key), value: value.into(), version })
}

fn delete(key: &str, revision: u64) -> KvUpdate {
    KvUpdate::Delete { key: Key::from(key), version: VersionToken::from_u64(revision) }
}

fn cursor(n: u64) -> WatchCursor {
    WatchCursor::from_bytes(n.to_be_bytes().to_vec()).expect("eight bytes")
}

fn number(cursor: &WatchCursor) -> u64 {
    cursor.as_bytes().try_into().map_or(0, u64::from_be_bytes)
}

fn keys(reader: &impl SnapshotReader, prefix: &str) -> Vec<String> {
    let mut keys = Vec::new();
    let visited = reader.for_each_key(prefix, &mut |key| {
        keys.push(key.to_owned());
        ControlFlow::Continue(())
    });
    visited.expect("the fold is read");
    keys
}

fn contents(reader: &impl SnapshotReader) -> Model {
    let entries = reader.range("").expect("the fold is read");
    entries
        .into_iter()
        .map(|entry| (entry.key.as_str().to_owned(), (entry.value.to_vec(), entry.version)))
        .collect()
}

fn fold_into(model: &mut Model, batch: &[KvUpdate]) {
    for update in batch {
        match update {
            KvUpdate::Put(entry) if !entry.value.is_empty() => {
                let value = (entry.value.to_vec(), entry.version);
                model.insert(entry.key.as_str().to_owned(), value);
            }
            update => {
                model.remove(update.key().as_str());
            }
        }
    }
}

pub fn an_empty_fold_has_no_cursor_and_no_entries<S: SnapshotStore>() {
    let (_dir, path) = place();
    for _ in 0..2 {
        let (cursor, store) = S::load(&path).unwrap();
        assert!(cursor.is_none());
        assert!(store.cursor().is_none());
        assert_eq!(store.range("").unwrap(), []);
        assert_eq!(store.get("a").unwrap(), None);
    }
}

pub fn a_fold_is_as_it_was_after_reopening<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut model = Model::new();
    let batches = [
        vec![put("a", "1", 1), put("b", "2", 2), put("c", "3", 3)],
        vec![put("b", "22", 4), delete("a", 5)],
        vec![
            KvUpdate::Purge { key: "c".into(), version: VersionToken::from_u64(6) },
            put("d", "4", 7),
        ],
    ];
    for (batch, n) in batches.iter().zip(1..) {
        let mut store: S = open(&path);
        store.apply(batch, &cursor(n)).unwrap();
        fold_into(&mut model, batch);
        assert_eq!((contents(&store), store.cursor()), (model.clone(), cursor(n)));
        drop(store);
        let (at, store) = S::load(&path).unwrap();
        assert_eq!((contents(&store), store.cursor(), at), (model.clone(), cursor(n), cursor(n)));
        for (key, (value, version)) in &model {
            let entry = store.get(key).unwrap().unwrap();
            assert_eq!((&entry.value[..], entry.version), (&value[..], *version));
            assert_eq!(entry.key.as_str(), key);
        }
        assert_eq!(store.get("nothing").unwrap(), None);
    }
}

pub fn the_last_update_of_a_key_in_a_batch_counts<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let batch = [
        put("a", "1", 1),
        put("b", "1", 2),
        put("a", "longer than before", 3),
        delete("b", 4),
        put("c", "1", 5),
        delete("c", 6),
        put("c", "2", 7),
    ];
    store.apply(&batch, &cursor(7)).unwrap();
    let expected = vec![put("a", "longer than before", 3), put("c", "2", 7)];
    let found: Vec<_> = store.range("").unwrap().into_iter().map(KvUpdate::Put).collect();
    assert_eq!(found, expected);
    drop(store);
    let found = open::<S>(&path).range("").unwrap();
    assert_eq!(found.into_iter().map(KvUpdate::Put).collect::<Vec<_>>(), expected);
}

/// Keys around the places where comparisons go wrong.
const AWKWARD: [&str; 14] = [
    "a",
    "a.",
    "a.a",
    "a.b",
    "a/",
    "aa",
    "b",
    "a\0",
    "a\0\0",
    "a\u{7f}",
    "aé",
    "a\u{10ffff}",
    "Z",
    "é",
];

pub fn ranges_ascend_by_bytes_and_hold_their_prefix_only<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let batch: Vec<_> = AWKWARD.iter().zip(1..).map(|(key, n)| put(key, *key, n)).collect();
    store.apply(&batch, &cursor(1)).unwrap();
    for prefix in AWKWARD.iter().copied().chain(["", "a.c", "zz", "a\u{10fffe}"]) {
        let mut expected: Vec<_> = AWKWARD.iter().filter(|key| key.starts_with(prefix)).collect();
        expected.sort_by_key(|key| key.as_bytes());
        let found = store.range(prefix).unwrap();
        assert_eq!(found.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), {
            expected.iter().map(|key| **key).collect::<Vec<_>>()
        });
        assert!(found.iter().all(|entry| entry.value == entry.key.as_bytes()), "{prefix:?}");
    }
}

pub fn a_range_stops_when_it_is_told_to<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let batch: Vec<_> = (0..100).map(|n| put(&format!("k.{n:03}"), "v", n + 1)).collect();
    store.apply(&batch, &cursor(1)).unwrap();
    let mut seen = Vec::new();
    let visit = store.for_each_in_range("k.", &mut |entry| {
        seen.push(entry.key.to_owned());
        if seen.len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    visit.unwrap();
    assert_eq!(seen, ["k.000", "k.001", "k.002"]);
}

pub fn keys_are_visited_in_order<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let batch: Vec<_> = [7, 3, 9, 1].map(|n| put(&format!("k.{n}"), "v", n)).into();
    store.apply(&batch, &cursor(1)).unwrap();
    assert_eq!(keys(&store, ""), ["k.1", "k.3", "k.7", "k.9"]);
    assert_eq!(keys(&store, "k.3"), ["k.3"]);
    assert_eq!(keys(&store.reader(), "x"), [""; 0]);
}

pub fn an_empty_value_is_a_delete<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    store.apply(&[put("a", "1", 1), put("b", "", 2)], &cursor(2)).unwrap();
    store.apply(&[put("a", "", 3)], &cursor(3)).unwrap();
    assert_eq!((contents(&store), store.get("a").unwrap()), (Model::new(), None));
    drop(store);
    assert_eq!(contents(&open::<S>(&path)), Model::new());
}

pub fn purges_and_deletes_of_unknown_keys_change_nothing_else<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    store.apply(&[put("b", "1", 1)], &cursor(1)).unwrap();
    let unknown = VersionToken::unknown();
    let batch = [
        delete("a", 2),
        KvUpdate::Purge { key: "c".into(), version: VersionToken::from_u64(3) },
        { KvUpdate::Delete { key: "bb".into(), version: unknown } },
    ];
    store.apply(&batch, &cursor(3)).unwrap();
    assert_eq!((keys(&store, ""), store.cursor()), (vec!["b".to_owned()], cursor(3)));
}

pub fn versions_are_kept_as_they_are<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let versions: Vec<_> = (0..=10u8)
        .map(|len| VersionToken::from_bytes(&vec![0xF0 | len; usize::from(len)]).unwrap())
        .chain([VersionToken::from_bytes(&[0; 10]).unwrap(), VersionToken::from_u64(u64::MAX)])
        .collect();
    let entries: Vec<_> = versions
        .iter()
        .enumerate()
        .map(|(n, &version)| KvEntry {
            key: Key::from(format!("k.{n:02}")),
            value: "v".into(),
            version,
        })
        .collect();
    let batch: Vec<_> = entries.iter().cloned().map(KvUpdate::Put).collect();
    store.apply(&batch, &cursor(1)).unwrap();
    assert_eq!(store.range("").unwrap(), entries);
    drop(store);
    let store: S = open(&path);
    assert_eq!(store.range("").unwrap(), entries);
    assert_eq!(store.get("k.10").unwrap().unwrap().version, versions[10]);
}

pub fn cursors_are_kept_as_they_are<S: SnapshotStore>() {
    let (_dir, path) = place();
    let longest = WatchCursor::from_bytes(vec![0xFF; WatchCursor::MAX_LEN]).unwrap();
    let zero = WatchCursor::from_bytes(vec![0]).unwrap();
    for at in [longest, cursor(9), zero, cursor(1), WatchCursor::none()] {
        let mut store: S = open(&path);
        store.apply(&[put("a", "1", 1)], &at).unwrap();
        assert_eq!(store.cursor(), at);
        drop(store);
        assert_eq!(S::load(&path).unwrap().0, at);
    }
}

pub fn an_empty_batch_moves_the_cursor<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    store.apply(&[], &cursor(2)).unwrap();
    assert_eq!(store.cursor(), cursor(2));
    drop(store);
    let (at, store) = S::load(&path).unwrap();
    assert_eq!((at, keys(&store, "")), (cursor(2), vec!["a".to_owned()]));
}

pub fn large_values_are_kept<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let sizes = [1, 8_000, 70_000, 1 << 20, 3 << 20];
    let value = |size: usize, round: u8| vec![size as u8 ^ round ^ 0x5A; size];
    for round in 1..=3u8 {
        let batch: Vec<_> = sizes
            .iter()
            .map(|&size| put(&format!("k.{size}"), value(size + usize::from(round), round), 1))
            .collect();
        store.apply(&batch, &cursor(round.into())).unwrap();
    }
    drop(store);
    let store: S = open(&path);
    for size in sizes {
        let entry = store.get(&format!("k.{size}")).unwrap().unwrap();
        assert!(entry.value == value(size + 3, 3), "{size} bytes");
    }
    assert_eq!(store.range("").unwrap().len(), sizes.len());
}

pub fn a_key_beyond_the_limit_is_refused_and_nothing_changes<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let long = "k".repeat(u16::MAX.into());
    store.apply(&[put("a", "1", 1), put(&long, "v", 2)], &cursor(1)).unwrap();
    let before = contents(&store);
    let refused = store.apply(&[put("b", "1", 3), put(&(long + "k"), "v", 4)], &cursor(2));
    assert!(matches!(refused, Err(SnapshotError::TooLarge { len: 65_536, max: 65_535, .. })));
    assert_eq!((contents(&store), store.cursor()), (before.clone(), cursor(1)));
    drop(store);
    let store: S = open(&path);
    assert_eq!((contents(&store), store.cursor()), (before, cursor(1)));
}

pub fn an_empty_key_is_refused_and_nothing_changes<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    for update in [put("", "1", 2), delete("", 2)] {
        let refused = store.apply(&[put("a", "1", 1), update], &cursor(1));
        assert!(matches!(refused, Err(SnapshotError::EmptyKey)));
        assert_eq!((contents(&store), store.get("").unwrap()), (Model::new(), None));
        assert!(store.cursor().is_none());
    }
}

pub fn readers_see_what_is_applied_later<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let reader = store.reader();
    let another = reader.clone();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let seen =
        thread::spawn(move || (keys(&reader, ""), reader.cursor(), reader.get("a").unwrap()));
    let (seen, at, entry) = seen.join().unwrap();
    assert_eq!((seen, at, &entry.unwrap().value[..]), (vec!["a".to_owned()], cursor(1), &b"1"[..]));
    store.apply(&[delete("a", 2)], &cursor(2)).unwrap();
    assert_eq!((keys(&another, ""), another.cursor()), (vec![], cursor(2)));
}

/// Every batch sets all keys to its number, so a range that mixes two batches shows.
pub fn a_range_is_of_one_moment_while_batches_are_applied<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    let batch = |n: u64| -> Vec<KvUpdate> {
        // Of changing length: entries move.
        let value = n.to_string().repeat(1 + n as usize % 3);
        (0..300).map(|key| put(&format!("k.{key:03}"), value.clone(), n)).collect()
    };
    store.apply(&batch(1), &cursor(1)).unwrap();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..2 {
            let (reader, done) = (store.reader(), &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let at = number(&reader.cursor());
                    let entries = reader.range("k.").unwrap();
                    assert_eq!(entries.len(), 300);
                    let revision = entries[0].version.as_u64().unwrap();
                    assert!(entries.iter().all(|entry| entry.version == entries[0].version));
                    assert!(entries.iter().all(|entry| entry.value == entries[0].value));
                    assert!(revision >= at && at >= last, "a range of {revision} after {at}");
                    last = at;
                    let entry = reader.get("k.007").unwrap().unwrap();
                    assert!(entry.version.as_u64().unwrap() >= revision);
                }
            });
        }
        for n in 2..200 {
            store.apply(&batch(n), &cursor(n)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
    });
}

pub fn a_fold_is_opened_once<S: SnapshotStore>() {
    let (_dir, path) = place();
    let mut store: S = open(&path);
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    assert!(matches!(S::load(&path), Err(SnapshotError::InUse)));
    store.apply(&[put("b", "1", 2)], &cursor(2)).unwrap();
    drop(store);
    assert_eq!(S::load(&path).unwrap().0, cursor(2));
}

pub fn something_else_at_the_path_is_refused_and_left_as_it_is<S: SnapshotStore>() {
    for text in ["#!/bin/sh\n", "P", "some notes that somebody keeps\n"] {
        let (_dir, path) = place();
        let is_prefix = "PGSS".starts_with(text);
        fs::write(&path, text).unwrap();
        match S::load(&path) {
            Err(error) => {
                assert_is_something_else(&error, io::ErrorKind::NotADirectory);
                assert_eq!(fs::read_to_string(&path).unwrap(), text);
            }
            // What a log that was just being made begins with.
            Ok((cursor, _)) => assert!(is_prefix && cursor.is_none(), "{text:?}"),
        }
    }
    let (_dir, path) = place();
    fs::create_dir(&path).unwrap();
    fs::write(path.join("notes"), "that somebody keeps").unwrap();
    assert_is_something_else(&S::load(&path).err().unwrap(), io::ErrorKind::IsADirectory);
    let left: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes"]);
}

/// A fold that is a file says so of a directory, and the other way round.
#[track_caller]
fn assert_is_something_else(error: &SnapshotError, or: io::ErrorKind) {
    match error {
        SnapshotError::InvalidFormat(_) => {}
        SnapshotError::Io { source, .. } if source.kind() == or => {}
        error => panic!("{error:?}"),
    }
}

pub fn a_path_that_cannot_be_is_refused<S: SnapshotStore>() {
    let (dir, path) = place();
    fs::write(&path, "a file").unwrap();
    let refused = |path: &Path| match S::load(path).err() {
        Some(SnapshotError::Io { source, .. }) => source.kind(),
        refused => panic!("{refused:?}"),
    };
    assert_eq!(refused(&path.join("fold")), io::ErrorKind::NotADirectory);
    assert_eq!(refused(&dir.path().join("missing/fold")), io::ErrorKind::NotFound);
    // Where nobody can make files, not even root.
    assert_eq!(refused(Path::new("/proc/self/fold")), io::ErrorKind::NotFound);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a file");
    assert!(!dir.path().join("missing").exists());
}

pub fn random_lives_are_those_of_a_map<S: SnapshotStore>() {
    let (_dir, path) = place();
    let (mut store, mut model): (S, _) = (open(&path), Model::new());
    let mut n = 0;
    for _ in 0..20 * scale() {
        for _ in 0..10 {
            n += 1;
            let batch = batch(n);
            store.apply(&batch, &cursor(n)).unwrap();
            fold_into(&mut model, &batch);
        }
        assert_eq!(contents(&store), model);
        drop(store);
        let (at, reopened) = S::load(&path).unwrap();
        assert_eq!((at, contents(&reopened)), (cursor(n), model.clone()));
        store = reopened;
        for prefix in ["k.1", "k.12", "k.3", "x"] {
            let expected: Vec<_> = model.keys().filter(|key| key.starts_with(prefix)).collect();
            assert_eq!(keys(&store, prefix).iter().collect::<Vec<_>>(), expected);
        }
    }
}

/// `GOSSIP_SOAK_SCALE`.
fn scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().expect("a number"))
}

/// The `n`th batch of a life that is the same wherever it is lived.
fn batch(n: u64) -> Vec<KvUpdate> {
    let mut state = n.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut random = move |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % below
    };
    let len = random(30);
    let updates = (0..len).map(|nth| {
        let (key, revision) = (format!("k.{}", random(400)), n * 100 + nth);
        match random(8) {
            0 => delete(&key, revision),
            1 => KvUpdate::Purge { key: Key::from(key), version: VersionToken::from_u64(revision) },
            2 => put(&key, "", revision),
            _ => put(&key, vec![revision as u8; random(200) as usize], revision),
        }
    });
    updates.collect()
}
