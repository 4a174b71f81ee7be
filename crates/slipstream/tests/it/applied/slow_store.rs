//! Stores and appliers that are slower than the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use slipstream::{
    CursorExpiry, FoldConfig, KvError, KvWatcher, LogCursor, LogInfo, Retention, Watch, WatchScope,
};
use tokio::sync::Semaphore;

use super::support::{Running, TestStore, World, start};

const PROBE: Duration = Duration::from_millis(20);

/// A fold of ten keys that stores one update at a time and often asks whether it missed any.
async fn one_by_one() -> (World, Running) {
    let world = World::new().await;
    for at in 0..10 {
        world.put(&format!("k.{at}"), "old").await;
    }
    let mut config = FoldConfig { probe_interval: PROBE, ..world.config() };
    config.batch.max = 1;
    let fold = start(config, &TestStore::default());
    fold.caught_up(&world).await;
    (world, fold)
}

#[tokio::test]
async fn a_fold_is_behind_until_the_last_batch_is_stored() {
    let (world, fold) = one_by_one().await;
    let held = fold.notes.hold();
    let first = world.put("k.1", "new").await;
    fold.until("news of the first", |status| status.head == first).await;
    let second = world.put("k.2", "new").await;
    fold.until("news of the second", |status| status.head == second).await;
    held.let_one_pass();
    fold.until("the first batch", |status| status.applied == first).await;
    let status = fold.status();
    assert!(status.behind, "{status:?}");
    assert_ne!(status.lag(SystemTime::now()), Some(Duration::ZERO), "{status:?}");
    drop(held);
    fold.until("the second batch", |status| status.applied == second && !status.behind).await;
}

/// What is below the floor has a newer value on its way to the store: nobody has purged it.
#[tokio::test]
async fn overwrites_that_wait_for_the_store_are_not_taken_for_a_purge() {
    let (world, fold) = one_by_one().await;
    let held = fold.notes.hold();
    for at in 0..10 {
        world.put(&format!("k.{at}"), "new").await;
    }
    let floor = world.bucket.log().first;
    assert!(floor > 10, "the log has dropped what the store still has: {floor}");
    tokio::time::sleep(10 * PROBE).await;
    drop(held);
    fold.caught_up(&world).await;
    let status = fold.status();
    assert_eq!((status.overruns, status.repairs), (0, 0), "{status:?}");
    assert_eq!(fold.store.contents(), world.contents("").await);
}

#[tokio::test]
async fn a_fold_that_is_searched_for_purged_keys_ends_when_it_is_told_to() {
    let (world, fold) = one_by_one().await;
    for at in 10..1_000 {
        world.put(&format!("k.{at}"), "old").await;
    }
    fold.caught_up(&world).await;
    fold.store.read_slowly(Duration::from_millis(5));
    world.put("k.0", "new").await;
    while fold.store.entries_read_slowly() < 3 {
        tokio::time::sleep(PROBE).await;
    }
    let store = fold.store.clone();
    fold.stop().await.result.unwrap();
    // Whoever searches it has it locked, so this waits for the end.
    assert_eq!(store.contents().len(), 1_000);
    assert!(store.entries_read_slowly() < 500);
}

/// A log that shows limits which evict, and begins listings, as it is told.
struct Steered {
    log: Arc<dyn KvWatcher>,
    evicts: AtomicBool,
    /// How often it was read.
    readings: AtomicU64,
    /// How many listings may begin.
    listings: Semaphore,
}

impl Steered {
    fn of(world: &World, listings: usize) -> Arc<Self> {
        let (evicts, readings) = (AtomicBool::new(false), AtomicU64::new(0));
        let log = world.kv.watcher().unwrap();
        Arc::new(Self { log, evicts, readings, listings: Semaphore::new(listings) })
    }
}

#[async_trait]
impl KvWatcher for Steered {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        if from.is_none() {
            self.listings.acquire().await.unwrap().forget();
        }
        self.log.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        let log = self.log.log().await?;
        self.readings.fetch_add(1, Ordering::SeqCst);
        let evicts = self.evicts.load(Ordering::SeqCst);
        let max_age = evicts.then_some(Duration::from_secs(3600));
        Ok(LogInfo { retention: Retention { max_age, ..log.retention }, ..log })
    }
}

/// Between the first listing of a repair and the second the log became another one.
#[tokio::test]
async fn a_listing_that_begins_again_says_nothing_of_the_log_before() {
    let world = World::new().await;
    let log = Steered::of(&world, 2);
    let mut config = FoldConfig { watcher: log.clone(), ..world.config() };
    config.batch.max = 1;
    let fold = start(config, &TestStore::default());
    for at in 0..10 {
        world.put(&format!("k.{at}"), "old").await;
    }
    fold.caught_up(&world).await;
    let held = fold.notes.hold();
    // No await between that lets the fold see half of it.
    let evict = async {
        world.bucket.cut_watches();
        world.delete("k.1").await;
        let floor = world.put("k.2", "new").await;
        for at in 10..1_000 {
            world.put(&format!("k.{at}"), "new").await;
        }
        world.bucket.evict_below(floor);
    };
    tokio::task::unconstrained(evict).await;
    fold.until("the listing", |status| status.repairs == 1).await;
    let repair = fold.status().last_repair.unwrap();
    assert!(matches!(repair.why, CursorExpiry::BelowFloor { .. }), "{repair:?}");
    // The log is the same as far as anybody knows, and so is the number.
    assert_eq!(fold.status().applied, 10);
    world.bucket.recreate(None);
    world.put("k.a", "v").await;
    world.put("k.b", "v").await;
    drop(held);
    fold.until("the second listing", |status| status.applied == 0).await;
    assert!(!fold.status().synced);
    log.listings.add_permits(1);
    fold.synced().await;
    assert_eq!(fold.status().applied, 2);
    assert_eq!(fold.store.contents(), world.contents("").await);
}

#[tokio::test]
async fn limits_are_noticed_while_a_batch_is_open_and_remembered_when_they_are_lifted() {
    let (world, store) = (World::new().await, TestStore::default());
    let log = Steered::of(&world, 1);
    let watcher = log.clone();
    let fold = start(FoldConfig { watcher, probe_interval: PROBE, ..world.gathering() }, &store);
    fold.synced().await;
    world.put("a", "v").await;
    log.evicts.store(true, Ordering::SeqCst);
    let before = log.readings.load(Ordering::SeqCst);
    while log.readings.load(Ordering::SeqCst) < before + 2 {
        tokio::time::sleep(PROBE).await;
    }
    log.evicts.store(false, Ordering::SeqCst);
    fold.stop().await.result.unwrap();
    assert!(LogCursor::decode(&store.lock().cursor).unwrap().evicted);
}
