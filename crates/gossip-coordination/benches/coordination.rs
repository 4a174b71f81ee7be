//! The reference coordinator beside a hash map that holds the same keys.
//!
//! The reference is what any coordinator must do at least: find a record among as many, and copy
//! the key into it. Shards are visited in a random order, so neither side profits from a warm
//! cache. One run takes at most 10 000 root shards; larger ones are grown by splits.

use std::hint::black_box;
use std::time::Instant;

use gossip_bench::{compare, figure, ns_per_call};
use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, plan_split_replace_at_points,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, CoordinatorRuntimeConfig, InMemoryCoordinator, Lease,
    OP_LOG_CAP, RunConfig, RunManagement, ShardClaiming, ShardFilter, ShardSummary,
};
use hashbrown::HashMap;

const TENANT: TenantId = TenantId::from_bytes([7; 32]);
const RUN: RunId = RunId::from_raw(1);
const WORKER: WorkerId = WorkerId::from_raw(1);
const NOW: LogicalTime = LogicalTime::from_raw(1_000);
const KEY_LEN: usize = 48;

/// `cargo bench --bench coordination -- checkpoint` runs the figures whose name starts so.
fn main() {
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let shards = std::env::var("BENCH_SHARDS").map_or(100_000, |n| n.parse().expect("a number"));
    let run = |name: &str, measure: &dyn Fn()| {
        if name.starts_with(&wanted) {
            measure();
        }
    };
    run("checkpoint", &|| checkpoints(shards));
    run("renew", &|| renewals(shards));
    run("acquire-complete", &|| acquire_and_complete(shards));
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

/// A coordinator with one run of `count` unleased shards, and their ids with their first keys.
fn coordinator(count: usize) -> (InMemoryCoordinator, Vec<(ShardId, [u8; KEY_LEN])>) {
    let mut coordinator = InMemoryCoordinator::new(CoordinatorRuntimeConfig {
        max_shards_per_tenant: 2 * count + 20_000,
        max_total_shards: 2 * count + 20_000,
        slab_capacity: (count + 10_000) * 512,
        ..CoordinatorRuntimeConfig::default()
    });
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
    let mut listed = Vec::new();
    coordinator
        .list_shards_into(NOW, TENANT, RUN, ShardFilter::active(), &mut listed)
        .expect("list");
    assert_eq!(listed.len(), count);
    let first_key =
        |shard: &ShardSummary| <[u8; KEY_LEN]>::try_from(&*shard.start).expect("48 bytes");
    let mut shards: Vec<_> = listed.iter().map(|shard| (shard.shard, first_key(shard))).collect();
    shuffle(&mut shards);
    (coordinator, shards)
}

/// Fisher and Yates, with a fixed xorshift: the same order in every run.
fn shuffle<T>(items: &mut [T]) {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for i in (1..items.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        items.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

/// The least that a coordinator does: find the record and copy the key into it.
struct Reference {
    records: HashMap<ShardKey, Box<[u8]>>,
    order: Vec<(ShardKey, [u8; KEY_LEN])>,
    at: usize,
}

impl Reference {
    fn new(shards: &[(ShardId, [u8; KEY_LEN])]) -> Self {
        let order: Vec<_> =
            shards.iter().map(|&(shard, key)| (ShardKey::new(RUN, shard), key)).collect();
        let records = order.iter().map(|&(key, bytes)| (key, Box::from(&bytes[..]))).collect();
        Self { records, order, at: 0 }
    }

    fn step(&mut self) {
        let (key, bytes) = &self.order[self.at];
        self.records.get_mut(black_box(key)).expect("present").copy_from_slice(black_box(bytes));
        self.at = (self.at + 1) % self.order.len();
    }
}

fn acquire_all(
    coordinator: &mut InMemoryCoordinator,
    shards: &[(ShardId, [u8; KEY_LEN])],
) -> Vec<(Lease, [u8; KEY_LEN])> {
    let mut scratch = Box::new(AcquireScratch::new());
    let mut acquire = |&(shard, key): &(ShardId, [u8; KEY_LEN])| {
        let shard = ShardKey::new(RUN, shard);
        let acquired =
            coordinator.acquire_and_restore_into(NOW, TENANT, shard, WORKER, &mut scratch);
        (acquired.expect("acquire").lease, key)
    };
    shards.iter().map(&mut acquire).collect()
}

fn checkpoints(count: usize) {
    let (mut coordinator, shards) = coordinator(count);
    let mut reference = Reference::new(&shards);
    let mut leased = acquire_all(&mut coordinator, &shards);
    let mut op = 0u64;
    let mut at = 0;
    let mut checkpoint = || {
        let (lease, key) = &mut leased[at];
        op += 1;
        key[KEY_LEN - 8..].copy_from_slice(&op.to_be_bytes());
        let cursor = CursorUpdate::at(&*key);
        let op_id = OpId::from_raw(op);
        let outcome = coordinator.checkpoint(NOW, TENANT, lease, cursor, op_id);
        assert!(outcome.expect("checkpoint").is_executed());
        at = (at + 1) % count;
    };
    // Steady state: every op-log is full and every page has been touched.
    (0..count * (OP_LOG_CAP + 1)).for_each(|_| checkpoint());
    compare("checkpoint-100k", || reference.step(), checkpoint);
}

fn renewals(count: usize) {
    let (mut coordinator, shards) = coordinator(count);
    let mut reference = Reference::new(&shards);
    let leased = acquire_all(&mut coordinator, &shards);
    let mut at = 0;
    compare(
        "renew-100k",
        || reference.step(),
        || {
            black_box(coordinator.renew(NOW, TENANT, &leased[at].0).expect("renew"));
            at = (at + 1) % leased.len();
        },
    );
}

/// Every shard can be completed once, so this measures whole sweeps instead of batches.
fn acquire_and_complete(count: usize) {
    let (mut best, mut best_reference) = (f64::MAX, f64::MAX);
    for _ in 0..3 {
        let (mut coordinator, shards) = coordinator(count);
        let mut reference = Reference::new(&shards);
        let start = Instant::now();
        (0..count).for_each(|_| reference.step());
        best_reference = best_reference.min(start.elapsed().as_nanos() as f64 / count as f64);

        let mut scratch = Box::new(AcquireScratch::new());
        let start = Instant::now();
        for (op, (shard, key)) in shards.iter().enumerate() {
            let shard = ShardKey::new(RUN, *shard);
            let lease = coordinator
                .acquire_and_restore_into(NOW, TENANT, shard, WORKER, &mut scratch)
                .expect("acquire")
                .lease;
            let op = OpId::from_raw(op as u64);
            coordinator.complete(NOW, TENANT, &lease, CursorUpdate::at(key), op).expect("complete");
        }
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    figure("acquire-complete-100k", best, "ns", Some(best / best_reference));
}

/// A claim and the release that makes the shard claimable again; the ratio is to 1 000 shards.
fn claims() {
    let mut base = None;
    for (name, count) in [
        ("claim-1k", 1_000),
        ("claim-10k", 10_000),
        ("claim-100k", 100_000),
        ("claim-1m", 1_000_000),
    ] {
        let (mut coordinator, _) = coordinator(count);
        let mut scratch = Box::new(AcquireScratch::new());
        let ns = ns_per_call(|| {
            let lease = coordinator
                .claim_next_available(NOW, TENANT, RUN, WORKER, &mut scratch)
                .expect("claim")
                .lease;
            coordinator.release(NOW, TENANT, &lease).expect("release");
        });
        figure(name, ns, "ns", Some(ns / *base.get_or_insert(ns)));
    }
}
