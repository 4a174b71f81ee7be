//! A fold of a bucket on a real server, which is killed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slipstream::{
    Applier, Connection, Ended, FoldConfig, FoldHandle, KvEntry, KvStore, KvUpdate, SnapshotReader,
    SnapshotStore, StoreConfig, VersionToken, WatchScope, fold_control, watch_applied,
};
use slipstream_rocksdb::RocksDbSnapshot;
use tokio::task::JoinHandle;

use crate::server::NatsServer;

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
