//! Requests for an artifact while the bucket is in trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    BatchConfig, ExportError, FoldConfig, KvError, KvWatcher, LogInfo, Watch, WatchCursor,
    WatchScope,
};

use super::support::{TestStore, Told, World, start};

/// The next question about the log gets no answer.
struct Forgetful {
    watcher: Arc<dyn KvWatcher>,
    forget: AtomicBool,
}

#[async_trait]
impl KvWatcher for Forgetful {
    async fn watch(
        &self,
        scope: &WatchScope,
        from: &WatchCursor,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.watcher.watch(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        if self.forget.swap(false, Ordering::SeqCst) {
            return Err(KvError::Timeout { operation: "the state of the log", after_ms: 1 });
        }
        self.watcher.log().await
    }
}

/// A request that came to a lost watch waits for the repair that the next one begins with.
#[tokio::test]
async fn a_fold_that_is_being_repaired_is_not_exported() {
    let world = World::new().await;
    let watcher = Arc::new(Forgetful {
        watcher: world.kv.watcher().unwrap(),
        forget: AtomicBool::new(false),
    });
    let config = FoldConfig {
        watcher: Arc::clone(&watcher) as Arc<dyn KvWatcher>,
        batch: BatchConfig { window: Duration::from_secs(3600), ..BatchConfig::default() },
        ..world.config()
    };
    world.put("gone", "1").await;
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    world.put("a", "1").await;
    let last = world.put("a", "2").await;
    super::loops::received().await;
    world.bucket.evict_below(last);
    watcher.forget.store(true, Ordering::SeqCst);
    let answer = fold.handle.export("nowhere".into()).await;
    // What was stored by then, in order.
    let stored = fold.notes.taken();
    assert_eq!(answer, Err(ExportError::Unsupported));
    assert_eq!(fold.status().repairs, 1);
    assert!(stored.contains(&Told::Stored(last)), "{stored:?}");
}

#[tokio::test]
async fn a_request_outlives_the_watch_that_it_came_to() {
    let world = World::new().await;
    let watcher = Arc::new(Forgetful {
        watcher: world.kv.watcher().unwrap(),
        forget: AtomicBool::new(false),
    });
    let config = FoldConfig {
        watcher: Arc::clone(&watcher) as Arc<dyn KvWatcher>,
        batch: BatchConfig { window: Duration::from_secs(3600), ..BatchConfig::default() },
        ..world.config()
    };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    // A gap, about which the log must be asked.
    world.put("a", "1").await;
    world.put("a", "2").await;
    super::loops::received().await;
    watcher.forget.store(true, Ordering::SeqCst);
    let answer = fold.handle.export("nowhere".into()).await;
    assert!(!watcher.forget.load(Ordering::SeqCst), "the log was asked");
    assert_eq!(answer, Err(ExportError::Unsupported), "the fold has not ended");
    assert!(fold.stop().await.result.is_ok());
}
