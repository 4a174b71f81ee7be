//! Following one watch: its updates become batches, gaps wait for the log's floor, a quiet watch is
//! probed.

mod resync;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until, timeout};

use self::resync::Resync;
use super::FoldConfig;
use super::batches::{Batches, OpenBatch};
use super::command::Command;
use super::watch_loop::{Over, WatchLoop, ask_log, unless_shut_down};
use crate::kv::{CursorExpiry, KvError, LogCursor, LogInfo, Progress, Watch, WatchEvent};
use crate::protocol::{self, Advance, Vanished};

/// How long an ending fold waits for the reading that allows it to store what it has.
const LAST_READING: Duration = Duration::from_secs(1);

/// Tombstones that live shortly do not make a watch ask more often.
const PROBE_MIN: Duration = Duration::from_millis(100);

/// Nobody waits longer for a probe: further away there is no time to name.
const PROBE_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// How often a resync asks whether it has received everything.
const RESYNC_PROBE: Duration = Duration::from_millis(50);

type Reading = Pin<Box<dyn Future<Output = Result<LogInfo, KvError>> + Send>>;

/// One watch, from its beginning to its loss.
pub(super) struct Following {
    watch: Box<dyn Watch>,
    /// As the log was before the watch began.
    began: LogInfo,
    open: OpenBatch,
    batches: Batches,
    /// A reading of the floor that is under way.
    reading: Option<Reading>,
    resync: Option<Resync>,
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
        (at.evicted, at.incomplete) = (cursor.evicted, cursor.incomplete);
        at.position.subjects = cursor.position.subjects;
        let (open, batches) = (OpenBatch::new(config.batch), Batches::resumed(&began, &at));
        Self { watch, began, open, batches, reading: None, resync: None }
    }

    /// A watch that lists the bucket.
    pub(super) fn listing(
        watch: Box<dyn Watch>,
        began: LogInfo,
        evicted: bool,
        config: &FoldConfig,
    ) -> Self {
        let (open, batches) = (OpenBatch::new(config.batch), Batches::in_resync(&began, evicted));
        let resync = Some(Resync::listing());
        Self { watch, began, open, batches, reading: None, resync }
    }

    /// Reads the watch until it is over.
    pub(super) async fn run(mut self, to: &mut WatchLoop) -> Result<Infallible, Over> {
        let Err(over) = self.read_on(to).await;
        // A complete fold stores what was gathered; a resync begins again.
        let shut_down = matches!(over, Over::Ended) && to.control.shared.is_shut_down();
        if shut_down && self.resync.is_none() {
            self.end(to).await?;
        }
        Err(over)
    }

    async fn read_on(&mut self, to: &mut WatchLoop) -> Result<Infallible, Over> {
        let shared = Arc::clone(&to.control.shared);
        let to_apply = to.to_apply.clone();
        // Tombstones are to be read before they expire.
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
            let Self { watch, open, batches, reading, .. } = self;
            let (has_ready, has_room) = (batches.has_ready(), batches.has_room());
            let (before, deadline) = (open.len(), open.deadline());
            let (into, room) = open.room();
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
                    self.close();
                }
                event = watch.next(into, room), if has_room => match event? {
                    WatchEvent::Updates { pending, stored_at_ns } => {
                        let count = open.len() - before;
                        let position = watch.position();
                        to.note_received(position, position.saturating_add(pending));
                        if open.gathered(count, stored_at_ns, pending) {
                            self.close();
                        }
                        // Somebody who writes all the time must not keep a resync from its end.
                        let cut = self.resync.as_ref().and_then(|resync| resync.cut);
                        if cut.is_some_and(|cut| position >= cut.head) {
                            self.check_resync(to).await?;
                        }
                    }
                    WatchEvent::Synced { through } => self.synced(to, through).await?,
                },
                // One at a time: the one before may still wait for a resync that has begun.
                Some(request) = to.control.exports.recv(), if complete && to.requested.is_none() => {
                    self.close();
                    to.requested = Some(request);
                }
                () = to_apply.closed() => return Err(Over::Ended),
                _ = resync_tick.tick(), if listed => self.check_resync(to).await?,
                _ = tick.tick(), if complete => {
                    self.look_at_limits(to).await?;
                    self.probe(to).await?;
                }
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
                self.pass(false, true);
                Ok(())
            }
            Some(resync) => {
                resync.is_listed = true;
                self.check_resync(to).await
            }
        }
    }

    /// Closes the open batch, if it has anything.
    fn close(&mut self) {
        if let Some(batch) = self.open.close(|| self.watch.log_cursor()) {
            self.batches.add(batch);
        }
    }

    /// The watch has passed what was not for it: see [`Batches::pass`].
    fn pass(&mut self, checked: bool, synced: bool) {
        assert!(self.open.is_empty(), "what was gathered comes first");
        self.batches.pass(self.watch.log_cursor(), checked, synced);
    }

    /// Whether nothing is gathered or waits for the floor. Batches may be ready.
    fn is_checked(&self) -> bool {
        self.open.is_empty() && !self.batches.awaits_floor()
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
            Err(why) => self.on_trip(to, why, log).await,
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

    /// A guard of a complete fold has tripped.
    async fn on_trip(
        &mut self,
        to: &mut WatchLoop,
        why: CursorExpiry,
        log: &LogInfo,
    ) -> Result<(), Over> {
        match (why, self.vanished(to, log)) {
            // In a log that evicts, vanished keys are kept, so that a listing would change nothing.
            (CursorExpiry::BelowFloor { .. } | CursorExpiry::TombstonesExpired, Vanished::Keep) => {
                self.batches.pass_gap(log.first - 1, log);
                to.control.status.send_modify(|status| status.passed_gaps += 1);
                Ok(())
            }
            (CursorExpiry::BelowFloor { .. }, Vanished::Delete) => self.overrun(to, log).await,
            (CursorExpiry::TombstonesExpired, Vanished::Delete) => {
                Err(self.owe_listing(to, why).await)
            }
            _ => Err(Over::Tripped(why)),
        }
    }

    async fn progress(&mut self, to: &mut WatchLoop) -> Result<Progress, Over> {
        let shared = Arc::clone(&to.control.shared);
        let marker = unless_shut_down(&shared, self.watch.progress()).await??;
        to.note(&marker.log);
        self.note_limits(&marker.log);
        Ok(marker)
    }

    /// Limits that evict are to be known, also of a log that is written to all the time.
    async fn look_at_limits(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        if !self.is_checked() {
            let shared = Arc::clone(&to.control.shared);
            let log = unless_shut_down(&shared, self.read(to)).await??;
            self.note_limits(&log);
        }
        Ok(())
    }

    /// A watch of a complete fold that has nothing to check asks whether it has missed anything, and
    /// passes what was not for it.
    async fn probe(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        if !self.is_checked() {
            return Ok(());
        }
        let frontier = self.batches.before_gap().revision;
        let marker = self.progress(to).await?;
        let log = marker.log;
        match protocol::advance(self.began.incarnation, frontier, &marker) {
            Advance::Trip(why) => return self.on_trip(to, why, &log).await,
            _ if !self.batches.has_all_tombstones(&log) => {
                return self.on_trip(to, CursorExpiry::TombstonesExpired, &log).await;
            }
            Advance::Wait => return Ok(()),
            Advance::To(head) => {
                self.batches.known.end = self.batches.known.end.max(log.last);
                self.watch.advance(head);
                self.pass(true, false);
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
            return Err(self.owe_listing(to, CursorExpiry::Purged).await);
        }
        if known.subjects != log.subjects {
            known.subjects = log.subjects;
            // A restart compares with it.
            self.batches.restate(self.watch.log_cursor());
        }
        if !to.purge_check.is_due(log.first) {
            return Ok(());
        }
        // A key of the store that is below the floor may have a newer value on its way there.
        self.hand_over(to).await?;
        to.standing().await?;
        let shared = Arc::clone(&to.control.shared);
        let search = to.purge_check.finds_key_below(log.first, Arc::clone(&shared));
        match unless_shut_down(&shared, search).await? {
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
        unless_shut_down(&shared, self.await_floor(to)).await??;
        // What was missed may have begun a resync.
        if self.resync.is_some() {
            return Ok(());
        }
        self.hand_over(to).await?;
        match to.requested.take() {
            Some(request) => {
                let mut cursor = self.watch.remembered();
                self.batches.known.amend(&mut cursor);
                to.send(Command::Export(request, cursor)).await
            }
            None => Ok(()),
        }
    }

    /// Told to stop: stores what was gathered, if the floor allows it and can be read quickly.
    async fn end(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
        self.close();
        let checked = timeout(LAST_READING, self.await_floor(to)).await;
        if !matches!(checked, Ok(Ok(()))) {
            tracing::info!("what was received last could not be checked; it is read again");
        }
        if self.resync.is_some() {
            return Ok(());
        }
        self.hand_over(to).await
    }

    /// Waits until no batch awaits the floor, or a resync begins.
    async fn await_floor(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
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
    let every = every.clamp(Duration::from_millis(1), PROBE_MAX);
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
