//! Folds beside plain containers: 23-byte keys, 100-byte values, batches of 100, default options.
//!
//! A ratio is the reference's time by the subject's, so that more is faster, except where the name
//! says that it is a cost. Keys arrive in order or scattered; the reference gets them in the same
//! order. Times are wall times; `-cpu` is the thread's own time, which other work on the machine
//! disturbs less.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use gossip_bench::figure;
use rustix::time::{ClockId, clock_gettime};
use slipstream::{
    AppendLogSnapshot, FjallSnapshot, Key, KvEntry, KvUpdate, SnapshotReader, SnapshotStore,
    VersionToken, WatchCursor,
};

const N: u64 = 1_000_000;
const BATCH: usize = 100;
const ROUNDS: u64 = 10;
const DATA_BYTES: f64 = (N * 123) as f64;

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Ascending,
    Scattered,
}

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    let parts: [(&str, fn()); 5] = [
        ("store-ascending", || throughput("ascending", Order::Ascending)),
        ("store-scattered", || throughput("scattered", Order::Scattered)),
        ("store-range", range),
        ("store-memory", memory),
        ("store-fjall", fjall),
    ];
    parts.into_iter().filter(|(name, _)| wanted(name)).for_each(|(_, part)| part());
}

fn key(order: Order, i: u64) -> String {
    match order {
        Order::Ascending => format!("key.{i:019}"),
        // A bijection, so that all are distinct.
        Order::Scattered => format!("key.{:019}", (i * 0x9E37_79B1) & 0xFFFF_FFFF),
    }
}

fn update(key: String, round: u64) -> KvUpdate {
    let mut value = vec![round as u8; 100];
    value[..8].copy_from_slice(&round.to_le_bytes());
    let version = VersionToken::from_u64(round);
    KvUpdate::Put(KvEntry { key: Key::from(key), value: value.into(), version })
}

fn updates(order: Order) -> Vec<KvUpdate> {
    (0..N).map(|i| update(key(order, i), i + 1)).collect()
}

fn cursor(n: usize) -> WatchCursor {
    WatchCursor::from_bytes((n as u64).to_be_bytes().to_vec()).expect("eight bytes")
}

/// Wall and thread time in seconds.
#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    cpu: f64,
}

impl Spent {
    const FOR_EVER: Self = Self { wall: f64::INFINITY, cpu: f64::INFINITY };

    fn min(self, other: Self) -> Self {
        Self { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu) }
    }
}

fn spend<R>(f: impl FnOnce() -> R) -> (Spent, R) {
    let (start, cpu) = (Instant::now(), thread_seconds());
    let result = f();
    (Spent { wall: start.elapsed().as_secs_f64(), cpu: thread_seconds() - cpu }, result)
}

/// Time on a processor of this thread.
fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn compare(name: &str, count: f64, reference: Spent, subject: Spent) {
    figure(name, count / subject.wall / 1e3, "k/s", Some(reference.wall / subject.wall));
    figure(
        &format!("{name}-cpu"),
        count / subject.cpu / 1e3,
        "k/s",
        Some(reference.cpu / subject.cpu),
    );
}

type Map = HashMap<String, (Vec<u8>, VersionToken)>;

fn insert(map: &mut Map, updates: &[KvUpdate]) {
    for update in updates {
        let KvUpdate::Put(entry) = update else { unreachable!("all are puts") };
        map.insert(entry.key.as_str().to_owned(), (entry.value.to_vec(), entry.version));
    }
}

fn apply(store: &mut AppendLogSnapshot, updates: &[KvUpdate]) {
    for (nth, batch) in updates.chunks(BATCH).enumerate() {
        store.apply(batch, &cursor(nth)).expect("applied");
    }
}

fn open(path: &Path) -> AppendLogSnapshot {
    AppendLogSnapshot::load(path).expect("opened").1
}

fn throughput(name: &str, order: Order) {
    let updates = updates(order);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("fold");
    let mut best = [Spent::FOR_EVER; 4];
    let mut least = |which: usize, spent: Spent| best[which] = best[which].min(spent);
    for _ in 0..3 {
        let (spent, map) = spend(|| {
            let mut map = Map::new();
            insert(&mut map, &updates);
            map
        });
        least(0, spent);
        drop(map);
        let _ = fs::remove_file(&path);
        let mut store = open(&path);
        least(1, spend(|| apply(&mut store, &updates)).0);
        drop(store);
        let (spent, store) = spend(|| open(&path));
        least(2, spent);
        drop(store);
    }
    compare(&format!("apply-distinct-{name}"), N as f64, best[0], best[1]);
    compare_open(&format!("open-{name}"), best[0], best[2]);
    worst_batch(
        &format!("distinct-{name}"),
        || {
            let _ = fs::remove_file(&path);
            (open(&path), 1)
        },
        &updates,
    );

    let mut map = Map::new();
    insert(&mut map, &updates);
    let overwrite_map = spend(|| (0..ROUNDS).for_each(|_| insert(&mut map, &updates))).0;
    drop(map);
    let mut store = open(&path);
    let overwrite = spend(|| (0..ROUNDS).for_each(|_| apply(&mut store, &updates))).0;
    compare(&format!("overwrite-10x-{name}"), (ROUNDS * N) as f64, overwrite_map, overwrite);
    assert!(store.compaction_error().is_none(), "{:?}", store.compaction_error());
    drop(store);
    worst_batch(&format!("overwrite-{name}"), || (open(&path), 3), &updates);

    let mut store = open(&path);
    store.compact().expect("compacted");
    drop(store);
    let mut opened = Spent::FOR_EVER;
    for _ in 0..3 {
        let (spent, store) = spend(|| open(&path));
        drop(store);
        opened = opened.min(spent);
    }
    compare_open(&format!("open-compacted-{name}"), best[0], opened);
    first_update(name, &path, &updates);
}

/// A cost: times the reference.
fn compare_open(name: &str, reference: Spent, subject: Spent) {
    figure(&format!("{name}-cost"), subject.wall * 1e3, "ms", Some(subject.wall / reference.wall));
    figure(&format!("{name}-cost-cpu"), subject.cpu * 1e3, "ms", Some(subject.cpu / reference.cpu));
}

fn worst_batch(
    name: &str,
    fresh: impl FnOnce() -> (AppendLogSnapshot, usize),
    updates: &[KvUpdate],
) {
    let (mut store, rounds) = fresh();
    let (mut walls, mut worst_cpu) = (Vec::new(), 0f64);
    for _ in 0..rounds {
        for (nth, batch) in updates.chunks(BATCH).enumerate() {
            let at = cursor(nth);
            let (spent, applied) = spend(|| store.apply(batch, &at));
            applied.expect("applied");
            walls.push(spent.wall * 1e3);
            worst_cpu = worst_cpu.max(spent.cpu * 1e3);
        }
    }
    walls.sort_by(f64::total_cmp);
    figure(&format!("batch-cpu-max-{name}"), worst_cpu, "ms", None);
    figure(&format!("batch-wall-p99.9-{name}"), walls[walls.len() * 999 / 1000], "ms", None);
    figure(&format!("batch-wall-max-{name}"), walls[walls.len() - 1], "ms", None);
}

/// The first batch after a restart, beside the median of those that follow: a cost.
fn first_update(name: &str, path: &Path, updates: &[KvUpdate]) {
    let (mut firsts, mut to_median) = (Vec::new(), Vec::new());
    for round in 0..41 {
        let mut store = open(path);
        let mut apply =
            |batch| spend(|| store.apply(batch, &cursor(1)).expect("applied")).0.cpu * 1e6;
        // Another batch is the first one in each round, because some cost more than others.
        let mut costs: Vec<f64> =
            updates.chunks(BATCH).skip(round).step_by(50).map(&mut apply).collect();
        let first = costs.remove(0);
        firsts.push(first);
        to_median.push(first / median(costs));
    }
    let name = format!("first-batch-after-open-{name}-to-median-cost");
    figure(&name, median(firsts), "us", Some(median(to_median)));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

const GROUP: u64 = 4_000;

/// A range of 4 000 keys among 8 000 and among a million; scattered when they came.
fn range() {
    let dir = tempfile::tempdir().expect("a directory");
    let fold = |name: &str, groups: u64| {
        let mut store = open(&dir.path().join(name));
        let count = groups * GROUP;
        let keys = (0..count).map(|i| (i * 7919) % count);
        let keys = keys.map(|i| format!("key.{:04}.{:014}", i / GROUP, i % GROUP));
        let updates: Vec<_> = keys.zip(1..).map(|(key, n)| update(key, n)).collect();
        apply(&mut store, &updates);
        store
    };
    let (small, large) = (fold("small", 2), fold("large", N / GROUP));
    let ask = |store: &AppendLogSnapshot, group: &mut u64, groups: u64| {
        *group = (*group + 1) % groups;
        let entries = store.range(&format!("key.{group:04}.")).expect("read");
        assert_eq!(entries.len() as u64, GROUP);
    };
    let (mut a, mut b) = (0, 0);
    gossip_bench::compare(
        "range-4k-of-1m-to-4k-of-8k-cost",
        || ask(&small, &mut a, 2),
        || ask(&large, &mut b, N / GROUP),
    );
}

/// Resident memory, in a process that does nothing else.
fn memory() {
    for (name, order) in [("ascending", "a"), ("scattered", "s")] {
        for how in ["applied", "overwritten"] {
            let program = std::env::current_exe().expect("this program");
            let said =
                Command::new(program).args(["resident", order, how]).output().expect("it runs");
            let bytes: f64 =
                String::from_utf8_lossy(&said.stdout).trim().parse().expect("a number");
            figure(&format!("resident-{how}-{name}"), bytes / 1e6, "MB", Some(bytes / DATA_BYTES));
        }
    }
}

const FJALL_N: usize = 300_000;

/// The same batches into fjall itself: keys, values and a cursor, in the same two keyspaces.
fn fjall() {
    let updates = updates(Order::Scattered);
    let dir = tempfile::tempdir().expect("a directory");
    let (mut raw, mut fold) = (Spent::FOR_EVER, Spent::FOR_EVER);
    for round in 0..3 {
        let database = fjall::Database::builder(dir.path().join(format!("raw-{round}"))).open();
        let database = database.expect("opened");
        let data = database.keyspace("data", Default::default).expect("opened");
        let meta = database.keyspace("meta", Default::default).expect("opened");
        let (spent, ()) = spend(|| {
            for (nth, batch) in updates[..FJALL_N].chunks(BATCH).enumerate() {
                let mut write = database.batch();
                for update in batch {
                    let KvUpdate::Put(entry) = update else { unreachable!("all are puts") };
                    write.insert(&data, entry.key.as_bytes(), &entry.value[..]);
                }
                write.insert(&meta, "cursor", cursor(nth).as_bytes());
                write.commit().expect("written");
            }
        });
        raw = raw.min(spent);
        drop((data, meta, database));
        let mut store =
            FjallSnapshot::load(&dir.path().join(format!("fold-{round}"))).expect("opened").1;
        let (spent, ()) = spend(|| {
            for (nth, batch) in updates[..FJALL_N].chunks(BATCH).enumerate() {
                store.apply(batch, &cursor(nth)).expect("applied");
            }
        });
        fold = fold.min(spent);
    }
    compare("fjall-apply", FJALL_N as f64, raw, fold);
}

pub(crate) fn resident(order: &str, how: &str) {
    let order = if order == "a" { Order::Ascending } else { Order::Scattered };
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("fold");
    let fill = |store: &mut AppendLogSnapshot, length: usize| {
        for first in (0..N).step_by(BATCH) {
            let batch = (first..first + BATCH as u64).map(|i| {
                let mut update = update(key(order, i), i);
                if let KvUpdate::Put(entry) = &mut update {
                    entry.value.truncate(length);
                }
                update
            });
            store.apply(&batch.collect::<Vec<_>>(), &cursor(1)).expect("applied");
        }
    };
    let before = resident_bytes();
    let mut store = open(&path);
    fill(&mut store, 100);
    if how == "overwritten" {
        // Of other lengths, so that every entry moves.
        (0..3).for_each(|round| fill(&mut store, 98 + round));
    }
    println!("{}", resident_bytes() - before);
}

fn resident_bytes() -> u64 {
    let text = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("pages") * 4096
}
