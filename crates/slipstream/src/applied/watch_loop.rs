//! The watch loop: keeps a watch running. It arms one from the fold's cursor, or begins a resync where
//! the cursor is of no use, and waits before it tries again.

mod restore;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};

pub(super) use self::restore::Artifacts;
use super::FoldConfig;
use super::command::{Command, Standing};
use super::export::ExportRequest;
use super::follow::Following;
use super::purge::PurgeCheck;
use super::status::{Control, FoldStatus, Repair, Shared};
use crate::kv::{CursorExpiry, KvError, KvWatcher, LogCursor, LogInfo, Watch};
use crate::protocol;

/// A server without a leader forgets questions, so they are asked again after a while.
const ASK_AGAIN: Duration = Duration::from_secs(3);
const ASK_TIMES: u32 = 10;

pub(super) struct WatchLoop {
    pub(super) config: FoldConfig,
    pub(super) control: Control,
    pub(super) to_apply: mpsc::Sender<Command>,
    pub(super) purge_check: PurgeCheck,
    /// Whether a watch has ever been armed: then the bucket was there, and we were welcome.
    armed: bool,
    /// Whether anything was handed over since the last interruption.
    pub(super) progressed: bool,
    /// How often in a row nothing was.
    failures: u32,
    /// How many listings in a row were not whole.
    pub(super) not_whole: u32,
    /// Whether a listing was begun that has not come to its end.
    pub(super) is_listing: bool,
    /// Why the fold is in repair, until a listing has begun.
    owed: Option<CursorExpiry>,
    /// A request that waits for everything before it to be stored.
    pub(super) requested: Option<ExportRequest>,
    pub(super) artifacts: Artifacts,
}

/// A watch from a cursor that the resume guard has passed.
struct Proven {
    watch: Box<dyn Watch>,
    /// As the log was before the watch began.
    log: LogInfo,
    cursor: LogCursor,
}

/// Why a watch is over.
pub(super) enum Over {
    /// Somebody said so, or the store failed for good, which its thread reports.
    Ended,
    Lost(KvError),
    /// What was read is not known to be whole. The stored cursor decides how to go on: it is proven
    /// again, or it is in repair.
    Tripped(CursorExpiry),
    /// The same, and the cursor was proven before the loss: an in-repair cursor has taken its place.
    Resync(CursorExpiry),
}

impl From<KvError> for Over {
    fn from(error: KvError) -> Self {
        Self::Lost(error)
    }
}

impl WatchLoop {
    pub(super) fn new(
        config: FoldConfig,
        control: Control,
        to_apply: mpsc::Sender<Command>,
        purge_check: PurgeCheck,
        artifacts: Artifacts,
    ) -> Self {
        Self {
            config,
            control,
            to_apply,
            purge_check,
            armed: false,
            progressed: false,
            failures: 0,
            not_whole: 0,
            is_listing: false,
            owed: None,
            requested: None,
            artifacts,
        }
    }

    /// Watches until it is told to stop, or an error does not heal.
    pub(super) async fn run(&mut self) -> Result<(), KvError> {
        let shared = Arc::clone(&self.control.shared);
        loop {
            let Err(over) = self.watch_once().await;
            self.failures =
                if std::mem::take(&mut self.progressed) { 1 } else { self.failures + 1 };
            let failures = self.failures;
            match over {
                Over::Ended => return Ok(()),
                Over::Lost(error) if !heals(&error, self.armed) => return Err(error),
                Over::Lost(error) => {
                    tracing::warn!(%error, failures, "the watch was lost; arming it again");
                    self.note_error(error);
                }
                Over::Tripped(why) => {
                    tracing::warn!(%why, failures, "updates may have been missed; arming again");
                    self.note_error(KvError::CursorExpired(why));
                }
                Over::Resync(why) => {
                    tracing::warn!(%why, failures, "deletes may have been missed");
                    self.note_error(KvError::CursorExpired(why));
                    self.owed = Some(why);
                }
            }
            let wait = sleep(protocol::backoff(failures));
            if unless_shut_down(&shared, wait).await.is_err() {
                return Ok(());
            }
        }
    }

    fn note_error(&self, error: KvError) {
        self.control.status.send_modify(|status| status.watch_error = Some(error));
    }

    async fn watch_once(&mut self) -> Result<Infallible, Over> {
        // Everything that was handed over has been stored by then.
        let standing = self.standing().await?;
        let following = self.arm(standing).await?;
        self.armed = true;
        self.control.status.send_modify(|status| status.watch_error = None);
        following.run(self).await
    }

    /// A watch that goes on from the stored cursor, or one that begins a resync (A3).
    async fn arm(&mut self, mut standing: Standing) -> Result<Following, Over> {
        let why = match standing.cursor.clone() {
            Ok(Some(cursor)) => match cursor.check(&self.config.scope) {
                // The fold is of other keys. What would have to go may be nowhere else.
                Err(other @ CursorExpiry::OtherScope) => {
                    return Err(KvError::CursorExpired(other).into());
                }
                Err(in_repair) => Some(self.owed.unwrap_or(in_repair)),
                Ok(()) => match self.resume_or_complete(&cursor, &mut standing).await? {
                    Ok(following) => return Ok(following),
                    Err(why) => Some(why),
                },
            },
            Err(why) => Some(why),
            Ok(None) if standing.has_orphans => Some(CursorExpiry::Missing),
            Ok(None) => None,
        };
        match self.restore(why, &mut standing).await? {
            Some(following) => Ok(following),
            None => self.list(why, &standing).await,
        }
    }

    /// A watch from the cursor, or from an artifact that has what the fold may lack; or why the cursor
    /// has expired. Nobody would read a watch while an artifact is downloaded, so that it is armed again
    /// if none was of use.
    async fn resume_or_complete(
        &mut self,
        cursor: &LogCursor,
        standing: &mut Standing,
    ) -> Result<Result<Following, CursorExpiry>, Over> {
        let mut proven = self.prove(cursor).await?;
        if proven.is_ok() && cursor.incomplete && self.config.restore.is_some() {
            drop(proven);
            let restored = self.restore(Some(CursorExpiry::Incomplete), standing).await?;
            if let Some(restored) = restored {
                return Ok(Ok(restored));
            }
            proven = self.prove(cursor).await?;
        }
        match proven {
            Ok(proven) => self.follow(proven).await.map(Ok),
            Err(why) => Ok(Err(why)),
        }
    }

    /// A watch from the cursor; or why it has expired.
    async fn prove(&mut self, cursor: &LogCursor) -> Result<Result<Proven, CursorExpiry>, Over> {
        let shared = Arc::clone(&self.control.shared);
        // Before the watch, so that a log made anew in between is noticed.
        let log = self.log().await?;
        let imported = self.artifacts.imported.as_ref();
        let known = imported.and_then(|manifest| Some((manifest, manifest.known_at(cursor)?)));
        if let Some((manifest, _)) = &known {
            // The fold is of other keys, and those that would have to go may be nowhere else.
            let fits = manifest.check_bucket(self.config.watcher.bucket());
            fits.map_err(|why| KvError::Config(format!("the artifact of the fold: {why}")))?;
        }
        let cursor = known.as_ref().map_or(cursor, |(_, known)| known);
        let arming = self.config.watcher.watch_from(&self.config.scope, Some(cursor));
        match unless_shut_down(&shared, patiently(self.failures, arming)).await? {
            Ok(watch) => Ok(Ok(Proven { watch, log, cursor: cursor.clone() })),
            Err(KvError::CursorExpired(why)) => Ok(Err(why)),
            Err(error) => Err(error.into()),
        }
    }

    /// The fold goes on with a watch from its cursor.
    async fn follow(&mut self, proven: Proven) -> Result<Following, Over> {
        let Proven { watch, log, cursor } = proven;
        let (revision, incomplete) = (watch.position(), cursor.incomplete);
        tracing::debug!(revision, "armed");
        self.control.shared.note_received(revision);
        self.artifacts.outrun = 0;
        self.send(Command::Resume { revision, incomplete }).await?;
        Ok(Following::resumed(watch, log, &cursor, &self.config))
    }

    /// Begins a resync by listing the bucket: of a fold whose cursor has expired, or of a new one.
    async fn list(
        &mut self,
        why: Option<CursorExpiry>,
        standing: &Standing,
    ) -> Result<Following, Over> {
        let shared = Arc::clone(&self.control.shared);
        let log = self.log().await?;
        let is_again = std::mem::replace(&mut self.is_listing, true);
        self.control.shared.note_received(0);
        self.control.status.send_modify(|status| match why {
            // The log may be another one since the listing before.
            _ if is_again => status.applied = 0,
            Some(why) => {
                tracing::warn!(%why, "the cursor is of no use; listing the bucket");
                status.begin_repair(why, false);
            }
            None => {}
        });
        let evicted = standing.evicted() || protocol::evicts_current_values(&log.retention);
        // Of what lies behind the end that the fold knew, a listing that is broken off proves nothing:
        // the log may have lost it and grown since.
        let (incarnation, end) = match standing.is_of(&log, why) {
            true => (log.incarnation, log.last.min(standing.known_end())),
            false => (0, log.last),
        };
        let cursor = LogCursor::in_repair(&self.config.scope, evicted, incarnation, end);
        self.send(Command::BeginResync { cursor, lists: true }).await?;
        self.owed = None;
        let listing = self.config.watcher.watch_from(&self.config.scope, None);
        let watch = unless_shut_down(&shared, patiently(self.failures, listing)).await??;
        Ok(Following::listing(watch, log, evicted, &self.config))
    }

    pub(super) async fn send(&mut self, command: Command) -> Result<(), Over> {
        self.to_apply.send(command).await.map_err(|_| Over::Ended)
    }

    pub(super) async fn standing(&mut self) -> Result<Standing, Over> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Standing(reply)).await?;
        answer.await.map_err(|_| Over::Ended)
    }

    pub(super) async fn log(&mut self) -> Result<LogInfo, Over> {
        let shared = Arc::clone(&self.control.shared);
        let log = unless_shut_down(&shared, ask_log(&*self.config.watcher)).await??;
        self.note(&log);
        Ok(log)
    }

    /// How the log is, to a fold whose cursor is of no use. That it is another one, or was rolled back, is
    /// stored before anything that takes time: a log that goes on hides it, and a fold in repair has no
    /// witnesses to tell.
    pub(super) async fn look(
        &mut self,
        why: Option<CursorExpiry>,
        standing: &mut Standing,
    ) -> Result<LogInfo, Over> {
        let log = self.log().await?;
        if standing.lost_its_log(&log, why) {
            let cursor = LogCursor::in_repair(&self.config.scope, standing.evicted(), 0, log.last);
            self.send(Command::BeginResync { cursor: cursor.clone(), lists: true }).await?;
            (self.owed, standing.cursor) = (why, Ok(Some(cursor)));
        }
        Ok(log)
    }

    /// The watch is at `position`, and the log goes at least to `head`; the fold does not yet.
    pub(super) fn note_received(&self, position: u64, head: u64) {
        self.control.shared.note_received(position);
        self.control.status.send_if_modified(|status| {
            let news = head > status.head || (head > status.applied && !status.behind);
            if news {
                status.head = status.head.max(head);
                status.behind = true;
            }
            news
        });
    }

    pub(super) fn note(&self, log: &LogInfo) {
        self.control.status.send_modify(|status| {
            status.head = log.last;
            status.evicts_current_values = protocol::evicts_current_values(&log.retention);
        });
    }
}

impl FoldStatus {
    pub(super) fn begin_repair(&mut self, why: CursorExpiry, from_artifact: bool) {
        let (deleted, unconfirmed, at, is_over) = (0, 0, SystemTime::now(), false);
        self.last_repair = Some(Repair { why, deleted, unconfirmed, at, from_artifact, is_over });
        self.repairs += 1;
        self.synced = false;
        // Of another log, the number that the fold was at says nothing.
        if !matches!(why, CursorExpiry::BelowFloor { .. }) {
            self.applied = 0;
        }
    }
}

pub(super) async fn ask_log(watcher: &dyn KvWatcher) -> Result<LogInfo, KvError> {
    for _ in 0..ASK_TIMES {
        if let Ok(answer) = timeout(ASK_AGAIN, watcher.log()).await {
            return answer;
        }
    }
    let after_ms = (ASK_AGAIN * ASK_TIMES).as_millis() as u64;
    Err(KvError::Timeout { operation: "the state of the log", after_ms })
}

/// Gives up on a watch that does not begin, later each time.
async fn patiently<T>(
    failures: u32,
    arming: impl Future<Output = Result<T, KvError>>,
) -> Result<T, KvError> {
    let patience = ASK_AGAIN * failures.clamp(1, ASK_TIMES);
    let after_ms = patience.as_millis() as u64;
    match timeout(patience, arming).await {
        Ok(armed) => armed,
        Err(_) => Err(KvError::Timeout { operation: "beginning to watch", after_ms }),
    }
}

pub(super) async fn unless_shut_down<T>(
    shared: &Shared,
    work: impl Future<Output = T>,
) -> Result<T, Over> {
    tokio::select! {
        biased;
        () = shared.shutdown() => Err(Over::Ended),
        done = work => Ok(done),
    }
}

/// Whether an error may go away by itself. A bucket that was there may be made again.
fn heals(error: &KvError, armed: bool) -> bool {
    match error {
        KvError::BucketNotFound { .. } => armed,
        KvError::NotConnected
        | KvError::Unauthorized(_)
        | KvError::Config(_)
        | KvError::InvalidBucketName
        | KvError::InvalidKey(_)
        | KvError::CursorExpired(_)
        | KvError::Unsupported(_) => false,
        _ => true,
    }
}
