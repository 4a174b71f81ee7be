//! A store for callers that keep the entries themselves: nothing but a cursor, in memory.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use super::{EntryRef, SnapshotError, SnapshotReader, SnapshotStore};
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

/// The cursor of a fold whose entries are the caller's.
///
/// The caller's [`Applier`](crate::Applier) keeps the entries, and stores the cursors that it is told
/// ([`on_resync`](crate::Applier::on_resync), [`on_applied`](crate::Applier::on_applied)) where its
/// entries are. It says so with [`keeps_entries`](crate::Applier::keeps_entries), and drops what has
/// vanished in [`retain`](crate::Applier::retain).
#[derive(Clone, Debug, Default)]
pub struct CursorOnly(Arc<Mutex<WatchCursor>>);

impl CursorOnly {
    /// Where the caller's entries stand.
    #[must_use]
    pub fn new(cursor: WatchCursor) -> Self {
        Self(Arc::new(Mutex::new(cursor)))
    }
}

impl SnapshotStore for CursorOnly {
    type Reader = Self;

    /// Nothing is on disk: without a cursor.
    fn load(_: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Ok((WatchCursor::none(), Self::default()))
    }

    fn apply(&mut self, _: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = cursor.clone();
        Ok(())
    }

    fn reader(&self) -> Self {
        self.clone()
    }
}

impl SnapshotReader for CursorOnly {
    fn cursor(&self) -> WatchCursor {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn get(&self, _: &str) -> Result<Option<KvEntry>, SnapshotError> {
        Ok(None)
    }

    fn for_each_in_range(
        &self,
        _: &str,
        _: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        Ok(())
    }
}
