//! The shared checks by themselves, at their edges.

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, WorkerId};

use super::*;
use crate::lease::LeaseHolder;
use crate::record::ShardState;
use crate::run::RunConfig;

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
    RunGate { status, config }
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
