//! Claims in a run that splits have made large: on the model, which sees what is asked of it, and on a
//! real server.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gossip_contracts::coordination::{
    CursorUpdate, RestoredShardState, ShardSpecRef, plan_split_replace_at_points,
};
use gossip_contracts::identity::{LogicalTime, ShardId, ShardKey, WorkerId};
use gossip_coordination::{AcquireScratch, ClaimError, CoordinationBackend, Lease, ShardClaiming};
use gossip_coordination_etcd::kv::{Interception, Kv, Op, SimKv, Wanted};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::server::{EtcdServer, config};
use crate::support::scaled;
use crate::world::*;

/// Children of one split.
const CHILDREN: u64 = 50;
/// When most shards are claimed.
const CLAIMED_MS: u64 = 10_000;

/// What a claim costs: transactions, entries that they ask for, and keys that etcd walks over in the
/// ranges of those that only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    trips: usize,
    entries: usize,
    walked: usize,
}

/// A run all of whose shards are held, each by a worker of its own.
struct Crowd<K: Kv> {
    coordinator: EtcdCoordinator<K>,
    leases: Vec<Lease>,
    workers: u64,
    scratch: Box<AcquireScratch>,
}

/// A held shard, and the numbers of its keys.
type HeldRange = (Lease, u64, u64);

impl<K: Kv> Crowd<K> {
    /// Splits until there are so many. So many threads acquire, and `compact` is called now and then.
    fn grow(
        mut coordinator: EtcdCoordinator<K>,
        shards: usize,
        threads: usize,
        compact: impl Fn(&K),
    ) -> Self {
        begin(&mut coordinator, 1, 1 << 40).unwrap();
        let scratch = Box::new(AcquireScratch::new());
        let mut crowd = Self { coordinator, leases: Vec::new(), workers: 0, scratch };
        let mut ranges = vec![crowd.claim_one()];
        let mut next = 0;
        while ranges.len() - next < shards {
            let (lease, first, end) = ranges[next];
            next += 1;
            let step = (end - first) / CHILDREN;
            let points: Vec<_> = (1..CHILDREN).map(|part| key(first + part * step)).collect();
            let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
            let (from, to) = (key(first), key(end));
            let range = ShardSpecRef::new(&from, &to, b"");
            let plan = plan_split_replace_at_points(range, &points).unwrap();
            let split =
                crowd.coordinator.split_replace(at(CLAIMED_MS), TENANT, &lease, &plan, op(1));
            // By their names: a claim looks at everything that is held.
            let children = split.unwrap().into_inner().children;
            ranges.extend(crowd.acquire_all(&children, threads));
            if next.is_multiple_of(20) {
                compact(crowd.coordinator.kv());
            }
        }
        crowd.leases = ranges[next..].iter().map(|(lease, ..)| *lease).collect();
        crowd
    }

    fn claim_one(&mut self) -> HeldRange {
        let (lease, state) = self.claim(at(CLAIMED_MS));
        Self::range(lease, &state)
    }

    /// Acquires of workers that hold nothing yet.
    fn acquire_all(&mut self, shards: &[ShardId], threads: usize) -> Vec<HeldRange> {
        let first_worker = self.workers + 1;
        self.workers += shards.len() as u64;
        let workers = (first_worker..=self.workers).map(WorkerId::from_raw);
        let pairs: Vec<_> = shards.iter().copied().zip(workers).collect();
        let coordinator = &self.coordinator;
        let acquire_part = |pairs: &[(ShardId, WorkerId)]| {
            let (mut coordinator, mut scratch) =
                (coordinator.clone(), Box::new(AcquireScratch::new()));
            let mut acquire = |&(shard, worker): &(ShardId, WorkerId)| {
                let (now, key) = (at(CLAIMED_MS), ShardKey::new(RUN, shard));
                let acquired =
                    coordinator.acquire_and_restore_into(now, TENANT, key, worker, &mut scratch);
                let acquired = acquired.unwrap();
                Self::range(acquired.lease, &acquired.to_restored_state())
            };
            pairs.iter().map(&mut acquire).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let parts = pairs.chunks(pairs.len().div_ceil(threads));
            let running: Vec<_> =
                parts.map(|part| scope.spawn(move || acquire_part(part))).collect();
            running.into_iter().flat_map(|part| part.join().unwrap()).collect()
        })
    }

    fn range(lease: Lease, state: &RestoredShardState) -> HeldRange {
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
        let range = state.spec.as_ref();
        (lease, number(range.start()), number(range.end()))
    }

    /// A claim of a worker that holds nothing yet.
    fn claim(&mut self, now: LogicalTime) -> (Lease, RestoredShardState) {
        self.workers += 1;
        let (worker, scratch) = (WorkerId::from_raw(self.workers), &mut self.scratch);
        let claimed = self.coordinator.claim_next_available(now, TENANT, RUN, worker, scratch);
        let claimed = claimed.unwrap_or_else(|error| panic!("worker {worker:?}: {error}"));
        (claimed.lease, claimed.to_restored_state())
    }

    /// Has the only shard to be had be free, and then have expired. `claim` is asked both times, and
    /// must get it.
    fn offer<R>(
        &mut self,
        number: usize,
        mut claim: impl FnMut(&mut Self, LogicalTime) -> (Lease, R),
    ) -> [R; 2] {
        let lease = self.leases[number];
        self.coordinator.release(at(CLAIMED_MS), TENANT, &lease).unwrap();
        let (free, of_free) = claim(self, at(CLAIMED_MS + 1));
        assert_eq!(free.shard(), lease.shard());

        // Held since long before the others.
        self.coordinator.release(at(CLAIMED_MS), TENANT, &free).unwrap();
        self.workers += 1;
        let (worker, scratch) = (WorkerId::from_raw(self.workers), &mut self.scratch);
        let early =
            self.coordinator.acquire_and_restore_into(NOW, TENANT, lease.key(), worker, scratch);
        let deadline = early.unwrap().lease.deadline();
        let skew_ms = self.coordinator.config().skew_allowance.as_millis() as u64;
        let over = LogicalTime::from_raw(deadline.as_raw() + skew_ms);
        let (taken, of_expired) = claim(self, over);
        assert_eq!(taken.shard(), lease.shard());
        self.leases[number] = taken;
        [of_free, of_expired]
    }
}

impl Crowd<SimKv> {
    fn on_model(shards: usize) -> Self {
        let config = of_large_splits(config(["http://nowhere:1".into()]));
        let coordinator = EtcdCoordinator::on_model(SimKv::new(), config).unwrap();
        // As on any cluster; a model that keeps every deleted key is slow.
        Self::grow(coordinator, shards, 1, |kv| kv.compact(kv.revision()).unwrap())
    }

    /// What the next claim gets, and for what.
    fn measured_claim(&mut self, now: LogicalTime) -> (Lease, Cost) {
        let kv = self.coordinator.kv().clone();
        // What was deleted since says nothing of the run's size.
        kv.compact(kv.revision()).unwrap();
        let counts = Arc::new([const { AtomicUsize::new(0) }; 3]);
        let (counted, store) = (Arc::clone(&counts), kv.clone());
        kv.intercept(move |txn| {
            let entries = txn.then.iter().map(|op| match op {
                Op::Read(read) if read.limit > 0 => read.limit,
                // Now and then a claim counts, which returns nothing.
                Op::Read(read) if read.wanted == Wanted::Count => 0,
                Op::Read(read) => {
                    assert!(read.range.end().is_none(), "{read:?} has no limit");
                    1
                }
                Op::Put { .. } | Op::Delete(_) | Op::DeleteRange(_) => 0,
            });
            counted[0].fetch_add(1, Ordering::Relaxed);
            counted[1].fetch_add(entries.sum(), Ordering::Relaxed);
            let walks = txn.then.iter().map(|op| match op {
                Op::Read(read) if !txn.writes() && read.range.end().is_some() => {
                    store.walked(&read.range)
                }
                _ => 0,
            });
            counted[2].fetch_add(walks.sum(), Ordering::Relaxed);
            Interception::Pass
        });
        let (lease, _) = self.claim(now);
        kv.pass_all();
        let [trips, entries, walked] = [0, 1, 2].map(|at| counts[at].load(Ordering::Relaxed));
        (lease, Cost { trips, entries, walked })
    }

    /// The costs of claims when the only shard to be had is free, and when it has expired.
    fn costs(&mut self, number: usize) -> [Cost; 2] {
        self.offer(number, Self::measured_claim)
    }
}

fn of_large_splits(config: EtcdConfig) -> EtcdConfig {
    EtcdConfig { max_split_children: CHILDREN as usize, ..config }
}

/// Of a long list of free shards a claim reads a part, a hint counts one, and both are enough: every
/// shard is claimed once, nothing is promised that is not there, and the end is noticed.
#[test]
fn a_long_list_of_free_shards_is_claimed_to_its_end() {
    const SHARDS: u64 = 2_000;
    let kv = SimKv::new();
    let config = config(["http://nowhere:1".into()]);
    let mut coordinator = EtcdCoordinator::on_model(kv.clone(), config).unwrap();
    begin(&mut coordinator, SHARDS, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let (mut claimed, mut estimates) = (BTreeSet::new(), 0);
    for worker in 1..=SHARDS {
        let worker = WorkerId::from_raw(worker);
        let view =
            coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
        assert!(claimed.insert(view.lease.shard()), "a shard was claimed twice");
        let (left, hint) = (SHARDS - claimed.len() as u64, view.capacity);
        let said = u64::from(hint.available_count);
        if hint.is_estimate {
            estimates += 1;
            assert!(said <= left, "{said} of {left}");
            // A hint counts the free shards among some 256 that lie together, of all that the run has:
            // of these all may be taken before the others are, but not long before.
            assert!(said > 0 || left < SHARDS / 8, "none of {left}");
        } else {
            assert_eq!(said, left);
        }
    }
    assert!(estimates > SHARDS / 2, "{estimates} hints counted a part");
    let worker = WorkerId::from_raw(SHARDS + 1);
    let none = coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch);
    assert!(matches!(none, Err(ClaimError::NoneAvailable { .. })));
}

/// Has a worker complete shards of a run until `left` are left, and keep the last that it claimed.
fn complete_until(left: u64, shards: u64) -> (SimKv, EtcdCoordinator<SimKv>, Lease) {
    let (kv, keys) = (SimKv::new(), 10);
    let config = config(["http://nowhere:1".into()]);
    let mut coordinator = EtcdCoordinator::on_model(kv.clone(), config).unwrap();
    begin(&mut coordinator, shards, keys).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    for count in 0.. {
        let claimed =
            coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap();
        let lease = claimed.lease;
        if count == shards - left {
            return (kv, coordinator, lease);
        }
        let last = key((lease.shard().as_raw() + 1) * keys);
        coordinator.complete(NOW, TENANT, &lease, CursorUpdate::at(&last), op(count)).unwrap();
    }
    unreachable!("shards come to an end")
}

/// Over how many keys etcd walks for a renewal.
fn walked_by(kv: &SimKv, renew: impl FnOnce()) -> usize {
    let (walked, store) = (Arc::new(AtomicUsize::new(0)), kv.clone());
    let counted = Arc::clone(&walked);
    kv.intercept(move |txn| {
        assert!(txn.writes(), "a renewal is one round trip");
        let walks = txn.then.iter().map(|op| match op {
            Op::Read(read) => store.walked(&read.range),
            Op::Put { .. } | Op::Delete(_) | Op::DeleteRange(_) => 0,
        });
        counted.fetch_add(walks.sum(), Ordering::Relaxed);
        Interception::Pass
    });
    renew();
    kv.pass_all();
    walked.load(Ordering::Relaxed)
}

/// Has a worker checkpoint and renew, and says over how many keys etcd walks for that.
fn walked_by_renewal(
    kv: &SimKv,
    coordinator: &mut EtcdCoordinator<SimKv>,
    lease: &Lease,
    number: u64,
) -> usize {
    let first = key(lease.shard().as_raw() * 10 + 1);
    let token = number.to_be_bytes();
    let cursor = CursorUpdate::new(Some(&first), Some(&token));
    let (now, op) = (at(number), op(1_000_000 + number));
    walked_by(kv, || {
        coordinator.checkpoint_and_renew(now, TENANT, lease, cursor, op).unwrap();
    })
}

/// A run that was small when it was counted, and that the coordinator has made large since.
#[test]
fn a_renewal_reads_little_in_a_run_that_its_own_coordinator_has_split() {
    let Crowd { mut coordinator, leases, .. } = Crowd::on_model(1_200);
    let (kv, lease) = (coordinator.kv().clone(), leases.last().expect("there are some"));
    kv.compact(kv.revision()).unwrap();
    // From then on it remembers the shard.
    coordinator.renew(at(CLAIMED_MS), TENANT, lease).unwrap();
    let walked = walked_by(&kv, || {
        coordinator.renew(at(CLAIMED_MS), TENANT, lease).unwrap();
    });
    // 256 held ones, and as evenly as ids are spread.
    assert!((1..400).contains(&walked), "{walked}");
}

/// Every other write waits for what a renewal reads, so that it must not read more and more, neither
/// after many renewals nor late in a run, though nothing is compacted.
#[test]
fn a_renewal_reads_little_after_many_and_late_in_a_run() {
    let (kv, mut coordinator, lease) = complete_until(100, 100);
    let first = walked_by_renewal(&kv, &mut coordinator, &lease, 1);
    for number in 2..200 {
        assert_eq!(walked_by_renewal(&kv, &mut coordinator, &lease, number), first);
    }
    let (kv, mut coordinator, lease) = complete_until(5, 1_200);
    let late = walked_by_renewal(&kv, &mut coordinator, &lease, 1);
    // 256 free and as many held ones, dead or alive, and as evenly as ids are spread.
    assert!(late < 700, "{late}");
}

/// Wherever the one shard that can be had is, the first claim gets it, in as many round trips and for as
/// many entries as in a small run. What grows is what etcd does for it: it walks over every held shard
/// once to sort them. A soak has 50 000 shards.
#[test]
fn the_first_claim_gets_the_only_shard_to_be_had_whatever_the_size_of_the_run() {
    let mut small = Crowd::on_model(CHILDREN as usize);
    let in_a_small_run = small.costs(7);
    let mut crowd = Crowd::on_model(if is_soak() { 50_000 } else { 2_000 });
    let last = crowd.leases.len() - 1;
    let more_held = crowd.leases.len() - small.leases.len();
    let expected = in_a_small_run.map(|cost| Cost { walked: cost.walked + more_held, ..cost });
    for number in [0, 1, last / 3, last / 2, last - 1, last] {
        assert_eq!(crowd.costs(number), expected, "shard {number} of {last}");
    }
}

/// The same on a real server.
#[test]
fn the_first_claim_on_a_server_gets_the_only_shard_to_be_had_of_a_run_that_splits_made_large() {
    let server = EtcdServer::start();
    let coordinator = EtcdCoordinator::connect(of_large_splits(server.config())).unwrap();
    let mut crowd = Crowd::grow(coordinator, if is_soak() { 50_000 } else { 250 }, 4, |_| ());
    let last = crowd.leases.len() - 1;
    for number in [0, last / 2, last] {
        crowd.offer(number, |crowd, now| (crowd.claim(now).0, ()));
    }
    // And then there is none.
    let worker = WorkerId::from_raw(crowd.workers + 1);
    let (now, scratch) = (at(CLAIMED_MS + 1), &mut crowd.scratch);
    let none = crowd.coordinator.claim_next_available(now, TENANT, RUN, worker, scratch);
    assert!(matches!(none, Err(ClaimError::NoneAvailable { earliest_deadline: Some(_) })));
}

fn is_soak() -> bool {
    scaled(1) > 1
}
