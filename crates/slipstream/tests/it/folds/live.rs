//! Servers that stay up; logs that evict, forget, or are made anew.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rstest::rstest;
use slipstream::{
    BatchConfig, Connection, CursorExpiry, FoldConfig, FoldError, Key, KvError, NatsConnection,
    Snapshot, StoreConfig, WatchCursor, WatchScope,
};

use super::support::{
    Disk, Gate, Running, bucket_on, config, contents, contents_in, contents_of, evict_below,
    fill_mixed, jetstream, scopes, start, start_with,
};
use crate::backend::Bucket;
use crate::server::NatsServer;

async fn fill(bucket: &Bucket, keys: std::ops::Range<u32>, value: &str) {
    for at in keys {
        bucket.put(&format!("k.{at:04}"), value).await;
    }
}

#[tokio::test]
async fn a_restarted_fold_reads_only_what_follows_on_every_scope() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill(&bucket, 0..300, "v").await;
    bucket.put("elsewhere", "v").await;
    let disks = [(); 3].map(|()| Disk::new());
    for (scope, disk) in scopes().iter().zip(&disks) {
        let fold = start(config(&bucket, scope), disk);
        fold.synced().await;
        let expected = if *scope == WatchScope::All { 301 } else { 300 };
        assert_eq!(fold.status().updates, expected, "{scope:?}");
        assert!(fold.stop().await.result.is_ok());
    }
    fill(&bucket, 295..305, "new").await;
    bucket.writer.delete("k.0000").await.unwrap();
    bucket.put("elsewhere", "new").await;
    for (scope, disk) in scopes().iter().zip(&disks) {
        let fold = start(config(&bucket, scope), disk);
        fold.synced().await;
        fold.caught_up(&bucket).await;
        let updates = if *scope == WatchScope::All { 12 } else { 11 };
        let status = fold.status();
        assert_eq!((status.updates, status.repairs), (updates, 0), "{scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, scope).await, "{scope:?}");
    }
}

#[tokio::test]
async fn a_write_outside_the_scope_is_waited_for_too() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill(&bucket, 0..5, "v").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::Prefix("k.".into())), &disk);
    fold.synced().await;
    for round in 0..3 {
        let mut last = 0;
        for at in 0..20 {
            last = bucket.put(&format!("other.{at}"), "v").await;
        }
        fold.has(last).await;
        let own = bucket.put(&format!("k.new{round}"), "v").await;
        fold.has(own).await;
    }
    assert_eq!(fold.status().repairs, 0);
    assert_eq!(fold.contents(), contents_of(&bucket, "k.").await);
}

#[tokio::test]
async fn an_empty_bucket_is_synced() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    for scope in scopes() {
        let fold = start(config(&bucket, &scope), &Disk::new());
        fold.synced().await;
        assert_eq!(fold.stop().await.cursor.revision(), Some(0), "{scope:?}");
    }
}

/// One case a scope: a running watch takes seconds to be sure that nobody will send any more.
#[rstest]
#[case::all(0)]
#[case::prefix(1)]
#[case::prefixes(2)]
#[tokio::test]
async fn a_bucket_made_again_is_noticed_by_folds_that_sleep_and_folds_that_run(
    #[case] scope: usize,
) {
    let scope = &scopes()[scope];
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill_mixed(&bucket, 0..50, "old").await;
    let (asleep, awake) = (Disk::new(), Disk::new());
    let sleeper = start(config(&bucket, scope), &asleep);
    sleeper.synced().await;
    sleeper.stop().await;
    let runner = start(config(&bucket, scope), &awake);
    runner.synced().await;
    jetstream(&server).await.delete_key_value("b").await.unwrap();
    let bucket = bucket_on(&connection).await;
    // Past the old head, so that its numbers mean something else.
    fill_mixed(&bucket, 40..100, "new").await;
    let sleeper = start(config(&bucket, scope), &asleep);
    for fold in [&sleeper, &runner] {
        fold.until("repair", |status| status.repairs > 0 && status.synced).await;
        fold.caught_up(&bucket).await;
        assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::Recreated);
        assert_eq!(fold.contents(), contents_in(&bucket, scope).await);
    }
}

#[tokio::test]
async fn keys_deleted_and_made_again_in_a_gap_without_markers_converge() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for (at, scope) in scopes().into_iter().enumerate() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..100, "old").await;
        let disk = Disk::new();
        let fold = start(config(&bucket, &scope), &disk);
        fold.synced().await;
        fold.stop().await;
        for at in 0..60 {
            for place in ["k", "other"] {
                bucket.writer.delete(&format!("{place}.{at:04}")).await.unwrap();
            }
        }
        fill_mixed(&bucket, 30..60, "again").await;
        let last = bucket.put("k.last", "new").await;
        // Markers and all, but for what was made again.
        evict_below(&server, last - 90).await;
        let fold = start(config(&bucket, &scope), &disk);
        fold.synced().await;
        let status = fold.status();
        let repair = status.last_repair.unwrap();
        assert!(matches!(repair.why, CursorExpiry::BelowFloor { .. }), "{repair:?}");
        // Of each place of the scope 70 are not there: deleted, or evicted.
        let places = [3, 1, 2][at];
        assert_eq!(repair.deleted, places * 70, "{scope:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

/// Half of what the server sends unanswered, together with what is read ahead.
async fn flood(bucket: &Bucket) {
    let value = "v".repeat(128 * 1024);
    futures_util::future::join_all((0..256).map(|at| {
        let (writer, value) = (Arc::clone(&bucket.writer), value.clone());
        async move { writer.put(&format!("k.big{}", at % 64), value.into()).await.unwrap() }
    }))
    .await;
}

/// A fold of one-update batches that can be held up.
async fn held_up(bucket: &Bucket, scope: &WatchScope) -> (Running, Gate) {
    let gate = Gate::default();
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() };
    let config = FoldConfig { batch, ..config(bucket, scope) };
    let fold = start_with(config, &Disk::new(), gate.clone());
    fold.synced().await;
    fold.caught_up(bucket).await;
    (fold, gate)
}

/// The fold is held up until the server may not send more; what it has not sent is evicted. The
/// server then goes on as if nothing had been. A key that was deleted may be anywhere on its way.
#[tokio::test(flavor = "multi_thread")]
async fn an_overrun_of_a_live_watch_is_noticed_on_every_scope() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..20, "old").await;
        let (fold, gate) = held_up(&bucket, &scope).await;
        let held = gate.hold().await;
        fill_mixed(&bucket, 100..110, "gone when it arrives").await;
        flood(&bucket).await;
        fill_mixed(&bucket, 110..120, "gone when it arrives").await;
        flood(&bucket).await;
        for at in (3..4).chain(100..120) {
            for place in ["k", "other", "l"] {
                bucket.writer.delete(&format!("{place}.{at:04}")).await.unwrap();
            }
        }
        let last = bucket.put("k.0004", "new").await;
        bucket.put("other.0004", "new").await;
        evict_below(&server, last).await;
        drop(held);
        fold.until("overrun", |status| status.overruns > 0).await;
        fold.caught_up(&bucket).await;
        let status = fold.status();
        assert_eq!(status.repairs, 0, "the watch goes on: {scope:?}: {status:?}");
        assert_eq!(fold.contents(), contents_in(&bucket, &scope).await, "{scope:?}");
        fold.stop().await;
        jetstream(&server).await.delete_key_value("b").await.unwrap();
    }
}

#[tokio::test]
async fn a_bucket_that_forgets_by_age_takes_nothing_from_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let limits = StoreConfig { max_age: Some(Duration::from_secs(2)), ..StoreConfig::default() };
    let bucket = Bucket::of(connection.store("b", &limits).await.unwrap());
    fill(&bucket, 0..20, "v").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.caught_up(&bucket).await;
    assert!(fold.status().evicts_current_values);
    fold.stop().await;
    while !bucket.keys("").await.is_empty() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Numbers go on, so the cursor is below the floor.
    fill(&bucket, 18..23, "new").await;
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    let contents = fold.contents();
    assert_eq!(contents.len(), 23);
    assert_eq!(contents["k.0000"].0, b"v");
    assert_eq!(contents["k.0019"].0, b"new");
    let status = fold.status();
    assert_eq!(status.last_repair.map(|repair| repair.deleted).unwrap_or_default(), 0);
}

/// What the log forgets from then on need not have been deleted.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_told_to_forget_under_a_watch_takes_nothing_from_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    fill(&bucket, 0..20, "v").await;
    let (fold, gate) = held_up(&bucket, &WatchScope::All).await;
    let held = gate.hold().await;
    flood(&bucket).await;
    flood(&bucket).await;
    let jetstream = jetstream(&server).await;
    let mut told = jetstream.get_stream("KV_b").await.unwrap().cached_info().config.clone();
    told.max_age = Duration::from_secs(3600);
    jetstream.update_stream(told).await.unwrap();
    let last = bucket.put("k.0004", "new").await;
    evict_below(&server, last).await;
    drop(held);
    fold.caught_up(&bucket).await;
    let (status, contents) = (fold.status(), fold.contents());
    assert!(status.evicts_current_values, "{status:?}");
    assert_eq!((status.overruns, status.repairs), (0, 0), "nothing would be dropped: {status:?}");
    assert!(status.passed_gaps > 0, "what was evicted unread is told: {status:?}");
    assert!(status.may_be_incomplete, "{status:?}");
    assert!((0..20).all(|at| contents.contains_key(&format!("k.{at:04}"))), "{status:?}");
    assert_eq!(contents["k.0004"].0, b"new");
}

/// A bucket in which the tombstones of expired keys live so long.
async fn bucket_with_tombstones(
    server: &NatsServer,
    connection: &NatsConnection,
    life: Duration,
) -> Bucket {
    let expiring = async_nats::jetstream::kv::Config {
        bucket: "b".into(),
        limit_markers: Some(life),
        ..Default::default()
    };
    jetstream(server).await.create_key_value(expiring).await.unwrap();
    Bucket::of(connection.open("b").await.unwrap())
}

/// The key expires while the fold is away, and so does what the log would tell of it.
#[tokio::test]
async fn a_key_that_expired_without_a_tombstone_leaves_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let second = Duration::from_secs(1);
    let bucket = bucket_with_tombstones(&server, &connection, second).await;
    let ttl = bucket.store.ttl().unwrap();
    ttl.put_with_ttl("k.goes", "v".into(), second).await.unwrap();
    bucket.put("k.stays", "v").await;
    let disk = Disk::new();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.has(2).await;
    fold.stop().await;
    // The tombstone is a message of its own, for a while.
    while bucket.watcher.log().await.unwrap().last < 3
        || bucket.reader.entry("k.goes").await.unwrap().is_some()
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.synced().await;
    fold.caught_up(&bucket).await;
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
    assert_eq!(fold.status().last_repair.unwrap().why, CursorExpiry::TombstonesExpired);
}

/// The key expires under a fold that is held up, and so does its tombstone before the server may
/// send it. The log has not forgotten its oldest message, so that its floor tells nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_whose_tombstone_expired_under_a_slow_watch_leaves_the_fold() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let second = Duration::from_secs(1);
    let bucket = bucket_with_tombstones(&server, &connection, second).await;
    let ttl = bucket.store.ttl().unwrap();
    bucket.put("k.oldest", "v").await;
    ttl.put_with_ttl("k.goes", "v".into(), second * 3).await.unwrap();
    let (fold, gate) = held_up(&bucket, &WatchScope::All).await;
    assert!(fold.contents().contains_key("k.goes"));
    let held = gate.hold().await;
    flood(&bucket).await;
    flood(&bucket).await;
    let tombstone_after = bucket.watcher.log().await.unwrap().last;
    while bucket.watcher.log().await.unwrap().last == tombstone_after
        || bucket.reader.entry("k.goes").await.unwrap().is_some()
    {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bucket.put("k.after", "v").await;
    assert_eq!(bucket.watcher.log().await.unwrap().first, 1);
    drop(held);
    fold.until("repair", |status| status.repairs > 0 && status.synced).await;
    fold.caught_up(&bucket).await;
    let status = fold.status();
    assert_eq!(status.last_repair.unwrap().why, CursorExpiry::TombstonesExpired, "{status:?}");
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
}

/// Most of a bucket is older than any tombstone. What counts is when it was last observed.
#[tokio::test]
async fn a_cursor_between_messages_older_than_any_tombstone_is_good() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let life = Duration::from_secs(8);
    let bucket = bucket_with_tombstones(&server, &connection, life).await;
    for key in ["k.0", "k.1", "k.2"] {
        bucket.put(key, "v").await;
    }
    tokio::time::sleep(life).await;
    let mut updates = Vec::new();
    let mut listing = bucket.watcher.watch(&WatchScope::All, &WatchCursor::none()).await.unwrap();
    listing.next(&mut updates, 1).await.unwrap();
    let halfway = listing.cursor();
    let mut rest = bucket.watcher.watch(&WatchScope::All, &halfway).await.unwrap();
    assert_eq!(rest.position(), 1, "a listing that was cut goes on");
    rest.next(&mut updates, 9).await.unwrap();
    bucket.put("k.beat", "1").await;
    rest.next(&mut updates, 9).await.unwrap();
    let cursor = rest.cursor();
    bucket.put("k.beat", "2").await;
    let beyond = bucket.watcher.watch(&WatchScope::All, &cursor).await.unwrap();
    assert_eq!(beyond.position(), 3, "an old message is in place, and the log was just observed");
}

#[tokio::test]
async fn a_bucket_that_is_missing_from_the_start_ends_the_fold_and_leaves_it_as_it_was() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    for scope in scopes() {
        let bucket = bucket_on(&connection).await;
        fill_mixed(&bucket, 0..10, "v").await;
        let disk = Disk::new();
        let fold = start(config(&bucket, &scope), &disk);
        fold.caught_up(&bucket).await;
        let before = fold.contents();
        let cursor = fold.stop().await.cursor;
        assert!(!before.is_empty() && !cursor.is_none());
        jetstream(&server).await.delete_key_value("b").await.unwrap();
        let ended = start(config(&bucket, &scope), &disk).ended().await;
        let Err(FoldError::Watch(error)) = ended.result else { panic!("{:?}", ended.result) };
        assert_eq!(error, KvError::BucketNotFound { bucket: "b".into() });
        assert_eq!((contents(&ended.store), &ended.cursor), (before.clone(), &cursor), "{scope:?}");
        drop(ended.store);
        // On disk as well.
        let kept = Snapshot::load(&disk.path()).unwrap();
        assert_eq!(kept.cursor, cursor, "{scope:?}");
        assert!(kept.entries.keys().map(Key::as_str).eq(before.keys()), "{scope:?}");
    }
}

/// Every write moves the floor of such a log, so that it is past any cursor at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_of_one_key_that_is_written_all_the_time_is_still_folded() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = bucket_on(&connection).await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writer, stopped) = (Arc::clone(&bucket.writer), Arc::clone(&stop));
    let writing = tokio::spawn(async move {
        for at in 0.. {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            writer.put("hot", format!("{at}").into()).await.unwrap();
        }
    });
    let disk = Disk::new();
    for _ in 0..5 {
        let fold = start(config(&bucket, &WatchScope::All), &disk);
        fold.until("updates", |status| status.synced && status.updates > 200).await;
        let status = fold.status();
        assert!(status.repairs <= 1, "it is listed to begin with, and then followed: {status:?}");
        fold.stop().await;
    }
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    let fold = start(config(&bucket, &WatchScope::All), &disk);
    fold.caught_up(&bucket).await;
    assert_eq!(fold.contents(), contents_of(&bucket, "").await);
}
