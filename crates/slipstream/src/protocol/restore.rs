//! A restore: a fold becomes what an artifact holds, where a listing would not bring everything.
//!
//! A log that evicts current values has no complete listing: what was evicted is in the folds only. The
//! artifact of a fold whose cursor passes the resume guard has what the log had, and the log still has
//! all that follows. So the fold takes the artifact's entries, key by key, and reads on from its cursor.

use super::{Vanished, Verdict, vanished};
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

/// Whether a fold is restored from an artifact (P9, P10). `why` its cursor is of no use; `None` if the
/// fold is empty.
///
/// A fold that could go on, but may be incomplete, gains nothing by an artifact that may be, too.
pub fn restores(evicted: bool, log: &LogInfo, why: Option<CursorExpiry>, offer: Offer) -> bool {
    let gains = why != Some(CursorExpiry::Incomplete) || !offer.may_be_incomplete;
    may_lack_evicted(evicted, log) && offer.verdict == Verdict::Holds && gains
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
    /// The head of the log, read before: whatever the fold has from above was lost.
    pub head: u64,
    /// Whether all versions of the fold are known to be of the artifact's log.
    pub same_log: bool,
    /// Whether the artifact may lack keys that nobody deleted.
    pub may_be_incomplete: bool,
}

impl Restoring {
    /// Decides about a key that the fold has at version `here`, and the artifact at `there`: `None` if
    /// it has it not, 0 if the version is not known.
    ///
    /// A version that is newer in the fold stays: what follows the artifact brings it, or what became
    /// of it. One that the artifact does not have was deleted by somebody, if the artifact is complete.
    pub fn decide(&self, here: Option<u64>, there: Option<u64>) -> Restored {
        let is_newer = |here: u64, than: u64| self.same_log && here > than && here <= self.head;
        match (here, there) {
            (Some(here), Some(there)) => {
                let is_same = self.same_log && here == there && here > 0;
                if is_same || is_newer(here, there) { Restored::Keep } else { Restored::Put }
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
    fn a_fold_is_restored_only_where_a_listing_would_not_bring_everything() {
        let why = Some(CursorExpiry::Unproven);
        for why in [None, why] {
            assert!(restores(false, &log(2, true), why, HOLDS));
            assert!(restores(true, &log(2, false), why, HOLDS), "it evicted once");
            assert!(!restores(false, &log(2, false), why, HOLDS), "it never did");
            assert!(!restores(true, &log(1, true), why, HOLDS), "it has its first message");
        }
    }

    #[test]
    fn only_an_artifact_that_a_watch_can_read_on_from_is_used() {
        for verdict in [Verdict::Expired, Verdict::Dead] {
            assert!(!restores(true, &log(2, true), None, Offer { verdict, ..HOLDS }));
        }
        let incomplete = Offer { may_be_incomplete: true, ..HOLDS };
        assert!(restores(true, &log(2, true), Some(CursorExpiry::Unproven), incomplete));
        let good_cursor = Some(CursorExpiry::Incomplete);
        assert!(restores(true, &log(2, true), good_cursor, HOLDS));
        assert!(!restores(true, &log(2, true), good_cursor, incomplete), "nothing is gained");
    }

    const RULE: Restoring =
        Restoring { revision: 50, head: 100, same_log: true, may_be_incomplete: false };

    #[test]
    fn what_differs_is_taken_from_the_artifact() {
        assert_eq!(RULE.decide(None, Some(7)), Restored::Put);
        assert_eq!(RULE.decide(Some(7), Some(7)), Restored::Keep);
        assert_eq!(RULE.decide(Some(6), Some(7)), Restored::Put);
        assert_eq!(RULE.decide(Some(7), None), Restored::Delete);
        assert_eq!(RULE.decide(Some(0), Some(7)), Restored::Put, "its version is not known");
        assert_eq!(RULE.decide(Some(0), Some(0)), Restored::Put);
        let incomplete = Restoring { may_be_incomplete: true, ..RULE };
        assert_eq!(incomplete.decide(Some(7), None), Restored::Keep, "nobody may have deleted it");
    }

    #[test]
    fn versions_of_another_log_say_nothing() {
        let other = Restoring { same_log: false, ..RULE };
        for here in [6, 7, 8, 99] {
            assert_eq!(other.decide(Some(here), Some(7)), Restored::Put);
            assert_eq!(other.decide(Some(here), None), Restored::Delete);
        }
        // Nor do those that the log has lost.
        assert_eq!(RULE.decide(Some(101), Some(7)), Restored::Put);
        assert_eq!(RULE.decide(Some(101), None), Restored::Delete);
    }

    proptest! {
        /// With what follows the artifact, the fold is what the log says; and no key goes back on the way.
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
                let restored = match rule.decide(here, there) {
                    Restored::Keep => here,
                    Restored::Put => there,
                    Restored::Delete => None,
                };
                prop_assert!(here.is_none() || restored.is_none() || restored >= here);
                if there.is_some() && here > there {
                    prop_assert_eq!(restored, here, "newer here");
                }
                // A key that was written since comes again by itself.
                let comes_again = writes.range(revision + 1..).next().is_some();
                prop_assert!(comes_again || restored == value(100), "{here:?} {there:?}");
            }
        }
    }
}
