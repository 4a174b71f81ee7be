//! A bucket on a server, and a fold of it on disk.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::datetime;
use futures_util::TryStreamExt;
use slipstream::{
    AppendLogSnapshot, Applier, Connection, Ended, FoldConfig, FoldHandle, FoldStatus, KvEntry,
    KvUpdate, NatsConnection, SnapshotReader, SnapshotStore, StoreConfig, VersionToken, WatchScope,
    fold_control, watch_applied,
};
use tempfile::TempDir;
use tokio::runtime::Handle;
use tokio::sync::{Mutex, OwnedMutexGuard, Semaphore};
use tokio::task::JoinHandle;

use crate::backend::Bucket;
use crate::server::NatsServer;

/// Longer than anything here takes, on a busy machine too.
pub(super) const PATIENCE: Duration = Duration::from_secs(90);

/// Values, and the versions that hold them.
pub(super) type Contents = BTreeMap<String, (Vec<u8>, VersionToken)>;

pub(super) fn scopes() -> [WatchScope; 3] {
    let many = WatchScope::Prefixes(vec!["k.".into(), "l.".into()]);
    [WatchScope::All, WatchScope::Prefix("k.".into()), many]
}

/// A directory for one fold.
pub(super) struct Disk(TempDir);

impl Disk {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().join("fold")
    }
}

fn by_key(entries: Vec<KvEntry>) -> Contents {
    let held = |entry: KvEntry| (entry.value.to_vec(), entry.version);
    entries.into_iter().map(|entry| (entry.key.as_str().to_owned(), held(entry))).collect()
}

pub(super) fn contents(reader: &impl SnapshotReader) -> Contents {
    by_key(reader.range("").unwrap())
}

pub(super) async fn contents_of(bucket: &Bucket, prefix: &str) -> Contents {
    by_key(bucket.reader.scan(prefix).await.unwrap())
}

/// What a fold of the scope has to be.
pub(super) async fn contents_in(bucket: &Bucket, scope: &WatchScope) -> Contents {
    let mut all = Contents::new();
    for prefix in scope.prefixes() {
        all.extend(contents_of(bucket, prefix).await);
    }
    all
}

pub(super) async fn bucket_on(connection: &NatsConnection) -> Bucket {
    let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
    for _ in 0..200 {
        match connection.store("b", &config).await {
            // The server may still be removing the files of the bucket of that name that was deleted.
            Err(error) if error.to_string().contains("error creating store") => {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            made => return Bucket::of(made.unwrap()),
        }
    }
    panic!("the server goes on removing the bucket that was deleted")
}

pub(super) async fn jetstream(server: &NatsServer) -> async_nats::jetstream::Context {
    async_nats::jetstream::new(async_nats::connect(server.url()).await.unwrap())
}

/// Keys of every scope, and others between them that only the whole bucket has: three writes each.
pub(super) async fn fill_mixed(bucket: &Bucket, keys: std::ops::Range<u32>, value: &str) {
    for at in keys {
        for place in ["k", "other", "l"] {
            bucket.put(&format!("{place}.{at:04}"), value).await;
        }
    }
}

/// The log forgets everything below a revision.
pub(super) async fn evict_below(server: &NatsServer, first: u64) {
    let stream = jetstream(server).await.get_stream("KV_b").await.unwrap();
    stream.purge().sequence(first).await.unwrap();
}

/// The server sends nothing to the watches that there are, though it stays in touch with them, until
/// it is told to go on.
pub(super) struct Paused {
    stream: async_nats::jetstream::stream::Stream,
    watches: Vec<String>,
}

impl Paused {
    pub(super) async fn on(server: &NatsServer) -> Self {
        let stream = jetstream(server).await.get_stream("KV_b").await.unwrap();
        let watches: Vec<String> = stream.consumer_names().try_collect().await.unwrap();
        let until = datetime::add_std_duration(datetime::now(), PATIENCE * 2).unwrap();
        for watch in &watches {
            assert!(stream.pause_consumer(watch, until).await.unwrap().paused);
        }
        Self { stream, watches }
    }

    pub(super) async fn go_on(self) {
        for watch in &self.watches {
            assert!(!self.stream.resume_consumer(watch).await.unwrap().paused);
        }
    }
}

pub(super) fn config(bucket: &Bucket, scope: &WatchScope) -> FoldConfig {
    FoldConfig { scope: scope.clone(), ..FoldConfig::new(bucket.store.watcher().unwrap()) }
}

/// Applies nothing while it is held.
#[derive(Clone, Default)]
pub(super) struct Gate {
    held: Arc<Mutex<()>>,
    reached: Arc<AtomicBool>,
}

impl Gate {
    pub(super) async fn hold(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.held).lock_owned().await
    }

    /// Waits until something is there to be applied.
    pub(super) async fn reached(&self) {
        let reached = async {
            while !self.reached.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.expect("something to apply");
    }
}

impl Applier for Gate {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        Some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        self.reached.store(true, Ordering::SeqCst);
        drop(self.held.blocking_lock());
    }
}

/// Stops at each key that begins with `stop`, until it is told to go on.
#[derive(Clone)]
pub(super) struct Stops {
    reached: Arc<Semaphore>,
    go: Arc<Semaphore>,
}

impl Stops {
    pub(super) fn new() -> Self {
        let none = || Arc::new(Semaphore::new(0));
        Self { reached: none(), go: none() }
    }

    /// Waits until it stands at the next one.
    pub(super) async fn reached(&self) {
        let reached = tokio::time::timeout(PATIENCE, self.reached.acquire()).await;
        reached.expect("another stop").unwrap().forget();
    }

    pub(super) fn go_on(&self) {
        self.go.add_permits(1);
    }
}

impl Applier for Stops {
    type Item = ();

    fn parse(&mut self, update: &KvUpdate) -> Option<()> {
        update.key().as_str().starts_with("stop").then_some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        self.reached.add_permits(1);
        let go = async { tokio::time::timeout(PATIENCE, self.go.acquire()).await };
        Handle::current().block_on(go).expect("to be told to go on").unwrap().forget();
    }
}

/// Counts the updates, and those of a revision that was there before.
#[derive(Clone, Default)]
pub(super) struct Seen(Arc<[AtomicU64; 3]>);

impl Seen {
    pub(super) fn all(&self) -> u64 {
        self.0[0].load(Ordering::SeqCst)
    }

    pub(super) fn again(&self) -> u64 {
        self.0[1].load(Ordering::SeqCst)
    }
}

impl Applier for Seen {
    type Item = ();

    fn parse(&mut self, update: &KvUpdate) -> Option<()> {
        let [all, again, highest] = &*self.0;
        let revision = update.version().as_u64().unwrap();
        let new = highest.fetch_max(revision, Ordering::SeqCst) < revision;
        all.fetch_add(1, Ordering::SeqCst);
        again.fetch_add(u64::from(!new), Ordering::SeqCst);
        None
    }

    fn apply(&mut self, _: Vec<()>) {}
}

/// A fold that runs.
pub(super) struct Running<S: SnapshotStore = AppendLogSnapshot> {
    pub(super) handle: FoldHandle,
    reader: S::Reader,
    task: JoinHandle<Ended<S>>,
}

pub(super) fn start(config: FoldConfig, disk: &Disk) -> Running {
    start_with(config, disk, ())
}

pub(super) fn start_with(config: FoldConfig, disk: &Disk, applier: impl Applier) -> Running {
    start_on(config, disk, applier)
}

pub(super) fn start_on<S: SnapshotStore>(
    config: FoldConfig,
    disk: &Disk,
    applier: impl Applier,
) -> Running<S> {
    let (_, store) = S::load(&disk.path()).unwrap();
    let reader = store.reader();
    let (handle, control) = fold_control();
    let task = tokio::spawn(watch_applied(config, store, applier, control));
    Running { handle, reader, task }
}

impl<S: SnapshotStore> Running<S> {
    pub(super) fn status(&self) -> FoldStatus {
        self.handle.status().borrow().clone()
    }

    pub(super) fn contents(&self) -> Contents {
        contents(&self.reader)
    }

    pub(super) async fn until(&self, what: &str, done: impl Fn(&FoldStatus) -> bool) {
        let mut status = self.handle.status();
        match tokio::time::timeout(PATIENCE, status.wait_for(|status| done(status))).await {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the fold ended before {what}: {:?}", self.status()),
            Err(_) => panic!("no {what}: {:?}", self.status()),
        }
    }

    pub(super) async fn synced(&self) {
        self.until("sync", |status| status.synced).await;
    }

    pub(super) async fn has(&self, revision: u64) {
        match tokio::time::timeout(PATIENCE, self.handle.wait_for(revision)).await {
            Ok(Ok(())) => {}
            _ => panic!("not at {revision}: {:?}", self.status()),
        }
    }

    /// Waits until the fold has everything that is in the bucket now.
    pub(super) async fn caught_up(&self, bucket: &Bucket) {
        self.has(bucket.watcher.log().await.unwrap().last).await;
    }

    pub(super) async fn stop(self) -> Ended<S> {
        self.handle.shutdown();
        self.ended().await
    }

    pub(super) async fn ended(self) -> Ended<S> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap()
    }
}
