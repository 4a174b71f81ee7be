//! Logs of each format that were written once. They are read for ever, and format 2 is still written
//! like this.

use std::fs;
use std::path::{Path, PathBuf};

use slipstream::{KvEntry, KvUpdate, Snapshot, SnapshotStore, VersionToken, WatchCursor};

use super::format_1;
use super::support::{delete, open, place, put};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Bytes in hexadecimal, in lines.
fn read(name: &str) -> Vec<u8> {
    let text = fs::read_to_string(golden(name)).unwrap();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

#[track_caller]
fn assert_is(name: &str, bytes: &[u8]) {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let text: Vec<String> = bytes.chunks(32).map(line).collect();
    assert!(read(name) == bytes, "{name} is now:\n{}", text.join("\n"));
}

pub(super) fn history() -> [(Vec<KvUpdate>, WatchCursor); 3] {
    let version = VersionToken::from_bytes(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]).unwrap();
    let stamped = KvEntry { key: "d\u{e9}".into(), value: "stamped".into(), version };
    let unknown = VersionToken::unknown();
    let at = |bytes: &[u8]| WatchCursor::from_bytes(bytes.to_vec()).unwrap();
    [
        (vec![put("a", "one", 1), put("b", "two", 2), put("c", "three", 3)], at(&[3])),
        (vec![delete("b", 4), KvUpdate::Put(stamped)], at(&[0xFF; 255])),
        (vec![KvUpdate::Purge { key: "a".into(), version: unknown }], at(b"end")),
    ]
}

fn assert_end_of_history(snapshot: Snapshot) {
    assert_eq!(snapshot.cursor.as_bytes(), b"end");
    let entries: Vec<_> = snapshot.entries.into_values().collect();
    let seen: Vec<_> = entries.iter().map(|entry| (entry.key.as_str(), &entry.value[..])).collect();
    assert_eq!(seen, [("c", &b"three"[..]), ("d\u{e9}", b"stamped")]);
    assert_eq!(entries[0].version.as_u64(), Some(3));
    assert_eq!(entries[1].version.as_bytes(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
}

fn load(name: &str) -> Snapshot {
    let bytes = read(name);
    Snapshot::read(&bytes[..], bytes.len() as u64).unwrap()
}

#[test]
fn format_1_is_read() {
    assert_is("log-1.hex", &format_1::log_of(&history()));
    assert_end_of_history(load("log-1.hex"));
}

#[test]
fn format_2_is_read_and_written() {
    let (_dir, path) = place();
    let mut store = open(&path);
    for (batch, cursor) in history() {
        store.apply(&batch, &cursor).unwrap();
    }
    assert_is("log-2.hex", &fs::read(&path).unwrap());
    assert_end_of_history(load("log-2.hex"));
    store.compact().unwrap();
    assert_is("log-2-compacted.hex", &fs::read(&path).unwrap());
    assert_end_of_history(load("log-2-compacted.hex"));
}
