//! A fold of a bucket on a real server: the server is killed, or the process that folds.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use slipstream::{
    Applier, Connection, Ended, FoldConfig, FoldHandle, KvEntry, KvStore, KvUpdate, SnapshotReader,
    SnapshotStore, StoreConfig, VersionToken, WatchScope, fold_control, watch_applied,
};
use slipstream_rocksdb::RocksDbSnapshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::server::{NatsServer, connect};

/// Longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(90);

/// Counts what is delivered.
#[derive(Clone, Default)]
struct Delivered(Arc<AtomicU64>);

impl Applier for Delivered {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        self.0.fetch_add(1, Ordering::SeqCst);
        None
    }

    fn apply(&mut self, _: Vec<()>) {}
}

struct Fold {
    handle: FoldHandle,
    delivered: Delivered,
    task: JoinHandle<Ended<RocksDbSnapshot>>,
}

impl Fold {
    fn start(bucket: &dyn KvStore, path: &Path) -> Self {
        let (_, store) = RocksDbSnapshot::load(path).unwrap();
        let config = FoldConfig {
            scope: WatchScope::Prefix("k.".into()),
            ..FoldConfig::new(bucket.watcher().unwrap(), Some(bucket.reader()))
        };
        let ((handle, control), delivered) = (fold_control(), Delivered::default());
        let task = tokio::spawn(watch_applied(config, store, delivered.clone(), control));
        Self { handle, delivered, task }
    }

    async fn has(&self, revision: u64) {
        let waited = tokio::time::timeout(PATIENCE, self.handle.wait_for(revision)).await;
        waited.expect("the fold goes on").unwrap();
    }

    /// How many updates it was sent, when it is told to stop and is what the bucket has.
    async fn stop_equal_to(self, bucket: &dyn KvStore) -> u64 {
        assert_eq!(self.handle.status().borrow().repairs, 0, "nothing was lost");
        self.handle.shutdown();
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
        assert!(ended.result.is_ok(), "{:?}", ended.result);
        let by_key = |entries: Vec<KvEntry>| -> BTreeMap<String, (Vec<u8>, VersionToken)> {
            let held = |entry: &KvEntry| (entry.value.to_vec(), entry.version);
            entries.iter().map(|entry| (entry.key.as_str().to_owned(), held(entry))).collect()
        };
        let current = by_key(bucket.reader().scan("k.").await.unwrap());
        assert_eq!(by_key(ended.store.range("").unwrap()), current);
        self.delivered.0.load(Ordering::SeqCst)
    }
}

/// 20 writes, half of them of the scope: of keys from `at` on.
async fn write(bucket: &dyn KvStore, at: u32, value: &str) -> u64 {
    let writer = bucket.writer().unwrap();
    let mut last = 0;
    for at in at..at + 10 {
        for place in ["other", "k"] {
            let put = writer.put(&format!("{place}.{at}"), value.to_owned().into()).await;
            last = put.unwrap().as_u64().unwrap();
        }
    }
    last
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_goes_on_after_a_killed_server_and_a_restart_with_what_follows() {
    let mut server = NatsServer::start();
    let bucket = server.connect().await.store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let before = write(&*bucket, 0, "before").await;
    let fold = Fold::start(&*bucket, &path);
    fold.has(before).await;
    server.kill();
    server.restart();
    let connection = server.connect().await;
    let bucket = connection.open("b").await.unwrap();
    let after = write(&*bucket, 5, "after a kill").await;
    fold.has(after).await;
    assert_eq!(fold.stop_equal_to(&*bucket).await, 20, "each once");
    // While it is away: five keys are new, five are written over, one is deleted.
    let away = write(&*bucket, 10, "while it was away").await;
    bucket.writer().unwrap().delete("k.0").await.unwrap();
    let fold = Fold::start(&*bucket, &path);
    fold.has(away + 1).await;
    assert_eq!(fold.stop_equal_to(&*bucket).await, 11, "the delta");
}

/// In one run of the test command; a soak multiplies it.
const KILLS: u64 = 5;
/// Set in a process that is to be killed: the path of its fold, and where its server is.
const CHILD: [&str; 2] =
    ["SLIPSTREAM_ROCKSDB_KILLED_FOLD", "SLIPSTREAM_ROCKSDB_KILLED_FOLD_SERVER"];

/// Folds until it is killed. Says so once it has stored something.
async fn fold_until_killed(path: &Path, url: &str) {
    let bucket = connect(url).await.open("b").await.unwrap();
    let fold = Fold::start(&*bucket, path);
    fold.handle.status().wait_for(|status| status.updates > 0).await.unwrap();
    // libtest has begun a line.
    println!("\nfolding");
    fold.task.await.unwrap();
}

/// Returns when it has stored something.
fn spawn_fold(path: &Path, server: &NatsServer) -> Child {
    let name = "faults::a_fold_that_is_killed_beside_a_writer_reads_only_what_it_lacks";
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD[0], path)
        .env(CHILD[1], server.url())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "folding"), "the child folds");
    child
}

/// Writes until it is told to stop, and tells the last revision.
struct Writer {
    last: watch::Receiver<u64>,
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Writer {
    fn start(bucket: &dyn KvStore) -> Self {
        let (writer, stop) = (bucket.writer().unwrap(), Arc::new(AtomicBool::new(false)));
        let ((told, last), stopped) = (watch::channel(0), Arc::clone(&stop));
        let task = tokio::spawn(async move {
            let mut written = 0u64;
            while !stopped.load(Ordering::SeqCst) {
                let key = format!("k.{}", written * 7919 % 10_000);
                let version = writer.put(&key, written.to_string().into()).await.unwrap();
                told.send_replace(version.as_u64().unwrap());
                written += 1;
            }
        });
        Self { last, stop, task }
    }

    /// The last revision, after at least so many more writes.
    async fn goes_on(&self, writes: u64) -> u64 {
        let (mut last, until) = (self.last.clone(), *self.last.borrow() + writes);
        let waited = tokio::time::timeout(PATIENCE, last.wait_for(|last| *last >= until)).await;
        *waited.expect("the writer goes on").unwrap()
    }

    /// The last revision of all.
    async fn stop(self) -> u64 {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
        *self.last.borrow()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_is_killed_beside_a_writer_reads_only_what_it_lacks() {
    if let [Ok(path), Ok(url)] = CHILD.map(std::env::var) {
        return fold_until_killed(Path::new(&path), &url).await;
    }
    let scale: u64 = std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().unwrap());
    let (kills, mut began_at, mut behind) = (KILLS * scale, 0, 0);
    let server = NatsServer::start();
    let bucket = server.connect().await.store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    for round in 0..kills {
        let writer = Writer::start(&*bucket);
        let mut child = spawn_fold(&path, &server);
        let written = writer.goes_on(20 + round * 37 % 400).await;
        child.kill().unwrap();
        child.wait().unwrap();
        writer.goes_on(20).await;
        let last = writer.stop().await;
        let stored = RocksDbSnapshot::load(&path).unwrap().0.revision().unwrap();
        assert!(stored > began_at, "round {round}: {began_at}, {stored}");
        behind += u64::from(stored < written);
        let current = bucket.reader().scan("k.").await.unwrap();
        let lacking = current.iter().filter(|entry| entry.version.as_u64() > Some(stored)).count();
        let fold = Fold::start(&*bucket, &path);
        fold.has(last).await;
        let delivered = fold.stop_equal_to(&*bucket).await;
        assert_eq!(delivered, lacking as u64, "round {round}, from {stored}");
        began_at = last;
    }
    assert!(behind * 3 >= kills, "{behind} of {kills} were killed before they had everything");
}
