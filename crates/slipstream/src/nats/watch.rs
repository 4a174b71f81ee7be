//! Watches, and the proof that a log may be read on.

use async_trait::async_trait;

use super::bucket::{Bucket, NS_PER_MS};
use super::consumer::{Consumer, Lost, Received, Start};
use super::message;
use crate::kv::{
    KvError, KvUpdate, KvWatcher, LogInfo, Progress, Watch, WatchCursor, WatchEvent, WatchScope,
};
use crate::log_cursor::{self, LogCursor, RecentlySeen, Seen};
use crate::protocol::{self, Finding, Guard, MAX_WITNESSES, Position, Resume};

#[async_trait]
impl KvWatcher for Bucket {
    async fn watch(
        &self,
        scope: &WatchScope,
        from: &WatchCursor,
    ) -> Result<Box<dyn Watch>, KvError> {
        let connects = self.link().connects();
        let (before, start, mut at, recent) = if from.is_none() {
            let before = self.log_info().await?;
            // What is listed was there by now, so that its marks are yet to come.
            let at = Position {
                observed_through_ms: before.read_at_ms,
                ..Position::at(before.incarnation, 0)
            };
            (before, Start::State, at, RecentlySeen::default())
        } else {
            let cursor = LogCursor::decode_for(from, scope).map_err(KvError::CursorExpired)?;
            let before = self.log_through(cursor.at.incarnation, cursor.at.end).await?;
            let proven = self.resume(&cursor, &before).await?;
            let at = Position { revision: proven, ..cursor.at };
            (before, Start::At(proven + 1), at, RecentlySeen::of(&cursor, proven))
        };
        let hears = before.retention.marker_ttl.is_some();
        if !hears {
            at.observed_through_ms = 0;
        }
        let consumer = Consumer::create(self, scope, start, false).await?;
        // The server begins later than it was told, in silence, if the log has forgotten what it was
        // told to begin with. What the log has now, it had then.
        let had = if from.is_none() { 0 } else { before.last };
        let after = self.log_through(before.incarnation, had).await?;
        let frontier = if from.is_none() { after.last } else { at.revision };
        let guard = protocol::live_guard(before.incarnation, frontier, had, &after);
        if let Guard::Trip(expiry) = guard {
            return Err(match start {
                Start::State => KvError::WatchError("the bucket was made again".into()),
                Start::At(_) => KvError::CursorExpired(expiry),
            });
        }
        // Another connection may be one to a server that was restarted with an older log.
        if self.link().connects() != connects {
            return Err(KvError::WatchError("the connection was lost as the watch began".into()));
        }
        let nothing_to_send = consumer.total() == 0;
        let replicated = self.furthest().0 == before.incarnation;
        let mut watch = NatsWatch {
            bucket: self.clone(),
            consumer,
            scope: scope.clone(),
            scope_mark: log_cursor::scope_mark(scope),
            at,
            hears,
            read: (before.last, before.read_at_ms),
            replicated,
            due: 0,
            received: at.revision,
            recent,
            unsynced: Some(before.last),
            caught_up: false,
            failed: None,
        };
        watch.due = watch.newest(&before).await?;
        watch.caught_up = nothing_to_send && watch.received >= watch.due;
        Ok(Box::new(watch))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.log_info().await
    }
}

impl Bucket {
    /// The revision after which a watch from the cursor goes on.
    async fn resume(&self, cursor: &LogCursor, log: &LogInfo) -> Result<u64, KvError> {
        let mut found = Vec::new();
        loop {
            match protocol::resume(cursor.at, log, &found, cursor.witnesses.len()) {
                Resume::From(revision) => return Ok(revision),
                Resume::Expired(expiry) => return Err(KvError::CursorExpired(expiry)),
                Resume::NeedNextWitness => {
                    found.push(self.find(&cursor.witnesses[found.len()]).await?);
                }
            }
        }
    }

    /// What is where a witness was.
    async fn find(&self, seen: &Seen) -> Result<protocol::Witness, KvError> {
        let finding = match self.message_at(seen.revision).await? {
            Some(message) => {
                let key = message.subject.as_bytes().get(self.subject_prefix_len()..);
                let mark = Seen::mark(message.stored_at_ns, key.unwrap_or_default());
                if mark == seen.mark { Finding::Same } else { Finding::Other }
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

struct NatsWatch {
    bucket: Bucket,
    consumer: Consumer,
    scope: WatchScope,
    scope_mark: u32,
    at: Position,
    /// Whether the log has marks that expire, so that the cursor says when it was heard.
    hears: bool,
    /// A head of the log, and when it was read: what is stored later is past it.
    read: (u64, u64),
    /// Whether there are copies of the log: the consumer reads one that may be behind the others.
    replicated: bool,
    /// What the log's leader had when the watch began, and the copy has to come to.
    due: u64,
    /// Revision of the last message received, of the scope or not; what came before the watch began
    /// counts.
    received: u64,
    recent: RecentlySeen,
    /// The head before the watch began, until that was reported.
    unsynced: Option<u64>,
    /// Whether the server had nothing more to send, at some time after what was due.
    caught_up: bool,
    failed: Option<KvError>,
}

impl NatsWatch {
    async fn take(
        &mut self,
        into: &mut Vec<KvUpdate>,
        max: usize,
    ) -> Result<Option<WatchEvent>, Lost> {
        let Self { bucket, consumer, scope, at, received, .. } = self;
        let (prefix_len, exact) = (bucket.subject_prefix_len(), consumer.exact());
        let begin = into.len();
        // When the last messages were stored: what their witnesses need besides the updates.
        let mut stamps = [0u64; MAX_WITNESSES];
        let mut last = at.revision;
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
            stamps[(into.len() - begin) % MAX_WITNESSES] = ack.stored_at_ns;
            into.push(message::update(message, prefix_len, revision));
            Ok(())
        });
        let ack = match event.await? {
            Received::Messages(ack) => ack,
            Received::Idle => {
                self.forget_due().await?;
                self.caught_up |= self.received >= self.due;
                return Ok(None);
            }
        };
        self.caught_up |= ack.pending == 0 && self.received >= self.due;
        let taken = &into[begin..];
        if taken.is_empty() {
            return Ok(None);
        }
        self.at.revision = last;
        self.recent.chunk(taken.iter().enumerate().map(|(at, update)| {
            let revision = update.version().as_u64().expect("made from a revision");
            let key = update.key().clone();
            let mark = Seen::mark(stamps[at % MAX_WITNESSES], key.as_bytes());
            Seen { revision, mark, key: Some(key) }
        }));
        let stored_at_ns = stamps[(taken.len() - 1) % MAX_WITNESSES];
        self.hear(stored_at_ns / NS_PER_MS);
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
        if self.unsynced.is_some() && self.received < self.due {
            let lost = |error: KvError| Lost(error.to_string());
            let log = self.bucket.log_info().await.map_err(lost)?;
            self.due = self.due.min(self.newest(&log).await.map_err(lost)?);
        }
        Ok(())
    }

    /// Everything stored before a time was handed out, or passed.
    fn hear(&mut self, at_ms: u64) {
        if self.hears {
            self.at.observed_through_ms = self.at.observed_through_ms.max(at_ms);
        }
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
            if self.caught_up
                && let Some(through) = self.unsynced.take()
            {
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

    fn cursor(&self) -> WatchCursor {
        self.recent.cursor(self.at, self.scope_mark).encode()
    }

    fn position(&self) -> u64 {
        self.at.revision
    }

    fn advance(&mut self, through: u64) {
        self.at.revision = self.at.revision.max(through);
        let (head, read_at_ms) = self.read;
        if through >= head {
            self.hear(read_at_ms);
        }
    }

    async fn progress(&mut self) -> Result<Progress, KvError> {
        let before = self.bucket.log_info().await?;
        let LogInfo { last: head, read_at_ms, .. } = before;
        self.read = (head, read_at_ms);
        let due = self.newest(&before).await?;
        let state = self.consumer.state().await?;
        let log = self.bucket.log_info().await?;
        Ok(Progress {
            head,
            pending: state.pending,
            delivered: state.last_sent.max(due),
            received: self.received,
            first: log.first,
            incarnation: log.incarnation,
        })
    }
}
