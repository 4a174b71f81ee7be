//! Keys that leave a log without a tombstone, under a fold that runs and one that sleeps.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use slipstream::{
    Connection, CursorExpiry, Discard, FoldConfig, KvError, KvWatcher, LogCursor, LogInfo,
    NatsConnection, StoreConfig, Watch, WatchScope,
};

use super::support::{
    Disk, bucket_on, config, contents_in, contents_of, evict_below, fill_mixed, jetstream, scopes,
    start,
};
use crate::backend::Bucket;
use crate::server::NatsServer;

async fn purge(server: &NatsServer, key: Option<&str>) {
    let stream = jetstream(server).await.get_stream("KV_b").await.unwrap();
    match key {
        None => stream.purge().await.unwrap(),
        Some(key) => stream.purge().filter(format!("$KV.b.{key}")).await.unwrap(),
    };
}

/// `nats stream purge`, and other keys right after it: no revision is skipped, and the floor is where
/// the fold is.
#[tokio::test]
async fn a_log_that_is_purged_under_a_fold_at_its_head_takes_the_keys_along() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        for written in [1, 60] {
            let bucket = bucket_on(&connection).await;
            fill_mixed(&bucket, 0..20, "old").await;
            let probe_interval = Duration::from_millis(20);
            let config = FoldConfig { probe_interval, ..config(&bucket, &scope) };
            let disk = Disk::new();
            let fold = start(config.clone(), &disk);
            fold.caught_up(&bucket).await;
            purge(&server, None).await;
            for at in 0..written {
                bucket.put(&format!("k.new{at}"), "new").await;
            }
            fold.until("overrun", |status| status.overruns + status.repairs > 0).await;
            fold.synced().await;
            fold.caught_up(&bucket).await;
            assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?} {written}");
            fold.stop().await;
            let fold = start(config, &disk);
            fold.caught_up(&bucket).await;
            assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?} {written}");
            fold.stop().await;
            jetstream(&server).await.delete_key_value("b").await.unwrap();
        }
    }
}

/// All that a purge of one subject leaves is that the log has fewer of them.
#[tokio::test]
async fn a_key_that_is_purged_from_the_log_leaves_a_fold_that_runs_and_one_that_sleeps() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill_mixed(&bucket, 0..20, "old").await;
    let probe_interval = Duration::from_millis(20);
    let config = FoldConfig { probe_interval, ..config(&bucket, &WatchScope::All) };
    let disk = Disk::new();
    let fold = start(config.clone(), &disk);
    fold.caught_up(&bucket).await;
    purge(&server, Some("k.0003")).await;
    fold.until("repair", |status| status.repairs > 0 && status.synced).await;
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Purged);
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
    purge(&server, Some("k.0004")).await;
    let fold = start(config, &disk);
    fold.synced().await;
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Purged);
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
}

/// A purge marker that expires after a second.
#[tokio::test]
async fn a_purge_whose_tombstone_expired_while_the_fold_was_away_is_noticed() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let ttl = StoreConfig { ttl: true, ..StoreConfig::default() };
    let bucket = Bucket::of(connection.store("b", &ttl).await.unwrap());
    for key in ["k.goes", "k.stays", "k.other"] {
        bucket.put(key, "v").await;
    }
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.caught_up(&bucket).await;
    fold.stop().await;
    let raw = jetstream(&server).await.get_key_value("b").await.unwrap();
    raw.purge_with_ttl("k.goes", Duration::from_secs(1)).await.unwrap();
    while bucket.reader.entry("k.goes").await.unwrap().is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bucket.put("k.other", "w").await;
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
}

/// Makes the bucket again as soon as a listing is asked for.
struct MadeAgain {
    bucket: Arc<dyn KvWatcher>,
    connection: Arc<NatsConnection>,
    jetstream: async_nats::jetstream::Context,
    left: Mutex<u32>,
}

#[async_trait]
impl KvWatcher for MadeAgain {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        let again = from.is_none() && {
            let mut left = self.left.lock().unwrap();
            let again = *left > 0;
            *left = left.saturating_sub(1);
            again
        };
        if again {
            self.jetstream.delete_key_value("b").await.unwrap();
            let bucket = bucket_on(&self.connection).await;
            fill_mixed(&bucket, 40..45, "new").await;
        }
        self.bucket.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.bucket.log().await
    }
}

/// After the log was read for the repair, and before the listing.
#[tokio::test]
async fn a_bucket_that_is_made_again_during_a_repair_leaves_no_key_of_the_old_one() {
    let server = NatsServer::start();
    let connection = Arc::new(server.connect().await);
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "old").await;
        let disk = Disk::new();
        let fold = start(config(&bucket, &scope), &disk);
        fold.synced().await;
        fold.stop().await;
        bucket.writer.delete("k.0001").await.unwrap();
        fill_mixed(&bucket, 5..6, "new").await;
        let last = bucket.watcher.log().await.unwrap().last;
        evict_below(&server, last).await;
        let watcher = Arc::new(MadeAgain {
            bucket: Arc::clone(&bucket.watcher),
            connection: Arc::clone(&connection),
            jetstream: jetstream(&server).await,
            left: Mutex::new(1),
        });
        let config = FoldConfig { watcher, ..config(&bucket, &scope) };
        let fold = start(config, &disk);
        fold.synced().await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// A witness that is written all the time proves nothing, so there have to be others.
#[tokio::test]
async fn a_restart_beside_one_hot_key_reads_only_what_it_lacks() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill_mixed(&bucket, 0..100, "cold").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    for beat in 0..500 {
        bucket.put("k.hot", &format!("{beat}")).await;
    }
    fold.caught_up(&bucket).await;
    fold.stop().await;
    bucket.put("k.hot", "away").await;
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    let status = fold.status();
    assert_eq!((status.updates, status.repairs), (1, 0), "{status:?}");
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
}

fn evicting() -> StoreConfig {
    StoreConfig { max_bytes: Some(2_500), discard: Discard::Old, ..StoreConfig::default() }
}

/// A limit that is lifted later does not make the log whole again.
#[tokio::test]
async fn a_limit_that_was_lifted_takes_nothing_from_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::of(connection.store("b", &evicting()).await.unwrap());
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    for keys in [0..10, 10..20, 20..30] {
        fill_mixed(&bucket, keys, "v").await;
        fold.caught_up(&bucket).await;
    }
    fold.stop().await;
    let jetstream = jetstream(&server).await;
    let mut stream = jetstream.get_stream("KV_b").await.unwrap().cached_info().config.clone();
    stream.max_bytes = -1;
    stream.discard = async_nats::jetstream::stream::DiscardPolicy::New;
    jetstream.update_stream(stream).await.unwrap();
    fill_mixed(&bucket, 40..42, "v").await;
    let last = bucket.watcher.log().await.unwrap().last;
    evict_below(&server, last).await;
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    let status = fold.status();
    assert!(!status.evicts_current_values && status.repairs == 1, "{status:?}");
    assert_eq!(status.last_repair.unwrap().deleted, 0, "{status:?}");
    assert!(fold.contents().contains_key("k.0000"), "it is nowhere else");
    fold.stop().await;
}

/// As long as the oldest message is there, what the log does not have was deleted.
#[tokio::test]
async fn a_log_that_could_evict_but_has_not_is_believed() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let limits = StoreConfig { max_bytes: Some(1 << 20), ..evicting() };
    let bucket = Bucket::of(connection.store("b", &limits).await.unwrap());
    bucket.put("first", "v").await;
    fill_mixed(&bucket, 0..10, "v").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    let contents = fold.contents();
    let cursor = LogCursor::decode(&fold.stop().await.cursor).unwrap();
    assert!(contents.len() == 31 && cursor.evicted, "the limits are known");
    // As if its process had been killed in a repair.
    bucket.writer.delete("k.0001").await.unwrap();
    purge(&server, Some("k.0001")).await;
    {
        use slipstream::{AppendLogSnapshot, SnapshotStore};
        let (_, mut store) = AppendLogSnapshot::load(&disk.path()).unwrap();
        let mut in_repair = cursor;
        in_repair.in_repair = true;
        store.apply(&[], &in_repair.encode()).unwrap();
    }
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    assert_eq!(fold.status().last_repair.unwrap().deleted, 1);
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
}

/// There is a way to drop what a log has evicted, and what a deleted bucket had.
#[tokio::test]
async fn keys_of_a_deleted_bucket_that_evicted_can_be_dropped() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::of(connection.store("b", &evicting()).await.unwrap());
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fill_mixed(&bucket, 0..20, "v").await;
    fold.caught_up(&bucket).await;
    fold.stop().await;
    jetstream(&server).await.delete_key_value("b").await.unwrap();
    let bucket = Bucket::of(connection.store("b", &evicting()).await.unwrap());
    fill_mixed(&bucket, 90..120, "new").await;
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    assert!(fold.status().last_repair.unwrap().unconfirmed > 0);
    assert!(fold.contents().contains_key("k.0019"), "it is kept by default");
    fold.stop().await;
    jetstream(&server).await.delete_key_value("b").await.unwrap();
    let bucket = Bucket::of(connection.store("b", &evicting()).await.unwrap());
    fill_mixed(&bucket, 90..120, "newer").await;
    let config = FoldConfig { keep_evicted: false, ..config(&bucket, &WatchScope::All) };
    let fold = start(config, &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    fold.stop().await;
}

/// Why `StoreConfig` refuses the pair: the value before is back, and the log says nothing.
#[tokio::test]
async fn a_value_that_expires_above_a_history_uncovers_the_one_before_it() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let jetstream = jetstream(&server).await;
    let stream = async_nats::jetstream::stream::Config {
        name: "KV_b".into(),
        subjects: vec!["$KV.b.>".into()],
        max_messages_per_subject: 2,
        allow_direct: true,
        allow_rollup: true,
        allow_message_ttl: true,
        ..Default::default()
    };
    jetstream.create_stream(stream).await.unwrap();
    let bucket = Bucket::of(connection.open("b").await.unwrap());
    assert!(bucket.store.ttl().is_none(), "it is not offered");
    bucket.put("k", "before").await;
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-TTL", "1s");
    let sent = jetstream.publish_with_headers("$KV.b.k", headers, "expires".into()).await;
    sent.unwrap().await.unwrap();
    assert_eq!(bucket.reader.get("k").await.unwrap().unwrap().value, "expires");
    while bucket.reader.get("k").await.unwrap().unwrap().value == "expires" {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(bucket.reader.get("k").await.unwrap().unwrap().value, "before");
    assert_eq!(bucket.watcher.log().await.unwrap().last, 2, "nothing was written");
}

/// The messages of a mirror have the subjects of its origin.
#[tokio::test]
async fn a_mirror_under_another_name_has_the_keys_of_its_origin() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let origin = bucket_on(&connection).await;
    fill_mixed(&origin, 0..10, "v").await;
    let mirror = async_nats::jetstream::stream::Config {
        name: "KV_copy".into(),
        max_messages_per_subject: 1,
        allow_direct: true,
        mirror_direct: true,
        mirror: Some(async_nats::jetstream::stream::Source {
            name: "KV_b".into(),
            ..Default::default()
        }),
        ..Default::default()
    };
    jetstream(&server).await.create_stream(mirror).await.unwrap();
    let copy = Bucket::of(connection.open("copy").await.unwrap());
    while copy.watcher.log().await.unwrap().last < 30 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let fold = start(config(&copy, &WatchScope::All), &Disk::new());
    fold.synced().await;
    assert_eq!(fold.contents(), contents_of(&origin, "").await);
    assert_eq!(contents_of(&copy, "").await, contents_of(&origin, "").await);
    // Writes go to the origin.
    let revision = copy.put("k.0003", "new").await;
    fold.has(revision).await;
    assert_eq!(fold.contents(), contents_of(&origin, "").await);
    fold.stop().await;
}
