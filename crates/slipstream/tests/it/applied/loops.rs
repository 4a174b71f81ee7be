//! Batches, cursors, status, shutdown: what happens when nothing goes wrong.

use std::time::{Duration, SystemTime};

use slipstream::{
    BatchConfig, ExportError, FoldConfig, FoldStatus, KvError, SnapshotReader, WatchScope,
};

use super::exports::assert_unsupported;
use super::support::{TestStore, Told, World, start};

/// Lets the fold receive what was written into a batch that stays open, which nothing shows from
/// outside. The runtime has one thread, so each turn of this is a turn of the fold.
pub(super) async fn received() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_empty_bucket_is_synced_at_once() {
    let world = World::new().await;
    let fold = start(world.config(), &TestStore::default());
    fold.synced().await;
    let ended = fold.stop().await;
    assert!(ended.result.is_ok() && ended.cursor.revision() == Some(0));
}

#[tokio::test]
async fn the_fold_is_the_bucket_and_follows_it() {
    let world = World::new().await;
    world.put("a", "1").await;
    world.put("b", "1").await;
    world.delete("a").await;
    let fold = start(world.config(), &TestStore::default());
    fold.synced().await;
    assert_eq!(fold.store.contents(), world.contents("").await);
    world.put("c", "2").await;
    world.put("b", "3").await;
    world.writer.purge("c").await.unwrap();
    fold.caught_up(&world).await;
    assert_eq!(fold.store.contents(), world.contents("").await);
    assert_eq!(fold.status().lag_revisions(), 0);
}

#[tokio::test]
async fn apply_returns_before_the_store_is_told_and_on_applied_comes_last() {
    let world = World::new().await;
    let config =
        FoldConfig { batch: BatchConfig { max: 1, ..world.config().batch }, ..world.config() };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    world.put("a", "1").await;
    world.put("b", "1").await;
    fold.caught_up(&world).await;
    let of = |key: &str| Told::Applied(vec![key.to_owned()]);
    assert_eq!(
        fold.notes.taken()[..5],
        [Told::Stored(0), of("a"), Told::Stored(1), of("b"), Told::Stored(2)],
    );
    assert_eq!(fold.store.lock().batches[..2], [["a"], ["b"]]);
}

#[tokio::test]
async fn a_batch_has_at_most_max_updates() {
    let world = World::new().await;
    for at in 0..95 {
        world.put(&format!("k{at}"), "v").await;
    }
    let config =
        FoldConfig { batch: BatchConfig { max: 10, ..world.config().batch }, ..world.config() };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    let sizes: Vec<usize> = fold.store.lock().batches.iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 95);
    assert_eq!(sizes.iter().max(), Some(&10));
    assert!(sizes.len() >= 10, "{sizes:?}");
}

#[tokio::test]
async fn a_batch_that_is_not_full_is_applied_when_its_window_has_passed() {
    let world = World::new().await;
    let fold = start(world.config(), &TestStore::default());
    fold.synced().await;
    let revision = world.put("a", "1").await;
    fold.handle.wait_for(revision).await.unwrap();
    assert_eq!(fold.notes.applied(), ["a"]);
}

#[tokio::test]
async fn a_batch_that_is_open_at_shutdown_is_stored() {
    let world = World::new().await;
    let fold = start(world.gathering(), &TestStore::default());
    fold.synced().await;
    world.put("a", "1").await;
    received().await;
    let ended = fold.stop().await;
    assert!(ended.result.is_ok());
    assert_eq!(ended.store.contents(), world.contents("").await);
    assert_eq!(ended.cursor, ended.store.cursor());
}

#[tokio::test]
async fn rejected_updates_are_stored_and_move_the_cursor() {
    let world = World::new().await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    world.put("junk.1", "x").await;
    world.put("junk.2", "x").await;
    fold.caught_up(&world).await;
    assert_eq!(fold.notes.applied(), [""; 0]);
    assert_eq!(store.contents().len(), 2);
    fold.stop().await;
    let again = start(world.config(), &store);
    again.synced().await;
    assert_eq!(again.status().updates, 0, "nothing is read twice");
}

#[tokio::test]
async fn a_restart_reads_only_what_follows() {
    let world = World::new().await;
    for at in 0..50 {
        world.put(&format!("k{at}"), "v").await;
    }
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.synced().await;
    fold.stop().await;
    world.put("k7", "new").await;
    world.put("late", "v").await;
    world.delete("k8").await;
    let fold = start(world.config(), &store);
    fold.synced().await;
    fold.caught_up(&world).await;
    assert_eq!(fold.status().updates, 3);
    assert_eq!(fold.status().repairs, 0);
    assert_eq!(store.contents(), world.contents("").await);
}

#[tokio::test]
async fn scopes_fold_their_keys_only() {
    let world = World::new().await;
    for key in ["a.1", "b.1", "c.1", "ab"] {
        world.put(key, "v").await;
    }
    let prefixes = WatchScope::Prefixes(vec!["a.".into(), "c.".into()]);
    let many = start(FoldConfig { scope: prefixes, ..world.config() }, &TestStore::default());
    let one = start(world.scoped("b."), &TestStore::default());
    many.synced().await;
    one.synced().await;
    for key in ["a.2", "b.2", "c.2", "d"] {
        world.put(key, "v").await;
    }
    many.caught_up(&world).await;
    one.caught_up(&world).await;
    let keys = |fold: &TestStore| fold.contents().into_keys().collect::<Vec<_>>();
    assert_eq!(keys(&many.store), ["a.1", "a.2", "c.1", "c.2"]);
    assert_eq!(keys(&one.store), ["b.1", "b.2"]);
}

#[tokio::test]
async fn waiting_for_a_write_outside_the_scope_ends_too() {
    let world = World::new().await;
    let fold = start(world.scoped("a."), &TestStore::default());
    fold.synced().await;
    let revision = world.put("elsewhere", "v").await;
    fold.handle.wait_for(revision).await.unwrap();
    assert!(fold.status().applied >= revision);
}

#[tokio::test]
async fn an_export_is_answered_after_what_waits_was_stored() {
    let world = World::new().await;
    let fold = start(world.gathering(), &TestStore::default());
    fold.synced().await;
    world.put("a", "1").await;
    received().await;
    let answer = fold.handle.export("nowhere".into()).await;
    assert_unsupported(&answer);
    assert_eq!(fold.store.contents(), world.contents("").await);
    let handle = fold.handle.clone();
    fold.stop().await;
    let ended = handle.export("nowhere".into()).await;
    assert!(matches!(ended, Err(ExportError::Ended)));
    assert!(handle.wait_for(u64::MAX).await.is_err());
}

#[tokio::test]
async fn a_slow_applier_holds_the_watch_back_and_loses_nothing() {
    use slipstream::{Applier, KvUpdate, fold_control, watch_applied};
    struct Slow;
    impl Applier for Slow {
        type Item = ();
        fn parse(&mut self, _: &KvUpdate) -> Option<()> {
            Some(())
        }
        fn apply(&mut self, batch: Vec<()>) {
            assert!(batch.len() <= 4);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let world = World::new().await;
    let batch = BatchConfig { max: 4, channel_capacity: 8, ..world.config().batch };
    let store = TestStore::default();
    let (handle, control) = fold_control();
    let config = FoldConfig { batch, ..world.config() };
    let task = tokio::spawn(watch_applied(config, store.clone(), Slow, control));
    for at in 0..500 {
        world.put(&format!("k{at}"), "v").await;
    }
    handle.wait_for(500).await.unwrap();
    handle.shutdown();
    assert!(task.await.unwrap().result.is_ok());
    assert_eq!(store.contents(), world.contents("").await);
}

#[tokio::test]
async fn a_panic_of_the_applier_reaches_the_caller() {
    use slipstream::{Applier, KvUpdate, fold_control, watch_applied};
    struct Bomb;
    impl Applier for Bomb {
        type Item = ();
        fn parse(&mut self, _: &KvUpdate) -> Option<()> {
            Some(())
        }
        fn apply(&mut self, _: Vec<()>) {
            panic!("the caller's own");
        }
    }
    let world = World::new().await;
    world.put("a", "1").await;
    let store = TestStore::default();
    let (_handle, control) = fold_control();
    let fold = watch_applied(world.config(), store.clone(), Bomb, control);
    let panic = tokio::spawn(fold).await.err().unwrap().into_panic();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"the caller's own"));
    assert!(store.contents().is_empty(), "what was not applied is not stored");
}

#[tokio::test]
async fn the_status_shows_how_far_behind_a_held_up_fold_is() {
    let world = World::new().await;
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..world.config().batch };
    let fold = start(FoldConfig { batch, ..world.config() }, &TestStore::default());
    fold.synced().await;
    world.put("k0", "v").await;
    fold.caught_up(&world).await;
    let held = fold.notes.hold();
    for at in 1..=5 {
        world.put(&format!("k{at}"), "v").await;
    }
    fold.until("head", |status| status.head == 6).await;
    let behind = fold.status();
    assert_eq!((behind.applied, behind.lag_revisions()), (1, 5));
    let later = behind.applied_at.unwrap() + Duration::from_secs(3600);
    assert_eq!(behind.lag(later), Some(Duration::from_secs(3600)));
    drop(held);
    fold.caught_up(&world).await;
    fold.until("rest", |status| !status.behind).await;
    let done = fold.status();
    assert_eq!((done.lag_revisions(), done.lag(later)), (0, Some(Duration::ZERO)));
    // Nobody knows what has been written while no watch runs.
    let away = FoldStatus { watch_error: Some(KvError::NotConnected), ..done };
    let later = away.applied_at.unwrap() + Duration::from_secs(60);
    assert_eq!(away.lag(later), Some(Duration::from_secs(60)));
    assert!(fold.stop().await.result.is_ok());
}

#[tokio::test]
async fn the_lag_of_a_restarted_fold_is_not_known_before_it_has_applied_or_synced() {
    let world = World::new().await;
    let store = TestStore::default();
    world.put("k0", "v").await;
    let fold = start(world.config(), &store);
    fold.caught_up(&world).await;
    fold.stop().await.result.unwrap();
    world.put("k1", "v").await;
    let fold = start(world.config(), &store);
    let held = fold.notes.hold();
    fold.until("head", |status| status.lag_revisions() == 1).await;
    assert_eq!(fold.status().lag(SystemTime::now()), None);
    drop(held);
    fold.synced().await;
    fold.until("rest", |status| !status.behind).await;
    assert_eq!(fold.status().lag(SystemTime::now()), Some(Duration::ZERO));
    assert!(fold.stop().await.result.is_ok());
}

#[tokio::test]
async fn a_dropped_fold_is_as_good_as_a_crashed_one() {
    let world = World::new().await;
    let store = TestStore::default();
    for round in 0..5 {
        let (handle, control) = slipstream::fold_control();
        let fold = slipstream::watch_applied(world.config(), store.clone(), (), control);
        for at in 0..20 {
            world.put(&format!("k{round}.{at}"), "v").await;
        }
        let some = async { handle.wait_for(round * 20 + 5).await.unwrap() };
        tokio::select! {
            _ = fold => panic!("nobody stopped it"),
            () = some => {}
        }
    }
    let fold = start(world.config(), &store);
    fold.caught_up(&world).await;
    assert_eq!(store.contents(), world.contents("").await);
    assert_eq!(fold.status().repairs, 0);
}
