//! A restore: a fold becomes what an artifact holds, where a listing would not bring everything.
//!
//! A log that evicts current values has no complete listing: what was evicted is in the folds only. The
//! artifact of a fold whose cursor passes the resume guard has what the log had, and the log had all that
//! follows when it was asked, before the download and after it. So the fold takes the artifact's entries,
//! key by key, and reads on from its cursor. If the log evicts what follows while the entries are stored,
//! the cursor expires, and the fold is repaired again.

use super::{Position, Vanished, Verdict, vanished, verdict_of};
use crate::kv::{CursorExpiry, LogInfo};

/// Whether a listing of the log may lack keys that nobody deleted (P10).
pub const fn may_lack_evicted(evicted: bool, log: &LogInfo) -> bool {
    matches!(vanished(evicted, log), Vanished::Keep)
}

/// An artifact, as somebody who would restore a fold from it sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Offer {
    /// What the resume guard says of its cursor now.
    pub verdict: Verdict,
    /// Whether it may itself lack what the log had evicted before it was read.
    pub may_be_incomplete: bool,
}

impl Offer {
    /// As it is to a fold that has seen limits which evict: an exporter that has not may have begun when
    /// they were lifted, and then lacks keys without knowing it.
    #[must_use]
    pub const fn to_fold(self, evicted_here: bool, evicted_there: bool) -> Self {
        let may_be_incomplete = self.may_be_incomplete || (evicted_here && !evicted_there);
        Self { may_be_incomplete, ..self }
    }
}

/// What a fold's stored cursor says of it, to somebody who would restore it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stands {
    /// Where it stands. In a repair, of which log it is, and how far that went when the repair began.
    pub position: Position,
    /// Whether it is in a repair.
    pub in_repair: bool,
    /// Whether it may lack keys that the log evicted.
    pub incomplete: bool,
}

impl Stands {
    /// Whether all versions of the fold are those of a log, as far as its cursor tells. `why` it is of no
    /// use.
    pub fn is_of(&self, log: &LogInfo, why: Option<CursorExpiry>) -> bool {
        // A listing that was not complete kept what it did not bring, of whatever log that was.
        !self.incomplete && self.goes_on(log, why)
    }

    /// Where the fold stands in a log, if it is complete up to there.
    pub fn revision_in(&self, log: &LogInfo, why: Option<CursorExpiry>) -> Option<u64> {
        let stands = !self.in_repair && self.goes_on(log, why);
        stands.then_some(self.position.revision)
    }

    /// Whether a look at the log shows that it was replaced or rolled back since the cursor was stored. A
    /// later look may not, for the log goes on. So whoever sees it stores that first (an in-repair cursor of
    /// no log), unless the cursor was proven and the fold may go on from it.
    pub fn lost_its_log(&self, log: &LogInfo, why: Option<CursorExpiry>) -> bool {
        let may_go_on = why == Some(CursorExpiry::Incomplete);
        self.position.incarnation != 0 && !may_go_on && !self.goes_on(log, why)
    }

    /// How far the log had gone when the cursor was stored. A fold that was interrupted in a listing may have
    /// something from above, and cannot tell whether the log was rolled back to here and written to again.
    pub fn known_end(&self) -> u64 {
        self.position.end.max(self.position.revision)
    }

    /// Whether a log has not been replaced or rolled back since the cursor was stored, as far as that
    /// can be told.
    fn goes_on(&self, log: &LogInfo, why: Option<CursorExpiry>) -> bool {
        let is_lost = why.is_some_and(|why| verdict_of(why) == Verdict::Dead);
        self.position.incarnation == log.incarnation && self.known_end() <= log.last && !is_lost
    }
}

/// Where a fold stands that was restored from an artifact, with the log as it was before. It may have kept
/// something from behind the artifact, so that the log must not become shorter.
#[must_use]
pub fn restored_position(artifact: Position, log: &LogInfo) -> Position {
    Position { end: artifact.end.max(log.last), ..artifact }
}

/// Why an artifact is not used to restore a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// Its cursor does not pass the resume guard.
    #[error("the bucket cannot be read on from the newest artifact")]
    Expired,
    /// The fold could go on, and would lack as much as before.
    #[error("the newest artifact may lack evicted keys, too")]
    Incomplete,
    /// The fold would go back, and would have keys again that it knows to be deleted.
    #[error("the newest artifact is older than the fold")]
    Older,
}

/// Whether a fold is restored from an artifact at revision `there` (P9, P10). `why` the fold's cursor is of
/// no use; `None` if the fold is empty. `here` is where the fold stands, if it is complete up to a revision
/// of the artifact's log.
///
/// # Errors
/// Why not.
pub fn restores(
    why: Option<CursorExpiry>,
    here: Option<u64>,
    offer: Offer,
    there: u64,
) -> Result<(), Unfit> {
    if offer.verdict != Verdict::Holds {
        Err(Unfit::Expired)
    } else if why == Some(CursorExpiry::Incomplete) && offer.may_be_incomplete {
        Err(Unfit::Incomplete)
    } else if here.is_some_and(|here| here > there) {
        Err(Unfit::Older)
    } else {
        Ok(())
    }
}

/// What becomes of a key in a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Restored {
    /// It stays as it is in the fold.
    Keep,
    /// It becomes what the artifact has.
    Put,
    /// It goes.
    Delete,
}

/// The artifact that a fold is restored from, beside the fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Restoring {
    /// How far the artifact goes.
    pub revision: u64,
    /// The head of the log, read before, or what the fold [knew](Stands::known_end) of it: whatever the fold
    /// has from above was lost, or may have been.
    pub head: u64,
    /// Whether the versions of the fold are those of the artifact's log, as far as its cursor tells.
    pub same_log: bool,
    /// Whether the artifact may lack keys that nobody deleted.
    pub may_be_incomplete: bool,
}

impl Restoring {
    /// Decides about a key that the fold has at version `here`, and the artifact at `there`: `None` if
    /// it has it not, 0 if the version is not known. `is_equal` if both have the same value.
    ///
    /// A version from behind the artifact stays: what follows the artifact brings it, or what became of it.
    /// Whatever else the artifact has otherwise, or has not, is of a log that was lost, if the artifact is
    /// complete; if it is not, a newer version in the fold may be one that the exporter missed.
    pub fn decide(&self, here: Option<u64>, there: Option<u64>, is_equal: bool) -> Restored {
        let is_newer = |here: u64, than: u64| self.same_log && here > than && here <= self.head;
        match (here, there) {
            (Some(here), Some(there)) => {
                let than = if self.may_be_incomplete { there } else { self.revision };
                let is_same = here == there && here > 0 && is_equal;
                if is_same || is_newer(here, than) { Restored::Keep } else { Restored::Put }
            }
            (None, Some(_)) => Restored::Put,
            (Some(here), None) => {
                let stays = self.may_be_incomplete || is_newer(here, self.revision);
                if stays { Restored::Keep } else { Restored::Delete }
            }
            (None, None) => Restored::Keep,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kv::Retention;

    fn log(first: u64, discards_oldest: bool) -> LogInfo {
        let retention = Retention { max_bytes: Some(1), discards_oldest, ..Retention::default() };
        LogInfo { incarnation: 1, first, last: 100, retention, subjects: 0, read_at_ms: 0 }
    }

    const HOLDS: Offer = Offer { verdict: Verdict::Holds, may_be_incomplete: false };

    #[test]
    fn a_listing_lacks_keys_only_where_the_log_may_have_evicted_some() {
        assert!(may_lack_evicted(false, &log(2, true)));
        assert!(may_lack_evicted(true, &log(2, false)), "it evicted once");
        assert!(!may_lack_evicted(false, &log(2, false)), "it never did");
        assert!(!may_lack_evicted(true, &log(1, true)), "it has its first message");
    }

    #[test]
    fn only_an_artifact_that_a_watch_can_read_on_from_is_used() {
        for verdict in [Verdict::Expired, Verdict::Dead] {
            assert_eq!(restores(None, None, Offer { verdict, ..HOLDS }, 9), Err(Unfit::Expired));
        }
        let incomplete = Offer { may_be_incomplete: true, ..HOLDS };
        assert_eq!(restores(Some(CursorExpiry::Unproven), Some(9), incomplete, 9), Ok(()));
        let good_cursor = Some(CursorExpiry::Incomplete);
        assert_eq!(restores(good_cursor, Some(9), HOLDS, 9), Ok(()));
        assert_eq!(restores(good_cursor, Some(9), incomplete, 9), Err(Unfit::Incomplete));
    }

    #[test]
    fn a_fold_does_not_go_back() {
        for why in [CursorExpiry::Incomplete, CursorExpiry::Unproven, CursorExpiry::Purged] {
            assert_eq!(restores(Some(why), Some(10), HOLDS, 9), Err(Unfit::Older), "{why:?}");
            assert_eq!(restores(Some(why), Some(9), HOLDS, 9), Ok(()), "{why:?}");
            assert_eq!(restores(Some(why), None, HOLDS, 9), Ok(()), "it stands nowhere: {why:?}");
        }
    }

    #[test]
    fn an_exporter_that_never_saw_the_limits_may_lack_what_they_evicted() {
        assert!(HOLDS.to_fold(true, false).may_be_incomplete);
        for (here, there) in [(true, true), (false, true), (false, false)] {
            assert!(!HOLDS.to_fold(here, there).may_be_incomplete, "{here} {there}");
        }
    }

    const RULE: Restoring =
        Restoring { revision: 50, head: 100, same_log: true, may_be_incomplete: false };

    #[test]
    fn what_differs_is_taken_from_the_artifact() {
        assert_eq!(RULE.decide(None, Some(7), false), Restored::Put);
        assert_eq!(RULE.decide(Some(7), Some(7), true), Restored::Keep);
        assert_eq!(RULE.decide(Some(7), Some(7), false), Restored::Put, "of another log");
        assert_eq!(RULE.decide(Some(6), Some(7), false), Restored::Put);
        assert_eq!(RULE.decide(Some(7), None, false), Restored::Delete);
        assert_eq!(RULE.decide(Some(0), Some(7), true), Restored::Put, "its version is not known");
        assert_eq!(RULE.decide(Some(0), Some(0), true), Restored::Put);
        let incomplete = Restoring { may_be_incomplete: true, ..RULE };
        let kept = incomplete.decide(Some(7), None, false);
        assert_eq!(kept, Restored::Keep, "nobody may have deleted it");
    }

    /// In one log, an artifact that lacks nothing has the newest version up to its revision.
    #[test]
    fn a_newer_version_that_the_artifact_should_have_is_of_another_log() {
        assert_eq!(RULE.decide(Some(40), Some(7), false), Restored::Put);
        assert_eq!(RULE.decide(Some(51), Some(7), false), Restored::Keep);
        let incomplete = Restoring { may_be_incomplete: true, ..RULE };
        let kept = incomplete.decide(Some(40), Some(7), false);
        assert_eq!(kept, Restored::Keep, "the exporter may have missed it");
    }

    #[test]
    fn versions_of_another_log_say_nothing() {
        let other = Restoring { same_log: false, ..RULE };
        for here in [6, 7, 8, 99] {
            assert_eq!(other.decide(Some(here), Some(7), false), Restored::Put);
            assert_eq!(other.decide(Some(here), None, false), Restored::Delete);
        }
        // Nor do those that the log has lost.
        assert_eq!(RULE.decide(Some(101), Some(7), false), Restored::Put);
        assert_eq!(RULE.decide(Some(101), None, false), Restored::Delete);
    }

    proptest! {
        /// A fold that is not ahead of the artifact becomes what that is. Of one that is, which was in a
        /// repair, no value goes back, and with what follows the artifact it is what the log says.
        #[test]
        fn a_restored_fold_and_the_tail_are_the_bucket(
            // Per key: the revisions that wrote it, and which of them deleted it.
            history in prop::collection::vec((prop::collection::btree_set(1..=100u64, 0..5), any::<u8>()), 1..6),
            at in 0..=100u64,
            revision in 0..=100u64,
        ) {
            let rule = Restoring { revision, ..RULE };
            for (writes, deletes) in history {
                let value = |through: u64| {
                    let (index, last) = writes.range(..=through).enumerate().last()?;
                    (deletes & (1 << index) == 0).then_some(*last)
                };
                let (here, there) = (value(at), value(revision));
                let restored = match rule.decide(here, there, here == there) {
                    Restored::Keep => here,
                    Restored::Put => there,
                    Restored::Delete => None,
                };
                if at <= revision {
                    prop_assert_eq!(restored, there);
                }
                prop_assert!(here.is_none() || restored.is_none() || restored >= here);
                // A key that was written since comes again by itself.
                let comes_again = writes.range(revision + 1..).next().is_some();
                prop_assert!(comes_again || restored == value(100), "{here:?} {there:?}");
            }
        }
    }
}
