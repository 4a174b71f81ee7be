//! Buckets in memory, with the contract of the real ones: for tests of callers, and to provoke what
//! a real log does rarely.
//!
//! History, limits, ages and expiry work as on a server, by a clock that the caller may give. A
//! [`MemoryBucket`] makes the log forget, lie or become unreachable.

mod access;
mod log;
mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use tokio::sync::watch as channel;

use self::log::Log;
use crate::kv::{KvError, KvReader, KvTtl, KvWatcher, KvWriter, LogInfo};
use crate::stores::{Connection, ConnectionCapabilities, KvStore, StoreConfig};
use crate::validate;

/// Largest value, as a server has it by default.
const MAX_VALUE_LEN: usize = 1 << 20;

type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

/// A connection to buckets that live as long as it (and its clones) does.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), slipstream::KvError> {
/// use slipstream::{Connection, MemoryConnection, StoreConfig};
///
/// let connection = MemoryConnection::new();
/// let store = connection.store("rules", &StoreConfig::default()).await?;
/// let (reader, writer) = (store.reader(), store.writer().unwrap());
/// writer.put("aws.key", "AKIA".into()).await?;
/// assert_eq!(reader.get("aws.key").await?.unwrap().value, "AKIA");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MemoryConnection {
    clock: Clock,
    buckets: Arc<Mutex<HashMap<String, Bucket>>>,
}

impl MemoryConnection {
    /// No buckets; time is the system's.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(|| SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// No buckets; time, since the Unix epoch, is the caller's. What has expired goes when a bucket
    /// is next used, or at [`sweep`](Self::sweep).
    #[must_use]
    pub fn with_clock(clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { clock: Arc::new(clock), buckets: Arc::default() }
    }

    /// The controls of a bucket, if it exists.
    #[must_use]
    pub fn bucket(&self, name: &str) -> Option<MemoryBucket> {
        self.lock().get(name).map(|bucket| MemoryBucket { bucket: bucket.clone() })
    }

    /// Expires what has expired by now in every bucket, which watches then see.
    pub fn sweep(&self) {
        for bucket in self.lock().values() {
            // An unreachable bucket is swept when it can be reached.
            drop(bucket.lock());
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Bucket>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryConnection {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Connection for MemoryConnection {
    async fn connect(&self) -> Result<(), KvError> {
        Ok(())
    }

    async fn shutdown(&self) -> Result<(), KvError> {
        for bucket in self.lock().values() {
            bucket.cut();
        }
        Ok(())
    }

    fn is_healthy(&self) -> bool {
        true
    }

    async fn store(&self, bucket: &str, config: &StoreConfig) -> Result<Arc<dyn KvStore>, KvError> {
        validate::check_bucket(bucket)?;
        validate::check_config(config)?;
        let mut buckets = self.lock();
        let made = || Bucket::new(bucket, config.clone(), Arc::clone(&self.clock));
        Ok(Arc::new(buckets.entry(bucket.to_owned()).or_insert_with(made).clone()))
    }

    async fn open(&self, bucket: &str) -> Result<Arc<dyn KvStore>, KvError> {
        validate::check_bucket(bucket)?;
        match self.lock().get(bucket) {
            Some(bucket) => Ok(Arc::new(bucket.clone())),
            None => Err(KvError::BucketNotFound { bucket: bucket.to_owned() }),
        }
    }

    async fn buckets(&self) -> Result<Vec<String>, KvError> {
        let mut names: Vec<String> = self.lock().keys().cloned().collect();
        names.sort_unstable();
        Ok(names)
    }

    fn capabilities(&self) -> ConnectionCapabilities {
        ConnectionCapabilities {
            cas: true,
            streaming_watch: true,
            resumable_watch: true,
            multi_prefix_watch: true,
            ttl: true,
            direct_reads: false,
        }
    }
}

/// One bucket: every role of it.
#[derive(Clone)]
struct Bucket {
    shared: Arc<Shared>,
}

struct Shared {
    name: String,
    clock: Clock,
    state: Mutex<State>,
    /// Signals every change of the state.
    changed: channel::Sender<()>,
}

struct State {
    log: Log,
    /// How often the watches of the bucket were cut.
    cuts: u64,
    reachable: bool,
}

impl Bucket {
    fn new(name: &str, config: StoreConfig, clock: Clock) -> Self {
        let state = State { log: Log::new(config), cuts: 0, reachable: true };
        let (state, changed) = (Mutex::new(state), channel::Sender::new(()));
        Self { shared: Arc::new(Shared { name: name.to_owned(), clock, state, changed }) }
    }

    fn now_ns(&self) -> u64 {
        (self.shared.clock)().as_nanos() as u64
    }

    /// The state of a bucket that can be reached, with nothing in it that has expired.
    fn lock(&self) -> Result<MutexGuard<'_, State>, KvError> {
        let mut state = self.lock_any();
        if !state.reachable {
            return Err(KvError::Connect("the bucket in memory is set unreachable".into()));
        }
        if state.log.expire(self.now_ns()) {
            self.shared.changed.send_replace(());
        }
        Ok(state)
    }

    fn lock_any(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cut(&self) {
        self.lock_any().cuts += 1;
        self.shared.changed.send_replace(());
    }
}

impl KvStore for Bucket {
    fn name(&self) -> &str {
        &self.shared.name
    }

    fn reader(&self) -> Arc<dyn KvReader> {
        Arc::new(self.clone())
    }

    fn watcher(&self) -> Option<Arc<dyn KvWatcher>> {
        Some(Arc::new(self.clone()))
    }

    fn writer(&self) -> Option<Arc<dyn KvWriter>> {
        Some(Arc::new(self.clone()))
    }

    fn ttl(&self) -> Option<Arc<dyn KvTtl>> {
        let allowed = self.lock_any().log.config().ttl;
        allowed.then(|| Arc::new(self.clone()) as Arc<dyn KvTtl>)
    }
}

/// What can happen to the log of a bucket in memory.
#[derive(Clone)]
pub struct MemoryBucket {
    bucket: Bucket,
}

impl MemoryBucket {
    /// The log forgets every message below revision `first`, as retention would. Watches go on, and
    /// skip in silence what they had not handed out.
    pub fn evict_below(&self, first: u64) {
        self.bucket.lock_any().log.evict_below(first);
        self.bucket.shared.changed.send_replace(());
    }

    /// The log loses every message above revision `last`, as after a power failure, and gives those
    /// revisions out again. Watches end with an error.
    pub fn lose_after(&self, last: u64) {
        self.bucket.lock_any().log.lose_after(last);
        self.bucket.cut();
    }

    /// The bucket is deleted and made again, empty, with the same or another configuration. Watches
    /// end with an error.
    pub fn recreate(&self, config: Option<StoreConfig>) {
        let mut state = self.bucket.lock_any();
        let config = config.unwrap_or_else(|| state.log.config().clone());
        state.log = Log::new(config);
        drop(state);
        self.bucket.cut();
    }

    /// The bucket has another configuration from now on. What it holds stays.
    pub fn configure(&self, config: StoreConfig) {
        self.bucket.lock_any().log.configure(config);
    }

    /// Running watches end with an error, as when a connection is lost.
    pub fn cut_watches(&self) {
        self.bucket.cut();
    }

    /// Whether operations reach the bucket. Making it unreachable ends running watches.
    pub fn set_reachable(&self, reachable: bool) {
        self.bucket.lock_any().reachable = reachable;
        if !reachable {
            self.bucket.cut();
        }
    }

    /// What the log is like.
    #[must_use]
    pub fn log(&self) -> LogInfo {
        self.bucket.lock_any().log.info()
    }
}
