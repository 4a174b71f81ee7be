//! A server that does not answer a quiet watch.

use std::sync::Arc;
use std::time::Duration;

use slipstream::{BatchConfig, FoldConfig, SnapshotReader};
use tokio::sync::Semaphore;

use super::loops::received;
use super::support::{TestStore, World, start};
use super::tapped::Tapped;

/// What is ready waits for the store meanwhile, and is not forgotten.
#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_progress_marker_and_stores_what_is_ready() {
    let world = World::new().await;
    let asked = Arc::new(Semaphore::new(0));
    let config = FoldConfig {
        watcher: Arc::new(Tapped::silent(&world, &asked)),
        batch: BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() },
        probe_interval: Duration::from_secs(3600),
        ..world.config()
    };
    let fold = start(config, &TestStore::default());
    fold.synced().await;
    let held = fold.notes.hold();
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
