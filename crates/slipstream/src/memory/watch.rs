//! Watches of a log in memory.

use std::collections::VecDeque;

use async_trait::async_trait;
use tokio::sync::watch;

use super::{Bucket, State};
use crate::kv::{
    KvError, KvUpdate, KvWatcher, LogCursor, LogInfo, Progress, Watch, WatchEvent, WatchScope,
};
use crate::log_cursor::{self, HandedOut, RecentlySeen};
use crate::protocol::Position;
use crate::validate;

#[async_trait]
impl KvWatcher for Bucket {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        let prefixes = scope.prefixes();
        if prefixes.is_empty() {
            return Err(KvError::InvalidKey("a scope needs a prefix"));
        }
        prefixes.into_iter().try_for_each(validate::check_prefix)?;
        let changed = self.shared.changed.subscribe();
        let state = self.lock()?;
        let info = state.log.info();
        let mut watch = MemoryWatch {
            bucket: self.clone(),
            changed,
            scope: scope.clone(),
            scope_hash: log_cursor::scope_hash(scope),
            cuts: state.cuts,
            relist: VecDeque::new(),
            next: info.last + 1,
            position: Position { end: info.last, ..Position::at(info.incarnation, 0) },
            received: 0,
            recent: RecentlySeen::default(),
            unsynced: Some(info.last),
            counted: info.last,
            pending: 0,
        };
        if let Some(cursor) = from {
            cursor.check(scope).map_err(KvError::CursorExpired)?;
            let proven = state.log.resume(cursor)?;
            watch.recent = RecentlySeen::of(cursor, proven);
            watch.position.revision = proven;
            watch.next = proven + 1;
            watch.counted = proven;
            watch.count(&state);
        } else {
            let current = state.log.last_of_each(|key| scope.covers(key));
            let mut revisions: Vec<u64> = current.map(|(revision, _)| revision).collect();
            revisions.sort_unstable();
            watch.pending = revisions.len() as u64;
            watch.relist = revisions.into();
        }
        drop(state);
        Ok(Box::new(watch))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        Ok(self.lock()?.log.info())
    }

    fn bucket(&self) -> Option<&str> {
        Some(&self.shared.name)
    }
}

struct MemoryWatch {
    bucket: Bucket,
    changed: watch::Receiver<()>,
    scope: WatchScope,
    scope_hash: u32,
    /// Of the bucket when the watch began: any later cut ends it.
    cuts: u64,
    /// What is left of the state sync.
    relist: VecDeque<u64>,
    /// Where to read on after it.
    next: u64,
    position: Position,
    received: u64,
    recent: RecentlySeen,
    /// The head when the watch began, until that was reported.
    unsynced: Option<u64>,
    /// Messages up to here are in `pending`.
    counted: u64,
    /// An estimate: what the log forgets stays counted until the watch has caught up.
    pending: u64,
}

impl MemoryWatch {
    fn check(&self, state: &State) -> Result<(), KvError> {
        if state.cuts != self.cuts {
            return Err(KvError::WatchError("the connection was lost".into()));
        }
        Ok(())
    }

    fn count(&mut self, state: &State) {
        let new = state.log.from(self.counted + 1);
        self.pending += new.filter(|(_, one)| self.scope.covers(one.key.as_str())).count() as u64;
        self.counted = state.log.info().last;
    }

    fn take(&mut self, state: &State, into: &mut Vec<KvUpdate>, max: usize) -> Option<WatchEvent> {
        self.count(state);
        let begin = into.len();
        let mut stored_at_ns = 0;
        while into.len() - begin < max
            && let Some(revision) = self.relist.pop_front()
        {
            self.pending = self.pending.saturating_sub(1);
            // Superseded meanwhile: the newer message follows.
            if let Some(message) = state.log.get(revision) {
                into.push(message.update(revision));
                stored_at_ns = message.stored_at_ns;
            }
        }
        for (revision, message) in state.log.from(self.next) {
            if into.len() - begin == max {
                break;
            }
            self.next = revision + 1;
            if self.scope.covers(message.key.as_str()) {
                self.pending = self.pending.saturating_sub(1);
                into.push(message.update(revision));
                stored_at_ns = message.stored_at_ns;
            }
        }
        let taken = &into[begin..];
        let last = taken.last()?.version().as_u64().expect("versions of a log are revisions");
        let before = self.position.revision;
        assert!(last > before, "K1: {last} after {before}");
        (self.position.revision, self.received) = (last, last);
        self.recent.chunk(taken.iter().map(|update| {
            let revision = update.version().as_u64().expect("versions of a log are revisions");
            let stamp = state.log.get(revision).expect("the log is locked").stamp;
            HandedOut { revision, stamp, key: update.key() }
        }));
        Some(WatchEvent::Updates { pending: self.pending, stored_at_ns })
    }

    fn synced(&mut self, state: &State) -> Option<WatchEvent> {
        let through = self.unsynced?;
        let mut rest = state.log.from(self.next).take_while(|(revision, _)| *revision <= through);
        let done = self.relist.is_empty()
            && !rest.any(|(_, message)| self.scope.covers(message.key.as_str()));
        if !done {
            return None;
        }
        self.unsynced = None;
        Some(WatchEvent::Synced { through })
    }
}

#[async_trait]
impl Watch for MemoryWatch {
    async fn next(&mut self, into: &mut Vec<KvUpdate>, max: usize) -> Result<WatchEvent, KvError> {
        assert!(max > 0, "a chunk has at least one update");
        loop {
            self.changed.mark_unchanged();
            {
                let bucket = self.bucket.clone();
                let state = bucket.lock().map_err(|_| KvError::WatchError("unreachable".into()))?;
                self.check(&state)?;
                if let Some(event) = self.synced(&state) {
                    return Ok(event);
                }
                if let Some(event) = self.take(&state, into, max) {
                    return Ok(event);
                }
                self.pending = 0;
            }
            // The sender lives in the bucket that this watch holds.
            self.changed.changed().await.expect("the bucket outlives its watches");
        }
    }

    fn log_cursor(&self) -> LogCursor {
        self.recent.cursor(self.position, self.scope_hash)
    }

    fn remembered(&self) -> LogCursor {
        self.recent.remembered(self.position, self.scope_hash)
    }

    fn position(&self) -> u64 {
        self.position.revision
    }

    fn advance(&mut self, through: u64) {
        self.position.revision = self.position.revision.max(through);
    }

    async fn progress(&mut self) -> Result<Progress, KvError> {
        let state = self.bucket.lock()?;
        self.check(&state)?;
        let info = state.log.info();
        let rest = state.log.from(self.next);
        let pending = rest.filter(|(_, one)| self.scope.covers(one.key.as_str())).count();
        self.position.end = self.position.end.max(info.last);
        Ok(Progress {
            head: info.last,
            pending: (pending + self.relist.len()) as u64,
            delivered: self.received,
            received: self.received,
            log: info,
        })
    }

    fn is_lost(&self) -> bool {
        let state = self.bucket.lock_any();
        state.cuts != self.cuts
    }
}
