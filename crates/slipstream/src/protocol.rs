//! The decisions of the fold's protocol.
//!
//! Pure: facts in, decision out. Backends and `watch_applied` fetch the facts and act on the
//! answers; the models in `tests/it` walk through the same functions.
//!
//! - P1: a resumed watch misses nothing that the fold lacks, or the cursor is reported expired.
//! - P2: no update is applied across a gap unless the log's floor, read after the update was
//!   received, was not past the revision before that gap; or the fold is in a resync (P6); or the log
//!   evicts current values, so that the fold keeps what it has (P5) and a resync would change nothing.
//! - P3: a filtered watch's frontier passes unseen revisions only when none of them can have been
//!   one of its own.
//! - P4: a stored cursor names only revisions whose updates were applied and stored, and does not
//!   move back within a watch, but for in-repair cursors, which name none.
//! - P5: a key leaves the fold because somebody deleted it, never because the log evicted it.
//! - P6: a resync ends only after a listing that is known to be whole, or after every value that the
//!   log had was received, and until then no cursor says that the fold is complete.
//! - P7: the pointer of a fleet never goes back in [`Rank`].
//! - P8: what the pointer names was not deleted, and will not be while the pointer names it.
//! - P9: nobody begins with an artifact whose cursor does not pass the resume guard, and none is
//!   published.
//! - P10: a fold that may lack keys which the log evicted before they were read says so, until it was
//!   restored from an artifact that lacks none.
//! - P11: an artifact that may lack such keys does not replace one that lacks none, as long as nodes can
//!   begin with that.

mod fleet;
mod restore;
mod resync;

use std::time::Duration;

pub use self::fleet::{
    PointerState, Publish, Rank, Verdict, lacks_more, may_publish, next_epoch, payload_prunable,
    verdict, verdict_of,
};
pub use self::restore::{
    Offer, Restored, Restoring, Stands, Unfit, may_lack_evicted, restored_position, restores,
};
pub use self::resync::{
    Cut, Vanished, check_listing, cut, evicts_current_values, is_quiet, is_vanished, vanished,
};
use crate::kv::{CursorExpiry, LogInfo, Progress};

/// How many of the last written keys a cursor names, so that a resume can recognise the log.
pub const MAX_WITNESSES: usize = 8;

/// So many failed store applies in a row end the watch.
pub const MAX_STORE_APPLY_FAILURES: u32 = 16;

const BACKOFF_FIRST: Duration = Duration::from_millis(10);
const BACKOFF_LAST: Duration = Duration::from_secs(1);

/// Whether a log whose oldest revision is `first_sequence` still has all that follows `revision`.
pub const fn resume_window_ok(revision: u64, first_sequence: u64) -> bool {
    first_sequence <= revision.saturating_add(1)
}

/// What a cursor claims, its witnesses aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The log that the fold was made from.
    pub incarnation: u64,
    /// Every message up to here is in the fold, unless a later one had superseded it when it was to be
    /// read, or the log had evicted it (P2).
    pub revision: u64,
    /// How far the log is known to have gone. At revision 5, the fold may lack k@2 because k@10 had
    /// replaced it; a log that is rolled back to 7 has k@2 again, and no witness tells. So the log
    /// must reach the end, here 10.
    pub end: u64,
    /// A time, in Unix milliseconds by the server's clock: whatever the fold lacks was written later.
    /// 0 if that is not known; nobody asks where the log's tombstones do not expire.
    pub observed_through_ms: u64,
    /// How many keys the log had a message of at some time before the cursor was stored; 0 if that is
    /// not known. A purge makes it fewer, and so do evictions and tombstones that expire.
    pub subjects: u64,
}

impl Position {
    /// Of a fold that knows of nothing beyond its revision.
    pub const fn at(incarnation: u64, revision: u64) -> Self {
        Self { incarnation, revision, end: revision, observed_through_ms: 0, subjects: 0 }
    }
}

/// What the log answers when asked for a witness: the message that the fold applied at `revision`,
/// the newest that it applied for its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Witness {
    /// Where the message was.
    pub revision: u64,
    /// What is there now.
    pub finding: Finding,
}

/// See [`Witness`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finding {
    /// The log has that message still.
    Same,
    /// Another one.
    Other,
    /// Nothing. The newest revision of the same key, if the log has one.
    Gone {
        /// `None` when the log has no message of that key, or the cursor does not name the key.
        key_last: Option<u64>,
    },
}

/// Whether a watch may go on from a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Resume {
    /// Read everything above this revision. It is at or below the cursor: up to here the log is
    /// proven to be the one the fold knows, and whatever the fold has from above is read again.
    From(u64),
    /// The findings so far prove nothing; look the next witness up and ask again.
    NeedNextWitness,
    /// The fold must be repaired.
    Expired(CursorExpiry),
}

/// Decides a resume (P1).
///
/// `witnesses` are the findings so far, newest first, out of the `named` that the cursor has: the
/// newest applied messages of the last written keys, with no key left out between them.
///
/// A witness that is in place proves the log up to its revision, and no further: the fold may hold
/// lost messages from above it, and the log others under their numbers. But those messages are of
/// the keys of the witnesses before it, which were found overwritten above the cursor. So reading
/// on from the proven witness repairs each of them. A witness whose key has no message at all is
/// repaired by nothing, which ends the search. Without witnesses (the fold has applied nothing, or a
/// resync dropped all that it had) everything is read, if the log still has its first message.
pub fn resume(at: Position, log: &LogInfo, witnesses: &[Witness], named: usize) -> Resume {
    assert!(witnesses.len() <= named, "{} findings of {named} witnesses", witnesses.len());
    let end = at.end.max(at.revision);
    if let Guard::Trip(why) = live_guard(at.incarnation, at.revision, end, log) {
        return Resume::Expired(why);
    }
    // A log that nobody has written to since has no tombstone that the fold lacks.
    if log.last > at.revision && !tombstones_are_left(log, at.observed_through_ms) {
        return Resume::Expired(CursorExpiry::TombstonesExpired);
    }
    if was_purged(at.subjects, log) {
        return Resume::Expired(CursorExpiry::Purged);
    }
    if named == 0 {
        return match resume_window_ok(0, log.first) {
            true => Resume::From(0),
            false => Resume::Expired(CursorExpiry::Unproven),
        };
    }
    for &Witness { revision, finding } in witnesses {
        match finding {
            Finding::Same => return Resume::From(revision.min(at.revision)),
            Finding::Gone { key_last: Some(last) } if last > at.revision => {}
            Finding::Other | Finding::Gone { key_last: Some(_) } => {
                return Resume::Expired(CursorExpiry::WitnessDisagrees { revision });
            }
            Finding::Gone { key_last: None } => return Resume::Expired(CursorExpiry::Unproven),
        }
    }
    match witnesses.len() < named {
        true => Resume::NeedNextWitness,
        false => Resume::Expired(CursorExpiry::Unproven),
    }
}

/// Whether a log that had messages of `subjects` keys has fewer, though its limits evict none: somebody
/// purged keys, or tombstones expired.
pub fn was_purged(subjects: u64, log: &LogInfo) -> bool {
    log.subjects < subjects && !evicts_current_values(&log.retention)
}

/// Whether a log has the tombstones of all keys that expired since a time (P1). An eighth of a
/// tombstone's life is left for whoever is to read it.
pub fn tombstones_are_left(log: &LogInfo, since_ms: u64) -> bool {
    let age = Duration::from_millis(log.read_at_ms.saturating_sub(since_ms));
    log.retention.marker_ttl.is_none_or(|ttl| age < ttl - ttl / 8)
}

/// The revision before the first gap of a batch that was received after `frontier`. `None` when
/// each follows the one before, and so nothing needs to be asked.
///
/// Revisions at or below the frontier are repetitions.
pub fn before_first_gap(
    mut frontier: u64,
    revisions: impl IntoIterator<Item = u64>,
) -> Option<u64> {
    for revision in revisions {
        if revision > frontier.saturating_add(1) {
            return Some(frontier);
        }
        frontier = frontier.max(revision);
    }
    None
}

/// What the live guards say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Guard {
    /// Nothing was missed.
    Pass,
    /// Something may have been: nothing more may be applied before a resync.
    Trip(CursorExpiry),
}

/// The floor guard of a live watch (P2), in band and as the probe of a quiet watch.
///
/// `before_gap` is the revision before the first gap of what waits to be applied, or the frontier
/// when nothing waits; `received` is the newest revision received. `log` must have been read after
/// that.
pub fn live_guard(incarnation: u64, before_gap: u64, received: u64, log: &LogInfo) -> Guard {
    let LogInfo { first, last, .. } = *log;
    if log.incarnation != incarnation {
        Guard::Trip(CursorExpiry::Recreated)
    } else if last < received {
        Guard::Trip(CursorExpiry::AheadOfLog { revision: received, last })
    } else if !resume_window_ok(before_gap, first) {
        Guard::Trip(CursorExpiry::BelowFloor { revision: before_gap, first })
    } else {
        Guard::Pass
    }
}

/// Whether a filtered watch's frontier may pass revisions that it was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Advance {
    /// Everything of its own up to this revision is applied.
    To(u64),
    /// Something is under way.
    Wait,
    /// Something may have been missed.
    Trip(CursorExpiry),
}

/// The progress marker of a filtered watch (P3): `frontier` is where it stands, with all that it
/// received applied; `marker` was read after that.
///
/// The order of the reads carries the proof: what was in the log at the first read and was neither
/// sent nor pending at the second is not the watch's own or was evicted, and the third tells the
/// two apart.
pub fn advance(incarnation: u64, frontier: u64, marker: &Progress) -> Advance {
    if marker.head < frontier {
        return Advance::Trip(CursorExpiry::AheadOfLog { revision: frontier, last: marker.head });
    }
    if let Guard::Trip(why) = live_guard(incarnation, frontier, frontier, &marker.log) {
        return Advance::Trip(why);
    }
    if under_way(marker) { Advance::Wait } else { Advance::To(marker.head) }
}

/// Whether a watch is yet to get something of what the log had when the marker was read.
pub const fn under_way(marker: &Progress) -> bool {
    marker.pending > 0 || marker.received < marker.delivered
}

/// How far a fold is, and who may say so (P4).
///
/// An update is received, applied and stored, in that order. Only what is stored may be resumed
/// from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Authority {
    received: u64,
    applied: u64,
    stored: u64,
    failures: u32,
}

/// What follows an attempt to store a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stored {
    /// It is stored, and the cursor names this revision.
    At(u64),
    /// It must be stored before anything that comes after it.
    RetryAfter(Duration),
    /// The store does not heal: end the watch.
    GiveUp,
}

impl Authority {
    /// A fold as it was loaded.
    pub const fn new(stored: u64) -> Self {
        Self { received: stored, applied: stored, stored, failures: 0 }
    }

    /// An update was received. An unknown version says nothing about how far the fold is, and
    /// neither does one that the fold has passed.
    pub fn receive(&mut self, version: Option<u64>) {
        self.received = self.received.max(version.unwrap_or(0));
    }

    /// The caller has applied all that was received; the revision to store with it.
    pub fn apply(&mut self) -> u64 {
        self.applied = self.received;
        self.applied
    }

    /// The store has taken the applied batch, or failed to.
    pub fn store(&mut self, taken: bool) -> Stored {
        if !taken {
            self.failures += 1;
            return match self.failures < MAX_STORE_APPLY_FAILURES {
                true => Stored::RetryAfter(backoff(self.failures)),
                false => Stored::GiveUp,
            };
        }
        let Self { applied, stored, .. } = *self;
        assert!(applied >= stored, "P4: the cursor would move back from {stored} to {applied}");
        self.failures = 0;
        self.stored = applied;
        Stored::At(applied)
    }

    /// Where a watch resumes. What is applied and not stored is read again.
    pub const fn resume_at(&self) -> u64 {
        self.stored
    }
}

/// How long to wait after so many failures in a row.
pub fn backoff(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    BACKOFF_FIRST.saturating_mul(1 << doublings).min(BACKOFF_LAST)
}

#[cfg(test)]
mod tests;
