//! The lease of exports, on a real server.

use std::sync::Arc;
use std::time::Duration;

use slipstream::{Connection, ExportLease, KvError, KvStore, LEASE_MAX, StoreConfig, WatchCursor};

use crate::server::NatsServer;

const TTL: Duration = Duration::from_secs(60);
const KEY: &str = "leases.export";

struct World {
    store: Arc<dyn KvStore>,
    _server: NatsServer,
}

impl World {
    async fn new() -> Self {
        let server = NatsServer::start();
        let store = server.connect().await.store("leases", &StoreConfig::default()).await.unwrap();
        Self { store, _server: server }
    }

    fn node(&self, name: &str) -> ExportLease {
        ExportLease::new(&*self.store, KEY, name).unwrap()
    }

    async fn write(&self, value: &str) {
        self.store.writer().unwrap().put(KEY, value.to_owned().into()).await.unwrap();
    }
}

/// How many of eight nodes get the lease at once.
async fn winners(world: &World, now_unix: u64) -> Vec<String> {
    let nodes = (0..8).map(|at| world.node(&format!("node-{at}")));
    let racing = nodes
        .map(|node| tokio::spawn(async move { node.try_acquire_at(TTL, now_unix).await.unwrap() }));
    let mut winners = Vec::new();
    for race in racing.collect::<Vec<_>>() {
        let guard = race.await.unwrap();
        winners.extend(guard.map(|guard| guard.record().holder_id.clone()));
    }
    winners
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_gets_the_lease_and_one_takes_it_over() {
    let world = World::new().await;
    let first = winners(&world, 1000).await;
    assert_eq!(first.len(), 1);
    assert_eq!(winners(&world, 1059).await, Vec::<String>::new());
    let record = world.node("any").record().await.unwrap().unwrap();
    assert_eq!((record.holder_id, record.expires_at_unix), (first[0].clone(), 1060));
    for now in [1060, 1120, 1180] {
        assert_eq!(winners(&world, now).await.len(), 1, "over at {now}");
    }
    let endless = r#"{"holder_id":"x","acquired_at_unix":5,"expires_at_unix":18446744073709551615,"completed_cursor_hex":null,"completed_at_unix":null}"#;
    for corrupt in ["{", "corrupt", "[1,2]", endless] {
        world.write(corrupt).await;
        assert_eq!(winners(&world, 5).await.len(), 1, "{corrupt}");
    }
    let longest = world.node("long").try_acquire_at(Duration::MAX, 1000).await.unwrap().unwrap();
    assert_eq!(longest.record().expires_at_unix, 1000 + LEASE_MAX.as_secs());
}

#[tokio::test]
async fn a_lease_that_was_given_back_is_free_at_once() {
    let world = World::new().await;
    let (one, other) = (world.node("one"), world.node("other"));
    let guard = one.try_acquire(TTL).await.unwrap().unwrap();
    assert!(other.try_acquire(TTL).await.unwrap().is_none());
    guard.abandon().await.unwrap();
    assert_eq!(one.record().await.unwrap(), None);
    // An empty value is in its place.
    let guard = other.try_acquire(TTL).await.unwrap().unwrap();
    assert_eq!(guard.record().holder_id, "other");
    drop(guard);
    assert!(one.try_acquire(TTL).await.unwrap().is_none(), "dropped, it is not given back");
}

#[tokio::test]
async fn a_completed_round_is_seen_and_keeps_others_away_until_it_is_over() {
    let world = World::new().await;
    let (one, other) = (world.node("one"), world.node("other"));
    let cursor = WatchCursor::from_bytes(vec![1, 2, 3]).unwrap();
    let guard = one.try_acquire(TTL).await.unwrap().unwrap();
    let expires = guard.record().expires_at_unix;
    guard.complete(&cursor).await.unwrap();
    let record = other.record().await.unwrap().unwrap();
    assert_eq!((record.completed_cursor(), record.expires_at_unix), (Some(cursor), expires));
    assert!(record.completed_at_unix.is_some());
    assert!(other.try_acquire(TTL).await.unwrap().is_none());
    assert!(other.try_acquire_at(TTL, expires).await.unwrap().is_some());
}

#[tokio::test]
async fn whoever_was_too_slow_changes_nothing() {
    let world = World::new().await;
    let (slow, other) = (world.node("slow"), world.node("other"));
    for completes in [true, false] {
        let guard = slow.try_acquire_at(TTL, 1000).await.unwrap().unwrap();
        let theirs = other.try_acquire_at(TTL, 2000).await.unwrap().unwrap();
        let ended = match completes {
            true => guard.complete(&WatchCursor::none()).await,
            false => guard.abandon().await,
        };
        assert!(matches!(ended, Err(KvError::RevisionMismatch)));
        let record = other.record().await.unwrap().unwrap();
        assert_eq!(&record, theirs.record());
        theirs.abandon().await.unwrap();
    }
}
