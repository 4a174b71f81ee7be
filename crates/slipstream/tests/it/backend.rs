//! The backends of the suite, and the little that cases need besides the traits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use slipstream::{
    Connection, KvError, KvReader, KvStore, KvUpdate, KvWatcher, KvWriter, MemoryConnection,
    NatsConnection, StoreConfig, Watch, WatchCursor, WatchEvent, WatchScope,
};

use crate::server::NatsServer;

pub(crate) trait Backend: Send + Sync {
    fn connection(&self) -> &dyn Connection;

    /// The log forgets everything below a revision.
    async fn evict_below(&self, bucket: &str, first: u64);

    /// The bucket is deleted.
    async fn delete_bucket(&self, bucket: &str);

    /// Time passes.
    async fn pass(&self, time: Duration);
}

pub(crate) struct Memory {
    connection: MemoryConnection,
    now_ms: Arc<AtomicU64>,
}

impl Memory {
    pub(crate) async fn start() -> Self {
        let now_ms = Arc::new(AtomicU64::new(1_700_000_000_000));
        let clock = Arc::clone(&now_ms);
        let time = move || Duration::from_millis(clock.load(Ordering::Relaxed));
        Self { connection: MemoryConnection::with_clock(time), now_ms }
    }
}

impl Backend for Memory {
    fn connection(&self) -> &dyn Connection {
        &self.connection
    }

    async fn evict_below(&self, bucket: &str, first: u64) {
        self.connection.bucket(bucket).unwrap().evict_below(first);
    }

    async fn delete_bucket(&self, bucket: &str) {
        self.connection.bucket(bucket).unwrap().recreate(None);
    }

    async fn pass(&self, time: Duration) {
        self.now_ms.fetch_add(time.as_millis() as u64, Ordering::Relaxed);
        self.connection.sweep();
    }
}

pub(crate) struct Nats {
    connection: NatsConnection,
    jetstream: async_nats::jetstream::Context,
    _server: NatsServer,
}

impl Nats {
    pub(crate) async fn start() -> Self {
        let server = NatsServer::start();
        let client = async_nats::connect(server.url()).await.unwrap();
        let jetstream = async_nats::jetstream::new(client);
        Self { connection: server.connect().await, jetstream, _server: server }
    }
}

impl Backend for Nats {
    fn connection(&self) -> &dyn Connection {
        &self.connection
    }

    async fn evict_below(&self, bucket: &str, first: u64) {
        let stream = self.jetstream.get_stream(format!("KV_{bucket}")).await.unwrap();
        stream.purge().sequence(first).await.unwrap();
    }

    async fn delete_bucket(&self, bucket: &str) {
        self.jetstream.delete_key_value(bucket).await.unwrap();
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

/// A bucket with all of its roles.
pub(crate) struct Bucket {
    pub(crate) store: Arc<dyn KvStore>,
    pub(crate) reader: Arc<dyn KvReader>,
    pub(crate) watcher: Arc<dyn KvWatcher>,
    pub(crate) writer: Arc<dyn KvWriter>,
}

impl Bucket {
    pub(crate) async fn make(connection: &dyn Connection, config: &StoreConfig) -> Self {
        Self::named(connection, "b", config).await
    }

    pub(crate) async fn named(
        connection: &dyn Connection,
        name: &str,
        config: &StoreConfig,
    ) -> Self {
        Self::of(connection.store(name, config).await.unwrap())
    }

    /// The one of a server that may just have been started again.
    pub(crate) async fn on(server: &NatsServer) -> Self {
        Self::of(server.connect().await.open("b").await.unwrap())
    }

    pub(crate) fn of(store: Arc<dyn KvStore>) -> Self {
        let (reader, watcher) = (store.reader(), store.watcher().unwrap());
        let writer = store.writer().unwrap();
        Self { store, reader, watcher, writer }
    }

    /// Writes; where nobody answers, again: a cluster that has just come up may choose another leader,
    /// and a write that nobody got was not written.
    pub(crate) async fn put(&self, key: &str, value: &str) -> u64 {
        const TRIES: usize = 50;
        let mut tries = 0..TRIES;
        loop {
            match self.writer.put(key, value.to_owned().into()).await {
                Err(KvError::Backend { cause, .. })
                    if cause.starts_with("nobody answers") && tries.next().is_some() =>
                {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                written => return written.unwrap().as_u64().unwrap(),
            }
        }
    }

    pub(crate) async fn watch(&self, scope: &WatchScope, from: &WatchCursor) -> Watched {
        Watched { watch: self.watcher.watch(scope, from).await.unwrap() }
    }

    pub(crate) async fn sync(&self) -> Watched {
        self.watch(&WatchScope::All, &WatchCursor::none()).await
    }

    /// Keys, sorted.
    pub(crate) async fn keys(&self, prefix: &str) -> Vec<String> {
        let keys = self.reader.keys(prefix).await.unwrap();
        let mut keys: Vec<_> = keys.iter().map(|key| key.as_str().to_owned()).collect();
        keys.sort();
        keys
    }
}

/// Default settings.
pub(crate) async fn bucket(backend: &impl Backend) -> Bucket {
    Bucket::make(backend.connection(), &StoreConfig::default()).await
}

pub(crate) struct Watched {
    pub(crate) watch: Box<dyn Watch>,
}

impl Watched {
    /// The next event within a minute, and its updates as text.
    pub(crate) async fn event(&mut self, max: usize) -> (WatchEvent, Vec<String>) {
        let mut updates = Vec::new();
        let next = self.watch.next(&mut updates, max);
        let event = tokio::time::timeout(Duration::from_secs(60), next).await;
        let event = event.expect("the watch brings nothing").unwrap();
        (event, updates.iter().map(show).collect())
    }

    /// All updates up to the end of the state sync, or of the delta.
    pub(crate) async fn until_synced(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let (event, updates) = self.event(100).await;
            all.extend(updates);
            if matches!(event, WatchEvent::Synced { .. }) {
                return all;
            }
        }
    }

    /// That many updates.
    pub(crate) async fn updates(&mut self, count: usize) -> Vec<String> {
        let mut all = Vec::new();
        while all.len() < count {
            let (event, updates) = self.event(count - all.len()).await;
            assert!(matches!(event, WatchEvent::Updates { .. }), "{event:?} after {all:?}");
            all.extend(updates);
        }
        all
    }

    pub(crate) fn cursor(&self) -> WatchCursor {
        self.watch.cursor()
    }
}

/// `key=value@revision`, `-key@revision` or `--key@revision`.
pub(crate) fn show(update: &KvUpdate) -> String {
    let (key, revision) = (update.key().as_str(), update.version().as_u64().unwrap());
    match update {
        KvUpdate::Put(entry) => {
            format!("{key}={}@{revision}", String::from_utf8_lossy(&entry.value))
        }
        KvUpdate::Delete { .. } => format!("-{key}@{revision}"),
        KvUpdate::Purge { .. } => format!("--{key}@{revision}"),
    }
}
