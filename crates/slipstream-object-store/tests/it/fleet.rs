//! A bucket, nodes that fold it, and what they share.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
use slipstream::transport::{
    ArtifactTransport, ExportRound, RoundError, RoundOutcome, import_remote, run_export_round,
};
use slipstream::{
    AppendLogSnapshot, Applier, Connection, Ended, ExportLease, FoldConfig, FoldHandle, FoldStatus,
    KvEntry, KvStore, KvWatcher, MemoryBucket, MemoryConnection, SnapshotReader, SnapshotStore,
    StoreConfig, WatchCursor, WatchScope, fold_control, watch_applied,
};
use slipstream_object_store::ObjectStoreTransport;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Longer than anything here takes, on a busy machine too.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
pub(crate) const KEY: &str = "rules";

pub(crate) fn transport(store: &Arc<dyn ObjectStore>) -> ObjectStoreTransport {
    ObjectStoreTransport::new(Arc::clone(store), "fleet/artifacts")
}

/// A bucket and a place for its folds.
pub(crate) struct Fleet {
    pub(crate) bucket: Arc<dyn KvStore>,
    leases: Arc<dyn KvStore>,
    pub(crate) dir: TempDir,
}

impl Fleet {
    /// In memory; and what makes the bucket lie.
    pub(crate) async fn in_memory() -> (Self, MemoryBucket) {
        Self::named(KEY).await
    }

    /// The same, of a bucket of another name.
    pub(crate) async fn named(name: &str) -> (Self, MemoryBucket) {
        let connection = MemoryConnection::new();
        let fleet = Self::of(&connection, name).await;
        (fleet, connection.bucket(name).unwrap())
    }

    pub(crate) async fn on(connection: &dyn Connection) -> Self {
        Self::of(connection, KEY).await
    }

    async fn of(connection: &dyn Connection, name: &str) -> Self {
        let unlimited = StoreConfig { max_bytes: None, ..StoreConfig::default() };
        Self::with(connection, name, &unlimited).await
    }

    /// With its folds in a directory that somebody else removes.
    pub(crate) async fn beneath(connection: &dyn Connection, dir: &Path) -> Self {
        let dir = tempfile::tempdir_in(dir).unwrap();
        Self { dir, ..Self::on(connection).await }
    }

    pub(crate) async fn with(
        connection: &dyn Connection,
        name: &str,
        config: &StoreConfig,
    ) -> Self {
        let unlimited = StoreConfig { max_bytes: None, ..StoreConfig::default() };
        let bucket = connection.store(name, config).await.unwrap();
        let leases = connection.store("leases", &unlimited).await.unwrap();
        Self { bucket, leases, dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) async fn write(&self, keys: std::ops::Range<u32>, value: &str) {
        let writer = self.bucket.writer().unwrap();
        for at in keys {
            writer.put(&format!("k.{at:04}"), value.to_owned().into()).await.unwrap();
        }
    }

    /// A node with the fold of its name, an empty one at first.
    pub(crate) fn node(&self, name: &str) -> Node {
        self.start(name, FoldConfig::new(self.bucket.watcher().unwrap()), ())
    }

    /// The same, on any store.
    pub(crate) fn start<S: SnapshotStore>(
        &self,
        name: &str,
        config: FoldConfig,
        applier: impl Applier,
    ) -> Node<S> {
        let (_, store) = S::load(&self.dir.path().join(name)).unwrap();
        let (handle, control) = fold_control();
        let reader = store.reader();
        let task = tokio::spawn(watch_applied(config, store, applier, control));
        let lease = ExportLease::new(&*self.leases, "export", name).unwrap();
        let artifact = self.dir.path().join(format!("{name}.artifact"));
        Node { handle, reader, task, lease, artifact, bucket: Arc::clone(&self.bucket) }
    }

    /// A new node that begins with the newest artifact, if there is one.
    pub(crate) async fn bootstrap(
        &self,
        name: &str,
        transport: &dyn ArtifactTransport,
    ) -> Option<Node> {
        let (path, watcher) = (self.dir.path().join(name), self.bucket.watcher().unwrap());
        let scope = WatchScope::All;
        let imported =
            import_remote::<AppendLogSnapshot>(transport, KEY, &*watcher, &path, &scope).await;
        let manifest = imported.unwrap()?;
        assert_eq!(AppendLogSnapshot::load(&path).unwrap().0, manifest.cursor);
        Some(self.node(name))
    }
}

pub(crate) struct Node<S: SnapshotStore = AppendLogSnapshot> {
    pub(crate) handle: FoldHandle,
    reader: S::Reader,
    task: JoinHandle<Ended<S>>,
    lease: ExportLease,
    pub(crate) artifact: PathBuf,
    bucket: Arc<dyn KvStore>,
}

impl<S: SnapshotStore> Node<S> {
    pub(crate) async fn caught_up(&self) -> &Self {
        let last = self.bucket.watcher().unwrap().log().await.unwrap().last;
        let waited = tokio::time::timeout(PATIENCE, self.handle.wait_for(last)).await;
        assert!(matches!(waited, Ok(Ok(()))), "not at {last}: {:?}", self.status());
        self
    }

    pub(crate) fn status(&self) -> FoldStatus {
        self.handle.status().borrow().clone()
    }

    pub(crate) fn watcher(&self) -> Arc<dyn KvWatcher> {
        self.bucket.watcher().unwrap()
    }

    pub(crate) fn entries(&self) -> Vec<KvEntry> {
        self.reader.range("").unwrap()
    }

    pub(crate) async fn round(
        &self,
        transport: &dyn ArtifactTransport,
        ttl: Duration,
    ) -> Result<RoundOutcome, RoundError> {
        let outcome = self.try_round(transport, ttl).await;
        assert!(!self.artifact.exists(), "the artifact is deleted, whatever happened");
        outcome
    }

    pub(crate) async fn try_round(
        &self,
        transport: &dyn ArtifactTransport,
        ttl: Duration,
    ) -> Result<RoundOutcome, RoundError> {
        self.round_with(transport, ttl, &*self.bucket.watcher().unwrap()).await
    }

    pub(crate) async fn round_with(
        &self,
        transport: &dyn ArtifactTransport,
        ttl: Duration,
        watcher: &dyn KvWatcher,
    ) -> Result<RoundOutcome, RoundError> {
        let round = ExportRound {
            fold: &self.handle,
            watcher,
            lease: &self.lease,
            ttl,
            transport,
            key: KEY,
            artifact: self.artifact.clone(),
        };
        run_export_round(&round).await
    }

    /// Where the round was that the lease is of, if it is done.
    pub(crate) async fn completed(&self) -> Option<WatchCursor> {
        self.lease.record().await.unwrap()?.completed_cursor()
    }

    /// Gives the lease back, so that the next round begins at once.
    pub(crate) async fn next_round(&self) {
        let lease = self.lease.try_acquire_at(Duration::from_secs(1), u64::MAX - 1).await;
        lease.unwrap().unwrap().abandon().await.unwrap();
    }

    pub(crate) async fn stop(self) {
        self.handle.shutdown();
        self.ended().await;
    }

    /// Somebody else tells it to stop.
    pub(crate) async fn ended(self) {
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
        ended.result.unwrap();
    }
}
