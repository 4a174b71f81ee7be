//! Listings that a fold owes, and what a restart knows of the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    CursorExpiry, FoldConfig, KvError, KvWatcher, LogCursor, LogInfo, Watch, WatchScope,
};

use super::support::{Running, TestStore, World, start};

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
