//! Up to where a fold has everything, and the gaps on its way on (P2).

use crate::applied::command::Batch;
use crate::kv::{CursorExpiry, LogInfo};
use crate::protocol::{self, Guard, Position};

const NS_PER_MS: u64 = 1_000_000;

/// Where the fold stands before a gap.
#[derive(Clone, Copy)]
pub(in crate::applied) struct BeforeGap {
    /// The revision that the floor must not have passed.
    pub(in crate::applied) revision: u64,
    /// Everything that was written before this time, by the server's clock, was observed; see
    /// [`protocol::tombstones_are_left`].
    pub(in crate::applied) observed_ms: u64,
}

impl BeforeGap {
    pub(super) fn older(self, other: Self) -> Self {
        Self {
            revision: self.revision.min(other.revision),
            observed_ms: self.observed_ms.min(other.observed_ms),
        }
    }
}

pub(super) struct Frontier {
    incarnation: u64,
    /// Whether a skipped revision matters by itself; in a resync it does not (B3).
    guarded: bool,
    /// The newest revision up to which a complete fold has everything that was gathered.
    revision: u64,
    /// Everything that was written before this time was gathered.
    observed_ms: u64,
}

impl Frontier {
    pub(super) fn in_resync(incarnation: u64) -> Self {
        Self { incarnation, guarded: false, revision: 0, observed_ms: 0 }
    }

    pub(super) fn guard_from(&mut self, revision: u64, observed_ms: u64) {
        (self.guarded, self.revision, self.observed_ms) = (true, revision, observed_ms);
    }

    pub(super) fn unguard(&mut self) {
        self.guarded = false;
    }

    pub(super) fn here(&self) -> BeforeGap {
        BeforeGap { revision: self.revision, observed_ms: self.observed_ms }
    }

    /// Moves to the end of a batch; where it stood before the first gap in it.
    pub(super) fn gather(&mut self, batch: &Batch) -> Option<BeforeGap> {
        if !self.guarded {
            return None;
        }
        let revisions = || batch.updates.iter().filter_map(|update| update.version().as_u64());
        let observed_ms = self.observed_ms;
        let before = protocol::before_first_gap(self.revision, revisions());
        self.revision = revisions().max().unwrap_or(0).max(self.revision);
        self.observed_ms = observed_ms.max(batch.stored_at_ns / NS_PER_MS);
        before.map(|revision| BeforeGap { revision, observed_ms })
    }

    /// Moves to a position, past what was not for the watch; where it stood, if it has moved.
    pub(super) fn pass(&mut self, position: &Position) -> Option<BeforeGap> {
        assert!(self.guarded, "a resync passes nothing (B3)");
        let before = self.here();
        self.observed_ms = before.observed_ms.max(position.observed_through_ms);
        self.revision = before.revision.max(position.revision);
        (self.revision > before.revision).then_some(before)
    }

    /// Goes on behind what the log has evicted.
    pub(super) fn pass_gap(&mut self, through: u64, read_at_ms: u64) {
        self.revision = self.revision.max(through);
        self.observed_ms = self.observed_ms.max(read_at_ms);
    }

    /// Whether nothing was missed in a gap; the log was read when `received` had come.
    pub(super) fn check(
        &self,
        gap: BeforeGap,
        received: u64,
        log: &LogInfo,
    ) -> Result<(), CursorExpiry> {
        match protocol::live_guard(self.incarnation, gap.revision, received, log) {
            Guard::Trip(why) => Err(why),
            Guard::Pass if !protocol::tombstones_are_left(log, gap.observed_ms) => {
                Err(CursorExpiry::TombstonesExpired)
            }
            Guard::Pass => Ok(()),
        }
    }

    /// Whether the log has the tombstones of all keys that expired since it was last observed. Of a
    /// log that was not written to, all were gathered.
    pub(super) fn has_all_tombstones(&self, log: &LogInfo) -> bool {
        log.last <= self.revision || protocol::tombstones_are_left(log, self.observed_ms)
    }
}
