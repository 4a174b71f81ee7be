//! Batches on their way from the watch to the store: gathered, vouched for, handed over.
//!
//! - B1: batches leave in the order in which they were gathered.
//! - B2: a batch leaves only after the floor of the log was read, later than its last update was
//!   received, and found not to be past the revision before the first gap up to it. One reading
//!   serves every batch that was there when it began.
//! - B3: the cursor of a batch that was read across gaps says how far the log had gone by then. In a
//!   listing too, which has more of them: there a reading is waited for, and the floor is no matter.
//! - B4: the cursor of a listing has heard what counts up to when the log was read for it, and no
//!   later: the fold was compared with the bucket, if at all, after that.

use std::collections::VecDeque;

use tokio::time::Instant;

use super::BatchConfig;
use super::folder::Batch;
use crate::kv::{CursorExpiry, KvUpdate, LogInfo, WatchCursor};
use crate::log_cursor;
use crate::protocol::{self, Guard};

/// What may be read ahead of the store, in batches and in bytes: the answer to a reading of the log
/// travels behind all that the server has already sent, so a catch-up must go on meanwhile.
const READ_AHEAD_BATCHES: usize = 256;
const READ_AHEAD_BYTES: usize = 8 << 20;

/// What a gap is to a listing: whatever was there is superseded, by a message that follows.
const ANY_FLOOR: u64 = u64::MAX;

pub(super) struct Batches {
    config: BatchConfig,
    incarnation: u64,
    /// The newest revision gathered, or passed.
    frontier: u64,
    /// How far the log is known to have gone.
    end: u64,
    /// When the log was read first, by its own clock.
    began_ms: u64,
    /// What was missed up to here has been made good.
    swept: u64,
    /// Whether the floor matters to a skipped revision; in a listing it does not.
    guarded: bool,
    open: Vec<KvUpdate>,
    opened: Option<Instant>,
    stored_at_ns: u64,
    more: bool,
    /// Gathered, and waiting for a reading of the log; each with the revision before its first gap
    /// that the floor must not have passed ([`ANY_FLOOR`] in a listing).
    unvouched: VecDeque<(Option<u64>, Batch)>,
    /// The reading of the floor that is under way.
    asked: Option<Asked>,
    ready: VecDeque<Batch>,
    /// Of keys and values, in closed batches.
    bytes: usize,
}

/// What a reading of the floor is for: the first so many batches.
#[derive(Clone, Copy)]
struct Asked {
    batches: usize,
    before_gap: u64,
    received: u64,
}

impl Batches {
    /// Of a watch that begins at `position` of a log, which was read before.
    pub(super) fn new(config: BatchConfig, log: &LogInfo, position: u64, guarded: bool) -> Self {
        Self {
            config,
            incarnation: log.incarnation,
            frontier: position,
            end: log.last,
            began_ms: log.read_at_ms,
            swept: 0,
            guarded,
            open: Vec::with_capacity(config.max),
            opened: None,
            stored_at_ns: 0,
            more: false,
            unvouched: VecDeque::new(),
            asked: None,
            ready: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Where updates are to be put, and how many.
    pub(super) fn room(&mut self) -> (&mut Vec<KvUpdate>, usize) {
        let room = self.config.max - self.open.len();
        (&mut self.open, room)
    }

    /// Whether updates may be gathered, rather than the watch held back.
    pub(super) fn has_room(&self) -> bool {
        let batches = self.ready.len() + self.unvouched.len();
        batches < READ_AHEAD_BATCHES && self.bytes < READ_AHEAD_BYTES
    }

    /// Updates were put into the room. Whether the batch is full.
    pub(super) fn gathered(&mut self, stored_at_ns: u64, pending: u64) -> bool {
        self.opened.get_or_insert_with(Instant::now);
        self.stored_at_ns = stored_at_ns;
        self.more = pending > 0;
        self.open.len() >= self.config.max
    }

    /// When the open batch must be closed.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.opened.map(|opened| opened + self.config.window)
    }

    /// Closes the open batch, if it has anything. `cursor` covers all that was gathered.
    pub(super) fn close(&mut self, cursor: impl FnOnce() -> WatchCursor) {
        if self.opened.take().is_none() {
            return;
        }
        let updates = std::mem::replace(&mut self.open, Vec::with_capacity(self.config.max));
        let revisions = updates.iter().filter_map(|update| update.version().as_u64());
        let high = revisions.clone().max().unwrap_or(self.frontier).max(self.frontier);
        let gap = protocol::before_first_gap(self.frontier.max(self.swept), revisions)
            .map(|before| if self.guarded { before } else { ANY_FLOOR });
        self.frontier = high;
        let (stored_at_ns, more) = (self.stored_at_ns, self.more);
        let (cursor, revision) = (cursor(), high);
        self.push(gap, Batch { updates, cursor, revision, stored_at_ns, more, synced: false });
    }

    /// The watch's position has passed what was not for it, up to `through`; `checked` if the
    /// floor was read for that already. `synced` if it has now handed out all that it began with.
    pub(super) fn pass(&mut self, through: u64, checked: bool, synced: bool, cursor: WatchCursor) {
        assert!(self.opened.is_none(), "what was gathered comes first");
        let moved = through > self.frontier;
        if !moved && !synced {
            return;
        }
        let gap = (moved && !checked).then_some(self.frontier);
        self.frontier = self.frontier.max(through);
        self.push(gap, Batch { cursor, revision: self.frontier, synced, ..Batch::default() });
    }

    fn push(&mut self, gap: Option<u64>, batch: Batch) {
        self.bytes += bytes(&batch);
        if gap.is_none() && self.unvouched.is_empty() {
            self.ready.push_back(batch);
        } else {
            self.unvouched.push_back((gap, batch));
        }
    }

    /// The listing is over, and the log was read after that: from now on the floor matters to a
    /// skipped revision, unless that is below `swept`.
    pub(super) fn guard_from(&mut self, swept: u64, log: &LogInfo) {
        assert!(self.unvouched.is_empty(), "what was listed comes first");
        self.guarded = true;
        self.swept = swept;
        self.end = self.end.max(log.last);
    }

    /// Whether the floor has to be read. The reading must begin after this call.
    pub(super) fn ask(&mut self) -> bool {
        if self.asked.is_some() {
            return false;
        }
        let Some(before_gap) = self.unvouched.iter().filter_map(|(gap, _)| *gap).min() else {
            return false;
        };
        let (batches, received) = (self.unvouched.len(), self.frontier);
        self.asked = Some(Asked { batches, before_gap, received });
        true
    }

    /// The answer to the reading under way.
    pub(super) fn answered(&mut self, log: &LogInfo) -> Result<(), CursorExpiry> {
        let asked = self.asked.take().expect("a reading is under way");
        self.end = self.end.max(log.last);
        let guard = protocol::live_guard(self.incarnation, asked.before_gap, asked.received, log);
        if let Guard::Trip(why) = guard {
            return Err(why);
        }
        self.ready.extend(self.unvouched.drain(..asked.batches).map(|(_, batch)| batch));
        while let Some((_, batch)) = self.unvouched.pop_front_if(|(gap, _)| gap.is_none()) {
            self.ready.push_back(batch);
        }
        Ok(())
    }

    pub(super) fn next_ready(&mut self) -> Option<Batch> {
        let mut batch = self.ready.pop_front()?;
        self.bytes -= bytes(&batch);
        // B3, B4.
        if !self.guarded || batch.revision < self.end {
            let heard_max_ms = if self.guarded { u64::MAX } else { self.began_ms };
            batch.cursor = log_cursor::amended(batch.cursor, self.end, heard_max_ms);
        }
        Some(batch)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether nothing is gathered or waits for the floor.
    pub(super) fn is_quiet(&self) -> bool {
        self.opened.is_none() && self.unvouched.is_empty()
    }

    pub(super) fn has_unvouched(&self) -> bool {
        !self.unvouched.is_empty()
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.guarded
    }
}

fn bytes(batch: &Batch) -> usize {
    let of = |update: &KvUpdate| match update {
        KvUpdate::Put(entry) => entry.key.len() + entry.value.len(),
        KvUpdate::Delete { key, .. } | KvUpdate::Purge { key, .. } => key.len(),
    };
    batch.updates.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::kv::{Retention, VersionToken};
    use crate::log_cursor::LogCursor;
    use crate::protocol::Position;

    fn batches(position: u64, guarded: bool) -> Batches {
        let config = BatchConfig { window: Duration::ZERO, max: 2, channel_capacity: 2 };
        Batches::new(config, &log(1, position), position, guarded)
    }

    fn deleted(revision: u64) -> KvUpdate {
        KvUpdate::Delete { key: "k".into(), version: VersionToken::from_u64(revision) }
    }

    /// Gathers and closes one batch.
    fn gather(batches: &mut Batches, revisions: &[u64]) {
        batches.room().0.extend(revisions.iter().copied().map(deleted));
        batches.gathered(1, 0);
        batches.close(WatchCursor::none);
    }

    fn ready(batches: &mut Batches) -> Vec<u64> {
        std::iter::from_fn(|| batches.next_ready()).map(|batch| batch.revision).collect()
    }

    fn log(first: u64, last: u64) -> LogInfo {
        LogInfo { incarnation: 1, first, last, retention: Retention::default(), read_at_ms: 0 }
    }

    #[test]
    fn batches_without_gaps_wait_for_nothing() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[5, 6]);
        gather(&mut batches, &[7]);
        assert!(!batches.ask());
        assert_eq!(ready(&mut batches), [6, 7]);
    }

    #[test]
    fn a_batch_with_a_gap_holds_up_those_after_it_until_the_floor_is_read() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[5, 7]);
        gather(&mut batches, &[8]);
        assert!(ready(&mut batches).is_empty());
        assert!(batches.ask() && !batches.ask(), "one reading at a time");
        assert_eq!(batches.answered(&log(6, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [7, 8]);
    }

    /// A reading that began before a batch was received says nothing about it.
    #[test]
    fn a_reading_serves_only_what_was_there_when_it_began() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[6]);
        assert!(batches.ask());
        gather(&mut batches, &[7, 9]);
        assert_eq!(batches.answered(&log(1, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [6]);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 7, first: 9 };
        assert_eq!(batches.answered(&log(9, 9)), Err(below));
        assert!(ready(&mut batches).is_empty());
    }

    #[test]
    fn the_floor_is_compared_with_the_first_gap_of_all_that_wait() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[5, 7]);
        gather(&mut batches, &[20]);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 5, first: 7 };
        assert_eq!(batches.answered(&log(7, 20)), Err(below));
    }

    #[test]
    fn the_floor_is_no_matter_to_a_listing_nor_to_what_was_swept() {
        let mut batches = batches(0, false);
        gather(&mut batches, &[1, 2]);
        assert_eq!(ready(&mut batches), [2], "nothing was skipped");
        gather(&mut batches, &[3, 9]);
        assert!(batches.ask());
        assert_eq!(batches.answered(&log(9, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [9]);
        batches.guard_from(12, &log(9, 12));
        gather(&mut batches, &[13]);
        assert_eq!(ready(&mut batches), [13], "10 to 12 were made good");
        gather(&mut batches, &[15]);
        assert!(ready(&mut batches).is_empty() && batches.ask());
    }

    /// What was skipped had been superseded by something that the log had when it was asked.
    #[test]
    fn a_listing_across_gaps_says_how_far_the_log_had_gone_since_it_began() {
        let cursor = |revision| {
            let witnesses = Vec::new();
            LogCursor { at: Position::at(1, revision), scope: 0, witnesses }.encode()
        };
        let end = |batch: Batch| LogCursor::decode(&batch.cursor).unwrap().at.end;
        let mut batches = batches(0, false);
        batches.room().0.push(deleted(4));
        batches.gathered(1, 0);
        batches.close(|| cursor(4));
        assert!(batches.next_ready().is_none() && batches.ask());
        assert_eq!(batches.answered(&log(1, 8)), Ok(()));
        assert_eq!(end(batches.next_ready().unwrap()), 8);
        // The last that was there may have been superseded, too.
        batches.guard_from(0, &log(1, 9));
        batches.pass(5, true, true, cursor(5));
        assert_eq!(end(batches.next_ready().unwrap()), 9);
    }

    #[test]
    fn a_listing_was_heard_when_it_began_and_what_follows_when_it_came() {
        let cursor = |revision| {
            let at = Position { heard_ms: 70, ..Position::at(1, revision) };
            LogCursor { at, scope: 0, witnesses: Vec::new() }.encode()
        };
        let heard = |batch: Batch| LogCursor::decode(&batch.cursor).unwrap().at.heard_ms;
        let config = BatchConfig { window: Duration::ZERO, max: 2, channel_capacity: 2 };
        let began = LogInfo { read_at_ms: 50, ..log(1, 1) };
        let mut batches = Batches::new(config, &began, 0, false);
        batches.room().0.push(deleted(1));
        batches.gathered(1, 0);
        batches.close(|| cursor(1));
        assert_eq!(heard(batches.next_ready().unwrap()), 50);
        batches.guard_from(0, &log(1, 2));
        batches.pass(2, true, true, cursor(2));
        assert_eq!(heard(batches.next_ready().unwrap()), 70);
    }

    #[test]
    fn passing_needs_the_floor_unless_it_was_read() {
        let mut batches = batches(4, true);
        batches.pass(9, true, false, WatchCursor::none());
        assert_eq!(ready(&mut batches), [9]);
        batches.pass(9, true, false, WatchCursor::none());
        assert!(ready(&mut batches).is_empty(), "nothing has moved");
        batches.pass(11, false, true, WatchCursor::none());
        assert!(ready(&mut batches).is_empty() && batches.ask());
        assert_eq!(batches.answered(&log(10, 11)), Ok(()));
        assert_eq!(ready(&mut batches), [11]);
    }

    #[test]
    fn reading_ahead_ends_at_a_number_of_batches_or_bytes() {
        let mut batches = batches(0, true);
        for at in 1..READ_AHEAD_BATCHES as u64 {
            gather(&mut batches, &[at * 10]);
        }
        assert!(batches.has_room());
        gather(&mut batches, &[READ_AHEAD_BATCHES as u64 * 10]);
        assert!(!batches.has_room());
    }
}
