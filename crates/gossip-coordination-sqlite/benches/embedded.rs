//! The embedded coordinator beside raw SQLite.
//!
//! The reference is the least that a durable coordinator on SQLite does: a transaction that updates
//! one row, by prepared statements, in a file with the same settings. Both sides take turns in
//! rounds long enough to hold the checkpoints of the log, and each is judged by its fastest quarter.
//! Claims are measured with the release that makes the shard claimable again; their ratio is to 1000
//! shards. One run takes at most 10 000 root shards; larger ones are grown by splits.

use std::path::Path;
use std::time::Instant;

use gossip_bench::figure;
use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, plan_split_replace_at_points,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, Lease, RunConfig, RunManagement, ShardClaiming,
};
use gossip_coordination_sqlite::rusqlite::Connection;
use gossip_coordination_sqlite::{Durability, SqliteConfig, SqliteCoordinator};

const TENANT: TenantId = TenantId::from_bytes([7; 32]);
const RUN: RunId = RunId::from_raw(1);
const WORKER: WorkerId = WorkerId::from_raw(1);
const NOW: LogicalTime = LogicalTime::from_raw(1_700_000_000_000);
const KEY_LEN: usize = 48;

/// `cargo bench --bench embedded -- claim` runs the figures whose name starts so.
fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let run = |name: &str, measure: &dyn Fn()| {
        if name.starts_with(&wanted) {
            measure();
        }
    };
    run("checkpoint-normal", &|| checkpoints("checkpoint-normal", Durability::Normal, 2_000));
    run("checkpoint-full", &|| checkpoints("checkpoint-full", Durability::Full, 100));
    run("claim", &claims);
}

/// A path-like key of [`KEY_LEN`] bytes whose order is that of `number`.
fn key_of(number: u64) -> [u8; KEY_LEN] {
    let mut key = [b'/'; KEY_LEN];
    key[..8].copy_from_slice(b"src/repo");
    key[KEY_LEN - 16..KEY_LEN - 8].copy_from_slice(&number.to_be_bytes());
    key[KEY_LEN - 8..].fill(0);
    key
}

/// A coordinator with one run of `count` unleased shards.
fn coordinator(path: &Path, durability: Durability, count: usize) -> SqliteCoordinator {
    let config = SqliteConfig {
        durability,
        limits: gossip_coordination::ShardLimits { per_tenant: 10 * count, global: 10 * count },
        ..SqliteConfig::default()
    };
    let mut coordinator = SqliteCoordinator::open(path, config).expect("open");
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 30_000,
        max_shard_retries: u32::MAX,
    };
    let roots = count.min(10_000);
    let per_root = count / roots;
    let bounds: Vec<_> = (0..=roots).map(|root| key_of((root * per_root) as u64)).collect();
    let inputs: Vec<_> = bounds
        .windows(2)
        .zip(0..)
        .map(|(pair, id)| {
            let spec = ShardSpecRef::new(&pair[0], &pair[1], b"");
            InitialShardInput::new(ShardId::from_raw(id), spec, CursorUpdate::initial())
        })
        .collect();
    let register = OpId::from_raw(u64::MAX);
    coordinator.create_run_with_shards(NOW, TENANT, RUN, config, &inputs, register).expect("run");
    if per_root > 1 {
        let mut scratch = Box::new(AcquireScratch::new());
        for (root, input) in inputs.iter().enumerate() {
            let points: Vec<_> =
                (1..per_root).map(|part| key_of((root * per_root + part) as u64)).collect();
            let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
            let plan = plan_split_replace_at_points(input.spec, &points).expect("plan");
            let key = ShardKey::new(RUN, input.shard);
            let lease = coordinator
                .acquire_and_restore_into(NOW, TENANT, key, WORKER, &mut scratch)
                .expect("acquire")
                .lease;
            let op = OpId::from_raw(root as u64);
            coordinator.split_replace(NOW, TENANT, &lease, &plan, op).expect("split");
        }
    }
    let progress = coordinator.get_run_progress(TENANT, RUN).expect("progress");
    assert_eq!(progress.active, count as u64);
    coordinator
}

/// The least: one row, one transaction.
struct Reference {
    conn: Connection,
    number: u64,
}

impl Reference {
    fn new(path: &Path, durability: Durability) -> Self {
        let conn = Connection::open(path).expect("open");
        conn.pragma_update(None, "journal_mode", "wal").expect("wal");
        let synchronous = match durability {
            Durability::Normal => "normal",
            Durability::Full => "full",
            Durability::Off => "off",
        };
        conn.pragma_update(None, "synchronous", synchronous).expect("synchronous");
        conn.pragma_update(None, "cache_size", -16_000).expect("cache");
        conn.pragma_update(None, "wal_autocheckpoint", 4096).expect("checkpoints of the log");
        conn.execute_batch("CREATE TABLE t(id INTEGER PRIMARY KEY, key BLOB NOT NULL)")
            .expect("table");
        for id in 0..1000 {
            conn.execute("INSERT INTO t VALUES (?1, ?2)", (id, key_of(id as u64))).expect("row");
        }
        Self { conn, number: 0 }
    }

    fn step(&mut self) {
        self.number += 1;
        let run = |sql: &str| self.conn.prepare_cached(sql).and_then(|mut s| s.execute([]));
        run("BEGIN IMMEDIATE").expect("begin");
        self.conn
            .prepare_cached("UPDATE t SET key = ?2 WHERE id = ?1")
            .and_then(|mut s| s.execute((500, key_of(self.number))))
            .expect("update");
        run("COMMIT").expect("commit");
    }
}

fn checkpoints(name: &str, durability: Durability, per_round: usize) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut reference = Reference::new(&dir.path().join("reference.db"), durability);
    let mut coordinator = coordinator(&dir.path().join("gossip.db"), durability, 1000);
    let mut scratch = Box::new(AcquireScratch::new());
    let lease: Lease = coordinator
        .claim_next_available(NOW, TENANT, RUN, WORKER, &mut scratch)
        .expect("claim")
        .lease;
    let mut number = 0u64;
    let mut checkpoint = || {
        number += 1;
        let mut key = key_of(0);
        key[KEY_LEN - 8..].copy_from_slice(&number.to_be_bytes());
        let (cursor, op) = (CursorUpdate::at(&key), OpId::from_raw(number));
        let outcome = coordinator.checkpoint(NOW, TENANT, &lease, cursor, op);
        assert!(outcome.expect("checkpoint").is_executed());
    };
    // Until both logs have their size: growing a file costs more than writing to it.
    (0..5_000).for_each(|_| {
        reference.step();
        checkpoint();
    });
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..24 {
        raw.push(seconds(per_round, || reference.step()));
        ours.push(seconds(per_round, &mut checkpoint));
    }
    let (raw, ours) = (1.0 / fastest_quarter(raw), 1.0 / fastest_quarter(ours));
    figure(&name.replace("checkpoint", "raw-update"), raw, "/s", None);
    figure(name, ours, "/s", Some(ours / raw));
}

/// Seconds per call.
fn seconds(calls: usize, mut f: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| f());
    start.elapsed().as_secs_f64() / calls as f64
}

fn fastest_quarter(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    let quarter = &samples[..samples.len().div_ceil(4)];
    quarter.iter().sum::<f64>() / quarter.len() as f64
}

/// All sizes take turns, so that a disturbance meets all of them.
fn claims() {
    let sizes = [("claim-1k", 1_000), ("claim-10k", 10_000), ("claim-100k", 100_000)];
    let dir = tempfile::tempdir().expect("a directory");
    let mut coordinators =
        sizes.map(|(name, count)| coordinator(&dir.path().join(name), Durability::Normal, count));
    let mut scratch = Box::new(AcquireScratch::new());
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..24 {
        for (coordinator, samples) in coordinators.iter_mut().zip(&mut samples) {
            samples.push(seconds(1_000, || {
                let lease = coordinator
                    .claim_next_available(NOW, TENANT, RUN, WORKER, &mut scratch)
                    .expect("claim")
                    .lease;
                coordinator.release(NOW, TENANT, &lease).expect("release");
            }));
        }
    }
    let micros = samples.map(|samples| fastest_quarter(samples) * 1e6);
    for ((name, _), micros_here) in sizes.into_iter().zip(micros) {
        figure(name, micros_here, "us", Some(micros_here / micros[0]));
    }
}
