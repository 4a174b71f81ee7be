//! Stores that fail.

use slipstream::{FoldError, SnapshotReader};

use super::support::{TestStore, World, start};

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
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let ended = fold.stop().await;
    assert!(matches!(ended.result, Err(FoldError::Store { failures: 1..16, .. })));
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
