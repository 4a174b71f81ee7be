//! Folds that are restored from artifacts, because their bucket has evicted what they lack.

mod schedules;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use slipstream::transport::{ArtifactTransport, RoundOutcome};
use slipstream::{
    AppendLogSnapshot, Applier, BatchConfig, CursorExpiry, FjallSnapshot, FoldConfig, FoldHandle,
    KvEntry, KvUpdate, LogCursor, MemoryBucket, MemoryConnection, Restore, SnapshotReader,
    SnapshotStore, StoreConfig, WatchCursor,
};
use slipstream_object_store::ObjectStoreTransport;

use crate::failing::Failing;
use crate::fleet::{Fleet, KEY, Node, transport};
use crate::restored::{self, evicting, restoring};

const TTL: Duration = Duration::from_secs(60);

/// A bucket in memory that evicts when it is told to, and a place for its artifacts.
struct World {
    fleet: Fleet,
    log: MemoryBucket,
    store: Arc<dyn ObjectStore>,
    transport: ObjectStoreTransport,
}

impl World {
    async fn new() -> Self {
        let connection = MemoryConnection::new();
        let fleet = Fleet::with(&connection, KEY, &evicting(1 << 30)).await;
        let log = connection.bucket(KEY).unwrap();
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let transport = transport(&store);
        Self { fleet, log, store, transport }
    }

    /// And a node that has so many keys.
    async fn begun<S: SnapshotStore>(keys: u32) -> (Self, Node<S>) {
        let world = Self::new().await;
        let config = FoldConfig::new(world.fleet.bucket.watcher().unwrap());
        let first = world.fleet.start("first", config, ());
        world.fleet.write(0..keys, "old").await;
        first.caught_up().await;
        (world, first)
    }

    /// With `second`, a fold of a log that is gone.
    async fn recreated() -> Self {
        let world = Self::new().await;
        let second = world.restoring::<AppendLogSnapshot>("second", ());
        for _ in 0..5 {
            world.fleet.write(0..100, "of the other log").await;
        }
        second.caught_up().await;
        second.stop().await;
        world.log.recreate(None);
        world
    }

    fn restoring<S: SnapshotStore>(&self, name: &str, applier: impl Applier) -> Node<S> {
        self.fleet.start(name, restoring(&self.fleet, &self.transport), applier)
    }

    /// Somebody whose fold has everything publishes it.
    async fn publish<S: SnapshotStore>(&self, node: &Node<S>) {
        let published = node.caught_up().await.round(&self.transport, TTL).await.unwrap();
        assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
        node.next_round().await;
    }

    /// The log drops all that it has, but for the last so many messages.
    fn evict_all_but(&self, last: u64) {
        self.log.evict_below(self.log.log().last + 1 - last);
    }

    /// A new fold is told to end when it has fifty keys of its listing; what it has then.
    async fn interrupted_listing(&self, name: &str) -> Vec<KvEntry> {
        let (stops, stopped) = Stops::new(When::Applying(50));
        let config = FoldConfig::new(self.fleet.bucket.watcher().unwrap());
        let node = self.fleet.start::<AppendLogSnapshot>(name, one_by_one(config), stops);
        stopped.set(node.handle.clone());
        node.ended().await;
        let (cursor, store) = AppendLogSnapshot::load(&self.fleet.dir.path().join(name)).unwrap();
        assert!(LogCursor::decode(&cursor).unwrap().in_repair);
        store.reader().range("").unwrap()
    }

    async fn delete(&self, key: &str) {
        self.fleet.bucket.writer().unwrap().delete(key).await.unwrap();
    }
}

/// A batch for each key: a listing of more than 256 is not over while the first are applied.
fn one_by_one(config: FoldConfig) -> FoldConfig {
    let batch = BatchConfig { max: 1, channel_capacity: 1, ..BatchConfig::default() };
    FoldConfig { batch, ..config }
}

/// Nothing but folds and artifacts is where folds are.
fn assert_no_stage(fleet: &Fleet) {
    let names =
        std::fs::read_dir(fleet.dir.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(left.is_empty(), "{left:?}");
}

async fn an_expired_fold_becomes_what_the_artifact_is<S: SnapshotStore>() {
    let (world, first) = World::begun::<S>(300).await;
    let World { fleet, .. } = &world;
    let second = world.restoring::<S>("second", ());
    second.caught_up().await;
    assert_eq!(second.status().restores, 0, "the log has everything");
    second.stop().await;
    // Changed, made and deleted while it is away.
    fleet.write(100..200, "new").await;
    fleet.write(300..400, "new").await;
    for at in 0..50 {
        world.delete(&format!("k.{at:04}")).await;
    }
    world.publish(&first).await;
    fleet.write(390..410, "newer").await;
    world.evict_all_but(30);
    let seen = Seen::default();
    let second = world.restoring::<S>("second", seen.clone());
    second.caught_up().await;
    first.caught_up().await;
    let status = second.status();
    assert_eq!(second.entries(), first.entries());
    assert_eq!(second.entries().len(), 360, "the log has 20 of them");
    assert_eq!((status.restores, status.repairs, status.updates), (1, 1, 20), "{status:?}");
    let repair = status.last_repair.unwrap();
    assert!(matches!(repair.why, CursorExpiry::BelowFloor { .. }), "{repair:?}");
    assert!(repair.from_artifact && repair.is_over && repair.deleted == 50, "{repair:?}");
    assert!(!status.may_be_incomplete && !status.restoring, "{status:?}");
    // Only what differs was applied, then what follows.
    assert_eq!(seen.count(), 200 + 50 + 20);
    assert_no_stage(fleet);
    second.stop().await;
    // From now on it goes on by itself.
    fleet.write(0..5, "newest").await;
    let second = world.restoring::<S>("second", ());
    second.caught_up().await;
    assert_eq!((second.status().repairs, second.status().updates), (0, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_log_becomes_what_the_artifact_is() {
    an_expired_fold_becomes_what_the_artifact_is::<AppendLogSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_fold_on_fjall_becomes_what_the_artifact_is() {
    an_expired_fold_becomes_what_the_artifact_is::<FjallSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_of_another_backend_is_refused() {
    let (world, first) = World::begun::<FjallSnapshot>(100).await;
    world.publish(&first).await;
    world.evict_all_but(20);
    let other = world.restoring::<AppendLogSnapshot>("other", ());
    other.caught_up().await;
    let status = other.status();
    assert_eq!((status.restores, other.entries().len()), (0, 20), "{status:?}");
    assert!(status.may_be_incomplete, "{status:?}");
    assert!(status.not_restored.as_ref().is_some_and(|why| why.contains("fjall")), "{status:?}");
    assert_no_stage(&world.fleet);
}

/// Without an artifact, or with one that nobody can read on from, or that cannot be read.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_that_nobody_can_restore_is_listed_and_says_that_it_may_be_incomplete() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    let check = async |name: &str, why: &str| {
        let second = world.restoring::<AppendLogSnapshot>(name, ());
        second.caught_up().await;
        let status = second.status();
        assert_eq!((status.restores, second.entries().len()), (0, 10), "{name}: {status:?}");
        assert!(status.may_be_incomplete && status.synced, "{name}: {status:?}");
        assert!(status.not_restored.is_some_and(|text| text.contains(why)), "{name}");
        second.stop().await;
    };
    world.evict_all_but(10);
    check("no artifact", "there is no artifact of").await;
    world.publish(&first).await;
    fleet.write(100..120, "new").await;
    world.evict_all_but(10);
    check("an artifact that has expired", "cannot be read on from").await;
    let pointer = Path::from(format!("fleet/artifacts/{KEY}.manifest.json"));
    world.store.put(&pointer, "rubbish".into()).await.unwrap();
    check("a pointer that is none", "its manifest cannot be read").await;
    world.publish(&first).await;
    let payload = world.transport.pointer(KEY).await.unwrap().unwrap().manifest.content_id();
    let payload = Path::from(format!("fleet/artifacts/{KEY}.payloads/{payload}.tar"));
    let bytes = world.store.get(&payload).await.unwrap().bytes().await.unwrap();
    world.store.put(&payload, bytes.slice(..bytes.len() / 2).into()).await.unwrap();
    check("a payload that was cut off", "the artifact is invalid").await;
    assert_no_stage(fleet);
}

/// What it says outlives the process, and is over when there is an artifact at last.
#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_fold_is_completed_when_there_is_an_artifact() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    world.evict_all_but(10);
    let listed = world.restoring::<AppendLogSnapshot>("listed", ());
    listed.caught_up().await;
    // Its own artifact would be incomplete, too: nobody gains by that.
    let published = listed.round(&world.transport, TTL).await.unwrap();
    let RoundOutcome::Published(manifest) = published else { panic!("{published:?}") };
    assert!(manifest.log_cursor().unwrap().incomplete);
    listed.next_round().await;
    listed.stop().await;
    let listed = world.restoring::<AppendLogSnapshot>("listed", ());
    listed.caught_up().await;
    let status = listed.status();
    assert!(status.may_be_incomplete && status.restores == 0 && status.repairs == 0, "{status:?}");
    listed.stop().await;
    // A new node that begins with it says so.
    let third = world.restoring::<AppendLogSnapshot>("third", ());
    third.caught_up().await;
    assert!(third.status().may_be_incomplete && third.status().restores == 1);
    third.stop().await;
    fleet.write(200..201, "new").await;
    world.publish(&first).await;
    fleet.write(95..105, "newer than the artifact").await;
    let seen = Seen::default();
    let listed = world.restoring::<AppendLogSnapshot>("listed", seen.clone());
    listed.caught_up().await;
    first.caught_up().await;
    let status = listed.status();
    assert_eq!(listed.entries(), first.entries());
    assert!(!status.may_be_incomplete && status.restores == 1, "{status:?}");
    assert_eq!(status.last_repair.unwrap().why, CursorExpiry::Incomplete);
}

/// A fold that is ahead of the artifact, and was in its first listing: no value of it goes back, not even
/// until the log has been read.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_newer_in_the_fold_does_not_go_back() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    world.publish(&first).await;
    fleet.write(50..75, "new").await;
    fleet.write(100..800, "new").await;
    world.log.evict_below(91);
    let newest = world.interrupted_listing("second").await;
    assert!(newest.iter().any(|entry| entry.version.as_u64() > Some(100)), "{newest:?}");
    let seen = Seen::after(&newest);
    let second = world.restoring::<AppendLogSnapshot>("second", seen.clone());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    assert_eq!(second.status().restores, 1);
    assert_eq!(seen.went_back(), 0);
    assert!(seen.count() >= 800 - 50, "it lacked as many");
}

/// Versions of a log that is gone say nothing about those of the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_fold_of_another_log_becomes_what_the_artifact_is() {
    let world = World::recreated().await;
    let World { fleet, .. } = &world;
    let first = fleet.node("first");
    fleet.write(50..120, "new").await;
    world.publish(&first).await;
    fleet.write(0..2, "newer").await;
    world.evict_all_but(10);
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    let status = second.status();
    assert_eq!((status.restores, status.repairs), (1, 1));
    assert_eq!(status.last_repair.unwrap().why, CursorExpiry::Recreated);
    assert!(!status.may_be_incomplete);
}

/// It is told to end after the first batch: it begins again, and is complete only then.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_restore_begins_again() {
    let (world, first) = World::begun::<AppendLogSnapshot>(1000).await;
    let World { fleet, .. } = &world;
    world.publish(&first).await;
    fleet.write(0..1, "new").await;
    world.evict_all_but(10);
    let (stops, stopped) = Stops::new(When::Applying(1));
    let second = world.restoring::<AppendLogSnapshot>("second", stops);
    stopped.set(second.handle.clone());
    second.ended().await;
    let (cursor, store) = AppendLogSnapshot::load(&fleet.dir.path().join("second")).unwrap();
    let decoded = LogCursor::decode(&cursor).unwrap();
    assert!(decoded.in_repair, "nobody may resume from here");
    drop(store);
    assert_no_stage(fleet);
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    let why = second.status().last_repair.unwrap().why;
    assert_eq!((second.status().restores, why), (1, CursorExpiry::Interrupted));
}

/// Some batches fail, the last one too; readers of the store are not in its way.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_fails_while_it_is_restored_misses_nothing() {
    let (world, first) = World::begun::<AppendLogSnapshot>(1000).await;
    let World { fleet, .. } = &world;
    let second = world.restoring::<Failing>("second", ());
    second.caught_up().await;
    second.stop().await;
    for at in (0..1000).step_by(3) {
        world.delete(&format!("k.{at:04}")).await;
    }
    fleet.write(500..1500, "new").await;
    world.publish(&first).await;
    fleet.write(0..1, "newer").await;
    world.evict_all_but(10);
    let second = world.restoring::<Failing>("second", ());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.status().restores, 1);
    assert_eq!(second.entries(), first.entries());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_log_is_restored_on_nats_and_s3() {
    restored::on_nats_and_s3::<AppendLogSnapshot>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_fold_on_fjall_is_restored_on_nats_and_s3() {
    restored::on_nats_and_s3::<FjallSnapshot>().await;
}

/// Counts updates, and those that are older than what was there.
#[derive(Clone, Default)]
struct Seen {
    count: Arc<AtomicU64>,
    went_back: Arc<AtomicU64>,
    newest: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Seen {
    fn after(entries: &[KvEntry]) -> Self {
        let version = |entry: &KvEntry| entry.version.as_u64().unwrap();
        let newest = entries.iter().map(|entry| (entry.key.as_str().to_owned(), version(entry)));
        Self { newest: Arc::new(Mutex::new(newest.collect())), ..Self::default() }
    }

    fn count(&self) -> u64 {
        self.count.load(Ordering::SeqCst)
    }

    fn went_back(&self) -> u64 {
        self.went_back.load(Ordering::SeqCst)
    }
}

impl Applier for Seen {
    type Item = ();

    fn parse(&mut self, update: &KvUpdate) -> Option<()> {
        self.count.fetch_add(1, Ordering::SeqCst);
        let version = update.version().as_u64().unwrap_or(0);
        let mut newest = self.newest.lock().unwrap();
        let before = newest.insert(update.key().as_str().to_owned(), version);
        if before.is_some_and(|before| before > version) {
            self.went_back.fetch_add(1, Ordering::SeqCst);
        }
        None
    }

    fn apply(&mut self, _: Vec<()>) {}
}

/// Tells the fold to end.
struct Stops {
    handle: Arc<Handle>,
    when: When,
    batches: u32,
}

#[derive(Clone, Copy, PartialEq)]
enum When {
    /// With this batch.
    Applying(u32),
    /// When a cursor is stored that names something.
    Applied,
}

#[derive(Default)]
struct Handle(Mutex<Option<FoldHandle>>);

impl Handle {
    fn set(&self, handle: FoldHandle) {
        *self.0.lock().unwrap() = Some(handle);
    }
}

impl Stops {
    fn new(when: When) -> (Self, Arc<Handle>) {
        let handle = Arc::<Handle>::default();
        (Self { handle: Arc::clone(&handle), when, batches: 0 }, handle)
    }

    fn stop(&self, when: When) {
        if when != self.when {
            return;
        }
        loop {
            if let Some(handle) = &*self.handle.0.lock().unwrap() {
                return handle.shutdown();
            }
            std::thread::yield_now();
        }
    }
}

impl Applier for Stops {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        Some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        self.batches += 1;
        self.stop(When::Applying(self.batches));
    }

    fn on_applied(&mut self, _: &WatchCursor, _: u64) {
        self.stop(When::Applied);
    }
}
