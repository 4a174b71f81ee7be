//! The fleet's coordinator beside raw transactions on the same server.
//!
//! The reference of a checkpoint is a transaction with the same compares and reads, that puts the same
//! bytes; that of a registration, transactions of the same puts. Both sides take turns in rounds, and
//! each is judged by its fastest quarter. What a claim asks of etcd is counted on the model, where one
//! shard is free, and timed on the server, where all are: its ratio is to 1000 shards. Keep-alives are
//! counted by the server; their ratio is to one held shard. Renewals after very many are beside the
//! first ones, with nothing compacted in between. The server is one member with its files on disk, so
//! that every write waits for it.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gossip_bench::figure;
use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, plan_split_replace_at_points,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireScratch, AsyncCoordinationBackend, AsyncRunManagement, AsyncShardClaiming, Lease,
    RunConfig, ShardLimits,
};
use gossip_coordination_etcd::keyspace::Keyspace;
use gossip_coordination_etcd::kv::{EtcdKv, Interception, Kv, Op, Read, SimKv, Txn, Wanted};
use gossip_coordination_etcd::{AsyncEtcdCoordinator, EtcdConfig};
use tokio::runtime::Runtime;

const TENANT: TenantId = TenantId::from_bytes([7; 32]);
const RUN: RunId = RunId::from_raw(1);
const NOW: LogicalTime = LogicalTime::from_raw(1_700_000_000_000);
const ROUNDS: usize = 12;
/// What the server calls the number of keep-alives in its metrics.
const RENEWED: &str = "etcd_debugging_lease_renewed_total ";

/// `cargo bench --bench etcd -- claim` runs the figures whose name starts so.
fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let runtime = Runtime::new().expect("a runtime starts");
    let run = |name: &str, measure: &dyn Fn()| {
        if name.starts_with(&wanted) {
            measure();
        }
    };
    run("checkpoint", &|| {
        for workers in [1, 16] {
            runtime.block_on(checkpoints(workers));
        }
    });
    run("renew", &|| runtime.block_on(renewals()));
    run("claim", &|| {
        runtime.block_on(claims());
        runtime.block_on(timed_claims());
    });
    run("keepalive", &|| runtime.block_on(keep_alives()));
    run("register", &|| runtime.block_on(registration()));
}

struct Server {
    child: Child,
    url: String,
    // Declared last: the process ends before its directory goes.
    _dir: tempfile::TempDir,
}

impl Server {
    async fn start() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let ports = [(); 2].map(|()| std::net::TcpListener::bind("127.0.0.1:0").expect("a port"));
        let [client, peer] = ports
            .map(|it| format!("http://127.0.0.1:{}", it.local_addr().expect("an address").port()));
        let program = std::env::var_os("GOSSIP_ETCD")
            .expect("GOSSIP_ETCD is not set: cargo xtask bench etcd sets it");
        let child = Command::new(program)
            .args(["--name", "one", "--log-level", "error", "--logger", "zap"])
            .arg("--data-dir")
            .arg(dir.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("one={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("etcd starts");
        let server = Self { child, url: client, _dir: dir };
        let give_up_at = Instant::now() + Duration::from_secs(60);
        while EtcdKv::connect(&server.config()).await.is_err() {
            assert!(Instant::now() < give_up_at, "etcd does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        server
    }

    /// How many keep-alives it has answered, as it says itself.
    fn keep_alives(&self) -> f64 {
        use std::io::{Read as _, Write as _};
        let address = self.url.trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(address).expect("it is up");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it is up");
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).expect("metrics are text");
        let line = metrics.lines().find_map(|line| line.strip_prefix(RENEWED));
        line.expect("it counts them").trim().parse().expect("a number")
    }

    fn config(&self) -> EtcdConfig {
        let mut config = EtcdConfig::new([self.url.clone()]);
        config.limits = ShardLimits { per_tenant: 200_000, global: 200_000 };
        config
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

async fn begin<K: Kv>(coordinator: &mut AsyncEtcdCoordinator<K>, shards: u64) {
    let bounds: Vec<_> = (0..=shards).map(|shard| key_of(1 + shard * 1_000_000)).collect();
    let rows: Vec<_> = bounds
        .windows(2)
        .zip(0..)
        .map(|(pair, id)| {
            let range = ShardSpecRef::new(&pair[0], &pair[1], b"");
            InitialShardInput::new(ShardId::from_raw(id), range, CursorUpdate::initial())
        })
        .collect();
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 3_600_000,
        max_shard_retries: u32::MAX,
    };
    let op = OpId::from_raw(u64::MAX);
    coordinator.create_run_with_shards(NOW, TENANT, RUN, config, &rows, op).await.expect("a run");
}

async fn acquire<K: Kv>(coordinator: &mut AsyncEtcdCoordinator<K>, shard: u64) -> Lease {
    let mut scratch = Box::new(AcquireScratch::new());
    let (key, worker) =
        (ShardKey::new(RUN, ShardId::from_raw(shard)), WorkerId::from_raw(shard.wrapping_add(1)));
    let acquired =
        coordinator.acquire_and_restore_into(NOW, TENANT, key, worker, &mut scratch).await;
    acquired.expect("it is free").lease
}

/// The fastest quarter of rounds, in operations per second.
fn rate(mut rounds: Vec<f64>) -> f64 {
    rounds.sort_by(|one, other| other.total_cmp(one));
    let best = &rounds[..rounds.len().div_ceil(4)];
    best.iter().sum::<f64>() / best.len() as f64
}

const PER_ROUND: u64 = 100;

async fn checkpoints(workers: u64) {
    let server = Server::start().await;
    let mut coordinator = AsyncEtcdCoordinator::connect(server.config()).await.expect("it is up");
    begin(&mut coordinator, workers).await;
    let mut subjects = Vec::new();
    for worker in 0..workers {
        let mut clone = coordinator.clone();
        let lease = acquire(&mut clone, worker).await;
        subjects.push((clone, lease, 1 + worker * 1_000_000));
    }
    let kv = coordinator.kv().clone();
    let value = record_of(&kv, coordinator.keyspace(), 0).await;
    let raw = Keyspace::new("raw").expect("a namespace");
    for worker in 0..workers {
        let mut txn = Txn::default();
        let run = raw.run(TENANT, RUN);
        let shard = ShardId::from_raw(worker);
        let keys = [run.gate(), run.shard(shard), run.owner(shard)];
        txn.then.extend(keys.map(|key| Op::put(key, value.clone())));
        kv.txn(txn).await.expect("it is up");
    }
    let (mut subject_rates, mut raw_rates) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for (mut coordinator, lease, mut at) in subjects.drain(..) {
            tasks.spawn(async move {
                for _ in 0..PER_ROUND {
                    at += 1;
                    let (key, op) = (key_of(at), OpId::from_raw(at));
                    let cursor = CursorUpdate::at(&key);
                    let stored = coordinator.checkpoint(NOW, TENANT, &lease, cursor, op).await;
                    stored.expect("it is held");
                }
                (coordinator, lease, at)
            });
        }
        subjects = tasks.join_all().await;
        subject_rates.push((workers * PER_ROUND) as f64 / started.elapsed().as_secs_f64());
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for worker in 0..workers {
            tasks.spawn(raw_transactions(kv.clone(), raw.clone(), worker, value.clone()));
        }
        tasks.join_all().await;
        raw_rates.push((workers * PER_ROUND) as f64 / started.elapsed().as_secs_f64());
    }
    let (subject, raw) = (rate(subject_rates), rate(raw_rates));
    figure(&format!("checkpoint-{workers}"), subject, "1/s", Some(subject / raw));
}

/// Renewals of 16 workers, the first ones and those after 50 000, without compaction: every checkpoint
/// comes ten seconds after the one before, so that each has another deadline.
async fn renewals() {
    const WORKERS: u64 = 16;
    const ROUNDS: u64 = 10;
    const MANY: u64 = 50_000;
    let server = Server::start().await;
    let mut coordinator = AsyncEtcdCoordinator::connect(server.config()).await.expect("it is up");
    begin(&mut coordinator, WORKERS).await;
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let mut clone = coordinator.clone();
        let lease = acquire(&mut clone, worker).await;
        workers.push((clone, lease, 1 + worker * 1_000_000, NOW));
    }
    let (per_round, mut done, mut rates) = (1_000 / WORKERS, 0, Vec::new());
    while done < MANY + ROUNDS * WORKERS * per_round {
        let started = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for (mut coordinator, lease, mut at, mut now) in workers.drain(..) {
            tasks.spawn(async move {
                for _ in 0..per_round {
                    at += 1;
                    now = LogicalTime::from_raw(now.as_raw() + 10_000);
                    let (key, op) = (key_of(at), OpId::from_raw(at));
                    let cursor = CursorUpdate::at(&key);
                    let stored =
                        coordinator.checkpoint_and_renew(now, TENANT, &lease, cursor, op).await;
                    stored.expect("it is held");
                }
                (coordinator, lease, at, now)
            });
        }
        workers = tasks.join_all().await;
        done += WORKERS * per_round;
        rates.push((WORKERS * per_round) as f64 / started.elapsed().as_secs_f64());
    }
    let of_last = rates.split_off(rates.len() - ROUNDS as usize);
    rates.truncate(ROUNDS as usize);
    let (first, last) = (rate(rates), rate(of_last));
    figure("renew-first-10000", first, "1/s", None);
    figure("renew-after-50000", last, "1/s", Some(last / first));
}

async fn record_of(kv: &EtcdKv, keyspace: &Keyspace, shard: u64) -> Vec<u8> {
    let key = keyspace.run(TENANT, RUN).shard(ShardId::from_raw(shard));
    let answer = kv.txn(Txn::reads([Read::key(&key)])).await.expect("it is up");
    let mut value = answer.found[0].entries[0].value.clone();
    // As long as it is with a full op-log.
    value.resize(value.len() + 16 * 26, 0);
    value
}

async fn raw_transactions(kv: EtcdKv, keyspace: Keyspace, worker: u64, value: Vec<u8>) {
    let run = keyspace.run(TENANT, RUN);
    let shard = ShardId::from_raw(worker);
    let keys = [run.gate(), run.shard(shard), run.owner(shard)];
    let read = kv.txn(Txn::reads(keys.iter().map(Read::key))).await.expect("it is up");
    let mut revisions: Vec<_> =
        read.found.iter().map(|found| found.entries[0].mod_revision).collect();
    for _ in 0..PER_ROUND {
        let mut txn = Txn::default();
        for (key, revision) in keys.iter().zip(&revisions) {
            txn.expect(key.clone(), *revision);
        }
        txn.then.push(Op::put(keys[1].clone(), value.clone()));
        let answer = kv.txn(txn).await.expect("it is up");
        assert!(answer.succeeded);
        revisions[1] = answer.revision;
    }
}

/// Children of one split.
const CHILDREN: u64 = 50;

/// Splits a shard that is held into [`CHILDREN`].
async fn split<K: Kv>(
    coordinator: &mut AsyncEtcdCoordinator<K>,
    lease: &Lease,
    range: [u64; 2],
) -> Vec<ShardId> {
    let step = (range[1] - range[0]) / CHILDREN;
    let points: Vec<_> = (1..CHILDREN).map(|part| key_of(range[0] + part * step)).collect();
    let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
    let [from, to] = range.map(key_of);
    let range = ShardSpecRef::new(&from, &to, b"");
    let plan = plan_split_replace_at_points(range, &points).expect("points inside");
    let split = coordinator.split_replace(NOW, TENANT, lease, &plan, OpId::from_raw(1)).await;
    split.expect("it is held").into_inner().children.to_vec()
}

/// A worker that nobody was before claims a shard. Says which keys are its.
async fn claim<K: Kv>(
    coordinator: &mut AsyncEtcdCoordinator<K>,
    scratch: &mut AcquireScratch,
    worker: u64,
) -> (Lease, [u64; 2]) {
    let worker = WorkerId::from_raw(10_000 + worker);
    let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, worker, scratch).await;
    let claimed = claimed.expect("one is free");
    let number = |key: &[u8]| u64::from_be_bytes(key.try_into().expect("keys are numbers"));
    let range = claimed.to_restored_state().spec;
    let range = range.as_ref();
    (claimed.lease, [number(range.start()), number(range.end())])
}

/// Transactions and entries that one claim asks of etcd, at 1000 and at 50 000 shards of which one is
/// free.
async fn claims() {
    let mut of_few = None;
    for shards in [1_000_usize, 50_000] {
        let kv = SimKv::new();
        let mut config = EtcdConfig::new(["http://model:1"]);
        config.limits = ShardLimits { per_tenant: 200_000, global: 200_000 };
        config.max_split_children = CHILDREN as usize;
        let mut coordinator =
            AsyncEtcdCoordinator::on_model(kv.clone(), config).expect("it is valid");
        begin(&mut coordinator, 1_000 / CHILDREN).await;
        let mut scratch = Box::new(AcquireScratch::new());
        let mut workers = 0..;
        let mut held = std::collections::VecDeque::new();
        for worker in workers.by_ref().take(1_000 / CHILDREN as usize) {
            held.push_back(claim(&mut coordinator, &mut scratch, worker).await);
        }
        while held.len() < shards {
            let (lease, range) = held.pop_front().expect("some are held");
            let children = split(&mut coordinator, &lease, range).await;
            let step = (range[1] - range[0]) / CHILDREN;
            // All but one by their names: a claim looks at everything that is held.
            for (part, child) in (0..).zip(&children[1..]) {
                let (first, lease) =
                    (range[0] + (1 + part) * step, acquire(&mut coordinator, child.as_raw()).await);
                let is_last = part + 2 == CHILDREN;
                held.push_back((lease, [first, if is_last { range[1] } else { first + step }]));
            }
            let worker = workers.next().expect("workers do not end");
            held.push_back(claim(&mut coordinator, &mut scratch, worker).await);
        }
        let (free, _) = held[held.len() / 2];
        coordinator.release(NOW, TENANT, &free).await.expect("it is held");
        let counts = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let counted = Arc::clone(&counts);
        kv.intercept(move |txn| {
            let wanted = txn.then.iter().map(|op| match op {
                Op::Read(read) if read.limit > 0 => read.limit,
                // Now and then a claim counts, which returns nothing.
                Op::Read(read) if read.wanted == Wanted::Count => 0,
                _ => 1,
            });
            counted[0].fetch_add(1, Ordering::Relaxed);
            counted[1].fetch_add(wanted.sum::<usize>() as u64, Ordering::Relaxed);
            Interception::Pass
        });
        let last = workers.next().expect("workers do not end");
        let (claimed, _) = claim(&mut coordinator, &mut scratch, last).await;
        assert_eq!(claimed.shard(), free.shard(), "the first claim gets the one that is free");
        let [trips, entries] = [0, 1].map(|at| counts[at].load(Ordering::Relaxed) as f64);
        let (few_trips, few_entries) = *of_few.get_or_insert((trips, entries));
        figure(&format!("claim-trips-{shards}"), trips, "trips", Some(trips / few_trips));
        figure(&format!("claim-entries-{shards}"), entries, "entries", Some(entries / few_entries));
    }
}

/// How long a claim takes on a server where 1000 shards are free, and where 50 000 are.
async fn timed_claims() {
    let mut of_few = None;
    for shards in [1_000_u64, 50_000] {
        let server = Server::start().await;
        let mut config = server.config();
        config.max_split_children = CHILDREN as usize;
        let mut coordinator = AsyncEtcdCoordinator::connect(config).await.expect("it is up");
        let roots = shards / CHILDREN;
        begin(&mut coordinator, roots).await;
        for root in 0..roots {
            let lease = acquire(&mut coordinator, root).await;
            let first = 1 + root * 1_000_000;
            split(&mut coordinator, &lease, [first, first + 1_000_000]).await;
        }
        let mut scratch = Box::new(AcquireScratch::new());
        let mut times = Vec::new();
        for worker in 0..400 {
            let started = Instant::now();
            claim(&mut coordinator, &mut scratch, worker).await;
            times.push(started.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        let few = *of_few.get_or_insert(median);
        figure(&format!("claim-{shards}"), median, "ms", Some(median / few));
    }
}

/// Keep-alives that the server counts while a process holds one shard, and while it holds 500.
async fn keep_alives() {
    let mut of_one = None;
    for shards in [1, 500] {
        let server = Server::start().await;
        let mut config = server.config();
        config.owner_lease_ttl = Duration::from_secs(2);
        config.request_timeout = Duration::from_secs(1);
        let mut coordinator = AsyncEtcdCoordinator::connect(config).await.expect("it is up");
        begin(&mut coordinator, shards).await;
        for shard in 0..shards {
            acquire(&mut coordinator, shard).await;
        }
        let (before, started) = (server.keep_alives(), Instant::now());
        tokio::time::sleep(Duration::from_secs(8)).await;
        let rate = (server.keep_alives() - before) / started.elapsed().as_secs_f64();
        let one = *of_one.get_or_insert(rate);
        figure(&format!("keepalive-{shards}"), rate, "1/s", Some(rate / one));
    }
}

/// 10 000 shards beside the same puts in raw transactions.
async fn registration() {
    const SHARDS: u64 = 10_000;
    let (mut subject, mut raw) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let server = Server::start().await;
        let config = server.config();
        let mut coordinator = AsyncEtcdCoordinator::connect(config).await.expect("it is up");
        let started = Instant::now();
        begin(&mut coordinator, SHARDS).await;
        subject = subject.min(started.elapsed());
        let kv = coordinator.kv().clone();
        let value = record_of(&kv, coordinator.keyspace(), 0).await;
        let value = &value[..value.len() - 16 * 26];
        let run = Keyspace::new("raw").expect("a namespace").run(TENANT, RUN);
        let started = Instant::now();
        let shards: Vec<_> = (0..SHARDS).map(ShardId::from_raw).collect();
        for chunk in shards.chunks(61) {
            let mut txn = Txn::default();
            for &shard in chunk {
                txn.then.push(Op::put(run.shard(shard), value));
                txn.then.push(Op::put(run.owner(shard), []));
            }
            kv.txn(txn).await.expect("it is up");
        }
        raw = raw.min(started.elapsed());
    }
    let seconds = subject.as_secs_f64();
    figure("register-10000", seconds, "s", Some(seconds / raw.as_secs_f64()));
}
