//! Runs: one scan of one target, from its creation to its end, and what can be asked about it.
//!
//! - U1: a run has an end time exactly when it has ended.
//! - U2: a run has root shards unless it never got that far: it is initializing, or was cancelled
//!   while it was.
//! - U3: an operation id stands in the op-log at most once.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId};

use crate::op_log::{OpLogEntry, RunOpKind, RunOpLog};
use crate::record::ShardRecordView;
use crate::status::ShardStatus;

/// Where a run stands. Stored as a byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum RunStatus {
    /// Created; its shards are not registered yet.
    Initializing = 0,
    /// Its shards can be worked on.
    Active = 1,
    /// Every shard was done.
    Done = 2,
    /// Given up.
    Failed = 3,
    /// Called off.
    Cancelled = 4,
}

impl RunStatus {
    /// Every status, by discriminant.
    pub const ALL: [Self; 5] =
        [Self::Initializing, Self::Active, Self::Done, Self::Failed, Self::Cancelled];

    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }

    /// The status stored as `raw`.
    #[must_use]
    pub const fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::Initializing),
            1 => Some(Self::Active),
            2 => Some(Self::Done),
            3 => Some(Self::Failed),
            4 => Some(Self::Cancelled),
            _ => None,
        }
    }
}

/// How a run is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RunConfig {
    /// What its shards' cursors promise.
    pub cursor_semantics: CursorSemantics,
    /// How long a lease lasts without renewal, in milliseconds.
    pub lease_duration: u64,
    /// How often a shard may be acquired without its cursor moving before it is parked as
    /// poisoned: an input that kills its worker must not kill every worker in turn.
    pub max_shard_retries: u32,
}

impl RunConfig {
    /// Checks that leases last and that a shard can be acquired at all.
    pub fn validate(&self) -> Result<(), RunConfigError> {
        if self.lease_duration == 0 {
            return Err(RunConfigError::ZeroLeaseDuration);
        }
        if self.max_shard_retries == 0 {
            return Err(RunConfigError::ZeroShardRetries);
        }
        Ok(())
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunConfigError {
    /// Leases would end as they begin.
    #[error("the lease duration must be at least one millisecond")]
    ZeroLeaseDuration,
    /// No shard could ever be acquired.
    #[error("a shard must be allowed at least one try")]
    ZeroShardRetries,
}

/// The authoritative record of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRecord {
    /// Whose it is.
    pub tenant: TenantId,
    /// Which run.
    pub run: RunId,
    /// How it is worked on.
    pub config: RunConfig,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: LogicalTime,
    /// When it ended.
    pub completed_at: Option<LogicalTime>,
    /// The shards with which it began.
    pub root_shards: Vec<ShardId>,
    /// Its last operations.
    pub op_log: RunOpLog,
}

impl RunRecord {
    /// What a shard's transition needs to know of its run.
    #[must_use]
    pub const fn gate(&self) -> RunGate {
        RunGate { status: self.status, config: self.config }
    }

    /// Panics unless U1 to U3 hold.
    pub fn assert_invariants(&self) {
        let (run, status) = (self.run, self.status);
        assert!(
            self.completed_at.is_some() == status.is_terminal(),
            "U1: run {run} is {status:?} with end {:?}",
            self.completed_at
        );
        let may_lack_shards = matches!(status, RunStatus::Initializing | RunStatus::Cancelled);
        assert!(
            may_lack_shards || !self.root_shards.is_empty(),
            "U2: run {run} is {status:?} without shards"
        );
        assert!(
            status != RunStatus::Initializing || self.root_shards.is_empty(),
            "U2: run {run} has shards while it is initializing"
        );
        let ids: Vec<OpId> = self.op_log.iter().map(OpLogEntry::<RunOpKind>::op_id).collect();
        for (index, id) in ids.iter().enumerate() {
            assert!(
                !ids[..index].contains(id),
                "U3: run {run} has operation {id} twice in its log"
            );
        }
    }
}

/// What a shard's transition needs to know of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunGate {
    /// Work is done in active runs only.
    pub status: RunStatus,
    /// Lease duration and retries.
    pub config: RunConfig,
}

/// How many shards of a run stand where, in one consistent view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct RunProgress {
    /// Shards with work left.
    pub active: u64,
    /// Shards whose keys are all handled.
    pub done: u64,
    /// Shards replaced by their children.
    pub split: u64,
    /// Halted shards.
    pub parked: u64,
    /// Shards that will never change again: done and split together. It only grows, so two equal
    /// readings mean that no shard was settled in between.
    pub watermark: u64,
}

impl RunProgress {
    /// All shards.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.active + self.done + self.split + self.parked
    }

    /// Counts a shard in `status`.
    pub fn add(&mut self, status: ShardStatus) {
        *self.count_mut(status) += 1;
        self.watermark = self.done + self.split;
    }

    /// Takes a shard in `status` off the count.
    ///
    /// # Panics
    /// If none was counted.
    pub fn remove(&mut self, status: ShardStatus) {
        let count = self.count_mut(status);
        *count = count.checked_sub(1).expect("a shard is counted before it changes");
        self.watermark = self.done + self.split;
    }

    fn count_mut(&mut self, status: ShardStatus) -> &mut u64 {
        match status {
            ShardStatus::Active => &mut self.active,
            ShardStatus::Done => &mut self.done,
            ShardStatus::Split => &mut self.split,
            ShardStatus::Parked => &mut self.parked,
        }
    }
}

/// What a run's progress says about ending it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunTerminalEvaluation {
    /// Some shard still has work.
    StillActive,
    /// Nothing is left to work on, but some shards are parked.
    HasFailures,
    /// Every shard is done or split.
    AllDone,
}

/// What `progress` says about ending the run.
#[must_use]
pub const fn evaluate_run_terminal(progress: &RunProgress) -> RunTerminalEvaluation {
    if progress.active > 0 {
        RunTerminalEvaluation::StillActive
    } else if progress.parked > 0 {
        RunTerminalEvaluation::HasFailures
    } else {
        RunTerminalEvaluation::AllDone
    }
}

/// Which shards a listing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardFilter {
    /// Only shards in this status.
    pub status: Option<ShardStatus>,
    /// Only shards that could be claimed at the time of asking.
    pub available_only: bool,
    /// Only shards with which the run began.
    pub root_only: bool,
}

impl ShardFilter {
    /// Every shard.
    #[must_use]
    pub const fn all() -> Self {
        Self { status: None, available_only: false, root_only: false }
    }

    /// Shards with work left.
    #[must_use]
    pub const fn active() -> Self {
        Self { status: Some(ShardStatus::Active), ..Self::all() }
    }

    /// Shards that could be claimed now.
    #[must_use]
    pub const fn available() -> Self {
        Self { available_only: true, ..Self::active() }
    }

    /// Halted shards.
    #[must_use]
    pub const fn parked() -> Self {
        Self { status: Some(ShardStatus::Parked), ..Self::all() }
    }

    /// The same, among root shards only.
    #[must_use]
    pub const fn roots(self) -> Self {
        Self { root_only: true, ..self }
    }

    /// Whether the listing at `now` shows this shard.
    #[must_use]
    pub fn admits(&self, shard: &ShardRecordView<'_>, now: LogicalTime) -> bool {
        self.status.is_none_or(|status| shard.state.status == status)
            && (!self.available_only || shard.state.is_available_at(now))
            && (!self.root_only || shard.parent.is_none())
    }
}

/// One line of a listing.
#[derive(Clone, PartialEq, Eq)]
pub struct ShardSummary {
    /// Which shard.
    pub shard: ShardId,
    /// Where it stands.
    pub status: ShardStatus,
    /// First key of its range.
    pub start: Box<[u8]>,
    /// First key behind its range.
    pub end: Box<[u8]>,
    /// The last key handled.
    pub last_key: Option<Box<[u8]>>,
    /// When its lease ends, if one was granted and not given back.
    pub lease_deadline: Option<LogicalTime>,
    /// Acquires since its cursor last moved.
    pub acquires_since_progress: u32,
    /// The shard from which it was split.
    pub parent: Option<ShardId>,
    /// How many shards were split from it.
    pub spawned_count: usize,
}

impl ShardSummary {
    /// The summary of a record.
    #[must_use]
    pub fn of(shard: &ShardRecordView<'_>) -> Self {
        Self {
            shard: shard.key.shard,
            status: shard.state.status,
            start: shard.spec.start().into(),
            end: shard.spec.end().into(),
            last_key: shard.cursor.last_key().map(Into::into),
            lease_deadline: shard.state.lease.map(|holder| holder.deadline()),
            acquires_since_progress: shard.state.acquires_since_progress,
            parent: shard.parent,
            spawned_count: shard.spawned.len(),
        }
    }
}

/// Keys show as lengths.
impl core::fmt::Debug for ShardSummary {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("ShardSummary")
            .field("shard", &self.shard)
            .field("status", &self.status)
            .field("start", &format_args!("[{} bytes]", self.start.len()))
            .field("end", &format_args!("[{} bytes]", self.end.len()))
            .field("last_key", &self.last_key.as_ref().map(|key| key.len()))
            .field("lease_deadline", &self.lease_deadline)
            .field("acquires_since_progress", &self.acquires_since_progress)
            .field("parent", &self.parent)
            .field("spawned_count", &self.spawned_count)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ShardState;
    use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
    use gossip_contracts::identity::ShardKey;

    #[test]
    fn discriminants_are_stable_and_unknown_bytes_are_none() {
        for raw in 0..=u8::MAX {
            assert_eq!(RunStatus::from_raw(raw).map(|s| s as u8), (raw < 5).then_some(raw));
        }
        assert_eq!(RunStatus::ALL.map(RunStatus::is_terminal), [false, false, true, true, true]);
    }

    #[test]
    fn a_configuration_that_cannot_work_is_refused() {
        let good = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: 1,
            max_shard_retries: 1,
        };
        assert_eq!(good.validate(), Ok(()));
        assert_eq!(
            RunConfig { lease_duration: 0, ..good }.validate(),
            Err(RunConfigError::ZeroLeaseDuration)
        );
        assert_eq!(
            RunConfig { max_shard_retries: 0, ..good }.validate(),
            Err(RunConfigError::ZeroShardRetries)
        );
    }

    #[test]
    fn evaluation_looks_at_active_then_parked() {
        let progress =
            |active, parked| RunProgress { active, parked, done: 3, split: 1, watermark: 4 };
        assert_eq!(evaluate_run_terminal(&progress(1, 1)), RunTerminalEvaluation::StillActive);
        assert_eq!(evaluate_run_terminal(&progress(0, 1)), RunTerminalEvaluation::HasFailures);
        assert_eq!(evaluate_run_terminal(&progress(0, 0)), RunTerminalEvaluation::AllDone);
    }

    #[test]
    fn counting_up_and_down_keeps_total_and_watermark() {
        let mut progress = RunProgress::default();
        for status in ShardStatus::ALL {
            progress.add(status);
            progress.add(status);
        }
        assert_eq!((progress.total(), progress.watermark), (8, 4));
        progress.remove(ShardStatus::Active);
        progress.add(ShardStatus::Done);
        assert_eq!((progress.total(), progress.watermark, progress.active), (8, 5, 1));
        assert_eq!((progress.done, progress.split, progress.parked), (3, 2, 2));
    }

    #[test]
    fn filters_admit_what_they_say() {
        let now = LogicalTime::from_raw(5);
        let shard = |status, shard: ShardId, parent| ShardRecordView {
            state: ShardState { status, ..ShardState::NEW },
            ..ShardRecordView::new_shard(
                TenantId::from_bytes([0; 32]),
                ShardKey::new(RunId::from_raw(1), shard),
                ShardSpecRef::new(b"a", b"b", b""),
                CursorUpdate::initial(),
                CursorSemantics::Completed,
                parent,
            )
        };
        let root = |status| shard(status, ShardId::from_raw(1), None);
        let child =
            shard(ShardStatus::Active, ShardId::derived_from_raw(1), Some(ShardId::from_raw(1)));
        let mut held = root(ShardStatus::Active);
        held.state.lease = Some(crate::lease::LeaseHolder::new(
            gossip_contracts::identity::WorkerId::from_raw(1),
            LogicalTime::from_raw(6),
        ));
        let row = |filter: ShardFilter| {
            [
                root(ShardStatus::Active),
                root(ShardStatus::Parked),
                root(ShardStatus::Done),
                child,
                held,
            ]
            .map(|shard| filter.admits(&shard, now))
        };
        assert_eq!(row(ShardFilter::all()), [true; 5]);
        assert_eq!(row(ShardFilter::active()), [true, false, false, true, true]);
        assert_eq!(row(ShardFilter::available()), [true, false, false, true, false]);
        assert_eq!(row(ShardFilter::parked()), [false, true, false, false, false]);
        assert_eq!(row(ShardFilter::all().roots()), [true, true, true, false, true]);
    }

    fn record() -> RunRecord {
        RunRecord {
            tenant: TenantId::from_bytes([0; 32]),
            run: RunId::from_raw(1),
            config: RunConfig {
                cursor_semantics: CursorSemantics::Completed,
                lease_duration: 1,
                max_shard_retries: 1,
            },
            status: RunStatus::Initializing,
            created_at: LogicalTime::from_raw(1),
            completed_at: None,
            root_shards: vec![],
            op_log: RunOpLog::new(),
        }
    }

    #[track_caller]
    fn check(number: &str, change: impl FnOnce(&mut RunRecord)) {
        let mut bad = record();
        bad.assert_invariants();
        change(&mut bad);
        let panic = std::panic::catch_unwind(|| bad.assert_invariants()).expect_err(number);
        let message = panic.downcast::<String>().expect("a formatted message");
        assert!(message.starts_with(&format!("{number}:")), "{message}");
    }

    #[test]
    fn every_run_invariant_is_noticed_under_its_number() {
        check("U1", |r| r.completed_at = Some(LogicalTime::from_raw(2)));
        check("U1", |r| r.status = RunStatus::Cancelled);
        check("U2", |r| r.status = RunStatus::Active);
        check("U2", |r| r.root_shards = vec![ShardId::from_raw(1)]);
        check("U3", |r| {
            for hash in [1, 2] {
                r.op_log.push_back_overwrite(OpLogEntry::new(
                    OpId::from_raw(4),
                    RunOpKind::Cancel,
                    crate::op_log::OpResult::Completed,
                    hash,
                    LogicalTime::from_raw(1),
                ));
            }
        });
    }
}
