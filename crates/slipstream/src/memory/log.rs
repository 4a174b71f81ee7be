//! The log of a bucket in memory: what a server does with messages, time given by the caller.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;

use crate::kv::{Key, KvEntry, KvError, KvUpdate, LogInfo, Retention, VersionToken};
use crate::log_cursor::{LogCursor, WitnessMessage};
use crate::protocol::{self, Finding, Resume};
use crate::stores::{Discard, StoreConfig};

/// Stamps and incarnations: no two messages and no two logs of a process share one.
static STAMPS: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_stamp() -> u64 {
    STAMPS.fetch_add(1, Ordering::Relaxed)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Put,
    Delete,
    Purge,
}

#[derive(Clone)]
pub(super) struct Message {
    pub(super) key: Key,
    value: Bytes,
    operation: Operation,
    pub(super) stored_at_ns: u64,
    expires_at_ns: Option<u64>,
    pub(super) stamp: u64,
}

impl Message {
    /// What the message counts against the limit of bytes.
    fn size(&self) -> u64 {
        (self.key.len() + self.value.len()) as u64
    }

    /// Whether it gives its key a value.
    pub(super) fn is_value(&self) -> bool {
        self.operation == Operation::Put && !self.value.is_empty()
    }

    pub(super) fn entry(&self, revision: u64) -> KvEntry {
        let version = VersionToken::from_u64(revision);
        KvEntry { key: self.key.clone(), value: self.value.clone(), version }
    }

    pub(super) fn update(&self, revision: u64) -> KvUpdate {
        let (key, version) = (self.key.clone(), VersionToken::from_u64(revision));
        match self.operation {
            Operation::Purge => KvUpdate::Purge { key, version },
            _ if self.is_value() => KvUpdate::Put(self.entry(revision)),
            _ => KvUpdate::Delete { key, version },
        }
    }

    fn digest(&self) -> u32 {
        WitnessMessage::digest(self.stamp, self.key.as_bytes())
    }
}

/// A message to append.
pub(super) struct Append<'a> {
    pub(super) key: &'a str,
    pub(super) value: Bytes,
    pub(super) operation: Operation,
    pub(super) ttl: Option<Duration>,
}

pub(super) struct Log {
    config: StoreConfig,
    incarnation: u64,
    messages: BTreeMap<u64, Message>,
    /// Revisions of each key, ascending; never empty.
    by_key: HashMap<Key, VecDeque<u64>>,
    bytes: u64,
    last: u64,
}

impl Log {
    pub(super) fn new(config: StoreConfig) -> Self {
        Self {
            config,
            incarnation: next_stamp(),
            messages: BTreeMap::new(),
            by_key: HashMap::new(),
            bytes: 0,
            last: 0,
        }
    }

    pub(super) fn configure(&mut self, config: StoreConfig) {
        self.config = config;
    }

    pub(super) fn config(&self) -> &StoreConfig {
        &self.config
    }

    pub(super) fn info(&self) -> LogInfo {
        let first = self.messages.keys().next().copied().unwrap_or(self.last + 1);
        let retention = Retention {
            max_age: self.config.max_age,
            max_bytes: self.config.max_bytes,
            max_messages: None,
            discards_oldest: self.config.discard == Discard::Old,
            per_message_ttl: self.config.ttl,
            marker_ttl: None,
        };
        LogInfo {
            incarnation: self.incarnation,
            first,
            last: self.last,
            retention,
            subjects: self.by_key.len() as u64,
            read_at_ms: 0,
        }
    }

    pub(super) fn last_of(&self, key: &str) -> Option<(u64, &Message)> {
        let revision = *self.by_key.get(key)?.back().expect("no key is without messages");
        Some((revision, &self.messages[&revision]))
    }

    /// Messages from a revision on, ascending.
    pub(super) fn from(&self, revision: u64) -> impl Iterator<Item = (u64, &Message)> {
        self.messages.range(revision..).map(|(revision, message)| (*revision, message))
    }

    pub(super) fn get(&self, revision: u64) -> Option<&Message> {
        self.messages.get(&revision)
    }

    /// The last message of every key that begins with one of the prefixes, in no order.
    pub(super) fn last_of_each<'a>(
        &'a self,
        covers: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = (u64, &'a Message)> {
        let keys = self.by_key.iter().filter(move |(key, _)| covers(key.as_str()));
        keys.map(|(_, revisions)| {
            let revision = *revisions.back().expect("no key is without messages");
            (revision, &self.messages[&revision])
        })
    }

    /// Appends a message; the revision. Refused messages change nothing.
    pub(super) fn append(&mut self, append: Append<'_>, now_ns: u64) -> Result<u64, KvError> {
        let message = Message {
            key: append.key.into(),
            value: append.value,
            operation: append.operation,
            stored_at_ns: now_ns,
            expires_at_ns: append.ttl.map(|ttl| now_ns.saturating_add(ttl.as_nanos() as u64)),
            stamp: next_stamp(),
        };
        self.make_room(&message)?;
        self.last += 1;
        self.bytes += message.size();
        self.by_key.entry(message.key.clone()).or_default().push_back(self.last);
        self.messages.insert(self.last, message);
        Ok(self.last)
    }

    /// Drops what the message supersedes and, if the log evicts, its oldest messages.
    fn make_room(&mut self, message: &Message) -> Result<(), KvError> {
        let history = match message.operation {
            Operation::Purge => 0,
            _ => usize::from(self.config.max_history.max(1)) - 1,
        };
        let revisions = self.by_key.get(message.key.as_str());
        let surplus = revisions.map_or(0, |revisions| revisions.len().saturating_sub(history));
        let superseded: Vec<u64> = revisions.into_iter().flatten().take(surplus).copied().collect();
        let freed: u64 = superseded.iter().map(|revision| self.messages[revision].size()).sum();
        let max = self.config.max_bytes.unwrap_or(u64::MAX);
        let evicts = self.config.discard == Discard::Old;
        if message.size() > max || (!evicts && self.bytes - freed + message.size() > max) {
            return Err(KvError::BucketFull(format!("it is limited to {max} bytes")));
        }
        for revision in superseded {
            self.remove(revision);
        }
        while self.bytes + message.size() > max {
            let oldest = *self.messages.keys().next().expect("one message fits an empty log");
            self.remove(oldest);
        }
        Ok(())
    }

    fn remove(&mut self, revision: u64) {
        let message = self.messages.remove(&revision).expect("only present messages are removed");
        self.bytes -= message.size();
        let revisions = self.by_key.get_mut(message.key.as_str()).expect("it had a message");
        revisions.retain(|kept| *kept != revision);
        if revisions.is_empty() {
            self.by_key.remove(message.key.as_str());
        }
    }

    /// Drops what is too old, and puts a purge where a key's last message has expired. Whether
    /// anything was appended.
    pub(super) fn expire(&mut self, now_ns: u64) -> bool {
        if let Some(max_age) = self.config.max_age {
            let floor_ns = now_ns.saturating_sub(max_age.as_nanos() as u64);
            let old = self.messages.iter().take_while(|(_, one)| one.stored_at_ns <= floor_ns);
            for revision in old.map(|(revision, _)| *revision).collect::<Vec<_>>() {
                self.remove(revision);
            }
        }
        if !self.config.ttl {
            return false;
        }
        let expired = |one: &Message| one.expires_at_ns.is_some_and(|at_ns| at_ns <= now_ns);
        let expired = self.messages.iter().filter(|(_, one)| expired(one));
        let mut appended = false;
        for revision in expired.map(|(revision, _)| *revision).collect::<Vec<_>>() {
            let key = self.messages[&revision].key.clone();
            let was_last = self.last_of(key.as_str()).is_some_and(|(last, _)| last == revision);
            self.remove(revision);
            if was_last {
                let (key, operation) = (key.as_str(), Operation::Purge);
                let purge = Append { key, value: Bytes::new(), operation, ttl: None };
                self.append(purge, now_ns).expect("it is smaller than what it replaces");
                appended = true;
            }
        }
        appended
    }

    /// Forgets everything below `first`.
    pub(super) fn evict_below(&mut self, first: u64) {
        for revision in self.messages.range(..first).map(|(at, _)| *at).collect::<Vec<_>>() {
            self.remove(revision);
        }
    }

    /// Loses everything above `last`, acknowledged or not, and numbers on from there.
    pub(super) fn lose_after(&mut self, last: u64) {
        for revision in self.messages.range(last + 1..).map(|(at, _)| *at).collect::<Vec<_>>() {
            self.remove(revision);
        }
        self.last = self.last.min(last);
    }

    /// The revision after which a watch from the cursor goes on.
    pub(super) fn resume(&self, cursor: &LogCursor) -> Result<u64, KvError> {
        let info = self.info();
        let mut found = Vec::new();
        loop {
            match protocol::resume(cursor.position, &info, &found, cursor.witnesses.len()) {
                Resume::From(revision) => return Ok(revision),
                Resume::Expired(expiry) => return Err(KvError::CursorExpired(expiry)),
                Resume::NeedNextWitness => found.push(self.find(&cursor.witnesses[found.len()])),
            }
        }
    }

    fn find(&self, seen: &WitnessMessage) -> protocol::Witness {
        let finding = match self.get(seen.revision) {
            Some(message) if message.digest() == seen.digest => Finding::Same,
            Some(_) => Finding::Other,
            None => {
                let last = seen.key.as_ref().and_then(|key| self.last_of(key.as_str()));
                Finding::Gone { key_last: last.map(|(revision, _)| revision) }
            }
        };
        protocol::Witness { revision: seen.revision, finding }
    }
}
