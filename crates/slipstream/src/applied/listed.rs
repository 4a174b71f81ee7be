//! The keys that a listing has brought.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};

use crate::kv::KvUpdate;

/// Keyed hashes of 128 bits: a collision would keep a key that has vanished.
pub(super) struct ListedKeys {
    keys: HashMap<u128, bool, BuildHasherDefault<Low64>>,
    states: [RandomState; 2],
}

impl ListedKeys {
    pub(super) fn new() -> Self {
        Self { keys: HashMap::default(), states: [RandomState::new(), RandomState::new()] }
    }

    /// Takes an update, in the order of the log.
    pub(super) fn note(&mut self, update: &KvUpdate) {
        let hash = self.hash(update.key().as_bytes());
        self.keys.insert(hash, matches!(update, KvUpdate::Put(_)));
    }

    /// How many keys came, tombstones included.
    pub(super) fn count(&self) -> u64 {
        self.keys.len() as u64
    }

    /// Whether the last that came of a key was a value.
    pub(super) fn has_value(&self, key: &[u8]) -> bool {
        self.keys.get(&self.hash(key)) == Some(&true)
    }

    fn hash(&self, key: &[u8]) -> u128 {
        let [high, low] = self.states.each_ref().map(|state| u128::from(state.hash_one(key)));
        high << 64 | low
    }
}

/// The keys of the map are hashes already.
#[derive(Default)]
struct Low64(u64);

impl Hasher for Low64 {
    fn write(&mut self, _: &[u8]) {
        unreachable!("hashes are written as u128");
    }

    fn write_u128(&mut self, hash: u128) {
        self.0 = hash as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{KvEntry, VersionToken};

    #[test]
    fn the_last_update_of_a_key_counts() {
        let version = VersionToken::from_u64(1);
        let put =
            |key: &str| KvUpdate::Put(KvEntry { key: key.into(), value: "v".into(), version });
        let delete = |key: &str| KvUpdate::Delete { key: key.into(), version };
        let mut seen = ListedKeys::new();
        for update in [put("a"), put("b"), delete("a"), delete("c"), put("c")] {
            seen.note(&update);
        }
        assert_eq!(
            ["a", "b", "c", "d"].map(|key| seen.has_value(key.as_bytes())),
            [false, true, true, false]
        );
        assert_eq!(seen.count(), 3);
    }
}
