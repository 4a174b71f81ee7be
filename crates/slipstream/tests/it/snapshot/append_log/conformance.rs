//! The suite, with the default options and with compactions all the time.

use slipstream::snapshot_conformance::{Alter, Altered};
use slipstream::{
    AppendLogOptions, AppendLogSnapshot, KvUpdate, SnapshotError, SnapshotStore, WatchCursor,
};

mod default {
    slipstream::snapshot_conformance!(
        slipstream::AppendLogSnapshot,
        log = std::path::Path::to_path_buf
    );
}

mod eager {
    slipstream::snapshot_conformance!(super::Eager, log = std::path::Path::to_path_buf);
}

/// A log that is compacted whenever half of it is outdated.
type Eager = Altered<Compacting>;

#[derive(Default)]
struct Compacting;

impl Alter for Compacting {
    fn options() -> AppendLogOptions {
        let mut options = AppendLogOptions::default();
        options.compact_threshold = 1;
        options
    }

    fn apply(
        &mut self,
        log: &mut AppendLogSnapshot,
        batch: &[KvUpdate],
        cursor: &WatchCursor,
    ) -> Result<(), SnapshotError> {
        log.apply(batch, cursor)?;
        assert!(log.compaction_error().is_none(), "{:?}", log.compaction_error());
        Ok(())
    }
}
