//! A store that fails, at every step of a round; and what else fails.

mod servers;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use slipstream::transport::{ArtifactTransport, PublishOutcome, RoundOutcome};

use crate::fleet::{Fleet, KEY, PATIENCE, transport};

const TTL: Duration = Duration::from_secs(60);

/// How a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// It does not reach the store.
    Before,
    /// It does, and the answer is lost.
    After,
    /// So it is with every write on a condition, which the client repeats: the condition no longer holds.
    Repeated,
}

/// Fails one request, by its number.
#[derive(Clone, Debug)]
struct Faulty {
    store: Arc<InMemory>,
    left: Arc<AtomicI64>,
    fault: Fault,
    aborts: Arc<AtomicI64>,
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a store that fails")
    }
}

impl Faulty {
    fn new(store: &Arc<InMemory>, at: i64, fault: Fault) -> Self {
        let (store, left) = (Arc::clone(store), Arc::new(AtomicI64::new(at)));
        Self { store, left, fault, aborts: Arc::default() }
    }

    fn is_due(&self) -> bool {
        self.left.fetch_sub(1, Ordering::SeqCst) == 0
    }

    fn was_due(&self) -> bool {
        self.left.load(Ordering::SeqCst) < 0
    }

    async fn maybe<T: Send>(&self, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        match (self.is_due(), self.fault) {
            (false, _) => work.await,
            (true, Fault::Before) => Err(lost()),
            (true, Fault::After | Fault::Repeated) => {
                let _ = work.await;
                Err(lost())
            }
        }
    }
}

fn lost() -> Error {
    Error::Generic { store: "faulty", source: "the connection was lost".into() }
}

#[derive(Debug)]
struct FaultyUpload {
    upload: Box<dyn MultipartUpload>,
    of: Faulty,
}

#[async_trait]
impl MultipartUpload for FaultyUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, of) = (self.upload.put_part(data), self.of.clone());
        Box::pin(async move { of.maybe(part).await })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let of = self.of.clone();
        of.maybe(self.upload.complete()).await
    }

    async fn abort(&mut self) -> Result<()> {
        self.of.aborts.fetch_add(1, Ordering::SeqCst);
        self.upload.abort().await
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let is_conditional = !matches!(options.mode, PutMode::Overwrite);
        let put = self.store.put_opts(location, payload, options);
        if self.fault != Fault::Repeated || !is_conditional {
            return self.maybe(put).await;
        }
        put.await?;
        let source = "it was replaced since".into();
        Err(Error::Precondition { path: location.to_string(), source })
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.maybe(self.store.put_multipart_opts(location, options)).await?;
        Ok(Box::new(FaultyUpload { upload, of: self.clone() }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.maybe(self.store.get_opts(location, options)).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        match self.is_due() {
            true => stream::once(async { Err(lost()) }).boxed(),
            false => self.store.delete_stream(locations),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.is_due() {
            true => stream::once(async { Err(lost()) }).boxed(),
            false => self.store.list(prefix),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}

/// The pointer is the old one or the new one, and whole; and the next round goes through.
async fn one_round_with_a_fault_at_each_request(fault: Fault) {
    let (mut failed, mut published, mut there) = (0, 0, 0);
    for at in 0.. {
        let (fleet, _) = Fleet::in_memory().await;
        let store = Arc::new(InMemory::new());
        let sound: Arc<dyn ObjectStore> = Arc::clone(&store) as _;
        let sound = transport(&sound);
        let node = fleet.node("node");
        fleet.write(0..20, "old").await;
        node.caught_up().await;
        let first = node.round(&sound, TTL).await.unwrap();
        let RoundOutcome::Published(old) = first else { panic!("{first:?}") };
        node.next_round().await;
        fleet.write(10..30, "new").await;
        node.caught_up().await;
        let faulty = Faulty::new(&store, at, fault);
        let shared: Arc<dyn ObjectStore> = Arc::new(faulty.clone());
        let outcome = node.round(&transport(&shared), TTL).await;
        let pointer = sound.pointer(KEY).await.unwrap().unwrap().manifest;
        match &outcome {
            Ok(RoundOutcome::Published(new)) => {
                assert_eq!(&pointer, new);
                published += 1;
            }
            // The answer to the swap itself was lost.
            Ok(RoundOutcome::AlreadyThere(new)) => {
                assert_eq!((&pointer, fault), (new, Fault::After));
                there += 1;
            }
            Ok(other) => panic!("{fault:?} at {at}: {other:?}"),
            Err(_) => {
                failed += 1;
                assert_eq!(pointer, old, "{fault:?} at {at}");
            }
        }
        let bootstrapped = fleet.bootstrap("other", &sound).await.unwrap();
        bootstrapped.caught_up().await;
        assert_eq!(bootstrapped.entries(), node.entries(), "{fault:?} at {at}");
        assert_eq!(bootstrapped.status().repairs, 0);
        // The lease was given back, or is that of a round that is done.
        if outcome.is_ok() {
            node.next_round().await;
        }
        fleet.write(0..5, "newer").await;
        let next = node.caught_up().await.round(&sound, TTL).await.unwrap();
        assert!(matches!(next, RoundOutcome::Published(_)), "{fault:?} at {at}: {next:?}");
        sound.prune(KEY, Duration::ZERO).await.unwrap();
        assert!(fleet.bootstrap("last", &sound).await.is_some());
        if !faulty.was_due() {
            break;
        }
    }
    assert!(failed + there >= 5, "the pointer, three steps of the upload, the swap: {failed}");
    assert_eq!(there, u32::from(fault == Fault::After));
    assert!(published >= 2, "what fails after the swap is no failure: {published}");
}

#[tokio::test]
async fn a_request_that_does_not_reach_the_store_leaves_a_pointer_that_can_be_used() {
    one_round_with_a_fault_at_each_request(Fault::Before).await;
}

#[tokio::test]
async fn an_answer_that_is_lost_leaves_a_pointer_that_can_be_used() {
    one_round_with_a_fault_at_each_request(Fault::After).await;
}

/// The store takes a swap, its answer is lost, and the client repeats the request by itself.
#[tokio::test]
async fn a_swap_that_was_carried_out_and_repeated_is_no_other_artifact() {
    let (fleet, _) = Fleet::in_memory().await;
    let faulty = Faulty::new(&Arc::new(InMemory::new()), i64::MAX, Fault::Repeated);
    let store: Arc<dyn ObjectStore> = Arc::new(faulty);
    let (transport, watcher) = (transport(&store), fleet.bucket.watcher().unwrap());
    let node = fleet.node("node");
    // The first makes the pointer, the second replaces it.
    for value in ["old", "new"] {
        fleet.write(0..20, value).await;
        let outcome = node.caught_up().await.round(&transport, TTL).await.unwrap();
        let RoundOutcome::AlreadyThere(manifest) = outcome else { panic!("{outcome:?}") };
        assert_eq!(transport.pointer(KEY).await.unwrap().unwrap().manifest, manifest);
        // The round is done, and not given up.
        assert_eq!(node.completed().await.as_ref(), Some(&manifest.cursor));
        let next = node.round(&transport, TTL).await.unwrap();
        assert!(matches!(next, RoundOutcome::NotElected), "{next:?}");
        node.next_round().await;
    }
    // Somebody whose first upload failed, and who tries again.
    node.handle.export(node.artifact.clone()).await.unwrap();
    for _ in 0..2 {
        let (_, outcome) = transport.upload(KEY, &node.artifact, &*watcher).await.unwrap();
        assert_eq!(outcome, PublishOutcome::AlreadyThere);
    }
    fleet.write(0..5, "newer").await;
    std::fs::rename(&node.artifact, fleet.dir.path().join("slow")).unwrap();
    node.caught_up().await.round(&transport, TTL).await.unwrap();
    let slow = fleet.dir.path().join("slow");
    let (_, outcome) = transport.upload(KEY, &slow, &*watcher).await.unwrap();
    assert_eq!(outcome, PublishOutcome::SupersededByNewer);
}

/// A store keeps the parts of an upload that is not ended, and says so to nobody.
#[tokio::test]
async fn an_upload_that_nobody_waits_for_any_more_is_aborted() {
    let (fleet, _) = Fleet::in_memory().await;
    let faulty = Faulty::new(&Arc::new(InMemory::new()), i64::MAX, Fault::Before);
    let store: Arc<dyn ObjectStore> = Arc::new(faulty.clone());
    let node = fleet.node("node");
    fleet.write(0..20, "old").await;
    node.caught_up().await.handle.export(node.artifact.clone()).await.unwrap();
    let slow = transport(&store).with_bandwidth_limit(1);
    let watcher = fleet.bucket.watcher().unwrap();
    let uploading = slow.upload(KEY, &node.artifact, &*watcher);
    let stopped = tokio::time::timeout(Duration::from_millis(200), uploading).await;
    assert!(stopped.is_err(), "it takes hours");
    let aborted = async {
        while faulty.aborts.load(Ordering::SeqCst) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, aborted).await.expect("its parts are removed");
    assert!(slow.pointer(KEY).await.unwrap().is_none());
}
