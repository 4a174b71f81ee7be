//! Nodes that publish at the same time, and somebody who always reads what is the newest.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object_store::ObjectStore;
use object_store::memory::InMemory;
use slipstream::Connection;
use slipstream::artifact::ExportManifest;
use slipstream::transport::{
    ArtifactTransport, PublishOutcome, RoundError, RoundOutcome, TransportError,
};
use slipstream_object_store::ObjectStoreTransport;

use crate::fleet::{Fleet, KEY, Node, transport};
use crate::nats::NatsServer;
use crate::rounds::{Held, scale, slow_exporter};
use crate::s3::s3;
use crate::weed::Weed;

/// Generations in one run of the test command; a soak multiplies them.
const GENERATIONS: u64 = 3;
/// Who race: these take part in rounds, and the rivals publish whoever has the lease.
const MEMBERS: usize = 5;
const RIVALS: usize = 3;

/// The shortest lease: what is not the newest is deleted four seconds after its upload.
const TTL: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// An artifact that was published: by whom is told by who counts it.
type Published = ([u64; 3], String);

/// What a node has of its exports.
#[derive(Default)]
struct Exported {
    /// It was told that it published them.
    claimed: Vec<Published>,
    /// It may have, or another with the very same: an answer of the store may be lost.
    there: Vec<Published>,
}

fn published(manifest: &ExportManifest) -> Published {
    let rank = manifest.rank().expect("of a log");
    ([rank.epoch, rank.incarnation, rank.revision], manifest.content_id())
}

async fn take_part(node: &Node, transport: &ObjectStoreTransport, mine: &mut Exported) {
    match node.round(transport, TTL).await {
        Ok(RoundOutcome::Published(manifest)) => mine.claimed.push(published(&manifest)),
        Ok(RoundOutcome::AlreadyThere(manifest)) => mine.there.push(published(&manifest)),
        Ok(_) | Err(RoundError::Transport(TransportError::Contended { .. })) => {}
        Err(error) => panic!("{error}"),
    }
}

/// As somebody does whose lease is over and who does not know.
async fn rival(node: &Node, transport: &ObjectStoreTransport, mine: &mut Exported) {
    node.handle.export(node.artifact.clone()).await.unwrap();
    let watcher = node.watcher();
    let uploaded = transport.upload(KEY, &node.artifact, &*watcher).await;
    std::fs::remove_dir_all(&node.artifact).unwrap();
    match uploaded {
        Ok((manifest, PublishOutcome::Published)) => mine.claimed.push(published(&manifest)),
        Ok((manifest, PublishOutcome::AlreadyThere)) => mine.there.push(published(&manifest)),
        Ok(_) | Err(TransportError::Contended { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

/// The pointer never goes back, whoever reads always gets a fold, and each artifact that was the newest
/// has one publisher, or several who may be it. Those that nobody claims are returned.
async fn race(fleet: Fleet, transport: &ObjectStoreTransport) -> Vec<Published> {
    fleet.write(0..50, "old").await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut racing = Vec::new();
    for at in 0..MEMBERS + RIVALS {
        let (node, stop) = (fleet.node(&format!("node-{at}")), Arc::clone(&stop));
        let transport = transport.clone();
        racing.push(tokio::spawn(async move {
            node.caught_up().await;
            let mut mine = Exported::default();
            while !stop.load(Ordering::SeqCst) {
                match at < MEMBERS {
                    true => take_part(&node, &transport, &mut mine).await,
                    false => rival(&node, &transport, &mut mine).await,
                }
                tokio::time::sleep(PAUSE).await;
            }
            node.stop().await;
            mine
        }));
    }
    let mut seen: Vec<Published> = Vec::new();
    for read in 0.. {
        fleet.write(0..5, &format!("new {read}")).await;
        let Some(pointer) = transport.pointer(KEY).await.unwrap() else { continue };
        let newest = published(&pointer.manifest);
        assert!(seen.last().is_none_or(|last| last.0 <= newest.0), "it went back to {newest:?}");
        if seen.last() != Some(&newest) {
            seen.push(newest);
        }
        fleet.bootstrap(&format!("reader-{read}"), transport).await.unwrap().stop().await;
        if seen.len() as u64 >= GENERATIONS * scale() {
            break;
        }
    }
    stop.store(true, Ordering::SeqCst);
    let (mut claimed, mut there) = (Vec::new(), Vec::new());
    for node in racing {
        let exported = node.await.unwrap();
        claimed.extend(exported.claimed);
        there.extend(exported.there);
    }
    let once: BTreeSet<&Published> = claimed.iter().collect();
    assert_eq!(once.len(), claimed.len(), "each has one publisher: {claimed:?}");
    let unclaimed: Vec<_> = seen.into_iter().filter(|newest| !once.contains(newest)).collect();
    assert!(unclaimed.iter().all(|newest| there.contains(newest)), "{unclaimed:?} of {there:?}");
    unclaimed
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_race_and_readers_always_find_a_whole_artifact() {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let unclaimed = race(Fleet::in_memory().await.0, &transport(&store)).await;
    assert_eq!(unclaimed, [], "this store loses no answer");
}

/// A real log, a real store.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_race_on_nats_and_s3_and_readers_always_find_a_whole_artifact() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    let connection = server.connect().await;
    race(Fleet::on(&connection).await, &transport(&s3(&weed))).await;
    connection.shutdown().await.unwrap();
}

/// One comes too late, one ends between payload and pointer: the pointer is to what was the newest.
#[tokio::test(flavor = "multi_thread")]
async fn exporters_that_fail_on_nats_and_s3_leave_a_pointer_that_can_be_used() {
    let (server, weed) = (NatsServer::start(), Weed::start());
    let connection = server.connect().await;
    let (fleet, transport) = (Fleet::on(&connection).await, transport(&s3(&weed)));
    slow_exporter(&fleet, &transport).await;
    let before = transport.pointer(KEY).await.unwrap().unwrap().manifest;
    let node = fleet.node("node");
    fleet.write(10..30, "newest").await;
    node.caught_up().await;
    {
        let held = Held::new(&fleet);
        // About the pointer's cursor, before the upload.
        held.go_on.add_permits(1);
        let (ends, both) = (held.clone(), async {
            held.reached.acquire_many(2).await.unwrap().forget();
        });
        tokio::select! {
            outcome = node.round_with(&transport, TTL, &ends) => panic!("{outcome:?}"),
            () = both => {}
        }
    }
    assert!(node.artifact.exists(), "it ended in the middle");
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, before);
    let begun = fleet.bootstrap("begun", &transport).await.expect("the pointer can be used");
    assert_eq!(begun.caught_up().await.entries(), node.entries());
    // Its lease ends by itself, and the next round removes what it left here.
    let outcome = loop {
        match node.try_round(&transport, TTL).await.unwrap() {
            RoundOutcome::NotElected => tokio::time::sleep(PAUSE).await,
            outcome => break outcome,
        }
    };
    assert!(matches!(outcome, RoundOutcome::Published(_)), "{outcome:?}");
    assert!(!node.artifact.exists());
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
    node.stop().await;
    begun.stop().await;
    connection.shutdown().await.unwrap();
}
