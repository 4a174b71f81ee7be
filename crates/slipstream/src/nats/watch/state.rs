//! What a watch knows of itself: how far it is, and whether it has caught up.

use crate::kv::{LogCursor, LogInfo, WatchScope};
use crate::log_cursor::{self, RecentlySeen};
use crate::protocol::Position;

/// What the cursors of a watch are made of.
pub(super) struct CursorState {
    scope_hash: u32,
    pub(super) position: Position,
    pub(super) recent: RecentlySeen,
    /// Whether the log has tombstones that expire, so that a cursor says what was observed.
    times: bool,
    /// A head of the log, and when it was read: whatever is written later has a higher revision.
    pub(super) read: (u64, u64),
}

impl CursorState {
    /// Of a watch that begins at a position; `log` was read before.
    pub(super) fn new(
        scope: &WatchScope,
        mut position: Position,
        recent: RecentlySeen,
        log: &LogInfo,
    ) -> Self {
        let times = log.retention.marker_ttl.is_some();
        if !times {
            position.observed_through_ms = 0;
        }
        let (scope_hash, read) = (log_cursor::scope_hash(scope), (log.last, log.read_at_ms));
        Self { scope_hash, position, recent, times, read }
    }

    pub(super) fn log_cursor(&self) -> LogCursor {
        self.recent.cursor(self.position, self.scope_hash)
    }

    /// The same, with all that is remembered.
    pub(super) fn remembered(&self) -> LogCursor {
        self.recent.remembered(self.position, self.scope_hash)
    }

    /// Nothing up to a revision is to come any more.
    pub(super) fn advance(&mut self, through: u64) {
        self.position.revision = self.position.revision.max(through);
        let (head, read_at_ms) = self.read;
        if through >= head {
            self.observe(read_at_ms);
        }
    }

    /// Everything stored before a time was handed out, or passed.
    pub(super) fn observe(&mut self, at_ms: u64) {
        if self.times {
            self.position.observed_through_ms = self.position.observed_through_ms.max(at_ms);
        }
    }
}

/// Whether a watch has handed out what the log had when it began.
pub(super) struct SyncState {
    /// The head before the watch began, until that was reported.
    pub(super) unsynced: Option<u64>,
    /// What the log's leader had when the watch began, and the copy has to come to.
    pub(super) due: u64,
    /// Whether the server had nothing more to send at some time after the due revision had come.
    caught_up: bool,
}

impl SyncState {
    pub(super) fn new(head: u64) -> Self {
        Self { unsynced: Some(head), due: 0, caught_up: false }
    }

    /// The watch has received everything up to a revision, when the server had so much to send.
    pub(super) fn has_received(&mut self, revision: u64, pending: u64) {
        // Whoever writes faster than this reads does not keep it from having all that was there.
        let all = pending == 0 || revision >= self.unsynced.unwrap_or_default();
        self.caught_up |= all && revision >= self.due;
    }

    /// The head before the watch began, once, when everything up to there was handed out.
    pub(super) fn take(&mut self) -> Option<u64> {
        self.unsynced.take_if(|_| self.caught_up)
    }
}
