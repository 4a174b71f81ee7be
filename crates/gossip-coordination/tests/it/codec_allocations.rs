//! Reading a record, deciding and writing it back touches no heap once its buffers are warm.

use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::codec::{
    CodecError, DecodeScratch, decode_owner, decode_run, decode_shard_view, encode_owner,
    encode_run, encode_shard, encode_shard_after,
};
use gossip_coordination::transition::{self, AcquireDecision, CursorRequest, Decision};
use gossip_coordination::{
    FoundShard, Lease, OwnerRecord, RunConfig, RunGate, RunRecord, RunStatus, ShardRecord,
    ShardRecordView, Takeover,
};
use gossip_testalloc::count_allocations;

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const CONFIG: RunConfig = RunConfig {
    cursor_semantics: CursorSemantics::Completed,
    lease_duration: 1_000,
    max_shard_retries: 3,
};
const GATE: RunGate = RunGate { status: RunStatus::Active, config: CONFIG, hides_shards: false };

/// A shard in the middle of its work, and the lease on it.
fn leased_shard() -> (ShardRecord, Lease) {
    let key = ShardKey::new(RUN, ShardId::from_raw(0));
    let mut shard = ShardRecord::from_view(&ShardRecordView::new_shard(
        TENANT,
        key,
        ShardSpecRef::new(b"a", b"z", b"metadata"),
        CursorUpdate::new(Some(b"b"), Some(b"token")),
        CONFIG.cursor_semantics,
        None,
    ));
    shard.spawned = (0..100).map(ShardId::derived_from_raw).collect();
    let found = FoundShard { shard: &shard.view(), run: &GATE };
    let (now, worker) = (LogicalTime::from_raw(1), WorkerId::from_raw(2));
    let Ok(AcquireDecision::Grant { lease, update }) =
        transition::acquire(Some(found), now, Takeover::AT_DEADLINE, TENANT, key, worker)
    else {
        panic!("a free shard is granted")
    };
    shard.apply(&update);
    (shard, lease)
}

#[test]
fn encoding_into_a_warm_buffer_allocates_nothing() {
    let (shard, _) = leased_shard();
    let run = RunRecord {
        tenant: TENANT,
        run: RUN,
        config: CONFIG,
        status: RunStatus::Active,
        created_at: LogicalTime::from_raw(1),
        completed_at: None,
        root_shards: (0..1_000).map(ShardId::from_raw).collect(),
        op_log: Default::default(),
        registration: None,
        result: None,
    };
    let owner = OwnerRecord::new(WorkerId::from_raw(2), FenceEpoch::from_raw(2));
    let mut out = Vec::new();
    encode_run(&run, &mut out);
    assert_eq!(decode_run(&out).as_ref(), Ok(&run));
    let ((), count) = count_allocations(|| {
        encode_shard(&shard.view(), &mut out);
        encode_run(&run, &mut out);
        encode_owner(&owner, &mut out);
    });
    assert!(count.is_zero(), "{count:?}");
    let (decoded, count) = count_allocations(|| decode_owner(&out));
    assert_eq!(decoded, Ok(owner));
    assert!(count.is_zero(), "{count:?}");
}

#[test]
fn a_checkpoint_from_blob_to_blob_allocates_nothing() {
    let (shard, lease) = leased_shard();
    let (mut blob, mut next, mut scratch) = (Vec::new(), Vec::new(), DecodeScratch::new());
    encode_shard(&shard.view(), &mut blob);
    let checkpoint = |blob: &[u8], next: &mut Vec<u8>, scratch: &mut DecodeScratch, op, key| {
        let view = decode_shard_view(blob, scratch).expect("the blob was encoded here");
        let (cursor, op_id) = (CursorUpdate::at(key), OpId::from_raw(op));
        let request = CursorRequest { tenant: TENANT, lease: &lease, cursor, op_id };
        let found = FoundShard { shard: &view, run: &GATE };
        match transition::checkpoint(Some(found), LogicalTime::from_raw(2), &request) {
            Ok(Decision::Execute(update)) => encode_shard_after(&view, &update, next),
            other => panic!("{other:?}"),
        }
    };
    // Fills the op-log, which is when the record is longest.
    for op in 0..16 {
        checkpoint(&blob, &mut next, &mut scratch, op, b"kk");
        std::mem::swap(&mut blob, &mut next);
    }
    let ((), count) = count_allocations(|| {
        for op in 100..120 {
            checkpoint(&blob, &mut next, &mut scratch, op, b"m");
            std::mem::swap(&mut blob, &mut next);
        }
    });
    assert!(count.is_zero(), "{count:?}");
}

#[test]
fn a_length_that_is_not_there_allocates_nothing() {
    let (shard, _) = leased_shard();
    let mut blob = Vec::new();
    encode_shard(&shard.view(), &mut blob);
    // 100 spawned shards become 1000, with only 100 behind the count.
    let count_at = blob.len() - 4 - 4 - 100 * 8 - 4;
    assert_eq!(blob[count_at..count_at + 4], 100u32.to_le_bytes());
    blob.truncate(blob.len() - 4);
    blob[count_at..count_at + 4].copy_from_slice(&1_000u32.to_le_bytes());
    let crc = crc32fast::hash(&blob);
    blob.extend(crc.to_le_bytes());
    let mut scratch = DecodeScratch::new();
    let (error, count) = count_allocations(|| decode_shard_view(&blob, &mut scratch).err());
    assert_eq!(error, Some(CodecError::Truncated { field: "spawned" }));
    assert!(count.is_zero(), "{count:?}");
}
