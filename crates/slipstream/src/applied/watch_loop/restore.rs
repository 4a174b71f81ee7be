//! Restoring the fold from the newest artifact of its fleet, and reading on from there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{Over, WatchLoop, unless_shut_down};
use crate::applied::applier::Applier;
use crate::applied::apply_loop::ApplyLoop;
use crate::applied::command::{Command, Standing};
use crate::applied::follow::Following;
use crate::applied::restore::{Restore, RestoreEnd, RestoreFrom};
use crate::artifact::{ExportManifest, Staged};
use crate::kv::{CursorExpiry, LogCursor, WatchScope};
use crate::protocol::{self, Offer, Restoring};
use crate::snapshot::SnapshotStore;
use crate::transport::{TransportError, download, judge, not_read};

/// The name of a fold that is never there: its stage is made beside it.
const RESTORED: &str = "slipstream-restored";

type Downloading<'a> = Pin<Box<dyn Future<Output = Result<Staged, TransportError>> + Send + 'a>>;
type Download = for<'a> fn(&'a Restore, ExportManifest, &'a WatchScope) -> Downloading<'a>;

/// What the watch loop knows of artifacts, whatever the store is.
pub(in crate::applied) struct Artifacts {
    /// The artifact that the fold was made of, as long as it stands where that did.
    pub(super) imported: Option<ExportManifest>,
    /// One that turned out to be none when it was read.
    unreadable: Option<ExportManifest>,
    /// `None` if the store has no files, or the caller has entries that no artifact has.
    download: Option<Download>,
}

impl Artifacts {
    pub(in crate::applied) fn of<S: SnapshotStore, A: Applier>(fold: &ApplyLoop<S, A>) -> Self {
        let is_all_there_is = S::FILES.is_some() && !fold.applier.keeps_entries();
        let download: Option<Download> = is_all_there_is.then_some(stage::<S>);
        Self { imported: fold.store.imported().cloned(), unreadable: None, download }
    }
}

fn stage<'a, S: SnapshotStore>(
    from: &'a Restore,
    manifest: ExportManifest,
    scope: &'a WatchScope,
) -> Downloading<'a> {
    Box::pin(async move {
        let (done, staged) = oneshot::channel();
        // Whoever stops waiting has it removed.
        let then = |staged: Staged| drop(done.send(staged));
        let at = from.dir.join(RESTORED);
        download::<S>(&*from.transport, &from.key, manifest, &at, scope, then).await?;
        staged.await.map_err(|_| not_read())
    })
}

impl WatchLoop {
    /// A watch that goes on from the newest artifact, when the fold is what that is; `None` if a listing
    /// is as good, or all there is.
    pub(super) async fn restore(
        &mut self,
        why: Option<CursorExpiry>,
        standing: &Standing,
    ) -> Result<Option<Following>, Over> {
        let (Some(from), Some(download)) = (self.config.restore.clone(), self.artifacts.download)
        else {
            return Ok(None);
        };
        let log = self.log().await?;
        let evicted = standing.evicted();
        if !self.config.keep_evicted || !protocol::may_lack_evicted(evicted, &log) {
            return Ok(None);
        }
        let Some((manifest, offer)) = self.newest(&from).await? else { return Ok(None) };
        if self.artifacts.unreadable.as_ref() == Some(&manifest) {
            return Ok(None);
        }
        let Ok(mut cursor) = manifest.log_cursor() else { return Ok(None) };
        // Whoever exported it may not have seen the limits.
        cursor.evicted = true;
        if !protocol::restores(evicted, &log, why, offer) {
            tracing::warn!(?offer, "the newest artifact is of no use to this fold");
            return Ok(None);
        }
        let (shared, scope) = (Arc::clone(&self.control.shared), self.config.scope.clone());
        tracing::info!(revision = cursor.position.revision, "restoring from an artifact");
        self.control.status.send_modify(|status| status.restoring = true);
        let staged = unless_shut_down(&shared, download(&from, manifest.clone(), &scope)).await;
        self.control.status.send_modify(|status| status.restoring = false);
        let staged = match staged? {
            Ok(staged) => staged,
            Err(error) => {
                tracing::warn!(%error, "the artifact was not downloaded; listing the bucket");
                return Ok(None);
            }
        };
        let rule = Restoring {
            revision: cursor.position.revision,
            head: log.last,
            same_log: standing.is_of(cursor.position.incarnation, why),
            may_be_incomplete: offer.may_be_incomplete,
        };
        if let Err(over) = self.take_over(why, staged, rule, &cursor).await {
            // The fold is in repair, so that a listing follows.
            self.artifacts.unreadable = Some(manifest);
            return Err(over);
        }
        self.artifacts.imported = Some(manifest);
        match self.prove(&cursor).await? {
            Ok(proven) => self.follow(proven).await.map(Some),
            // It was proven before the download: the log has gone on since.
            Err(why) => Err(Over::Tripped(why)),
        }
    }

    /// The newest artifact of the bucket, if there is one that can be read.
    async fn newest(&mut self, from: &Restore) -> Result<Option<(ExportManifest, Offer)>, Over> {
        let shared = Arc::clone(&self.control.shared);
        let watcher = Arc::clone(&self.config.watcher);
        let newest = async {
            let Some(pointer) = from.transport.pointer(&from.key).await? else { return Ok(None) };
            let verdict = judge(&*watcher, &pointer.manifest).await?;
            let cursor = pointer.manifest.log_cursor();
            let may_be_incomplete = cursor.is_ok_and(|cursor| cursor.incomplete);
            Ok(Some((pointer.manifest, Offer { verdict, may_be_incomplete })))
        };
        match unless_shut_down(&shared, newest).await? {
            Ok(newest) => Ok(newest),
            // The bucket is away: so would be its listing.
            Err(TransportError::Log(error)) => Err(Over::Lost(error)),
            Err(error) => {
                tracing::warn!(%error, "there is no artifact to restore from");
                Ok(None)
            }
        }
    }

    /// The fold becomes what the artifact is.
    async fn take_over(
        &mut self,
        why: Option<CursorExpiry>,
        staged: Staged,
        rule: Restoring,
        cursor: &LogCursor,
    ) -> Result<(), Over> {
        self.control.shared.note_received(0);
        if let Some(why) = why {
            self.control.status.send_modify(|status| status.begin_repair(why));
        }
        let incarnation = if rule.same_log { cursor.position.incarnation } else { 0 };
        let in_repair = LogCursor::in_repair(&self.config.scope, true, incarnation);
        self.send(Command::BeginResync { cursor: in_repair, lists: false }).await?;
        let (finished, end) = oneshot::channel();
        let cursor = cursor.clone();
        let from = RestoreFrom { staged, rule, cursor, finished };
        self.send(Command::Restore(Box::new(from))).await?;
        match end.await {
            Ok(RestoreEnd::Complete) => Ok(()),
            Ok(RestoreEnd::Failed(error)) => {
                tracing::warn!(%error, "the artifact cannot be read; listing the bucket");
                Err(Over::Tripped(CursorExpiry::Interrupted))
            }
            Ok(RestoreEnd::ShutDown) | Err(_) => Err(Over::Ended),
        }
    }
}
