//! A resync: making a fold equal to its bucket again after updates were missed.
//!
//! The fold stores an in-repair cursor, which nobody can resume from, reads a watch, and drops the
//! keys that have vanished. Two readings of the log begin and end the wait for them:
//!
//! - a *listing* reads the last message of every key. It is checked once everything listed was
//!   received ([`check_listing`]);
//! - an *overrun* is a running watch that the floor has passed, in a log that keeps current values: it
//!   was superseded or purged faster than it was read ([`cut`]). Whatever the fold has from below the
//!   floor is gone or comes again by itself.
//!
//! Either yields a [`Cut`]. When the watch has read through it, [`is_vanished`] tells which keys go.

use crate::kv::{CursorExpiry, LogInfo, Progress, Retention};

use super::{Guard, live_guard, resume_window_ok, tombstones_are_left, under_way};

/// A reading of the log that a resync has to read through before it may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cut {
    /// The floor: in a log that keeps current values, no key has a version below it.
    pub floor: u64,
    /// The head. The watch has to read through it ([`Cut::claim`]): until then a key below the floor
    /// may be one whose newer value is still to come.
    pub head: u64,
    /// When it was read through, and the vanished keys are gone, the fold has everything up to here at
    /// least.
    pub revision: u64,
    /// When the resync began, in Unix milliseconds by the server's clock. The tombstones of keys that
    /// expired since have to be in the log until it ends.
    pub since_ms: u64,
}

/// Checks a listing that has come to its end (P6).
///
/// `began` was read before the listing's watch was made. `position` is the last revision received, and
/// `marker` was read after that.
///
/// # Errors
/// The listing is of no use, and another must begin: the log is another one or went back.
pub fn check_listing(
    began: &LogInfo,
    position: u64,
    marker: &Progress,
) -> Result<Cut, CursorExpiry> {
    let log = &marker.log;
    let reached = position.max(marker.head).max(began.last);
    // A listing misses nothing by a floor that rises, so that none is compared.
    let any_floor = log.last;
    if let Guard::Trip(why) = live_guard(began.incarnation, any_floor, reached, log) {
        return Err(why);
    }
    let received_all = !under_way(marker);
    let position = if received_all { position.max(marker.head) } else { position };
    Ok(cut(position, began.read_at_ms, log))
}

/// What a fold in which something may have been missed has to read, and may then drop, where the log
/// keeps current values: after an overrun, or after somebody purged the log.
///
/// The fold has everything up to `frontier`, and had observed everything written before `since_ms`;
/// `log` was read after that.
pub const fn cut(frontier: u64, since_ms: u64, log: &LogInfo) -> Cut {
    let below = log.first - 1;
    let revision = if frontier > below { frontier } else { below };
    Cut { floor: log.first, head: log.last, revision, since_ms }
}

impl Cut {
    /// The revision that the fold has everything up to once the vanished keys are gone; `None` until
    /// the watch has read through the cut. `marker` was read when it was at `position`.
    ///
    /// A floor that has not risen since says that nothing was lost on the way from the cut.
    ///
    /// # Errors
    /// The log may have dropped the tombstone of a key before the watch came to it: another resync
    /// must begin.
    pub fn claim(&self, position: u64, marker: &Progress) -> Result<Option<u64>, CursorExpiry> {
        if !tombstones_are_left(&marker.log, self.since_ms) {
            return Err(CursorExpiry::TombstonesExpired);
        }
        let received_all = !under_way(marker);
        if position < self.head && !(received_all && marker.head >= self.head) {
            return Ok(None);
        }
        let reached = if received_all { position.max(marker.head) } else { position };
        let whole = resume_window_ok(self.revision, marker.log.first);
        Ok(Some(if whole { self.revision.max(reached) } else { self.revision }))
    }
}

/// Whether a key of the fold has vanished from a log that keeps current values (P5): the listing, if
/// there was one, did not bring it, or its version is below the floor.
pub const fn is_vanished(listed: bool, version: Option<u64>, floor: u64) -> bool {
    match version {
        Some(version) => !listed || version < floor,
        None => !listed,
    }
}

/// Whether the watch had received everything when the log was read, and nobody wrote meanwhile. Then a
/// complete listing of a whole bucket has brought [`LogInfo::subjects`] keys, tombstones included.
pub fn is_quiet(marker: &Progress) -> bool {
    !under_way(marker) && marker.log.last == marker.head
}

/// Whether retention may take current values, deleted by nobody.
pub const fn evicts_current_values(retention: &Retention) -> bool {
    let bounded = retention.max_bytes.is_some() || retention.max_messages.is_some();
    retention.max_age.is_some() || (retention.discards_oldest && bounded)
}

/// What a resync may do with keys that have vanished from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vanished {
    /// Somebody deleted them: delete them.
    Delete,
    /// The log may have evicted them (P5): keep them and say so.
    Keep,
}

/// Decides about vanished keys (P5). `evicted` says whether the log was ever seen with limits that
/// evict current values.
///
/// Retention takes the oldest messages first. So a log that still has its first message has evicted
/// nothing, whatever its limits are.
pub const fn vanished(evicted: bool, log: &LogInfo) -> Vanished {
    let may_evict = evicted || evicts_current_values(&log.retention);
    if may_evict && log.first > 1 { Vanished::Keep } else { Vanished::Delete }
}
