//! What backends on key-value engines share: how an entry is stored under its key, and what a batch
//! comes to.
//!
//! A record is the length of the version (one byte), the version, the value.

use std::collections::HashSet;

use super::{EntryRef, SnapshotError};
use crate::kv::{KvEntry, KvUpdate, VersionToken};

/// What two bytes of length can say.
const MAX_KEY: usize = u16::MAX as usize;
/// What four bytes of length can say, less kind and version.
const MAX_VALUE: usize = u32::MAX as usize - 1 - VersionToken::MAX_LEN;

/// Writes the record of an entry to `into`, which is cleared first.
fn encode(version: VersionToken, value: &[u8], into: &mut Vec<u8>) {
    let version = version.as_bytes();
    into.clear();
    into.reserve(1 + version.len() + value.len());
    into.push(version.len() as u8);
    into.extend_from_slice(version);
    into.extend_from_slice(value);
}

/// The entry of a key and its record. [`SnapshotError::Corrupted`] if nobody wrote such.
pub fn decode<'a>(key: &'a [u8], record: &'a [u8]) -> Result<EntryRef<'a>, SnapshotError> {
    let parts = || {
        let (&len, rest) = record.split_first()?;
        let (version, value) = rest.split_at_checked(len.into())?;
        let key = std::str::from_utf8(key).ok()?;
        let version = VersionToken::from_bytes(version).ok()?;
        (!value.is_empty()).then_some(EntryRef { key, value, version })
    };
    parts().ok_or_else(|| SnapshotError::Corrupted("a record that no writer writes".into()))
}

/// What becomes of a key.
#[derive(Clone, Copy)]
pub struct Change<'a> {
    /// The key, in UTF-8.
    pub key: &'a [u8],
    entry: Option<&'a KvEntry>,
}

impl Change<'_> {
    /// The record that the key is set to, written to `scratch`; `None` if the key is removed.
    pub fn record<'s>(&self, scratch: &'s mut Vec<u8>) -> Option<&'s [u8]> {
        let entry = self.entry?;
        encode(entry.version, &entry.value, scratch);
        Some(scratch)
    }
}

/// What a batch comes to: the last update of each key. Refuses what cannot be stored.
pub fn changes(batch: &[KvUpdate]) -> Result<Vec<Change<'_>>, SnapshotError> {
    batch.iter().try_for_each(check)?;
    let mut seen = HashSet::with_capacity(batch.len());
    let last = batch.iter().rev().filter(|update| seen.insert(update.key().as_bytes()));
    let changes = last.map(|update| {
        let entry = match update {
            KvUpdate::Put(entry) if !entry.value.is_empty() => Some(entry),
            KvUpdate::Put(_) | KvUpdate::Delete { .. } | KvUpdate::Purge { .. } => None,
        };
        Change { key: update.key().as_bytes(), entry }
    });
    Ok(changes.collect())
}

/// Whether an update is within the limits of every backend.
pub(super) fn check(update: &KvUpdate) -> Result<(), SnapshotError> {
    let too_large = |what, len, max| Err(SnapshotError::TooLarge { what, len, max });
    let value = if let KvUpdate::Put(entry) = update { entry.value.len() } else { 0 };
    match update.key().len() {
        0 => Err(SnapshotError::EmptyKey),
        key if key > MAX_KEY => too_large("a key", key, MAX_KEY),
        _ if value > MAX_VALUE => too_large("a value", value, MAX_VALUE),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_record_survives(
            version in prop::collection::vec(any::<u8>(), 0..=10),
            value in prop::collection::vec(any::<u8>(), 1..50),
        ) {
            let version = VersionToken::from_bytes(&version).unwrap();
            let mut record = b"left over".to_vec();
            encode(version, &value, &mut record);
            let entry = decode(b"key", &record).unwrap();
            prop_assert_eq!((entry.key, entry.value, entry.version), ("key", &value[..], version));
        }

        #[test]
        fn no_record_makes_a_reader_panic(
            key in prop::collection::vec(any::<u8>(), 0..5),
            record in prop::collection::vec(any::<u8>(), 0..20),
        ) {
            if let Ok(entry) = decode(&key, &record) {
                let mut again = Vec::new();
                encode(entry.version, entry.value, &mut again);
                prop_assert_eq!(again, record);
            }
        }
    }

    #[test]
    fn versions_that_are_too_long_and_values_that_are_missing_are_damage() {
        for record in [&[][..], &[3, 1, 2], &[0], &[11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]] {
            assert!(matches!(decode(b"k", record), Err(SnapshotError::Corrupted(_))), "{record:?}");
        }
        assert!(matches!(decode(b"\xFF", &[0, 1]), Err(SnapshotError::Corrupted(_))));
    }
}
