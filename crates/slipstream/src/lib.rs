//! A durable local fold of a KV bucket: it resumes after any restart, and its cursor names only
//! updates that were applied.
//!
//! - [`Connection`] → [`KvStore`] → [`KvReader`], [`KvWatcher`], [`KvWriter`], [`KvTtl`]: a bucket,
//!   on NATS JetStream (feature `nats`, on by default) or in memory.
//! - A watch hands out updates and, for what it handed out, a [`WatchCursor`] from which a later
//!   watch goes on. Whether the log is still the one the cursor came from is proven at every resume.
//!
//! ```
//! use slipstream::{WatchCursor, WatchScope};
//!
//! let rules = WatchScope::Prefix("rules.".into());
//! assert!(rules.covers("rules.aws") && !rules.covers("allow.aws"));
//! assert!(WatchCursor::none().is_none());
//! ```
//!
//! It is not a database of its own: the bucket is the truth, the fold a copy that survives.

mod applied;
mod kv;
mod memory;
#[cfg(feature = "nats")]
mod nats;
pub mod protocol;
mod snapshot;
mod stores;

pub use kv::{
    CursorExpiry, CursorTooLong, InvalidKey, Key, KvEntry, KvError, KvReader, KvTtl, KvUpdate,
    KvWatcher, KvWriter, LogInfo, Progress, Retention, VersionToken, VersionTooLong, Watch,
    WatchCursor, WatchEvent, WatchScope,
};
#[cfg(feature = "conformance")]
pub use snapshot::conformance as snapshot_conformance;
pub use snapshot::{
    AppendLogOptions, AppendLogReader, AppendLogSnapshot, EntryRef, Snapshot, SnapshotError,
    SnapshotReader, SnapshotStore, SnapshotWriter, record,
};
#[cfg(feature = "fjall")]
pub use snapshot::{FjallReader, FjallSnapshot};
pub use stores::{Connection, ConnectionCapabilities, Discard, KvStore, StorageType, StoreConfig};
