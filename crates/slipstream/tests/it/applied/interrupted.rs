//! Watches that are lost and armed again.

use slipstream::{CursorExpiry, FoldConfig, FoldError, KvError, WatchScope};

use super::support::{TestStore, World, start};

#[tokio::test]
async fn a_cut_watch_goes_on_from_what_was_stored() {
    let world = World::new().await;
    let fold = start(world.config(), &TestStore::default());
    fold.synced().await;
    for at in 0..20 {
        world.put(&format!("k{at}"), "v").await;
        if at % 4 == 0 {
            world.bucket.cut_watches();
        }
    }
    fold.caught_up(&world).await;
    assert_eq!(fold.store.contents(), world.contents("").await);
    assert_eq!(fold.status().repairs, 0);
}

#[tokio::test]
async fn an_unreachable_bucket_is_waited_for() {
    let world = World::new().await;
    world.put("a", "1").await;
    world.bucket.set_reachable(false);
    let fold = start(world.config(), &TestStore::default());
    fold.until("an error", |status| status.watch_error.is_some()).await;
    world.bucket.set_reachable(true);
    fold.synced().await;
    fold.until("peace", |status| status.watch_error.is_none()).await;
    assert_eq!(fold.store.contents(), world.contents("").await);
    world.bucket.set_reachable(false);
    fold.until("an error", |status| status.watch_error.is_some()).await;
    assert!(fold.status().synced, "an interruption takes nothing away");
    let ended = fold.stop().await;
    assert!(ended.result.is_ok(), "a shutdown does not wait for the bucket");
}

#[tokio::test]
async fn what_cannot_heal_ends_the_watch() {
    let world = World::new().await;
    let scope = WatchScope::Prefixes(Vec::new());
    let fold = start(FoldConfig { scope, ..world.config() }, &TestStore::default());
    let ended = fold.ended().await;
    assert!(matches!(ended.result, Err(FoldError::Watch(KvError::InvalidKey(_)))));
}

#[tokio::test]
async fn a_fold_of_other_keys_is_refused_and_left_alone() {
    let world = World::new().await;
    for key in ["k.1", "l.1"] {
        world.put(key, "v").await;
    }
    let store = TestStore::default();
    let fold = start(world.scoped("k."), &store);
    fold.caught_up(&world).await;
    fold.stop().await;
    for config in [world.config(), world.scoped("l.")] {
        let ended = start(config, &store).ended().await;
        let other = KvError::CursorExpired(CursorExpiry::OtherScope);
        assert!(matches!(ended.result, Err(FoldError::Watch(error)) if error == other));
        assert_eq!(store.contents(), world.contents("k.").await);
    }
    let fold = start(world.scoped("k."), &store);
    fold.caught_up(&world).await;
    assert_eq!(fold.status().updates, 0);
}
