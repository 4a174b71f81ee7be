//! Faults of processes, members and networks, on real ones.

mod splits;

use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, ShardId, WorkerId};
use gossip_coordination::{
    AcquireScratch, ClaimError, CoordinationBackend, EventCollector, EventKind,
    LeasedOperationError, RunManagement, ShardClaiming, ShardFilter, ShardSummary,
    StateTransitionEvent,
};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::Revision;
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::children::{Said, clock, spawn, understood};
use crate::proxy::Proxy;
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

/// What children that were killed have said of a shard: the last key that they were told was stored,
/// and the last that they sent.
#[derive(Clone, Copy, Debug, Default)]
struct Told {
    stored: u64,
    sent: u64,
}

impl Told {
    fn allows(self, cursor: u64) -> bool {
        (self.stored..=self.sent).contains(&cursor)
    }
}

/// Lets a child work until it was told that something is stored, and a little longer, kills it, and
/// adds what it said. Returns whether it went on where another had been.
fn kill_at_work(mut child: Child, longer: Duration, told: &mut [Told]) -> bool {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut goes_on, mut is_killed) = (false, false);
    // To the end of what it said, which is behind the kill.
    for line in lines {
        let Some((said, shard, key)) = understood(&line.unwrap()) else { continue };
        let told = &mut told[usize::try_from(shard).unwrap()];
        match said {
            Said::Began => {
                assert!(told.allows(key), "shard {shard} begins at {key}: {told:?}");
                goes_on |= told.stored > 0;
            }
            Said::Sends => told.sent = key,
            Said::Stored => {
                assert_eq!(told.sent, key);
                told.stored = key;
                if !std::mem::replace(&mut is_killed, true) {
                    std::thread::sleep(longer);
                    child.kill().unwrap();
                    child.wait().unwrap();
                }
            }
        }
    }
    assert!(is_killed, "the child ended by itself");
    goes_on
}

/// A checkpointing process is killed at any moment: what it was told was stored is stored, nothing is
/// that it did not send, and the next one goes on from there.
#[test]
fn a_killed_process_leaves_an_accepted_cursor_to_the_next() {
    let server = EtcdServer::start();
    let config = server.config();
    let mut coordinator = EtcdCoordinator::connect(config.clone()).unwrap();
    begin(&mut coordinator, KILLED_ON, 1_000_000).unwrap();
    let mut dice = Dice::from_environment();
    println!("seed {}", dice.seed());
    let mut told = [Told::default(); KILLED_ON as usize];
    let (mut went_on, kills) = (0, scaled(20));
    for round in 0..kills {
        let longer = Duration::from_millis(dice.below(30));
        went_on += u64::from(kill_at_work(spawn(&config, 1 + round), longer, &mut told));
        for listed in list(&coordinator) {
            let (at, told) =
                (number(listed.last_key.as_deref()), told[listed.shard.as_raw() as usize]);
            assert!(told.allows(at), "{} is at {at}: {told:?}", listed.shard);
        }
    }
    assert!(went_on >= kills - KILLED_ON, "{went_on} of {kills} went on where others had been");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stored = runtime.block_on(Stored::read(coordinator.kv(), coordinator.keyspace()));
    stored.check(Some(Revision::MAX)).unwrap();
    // The token was written with its key, never apart from it.
    for shard in stored.shards() {
        let cursor = shard.cursor.as_update();
        assert_eq!(cursor.last_key(), cursor.token());
    }
}

/// The number of a key, or 0.
fn number(key: Option<&[u8]>) -> u64 {
    key.map_or(0, |key| u64::from_be_bytes(key.try_into().unwrap()))
}

/// Works on the run until told to stop, whatever errors come; returns what it was told was done.
fn work_through(
    mut coordinator: EtcdCoordinator,
    worker: u64,
    stop: Arc<AtomicBool>,
    done: Arc<AtomicUsize>,
) -> (Vec<StateTransitionEvent>, Vec<(ShardId, Vec<u8>)>) {
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

/// A worker for each of `configs` works on the run while `disturb` does its worst; then nothing that was
/// acknowledged may be lost, and no two workers may have had checkpoints accepted under overlapping
/// fences.
fn survive(
    cluster: &mut Cluster,
    shards: u64,
    configs: [EtcdConfig; 4],
    disturb: impl FnOnce(&mut Cluster, &EtcdCoordinator),
) {
    let mut coordinator = EtcdCoordinator::connect(configs[3].clone()).unwrap();
    begin(&mut coordinator, shards, 1_000_000).unwrap();
    let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let (mut events, mut accepted) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        // All before the first begins to work: who is slower than 60 checkpoints of the others would
        // meet the disturbance while it connects.
        let coordinators = configs.map(|config| EtcdCoordinator::connect(config).unwrap());
        let workers: Vec<_> = coordinators
            .into_iter()
            .zip(1..)
            .map(|(coordinator, worker)| {
                let (stop, done) = (Arc::clone(&stop), Arc::clone(&done));
                scope.spawn(move || work_through(coordinator, worker, stop, done))
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
        disturb(cluster, &coordinator);
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
    survive(&mut cluster, 3, [(); 4].map(|()| config.clone()), |cluster, _| cluster.kill_leader());
}

/// A member stands still for longer than owner keys live, and then goes on as if nothing had happened.
#[test]
fn a_paused_member_loses_nothing_that_was_acknowledged() {
    let mut cluster = Cluster::start();
    let mut config = cluster.config();
    config.owner_lease_ttl = Duration::from_secs(2);
    config.request_timeout = Duration::from_secs(1);
    survive(&mut cluster, 3, [(); 4].map(|()| config.clone()), |cluster, _| {
        cluster.pause_leader(Duration::from_secs(3));
    });
}

/// Two clients are cut off from all members for longer than their owner keys live, while others work on;
/// what they sent meanwhile arrives when others have their shards.
#[test]
fn clients_that_were_cut_off_lose_their_shards_and_nothing_else() {
    let mut cluster = Cluster::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxies: Vec<_> =
        cluster.ports().into_iter().map(|port| runtime.block_on(Proxy::to(port))).collect();
    let cut = |is_cut| proxies.iter().for_each(|proxy| proxy.cut(is_cut));
    let mut direct = cluster.config();
    direct.owner_lease_ttl = Duration::from_secs(2);
    direct.request_timeout = Duration::from_secs(1);
    direct.operation_timeout = Duration::from_secs(3);
    let endpoints = proxies.iter().map(Proxy::url).collect();
    let through = EtcdConfig { endpoints, ..direct.clone() };
    cut_off_holder(&through, &direct, cut);
    // In a namespace of their own.
    let namespace = cluster.config().namespace;
    let [through, direct] =
        [through, direct].map(|config| EtcdConfig { namespace: namespace.clone(), ..config });
    let configs = [through.clone(), through, direct.clone(), direct];
    // So few shards that of the two who work on one finds nothing, and looks whose owners are gone.
    survive(&mut cluster, 2, configs, |_, coordinator| {
        let cursors = || list(coordinator).into_iter().map(|shard| shard.last_key);
        cut(true);
        std::thread::sleep(Duration::from_secs(3));
        // The others get at every shard.
        let (started, at_the_cut): (_, Vec<_>) = (Instant::now(), cursors().collect());
        while cursors().zip(&at_the_cut).any(|(now, then)| now == *then) {
            assert!(started.elapsed() < Duration::from_secs(60), "a shard is out of reach");
            std::thread::sleep(Duration::from_millis(50));
        }
        cut(false);
    });
}

/// The holder of the only shard is cut off, loses it long before its deadline, and is told so.
fn cut_off_holder(through: &EtcdConfig, direct: &EtcdConfig, cut: impl Fn(bool)) {
    let mut coordinator = EtcdCoordinator::connect(direct.clone()).unwrap();
    begin(&mut coordinator, 1, 1_000_000).unwrap();
    let mut cut_off = EtcdCoordinator::connect(through.clone()).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let mut claim = |coordinator: &mut EtcdCoordinator, worker| {
        let worker = WorkerId::from_raw(worker);
        let claimed = coordinator.claim_next_available(clock(), TENANT, RUN, worker, &mut scratch);
        claimed.map(|claimed| claimed.lease)
    };
    let lost = claim(&mut cut_off, 1).unwrap();
    cut_off.checkpoint(clock(), TENANT, &lost, CursorUpdate::at(&key(5)), op(1)).unwrap();
    cut(true);
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
    cut(false);
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
