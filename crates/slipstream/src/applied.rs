//! `watch_applied`: a bucket's updates, applied, stored, and only then counted.
//!
//! One task reads the watch and forms batches; one thread runs each batch through the caller's code
//! and into the store, in order. What is read ahead of that is bounded. Every decision is one of
//! [`protocol`](crate::protocol)'s.
//!
//! - A1: of each batch, in this order: the caller's `apply` returns, the store takes data and cursor
//!   together, `on_applied` is told.
//! - A2: a batch that the store did not take comes before everything that follows it.
//! - A3: each watch that is armed passes the resume guard, or begins a resync with a listing.
//! - A4: a batch that was received across a gap waits for the floor of the log (P2, by B2), or is part
//!   of a resync.
//! - A5: the store comes back to the caller, however the watch ends (but for a panic, which takes it
//!   along; what it had stored is on disk).

mod ahead;
mod applier;
mod apply_loop;
mod batches;
mod command;
mod export;
mod follow;
mod listed;
mod purge;
mod restore;
mod status;
mod watch_loop;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tracing::Instrument;

pub use self::applier::Applier;
pub use self::export::ExportError;
pub use self::restore::Restore;
pub use self::status::{FoldEnded, FoldHandle, FoldStatus, Repair};

use self::apply_loop::ApplyLoop;
use self::purge::PurgeCheck;
use self::status::Control;
use self::watch_loop::{Artifacts, WatchLoop};
use crate::kv::{KvError, KvWatcher, WatchCursor, WatchScope};
use crate::snapshot::{SnapshotError, SnapshotStore};

/// How often a quiet watch asks whether the log is still the one it reads.
pub const FLOOR_GUARD_INTERVAL: Duration = Duration::from_secs(30);

/// What to fold, and how.
#[derive(Clone)]
pub struct FoldConfig {
    /// Where updates come from.
    pub watcher: Arc<dyn KvWatcher>,
    /// The keys that are folded: all, or those below prefixes.
    pub scope: WatchScope,
    /// How updates are gathered.
    pub batch: BatchConfig,
    /// See [`FLOOR_GUARD_INTERVAL`], the default. A quarter of the life of tombstones of expired keys,
    /// if that is shorter; a day at most.
    pub probe_interval: Duration,
    /// Whether keys stay in the fold that the limits of the log may have evicted, as is the default.
    /// If not, they leave it with the log: also those of a bucket that was deleted. (By default those
    /// stay if the bucket that was made in its place has dropped its first message, too: a log that
    /// has not has evicted nothing.)
    pub keep_evicted: bool,
    /// Where artifacts of the fold are. Given that, a fold whose cursor has expired, or that is new, is
    /// restored from the newest artifact instead of by a listing, if the bucket evicts current values
    /// and has done so: a listing would lack what was evicted. If there is no artifact that a watch can
    /// read on from, or the fold is newer, the bucket is listed: [`FoldStatus::not_restored`] says why, and
    /// [`FoldStatus::may_be_incomplete`] what that means. So it does for a store without files
    /// ([`CursorOnly`](crate::CursorOnly)) and an applier that [keeps entries](Applier::keeps_entries). Not
    /// looked at without `keep_evicted`: such a fold is what the log has left.
    pub restore: Option<Restore>,
}

impl FoldConfig {
    /// Everything of a bucket, with default batches.
    pub fn new(watcher: Arc<dyn KvWatcher>) -> Self {
        Self {
            watcher,
            scope: WatchScope::All,
            batch: BatchConfig::default(),
            probe_interval: FLOOR_GUARD_INTERVAL,
            keep_evicted: true,
            restore: None,
        }
    }
}

/// How updates are gathered into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchConfig {
    /// How long a batch may stay open after its first update.
    pub window: Duration,
    /// Most updates of a batch. At least 1.
    pub max: usize,
    /// A batch of so many bytes, of keys and values, takes no more updates.
    pub max_bytes: usize,
    /// Updates in whole batches that may wait for the store; more, and the watch is held back.
    /// (Up to 256 batches, or 8 MiB, are read ahead besides, while the log is asked about what it
    /// does not have between them.)
    pub channel_capacity: usize,
}

impl Default for BatchConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(10),
            max: 100,
            max_bytes: 1 << 20,
            channel_capacity: 256,
        }
    }
}

/// How a watch ended.
#[derive(Debug)]
pub struct Ended<S> {
    /// The fold. It comes back however the watch ended, except by a panic.
    pub store: S,
    /// Where it stands.
    pub cursor: WatchCursor,
    /// `Ok` when it was told to stop.
    pub result: Result<(), FoldError>,
}

/// What ends a watch that nobody stopped.
///
/// The fold is sound after each of them, and the next call goes on from the stored cursor.
///
/// | what happened | what the caller gets |
/// |---|---|
/// | it was told to stop | `Ok`, with everything stored that was received and could be checked |
/// | the watch, the connection or the server was lost; a listing failed; retention overran the watch | nothing: the call waits, or repairs the fold, and shown in [`FoldStatus`] |
/// | the cursor has expired | nothing: the fold is repaired, or [restored](FoldConfig::restore), see [`FoldStatus::last_repair`] |
/// | the fold was made for another scope | `Watch`, with [`KvError::CursorExpired`] and [`CursorExpiry::OtherScope`](crate::CursorExpiry::OtherScope) |
/// | the fold was imported from an artifact of another bucket | `Watch`, with [`KvError::Config`] |
/// | the bucket was never there, the credentials are refused, the connection was shut down | `Watch`, with what the bucket said |
/// | the store refused a batch for the 16th time in a row, or while it was told to stop | `Store` |
/// | the store could not be read for a repair | `Read` |
/// | [`Applier`] panics | the panic |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FoldError {
    /// The bucket cannot be watched, and waiting will not help.
    #[error("the bucket cannot be watched: {0}")]
    Watch(#[from] KvError),
    /// The store failed so often in a row that it will not heal. Nothing was skipped: the next
    /// watch goes on from the stored cursor.
    #[error("the store failed {failures} times in a row: {source}")]
    Store {
        /// How often.
        failures: u32,
        /// What the store said to the last attempt.
        source: SnapshotError,
    },
    /// The store could not be read while the fold was repaired.
    #[error("the fold could not be read: {0}")]
    Read(SnapshotError),
}

/// A fold that can be started: see [`watch_applied`].
pub struct FoldControl(Control);

/// What steers and observes a fold, and what [`watch_applied`] takes to be steered.
pub fn fold_control() -> (FoldHandle, FoldControl) {
    let (handle, control) = status::pair();
    (handle, FoldControl(control))
}

/// Keeps `store` equal to the scope of a bucket, until it is told to stop.
///
/// It goes on from the store's cursor where the log still has what follows, and repairs the fold by
/// listing where it does not. Lost servers and connections are waited out. Updates may be applied
/// more than once and never out of order. None is skipped, but for what a log with limits has evicted
/// before it was read ([`FoldStatus::passed_gaps`]).
///
/// `applier` runs on a thread that may block. A panic in it is passed on, and takes the store along;
/// what was stored is on disk.
///
/// When the returned future is dropped, what has been handed to the store is still stored.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use slipstream::{
///     AppendLogSnapshot, Connection, FoldConfig, MemoryConnection, SnapshotReader, SnapshotStore,
///     StoreConfig, fold_control, watch_applied,
/// };
///
/// let bucket = MemoryConnection::new().store("rules", &StoreConfig::default()).await?;
/// let dir = tempfile::tempdir()?;
/// let (_, store) = AppendLogSnapshot::load(&dir.path().join("fold"))?;
/// let copy = store.reader();
///
/// let (handle, control) = fold_control();
/// let config = FoldConfig::new(bucket.watcher().unwrap());
/// let folding = tokio::spawn(watch_applied(config, store, (), control));
///
/// let written = bucket.writer().unwrap().put("aws.key", "AKIA".into()).await?;
/// handle.wait_for(written.as_u64().unwrap()).await?;
/// assert_eq!(copy.get("aws.key")?.unwrap().value, "AKIA");
///
/// handle.shutdown();
/// let ended = folding.await?;
/// assert!(ended.result.is_ok() && ended.cursor == ended.store.cursor());
/// # Ok(()) }
/// ```
pub async fn watch_applied<S: SnapshotStore, A: Applier>(
    config: FoldConfig,
    store: S,
    applier: A,
    control: FoldControl,
) -> Ended<S> {
    assert!(config.batch.max > 0, "a batch of no updates");
    let span = tracing::info_span!("watch_applied", all = config.scope.is_all());
    let FoldControl(control) = control;
    let depth = (config.batch.channel_capacity / config.batch.max).max(1);
    let (to_apply, commands) = mpsc::channel(depth);
    let prefixes: Vec<String> = config.scope.prefixes().into_iter().map(str::to_owned).collect();
    let purge_check = PurgeCheck::new(store.reader(), prefixes);
    let (bucket, scope) = (config.watcher.bucket().map(str::to_owned), config.scope.clone());
    let apply_loop = ApplyLoop::new(store, applier, &control, config.batch.max, bucket, scope);
    let thread_span = span.clone();
    let artifacts = Artifacts::of::<S, A>(&apply_loop);
    let applying =
        tokio::task::spawn_blocking(move || thread_span.in_scope(|| apply_loop.run(commands)));
    let mut watch_loop = WatchLoop::new(config, control, to_apply, purge_check, artifacts);
    let watched = watch_loop.run().instrument(span).await;
    drop(watch_loop);
    let (store, applied) = match applying.await {
        Ok(ended) => ended,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    };
    // The store's failure is why the watch loop had to stop, if both have one.
    let result = applied.and(watched.map_err(FoldError::Watch));
    Ended { cursor: store.cursor(), store, result }
}
