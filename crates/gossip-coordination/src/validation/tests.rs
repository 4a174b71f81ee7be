//! The shared checks by themselves, at their edges.

use gossip_contracts::coordination::{CursorSemantics, MAX_KEY_SIZE, MAX_TOKEN_SIZE};
use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, WorkerId};

use super::*;
use crate::lease::LeaseHolder;
use crate::op_log::OpResult;
use crate::record::ShardState;
use crate::run::RunConfig;
use crate::status::ShardStatus;

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const OTHER_TENANT: TenantId = TenantId::from_bytes([2; 32]);
const KEY: ShardKey = ShardKey::new(RunId::from_raw(3), ShardId::from_raw(4));
const WORKER: WorkerId = WorkerId::from_raw(7);
const DEADLINE: LogicalTime = LogicalTime::from_raw(100);

fn gate(status: RunStatus) -> RunGate {
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 10,
        max_shard_retries: 3,
    };
    RunGate { status, config, hides_shards: false }
}

fn fence(raw: u64) -> FenceEpoch {
    FenceEpoch::from_raw(raw)
}

/// Held by [`WORKER`] until [`DEADLINE`], at fence 2.
fn held() -> ShardRecordView<'static> {
    let lease = Some(LeaseHolder::new(WORKER, DEADLINE));
    ShardRecordView {
        state: ShardState { fence: fence(2), lease, ..ShardState::NEW },
        ..ShardRecordView::new_shard(
            TENANT,
            KEY,
            ShardSpecRef::new(b"d", b"t", b""),
            CursorUpdate::initial(),
            CursorSemantics::Completed,
            None,
        )
    }
}

fn lease() -> Lease {
    Lease::new(TENANT, KEY, WORKER, fence(2), DEADLINE)
}

/// The op-log of a misplaced record used to answer before anybody looked whose it was.
#[test]
fn a_record_of_another_tenant_is_refused_before_its_op_log_is_read() {
    let shard = ShardRecordView { tenant: OTHER_TENANT, ..held() };
    let run = gate(RunStatus::Active);
    let found = FoundShard { shard: &shard, run: &run };
    let refusal = find_leased(Some(found), TENANT, &lease()).err();
    assert_eq!(refusal, Some(CoordError::TenantMismatch { expected: TENANT }));
}

#[test]
fn a_shard_is_found_under_its_own_lease_or_not_at_all() {
    let (shard, run) = (held(), gate(RunStatus::Done));
    let found = FoundShard { shard: &shard, run: &run };
    let mine = find_leased(Some(found), TENANT, &lease()).expect("the tenant's own shard");
    assert_eq!((mine.shard.key, mine.run.status), (KEY, RunStatus::Done));
    let missing = find_leased(None, TENANT, &lease()).err();
    assert_eq!(missing, Some(CoordError::ShardNotFound { shard: KEY }));
    // Whether the shard exists is not for another tenant to learn.
    for found in [Some(found), None] {
        let refusal = find_leased(found, OTHER_TENANT, &lease()).err();
        assert_eq!(refusal, Some(CoordError::TenantMismatch { expected: OTHER_TENANT }));
    }
}

#[test]
fn the_log_tells_new_repeated_and_reused_operations_apart() {
    let mut log = OpLog::new();
    let at = LogicalTime::from_raw(1);
    for id in 1..=17 {
        let op_id = OpId::from_raw(id);
        let hash = 10 * id;
        log.push_back_overwrite(OpLogEntry::new(
            op_id,
            OpKind::Checkpoint,
            OpResult::Completed,
            hash,
            at,
        ));
    }
    let ask = |id, hash| check_op_idempotency(&log, OpId::from_raw(id), hash);
    assert_eq!(ask(1, 10), Ok(None), "forgotten");
    assert_eq!(ask(2, 20).unwrap().map(|entry| entry.op_id()), Some(OpId::from_raw(2)));
    assert_eq!(ask(18, 20), Ok(None));
    assert_eq!(
        ask(17, 20),
        Err(CoordError::OpIdConflict {
            op_id: OpId::from_raw(17),
            expected_hash: 170,
            actual_hash: 20
        })
    );
}

#[test]
fn only_an_active_run_lets_workers_work() {
    for status in RunStatus::ALL {
        let refused = CoordError::RunNotActive { run: RunId::from_raw(3), status };
        let expected = if status == RunStatus::Active { Ok(()) } else { Err(refused) };
        assert_eq!(check_run_active(&gate(status), KEY), expected);
    }
}

/// The five checks, each with every later one failing too.
#[test]
fn a_lease_is_checked_for_tenant_status_fence_expiry_and_owner_in_that_order() {
    let mut shard = held();
    shard.tenant = OTHER_TENANT;
    shard.state.status = ShardStatus::Split;
    shard.state.fence = fence(3);
    shard.state.lease = Some(LeaseHolder::new(WorkerId::from_raw(8), DEADLINE));
    let mut now = DEADLINE;
    let ask = |shard: &ShardRecordView<'_>, now| validate_lease(now, TENANT, &lease(), shard);

    assert_eq!(ask(&shard, now), Err(CoordError::TenantMismatch { expected: TENANT }));
    shard.tenant = TENANT;
    let status = ShardStatus::Split;
    assert_eq!(ask(&shard, now), Err(CoordError::ShardTerminal { shard: KEY, status }));
    shard.state.status = ShardStatus::Active;
    let stale = |current| CoordError::StaleFence { presented: fence(2), current };
    assert_eq!(ask(&shard, now), Err(stale(fence(3))));
    shard.state.fence = fence(2);
    assert_eq!(ask(&shard, now), Err(CoordError::LeaseExpired { deadline: DEADLINE, now }));
    now = LogicalTime::from_raw(99);
    assert_eq!(ask(&shard, now), Err(stale(fence(2))));
    shard.state.lease = None;
    assert_eq!(ask(&shard, now), Err(stale(fence(2))));
    assert_eq!(ask(&held(), now), Ok(()));
}

#[test]
#[should_panic(expected = "some time")]
fn a_lease_checked_at_no_time_is_a_bug() {
    let _ = validate_lease(LogicalTime::ZERO, TENANT, &lease(), &held());
}

/// Sizes at their limits, ranges open at either end, and keys that share prefixes.
#[test]
fn cursors_at_the_edges() {
    let (key, token) = (vec![b'e'; MAX_KEY_SIZE + 1], vec![0; MAX_TOKEN_SIZE + 1]);
    let at = CursorUpdate::at;
    let none = CursorUpdate::initial();
    let closed = ShardSpecRef::new(b"d", b"t", b"");
    let (from_start, to_end) =
        (ShardSpecRef::new(b"", b"t", b""), ShardSpecRef::new(b"d", b"", b""));
    let largest = CursorUpdate::new(Some(&key[1..]), Some(&token[1..]));
    for (new, old, spec) in [
        (largest, none, closed),
        (at(b"d"), none, closed),
        (at(b"d"), at(b"d"), closed),
        (at(b"d\0"), at(b"d"), closed),
        (at(b"s\xff"), at(b"d"), closed),
        (at(b""), none, from_start),
        (at(b"\xff\xff"), at(b"t"), to_end),
        (at(b"k"), CursorUpdate::new(None, Some(b"token")), closed),
    ] {
        assert_eq!(validate_cursor_update(new, old, spec), Ok(()), "{new:?} after {old:?}");
    }
    let outside = |last_key, spec_start, spec_end| {
        let detail = CursorOutOfBoundsDetail { last_key, spec_start, spec_end };
        CoordError::CursorOutOfBounds(detail)
    };
    let regression =
        |old, new| CoordError::CursorRegression { old_key: Some(old), new_key: Some(new) };
    let long_key = CoordError::CursorKeyTooLarge { size: 4097, max: 4096 };
    let long_token = CoordError::CursorTokenTooLarge { size: 16_385, max: 16_384 };
    let missing = CoordError::CheckpointMissingKey;
    for (new, old, spec, refusal) in [
        (none, none, closed, missing.clone()),
        (none, at(b"k"), closed, missing.clone()),
        (CursorUpdate::new(None, Some(&token)), at(b"k"), closed, missing),
        (CursorUpdate::new(Some(&key), Some(&token)), at(b"k"), closed, long_key),
        (CursorUpdate::new(Some(b"c"), Some(&token)), at(b"k"), closed, long_token),
        (at(b"c"), at(b"kk"), closed, regression(2, 1)),
        (at(b"k"), at(b"k\0"), closed, regression(2, 1)),
        (at(b"c\xff"), none, closed, outside(2, 1, 1)),
        (at(b"t"), at(b"k"), closed, outside(1, 1, 1)),
        (at(b"tt"), none, from_start, outside(2, 0, 1)),
        (at(b"c"), none, to_end, outside(1, 1, 0)),
    ] {
        assert_eq!(validate_cursor_update(new, old, spec), Err(refusal), "{new:?} after {old:?}");
    }
}
