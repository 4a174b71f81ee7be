//! Rounds that meet, and logs that lie.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use slipstream::artifact::{ArtifactError, ArtifactInvalid};
use slipstream::transport::{
    ArtifactTransport, PublishOutcome, RoundError, RoundOutcome, TransportError, import_remote,
};
use slipstream::{ExportError, WatchScope};

use crate::fleet::{Fleet, KEY, transport};

const TTL: Duration = Duration::from_secs(60);

fn in_memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

#[tokio::test]
async fn a_slow_exporter_is_superseded() {
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let watcher = fleet.bucket.watcher().unwrap();
    let node = fleet.node("node");
    fleet.write(0..10, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    let slow = fleet.dir.path().join("slow");
    std::fs::rename(&node.artifact, &slow).unwrap();
    fleet.write(0..10, "new").await;
    let published = node.caught_up().await.round(&transport, TTL).await.unwrap();
    let RoundOutcome::Published(newer) = published else { panic!("{published:?}") };
    let (_, outcome) = transport.upload(KEY, &slow, &*watcher).await.unwrap();
    assert_eq!(outcome, PublishOutcome::SupersededByNewer);
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, newer);
    // Its payload is an orphan, and goes with the next prune.
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
}

/// Made anew, or rolled back below what was published: the next round publishes, though it is of a
/// lower revision, and until then nobody begins with what is dead.
#[tokio::test]
async fn an_artifact_of_a_log_that_is_gone_is_used_by_nobody_and_replaced() {
    for made_anew in [true, false] {
        let ((fleet, bucket), store) = (Fleet::in_memory().await, in_memory());
        let transport = transport(&store);
        let node = fleet.node("node");
        fleet.write(0..20, "old").await;
        node.caught_up().await;
        assert!(matches!(node.round(&transport, TTL).await.unwrap(), RoundOutcome::Published(_)));
        node.next_round().await;
        match made_anew {
            true => bucket.recreate(None),
            false => bucket.lose_after(5),
        }
        bucket.cut_watches();
        fleet.write(5..8, "other").await;
        node.caught_up().await;
        assert!(fleet.bootstrap("none", &transport).await.is_none(), "made anew: {made_anew}");
        let published = node.round(&transport, TTL).await.unwrap();
        let RoundOutcome::Published(manifest) = published else { panic!("{published:?}") };
        assert_eq!(manifest.epoch, 1);
        let bootstrapped = fleet.bootstrap("other", &transport).await.unwrap();
        bootstrapped.caught_up().await;
        assert_eq!(bootstrapped.entries(), node.entries());
        assert_eq!(bootstrapped.status().repairs, 0);
        // The dead one is below it now.
        assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
    }
}

/// The log dies while the artifact is on its way.
#[tokio::test]
async fn an_artifact_that_nobody_could_read_on_from_is_not_published() {
    let ((fleet, bucket), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let watcher = fleet.bucket.watcher().unwrap();
    let node = fleet.node("node");
    fleet.write(0..20, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    bucket.recreate(None);
    let (_, outcome) = transport.upload(KEY, &node.artifact, &*watcher).await.unwrap();
    assert_eq!(outcome, PublishOutcome::OfNoUse);
    assert!(transport.pointer(KEY).await.unwrap().is_none());
}

#[tokio::test]
async fn a_round_removes_the_artifact_of_a_round_before_and_nothing_else() {
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let node = fleet.node("node");
    fleet.write(0..10, "old").await;
    // Killed before it was uploaded.
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    assert!(matches!(node.round(&transport, TTL).await.unwrap(), RoundOutcome::Published(_)));
    node.next_round().await;
    std::fs::create_dir(&node.artifact).unwrap();
    let theirs = node.artifact.join("theirs");
    std::fs::write(&theirs, "theirs").unwrap();
    let exists = node.try_round(&transport, TTL).await.unwrap_err();
    assert!(matches!(exists, RoundError::Export(ExportError::Artifact(ArtifactError::Exists))));
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
}

#[tokio::test]
async fn a_corrupt_pointer_is_refused_by_readers_and_replaced_by_a_round() {
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let watcher = fleet.bucket.watcher().unwrap();
    let node = fleet.node("node");
    fleet.write(0..20, "old").await;
    node.caught_up().await;
    assert!(matches!(node.round(&transport, TTL).await.unwrap(), RoundOutcome::Published(_)));
    let pointer = Path::from(format!("fleet/artifacts/{KEY}.manifest.json"));
    for corrupt in ["", "{}", "no manifest"] {
        store.put(&pointer, corrupt.into()).await.unwrap();
        let path = fleet.dir.path().join("imported");
        let refused = import_remote::<slipstream::AppendLogSnapshot>(
            &transport,
            KEY,
            &*watcher,
            &path,
            &WatchScope::All,
        );
        let refused = refused.await.err().unwrap();
        let invalid = ArtifactError::Invalid(ArtifactInvalid::Manifest("the pointer is none"));
        assert_eq!(refused.to_string(), invalid.to_string());
        assert!(matches!(refused, TransportError::Artifact(_)) && !path.exists());
        node.next_round().await;
        let published = node.round(&transport, TTL).await.unwrap();
        assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
    }
    // Each time above all that was there.
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest.epoch, 3);
}

/// Eight nodes race; the pointer never goes back, and whoever reads always gets a fold.
#[tokio::test(flavor = "multi_thread")]
async fn nodes_race_rounds_and_readers_always_find_a_whole_artifact() {
    let generations = 3 * scale();
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let (fleet, transport) = (Arc::new(fleet), transport(&store));
    fleet.write(0..50, "old").await;
    let stop = Arc::new(AtomicBool::new(false));
    let mut racing = Vec::new();
    for at in 0..8 {
        let (node, stop) = (fleet.node(&format!("node-{at}")), Arc::clone(&stop));
        let transport = transport.clone();
        racing.push(tokio::spawn(async move {
            let mut published = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                // No grace at all for what is not the newest, and the shortest lease.
                let outcome = node.round(&transport, Duration::from_secs(1)).await.unwrap();
                if let RoundOutcome::Published(manifest) = outcome {
                    published.push(manifest.rank().unwrap());
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            published
        }));
    }
    let mut ranks = Vec::new();
    let mut read = 0u64;
    while ranks.len() < generations as usize {
        fleet.write(0..5, &format!("new {read}")).await;
        let Some(pointer) = transport.pointer(KEY).await.unwrap() else { continue };
        let rank = pointer.manifest.rank().unwrap();
        assert!(ranks.last().is_none_or(|last| *last <= rank), "it went back to {rank:?}");
        if ranks.last() != Some(&rank) {
            ranks.push(rank);
        }
        let node = fleet.bootstrap(&format!("reader-{read}"), &transport).await.unwrap();
        node.stop().await;
        read += 1;
    }
    stop.store(true, Ordering::SeqCst);
    let mut published = Vec::new();
    for node in racing {
        published.extend(node.await.unwrap());
    }
    published.sort_unstable();
    let count = published.len();
    published.dedup();
    assert_eq!(published.len(), count, "each generation has one publisher");
    assert!(ranks.iter().all(|rank| published.contains(rank)));
}

/// As elsewhere in this workspace: how much of it a test does.
fn scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().expect("a whole number"))
}
