//! From a connection to a bucket, and from a bucket to what one may do with it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::kv::{KvError, KvReader, KvTtl, KvWatcher, KvWriter};

/// A connection to a server (or to memory), and the buckets behind it.
#[async_trait]
pub trait Connection: Send + Sync {
    /// Connects. Does nothing when connected; callers that race share the winner's connection.
    async fn connect(&self) -> Result<(), KvError>;

    /// Disconnects; `connect` may follow. Stores that were vended before fail from then on.
    async fn shutdown(&self) -> Result<(), KvError>;

    /// Whether the connection is up now. Asks nobody.
    fn is_healthy(&self) -> bool;

    /// The bucket, made with `config` if there is none. A bucket that exists is returned as it is:
    /// the configuration is not compared.
    async fn store(&self, bucket: &str, config: &StoreConfig) -> Result<Arc<dyn KvStore>, KvError>;

    /// The bucket, which must exist: [`KvError::BucketNotFound`] otherwise.
    async fn open(&self, bucket: &str) -> Result<Arc<dyn KvStore>, KvError>;

    /// The names of the buckets, in order.
    async fn buckets(&self) -> Result<Vec<String>, KvError>;

    /// What the buckets of this connection can do.
    fn capabilities(&self) -> ConnectionCapabilities;
}

/// One bucket. Vends one capability at a time, so that a caller can be given only what it needs.
pub trait KvStore: Send + Sync {
    /// The bucket's name.
    fn name(&self) -> &str;

    /// Reads.
    fn reader(&self) -> Arc<dyn KvReader>;

    /// Reads of which `get`, `multi_get` and `entry` are answered by any copy of the bucket, where the
    /// backend has such and the bucket allows it.
    ///
    /// They are cheaper for the servers, and spread over them. A copy may be behind its leader: what
    /// was just written may be missing, and a later read may show an earlier version.
    fn direct_reader(&self) -> Option<Arc<dyn KvReader>> {
        None
    }

    /// Watches, where the backend can.
    fn watcher(&self) -> Option<Arc<dyn KvWatcher>>;

    /// Writes, where the backend can.
    fn writer(&self) -> Option<Arc<dyn KvWriter>>;

    /// Writes that expire, where the server and the bucket can.
    fn ttl(&self) -> Option<Arc<dyn KvTtl>>;
}

/// What a bucket is made with. Ignored when it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// Most bytes of the log; `None` is no limit, which hosted services refuse.
    pub max_bytes: Option<u64>,
    /// Updates kept per key, 1 to 64.
    pub max_history: u8,
    /// Copies in a cluster.
    pub num_replicas: u8,
    /// Updates older than this leave the log, current values too.
    pub max_age: Option<Duration>,
    /// Where the log is kept.
    pub storage: StorageType,
    /// What gives way when the log is full.
    pub discard: Discard,
    /// Allow writes that expire ([`KvTtl`]). Only with a `max_history` of 1.
    pub ttl: bool,
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            max_bytes: Some(10 << 20),
            max_history: 1,
            num_replicas: 1,
            max_age: None,
            storage: StorageType::File,
            discard: Discard::New,
            ttl: false,
        }
    }
}

/// Where a log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageType {
    /// In files.
    File,
    /// In the server's memory.
    Memory,
}

/// What gives way when a log is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// The new update, which is refused.
    New,
    /// The oldest update, which may be a current value.
    Old,
}

/// What a connection's buckets can do. Advice for branching early; nothing is enforced by it. What a
/// bucket by itself does not allow, it does not vend ([`KvStore`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCapabilities {
    /// Compare-and-swap writes.
    pub cas: bool,
    /// Watches that push.
    pub streaming_watch: bool,
    /// Watches that resume from a cursor.
    pub resumable_watch: bool,
    /// Many prefixes in one watch.
    pub multi_prefix_watch: bool,
    /// Writes that expire.
    pub ttl: bool,
    /// Reads that any copy of a bucket answers ([`KvStore::direct_reader`]).
    pub direct_reads: bool,
}
