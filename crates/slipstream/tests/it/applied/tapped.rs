//! A log under observation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use slipstream::{
    KvError, KvUpdate, KvWatcher, LogCursor, LogInfo, Progress, Watch, WatchEvent, WatchScope,
};
use tokio::sync::Semaphore;

use super::support::World;

/// Counts what it is asked and what it hands out. Clones share the counts.
#[derive(Clone)]
pub(super) struct Tapped {
    log: Arc<dyn KvWatcher>,
    /// Readings of the log.
    pub(super) readings: Arc<AtomicU64>,
    /// Updates.
    pub(super) handed_out: Arc<AtomicU64>,
    /// Its watches are told once how far they are; a permit for every other time that one asks.
    silence: Option<Arc<Semaphore>>,
}

impl Tapped {
    pub(super) fn of(world: &World) -> Self {
        let log = world.kv.watcher().unwrap();
        Self { log, readings: Arc::default(), handed_out: Arc::default(), silence: None }
    }

    pub(super) fn silent(world: &World, asked: &Arc<Semaphore>) -> Self {
        Self { silence: Some(Arc::clone(asked)), ..Self::of(world) }
    }
}

#[async_trait]
impl KvWatcher for Tapped {
    async fn watch_from(
        &self,
        scope: &WatchScope,
        from: Option<&LogCursor>,
    ) -> Result<Box<dyn Watch>, KvError> {
        let watch = self.log.watch_from(scope, from).await?;
        Ok(Box::new(TappedWatch { watch, log: self.clone(), synced: false }))
    }

    async fn log(&self) -> Result<LogInfo, KvError> {
        self.readings.fetch_add(1, Ordering::SeqCst);
        self.log.log().await
    }
}

struct TappedWatch {
    watch: Box<dyn Watch>,
    log: Tapped,
    /// Whether it has been told once how far it is.
    synced: bool,
}

#[async_trait]
impl Watch for TappedWatch {
    async fn next(&mut self, into: &mut Vec<KvUpdate>, max: usize) -> Result<WatchEvent, KvError> {
        let before = into.len();
        let event = self.watch.next(into, max).await?;
        self.log.handed_out.fetch_add((into.len() - before) as u64, Ordering::SeqCst);
        Ok(event)
    }

    fn log_cursor(&self) -> LogCursor {
        self.watch.log_cursor()
    }

    fn position(&self) -> u64 {
        self.watch.position()
    }

    fn advance(&mut self, through: u64) {
        self.watch.advance(through);
    }

    async fn progress(&mut self) -> Result<Progress, KvError> {
        if let Some(asked) = self.log.silence.as_ref().filter(|_| self.synced) {
            asked.add_permits(1);
            std::future::pending::<()>().await;
        }
        self.synced = true;
        self.watch.progress().await
    }
}
