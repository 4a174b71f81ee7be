//! What a fold asks of a log, and how much it takes from it ahead of its store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rstest::rstest;
use slipstream::{BatchConfig, FoldConfig, KvUpdate, fold_control, watch_applied};
use tokio::sync::{Semaphore, mpsc};

use super::support::{PATIENCE, TestStore, World, start};
use super::tapped::Tapped;

#[tokio::test]
async fn the_log_is_read_at_most_once_for_a_batch_with_gaps() {
    const BATCH: u64 = 20;
    let world = World::new().await;
    for at in 0..2000 {
        world.put(&format!("k.{at}"), "v").await;
    }
    world.put("k.last", "v").await;
    let store = TestStore::default();
    let fold = start(world.config(), &store);
    fold.caught_up(&world).await;
    fold.stop().await;
    // Every other one is superseded once more, so that half of the revisions are gaps.
    for at in 0..2000 {
        world.put(&format!("k.{at}"), "w").await;
        world.put(&format!("k.{}", at / 2 * 2), "x").await;
    }
    let tapped = Tapped::of(&world);
    let (readings, handed_out) = (Arc::clone(&tapped.readings), Arc::clone(&tapped.handed_out));
    let batch = BatchConfig { max: BATCH as usize, ..world.config().batch };
    let config = FoldConfig { watcher: Arc::new(tapped), batch, ..world.config() };
    let fold = start(config, &store);
    fold.caught_up(&world).await;
    assert_eq!(fold.status().repairs, 0);
    let (readings, updates) = (readings.load(Ordering::SeqCst), handed_out.load(Ordering::SeqCst));
    assert_eq!(updates, 2000);
    assert!(readings > 0, "there were gaps");
    assert!(readings <= updates / BATCH + 10, "{readings} readings for {updates} updates");
    assert_eq!(store.contents(), world.contents("").await);
}

/// Stores nothing until it is let.
struct Held {
    reached: mpsc::UnboundedSender<()>,
    may: Arc<Semaphore>,
}

impl slipstream::Applier for Held {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        Some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        let _ = self.reached.send(());
        // A test that failed lets it go, too.
        while self.may.available_permits() == 0 && !self.reached.is_closed() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// By batches (256 are read ahead), or by bytes (8 MiB); besides, what waits for the store, what is
/// in it, and what is being gathered.
#[rstest]
#[case::batches(3000, 10, 256 * 4 + 8 + 4 + 4)]
#[case::bytes(300, 100_000, 84 + 8 + 4 + 4)]
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_held_up_holds_the_watch_back(
    #[case] keys: u64,
    #[case] value_len: usize,
    #[case] most: u64,
) {
    let world = World::with(slipstream::StoreConfig {
        max_bytes: None,
        ..slipstream::StoreConfig::default()
    })
    .await;
    let value = "v".repeat(value_len);
    for at in 0..keys {
        world.put(&format!("k.{at}"), &value).await;
    }
    let tapped = Tapped::of(&world);
    let handed_out = Arc::clone(&tapped.handed_out);
    let batch = BatchConfig { max: 4, channel_capacity: 8, ..world.config().batch };
    let config = FoldConfig { watcher: Arc::new(tapped), batch, ..world.config() };
    let (reached, mut reaches) = mpsc::unbounded_channel();
    let may = Arc::new(Semaphore::new(0));
    let store = TestStore::default();
    let (handle, control) = fold_control();
    let applier = Held { reached, may: Arc::clone(&may) };
    let task = tokio::spawn(watch_applied(config, store.clone(), applier, control));
    reaches.recv().await.unwrap();
    // Until it takes no more.
    let mut taken = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = handed_out.load(Ordering::SeqCst);
        if now == std::mem::replace(&mut taken, now) {
            break;
        }
    }
    assert!(taken <= most, "{taken} of {keys} were taken, at most {most} may be");
    assert!(store.contents().is_empty());
    may.add_permits(1);
    tokio::time::timeout(PATIENCE, handle.wait_for(keys)).await.unwrap().unwrap();
    handle.shutdown();
    assert!(task.await.unwrap().result.is_ok());
    assert_eq!(store.contents().len() as u64, keys);
}
