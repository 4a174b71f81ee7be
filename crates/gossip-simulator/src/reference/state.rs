//! What the model remembers: maps and vectors, copied freely.

use std::collections::{BTreeMap, VecDeque};

use gossip_contracts::identity::{LogicalTime, OpId, RunResult, ShardId, WorkerId};
use gossip_coordination::{ParkReason, RunConfig, RunOpKind, RunStatus, ShardStatus};

use crate::op::{OwnedCursor, OwnedRange, OwnedShardInput};

/// A lease as the shard knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) owner: WorkerId,
    pub(super) deadline: LogicalTime,
    /// Until when it keeps others out: longer than it may work, where clocks differ.
    pub(super) keeps_until: LogicalTime,
    /// Its process was silent for so long since it last wrote that it keeps nobody out.
    pub(super) is_silent: bool,
}

/// An operation on a shard that was carried out, with all that it was asked: parameters are
/// compared as they are, not by a hash.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum ShardOp {
    Checkpoint(OwnedCursor),
    CheckpointAndRenew(OwnedCursor),
    Complete(OwnedCursor),
    Park(ParkReason),
    Replace(Vec<OwnedRange>),
    Residual([OwnedRange; 2]),
    Unpark,
}

/// An operation on a run that was carried out.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum RunOp {
    Register(Vec<OwnedShardInput>),
    Complete(Option<RunResult>),
    Fail,
    Cancel,
}

impl RunOp {
    pub(super) const fn kind(&self) -> RunOpKind {
        match self {
            Self::Register(_) => RunOpKind::RegisterShards,
            Self::Complete(_) => RunOpKind::Complete,
            Self::Fail => RunOpKind::Fail,
            Self::Cancel => RunOpKind::Cancel,
        }
    }
}

/// The last operations, oldest first, each with the time at which it was carried out.
#[derive(Clone)]
pub(super) struct Memory<O> {
    room: usize,
    pub(super) done: VecDeque<(OpId, O, LogicalTime)>,
}

/// What a memory says of an operation that arrives.
pub(super) enum Known {
    No,
    Same,
    Different,
}

impl<O: PartialEq> Memory<O> {
    pub(super) const fn new(room: usize) -> Self {
        Self { room, done: VecDeque::new() }
    }

    pub(super) fn knows(&self, op_id: OpId, op: &O) -> Known {
        match self.done.iter().find(|(id, ..)| *id == op_id) {
            None => Known::No,
            Some((_, done, _)) if done == op => Known::Same,
            Some(_) => Known::Different,
        }
    }

    pub(super) fn note(&mut self, now: LogicalTime, op_id: OpId, op: O) {
        self.done.push_back((op_id, op, now));
        if self.done.len() > self.room {
            self.done.pop_front();
        }
    }
}

/// What the reference remembers of a shard.
#[derive(Clone)]
pub(super) struct Shard {
    pub(super) parent: Option<ShardId>,
    pub(super) spawned: Vec<ShardId>,
    pub(super) range: OwnedRange,
    pub(super) cursor: OwnedCursor,
    pub(super) status: ShardStatus,
    pub(super) park_reason: Option<ParkReason>,
    pub(super) fence: u64,
    pub(super) holder: Option<Holder>,
    pub(super) tries: u32,
    /// When it began to wait for a worker: its run counts.
    pub(super) waits_since: u64,
    pub(super) memory: Memory<ShardOp>,
}

/// Operations that a shard remembers.
const SHARD_MEMORY: usize = 16;
/// Operations that a run remembers.
const RUN_MEMORY: usize = 8;

impl Shard {
    pub(super) const fn new(
        parent: Option<ShardId>,
        range: OwnedRange,
        cursor: OwnedCursor,
    ) -> Self {
        Self {
            parent,
            spawned: Vec::new(),
            range,
            cursor,
            status: ShardStatus::Active,
            park_reason: None,
            fence: 1,
            holder: None,
            tries: 0,
            waits_since: 0,
            memory: Memory::new(SHARD_MEMORY),
        }
    }

    /// Who keeps others out of the shard.
    pub(super) fn held_at(&self, now: LogicalTime) -> Option<Holder> {
        self.holder.filter(|holder| now < holder.keeps_until)
    }

    /// Who keeps this worker out of it.
    pub(super) fn kept_from(&self, worker: WorkerId, now: LogicalTime) -> Option<Holder> {
        self.held_at(now).filter(|held| held.owner != worker && !held.is_silent)
    }

    pub(super) fn is_free_at(&self, now: LogicalTime) -> bool {
        self.status == ShardStatus::Active && self.held_at(now).is_none()
    }

    /// Which of the shards that are free comes first: whose worker has been gone longest, then who
    /// has waited longest. Leases that ended together have no order.
    pub(super) fn turn(&self) -> (bool, u64) {
        match self.holder {
            Some(gone) => (false, gone.deadline.as_raw()),
            None => (true, self.waits_since),
        }
    }

    pub(super) fn park(&mut self, reason: ParkReason) {
        self.status = ShardStatus::Parked;
        self.park_reason = Some(reason);
        self.holder = None;
    }
}

/// A run with its shards.
#[derive(Clone)]
pub(super) struct Run {
    pub(super) config: RunConfig,
    pub(super) status: RunStatus,
    pub(super) created_at: LogicalTime,
    pub(super) completed_at: Option<LogicalTime>,
    pub(super) result: Option<RunResult>,
    pub(super) roots: Vec<ShardId>,
    pub(super) shards: BTreeMap<ShardId, Shard>,
    /// Workers that found nothing to do and said so, and until when that counts.
    pub(super) idle: BTreeMap<WorkerId, LogicalTime>,
    /// How often a shard of it has begun to wait.
    waits: u64,
    pub(super) memory: Memory<RunOp>,
}

impl Run {
    pub(super) const fn new(config: RunConfig, created_at: LogicalTime) -> Self {
        Self {
            config,
            status: RunStatus::Initializing,
            created_at,
            completed_at: None,
            result: None,
            roots: Vec::new(),
            shards: BTreeMap::new(),
            idle: BTreeMap::new(),
            waits: 0,
            memory: Memory::new(RUN_MEMORY),
        }
    }

    /// A new shard, behind those that wait.
    pub(super) fn add(&mut self, id: ShardId, shard: Shard) {
        self.shards.insert(id, shard);
        self.line_up(id);
    }

    /// From now on the shard waits, behind those that do.
    pub(super) fn line_up(&mut self, id: ShardId) {
        self.waits += 1;
        self.shards.get_mut(&id).expect("a shard of this run").waits_since = self.waits;
    }

    /// When the first of the shards that are held at `now` is free.
    pub(super) fn earliest_deadline(&self, now: LogicalTime) -> Option<LogicalTime> {
        self.shards
            .values()
            .filter_map(|shard| shard.held_at(now))
            .map(|held| held.keeps_until)
            .min()
    }
}
