//! What the watch loop tells the apply loop, through a queue: each is done after everything before it.

use tokio::sync::oneshot;

use super::export::ExportRequest;
use super::restore::RestoreFrom;
use crate::kv::{CursorExpiry, KvUpdate, LogCursor};
use crate::protocol::{self, Vanished, Verdict};

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
    /// Whether all versions of the fold are known to be of a log. `why` its cursor is of no use.
    pub(super) fn is_of(&self, incarnation: u64, why: Option<CursorExpiry>) -> bool {
        let is_lost = why.is_some_and(|why| protocol::verdict_of(why) == Verdict::Dead);
        match &self.cursor {
            Ok(Some(cursor)) => cursor.position.incarnation == incarnation && !is_lost,
            Ok(None) => !self.has_orphans,
            Err(_) => false,
        }
    }

    /// Whether the log was seen with limits that evict.
    pub(super) fn evicted(&self) -> bool {
        matches!(&self.cursor, Ok(Some(cursor)) if cursor.evicted)
    }
}
