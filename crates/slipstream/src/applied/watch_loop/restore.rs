//! Restoring the fold from the newest artifact of its fleet, and reading on from there.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::{Over, WatchLoop, unless_shut_down};
use crate::applied::applier::Applier;
use crate::applied::apply_loop::ApplyLoop;
use crate::applied::command::{Command, Standing};
use crate::applied::follow::Following;
use crate::applied::restore::{Restore, RestoreEnd, RestoreFrom};
use crate::artifact::{ArtifactError, ExportManifest, Staged};
use crate::kv::{CursorExpiry, LogCursor, LogInfo, WatchScope};
use crate::protocol::{self, Offer, Restoring};
use crate::snapshot::SnapshotStore;
use crate::transport::{TransportError, download, not_read, offer_of};

/// The name of a fold that is never there: its stage is made beside it.
const RESTORED: &str = "slipstream-restored";

/// How long a store may take to say which artifact is the newest.
const NEWEST_PATIENCE: Duration = Duration::from_secs(30);

/// How many downloads are tried in a row, of a newer artifact each time or of one that was cut off.
const DOWNLOADS_MAX: u32 = 3;

/// So many restores in a row that the log has gone past before they were done are enough: a listing comes
/// to an end.
const OUTRUN_MAX: u32 = 2;

type Downloading<'a> = Pin<Box<dyn Future<Output = Result<Staged, TransportError>> + Send + 'a>>;
type Download = for<'a> fn(&'a Restore, ExportManifest, &'a WatchScope) -> Downloading<'a>;

/// What the watch loop knows of artifacts, whatever the store is.
pub(in crate::applied) struct Artifacts {
    /// The artifact that the fold was made of, as long as it stands where that did.
    pub(super) imported: Option<ExportManifest>,
    /// One that turned out to be none for this fold when it was read, and why.
    unreadable: Option<(ExportManifest, String)>,
    /// How many restores in a row were of no use when they were done.
    pub(super) outrun: u32,
    /// `None` if the store has no files, or the caller has entries that no artifact has.
    download: Option<Download>,
}

impl Artifacts {
    pub(in crate::applied) fn of<S: SnapshotStore, A: Applier>(fold: &ApplyLoop<S, A>) -> Self {
        let is_all_there_is = S::FILES.is_some() && !fold.applier.keeps_entries();
        let download: Option<Download> = is_all_there_is.then_some(stage::<S>);
        let imported = fold.store.imported().cloned();
        Self { imported, unreadable: None, outrun: 0, download }
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

/// An artifact that was downloaded, and that the log continues.
struct Fetched {
    staged: Staged,
    manifest: ExportManifest,
    cursor: LogCursor,
    offer: Offer,
    /// Read after the download.
    log: LogInfo,
    /// Whether the fold is of the artifact's log, as far as every look at it tells.
    same_log: bool,
}

impl WatchLoop {
    /// A watch that goes on from the newest artifact, when the fold is what that is; `None` if a listing
    /// is as good, or all there is.
    pub(super) async fn restore(
        &mut self,
        why: Option<CursorExpiry>,
        standing: &mut Standing,
    ) -> Result<Option<Following>, Over> {
        let Some(from) = self.config.restore.clone() else { return Ok(None) };
        let log = self.look(why, standing).await?;
        if !self.config.keep_evicted || !protocol::may_lack_evicted(standing.evicted(), &log) {
            return Ok(None);
        }
        match self.fetch(&from, why, standing).await? {
            Ok(fetched) => self.restore_from(fetched, why, standing).await.map(Some),
            Err(reason) => {
                tracing::warn!(reason, "the fold is not restored from an artifact");
                self.control.status.send_modify(|status| status.not_restored = Some(reason));
                Ok(None)
            }
        }
    }

    /// Downloads the newest artifact. If it is replaced or goes meanwhile, the next one; or why there is
    /// none.
    async fn fetch(
        &mut self,
        from: &Restore,
        why: Option<CursorExpiry>,
        standing: &mut Standing,
    ) -> Result<Result<Fetched, String>, Over> {
        let Some(download) = self.artifacts.download else {
            let text = "the store keeps no files, or the applier has entries of its own";
            return Ok(Err(text.to_owned()));
        };
        if self.artifacts.outrun >= OUTRUN_MAX {
            return Ok(Err("the log went past each artifact before it was applied".to_owned()));
        }
        let shared = Arc::clone(&self.control.shared);
        let scope = self.config.scope.clone();
        let mut failed = String::new();
        for attempt in 1..=DOWNLOADS_MAX {
            let manifest = match self.newest(from).await? {
                Ok(manifest) => manifest,
                Err(reason) => return Ok(Err(reason)),
            };
            if let Some((unreadable, why)) = &self.artifacts.unreadable
                && *unreadable == manifest
            {
                return Ok(Err(why.clone()));
            }
            // As far as can be told before it is downloaded.
            if let Err(reason) = self.judge(&manifest, why, standing).await? {
                return Ok(Err(reason));
            }
            tracing::info!(attempt, "restoring from an artifact");
            self.control.status.send_modify(|status| status.restoring = true);
            let staged = unless_shut_down(&shared, download(from, manifest.clone(), &scope)).await;
            self.control.status.send_modify(|status| status.restoring = false);
            match staged? {
                Ok(staged) => match self.judge(&manifest, why, standing).await? {
                    Ok((cursor, offer, log)) => {
                        let same_log = standing.is_of(&log, why);
                        return Ok(Ok(Fetched { staged, manifest, cursor, offer, log, same_log }));
                    }
                    // There may be a newer one by now.
                    Err(reason) => failed = reason,
                },
                Err(error) => {
                    failed = error.to_string();
                    match error {
                        TransportError::Artifact(ArtifactError::Invalid(_)) => {
                            self.artifacts.unreadable = Some((manifest, failed.clone()));
                        }
                        TransportError::Store { .. } => {}
                        _ => return Ok(Err(failed)),
                    }
                }
            }
            unless_shut_down(&shared, sleep(protocol::backoff(attempt))).await?;
        }
        Ok(Err(failed))
    }

    /// Whether the fold may be restored from an artifact now, where that stands, and how the log is.
    async fn judge(
        &mut self,
        manifest: &ExportManifest,
        why: Option<CursorExpiry>,
        standing: &mut Standing,
    ) -> Result<Result<(LogCursor, Offer, LogInfo), String>, Over> {
        let (shared, watcher) =
            (Arc::clone(&self.control.shared), Arc::clone(&self.config.watcher));
        let log = self.look(why, standing).await?;
        let offer = match unless_shut_down(&shared, offer_of(&*watcher, manifest)).await? {
            Ok(offer) => offer.to_fold(standing.evicted(), manifest.evicted),
            // The bucket is away: so would be its listing.
            Err(TransportError::Log(error)) => return Err(Over::Lost(error)),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let cursor = match manifest.log_cursor() {
            Ok(cursor) => cursor,
            Err(why) => return Ok(Err(why.to_string())),
        };
        let here = standing.revision_in(&log, why);
        let fits = protocol::restores(why, here, offer, cursor.position.revision);
        Ok(fits.map(|()| (cursor, offer, log)).map_err(|unfit| unfit.to_string()))
    }

    /// The newest artifact of the bucket; or why there is none that can be read.
    async fn newest(&mut self, from: &Restore) -> Result<Result<ExportManifest, String>, Over> {
        let shared = Arc::clone(&self.control.shared);
        let asking = timeout(NEWEST_PATIENCE, from.transport.pointer(&from.key));
        Ok(match unless_shut_down(&shared, asking).await? {
            Ok(Ok(Some(pointer))) => Ok(pointer.manifest),
            Ok(Ok(None)) => Err(format!("there is no artifact of {:?}", from.key)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("the newest artifact is not known after {NEWEST_PATIENCE:?}")),
        })
    }

    /// The fold becomes what the artifact is, and a watch goes on from there.
    async fn restore_from(
        &mut self,
        fetched: Fetched,
        why: Option<CursorExpiry>,
        standing: &Standing,
    ) -> Result<Following, Over> {
        let Fetched { staged, manifest, mut cursor, offer, log, same_log } = fetched;
        let rule = Restoring {
            revision: cursor.position.revision,
            head: log.last.min(standing.known_end()),
            same_log,
            may_be_incomplete: offer.may_be_incomplete,
        };
        // Whoever exported it may not have seen the limits.
        (cursor.evicted, cursor.incomplete) = (true, offer.may_be_incomplete);
        cursor.position = protocol::restored_position(cursor.position, &log);
        if let Err(over) = self.take_over(why, staged, rule, &cursor).await {
            // The fold is in repair, so that a listing follows.
            let why = "the newest artifact could not be read to its end".to_owned();
            self.artifacts.unreadable = Some((manifest, why));
            return Err(over);
        }
        self.artifacts.imported = Some(manifest);
        (self.is_listing, self.owed, self.not_whole) = (false, None, 0);
        match self.prove(&cursor).await? {
            Ok(proven) => self.follow(proven).await,
            // It was proven after the download: the log has gone on since.
            Err(why) => {
                self.artifacts.outrun += 1;
                Err(Over::Tripped(why))
            }
        }
    }

    /// Has the artifact applied and stored.
    async fn take_over(
        &mut self,
        why: Option<CursorExpiry>,
        staged: Staged,
        rule: Restoring,
        cursor: &LogCursor,
    ) -> Result<(), Over> {
        self.control.shared.note_received(0);
        if let Some(why) = why {
            self.control.status.send_modify(|status| status.begin_repair(why, true));
        }
        let incarnation = if rule.same_log { cursor.position.incarnation } else { 0 };
        // What the fold has from above may be of a lost log, until each key was looked at.
        let in_repair = LogCursor::in_repair(&self.config.scope, true, incarnation, rule.head);
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
