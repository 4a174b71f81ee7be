use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
};
use gossip_contracts::identity::{OpId, ShardId};

use super::*;
use crate::claim::ShardClaiming;
use crate::error::ClaimError;
use crate::run::RunConfig;
use crate::scratch::AcquireScratch;
use crate::traits::{CoordinationBackend, RunManagement};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const WORKER: WorkerId = WorkerId::from_raw(1);
const CONFIG: RunConfig = RunConfig {
    cursor_semantics: CursorSemantics::Completed,
    lease_duration: 1_000,
    max_shard_retries: 5,
};

fn at(time: u64) -> LogicalTime {
    LogicalTime::from_raw(time)
}

fn coordinator(config: CoordinatorRuntimeConfig, shards: u16) -> InMemoryCoordinator {
    let mut coordinator = InMemoryCoordinator::new(config);
    let bounds: Vec<[u8; 2]> = (1..=shards + 1).map(u16::to_be_bytes).collect();
    let inputs: Vec<_> = (bounds.windows(2).zip(0..))
        .map(|(pair, id)| {
            let spec = ShardSpecRef::new(&pair[0], &pair[1], b"");
            InitialShardInput::new(ShardId::from_raw(id), spec, CursorUpdate::initial())
        })
        .collect();
    coordinator
        .create_run_with_shards(at(1), TENANT, RUN, CONFIG, &inputs, OpId::from_raw(1))
        .unwrap();
    coordinator
}

fn claim(
    coordinator: &mut InMemoryCoordinator,
    now: LogicalTime,
    worker: u64,
) -> Result<ShardId, ClaimError> {
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(worker);
    coordinator
        .claim_next_available(now, TENANT, RUN, worker, &mut scratch)
        .map(|acquired| acquired.lease.shard())
}

/// Workers' clocks differ; the index must be right whatever order deadlines come in.
#[test]
fn leases_granted_by_skewed_clocks_are_reclaimed_in_the_order_of_their_deadlines() {
    let mut coordinator = coordinator(CoordinatorRuntimeConfig::default(), 4);
    let mut scratch = Box::new(AcquireScratch::new());
    for (shard, now) in (0..).zip([5_000, 100, 3_000, 200]) {
        let key = ShardKey::new(RUN, ShardId::from_raw(shard));
        coordinator.acquire_and_restore_into(at(now), TENANT, key, WORKER, &mut scratch).unwrap();
        coordinator.assert_consistent();
    }
    let none = claim(&mut coordinator, at(1_099), 5);
    assert_eq!(none, Err(ClaimError::NoneAvailable { earliest_deadline: Some(at(1_100)) }));
    let mut end = |now| {
        let shard = claim(&mut coordinator, at(now), 9).unwrap();
        // Out of the way, so that the next claim looks at the next deadline.
        let op_id = OpId::from_raw(100 + shard.as_raw());
        let mut scratch = Box::new(AcquireScratch::new());
        let (key, worker) = (ShardKey::new(RUN, shard), WorkerId::from_raw(9));
        let lease = coordinator
            .acquire_and_restore_into(at(now), TENANT, key, worker, &mut scratch)
            .unwrap()
            .lease;
        let reason = crate::status::ParkReason::Other;
        coordinator.park_shard(at(now), TENANT, &lease, reason, op_id).unwrap();
        shard.as_raw()
    };
    assert_eq!([1_100, 1_200, 4_000, 6_000].map(&mut end), [1, 3, 2, 0]);
    coordinator.assert_consistent();
}

#[test]
fn a_cooldown_noted_before_the_clock_stepped_back_is_over() {
    let config = CoordinatorRuntimeConfig {
        claim_cooldown_interval: 100,
        ..CoordinatorRuntimeConfig::default()
    };
    let mut coordinator = coordinator(config, 1);
    claim(&mut coordinator, at(1_000_000), 1).unwrap();
    assert!(matches!(
        claim(&mut coordinator, at(1_000_000), 2),
        Err(ClaimError::NoneAvailable { .. })
    ));
    let throttled = claim(&mut coordinator, at(1_000_099), 2);
    assert_eq!(throttled, Err(ClaimError::Throttled { retry_after: at(1_000_100) }));
    // The clock steps back: 100 ms do not become a quarter of an hour.
    assert!(matches!(claim(&mut coordinator, at(1_000), 2), Err(ClaimError::NoneAvailable { .. })));
}

#[test]
fn a_waiting_worker_is_told_that_its_run_is_gone_or_over() {
    let config = CoordinatorRuntimeConfig {
        claim_cooldown_interval: 100,
        ..CoordinatorRuntimeConfig::default()
    };
    let mut coordinator = coordinator(config, 1);
    claim(&mut coordinator, at(10), 1).unwrap();
    claim(&mut coordinator, at(10), 2).unwrap_err();
    coordinator.cancel_run(at(11), TENANT, RUN, OpId::from_raw(2)).unwrap();
    let status = crate::run::RunStatus::Cancelled;
    let over = ClaimError::RunNotActive { run: RUN, status };
    assert_eq!(claim(&mut coordinator, at(11), 2), Err(over));
}

#[test]
fn a_panic_inside_with_events_returns_the_collector_and_leaves_none_behind() {
    let mut coordinator = coordinator(CoordinatorRuntimeConfig::default(), 1);
    let mut collector = EventCollector::new();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        coordinator.with_events(&mut collector, |coordinator| {
            claim(coordinator, at(10), 1).unwrap();
            let mut scratch = Box::new(AcquireScratch::new());
            let key = ShardKey::new(RUN, ShardId::from_raw(0));
            // Zero time is a caller's bug and panics.
            let _ = coordinator.acquire_and_restore_into(
                LogicalTime::ZERO,
                TENANT,
                key,
                WORKER,
                &mut scratch,
            );
        });
    }));
    assert!(outcome.is_err());
    assert_eq!(collector.len(), 1);
    // Another tenant's events would panic in a collector that was left behind.
    let other = TenantId::from_bytes([2; 32]);
    coordinator.create_run(at(12), other, RUN, CONFIG).unwrap();
    coordinator.assert_consistent();
}
