//! Folds on any store whose process is killed while somebody writes.
//!
//! Also a module of the tests of `slipstream-rocksdb` and `slipstream-cli`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slipstream::{
    Applier, Connection, Ended, FoldConfig, FoldHandle, KvEntry, KvStore, KvUpdate, KvWriter,
    LogCursor, SnapshotStore, StoreConfig, VersionToken, WatchScope, fold_control, watch_applied,
};
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::task::JoinHandle;

use crate::server::{NatsServer, connect};

/// Longer than anything here takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

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

pub(crate) struct Fold<S: SnapshotStore> {
    handle: FoldHandle,
    delivered: Delivered,
    task: JoinHandle<Ended<S>>,
}

impl<S: SnapshotStore> Fold<S> {
    /// Of the keys that begin with `k.`.
    pub(crate) fn start(bucket: &dyn KvStore, path: &Path) -> Self {
        let (_, store) = S::load(path).unwrap();
        let config = FoldConfig {
            scope: WatchScope::Prefix("k.".into()),
            ..FoldConfig::new(bucket.watcher().unwrap())
        };
        let ((handle, control), delivered) = (fold_control(), Delivered::default());
        let task = tokio::spawn(watch_applied(config, store, delivered.clone(), control));
        Self { handle, delivered, task }
    }

    pub(crate) async fn has(&self, revision: u64) {
        let waited = tokio::time::timeout(PATIENCE, self.handle.wait_for(revision)).await;
        waited.expect("the fold goes on").unwrap();
    }

    /// How many updates it was sent, when it is told to stop and is what the bucket has.
    pub(crate) async fn stop_equal_to(self, bucket: &dyn KvStore, repairs: u64) -> u64 {
        assert_eq!(self.handle.status().borrow().repairs, repairs, "nothing was lost");
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

/// The writer comes back to a key after so many writes: later than between two looks of the fold.
const RING: u64 = 100_000;

/// Writes all the time, but for when somebody takes its turn.
pub(crate) struct Writer {
    turn: Arc<Mutex<()>>,
    /// The last revision that it was told.
    last: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Writer {
    pub(crate) fn start(writer: Arc<dyn KvWriter>) -> Self {
        let turn = Arc::new(Mutex::new(()));
        let (told, last) = watch::channel(0);
        let its_turn = Arc::clone(&turn);
        let task = tokio::spawn(async move {
            for written in 0u64.. {
                let _turn = its_turn.lock().await;
                let key = format!("k.{}", written * 7919 % RING);
                let version = writer.put(&key, format!("{written}").into()).await.unwrap();
                told.send_replace(version.as_u64().unwrap());
            }
        });
        Self { turn, last, task }
    }

    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Waits for so many more writes.
    pub(crate) async fn goes_on(&self, writes: u64) {
        let (mut last, until) = (self.last.clone(), self.last() + writes);
        let waited = tokio::time::timeout(PATIENCE, last.wait_for(|last| *last >= until)).await;
        waited.expect("the writer goes on").unwrap();
    }

    pub(crate) async fn pause(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) fn soak_scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().unwrap())
}

/// In one run of the test command; a soak multiplies it.
const KILLS: u64 = 5;
/// Set in a process that is to be killed: the path of its fold, and where its server is.
const CHILD: [&str; 2] = ["SLIPSTREAM_KILLED_FOLD", "SLIPSTREAM_KILLED_FOLD_SERVER"];

/// Folds until it is killed. Says so once it has stored something.
async fn fold_until_killed<S: SnapshotStore>(path: &Path, url: &str) {
    let bucket = connect(url).await.open("b").await.unwrap();
    let fold = Fold::<S>::start(&*bucket, path);
    fold.handle.status().wait_for(|status| status.updates > 0).await.unwrap();
    // libtest has begun a line.
    println!("\nfolding");
    fold.task.await.unwrap();
}

/// Returns when it has stored something.
fn spawn_fold(test: &str, path: &Path, server: &NatsServer) -> Child {
    let (_crate, name) = test.split_once("::").unwrap();
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

/// A writer, and children that fold into one directory and are killed. What the next fold reads is
/// exactly what the log has above the cursor on disk, and then the copy is the bucket.
///
/// `test` is the path of the test that calls this, and does nothing else: a child runs it, too.
pub(crate) async fn reads_only_what_it_lacks<S: SnapshotStore>(test: &str) {
    if let [Ok(path), Ok(url)] = CHILD.map(std::env::var) {
        return fold_until_killed::<S>(Path::new(&path), &url).await;
    }
    let server = NatsServer::start();
    let bucket = server.connect().await.store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fold");
    let writer = Writer::start(bucket.writer().unwrap());
    let (kills, mut began_at, mut behind) = (KILLS * soak_scale(), 0, 0);
    for round in 0..kills {
        let mut child = spawn_fold(test, &path, &server);
        writer.goes_on(20 + round * 37 % 400).await;
        let written = writer.last();
        child.kill().unwrap();
        child.wait().unwrap();
        writer.goes_on(20).await;
        let paused = writer.pause().await;
        let cursor = S::load(&path).unwrap().0;
        // One that is killed in its first listing begins again.
        let cursor = LogCursor::decode(&cursor).unwrap();
        let stored = cursor.position.revision;
        assert!(stored > began_at || cursor.in_repair, "round {round}: {began_at}, {stored}");
        behind += u64::from(stored < written);
        let current = bucket.reader().scan("k.").await.unwrap();
        let lacking = current.iter().filter(|entry| entry.version.as_u64() > Some(stored)).count();
        let fold = Fold::<S>::start(&*bucket, &path);
        began_at = writer.last();
        fold.has(began_at).await;
        let delivered = fold.stop_equal_to(&*bucket, u64::from(cursor.in_repair)).await;
        // A repair drops keys besides.
        let more = cursor.in_repair && delivered > lacking as u64;
        assert!(delivered == lacking as u64 || more, "round {round}, from {stored}: {delivered}");
        drop(paused);
    }
    assert!(behind * 3 >= kills, "{behind} of {kills} were killed before they had everything");
}
