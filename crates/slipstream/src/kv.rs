//! A bucket: its entries and updates, and the traits through which it is read, watched and written.
//!
//! A bucket is the latest state of a log. Every write appends a message to the log under the next
//! *revision*; the log may forget old messages, from its beginning (the *floor* rises) or, where a
//! newer message of the same key exists, anywhere.
//!
//! - K1: a watch hands out updates in ascending revision, each at most once.
//! - K2: a watch that cannot prove that nothing was lost between two of its updates ends with an
//!   error. What the log itself forgets while the watch is live is not seen by the watch: that is
//!   the floor check of whoever folds, for which [`KvWatcher::log`] and [`Watch::progress`] give the
//!   facts.
//! - K3: a cursor covers what the watch has handed out when it is minted, and never more.
//! - K4: an empty value in the log is a delete: reads hide it (but for [`KvReader::entry`]), watches
//!   report it as [`KvUpdate::Delete`], and nobody can put one.

mod cursor;
mod error;
mod key;
mod scope;
mod version;

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::mpsc;

pub use self::cursor::{CursorTooLong, WatchCursor};
pub use self::error::{CursorExpiry, KvError};
pub use self::key::{InvalidKey, Key};
pub use self::scope::WatchScope;
pub use self::version::{VersionToken, VersionTooLong};
pub use crate::log_cursor::LogCursor;

/// One key with its value and version.
///
/// The value may be a slice of a receive buffer that holds many messages: whoever keeps it for long
/// should copy it.
#[derive(Clone, PartialEq, Eq)]
pub struct KvEntry {
    /// As the bucket spells it.
    pub key: Key,
    /// The bytes as they were put.
    pub value: Bytes,
    /// The version that holds it.
    pub version: VersionToken,
}

/// One event of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KvUpdate {
    /// The key has this value now.
    Put(KvEntry),
    /// The key was deleted.
    Delete {
        /// The key that is gone.
        key: Key,
        /// The version of the delete; unknown for one that a fold made up while repairing itself.
        version: VersionToken,
    },
    /// The key was deleted together with its history.
    Purge {
        /// The key that is gone, with its history.
        key: Key,
        /// The version of the purge.
        version: VersionToken,
    },
}

impl KvUpdate {
    /// The key that was put or is gone.
    #[must_use]
    pub fn key(&self) -> &Key {
        match self {
            Self::Put(entry) => &entry.key,
            Self::Delete { key, .. } | Self::Purge { key, .. } => key,
        }
    }

    /// What orders this update among those of its key.
    #[must_use]
    pub fn version(&self) -> VersionToken {
        match self {
            Self::Put(entry) => entry.version,
            Self::Delete { version, .. } | Self::Purge { version, .. } => *version,
        }
    }
}

impl fmt::Debug for KvEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvEntry")
            .field("key", &self.key)
            .field("value_len", &self.value.len())
            .field("version", &self.version)
            .finish()
    }
}

/// Reads of a moment.
#[async_trait]
pub trait KvReader: Send + Sync {
    /// The value of a key; `None` when it has none, deleted or never written.
    async fn get(&self, key: &str) -> Result<Option<KvEntry>, KvError>;

    /// The values of many keys, in their order: each as [`get`](Self::get) has it, at some moment of
    /// the call, not all at the same one.
    async fn multi_get(&self, keys: &[&str]) -> Result<Vec<Option<KvEntry>>, KvError> {
        let mut entries = Vec::with_capacity(keys.len());
        for key in keys {
            entries.push(self.get(key).await?);
        }
        Ok(entries)
    }

    /// The last message of a key as it is in the log, deletes too (with an empty value), for callers
    /// that need the version to compare with. `None` when the log has no message of the key.
    async fn entry(&self, key: &str) -> Result<Option<KvEntry>, KvError>;

    /// All keys with a value that begin with `prefix`, in no particular order. Complete or an error:
    /// as new as the log was when it was asked for, at least, whichever copy of it answers. Who folds
    /// by hand deletes what is not here ([`Snapshot`](crate::Snapshot)).
    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, KvError>;

    /// All entries with a value whose keys begin with `prefix`, in no particular order. Complete or
    /// an error.
    async fn scan(&self, prefix: &str) -> Result<Vec<KvEntry>, KvError>;
}

/// Writes. Each returns when the server has acknowledged it.
///
/// After [`KvError::Timeout`] or [`KvError::ConnectionLost`] a write may or may not have happened.
///
/// | what | limit | beyond it |
/// |---|---|---|
/// | key | tokens joined by `.`, without white space, `*` and `>`; 1 to 2048 bytes ([`MAX_KEY_LEN`](crate::MAX_KEY_LEN)) | [`KvError::InvalidKey`] |
/// | value | not empty | [`KvError::EmptyValue`] |
/// | value on NATS | the largest message of the server (1 MiB unless configured) or of the stream, less 256 bytes for headers | [`KvError::ValueTooLarge`], which says the limit |
/// | bucket's name | letters, digits, `-` and `_`; 1 to 200 bytes ([`MAX_BUCKET_NAME_LEN`](crate::MAX_BUCKET_NAME_LEN)) | [`KvError::InvalidBucketName`] |
///
/// What is refused was not sent.
#[async_trait]
pub trait KvWriter: Send + Sync {
    /// Sets the value, whatever was there.
    async fn put(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError>;

    /// Deletes the key, which need not exist: always `true`.
    async fn delete(&self, key: &str) -> Result<bool, KvError>;

    /// Deletes the key and its history.
    async fn purge(&self, key: &str) -> Result<(), KvError>;

    /// Sets the value of a key that has none: never written, deleted, purged, or deleted with its
    /// version. [`KvError::AlreadyExists`] otherwise.
    async fn create(&self, key: &str, value: Bytes) -> Result<VersionToken, KvError>;

    /// Sets the value if the key is at `version` (as told by [`KvReader::entry`], so that a deleted
    /// key can be updated too). [`KvError::RevisionMismatch`] otherwise.
    async fn update(
        &self,
        key: &str,
        value: Bytes,
        version: VersionToken,
    ) -> Result<VersionToken, KvError>;

    /// Deletes the key if it is at `version`: an empty value takes its place, so that others who
    /// compare versions see a conflict. `true`, or [`KvError::RevisionMismatch`].
    async fn delete_with_version(&self, key: &str, version: VersionToken) -> Result<bool, KvError>;
}

/// Writes that expire. The bucket must allow them ([`StoreConfig::ttl`](crate::StoreConfig::ttl)).
///
/// The log has a tombstone for an expired key, which expires too, on NATS after seven days. So the
/// cursor of a fold that was away for about as long has expired ([`CursorExpiry::TombstonesExpired`]),
/// unless nothing was written meanwhile.
#[async_trait]
pub trait KvTtl: Send + Sync {
    /// Like [`KvWriter::put`]; the key is gone after `ttl` (whole seconds, at least one), which
    /// watches report as a purge.
    async fn put_with_ttl(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<VersionToken, KvError>;

    /// Like [`KvWriter::create`], expiring.
    async fn create_with_ttl(
        &self,
        key: &str,
        value: Bytes,
        ttl: Duration,
    ) -> Result<VersionToken, KvError>;
}

/// Watches of a bucket.
///
/// [`watch_from`](Self::watch_from) does the work. The named ones push each update into a channel and run
/// until the watch fails or the receiver is gone (`Ok`); a full channel holds the watch back. They
/// suit callers that keep no cursor of their own: a cursor comes from a [`Watch`] only.
#[async_trait]
pub trait KvWatcher: Send + Sync {
    /// Starts a watch.
    ///
    /// Without a cursor it is a *state sync*: first the last message of every
    /// key of the scope (deletes that the log still holds included), then what follows, with nothing
    /// lost between.
    ///
    /// With one, it hands out what follows the revision that [`resume`](crate::protocol::resume)
    /// proves, which is the cursor's or one little below it. Before that it proves, after
    /// its position in the log is taken, that the log is the one the cursor came from: same
    /// incarnation, floor at most one past the cursor, head not behind it, and a witness that agrees.
    /// Otherwise [`KvError::CursorExpired`], which only a repair can heal; any other error may heal
    /// by itself.
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError>;

    /// The same, from a cursor as it was stored.
    async fn watch(
        &self,
        scope: &WatchScope,
        from: &WatchCursor,
    ) -> Result<Box<dyn Watch>, KvError> {
        if from.is_none() {
            return self.watch_from(scope, None).await;
        }
        let cursor = LogCursor::decode(from).map_err(KvError::CursorExpired)?;
        self.watch_from(scope, Some(&cursor)).await
    }

    /// What the log is like now: one question to the server, answered after the call began.
    async fn log(&self) -> Result<LogInfo, KvError>;

    /// The name of the bucket, if it is known: artifacts of another one are told by it.
    fn bucket(&self) -> Option<&str> {
        None
    }

    /// State sync of every key.
    async fn watch_all(&self, tx: mpsc::Sender<KvUpdate>) -> Result<(), KvError> {
        forward(self.watch(&WatchScope::All, &WatchCursor::none()).await?, tx).await
    }

    /// State sync of the keys that begin with `prefix`.
    async fn watch_prefix(&self, prefix: &str, tx: mpsc::Sender<KvUpdate>) -> Result<(), KvError> {
        let scope = WatchScope::Prefix(prefix.to_owned());
        forward(self.watch(&scope, &WatchCursor::none()).await?, tx).await
    }

    /// State sync of the keys that begin with any of `prefixes`.
    async fn watch_prefixes(
        &self,
        prefixes: &[String],
        tx: mpsc::Sender<KvUpdate>,
    ) -> Result<(), KvError> {
        let scope = WatchScope::Prefixes(prefixes.to_vec());
        forward(self.watch(&scope, &WatchCursor::none()).await?, tx).await
    }

    /// Every key, from a cursor on.
    async fn watch_all_from(
        &self,
        from: &WatchCursor,
        tx: mpsc::Sender<KvUpdate>,
    ) -> Result<(), KvError> {
        forward(self.watch(&WatchScope::All, from).await?, tx).await
    }

    /// The keys that begin with `prefix`, from a cursor on.
    async fn watch_prefix_from(
        &self,
        prefix: &str,
        from: &WatchCursor,
        tx: mpsc::Sender<KvUpdate>,
    ) -> Result<(), KvError> {
        let scope = WatchScope::Prefix(prefix.to_owned());
        forward(self.watch(&scope, from).await?, tx).await
    }

    /// The keys that begin with any of `prefixes`, from a cursor on.
    async fn watch_prefixes_from(
        &self,
        prefixes: &[String],
        from: &WatchCursor,
        tx: mpsc::Sender<KvUpdate>,
    ) -> Result<(), KvError> {
        let scope = WatchScope::Prefixes(prefixes.to_vec());
        forward(self.watch(&scope, from).await?, tx).await
    }
}

/// Updates of one forwarded chunk; small, because the channel is what holds back.
const FORWARD_MAX: usize = 64;

async fn forward(mut watch: Box<dyn Watch>, tx: mpsc::Sender<KvUpdate>) -> Result<(), KvError> {
    let mut updates = Vec::with_capacity(FORWARD_MAX);
    loop {
        tokio::select! {
            () = tx.closed() => return Ok(()),
            event = watch.next(&mut updates, FORWARD_MAX) => { event?; }
        }
        for update in updates.drain(..) {
            if tx.send(update).await.is_err() {
                return Ok(());
            }
        }
    }
}

/// A running watch. Dropping it ends it.
///
/// It is pulled: what is not asked for waits at the server, within the server's window, so a slow
/// caller slows the watch and loses nothing.
///
/// Its *position* is the revision through which everything of its scope was handed out. It begins at
/// the revision that the resume guard proved ([`Resume::From`](crate::protocol::Resume::From), at or
/// below the cursor's), or at 0.
#[async_trait]
pub trait Watch: Send {
    /// Waits for the next event; at most `max` (at least 1) updates are appended to `into`.
    ///
    /// Cancel safe: when the future is dropped, nothing was taken from the watch and nothing
    /// appended. After an error the watch is over; every further call fails too.
    async fn next(&mut self, into: &mut Vec<KvUpdate>, max: usize) -> Result<WatchEvent, KvError>;

    /// The cursor for "everything that was handed out has been applied". Take it when a chunk
    /// arrives, store it when the chunk is applied. It stands for [`position`](Self::position), with
    /// the incarnation of the log and witnesses of the last messages handed out (those of the cursor
    /// that the watch began from, while there are no newer ones).
    ///
    /// Sound in the middle of a state sync too: messages come in ascending revision, so what a
    /// cursor at `r` has not covered has a revision above `r`.
    fn log_cursor(&self) -> LogCursor;

    /// The same, with more witnesses than are stored, if the watch remembers more: an artifact has room
    /// for them.
    fn remembered(&self) -> LogCursor {
        self.log_cursor()
    }

    /// The same as it is stored; [`WatchCursor::none`] as long as the position is 0.
    fn cursor(&self) -> WatchCursor {
        match self.position() {
            0 => WatchCursor::none(),
            _ => self.log_cursor().encode(),
        }
    }

    /// The highest revision handed out or advanced to.
    fn position(&self) -> u64;

    /// Moves the position to `through`, without a message: the caller knows that nothing of the
    /// scope lies between (see [`WatchEvent::Synced`] and [`progress`](Self::progress)) and that the
    /// log had not forgotten anything of it. Does nothing when the position is there already.
    fn advance(&mut self, through: u64);

    /// The facts that a progress marker needs, read in this order, each answered before the next is
    /// asked: the head of the log, the consumer's state, the log. See [`Progress`]. An error if the
    /// watch was lost by then.
    async fn progress(&mut self) -> Result<Progress, KvError>;

    /// Whether the connection that the watch runs on was lost, so that what the log says now is not
    /// about the log that the watch has read. Asks nobody.
    fn is_lost(&self) -> bool {
        false
    }
}

/// What [`Watch::next`] brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEvent {
    /// At least one update was appended.
    Updates {
        /// Messages of the scope that were in the log, not yet sent, when the last of these was
        /// sent: the lag.
        pending: u64,
        /// When the last of these was stored, by the server's clock, in Unix nanoseconds.
        stored_at_ns: u64,
    },
    /// Nothing was appended. Everything of the scope that was in the log when the watch took its
    /// position has been handed out: the re-list, or the delta, is complete. Comes exactly once in a
    /// watch, for an empty bucket at once.
    Synced {
        /// The head of the log, read before the watch took its position. What the scope had up to
        /// here was handed out, unless the log forgot it first: whoever wants to
        /// [`advance`](Watch::advance) to it checks the floor first.
        through: u64,
    },
}

/// What the log of a bucket is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogInfo {
    /// Tells a log from one of the same name that was made before or after it. Later ones are
    /// greater, as far as the server's clock is right.
    pub incarnation: u64,
    /// The floor: no message below this revision is left. At least 1; `last + 1` if the log is
    /// empty.
    pub first: u64,
    /// The head: the last revision that was given out; 0 if none.
    pub last: u64,
    /// What the log may forget.
    pub retention: Retention,
    /// How many keys have a message in the log, tombstones included.
    pub subjects: u64,
    /// When it was so, by the server's clock, in Unix milliseconds; 0 if that is not known.
    pub read_at_ms: u64,
}

/// What a log may forget besides superseded messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Retention {
    /// Messages older than this.
    pub max_age: Option<Duration>,
    /// Limit on bytes.
    pub max_bytes: Option<u64>,
    /// Limit on messages.
    pub max_messages: Option<u64>,
    /// Over a limit, the oldest message gives way, current or not; if false, the new one is refused.
    pub discards_oldest: bool,
    /// Single messages may carry an expiry.
    pub per_message_ttl: bool,
    /// How long the tombstone of an expired key stays; `None` if for good.
    pub marker_ttl: Option<Duration>,
}

/// Facts about a watch and its log, read in the order of the fields.
///
/// The position may move to `head` only if `pending` is 0, `delivered` is not past `received` and all
/// that was handed out has been applied, and the floor of `log` is not past the old position + 1; its
/// incarnation must be the one that the watch began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The head of the log, read first.
    pub head: u64,
    /// Messages of the scope that the server had not sent to this watch after `head` was read.
    pub pending: u64,
    /// The last revision that the server had sent to this watch; 0 if none.
    pub delivered: u64,
    /// The last revision that this watch handed out or dropped as outside its scope; 0 if none.
    pub received: u64,
    /// The log, read last.
    pub log: LogInfo,
}
