//! A fold under test: a bucket in memory, a store that can be told to fail, an applier that notes
//! what it is told.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use slipstream::{
    Applier, BatchConfig, Connection, Ended, EntryRef, FoldConfig, FoldHandle, FoldStatus, Key,
    KvEntry, KvReader, KvStore, KvUpdate, KvWriter, MemoryBucket, MemoryConnection, SnapshotError,
    SnapshotReader, SnapshotStore, StoreConfig, WatchCursor, WatchScope, fold_control,
    watch_applied,
};
use tokio::task::JoinHandle;

/// Longer than anything here takes; a test that waits so long has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);

/// A fold in memory. Clones share it, as reopened files would.
#[derive(Clone, Default)]
pub(super) struct TestStore {
    inner: Arc<Mutex<Inner>>,
    slow: Arc<SlowReads>,
}

/// Apart from the rest, which is locked while it is read.
#[derive(Default)]
struct SlowReads {
    /// After each entry.
    pause_ms: AtomicU64,
    /// Since there is a pause.
    entries: AtomicU64,
}

#[derive(Default)]
pub(super) struct Inner {
    pub(super) entries: BTreeMap<String, KvEntry>,
    pub(super) cursor: WatchCursor,
    /// So many applies to come fail.
    pub(super) failing: u32,
    pub(super) failed: u32,
    /// Applies are put off, as by readers of an engine.
    pub(super) being_read: bool,
    pub(super) put_off: u32,
    /// What was applied, batch by batch: keys, with a `-` before those that were deleted.
    pub(super) batches: Vec<Vec<String>>,
    /// Reads fail.
    pub(super) unreadable: bool,
}

impl TestStore {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads of many entries pause after each from now on.
    pub(super) fn read_slowly(&self, pause: Duration) {
        self.slow.pause_ms.store(pause.as_millis() as u64, Ordering::SeqCst);
    }

    pub(super) fn entries_read_slowly(&self) -> u64 {
        self.slow.entries.load(Ordering::SeqCst)
    }

    pub(super) fn contents(&self) -> BTreeMap<String, String> {
        let inner = self.lock();
        let text = |entry: &KvEntry| String::from_utf8(entry.value.to_vec()).unwrap();
        inner.entries.iter().map(|(key, entry)| (key.clone(), text(entry))).collect()
    }
}

fn full_disk() -> SnapshotError {
    SnapshotError::Io { doing: "writing", source: std::io::ErrorKind::StorageFull.into() }
}

impl SnapshotStore for TestStore {
    type Reader = Self;

    fn load(_: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Ok((WatchCursor::none(), Self::default()))
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        let mut inner = self.lock();
        if inner.failing > 0 {
            inner.failing -= 1;
            inner.failed += 1;
            return Err(full_disk());
        }
        if inner.being_read {
            inner.put_off += 1;
            return Err(SnapshotError::BeingRead);
        }
        let mut noted = Vec::new();
        for update in batch {
            let key = update.key().as_str().to_owned();
            match update {
                KvUpdate::Put(entry) => {
                    noted.push(key.clone());
                    inner.entries.insert(key, entry.clone());
                }
                _ => {
                    noted.push(format!("-{key}"));
                    inner.entries.remove(&key);
                }
            }
        }
        if !noted.is_empty() {
            inner.batches.push(noted);
        }
        inner.cursor = cursor.clone();
        Ok(())
    }

    fn reader(&self) -> Self {
        self.clone()
    }
}

impl SnapshotReader for TestStore {
    fn cursor(&self) -> WatchCursor {
        self.lock().cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        Ok(self.lock().entries.get(key).cloned())
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let inner = self.lock();
        if inner.unreadable {
            return Err(full_disk());
        }
        for (key, entry) in inner.entries.range(prefix.to_owned()..) {
            if !key.starts_with(prefix) {
                break;
            }
            let entry = EntryRef { key, value: &entry.value, version: entry.version };
            if f(entry).is_break() {
                break;
            }
            let pause = self.slow.pause_ms.load(Ordering::SeqCst);
            if pause > 0 {
                self.slow.entries.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(pause));
            }
        }
        Ok(())
    }
}

/// What an applier was told, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Applied(Vec<String>),
    Stored(u64),
    Unconfirmed(Vec<String>),
}

/// Notes what it is told; keys that begin with `junk` do not concern it. Applies nothing while it is
/// held.
#[derive(Clone, Default)]
pub(super) struct Notes {
    told: Arc<Mutex<Vec<Told>>>,
    gate: Arc<Gate>,
}

/// How many more batches may be applied.
struct Gate {
    allowed: Mutex<u64>,
    changed: Condvar,
}

impl Default for Gate {
    fn default() -> Self {
        Self { allowed: Mutex::new(u64::MAX), changed: Condvar::new() }
    }
}

/// Nothing is applied while this lives, but what it lets pass.
pub(super) struct Held(Arc<Gate>);

impl Held {
    pub(super) fn let_one_pass(&self) {
        *self.0.allowed.lock().unwrap() += 1;
        self.0.changed.notify_all();
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.0.allowed.lock().unwrap() = u64::MAX;
        self.0.changed.notify_all();
    }
}

impl Notes {
    pub(super) fn hold(&self) -> Held {
        *self.gate.allowed.lock().unwrap() = 0;
        Held(Arc::clone(&self.gate))
    }

    pub(super) fn taken(&self) -> Vec<Told> {
        self.told.lock().unwrap().clone()
    }

    /// The items of every batch, one after the other.
    pub(super) fn applied(&self) -> Vec<String> {
        let of = |told| match told {
            Told::Applied(items) => items,
            _ => Vec::new(),
        };
        self.taken().into_iter().flat_map(of).collect()
    }

    fn push(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }
}

impl Applier for Notes {
    type Item = String;

    fn parse(&mut self, update: &KvUpdate) -> Option<String> {
        let key = update.key().as_str();
        let deleted = if matches!(update, KvUpdate::Put(_)) { "" } else { "-" };
        (!key.starts_with("junk")).then(|| format!("{deleted}{key}"))
    }

    fn apply(&mut self, batch: Vec<String>) {
        let allowed = self.gate.allowed.lock().unwrap();
        let mut allowed = self.gate.changed.wait_while(allowed, |allowed| *allowed == 0).unwrap();
        if *allowed < u64::MAX {
            *allowed -= 1;
        }
        drop(allowed);
        self.push(Told::Applied(batch));
    }

    fn on_applied(&mut self, _: &WatchCursor, revision: u64) {
        self.push(Told::Stored(revision));
    }

    fn unconfirmed(&mut self, keys: Vec<Key>) {
        self.push(Told::Unconfirmed(keys.iter().map(|key| key.as_str().to_owned()).collect()));
    }
}

/// A bucket and what may be done with it.
pub(super) struct World {
    pub(super) bucket: MemoryBucket,
    pub(super) kv: Arc<dyn KvStore>,
    pub(super) writer: Arc<dyn KvWriter>,
    pub(super) reader: Arc<dyn KvReader>,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(StoreConfig::default()).await
    }

    pub(super) async fn with(config: StoreConfig) -> Self {
        let connection = MemoryConnection::new();
        let kv = connection.store("test", &config).await.unwrap();
        let bucket = connection.bucket("test").unwrap();
        let (writer, reader) = (kv.writer().unwrap(), kv.reader());
        Self { bucket, kv, writer, reader }
    }

    pub(super) async fn put(&self, key: &str, value: &str) -> u64 {
        let version = self.writer.put(key, value.to_owned().into()).await.unwrap();
        version.as_u64().unwrap()
    }

    pub(super) async fn delete(&self, key: &str) {
        self.writer.delete(key).await.unwrap();
    }

    pub(super) async fn contents(&self, prefix: &str) -> BTreeMap<String, String> {
        let text = |entry: KvEntry| {
            let value = String::from_utf8(entry.value.to_vec()).unwrap();
            (entry.key.as_str().to_owned(), value)
        };
        self.reader.scan(prefix).await.unwrap().into_iter().map(text).collect()
    }

    pub(super) fn config(&self) -> FoldConfig {
        FoldConfig {
            batch: BatchConfig { window: Duration::from_millis(1), ..BatchConfig::default() },
            ..FoldConfig::new(self.kv.watcher().unwrap())
        }
    }

    /// Batches stay open until something closes them.
    pub(super) fn gathering(&self) -> FoldConfig {
        let batch = BatchConfig { window: Duration::from_secs(3600), ..BatchConfig::default() };
        FoldConfig { batch, ..self.config() }
    }

    pub(super) fn scoped(&self, prefix: &str) -> FoldConfig {
        FoldConfig { scope: WatchScope::Prefix(prefix.into()), ..self.config() }
    }
}

/// A fold that runs.
pub(super) struct Running {
    pub(super) handle: FoldHandle,
    pub(super) store: TestStore,
    pub(super) notes: Notes,
    task: JoinHandle<Ended<TestStore>>,
}

pub(super) fn start(config: FoldConfig, store: &TestStore) -> Running {
    let (handle, control) = fold_control();
    let notes = Notes::default();
    let task = tokio::spawn(watch_applied(config, store.clone(), notes.clone(), control));
    Running { handle, store: store.clone(), notes, task }
}

impl Running {
    pub(super) fn status(&self) -> FoldStatus {
        self.handle.status().borrow().clone()
    }

    pub(super) async fn until(&self, what: &str, done: impl Fn(&FoldStatus) -> bool) {
        let mut status = self.handle.status();
        let waited = tokio::time::timeout(PATIENCE, status.wait_for(|status| done(status))).await;
        match waited {
            Ok(Ok(_)) => {}
            Ok(Err(_)) => panic!("the fold ended before {what}: {:?}", self.status()),
            Err(_) => panic!("no {what}: {:?}", self.status()),
        }
    }

    pub(super) async fn synced(&self) {
        self.until("sync", |status| status.synced).await;
    }

    /// Waits until the fold has everything that is in the bucket now.
    pub(super) async fn caught_up(&self, world: &World) {
        let head = world.bucket.log().last;
        tokio::time::timeout(PATIENCE, self.handle.wait_for(head))
            .await
            .unwrap_or_else(|_| panic!("not at {head}: {:?}", self.status()))
            .unwrap();
    }

    pub(super) async fn stop(self) -> Ended<TestStore> {
        self.handle.shutdown();
        self.ended().await
    }

    pub(super) async fn ended(self) -> Ended<TestStore> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap()
    }
}
