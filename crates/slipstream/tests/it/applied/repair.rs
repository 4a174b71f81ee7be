//! Logs that evict, lie or are made anew, under a fold that runs or sleeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rstest::rstest;
use slipstream::{CursorExpiry, Discard, FoldConfig, StoreConfig, WatchCursor, WatchScope};

use super::support::{Running, TestStore, World, start};

fn scopes() -> [WatchScope; 3] {
    [
        WatchScope::All,
        WatchScope::Prefix("k.".into()),
        WatchScope::Prefixes(vec!["k.".into(), "l.".into()]),
    ]
}

async fn filled() -> World {
    let world = World::new().await;
    for at in 0..10 {
        world.put(&format!("k.{at}"), "old").await;
    }
    world
}

/// What happens while the fold sleeps, and how that is noticed.
#[rstest]
#[case::evicted("evicted", |why| matches!(why, CursorExpiry::BelowFloor { .. }))]
#[case::recreated("recreated", |why| why == CursorExpiry::Recreated)]
#[case::head_lost("head lost", |why| matches!(why, CursorExpiry::AheadOfLog { .. }))]
#[case::rewritten("rewritten", |why| matches!(why, CursorExpiry::WitnessDisagrees { .. }))]
#[tokio::test]
async fn a_log_that_changed_behind_the_fold_is_noticed_on_every_scope(
    #[case] what: &str,
    #[case] noticed: fn(CursorExpiry) -> bool,
) {
    for scope in scopes() {
        let world = filled().await;
        let config = FoldConfig { scope: scope.clone(), ..world.config() };
        let store = TestStore::default();
        let fold = start(config.clone(), &store);
        fold.caught_up(&world).await;
        fold.stop().await;
        match what {
            "evicted" => {
                world.delete("k.3").await;
                world.delete("k.4").await;
                world.put("k.4", "again").await;
                let last = world.put("k.11", "new").await;
                world.bucket.evict_below(last - 1);
            }
            "recreated" => {
                world.bucket.recreate(None);
                for at in 5..30 {
                    world.put(&format!("k.{at}"), "new").await;
                }
            }
            "head lost" => world.bucket.lose_after(6),
            _ => {
                world.bucket.lose_after(6);
                for at in 20..40 {
                    world.put(&format!("k.{at}"), "new").await;
                }
            }
        }
        let fold = start(config, &store);
        fold.synced().await;
        fold.caught_up(&world).await;
        let why = fold.status().last_repair.map(|repair| repair.why);
        assert!(why.is_some_and(noticed), "{what} on {scope:?}: {why:?}");
        assert_eq!(store.contents(), world.contents("").await, "{what} on {scope:?}");
    }
}

#[tokio::test]
async fn a_key_that_was_deleted_and_made_again_in_the_gap_is_kept() {
    let world = filled().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    fold.stop().await;
    world.delete("k.1").await;
    world.delete("k.2").await;
    let again = world.put("k.2", "again").await;
    world.bucket.evict_below(again);
    let fold = start(world.config(), &store);
    fold.synced().await;
    let repair = fold.status().last_repair.unwrap();
    // Only the last message is left, so the log has nothing of the others.
    assert_eq!(repair.deleted, 9);
    assert_eq!(store.contents(), world.contents("").await);
    let applied = fold.notes.applied();
    assert!(applied.contains(&"-k.1".to_owned()), "{applied:?}");
    assert!(!applied.contains(&"-k.2".to_owned()), "{applied:?}");
}

#[tokio::test]
async fn a_log_that_forgets_current_values_takes_none_from_the_fold() {
    let limits =
        StoreConfig { max_bytes: Some(100), discard: Discard::Old, ..StoreConfig::default() };
    let world = World::with(limits).await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    for at in 0..5 {
        world.put(&format!("k.{at}"), "v").await;
    }
    fold.caught_up(&world).await;
    assert!(fold.status().evicts_current_values);
    fold.stop().await;
    for at in 5..100 {
        world.put(&format!("k.{at}"), "v").await;
    }
    assert!(world.contents("").await.len() < 50, "the log has forgotten some");
    let fold = start(world.config(), &store);
    fold.synced().await;
    fold.caught_up(&world).await;
    let repair = fold.status().last_repair.unwrap();
    assert_eq!((repair.deleted, repair.unconfirmed), (0, 5));
    let contents = store.contents();
    assert!(world.contents("").await.iter().all(|(key, value)| contents.get(key) == Some(value)));
    assert!((0..5).all(|at| contents.contains_key(&format!("k.{at}"))));
}

/// A fold that has everything and often asks whether it missed something.
async fn probing(scope: &WatchScope) -> (World, Running) {
    let world = filled().await;
    let (scope, probe_interval) = (scope.clone(), Duration::from_millis(20));
    let config = FoldConfig { scope, probe_interval, ..world.config() };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    (world, fold)
}

/// The watch skips in silence what was evicted before it was sent; only the floor tells.
#[tokio::test]
async fn an_overrun_of_a_live_watch_is_noticed_and_mended_on_every_scope() {
    for scope in scopes() {
        let (world, fold) = probing(&scope).await;
        // No await between: the watch sees nothing of it until all is done.
        let evict = async {
            world.writer.delete("k.1").await.unwrap();
            let last = world.put("k.2", "new").await;
            world.bucket.evict_below(last);
        };
        tokio::task::unconstrained(evict).await;
        fold.caught_up(&world).await;
        fold.until("overrun", |status| status.overruns > 0).await;
        let status = fold.status();
        assert_eq!(status.repairs, 0, "the watch goes on: {scope:?}");
        assert!(status.dropped_by_overruns > 0, "{scope:?}: {status:?}");
        assert_eq!(fold.store.contents(), world.contents("").await, "{scope:?}");
    }
}

/// All that a filtered watch would have been sent is evicted: nothing comes that could be a gap.
#[tokio::test]
async fn an_overrun_without_any_delivery_is_noticed_by_the_probe() {
    for scope in scopes() {
        let (world, fold) = probing(&scope).await;
        let evict = async {
            world.writer.delete("k.1").await.unwrap();
            world.bucket.evict_below(world.bucket.log().last + 1);
        };
        tokio::task::unconstrained(evict).await;
        fold.until("overrun", |status| status.overruns > 0).await;
        assert_eq!(fold.status().repairs, 0, "the watch goes on: {scope:?}");
        assert_eq!(fold.store.contents(), world.contents("").await, "{scope:?}");
    }
}

#[tokio::test]
async fn foreign_traffic_and_its_eviction_do_not_trip_a_filtered_watch() {
    let world = filled().await;
    let fold = start(world.scoped("k."), &TestStore::default());
    fold.synced().await;
    for round in 0..5 {
        for at in 0..20 {
            world.put(&format!("other.{at}"), "v").await;
        }
        fold.caught_up(&world).await;
        // Nothing of ours is newer than the first ten.
        world.put(&format!("k.{round}"), "new").await;
        fold.caught_up(&world).await;
    }
    assert_eq!(fold.status().repairs, 0);
    assert_eq!(fold.store.contents(), world.contents("k.").await);
}

/// Its floor is past any frontier at once, and nothing of ours ever comes.
#[tokio::test(flavor = "multi_thread")]
async fn a_filtered_watch_beside_one_hot_key_of_others_gets_on() {
    let world = World::new().await;
    let fold = start(world.scoped("k."), &TestStore::default());
    fold.synced().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopped) = (Arc::clone(&world.writer), Arc::clone(&stop));
    let writing = tokio::spawn(async move {
        while !stopped.load(Ordering::Relaxed) {
            writer.put("other.hot", "v".into()).await.unwrap();
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..3 {
        let before = world.bucket.log().last;
        while world.bucket.log().last < before + 10 {
            tokio::task::yield_now().await;
        }
        fold.caught_up(&world).await;
    }
    let own = world.put("k.own", "v").await;
    fold.until("its own", |status| status.applied >= own).await;
    assert_eq!((fold.status().repairs, fold.store.contents().len()), (0, 1));
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
}

#[tokio::test]
async fn a_log_that_loses_its_head_under_a_live_watch_is_mended() {
    for scope in scopes() {
        let world = filled().await;
        let config = FoldConfig { scope: scope.clone(), ..world.config() };
        let fold = start(config, &TestStore::default());
        fold.synced().await;
        fold.caught_up(&world).await;
        world.bucket.lose_after(4);
        for at in 20..40 {
            world.put(&format!("k.{at}"), "new").await;
        }
        fold.until("repair", |status| status.repairs > 0 && status.synced).await;
        fold.caught_up(&world).await;
        assert_eq!(fold.store.contents(), world.contents("").await, "{scope:?}");
    }
}

#[tokio::test]
async fn a_small_bucket_that_is_written_all_the_time_is_still_folded() {
    let world = World::new().await;
    let store = TestStore::default();
    for round in 0..20 {
        let fold = start(world.config(), &store);
        for at in 0..50 {
            world.put("hot", &format!("{round}-{at}")).await;
            tokio::task::yield_now().await;
        }
        fold.caught_up(&world).await;
        fold.until("sync", |status| status.synced).await;
        fold.stop().await;
    }
    assert_eq!(store.contents(), world.contents("").await);
}

/// Tells the fold to stop when the first key is dropped.
struct StopsAtDelete(slipstream::FoldHandle);

impl slipstream::Applier for StopsAtDelete {
    type Item = ();

    fn parse(&mut self, update: &slipstream::KvUpdate) -> Option<()> {
        (!matches!(update, slipstream::KvUpdate::Put(_))).then_some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        self.0.shutdown();
    }
}

#[tokio::test]
async fn a_shutdown_does_not_wait_until_all_vanished_keys_are_dropped() {
    let world = World::new().await;
    for at in 0..100 {
        world.put(&format!("k.{at}"), "old").await;
    }
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    fold.stop().await;
    world.bucket.recreate(None);
    let (handle, control) = slipstream::fold_control();
    let batch = slipstream::BatchConfig { max: 10, ..world.config().batch };
    let config = FoldConfig { batch, ..world.config() };
    let applier = StopsAtDelete(handle.clone());
    let folding = slipstream::watch_applied(config, store.clone(), applier, control);
    let ended = tokio::time::timeout(Duration::from_secs(20), folding).await.unwrap();
    assert!(ended.result.is_ok());
    assert_eq!(store.contents().len(), 90, "one batch was dropped");
    assert!(slipstream::LogCursor::decode(&ended.cursor).unwrap().in_repair);
    let fold = start(world.config(), &store);
    fold.synced().await;
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Interrupted);
    assert!(store.contents().is_empty());
}

/// As a writer leaves it that died before its first checkpoint.
async fn orphaned(world: &World) -> TestStore {
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.caught_up(world).await;
    fold.stop().await;
    store.lock().cursor = WatchCursor::none();
    store
}

#[tokio::test]
async fn a_fold_with_entries_but_no_cursor_is_not_taken_for_a_new_one() {
    for scope in scopes() {
        let world = filled().await;
        let store = orphaned(&world).await;
        world.delete("k.1").await;
        let last = world.put("k.2", "new").await;
        world.bucket.evict_below(last);
        let fold = start(FoldConfig { scope: scope.clone(), ..world.config() }, &store);
        fold.synced().await;
        let repair = fold.status().last_repair.unwrap();
        assert_eq!((repair.why, repair.deleted), (CursorExpiry::Missing, 9), "{scope:?}");
        assert_eq!(store.contents(), world.contents("").await, "{scope:?}");
        fold.stop().await;
        let fold = start(FoldConfig { scope, ..world.config() }, &store);
        fold.synced().await;
        assert_eq!(fold.status().repairs, 0, "it has a cursor now");
    }
}

/// The numbers of a log that was made again begin anew: a fold at 10 of the old one does not have
/// what is written at 5 of the new one.
#[tokio::test]
async fn a_write_to_a_bucket_made_again_is_waited_for() {
    let world = filled().await;
    let fold = start(world.config(), &TestStore::default());
    fold.caught_up(&world).await;
    let held = fold.notes.hold();
    world.bucket.recreate(None);
    let revision = world.put("k.new", "new").await;
    fold.until("repair", |status| status.repairs > 0).await;
    // The repair is held up by the applier, before anything of the new log is in the fold.
    let waiting = tokio::time::timeout(Duration::from_millis(200), fold.handle.wait_for(revision));
    assert!(waiting.await.is_err(), "the fold does not have it yet");
    drop(held);
    fold.caught_up(&world).await;
    assert_eq!(fold.store.contents(), world.contents("").await);
    assert!(fold.stop().await.result.is_ok());
}
