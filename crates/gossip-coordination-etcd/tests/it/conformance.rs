//! The suite of all coordinators, on the model and on a real server. Reopening is a crash: nobody
//! revokes the lease of the process before.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use gossip_contracts::coordination::MAX_INITIAL_SHARDS;
use gossip_coordination::conformance::{CASES, Caps, Dump, Harness, Limits, run_case};
use gossip_coordination::{EventCollector, ShardLimits};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{EtcdKv, Kv, SimKv};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::server::{EtcdServer, config};

/// What differs between the model and a server.
trait Place: Kv {
    /// A store whose keys nobody else uses.
    fn open(config: &EtcdConfig) -> Self;
    fn coordinator(&self, config: EtcdConfig) -> EtcdCoordinator<Self>;
    fn endpoint() -> String;
}

impl Place for SimKv {
    fn open(_: &EtcdConfig) -> Self {
        Self::new()
    }

    fn coordinator(&self, config: EtcdConfig) -> EtcdCoordinator<Self> {
        EtcdCoordinator::on_model(self.clone(), config).expect("the configuration is valid")
    }

    fn endpoint() -> String {
        "http://nowhere:1".into()
    }
}

static ENDPOINT: OnceLock<String> = OnceLock::new();

impl Place for EtcdKv {
    fn open(config: &EtcdConfig) -> Self {
        wait(Self::connect(config)).expect("the server is there")
    }

    fn coordinator(&self, config: EtcdConfig) -> EtcdCoordinator<Self> {
        EtcdCoordinator::connect(config).expect("the server is there")
    }

    fn endpoint() -> String {
        ENDPOINT.get().expect("a server was started").clone()
    }
}

/// On a runtime that outlives every case, as connections do.
fn wait<T>(answer: impl Future<Output = T>) -> T {
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().unwrap()).block_on(answer)
}

/// Records and totals. All other keys follow from the records, which [`Stored::check`] looks after.
pub(crate) fn dump(stored: &Stored) -> Dump {
    let mut dump = Dump::new();
    for run in stored.runs() {
        let key = stored.keyspace().run(run.tenant, run.run).record();
        dump.add_stored_run(run.tenant, run.run, stored.value(&key).expect("it was read"));
    }
    for shard in stored.shards() {
        let key = stored.keyspace().run(shard.tenant, shard.key.run).shard(shard.key.shard);
        dump.add_stored_shard(shard.tenant, shard.key, stored.value(&key).expect("it was read"));
    }
    for entry in stored.entries().filter(|entry| entry.key.ends_with(b"/shards")) {
        dump.add_raw(entry.key.escape_ascii().to_string(), &entry.value[..]);
    }
    dump
}

struct On<K: Place> {
    kv: K,
    config: EtcdConfig,
    coordinator: Option<EtcdCoordinator<K>>,
}

impl<K: Place> On<K> {
    fn stored(&mut self) -> Stored {
        let keyspace = self.backend().as_async().keyspace().clone();
        wait(Stored::read(&self.kv, &keyspace))
    }
}

impl<K: Place> Harness for On<K> {
    type Backend = EtcdCoordinator<K>;

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
        let mut config = config([K::endpoint()]);
        config.limits =
            ShardLimits { per_tenant: limits.shards_per_tenant, global: limits.shards_total };
        config.claim_cooldown = Duration::from_millis(limits.claim_cooldown);
        config.skew_allowance = Duration::from_millis(Self::caps().takeover_delay);
        // Time passes only where the suite says so.
        config.owner_lease_ttl = Duration::from_secs(600);
        let kv = K::open(&config);
        let mut opened = Self { kv, config, coordinator: None };
        opened.reopen();
        opened
    }

    fn backend(&mut self) -> &mut EtcdCoordinator<K> {
        self.coordinator.as_mut().expect("it is open")
    }

    fn reopen(&mut self) {
        self.coordinator = self.connect();
    }

    fn connect(&mut self) -> Option<EtcdCoordinator<K>> {
        let coordinator = self.kv.coordinator(self.config.clone());
        coordinator.end_as_if_killed();
        Some(coordinator)
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut EtcdCoordinator<K>) -> R,
    ) -> R {
        self.backend().with_events(collector, f)
    }

    fn dump(&mut self) -> Dump {
        dump(&self.stored())
    }

    fn assert_consistent(&mut self) {
        self.stored().check(false).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

mod on_the_model {
    gossip_coordination::conformance_suite!(super::On<gossip_coordination_etcd::kv::SimKv>);
}

/// One server for all cases: starting one for each would take longer than the cases do.
#[test]
fn the_suite_passes_on_a_real_server() {
    let server = EtcdServer::start();
    ENDPOINT.set(server.url()).expect("only this test starts one");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(case) = CASES.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (name, started) = (format!("{}::{}", case.family, case.name), Instant::now());
            let run = || run_case::<On<EtcdKv>>(case.family, case.name);
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                failed.lock().unwrap().push(name.clone());
            }
            println!("{name}: {:.1} s", started.elapsed().as_secs_f64());
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), CASES.len());
}
