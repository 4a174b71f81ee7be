//! How much memory a large fold takes on its way.

use std::fs;
use std::future::Future;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use slipstream::artifact::About;
use slipstream::transport::{ArtifactTransport, PublishOutcome, import_remote};
use slipstream::{
    Connection, Discard, FjallSnapshot, FoldConfig, KvEntry, KvUpdate, KvWatcher, MemoryBucket,
    MemoryConnection, Restore, SnapshotReader, SnapshotStore, StoreConfig, VersionToken,
    WatchScope, fold_control, watch_applied,
};

use crate::fleet::{KEY, transport};
use crate::rounds::scale;
use crate::s3::{s3, s3_at};
use crate::weed::Weed;

/// Of a fold in one run of the test command. A soak multiplies it by its scale twice: seven times seven
/// is 5 GB.
const BYTES: u64 = 110_000_000;
const VALUE: usize = 500_000;

/// Above what the process has before.
const MEMORY_MAX: u64 = 200_000_000;
/// Two memtables of the engine, its caches, and what is under way.
const RESTORE_MAX: u64 = 250_000_000;

/// Set in the process that is measured: where its fold is, and its store.
const CHILD: [&str; 2] = ["SLIPSTREAM_TRANSFER", "SLIPSTREAM_TRANSFER_S3"];

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A bucket that may evict its two messages, and a fold that stands there.
async fn stands_at_a_log(store: &mut FjallSnapshot) -> (Arc<dyn KvWatcher>, MemoryBucket) {
    let connection = MemoryConnection::new();
    let config = StoreConfig { discard: Discard::Old, ..StoreConfig::default() };
    let bucket = connection.store(KEY, &config).await.unwrap();
    for key in ["k", "l"] {
        bucket.writer().unwrap().put(key, "v".into()).await.unwrap();
    }
    let watcher = bucket.watcher().unwrap();
    let mut watch = watcher.watch_from(&WatchScope::All, None).await.unwrap();
    watch.next(&mut Vec::new(), 2).await.unwrap();
    store.apply(&[], &watch.cursor()).unwrap();
    (watcher, connection.bucket(KEY).unwrap())
}

/// The peak of this process's memory while something goes on, above what it has before.
async fn peak<T>(what: impl Future<Output = T>) -> (u64, T) {
    // Forgets the peak.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let done = what.await;
    (status("VmHWM:") - before, done)
}

/// There and back; then an empty fold is restored, as its bucket has evicted everything but the last message.
/// Says the peaks of its memory.
async fn transfer(dir: &Path, endpoint: String) {
    let (_, mut store) = FjallSnapshot::load(&dir.join("fold")).unwrap();
    let (watcher, log) = stands_at_a_log(&mut store).await;
    let artifact = dir.join("artifact");
    let manifest = store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    let transport = transport(&s3_at(endpoint));
    let (path, all) = (dir.join("imported"), WatchScope::All);
    let (above, ()) = peak(async {
        let (_, outcome) = transport.upload(KEY, &artifact, &*watcher).await.unwrap();
        assert_eq!(outcome, PublishOutcome::Published);
        let remote = import_remote::<FjallSnapshot>(&transport, KEY, &*watcher, &path, &all);
        assert_eq!(remote.await.unwrap().unwrap().total_size(), manifest.total_size());
    })
    .await;
    // Room for what is restored: the fold may have gigabytes.
    fs::remove_dir_all(&path).unwrap();
    fs::remove_dir_all(&artifact).unwrap();
    log.evict_below(log.log().last);
    let (_, restored) = FjallSnapshot::load(&dir.join("restored")).unwrap();
    let reader = restored.reader();
    let restore = Restore { transport: Arc::new(transport), key: KEY.into(), dir: dir.to_owned() };
    let config = FoldConfig { restore: Some(restore), ..FoldConfig::new(watcher) };
    let (handle, control) = fold_control();
    let (while_restored, ()) = peak(async {
        let folding = tokio::spawn(watch_applied(config, restored, (), control));
        handle.synced().await.unwrap();
        assert_eq!(handle.status().borrow().restores, 1);
        handle.shutdown();
        folding.await.unwrap().result.unwrap();
    })
    .await;
    assert_eq!(count(&reader), count(&store));
    // libtest has begun a line.
    println!("\n{} {above} {while_restored}", manifest.total_size());
}

fn count(fold: &impl SnapshotReader) -> u64 {
    let mut count = 0;
    let counted = fold.for_each_key("", &mut |_| {
        count += 1;
        ControlFlow::Continue(())
    });
    counted.unwrap();
    count
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_fold_travels_in_little_memory() {
    if let [Ok(dir), Ok(endpoint)] = CHILD.map(std::env::var) {
        return transfer(Path::new(&dir), endpoint).await;
    }
    let (dir, weed) = (tempfile::tempdir().unwrap(), Weed::start());
    s3(&weed);
    let total = BYTES * scale() * scale();
    let (_, mut store) = FjallSnapshot::load(&dir.path().join("fold")).unwrap();
    for at in 0..total / VALUE as u64 {
        let version = VersionToken::from_u64(at + 1);
        let entry = KvEntry {
            key: format!("k.{at:06}").as_str().into(),
            value: vec![at as u8; VALUE].into(),
            version,
        };
        let cursor = store.cursor();
        store.apply(&[KvUpdate::Put(entry)], &cursor).unwrap();
    }
    drop(store);
    let (_, name) = concat!(module_path!(), "::a_large_fold_travels_in_little_memory")
        .split_once("::")
        .unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD[0], dir.path())
        .env(CHILD[1], weed.endpoint())
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    let figures = said.lines().find_map(|line| {
        let figures: Result<Vec<u64>, _> = line.split(' ').map(str::parse).collect();
        <[u64; 3]>::try_from(figures.ok()?).ok()
    });
    let [size, above, while_restored] = figures.expect("it says how much it took");
    println!(
        "{size} bytes there and back, {above} bytes of memory; {while_restored} to restore it"
    );
    assert!(size >= total / 10 * 9, "{size} of {total} bytes travelled");
    // A small one takes less than itself.
    assert!(above <= MEMORY_MAX.min(size / 4 * 3), "{above} bytes of memory for a fold of {size}");
    assert!(while_restored <= RESTORE_MAX, "{while_restored} bytes of memory to restore {size}");
}
