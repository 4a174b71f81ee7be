//! The caller's part of a fold.

use crate::kv::{Key, KvUpdate, VersionToken, WatchCursor};

/// What the caller does with updates.
///
/// Updates may come more than once (after an interruption, or a crash), always in the order of the
/// log. A resync adds deletes, of unknown version, of the keys that have vanished from the bucket; a
/// [restore](crate::FoldConfig::restore) hands out what differs between the fold and the artifact, in the
/// order of the keys. Until either is over there is no `on_applied`. `()` does nothing: the store is all
/// there is.
pub trait Applier: Send + 'static {
    /// An update as the caller sees it.
    type Item;

    /// Reads an update. `None` for one that does not concern the caller: it is stored, and counts,
    /// all the same.
    fn parse(&mut self, update: &KvUpdate) -> Option<Self::Item>;

    /// Applies what was parsed of a batch, if there is anything.
    fn apply(&mut self, batch: Vec<Self::Item>);

    /// The store has taken everything up to this cursor.
    fn on_applied(&mut self, cursor: &WatchCursor, revision: u64) {
        let _ = (cursor, revision);
    }

    /// A resync begins, and this is the fold's cursor until its end: whoever stores cursors stores it
    /// before anything that follows. Nobody can resume from it.
    fn on_resync(&mut self, cursor: &WatchCursor) {
        let _ = cursor;
    }

    /// Whether the applier has entries that the store does not have ([`CursorOnly`](crate::CursorOnly)).
    fn keeps_entries(&self) -> bool {
        false
    }

    /// A resync is about to end: every entry of the applier's own is to go for which `is_current` says
    /// no, given its key and the version that it came with.
    fn retain(&mut self, is_current: &dyn Fn(&str, VersionToken) -> bool) {
        let _ = is_current;
    }

    /// After a repair: keys that are in the fold and that the bucket did not list. They were kept,
    /// because the log may have evicted them.
    fn unconfirmed(&mut self, keys: Vec<Key>) {
        let _ = keys;
    }
}

impl Applier for () {
    type Item = std::convert::Infallible;

    fn parse(&mut self, _: &KvUpdate) -> Option<Self::Item> {
        None
    }

    fn apply(&mut self, _: Vec<Self::Item>) {}
}
