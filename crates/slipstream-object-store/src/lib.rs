//! Artifacts of a [slipstream] fleet in an object store. It is a crate of its own because the clients
//! of the stores take long to build.
//!
//! | object | what |
//! |---|---|
//! | `<prefix>/<key>.payloads/<hash>.tar` | a payload, named by the first eight bytes of BLAKE3 of its manifest; written once |
//! | `<prefix>/<key>.manifest.json` | the pointer: the manifest of the newest artifact |
//!
//! The pointer is replaced only on the condition that nobody else has replaced it, so that it never goes
//! back, and last, so that its payload is there. What reads and decides is in slipstream.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use object_store::memory::InMemory;
//! use slipstream::transport::ArtifactTransport;
//! use slipstream_object_store::ObjectStoreTransport;
//!
//! let transport = ObjectStoreTransport::new(Arc::new(InMemory::new()), "artifacts");
//! assert!(transport.pointer("rules").await?.is_none(), "nobody has published yet");
//! # Ok(()) }
//! ```

mod pointer;
mod stream;

use std::io::Read;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use slipstream::KvWatcher;
use slipstream::artifact::{
    ArtifactError, ArtifactInvalid, Compression, ExportManifest, TakeFiles, read_manifest,
};
use slipstream::payload;
use slipstream::protocol::{Offer, Rank, Verdict, lacks_more, next_epoch, payload_prunable};
use slipstream::transport::{ArtifactTransport, Pointer, PublishOutcome, TransportError, judge};

use crate::pointer::Found;

/// Tells how many bytes of a payload have been sent or received, and of how many, if that is known.
pub type OnProgress = Arc<dyn Fn(u64, Option<u64>) + Send + Sync>;

/// Artifacts in an object store.
#[derive(Clone)]
pub struct ObjectStoreTransport {
    store: Arc<dyn ObjectStore>,
    prefix: String,
    compression: Compression,
    bytes_per_second: Option<u64>,
    progress: Option<OnProgress>,
    allow_non_atomic_pointer: bool,
}

impl ObjectStoreTransport {
    /// Below `prefix` in a store.
    #[must_use]
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Self {
        Self {
            store,
            prefix: prefix.to_owned(),
            compression: Compression::None,
            bytes_per_second: None,
            progress: None,
            allow_non_atomic_pointer: false,
        }
    }

    /// Compresses payloads that are uploaded.
    #[must_use]
    pub fn with_compression(self, compression: Compression) -> Self {
        Self { compression, ..self }
    }

    /// Sends and receives payloads no faster than this.
    #[must_use]
    pub fn with_bandwidth_limit(self, bytes_per_second: u64) -> Self {
        Self { bytes_per_second: Some(bytes_per_second.max(1)), ..self }
    }

    /// Tells how far a payload is.
    #[must_use]
    pub fn with_progress(self, progress: OnProgress) -> Self {
        Self { progress: Some(progress), ..self }
    }

    /// For development only: replaces the pointer without a condition where the store, like a directory,
    /// knows none. Of two who publish at once the slower one then wins, whatever it has.
    #[must_use]
    pub fn with_non_atomic_pointer_fallback(self) -> Self {
        Self { allow_non_atomic_pointer: true, ..self }
    }

    fn pointer_path(&self, key: &str) -> Path {
        Path::from(format!("{}/{key}.manifest.json", self.prefix))
    }

    fn payloads_path(&self, key: &str) -> Path {
        Path::from(format!("{}/{key}.payloads", self.prefix))
    }

    fn payload_path(&self, key: &str, manifest: &ExportManifest) -> Path {
        self.payloads_path(key).join(format!("{}.tar", manifest.content_id()))
    }

    async fn payloads(&self, key: &str) -> Result<Vec<ObjectMeta>, TransportError> {
        let listed = self.store.list(Some(&self.payloads_path(key))).try_collect().await;
        listed.map_err(failed("listing payloads"))
    }

    /// The manifest that a payload begins with; `None` if it begins with none.
    ///
    /// # Errors
    /// [`ArtifactInvalid::NewerSchema`]: it has one, which only a newer program can read.
    async fn embedded_manifest(
        &self,
        payload: &Path,
    ) -> Result<Option<ExportManifest>, TransportError> {
        let got = match self.store.get(payload).await {
            // Somebody else deleted it.
            Err(Error::NotFound { .. }) => return Ok(None),
            got => got.map_err(failed("reading a payload"))?,
        };
        let read = |payload: &mut dyn Read| payload::read_manifest(payload);
        let (from, pace) = (got.into_stream(), stream::Pace::new(None, None, None));
        match stream::receive(from, pace, read).await? {
            Ok(manifest) => Ok(Some(manifest)),
            Err(newer @ ArtifactError::Invalid(ArtifactInvalid::NewerSchema { .. })) => {
                Err(newer.into())
            }
            Err(error) => {
                tracing::warn!(%payload, %error, "a payload cannot be read");
                Ok(None)
            }
        }
    }

    /// Which of the payloads that there are is the newest.
    pub(crate) async fn newest_payload(&self, key: &str) -> Result<Option<Rank>, TransportError> {
        let mut newest = None;
        for payload in self.payloads(key).await? {
            let manifest = self.embedded_manifest(&payload.location).await?;
            newest = newest.max(manifest.and_then(|manifest| manifest.rank()));
        }
        Ok(newest)
    }

    fn pace(&self, of: Option<u64>) -> stream::Pace {
        stream::Pace::new(self.bytes_per_second, self.progress.clone(), of)
    }

    /// The epoch that an artifact is uploaded in, by the pointer as it is before that.
    async fn epoch(
        &self,
        key: &str,
        pointer: &Found,
        watcher: &dyn KvWatcher,
    ) -> Result<u64, TransportError> {
        let (mut verdict, mut highest) = (Verdict::Expired, None);
        match &pointer.manifest {
            Some(Ok(manifest)) => verdict = judge(watcher, manifest).await?,
            Some(Err(newer @ ArtifactInvalid::NewerSchema { .. })) => {
                return Err(TransportError::Artifact(newer.clone().into()));
            }
            None | Some(Err(_)) => {
                highest = self.newest_payload(key).await?.map(|rank| rank.epoch);
            }
        }
        next_epoch(&pointer.state(), verdict, highest).ok_or(TransportError::LastEpoch)
    }
}

fn failed(doing: &'static str) -> impl FnOnce(Error) -> TransportError {
    move |error| TransportError::Store { doing, message: error.to_string() }
}

#[async_trait]
impl ArtifactTransport for ObjectStoreTransport {
    async fn upload(
        &self,
        key: &str,
        artifact: &FilePath,
        watcher: &dyn KvWatcher,
    ) -> Result<(ExportManifest, PublishOutcome), TransportError> {
        let mut manifest = read_manifest(artifact)?;
        manifest.compression = self.compression;
        // Before the payload is there: see `protocol::next_epoch`.
        let before = self.read_pointer(key).await?;
        manifest.epoch = self.epoch(key, &before, watcher).await?;
        // At best. It would not be published, so that nobody has to upload it.
        let may_be_incomplete = manifest.log_cursor().is_ok_and(|cursor| cursor.incomplete);
        let offer = Offer { verdict: Verdict::Holds, may_be_incomplete };
        if lacks_more(offer, self.replaced(&before, offer, watcher).await?) {
            return Ok((manifest, PublishOutcome::LessComplete));
        }
        let of = (self.compression == Compression::None).then(|| manifest.total_size());
        let path = self.payload_path(key, &manifest);
        stream::send(&self.store, &path, self.pace(of), artifact, &manifest).await?;
        let outcome = self.publish(key, &manifest, watcher).await?;
        Ok((manifest, outcome))
    }

    async fn pointer(&self, key: &str) -> Result<Option<Pointer>, TransportError> {
        let Found { manifest, published_at, .. } = self.read_pointer(key).await?;
        let manifest = manifest.transpose().map_err(ArtifactError::from)?;
        Ok(manifest.map(|manifest| Pointer { manifest, published_at }))
    }

    async fn download(
        &self,
        key: &str,
        manifest: &ExportManifest,
        into: Box<dyn TakeFiles>,
    ) -> Result<(), TransportError> {
        let path = self.payload_path(key, manifest);
        let (size, from) = stream::in_ranges(&self.store, path).await?;
        let manifest = manifest.clone();
        let read = move |from: &mut dyn Read| payload::read_payload(&manifest, from, into);
        Ok(stream::receive(from, self.pace(Some(size)), read).await??)
    }

    async fn prune(&self, key: &str, grace: Duration) -> Result<u64, TransportError> {
        let payloads = self.payloads(key).await?;
        let Some(Ok(manifest)) = self.read_pointer(key).await?.manifest else { return Ok(0) };
        let Some(rank) = manifest.rank() else { return Ok(0) };
        let target = self.payload_path(key, &manifest);
        let mut deleted = 0;
        for payload in payloads {
            let age = SystemTime::now().duration_since(payload.last_modified.into());
            let aged_out = age.is_ok_and(|age| age >= grace);
            let is_target = payload.location == target;
            if is_target || !aged_out {
                continue;
            }
            // One of a newer program stays until such a program deletes it.
            let embedded = self.embedded_manifest(&payload.location).await;
            let of = match embedded {
                Err(TransportError::Artifact(_)) => None,
                embedded => embedded?.and_then(|manifest| manifest.rank()),
            };
            if payload_prunable(of, rank, is_target, aged_out) {
                match self.store.delete(&payload.location).await {
                    Ok(()) => deleted += 1,
                    Err(Error::NotFound { .. }) => {}
                    Err(error) => return Err(failed("deleting a payload")(error)),
                }
            }
        }
        Ok(deleted)
    }
}
