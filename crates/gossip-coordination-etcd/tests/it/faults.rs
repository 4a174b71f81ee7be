//! Faults of processes, members and networks, on real ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, ShardId, WorkerId};
use gossip_coordination::{
    AcquireScratch, ClaimError, CoordinationBackend, EventCollector, EventKind, IdempotentOutcome,
    LeasedOperationError, RunManagement, ShardClaiming, ShardFilter, ShardSummary,
    StateTransitionEvent,
};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::Revision;
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::children::{clock, spawn};
use crate::operations::{Outcome, attempt, contents, prepare};
use crate::proxy::{Lost, Proxy};
use crate::server::{Cluster, EtcdServer};
use crate::support::{Dice, scaled};
use crate::world::*;

fn list(coordinator: &EtcdCoordinator) -> Vec<ShardSummary> {
    let mut listed = Vec::new();
    coordinator.list_shards_into(clock(), TENANT, RUN, ShardFilter::all(), &mut listed).unwrap();
    listed
}

/// Shards that processes are killed on. A killed one's is free again when its owner key is gone; those
/// after it find another meanwhile, and come back to it.
const KILLED_ON: u64 = 8;

/// A checkpointing process is killed at any moment: what it was told was stored is stored, and the next
/// one goes on from there.
#[test]
fn a_killed_process_leaves_an_accepted_cursor_to_the_next() {
    let server = EtcdServer::start();
    let config = server.config();
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, KILLED_ON, 1_000_000).unwrap();
    let mut dice = Dice::from_environment();
    println!("seed {}", dice.seed());
    let mut last: Vec<Option<Box<[u8]>>> = vec![None; KILLED_ON as usize];
    let (mut moved, kills) = (0, scaled(20));
    for round in 0..kills {
        let mut child = spawn(&config, 1 + round);
        // Until it has done something, and then a little longer.
        let started = Instant::now();
        loop {
            let listed = list(&coordinator);
            let cursors: Vec<_> = listed.iter().map(|shard| shard.last_key.clone()).collect();
            assert!(
                cursors.iter().zip(&last).all(|(now, before)| now >= before),
                "a cursor moved back"
            );
            if cursors != last {
                moved += 1;
                break;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "no child makes progress");
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(dice.below(30)));
        child.kill().unwrap();
        child.wait().unwrap();
        let listed = list(&coordinator);
        last = listed.iter().map(|shard| shard.last_key.clone()).collect();
    }
    assert_eq!(moved, kills);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stored = runtime.block_on(Stored::read(coordinator.kv(), coordinator.keyspace()));
    stored.check(Some(Revision::MAX)).unwrap();
    // The token was written with its key, never apart from it.
    for shard in stored.shards() {
        let cursor = shard.cursor.as_update();
        assert_eq!(cursor.last_key(), cursor.token());
    }
}

/// Works on the run until told to stop, whatever errors come; returns what it was told was done.
fn work_through(
    config: EtcdConfig,
    worker: u64,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
) -> (Vec<StateTransitionEvent>, Vec<(ShardId, Vec<u8>)>) {
    let mut coordinator = EtcdCoordinator::connect(config).unwrap();
    let (mut events, mut accepted) = (EventCollector::new(), Vec::new());
    coordinator.with_events(&mut events, |coordinator| {
        let mut scratch = Box::new(AcquireScratch::new());
        let id = WorkerId::from_raw(worker);
        let mut ops = worker << 40;
        while !stop.load(Ordering::Relaxed) {
            let claimed = coordinator.claim_next_available(clock(), TENANT, RUN, id, &mut scratch);
            let (lease, state) = match claimed {
                Ok(claimed) => (claimed.lease, claimed.to_restored_state()),
                Err(ClaimError::RunNotActive { .. }) => return,
                Err(_) => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
            let first = number(state.spec.as_ref().start());
            let last = state.cursor.as_update().last_key().map_or(first, number);
            for at in last + 1..last + 40 {
                ops += 1;
                let (bytes, op) = (key(at), OpId::from_raw(ops));
                // The same under the same id until it is known.
                let answer = loop {
                    let cursor = CursorUpdate::at(&bytes);
                    match coordinator.checkpoint(clock(), TENANT, &lease, cursor, op) {
                        Err(error) if error.is_retryable() && !stop.load(Ordering::Relaxed) => {}
                        answer => break answer,
                    }
                };
                match answer {
                    Ok(_) => {
                        accepted.push((lease.shard(), bytes.to_vec()));
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Err(_) => break,
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            let _ = coordinator.release(clock(), TENANT, &lease);
        }
    });
    (events.drain(), accepted)
}

/// Four workers work while `disturb` does its worst; then nothing that was acknowledged may be lost, and
/// no two workers may have had checkpoints accepted under overlapping fences.
fn survive(cluster: &mut Cluster, config: EtcdConfig, disturb: impl FnOnce(&mut Cluster)) {
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, 3, 1_000_000).unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (mut events, mut accepted) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..=4)
            .map(|worker| {
                let (config, stop, done) = (config.clone(), Arc::clone(&stop), Arc::clone(&done));
                scope.spawn(move || work_through(config, worker, stop, done))
            })
            .collect();
        let work_goes_on = || {
            let (started, before) = (Instant::now(), done.load(Ordering::Relaxed));
            while done.load(Ordering::Relaxed) < before + 60 && started.elapsed().as_secs() < 60 {
                std::thread::sleep(Duration::from_millis(10));
            }
            done.load(Ordering::Relaxed) >= before + 60
        };
        let before = work_goes_on();
        disturb(cluster);
        let after = work_goes_on();
        stop.store(true, Ordering::Relaxed);
        for worker in workers {
            let (mine, told) = worker.join().unwrap();
            events.push(mine);
            accepted.extend(told);
        }
        assert!(before && after, "only {} checkpoints were accepted", accepted.len());
    });
    let listed = list(&coordinator);
    for (shard, bytes) in &accepted {
        let at = listed.iter().find(|line| line.shard == *shard).unwrap();
        assert!(at.last_key.as_deref() >= Some(bytes), "an acknowledged checkpoint is lost");
    }
    assert_fences_do_not_overlap(&events);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stored = runtime.block_on(Stored::read(coordinator.kv(), coordinator.keyspace()));
    stored.check(Some(Revision::MAX)).unwrap();
}

/// Each worker's events are in its order. A key that was accepted under a fence lies behind every key
/// accepted under a lower one: with overlapping fences two workers would accept the same keys.
fn assert_fences_do_not_overlap(of_workers: &[Vec<StateTransitionEvent>]) {
    use std::collections::BTreeMap;
    let mut ranges: BTreeMap<(ShardId, u64), (Vec<u8>, Vec<u8>)> = BTreeMap::new();
    for events in of_workers {
        let mut fences = BTreeMap::new();
        for event in events {
            match &event.kind {
                EventKind::ShardAcquired { shard, fence_epoch, .. } => {
                    fences.insert(*shard, fence_epoch.as_raw());
                }
                EventKind::ShardCheckpointed { shard, last_key, .. } => {
                    let key = last_key.expose_bytes().unwrap().to_vec();
                    let place = (*shard, fences[shard]);
                    let range = ranges.entry(place).or_insert((key.clone(), key.clone()));
                    assert!(key >= range.1, "a cursor moved back under one fence");
                    range.1 = key;
                }
                _ => {}
            }
        }
    }
    let ordered: Vec<_> = ranges.into_iter().collect();
    for pair in ordered.windows(2) {
        let [((shard, _), (_, last)), ((next_shard, _), (first, _))] = pair else { unreachable!() };
        if shard == next_shard {
            assert!(last < first, "keys of shard {shard} were accepted under two fences");
        }
    }
}

#[test]
fn a_killed_leader_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start();
    let config = cluster.config();
    survive(&mut cluster, config, Cluster::kill_leader);
}

/// A member stands still for longer than owner keys live, and then goes on as if nothing had happened.
#[test]
fn a_paused_member_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start();
    let mut config = cluster.config();
    config.owner_lease_ttl = Duration::from_secs(2);
    config.request_timeout = Duration::from_secs(1);
    survive(&mut cluster, config, |cluster| {
        cluster.pause_leader(Duration::from_secs(3));
    });
}

/// A client is cut off for longer than its owner keys live, while others work on.
#[test]
fn a_client_that_was_cut_off_loses_its_shards_and_nothing_else() {
    let server = EtcdServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(Proxy::to(server.port()));
    let mut direct = server.config();
    direct.owner_lease_ttl = Duration::from_secs(2);
    direct.request_timeout = Duration::from_millis(500);
    direct.attempts = 3;
    let through = EtcdConfig { endpoints: vec![proxy.url()], ..direct.clone() };
    let mut coordinator = EtcdCoordinator::connect(direct.clone()).unwrap();
    begin(&mut coordinator, 1, 1_000_000).unwrap();
    let mut cut_off = EtcdCoordinator::connect(through).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let mut claim = |coordinator: &mut EtcdCoordinator, worker| {
        let worker = WorkerId::from_raw(worker);
        let claimed = coordinator.claim_next_available(clock(), TENANT, RUN, worker, &mut scratch);
        claimed.map(|claimed| claimed.lease)
    };
    let lost = claim(&mut cut_off, 1).unwrap();
    cut_off.checkpoint(clock(), TENANT, &lost, CursorUpdate::at(&key(5)), op(1)).unwrap();
    proxy.cut(true);
    let error =
        cut_off.checkpoint(clock(), TENANT, &lost, CursorUpdate::at(&key(6)), op(2)).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let started = Instant::now();
    let taken = loop {
        match claim(&mut coordinator, 2) {
            Ok(lease) => break lease,
            Err(ClaimError::NoneAvailable { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        assert!(started.elapsed() < Duration::from_secs(20), "the owner's key does not end");
        std::thread::sleep(Duration::from_millis(50));
    };
    assert!(started.elapsed() < Duration::from_millis(LEASE_MS), "long before the deadline");
    assert_eq!(taken.fence(), lost.fence().next());
    coordinator.checkpoint(clock(), TENANT, &taken, CursorUpdate::at(&key(9)), op(3)).unwrap();
    proxy.cut(false);
    let error = loop {
        let again = cut_off.checkpoint(clock(), TENANT, &lost, CursorUpdate::at(&key(6)), op(2));
        match again {
            Err(error) if error.is_retryable() => {}
            other => break other.unwrap_err(),
        }
    };
    assert!(error.lease_is_over(), "{error}");
    assert_eq!(list(&coordinator)[0].last_key.as_deref(), Some(&key(9)[..]));
}

/// More messages than a split sends: it is cut off before its last one, and behind it.
const MESSAGES_OF_SPLIT: u64 = 8;

type Contents = Vec<(String, Vec<u8>)>;

/// What was in etcd before a split that was cut off, what it left, and what is there after another
/// process has tried it again.
struct CutOff {
    before: Contents,
    outcome: Outcome,
    left: Contents,
    again: Outcome,
    finally: Contents,
}

/// Splits, through a wire that is cut at a message, and then once more as another process would.
fn split_cut_at(server: &EtcdServer, operation: &str, message: u64, lost: Lost) -> CutOff {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(Proxy::to(server.port()));
    let mut direct = server.config();
    direct.request_timeout = Duration::from_secs(2);
    direct.operation_timeout = Duration::from_secs(3);
    let through = EtcdConfig { endpoints: vec![proxy.url()], ..direct.clone() };
    let mut next = EtcdCoordinator::connect(direct).unwrap();
    let mut coordinator = EtcdCoordinator::connect(through).unwrap();
    let lease = prepare(&mut coordinator, operation);
    let (kv, keyspace) = (next.kv().clone(), next.keyspace().clone());
    let stored = || {
        let stored = runtime.block_on(Stored::read(&kv, &keyspace));
        stored.check(None).unwrap_or_else(|fault| panic!("{operation}: {fault}"));
        contents(&stored)
    };
    let before = stored();
    proxy.cut_at(message, lost);
    let outcome = attempt(&mut coordinator, operation, lease.as_ref());
    coordinator.end_as_if_killed();
    let left = stored();
    let again = attempt(&mut next, operation, lease.as_ref());
    CutOff { before, outcome, left, again, finally: stored() }
}

/// Wherever the wire to a real server breaks, a split leaves all or nothing in it, and another process
/// finishes it, or is told that it is finished.
fn cut_off_everywhere(server: &EtcdServer, operation: &str) {
    // There is no such message.
    let whole = split_cut_at(server, operation, u64::MAX / 2, Lost::Request);
    assert_eq!(whole.outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
    assert_eq!(whole.again, Ok(IdempotentOutcome::Replayed(())), "{operation}");
    assert!(whole.left != whole.before && whole.finally == whole.left, "{operation}");
    let (mut nothing, mut all) = (0, 0);
    std::thread::scope(|scope| {
        let messages = 0..MESSAGES_OF_SPLIT;
        let cases = messages.flat_map(|at| [(at, Lost::Request), (at, Lost::Answer)]);
        let spawned = cases.map(|(message, lost)| {
            let what = format!("{operation}, {lost:?} lost at message {message}");
            (what, scope.spawn(move || split_cut_at(server, operation, message, lost)))
        });
        for (what, case) in spawned.collect::<Vec<_>>() {
            let case = case.join().unwrap();
            let is_whole = case.left == whole.left;
            assert!(is_whole || case.left == case.before, "{what}: neither all nor nothing");
            assert!(is_whole || case.outcome.is_err(), "{what}: said to be done, and is not");
            let again = match is_whole {
                true => IdempotentOutcome::Replayed(()),
                false => IdempotentOutcome::Executed(()),
            };
            assert_eq!(case.again, Ok(again), "{what}");
            assert!(case.finally == whole.left, "{what}: the next did something else");
            nothing += u64::from(!is_whole);
            all += u64::from(is_whole && case.outcome.is_err());
        }
    });
    assert!(nothing > 0 && all > 0, "{operation}: {nothing} left nothing, {all} all unanswered");
}

#[test]
fn a_split_that_is_cut_off_at_any_message_leaves_all_or_nothing() {
    let server = EtcdServer::start();
    std::thread::scope(|scope| {
        for operation in ["split_replace", "split_residual"] {
            let server = &server;
            scope.spawn(move || cut_off_everywhere(server, operation));
        }
    });
}
