//! Requests for an artifact while the bucket is in trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    BatchConfig, ExportError, FoldConfig, KvError, KvWatcher, LogInfo, Watch, WatchCursor,
    WatchScope,
};
use tokio::sync::Semaphore;

use super::support::{TestStore, World, start};

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

/// Questions about the log are answered as long as there are permits for them.
struct Gated {
    watcher: Arc<dyn KvWatcher>,
    answers: Semaphore,
}

impl Gated {
    fn new(world: &World) -> Arc<Self> {
        let watcher = world.kv.watcher().unwrap();
        Arc::new(Self { watcher, answers: Semaphore::new(PLENTY) })
    }

    fn only(&self, answers: usize) {
        self.answers.forget_permits(PLENTY);
        self.answers.add_permits(answers);
    }
}

const PLENTY: usize = 1000;

#[async_trait]
impl KvWatcher for Gated {
    async fn watch(
        &self,
        scope: &WatchScope,
        from: &WatchCursor,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.watcher.watch(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.answers.acquire().await.unwrap().forget();
        self.watcher.log().await
    }
}

#[tokio::test]
async fn what_a_request_waits_for_is_stored_at_a_shutdown() {
    let world = World::new().await;
    let watcher = Gated::new(&world);
    let config = FoldConfig {
        watcher: Arc::clone(&watcher) as Arc<dyn KvWatcher>,
        batch: BatchConfig { window: Duration::from_secs(3600), ..BatchConfig::default() },
        ..world.config()
    };
    world.put("stays", "1").await;
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    // A gap, about which the log must be asked.
    world.put("a", "1").await;
    world.put("a", "2").await;
    super::loops::received().await;
    watcher.only(0);
    let handle = fold.handle.clone();
    let request = tokio::spawn(async move { handle.export("nowhere".into()).await });
    super::loops::received().await;
    fold.handle.shutdown();
    super::loops::received().await;
    watcher.only(PLENTY);
    let ended = fold.ended().await;
    assert!(ended.result.is_ok());
    assert_eq!(ended.store.contents(), world.contents("").await);
    assert_eq!(request.await.unwrap(), Err(ExportError::Ended));
}

/// A request that came to a watch which was lost waits for the listing that the next one begins with.
#[tokio::test]
async fn a_fold_that_is_being_repaired_is_not_exported() {
    let world = World::new().await;
    let gated = Gated::new(&world);
    let watcher = Arc::new(Forgetful {
        watcher: Arc::clone(&gated) as Arc<dyn KvWatcher>,
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
    // Enough to begin a listing, not to end it.
    gated.only(2);
    watcher.forget.store(true, Ordering::SeqCst);
    world.bucket.evict_below(last);
    let handle = fold.handle.clone();
    let request = tokio::spawn(async move { handle.export("nowhere".into()).await });
    fold.until("listing", |status| status.repairs == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!request.is_finished() && !fold.status().synced);
    gated.only(PLENTY);
    assert_eq!(request.await.unwrap(), Err(ExportError::Unsupported));
    assert!(fold.status().synced);
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
