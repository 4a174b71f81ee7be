//! The same on every store: memory, a directory, and S3.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use slipstream::Connection;
use slipstream::artifact::Compression;
use slipstream::transport::{ArtifactTransport, RoundError, RoundOutcome, TransportError};
use slipstream_object_store::ObjectStoreTransport;

use crate::fleet::{Fleet, KEY, transport};
use crate::nats::NatsServer;
use crate::s3::s3;
use crate::weed::Weed;

const TTL: Duration = Duration::from_secs(60);

/// Two generations, and a node that begins with each.
async fn two_generations(fleet: &Fleet, transport: &ObjectStoreTransport) {
    fleet.write(0..300, "old").await;
    let first = fleet.node("first");
    first.caught_up().await;
    for generation in 0..2 {
        let published = first.round(transport, TTL).await.unwrap();
        let RoundOutcome::Published(manifest) = published else { panic!("{published:?}") };
        let pointer = transport.pointer(KEY).await.unwrap().unwrap();
        assert_eq!(pointer.manifest, manifest);
        // What follows the artifact, and only that, comes from the log.
        fleet.write(300..310, &format!("new {generation}")).await;
        let node = fleet.bootstrap(&format!("node {generation}"), transport).await.unwrap();
        node.caught_up().await;
        first.caught_up().await;
        assert_eq!(node.entries(), first.entries());
        assert_eq!((node.status().updates, node.status().repairs), (10, 0));
        let again = first.round(transport, TTL).await.unwrap();
        assert!(matches!(again, RoundOutcome::NotElected), "once a round: {again:?}");
        first.next_round().await;
        node.stop().await;
    }
    // The payload of the first generation is no longer of use, and one that nobody can read is left.
    assert_eq!(transport.prune(KEY, TTL).await.unwrap(), 0, "it is new");
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 0);
    assert!(fleet.bootstrap("after", transport).await.is_some());
    first.stop().await;
}

#[tokio::test]
async fn two_generations_in_memory() {
    let (fleet, _) = Fleet::in_memory().await;
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    two_generations(&fleet, &transport(&store)).await;
}

#[tokio::test]
async fn two_generations_compressed() {
    let (fleet, _) = Fleet::in_memory().await;
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let transport = transport(&store)
        .with_compression(Compression::Zstd)
        .with_bandwidth_limit(100 << 20)
        .with_progress(Arc::new(move |done, of| noted.lock().unwrap().push((done, of))));
    two_generations(&fleet, &transport).await;
    assert!(seen.lock().unwrap().iter().any(|(done, of)| *done > 0 && Some(*done) == *of));
}

#[tokio::test]
async fn a_directory_cannot_replace_a_pointer_unless_it_is_told_to() {
    let (fleet, _) = Fleet::in_memory().await;
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn ObjectStore> = Arc::new(LocalFileSystem::new_with_prefix(&dir).unwrap());
    let transport = transport(&store);
    fleet.write(0..10, "old").await;
    let node = fleet.node("node");
    node.caught_up().await;
    assert!(matches!(node.round(&transport, TTL).await.unwrap(), RoundOutcome::Published(_)));
    node.next_round().await;
    fleet.write(0..10, "new").await;
    node.caught_up().await;
    let before = transport.pointer(KEY).await.unwrap().unwrap().manifest;
    let refused = node.round(&transport, TTL).await.unwrap_err();
    assert!(matches!(refused, RoundError::Transport(TransportError::NotAtomic)), "{refused}");
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, before);
    let told = transport.with_non_atomic_pointer_fallback();
    assert!(matches!(node.round(&told, TTL).await.unwrap(), RoundOutcome::Published(_)));
    let bootstrapped = fleet.bootstrap("other", &told).await.unwrap();
    assert_eq!(bootstrapped.entries(), node.entries());
}

/// A real log, a real store.
#[tokio::test(flavor = "multi_thread")]
async fn two_generations_on_nats_and_s3() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    let store = s3(&weed);
    let connection = server.connect().await;
    let fleet = Fleet::on(&connection).await;
    two_generations(&fleet, &transport(&store)).await;
    connection.shutdown().await.unwrap();
}
