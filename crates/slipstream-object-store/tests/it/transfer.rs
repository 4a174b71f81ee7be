//! How much memory a large fold takes on its way.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use slipstream::artifact::About;
use slipstream::transport::{ArtifactTransport, PublishOutcome, import_remote};
use slipstream::{
    Connection, FjallSnapshot, KvEntry, KvUpdate, KvWatcher, MemoryConnection, SnapshotReader,
    SnapshotStore, StoreConfig, VersionToken, WatchScope,
};

use crate::fleet::{KEY, transport};
use crate::rounds::scale;
use crate::stores::{s3, s3_at};
use crate::weed::Weed;

/// Of a fold in one run of the test command. A soak multiplies it by its scale twice: seven times seven
/// is 5 GB.
const BYTES: u64 = 110_000_000;
const VALUE: usize = 500_000;

/// Above what the process has before.
const MEMORY_MAX: u64 = 200_000_000;

/// Set in the process that is measured: where its fold is, and its store.
const CHILD: [&str; 2] = ["SLIPSTREAM_TRANSFER", "SLIPSTREAM_TRANSFER_S3"];

/// A line of `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

/// A watcher of a bucket that has one message, and a fold that stands there.
async fn stands_at_a_log(store: &mut FjallSnapshot) -> Arc<dyn KvWatcher> {
    let bucket = MemoryConnection::new().store(KEY, &StoreConfig::default()).await.unwrap();
    bucket.writer().unwrap().put("k", "v".into()).await.unwrap();
    let watcher = bucket.watcher().unwrap();
    let mut watch = watcher.watch_from(&WatchScope::All, None).await.unwrap();
    watch.next(&mut Vec::new(), 1).await.unwrap();
    store.apply(&[], &watch.cursor()).unwrap();
    watcher
}

/// There and back; says the peak of its memory above what it had before.
async fn transfer(dir: &Path, endpoint: String) {
    let (_, mut store) = FjallSnapshot::load(&dir.join("fold")).unwrap();
    let watcher = stands_at_a_log(&mut store).await;
    let artifact = dir.join("artifact");
    let manifest = store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    let transport = transport(&s3_at(endpoint));
    // Forgets the peak.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = status("VmRSS:");
    let (_, outcome) = transport.upload(KEY, &artifact, &*watcher).await.unwrap();
    assert_eq!(outcome, PublishOutcome::Published);
    let (path, all) = (dir.join("imported"), WatchScope::All);
    let imported = import_remote::<FjallSnapshot>(&transport, KEY, &*watcher, &path, &all).await;
    let above = status("VmHWM:") - before;
    assert_eq!(imported.unwrap().unwrap().total_size(), manifest.total_size());
    // libtest has begun a line.
    println!("\n{} {above}", manifest.total_size());
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
        let (size, above) = line.split_once(' ')?;
        Some((size.parse::<u64>().ok()?, above.parse::<u64>().ok()?))
    });
    let (size, above) = figures.expect("it says how much it took");
    println!("{size} bytes there and back, {above} bytes of memory");
    assert!(size >= total / 10 * 9, "{size} of {total} bytes travelled");
    // A small one takes less than itself.
    assert!(above <= MEMORY_MAX.min(size / 4 * 3), "{above} bytes of memory for a fold of {size}");
}
