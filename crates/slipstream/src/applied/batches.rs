//! Batches on their way from the watch to the apply loop: gathered, checked against the log's floor,
//! handed over.
//!
//! - B1: batches leave in the order in which they were gathered.
//! - B2: a batch leaves only after the floor of the log was read, later than its last update was
//!   received, and found not to be past the revision before the first gap up to it, nor later than
//!   the tombstones of expired keys last. One reading serves every batch that was there when it began.
//!   In a log that evicts current values a gap below the floor is passed, and what waits leaves (P2).
//! - B3: in a resync nothing waits for the floor: what was missed is found at the end of it.
//! - B4: a cursor says how far the log is known to have gone.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::BatchConfig;
use super::command::Batch;
use crate::kv::{CursorExpiry, KvUpdate, LogCursor, LogInfo};
use crate::protocol::{self, Guard};

/// What may be read ahead of the store, in batches and in bytes: the answer to a reading of the log
/// travels behind all that the server has already sent, so a catch-up must go on meanwhile.
const READ_AHEAD_BATCHES: usize = 256;
const READ_AHEAD_BYTES: usize = 8 << 20;

const NS_PER_MS: u64 = 1_000_000;

/// Where the fold stands before a gap.
#[derive(Clone, Copy)]
pub(super) struct BeforeGap {
    /// The revision that the floor must not have passed.
    pub(super) revision: u64,
    /// Everything that was written before this time, by the server's clock, was observed; see
    /// [`protocol::tombstones_are_left`].
    pub(super) observed_ms: u64,
}

impl BeforeGap {
    fn older(self, other: Self) -> Self {
        Self {
            revision: self.revision.min(other.revision),
            observed_ms: self.observed_ms.min(other.observed_ms),
        }
    }
}

/// What every cursor of a watch says besides what the watch itself knows.
#[derive(Clone, Copy, Default)]
pub(super) struct Known {
    /// How far the log has gone.
    pub(super) end: u64,
    /// How many keys it had messages of.
    pub(super) subjects: u64,
    /// Whether it was seen with limits that evict current values.
    pub(super) evicted: bool,
    /// Whether it had evicted something that the fold lacks.
    pub(super) incomplete: bool,
    /// Witnesses below this are of keys that a resync may have dropped.
    pub(super) floor: u64,
}

impl Known {
    pub(super) fn amend(&self, cursor: &mut LogCursor) {
        let position = &mut cursor.position;
        position.end = position.end.max(self.end);
        position.subjects = self.subjects;
        cursor.evicted = self.evicted;
        cursor.incomplete = self.incomplete;
        cursor.witnesses.retain(|witness| witness.revision >= self.floor);
    }
}

pub(super) struct Batches {
    config: BatchConfig,
    incarnation: u64,
    /// The newest revision up to which a complete fold has everything.
    frontier: u64,
    /// Everything that was written before this time was gathered.
    observed_ms: u64,
    pub(super) known: Known,
    /// Whether a skipped revision matters by itself; in a resync it does not (B3).
    guarded: bool,
    open: Vec<KvUpdate>,
    open_bytes: usize,
    opened: Option<Instant>,
    stored_at_ns: u64,
    more: bool,
    /// Gathered, and waiting for a reading of the log; each with its first gap.
    awaiting_floor: VecDeque<(Option<BeforeGap>, Batch)>,
    floor_query: Option<FloorQuery>,
    ready: VecDeque<Batch>,
    /// Of keys and values, in closed batches.
    bytes: usize,
}

/// What a reading of the floor is for: the first so many batches.
#[derive(Clone, Copy)]
struct FloorQuery {
    batches: usize,
    gap: BeforeGap,
    received: u64,
}

impl Batches {
    /// Of a watch that goes on from a cursor; `log` was read before it began.
    pub(super) fn resumed(config: BatchConfig, log: &LogInfo, cursor: &LogCursor) -> Self {
        let mut batches = Self::in_resync(config, log, cursor.evicted);
        batches.known.end = log.last;
        batches.known.subjects = cursor.position.subjects;
        batches.known.incomplete = cursor.incomplete;
        batches.guard_from(cursor.position.revision, cursor.position.observed_through_ms);
        batches
    }

    /// Of a watch that begins with a listing.
    pub(super) fn in_resync(config: BatchConfig, log: &LogInfo, evicted: bool) -> Self {
        Self {
            config,
            incarnation: log.incarnation,
            frontier: 0,
            observed_ms: 0,
            known: Known { evicted, ..Known::default() },
            guarded: false,
            open: Vec::with_capacity(config.max),
            open_bytes: 0,
            opened: None,
            stored_at_ns: 0,
            more: false,
            awaiting_floor: VecDeque::new(),
            floor_query: None,
            ready: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The fold has everything up to `frontier`: from now on a skipped revision matters.
    pub(super) fn guard_from(&mut self, frontier: u64, observed_ms: u64) {
        assert!(self.awaiting_floor.is_empty(), "in a resync nothing waits (B3)");
        (self.guarded, self.frontier, self.observed_ms) = (true, frontier, observed_ms);
    }

    /// A resync begins: nothing waits for the floor any more (B3).
    pub(super) fn unguard(&mut self) {
        self.guarded = false;
        self.release();
    }

    /// The log evicts current values, and the fold goes on behind what it has evicted (P5): everything
    /// that waits is let go.
    pub(super) fn pass_gap(&mut self, through: u64, log: &LogInfo) {
        self.frontier = self.frontier.max(through);
        self.observed_ms = self.observed_ms.max(log.read_at_ms);
        self.known.incomplete = true;
        self.release();
    }

    fn release(&mut self) {
        self.floor_query = None;
        self.ready.extend(self.awaiting_floor.drain(..).map(|(_, batch)| batch));
    }

    /// Where updates are to be put, and how many.
    pub(super) fn room(&mut self) -> (&mut Vec<KvUpdate>, usize) {
        let room = self.config.max - self.open.len();
        (&mut self.open, room)
    }

    /// Whether updates may be gathered, rather than the watch held back.
    pub(super) fn has_room(&self) -> bool {
        let batches = self.ready.len() + self.awaiting_floor.len();
        batches < READ_AHEAD_BATCHES && self.bytes < READ_AHEAD_BYTES
    }

    /// So many updates were put into the room. Whether the batch is full.
    pub(super) fn gathered(&mut self, count: usize, stored_at_ns: u64, pending: u64) -> bool {
        self.opened.get_or_insert_with(Instant::now);
        self.stored_at_ns = stored_at_ns;
        self.more = pending > 0;
        self.open_bytes += self.open[self.open.len() - count..].iter().map(bytes).sum::<usize>();
        self.open.len() >= self.config.max || self.open_bytes >= self.config.max_bytes
    }

    /// When the open batch must be closed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        // Too far away to be told is never.
        self.opened?.checked_add(self.config.window)
    }

    /// Closes the open batch, if it has anything. `cursor` covers all that was gathered.
    pub(super) fn close(&mut self, cursor: impl FnOnce() -> LogCursor) {
        if self.opened.take().is_none() {
            return;
        }
        self.open_bytes = 0;
        let updates = std::mem::replace(&mut self.open, Vec::with_capacity(self.config.max));
        let revisions = || updates.iter().filter_map(|update| update.version().as_u64());
        let mut gap = None;
        if self.guarded {
            let observed_ms = self.observed_ms;
            let before = protocol::before_first_gap(self.frontier, revisions());
            gap = before.map(|revision| BeforeGap { revision, observed_ms });
            self.frontier = revisions().max().unwrap_or(0).max(self.frontier);
            self.observed_ms = observed_ms.max(self.stored_at_ns / NS_PER_MS);
        }
        let (stored_at_ns, more) = (self.stored_at_ns, self.more);
        self.push(gap, Batch { updates, cursor: cursor(), stored_at_ns, more, synced: false });
    }

    /// The watch's position has passed what was not for it, up to that of `cursor`; `checked` if the
    /// floor was read for that already. `synced` if it has now handed out all that it began with.
    pub(super) fn pass(&mut self, cursor: LogCursor, checked: bool, synced: bool) {
        assert!(self.opened.is_none(), "what was gathered comes first");
        assert!(self.guarded, "a resync passes nothing (B3)");
        let Self { observed_ms, frontier, .. } = *self;
        let position = cursor.position;
        self.observed_ms = observed_ms.max(position.observed_through_ms);
        let moved = position.revision > frontier;
        if !moved && !synced {
            return;
        }
        let before = BeforeGap { revision: frontier, observed_ms };
        let gap = (moved && !checked).then_some(before);
        self.frontier = frontier.max(position.revision);
        let (updates, stored_at_ns, more) = (Vec::new(), 0, false);
        self.push(gap, Batch { updates, cursor, stored_at_ns, more, synced });
    }

    /// The cursor says something new, though nothing was received.
    pub(super) fn restate(&mut self, cursor: LogCursor) {
        let (updates, stored_at_ns, more, synced) = (Vec::new(), 0, false, false);
        self.push(None, Batch { updates, cursor, stored_at_ns, more, synced });
    }

    fn push(&mut self, gap: Option<BeforeGap>, batch: Batch) {
        self.bytes += batch_bytes(&batch);
        if gap.is_none() && self.awaiting_floor.is_empty() {
            self.ready.push_back(batch);
        } else {
            self.awaiting_floor.push_back((gap, batch));
        }
    }

    /// Whether the floor has to be read. The reading must begin after this call.
    pub(super) fn ask(&mut self) -> bool {
        if self.floor_query.is_some() {
            return false;
        }
        let gaps = self.awaiting_floor.iter().filter_map(|(gap, _)| *gap);
        let Some(gap) = gaps.reduce(BeforeGap::older) else {
            return false;
        };
        let (batches, received) = (self.awaiting_floor.len(), self.frontier);
        self.floor_query = Some(FloorQuery { batches, gap, received });
        true
    }

    /// The answer to the reading under way. After an error what waits still waits.
    pub(super) fn on_floor(&mut self, log: &LogInfo) -> Result<(), CursorExpiry> {
        let Some(FloorQuery { batches, gap, received }) = self.floor_query.take() else {
            return Ok(());
        };
        self.known.end = self.known.end.max(log.last);
        if let Guard::Trip(why) =
            protocol::live_guard(self.incarnation, gap.revision, received, log)
        {
            return Err(why);
        }
        if !protocol::tombstones_are_left(log, gap.observed_ms) {
            return Err(CursorExpiry::TombstonesExpired);
        }
        self.ready.extend(self.awaiting_floor.drain(..batches).map(|(_, batch)| batch));
        while let Some((_, batch)) = self.awaiting_floor.pop_front_if(|(gap, _)| gap.is_none()) {
            self.ready.push_back(batch);
        }
        Ok(())
    }

    /// Where the fold stands before the first gap that waits for the floor, or behind everything if
    /// none does.
    pub(super) fn before_gap(&self) -> BeforeGap {
        let now = BeforeGap { revision: self.frontier, observed_ms: self.observed_ms };
        self.awaiting_floor.iter().filter_map(|(gap, _)| *gap).fold(now, BeforeGap::older)
    }

    pub(super) fn next_ready(&mut self) -> Option<Batch> {
        let mut batch = self.ready.pop_front()?;
        self.bytes -= batch_bytes(&batch);
        self.known.amend(&mut batch.cursor);
        Some(batch)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether nothing is gathered or waits for the floor. Batches may be ready.
    pub(super) fn is_checked(&self) -> bool {
        self.opened.is_none() && self.awaiting_floor.is_empty()
    }

    pub(super) fn awaits_floor(&self) -> bool {
        !self.awaiting_floor.is_empty()
    }

    /// Whether the log has the tombstones of all keys that expired since it was last observed. Of a
    /// log that was not written to, all were gathered.
    pub(super) fn has_all_tombstones(&self, log: &LogInfo) -> bool {
        log.last <= self.frontier || protocol::tombstones_are_left(log, self.observed_ms)
    }
}

fn bytes(update: &KvUpdate) -> usize {
    match update {
        KvUpdate::Put(entry) => entry.key.len() + entry.value.len(),
        KvUpdate::Delete { key, .. } | KvUpdate::Purge { key, .. } => key.len(),
    }
}

fn batch_bytes(batch: &Batch) -> usize {
    batch.updates.iter().map(bytes).sum()
}

#[cfg(test)]
mod tests;
