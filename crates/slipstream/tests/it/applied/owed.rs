//! Listings that a fold owes, and what a restart knows of the log.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::artifact::{ExportManifest, TakeFiles};
use slipstream::protocol::Position;
use slipstream::transport::{ArtifactTransport, Pointer, PublishOutcome, TransportError};
use slipstream::{
    Applier, CursorExpiry, Discard, FoldConfig, KvError, KvUpdate, KvWatcher, KvWriter, LogCursor,
    LogInfo, Restore, StoreConfig, Watch, WatchCursor, WatchScope, fold_control, watch_applied,
};

use super::support::{PATIENCE, Running, TestStore, World, start};

/// The next question about the log is not answered, if it is told so.
struct Unlucky {
    log: Arc<dyn KvWatcher>,
    fails: Arc<AtomicBool>,
}

#[async_trait]
impl KvWatcher for Unlucky {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.log.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        match self.fails.swap(false, Ordering::SeqCst) {
            true => Err(KvError::ConnectionLost { operation: "bucket state" }),
            false => self.log.log().await,
        }
    }
}

/// A fold of ten keys that has counted them, and stored that.
async fn counted(world: &World, fails: &Arc<AtomicBool>, store: &TestStore) -> Running {
    for at in 0..10 {
        world.put(&format!("k.{at}"), "v").await;
    }
    let log = Unlucky { log: world.kv.watcher().unwrap(), fails: Arc::clone(fails) };
    let probe_interval = Duration::from_millis(20);
    let config = FoldConfig { watcher: Arc::new(log), probe_interval, ..world.config() };
    let fold = start(config, store);
    fold.caught_up(world).await;
    let counts = || LogCursor::decode(&store.lock().cursor).unwrap().position.subjects == 10;
    while !counts() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    fold
}

#[tokio::test]
async fn a_listing_is_owed_though_the_next_question_fails() {
    let (world, fails, store) = (World::new().await, Arc::default(), TestStore::default());
    let fold = counted(&world, &fails, &store).await;
    // Only a later batch would have stored how many keys there were.
    world.put("k.new", "v").await;
    fold.caught_up(&world).await;
    fails.store(true, Ordering::SeqCst);
    world.bucket.evict_below(6);
    fold.until("repair", |status| status.repairs > 0 && status.synced).await;
    assert!(!fails.load(Ordering::SeqCst), "a question has failed");
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Purged);
    assert_eq!(store.contents(), world.contents("").await);
    fold.stop().await.result.unwrap();
}

/// The count is stored when it is made, not with the next update.
#[tokio::test]
async fn a_restart_compares_with_the_last_count_of_keys() {
    let (world, store) = (World::new().await, TestStore::default());
    counted(&world, &Arc::default(), &store).await.stop().await.result.unwrap();
    world.bucket.evict_below(6);
    let fold = start(world.config(), &store);
    fold.synced().await;
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Purged);
    assert_eq!(store.contents(), world.contents("").await);
}

#[tokio::test]
async fn intervals_may_be_nothing_or_for_ever() {
    for interval in [Duration::ZERO, Duration::MAX] {
        let world = World::new().await;
        let mut config = FoldConfig { probe_interval: interval, ..world.config() };
        config.batch.window = interval;
        // An open batch that no time closes is closed when it is full.
        config.batch.max = 1;
        let fold = start(config, &TestStore::default());
        fold.synced().await;
        world.put("a", "v").await;
        fold.caught_up(&world).await;
        fold.stop().await.result.unwrap();
    }
}

/// Written to after each look at it.
struct Growing {
    log: Arc<dyn KvWatcher>,
    writer: Arc<dyn KvWriter>,
}

#[async_trait]
impl KvWatcher for Growing {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.log.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        let log = self.log.log().await?;
        for at in 0..10 {
            self.writer.put(&format!("new.{at}"), "v".into()).await?;
        }
        Ok(log)
    }
}

/// No artifacts: a fold in memory could not be made of one, and so asks for none.
struct NoArtifacts;

#[async_trait]
impl ArtifactTransport for NoArtifacts {
    async fn upload(
        &self,
        _: &str,
        _: &Path,
        _: &dyn KvWatcher,
    ) -> Result<(ExportManifest, PublishOutcome), TransportError> {
        unreachable!("nobody exports")
    }

    async fn pointer(&self, _: &str) -> Result<Option<Pointer>, TransportError> {
        Ok(None)
    }

    async fn download(
        &self,
        _: &str,
        _: &ExportManifest,
        _: Box<dyn TakeFiles>,
    ) -> Result<(), TransportError> {
        unreachable!("there is none")
    }

    async fn prune(&self, _: &str, _: Duration) -> Result<u64, TransportError> {
        unreachable!("there is none")
    }
}

/// The cursors of resyncs, as they were stored.
#[derive(Clone, Default)]
struct Resyncs(Arc<Mutex<Vec<LogCursor>>>);

impl Applier for Resyncs {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        None
    }

    fn apply(&mut self, _: Vec<()>) {}

    fn on_resync(&mut self, cursor: &WatchCursor) {
        self.0.lock().unwrap().push(LogCursor::decode(cursor).unwrap());
    }
}

/// A fold that was interrupted in a listing looks at the log when it might be restored, and again when it
/// is listed. The second look does not show any more that the log was rolled back; what the fold has of
/// that must not be taken for the log's.
#[tokio::test]
async fn a_fold_that_has_seen_its_log_rolled_back_does_not_forget_it_when_the_log_goes_on() {
    let limits =
        StoreConfig { max_bytes: Some(1 << 20), discard: Discard::Old, ..StoreConfig::default() };
    let world = World::with(limits).await;
    for at in 0..10 {
        world.put(&format!("k.{at}"), "v").await;
    }
    world.bucket.evict_below(3);
    let LogInfo { incarnation, last, .. } = world.bucket.log();
    let position = Position { end: last, ..Position::at(incarnation, 0) };
    let mut interrupted = LogCursor::new(position, &WatchScope::All);
    (interrupted.in_repair, interrupted.evicted) = (true, true);
    let store = TestStore::default();
    store.lock().cursor = interrupted.encode();
    world.bucket.lose_after(5);
    let log = Growing { log: world.kv.watcher().unwrap(), writer: Arc::clone(&world.writer) };
    let restore = Restore { transport: Arc::new(NoArtifacts), key: "fold".into(), dir: ".".into() };
    let config = FoldConfig { watcher: Arc::new(log), restore: Some(restore), ..world.config() };
    let (handle, control) = fold_control();
    let resyncs = Resyncs::default();
    let folding = tokio::spawn(watch_applied(config, store.clone(), resyncs.clone(), control));
    tokio::time::timeout(PATIENCE, handle.synced()).await.expect("it is listed").unwrap();
    let of: Vec<u64> = resyncs.0.lock().unwrap().iter().map(|of| of.position.incarnation).collect();
    assert!(!of.is_empty() && of.iter().all(|of| *of == 0), "{of:?} of {incarnation}");
    handle.shutdown();
    folding.await.unwrap().result.unwrap();
}
