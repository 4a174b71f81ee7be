//! What a running fold shows, and how it is steered.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::{Notify, mpsc, oneshot, watch};

use super::export::{ExportError, ExportRequest};
use crate::artifact::ExportManifest;
use crate::kv::{CursorExpiry, KvError};

/// How often somebody who waits for a revision asks for a progress marker.
const POKE_INTERVAL: Duration = Duration::from_millis(50);

/// Where a fold stands.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FoldStatus {
    /// All of the scope up to this revision is in the store. Does not move on during a resync, and is
    /// 0 during one of a log that is not known to be the same. A resume may begin a little below
    /// where the fold was.
    pub applied: u64,
    /// The newest revision of the log, as far as is known.
    pub head: u64,
    /// When the last applied update was written, by the server's clock.
    pub applied_at: Option<SystemTime>,
    /// Whether something is known to be on its way to the store, or a resync goes on.
    pub behind: bool,
    /// Whether the fold has had everything that the bucket held when it began to watch. Stays so
    /// through interruptions; a repair begins anew.
    pub synced: bool,
    /// How many updates the store has taken from watches since the call began.
    pub updates: u64,
    /// Whether the limits of the log evict current values. The fold then keeps keys that the bucket
    /// no longer has.
    pub evicts_current_values: bool,
    /// Whether the fold may lack keys that nobody deleted: the log had evicted them before they were
    /// read, by a listing or by a watch. Stays so, through restarts too, until the fold is restored from
    /// an artifact that lacks none, or a log that has its first message is listed.
    pub may_be_incomplete: bool,
    /// Whether an artifact is on its way, to restore the fold from it.
    pub restoring: bool,
    /// How often the fold was restored from an artifact since the call began.
    pub restores: u64,
    /// Why the fold was not restored from an artifact when it last had to be, so that it was listed or
    /// went on as it was. `None` once it was, and where [`restore`](crate::FoldConfig::restore) is not
    /// given or a listing brings everything.
    pub not_restored: Option<String>,
    /// The last listing of the bucket, or restore, because the cursor was of no use.
    pub last_repair: Option<Repair>,
    /// How many repairs there were since the call began.
    pub repairs: u64,
    /// How often the log had dropped what a running watch was still to read, or was purged under it,
    /// so that the keys which the log has no more were looked for.
    pub overruns: u64,
    /// How many keys of the fold were dropped by that.
    pub dropped_by_overruns: u64,
    /// How often a log that evicts current values had dropped what a running watch was still to read.
    /// The fold went on behind that: it keeps what it has, and may lack what was dropped.
    pub passed_gaps: u64,
    /// Whether a write failed and calls of the store's own readers keep it from being opened again.
    pub waits_for_readers: bool,
    /// Why no watch is running, until the next one is.
    pub watch_error: Option<KvError>,
}

/// A fold that was mended, by listing the bucket or from an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// What was wrong.
    pub why: CursorExpiry,
    /// Keys that were deleted from the fold because the bucket had them no more.
    pub deleted: u64,
    /// Keys that the listing did not confirm and that were kept nevertheless, because the log may
    /// have evicted them. Known when the fold is synced.
    pub unconfirmed: u64,
    /// When it began.
    pub at: SystemTime,
    /// Whether it was restored from an artifact, rather than by a listing.
    pub from_artifact: bool,
    /// Whether the fold is complete again.
    pub is_over: bool,
}

impl FoldStatus {
    pub(super) fn applied(&mut self, revision: u64) {
        self.applied = revision;
        self.head = self.head.max(revision);
    }

    pub(super) fn resynced(&mut self, by_listing: bool, dropped: u64, unconfirmed: u64) {
        self.synced = true;
        if !by_listing {
            self.overruns += 1;
            self.dropped_by_overruns += dropped;
        } else if let Some(repair) = self.last_repair.as_mut().filter(|repair| !repair.is_over) {
            (repair.deleted, repair.unconfirmed, repair.is_over) = (dropped, unconfirmed, true);
        }
    }

    pub(super) fn restored(&mut self, deleted: u64) {
        self.restores += 1;
        self.not_restored = None;
        if let Some(repair) = self.last_repair.as_mut().filter(|repair| !repair.is_over) {
            (repair.deleted, repair.is_over) = (deleted, true);
        }
    }

    /// How many revisions the log is ahead of the fold. In a filtered scope most of them may be
    /// somebody else's.
    pub fn lag_revisions(&self) -> u64 {
        self.head.saturating_sub(self.applied)
    }

    /// How old the fold's picture is, at most: zero while a watch runs and nothing is on its way,
    /// else the time since the last applied update was written.
    ///
    /// `None` as long as that is not known: this call has neither applied an update nor synced.
    pub fn lag(&self, now: SystemTime) -> Option<Duration> {
        if self.synced && !self.behind && self.watch_error.is_none() {
            return Some(Duration::ZERO);
        }
        self.applied_at.map(|at| now.duration_since(at).unwrap_or_default())
    }
}

/// The fold has ended, so what was waited for will not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the fold has ended")]
pub struct FoldEnded;

/// Observes and steers a fold. Clones are the same handle.
///
/// A fold does not end when its handles are dropped: without one, only dropping the future of
/// [`watch_applied`](crate::watch_applied) ends it.
#[derive(Clone)]
pub struct FoldHandle {
    status: watch::Receiver<FoldStatus>,
    exports: mpsc::Sender<ExportRequest>,
    shared: Arc<Shared>,
}

impl FoldHandle {
    /// The status now, and its changes.
    pub fn status(&self) -> watch::Receiver<FoldStatus> {
        self.status.clone()
    }

    /// Waits until the fold has everything of its scope up to `revision`, for example that of a
    /// write of one's own.
    pub async fn wait_for(&self, revision: u64) -> Result<(), FoldEnded> {
        let mut status = self.status.clone();
        loop {
            // In a filtered scope nothing may come that would say so by itself.
            let waited = status.wait_for(|status| status.applied >= revision);
            match tokio::time::timeout(POKE_INTERVAL, waited).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(_)) => return Err(FoldEnded),
                Err(_) => self.shared.poke.notify_one(),
            }
        }
    }

    /// Waits until the fold is [`synced`](FoldStatus::synced).
    pub async fn synced(&self) -> Result<(), FoldEnded> {
        let mut status = self.status.clone();
        status.wait_for(|status| status.synced).await.map(|_| ()).map_err(|_| FoldEnded)
    }

    /// Asks for an artifact of the fold, a directory at `dir`, where nothing may be. It is of a moment
    /// after the call, in which the fold was complete; one that is being repaired is waited for, and so
    /// is a server that is away. Whoever stops waiting leaves nothing at `dir`.
    pub async fn export(&self, dir: PathBuf) -> Result<ExportManifest, ExportError> {
        let (reply, answer) = oneshot::channel();
        let request = ExportRequest { dir, reply };
        self.exports.send(request).await.map_err(|_| ExportError::Ended)?;
        Ok(answer.await.map_err(|_| ExportError::Ended)??)
    }

    /// Tells the fold to store what it has and end.
    pub fn shutdown(&self) {
        self.shared.shutdown.store(true, Ordering::Release);
        self.shared.wake.notify_one();
    }
}

/// The fold's end of a [`FoldHandle`].
pub(super) struct Control {
    pub(super) status: watch::Sender<FoldStatus>,
    pub(super) exports: mpsc::Receiver<ExportRequest>,
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    shutdown: AtomicBool,
    /// How far the watch has read.
    received: AtomicU64,
    wake: Notify,
    pub(super) poke: Notify,
}

impl Shared {
    pub(super) fn is_shut_down(&self) -> bool {
        self.shutdown.load(Ordering::Acquire)
    }

    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Acquire)
    }

    pub(super) fn note_received(&self, revision: u64) {
        self.received.store(revision, Ordering::Release);
    }

    /// Returns when the fold is told to end. Cancel safe, and returns again when asked again.
    pub(super) async fn shutdown(&self) {
        while !self.is_shut_down() {
            self.wake.notified().await;
        }
    }
}

pub(super) fn pair() -> (FoldHandle, Control) {
    let (status_in, status) = watch::channel(FoldStatus::default());
    let (exports, exports_out) = mpsc::channel(1);
    let shared = Arc::new(Shared {
        shutdown: AtomicBool::new(false),
        received: AtomicU64::new(0),
        wake: Notify::new(),
        poke: Notify::new(),
    });
    let control = Control { status: status_in, exports: exports_out, shared: Arc::clone(&shared) };
    (FoldHandle { status, exports, shared }, control)
}
