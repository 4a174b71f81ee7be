//! Servers that are killed, lose data or fall silent.

use std::time::Duration;

use futures_util::future::join_all;
use slipstream::{
    Connection, CursorExpiry, KvError, KvUpdate, StoreConfig, Watch, WatchCursor, WatchScope,
};

use crate::backend::Bucket;
use crate::clock::faster;
use crate::cluster::Cluster;
use crate::proxy::Proxy;
use crate::server::{NatsServer, connect};

/// Keys of a listing that is cut.
const LISTED: u64 = 3000;

fn scopes() -> [WatchScope; 3] {
    let some = vec!["k.".to_owned(), "l.".to_owned()];
    [WatchScope::All, WatchScope::Prefix("k.".into()), WatchScope::Prefixes(some)]
}

async fn error_of(watch: &mut dyn Watch) -> KvError {
    let mut updates: Vec<KvUpdate> = Vec::new();
    let ended = async {
        loop {
            if let Err(error) = watch.next(&mut updates, 100).await {
                return error;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the watch does not end")
}

async fn cursor_of(bucket: &Bucket, scope: &WatchScope) -> WatchCursor {
    let mut watch = bucket.watch(scope, &WatchCursor::none()).await;
    watch.until_synced().await;
    watch.cursor()
}

#[tokio::test]
async fn a_watch_of_a_killed_server_ends_and_its_cursor_goes_on() {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    for at in 0..100 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let mut watch = bucket.sync().await;
    watch.until_synced().await;
    server.kill();
    let error = error_of(watch.watch.as_mut()).await;
    assert!(matches!(error, KvError::WatchError(_)), "{error:?}");
    server.restart();
    // The connection heals by itself; a write that the dead server was sent fails.
    let mut put = bucket.writer.put("k.100", "v".into()).await;
    if matches!(put, Err(KvError::ConnectionLost { .. })) {
        put = bucket.writer.put("k.100", "v".into()).await;
    }
    assert_eq!(put.unwrap().as_u64(), Some(101));
    let mut resumed = bucket.watch(&WatchScope::All, &watch.cursor()).await;
    assert_eq!(resumed.until_synced().await, ["k.100=v@101"]);
}

#[tokio::test]
async fn a_watch_of_a_deleted_bucket_ends() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    let mut watch = bucket.sync().await;
    watch.until_synced().await;
    let client = async_nats::connect(server.url()).await.unwrap();
    async_nats::jetstream::new(client).delete_key_value("b").await.unwrap();
    let error = error_of(watch.watch.as_mut()).await;
    assert!(matches!(error, KvError::WatchError(_)), "{error:?}");
    let missing = KvError::BucketNotFound { bucket: "b".into() };
    assert_eq!(bucket.watcher.log().await, Err(missing.clone()));
    let again = bucket.watcher.watch(&WatchScope::All, &watch.cursor()).await;
    assert_eq!(again.err(), Some(missing.clone()));
    assert_eq!(bucket.reader.keys("").await.err(), Some(missing));
}

#[tokio::test]
async fn a_wire_that_falls_silent_ends_the_watch() {
    let server = NatsServer::start();
    let proxy = Proxy::to(server.port()).await;
    let connection = connect(&proxy.url()).await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    let mut watch = bucket.sync().await;
    watch.until_synced().await;
    proxy.stop_after(0);
    let error = error_of(watch.watch.as_mut()).await;
    assert_eq!(error, KvError::WatchError("the server is silent".into()));
}

/// Nothing in TCP ends a wait on a wire that carries nothing any more.
#[tokio::test]
async fn no_operation_waits_for_ever_on_a_silent_wire() {
    let server = NatsServer::start();
    let proxy = Proxy::to(server.port()).await;
    let connection = connect(&proxy.url()).await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    let version = bucket.writer.put("a", "v".into()).await.unwrap();
    proxy.stop_after(0);
    let (reader, writer) = (&bucket.reader, &bucket.writer);
    let all = async {
        tokio::join!(
            async { reader.get("a").await.err() },
            async { reader.keys("").await.err() },
            async { reader.scan("").await.err() },
            async { writer.put("b", "v".into()).await.err() },
            async { writer.create("c", "v".into()).await.err() },
            async { writer.update("a", "v".into(), version).await.err() },
            async { writer.delete("a").await.err() },
            async { bucket.watcher.log().await.err() },
            async { bucket.watcher.watch(&WatchScope::All, &WatchCursor::none()).await.err() },
            async { connection.open("b").await.err() },
        )
    };
    let ended = faster(all).await;
    let (get, keys, scan, put, create, update, delete, log, watch, open) = ended;
    for error in [get, keys, scan, put, create, update, delete, log, watch, open] {
        let ended = matches!(error, Some(KvError::Timeout { .. } | KvError::ConnectionLost { .. }));
        assert!(ended, "{error:?}");
    }
}

#[tokio::test]
async fn a_listing_cut_by_a_killed_server_is_an_error() {
    let mut server = NatsServer::start();
    let direct = server.connect().await;
    let config = StoreConfig { max_bytes: None, ..StoreConfig::default() };
    let bucket = Bucket::make(&direct, &config).await;
    // Of keys alone and of values there is more than the 2 MiB that the server sends ahead of flow
    // control, which nobody answers before the making of the consumer is.
    let (key, value) = ("k".repeat(1000), "v".repeat(1000));
    for at in 0..LISTED / 100 {
        let keys = (0..100).map(|of| format!("{key}.{}", at * 100 + of));
        join_all(keys.map(async |key| bucket.put(&key, &value).await)).await;
    }
    for headers_only in [false, true] {
        let proxy = Proxy::to(server.port()).await;
        let connection = connect(&proxy.url()).await;
        let bucket = Bucket::of(connection.open("b").await.unwrap());
        // The listing has begun by then, however long its messages waited.
        proxy.stop_after_text("consumer_create_response", 100_000);
        let list = async {
            match headers_only {
                true => bucket.reader.keys("").await.map(|keys| keys.len()),
                false => bucket.reader.scan("").await.map(|entries| entries.len()),
            }
        };
        let stopped = async {
            while !proxy.has_stopped() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let mut list = std::pin::pin!(list);
        tokio::select! {
            listed = &mut list => panic!("before it was cut: {listed:?}"),
            () = stopped => server.kill(),
        }
        match faster(list).await {
            Err(KvError::ListingCut { received, expected, .. }) => {
                assert_eq!(expected, LISTED);
                assert!((1..LISTED).contains(&received), "{received}");
            }
            other => panic!("{other:?}"),
        }
        server.restart();
    }
}

/// The server's files go back to what they were after 50 updates, of 100; then it takes `written`
/// more.
async fn rolled_back(written: usize, overwrite: bool, expected: fn(&CursorExpiry) -> bool) {
    let mut server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    for at in 0..50 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let incarnation = bucket.watcher.log().await.unwrap().incarnation;
    server.kill();
    let older = server.copy_store();
    server.restart();
    let bucket = Bucket::on(&server).await;
    for at in 50..100 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let mut cursors = Vec::new();
    for scope in scopes() {
        cursors.push(cursor_of(&bucket, &scope).await);
    }
    server.kill();
    server.go_back(&older);
    server.restart();
    let bucket = Bucket::on(&server).await;
    for at in 0..written {
        // The same keys as before, or others.
        let key = if overwrite { 50 + at % 50 } else { 1000 + at };
        bucket.put(&format!("k.{key}"), "v").await;
    }
    let log = bucket.watcher.log().await.unwrap();
    assert_eq!(log.incarnation, incarnation, "the same stream, with an older end");
    assert_eq!(log.last, 50 + written as u64);
    for (scope, cursor) in scopes().iter().zip(&cursors) {
        match bucket.watcher.watch(scope, cursor).await.map(drop) {
            Err(KvError::CursorExpired(expiry)) => assert!(expected(&expiry), "{expiry:?}"),
            other => panic!("{scope:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_store_directory_rolled_back_is_seen_by_its_end() {
    let ahead =
        |expiry: &CursorExpiry| *expiry == CursorExpiry::AheadOfLog { revision: 100, last: 80 };
    rolled_back(30, false, ahead).await;
}

#[tokio::test]
async fn a_store_directory_rolled_back_and_written_on_is_seen_by_a_witness() {
    let disagrees =
        |expiry: &CursorExpiry| *expiry == CursorExpiry::WitnessDisagrees { revision: 100 };
    rolled_back(80, false, disagrees).await;
}

/// The same keys come again at the same revisions: only when they were stored differs.
#[tokio::test]
async fn a_store_directory_rolled_back_and_written_alike_is_seen_by_a_witness() {
    let disagrees =
        |expiry: &CursorExpiry| *expiry == CursorExpiry::WitnessDisagrees { revision: 100 };
    rolled_back(50, true, disagrees).await;
}

#[tokio::test]
async fn a_store_directory_rolled_back_and_overwritten_is_never_taken_for_the_old_one() {
    // Twice over: what stood at the cursor's end is gone, and so is every witness.
    let unproven = |expiry: &CursorExpiry| {
        matches!(expiry, CursorExpiry::Unproven | CursorExpiry::WitnessDisagrees { .. })
    };
    rolled_back(100, true, unproven).await;
}

/// A copy that has just become the leader may only look shorter, so it is asked again for a while.
/// These three have lost their end, and what is written meanwhile does not bring it back.
#[tokio::test]
async fn a_replicated_bucket_that_went_back_is_seen_by_its_end_and_not_hidden_by_new_writes() {
    let (mut cluster, bucket) = Cluster::start().await;
    for at in 0..50 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let (bucket, older) = cluster.while_down(NatsServer::copy_store).await;
    for at in 50..100 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let cursor = cursor_of(&bucket, &WatchScope::All).await;
    let mut older = older.iter();
    let go_back = |server: &NatsServer| server.go_back(older.next().unwrap());
    let (bucket, _) = cluster.while_down(go_back).await;
    let resume = || bucket.watcher.watch(&WatchScope::All, &cursor);
    let ahead = CursorExpiry::AheadOfLog { revision: 100, last: 50 };
    assert_eq!(resume().await.err(), Some(KvError::CursorExpired(ahead)));
    let write_past_the_cursor = async {
        for at in 0..60 {
            bucket.put(&format!("other.{at}"), "v").await;
        }
    };
    let (resumed, ()) = tokio::join!(resume(), write_past_the_cursor);
    match resumed.err() {
        Some(KvError::CursorExpired(CursorExpiry::AheadOfLog { revision: 100, .. })) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(bucket.watcher.log().await.unwrap().last, 110);
}
