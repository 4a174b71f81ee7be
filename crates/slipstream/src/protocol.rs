//! The decisions of the fold's protocol.
//!
//! Pure: facts in, decision out. Backends and `watch_applied` fetch the facts and act on the
//! answers; the models in `tests/it` walk through the same functions.
//!
//! - P1: a resumed watch misses nothing that the fold lacks, or the cursor is reported expired.
//! - P2: no update is applied across a gap unless the log's floor, read after the update was
//!   received, was not past the revision before that gap; or the fold was compared with the bucket
//!   since (P7).
//! - P3: a filtered watch's frontier passes unseen revisions only when none of them can have been
//!   one of its own.
//! - P4: a stored cursor names only revisions whose updates were applied and stored, and does not
//!   move back within a watch.
//! - P5: a key leaves the fold because somebody deleted it, never because the log forgot it.
//! - P6: after an expired cursor no update is read before the vanished keys are gone from the fold.
//! - P7: a comparison with the bucket judges all that the log had before it, also what is still on
//!   its way.

use std::time::Duration;

use crate::kv::{CursorExpiry, LogInfo, Progress, Retention};

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
    /// All up to here is in the fold, but for what was superseded by then.
    pub revision: u64,
    /// How far the log is known to have gone by then. What was superseded up to the revision may have
    /// been so by a message up to here: in a log that is shorter it is back, and no witness tells.
    pub end: u64,
    /// A time, in Unix milliseconds by the server's clock: whatever the fold lacks was stored later.
    /// 0 if that is not known; nobody asks where the log's marks do not expire.
    pub observed_through_ms: u64,
}

impl Position {
    /// Of a fold that knows of nothing beyond its revision.
    pub const fn at(incarnation: u64, revision: u64) -> Self {
        Self { incarnation, revision, end: revision, observed_through_ms: 0 }
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
    /// That message.
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
/// repaired by nothing, which ends the search. Without witnesses the fold has applied nothing, and
/// everything is read.
pub fn resume(at: Position, log: &LogInfo, witnesses: &[Witness], named: usize) -> Resume {
    assert!(witnesses.len() <= named, "{} findings of {named} witnesses", witnesses.len());
    let end = at.end.max(at.revision);
    if let Guard::Trip(why) = live_guard(at.incarnation, at.revision, end, log) {
        return Resume::Expired(why);
    }
    // What nobody has written to has no mark that is new.
    if log.last > at.revision && !tombstones_are_left(log, at.observed_through_ms) {
        return Resume::Expired(CursorExpiry::TombstonesExpired);
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

/// Whether a log has the marks of all keys that expired since a time (P1). An eighth of a mark's life
/// is left for whoever is to read it.
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
    /// Something may have been: nothing more may be applied until that is made good
    /// ([`made_good_by_comparing`]), or the watch is armed again.
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

/// Whether a watch whose guard tripped may go on once the fold was compared with the bucket (P7).
///
/// The log is the same, and will bring every value that it has. All that may be missing is that keys
/// were deleted: a listing of the keys tells, and the values need not be listed.
pub const fn made_good_by_comparing(why: CursorExpiry, vanished: Vanished) -> bool {
    let forgotten =
        matches!(why, CursorExpiry::BelowFloor { .. } | CursorExpiry::TombstonesExpired);
    forgotten && matches!(vanished, Vanished::Delete)
}

/// Whether a value that is on its way to a fold is that of a deleted key (P7).
///
/// `listed` is whether the bucket had the key. What is newer than `up_to`, the head of the log before
/// the listing, may have been written after it, and is not judged; nor is what does not say.
pub const fn has_vanished(listed: bool, revision: Option<u64>, up_to: u64) -> bool {
    matches!(revision, Some(revision) if revision <= up_to && !listed)
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
    if marker.incarnation != incarnation {
        return Advance::Trip(CursorExpiry::Recreated);
    }
    if marker.head < frontier {
        return Advance::Trip(CursorExpiry::AheadOfLog { revision: frontier, last: marker.head });
    }
    if !resume_window_ok(frontier, marker.first) {
        let first = marker.first;
        return Advance::Trip(CursorExpiry::BelowFloor { revision: frontier, first });
    }
    if under_way(marker) { Advance::Wait } else { Advance::To(marker.head) }
}

/// Whether a filtered watch is yet to get something of what the log had.
///
/// If not, its frontier may pass the head of the marker once the fold was compared with the bucket
/// after it, whatever the log has forgotten (P7): what was not sent was somebody else's, superseded,
/// or deleted.
pub const fn under_way(marker: &Progress) -> bool {
    marker.pending > 0 || marker.received < marker.delivered
}

/// Whether a key may be absent from the log without anybody having deleted it.
pub const fn evicts_current_values(retention: &Retention) -> bool {
    let bounded = retention.max_bytes.is_some() || retention.max_messages.is_some();
    retention.max_age.is_some() || (retention.discards_oldest && bounded)
}

/// What a resync may do with keys of the fold that the log does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vanished {
    /// They were deleted while nobody looked: delete them.
    Delete,
    /// The listing is not the truth (P5), or there is none: keep them and say so.
    Keep,
}

/// Decides about vanished keys (P5).
pub const fn vanished(can_list: bool, retention: &Retention) -> Vanished {
    if can_list && !evicts_current_values(retention) { Vanished::Delete } else { Vanished::Keep }
}

/// Whether the re-list of a resync may start (P6).
pub const fn relist_may_start(vanished: Vanished, deletes_stored: bool) -> bool {
    match vanished {
        Vanished::Delete => deletes_stored,
        Vanished::Keep => true,
    }
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
