//! A fold that is restored from an artifact, on a real log that evicts by itself and a real store.
//!
//! Also a module of the tests of `slipstream-rocksdb`.

use std::sync::Arc;
use std::time::Duration;

use slipstream::transport::RoundOutcome;
use slipstream::{Connection, Discard, FoldConfig, Restore, SnapshotStore, StoreConfig};
use slipstream_object_store::ObjectStoreTransport;

use crate::fleet::{Fleet, KEY, transport};
use crate::nats::NatsServer;
use crate::s3::s3;
use crate::weed::Weed;

const TTL: Duration = Duration::from_secs(60);

pub(crate) fn evicting(max_bytes: u64) -> StoreConfig {
    let (max_bytes, discard) = (Some(max_bytes), Discard::Old);
    StoreConfig { max_bytes, discard, ..StoreConfig::default() }
}

pub(crate) fn restoring(fleet: &Fleet, transport: &ObjectStoreTransport) -> FoldConfig {
    let (transport, key) = (Arc::new(transport.clone()), KEY.to_owned());
    let restore = Some(Restore { transport, key, dir: fleet.dir.path().to_owned() });
    FoldConfig { restore, ..FoldConfig::new(fleet.bucket.watcher().unwrap()) }
}

pub(crate) async fn on_nats_and_s3<S: SnapshotStore>() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    let store = s3(&weed);
    let connection = server.connect().await;
    let fleet = Fleet::with(&connection, KEY, &evicting(100_000)).await;
    let transport = transport(&store);
    let config = FoldConfig::new(fleet.bucket.watcher().unwrap());
    let first = fleet.start::<S>("first", config, ());
    let value = "v".repeat(500);
    fleet.write(0..100, &value).await;
    let second = fleet.start::<S>("second", restoring(&fleet, &transport), ());
    second.caught_up().await;
    second.stop().await;
    fleet.write(50..1000, &value).await;
    let published = first.caught_up().await.round(&transport, TTL).await.unwrap();
    assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
    fleet.write(990..1020, &value).await;
    let floor = fleet.bucket.watcher().unwrap().log().await.unwrap().first;
    assert!(floor > 800, "the log has evicted most of it: {floor}");
    for name in ["second", "third"] {
        let node = fleet.start::<S>(name, restoring(&fleet, &transport), ());
        node.caught_up().await;
        first.caught_up().await;
        assert_eq!(node.entries(), first.entries(), "{name}");
        assert_eq!(node.entries().len(), 1020);
        let status = node.status();
        assert_eq!((status.restores, status.updates), (1, 30), "{name}: {status:?}");
        assert!(!status.may_be_incomplete, "{name}: {status:?}");
        node.stop().await;
    }
    connection.shutdown().await.unwrap();
}
