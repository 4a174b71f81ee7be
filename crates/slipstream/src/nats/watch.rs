//! Watches, and the proof that a log may be read on.

mod state;

use async_trait::async_trait;
use futures_util::future::try_join_all;

use self::state::{CursorState, SyncState};
use super::bucket::{Bucket, NS_PER_MS};
use super::consumer::{Consumer, Lost, Received, Start};
use super::message;
use crate::kv::{
    KvError, KvUpdate, KvWatcher, LogCursor, LogInfo, Progress, Watch, WatchEvent, WatchScope,
};
use crate::log_cursor::{HandedOut, RecentlySeen, WitnessMessage};
use crate::protocol::{self, Finding, Guard, Position, Resume};
use crate::stores::KvStore;

/// Most witnesses that are looked up together. The first is mostly in place; of an artifact, hundreds
/// may not be.
const LOOKUPS_AT_ONCE: usize = 64;

#[async_trait]
impl KvWatcher for Bucket {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        let connects = self.link().connects();
        let began = match from {
            None => self.begin_listing().await?,
            Some(cursor) => self.begin_resume(scope, cursor).await?,
        };
        let Began { log, start, position, recent } = began;
        let consumer = Consumer::create(self, scope, start, false).await?;
        self.check_start(&log, start, &position).await?;
        // Another connection may be one to a server that was restarted with an older log.
        if self.link().connects() != connects {
            return Err(KvError::WatchError("the connection was lost as the watch began".into()));
        }
        let nothing_to_send = consumer.total() == 0;
        let mut watch = NatsWatch {
            bucket: self.clone(),
            connects,
            consumer,
            scope: scope.clone(),
            lists: matches!(start, Start::State),
            replicated: self.furthest().0 == log.incarnation,
            received: position.revision,
            stamps: Vec::new(),
            cursor: CursorState::new(scope, position, recent, &log),
            sync: SyncState::new(log.last),
            failed: None,
        };
        watch.sync.due = watch.newest(&log).await?;
        if nothing_to_send {
            watch.sync.has_received(watch.received, 0);
        }
        Ok(Box::new(watch))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.log_info().await
    }

    fn bucket(&self) -> Option<&str> {
        Some(KvStore::name(self))
    }
}

/// Where a watch begins.
struct Began {
    log: LogInfo,
    start: Start,
    position: Position,
    recent: RecentlySeen,
}

impl Bucket {
    async fn begin_listing(&self) -> Result<Began, KvError> {
        let log = self.log_info().await?;
        // Whatever is listed was in the log at this reading or came later, and so did its tombstones.
        let position = Position {
            observed_through_ms: log.read_at_ms,
            end: log.last,
            ..Position::at(log.incarnation, 0)
        };
        Ok(Began { log, start: Start::State, position, recent: RecentlySeen::default() })
    }

    async fn begin_resume(&self, scope: &WatchScope, cursor: &LogCursor) -> Result<Began, KvError> {
        cursor.check(scope).map_err(KvError::CursorExpired)?;
        let position = cursor.position;
        let log = self.log_through(position.incarnation, position.end).await?;
        let proven = self.resume(cursor, &log).await?;
        let end = position.end.max(log.last);
        let position = Position { revision: proven, end, ..position };
        let recent = RecentlySeen::of(cursor, proven);
        Ok(Began { log, start: Start::At(proven + 1), position, recent })
    }

    /// The server begins later than it was told, in silence, if the log has forgotten what it was told
    /// to begin with. A message that the log has after the consumer was made was there when it began.
    async fn check_start(
        &self,
        before: &LogInfo,
        start: Start,
        position: &Position,
    ) -> Result<(), KvError> {
        let lists = matches!(start, Start::State);
        let had = if lists { 0 } else { before.last };
        let after = self.log_through(before.incarnation, had).await?;
        let frontier = if lists { after.last } else { position.revision };
        match protocol::live_guard(before.incarnation, frontier, had, &after) {
            Guard::Pass => Ok(()),
            Guard::Trip(_) if lists => Err(KvError::WatchError("the bucket was made again".into())),
            Guard::Trip(expiry) => Err(KvError::CursorExpired(expiry)),
        }
    }
}

impl Bucket {
    /// The revision after which a watch from the cursor goes on.
    async fn resume(&self, cursor: &LogCursor, log: &LogInfo) -> Result<u64, KvError> {
        let (mut found, mut at_once) = (Vec::new(), 1);
        loop {
            match protocol::resume(cursor.position, log, &found, cursor.witnesses.len()) {
                Resume::From(revision) => return Ok(revision),
                Resume::Expired(expiry) => return Err(KvError::CursorExpired(expiry)),
                Resume::NeedNextWitness => {
                    let next = cursor.witnesses[found.len()..].iter().take(at_once);
                    found.extend(try_join_all(next.map(|witness| self.find(witness))).await?);
                    at_once = (at_once * 2).min(LOOKUPS_AT_ONCE);
                }
            }
        }
    }

    /// What is where a witness was.
    async fn find(&self, seen: &WitnessMessage) -> Result<protocol::Witness, KvError> {
        let finding = match self.message_at(seen.revision).await? {
            Some(message) => {
                let key = message.subject.as_bytes().get(self.subject_prefix_len()..);
                let digest = WitnessMessage::digest(message.stored_at_ns, key.unwrap_or_default());
                if digest == seen.digest { Finding::Same } else { Finding::Other }
            }
            None => {
                let last = match &seen.key {
                    Some(key) => self.last_message(key.as_str()).await?,
                    None => None,
                };
                Finding::Gone { key_last: last.map(|message| message.revision) }
            }
        };
        Ok(protocol::Witness { revision: seen.revision, finding })
    }
}

/// Reads a consumer. What its cursors say and whether it has caught up are states of their own.
struct NatsWatch {
    bucket: Bucket,
    /// How often a connection had been made when the watch began.
    connects: u64,
    consumer: Consumer,
    scope: WatchScope,
    /// Whether it began with a listing.
    lists: bool,
    /// Whether there are copies of the log: the consumer reads one that may be behind the others.
    replicated: bool,
    /// Revision of the last message received, of the scope or not; what came before the watch began
    /// counts.
    received: u64,
    /// When the messages of the last chunk were stored.
    stamps: Vec<u64>,
    cursor: CursorState,
    sync: SyncState,
    failed: Option<KvError>,
}

impl NatsWatch {
    async fn take(
        &mut self,
        into: &mut Vec<KvUpdate>,
        max: usize,
    ) -> Result<Option<WatchEvent>, Lost> {
        let Self { bucket, consumer, scope, cursor, received, stamps, .. } = self;
        let (prefix_len, exact) = (bucket.subject_prefix_len(), consumer.exact());
        let begin = into.len();
        stamps.clear();
        let mut last = cursor.position.revision;
        let event = consumer.receive(max, |message, ack| {
            let revision = ack.stream_sequence;
            if revision <= last {
                return Err(Lost(format!("revision {revision} came after {last}")));
            }
            *received = revision;
            if !exact && !scope.covers(&message.subject[prefix_len..]) {
                return Ok(());
            }
            last = revision;
            stamps.push(ack.stored_at_ns);
            into.push(message::update(message, prefix_len, revision));
            Ok(())
        });
        let ack = match event.await? {
            Received::Messages(ack) => ack,
            Received::Idle => {
                self.forget_due().await?;
                self.sync.has_received(self.received, 0);
                return Ok(None);
            }
        };
        self.sync.has_received(self.received, ack.pending);
        let taken = &into[begin..];
        if taken.is_empty() {
            return Ok(None);
        }
        self.cursor.position.revision = last;
        self.cursor.recent.chunk(taken.iter().zip(&self.stamps).map(|(update, &stamp)| {
            let revision = update.version().as_u64().expect("made from a revision");
            HandedOut { revision, stamp, key: update.key() }
        }));
        let stored_at_ns = self.stamps.last().copied().unwrap_or_default();
        // While it lists, the server skips what was superseded or has expired, without a message.
        if !self.lists || self.sync.unsynced.is_none() {
            self.cursor.observe(stored_at_ns / NS_PER_MS);
        }
        Ok(Some(WatchEvent::Updates { pending: ack.pending, stored_at_ns }))
    }
}

impl NatsWatch {
    /// The newest revision of the scope, as the leader of the log has it; 0 if the consumer reads
    /// the leader's own log, which knows.
    async fn newest(&self, log: &LogInfo) -> Result<u64, KvError> {
        let mut newest = 0;
        for prefix in self.scope.prefixes().into_iter().filter(|_| self.replicated) {
            newest = newest.max(self.bucket.newest(prefix, log).await?);
        }
        Ok(newest)
    }

    /// What is due may have been removed, with nothing in its place.
    async fn forget_due(&mut self) -> Result<(), Lost> {
        if self.sync.unsynced.is_some() && self.received < self.sync.due {
            let lost = |error: KvError| Lost(error.to_string());
            let log = self.bucket.log_info().await.map_err(lost)?;
            self.sync.due = self.sync.due.min(self.newest(&log).await.map_err(lost)?);
        }
        Ok(())
    }
}

#[async_trait]
impl Watch for NatsWatch {
    async fn next(&mut self, into: &mut Vec<KvUpdate>, max: usize) -> Result<WatchEvent, KvError> {
        assert!(max > 0, "a chunk has at least one update");
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let begin = into.len();
        loop {
            if let Some(through) = self.sync.take() {
                return Ok(WatchEvent::Synced { through });
            }
            match self.take(into, max).await {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(Lost(cause)) => {
                    into.truncate(begin);
                    let error = KvError::WatchError(cause);
                    self.failed = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    fn log_cursor(&self) -> LogCursor {
        self.cursor.log_cursor()
    }

    fn remembered(&self) -> LogCursor {
        self.cursor.remembered()
    }

    fn position(&self) -> u64 {
        self.cursor.position.revision
    }

    fn advance(&mut self, through: u64) {
        self.cursor.advance(through);
    }

    async fn progress(&mut self) -> Result<Progress, KvError> {
        let before = self.bucket.log_info().await?;
        let LogInfo { last: head, read_at_ms, .. } = before;
        self.cursor.read = (head, read_at_ms);
        let due = self.newest(&before).await?;
        let state = self.consumer.state().await?;
        let log = self.bucket.log_info().await?;
        self.cursor.position.end = self.cursor.position.end.max(log.last);
        // A consumer does not outlive a server that comes back with another log.
        self.consumer.state().await?;
        if self.is_lost() {
            return Err(KvError::WatchError("the connection was lost".into()));
        }
        // A purge moves the revision that the server says to have sent, though nothing was: count.
        let received_all = state.sent <= self.consumer.received();
        let delivered = if received_all { self.received } else { state.last_sent };
        Ok(Progress {
            head,
            pending: state.pending,
            delivered: delivered.max(due),
            received: self.received,
            log,
        })
    }

    fn is_lost(&self) -> bool {
        self.bucket.link().connects() != self.connects
    }
}
