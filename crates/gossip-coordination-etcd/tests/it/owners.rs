//! Owner keys and the process's lease: who may take a shard before its deadline.

use std::num::NonZeroUsize;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{ShardId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, ClaimError, CoordinationBackend, Lease, RunManagement,
    ShardClaiming, ShardFilter,
};
use gossip_coordination_etcd::EtcdCoordinator;
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{Interception, SimKv};

use crate::server::config;
use crate::world::*;

const TTL_MS: u64 = 10_000;

fn process(kv: &SimKv) -> EtcdCoordinator<SimKv> {
    let mut config = config(["http://nowhere:1".into()]);
    config.namespace = "owners".into();
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

fn claim(coordinator: &mut EtcdCoordinator<SimKv>, worker: u64) -> Result<Lease, ClaimError> {
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(worker);
    let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
    claimed.map(|claimed| claimed.lease)
}

fn has_owner(kv: &SimKv, coordinator: &EtcdCoordinator<SimKv>, lease: &Lease) -> bool {
    let keyspace = coordinator.keyspace();
    let owner = keyspace.run(TENANT, RUN).owner(lease.shard());
    kv.entries().iter().any(|entry| entry.key == owner.as_bytes())
}

#[test]
fn a_silent_process_loses_its_shard_before_the_deadline_and_is_refused() {
    let kv = SimKv::new();
    let (mut silent, mut other) = (process(&kv), process(&kv));
    begin(&mut silent, 1, 10).unwrap();
    let lost = claim(&mut silent, 1).unwrap();
    assert!(matches!(claim(&mut other, 2), Err(ClaimError::NoneAvailable { .. })));
    kv.advance_ms(TTL_MS - 1);
    assert!(matches!(claim(&mut other, 2), Err(ClaimError::NoneAvailable { .. })));
    kv.advance_ms(1);
    let taken = claim(&mut other, 2).unwrap();
    assert_eq!((taken.shard(), taken.fence()), (lost.shard(), lost.fence().next()));
    let refused = silent.checkpoint(NOW, TENANT, &lost, CursorUpdate::at(&key(3)), op(1));
    assert!(matches!(refused, Err(CheckpointError::StaleFence { .. })), "{refused:?}");
    assert!(silent.checkpoint(NOW, TENANT, &taken, CursorUpdate::at(&key(3)), op(1)).is_ok());
}

/// Z3: the fence decides who may write; the key only says that the holder lives.
#[test]
fn a_holder_whose_key_is_gone_and_whose_shard_nobody_took_works_on() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    begin(&mut coordinator, 1, 10).unwrap();
    let lease = claim(&mut coordinator, 1).unwrap();
    assert!(has_owner(&kv, &coordinator, &lease));
    kv.advance_ms(TTL_MS);
    assert!(!has_owner(&kv, &coordinator, &lease));
    coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&key(3)), op(1)).unwrap();
    assert!(has_owner(&kv, &coordinator, &lease));
    // Under a lease that lives: the one before has ended.
    let mut other = process(&kv);
    assert!(matches!(claim(&mut other, 2), Err(ClaimError::NoneAvailable { .. })));
}

#[test]
fn a_worker_does_not_claim_what_it_holds_though_its_key_is_gone() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    begin(&mut coordinator, 1, 10).unwrap();
    claim(&mut coordinator, 1).unwrap();
    kv.advance_ms(TTL_MS);
    assert!(matches!(claim(&mut coordinator, 1), Err(ClaimError::NoneAvailable { .. })));
}

/// J1.
#[test]
fn all_shards_of_a_process_hang_on_one_lease() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    let mut clone = coordinator.clone();
    begin(&mut coordinator, 20, 10).unwrap();
    for worker in 0..10 {
        claim(&mut coordinator, worker).unwrap();
        claim(&mut clone, 100 + worker).unwrap();
    }
    let leases: std::collections::BTreeSet<_> =
        kv.entries().iter().filter_map(|entry| entry.lease).collect();
    assert_eq!(leases.len(), 1);
}

#[test]
fn what_a_closed_process_held_can_be_taken_at_once() {
    let kv = SimKv::new();
    let (mut closing, mut other) = (process(&kv), process(&kv));
    begin(&mut closing, 1, 10).unwrap();
    let held = claim(&mut closing, 1).unwrap();
    drop(closing.clone());
    assert!(matches!(claim(&mut other, 2), Err(ClaimError::NoneAvailable { .. })));
    drop(closing);
    assert_eq!(claim(&mut other, 2).unwrap().shard(), held.shard());
}

/// An async program may drop it where nobody can wait for etcd.
#[test]
fn what_a_process_held_that_ended_inside_a_runtime_can_be_taken_soon() {
    let kv = SimKv::new();
    let (mut closing, mut other) = (process(&kv), process(&kv));
    begin(&mut closing, 1, 10).unwrap();
    let held = claim(&mut closing, 1).unwrap();
    tokio::runtime::Runtime::new().unwrap().block_on(async { drop(closing) });
    let give_up_at = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let taken = loop {
        match claim(&mut other, 2) {
            Ok(taken) => break taken,
            Err(error) => assert!(std::time::Instant::now() < give_up_at, "{error}"),
        }
        std::thread::yield_now();
    };
    assert_eq!(taken.shard(), held.shard());
}

/// Of many held shards, those of the dead are found at once: whoever lives renews.
#[test]
fn the_shards_of_a_dead_process_are_found_among_many() {
    let kv = SimKv::new();
    let (mut dead, mut alive) = (process(&kv), process(&kv));
    begin(&mut alive, 300, 10).unwrap();
    let mut held: Vec<Lease> = (0..200).map(|worker| claim(&mut alive, worker).unwrap()).collect();
    let lost = claim(&mut dead, 1_000).unwrap();
    held.extend((300..399).map(|worker| claim(&mut alive, worker).unwrap()));
    drop(dead);
    for lease in &held {
        alive.renew(at(1_000), TENANT, lease).unwrap();
    }
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(2_000);
    let claimed = alive.claim_next_available(at(1_001), TENANT, RUN, worker, &mut scratch);
    assert_eq!(claimed.unwrap().lease.shard(), lost.shard());
}

/// Every page of a listing is of one view, whatever changes between them; and if that view is
/// compacted away, the listing starts over.
#[test]
fn a_listing_is_of_one_moment_although_shards_split_between_its_pages() {
    for compacts in [false, true] {
        let kv = SimKv::new();
        let (mut reader, mut writer) = (process(&kv), process(&kv));
        begin(&mut reader, 200, 10).unwrap();
        let mut leases: Vec<Lease> =
            (0..50).map(|worker| claim(&mut writer, worker).unwrap()).collect();
        let (store, mut seen) = (kv.clone(), 0);
        kv.intercept(move |_| {
            seen += 1;
            // Once a page was read, and while the first view lasts.
            if seen > 1
                && let Some(lease) = leases.pop()
            {
                // A thread of its own: this one is inside the reader's runtime.
                std::thread::scope(|scope| {
                    let complete = || complete(&mut writer, &lease);
                    scope.spawn(complete).join().unwrap();
                });
                if compacts && seen < 4 {
                    store.compact(store.revision()).unwrap();
                }
            }
            Interception::Pass
        });
        let mut listed = Vec::new();
        reader.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
        kv.pass_all();
        let ids: Vec<_> = listed.iter().map(|shard| shard.shard).collect();
        assert_eq!(ids, (0..200).map(ShardId::from_raw).collect::<Vec<_>>());
        // As many are done as were when the view was taken: none of those completed since.
        let active = listed.iter().filter(|shard| !shard.status.is_terminal()).count();
        assert_eq!(active, if compacts { 198 } else { 200 });
    }
}

/// Each page has an operation's tries, so that it does not matter how many pages there are.
#[test]
fn a_long_listing_comes_to_its_end_on_a_cluster_that_refuses_half_of_all_requests() {
    let kv = SimKv::new();
    let mut reader = process(&kv).with_pages_of(NonZeroUsize::MIN);
    begin(&mut reader, 100, 10).unwrap();
    let mut refuses = false;
    kv.intercept(move |_| {
        refuses = !refuses;
        if refuses { Interception::Refuse } else { Interception::Pass }
    });
    let mut listed = Vec::new();
    reader.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    assert_eq!(listed.len(), 100);
}

fn complete(coordinator: &mut EtcdCoordinator<SimKv>, lease: &Lease) {
    let first = key(1 + lease.shard().as_raw() * 10);
    coordinator.complete(NOW, TENANT, lease, CursorUpdate::at(&first), op(7)).unwrap();
}

/// Registrations that never came to their end are called off, and nothing of them is left.
#[test]
fn stale_registrations_are_called_off_and_leave_nothing() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap();
    let mut left = 4;
    kv.intercept(move |txn| {
        left -= i32::from(txn.writes());
        if left < 0 { Interception::LoseRequest } else { Interception::Pass }
    });
    let manifest = Manifest::of(500, 10);
    let rows = manifest.rows();
    coordinator.register_shards(NOW, TENANT, RUN, &rows, op(1)).unwrap_err();
    kv.pass_all();
    let keyspace = coordinator.keyspace().clone();
    let stored = Stored::of(&keyspace, kv.entries());
    assert!(!stored.shards().is_empty(), "some were staged");
    stored.check(None).unwrap();
    // Nobody sees them.
    let mut listed = Vec::new();
    coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    assert!(listed.is_empty());
    assert_eq!(coordinator.get_run_progress(TENANT, RUN).unwrap().total(), 0);
    assert!(matches!(claim(&mut coordinator, 1), Err(ClaimError::RunNotActive { .. })));

    let mut collected = Vec::new();
    coordinator.gc_stale_initializing_runs_into(at(5), TENANT, NOW, op(2), &mut collected).unwrap();
    assert!(collected.is_empty(), "it is not older than that");
    coordinator
        .gc_stale_initializing_runs_into(at(5), TENANT, at(1), op(2), &mut collected)
        .unwrap();
    assert_eq!(collected, [RUN]);
    let stored = Stored::of(&keyspace, kv.entries());
    assert!(stored.shards().is_empty());
    stored.check(None).unwrap();
    assert_eq!(stored.value(&keyspace.shard_total()), Some(&b"0"[..]));
}

#[test]
fn active_runs_are_listed_and_ended_ones_are_not() {
    use gossip_contracts::identity::RunId;
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    let manifest = Manifest::of(2, 10);
    for raw in 1..=100 {
        let run = RunId::from_raw(raw);
        coordinator
            .create_run_with_shards(NOW, TENANT, run, CONFIG, &manifest.rows(), op(1))
            .unwrap();
        if raw % 2 == 0 {
            coordinator.fail_run(NOW, TENANT, run, op(2)).unwrap();
        }
    }
    coordinator.create_run(NOW, TENANT, RunId::from_raw(200), CONFIG).unwrap();
    let mut active = Vec::new();
    coordinator.list_active_runs_into(TENANT, &mut active).unwrap();
    let odd: Vec<_> = (1..=100).filter(|raw| raw % 2 == 1).map(RunId::from_raw).collect();
    assert_eq!(active, odd);
}
