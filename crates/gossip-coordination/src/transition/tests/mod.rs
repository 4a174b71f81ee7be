//! Every rule by itself: one record, one request, what was decided.

mod lease;
mod order;
mod progress;
mod register;
mod replay;
mod run;
mod sequences;
mod split;
mod unpark;

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, ShardSpecRef, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId,
};

use super::*;
use crate::codec;
use crate::error::{
    CheckpointError, CompleteError, CoordError, ParkError, ReleaseError, RenewError, SplitError,
};
use crate::lease::{Lease, LeaseHolder, Takeover};
use crate::op_log::{OpKind, OpLogEntry, OpResult};
use crate::record::{FoundShard, ShardRecord, ShardRecordView, ShardState, ShardUpdate};
use crate::run::{RunConfig, RunGate, RunStatus};
use crate::shard_limits::{ShardCounts, ShardLimits, ShardRoom, SplitCaps};
use crate::status::{ParkReason, ShardStatus};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const OTHER_TENANT: TenantId = TenantId::from_bytes([2; 32]);
const WORKER: WorkerId = WorkerId::from_raw(7);
const OTHER_WORKER: WorkerId = WorkerId::from_raw(8);
const RUN: RunId = RunId::from_raw(3);
const SHARD: ShardId = ShardId::from_raw(4);
const KEY: ShardKey = ShardKey::new(RUN, SHARD);
/// When a world begins.
const START: LogicalTime = at(1_000);
const LEASE_DURATION: u64 = 100;
/// When a lease granted at [`START`] ends.
const DEADLINE: LogicalTime = at(1_100);
const RETRIES: u32 = 3;

const fn at(millis: u64) -> LogicalTime {
    LogicalTime::from_raw(millis)
}

const fn operation(raw: u64) -> OpId {
    OpId::from_raw(raw)
}

const fn fence(raw: u64) -> FenceEpoch {
    FenceEpoch::from_raw(raw)
}

/// One shard, `[d, t)`, and all that decisions about it depend on.
#[derive(Clone)]
struct World {
    shard: ShardRecord,
    gate: RunGate,
    room: ShardRoom,
    takeover: Takeover,
    now: LogicalTime,
}

/// A worker's operation.
#[derive(Clone, Copy, Debug)]
enum Op<'a> {
    Renew,
    Release,
    Checkpoint(CursorUpdate<'a>),
    Complete(CursorUpdate<'a>),
    Park(ParkReason),
    SplitReplace(&'a SplitReplacePlan<'a>),
    SplitResidual(&'a SplitResidualPlan<'a>),
}

impl Op<'_> {
    const fn is_idempotent(&self) -> bool {
        !matches!(self, Op::Renew | Op::Release)
    }
}

#[derive(Clone, Copy, Debug)]
struct Request<'a> {
    tenant: TenantId,
    lease: Lease,
    op: Op<'a>,
    op_id: OpId,
}

/// What a transition said, whatever its type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "a test keeps one at a time")]
enum Answer<'r> {
    /// With the new deadline of a renewal, and the shards that a split makes.
    Execute { update: ShardUpdate<'r>, deadline: Option<LogicalTime>, shards: Vec<NewShard<'r>> },
    /// With the shards that the split had made.
    Replay(Vec<ShardId>),
}

impl<'r> Answer<'r> {
    const REPLAY: Self = Self::Replay(Vec::new());

    fn execute(update: ShardUpdate<'r>) -> Self {
        Self::Execute { update, deadline: None, shards: vec![] }
    }

    fn of(decision: Decision<ShardUpdate<'r>, ()>) -> Self {
        match decision {
            Decision::Execute(update) => Self::execute(update),
            Decision::Replay(()) => Self::REPLAY,
        }
    }

    fn of_split<R>(
        decision: Decision<SplitUpdate<'r>, R>,
        ids: impl FnOnce(R) -> Vec<ShardId>,
    ) -> Self {
        match decision {
            Decision::Execute(SplitUpdate { parent, shards }) => Self::Execute {
                update: parent,
                deadline: None,
                shards: shards.into_iter().collect(),
            },
            Decision::Replay(result) => Self::Replay(ids(result)),
        }
    }
}

impl World {
    fn new() -> Self {
        let view = ShardRecordView::new_shard(
            TENANT,
            KEY,
            ShardSpecRef::new(b"d", b"t", b"meta"),
            CursorUpdate::initial(),
            CursorSemantics::Completed,
            None,
        );
        let config = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: LEASE_DURATION,
            max_shard_retries: RETRIES,
        };
        Self {
            shard: ShardRecord::from_view(&view),
            gate: RunGate { status: RunStatus::Active, config, hides_shards: false },
            room: ShardRoom {
                limits: ShardLimits { per_tenant: usize::MAX, global: usize::MAX },
                counts: ShardCounts::default(),
                split: SplitCaps::PROTOCOL,
            },
            takeover: Takeover::AT_DEADLINE,
            now: START,
        }
    }

    /// A world whose shard [`WORKER`] has just acquired.
    fn leased() -> (Self, Lease) {
        let mut world = Self::new();
        let lease = world.acquire(WORKER);
        (world, lease)
    }

    fn state(&mut self) -> &mut ShardState {
        &mut self.shard.state
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        codec::encode_shard(&self.shard.view(), &mut out);
        out
    }

    /// Calls `f` with the shard as a backend finds it.
    fn with_found<R>(&self, f: impl FnOnce(Option<FoundShard<'_, '_>>) -> R) -> R {
        f(Some(FoundShard { shard: &self.shard.view(), run: &self.gate }))
    }

    fn ask_acquire(
        &self,
        tenant: TenantId,
        worker: WorkerId,
    ) -> Result<AcquireDecision, crate::AcquireError> {
        self.with_found(|found| acquire(found, self.now, self.takeover, tenant, KEY, worker))
    }

    #[track_caller]
    fn acquire(&mut self, worker: WorkerId) -> Lease {
        match self.ask_acquire(TENANT, worker) {
            Ok(AcquireDecision::Grant { lease, update }) => {
                self.shard.apply(&update);
                lease
            }
            other => panic!("not granted: {other:?}"),
        }
    }

    fn ask<'r>(&self, request: &'r Request<'_>) -> Result<Answer<'r>, CoordError> {
        self.with_found(|found| decide(found, self.now, &self.room, request))
    }

    /// Asks, and stores what was decided as a backend does: from bytes to bytes.
    fn perform<'r>(&mut self, request: &'r Request<'_>) -> Result<Answer<'r>, CoordError> {
        let before = self.bytes();
        let answer = self.ask(request);
        if let Ok(Answer::Execute { update, .. }) = &answer {
            let mut after = Vec::new();
            codec::encode_shard_after(&self.shard.view(), update, &mut after);
            self.shard.apply(update);
            assert_eq!(self.bytes(), after);
            assert_eq!(codec::decode_shard(&after).as_ref(), Ok(&self.shard));
        } else {
            assert_eq!(self.bytes(), before);
        }
        answer
    }

    #[track_caller]
    fn execute(&mut self, request: &Request<'_>) {
        let answer = self.perform(request);
        assert!(matches!(answer, Ok(Answer::Execute { .. })), "{request:?}: {answer:?}");
    }

    /// A checkpoint at `key`, carried out.
    #[track_caller]
    fn checkpoint(&mut self, lease: Lease, key: &[u8], op_id: OpId) {
        let cursor = CursorUpdate::at(key);
        self.execute(&Request { tenant: TENANT, lease, op: Op::Checkpoint(cursor), op_id });
    }
}

/// One function for all workers' operations. Each refusal also has a place in the operation's own
/// error; routing panics where it has none.
fn decide<'r>(
    found: Option<FoundShard<'_, '_>>,
    now: LogicalTime,
    room: &ShardRoom,
    request: &'r Request<'_>,
) -> Result<Answer<'r>, CoordError> {
    let Request { tenant, lease, op, op_id } = request;
    let (tenant, op_id) = (*tenant, *op_id);
    match *op {
        Op::Renew => renew(found, now, tenant, lease)
            .map(|(deadline, update)| Answer::Execute {
                update,
                deadline: Some(deadline),
                shards: vec![],
            })
            .inspect_err(|error| drop(RenewError::from(error.clone()))),
        Op::Release => release(found, now, tenant, lease)
            .map(Answer::execute)
            .inspect_err(|error| drop(ReleaseError::from(error.clone()))),
        Op::Checkpoint(cursor) => {
            checkpoint(found, now, &CursorRequest { tenant, lease, cursor, op_id })
                .map(Answer::of)
                .inspect_err(|error| drop(CheckpointError::from(error.clone())))
        }
        Op::Complete(cursor) => {
            complete(found, now, &CursorRequest { tenant, lease, cursor, op_id })
                .map(Answer::of)
                .inspect_err(|error| drop(CompleteError::from(error.clone())))
        }
        Op::Park(reason) => park(found, now, &ParkRequest { tenant, lease, reason, op_id })
            .map(Answer::of)
            .inspect_err(|error| drop(ParkError::from(error.clone()))),
        Op::SplitReplace(plan) => {
            split_replace(found, now, room, &SplitReplaceRequest { tenant, lease, plan, op_id })
                .map(|decision| Answer::of_split(decision, |result| result.children.to_vec()))
                .inspect_err(|error| drop(SplitError::from(error.clone())))
        }
        Op::SplitResidual(plan) => {
            split_residual(found, now, room, &SplitResidualRequest { tenant, lease, plan, op_id })
                .map(|decision| Answer::of_split(decision, |result| vec![result.residual]))
                .inspect_err(|error| drop(SplitError::from(error.clone())))
        }
    }
}

/// `[d, m)` and `[m, t)`.
fn halves() -> SplitReplacePlan<'static> {
    SplitReplacePlan::new([
        ShardSpecRef::new(b"d", b"m", b"left"),
        ShardSpecRef::new(b"m", b"t", b"right"),
    ])
}

/// Keeps `[d, m)`, gives `[m, t)` away.
fn residual_half() -> SplitResidualPlan<'static> {
    SplitResidualPlan::new(
        ShardSpecRef::new(b"d", b"m", b"kept"),
        ShardSpecRef::new(b"m", b"t", b"given"),
    )
}

/// Every operation, each with a payload that a fresh shard accepts.
fn every_op<'a>(
    replace: &'a SplitReplacePlan<'a>,
    residual: &'a SplitResidualPlan<'a>,
) -> [Op<'a>; 7] {
    [
        Op::Renew,
        Op::Release,
        Op::Checkpoint(CursorUpdate::new(Some(b"k"), Some(b"token"))),
        Op::Complete(CursorUpdate::at(b"k")),
        Op::Park(ParkReason::NotFound),
        Op::SplitReplace(replace),
        Op::SplitResidual(residual),
    ]
}

fn logged(op_id: OpId, kind: OpKind, hash: u64, now: LogicalTime) -> OpLogEntry<OpKind> {
    OpLogEntry::new(op_id, kind, OpResult::Completed, hash, now)
}

fn holder(owner: WorkerId, deadline: LogicalTime) -> Option<LeaseHolder> {
    Some(LeaseHolder::new(owner, deadline))
}

fn of_state(state: ShardState) -> ShardUpdate<'static> {
    ShardUpdate { state, cursor: None, spec: None, spawned: Default::default(), log: None }
}
