//! The fleet's coordinator under simulation, on a model of etcd.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gossip_coordination::{EventCollector, RunRecord, ShardRecordView, SplitCaps};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{Interception, Op, Revision, SimKv, Txn};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::{BackendLimits, Disturbed, Effective, Overtaken, Rival, SimulatedBackend, StoreFault};

/// Processes that use the cluster.
const HANDLES: usize = 2;

/// Shards of one page of a listing: few, as runs here are small.
const PAGE: NonZeroUsize = NonZeroUsize::new(2).unwrap();

/// Tries of an operation before it gives up.
const ATTEMPTS: u32 = 4;

/// A model of a cluster, and two processes that use it in turns.
pub struct Etcd {
    kv: SimKv,
    config: EtcdConfig,
    handles: Vec<EtcdCoordinator<SimKv>>,
    turns: usize,
    /// When leases of processes last ended while these lived.
    silent_at: Option<Revision>,
}

impl Etcd {
    fn start(&mut self) {
        self.handles = (0..HANDLES).map(|_| connect(&self.kv, &self.config)).collect();
    }

    /// The handle whose turn it is: one for a few operations, then the other.
    fn handle(&mut self) -> &mut EtcdCoordinator<SimKv> {
        self.turns += 1;
        let at = self.turns / 3 % self.handles.len();
        &mut self.handles[at]
    }

    fn stored(&self) -> Stored {
        self.stored_in(&self.kv)
    }

    fn stored_in(&self, kv: &SimKv) -> Stored {
        Stored::of(self.handles[0].keyspace(), kv.entries())
    }

    /// What `f` says on a store that does not fail, if that leaves what is stored here and reports more
    /// than the `told` events, which are then completed. Some steps of a registration by themselves are
    /// nobody's business.
    fn would_say<R>(
        &self,
        collector: &mut EventCollector,
        told: usize,
        copy: &SimKv,
        f: impl FnOnce(&mut EtcdCoordinator<SimKv>) -> R,
    ) -> Option<R> {
        let mut reported = EventCollector::new();
        let said = connect(copy, &self.config).with_events(&mut reported, f);
        if reported.len() == told || !self.stored_in(copy).contents().eq(self.stored().contents()) {
            return None;
        }
        reported.drain().into_iter().skip(told).for_each(|event| {
            collector.emit(event);
        });
        Some(said)
    }

    /// Has `fault` decide about each transaction until one that changes something has passed.
    fn arm(&self, mut fault: impl FnMut(&Txn) -> Interception + Send + 'static) {
        let mut is_over = false;
        self.kv.intercept(move |txn| {
            if is_over {
                return Interception::Pass;
            }
            let interception = fault(txn);
            is_over = txn.writes() && interception == Interception::Pass;
            interception
        });
    }
}

/// A process that is killed rather than closed.
fn connect(kv: &SimKv, config: &EtcdConfig) -> EtcdCoordinator<SimKv> {
    let coordinator = EtcdCoordinator::on_model(kv.clone(), config.clone());
    let coordinator = coordinator.expect("the configuration is valid").with_model_time();
    let coordinator = coordinator.with_pages_of(PAGE);
    coordinator.end_as_if_killed();
    coordinator
}

/// Whether the transaction parks a shard. One operation may park several before it does what it is
/// for, and those stay parked whatever becomes of it.
fn parks(txn: &Txn) -> bool {
    let is_parked = |key: &[u8]| key.windows(8).any(|part| part == b"/parked/");
    txn.then.iter().any(|op| matches!(op, Op::Put { key, .. } if is_parked(key.as_bytes())))
}

/// What happens to each transaction.
fn fault_of(fault: StoreFault, turn: usize) -> impl FnMut(&Txn) -> Interception + Send + 'static {
    let mut seen = 0;
    let mut is_cut_off = false;
    move |txn| {
        seen += 1;
        match fault {
            StoreFault::Busy => Interception::Refuse,
            // A rival that writes something else is no fault here: nothing is locked.
            StoreFault::Rival { .. } => Interception::Pass,
            StoreFault::Interrupted { after } if seen > after % 3 => Interception::LoseRequest,
            StoreFault::Interrupted { .. } => Interception::Pass,
            StoreFault::Full if txn.writes() => Interception::NoSpace,
            StoreFault::CommitRefused if txn.writes() => Interception::LoseRequest,
            StoreFault::Full | StoreFault::CommitRefused => Interception::Pass,
            StoreFault::CommitUnknown if is_cut_off => Interception::LoseRequest,
            StoreFault::CommitUnknown if txn.writes() => {
                // Mostly the answer alone is lost, and found out; now and then nothing comes after.
                is_cut_off = turn.is_multiple_of(3) && !parks(txn);
                Interception::LoseReply
            }
            StoreFault::CommitUnknown => Interception::Pass,
        }
    }
}

impl SimulatedBackend for Etcd {
    type Backend = EtcdCoordinator<SimKv>;
    const HAS_COOLDOWN: bool = false;
    const IS_DURABLE: bool = true;
    const HAS_CAPS: bool = true;
    const CLAIMS_IN_TURN: bool = false;
    const HINTS_OF_ALL_MAX: usize = 256;
    const CLAIMS_AT_ONCE: bool = false;
    const FULL_MAY_PASS: bool = false;
    const HAS_OWNERS: bool = true;
    const WORKS_IN_STEPS: bool = true;
    const SPLIT_MAX: SplitCaps = SplitCaps { max_children: 60, max_bytes: 1_400_000 };

    fn open(limits: &BackendLimits) -> Self {
        let mut config = EtcdConfig::new(["http://simulated:1"]);
        config.limits = limits.shards;
        config.skew_allowance = Duration::from_millis(limits.skew_allowance);
        config.max_split_children = limits.split.max_children;
        config.max_split_bytes = limits.split.max_bytes;
        config.attempts = ATTEMPTS;
        config.backoff_min = Duration::from_nanos(1);
        config.backoff_max = Duration::from_nanos(1);
        let (kv, handles) = (SimKv::new(), Vec::new());
        let mut subject = Self { kv, config, handles, turns: 0, silent_at: None };
        subject.start();
        subject
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut EtcdCoordinator<SimKv>) -> R,
    ) -> R {
        self.handle().with_events(collector, f)
    }

    fn reopen(&mut self) {
        self.start();
        // History that nobody reads any more is compacted as on any cluster.
        let _ = self.kv.compact(self.kv.revision());
    }

    fn end_silent_processes(&mut self) {
        self.kv.advance_ms(self.config.owner_lease_ttl.as_millis() as u64);
        self.silent_at = Some(self.kv.revision());
    }

    fn crash_during<R>(
        &mut self,
        collector: &mut EventCollector,
        written: u64,
        f: impl FnOnce(&mut EtcdCoordinator<SimKv>) -> R,
    ) -> Option<(R, bool)> {
        // A transaction is carried out or not; nothing is half written.
        if written >= 500 {
            let result = self.with_events(collector, f);
            self.reopen();
            return Some((result, true));
        }
        // What it would have said and reported, had it not died before.
        let copy = self.kv.copy();
        let result = connect(&copy, &self.config).with_events(collector, f);
        self.reopen();
        Some((result, false))
    }

    fn disturbed<R>(
        &mut self,
        collector: &mut EventCollector,
        fault: StoreFault,
        mut f: impl FnMut(&mut EtcdCoordinator<SimKv>) -> R,
    ) -> Option<Disturbed<R>> {
        let (reported, copy, before) = (collector.len(), self.kv.copy(), self.kv.revision());
        self.arm(fault_of(fault, self.turns));
        let told = self.handle().with_events(collector, &mut f);
        self.kv.pass_all();
        // Every change reports itself, unless its transaction was not answered. A claim may have
        // reported what it parked before that one.
        let (has_changed, events) = (self.kv.revision() != before, collector.len() - reported);
        let unsaid =
            has_changed.then(|| self.would_say(collector, events, &copy, &mut f)).flatten();
        Some(Disturbed { told, unsaid })
    }

    fn overtaken<R: Send + 'static>(
        &mut self,
        collector: &mut EventCollector,
        after: u32,
        effect: Effective,
        f: impl FnOnce(&mut EtcdCoordinator<SimKv>) -> R,
        rival: impl FnOnce(&mut EtcdCoordinator<SimKv>) -> R + Send + 'static,
    ) -> Option<Overtaken<R>> {
        let came: Arc<Mutex<Option<Rival<R>>>> = Arc::default();
        let (theirs, seen, has_written) =
            (Arc::clone(&came), AtomicU32::new(0), AtomicBool::new(false));
        let mut rival = Some(rival);
        let mut other = connect(&self.kv, &self.config);
        // A change is a read and a write; a registration is three of these, and a listing its pages.
        let moment = after
            % match effect {
                Effective::WithItsChange => 2,
                Effective::AtItsEnd => 6,
                Effective::AtItsBeginning => 4,
            };
        let is_second = effect == Effective::AtItsBeginning && moment > 0;
        self.kv.intercept(move |txn| {
            let is_time = seen.fetch_add(1, Ordering::Relaxed) == moment;
            let is_over = effect == Effective::WithItsChange && has_written.load(Ordering::Relaxed);
            if is_time && !is_over {
                let rival = rival.take().expect("it comes once");
                // A thread of its own: this one is inside the first process's runtime.
                let (told, events) = std::thread::scope(|scope| {
                    let run = || {
                        let mut collector = EventCollector::new();
                        let told = other.with_events(&mut collector, rival);
                        (told, collector.drain())
                    };
                    scope.spawn(run).join().expect("the other process does not panic")
                });
                let came = Rival { told, events, is_second };
                *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(came);
            }
            has_written.fetch_or(txn.writes(), Ordering::Relaxed);
            Interception::Pass
        });
        let told = self.handle().with_events(collector, f);
        self.kv.pass_all();
        let rival = came.lock().unwrap_or_else(PoisonError::into_inner).take();
        Some(Overtaken { told, rival })
    }

    fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord)) {
        self.stored().runs().iter().for_each(f);
    }

    fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>)) {
        // What a registration that failed half-way has staged is nobody's yet (V4).
        let (stored, runs) = (self.stored(), self.stored().runs());
        let shown: HashSet<_> =
            runs.iter().filter(|run| run.shows_shards()).map(|run| (run.tenant, run.run)).collect();
        let shards = stored.shards().into_iter();
        let shards = shards.filter(|shard| shown.contains(&(shard.tenant, shard.key.run)));
        shards.for_each(|shard| f(&shard.view()));
    }

    fn check_consistent(&mut self) -> Result<(), String> {
        self.stored().check(self.silent_at)
    }
}
