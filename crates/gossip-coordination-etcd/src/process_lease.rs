//! The lease of this process: all of its owner keys end with it.
//!
//! - J1: a process has one lease at a time, whatever it holds, and so one stream of keep-alives.
//! - J2: a lease that has ended is never used again; whoever needs one gets a new one.

use core::time::Duration;
use std::sync::{Arc, Weak};

use tokio::sync::Mutex;

use crate::kv::{Kv, KvError, LeaseId};

/// The lease. Clones share it.
#[derive(Debug)]
pub(crate) struct ProcessLease<K> {
    shared: Arc<Shared<K>>,
}

impl<K> Clone for ProcessLease<K> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

#[derive(Debug)]
struct Shared<K> {
    kv: K,
    ttl_secs: u64,
    current: Mutex<Option<LeaseId>>,
}

impl<K: Kv> ProcessLease<K> {
    /// No lease yet; the first shard or idle worker gets one.
    pub(crate) fn new(kv: K, ttl: Duration) -> Self {
        let shared = Shared { kv, ttl_secs: ttl.as_secs(), current: Mutex::new(None) };
        Self { shared: Arc::new(shared) }
    }

    /// The lease, which is created if there is none.
    pub(crate) async fn id(&self) -> Result<LeaseId, KvError> {
        let Shared { kv, ttl_secs, current } = &*self.shared;
        let mut current = current.lock().await;
        if let Some(id) = *current {
            return Ok(id);
        }
        let id = random_lease_id()?;
        kv.lease_grant(id, *ttl_secs).await?;
        *current = Some(id);
        Ok(id)
    }

    /// J2: etcd says that this lease has ended.
    pub(crate) async fn has_ended(&self, id: LeaseId) {
        let mut current = self.shared.current.lock().await;
        if *current == Some(id) {
            *current = None;
        }
    }

    /// Ends the lease: others may take what the process holds at once.
    pub(crate) async fn revoke(&self) -> Result<(), KvError> {
        let id = self.shared.current.lock().await.take();
        match id {
            Some(id) => self.shared.kv.lease_revoke(id).await,
            None => Ok(()),
        }
    }

    /// Keeps the lease alive as long as some coordinator uses it.
    pub(crate) fn keep_alive(&self) -> impl Future<Output = ()> + Send + use<K> {
        keep_alive(Arc::downgrade(&self.shared))
    }
}

async fn keep_alive<K: Kv>(shared: Weak<Shared<K>>) {
    // Three tries before it ends.
    let Some(interval) = shared.upgrade().map(|it| Duration::from_secs(it.ttl_secs) / 3) else {
        return;
    };
    let mut pause = interval;
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        let lease = ProcessLease { shared };
        pause = if lease.keep_alive_once().await { interval } else { interval / 4 };
    }
}

impl<K: Kv> ProcessLease<K> {
    /// Whether there is nothing to worry about until the next time.
    pub(crate) async fn keep_alive_once(&self) -> bool {
        let Some(id) = *self.shared.current.lock().await else { return true };
        match self.shared.kv.lease_keep_alive(id).await {
            Ok(()) => true,
            Err(KvError::LeaseNotFound) => {
                tracing::warn!("the process's etcd lease has ended: its shards may be taken");
                self.has_ended(id).await;
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the process's etcd lease was not kept alive");
                false
            }
        }
    }
}

/// Chosen here rather than by the server, so that asking again after a lost answer finds the same
/// lease. Positive, as etcd wants it.
fn random_lease_id() -> Result<LeaseId, KvError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| KvError::Unavailable(format!("no random numbers: {error}")))?;
    Ok(LeaseId((i64::from_le_bytes(bytes) & i64::MAX).max(1)))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use super::*;
    use crate::kv::SimKv;

    fn lease() -> (SimKv, ProcessLease<SimKv>) {
        let kv = SimKv::new();
        (kv.clone(), ProcessLease::new(kv, Duration::from_secs(3)))
    }

    #[tokio::test]
    async fn clones_share_one_lease() {
        let (_, lease) = lease();
        let id = lease.id().await.unwrap();
        assert_eq!(lease.clone().id().await.unwrap(), id);
    }

    #[tokio::test]
    async fn a_lease_that_ended_is_replaced() {
        let (kv, lease) = lease();
        let id = lease.id().await.unwrap();
        kv.advance_ms(2_999);
        assert!(lease.keep_alive_once().await);
        kv.advance_ms(2_999);
        assert_eq!(lease.id().await.unwrap(), id);
        kv.advance_ms(1);
        assert!(lease.keep_alive_once().await);
        let next = lease.id().await.unwrap();
        assert_ne!(next, id);
        // News of the old one does not end the new one.
        lease.has_ended(id).await;
        assert_eq!(lease.id().await.unwrap(), next);
    }

    #[tokio::test]
    async fn a_revoked_lease_is_gone_at_once() {
        let (kv, lease) = lease();
        let id = lease.id().await.unwrap();
        lease.revoke().await.unwrap();
        assert_eq!(kv.lease_keep_alive(id).await, Err(KvError::LeaseNotFound));
        assert_eq!(lease.revoke().await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_last_user() {
        let (_, lease) = lease();
        let task = tokio::spawn(lease.keep_alive());
        drop(lease);
        task.await.unwrap();
    }
}
