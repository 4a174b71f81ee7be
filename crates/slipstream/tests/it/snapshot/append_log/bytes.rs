//! What becomes of a log of which bytes are missing or changed.

use std::fs;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use slipstream::{AppendLogSnapshot, KvUpdate, Snapshot, SnapshotError, SnapshotStore};

use super::checks::check_log;
use super::support::{State, batches, cursor, delete, open, place, put, state};

/// A log of these batches, compacted after some of them; its bytes, and every state that it had.
fn history(batches: &[Vec<KvUpdate>], compact_after: Option<usize>) -> (Vec<u8>, Vec<State>) {
    let (_dir, path) = place();
    let mut store = open(&path);
    let mut states = vec![state(&store)];
    for (nth, batch) in batches.iter().enumerate() {
        store.apply(batch, &cursor(nth as u64 + 1)).unwrap();
        states.push(state(&store));
        if compact_after == Some(nth) {
            store.compact().unwrap();
        }
    }
    drop(store);
    (fs::read(path).unwrap(), states)
}

fn load(bytes: &[u8]) -> Result<State, SnapshotError> {
    let snapshot = Snapshot::read(bytes, bytes.len() as u64)?;
    Ok((snapshot.cursor, snapshot.entries.into_values().collect()))
}

proptest! {
    #[test]
    fn any_prefix_of_a_log_is_a_state_that_it_had(
        batches in batches(),
        compact_after in prop::option::of(0usize..6),
    ) {
        let (bytes, states) = history(&batches, compact_after);
        let mut position = 0;
        for len in 0..=bytes.len() {
            let loaded = load(&bytes[..len]).unwrap();
            let found = states[position..].iter().position(|state| *state == loaded);
            prop_assert!(found.is_some(), "{len} bytes are no state from {position} on");
            position += found.unwrap();
        }
        prop_assert_eq!(&load(&bytes).unwrap(), states.last().unwrap());
    }

    #[test]
    fn a_changed_byte_is_refused_or_drops_the_last_batch(
        batches in batches(),
        compact_after in prop::option::of(0usize..6),
        flip in 1u8..=255,
    ) {
        let (mut bytes, states) = history(&batches, compact_after);
        // After a compaction at the end, the last frame makes the whole state count.
        let compacted_last = compact_after.is_some_and(|after| after + 1 == batches.len());
        let dropped = if compacted_last { &states[0] } else { &states[states.len() - 2] };
        for at in 0..bytes.len() {
            bytes[at] ^= flip;
            match load(&bytes) {
                Err(SnapshotError::Corrupted(_) | SnapshotError::InvalidFormat(_)) => {}
                Err(error) => prop_assert!(false, "byte {at}: {error}"),
                Ok(loaded) => prop_assert_eq!(&loaded, dropped, "byte {}", at),
            }
            bytes[at] ^= flip;
        }
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check_log(&bytes);
    }
}

#[test]
fn every_cut_of_the_last_batch_is_dropped_and_the_log_goes_on() {
    let (_dir, path) = place();
    let mut store = open(&path);
    store.apply(&[put("a", "1", 1), put("b", "1", 2)], &cursor(2)).unwrap();
    let (before, before_len) = (state(&store), store.log_len());
    store.apply(&[put("a", "2", 3), delete("b", 4)], &cursor(4)).unwrap();
    drop(store);
    let bytes = fs::read(&path).unwrap();
    for len in before_len as usize..bytes.len() {
        fs::write(&path, &bytes[..len]).unwrap();
        let mut store = open(&path);
        assert_eq!(state(&store), before);
        assert_eq!(
            fs::metadata(&path).unwrap().len(),
            before_len,
            "cut before anything is appended"
        );
        store.apply(&[put("c", "1", 5)], &cursor(5)).unwrap();
        let after = state(&store);
        drop(store);
        assert_eq!(state(&open(&path)), after);
    }
}

#[test]
fn zeros_behind_the_last_batch_are_dropped() {
    let (_dir, path) = place();
    let mut store = open(&path);
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let (first, first_len) = (state(&store), store.log_len() as usize);
    store.apply(&[put("a", "2", 2)], &cursor(2)).unwrap();
    let second = state(&store);
    drop(store);
    let bytes = fs::read(&path).unwrap();
    // A machine that crashed has made the file longer, but not filled it.
    for zeros in [1, 11, 12, 100, 10_000] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + zeros, 0);
        assert_eq!(load(&longer).unwrap(), second);
        for written in first_len..bytes.len() {
            let mut cut = bytes[..written].to_vec();
            cut.resize(bytes.len() + zeros, 0);
            assert_eq!(load(&cut).unwrap(), first, "{written} bytes and zeros");
        }
    }
}

#[test]
fn a_wrong_length_in_the_middle_is_damage_and_not_an_end() {
    let (_dir, path) = place();
    let mut store = open(&path);
    let mut ends = vec![store.log_len() as usize];
    for n in 1..=3 {
        store.apply(&[put("a", vec![7; 50], n)], &cursor(n)).unwrap();
        ends.push(store.log_len() as usize);
    }
    drop(store);
    let bytes = fs::read(&path).unwrap();
    for &start in &ends[..2] {
        for wrong in [0, 1, 200, u32::MAX] {
            let mut bytes = bytes.clone();
            bytes[start..start + 4].copy_from_slice(&wrong.to_le_bytes());
            fs::write(&path, &bytes).unwrap();
            assert_refused(&path, &bytes, "damaged: at byte");
        }
    }
}

#[test]
fn a_newer_format_is_refused_and_left_as_it_is() {
    let (_dir, path) = place();
    for version in [0u16, 3, 400, u16::MAX] {
        let mut bytes = b"PGSS".to_vec();
        bytes.extend_from_slice(&version.to_le_bytes());
        bytes.extend_from_slice(b"whatever comes");
        fs::write(&path, &bytes).unwrap();
        assert_refused(&path, &bytes, &format!("format {version};"));
    }
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let (_dir, path) = place();
    for bytes in [&b"{\"a\": 1}"[..], b"PK\x03\x04", b"PGS!", &[0; 100], b"SQLite format 3\0"] {
        fs::write(&path, bytes).unwrap();
        assert_refused(&path, bytes, "a file of something else");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let (dir, path) = place();
    let refused = AppendLogSnapshot::load(Path::new("/dev/null")).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    let refused = AppendLogSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    let refused = AppendLogSnapshot::load(dir.path()).err().unwrap();
    assert!(matches!(refused, SnapshotError::Io { .. }), "{refused}");
}

#[track_caller]
fn assert_refused(path: &Path, bytes: &[u8], why: &str) {
    let error = AppendLogSnapshot::load(path).err().expect("it is refused").to_string();
    assert!(error.contains(why), "{error}");
    assert_eq!(fs::read(path).unwrap(), bytes);
    // The lock is not kept.
    assert!(AppendLogSnapshot::load(path).err().unwrap().to_string().contains(why));
}

#[test]
fn opening_a_log_leaves_its_bytes_as_they_were_and_nothing_beside_them() {
    let (dir, path) = place();
    let mut store = open(&path);
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let before = fs::read(&path).unwrap();
    drop(store);
    let store = open(&path);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    assert_eq!(state(&store).1.len(), 1);
}
