//! A durable local fold of a KV bucket: it resumes after any restart, and its cursor names only
//! updates that were applied.
//!
//! - [`Connection`] → [`KvStore`] → [`KvReader`], [`KvWatcher`], [`KvWriter`], [`KvTtl`]: a bucket,
//!   on NATS JetStream (feature `nats`, on by default) or in memory.
//! - A watch hands out updates and, for what it handed out, a [`WatchCursor`] from which a later
//!   watch goes on. Whether the log is still the one the cursor came from is proven at every resume.
//! - [`watch_applied`] keeps a [`SnapshotStore`] equal to a bucket, through restarts, lost servers
//!   and logs that forgot what comes next: in one file ([`AppendLogSnapshot`]), or on an engine for
//!   folds larger than memory (feature `fjall`, crate `slipstream-rocksdb`).
//! - [`artifact`]s carry a fold to another node, which reads on from there.
//! - [`Snapshot`] and [`SnapshotWriter`] are the file by itself, for callers that keep the entries in
//!   structures of their own.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), slipstream::KvError> {
//! use slipstream::{Connection, MemoryConnection, StoreConfig, WatchCursor, WatchScope};
//!
//! let store = MemoryConnection::new().store("rules", &StoreConfig::default()).await?;
//! let (writer, watcher) = (store.writer().unwrap(), store.watcher().unwrap());
//! writer.put("aws.key", "AKIA".into()).await?;
//!
//! let mut updates = Vec::new();
//! let mut watch = watcher.watch(&WatchScope::All, &WatchCursor::none()).await?;
//! watch.next(&mut updates, 100).await?;
//! assert_eq!(updates[0].key(), &"aws.key");
//!
//! // Once the updates are applied, this is where to go on, in this process or in the next.
//! let applied = watch.cursor();
//! writer.put("gcp.key", "AIza".into()).await?;
//! let mut watch = watcher.watch(&WatchScope::All, &applied).await?;
//! # Ok(()) }
//! ```
//!
//! It is not a database of its own: the bucket is the truth, the fold a copy that survives.
//!
//! | word | means |
//! |---|---|
//! | log, revision | the messages of a bucket, and the number of one |
//! | floor, head | the first revision that the log still has, and the last that it gave out |
//! | state sync, listing | what a watch without a cursor begins with: the last message of every key |
//! | position, frontier | how far a watch has handed out; how far a complete fold has everything |
//! | gap | revisions that a watch skipped: superseded, of other keys, or lost |
//! | witness | a message that a cursor remembers, to recognise the log by |
//! | resync | making a fold equal to its bucket again: by a listing, or after an overrun |
//! | repair | a resync by a listing, because the cursor was of no use |
//! | overrun | a resync of a running watch that the floor has passed |
//! | vanished key | one of the fold's that the log no longer has |

mod applied;
pub mod artifact;
mod export_lease;
mod hex;
mod kv;
mod log_cursor;
mod memory;
#[cfg(feature = "nats")]
mod nats;
#[cfg(feature = "transport")]
pub mod payload;
pub mod protocol;
mod snapshot;
mod stores;
pub mod transport;
mod validate;

pub use applied::{
    Applier, BatchConfig, Ended, ExportError, FLOOR_GUARD_INTERVAL, FoldConfig, FoldControl,
    FoldEnded, FoldError, FoldHandle, FoldStatus, Repair, Restore, fold_control, watch_applied,
};
pub use export_lease::{
    CLOCK_AHEAD_MAX, ExportLease, LEASE_MAX, LeaseGuard, LeaseRecord, live_lease,
};
pub use kv::{
    CursorExpiry, CursorTooLong, InvalidKey, Key, KvEntry, KvError, KvReader, KvTtl, KvUpdate,
    KvWatcher, KvWriter, LogCursor, LogInfo, Progress, Retention, VersionToken, VersionTooLong,
    Watch, WatchCursor, WatchEvent, WatchScope,
};
pub use memory::{MemoryBucket, MemoryConnection};
#[cfg(feature = "nats")]
pub use nats::{ClientCert, NatsConnection, NatsConnectionConfig};
#[cfg(feature = "conformance")]
pub use snapshot::conformance as snapshot_conformance;
pub use snapshot::{
    AppendLogOptions, AppendLogReader, AppendLogSnapshot, Copied, CursorOnly, EntryRef, FinishCopy,
    FoldFiles, OnEntry, Snapshot, SnapshotError, SnapshotReader, SnapshotStore, SnapshotWriter,
    engine, record,
};
#[cfg(feature = "fjall")]
pub use snapshot::{Fjall, FjallReader, FjallSnapshot};
pub use stores::{Connection, ConnectionCapabilities, Discard, KvStore, StorageType, StoreConfig};
pub use validate::{MAX_BUCKET_NAME_LEN, MAX_KEY_LEN};

/// The README's example is compiled, too.
#[cfg(all(doctest, feature = "nats"))]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: gossip_testalloc::CountingAllocator = gossip_testalloc::CountingAllocator::new();
