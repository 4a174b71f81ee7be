//! Requests for an artifact while the bucket is away.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::artifact::{ArtifactError, ExportManifest};
use slipstream::{
    BatchConfig, ExportError, FoldConfig, KvError, KvWatcher, LogCursor, LogInfo, Watch, WatchScope,
};
use tokio::sync::Semaphore;

use super::loops::received;
use super::support::{Running, TestStore, World, start};

/// Questions about the log are answered as long as there are permits for them.
struct Gated {
    watcher: Arc<dyn KvWatcher>,
    answers: Semaphore,
    /// The next one fails.
    forget: AtomicBool,
}

/// The fold has not ended, and its store has no files.
#[track_caller]
pub(super) fn assert_unsupported(answer: &Result<ExportManifest, ExportError>) {
    let unsupported = matches!(answer, Err(ExportError::Artifact(ArtifactError::Unsupported)));
    assert!(unsupported, "{answer:?}");
}

const PLENTY: usize = 1000;

impl Gated {
    fn only(&self, answers: usize) {
        self.answers.forget_permits(PLENTY);
        self.answers.add_permits(answers);
    }
}

#[async_trait]
impl KvWatcher for Gated {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.watcher.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        if self.forget.swap(false, Ordering::SeqCst) {
            return Err(KvError::Timeout { operation: "the state of the log", after_ms: 1 });
        }
        self.answers.acquire().await.unwrap().forget();
        self.watcher.log().await
    }
}

fn gated(world: &World) -> Arc<Gated> {
    Arc::new(Gated {
        watcher: world.kv.watcher().unwrap(),
        answers: Semaphore::new(PLENTY),
        forget: AtomicBool::new(false),
    })
}

/// A fold whose open batch has a gap, about which the log must be asked.
async fn at_a_gap(world: &World) -> (Arc<Gated>, Running) {
    let watcher = gated(world);
    world.put("stays", "1").await;
    let config = FoldConfig { watcher: Arc::clone(&watcher) as _, ..world.gathering() };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    world.put("a", "1").await;
    world.put("a", "2").await;
    received().await;
    (watcher, fold)
}

#[tokio::test]
async fn what_a_request_waits_for_is_stored_at_a_shutdown() {
    let world = World::new().await;
    let (watcher, fold) = at_a_gap(&world).await;
    watcher.only(0);
    let handle = fold.handle.clone();
    let request = tokio::spawn(async move { handle.export("nowhere".into()).await });
    received().await;
    fold.handle.shutdown();
    received().await;
    watcher.only(PLENTY);
    let ended = fold.ended().await;
    assert!(ended.result.is_ok());
    assert_eq!(ended.store.contents(), world.contents("").await);
    assert!(matches!(request.await.unwrap(), Err(ExportError::Ended)));
}

/// A request that came to a watch which was lost waits for the listing that the next one begins with.
#[tokio::test]
async fn a_fold_that_is_being_repaired_is_not_exported() {
    let world = World::new().await;
    let (watcher, fold) = at_a_gap(&world).await;
    let held = fold.notes.hold();
    watcher.forget.store(true, Ordering::SeqCst);
    world.bucket.evict_below(world.bucket.log().last);
    let handle = fold.handle.clone();
    let request = tokio::spawn(async move { handle.export("nowhere".into()).await });
    fold.until("listing", |status| status.repairs == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!request.is_finished() && !fold.status().synced);
    drop(held);
    assert_unsupported(&request.await.unwrap());
    assert!(fold.status().synced);
}

/// The first one waits for the resync that the reading for it has begun, and the store for which there
/// are batches is busy: the second one is not put in its place.
#[tokio::test]
async fn a_second_request_does_not_replace_one_that_waits_for_a_resync() {
    let world = World::new().await;
    let watcher = gated(&world);
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() };
    let config = FoldConfig { watcher: Arc::clone(&watcher) as _, batch, ..world.config() };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    let held = fold.notes.hold();
    world.put("stays", "1").await;
    received().await;
    watcher.only(0);
    world.put("a", "1").await;
    world.put("a", "2").await;
    received().await;
    let requests = [(); 2].map(|()| {
        let handle = fold.handle.clone();
        tokio::spawn(async move { handle.export("nowhere".into()).await })
    });
    received().await;
    world.bucket.evict_below(world.bucket.log().last);
    watcher.only(PLENTY);
    received().await;
    drop(held);
    for request in requests {
        assert_unsupported(&request.await.unwrap());
    }
    assert_eq!(fold.status().overruns, 1, "there was a resync: {:?}", fold.status());
    assert!(fold.stop().await.result.is_ok());
}

#[tokio::test]
async fn a_request_outlives_the_watch_that_it_came_to() {
    let world = World::new().await;
    let (watcher, fold) = at_a_gap(&world).await;
    watcher.forget.store(true, Ordering::SeqCst);
    let answer = fold.handle.export("nowhere".into()).await;
    assert!(!watcher.forget.load(Ordering::SeqCst), "the log was asked");
    assert_unsupported(&answer);
    assert!(fold.stop().await.result.is_ok());
}
