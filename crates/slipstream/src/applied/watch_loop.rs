//! The task that keeps a watch running: arms it, repairs the fold when the cursor has expired, and
//! hands batches to the thread that stores them.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, sleep_until, timeout};

use super::FoldConfig;
use super::apply_loop::{Command, Listing, Standing};
use super::batches::Batches;
use super::export::ExportRequest;
use super::status::{Control, Repair, Shared};
use crate::kv::{CursorExpiry, KvError, KvWatcher, LogInfo, Watch, WatchCursor, WatchEvent};
use crate::protocol::{self, Advance, Guard, Vanished};

/// A server without a leader forgets questions, so they are asked again after a while.
const ASK_AGAIN: Duration = Duration::from_secs(3);
const ASK_TIMES: u32 = 10;

/// How long an ending fold waits to hear that it may store what it has.
const LAST_READING: Duration = Duration::from_secs(1);

/// No watch asks more often whether it has missed anything.
const PROBE_MIN: Duration = Duration::from_millis(100);

pub(super) struct WatchLoop {
    config: FoldConfig,
    control: Control,
    to_fold: mpsc::Sender<Command>,
    /// Whether a watch has ever been armed: then the bucket was there, and we were welcome.
    armed: bool,
    /// Whether anything was handed over since the last interruption.
    progressed: bool,
    /// How often in a row nothing was.
    failures: u32,
    /// A request that waits for everything before it to be stored.
    requested: Option<ExportRequest>,
}

/// Why a watch is over.
enum Over {
    /// Somebody said so, or the store failed for good, which its thread reports.
    Ended,
    Lost(KvError),
    Tripped(CursorExpiry),
}

impl From<KvError> for Over {
    fn from(error: KvError) -> Self {
        Self::Lost(error)
    }
}

/// How a watch begins.
struct Armed {
    watch: Box<dyn Watch>,
    /// As it was read before that.
    log: LogInfo,
    /// Set if it begins with a listing.
    listing: Option<Relist>,
}

/// What a listing has to make good.
struct Relist {
    /// Whether the fold was compared with the bucket before; a new one has nothing to compare.
    is_repair: bool,
}

/// What a watch goes by, as the log was when it began.
#[derive(Clone, Copy)]
struct LogBasis {
    incarnation: u64,
    vanished: Vanished,
    /// How long the marks of expired keys last.
    marker_ttl: Option<Duration>,
}

type Reading = Pin<Box<dyn Future<Output = Result<LogInfo, KvError>> + Send>>;

impl WatchLoop {
    pub(super) fn new(
        config: FoldConfig,
        control: Control,
        to_fold: mpsc::Sender<Command>,
    ) -> Self {
        Self {
            config,
            control,
            to_fold,
            armed: false,
            progressed: false,
            failures: 0,
            requested: None,
        }
    }

    /// Watches until it is told to stop, or an error does not heal.
    pub(super) async fn run(&mut self) -> Result<(), KvError> {
        let shared = Arc::clone(&self.control.shared);
        loop {
            // Everything that was handed over has been stored by then.
            let Ok(standing) = self.standing().await else { return Ok(()) };
            let over = match self.watch_once(&standing).await {
                Ok(never) => match never {},
                Err(over) => over,
            };
            self.failures =
                if std::mem::take(&mut self.progressed) { 1 } else { self.failures + 1 };
            let failures = self.failures;
            match over {
                Over::Ended => return Ok(()),
                Over::Lost(error) if !heals(&error, self.armed) => return Err(error),
                Over::Lost(error) => {
                    tracing::warn!(%error, failures, "the watch was lost; arming it again");
                    self.control.status.send_modify(|status| status.trouble = Some(error));
                }
                Over::Tripped(why) => {
                    tracing::warn!(%why, failures, "updates may have been missed; arming it again");
                }
            }
            let wait = sleep(protocol::backoff(failures));
            if unless_shut_down(&shared, wait).await.is_err() {
                return Ok(());
            }
        }
    }

    async fn watch_once(&mut self, standing: &Standing) -> Result<Infallible, Over> {
        let armed = self.arm(standing).await?;
        self.armed = true;
        self.control.status.send_modify(|status| status.trouble = None);
        self.follow(armed).await
    }

    /// A3.
    async fn arm(&mut self, standing: &Standing) -> Result<Armed, Over> {
        let shared = Arc::clone(&self.control.shared);
        let cursor = &standing.cursor;
        // Before the watch, so that a log made anew in between is noticed.
        let log = self.log().await?;
        if standing.has_orphans {
            return self.repair(CursorExpiry::Missing).await;
        }
        let arming = self.config.watcher.watch(&self.config.scope, cursor);
        match unless_shut_down(&shared, patiently(self.failures, arming)).await? {
            Ok(watch) => {
                tracing::debug!(position = watch.position(), "armed");
                let listing = cursor.is_none().then_some(Relist { is_repair: false });
                Ok(Armed { watch, log, listing })
            }
            // The fold is of other keys. What would have to go may be nowhere else.
            Err(error @ KvError::CursorExpired(CursorExpiry::OtherScope)) => Err(error.into()),
            Err(KvError::CursorExpired(why)) => self.repair(why).await,
            Err(error) => Err(error.into()),
        }
    }

    /// The cursor is of no use: what the bucket no longer has leaves the fold, and then everything
    /// is listed (P6).
    async fn repair(&mut self, why: CursorExpiry) -> Result<Armed, Over> {
        let shared = Arc::clone(&self.control.shared);
        tracing::warn!(%why, "the cursor has expired; listing the bucket");
        self.control.status.send_modify(|status| {
            let at = SystemTime::now();
            status.last_repair = Some(Repair { why, deleted: 0, unconfirmed: 0, at });
            status.repairs += 1;
            status.synced = false;
            // Of another log, the number that the fold was at says nothing.
            if !matches!(why, CursorExpiry::BelowFloor { .. }) {
                status.applied = 0;
            }
        });
        let log = self.log().await?;
        let vanished = protocol::vanished(self.config.reader.is_some(), &log.retention);
        let mut deletes_stored = false;
        if vanished == Vanished::Delete {
            let listing = self.keys(&log).await?;
            let deleted = self.sweep(&listing, true).await?;
            deletes_stored = true;
            self.note_deleted(deleted);
        }
        assert!(protocol::relist_may_start(vanished, deletes_stored), "P6");
        let nothing = WatchCursor::none();
        let listing = self.config.watcher.watch(&self.config.scope, &nothing);
        let watch = unless_shut_down(&shared, patiently(self.failures, listing)).await??;
        let relist = Relist { is_repair: true };
        Ok(Armed { watch, log, listing: Some(relist) })
    }

    /// The keys that the bucket has, whose log was read before.
    async fn keys(&mut self, before: &LogInfo) -> Result<Arc<Listing>, Over> {
        let shared = Arc::clone(&self.control.shared);
        let reader = self.config.reader.clone().expect("nothing is deleted without a reader");
        let mut live = std::collections::HashSet::new();
        for prefix in self.config.scope.prefixes() {
            live.extend(unless_shut_down(&shared, reader.keys(prefix)).await??);
        }
        // The listing is of that log. And somebody may just have told the bucket to forget current
        // values (P5).
        let log = self.log().await?;
        let guard = protocol::live_guard(before.incarnation, log.last, before.last, &log);
        if let Guard::Trip(why) = guard {
            return Err(Over::Tripped(why));
        }
        if protocol::vanished(true, &log.retention) == Vanished::Keep {
            let cause = "the bucket began to forget current values as its keys were listed";
            return Err(Over::Lost(KvError::WatchError(cause.into())));
        }
        Ok(Arc::new(Listing { live, up_to: before.last, end: log.last }))
    }

    /// Deletes from the fold what the bucket does not have; returns how many, when that is stored.
    /// The cursor goes too, if it is to be forgotten.
    async fn sweep(&mut self, listing: &Arc<Listing>, forget: bool) -> Result<u64, Over> {
        let (deleted, answer) = oneshot::channel();
        self.send(Command::Sweep { forget, listing: Arc::clone(listing), deleted }).await?;
        let deleted = answer.await.map_err(|_| Over::Ended)?;
        tracing::info!(deleted, "the fold has no key that the bucket did not list");
        Ok(deleted)
    }

    /// By the repair that goes on.
    fn note_deleted(&self, deleted: u64) {
        self.control.status.send_modify(|status| {
            if let Some(repair) = &mut status.last_repair {
                repair.deleted += deleted;
            }
        });
    }

    /// The log may have forgotten that keys were deleted.
    async fn make_good(
        &mut self,
        why: CursorExpiry,
        batches: &mut Batches,
        basis: LogBasis,
    ) -> Result<(), Over> {
        if !protocol::made_good_by_comparing(why, basis.vanished) {
            return Err(Over::Tripped(why));
        }
        tracing::info!(%why, "deletes may have been missed; comparing with the bucket's keys");
        let (deleted, _) = self.compare(batches, basis).await?;
        self.control.status.send_modify(|status| {
            status.comparisons += 1;
            status.deleted_by_compare += deleted;
        });
        Ok(())
    }

    /// Compares the fold with the bucket under a running watch, which goes on (P7). That needs no
    /// order: what is newer than the comparison is left alone. Returns how many keys were deleted,
    /// and the log as it was before.
    async fn compare(
        &mut self,
        batches: &mut Batches,
        basis: LogBasis,
    ) -> Result<(u64, LogInfo), Over> {
        self.hand_over(batches).await?;
        let log = self.log().await?;
        let received = batches.made_good();
        let guard = protocol::live_guard(basis.incarnation, log.last, received, &log);
        if let Guard::Trip(why) = guard {
            return Err(Over::Tripped(why));
        }
        let listing = self.keys(&log).await?;
        let deleted = self.sweep(&listing, false).await?;
        batches.compared(listing, &log);
        Ok((deleted, log))
    }

    /// Reads a watch until it is over.
    async fn follow(&mut self, armed: Armed) -> Result<Infallible, Over> {
        let Armed { mut watch, log, listing } = armed;
        let basis = LogBasis {
            incarnation: log.incarnation,
            vanished: protocol::vanished(self.config.reader.is_some(), &log.retention),
            marker_ttl: log.retention.marker_ttl,
        };
        let repairs = listing.as_ref().is_some_and(|relist| relist.is_repair);
        let report = repairs && basis.vanished == Vanished::Keep;
        let (revision, lists) = (watch.position(), listing.is_some());
        self.send(Command::Arm { revision, lists, report }).await?;
        let config = self.config.batch;
        let mut batches = match lists {
            true => Batches::listing(config, &log, basis.vanished),
            false => Batches::going_on(config, &log, revision, &watch.cursor(), basis.vanished),
        };
        let mut reading = None;
        let read_on = self.read_on(&mut watch, &mut batches, &mut reading, listing, basis);
        let Err(over) = read_on.await;
        // Whatever it was at when it was told to stop.
        if matches!(over, Over::Ended) && self.control.shared.is_shut_down() {
            self.end(watch, batches, reading, basis).await?;
        }
        Err(over)
    }

    async fn read_on(
        &mut self,
        watch: &mut Box<dyn Watch>,
        batches: &mut Batches,
        reading: &mut Option<Reading>,
        mut listing: Option<Relist>,
        basis: LogBasis,
    ) -> Result<Infallible, Over> {
        let shared = Arc::clone(&self.control.shared);
        let lists = listing.is_some();
        let to_fold = self.to_fold.clone();
        // What expires must be heard in time.
        let in_time = basis.marker_ttl.map_or(Duration::MAX, |ttl| ttl / 4).max(PROBE_MIN);
        let every = self.config.probe_interval.min(in_time);
        let mut tick = interval_at(Instant::now() + every, every);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // A fold that is being listed is half of one.
            if listing.is_none() {
                self.export(batches, reading, basis).await?;
            }
            if reading.is_none() && batches.ask() {
                *reading = Some(self.read());
            }
            let (has_ready, has_room) = (batches.has_ready(), batches.has_room());
            let deadline = batches.deadline();
            let (into, room) = batches.room();
            tokio::select! {
                biased;
                () = shared.shutdown() => return Err(Over::Ended),
                permit = to_fold.reserve(), if has_ready => {
                    let permit = permit.map_err(|_| Over::Ended)?;
                    permit.send(Command::Batch(batches.next_ready().expect("one is ready")));
                    self.progressed = true;
                }
                log = answer(reading) => {
                    *reading = None;
                    let log = log?;
                    self.note(&log);
                    if let Err(why) = batches.on_floor(&log) {
                        self.make_good(why, batches, basis).await?;
                    }
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    batches.close(|| watch.cursor());
                }
                event = watch.next(into, room), if has_room => match event? {
                    WatchEvent::Updates { pending, stored_at_ns } => {
                        self.note_head(watch.position().saturating_add(pending));
                        if batches.gathered(stored_at_ns, pending) {
                            batches.close(|| watch.cursor());
                        }
                    }
                    WatchEvent::Synced { through } => {
                        batches.close(|| watch.cursor());
                        if let Some(relist) = listing.take() {
                            let vouched = self.vouch(batches, reading, basis);
                            unless_shut_down(&shared, vouched).await??;
                            self.listed(batches, &relist, through, basis).await?;
                        }
                        let checked = lists;
                        watch.advance(through);
                        batches.pass(through, checked, true, watch.cursor());
                    }
                },
                Some(request) = self.control.exports.recv(), if listing.is_none() => {
                    batches.close(|| watch.cursor());
                    self.requested = Some(request);
                }
                () = to_fold.closed() => return Err(Over::Ended),
                _ = tick.tick() => self.mark(watch, batches, basis).await?,
                () = shared.poke.notified() => self.mark(watch, batches, basis).await?,
            }
        }
    }

    /// All that the bucket held has been gathered. Deletes may have come and been forgotten since the
    /// fold was compared with the bucket; if so, compare again.
    async fn listed(
        &mut self,
        batches: &mut Batches,
        relist: &Relist,
        through: u64,
        basis: LogBasis,
    ) -> Result<(), Over> {
        let mut log = self.log().await?;
        if let Guard::Trip(why) = protocol::live_guard(basis.incarnation, log.last, through, &log) {
            return Err(Over::Tripped(why));
        }
        if !batches.has_all_deletes(&log) {
            let deleted;
            (deleted, log) = self.compare(batches, basis).await?;
            if relist.is_repair {
                self.note_deleted(deleted);
            }
        }
        batches.guard_from_here(&log);
        Ok(())
    }

    /// A quiet watch asks whether it has missed anything, and passes what was not for it.
    async fn mark(
        &mut self,
        watch: &mut Box<dyn Watch>,
        batches: &mut Batches,
        basis: LogBasis,
    ) -> Result<(), Over> {
        if !batches.is_quiet() || !batches.is_guarded() {
            return Ok(());
        }
        let shared = Arc::clone(&self.control.shared);
        let marker = unless_shut_down(&shared, watch.progress()).await??;
        self.control.status.send_modify(|status| status.head = marker.head);
        let missed = match protocol::advance(basis.incarnation, batches.made_good(), &marker) {
            Advance::Trip(why) => Some(why),
            _ if basis.marker_ttl.is_none() => None,
            // Read after the consumer was asked: marks that were there then were sent.
            _ => {
                let all = batches.has_all_tombstones(&self.log().await?);
                (!all).then_some(CursorExpiry::TombstonesExpired)
            }
        };
        if let Some(why) = missed {
            self.make_good(why, batches, basis).await?;
        }
        if !protocol::under_way(&marker) {
            watch.advance(marker.head);
            batches.pass(marker.head, true, false, watch.cursor());
        }
        Ok(())
    }

    /// Everything gathered goes to the store before a request does.
    async fn export(
        &mut self,
        batches: &mut Batches,
        reading: &mut Option<Reading>,
        basis: LogBasis,
    ) -> Result<(), Over> {
        if self.requested.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(&self.control.shared);
        unless_shut_down(&shared, self.vouch(batches, reading, basis)).await??;
        self.hand_over(batches).await?;
        match self.requested.take() {
            Some(request) => self.send(Command::Export(request)).await,
            None => Ok(()),
        }
    }

    /// Told to stop: stores what was gathered, if the floor allows it and can be read quickly.
    async fn end(
        &mut self,
        watch: Box<dyn Watch>,
        mut batches: Batches,
        mut reading: Option<Reading>,
        basis: LogBasis,
    ) -> Result<(), Over> {
        batches.close(|| watch.cursor());
        let vouched = timeout(LAST_READING, self.vouch(&mut batches, &mut reading, basis)).await;
        if !matches!(vouched, Ok(Ok(()))) {
            tracing::info!("what was received last could not be vouched for; it is read again");
        }
        self.hand_over(&mut batches).await
    }

    async fn vouch(
        &mut self,
        batches: &mut Batches,
        reading: &mut Option<Reading>,
        basis: LogBasis,
    ) -> Result<(), Over> {
        while batches.has_awaiting_floor() {
            if reading.is_none() && batches.ask() {
                *reading = Some(self.read());
            }
            let log = answer(reading).await?;
            *reading = None;
            if let Err(why) = batches.on_floor(&log) {
                self.make_good(why, batches, basis).await?;
            }
        }
        Ok(())
    }

    async fn hand_over(&mut self, batches: &mut Batches) -> Result<(), Over> {
        // A batch that is taken out is handed over, whoever stops waiting.
        while batches.has_ready() {
            let permit = self.to_fold.reserve().await.map_err(|_| Over::Ended)?;
            permit.send(Command::Batch(batches.next_ready().expect("one is ready")));
            self.progressed = true;
        }
        Ok(())
    }

    async fn send(&mut self, command: Command) -> Result<(), Over> {
        self.to_fold.send(command).await.map_err(|_| Over::Ended)
    }

    async fn standing(&mut self) -> Result<Standing, Over> {
        let (reply, answer) = oneshot::channel();
        self.send(Command::Where(reply)).await?;
        answer.await.map_err(|_| Over::Ended)
    }

    fn read(&self) -> Reading {
        let watcher = Arc::clone(&self.config.watcher);
        Box::pin(async move { ask_log(&*watcher).await })
    }

    async fn log(&mut self) -> Result<LogInfo, Over> {
        let shared = Arc::clone(&self.control.shared);
        let log = unless_shut_down(&shared, ask_log(&*self.config.watcher)).await??;
        self.note(&log);
        Ok(log)
    }

    /// The log goes at least so far, and the fold does not yet.
    fn note_head(&self, head: u64) {
        self.control.status.send_if_modified(|status| {
            let news = head > status.head || (head > status.applied && !status.behind);
            if news {
                status.head = status.head.max(head);
                status.behind = true;
            }
            news
        });
    }

    fn note(&self, log: &LogInfo) {
        self.control.status.send_modify(|status| {
            status.head = log.last;
            status.evicts_current_values = protocol::evicts_current_values(&log.retention);
        });
    }
}

async fn ask_log(watcher: &dyn KvWatcher) -> Result<LogInfo, KvError> {
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

/// Never ready while nothing is read.
async fn answer(reading: &mut Option<Reading>) -> Result<LogInfo, KvError> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}

async fn unless_shut_down<T>(shared: &Shared, work: impl Future<Output = T>) -> Result<T, Over> {
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
