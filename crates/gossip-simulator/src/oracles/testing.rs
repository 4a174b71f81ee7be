//! A small history for the tests of oracles: one run of tenant 1 with the shard 0 over the items 0
//! to 10, held by worker 1 under fence 2 until 100, its cursor at item 3.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    EventKind, Lease, RunConfig, ShardLimits, ShardStatus, StateTransitionEvent,
};

use super::ledger::Ledger;
use super::{Observation, OracleResult};
use crate::keys;
use crate::op::{Acquired, Answer, Effect, Operation, OwnedCursor, OwnedRange, OwnedShardInput};
use crate::reference::Bounds;

pub(super) const RUN: RunId = RunId::from_raw(1);
pub(super) const KEY: ShardKey = ShardKey::new(RUN, ShardId::from_raw(0));
pub(super) const TRIES: u32 = 3;

pub(super) fn tenant(number: u8) -> TenantId {
    TenantId::from_bytes([number; 32])
}

pub(super) fn at(millis: u64) -> LogicalTime {
    LogicalTime::from_raw(millis)
}

pub(super) fn op(number: u64) -> OpId {
    OpId::from_raw(number)
}

pub(super) fn lease(worker: u64, fence: u64, deadline: u64) -> Lease {
    let (worker, fence) = (WorkerId::from_raw(worker), FenceEpoch::from_raw(fence));
    Lease::new(tenant(1), KEY, worker, fence, at(deadline))
}

pub(super) fn range(first: u32, end: u32) -> OwnedRange {
    OwnedRange {
        start: keys::key(first)[..].into(),
        end: keys::key(end)[..].into(),
        metadata: Default::default(),
    }
}

pub(super) fn cursor(item: u32) -> OwnedCursor {
    OwnedCursor { last_key: Some(keys::key(item)[..].into()), token: None }
}

pub(super) fn acquire(worker: u64) -> Operation {
    Operation::Acquire { tenant: tenant(1), key: KEY, worker: WorkerId::from_raw(worker) }
}

pub(super) fn acquired(lease: Lease, cursor: OwnedCursor) -> Answer {
    Answer::Acquired(Box::new(Acquired {
        lease,
        status: ShardStatus::Active,
        range: range(0, 10),
        cursor,
        cursor_semantics: CursorSemantics::Completed,
        parent: None,
        spawned: Vec::new(),
    }))
}

pub(super) fn checkpoint(lease: Lease, item: u32, number: u64) -> Operation {
    Operation::Checkpoint {
        tenant: tenant(1),
        lease,
        cursor: cursor(item),
        renews: false,
        op_id: op(number),
    }
}

pub(super) fn complete(lease: Lease, item: u32, number: u64) -> Operation {
    Operation::Complete { tenant: tenant(1), lease, cursor: cursor(item), op_id: op(number) }
}

pub(super) fn done() -> Answer {
    Answer::Executed(Effect::Nothing)
}

pub(super) fn event(kind: EventKind) -> StateTransitionEvent {
    StateTransitionEvent { tenant: tenant(1), run: RUN, at: at(50), kind }
}

impl Ledger {
    /// Takes in an answer at 50 that reported nothing.
    pub(super) fn saw(&mut self, operation: &Operation, answer: &Answer) {
        self.saw_with(operation, answer, &[]);
    }

    pub(super) fn saw_with(
        &mut self,
        operation: &Operation,
        answer: &Answer,
        events: &[StateTransitionEvent],
    ) {
        self.take_in(Observation { now: at(50), operation, answer, events });
    }

    /// The history that this file is about.
    pub(super) fn example() -> Self {
        let ceilings = ShardLimits { per_tenant: 10, global: 10 };
        let mut ledger = Self::new(&Bounds::of_shards(ceilings));
        let config = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: 50,
            max_shard_retries: TRIES,
        };
        let (tenant, run) = (tenant(1), RUN);
        ledger.saw(&Operation::CreateRun { tenant, run, config }, &Answer::Accepted);
        let row = OwnedShardInput {
            shard: KEY.shard,
            range: range(0, 10),
            cursor: OwnedCursor::default(),
        };
        let shards = vec![row];
        let register = Operation::RegisterShards { tenant, run, shards, op_id: op(1) };
        ledger.saw(&register, &done());
        ledger.saw(&acquire(1), &acquired(lease(1, 2, 100), OwnedCursor::default()));
        ledger.saw(&checkpoint(lease(1, 2, 100), 3, 2), &done());
        ledger
    }
}

/// What an oracle says of an answer at 50 that reported nothing.
pub(super) fn judged(
    check: fn(&Ledger, Observation<'_>) -> OracleResult,
    ledger: &Ledger,
    operation: &Operation,
    answer: &Answer,
) -> OracleResult {
    check(ledger, Observation { now: at(50), operation, answer, events: &[] })
}

/// The oracle's name, if it spoke.
#[track_caller]
pub(super) fn assert_fires(verdict: OracleResult, oracle: &str) {
    let violation = verdict.expect_err("the oracle must speak");
    assert_eq!(violation.oracle.split(' ').next(), Some(oracle), "{violation:?}");
}
