//! The suite of all coordinators, on the model and on a real server. Reopening is a crash: nobody
//! revokes the lease of the process before.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use gossip_contracts::coordination::MAX_INITIAL_SHARDS;
use gossip_coordination::conformance::{CASES, Caps, Case, Dump, Harness, Limits, run_case};
use gossip_coordination::{EventCollector, ShardLimits};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{EtcdKv, Kv, SimKv};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::server::{Cluster, EtcdServer, config};

/// Where the suite is run.
trait Place: 'static {
    type Kv: Kv;
    /// A store whose keys nobody else uses.
    fn open(config: &EtcdConfig) -> Self::Kv;
    fn coordinator(kv: &Self::Kv, config: EtcdConfig) -> EtcdCoordinator<Self::Kv>;
    fn endpoints() -> Vec<String>;
}

struct Model;

impl Place for Model {
    type Kv = SimKv;

    fn open(_: &EtcdConfig) -> SimKv {
        SimKv::new()
    }

    fn coordinator(kv: &SimKv, config: EtcdConfig) -> EtcdCoordinator<SimKv> {
        EtcdCoordinator::on_model(kv.clone(), config).expect("the configuration is valid")
    }

    fn endpoints() -> Vec<String> {
        vec!["http://nowhere:1".into()]
    }
}

/// A cluster of so many members.
struct Members<const N: usize>;

/// Their URLs, by how many there are, once a test has started them.
static URLS: [OnceLock<Vec<String>>; 4] = [const { OnceLock::new() }; 4];

impl<const N: usize> Place for Members<N> {
    type Kv = EtcdKv;

    fn open(config: &EtcdConfig) -> EtcdKv {
        wait(EtcdKv::connect(config)).expect("the cluster is there")
    }

    fn coordinator(_: &EtcdKv, config: EtcdConfig) -> EtcdCoordinator {
        EtcdCoordinator::connect(config).expect("the cluster is there")
    }

    fn endpoints() -> Vec<String> {
        URLS[N].get().expect("they were started").clone()
    }
}

/// On a runtime that outlives every case, as connections do.
fn wait<T>(answer: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().unwrap()).block_on(answer)
}

/// Records and totals. All other keys follow from the records, which [`Stored::check`] looks after.
fn dump(stored: &Stored) -> Dump {
    let mut dump = Dump::new();
    for run in stored.runs() {
        let key = stored.keyspace().run(run.tenant, run.run).record();
        dump.add_stored_run(run.tenant, run.run, stored.record(&key).expect("it was read"));
    }
    for shard in stored.shards() {
        let key = stored.keyspace().run(shard.tenant, shard.key.run).shard(shard.key.shard);
        dump.add_stored_shard(shard.tenant, shard.key, stored.record(&key).expect("it was read"));
    }
    for entry in stored.entries().filter(|entry| entry.key.ends_with(b"/shards")) {
        dump.add_raw(entry.key.escape_ascii().to_string(), &entry.value[..]);
    }
    dump
}

struct On<P: Place> {
    kv: P::Kv,
    config: EtcdConfig,
    coordinator: Option<EtcdCoordinator<P::Kv>>,
    /// What is stored, until somebody can have changed it. The suite looks three times at every call.
    seen: Option<Stored>,
    /// Whether there are other processes, which change what is stored without notice.
    has_others: bool,
}

impl<P: Place> On<P> {
    fn stored(&mut self) -> &Stored {
        if self.has_others {
            self.seen = None;
        }
        let coordinator = self.coordinator.as_ref().expect("it is open");
        let read = || wait(Stored::read(&self.kv, coordinator.keyspace()));
        self.seen.get_or_insert_with(read)
    }
}

impl<P: Place> Harness for On<P> {
    type Backend = EtcdCoordinator<P::Kv>;
    // Each waits for the disks of a cluster.
    const CLAIMS_AMONG_MANY: u64 = 500;

    fn caps() -> Caps {
        Caps {
            max_split_children: 8,
            max_split_bytes: 1_400_000,
            max_initial_shards: MAX_INITIAL_SHARDS,
            takeover_delay: 2_000,
            shard_ceilings: true,
            claim_cooldown: true,
            byte_capacity: false,
            durable: true,
        }
    }

    fn open(limits: &Limits) -> Self {
        let mut config = config(P::endpoints());
        config.limits =
            ShardLimits { per_tenant: limits.shards_per_tenant, global: limits.shards_total };
        config.claim_cooldown = Duration::from_millis(limits.claim_cooldown);
        config.skew_allowance = Duration::from_millis(Self::caps().takeover_delay);
        // Time passes only where the suite says so.
        config.owner_lease_ttl = Duration::from_secs(600);
        let kv = P::open(&config);
        let coordinator = killable::<P>(&kv, &config);
        Self { kv, config, coordinator: Some(coordinator), seen: None, has_others: false }
    }

    fn backend(&mut self) -> &mut EtcdCoordinator<P::Kv> {
        self.seen = None;
        self.coordinator.as_mut().expect("it is open")
    }

    fn reopen(&mut self) {
        self.coordinator = Some(killable::<P>(&self.kv, &self.config));
    }

    fn connect(&mut self) -> Option<EtcdCoordinator<P::Kv>> {
        self.has_others = true;
        Some(killable::<P>(&self.kv, &self.config))
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut EtcdCoordinator<P::Kv>) -> R,
    ) -> R {
        self.backend().with_events(collector, f)
    }

    fn dump(&mut self) -> Dump {
        dump(self.stored())
    }

    fn assert_consistent(&mut self) {
        self.stored().check(None).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

fn killable<P: Place>(kv: &P::Kv, config: &EtcdConfig) -> EtcdCoordinator<P::Kv> {
    let coordinator = P::coordinator(kv, config.clone()).with_model_time();
    coordinator.end_as_if_killed();
    coordinator
}

mod on_the_model {
    gossip_coordination::conformance_suite!(super::On<super::Model>);
}

/// One server for all cases: starting one for each would take longer than the cases do.
#[test]
fn the_suite_passes_on_a_real_server() {
    let server = EtcdServer::start();
    // The longest first, so that none of them is left alone at the end.
    let mut cases = CASES.to_vec();
    cases.sort_by_key(|case| {
        !matches!(case.family, "scale" | "split_limits" | "reopen" | "run_end")
    });
    run_all::<1>(vec![server.url()], &cases);
}

/// Some of each family: what a member may do that a server by itself does not is lose its leader or
/// lag behind, and a case costs three times as much.
#[test]
fn a_part_of_the_suite_passes_on_a_cluster_of_three() {
    let cluster = Cluster::start();
    let part: Vec<Case> = CASES.iter().step_by(8).copied().collect();
    run_all::<3>(cluster.config().endpoints, &part);
}

/// Runs cases on the members, several at a time.
fn run_all<const N: usize>(urls: Vec<String>, cases: &[Case]) {
    URLS[N].set(urls).expect("one test starts them");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (name, started) = (format!("{}::{}", case.family, case.name), Instant::now());
            let run = || run_case::<On<Members<N>>>(case.family, case.name);
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                failed.lock().unwrap().push(name.clone());
            }
            println!("{name}: {:.2} s", started.elapsed().as_secs_f64());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), cases.len());
}
