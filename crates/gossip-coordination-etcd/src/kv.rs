//! The part of etcd that coordination uses: conditional transactions, and leases.
//!
//! Everything is a transaction. One without compares and writes is a consistent read of all its
//! ranges; etcd answers it without writing to its log.

mod etcd;
#[cfg(feature = "sim")]
mod sim;

use core::fmt;
use core::future::Future;

pub use etcd::EtcdKv;
#[cfg(feature = "sim")]
pub use sim::{Interception, SimKv};

use crate::keyspace::{Key, KeyRange};

/// A revision of the store, or of a key. Zero stands for "none".
pub type Revision = i64;

/// A lease of the store: keys put under it are deleted when it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub i64);

/// etcd, or a model of it.
pub trait Kv: Clone + Send + Sync + 'static {
    /// Carries out a transaction, whole or not at all.
    fn txn(&self, txn: Txn) -> impl Future<Output = Result<TxnAnswer, KvError>> + Send;

    /// Creates a lease, or finds that it exists, and returns how many seconds it lasts.
    fn lease_grant(
        &self,
        id: LeaseId,
        ttl_secs: u64,
    ) -> impl Future<Output = Result<u64, KvError>> + Send;

    /// Extends a lease from now. [`KvError::LeaseNotFound`] if it has ended.
    fn lease_keep_alive(&self, id: LeaseId) -> impl Future<Output = Result<(), KvError>> + Send;

    /// Ends a lease.
    fn lease_revoke(&self, id: LeaseId) -> impl Future<Output = Result<(), KvError>> + Send;
}

/// A key and all that is known of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    /// The whole key, namespace included.
    pub key: Vec<u8>,
    /// A record of the codec, or what an index carries.
    pub value: Vec<u8>,
    /// When it was created.
    pub create_revision: Revision,
    /// When it last changed.
    pub mod_revision: Revision,
    /// How often it changed since it was created.
    pub version: i64,
    /// The lease that it ends with.
    pub lease: Option<LeaseId>,
}

/// Values hold keys, tokens and owners, so they show as lengths.
impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key.escape_ascii().to_string())
            .field("value", &format_args!("[{} bytes]", self.value.len()))
            .field("mod_revision", &self.mod_revision)
            .finish_non_exhaustive()
    }
}

/// A condition: the key last changed at this revision; zero, that there is no such key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compare {
    /// The key whose state is asked.
    pub key: Key,
    /// When it must have changed last.
    pub mod_revision: Revision,
}

/// What a range read returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Keys with their values.
    Entries,
    /// Keys alone.
    Keys,
    /// Their number alone.
    Count,
}

/// A read of one key or of a range of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The keys that are asked for.
    pub range: KeyRange,
    /// Most entries returned; zero for all.
    pub limit: usize,
    /// As of which revision; zero for the newest.
    pub revision: Revision,
    /// What of them.
    pub wanted: Wanted,
    /// In order of values, which etcd reads all of, and not of keys.
    pub by_value: bool,
}

impl Read {
    /// One key.
    #[must_use]
    pub fn key(key: &Key) -> Self {
        Self::range(KeyRange::one(key))
    }

    /// Every key of a range.
    #[must_use]
    pub fn range(range: KeyRange) -> Self {
        Self { range, limit: 0, revision: 0, wanted: Wanted::Entries, by_value: false }
    }

    /// How many keys there are.
    #[must_use]
    pub fn count(range: KeyRange) -> Self {
        Self { wanted: Wanted::Count, ..Self::range(range) }
    }

    /// The first `limit` keys without their values.
    #[must_use]
    pub fn first_keys(range: KeyRange, limit: usize) -> Self {
        Self { limit, wanted: Wanted::Keys, ..Self::range(range) }
    }

    /// The `limit` keys with the lowest values. Among equal values the order is anything.
    #[must_use]
    pub fn lowest(range: KeyRange, limit: usize) -> Self {
        Self { limit, by_value: true, ..Self::range(range) }
    }
}

/// One operation of a transaction.
#[derive(Clone, PartialEq, Eq)]
pub enum Op {
    /// Sets a key, under a lease or for good.
    Put {
        /// The key to write.
        key: Key,
        /// What it holds afterwards.
        value: Vec<u8>,
        /// With which it ends.
        lease: Option<LeaseId>,
    },
    /// Deletes a key, if it is there.
    Delete(Key),
    /// Deletes every key of a range.
    DeleteRange(KeyRange),
    /// Reads, and sees what operations before it wrote.
    Read(Read),
}

impl Op {
    /// Sets a key for good.
    #[must_use]
    pub fn put(key: Key, value: impl Into<Vec<u8>>) -> Self {
        Self::Put { key, value: value.into(), lease: None }
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { key, value, lease } => f
                .debug_struct("Put")
                .field("key", key)
                .field("value", &format_args!("[{} bytes]", value.len()))
                .field("lease", lease)
                .finish(),
            Self::Delete(key) => f.debug_tuple("Delete").field(key).finish(),
            Self::DeleteRange(range) => f.debug_tuple("DeleteRange").field(range).finish(),
            Self::Read(read) => f.debug_tuple("Read").field(read).finish(),
        }
    }
}

/// A transaction: if every compare holds, the operations; otherwise the reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Txn {
    /// What must hold for anything to be written.
    pub compares: Vec<Compare>,
    /// What is done if all of them hold.
    pub then: Vec<Op>,
    /// What is read if one does not.
    pub otherwise: Vec<Read>,
}

impl Txn {
    /// A consistent read.
    #[must_use]
    pub fn reads(reads: impl IntoIterator<Item = Read>) -> Self {
        Self { then: reads.into_iter().map(Op::Read).collect(), ..Self::default() }
    }

    /// Whether it changes anything if its compares hold.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.then.iter().any(|op| !matches!(op, Op::Read(_)))
    }

    /// Compares `key` as well, and reads it if a compare does not hold.
    pub fn expect(&mut self, key: Key, mod_revision: Revision) {
        self.otherwise.push(Read::key(&key));
        self.compares.push(Compare { key, mod_revision });
    }
}

/// What one read of a transaction found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The entries; without values if keys alone were wanted, and none if only their number was.
    pub entries: Vec<Entry>,
    /// How many keys there are, if that was wanted; otherwise how many were returned.
    pub count: u64,
    /// Whether the limit kept some from being returned.
    pub has_more: bool,
}

/// What a transaction came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxnAnswer {
    /// The store's revision: that of the writes, if there were any.
    pub revision: Revision,
    /// Whether the compares held.
    pub succeeded: bool,
    /// What the reads of the branch that was taken found, in their order.
    pub found: Vec<Found>,
}

/// Why a request to the store failed. Messages hold no values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KvError {
    /// Nobody knows whether it was carried out: the answer was lost, or was never sent.
    #[error("no answer: {0}")]
    Unanswered(String),
    /// It was not carried out; another time it may be.
    #[error("{0}")]
    Unavailable(String),
    /// The lease has ended. Nothing was carried out.
    #[error("the lease of this process has ended")]
    LeaseNotFound,
    /// The revision asked for is gone.
    #[error("the revision asked for was compacted")]
    Compacted,
    /// The store is full. Nothing was carried out.
    #[error(
        "etcd has raised its NOSPACE alarm: compact and defragment it or raise its quota, then disarm the alarm"
    )]
    NoSpace,
    /// The user may not do that. Nothing was carried out.
    #[error("etcd refuses the user: {0}")]
    Denied(String),
    /// The request breaks a limit of the server. Nothing was carried out.
    #[error("etcd refuses the request: {0}")]
    Invalid(String),
}
