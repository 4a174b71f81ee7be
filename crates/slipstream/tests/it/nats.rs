//! What is particular to NATS.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::{self, consumer};
use futures_util::StreamExt;
use slipstream::{
    Connection, KvError, NatsConnection, NatsConnectionConfig, StoreConfig, WatchCursor, WatchScope,
};

use crate::backend::Bucket;
use crate::clock::faster;
use crate::proxy::Proxy;
use crate::server::{NatsServer, connect};

#[tokio::test]
async fn wrong_credentials_are_refused_without_being_repeated() {
    let server = NatsServer::start_with(&["--user", "alice", "--pass", "correct"]);
    let port = server.port();
    for user in ["", "alice:hunter2@", "bob:hunter2@"] {
        let url = format!("nats://{user}127.0.0.1:{port}");
        let connection = NatsConnection::new(NatsConnectionConfig::new(url));
        let error = connection.connect().await.unwrap_err();
        assert!(matches!(error, KvError::Unauthorized(_)), "{error:?}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        assert!(!connection.is_healthy());
        assert_eq!(connection.open("b").await.err(), Some(KvError::NotConnected));
    }
    let url = format!("nats://alice:correct@127.0.0.1:{port}");
    let connection = NatsConnection::new(NatsConnectionConfig::new(url));
    connection.connect().await.unwrap();
    assert!(connection.is_healthy());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error() {
    // Nobody listens on a port that was just given back.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("nats://me:hunter2@127.0.0.1:{port}");
    let error = NatsConnection::new(NatsConnectionConfig::new(url)).connect().await.unwrap_err();
    let KvError::Connect(cause) = error else { panic!("{error:?}") };
    assert!(cause.starts_with(&format!("127.0.0.1:{port}: ")), "{cause}");
}

#[tokio::test]
async fn callers_that_race_to_connect_share_one_connection() {
    let server = NatsServer::start();
    // The server numbers its connections.
    let before = async_nats::connect(server.url()).await.unwrap().server_info().client_id;
    let connection = Arc::new(NatsConnection::new(NatsConnectionConfig::new(server.url())));
    let racing = (0..8).map(|_| {
        let connection = Arc::clone(&connection);
        tokio::spawn(async move { connection.connect().await })
    });
    for caller in racing.collect::<Vec<_>>() {
        assert_eq!(caller.await.unwrap(), Ok(()));
    }
    let after = async_nats::connect(server.url()).await.unwrap().server_info().client_id;
    assert_eq!(after - before, 2, "one connection lies between");
    let bucket = Bucket::make(&*connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
}

#[tokio::test]
async fn a_connection_can_be_shut_down_and_made_again() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    connection.shutdown().await.unwrap();
    assert!(!connection.is_healthy());
    assert_eq!(connection.open("b").await.err(), Some(KvError::NotConnected));
    assert_eq!(bucket.reader.get("a").await, Err(KvError::NotConnected));
    connection.connect().await.unwrap();
    assert!(connection.is_healthy());
    let bucket = Bucket::of(connection.open("b").await.unwrap());
    assert_eq!(bucket.reader.get("a").await.unwrap().unwrap().value, "v");
}

#[tokio::test]
async fn a_client_that_is_given_is_used() {
    let server = NatsServer::start();
    let client = async_nats::connect(server.url()).await.unwrap();
    let connection = NatsConnection::from_client(client);
    assert!(connection.is_healthy());
    connection.connect().await.unwrap();
    Bucket::make(&connection, &StoreConfig::default()).await.put("a", "v").await;
    connection.shutdown().await.unwrap();
    assert_eq!(connection.connect().await, Err(KvError::NotConnected));
}

#[tokio::test]
async fn the_bucket_of_another_client_is_read_and_written() {
    let server = NatsServer::start();
    let client = async_nats::connect(server.url()).await.unwrap();
    let config = jetstream::kv::Config { bucket: "b".into(), ..Default::default() };
    let theirs = jetstream::new(client).create_key_value(config).await.unwrap();
    theirs.put("a.key", "theirs".into()).await.unwrap();
    let connection = server.connect().await;
    let ours = Bucket::of(connection.open("b").await.unwrap());
    assert_eq!(ours.reader.get("a.key").await.unwrap().unwrap().value, "theirs");
    ours.put("b.key", "ours").await;
    assert_eq!(theirs.get("b.key").await.unwrap().unwrap(), "ours");
    theirs.delete("a.key").await.unwrap();
    theirs.purge("b.key").await.unwrap();
    assert_eq!(ours.sync().await.until_synced().await, ["-a.key@3", "--b.key@4"]);
    ours.writer.delete("c.key").await.unwrap();
    ours.writer.purge("d.key").await.unwrap();
    for key in ["c.key", "d.key"] {
        assert_eq!(theirs.get(key).await.unwrap(), None);
    }
    let operation = theirs.entry("d.key").await.unwrap().unwrap().operation;
    assert_eq!(operation, jetstream::kv::Operation::Purge);
}

#[tokio::test]
async fn direct_reads_are_those_of_the_bucket() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    let direct = bucket.store.direct_reader().unwrap();
    for key in ["a", "b.deleted", "c.purged", "d.emptied"] {
        bucket.put(key, "1").await;
    }
    bucket.writer.delete("b.deleted").await.unwrap();
    bucket.writer.purge("c.purged").await.unwrap();
    let version = bucket.reader.entry("d.emptied").await.unwrap().unwrap().version;
    bucket.writer.delete_with_version("d.emptied", version).await.unwrap();
    let keys = ["a", "b.deleted", "c.purged", "d.emptied", "e.never"];
    for key in keys {
        assert_eq!(direct.get(key).await, bucket.reader.get(key).await, "{key}");
        assert_eq!(direct.entry(key).await, bucket.reader.entry(key).await, "{key}");
    }
    assert!(direct.get("a").await.unwrap().is_some());
    assert_eq!(direct.multi_get(&keys).await, bucket.reader.multi_get(&keys).await);
    assert_eq!(direct.scan("").await, bucket.reader.scan("").await);
    assert!(matches!(direct.get("no key").await, Err(KvError::InvalidKey(_))));
}

#[tokio::test]
async fn direct_reads_are_vended_and_answered_where_the_bucket_allows_them() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "1").await;
    let direct = bucket.store.direct_reader().unwrap();
    let jetstream = jetstream::new(async_nats::connect(server.url()).await.unwrap());
    let mut config = jetstream.get_stream("KV_b").await.unwrap().cached_info().config.clone();
    config.allow_direct = false;
    jetstream.update_stream(config).await.unwrap();
    // Who has a reader goes on with it.
    assert_eq!(direct.get("a").await.unwrap().unwrap().value, "1");
    assert!(connection.open("b").await.unwrap().direct_reader().is_none());
    jetstream.delete_key_value("b").await.unwrap();
    assert_eq!(direct.get("a").await, Err(KvError::BucketNotFound { bucket: "b".into() }));
}

/// Messages say where they stand in one of two ways. Servers of today have the longer one as a flag.
#[tokio::test]
async fn both_layouts_of_positions_are_read_from_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("layout.conf");
    let layout = "jetstream { domain: hub }\nfeature_flags { js_ack_fc_v2: true }";
    std::fs::write(&config, layout).unwrap();
    let server = NatsServer::start_with(&["-c", config.to_str().unwrap()]);
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    for at in 0..5 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let client = async_nats::connect(server.url()).await.unwrap();
    let inbox = client.new_inbox();
    let mut messages = client.subscribe(inbox.clone()).await.unwrap();
    let config = consumer::push::Config { deliver_subject: inbox, ..Default::default() };
    let jetstream = jetstream::new(client.clone());
    jetstream.create_consumer_on_stream(config, "KV_b").await.unwrap();
    let reply = messages.next().await.unwrap().reply.unwrap();
    assert!(reply.starts_with("$JS.ACK.hub."), "the server writes {reply}");
    let mut versions: Vec<_> =
        bucket.reader.scan("").await.unwrap().iter().map(|entry| entry.version.as_u64()).collect();
    versions.sort();
    assert_eq!(versions, [1, 2, 3, 4, 5].map(Some));
    let mut watch = bucket.sync().await;
    assert_eq!(watch.until_synced().await.len(), 5);
    bucket.put("k.5", "v").await;
    let mut resumed = bucket.watch(&WatchScope::All, &watch.cursor()).await;
    assert_eq!(resumed.until_synced().await, ["k.5=v@6"]);
}

/// Hosted accounts have few streams, and refuse one more before they look whether it exists.
#[tokio::test]
async fn an_account_at_its_limit_of_streams_finds_the_bucket_that_exists() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("limits.conf");
    let accounts =
        "accounts { A { jetstream { max_streams: 1 }, users: [{user: a, password: b}] } }";
    std::fs::write(&config, format!("jetstream {{}}\n{accounts}\nno_auth_user: a")).unwrap();
    let server = NatsServer::start_with(&["-c", config.to_str().unwrap()]);
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    let other = StoreConfig { max_history: 3, ..StoreConfig::default() };
    let again = Bucket::make(&connection, &other).await;
    assert_eq!(again.keys("").await, ["a"]);
    let refused = connection.store("another", &other).await.err().unwrap();
    let KvError::Backend { cause, .. } = &refused else { panic!("{refused:?}") };
    assert!(cause.contains("maximum number of streams"), "{cause}");
}

/// A service that makes the bucket and does not say so, and one that does nothing at all.
#[tokio::test]
async fn a_bucket_whose_making_is_not_answered_is_looked_for() {
    let server = NatsServer::start();
    let answer = Proxy::without(server.port(), "stream_create_response").await;
    let question = Proxy::without(server.port(), "STREAM.CREATE").await;
    let (made, lost) = (connect(&answer.url()).await, connect(&question.url()).await);
    // So that the making is the only thing on the wire.
    for connection in [&made, &lost] {
        let missing = KvError::BucketNotFound { bucket: "b".into() };
        assert_eq!(connection.open("b").await.err(), Some(missing));
    }
    let config = StoreConfig::default();
    let both = async { tokio::join!(made.store("b", &config), lost.store("c", &config)) };
    let (made, lost) = faster(both).await;
    assert_eq!((answer.swallowed(), question.swallowed()), (1, 1));
    let bucket = Bucket::of(made.unwrap());
    bucket.put("a", "v").await;
    assert_eq!(bucket.keys("").await, ["a"]);
    let timeout = KvError::Timeout { operation: "create bucket", after_ms: 30_000 };
    assert_eq!(lost.err(), Some(timeout));
}

/// How far the log went says nothing of one that takes its place before the consumer is made.
#[tokio::test]
async fn a_listing_of_a_bucket_that_is_made_again_as_it_begins_is_an_error() {
    let server = NatsServer::start();
    let direct = server.connect().await;
    let before = Bucket::make(&direct, &StoreConfig::default()).await;
    for at in 0..5 {
        before.put(&format!("k.{at}"), "v").await;
    }
    let proxy = Proxy::without(server.port(), "CONSUMER.CREATE").await;
    let far = Bucket::of(connect(&proxy.url()).await.open("b").await.unwrap());
    let listing = tokio::spawn(async move { far.reader.keys("").await });
    while proxy.swallowed() == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let client = async_nats::connect(server.url()).await.unwrap();
    jetstream::new(client).delete_key_value("b").await.unwrap();
    Bucket::make(&direct, &StoreConfig::default()).await.put("a", "v").await;
    // The question is asked again after a while.
    proxy.swallow_no_more();
    let cause = "the bucket was made again".to_owned();
    let cut = KvError::ListingCut { received: 1, expected: 1, cause };
    assert_eq!(listing.await.unwrap(), Err(cut));
}

/// Anybody may write to an inbox, but only the server can say where in the log a message stands: it
/// takes no reply subject of that kind from a client.
#[tokio::test]
async fn a_message_that_is_not_of_the_log_is_not_believed() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    let mut watch = bucket.sync().await;
    assert_eq!(watch.until_synced().await, ["a=v@1"]);
    let stranger = async_nats::connect(server.url()).await.unwrap();
    let stream = jetstream::new(stranger.clone()).get_stream("KV_b").await.unwrap();
    let consumer = stream.consumers().next().await.unwrap().unwrap();
    let inbox = consumer.config.deliver_subject.unwrap();
    let position = "$JS.ACK.KV_b.c.1.2.2.1700000000000000000.0";
    stranger.publish_with_reply(inbox.clone(), position, "forged".into()).await.unwrap();
    bucket.put("a", "w").await;
    let mut updates = Vec::new();
    watch.watch.next(&mut updates, 10).await.unwrap();
    assert_eq!(updates.len(), 1, "the server took nothing from the forger");
    stranger.publish(inbox, "a stranger's".into()).await.unwrap();
    let error = watch.watch.next(&mut updates, 10).await.unwrap_err();
    assert!(matches!(error, KvError::WatchError(_)) && updates.len() == 1, "{error:?}");
}

/// Why a resume checks the floor itself: the server says nothing.
#[tokio::test]
async fn the_server_begins_at_the_floor_in_silence_when_told_to_begin_below_it() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    for at in 0..10 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = jetstream::new(client).get_stream("KV_b").await.unwrap();
    stream.purge().sequence(6).await.unwrap();
    let config = consumer::pull::Config {
        deliver_policy: consumer::DeliverPolicy::ByStartSequence { start_sequence: 3 },
        ack_policy: consumer::AckPolicy::None,
        ..Default::default()
    };
    let consumer = stream.create_consumer(config).await.unwrap();
    let first = consumer.messages().await.unwrap().next().await.unwrap().unwrap();
    assert_eq!(first.info().unwrap().stream_sequence, 6);
}

#[tokio::test]
async fn listings_leave_no_consumer_behind() {
    let server = NatsServer::start();
    let connection = server.connect().await;
    let bucket = Bucket::make(&connection, &StoreConfig::default()).await;
    bucket.put("a", "v").await;
    for _ in 0..20 {
        assert_eq!(bucket.keys("").await, ["a"]);
    }
    let client = async_nats::connect(server.url()).await.unwrap();
    let stream = jetstream::new(client).get_stream("KV_b").await.unwrap();
    // The last of them may be on its way out.
    for _ in 0..100 {
        if stream.get_info().await.unwrap().state.consumer_count == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{} consumers are left", stream.get_info().await.unwrap().state.consumer_count);
}

/// A client that drops messages does so without a word; the consumer's count tells.
#[tokio::test]
async fn messages_that_the_client_dropped_end_the_watch() {
    let server = NatsServer::start();
    let writer = server.connect().await;
    let bucket = Bucket::make(&writer, &StoreConfig::default()).await;
    for at in 0..200 {
        bucket.put(&format!("k.{at}"), "v").await;
    }
    let options = async_nats::ConnectOptions::new().subscription_capacity(16);
    let client = options.connect(server.url()).await.unwrap();
    let tight = NatsConnection::from_client(client.clone());
    let tight = Bucket::of(tight.open("b").await.unwrap());
    let mut watch = tight.watch(&WatchScope::All, &WatchCursor::none()).await.watch;
    // While nobody reads, a round trip behind the messages lets them all arrive.
    client.flush().await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut updates = Vec::new();
    let error = loop {
        match watch.next(&mut updates, 1000).await {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(error, KvError::WatchError(_)), "{error:?}");
    assert!(updates.len() < 200);
    assert_eq!(watch.next(&mut updates, 1000).await, Err(error));
    // What came before the loss is sound, and its cursor goes on behind it.
    assert_eq!(watch.position(), updates.len() as u64);
    let rest = bucket.watch(&WatchScope::All, &watch.cursor()).await.until_synced().await;
    assert_eq!(updates.len() + rest.len(), 200);
}
