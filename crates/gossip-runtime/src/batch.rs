//! What a worker has done since its last checkpoint, to be stored together with the next.

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::options::ScanOptions;
use crate::store::{self, ItemRow, Scope};

#[derive(Default)]
pub(crate) struct Batch {
    read: Vec<ItemRow>,
    unchanged: Vec<Vec<u8>>,
    bytes: u64,
    occurrences: usize,
    last_key: Option<Vec<u8>>,
    began_ms: u64,
}

/// Findings that may wait for a checkpoint: a bound on memory, not on findings.
const OCCURRENCES_MAX: usize = 10_000;

impl Batch {
    /// Notes that everything up to `key` is handled.
    pub(crate) fn advance(&mut self, key: &[u8], now_ms: u64) {
        if self.last_key.is_none() {
            self.began_ms = now_ms;
        }
        let last_key = self.last_key.get_or_insert_default();
        last_key.clear();
        last_key.extend_from_slice(key);
    }

    pub(crate) fn add_read(&mut self, row: ItemRow) {
        self.bytes += row.bytes;
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

    pub(crate) fn is_due(&self, options: &ScanOptions, now_ms: u64) -> bool {
        self.last_key.is_some()
            && (self.bytes >= options.checkpoint_bytes
                || self.read.len() + self.unchanged.len() >= options.checkpoint_items
                || self.occurrences >= OCCURRENCES_MAX
                || now_ms >= self.began_ms.saturating_add(options.checkpoint_ms))
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

    /// Forgets all of it, once it is stored.
    pub(crate) fn clear(&mut self) {
        self.read.clear();
        self.unchanged.clear();
        self.bytes = 0;
        self.occurrences = 0;
        self.last_key = None;
    }
}
