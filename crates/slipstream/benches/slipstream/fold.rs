//! How fast a fold fills and catches up, beside a plain watch of the same bucket by the client
//! library, on a real server.
//!
//! Keys of 23 bytes, values of 100, default settings. Runs take turns; each is judged by its
//! fastest.

use std::path::Path;
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, kv};
use futures_util::StreamExt;
use slipstream::{
    AppendLogSnapshot, Connection, FjallSnapshot, FoldConfig, KvStore, SnapshotStore, StoreConfig,
    fold_control, watch_applied,
};

use crate::server::NatsServer;

const KEYS: u64 = 200_000;
/// Keys that are written once: one before the others, so that the log still begins there, and the
/// last ones, by which a fold recognises the log.
const KEPT: u64 = 10;
const ROUNDS: usize = 5;

/// Of the bucket beside whose hot key a fold is restarted.
const COLD_KEYS: u64 = 1_000_000;
const BEAT: Duration = Duration::from_millis(100);
const BEATS: u64 = 20;

pub(crate) fn run(wanted: &dyn Fn(&str) -> bool) {
    if wanted("fold-restart-hot-key") {
        tokio::runtime::Runtime::new().expect("a runtime").block_on(restart_beside_a_hot_key());
    }
    if ["fold-hydration", "fold-gapped-resume"].into_iter().any(wanted) {
        tokio::runtime::Runtime::new().expect("a runtime").block_on(measure());
    }
}

async fn measure() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
    let store = connection.store("bench", &config).await.unwrap();
    // The reference has a connection like ours.
    let options = async_nats::ConnectOptions::new().subscription_capacity(512 * 1024);
    let jetstream = jetstream::new(options.connect(server.url()).await.unwrap());
    let raw = jetstream.get_key_value("bench").await.unwrap();
    let dir = tempfile::tempdir().unwrap();

    let kept = KEYS..KEYS + KEPT;
    write(&jetstream, [kept.start].into_iter().chain(0..KEYS).chain(kept.skip(1))).await;
    let (log, tree) = (dir.path().join("log"), dir.path().join("fjall"));
    compare::<AppendLogSnapshot>("fold-hydration-append-log", &*store, &raw, None, &log).await;
    compare::<FjallSnapshot>("fold-hydration-fjall", &*store, &raw, None, &tree).await;
    // Each key again, every other one three times: what is left in the log has gaps all along.
    write(&jetstream, (0..KEYS).flat_map(|at| [at, at / 2 * 2])).await;
    let from = Some(KEYS + KEPT + 1);
    compare::<AppendLogSnapshot>("fold-gapped-resume-append-log", &*store, &raw, from, &log).await;
}

/// What a restart reads of a bucket of a million cold keys and one that is written all the time: the
/// reference is what was written while the fold was away.
async fn restart_beside_a_hot_key() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
    let store = connection.store("bench", &config).await.unwrap();
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    write(&jetstream, 0..COLD_KEYS).await;
    let writer = store.writer().unwrap();
    let beat = async || {
        for _ in 0..BEATS {
            writer.put("hot", "v".into()).await.unwrap();
            tokio::time::sleep(BEAT).await;
        }
    };
    let fold = || {
        let (_, fold) = AppendLogSnapshot::load(&path).unwrap();
        let (handle, control) = fold_control();
        let config = FoldConfig::new(store.watcher().unwrap());
        (handle, tokio::spawn(watch_applied(config, fold, (), control)))
    };
    let (handle, folding) = fold();
    handle.synced().await.unwrap();
    beat().await;
    handle.shutdown();
    folding.await.unwrap().result.unwrap();
    beat().await;
    let began = Instant::now();
    let (handle, folding) = fold();
    handle.synced().await.unwrap();
    let took = began.elapsed();
    let read = handle.status().borrow().updates;
    handle.shutdown();
    folding.await.unwrap().result.unwrap();
    gossip_bench::figure("fold-restart-hot-key", took.as_secs_f64() * 1e3, "ms", None);
    let ratio = read as f64 / BEATS as f64;
    gossip_bench::figure("fold-restart-hot-key-read", read as f64, "updates", Some(ratio));
}

/// Rounds of a plain watch and a fold in turns. Folds are kept, so that a second comparison goes on
/// from the first.
async fn compare<S: SnapshotStore>(
    name: &str,
    store: &dyn KvStore,
    raw: &kv::Store,
    from: Option<u64>,
    dir: &Path,
) {
    let count = if from.is_none() { KEYS + KEPT } else { KEYS };
    std::fs::create_dir_all(dir).unwrap();
    let (mut plain, mut fold) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        plain.push(watch(raw, from, count).await);
        fold.push(run_fold::<S>(store, &dir.join(format!("{round}")), count).await);
    }
    let rate = |took: Vec<Duration>| count as f64 / took.iter().min().unwrap().as_secs_f64();
    let (plain, fold) = (rate(plain), rate(fold));
    gossip_bench::figure(&format!("{name}-plain-watch"), plain, "keys/s", None);
    gossip_bench::figure(name, fold, "keys/s", Some(fold / plain));
}

fn key(at: u64) -> String {
    format!("tenant.0001.item.{at:06}")
}

async fn write(jetstream: &jetstream::Context, keys: impl IntoIterator<Item = u64>) {
    let keys: Vec<u64> = keys.into_iter().collect();
    for keys in keys.chunks(1000) {
        let mut acks = Vec::with_capacity(keys.len());
        for &at in keys {
            let subject = format!("$KV.bench.{}", key(at));
            acks.push(jetstream.publish(subject, vec![b'v'; 100].into()).await.unwrap());
        }
        jetstream.client().flush().await.unwrap();
        for ack in acks {
            ack.await.unwrap();
        }
    }
}

/// The client library's own watch.
async fn watch(raw: &kv::Store, from: Option<u64>, count: u64) -> Duration {
    let began = Instant::now();
    let mut watch = match from {
        None => raw.watch_with_history(">").await.unwrap(),
        Some(revision) => raw.watch_all_from_revision(revision).await.unwrap(),
    };
    for _ in 0..count {
        watch.next().await.unwrap().unwrap();
    }
    began.elapsed()
}

/// A fold, from opening the watch until everything is stored.
async fn run_fold<S: SnapshotStore>(store: &dyn KvStore, path: &Path, count: u64) -> Duration {
    let (_, fold) = S::load(path).unwrap();
    let config = FoldConfig::new(store.watcher().unwrap());
    let (handle, control) = fold_control();
    let began = Instant::now();
    let folding = tokio::spawn(watch_applied(config, fold, (), control));
    handle.synced().await.unwrap();
    let took = began.elapsed();
    let status = handle.status().borrow().clone();
    assert_eq!((status.updates, status.repairs), (count, 0), "{status:?}");
    handle.shutdown();
    folding.await.unwrap().result.unwrap();
    took
}
