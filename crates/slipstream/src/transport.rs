//! Artifacts of a fleet: where they are kept, who makes the next one, and how a new node begins with
//! the newest.
//!
//! Every decision is one of [`protocol`](crate::protocol)'s.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use tokio::sync::oneshot;

use crate::applied::{ExportError, FoldHandle};
use crate::artifact::{self, ArtifactError, ExportManifest, Import, Staged, TakeFiles, Taking};
use crate::export_lease::{ExportLease, LeaseGuard};
use crate::kv::{KvError, KvWatcher, WatchScope};
use crate::protocol::{Offer, Publish, Verdict, verdict_of};
use crate::snapshot::SnapshotStore;

/// How many lives of a lease a payload that is not the newest stays: one for whoever is about to
/// publish, three for those who read it.
pub const PRUNE_GRACE_LEASES: u32 = 4;

/// Where the artifacts of a fleet are kept, and which is the newest. `key` names what is folded.
#[async_trait]
pub trait ArtifactTransport: Send + Sync {
    /// Uploads the artifact in a directory, and makes it the newest, if it is. `watcher` is of the
    /// bucket that was folded. The manifest is as it was published.
    async fn upload(
        &self,
        key: &str,
        artifact: &Path,
        watcher: &dyn KvWatcher,
    ) -> Result<(ExportManifest, PublishOutcome), TransportError>;

    /// The newest artifact, if there is one.
    ///
    /// # Errors
    /// [`TransportError::Artifact`] if what names it cannot be read. The next upload replaces it, unless
    /// a newer program wrote it.
    async fn pointer(&self, key: &str) -> Result<Option<Pointer>, TransportError>;

    /// Hands out the files of an artifact, on a thread that may block, and says when these were all.
    async fn download(
        &self,
        key: &str,
        manifest: &ExportManifest,
        into: Box<dyn TakeFiles>,
    ) -> Result<(), TransportError>;

    /// Deletes payloads that nobody needs any more and that are older than `grace`; how many.
    async fn prune(&self, key: &str, grace: Duration) -> Result<u64, TransportError>;
}

/// What names the newest artifact.
#[derive(Clone, Debug)]
pub struct Pointer {
    /// The manifest of the artifact.
    pub manifest: ExportManifest,
    /// When it was published, by the clock of the store.
    pub published_at: SystemTime,
}

/// What became of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishOutcome {
    /// It is the newest artifact, and this call made it so.
    Published,
    /// It is the newest artifact, and who made it so cannot be told: this call or one before it, whose
    /// answer was lost, or another node with the very same artifact. Several may be told so of one
    /// artifact.
    AlreadyThere,
    /// There is a newer one: whoever was slow gives up.
    SupersededByNewer,
    /// The log has gone on, or is another: nobody could read on from it. That is so in a bucket of which
    /// the last 1024 keys that the fold has seen are all written again before the upload is done.
    OfNoUse,
    /// The newest artifact lacks nothing, and this one may lack what the log had evicted before it was
    /// read. An export of a fold that lacks nothing replaces it; this one does when nobody can read on
    /// from it any more.
    LessComplete,
}

impl From<Publish> for PublishOutcome {
    fn from(publish: Publish) -> Self {
        match publish {
            Publish::Allowed => Self::Published,
            Publish::SupersededByNewer => Self::SupersededByNewer,
            Publish::OfNoUse => Self::OfNoUse,
            Publish::LessComplete => Self::LessComplete,
        }
    }
}

/// Why artifacts could not be exchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The artifact is invalid, or could not be made.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// The bucket that was folded could not be asked.
    #[error("the bucket could not be asked: {0}")]
    Log(#[from] KvError),
    /// The store refused, or could not be reached.
    #[error("{doing}: {message}")]
    Store {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        message: String,
    },
    /// The store cannot compare and swap, so that two who publish could both believe to be first.
    #[error("the store cannot replace an object on the condition that nobody else has")]
    NotAtomic,
    /// Others were quicker, each time.
    #[error("the pointer was replaced by others {attempts} times in a row")]
    Contended {
        /// How often it was tried.
        attempts: u32,
    },
    /// The pointer to a log that is gone cannot be replaced, for there is no higher epoch. Nobody gets
    /// here by counting: somebody wrote it.
    #[error("the pointer is of the last epoch that there is")]
    LastEpoch,
}

/// What the log says now about an artifact's cursor: whether a node that begins with it would read on.
///
/// # Errors
/// What the bucket said; nothing is known then. [`ArtifactInvalid::Bucket`] if the artifact is of another
/// one.
///
/// [`ArtifactInvalid::Bucket`]: crate::artifact::ArtifactInvalid::Bucket
pub async fn judge(
    watcher: &dyn KvWatcher,
    manifest: &ExportManifest,
) -> Result<Verdict, TransportError> {
    // Not dead: two fleets that share a key by mistake would replace each other for ever.
    manifest.check_bucket(watcher.bucket()).map_err(ArtifactError::from)?;
    let Ok(cursor) = manifest.log_cursor() else { return Ok(Verdict::Expired) };
    match watcher.watch_from(&scope_of(manifest), Some(&cursor)).await {
        Ok(_) => Ok(Verdict::Holds),
        Err(KvError::CursorExpired(why)) => Ok(verdict_of(why)),
        Err(error) => Err(error.into()),
    }
}

/// What an artifact is to somebody who would begin with it now.
///
/// # Errors
/// As those of [`judge`].
pub async fn offer_of(
    watcher: &dyn KvWatcher,
    manifest: &ExportManifest,
) -> Result<Offer, TransportError> {
    let verdict = judge(watcher, manifest).await?;
    let may_be_incomplete = manifest.log_cursor().is_ok_and(|cursor| cursor.incomplete);
    Ok(Offer { verdict, may_be_incomplete })
}

fn scope_of(manifest: &ExportManifest) -> WatchScope {
    WatchScope::Prefixes(manifest.prefixes.clone())
}

/// How many artifacts an import tries, each of which gave way to a newer one while it was downloaded.
const IMPORTS_MAX: u32 = 3;

/// Makes a fold of `scope` at `path`, where nothing may be, of the newest artifact, if there is one
/// that a watch can read on from (P9). The fold is opened like any other.
///
/// An artifact that is replaced and deleted while it is downloaded is no failure: the next one is taken.
///
/// # Errors
/// Nothing is at the path, but for [`ArtifactError::NotDurable`]; nor is it if the future is dropped.
pub async fn import_remote<S: SnapshotStore>(
    transport: &dyn ArtifactTransport,
    key: &str,
    watcher: &dyn KvWatcher,
    path: &Path,
    scope: &WatchScope,
) -> Result<Option<ExportManifest>, TransportError> {
    let mut attempt = 1;
    loop {
        let Some(Pointer { manifest, .. }) = transport.pointer(key).await? else { return Ok(None) };
        if judge(watcher, &manifest).await? != Verdict::Holds {
            return Ok(None);
        }
        match import_one::<S>(transport, key, manifest.clone(), path, scope).await {
            Err(TransportError::Store { .. })
                if attempt < IMPORTS_MAX && is_replaced(transport, key, &manifest).await =>
            {
                attempt += 1;
            }
            imported => return imported.map(Some),
        }
    }
}

async fn import_one<S: SnapshotStore>(
    transport: &dyn ArtifactTransport,
    key: &str,
    manifest: ExportManifest,
    path: &Path,
    scope: &WatchScope,
) -> Result<ExportManifest, TransportError> {
    let (done, imported) = oneshot::channel();
    let then = |staged: Staged| staged.publish_for(done);
    download::<S>(transport, key, manifest, path, scope, then).await?;
    Ok(imported.await.map_err(|_| not_read())??)
}

/// Whether the newest artifact is another one by now.
async fn is_replaced(
    transport: &dyn ArtifactTransport,
    key: &str,
    manifest: &ExportManifest,
) -> bool {
    let newest = transport.pointer(key).await;
    newest.is_ok_and(|newest| newest.is_none_or(|newest| newest.manifest != *manifest))
}

/// Downloads an artifact into a fold that is to be at `path`, and hands it to `then` when it is whole.
pub(crate) async fn download<S: SnapshotStore>(
    transport: &dyn ArtifactTransport,
    key: &str,
    manifest: ExportManifest,
    path: &Path,
    scope: &WatchScope,
    then: impl FnOnce(Staged) + Send + 'static,
) -> Result<(), TransportError> {
    let (of, path, scope) = (manifest.clone(), path.to_owned(), scope.clone());
    // What is left of an import that was killed may take a while to remove.
    let begin = move || Import::<S>::begin(of, &path, &scope);
    let begun = tokio::task::spawn_blocking(begin).await;
    let import = begun.unwrap_or_else(|failed| std::panic::resume_unwind(failed.into_panic()))?;
    transport.download(key, &manifest, Box::new(Taking { import, then })).await
}

/// A transport said that it had handed all files on, and had not.
pub(crate) fn not_read() -> TransportError {
    let (doing, message) = ("downloading the payload", "it was not read".to_owned());
    TransportError::Store { doing, message }
}

/// What an export round needs.
pub struct ExportRound<'a> {
    /// The fold whose state is exported.
    pub fold: &'a FoldHandle,
    /// A watcher of the bucket that it folds.
    pub watcher: &'a dyn KvWatcher,
    /// Who makes the next artifact.
    pub lease: &'a ExportLease,
    /// For how long: the time from one artifact to the next.
    pub ttl: Duration,
    /// Where it goes.
    pub transport: &'a dyn ArtifactTransport,
    /// What is folded.
    pub key: &'a str,
    /// Where the artifact is made before that, on the file system of the fold. It is deleted again,
    /// and so is the artifact that a round which was killed has left there. Anything else there stays,
    /// and fails the round.
    pub artifact: PathBuf,
}

/// How a round ended.
#[derive(Debug)]
pub enum RoundOutcome {
    /// Somebody else has the lease, or had it a short while ago.
    NotElected,
    /// The artifact is the newest one.
    Published(ExportManifest),
    /// The same, and this round may have published it, or somebody else: [`PublishOutcome::AlreadyThere`].
    AlreadyThere(ExportManifest),
    /// The artifact was not published; the next round may be anybody's: at once if there is a newer or
    /// a more complete one, after the lease if it was of no use.
    GivenUp(PublishOutcome),
}

/// Why a round failed. The lease was given back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RoundError {
    /// The lease could not be asked for.
    #[error("the lease: {0}")]
    Lease(#[source] KvError),
    /// What was left of a round before could not be removed.
    #[error("removing the artifact of a round before: {0}")]
    Leftover(#[source] io::Error),
    /// The fold was not exported.
    #[error(transparent)]
    Export(#[from] ExportError),
    /// The artifact was not uploaded.
    #[error(transparent)]
    Transport(#[from] TransportError),
}

/// Makes the fleet's next artifact, if nobody else does: lease, export, upload, publish, prune.
///
/// A round that is killed anywhere leaves the pointer as it was or as it should be, a lease that ends,
/// and perhaps a payload that a later round deletes.
///
/// # Errors
/// Whatever fails before the artifact is published. What fails after that is logged.
pub async fn run_export_round(round: &ExportRound<'_>) -> Result<RoundOutcome, RoundError> {
    let Some(guard) = round.lease.try_acquire(round.ttl).await.map_err(RoundError::Lease)? else {
        return Ok(RoundOutcome::NotElected);
    };
    let uploaded = export_and_upload(round).await;
    // Its tables are those of the fold, which cannot give their room back before.
    if let Err(error) = remove(&round.artifact).await {
        tracing::warn!(%error, "the artifact was not deleted");
    }
    match uploaded {
        Ok((manifest, PublishOutcome::Published)) => {
            complete(round, guard, &manifest).await;
            Ok(RoundOutcome::Published(manifest))
        }
        Ok((manifest, PublishOutcome::AlreadyThere)) => {
            complete(round, guard, &manifest).await;
            Ok(RoundOutcome::AlreadyThere(manifest))
        }
        Ok((_, outcome)) => {
            match outcome {
                // The next one would most likely be of no use either: not before the lease is over.
                PublishOutcome::OfNoUse => drop(guard),
                _ => abandon(guard).await,
            }
            Ok(RoundOutcome::GivenUp(outcome))
        }
        Err(error) => {
            abandon(guard).await;
            Err(error)
        }
    }
}

async fn export_and_upload(
    round: &ExportRound<'_>,
) -> Result<(ExportManifest, PublishOutcome), RoundError> {
    remove(&round.artifact).await.map_err(RoundError::Leftover)?;
    round.fold.export(round.artifact.clone()).await?;
    Ok(round.transport.upload(round.key, &round.artifact, round.watcher).await?)
}

async fn remove(artifact: &Path) -> io::Result<()> {
    let artifact = artifact.to_owned();
    let removing = move || artifact::remove(&artifact);
    tokio::task::spawn_blocking(removing).await.map_err(io::Error::other)?
}

async fn complete(round: &ExportRound<'_>, guard: LeaseGuard, manifest: &ExportManifest) {
    if let Err(error) = guard.complete(&manifest.cursor).await {
        tracing::warn!(%error, "the round is done, and its lease does not say so");
    }
    let grace = round.ttl.saturating_mul(PRUNE_GRACE_LEASES);
    if let Err(error) = round.transport.prune(round.key, grace).await {
        tracing::warn!(%error, "old artifacts were not deleted; the next round tries again");
    }
}

async fn abandon(guard: LeaseGuard) {
    if let Err(error) = guard.abandon().await {
        tracing::warn!(%error, "the lease was not given back; it ends by itself");
    }
}
