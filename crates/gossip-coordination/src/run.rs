//! Runs: one scan of one target, from its creation to its end, and what can be asked about it.
//!
//! What must hold of a run's record, U1 to U5, stands with the invariants of shards.

use core::fmt;

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, TenantId,
};

use crate::invariants::check_run_invariants;
use crate::lease::Takeover;
use crate::op_log::RunOpLog;
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

/// As users read it.
impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Initializing => "initializing",
            Self::Active => "active",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        })
    }
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

    /// V4: what is staged for a run that is not active yet is not there for anybody.
    #[must_use]
    pub const fn shows_shards(self) -> bool {
        !matches!(self, Self::Initializing)
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
    /// poisoned: an input that kills its worker must not kill every worker in turn. An acquire
    /// whose answer was lost counts, too, so allow for a few.
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

impl RunConfig {
    /// When a lease ends that is granted or renewed at `now`. Saturates: a lease that outlives the
    /// clock is as good as one that never ends.
    #[must_use]
    pub fn lease_deadline(&self, now: LogicalTime) -> LogicalTime {
        now.checked_add(self.lease_duration).unwrap_or(LogicalTime::from_raw(u64::MAX))
    }
}

/// Why a configuration cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
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
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its number.
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
    /// The operations that a replay is recognised by.
    pub op_log: RunOpLog,
    /// A registration that is in progress, or was when the run was cancelled.
    pub registration: Option<Registration>,
    /// Its result, if it is done and whoever completed it gave one.
    pub result: Option<RunResult>,
}

/// A registration in progress: what is to be registered, and how much of it is stored.
///
/// A backend whose transactions are too small for a manifest stores its shards in several steps.
/// Until the last of them the run is initializing, and nobody sees a shard.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Registration {
    /// Under which id the shards are registered.
    pub op_id: OpId,
    /// The fingerprint of the manifest.
    pub payload_hash: u64,
    /// Shards of the manifest.
    pub count: u32,
    /// Those of them that are stored, from the front.
    pub staged: u32,
    /// Shards that an earlier registration has left, or this one when its run was cancelled: they
    /// are to be deleted.
    pub leftover: u32,
    /// When its last step was taken.
    pub stepped_at: LogicalTime,
}

impl Registration {
    /// Shards that are stored and that nobody sees.
    #[must_use]
    pub const fn hidden(&self) -> u32 {
        self.staged + self.leftover
    }

    /// Places under the ceilings that it takes from its first step on: for what it stages, or for
    /// what it has to delete before, whichever is more.
    pub(crate) const fn places(&self) -> u32 {
        if self.leftover > self.count { self.leftover } else { self.count }
    }
}

/// The hash stays out: who can read logs must not be able to probe manifests.
impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("op_id", &self.op_id)
            .field("count", &self.count)
            .field("staged", &self.staged)
            .field("leftover", &self.leftover)
            .field("stepped_at", &self.stepped_at)
            .finish_non_exhaustive()
    }
}

impl RunRecord {
    /// V4: whether the shards that are stored for the run may be seen. Not before it is active, nor
    /// what is left of a registration when it was cancelled.
    #[must_use]
    pub const fn shows_shards(&self) -> bool {
        self.gate().shows_shards()
    }

    /// Places under the ceilings that are taken for shards that are not stored yet. A backend that
    /// stores a registration in steps counts them with the shards that exist.
    #[must_use]
    pub fn reserved(&self) -> usize {
        let registration = self.registration.filter(|_| self.status == RunStatus::Initializing);
        registration.map_or(0, |it| (it.places() - it.hidden()) as usize)
    }

    /// What a shard's transition needs to know of its run.
    #[must_use]
    pub const fn gate(&self) -> RunGate {
        let hides_shards = self.status.is_terminal() && self.root_shards.is_empty();
        RunGate { status: self.status, config: self.config, hides_shards }
    }

    /// Whether nobody has worked since before `cutoff` on giving an initializing run its shards: who
    /// began it has died, and the run may be cancelled.
    #[must_use]
    pub fn is_stale(&self, cutoff: LogicalTime) -> bool {
        let registered_at = self.registration.map(|registration| registration.stepped_at);
        self.status == RunStatus::Initializing
            && self.created_at.max(registered_at.unwrap_or(self.created_at)) < cutoff
    }

    /// The gate, with whose it is.
    #[must_use]
    pub const fn gate_record(&self) -> GateRecord {
        GateRecord { tenant: self.tenant, run: self.run, gate: self.gate() }
    }

    /// Panics unless U1 to U5 hold.
    pub fn assert_invariants(&self) {
        check_run_invariants(self).unwrap_or_else(|violation| panic!("{violation}"));
    }
}

/// A run's gate by itself: what a store keeps under a small key that only transitions of the run
/// write, so that a shard's transaction can compare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GateRecord {
    /// The tenant that owns the run.
    pub tenant: TenantId,
    /// The run's number.
    pub run: RunId,
    /// What it says.
    pub gate: RunGate,
}

/// What a shard's transition needs to know of its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunGate {
    /// Work is done in active runs only.
    pub status: RunStatus,
    /// Lease duration and retries.
    pub config: RunConfig,
    /// It was cancelled before it was active. What is stored of its shards is what a registration left,
    /// and is about to be deleted.
    pub hides_shards: bool,
}

impl RunGate {
    /// V4: whether shards that are stored for the run may be seen.
    #[must_use]
    pub const fn shows_shards(&self) -> bool {
        self.status.shows_shards() && !self.hides_shards
    }
}

/// One line of a listing of runs: a run without its shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's number.
    pub run: RunId,
    /// How it is worked on.
    pub config: RunConfig,
    /// Where it stands.
    pub status: RunStatus,
    /// When it was created.
    pub created_at: LogicalTime,
    /// When it ended.
    pub completed_at: Option<LogicalTime>,
    /// How it ended, if it has.
    pub result: Option<RunResult>,
}

impl RunSummary {
    /// The summary of a record.
    #[must_use]
    pub const fn of(record: &RunRecord) -> Self {
        let RunRecord { run, config, status, created_at, completed_at, result, .. } = *record;
        Self { run, config, status, created_at, completed_at, result }
    }
}

/// How many shards of a run stand where, in one consistent view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
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
    /// All shards. Saturates: the counts may come from a damaged store.
    #[must_use]
    pub const fn total(&self) -> u64 {
        let settled = self.done.saturating_add(self.split);
        self.active.saturating_add(settled).saturating_add(self.parked)
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
    /// There are no shards yet.
    NoShards,
}

/// What `progress` says about ending the run.
#[must_use]
pub const fn evaluate_run_terminal(progress: &RunProgress) -> RunTerminalEvaluation {
    if progress.total() == 0 {
        RunTerminalEvaluation::NoShards
    } else if progress.active > 0 {
        RunTerminalEvaluation::StillActive
    } else if progress.parked > 0 {
        RunTerminalEvaluation::HasFailures
    } else {
        RunTerminalEvaluation::AllDone
    }
}

/// Which shards a listing shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Whether the listing at `now` shows this shard of a run that is `run`. Shards of a run that is
    /// not active yet are not shown (V4), and of one that has ended not available to anybody.
    #[must_use]
    pub fn admits(
        &self,
        shard: &ShardRecordView<'_>,
        run: RunStatus,
        now: LogicalTime,
        takeover: Takeover,
    ) -> bool {
        let is_available =
            || run == RunStatus::Active && shard.state.is_available_at(now, takeover);
        run.shows_shards()
            && self.status.is_none_or(|status| shard.state.status == status)
            && (!self.available_only || is_available())
            && (!self.root_only || shard.parent.is_none())
    }
}

/// One line of a listing.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ShardSummary {
    /// Its number in the run.
    pub shard: ShardId,
    /// Where it stands.
    pub status: ShardStatus,
    /// First key of its range.
    pub start: Box<[u8]>,
    /// First key behind its range.
    pub end: Box<[u8]>,
    /// The last key handled.
    pub last_key: Option<Box<[u8]>>,
    /// Its cursor's token.
    pub token: Option<Box<[u8]>>,
    /// When its lease ends, if one was granted and not released.
    pub lease_deadline: Option<LogicalTime>,
    /// The fence of that lease, or of the last one: what revoking it asks for.
    pub fence: FenceEpoch,
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
            token: shard.cursor.token().map(Into::into),
            lease_deadline: shard.state.lease.map(|holder| holder.deadline()),
            fence: shard.state.fence,
            acquires_since_progress: shard.state.acquires_since_progress,
            parent: shard.parent,
            spawned_count: shard.spawned.len(),
        }
    }
}

/// Keys and the token show as lengths.
impl fmt::Debug for ShardSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardSummary")
            .field("shard", &self.shard)
            .field("status", &self.status)
            .field("start", &format_args!("[{} bytes]", self.start.len()))
            .field("end", &format_args!("[{} bytes]", self.end.len()))
            .field("last_key", &self.last_key.as_ref().map(|key| key.len()))
            .field("token", &self.token.as_ref().map(|token| token.len()))
            .field("lease_deadline", &self.lease_deadline)
            .field("fence", &self.fence)
            .field("acquires_since_progress", &self.acquires_since_progress)
            .field("parent", &self.parent)
            .field("spawned_count", &self.spawned_count)
            .finish()
    }
}

#[cfg(test)]
mod tests;
