//! Keys that the log tells nothing of any more, and what becomes of them in the fold.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use slipstream::{Applier, Connection, FoldConfig, Key, KvUpdate};

use super::support::{
    Disk, Gate, Paused, bucket_on, config, contents_in, evict_below, fill_mixed, jetstream, scopes,
    start, start_with,
};
use crate::backend::Bucket;
use crate::server::NatsServer;

/// All that the watch would have been sent is evicted: nothing comes that could be a gap.
#[tokio::test]
async fn an_overrun_without_any_delivery_is_noticed_by_the_probe() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let probe_interval = Duration::from_millis(20);
        let config = FoldConfig { probe_interval, ..config(&bucket, &scope) };
        let fold = start(config, &Disk::new());
        fold.caught_up(&bucket).await;
        let before = fold.status();
        let paused = Paused::on(&server).await;
        bucket.writer.delete("k.0001").await.unwrap();
        let last = bucket.put("k.0002", "gone before it could be sent").await;
        evict_below(&server, last + 1).await;
        paused.go_on().await;
        fold.until("overrun", |status| status.overruns > 0).await;
        let status = fold.status();
        assert_eq!(status.updates, before.updates, "nothing was delivered: {scope:?}");
        assert!(fold.contents().is_empty() && contents_in(&bucket, &scope).await.is_empty());
        fill_mixed(&bucket, 5..15, "new").await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.status().repairs, 0, "the watch goes on: {scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// The key has vanished when the listing of a repair begins, and is back before it ends.
#[tokio::test]
async fn a_key_made_again_during_a_repair_stays() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let disk = Disk::new();
        let fold = start(config(&bucket, &scope), &disk);
        fold.synced().await;
        fold.stop().await;
        bucket.writer.delete("k.0001").await.unwrap();
        fill_mixed(&bucket, 5..10, "new").await;
        let last = bucket.watcher.log().await.unwrap().last;
        // The tombstone too.
        evict_below(&server, last - 5).await;
        let gate = Gate::default();
        let held = gate.hold().await;
        let fold = start_with(config(&bucket, &scope), &disk, gate.clone());
        gate.reached().await;
        bucket.put("k.0001", "made again").await;
        drop(held);
        fold.synced().await;
        fold.caught_up(&bucket).await;
        let status = fold.status();
        assert!(status.last_repair.unwrap().deleted > 0, "{scope:?}: {status:?}");
        assert_eq!(fold.contents()["k.0001"].0, b"made again", "{scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// Takes nothing but the keys that are reported.
#[derive(Clone, Default)]
struct Reported(Arc<Mutex<Vec<String>>>);

impl Reported {
    fn keys(&self) -> Vec<String> {
        let mut keys = self.0.lock().unwrap().clone();
        keys.sort();
        keys
    }
}

impl Applier for Reported {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        None
    }

    fn apply(&mut self, _: Vec<()>) {}

    fn unconfirmed(&mut self, keys: Vec<Key>) {
        self.0.lock().unwrap().extend(keys.iter().map(|key| key.as_str().to_owned()));
    }
}

/// Current values give way to new ones, under a fold that runs and one that sleeps.
#[tokio::test]
async fn a_bucket_that_forgets_by_size_takes_nothing_from_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let small = async_nats::jetstream::stream::Config {
            name: "KV_b".into(),
            subjects: vec!["$KV.b.>".into()],
            max_messages_per_subject: 1,
            max_bytes: 2_500,
            discard: async_nats::jetstream::stream::DiscardPolicy::Old,
            allow_direct: true,
            allow_rollup: true,
            ..Default::default()
        };
        jetstream(&server).await.create_stream(small).await.unwrap();
        let bucket = Bucket::of(connection.open("b").await.unwrap());
        let (disk, reported) = (Disk::new(), Reported::default());
        let fold = start(config(&bucket, &scope), &disk);
        fold.synced().await;
        assert!(fold.status().evicts_current_values, "{scope:?}");
        let mut expected = super::support::Contents::new();
        for keys in [0..10, 10..20, 20..30] {
            fill_mixed(&bucket, keys, "v").await;
            fold.caught_up(&bucket).await;
            expected.extend(contents_in(&bucket, &scope).await);
        }
        assert!(bucket.reader.get("k.0000").await.unwrap().is_none(), "the log has forgotten");
        assert_eq!(fold.contents(), expected, "{scope:?}");
        assert_eq!(fold.status().repairs, 0, "{scope:?}");
        fold.stop().await;
        fill_mixed(&bucket, 100..200, "new").await;
        assert!(bucket.reader.get("k.0029").await.unwrap().is_none(), "the log has forgotten");
        let fold = start_with(config(&bucket, &scope), &disk, reported.clone());
        fold.synced().await;
        fold.caught_up(&bucket).await;
        let repair = fold.status().last_repair.unwrap();
        assert_eq!((repair.deleted, repair.unconfirmed), (0, expected.len() as u64), "{scope:?}");
        assert!(reported.keys().iter().eq(expected.keys()), "{scope:?}");
        expected.extend(contents_in(&bucket, &scope).await);
        assert_eq!(fold.contents(), expected, "{scope:?}");
        assert!(fold.status().evicts_current_values, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}
