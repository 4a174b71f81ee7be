//! Many workers at once on a real server.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use gossip_contracts::coordination::{
    CursorUpdate, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::{OpId, ShardId, WorkerId};
use gossip_coordination::{
    AcquireScratch, ClaimError, CoordinationBackend, RunManagement, ShardClaiming, ShardFilter,
    ShardLimits, ShardStatus,
};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::server::EtcdServer;
use crate::support::{Dice, scaled};
use crate::world::*;

const WORKERS: u64 = 16;
const KEYS: u64 = 16;
/// The tries and pauses that users have, in which splits of all workers pass the totals one by one; and
/// more time, as the machine may be busy.
fn with_defaults(mut config: EtcdConfig) -> EtcdConfig {
    let defaults = EtcdConfig::new(config.endpoints.clone());
    (config.backoff_min, config.backoff_max) = (defaults.backoff_min, defaults.backoff_max);
    config.attempts = defaults.attempts;
    config.operation_timeout = Duration::from_millis(LEASE_MS);
    config
}

/// Claims until nothing is left; now and then splits what it got. Says which ranges of keys it
/// completed under which shard.
fn work(config: EtcdConfig, worker: u64, seed: u64) -> Vec<(ShardId, u64, u64)> {
    let mut coordinator = EtcdCoordinator::connect(config).unwrap();
    let (mut dice, mut scratch) = (Dice::new(seed), Box::new(AcquireScratch::new()));
    let (mut completed, mut ops, mut idle) = (Vec::new(), 0, 0);
    let mut next_op = || {
        ops += 1;
        OpId::from_raw(worker << 32 | ops)
    };
    while idle < 20 {
        let worker = WorkerId::from_raw(worker);
        let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
        let (lease, range) = match claimed {
            Ok(claimed) => (claimed.lease, claimed.to_restored_state().spec),
            Err(ClaimError::NoneAvailable { .. }) => {
                idle += 1;
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            Err(error) => panic!("{error}"),
        };
        idle = 0;
        let range = range.as_ref();
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
        let (first, mut end) = (number(range.start()), number(range.end()));
        let middle = key(first + (end - first) / 2);
        if end - first >= 4 && dice.below(4) == 0 {
            if dice.below(2) == 0 {
                let plan = plan_split_replace_at_points(range, &[&middle]).unwrap();
                coordinator.split_replace(NOW, TENANT, &lease, &plan, next_op()).unwrap();
                continue;
            }
            let plan = plan_split_residual_at_point(range, &middle).unwrap();
            coordinator.split_residual(NOW, TENANT, &lease, &plan, next_op()).unwrap();
            end = number(&middle);
        }
        let last = key(end - 1);
        coordinator.complete(NOW, TENANT, &lease, CursorUpdate::at(&last), next_op()).unwrap();
        completed.push((lease.shard(), first, end));
    }
    completed
}

#[test]
fn sixteen_workers_complete_every_shard_once_and_cover_every_key() {
    let shards = scaled(200);
    let server = EtcdServer::start();
    let config = with_defaults(server.config());
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, shards, KEYS).unwrap();
    let seed = Dice::from_environment().seed();
    println!("seed {seed}");
    let completed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 1..=WORKERS {
            let (config, completed) = (config.clone(), &completed);
            scope.spawn(move || {
                let mine = work(config, worker, seed ^ worker);
                completed.lock().unwrap().extend(mine);
            });
        }
    });
    let completed = completed.into_inner().unwrap();
    let by_shard: BTreeMap<_, _> =
        completed.iter().map(|&(shard, first, end)| (shard, (first, end))).collect();
    assert_eq!(by_shard.len(), completed.len(), "a shard was completed twice");
    let mut ranges: Vec<_> = completed.iter().map(|&(_, first, end)| (first, end)).collect();
    ranges.sort_unstable();
    assert_eq!((ranges[0].0, ranges.last().unwrap().1), (1, 1 + shards * KEYS));
    assert!(
        ranges.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "keys are missing, or done twice"
    );
    let mut listed = Vec::new();
    coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    let done = listed.iter().filter(|shard| shard.status == ShardStatus::Done).count();
    assert_eq!(done, completed.len());
    assert!(listed.len() as u64 > shards, "nothing was split");
    coordinator.complete_run(NOW, TENANT, RUN, op(1)).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stored = runtime.block_on(Stored::read(coordinator.kv(), coordinator.keyspace()));
    stored.check(None).unwrap();
}

/// Two processes that split at the same time do not pass a ceiling together.
#[test]
fn racing_splits_do_not_pass_a_ceiling() {
    let server = EtcdServer::start();
    let mut config = with_defaults(server.config());
    config.limits = ShardLimits { per_tenant: 24, global: 1_000 };
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, 8, 1_000).unwrap();
    let refused: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=8)
            .map(|worker| {
                let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
                scope.spawn(move || {
                    let mut scratch = Box::new(AcquireScratch::new());
                    let worker = WorkerId::from_raw(worker);
                    let mine = shard(worker.as_raw() - 1);
                    let claimed = coordinator
                        .acquire_and_restore_into(NOW, TENANT, mine, worker, &mut scratch)
                        .unwrap();
                    let (lease, spec) = (claimed.lease, claimed.to_restored_state().spec);
                    let first = spec.as_ref().start().to_vec();
                    let number = u64::from_be_bytes(first[..].try_into().unwrap());
                    let mut end = spec.as_ref().end().to_vec();
                    let (mut refused, mut at) = (0, number + 999);
                    for round in 0..5 {
                        let point = key(at);
                        let range =
                            gossip_contracts::coordination::ShardSpecRef::new(&first, &end, b"");
                        let plan = plan_split_residual_at_point(range, &point).unwrap();
                        match coordinator.split_residual(NOW, TENANT, &lease, &plan, op(round)) {
                            Ok(_) => (end, at) = (point.to_vec(), at - 1),
                            Err(error) => {
                                assert!(error.to_string().contains("ceiling"), "{error}");
                                refused += 1;
                            }
                        }
                    }
                    refused
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    });
    // 16 of 40 splits had room.
    assert_eq!(refused, 24);
    assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().total(), 24);
}
