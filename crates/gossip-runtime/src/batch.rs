//! What a worker has done since its last checkpoint, to be stored together with the next.

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::options::ScanOptions;
use crate::store::{self, ItemRow, Scope};

#[derive(Default)]
pub(crate) struct Batch {
    read: Vec<ItemRow>,
    unchanged: Vec<Vec<u8>>,
    /// Bytes read that would have to be read again.
    unsaved: u64,
    occurrences: usize,
    last_key: Option<Vec<u8>>,
    began_ms: Option<u64>,
}

/// Findings that may wait for a checkpoint: a bound on memory, not on findings.
pub(crate) const OCCURRENCES_MAX: usize = 10_000;

impl Batch {
    /// Notes that so many bytes are about to be read.
    pub(crate) fn reading(&mut self, bytes: u64, now_ms: u64) {
        self.unsaved += bytes;
        self.began_ms.get_or_insert(now_ms);
    }

    /// Notes that everything up to `key` is handled.
    pub(crate) fn advance(&mut self, key: &[u8], now_ms: u64) {
        self.began_ms.get_or_insert(now_ms);
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(key);
    }

    pub(crate) fn add_read(&mut self, row: ItemRow) {
        self.occurrences += row.occurrences.len();
        self.read.push(row);
    }

    pub(crate) fn add_unchanged(&mut self, key: &[u8]) {
        self.unchanged.push(key.to_vec());
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.unchanged.is_empty()
    }

    /// The last key handled, if any was.
    pub(crate) fn last_key(&self) -> Option<&[u8]> {
        self.last_key.as_deref()
    }

    /// Whether it should be stored before `next` more bytes are read: what is read again after a
    /// kill then stays within `checkpoint_bytes`.
    pub(crate) fn is_due(&self, next: u64, options: &ScanOptions, now_ms: u64) -> bool {
        self.unsaved + next > options.checkpoint_bytes
            || self.read.len() + self.unchanged.len() >= options.checkpoint_items
            || self.occurrences >= OCCURRENCES_MAX
            || self.began_ms.is_some_and(|began| now_ms >= began + options.checkpoint_ms)
    }

    /// Writes all of it.
    pub(crate) fn write(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        run: RunId,
    ) -> rusqlite::Result<()> {
        for key in &self.unchanged {
            store::keep_item(tx, scope, key, run)?;
        }
        for row in &self.read {
            store::put_item(tx, scope, row, run)?;
        }
        Ok(())
    }

    /// Forgets all of it, once it is stored; `unsaved` bytes of an item in hand are not.
    pub(crate) fn clear(&mut self, unsaved: u64) {
        self.read.clear();
        self.unchanged.clear();
        self.unsaved = unsaved;
        self.occurrences = 0;
        self.last_key = None;
        self.began_ms = None;
    }
}
