//! What happens while a fold is restored, or before: logs that go on, are lost or made again, artifacts that
//! go or lack something.

use std::sync::atomic::{AtomicBool, AtomicU32};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use slipstream::artifact::{ExportManifest, TakeFiles};
use slipstream::transport::{Pointer, PublishOutcome, TransportError};
use slipstream::{KvWatcher, KvWriter};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_artifact_does_not_replace_a_complete_one() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    world.publish(&first).await;
    fleet.write(100..110, "new").await;
    world.evict_all_but(15);
    // Of a node that was not given the store.
    let listed = fleet.node("listed");
    let refused = listed.caught_up().await.round(&world.transport, TTL).await.unwrap();
    let is_refused = matches!(refused, RoundOutcome::GivenUp(PublishOutcome::LessComplete));
    assert!(is_refused, "{refused:?}");
    let pointer = world.transport.pointer(KEY).await.unwrap().unwrap().manifest;
    assert_eq!(pointer.cursor.revision(), Some(100));
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    assert_eq!(second.caught_up().await.entries().len(), 110);
    assert!(!second.status().may_be_incomplete);
    // When nobody can begin with that one any more, it is better than nothing.
    fleet.write(110..120, "new").await;
    world.evict_all_but(5);
    let published = listed.caught_up().await.round(&world.transport, TTL).await.unwrap();
    assert!(matches!(published, RoundOutcome::Published(_)), "{published:?}");
}

/// The exporter began when the limits had been lifted: it lacks what they evicted, and does not know.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_only_this_fold_has_stay() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    world.evict_all_but(10);
    first.stop().await;
    world.log.configure(StoreConfig { max_bytes: None, ..StoreConfig::default() });
    let unaware = fleet.node("unaware");
    fleet.write(100..120, "new").await;
    // The floor rises, though nothing is evicted.
    fleet.write(90..120, "newer").await;
    world.publish(&unaware).await;
    assert_eq!(unaware.entries().len(), 30);
    let first = world.restoring::<AppendLogSnapshot>("first", ());
    first.caught_up().await;
    let status = first.status();
    assert_eq!(first.entries().len(), 120, "{status:?}");
    assert!(status.may_be_incomplete && status.restores == 1, "{status:?}");
}

/// An incomplete fold has applied a delete that the artifact has not.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_the_fold_knows_is_not_undone() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    world.evict_all_but(10);
    let listed = world.restoring::<AppendLogSnapshot>("listed", ());
    listed.caught_up().await;
    world.publish(&first).await;
    fleet.write(100..150, "new").await;
    world.delete("k.0095").await;
    listed.caught_up().await.handle.synced().await.unwrap();
    let before = listed.entries();
    listed.stop().await;
    let listed = world.restoring::<AppendLogSnapshot>("listed", ());
    listed.caught_up().await;
    let status = listed.status();
    assert_eq!(listed.entries(), before);
    assert_eq!((status.restores, status.repairs), (0, 0), "{status:?}");
    assert!(status.not_restored.is_some_and(|why| why.contains("older than the fold")));
    listed.stop().await;
    // One that is as new completes it.
    world.publish(&first).await;
    let listed = world.restoring::<AppendLogSnapshot>("listed", ());
    listed.caught_up().await;
    assert_eq!(listed.entries(), first.entries());
    assert_eq!((listed.status().restores, listed.status().not_restored), (1, None));
}

/// The log evicts what follows the artifact while that is on its way.
#[tokio::test(flavor = "multi_thread")]
async fn an_artifact_that_expires_on_its_way_is_not_used() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let World { fleet, .. } = &world;
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await.handle.synced().await.unwrap();
    second.stop().await;
    fleet.write(100..150, "new").await;
    world.delete("k.0000").await;
    world.publish(&first).await;
    world.evict_all_but(1);
    let (log, writer) = (world.log.clone(), fleet.bucket.writer().unwrap());
    let hooked = Hooked::new(&world, move |event| {
        let (log, writer) = (log.clone(), Arc::clone(&writer));
        Box::pin(async move {
            if let Event::Download(_) = event {
                go_past(&log, &*writer).await;
            }
        })
    });
    let seen = Seen::default();
    let config = hooked.config(fleet);
    let second = fleet.start::<AppendLogSnapshot>("second", config, seen.clone());
    second.caught_up().await;
    let status = second.status();
    assert_eq!((status.restores, status.repairs, hooked.downloads()), (0, 1, 1), "{status:?}");
    assert!(status.may_be_incomplete, "{status:?}");
    assert_eq!(seen.count(), 1, "what the log has left");
}

/// A fold that was listed after its bucket was made again has kept entries of the old log, whose revisions
/// are higher than those of the new one.
#[tokio::test(flavor = "multi_thread")]
async fn entries_that_a_listing_kept_of_another_log_are_replaced() {
    let world = World::recreated().await;
    let World { fleet, .. } = &world;
    let first = fleet.node("first");
    fleet.write(0..100, "new").await;
    first.caught_up().await;
    world.evict_all_but(10);
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    let status = second.status();
    assert!(status.may_be_incomplete && second.entries().len() == 100, "{status:?}");
    second.stop().await;
    // Kept are 401..=490: some of them below the artifact, some behind it, all below the head.
    fleet.write(100..450, "new").await;
    world.publish(&first).await;
    fleet.write(450..600, "new").await;
    world.log.evict_below(440);
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    assert_eq!(second.status().restores, 1);
}

/// An artifact at revision 100, and `second`, which was interrupted in its first listing beyond that.
async fn ahead_of_the_artifact() -> World {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    world.publish(&first).await;
    first.stop().await;
    world.fleet.write(100..800, "lost").await;
    world.log.evict_below(91);
    world.interrupted_listing("second").await;
    world
}

/// The fold has kept what is newer than the artifact; then the log loses that.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_fold_remembers_how_far_the_log_went() {
    let world = ahead_of_the_artifact().await;
    let (stops, stopped) = Stops::new(When::Applied);
    let second = world.restoring::<AppendLogSnapshot>("second", stops);
    stopped.set(second.handle.clone());
    second.ended().await;
    world.log.lose_after(110);
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    let status = second.status();
    assert_eq!(second.entries().len(), 110, "{status:?}");
    let why = status.last_repair.unwrap().why;
    assert!(matches!(why, CursorExpiry::AheadOfLog { last: 110, .. }), "{why:?}");
}

/// The same, of one that was interrupted: the log has lost what it kept, and has others in its place.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_restore_remembers_how_far_the_log_went() {
    let world = ahead_of_the_artifact().await;
    world.log.lose_after(110);
    world.fleet.write(1000..1030, "new").await;
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    assert_eq!(second.status().restores, 1);
    let lost = second.entries().into_iter().filter(|entry| entry.value == "lost");
    assert_eq!(lost.count(), 10, "those that the log still has");
}

/// A limit: a fold that was interrupted in a listing has no witnesses, so that it cannot tell a log that was
/// rolled back and has gone on past where it was from one that has only gone on.
#[tokio::test(flavor = "multi_thread")]
async fn what_an_interrupted_listing_has_of_a_log_that_was_lost_and_outgrown_may_stay() {
    let world = ahead_of_the_artifact().await;
    let end = world.log.log().last;
    world.log.lose_after(110);
    world.fleet.write(1000..1000 + end as u32, "new").await;
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    let status = second.status();
    assert_eq!((status.restores, status.may_be_incomplete), (1, false), "{status:?}");
    let lost = second.entries().into_iter().filter(|entry| entry.value == "lost");
    assert!(lost.count() > 10, "the log has ten");
}

/// A limit: a fold in repair does not know which deletes it has applied. It says that it may lack something,
/// if the log forgets one of them before it is read again.
#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_a_fold_in_repair_had_applied_is_undone_until_it_is_read_again() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    world.publish(&first).await;
    world.delete("k.0099").await;
    world.fleet.write(100..800, "new").await;
    world.log.evict_below(91);
    let listed = world.interrupted_listing("second").await;
    assert!(listed.iter().all(|entry| entry.key.as_str() != "k.0099"), "it is deleted");
    let (stops, stopped) = Stops::new(When::Applied);
    let second = world.restoring::<AppendLogSnapshot>("second", stops);
    stopped.set(second.handle.clone());
    second.ended().await;
    let keys = |node: &Node| -> Vec<String> {
        node.entries().iter().map(|entry| entry.key.as_str().to_owned()).collect()
    };
    // Back before the log has forgotten: the delete comes again.
    let path = |name: &str| world.fleet.dir.path().join(name);
    std::fs::copy(path("second"), path("late")).unwrap();
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    assert_eq!(keys(second.caught_up().await), keys(first.caught_up().await));
    second.stop().await;
    world.evict_all_but(10);
    let late = world.restoring::<AppendLogSnapshot>("late", ());
    assert!(keys(late.caught_up().await).contains(&"k.0099".to_owned()));
    assert!(late.status().may_be_incomplete, "{:?}", late.status());
}

/// Each time that the fold is what the artifact is, the log has gone past that.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_outruns_restores_is_listed() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let world = Arc::new(world);
    world.publish(&first).await;
    world.evict_all_but(1);
    let (of, first) = (Arc::clone(&world), Arc::new(first));
    let hooked = Hooked::new(&world, move |event| {
        let (world, first) = (Arc::clone(&of), Arc::clone(&first));
        // There is a newer one each time.
        Box::pin(async move {
            if let Event::Asked(times) = event {
                world.fleet.write(1000 + times..1001 + times, "newer").await;
                world.publish(&first).await;
            }
        })
    });
    let outruns = Outruns { log: world.log.clone(), writer: world.fleet.bucket.writer().unwrap() };
    let config = hooked.config(&world.fleet);
    let second = world.fleet.start::<AppendLogSnapshot>("second", config, outruns);
    let synced = tokio::time::timeout(crate::fleet::PATIENCE, second.handle.synced()).await;
    synced.expect("it comes to an end").unwrap();
    let status = second.status();
    assert_eq!((status.restores, hooked.downloads()), (2, 2), "{status:?}");
    assert!(status.may_be_incomplete, "{status:?}");
    assert!(status.not_restored.is_some_and(|why| why.contains("went past")));
}

/// Writes something and evicts what is before it, with each restore that it sees.
struct Outruns {
    log: MemoryBucket,
    writer: Arc<dyn KvWriter>,
}

impl Applier for Outruns {
    type Item = bool;

    fn parse(&mut self, update: &KvUpdate) -> Option<bool> {
        // What it wrote itself comes by a listing.
        Some(update.key().as_str() != "outrun")
    }

    fn apply(&mut self, restored: Vec<bool>) {
        if restored.contains(&true) && self.log.log().last < 1000 {
            let writing = go_past(&self.log, &*self.writer);
            tokio::runtime::Handle::current().block_on(writing);
        }
    }
}

/// Somebody writes, and the log has nothing else any more.
async fn go_past(log: &MemoryBucket, writer: &dyn KvWriter) {
    for _ in 0..2 {
        writer.put("outrun", "new".into()).await.unwrap();
    }
    log.evict_below(log.log().last);
}

/// It was replaced and deleted when the fold came to download it.
#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_is_gone_is_not_the_end_if_there_is_a_newer_one() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    let world = Arc::new(world);
    world.publish(&first).await;
    world.evict_all_but(20);
    let (of, node) = (Arc::clone(&world), Arc::new(first));
    let first = Arc::clone(&node);
    let hooked = Hooked::new(&world, move |event| {
        let (world, first) = (Arc::clone(&of), Arc::clone(&node));
        Box::pin(async move {
            if event == Event::Download(0) {
                world.fleet.write(100..101, "new").await;
                world.publish(&first).await;
                assert_eq!(world.transport.prune(KEY, Duration::ZERO).await.unwrap(), 1);
            }
        })
    });
    let config = hooked.config(&world.fleet);
    let second = world.fleet.start::<AppendLogSnapshot>("second", config, ());
    second.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    let status = second.status();
    assert_eq!((status.restores, hooked.downloads()), (1, 2), "{status:?}");
    assert!(!status.may_be_incomplete, "{status:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payload_that_cannot_be_read_is_downloaded_once() {
    let (world, first) = World::begun::<AppendLogSnapshot>(100).await;
    world.publish(&first).await;
    let payload = world.transport.pointer(KEY).await.unwrap().unwrap().manifest.content_id();
    let payload = Path::from(format!("fleet/artifacts/{KEY}.payloads/{payload}.tar"));
    let bytes = world.store.get(&payload).await.unwrap().bytes().await.unwrap();
    world.store.put(&payload, bytes.slice(..bytes.len() / 2).into()).await.unwrap();
    world.evict_all_but(20);
    let hooked = Hooked::new(&world, |_| Box::pin(async {}));
    let second = world.fleet.start::<AppendLogSnapshot>("second", hooked.config(&world.fleet), ());
    second.caught_up().await;
    for at in 200..203 {
        let asked = hooked.asked();
        world.log.cut_watches();
        while hooked.asked() == asked {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        world.fleet.write(at..at + 1, "new").await;
        second.caught_up().await;
    }
    assert_eq!((hooked.downloads(), second.status().restores), (1, 0));
}

/// A listing that is interrupted, then a restore: the next repair is one of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_after_a_restore_is_counted_and_waited_for() {
    let (world, first) = World::begun::<AppendLogSnapshot>(600).await;
    let World { fleet, .. } = &world;
    world.publish(&first).await;
    world.evict_all_but(500);
    let hooked = Hooked::new(&world, |_| Box::pin(async {}));
    hooked.hidden.store(true, Ordering::SeqCst);
    let cuts = Cuts { log: world.log.clone(), hidden: Arc::clone(&hooked.hidden) };
    let config = one_by_one(hooked.config(fleet));
    let second = fleet.start::<AppendLogSnapshot>("second", config, cuts);
    second.caught_up().await;
    let status = second.status();
    assert_eq!((status.restores, status.repairs), (1, 1), "{status:?}");
    let repair = status.last_repair.unwrap();
    assert!(repair.from_artifact && repair.why == CursorExpiry::Interrupted, "{repair:?}");
    let mut changes = second.handle.status();
    world.log.recreate(None);
    let begun = changes.wait_for(|status| status.repairs == 2);
    tokio::time::timeout(crate::fleet::PATIENCE, begun).await.expect("it is counted").unwrap();
    fleet.write(0..5, "new").await;
    second.caught_up().await.handle.synced().await.unwrap();
    let status = second.status();
    let repair = status.last_repair.unwrap();
    assert!(repair.is_over && !repair.from_artifact, "{repair:?}");
    assert_eq!((repair.why, second.entries().len()), (CursorExpiry::Recreated, 5));
}

/// With its first batch, the connection is lost, and the artifact is there.
struct Cuts {
    log: MemoryBucket,
    hidden: Arc<AtomicBool>,
}

impl Applier for Cuts {
    type Item = ();

    fn parse(&mut self, _: &KvUpdate) -> Option<()> {
        Some(())
    }

    fn apply(&mut self, _: Vec<()>) {
        if self.hidden.swap(false, Ordering::SeqCst) {
            self.log.cut_watches();
        }
    }
}

/// In a hot bucket, where the cursor by itself proves nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_restored_fold_that_is_stopped_at_once_goes_on() {
    let (world, first) = World::begun::<AppendLogSnapshot>(300).await;
    let World { fleet, .. } = &world;
    world.publish(&first).await;
    fleet.write(0..1, "new").await;
    world.evict_all_but(50);
    let (stops, stopped) = Stops::new(When::Applied);
    let second = world.restoring::<AppendLogSnapshot>("second", stops);
    stopped.set(second.handle.clone());
    second.ended().await;
    fleet.write(280..300, "new").await;
    let second = world.restoring::<AppendLogSnapshot>("second", ());
    second.caught_up().await;
    first.caught_up().await;
    assert_eq!(second.entries(), first.entries());
    let status = second.status();
    assert_eq!((status.restores, status.repairs, status.updates), (0, 0, 21), "{status:?}");
    assert!(!status.may_be_incomplete, "{status:?}");
}

/// What a fold is about to do, and how often it has done so.
#[derive(Clone, Copy, PartialEq)]
enum Event {
    Asked(u32),
    Download(u32),
}

/// A transport where something happens before that.
struct Hooked {
    transport: ObjectStoreTransport,
    hook: Hook,
    downloads: AtomicU32,
    asked: AtomicU32,
    /// Whether there seems to be no artifact.
    hidden: Arc<AtomicBool>,
}

type Hook = Box<dyn Fn(Event) -> BoxFuture<'static, ()> + Send + Sync>;

impl Hooked {
    fn new(
        world: &World,
        hook: impl Fn(Event) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        let (transport, hook) = (world.transport.clone(), Box::new(hook));
        let (downloads, asked, hidden) = Default::default();
        Arc::new(Self { transport, hook, downloads, asked, hidden })
    }

    fn config(self: &Arc<Self>, fleet: &Fleet) -> FoldConfig {
        let transport = Arc::clone(self) as Arc<dyn ArtifactTransport>;
        let (key, dir) = (KEY.to_owned(), fleet.dir.path().to_owned());
        let restore = Some(Restore { transport, key, dir });
        FoldConfig { restore, ..FoldConfig::new(fleet.bucket.watcher().unwrap()) }
    }

    fn downloads(&self) -> u32 {
        self.downloads.load(Ordering::SeqCst)
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl ArtifactTransport for Hooked {
    async fn upload(
        &self,
        key: &str,
        artifact: &std::path::Path,
        watcher: &dyn KvWatcher,
    ) -> Result<(ExportManifest, PublishOutcome), TransportError> {
        self.transport.upload(key, artifact, watcher).await
    }

    async fn pointer(&self, key: &str) -> Result<Option<Pointer>, TransportError> {
        (self.hook)(Event::Asked(self.asked.fetch_add(1, Ordering::SeqCst))).await;
        match self.hidden.load(Ordering::SeqCst) {
            true => Ok(None),
            false => self.transport.pointer(key).await,
        }
    }

    async fn download(
        &self,
        key: &str,
        manifest: &ExportManifest,
        into: Box<dyn TakeFiles>,
    ) -> Result<(), TransportError> {
        (self.hook)(Event::Download(self.downloads.fetch_add(1, Ordering::SeqCst))).await;
        self.transport.download(key, manifest, into).await
    }

    async fn prune(&self, key: &str, grace: Duration) -> Result<u64, TransportError> {
        self.transport.prune(key, grace).await
    }
}
