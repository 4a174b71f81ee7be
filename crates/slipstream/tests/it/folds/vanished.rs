//! Keys that the log tells nothing of any more, and what becomes of them in the fold.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    Applier, Connection, FoldConfig, Key, KvEntry, KvError, KvReader, KvUpdate, KvWriter,
};

use super::support::{
    Disk, Paused, bucket_on, config, contents_in, evict_below, fill_mixed, jetstream, scopes,
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
        fold.until("comparison", |status| status.comparisons > 0).await;
        let status = fold.status();
        assert_eq!(status.updates, before.updates, "nothing was delivered: {scope:?}");
        assert!(fold.contents().is_empty() && contents_in(&bucket, &scope).await.is_empty());
        paused.go_on().await;
        fill_mixed(&bucket, 5..15, "new").await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.status().repairs, 0, "the watch goes on: {scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// Lists the keys, and then makes one of those that were deleted again before anybody has seen the
/// listing.
struct MadeAgain {
    reader: Arc<dyn KvReader>,
    writer: Arc<dyn KvWriter>,
    /// Until it has been made.
    key: Mutex<Option<&'static str>>,
}

impl MadeAgain {
    fn new(bucket: &Bucket, key: &'static str) -> Arc<Self> {
        let (reader, writer) = (Arc::clone(&bucket.reader), Arc::clone(&bucket.writer));
        Arc::new(Self { reader, writer, key: Mutex::new(Some(key)) })
    }

    fn was_made(&self) -> bool {
        self.key.lock().unwrap().is_none()
    }
}

#[async_trait]
impl KvReader for MadeAgain {
    async fn get(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        self.reader.get(key).await
    }

    async fn entry(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        self.reader.entry(key).await
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, KvError> {
        let listed = self.reader.keys(prefix).await?;
        let deleted = self.key.lock().unwrap().take_if(|key| key.starts_with(prefix));
        if let Some(key) = deleted {
            assert!(!listed.iter().any(|listed| listed.as_str() == key), "it was deleted");
            self.writer.put(key, "made again".into()).await?;
        }
        Ok(listed)
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<KvEntry>, KvError> {
        self.reader.scan(prefix).await
    }
}

/// The repair deletes by a listing that is too old to have the key. Were that stored after the key
/// was read again, the key would be gone for good.
#[tokio::test]
async fn a_key_made_again_behind_the_listing_of_a_repair_stays() {
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
        // The marker too.
        evict_below(&server, last - 5).await;
        let reader = MadeAgain::new(&bucket, "k.0001");
        let config =
            FoldConfig { reader: Some(Arc::clone(&reader) as _), ..config(&bucket, &scope) };
        let fold = start(config, &disk);
        fold.synced().await;
        fold.caught_up(&bucket).await;
        assert!(reader.was_made(), "{scope:?}");
        let status = fold.status();
        assert!(status.last_repair.unwrap().deleted > 0, "{scope:?}: {status:?}");
        assert_eq!(fold.contents()["k.0001"].0, b"made again", "{scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// The same of a watch that goes on: what is newer than the comparison is not judged by it.
#[tokio::test]
async fn a_key_made_again_behind_the_listing_of_a_comparison_stays() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let reader = MadeAgain::new(&bucket, "k.0001");
        let config = FoldConfig {
            reader: Some(Arc::clone(&reader) as _),
            probe_interval: Duration::from_millis(20),
            ..config(&bucket, &scope)
        };
        let fold = start(config, &Disk::new());
        fold.caught_up(&bucket).await;
        let paused = Paused::on(&server).await;
        bucket.writer.delete("k.0001").await.unwrap();
        let last = bucket.put("k.0002", "new").await;
        evict_below(&server, last).await;
        fold.until("comparison", |status| status.comparisons > 0).await;
        paused.go_on().await;
        bucket.put("k.0003", "new").await;
        fold.caught_up(&bucket).await;
        assert!(reader.was_made(), "{scope:?}");
        assert_eq!(fold.status().repairs, 0, "{scope:?}");
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

#[tokio::test]
async fn without_a_reader_keys_that_the_log_has_nothing_of_stay_and_are_reported() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let disk = Disk::new();
        let config = FoldConfig { reader: None, ..config(&bucket, &scope) };
        let fold = start(config.clone(), &disk);
        fold.synced().await;
        let before = fold.contents();
        fold.stop().await;
        bucket.writer.delete("k.0001").await.unwrap();
        fill_mixed(&bucket, 5..6, "new").await;
        let last = bucket.watcher.log().await.unwrap().last;
        evict_below(&server, last - 2).await;
        let reported = Reported::default();
        let fold = start_with(config, &disk, reported.clone());
        fold.synced().await;
        fold.caught_up(&bucket).await;
        let current = contents_in(&bucket, &scope).await;
        let kept: Vec<_> = before.keys().filter(|key| !current.contains_key(*key)).collect();
        let repair = fold.status().last_repair.unwrap();
        assert_eq!((repair.deleted, repair.unconfirmed), (0, kept.len() as u64), "{scope:?}");
        assert!(kept.iter().any(|key| *key == "k.0001"));
        assert_eq!(reported.keys().iter().collect::<Vec<_>>(), kept, "{scope:?}");
        let mut expected = before.clone();
        expected.extend(current);
        assert_eq!(fold.contents(), expected, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
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
