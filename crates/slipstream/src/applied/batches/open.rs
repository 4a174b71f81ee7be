//! The batch that updates are gathered into.

use tokio::time::Instant;

use super::update_bytes;
use crate::applied::BatchConfig;
use crate::applied::command::Batch;
use crate::kv::{KvUpdate, LogCursor};

/// A batch that is open until it is full, or until the window of its first update is over.
pub(in crate::applied) struct OpenBatch {
    config: BatchConfig,
    updates: Vec<KvUpdate>,
    /// Of keys and values.
    bytes: usize,
    /// When the first update came; `None` if nothing was gathered.
    opened: Option<Instant>,
    /// When the last update was stored, and whether more were to come.
    stored_at_ns: u64,
    more: bool,
}

impl OpenBatch {
    pub(in crate::applied) fn new(config: BatchConfig) -> Self {
        let updates = Vec::with_capacity(config.max);
        Self { config, updates, bytes: 0, opened: None, stored_at_ns: 0, more: false }
    }

    /// Where updates are to be put, and how many.
    pub(in crate::applied) fn room(&mut self) -> (&mut Vec<KvUpdate>, usize) {
        let room = self.config.max - self.updates.len();
        (&mut self.updates, room)
    }

    pub(in crate::applied) fn len(&self) -> usize {
        self.updates.len()
    }

    pub(in crate::applied) fn is_empty(&self) -> bool {
        self.opened.is_none()
    }

    /// So many updates were put into the room. Whether the batch is full.
    pub(in crate::applied) fn gathered(
        &mut self,
        count: usize,
        stored_at_ns: u64,
        pending: u64,
    ) -> bool {
        self.opened.get_or_insert_with(Instant::now);
        self.stored_at_ns = stored_at_ns;
        self.more = pending > 0;
        let new = &self.updates[self.updates.len() - count..];
        self.bytes += new.iter().map(update_bytes).sum::<usize>();
        self.updates.len() >= self.config.max || self.bytes >= self.config.max_bytes
    }

    /// When it must be closed.
    pub(in crate::applied) fn deadline(&self) -> Option<Instant> {
        // Too far away to be told is never.
        self.opened?.checked_add(self.config.window)
    }

    /// What was gathered, if anything was. `cursor` covers all of it.
    pub(in crate::applied) fn close(
        &mut self,
        cursor: impl FnOnce() -> LogCursor,
    ) -> Option<Batch> {
        self.opened.take()?;
        self.bytes = 0;
        let updates = std::mem::replace(&mut self.updates, Vec::with_capacity(self.config.max));
        let (stored_at_ns, more) = (self.stored_at_ns, self.more);
        Some(Batch { updates, cursor: cursor(), stored_at_ns, more, synced: false })
    }
}
