//! Rounds that meet, and logs that lie.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use slipstream::artifact::{ArtifactError, ArtifactInvalid, ExportManifest, TakeFiles};
use slipstream::transport::{
    ArtifactTransport, Pointer, PublishOutcome, RoundError, RoundOutcome, TransportError,
    import_remote,
};
use slipstream::{ExportError, KvError, KvWatcher, LogCursor, LogInfo, Watch, WatchScope};
use slipstream_object_store::ObjectStoreTransport;
use tokio::sync::Semaphore;

use crate::fleet::{Fleet, KEY, Node, transport};
use crate::payloads::tar_of;

const TTL: Duration = Duration::from_secs(60);

/// Holds up whoever asks about an artifact's cursor.
#[derive(Clone)]
pub(crate) struct Held {
    watcher: Arc<dyn KvWatcher>,
    pub(crate) reached: Arc<Semaphore>,
    pub(crate) go_on: Arc<Semaphore>,
}

impl Held {
    pub(crate) fn new(fleet: &Fleet) -> Self {
        let none = || Arc::new(Semaphore::new(0));
        Self { watcher: fleet.bucket.watcher().unwrap(), reached: none(), go_on: none() }
    }
}

#[async_trait]
impl KvWatcher for Held {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        self.reached.add_permits(1);
        self.go_on.acquire().await.unwrap().forget();
        self.watcher.watch_from(scope, from).await
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.watcher.log().await
    }
}

fn in_memory() -> Arc<dyn ObjectStore> {
    Arc::new(InMemory::new())
}

/// It has an artifact that is older than the newest when it uploads it.
pub(crate) async fn slow_exporter(fleet: &Fleet, transport: &ObjectStoreTransport) {
    let watcher = fleet.bucket.watcher().unwrap();
    let node = fleet.node("node");
    fleet.write(0..10, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    let slow = fleet.dir.path().join("slow");
    std::fs::rename(&node.artifact, &slow).unwrap();
    fleet.write(0..10, "new").await;
    let published = node.caught_up().await.round(transport, TTL).await.unwrap();
    let RoundOutcome::Published(newer) = published else { panic!("{published:?}") };
    let (_, outcome) = transport.upload(KEY, &slow, &*watcher).await.unwrap();
    assert_eq!(outcome, PublishOutcome::SupersededByNewer);
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, newer);
    // Its payload is an orphan, and goes with the next prune.
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
    node.next_round().await;
    node.stop().await;
}

#[tokio::test]
async fn a_slow_exporter_is_superseded() {
    let (fleet, _) = Fleet::in_memory().await;
    slow_exporter(&fleet, &transport(&in_memory())).await;
}

/// Whose every download begins when the node has published a newer artifact, and nobody waits any longer
/// for those who read the one before.
struct Overtaken<'a> {
    transport: ObjectStoreTransport,
    fleet: &'a Fleet,
    node: &'a Node,
    times: AtomicU32,
}

#[async_trait]
impl ArtifactTransport for Overtaken<'_> {
    async fn upload(
        &self,
        key: &str,
        artifact: &FilePath,
        watcher: &dyn KvWatcher,
    ) -> Result<(ExportManifest, PublishOutcome), TransportError> {
        self.transport.upload(key, artifact, watcher).await
    }

    async fn pointer(&self, key: &str) -> Result<Option<Pointer>, TransportError> {
        self.transport.pointer(key).await
    }

    async fn download(
        &self,
        key: &str,
        manifest: &ExportManifest,
        into: Box<dyn TakeFiles>,
    ) -> Result<(), TransportError> {
        if self.times.load(Ordering::SeqCst) > 0 {
            self.times.fetch_sub(1, Ordering::SeqCst);
            self.fleet.write(0..5, "newer").await;
            let published = self.node.caught_up().await.round(&self.transport, TTL).await.unwrap();
            assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
            self.node.next_round().await;
            assert_eq!(self.transport.prune(key, Duration::ZERO).await.unwrap(), 1);
        }
        self.transport.download(key, manifest, into).await
    }

    async fn prune(&self, key: &str, grace: Duration) -> Result<u64, TransportError> {
        self.transport.prune(key, grace).await
    }
}

#[tokio::test]
async fn an_import_whose_artifact_is_deleted_takes_the_next_one_and_gives_up_in_the_end() {
    let (fleet, _) = Fleet::in_memory().await;
    let transport = transport(&in_memory());
    let node = fleet.node("node");
    fleet.write(0..10, "old").await;
    node.caught_up().await.round(&transport, TTL).await.unwrap();
    node.next_round().await;
    let overtaken = |times| {
        let (transport, times) = (transport.clone(), AtomicU32::new(times));
        Overtaken { transport, fleet: &fleet, node: &node, times }
    };
    let begun = fleet.bootstrap("begun", &overtaken(2)).await.expect("the third is there");
    assert_eq!(begun.caught_up().await.entries(), node.entries());
    let (watcher, path) = (fleet.bucket.watcher().unwrap(), fleet.dir.path().join("not"));
    let (overtaken, scope) = (overtaken(3), WatchScope::All);
    let imported =
        import_remote::<slipstream::AppendLogSnapshot>(&overtaken, KEY, &*watcher, &path, &scope);
    let failed = imported.await.unwrap_err();
    assert!(matches!(failed, TransportError::Store { .. }), "{failed}");
    assert!(!path.exists());
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

/// In a bucket where artifacts are of no use before they are there, they are not made all the time.
#[tokio::test]
async fn a_round_that_was_of_no_use_keeps_its_lease() {
    let ((fleet, bucket), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let node = fleet.node("node");
    fleet.write(0..20, "old").await;
    node.caught_up().await;
    let held = Held::new(&fleet);
    let dies = async {
        held.reached.acquire().await.unwrap().forget();
        bucket.recreate(None);
        held.go_on.add_permits(1);
    };
    let (outcome, ()) = tokio::join!(node.round_with(&transport, TTL, &held), dies);
    let outcome = outcome.unwrap();
    assert!(matches!(outcome, RoundOutcome::GivenUp(PublishOutcome::OfNoUse)), "{outcome:?}");
    let next = node.round(&transport, TTL).await.unwrap();
    assert!(matches!(next, RoundOutcome::NotElected), "{next:?}");
}

/// Two fleets that were given one key by mistake.
#[tokio::test]
async fn artifacts_of_another_bucket_are_neither_replaced_nor_used() {
    let ((ours, _), (theirs, _)) = (Fleet::in_memory().await, Fleet::named("theirs").await);
    let (store, path) = (in_memory(), theirs.dir.path().join("imported"));
    let transport = transport(&store);
    let node = ours.node("node");
    ours.write(0..20, "ours").await;
    node.caught_up().await;
    assert!(matches!(node.round(&transport, TTL).await.unwrap(), RoundOutcome::Published(_)));
    let published = transport.pointer(KEY).await.unwrap().unwrap().manifest;
    assert_eq!(published.bucket.as_deref(), Some(KEY));
    let other = theirs.node("other");
    theirs.write(0..30, "theirs").await;
    let refused = other.caught_up().await.round(&transport, TTL).await.unwrap_err();
    let RoundError::Transport(refused) = refused else { panic!("{refused}") };
    let is_other = |why: &ArtifactInvalid| matches!(why, ArtifactInvalid::Bucket { .. });
    assert!(is_refused(&refused, is_other), "{refused}");
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, published);
    let watcher = theirs.bucket.watcher().unwrap();
    let scope = WatchScope::All;
    let imported =
        import_remote::<slipstream::AppendLogSnapshot>(&transport, KEY, &*watcher, &path, &scope);
    assert!(is_refused(&imported.await.unwrap_err(), is_other) && !path.exists());
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

fn is_refused(error: &TransportError, why: impl Fn(&ArtifactInvalid) -> bool) -> bool {
    matches!(error, TransportError::Artifact(ArtifactError::Invalid(reason)) if why(reason))
}

fn pointer_path() -> Path {
    Path::from(format!("fleet/artifacts/{KEY}.manifest.json"))
}

/// During a rolling upgrade, nodes of the version before leave alone what those of the next one wrote.
#[tokio::test]
async fn a_pointer_or_payload_of_a_newer_program_is_refused_and_stays() {
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let watcher = fleet.bucket.watcher().unwrap();
    let node = fleet.node("node");
    fleet.write(0..20, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    let newer = br#"{"schema":2,"of":"another time"}"#.as_slice();
    let is_newer =
        |error| is_refused(&error, |why| *why == ArtifactInvalid::NewerSchema { found: 2 });
    store.put(&pointer_path(), newer.into()).await.unwrap();
    assert!(is_newer(transport.upload(KEY, &node.artifact, &*watcher).await.unwrap_err()));
    assert!(is_newer(transport.pointer(KEY).await.unwrap_err()));
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 0);
    let there = store.get(&pointer_path()).await.unwrap().bytes().await.unwrap();
    assert_eq!(there, newer);
    // The pointer is lost: the payload of the newer program still says that there was one.
    store.delete(&pointer_path()).await.unwrap();
    let payload = Path::from(format!("fleet/artifacts/{KEY}.payloads/0123456789abcdef.tar"));
    let entry = ("MANIFEST.json", tar::EntryType::Regular, newer.len() as u64, newer);
    let tar = tar_of(&[entry]);
    store.put(&payload, tar.clone().into()).await.unwrap();
    assert!(is_newer(transport.upload(KEY, &node.artifact, &*watcher).await.unwrap_err()));
    assert!(transport.pointer(KEY).await.unwrap().is_none());
    // An older pointer deletes nothing of it.
    store.delete(&payload).await.unwrap();
    transport.upload(KEY, &node.artifact, &*watcher).await.unwrap();
    store.put(&payload, tar.into()).await.unwrap();
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 0);
}

/// The pointer is lost while a slow one is between its upload and its swap, and what it uploaded was
/// deleted before that: the one that made it obsolete is among the payloads.
#[tokio::test]
async fn a_lost_pointer_is_not_replaced_by_what_was_deleted() {
    let ((fleet, _), store) = (Fleet::in_memory().await, in_memory());
    let transport = transport(&store);
    let held = Held::new(&fleet);
    let node = fleet.node("node");
    fleet.write(0..10, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    let slow = fleet.dir.path().join("slow");
    std::fs::rename(&node.artifact, &slow).unwrap();
    // There is no pointer when it begins, and none when it goes on.
    let uploading = {
        let (transport, held) = (transport.clone(), held.clone());
        tokio::spawn(async move { transport.upload(KEY, &slow, &held).await })
    };
    held.reached.acquire().await.unwrap().forget();
    fleet.write(0..10, "new").await;
    let published = node.caught_up().await.round(&transport, TTL).await.unwrap();
    assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
    assert_eq!(transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
    store.delete(&pointer_path()).await.unwrap();
    held.go_on.add_permits(1);
    let (_, outcome) = uploading.await.unwrap().unwrap();
    assert_eq!(outcome, PublishOutcome::SupersededByNewer);
    assert!(transport.pointer(KEY).await.unwrap().is_none());
    // The next round is above all that there was.
    node.next_round().await;
    let published = node.round(&transport, TTL).await.unwrap();
    let RoundOutcome::Published(manifest) = published else { panic!("{published:?}") };
    assert_eq!(manifest.epoch, 2);
    assert!(fleet.bootstrap("other", &transport).await.is_some());
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
    for corrupt in ["", "{}", "no manifest"] {
        store.put(&pointer_path(), corrupt.into()).await.unwrap();
        let path = fleet.dir.path().join("imported");
        let refused = import_remote::<slipstream::AppendLogSnapshot>(
            &transport,
            KEY,
            &*watcher,
            &path,
            &WatchScope::All,
        );
        let refused = refused.await.err().unwrap();
        assert!(
            is_refused(&refused, |why| matches!(why, ArtifactInvalid::Manifest(_))),
            "{refused}"
        );
        assert!(!path.exists());
        node.next_round().await;
        let published = node.round(&transport, TTL).await.unwrap();
        assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
    }
    // Each time above all that was there.
    assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest.epoch, 3);
}

/// As elsewhere in this workspace: how much of it a test does.
pub(crate) fn scale() -> u64 {
    std::env::var("GOSSIP_SOAK_SCALE").map_or(1, |scale| scale.parse().expect("a whole number"))
}
