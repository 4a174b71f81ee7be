//! How long an operation may take on a cluster that answers late, or not at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::WorkerId;
use gossip_coordination::{
    AcquireScratch, AsyncCoordinationBackend, AsyncRunManagement, AsyncShardClaiming,
    LeasedOperationError, ShardFilter,
};
use gossip_coordination_etcd::AsyncEtcdCoordinator;
use gossip_coordination_etcd::kv::{Kv, KvError, LeaseId, SimKv, Txn, TxnAnswer};
use tokio::time::{Instant, sleep};

use crate::server::config;
use crate::world::*;

/// Once it is slow, reads are answered just before a client gives up, and writes not at all.
#[derive(Clone)]
struct Slow {
    kv: SimKv,
    is_slow: Arc<AtomicBool>,
    request_timeout: Duration,
}

impl Slow {
    /// Waits for as long as an answer takes, and says whether there is none.
    async fn stalls(&self, writes: bool) -> Result<(), KvError> {
        if !self.is_slow.load(Ordering::Relaxed) {
            return Ok(());
        }
        sleep(self.request_timeout.mul_f64(0.99)).await;
        if writes { Err(KvError::Unanswered("it is slow".into())) } else { Ok(()) }
    }
}

impl Kv for Slow {
    async fn txn(&self, txn: Txn) -> Result<TxnAnswer, KvError> {
        self.stalls(txn.writes()).await?;
        self.kv.txn(txn).await
    }

    async fn lease_grant(&self, id: LeaseId, ttl_secs: u64) -> Result<u64, KvError> {
        self.stalls(true).await?;
        self.kv.lease_grant(id, ttl_secs).await
    }

    async fn lease_keep_alive(&self, id: LeaseId) -> Result<(), KvError> {
        self.stalls(true).await?;
        self.kv.lease_keep_alive(id).await
    }

    async fn lease_revoke(&self, id: LeaseId) -> Result<(), KvError> {
        self.stalls(true).await?;
        self.kv.lease_revoke(id).await
    }
}

/// Reads and writes have one budget, in which an operation ends while its lease still lasts.
#[tokio::test(start_paused = true)]
async fn an_operation_ends_in_its_time_on_a_cluster_that_is_slow() {
    let config = config(["http://nowhere:1".into()]);
    let (limit, request_timeout) = (config.operation_timeout, config.request_timeout);
    let is_slow = Arc::new(AtomicBool::new(false));
    let kv = Slow { kv: SimKv::new(), is_slow: Arc::clone(&is_slow), request_timeout };
    let mut coordinator = AsyncEtcdCoordinator::on_model(kv, config).unwrap();
    let (manifest, worker) = (Manifest::of(3, 10), WorkerId::from_raw(1));
    let rows = manifest.rows();
    coordinator.create_run_with_shards(NOW, TENANT, RUN, CONFIG, &rows, op(1)).await.unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let lease = coordinator
        .claim_next_available(NOW, TENANT, RUN, worker, &mut scratch)
        .await
        .unwrap()
        .lease;
    is_slow.store(true, Ordering::Relaxed);
    macro_rules! ends_in_time {
        ($($call:expr),* $(,)?) => {$(
            let started = Instant::now();
            let error = $call.await.map(drop).expect_err(stringify!($call));
            assert!(started.elapsed() <= limit, "{:?}: {}", started.elapsed(), stringify!($call));
            assert!(error.is_retryable(), "{error}");
        )*};
    }
    let (cursor, mut other) = (key(3 + 10 * lease.shard().as_raw()), coordinator.clone());
    let (cursor, next) =
        (CursorUpdate::at(&cursor), gossip_contracts::identity::RunId::from_raw(2));
    ends_in_time! {
        coordinator.checkpoint(NOW, TENANT, &lease, cursor, op(2)),
        coordinator.renew(NOW, TENANT, &lease),
        coordinator.release(NOW, TENANT, &lease),
        other.checkpoint_and_renew(NOW, TENANT, &lease, cursor, op(3)),
        other.claim_next_available(NOW, TENANT, RUN, WorkerId::from_raw(2), &mut scratch),
        other.reacquire_own(NOW, TENANT, RUN, worker, &mut scratch),
        other.note_idle(NOW, TENANT, RUN, worker),
        other.create_run(NOW, TENANT, next, CONFIG),
        other.cancel_run(NOW, TENANT, RUN, op(4)),
    }
    // A listing may take that long for each page.
    let mut listed = Vec::new();
    other.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut listed).await.unwrap();
    assert_eq!(listed.len(), 3);
}
