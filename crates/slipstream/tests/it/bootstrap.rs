//! A new node begins with an artifact of another one.
//!
//! Also a module of the tests of `slipstream-rocksdb`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use slipstream::{
    Connection, CursorExpiry, Discard, Ended, FoldConfig, FoldHandle, FoldStatus, KvEntry, KvStore,
    SnapshotReader, SnapshotStore, StoreConfig, WatchScope, fold_control, watch_applied,
};
use tokio::task::JoinHandle;

use crate::server::NatsServer;

/// Longer than anything here takes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(90);

struct Node<S: SnapshotStore> {
    handle: FoldHandle,
    reader: S::Reader,
    task: JoinHandle<Ended<S>>,
}

impl<S: SnapshotStore> Node<S> {
    fn start(bucket: &dyn KvStore, store: S) -> Self {
        let reader = store.reader();
        let config = FoldConfig::new(bucket.watcher().unwrap());
        let (handle, control) = fold_control();
        let task = tokio::spawn(watch_applied(config, store, (), control));
        Self { handle, reader, task }
    }

    fn empty(bucket: &dyn KvStore, path: &Path) -> Self {
        Self::start(bucket, S::load(path).unwrap().1)
    }

    async fn caught_up(&self, bucket: &dyn KvStore) -> u64 {
        let last = bucket.watcher().unwrap().log().await.unwrap().last;
        let waited = tokio::time::timeout(PATIENCE, self.handle.wait_for(last)).await;
        assert!(matches!(waited, Ok(Ok(()))), "not at {last}: {:?}", self.status());
        last
    }

    fn status(&self) -> FoldStatus {
        self.handle.status().borrow().clone()
    }

    fn entries(&self) -> Vec<KvEntry> {
        self.reader.range("").unwrap()
    }

    async fn stop(self) {
        self.handle.shutdown();
        let ended = tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
        ended.result.unwrap();
    }
}

async fn put(bucket: &dyn KvStore, key: &str, value: &str) {
    bucket.writer().unwrap().put(key, value.to_owned().into()).await.unwrap();
}

/// Somebody who writes other keys all the time, until it is told to stop.
fn churn(bucket: &Arc<dyn KvStore>) -> (Arc<AtomicBool>, JoinHandle<()>) {
    let (stop, bucket) = (Arc::new(AtomicBool::new(false)), Arc::clone(bucket));
    let seen = Arc::clone(&stop);
    let writing = tokio::spawn(async move {
        for at in 0.. {
            put(&*bucket, &format!("churn.{at}"), "v").await;
            // The bucket that evicts has room for what is written in a quarter of a minute.
            tokio::time::sleep(Duration::from_millis(5)).await;
            if seen.load(Ordering::SeqCst) {
                break;
            }
        }
    });
    (stop, writing)
}

/// While somebody writes, in a bucket that keeps its values or in one that has evicted most of them.
pub(crate) async fn a_new_node_is_sent_only_what_follows_the_artifact<S: SnapshotStore>() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for (name, max_bytes) in [("keeps", None), ("evicts", Some(200_000))] {
        let discard = Discard::Old;
        let config = StoreConfig { max_bytes, discard, ..StoreConfig::default() };
        let bucket = connection.store(name, &config).await.unwrap();
        let dir = tempfile::tempdir().unwrap();
        let first = Node::<S>::empty(&*bucket, &dir.path().join("first"));
        for at in 0..1000 {
            put(&*bucket, &format!("old.{at:04}"), &"v".repeat(1000)).await;
        }
        first.caught_up(&*bucket).await;
        let (stop, writing) = churn(&bucket);
        let artifact = dir.path().join("artifact");
        let manifest = first.handle.export(artifact.clone()).await.unwrap();
        let begins = manifest.cursor.revision().unwrap();
        let second = dir.path().join("second");
        let imported = S::import(&artifact, &second, &WatchScope::All).unwrap();
        assert_eq!(imported, manifest);
        let second = Node::start(&*bucket, S::load(&second).unwrap().1);
        stop.store(true, Ordering::SeqCst);
        writing.await.unwrap();
        let last = second.caught_up(&*bucket).await;
        first.caught_up(&*bucket).await;
        let status = second.status();
        assert_eq!(status.repairs, 0, "{name}: {status:?}");
        assert!(last > begins, "nobody wrote meanwhile");
        assert_eq!(status.updates, last - begins, "{name}: all that follows, and nothing else");
        assert!(manifest.cursor_time_ms.is_some());
        assert_eq!(second.entries(), first.entries(), "{name}");
        let first_left = bucket.watcher().unwrap().log().await.unwrap().first;
        if max_bytes.is_some() {
            assert!(first_left > 500, "almost everything is evicted: {first_left}");
            assert!(manifest.evicted);
        }
        assert!(second.entries().len() > 1000, "the folds have what the log has not");
        first.stop().await;
        second.stop().await;
    }
}

/// The keys that the cursor names are written again, and 92 more: it proves nothing by itself. What does
/// is there until the fold goes on, however often it is opened before.
pub(crate) async fn an_artifact_proves_itself_where_its_cursor_does_not<S: SnapshotStore>() {
    let server = NatsServer::start();
    let bucket = server.connect().await.store("b", &StoreConfig::default()).await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let first = Node::<S>::empty(&*bucket, &dir.path().join("first"));
    for at in 0..200 {
        put(&*bucket, &format!("k.{at:03}"), "old").await;
    }
    first.caught_up(&*bucket).await;
    let artifact = dir.path().join("artifact");
    first.handle.export(artifact.clone()).await.unwrap();
    for at in 100..200 {
        put(&*bucket, &format!("k.{at:03}"), "new").await;
    }
    first.caught_up(&*bucket).await;
    for with_manifest in [true, false] {
        let path = dir.path().join(if with_manifest { "with" } else { "without" });
        let manifest = S::import(&artifact, &path, &WatchScope::All).unwrap();
        let imported = (S::FILES.unwrap().imported)(&path);
        assert_eq!(S::load(&path).unwrap().1.imported(), Some(&manifest));
        if !with_manifest {
            std::fs::remove_file(&imported).unwrap();
        }
        let node = Node::start(&*bucket, S::load(&path).unwrap().1);
        node.caught_up(&*bucket).await;
        let status = node.status();
        assert_eq!(node.entries(), first.entries());
        if with_manifest {
            assert_eq!((status.repairs, status.updates), (0, 100), "{status:?}");
        } else {
            let why = status.last_repair.map(|repair| repair.why);
            assert_eq!(why, Some(CursorExpiry::Unproven), "the cursor alone is too short");
        }
        node.stop().await;
        assert!(!imported.exists(), "the fold has gone on");
    }
    // Nor does the artifact, when all that it names is superseded: a limit.
    for at in 0..100 {
        put(&*bucket, &format!("k.{at:03}"), "new").await;
    }
    let path = dir.path().join("superseded");
    S::import(&artifact, &path, &WatchScope::All).unwrap();
    let node = Node::start(&*bucket, S::load(&path).unwrap().1);
    node.caught_up(&*bucket).await;
    first.caught_up(&*bucket).await;
    assert_eq!(node.entries(), first.entries());
    let why = node.status().last_repair.map(|repair| repair.why);
    assert_eq!(why, Some(CursorExpiry::Unproven));
    node.stop().await;
    first.stop().await;
}
