//! A fold whose every third batch fails once.

use slipstream::snapshot_conformance::{Alter, Altered};
use slipstream::{AppendLogSnapshot, KvUpdate, SnapshotError, SnapshotStore, WatchCursor};

pub(crate) type Failing = Altered<EveryThird>;

#[derive(Default)]
pub(crate) struct EveryThird {
    applies: u32,
}

impl Alter for EveryThird {
    fn apply(
        &mut self,
        log: &mut AppendLogSnapshot,
        batch: &[KvUpdate],
        cursor: &WatchCursor,
    ) -> Result<(), SnapshotError> {
        self.applies += 1;
        if self.applies.is_multiple_of(3) {
            let source = std::io::ErrorKind::StorageFull.into();
            return Err(SnapshotError::Io { doing: "writing", source });
        }
        log.apply(batch, cursor)
    }
}
