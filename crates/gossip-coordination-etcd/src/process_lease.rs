//! The lease of this process: all of its owner keys end with it.
//!
//! - J1: a process has one lease at a time, whatever it holds, and so one keep-alive at a time.
//! - J2: a lease that has ended is never used again; whoever needs one gets a new one.
//! - J3: a keep-alive that is not answered leaves time for two more before the lease ends.

use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, Weak};

use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};

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
    /// Grants that failed so far.
    failures: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    current: Option<LeaseId>,
    /// The id of a grant that was not answered. The next try asks for the same, so that a lost answer
    /// leaves no lease behind.
    asked: Option<LeaseId>,
    /// Why the last grant failed.
    failure: Option<KvError>,
}

impl<K: Kv> ProcessLease<K> {
    /// No lease yet; the first shard or idle worker gets one.
    pub(crate) fn new(kv: K, ttl: Duration) -> Self {
        let (failures, state) = (AtomicU64::new(0), Mutex::default());
        Self { shared: Arc::new(Shared { kv, ttl_secs: ttl.as_secs(), failures, state }) }
    }

    /// The lease, which is created if there is none. Those who wait while one asks share its answer:
    /// after an outage a grant that takes long and fails does so once, and not for each in turn.
    pub(crate) async fn id(&self) -> Result<LeaseId, KvError> {
        let Shared { kv, ttl_secs, failures, state } = &*self.shared;
        let seen = failures.load(Ordering::Relaxed);
        let mut state = state.lock().await;
        if let Some(id) = state.current {
            return Ok(id);
        }
        if failures.load(Ordering::Relaxed) != seen
            && let Some(failure) = &state.failure
        {
            return Err(failure.clone());
        }
        let id = state.asked.map_or_else(random_lease_id, Ok)?;
        state.asked = Some(id);
        if let Err(error) = kv.lease_grant(id, *ttl_secs).await {
            failures.fetch_add(1, Ordering::Relaxed);
            state.failure = Some(error.clone());
            return Err(error);
        }
        *state = State { current: Some(id), ..State::default() };
        Ok(id)
    }

    /// J2: etcd says that this lease has ended.
    pub(crate) async fn has_ended(&self, id: LeaseId) {
        let mut state = self.shared.state.lock().await;
        if state.current == Some(id) {
            state.current = None;
        }
    }

    /// Ends the lease: others may take what the process holds at once.
    pub(crate) async fn revoke(&self) -> Result<(), KvError> {
        let id = self.shared.state.lock().await.current.take();
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

/// J3: the first at a third of the lease's time, and each has a quarter.
async fn keep_alive<K: Kv>(shared: Weak<Shared<K>>) {
    let Some(ttl) = shared.upgrade().map(|it| Duration::from_secs(it.ttl_secs)) else { return };
    let mut wait = ttl / 3;
    loop {
        tokio::time::sleep(wait).await;
        let Some(shared) = shared.upgrade() else { return };
        let (lease, started) = (ProcessLease { shared }, Instant::now());
        wait = if lease.keep_alive_once().await {
            ttl / 3
        } else {
            // At once, unless the failure came at once.
            (ttl / 8).saturating_sub(started.elapsed())
        };
    }
}

impl<K: Kv> ProcessLease<K> {
    /// Whether there is nothing to worry about until the next time.
    pub(crate) async fn keep_alive_once(&self) -> bool {
        let Some(id) = self.shared.state.lock().await.current else { return true };
        let patience = Duration::from_secs(self.shared.ttl_secs) / 4;
        let asked = timeout(patience, self.shared.kv.lease_keep_alive(id)).await;
        let no_answer = |_| Err(KvError::Unanswered(format!("nothing within {patience:?}")));
        match asked.unwrap_or_else(no_answer) {
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

/// Positive, as etcd wants it.
fn random_lease_id() -> Result<LeaseId, KvError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes)
        .map_err(|error| KvError::Unavailable(format!("no random numbers: {error}")))?;
    Ok(LeaseId((i64::from_le_bytes(bytes) & i64::MAX).max(1)))
}

#[cfg(all(test, feature = "sim"))]
mod tests {
    use core::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::kv::{SimKv, Txn, TxnAnswer};

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

    /// A store that answers keep-alives late and in vain for a while, as a member that stands still.
    #[derive(Clone)]
    struct Stalling {
        kv: SimKv,
        stalls: Arc<AtomicU32>,
        request_timeout: Duration,
    }

    impl Kv for Stalling {
        async fn txn(&self, txn: Txn) -> Result<TxnAnswer, KvError> {
            self.kv.txn(txn).await
        }

        async fn lease_grant(&self, id: LeaseId, ttl_secs: u64) -> Result<u64, KvError> {
            self.kv.lease_grant(id, ttl_secs).await
        }

        async fn lease_keep_alive(&self, id: LeaseId) -> Result<(), KvError> {
            let stalls = |left: u32| left.checked_sub(1);
            if self.stalls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, stalls).is_err() {
                return self.kv.lease_keep_alive(id).await;
            }
            tokio::time::sleep(self.request_timeout).await;
            Err(KvError::Unanswered("it stood still".into()))
        }

        async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
            self.kv.lease_revoke(id).await
        }
    }

    /// A store that carries out grants and loses the answers of the first few, after a while.
    #[derive(Clone)]
    struct Forgetful {
        kv: SimKv,
        losses: Arc<AtomicU32>,
        grants: Arc<Mutex<Vec<LeaseId>>>,
    }

    impl Kv for Forgetful {
        async fn txn(&self, txn: Txn) -> Result<TxnAnswer, KvError> {
            self.kv.txn(txn).await
        }

        async fn lease_grant(&self, id: LeaseId, ttl_secs: u64) -> Result<u64, KvError> {
            self.grants.lock().await.push(id);
            let granted = self.kv.lease_grant(id, ttl_secs).await;
            let loses = |left: u32| left.checked_sub(1);
            if self.losses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, loses).is_err() {
                return granted;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
            Err(KvError::Unanswered("it was lost".into()))
        }

        async fn lease_keep_alive(&self, id: LeaseId) -> Result<(), KvError> {
            self.kv.lease_keep_alive(id).await
        }

        async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
            self.kv.lease_revoke(id).await
        }
    }

    fn forgetful(losses: u32) -> (Forgetful, ProcessLease<Forgetful>) {
        let (losses, grants) = (Arc::new(AtomicU32::new(losses)), Arc::default());
        let store = Forgetful { kv: SimKv::new(), losses, grants };
        (store.clone(), ProcessLease::new(store, Duration::from_secs(3)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_grant_whose_answer_was_lost_leaves_no_second_lease() {
        let (store, lease) = forgetful(2);
        assert!(lease.id().await.is_err() && lease.id().await.is_err());
        let id = lease.id().await.unwrap();
        assert_eq!(*store.grants.lock().await, [id; 3]);
        // After its end another is asked for.
        lease.has_ended(id).await;
        assert_ne!(lease.id().await.unwrap(), id);
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_wait_for_a_lease_share_the_failure_to_get_one() {
        let (store, lease) = forgetful(1);
        let started = Instant::now();
        let mut waiting = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let lease = lease.clone();
            waiting.spawn(async move { lease.id().await.is_err() });
        }
        assert!(waiting.join_all().await.into_iter().all(|failed| failed));
        assert_eq!(started.elapsed(), Duration::from_secs(1));
        assert_eq!(store.grants.lock().await.len(), 1);
        assert!(lease.id().await.is_ok(), "a failure of before is nobody's");
    }

    /// J3: whatever a request may take, within what the configuration allows.
    #[tokio::test(start_paused = true)]
    async fn a_lease_outlives_two_keep_alives_that_are_not_answered() {
        for (ttl_secs, timeout_ms) in [(10, 5_000), (10, 9_900), (4, 3_000), (2, 1_900)] {
            let (kv, stalls) = (SimKv::new(), Arc::new(AtomicU32::new(0)));
            let request_timeout = Duration::from_millis(timeout_ms);
            let store = Stalling { kv: kv.clone(), stalls: Arc::clone(&stalls), request_timeout };
            let lease = ProcessLease::new(store, Duration::from_secs(ttl_secs));
            let id = lease.id().await.unwrap();
            let task = tokio::spawn(lease.keep_alive());
            for round in 0..10 {
                stalls.store(round % 3, Ordering::Relaxed);
                for _ in 0..ttl_secs * 200 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    kv.advance_ms(10);
                }
            }
            assert_eq!(kv.lease_keep_alive(id).await, Ok(()), "{ttl_secs} s, {timeout_ms} ms");
            task.abort();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_task_ends_with_the_last_user() {
        let (_, lease) = lease();
        let task = tokio::spawn(lease.keep_alive());
        drop(lease);
        task.await.unwrap();
    }
}
