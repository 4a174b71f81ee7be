//! Logs of the first format, by a writer of our own.

use std::fs;

use slipstream::{
    AppendLogSnapshot, KvUpdate, Snapshot, SnapshotStore, SnapshotWriter, WatchCursor,
};

use super::support::{cursor, delete, open, place, put, state};

struct Writer(Vec<u8>);

impl Writer {
    fn new() -> Self {
        Self(b"PGSS\x01\x00".to_vec())
    }

    fn record(&mut self, record: &[u8]) {
        self.0.extend_from_slice(&crc32(record).to_le_bytes());
        self.0.extend_from_slice(record);
    }

    fn update(&mut self, update: &KvUpdate) {
        let (version, key) = (update.version(), update.key().as_bytes());
        let mut record = vec![2];
        record.extend_from_slice(&(key.len() as u16).to_le_bytes());
        record.extend_from_slice(key);
        if let KvUpdate::Put(entry) = update {
            record[0] = 1;
            record.extend_from_slice(&(entry.value.len() as u32).to_le_bytes());
            record.extend_from_slice(&entry.value);
        }
        record.push(version.as_bytes().len() as u8);
        record.extend_from_slice(version.as_bytes());
        self.record(&record);
    }

    fn cursor(&mut self, cursor: &WatchCursor) {
        let mut record = vec![3, cursor.as_bytes().len() as u8];
        record.extend_from_slice(cursor.as_bytes());
        self.record(&record);
    }
}

/// Bit by bit, so that it is not the one that the reader uses.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0xEDB8_8320 } else { crc >> 1 };
        }
    }
    !crc
}

/// A log of these batches, each followed by its cursor.
pub(crate) fn log_of(batches: &[(Vec<KvUpdate>, WatchCursor)]) -> Vec<u8> {
    let mut log = Writer::new();
    for (batch, cursor) in batches {
        batch.iter().for_each(|update| log.update(update));
        log.cursor(cursor);
    }
    log.0
}

fn example() -> Writer {
    let mut log = Writer::new();
    log.update(&put("a", "1", 1));
    log.update(&put("b", "first", 2));
    log.cursor(&cursor(2));
    log.update(&put("b", "second", 3));
    log.update(&delete("a", 4));
    log.update(&put("c", "", 5));
    log.cursor(&cursor(5));
    log
}

#[test]
fn a_log_of_format_1_is_read_and_goes_on_as_format_2() {
    let (_dir, path) = place();
    let mut log = example();
    // Ahead of the cursor, as a crash leaves it.
    log.update(&put("d", "ahead", 6));
    fs::write(&path, &log.0).unwrap();
    let expected = vec![put("b", "second", 3), put("d", "ahead", 6)];

    let read = Snapshot::load(&path).unwrap();
    assert_eq!(read.entries.into_values().map(KvUpdate::Put).collect::<Vec<_>>(), expected);
    assert_eq!(fs::read(&path).unwrap(), log.0, "reading changes nothing");

    let (at, mut store) = AppendLogSnapshot::load(&path).unwrap();
    assert_eq!(at, cursor(5));
    assert_eq!(state(&store).1.into_iter().map(KvUpdate::Put).collect::<Vec<_>>(), expected);
    assert!(fs::read(&path).unwrap().starts_with(b"PGSS\x02\x00"));
    store.apply(&[put("e", "1", 7)], &cursor(7)).unwrap();
    let after = state(&store);
    drop(store);
    assert_eq!(state(&open(&path)), after);
}

#[test]
fn every_prefix_of_a_log_of_format_1_is_read_as_far_as_it_goes() {
    let bytes = example().0;
    let mut seen = Vec::new();
    for len in 0..=bytes.len() {
        let read = Snapshot::read(&bytes[..len], len as u64).unwrap();
        let keys: Vec<_> = read.entries.keys().map(|key| key.as_str().to_owned()).collect();
        let now = (keys.join(""), read.cursor);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
    }
    let expected = [("", 0), ("a", 0), ("ab", 0), ("ab", 2), ("b", 2), ("b", 5)];
    let expected = expected.map(|(keys, n)| (keys.to_owned(), cursor(n)));
    assert_eq!(seen, expected);
}

#[test]
fn a_changed_byte_in_the_middle_of_format_1_is_never_believed() {
    let bytes = example().0;
    let whole = Snapshot::read(&bytes[..], bytes.len() as u64).unwrap();
    for at in 6..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        // Its lengths are unchecked, so that damage may look like an end; it never looks like data.
        if let Ok(read) = Snapshot::read(&changed[..], changed.len() as u64) {
            let known = ["", "first", "second", "1"];
            assert!(
                read.entries.values().all(|entry| known.iter().any(|value| entry.value == *value))
            );
            assert!(read != whole, "byte {at}");
        }
    }
}

#[test]
fn a_writer_takes_a_log_of_format_1_over() {
    let (_dir, path) = place();
    fs::write(&path, example().0).unwrap();
    let mut writer = SnapshotWriter::open(&path, 1000).unwrap();
    writer.write_update(&put("z", "1", 9)).unwrap();
    assert!(!writer.checkpoint(&cursor(9)).unwrap());
    drop(writer);
    let read = Snapshot::load(&path).unwrap();
    assert_eq!(read.cursor, cursor(9));
    assert_eq!(read.entries.keys().map(|key| key.as_str()).collect::<Vec<_>>(), ["b", "z"]);
}
