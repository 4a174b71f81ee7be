//! The same coordinator for callers without a runtime: it has one of its own, on a thread of its own,
//! where keep-alives run while the caller works.

use core::fmt;
use core::future::Future;
use core::num::NonZeroUsize;
use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, AsyncCoordinationBackend, AsyncRunManagement,
    AsyncShardClaiming, CheckpointError, CheckpointRenewal, ClaimCandidates, ClaimError,
    CompleteError, CoordinationBackend, CreateRunError, DeleteRunError, EventCollector,
    GetRunError, IdempotentOutcome, InfraError, Lease, ParkError, ParkReason, RegisterShardsError,
    ReleaseError, RenewError, RenewResult, RevokeLeaseError, RunConfig, RunManagement, RunProgress,
    RunRecord, RunSummary, RunTransitionError, ShardClaiming, ShardFilter, ShardSummary,
    SplitReplaceError, SplitResidualError, UnparkError,
};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::config::EtcdConfig;
use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::ConnectError;
use crate::keyspace::Keyspace;
use crate::kv::{EtcdKv, Kv};

/// How long the end of the last clone may wait for etcd to end the process's lease.
const CLOSING_MAX: Duration = Duration::from_secs(2);

/// A coordinator on an etcd cluster, for sync callers. Clones share the connection, the runtime and
/// the process's lease, which ends with the last of them.
///
/// Inside an async runtime its methods return errors; [`AsyncEtcdCoordinator`] is for there.
pub struct EtcdCoordinator<K: Kv = EtcdKv> {
    inner: AsyncEtcdCoordinator<K>,
    process: Arc<Process<K>>,
}

/// What the clones share.
struct Process<K: Kv> {
    runtime: Arc<OwnRuntime>,
    lease_of: AsyncEtcdCoordinator<K>,
    is_killed: AtomicBool,
}

/// A runtime that ends without waiting for its tasks, and so wherever it is dropped.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn wait<T>(&self, answer: impl Future<Output = T>) -> T {
        self.0.as_ref().expect("it is taken when it is dropped").block_on(answer)
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl EtcdCoordinator {
    /// Connects to a cluster.
    pub fn connect(config: EtcdConfig) -> Result<Self, ConnectError> {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(1).thread_name("gossip-etcd");
        let connect = |runtime: &OwnRuntime| runtime.wait(AsyncEtcdCoordinator::connect(config));
        Self::with_runtime(builder, connect)
    }
}

impl<K: Kv> EtcdCoordinator<K> {
    fn with_runtime(
        mut builder: Builder,
        connect: impl FnOnce(&OwnRuntime) -> Result<AsyncEtcdCoordinator<K>, ConnectError>,
    ) -> Result<Self, ConnectError> {
        if Handle::try_current().is_ok() {
            return Err(ConnectError::InsideRuntime);
        }
        let runtime = builder
            .enable_all()
            .build()
            .map_err(|error| ConnectError::Runtime { message: error.to_string() })?;
        let runtime = Arc::new(OwnRuntime(Some(runtime)));
        let inner = connect(&runtime)?;
        let is_killed = AtomicBool::new(false);
        let process = Process { runtime, lease_of: inner.clone(), is_killed };
        Ok(Self { inner, process: Arc::new(process) })
    }

    /// A coordinator on a model of etcd. Nobody keeps its lease alive.
    #[cfg(feature = "sim")]
    pub fn on_model(kv: K, config: EtcdConfig) -> Result<Self, ConnectError> {
        Self::with_runtime(Builder::new_current_thread(), |_| {
            Ok(AsyncEtcdCoordinator::on_model(kv, config)?)
        })
    }

    /// Its listings read pages of so many entries.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn with_pages_of(mut self, entries: NonZeroUsize) -> Self {
        self.inner.page = entries.get();
        self
    }

    /// Its runs' leases are in the time of a model, which has nothing to do with etcd's: that
    /// [`EtcdConfig::validate_run`] refuses them does not matter.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn with_model_time(mut self) -> Self {
        self.inner.has_model_time = true;
        self
    }

    /// When the last clone goes, its lease stays until it ends by itself, as after `kill -9`.
    #[cfg(feature = "sim")]
    pub fn end_as_if_killed(&self) {
        self.process.is_killed.store(true, Ordering::Relaxed);
    }

    /// How the cluster is used.
    #[must_use]
    pub fn config(&self) -> &EtcdConfig {
        self.inner.config()
    }

    /// The keys that it uses.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        self.inner.keyspace()
    }

    /// The store, for tests that look at what is in it.
    #[doc(hidden)]
    #[must_use]
    pub fn kv(&self) -> &K {
        self.inner.kv()
    }

    /// Runs `f` and puts the events of what it does into `collector`, each after its transaction,
    /// also when `f` panics.
    pub fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        collector.lend(self, |coordinator| &mut coordinator.inner.events, f)
    }
}

impl<K: Kv> Process<K> {
    /// Waits for an answer, unless the caller's runtime would have to wait, too.
    fn wait<T, E: From<InfraError>>(
        &self,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        if Handle::try_current().is_ok() {
            let message = "called inside an async runtime: use AsyncEtcdCoordinator there";
            return Err(InfraError::refused("runtime", message).into());
        }
        self.runtime.wait(answer)
    }
}

/// Others may take what the process held at once. If etcd does not answer, the lease ends by itself.
impl<K: Kv> Drop for Process<K> {
    fn drop(&mut self) {
        if self.is_killed.load(Ordering::Relaxed) {
            return;
        }
        let (runtime, lease_of) = (Arc::clone(&self.runtime), self.lease_of.clone());
        let close = move || {
            let revoking = lease_of.revoke_lease_of_process();
            let revoked = runtime.wait(async { tokio::time::timeout(CLOSING_MAX, revoking).await });
            if !matches!(revoked, Ok(Ok(()))) {
                tracing::warn!("the process's etcd lease was not revoked; it ends by itself");
            }
        };
        // Inside an async runtime nobody may wait for it.
        if Handle::try_current().is_err() {
            close();
        } else if std::thread::Builder::new().spawn(close).is_err() {
            tracing::warn!("the process's etcd lease was not revoked: there is no thread for it");
        }
    }
}

/// Implements a trait by waiting for what the async one answers.
macro_rules! waits {
    (impl $trait:ident by $async_trait:ident {
        $(fn $name:ident $(<$lt:lifetime>)? (mut $(, $arg:ident: $ty:ty)*) -> $ret:ty;)*
        $(where fn $ref_name:ident (ref $(, $ref_arg:ident: $ref_ty:ty)*) -> $ref_ret:ty;)*
    }) => {
        impl<K: Kv> $trait for EtcdCoordinator<K> {
            $(fn $name $(<$lt>)? (&mut self $(, $arg: $ty)*) -> $ret {
                let Self { inner, process } = self;
                process.wait($async_trait::$name(inner $(, $arg)*))
            })*
            $(fn $ref_name (&self $(, $ref_arg: $ref_ty)*) -> $ref_ret {
                self.process.wait($async_trait::$ref_name(&self.inner $(, $ref_arg)*))
            })*
        }
    };
}

waits! {
    impl CoordinationBackend by AsyncCoordinationBackend {
        fn acquire_and_restore_into<'s>(
            mut, now: LogicalTime, tenant: TenantId, key: ShardKey, worker: WorkerId,
            scratch: &'s mut AcquireScratch
        ) -> Result<AcquireResultView<'s>, AcquireError>;
        fn renew(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease
        ) -> Result<RenewResult, RenewError>;
        fn release(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease
        ) -> Result<(), ReleaseError>;
        fn checkpoint(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<()>, CheckpointError>;
        fn checkpoint_and_renew(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError>;
        fn complete(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<()>, CompleteError>;
        fn park_shard(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, reason: ParkReason, op_id: OpId
        ) -> Result<IdempotentOutcome<()>, ParkError>;
        fn split_replace(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, plan: &SplitReplacePlan<'_>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError>;
        fn split_residual(
            mut, now: LogicalTime, tenant: TenantId, lease: &Lease, plan: &SplitResidualPlan<'_>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError>;
    }
}

waits! {
    impl RunManagement by AsyncRunManagement {
        fn create_run(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, config: RunConfig
        ) -> Result<(), CreateRunError>;
        fn register_shards(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, shards: &[InitialShardInput<'_>],
            op_id: OpId
        ) -> Result<IdempotentOutcome<()>, RegisterShardsError>;
        fn complete_run_with(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, result: Option<RunResult>,
            op_id: OpId
        ) -> Result<IdempotentOutcome<()>, RunTransitionError>;
        fn fail_run(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, op_id: OpId
        ) -> Result<IdempotentOutcome<()>, RunTransitionError>;
        fn cancel_run(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, op_id: OpId
        ) -> Result<IdempotentOutcome<()>, RunTransitionError>;
        fn unpark_shard(
            mut, now: LogicalTime, tenant: TenantId, key: ShardKey, op_id: OpId
        ) -> Result<IdempotentOutcome<()>, UnparkError>;
        fn collect_claim_candidates_into(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
            out: &mut ClaimCandidates
        ) -> Result<(), GetRunError>;
        fn revoke_lease(
            mut, now: LogicalTime, tenant: TenantId, key: ShardKey, fence: FenceEpoch
        ) -> Result<IdempotentOutcome<()>, RevokeLeaseError>;
        fn delete_run(
            mut, now: LogicalTime, tenant: TenantId, run: RunId
        ) -> Result<(), DeleteRunError>;
        fn note_idle(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId
        ) -> Result<(), GetRunError>;
        where fn get_run(ref, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError>;
        where fn get_run_progress(
            ref, tenant: TenantId, run: RunId
        ) -> Result<RunProgress, GetRunError>;
        where fn list_runs_into(
            ref, tenant: TenantId, after: Option<RunId>, limit: NonZeroUsize,
            out: &mut Vec<RunSummary>
        ) -> Result<Option<RunId>, InfraError>;
        where fn list_shards_page_into(
            ref, now: LogicalTime, tenant: TenantId, run: RunId, filter: ShardFilter,
            after: Option<ShardId>, limit: NonZeroUsize, out: &mut Vec<ShardSummary>
        ) -> Result<Option<ShardId>, GetRunError>;
        where fn list_shards_into(
            ref, now: LogicalTime, tenant: TenantId, run: RunId, filter: ShardFilter,
            out: &mut Vec<ShardSummary>
        ) -> Result<(), GetRunError>;
    }
}

impl<K: Kv> EtcdCoordinator<K> {
    /// See [`AsyncEtcdCoordinator::list_active_runs_into`].
    pub fn list_active_runs_into(
        &self,
        tenant: TenantId,
        out: &mut Vec<RunId>,
    ) -> Result<(), InfraError> {
        self.process.wait(self.inner.list_active_runs_into(tenant, out))
    }

    /// See [`AsyncEtcdCoordinator::gc_stale_initializing_runs_into`].
    pub fn gc_stale_initializing_runs_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        cutoff: LogicalTime,
        op_id: OpId,
        out: &mut Vec<RunId>,
    ) -> Result<(), InfraError> {
        let Self { inner, process } = self;
        process.wait(inner.gc_stale_initializing_runs_into(now, tenant, cutoff, op_id, out))
    }
}

waits! {
    impl ShardClaiming by AsyncShardClaiming {
        fn claim_next_available<'s>(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
            scratch: &'s mut AcquireScratch
        ) -> Result<AcquireResultView<'s>, ClaimError>;
        fn reacquire_own<'s>(
            mut, now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
            scratch: &'s mut AcquireScratch
        ) -> Result<Option<AcquireResultView<'s>>, ClaimError>;
    }
}

impl<K: Kv> Clone for EtcdCoordinator<K> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), process: Arc::clone(&self.process) }
    }
}

impl<K: Kv> fmt::Debug for EtcdCoordinator<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EtcdCoordinator").field(&self.inner).finish()
    }
}
