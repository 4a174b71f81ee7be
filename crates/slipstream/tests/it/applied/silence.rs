//! A server that does not answer a quiet watch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    BatchConfig, FoldConfig, KvError, KvUpdate, KvWatcher, LogInfo, Progress, SnapshotReader,
    Watch, WatchCursor, WatchEvent, WatchScope,
};
use tokio::sync::Semaphore;

use super::loops::received;
use super::support::{TestStore, World, start};

/// Its watches are never told how far they are.
struct Silent {
    watcher: Arc<dyn KvWatcher>,
    asked: Arc<Semaphore>,
}

struct SilentWatch {
    watch: Box<dyn Watch>,
    asked: Arc<Semaphore>,
}

#[async_trait]
impl KvWatcher for Silent {
    async fn watch(
        &self,
        scope: &WatchScope,
        from: &WatchCursor,
    ) -> Result<Box<dyn Watch>, KvError> {
        let watch = self.watcher.watch(scope, from).await?;
        Ok(Box::new(SilentWatch { watch, asked: Arc::clone(&self.asked) }))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.watcher.log().await
    }
}

#[async_trait]
impl Watch for SilentWatch {
    async fn next(&mut self, into: &mut Vec<KvUpdate>, max: usize) -> Result<WatchEvent, KvError> {
        self.watch.next(into, max).await
    }

    fn cursor(&self) -> WatchCursor {
        self.watch.cursor()
    }

    fn position(&self) -> u64 {
        self.watch.position()
    }

    fn advance(&mut self, through: u64) {
        self.watch.advance(through);
    }

    async fn progress(&mut self) -> Result<Progress, KvError> {
        self.asked.add_permits(1);
        std::future::pending().await
    }
}

/// What is ready waits for the store meanwhile, and is not forgotten.
#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_progress_marker_and_stores_what_is_ready() {
    let world = World::new().await;
    let asked = Arc::new(Semaphore::new(0));
    let watcher = Silent { watcher: world.kv.watcher().unwrap(), asked: Arc::clone(&asked) };
    let config = FoldConfig {
        watcher: Arc::new(watcher),
        batch: BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() },
        probe_interval: Duration::from_secs(3600),
        ..world.config()
    };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    let held = fold.notes.hold().await;
    for at in 0..10 {
        world.put(&format!("k{at}"), "v").await;
    }
    received().await;
    // Somebody who waits makes the watch ask.
    let handle = fold.handle.clone();
    let waiting = tokio::spawn(async move { handle.wait_for(100).await });
    asked.acquire().await.unwrap().forget();
    assert!(fold.store.contents().is_empty(), "all of it is on its way");
    fold.handle.shutdown();
    received().await;
    drop(held);
    let ended = fold.ended().await;
    assert!(ended.result.is_ok());
    assert_eq!(ended.store.contents(), world.contents("").await);
    assert_eq!((ended.cursor.revision(), ended.cursor), (Some(10), ended.store.cursor()));
    assert!(waiting.await.unwrap().is_err());
}
