//! Following one watch: its updates become batches, gaps wait for the log's floor, a resync is
//! finished once everything that it waits for was received.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use super::FoldConfig;
use super::apply_loop::{Command, Finish, Finished};
use super::batches::Batches;
use super::watch_loop::{Over, WatchLoop, ask_log, unless_shut_down};
use crate::kv::{CursorExpiry, KvError, LogCursor, LogInfo, Progress, Watch, WatchEvent};
use crate::protocol::{self, Advance, Cut, Vanished};

/// How long an ending fold waits for the reading that allows it to store what it has.
const LAST_READING: Duration = Duration::from_secs(1);

/// No watch asks more often whether it has missed anything.
const PROBE_MIN: Duration = Duration::from_millis(100);

/// How often a resync asks whether it has received everything.
const RESYNC_PROBE: Duration = Duration::from_millis(50);

/// A listing that is not whole so many times in a row is one of a server that counts wrongly.
const NOT_WHOLE_MAX: u32 = 3;

type Reading = Pin<Box<dyn Future<Output = Result<LogInfo, KvError>> + Send>>;

/// One watch, from its beginning to its loss.
pub(super) struct Following {
    watch: Box<dyn Watch>,
    /// As the log was before the watch began.
    began: LogInfo,
    batches: Batches,
    /// A reading of the floor that is under way.
    reading: Option<Reading>,
    resync: Option<Resync>,
}

/// A resync that goes on.
struct Resync {
    lists: bool,
    /// Whether everything that was listed has been received.
    is_listed: bool,
    cut: Option<Cut>,
}

impl Following {
    /// A watch that goes on from a cursor; `began` was read before.
    pub(super) fn resumed(
        watch: Box<dyn Watch>,
        began: LogInfo,
        cursor: &LogCursor,
        config: &FoldConfig,
    ) -> Self {
        let mut at = watch.log_cursor();
        at.evicted = cursor.evicted;
        at.position.subjects = cursor.position.subjects;
        let batches = Batches::resumed(config.batch, &began, &at);
        Self { watch, began, batches, reading: None, resync: None }
    }

    /// A watch that lists the bucket.
    pub(super) fn listing(
        watch: Box<dyn Watch>,
        began: LogInfo,
        evicted: bool,
        config: &FoldConfig,
    ) -> Self {
        let batches = Batches::in_resync(config.batch, &began, evicted);
        let resync = Some(Resync { lists: true, is_listed: false, cut: None });
        Self { watch, began, batches, reading: None, resync }
    }

    /// Reads the watch until it is over.
    pub(super) async fn run(mut self, to: &mut WatchLoop) -> Result<Infallible, Over> {
        let Err(over) = self.read_on(to).await;
        // Whatever it was doing when it was told to stop. A resync begins again.
        let shut_down = matches!(over, Over::Ended) && to.control.shared.is_shut_down();
        if shut_down && self.resync.is_none() {
            self.end(to).await?;
        }
        Err(over)
    }

    async fn read_on(&mut self, to: &mut WatchLoop) -> Result<Infallible, Over> {
        let shared = Arc::clone(&to.control.shared);
        let to_apply = to.to_apply.clone();
        // What expires must be read in time.
        let in_time = self.began.retention.marker_ttl.map_or(Duration::MAX, |ttl| ttl / 4);
        let every = to.config.probe_interval.min(in_time.max(PROBE_MIN));
        let mut tick = ticks(every);
        let mut resync_tick = ticks(RESYNC_PROBE);
        loop {
            let (complete, listed) = match &self.resync {
                None => (true, false),
                Some(resync) => (false, resync.is_listed || !resync.lists),
            };
            if complete {
                self.export(to).await?;
            }
            if self.reading.is_none() && self.batches.ask() {
                self.reading = Some(self.read(to));
            }
            let Self { watch, batches, reading, .. } = self;
            let (has_ready, has_room) = (batches.has_ready(), batches.has_room());
            let deadline = batches.deadline();
            let (into, room) = batches.room();
            let before = into.len();
            tokio::select! {
                biased;
                () = shared.shutdown() => return Err(Over::Ended),
                permit = to_apply.reserve(), if has_ready => {
                    let permit = permit.map_err(|_| Over::Ended)?;
                    permit.send(Command::Batch(batches.next_ready().expect("one is ready")));
                    to.progressed = true;
                }
                log = answer(reading) => {
                    *reading = None;
                    self.on_floor(to, &log?).await?;
                }
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    batches.close(|| watch.log_cursor());
                }
                event = watch.next(into, room), if has_room => match event? {
                    WatchEvent::Updates { pending, stored_at_ns } => {
                        let count = batches.room().0.len() - before;
                        to.note_head(watch.position().saturating_add(pending));
                        if batches.gathered(count, stored_at_ns, pending) {
                            batches.close(|| watch.log_cursor());
                        }
                        // Somebody who writes all the time must not keep a resync from its end.
                        let cut = self.resync.as_ref().and_then(|resync| resync.cut);
                        if cut.is_some_and(|cut| self.watch.position() >= cut.through) {
                            self.check_resync(to).await?;
                        }
                    }
                    WatchEvent::Synced { through } => self.synced(to, through).await?,
                },
                Some(request) = to.control.exports.recv(), if complete => {
                    batches.close(|| watch.log_cursor());
                    to.requested = Some(request);
                }
                () = to_apply.closed() => return Err(Over::Ended),
                _ = resync_tick.tick(), if listed => self.check_resync(to).await?,
                _ = tick.tick(), if complete => self.probe(to).await?,
                () = shared.poke.notified(), if complete => self.probe(to).await?,
            }
        }
    }

    /// The watch has handed out everything that the log had when it began.
    async fn synced(&mut self, to: &mut WatchLoop, through: u64) -> Result<(), Over> {
        self.close();
        match &mut self.resync {
            None => {
                self.watch.advance(through);
                self.batches.pass(self.watch.log_cursor(), false, true);
                Ok(())
            }
            Some(resync) => {
                resync.is_listed = true;
                self.check_resync(to).await
            }
        }
    }

    fn close(&mut self) {
        let Self { watch, batches, .. } = self;
        batches.close(|| watch.log_cursor());
    }

    /// A reading of the log has come back, for batches with gaps.
    async fn on_floor(&mut self, to: &mut WatchLoop, log: &LogInfo) -> Result<(), Over> {
        // Another connection may be one to a server that has another log.
        if self.watch.is_lost() {
            return Err(Over::Lost(KvError::WatchError("the connection was lost".into())));
        }
        to.note(log);
        self.note_limits(log);
        match self.batches.on_floor(log) {
            Ok(()) => Ok(()),
            Err(why) => self.missed(to, why, log).await,
        }
    }

    fn note_limits(&mut self, log: &LogInfo) {
        self.batches.known.evicted |= protocol::evicts_current_values(&log.retention);
    }

    fn vanished(&self, to: &WatchLoop, log: &LogInfo) -> Vanished {
        match to.config.keep_evicted {
            true => protocol::vanished(self.batches.known.evicted, log),
            false => Vanished::Delete,
        }
    }

    /// A complete fold may have missed that keys were deleted.
    async fn missed(
        &mut self,
        to: &mut WatchLoop,
        why: CursorExpiry,
        log: &LogInfo,
    ) -> Result<(), Over> {
        match (why, self.vanished(to, log)) {
            // They are kept in any case.
            (CursorExpiry::BelowFloor { .. } | CursorExpiry::TombstonesExpired, Vanished::Keep) => {
                self.batches.pass_gap(log.first - 1, log);
                Ok(())
            }
            (CursorExpiry::BelowFloor { .. }, Vanished::Delete) => self.overrun(to, log).await,
            (CursorExpiry::TombstonesExpired, Vanished::Delete) => Err(Over::Resync(why)),
            _ => Err(Over::Tripped(why)),
        }
    }

    /// Every key that is left in the bucket is above the floor, and comes again by itself or is known
    /// already: the same watch goes on, in a resync.
    async fn overrun(&mut self, to: &mut WatchLoop, log: &LogInfo) -> Result<(), Over> {
        let cut = protocol::cut(self.batches.before_gap(), log);
        tracing::info!(floor = cut.floor, "the log has dropped what was to be read; following on");
        self.hand_over(to).await?;
        let evicted = self.batches.known.evicted;
        let cursor = LogCursor::in_repair(&to.config.scope, evicted);
        to.send(Command::BeginResync { cursor, lists: false }).await?;
        self.batches.unguard();
        self.reading = None;
        self.resync = Some(Resync { lists: false, is_listed: false, cut: Some(cut) });
        Ok(())
    }

    /// Ends the resync if everything that it waits for was received (P6).
    async fn check_resync(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        let position = self.watch.position();
        let marker = self.progress(to).await?;
        let Some(resync) = &mut self.resync else { return Ok(()) };
        let cut = match resync.cut {
            Some(cut) => cut,
            None => {
                protocol::check_listing(&self.began, position, &marker).map_err(Over::Tripped)?
            }
        };
        resync.cut = Some(cut);
        let Some(revision) = cut.claim(position, &marker) else { return Ok(()) };
        self.close();
        self.hand_over(to).await?;
        self.finish(to, Cut { revision, ..cut }, &marker).await
    }

    async fn finish(
        &mut self,
        to: &mut WatchLoop,
        cut: Cut,
        marker: &Progress,
    ) -> Result<(), Over> {
        let lists = self.resync.as_ref().is_some_and(|resync| resync.lists);
        // A server that counts wrongly must not keep the fold from being complete.
        let miscounts = to.not_whole >= NOT_WHOLE_MAX;
        let vanished = if miscounts { Vanished::Keep } else { self.vanished(to, &marker.log) };
        let quiet = protocol::is_quiet(marker);
        let counts = lists && quiet && to.config.scope.is_all() && vanished == Vanished::Delete;
        let subjects = counts.then_some(marker.log.subjects);
        let untouched = self.began.last == marker.log.last;
        let observed_ms = match lists {
            true => self.began.read_at_ms,
            false => self.watch.log_cursor().position.observed_through_ms,
        };
        let cursor = self.complete_cursor(to, cut, marker, observed_ms);
        let (finished, answer) = oneshot::channel();
        let floor = cut.floor;
        let finish = Finish { floor, vanished, subjects, untouched, cursor, finished };
        to.send(Command::FinishResync(finish)).await?;
        match answer.await {
            Ok(Finished::Complete) => {}
            Ok(Finished::NotWhole { delivered }) => {
                let subjects = marker.log.subjects;
                tracing::warn!(delivered, subjects, "the listing was not whole");
                to.not_whole += 1;
                return Err(Over::Tripped(CursorExpiry::NotWhole));
            }
            Ok(Finished::ShutDown) | Err(_) => return Err(Over::Ended),
        }
        (to.not_whole, to.is_listing, to.progressed) = (0, false, true);
        to.purge_check.resynced(cut.floor);
        self.watch.advance(cut.revision);
        self.batches.guard_from(cut.revision, observed_ms);
        self.resync = None;
        Ok(())
    }

    /// The cursor of the fold when the keys that have vanished are gone.
    fn complete_cursor(
        &mut self,
        to: &WatchLoop,
        cut: Cut,
        marker: &Progress,
        observed_ms: u64,
    ) -> LogCursor {
        let known = &mut self.batches.known;
        known.end = known.end.max(cut.end).max(self.watch.position());
        known.floor = cut.floor;
        known.subjects = if protocol::is_quiet(marker) { marker.log.subjects } else { 0 };
        if !to.config.keep_evicted {
            known.evicted = protocol::evicts_current_values(&marker.log.retention);
        }
        let mut cursor = self.watch.log_cursor();
        known.amend(&mut cursor);
        let position = &mut cursor.position;
        position.revision = cut.revision;
        position.observed_through_ms = position.observed_through_ms.min(observed_ms);
        cursor
    }

    async fn progress(&mut self, to: &mut WatchLoop) -> Result<Progress, Over> {
        let shared = Arc::clone(&to.control.shared);
        let marker = unless_shut_down(&shared, self.watch.progress()).await??;
        to.note(&marker.log);
        self.note_limits(&marker.log);
        Ok(marker)
    }

    /// A quiet watch of a complete fold asks whether it has missed anything, and passes what was not
    /// for it.
    async fn probe(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        if !self.batches.is_quiet() {
            return Ok(());
        }
        let frontier = self.batches.before_gap();
        let marker = self.progress(to).await?;
        let log = marker.log;
        match protocol::advance(self.began.incarnation, frontier, &marker) {
            Advance::Trip(why) => return self.missed(to, why, &log).await,
            _ if !self.batches.has_all_tombstones(&log) => {
                return self.missed(to, CursorExpiry::TombstonesExpired, &log).await;
            }
            Advance::Wait => return Ok(()),
            Advance::To(head) => {
                self.batches.known.end = self.batches.known.end.max(log.last);
                self.watch.advance(head);
                self.batches.pass(self.watch.log_cursor(), true, false);
            }
        }
        self.look_for_purges(to, &marker).await
    }

    /// Somebody may have purged keys, without a message.
    async fn look_for_purges(&mut self, to: &mut WatchLoop, marker: &Progress) -> Result<(), Over> {
        let log = &marker.log;
        if !protocol::is_quiet(marker) || self.vanished(to, log) == Vanished::Keep {
            return Ok(());
        }
        let known = &mut self.batches.known;
        let fewer = protocol::was_purged(known.subjects, log) && !log.retention.per_message_ttl;
        if fewer {
            return Err(Over::Resync(CursorExpiry::Purged));
        }
        known.subjects = log.subjects;
        // What is on its way to the store has higher versions.
        match to.purge_check.finds_key_below(log.first).await {
            Ok(true) => self.overrun(to, log).await,
            Ok(false) => Ok(()),
            Err(error) => {
                tracing::warn!(%error, "the fold could not be searched for purged keys");
                Ok(())
            }
        }
    }

    /// Everything gathered goes to the store before a request does.
    async fn export(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        if to.requested.is_none() {
            return Ok(());
        }
        let shared = Arc::clone(&to.control.shared);
        unless_shut_down(&shared, self.settle(to)).await??;
        // What was missed may have begun a resync.
        if self.resync.is_some() {
            return Ok(());
        }
        self.hand_over(to).await?;
        match to.requested.take() {
            Some(request) => to.send(Command::Export(request)).await,
            None => Ok(()),
        }
    }

    /// Told to stop: stores what was gathered, if the floor allows it and can be read quickly.
    async fn end(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        self.close();
        let settled = timeout(LAST_READING, self.settle(to)).await;
        if !matches!(settled, Ok(Ok(()))) {
            tracing::info!("what was received last could not be checked; it is read again");
        }
        if self.resync.is_some() {
            return Ok(());
        }
        self.hand_over(to).await
    }

    /// Waits until no batch awaits the floor, or a resync begins.
    async fn settle(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        while self.batches.awaits_floor() {
            if self.reading.is_none() && self.batches.ask() {
                self.reading = Some(self.read(to));
            }
            let log = answer(&mut self.reading).await?;
            self.reading = None;
            self.on_floor(to, &log).await?;
        }
        Ok(())
    }

    async fn hand_over(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        // A batch that is taken out is handed over, whoever stops waiting.
        while self.batches.has_ready() {
            let permit = to.to_apply.reserve().await.map_err(|_| Over::Ended)?;
            permit.send(Command::Batch(self.batches.next_ready().expect("one is ready")));
            to.progressed = true;
        }
        Ok(())
    }

    fn read(&self, to: &WatchLoop) -> Reading {
        let watcher = Arc::clone(&to.config.watcher);
        Box::pin(async move { ask_log(&*watcher).await })
    }
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Never ready while nothing is read.
async fn answer(reading: &mut Option<Reading>) -> Result<LogInfo, KvError> {
    match reading {
        Some(reading) => reading.await,
        None => std::future::pending().await,
    }
}
