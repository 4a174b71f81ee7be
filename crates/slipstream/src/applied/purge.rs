//! Finds keys that somebody purged from the log under a fold that has read everything.
//!
//! A purge leaves no message. But in a log that keeps current values no key has a version below the
//! floor, so a floor that has risen past a version in the fold tells. Finding that version reads the
//! whole fold, so it is done at a small share of the time, on a thread beside the apply loop.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use super::status::Shared;
use crate::snapshot::{SnapshotError, SnapshotReader};

/// Looking takes at most one part in so many of the time.
const SHARE: u32 = 100;

type Look = Arc<dyn Fn(u64, &Shared) -> Result<bool, SnapshotError> + Send + Sync>;

pub(super) struct PurgeCheck {
    look: Look,
    /// The fold was searched for versions below this; 0 if it never was.
    pub(super) floor: u64,
    not_before: Instant,
}

impl PurgeCheck {
    pub(super) fn new(reader: impl SnapshotReader + Sync + 'static, prefixes: Vec<String>) -> Self {
        let look = move |floor, shared: &Shared| has_key_below(&reader, &prefixes, floor, shared);
        Self { look: Arc::new(look), floor: 0, not_before: Instant::now() }
    }

    /// Whether to look: the floor has risen, and the last look was long enough ago.
    pub(super) fn is_due(&self, floor: u64) -> bool {
        floor > self.floor.max(1) && Instant::now() >= self.not_before
    }

    /// Whether the fold has a key with a version below the floor. A fold that is told to end is not
    /// searched to its end.
    pub(super) async fn finds_key_below(
        &mut self,
        floor: u64,
        shared: Arc<Shared>,
    ) -> Result<bool, SnapshotError> {
        let look = Arc::clone(&self.look);
        let began = Instant::now();
        let found = match tokio::task::spawn_blocking(move || look(floor, &shared)).await {
            Ok(found) => found?,
            Err(failed) => std::panic::resume_unwind(failed.into_panic()),
        };
        self.not_before = Instant::now() + began.elapsed() * SHARE;
        if !found {
            self.floor = floor;
        }
        Ok(found)
    }

    /// A resync has looked at every key below the floor.
    pub(super) fn resynced(&mut self, floor: u64) {
        (self.floor, self.not_before) = (floor, Instant::now());
    }
}

fn has_key_below(
    reader: &impl SnapshotReader,
    prefixes: &[String],
    floor: u64,
    shared: &Shared,
) -> Result<bool, SnapshotError> {
    let mut found = false;
    for prefix in prefixes {
        reader.for_each_in_range(prefix, &mut |entry| {
            found |= entry.version.as_u64().is_some_and(|version| version < floor);
            if found || shared.is_shut_down() {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
    }
    Ok(found)
}
