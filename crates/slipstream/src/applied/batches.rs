//! Batches on their way from the watch to the apply loop: gathered ([`OpenBatch`]), checked against the
//! log's floor, handed over.
//!
//! - B1: batches leave in the order in which they were gathered.
//! - B2: a batch leaves only after the floor of the log was read, later than its last update was
//!   received, and found not to be past the revision before the first gap up to it, nor later than
//!   the tombstones of expired keys last. One reading serves every batch that was there when it began.
//!   In a log that evicts current values a gap below the floor is passed, and what waits leaves (P2).
//! - B3: in a resync nothing waits for the floor: what was missed is found at the end of it.
//! - B4: a cursor says how far the log is known to have gone.

mod frontier;
mod open;

use std::collections::VecDeque;

use self::frontier::{BeforeGap, Frontier};
pub(super) use self::open::OpenBatch;
use super::command::Batch;
use crate::kv::{CursorExpiry, KvUpdate, LogCursor, LogInfo};

/// What may be read ahead of the store, in batches and in bytes: the answer to a reading of the log
/// travels behind all that the server has already sent, so a catch-up must go on meanwhile.
const READ_AHEAD_BATCHES: usize = 256;
const READ_AHEAD_BYTES: usize = 8 << 20;

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

/// Batches in their order, from when they were gathered until they are handed over (B1).
pub(super) struct Batches {
    frontier: Frontier,
    pub(super) known: Known,
    /// Waiting for a reading of the log; each with its first gap.
    awaiting_floor: VecDeque<(Option<BeforeGap>, Batch)>,
    floor_query: Option<FloorQuery>,
    ready: VecDeque<Batch>,
    /// Of keys and values.
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
    pub(super) fn resumed(log: &LogInfo, cursor: &LogCursor) -> Self {
        let mut batches = Self::in_resync(log, cursor.evicted);
        batches.known.end = log.last;
        batches.known.subjects = cursor.position.subjects;
        batches.known.incomplete = cursor.incomplete;
        batches.guard_from(cursor.position.revision, cursor.position.observed_through_ms);
        batches
    }

    /// Of a watch that begins with a listing.
    pub(super) fn in_resync(log: &LogInfo, evicted: bool) -> Self {
        Self {
            frontier: Frontier::in_resync(log.incarnation),
            known: Known { evicted, ..Known::default() },
            awaiting_floor: VecDeque::new(),
            floor_query: None,
            ready: VecDeque::new(),
            bytes: 0,
        }
    }

    /// The fold has everything up to `frontier`: from now on a skipped revision matters.
    pub(super) fn guard_from(&mut self, frontier: u64, observed_ms: u64) {
        assert!(self.awaiting_floor.is_empty(), "in a resync nothing waits (B3)");
        self.frontier.guard_from(frontier, observed_ms);
    }

    /// A resync begins: nothing waits for the floor any more (B3).
    pub(super) fn unguard(&mut self) {
        self.frontier.unguard();
        self.release();
    }

    /// The log evicts current values, and the fold goes on behind what it has evicted (P5): everything
    /// that waits is let go.
    pub(super) fn pass_gap(&mut self, through: u64, log: &LogInfo) {
        self.frontier.pass_gap(through, log.read_at_ms);
        self.known.incomplete = true;
        self.release();
    }

    fn release(&mut self) {
        self.floor_query = None;
        self.ready.extend(self.awaiting_floor.drain(..).map(|(_, batch)| batch));
    }

    /// Whether updates may be gathered, rather than the watch held back.
    pub(super) fn has_room(&self) -> bool {
        let batches = self.ready.len() + self.awaiting_floor.len();
        batches < READ_AHEAD_BATCHES && self.bytes < READ_AHEAD_BYTES
    }

    /// Takes what was gathered.
    pub(super) fn add(&mut self, batch: Batch) {
        let gap = self.frontier.gather(&batch);
        self.push(gap, batch);
    }

    /// The watch's position has passed what was not for it, up to that of `cursor`, which is behind all
    /// that was gathered; `checked` if the floor was read for that already. `synced` if it has now handed
    /// out all that it began with.
    pub(super) fn pass(&mut self, cursor: LogCursor, checked: bool, synced: bool) {
        let before = self.frontier.pass(&cursor.position);
        if before.is_none() && !synced {
            return;
        }
        let gap = before.filter(|_| !checked);
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
        let (batches, received) = (self.awaiting_floor.len(), self.frontier.here().revision);
        self.floor_query = Some(FloorQuery { batches, gap, received });
        true
    }

    /// The answer to the reading under way. After an error what waits still waits.
    pub(super) fn on_floor(&mut self, log: &LogInfo) -> Result<(), CursorExpiry> {
        let Some(FloorQuery { batches, gap, received }) = self.floor_query.take() else {
            return Ok(());
        };
        self.known.end = self.known.end.max(log.last);
        self.frontier.check(gap, received, log)?;
        self.ready.extend(self.awaiting_floor.drain(..batches).map(|(_, batch)| batch));
        while let Some((_, batch)) = self.awaiting_floor.pop_front_if(|(gap, _)| gap.is_none()) {
            self.ready.push_back(batch);
        }
        Ok(())
    }

    /// Where the fold stands before the first gap that waits for the floor, or behind everything if
    /// none does.
    pub(super) fn before_gap(&self) -> BeforeGap {
        let gaps = self.awaiting_floor.iter().filter_map(|(gap, _)| *gap);
        gaps.fold(self.frontier.here(), BeforeGap::older)
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

    pub(super) fn awaits_floor(&self) -> bool {
        !self.awaiting_floor.is_empty()
    }

    /// As [`Frontier::has_all_tombstones`].
    pub(super) fn has_all_tombstones(&self, log: &LogInfo) -> bool {
        self.frontier.has_all_tombstones(log)
    }
}

fn update_bytes(update: &KvUpdate) -> usize {
    match update {
        KvUpdate::Put(entry) => entry.key.len() + entry.value.len(),
        KvUpdate::Delete { key, .. } | KvUpdate::Purge { key, .. } => key.len(),
    }
}

fn batch_bytes(batch: &Batch) -> usize {
    batch.updates.iter().map(update_bytes).sum()
}

#[cfg(test)]
mod tests;
