//! Stores that fail.

use std::time::Duration;

use slipstream::protocol::MAX_STORE_APPLY_FAILURES;
use slipstream::{FoldError, SnapshotError, SnapshotReader};

use super::support::{PATIENCE, TestStore, World, start};

#[tokio::test]
async fn a_passing_store_failure_leaves_no_hole_behind_the_cursor() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    store.lock().failing = 3;
    for key in ["a", "b", "c"] {
        world.put(key, "1").await;
    }
    fold.caught_up(&world).await;
    assert_eq!(store.lock().failed, 3);
    assert_eq!(store.contents(), world.contents("").await);
    let stored: Vec<String> = store.lock().batches.concat();
    assert_eq!(stored, ["a", "b", "c"], "in order, each once");
}

#[tokio::test]
async fn sixteen_failures_in_a_row_end_the_watch_and_the_store_comes_back() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    world.put("a", "1").await;
    fold.caught_up(&world).await;
    let before = store.cursor();
    store.lock().failing = u32::MAX;
    world.put("b", "1").await;
    let ended = fold.ended().await;
    assert!(matches!(ended.result, Err(FoldError::Store { failures: 16, .. })));
    assert_eq!(store.lock().failed, 16);
    assert_eq!(ended.cursor, before);
    // Restarted with a store that works, nothing is missing.
    store.lock().failing = 0;
    let fold = start(world.config(), &ended.store);
    fold.caught_up(&world).await;
    assert_eq!(store.contents(), world.contents("").await);
}

#[tokio::test]
async fn a_failing_store_does_not_hold_up_a_shutdown() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    store.lock().failing = u32::MAX;
    world.put("a", "1").await;
    while store.lock().failed < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let ended = fold.stop().await;
    assert!(matches!(ended.result, Err(FoldError::Store { failures: 1..16, .. })));
}

#[tokio::test]
async fn readers_that_keep_a_store_from_healing_are_waited_for_however_long() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    {
        let mut store = store.lock();
        (store.failing, store.being_read) = (1, true);
    }
    for key in ["a", "b", "c"] {
        world.put(key, "1").await;
    }
    fold.until("waiting for readers", |status| status.waits_for_readers).await;
    let put_off = async {
        while store.lock().put_off <= 2 * MAX_STORE_APPLY_FAILURES {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, put_off).await.expect("it tries more often than it may fail");
    assert!(store.lock().batches.is_empty());
    store.lock().being_read = false;
    fold.caught_up(&world).await;
    assert!(!fold.status().waits_for_readers);
    assert_eq!(store.contents(), world.contents("").await);
    assert_eq!(store.lock().batches.concat(), ["a", "b", "c"], "in order, each once");
}

#[tokio::test]
async fn readers_that_keep_a_store_from_healing_do_not_hold_up_a_shutdown() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    store.lock().being_read = true;
    world.put("a", "1").await;
    fold.until("waiting for readers", |status| status.waits_for_readers).await;
    let ended = fold.stop().await;
    let being_read = matches!(
        ended.result,
        Err(FoldError::Store { failures: 1, source: SnapshotError::BeingRead })
    );
    assert!(being_read && ended.cursor.revision() == Some(0), "{:?}", ended.result);
    store.lock().being_read = false;
    let fold = start(world.config(), &store);
    fold.caught_up(&world).await;
    assert_eq!(store.contents(), world.contents("").await);
}

#[tokio::test]
async fn a_fold_that_cannot_be_read_while_it_is_repaired_ends_the_watch() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    world.put("a", "1").await;
    fold.caught_up(&world).await;
    store.lock().unreadable = true;
    world.bucket.recreate(None);
    let ended = fold.ended().await;
    assert!(matches!(ended.result, Err(FoldError::Read(_))));
}
