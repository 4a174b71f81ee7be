//! Batches on their way from the watch to the store: gathered, vouched for, handed over.
//!
//! - B1: batches leave in the order in which they were gathered.
//! - B2: a batch leaves only after the floor of the log was read, later than its last update was
//!   received, and found not to be past the revision before the first gap up to it, nor later than the
//!   marks of expired keys last; or after the fold was compared with the bucket. One reading serves
//!   every batch that was there when it began.
//! - B3: the cursor of a batch that was read across gaps says how far the log had gone by then,
//!   whatever was made good.
//! - B4: a listing passes what was superseded; but its cursors, too, wait until it is known that no
//!   delete was forgotten since the fold was last compared with the bucket, and claim to have heard
//!   no more than that.
//! - B5: of what was in the log before a comparison, no value leaves whose key the bucket did not have.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::BatchConfig;
use super::apply_loop::{Batch, Listing};
use crate::kv::{CursorExpiry, KvEntry, KvUpdate, LogInfo, WatchCursor};
use crate::log_cursor;
use crate::protocol::{self, Guard, Vanished};

/// What may be read ahead of the store, in batches and in bytes: the answer to a reading of the log
/// travels behind all that the server has already sent, so a catch-up must go on meanwhile.
const READ_AHEAD_BATCHES: usize = 256;
const READ_AHEAD_BYTES: usize = 8 << 20;

const NS_PER_MS: u64 = 1_000_000;

/// What lies before a gap.
#[derive(Clone, Copy)]
struct Gap {
    /// The revision that the floor must not have passed.
    before: u64,
    /// What was stored by then was heard; see [`protocol::tombstones_are_left`].
    observed_through_ms: u64,
}

impl Gap {
    /// Whatever was there is of no matter; how far the log goes still is (B3).
    const ANY: Self = Self { before: u64::MAX, observed_through_ms: u64::MAX };

    fn older(self, other: Self) -> Self {
        Self {
            before: self.before.min(other.before),
            observed_through_ms: self.observed_through_ms.min(other.observed_through_ms),
        }
    }
}

pub(super) struct Batches {
    config: BatchConfig,
    incarnation: u64,
    /// The newest revision gathered, or passed.
    frontier: u64,
    /// How far the log is known to have gone.
    end: u64,
    /// What was stored by then was gathered, or made good.
    observed_through_ms: u64,
    /// What was missed up to here has been made good: the fold was compared with the bucket, or had
    /// nothing that could have been deleted.
    compared: u64,
    /// What it was compared with, until everything from before that was gathered.
    listing: Option<Arc<Listing>>,
    /// Whether a skipped revision matters by itself; in a listing it does not.
    guarded: bool,
    /// Whether what the log forgets is missed: the fold loses keys that the bucket does not have.
    judges: bool,
    open: Vec<KvUpdate>,
    opened: Option<Instant>,
    stored_at_ns: u64,
    more: bool,
    /// Gathered, and waiting for a reading of the log; each with its first gap.
    awaiting_floor: VecDeque<(Option<Gap>, Batch)>,
    /// The reading of the floor that is under way.
    floor_query: Option<FloorQuery>,
    ready: VecDeque<Batch>,
    /// Of keys and values, in closed batches.
    bytes: usize,
}

/// What a reading of the floor is for: the first so many batches.
#[derive(Clone, Copy)]
struct FloorQuery {
    batches: usize,
    gap: Gap,
    received: u64,
}

impl Batches {
    /// Of a watch that begins with a listing of a log, which was read before that, and before the
    /// fold was compared with the bucket or while it was empty.
    pub(super) fn listing(config: BatchConfig, log: &LogInfo, vanished: Vanished) -> Self {
        Self {
            observed_through_ms: log.read_at_ms,
            compared: log.last,
            guarded: false,
            ..Self::going_on(config, log, 0, &WatchCursor::none(), vanished)
        }
    }

    /// Of one that goes on from a cursor, which stands for `position`.
    pub(super) fn going_on(
        config: BatchConfig,
        log: &LogInfo,
        position: u64,
        cursor: &WatchCursor,
        vanished: Vanished,
    ) -> Self {
        Self {
            config,
            incarnation: log.incarnation,
            frontier: position,
            end: log.last,
            observed_through_ms: log_cursor::observed_through_ms(cursor),
            compared: 0,
            listing: None,
            guarded: true,
            judges: vanished == Vanished::Delete,
            open: Vec::with_capacity(config.max),
            opened: None,
            stored_at_ns: 0,
            more: false,
            awaiting_floor: VecDeque::new(),
            floor_query: None,
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
        let batches = self.ready.len() + self.awaiting_floor.len();
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
        let mut updates = std::mem::replace(&mut self.open, Vec::with_capacity(self.config.max));
        let revisions = || updates.iter().filter_map(|update| update.version().as_u64());
        let high = revisions().max().unwrap_or(self.frontier).max(self.frontier);
        let observed_through_ms = self.observed_through_ms;
        let gap = protocol::before_first_gap(self.frontier, revisions()).map(|_| {
            let before = match self.guarded {
                true => protocol::before_first_gap(self.made_good(), revisions()),
                false => self.judges.then_some(self.compared),
            };
            before.map_or(Gap::ANY, |before| Gap { before, observed_through_ms })
        });
        self.drop_vanished(&mut updates);
        self.move_to(high);
        // A listing passes marks, too, in silence.
        if self.guarded {
            self.observed_through_ms = observed_through_ms.max(self.stored_at_ns / NS_PER_MS);
        }
        let (stored_at_ns, more) = (self.stored_at_ns, self.more);
        let (cursor, revision) = (cursor(), high);
        self.push(gap, Batch { updates, cursor, revision, stored_at_ns, more, synced: false });
    }

    /// The watch's position has passed what was not for it, up to `through`; `checked` if the
    /// floor was read for that already. `synced` if it has now handed out all that it began with.
    pub(super) fn pass(&mut self, through: u64, checked: bool, synced: bool, cursor: WatchCursor) {
        assert!(self.opened.is_none(), "what was gathered comes first");
        let Self { observed_through_ms, frontier, .. } = *self;
        self.observed_through_ms =
            observed_through_ms.max(log_cursor::observed_through_ms(&cursor));
        let moved = through > frontier;
        if !moved && !synced {
            return;
        }
        let gap =
            (moved && !checked).then_some(Gap { before: self.made_good(), observed_through_ms });
        self.move_to(frontier.max(through));
        self.push(gap, Batch { cursor, revision: self.frontier, synced, ..Batch::default() });
    }

    fn push(&mut self, gap: Option<Gap>, batch: Batch) {
        self.bytes += bytes(&batch);
        if gap.is_none() && self.awaiting_floor.is_empty() {
            self.ready.push_back(batch);
        } else {
            self.awaiting_floor.push_back((gap, batch));
        }
    }

    /// What was missed up to here is of no matter.
    pub(super) fn made_good(&self) -> u64 {
        self.frontier.max(self.compared)
    }

    fn move_to(&mut self, frontier: u64) {
        self.frontier = frontier;
        self.listing.take_if(|listing| listing.up_to <= frontier);
    }

    /// Whether the log, as it was read now, has all deletes since the fold was last compared with the
    /// bucket. It does if they are of no matter.
    pub(super) fn has_all_deletes(&self, log: &LogInfo) -> bool {
        !self.judges
            || log.last <= self.compared
            || (protocol::resume_window_ok(self.compared, log.first)
                && self.has_all_tombstones(log))
    }

    /// The listing is over, and the log was read after that: from now on a skipped revision matters.
    pub(super) fn guard_from_here(&mut self, log: &LogInfo) {
        assert!(self.awaiting_floor.is_empty(), "what was listed comes first");
        assert!(self.has_all_deletes(log), "a listing ends with what it owes");
        self.guarded = true;
        self.end = self.end.max(log.last);
    }

    /// The fold was compared with the bucket, whose keys were listed after the log was read, and has
    /// everything that was handed over before (B5).
    pub(super) fn compared(&mut self, listing: Arc<Listing>, log: &LogInfo) {
        assert!(self.ready.is_empty() && self.floor_query.is_none(), "the fold lacked something");
        assert!(self.frontier <= log.last, "the log was read before what was gathered");
        self.end = self.end.max(listing.end);
        self.compared = log.last;
        self.observed_through_ms = self.observed_through_ms.max(log.read_at_ms);
        self.listing = Some(listing);
        for (_, mut batch) in std::mem::take(&mut self.awaiting_floor) {
            self.bytes -= bytes(&batch);
            self.drop_vanished(&mut batch.updates);
            self.bytes += bytes(&batch);
            self.ready.push_back(batch);
        }
    }

    /// A value whose key the bucket did not have becomes what must have followed it.
    fn drop_vanished(&self, updates: &mut [KvUpdate]) {
        let Some(listing) = &self.listing else { return };
        for update in updates {
            if let KvUpdate::Put(KvEntry { key, version, .. }) = update
                && listing.is_vanished(key.as_str(), version.as_u64())
            {
                *update = KvUpdate::Delete { key: key.clone(), version: *version };
            }
        }
    }

    /// Whether the floor has to be read. The reading must begin after this call.
    pub(super) fn ask(&mut self) -> bool {
        if self.floor_query.is_some() {
            return false;
        }
        let gaps = self.awaiting_floor.iter().filter_map(|(gap, _)| *gap);
        let Some(gap) = gaps.reduce(Gap::older) else {
            return false;
        };
        let (batches, received) = (self.awaiting_floor.len(), self.frontier);
        self.floor_query = Some(FloorQuery { batches, gap, received });
        true
    }

    /// The answer to the reading under way.
    pub(super) fn on_floor(&mut self, log: &LogInfo) -> Result<(), CursorExpiry> {
        let floor_query = self.floor_query.take().expect("a reading is under way");
        self.end = self.end.max(log.last);
        let guard = protocol::live_guard(
            self.incarnation,
            floor_query.gap.before,
            floor_query.received,
            log,
        );
        if let Guard::Trip(why) = guard {
            return Err(why);
        }
        if self.judges && !protocol::tombstones_are_left(log, floor_query.gap.observed_through_ms) {
            return Err(CursorExpiry::TombstonesExpired);
        }
        self.ready.extend(self.awaiting_floor.drain(..floor_query.batches).map(|(_, batch)| batch));
        while let Some((_, batch)) = self.awaiting_floor.pop_front_if(|(gap, _)| gap.is_none()) {
            self.ready.push_back(batch);
        }
        Ok(())
    }

    pub(super) fn next_ready(&mut self) -> Option<Batch> {
        let mut batch = self.ready.pop_front()?;
        self.bytes -= bytes(&batch);
        // B3, B4.
        if !self.guarded || batch.revision < self.end {
            let observed_max_ms = if self.guarded { u64::MAX } else { self.observed_through_ms };
            batch.cursor = log_cursor::amended(batch.cursor, self.end, observed_max_ms);
        }
        Some(batch)
    }

    pub(super) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Whether nothing is gathered or waits for the floor.
    pub(super) fn is_quiet(&self) -> bool {
        self.opened.is_none() && self.awaiting_floor.is_empty()
    }

    pub(super) fn has_awaiting_floor(&self) -> bool {
        !self.awaiting_floor.is_empty()
    }

    pub(super) fn is_guarded(&self) -> bool {
        self.guarded
    }

    /// Whether the log has the marks of all keys that expired since it was heard, or they are of no
    /// matter. Of a watch that passes nothing, those that it has gathered are.
    pub(super) fn has_all_tombstones(&self, log: &LogInfo) -> bool {
        let gathered = self.guarded && log.last <= self.made_good();
        !self.judges || gathered || protocol::tombstones_are_left(log, self.observed_through_ms)
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
    use crate::kv::{Key, Retention, VersionToken};
    use crate::log_cursor::LogCursor;
    use crate::protocol::Position;

    fn batches(position: u64, guarded: bool) -> Batches {
        let config = BatchConfig { window: Duration::ZERO, max: 2, channel_capacity: 2 };
        match guarded {
            true => {
                let cursor = WatchCursor::none();
                Batches::going_on(config, &log(1, position), position, &cursor, Vanished::Delete)
            }
            false => Batches::listing(config, &log(1, position), Vanished::Delete),
        }
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
        assert_eq!(batches.on_floor(&log(6, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [7, 8]);
    }

    /// A reading that began before a batch was received says nothing about it.
    #[test]
    fn a_reading_serves_only_what_was_there_when_it_began() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[6]);
        assert!(batches.ask());
        gather(&mut batches, &[7, 9]);
        assert_eq!(batches.on_floor(&log(1, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [6]);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 7, first: 9 };
        assert_eq!(batches.on_floor(&log(9, 9)), Err(below));
        assert!(ready(&mut batches).is_empty());
    }

    #[test]
    fn the_floor_is_compared_with_the_first_gap_of_all_that_wait() {
        let mut batches = batches(4, true);
        gather(&mut batches, &[5, 7]);
        gather(&mut batches, &[20]);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 5, first: 7 };
        assert_eq!(batches.on_floor(&log(7, 20)), Err(below));
    }

    /// It passes what was superseded. But of a key that was compared, or listed, and deleted since,
    /// it must still hear.
    #[test]
    fn a_listing_passes_gaps_while_the_log_has_every_delete_since_it_began() {
        let mut batches = batches(8, false);
        gather(&mut batches, &[1, 2]);
        assert_eq!(ready(&mut batches), [2], "nothing was skipped");
        gather(&mut batches, &[4, 7]);
        assert!(batches.ask());
        assert_eq!(batches.on_floor(&log(7, 9)), Ok(()));
        assert_eq!(ready(&mut batches), [7]);
        gather(&mut batches, &[11]);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 8, first: 10 };
        assert_eq!(batches.on_floor(&log(10, 11)), Err(below));
        batches.compared(listing(&["k"], 12), &log(10, 12));
        assert_eq!(ready(&mut batches), [11]);
        assert!(batches.has_all_deletes(&log(13, 14)) && !batches.has_all_deletes(&log(14, 14)));
        batches.guard_from_here(&log(10, 12));
        gather(&mut batches, &[15]);
        assert!(ready(&mut batches).is_empty() && batches.ask());
    }

    /// As long as what a comparison has made good is not gathered, that goes for it, too.
    #[test]
    fn what_was_made_good_still_says_how_far_the_log_has_gone() {
        let mut batches = batches(40, true);
        batches.compared(listing(&["k"], 100), &log(50, 100));
        assert_eq!(batches.end, 103, "what was not listed may have been deleted up to there");
        batches.room().0.push(deleted(60));
        batches.gathered(1, 0);
        let cursor = || LogCursor { at: Position::at(1, 60), scope: 0, witnesses: vec![] }.encode();
        batches.close(cursor);
        assert!(ready(&mut batches).is_empty() && batches.ask());
        assert_eq!(batches.on_floor(&log(90, 150)), Ok(()), "whatever the floor");
        let batch = batches.next_ready().unwrap();
        assert_eq!(LogCursor::decode(&batch.cursor).unwrap().at.end, 150);
    }

    #[test]
    fn a_fold_that_keeps_what_the_log_forgets_misses_no_marks() {
        let config = BatchConfig { window: Duration::ZERO, max: 2, channel_capacity: 2 };
        let marker_ttl = Some(Duration::from_millis(8));
        let retention = Retention { marker_ttl, ..Retention::default() };
        let long_after = LogInfo { retention, read_at_ms: 1_000_000, ..log(1, 9) };
        let none = WatchCursor::none();
        let mut batches = Batches::going_on(config, &log(1, 1), 1, &none, Vanished::Keep);
        gather(&mut batches, &[5]);
        assert!(batches.ask());
        assert_eq!(batches.on_floor(&long_after), Ok(()));
        assert!(batches.has_all_tombstones(&long_after) && batches.has_all_deletes(&long_after));
    }

    /// What was skipped had been superseded by something that the log had when it was floor_query.
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
        assert_eq!(batches.on_floor(&log(1, 8)), Ok(()));
        assert_eq!(end(batches.next_ready().unwrap()), 8);
        // The last that was there may have been superseded, too.
        batches.guard_from_here(&log(1, 9));
        batches.pass(5, true, true, cursor(5));
        assert_eq!(end(batches.next_ready().unwrap()), 9);
    }

    #[test]
    fn a_listing_was_heard_when_it_began_and_what_follows_when_it_came() {
        let cursor = |revision| {
            let at = Position { observed_through_ms: 70, ..Position::at(1, revision) };
            LogCursor { at, scope: 0, witnesses: Vec::new() }.encode()
        };
        let heard = |batch: Batch| LogCursor::decode(&batch.cursor).unwrap().at.observed_through_ms;
        let config = BatchConfig { window: Duration::ZERO, max: 2, channel_capacity: 2 };
        let began = LogInfo { read_at_ms: 50, ..log(1, 1) };
        let mut batches = Batches::listing(config, &began, Vanished::Delete);
        batches.room().0.push(deleted(1));
        batches.gathered(1, 0);
        batches.close(|| cursor(1));
        assert_eq!(heard(batches.next_ready().unwrap()), 50);
        batches.guard_from_here(&log(1, 2));
        batches.pass(2, true, true, cursor(2));
        assert_eq!(heard(batches.next_ready().unwrap()), 70);
    }

    fn listing(keys: &[&str], up_to: u64) -> Arc<Listing> {
        let live = keys.iter().map(|key| Key::from(*key)).collect();
        Arc::new(Listing { live, up_to, end: up_to + 3 })
    }

    fn put(key: &str, revision: u64) -> KvUpdate {
        let (key, version) = (key.into(), VersionToken::from_u64(revision));
        KvUpdate::Put(KvEntry { key, value: "v".into(), version })
    }

    /// What waits, what is being gathered, and what comes later; but not what was written since.
    #[test]
    fn values_of_keys_that_the_bucket_did_not_have_leave_as_deletes() {
        let mut batches = batches(1, true);
        batches.room().0.extend([put("gone", 3), put("here", 4)]);
        batches.gathered(1, 0);
        batches.close(WatchCursor::none);
        assert!(batches.ask());
        let below = CursorExpiry::BelowFloor { revision: 1, first: 4 };
        assert_eq!(batches.on_floor(&log(4, 9)), Err(below));
        assert!(ready(&mut batches).is_empty());
        batches.room().0.push(put("gone.too", 5));
        batches.gathered(1, 0);
        batches.compared(listing(&["here"], 9), &log(4, 9));
        batches.close(WatchCursor::none);
        batches.room().0.extend([put("gone", 9), put("gone", 10)]);
        batches.gathered(1, 0);
        batches.close(WatchCursor::none);
        batches.room().0.push(put("gone", 11));
        batches.gathered(1, 0);
        batches.close(WatchCursor::none);
        assert!(batches.ask());
        assert_eq!(batches.on_floor(&log(9, 11)), Ok(()));
        let left = std::iter::from_fn(|| batches.next_ready()).flat_map(|batch| batch.updates);
        let values: Vec<_> = left
            .map(|update| (update.version().as_u64(), matches!(update, KvUpdate::Put(_))))
            .collect();
        let expected = [(3, false), (4, true), (5, false), (9, false), (10, true), (11, true)];
        assert_eq!(values, expected.map(|(revision, put)| (Some(revision), put)));
        assert_eq!(batches.bytes, 0);
        assert!(batches.listing.is_none(), "all from before it was gathered");
    }

    #[test]
    fn a_gap_that_is_older_than_the_marks_of_expired_keys_is_not_vouched_for() {
        let read = |read_at_ms| {
            let marker_ttl = Some(Duration::from_millis(800));
            let retention = Retention { marker_ttl, ..Retention::default() };
            LogInfo { retention, read_at_ms, ..log(1, 9) }
        };
        let mut batches = batches(1, true);
        let gather = |batches: &mut Batches, revision, stored_at_ms| {
            batches.room().0.push(deleted(revision));
            batches.gathered(stored_at_ms * NS_PER_MS, 0);
            batches.close(WatchCursor::none);
        };
        gather(&mut batches, 2, 1000);
        gather(&mut batches, 4, 1100);
        assert!(batches.ask());
        assert_eq!(batches.on_floor(&read(1699)), Ok(()));
        gather(&mut batches, 6, 1200);
        assert!(batches.ask());
        assert_eq!(
            batches.on_floor(&read(1800)),
            Err(CursorExpiry::TombstonesExpired),
            "since 1100"
        );
        assert!(
            !batches.has_all_tombstones(&read(1900)) && batches.has_all_tombstones(&read(1899))
        );
        while batches.next_ready().is_some() {}
        batches.compared(listing(&["k"], 9), &read(1900));
        gather(&mut batches, 11, 1950);
        assert!(batches.ask());
        assert_eq!(batches.on_floor(&LogInfo { last: 11, ..read(2500) }), Ok(()));
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
        assert_eq!(batches.on_floor(&log(10, 11)), Ok(()));
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
