//! Reads: points, and listings through one consumer.

use std::collections::HashMap;
use std::time::Duration;

use async_nats::Message;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use futures_util::future::try_join_all;
use tokio::time::Instant;

use super::bucket::{Bucket, StoredMessage};
use super::consumer::{Consumer, Lost, Received, Start};
use super::message::{self, Operation};
use super::settled::Reading;
use crate::kv::{Key, KvEntry, KvError, KvReader, VersionToken, WatchScope};
use crate::validate;

/// How long a copy of the log may take to come to what its leader has.
const BEHIND_MAX: Duration = Duration::from_secs(20);

/// Questions of one `multi_get` that are on their way together.
const GETS_AT_ONCE: usize = 64;

/// Messages of one turn of a listing.
const CHUNK_MAX: usize = 1024;

#[async_trait]
impl KvReader for Bucket {
    async fn get(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        validate::check_key(key)?;
        let message = self.point(key).await?;
        Ok(message.filter(StoredMessage::is_value).map(|message| message.entry(key)))
    }

    async fn multi_get(&self, keys: &[&str]) -> Result<Vec<Option<KvEntry>>, KvError> {
        keys.iter().try_for_each(|key| validate::check_key(key))?;
        let mut entries = Vec::with_capacity(keys.len());
        for keys in keys.chunks(GETS_AT_ONCE) {
            entries.extend(try_join_all(keys.iter().map(|key| self.get(key))).await?);
        }
        Ok(entries)
    }

    async fn entry(&self, key: &str) -> Result<Option<KvEntry>, KvError> {
        validate::check_key(key)?;
        Ok(self.point(key).await?.map(|message| message.entry(key)))
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<Key>, KvError> {
        let (prefix_len, mut arena) = (self.subject_prefix_len(), Arena::default());
        let make = |message: &Message, _, _| arena.key(&message.subject[prefix_len..]);
        self.list(prefix, true, make, |key| key).await
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<KvEntry>, KvError> {
        let (prefix_len, mut arena) = (self.subject_prefix_len(), Arena::default());
        let mut listed_len = 0;
        let make = |message: &Message, revision, received_len| {
            listed_len += message.payload.len();
            let shares = listed_len >= received_len / RECEIVED_PER_SHARED;
            KvEntry {
                key: arena.key(&message.subject[prefix_len..]),
                value: if shares { message.payload.clone() } else { arena.copy(&message.payload) },
                version: VersionToken::from_u64(revision),
            }
        };
        self.list(prefix, false, make, |entry| &entry.key).await
    }
}

/// A listed value shares the buffer that it came in, with all else that came in it, unless what came
/// so far is more than so many times what was listed: short values, or few among deleted keys or
/// those of other prefixes.
const RECEIVED_PER_SHARED: usize = 4;

/// Copies of what a listing keeps and does not share, many to a block.
#[derive(Default)]
struct Arena {
    block: BytesMut,
}

impl Arena {
    const BLOCK_LEN: usize = 64 * 1024;

    fn copy(&mut self, bytes: &[u8]) -> Bytes {
        if self.block.capacity() < bytes.len() {
            self.block = BytesMut::with_capacity(bytes.len().max(Self::BLOCK_LEN));
        }
        self.block.extend_from_slice(bytes);
        self.block.split().freeze()
    }

    fn key(&mut self, key: &str) -> Key {
        Key::of_text(self.copy(key.as_bytes()))
    }
}

impl StoredMessage {
    fn is_value(&self) -> bool {
        self.operation == Operation::Put && !self.payload.is_empty()
    }

    fn entry(self, key: &str) -> KvEntry {
        let value = match self.operation {
            Operation::Put => self.payload,
            Operation::Delete | Operation::Purge => Bytes::new(),
        };
        KvEntry { key: key.into(), value, version: VersionToken::from_u64(self.revision) }
    }
}

impl Bucket {
    /// The last message of every key that begins with the prefix and has a value, each made into an
    /// item with its revision and the bytes received so far.
    ///
    /// Whichever copy of the log the consumer reads, the listing has all that the leader had when it
    /// was asked for: it does not end before the newest message of then has come, or a newer one.
    async fn list<T: Send>(
        &self,
        prefix: &str,
        headers_only: bool,
        mut make: impl FnMut(&Message, u64, usize) -> T + Send,
        key_of: impl Fn(&T) -> &Key + Send + Sync,
    ) -> Result<Vec<T>, KvError> {
        let (incarnation, known) = self.furthest();
        let Reading { mut log, replicated } = self.reading().await?;
        // A leader that is late is waited for, and then believed.
        if replicated && log.incarnation == incarnation && log.last < known {
            log = self.log_through(incarnation, known).await?;
            self.went(log.incarnation, log.last);
        }
        let late_leader = log.incarnation == incarnation && log.last < known;
        // Messages up to here are one per key; later ones replace what was listed. The copy that the
        // consumer reads may not have gone so far when it begins, wherever that is.
        let head = if replicated { 0 } else { log.last };
        let mut due = if replicated { self.newest(prefix, &log).await? } else { 0 };
        let scope = WatchScope::Prefix(prefix.to_owned());
        let mut consumer = Consumer::create(self, &scope, Start::State, headers_only).await?;
        let (exact, expected) = (consumer.exact(), consumer.total());
        let skip_len = self.subject_prefix_len();
        let mut listed = Vec::with_capacity(usize::try_from(expected).unwrap_or(0).min(1 << 20));
        let mut late: HashMap<Key, Option<T>> = HashMap::new();
        let (mut drained, mut drained_at) = (expected == 0, None);
        let (mut received_len, mut newest) = (0, 0);
        let cut = |received, cause| KvError::ListingCut { received, expected, cause };
        loop {
            // What is due may also have been removed, with nothing in its place.
            if drained && newest < due {
                due = due.min(self.newest(prefix, &log).await?);
            }
            if drained && newest >= due {
                break;
            }
            if drained && drained_at.get_or_insert_with(Instant::now).elapsed() > BEHIND_MAX {
                let cause = "the copy of the bucket that was listed is behind".into();
                return Err(cut(consumer.received(), cause));
            }
            let received = consumer.receive(CHUNK_MAX, |message, ack| {
                received_len += message.length;
                newest = ack.stream_sequence;
                if !exact && !message.subject[skip_len..].starts_with(prefix) {
                    return Ok(());
                }
                let is_value = message::is_value(&message, headers_only);
                if ack.stream_sequence <= head {
                    if is_value {
                        listed.push(make(&message, ack.stream_sequence, received_len));
                    }
                    return Ok(());
                }
                let item = is_value.then(|| make(&message, ack.stream_sequence, received_len));
                late.insert(message::key(message.subject, skip_len), item);
                Ok(())
            });
            drained = match received.await {
                Ok(Received::Messages(ack)) => ack.pending == 0,
                Ok(Received::Idle) => true,
                Err(Lost(cause)) => return Err(cut(consumer.received(), cause)),
            };
            // Fewer than announced: the rest was overwritten or removed meanwhile, or the server has
            // miscounted.
            if drained && consumer.received() < expected {
                let state = consumer.state().await?;
                drained = state.pending == 0 && state.sent == consumer.received();
            }
            if !drained {
                drained_at = None;
            }
        }
        let received = consumer.received();
        consumer.end().await;
        let after = self.log_info().await?;
        // Of a bucket that was made again before the consumer was, the head says nothing.
        if after.incarnation != log.incarnation {
            return Err(cut(received, "the bucket was made again".into()));
        }
        if late_leader && after.last >= known {
            return Err(cut(received, "the bucket looked shorter than it is".into()));
        }
        if !late.is_empty() {
            listed.retain(|item| !late.contains_key(key_of(item)));
            listed.extend(late.into_values().flatten());
        }
        Ok(listed)
    }
}
