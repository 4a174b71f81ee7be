//! In steady state a worker's acquires, renewals and checkpoints touch no heap.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, InMemoryCoordinator, RunConfig, RunManagement,
    ShardClaiming,
};
use gossip_testalloc::count_allocations;

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const WORKER: WorkerId = WorkerId::from_raw(1);

fn coordinator() -> InMemoryCoordinator {
    let mut coordinator = InMemoryCoordinator::default();
    let bounds: Vec<[u8; 2]> = (1..=65u16).map(u16::to_be_bytes).collect();
    let shards: Vec<_> = bounds
        .windows(2)
        .zip(0..)
        .map(|(pair, id)| {
            let spec = ShardSpecRef::new(&pair[0], &pair[1], b"metadata");
            InitialShardInput::new(ShardId::from_raw(id), spec, CursorUpdate::initial())
        })
        .collect();
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 1_000,
        max_shard_retries: u32::MAX,
    };
    let now = LogicalTime::from_raw(1);
    coordinator
        .create_run_with_shards(now, TENANT, RUN, config, &shards, OpId::from_raw(1))
        .expect("a run of 64 shards");
    coordinator
}

/// One round over every shard: acquire, renew, checkpoint at keys of changing length, release.
fn round(
    coordinator: &mut InMemoryCoordinator,
    scratch: &mut AcquireScratch,
    now: LogicalTime,
    round: u64,
) {
    for shard in 0..64u64 {
        let key = ShardKey::new(RUN, ShardId::from_raw(shard));
        let lease =
            coordinator.acquire_and_restore_into(now, TENANT, key, WORKER, scratch).unwrap().lease;
        coordinator.renew(now, TENANT, &lease).unwrap();
        let mut last_key = [0xffu8; 64];
        last_key[..2].copy_from_slice(&(shard as u16 + 1).to_be_bytes());
        last_key[2..10].copy_from_slice(&round.to_be_bytes());
        let len = 10 + (round as usize * 7 + shard as usize) % 50;
        let cursor = CursorUpdate::new(Some(&last_key[..len]), Some(&last_key[..len / 2]));
        let op_id = OpId::from_raw(round << 32 | shard);
        coordinator.checkpoint(now, TENANT, &lease, cursor, op_id).unwrap();
        coordinator.release(now, TENANT, &lease).unwrap();
    }
    // Claims too: here the one whose turn it is.
    let claimed =
        coordinator.claim_next_available(now, TENANT, RUN, WORKER, scratch).unwrap().lease;
    coordinator.release(now, TENANT, &claimed).unwrap();
}

#[test]
fn acquires_renewals_checkpoints_and_claims_do_not_allocate() {
    let mut coordinator = coordinator();
    let mut scratch = Box::new(AcquireScratch::new());
    let at = |n: u64| LogicalTime::from_raw(10 + n);
    round(&mut coordinator, &mut scratch, at(0), 1);
    let ((), count) = count_allocations(|| {
        (2..40).for_each(|n| round(&mut coordinator, &mut scratch, at(n), n));
    });
    assert!(count.is_zero(), "{count:?}");
    coordinator.assert_consistent();
}

#[test]
fn the_count_notices_one_vector() {
    let ((), count) = count_allocations(|| drop(std::hint::black_box(vec![1u8])));
    assert_eq!((count.allocations, count.deallocations), (1, 1));
}
