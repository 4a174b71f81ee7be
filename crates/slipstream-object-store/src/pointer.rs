//! The pointer: read, and replaced on a condition.

use std::time::SystemTime;

use object_store::{
    Error, GetOptions, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};
use slipstream::KvWatcher;
use slipstream::artifact::{ArtifactInvalid, ExportManifest, MAX_MANIFEST_LEN};
use slipstream::protocol::{Offer, PointerState, Publish, may_publish};
use slipstream::transport::{PublishOutcome, TransportError, offer_of};

use crate::{ObjectStoreTransport, failed};

/// How often a swap is tried again after somebody else was quicker.
const SWAPS_MAX: u32 = 8;

/// The pointer as it was read.
pub(crate) struct Found {
    /// What to compare with; `None` if there is none.
    version: Option<UpdateVersion>,
    /// `None` if there is none; or why it cannot be read.
    pub(crate) manifest: Option<Result<ExportManifest, ArtifactInvalid>>,
    pub(crate) published_at: SystemTime,
}

impl Found {
    pub(crate) fn state(&self) -> PointerState {
        match &self.manifest {
            None => PointerState::Absent,
            Some(Ok(manifest)) => PointerState::Present { rank: manifest.rank() },
            Some(Err(ArtifactInvalid::NewerSchema { .. })) => PointerState::Newer,
            Some(Err(_)) => PointerState::Present { rank: None },
        }
    }

    /// The manifest, if it can be read.
    pub(crate) fn readable(&self) -> Option<&ExportManifest> {
        self.manifest.as_ref()?.as_ref().ok()
    }
}

impl ObjectStoreTransport {
    pub(crate) async fn read_pointer(&self, key: &str) -> Result<Found, TransportError> {
        let reading = "reading the pointer";
        let path = self.pointer_path(key);
        let got = match self.store.get_opts(&path, GetOptions::default()).await {
            Err(Error::NotFound { .. }) => {
                let published_at = SystemTime::UNIX_EPOCH;
                return Ok(Found { version: None, manifest: None, published_at });
            }
            got => got.map_err(failed(reading))?,
        };
        let published_at = got.meta.last_modified.into();
        let (e_tag, version) = (got.meta.e_tag.clone(), got.meta.version.clone());
        let version = Some(UpdateVersion { e_tag, version });
        // Somebody may have put anything there.
        if got.meta.size > MAX_MANIFEST_LEN {
            let manifest = Some(Err(ArtifactInvalid::Manifest("it is too long")));
            return Ok(Found { version, manifest, published_at });
        }
        let bytes = got.bytes().await.map_err(failed(reading))?;
        let manifest = Some(ExportManifest::decode(&bytes));
        Ok(Found { version, manifest, published_at })
    }

    /// Moves the pointer to an artifact whose payload is there, if it may (P7).
    pub(crate) async fn publish(
        &self,
        key: &str,
        manifest: &ExportManifest,
        watcher: &dyn KvWatcher,
    ) -> Result<PublishOutcome, TransportError> {
        let Some(rank) = manifest.rank() else {
            return Err(TransportError::Artifact(ArtifactInvalid::Cursor.into()));
        };
        for _ in 0..SWAPS_MAX {
            let found = self.read_pointer(key).await?;
            if found.readable() == Some(manifest) {
                // By another node that has the same, or by this one's own swap, whose answer was lost. If
                // it claimed that, an artifact could have two publishers.
                return Ok(PublishOutcome::AlreadyThere);
            }
            let offer = offer_of(watcher, manifest).await?;
            let newest = match found.readable() {
                Some(_) => None,
                None => self.newest_payload(key).await?,
            };
            let replaced = self.replaced(&found, offer, watcher).await?;
            let publish = may_publish(&found.state(), newest, rank, offer, replaced);
            if publish != Publish::Allowed {
                return Ok(publish.into());
            }
            match self.swap(key, manifest, found.version).await {
                Ok(true) => return Ok(PublishOutcome::Published),
                Ok(false) => {}
                Err(error) => return self.after_no_answer(key, manifest, error).await,
            }
        }
        Err(TransportError::Contended { attempts: SWAPS_MAX })
    }

    /// A swap that failed may have been carried out. One that is carried out later, by a store that was
    /// slow to, is an error all the same.
    async fn after_no_answer(
        &self,
        key: &str,
        manifest: &ExportManifest,
        error: TransportError,
    ) -> Result<PublishOutcome, TransportError> {
        match self.read_pointer(key).await {
            Ok(found) if found.readable() == Some(manifest) => Ok(PublishOutcome::AlreadyThere),
            _ => Err(error),
        }
    }

    /// What a pointer's artifact is, as far as an artifact that is to replace it has to know.
    pub(crate) async fn replaced(
        &self,
        found: &Found,
        by: Offer,
        watcher: &dyn KvWatcher,
    ) -> Result<Option<Offer>, TransportError> {
        match found.readable() {
            Some(manifest) if by.may_be_incomplete => Ok(Some(offer_of(watcher, manifest).await?)),
            _ => Ok(None),
        }
    }

    /// `false` if somebody else was quicker, or this node itself with an answer that was lost.
    async fn swap(
        &self,
        key: &str,
        manifest: &ExportManifest,
        version: Option<UpdateVersion>,
    ) -> Result<bool, TransportError> {
        let path = self.pointer_path(key);
        let payload = || PutPayload::from(manifest.encode());
        let mode = version.map_or(PutMode::Create, PutMode::Update);
        let swapped = self.store.put_opts(&path, payload(), PutOptions::from(mode)).await;
        match swapped {
            Ok(_) => Ok(true),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => Ok(false),
            // It was deleted since.
            Err(Error::NotFound { .. }) => Ok(false),
            Err(Error::NotImplemented { .. } | Error::NotSupported { .. }) => {
                if !self.allow_non_atomic_pointer {
                    return Err(TransportError::NotAtomic);
                }
                tracing::warn!("the pointer is replaced without a condition");
                let put = self.store.put(&path, payload()).await;
                put.map(|_| true).map_err(failed("replacing the pointer"))
            }
            Err(error) => Err(failed("replacing the pointer")(error)),
        }
    }
}
