//! Arbitrary records that hold every invariant.

use gossip_contracts::coordination::{
    Cursor, CursorSemantics, CursorUpdate, ShardSpec, ShardSpecRef,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use crate::lease::{LeaseHolder, OwnerRecord};
use crate::op_log::{OpKind, OpLogEntry, OpResult, OperationLog, RunOpKind};
use crate::record::{ShardRecord, ShardState};
use crate::run::{Registration, RunConfig, RunRecord, RunStatus};
use crate::status::{ParkReason, ShardStatus};

pub(crate) fn shard() -> impl Strategy<Value = ShardRecord> {
    let identity = (any::<[u8; 32]>(), any::<u64>(), shard_id(), any::<u64>());
    let spawned = vec(any::<u64>().prop_map(ShardId::derived_from_raw), 0..40);
    (identity, state(), range_and_cursor(), semantics(), spawned, op_log(any_op_kind())).prop_map(
        |((tenant, run, shard, parent), state, (spec, cursor), cursor_semantics, spawned, log)| {
            let split = state.status == ShardStatus::Split;
            let spawned = match spawned.is_empty() && split {
                true => vec![ShardId::derived_from_raw(parent)],
                false => spawned,
            };
            ShardRecord {
                tenant: TenantId::from_bytes(tenant),
                key: ShardKey::new(RunId::from_raw(run), shard),
                state,
                spec,
                cursor,
                cursor_semantics,
                parent: shard.is_derived().then(|| ShardId::from_raw(parent)),
                spawned,
                op_log: log,
            }
        },
    )
}

pub(crate) fn run() -> impl Strategy<Value = RunRecord> {
    let identity = (any::<[u8; 32]>(), any::<u64>());
    let config = (semantics(), 1..=u64::MAX, 1..=u32::MAX);
    let status = prop::sample::select(&RunStatus::ALL[..]);
    let roots = vec(any::<u64>().prop_map(|id| ShardId::from_raw(id >> 1)), 1..40);
    let ends = (registration(), prop::option::of(any::<[u8; 32]>()));
    let times = (time(), time());
    (identity, config, status, times, roots, op_log(any_run_op_kind()), ends).prop_map(
        |((tenant, run), config, status, (created_at, end), roots, op_log, ends)| RunRecord {
            tenant: TenantId::from_bytes(tenant),
            run: RunId::from_raw(run),
            config: RunConfig {
                cursor_semantics: config.0,
                lease_duration: config.1,
                max_shard_retries: config.2,
            },
            status,
            created_at,
            completed_at: status.is_terminal().then_some(end),
            root_shards: if status == RunStatus::Initializing { vec![] } else { roots },
            op_log,
            registration: ends.0.filter(|_| status == RunStatus::Initializing),
            result: ends.1.filter(|_| status == RunStatus::Done).map(RunResult::from_bytes),
        },
    )
}

/// One that stages, or one that has still to delete what another left.
fn registration() -> impl Strategy<Value = Option<Registration>> {
    let numbers = (1u32..=10_000, any::<u32>(), any::<bool>());
    let drawn = (any::<u64>(), 1..=u64::MAX, numbers, 1..=u64::MAX);
    prop::option::of(drawn).prop_map(|drawn| {
        drawn.map(|(op_id, payload_hash, (count, some, stages), at)| Registration {
            op_id: OpId::from_raw(op_id),
            payload_hash,
            count,
            staged: if stages { some % (count + 1) } else { 0 },
            leftover: if stages { 0 } else { some % 10_001 },
            stepped_at: LogicalTime::from_raw(at),
        })
    })
}

pub(crate) fn owner() -> impl Strategy<Value = OwnerRecord> {
    (any::<u64>(), fence())
        .prop_map(|(worker, fence)| OwnerRecord::new(WorkerId::from_raw(worker), fence))
}

fn state() -> impl Strategy<Value = ShardState> {
    let status = prop::sample::select(&ShardStatus::ALL[..]);
    let reason = (0u8..5).prop_map(|raw| ParkReason::from_raw(raw).unwrap());
    let holder = prop::option::of((any::<u64>(), time()));
    (status, reason, fence(), holder, any::<u32>()).prop_map(
        |(status, reason, fence, holder, acquires_since_progress)| ShardState {
            status,
            park_reason: (status == ShardStatus::Parked).then_some(reason),
            fence,
            lease: holder
                .filter(|_| !status.is_terminal())
                .map(|(owner, deadline)| LeaseHolder::new(WorkerId::from_raw(owner), deadline)),
            acquires_since_progress,
        },
    )
}

/// A range, open or not, and a cursor in it.
fn range_and_cursor() -> impl Strategy<Value = (ShardSpec, Cursor)> {
    let key = || vec(0u8..4, 0..6);
    let bytes = || vec(any::<u8>(), 0..300);
    let last_key = prop::option::of(key());
    (key(), key(), bytes(), last_key, prop::option::of(bytes())).prop_map(
        |(a, b, metadata, suffix, token)| {
            let (start, end) = match a.cmp(&b) {
                std::cmp::Ordering::Less => (a, b),
                std::cmp::Ordering::Equal => (a, vec![]),
                std::cmp::Ordering::Greater => (b, a),
            };
            let spec = ShardSpecRef::new(&start, &end, &metadata);
            let last_key = suffix.map(|suffix| {
                let key = [&*start, &*suffix].concat();
                if spec.contains(&key) { key } else { start.clone() }
            });
            let cursor = CursorUpdate::new(last_key.as_deref(), token.as_deref());
            (ShardSpec::new(spec).unwrap(), Cursor::new(cursor).unwrap())
        },
    )
}

fn op_log<K: Copy + std::fmt::Debug, const N: usize>(
    kind: impl Strategy<Value = K>,
) -> impl Strategy<Value = OperationLog<K, N>> {
    let result = (0u8..3).prop_map(|raw| OpResult::from_raw(raw).unwrap());
    btree_map(any::<u64>(), (kind, result, 1..=u64::MAX, time()), 0..=N).prop_map(|entries| {
        let mut log = OperationLog::new();
        for (id, (kind, result, hash, at)) in entries {
            log.push_back_overwrite(OpLogEntry::new(OpId::from_raw(id), kind, result, hash, at));
        }
        log
    })
}

fn any_op_kind() -> impl Strategy<Value = OpKind> {
    (0u8..6).prop_map(|raw| OpKind::from_raw(raw).unwrap())
}

fn any_run_op_kind() -> impl Strategy<Value = RunOpKind> {
    (0u8..4).prop_map(|raw| RunOpKind::from_raw(raw).unwrap())
}

fn shard_id() -> impl Strategy<Value = ShardId> {
    any::<u64>().prop_map(ShardId::from_raw)
}

fn semantics() -> impl Strategy<Value = CursorSemantics> {
    (0u8..2).prop_map(|raw| CursorSemantics::from_raw(raw).unwrap())
}

fn fence() -> impl Strategy<Value = FenceEpoch> {
    (1..=u64::MAX).prop_map(FenceEpoch::from_raw)
}

fn time() -> impl Strategy<Value = LogicalTime> {
    (1..=u64::MAX).prop_map(LogicalTime::from_raw)
}
