//! What the watch loop tells the apply loop, through a queue: each is done after everything before it.

use tokio::sync::oneshot;

use super::export::ExportRequest;
use super::restore::RestoreFrom;
use crate::kv::{CursorExpiry, KvUpdate, LogCursor, LogInfo};
use crate::protocol::{Stands, Vanished};

/// Updates that are applied and stored together.
pub(super) struct Batch {
    pub(super) updates: Vec<KvUpdate>,
    /// Covers them. Not stored in a resync.
    pub(super) cursor: LogCursor,
    /// When the last update was written, in Unix nanoseconds; 0 if there is none.
    pub(super) stored_at_ns: u64,
    /// Whether more was known to come when it was received.
    pub(super) more: bool,
    /// Whether the watch has now handed out everything that it began with.
    pub(super) synced: bool,
}

/// What to do.
pub(super) enum Command {
    /// A watch goes on from this revision, with a complete fold.
    Resume {
        revision: u64,
        incomplete: bool,
    },
    /// A resync begins. Its cursor is stored with everything until its end.
    BeginResync {
        cursor: LogCursor,
        lists: bool,
    },
    Batch(Batch),
    FinishResync(Finish),
    /// The fold, which is in a resync, becomes what an artifact is.
    Restore(Box<RestoreFrom>),
    /// With the cursor of everything before, as the watch remembers it.
    Export(ExportRequest, LogCursor),
    /// How the fold stands, when everything before is stored.
    Standing(oneshot::Sender<Standing>),
}

/// The end of a resync: everything that it waited for is in the commands before.
pub(super) struct Finish {
    pub(super) floor: u64,
    pub(super) vanished: Vanished,
    /// How many keys a listing of the whole bucket has to have brought, if that is known.
    pub(super) subjects: Option<u64>,
    /// Whether nobody has written since the listing began, so that each key came once.
    pub(super) untouched: bool,
    /// What the fold has when the vanished keys are gone.
    pub(super) cursor: LogCursor,
    pub(super) finished: oneshot::Sender<Finished>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finished {
    /// The fold is complete.
    Complete,
    /// The listing brought too few keys, or too many. Nothing was dropped.
    NotWhole { delivered: u64 },
    /// The fold is to end. It is still in the resync.
    ShutDown,
}

/// How a fold stands that no watch feeds.
pub(super) struct Standing {
    pub(super) cursor: Result<Option<LogCursor>, CursorExpiry>,
    /// Whether it has keys, though no cursor.
    pub(super) has_orphans: bool,
}

impl Standing {
    /// As [`Stands::is_of`].
    pub(super) fn is_of(&self, log: &LogInfo, why: Option<CursorExpiry>) -> bool {
        match &self.cursor {
            Ok(Some(cursor)) => stands(cursor).is_of(log, why),
            Ok(None) => !self.has_orphans,
            Err(_) => false,
        }
    }

    /// As [`Stands::revision_in`].
    pub(super) fn revision_in(&self, log: &LogInfo, why: Option<CursorExpiry>) -> Option<u64> {
        stands(self.cursor.as_ref().ok()?.as_ref()?).revision_in(log, why)
    }

    /// As [`Stands::lost_its_log`].
    pub(super) fn lost_its_log(&self, log: &LogInfo, why: Option<CursorExpiry>) -> bool {
        matches!(&self.cursor, Ok(Some(cursor)) if stands(cursor).lost_its_log(log, why))
    }

    /// As [`Stands::known_end`]; of a fold without a cursor nothing is in doubt.
    pub(super) fn known_end(&self) -> u64 {
        match &self.cursor {
            Ok(Some(cursor)) => stands(cursor).known_end(),
            _ => u64::MAX,
        }
    }

    /// Whether the log was seen with limits that evict.
    pub(super) fn evicted(&self) -> bool {
        matches!(&self.cursor, Ok(Some(cursor)) if cursor.evicted)
    }
}

fn stands(cursor: &LogCursor) -> Stands {
    let LogCursor { position, in_repair, incomplete, .. } = *cursor;
    Stands { position, in_repair, incomplete }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::{Retention, WatchScope};
    use crate::protocol::Position;

    fn log(incarnation: u64, last: u64) -> LogInfo {
        let retention = Retention::default();
        LogInfo { incarnation, first: 5, last, retention, subjects: 0, read_at_ms: 0 }
    }

    fn at(cursor: LogCursor) -> Standing {
        Standing { cursor: Ok(Some(cursor)), has_orphans: false }
    }

    #[test]
    fn versions_of_a_fold_are_those_of_a_log_that_was_neither_replaced_nor_rolled_back() {
        let complete = LogCursor::new(Position::at(7, 50), &WatchScope::All);
        let in_repair = LogCursor::in_repair(&WatchScope::All, true, 7, 50);
        let decoded = LogCursor::decode(&in_repair.encode()).unwrap();
        let why = Some(CursorExpiry::BelowFloor { revision: 50, first: 60 });
        for cursor in [complete.clone(), in_repair.clone(), decoded] {
            let standing = at(cursor);
            assert!(standing.is_of(&log(7, 50), why));
            assert!(!standing.is_of(&log(8, 50), why), "made again");
            assert!(!standing.is_of(&log(7, 49), why), "rolled back");
            assert!(!standing.is_of(&log(7, 50), Some(CursorExpiry::Recreated)));
        }
        for (log, is_lost) in [(log(7, 50), false), (log(8, 50), true), (log(7, 49), true)] {
            assert_eq!(at(in_repair.clone()).lost_its_log(&log, why), is_lost);
            assert_eq!(at(complete.clone()).lost_its_log(&log, why), is_lost);
            let proven = Some(CursorExpiry::Incomplete);
            assert!(!at(complete.clone()).lost_its_log(&log, proven), "it may go on");
            let of_none = LogCursor::in_repair(&WatchScope::All, true, 0, 50);
            assert!(!at(of_none).lost_its_log(&log, why), "that is known");
        }
        let kept = LogCursor { incomplete: true, ..complete.clone() };
        assert!(!at(kept.clone()).is_of(&log(7, 50), why), "it may have kept those of another");
        assert_eq!(at(kept).revision_in(&log(7, 50), why), Some(50));
        assert_eq!(at(complete.clone()).revision_in(&log(7, 49), why), None);
        assert_eq!(at(in_repair).revision_in(&log(7, 50), why), None);
        assert_eq!(at(complete).revision_in(&log(8, 50), why), None);
    }
}
