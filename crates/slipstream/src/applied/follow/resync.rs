//! The resync of a followed watch: it goes on until everything that it waits for was received, and is
//! then finished by the apply loop.

use tokio::sync::oneshot;

use super::Following;
use crate::applied::command::{Command, Finish, Finished};
use crate::applied::watch_loop::{Over, WatchLoop};
use crate::kv::{CursorExpiry, LogCursor, LogInfo, Progress};
use crate::protocol::{self, Cut, Vanished};

/// A listing that is not whole so many times in a row is one of a server that counts wrongly.
const NOT_WHOLE_MAX: u32 = 3;

/// A resync that goes on, as the watch has it.
pub(super) struct Resync {
    pub(super) lists: bool,
    /// Whether everything that was listed has been received.
    pub(super) is_listed: bool,
    pub(super) cut: Option<Cut>,
}

impl Resync {
    pub(super) fn listing() -> Self {
        Self { lists: true, is_listed: false, cut: None }
    }
}

impl Following {
    /// Every key that is left in the bucket is above the floor, and comes again by itself or is in the
    /// fold already: the same watch goes on, in a resync.
    pub(super) async fn overrun(&mut self, to: &mut WatchLoop, log: &LogInfo) -> Result<(), Over> {
        let before = self.batches.before_gap();
        let cut = protocol::cut(before.revision, before.observed_ms, log);
        tracing::info!(floor = cut.floor, "the log has dropped what was to be read; following on");
        self.hand_over(to).await?;
        let cursor = self.in_repair(to);
        to.send(Command::BeginResync { cursor, lists: false }).await?;
        self.batches.unguard();
        self.reading = None;
        self.resync = Some(Resync { lists: false, is_listed: false, cut: Some(cut) });
        Ok(())
    }

    /// A complete fold needs a listing, whatever its cursor says: so the cursor goes before anything
    /// that can fail.
    pub(super) async fn owe_listing(&mut self, to: &mut WatchLoop, why: CursorExpiry) -> Over {
        let cursor = self.in_repair(to);
        match to.send(Command::BeginResync { cursor, lists: true }).await {
            Ok(()) => Over::Resync(why),
            Err(over) => over,
        }
    }

    fn in_repair(&self, to: &WatchLoop) -> LogCursor {
        let known = &self.batches.known;
        // One that may lack keys may have kept some of another log: see `Standing::is_of`.
        let incarnation = if known.incomplete { 0 } else { self.began.incarnation };
        let end = known.end.max(self.watch.position());
        LogCursor::in_repair(&to.config.scope, known.evicted, incarnation, end)
    }

    /// Ends the resync if everything that it waits for was received (P6).
    pub(super) async fn check_resync(&mut self, to: &mut WatchLoop) -> Result<(), Over> {
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
        let claim = cut.claim(position, &marker).map_err(Over::Tripped)?;
        let Some(revision) = claim else { return Ok(()) };
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
        let cursor = self.complete_cursor(to, cut, marker);
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
        self.batches.guard_from(cut.revision, cut.since_ms);
        self.resync = None;
        // The floor has risen meanwhile: only a probe tells whether what came beyond is all there was.
        if self.watch.position() > cut.revision {
            to.control.shared.poke.notify_one();
        }
        Ok(())
    }

    /// The cursor of the fold when the keys that have vanished are gone.
    fn complete_cursor(&mut self, to: &WatchLoop, cut: Cut, marker: &Progress) -> LogCursor {
        let known = &mut self.batches.known;
        known.end = known.end.max(cut.head).max(self.watch.position());
        known.floor = cut.floor;
        known.subjects = if protocol::is_quiet(marker) { marker.log.subjects } else { 0 };
        if !to.config.keep_evicted {
            known.evicted = protocol::evicts_current_values(&marker.log.retention);
        }
        if self.resync.as_ref().is_some_and(|resync| resync.lists) {
            let keeps = to.config.keep_evicted;
            known.incomplete = keeps && protocol::may_lack_evicted(known.evicted, &marker.log);
        }
        let mut cursor = self.watch.log_cursor();
        known.amend(&mut cursor);
        let position = &mut cursor.position;
        position.revision = cut.revision;
        position.observed_through_ms = position.observed_through_ms.min(cut.since_ms);
        cursor
    }
}
