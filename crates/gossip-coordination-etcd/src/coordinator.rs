//! The coordinator: a connection, and what it remembers.
//!
//! - B1: an operation takes effect exactly once, also when an answer of etcd is lost: what was tried
//!   is found in the record or in its history, or tried again under the same compares.
//! - B2: a refusal is decided from what etcd has now, never from what is remembered.
//! - B3: what two operations write differs, also where it is the same record: an id of the operation
//!   stands behind it. So of two that are the same, each knows whether it took effect itself.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use gossip_contracts::identity::{LogicalTime, RunId, ShardKey, TenantId, WorkerId};
use gossip_coordination::codec::DecodeScratch;
use gossip_coordination::{
    EventCollector, EventKind, InfraError, RunConfig, ShardCounts, ShardRoom, ShardState,
    SplitCaps, StateTransitionEvent, Takeover,
};

use crate::config::EtcdConfig;
use crate::error::{ConnectError, infra};
use crate::free_list::FreeLists;
use crate::keyspace::Keyspace;
use crate::kv::{EtcdKv, Kv, LeaseId, Txn, TxnAnswer};
use crate::limits::PAGE;
use crate::process_lease::ProcessLease;
use crate::retry::{Attempts, may_pass};
use crate::shards::Snapshot;

/// Shards whose last state one coordinator remembers. A worker holds a few.
const REMEMBERED_MAX: usize = 1_024;
/// Waits of workers from which on those that are over are forgotten.
const COOLDOWNS_MAX: usize = 1_024;

/// A coordinator on an etcd cluster, for async callers. Clones share the connection and the process's
/// lease; each is used by one task at a time.
///
/// A future that is dropped may have been carried out, or may still be: the same call under the same
/// operation id says.
pub struct AsyncEtcdCoordinator<K = EtcdKv> {
    pub(crate) kv: K,
    pub(crate) config: Arc<EtcdConfig>,
    pub(crate) keyspace: Keyspace,
    lease: ProcessLease<K>,
    /// Until when workers whose claims found nothing must wait.
    pub(crate) cooldowns: Arc<Mutex<HashMap<(TenantId, WorkerId), LogicalTime>>>,
    /// How much of runs' lists is looked at.
    pub(crate) free_lists: Arc<FreeLists>,
    /// What this coordinator last wrote about the shards that it works on.
    pub(crate) memory: HashMap<(TenantId, ShardKey), Snapshot>,
    pub(crate) decoded: DecodeScratch,
    pub(crate) events: Option<EventCollector>,
    /// Entries that a listing reads at once.
    pub(crate) page: usize,
    /// The caller's time is a model's: leases may be shorter than etcd's.
    pub(crate) has_model_time: bool,
}

impl AsyncEtcdCoordinator {
    /// Connects to a cluster. Keep-alives of the process's lease run on the current runtime, so its
    /// tasks must not block it for longer than a third of
    /// [`owner_lease_ttl`](EtcdConfig::owner_lease_ttl).
    pub async fn connect(config: EtcdConfig) -> Result<Self, ConnectError> {
        config.validate()?;
        let kv = EtcdKv::connect(&config).await?;
        let coordinator = Self::on(kv, config);
        tokio::spawn(coordinator.lease.keep_alive());
        Ok(coordinator)
    }
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// A coordinator whose process lease nobody keeps alive.
    pub(crate) fn on(kv: K, config: EtcdConfig) -> Self {
        Self {
            lease: ProcessLease::new(kv.clone(), config.owner_lease_ttl),
            keyspace: config.keyspace(),
            config: Arc::new(config),
            cooldowns: Arc::default(),
            free_lists: Arc::default(),
            memory: HashMap::new(),
            decoded: DecodeScratch::new(),
            events: None,
            page: PAGE,
            has_model_time: false,
            kv,
        }
    }

    /// A coordinator on a model of etcd. Nobody keeps its lease alive but
    /// [`AsyncEtcdCoordinator::keep_alive_once`].
    #[cfg(feature = "sim")]
    pub fn on_model(kv: K, config: EtcdConfig) -> Result<Self, crate::ConfigError> {
        config.validate()?;
        Ok(Self::on(kv, config))
    }

    /// Keeps the process's lease alive once.
    #[cfg(feature = "sim")]
    pub async fn keep_alive_once(&self) {
        self.lease.keep_alive_once().await;
    }

    /// How the cluster is used.
    #[must_use]
    pub fn config(&self) -> &EtcdConfig {
        &self.config
    }

    /// The keys that it uses.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// The store, for tests that look at what is in it.
    #[doc(hidden)]
    #[must_use]
    pub fn kv(&self) -> &K {
        &self.kv
    }

    /// Puts the events of what it does into `collector`, or nowhere, and returns the collector of
    /// before.
    pub fn collect_events(&mut self, collector: Option<EventCollector>) -> Option<EventCollector> {
        core::mem::replace(&mut self.events, collector)
    }

    /// Ends the process's lease: other workers may take what it holds at once. For all clones.
    pub async fn close(self) -> Result<(), InfraError> {
        self.revoke_lease_of_process().await
    }

    pub(crate) async fn revoke_lease_of_process(&self) -> Result<(), InfraError> {
        self.lease.revoke().await.map_err(|error| infra("close.lease", &error))
    }

    /// Says whether a run's leases fit the settings; a refusal names the one that they do not.
    pub(crate) fn lease_check(
        &self,
        step: &'static str,
    ) -> impl Fn(&RunConfig) -> Result<(), InfraError> + Send + use<K> {
        let settings = (!self.has_model_time).then(|| Arc::clone(&self.config));
        move |run| match settings.as_ref().map(|settings| settings.validate_run(run)) {
            Some(Err(error)) => Err(InfraError::refused(step, error.to_string())),
            Some(Ok(())) | None => Ok(()),
        }
    }

    pub(crate) fn takeover(&self, holder_is_gone: bool) -> Takeover {
        Takeover { holder_is_gone, skew_allowance: self.config.skew_allowance_ms() }
    }

    pub(crate) fn room(&self, counts: ShardCounts) -> ShardRoom {
        let split = SplitCaps {
            max_children: self.config.max_split_children,
            max_bytes: self.config.max_split_bytes,
        };
        ShardRoom { limits: self.config.limits, counts, split }
    }

    pub(crate) fn emit(
        &mut self,
        tenant: TenantId,
        run: RunId,
        at: LogicalTime,
        kind: impl FnOnce() -> EventKind,
    ) {
        if let Some(collector) = &mut self.events {
            collector.emit(StateTransitionEvent { tenant, run, at, kind: kind() });
        }
    }

    /// What one operation may take.
    pub(crate) fn attempts(&self) -> Attempts {
        Attempts::new(&self.config)
    }

    /// Reads, as often as it takes.
    pub(crate) async fn read(
        &self,
        attempts: &mut Attempts,
        step: &'static str,
        txn: Txn,
    ) -> Result<TxnAnswer, InfraError> {
        loop {
            match attempts.within(self.kv.txn(txn.clone())).await {
                Ok(answer) => return Ok(answer),
                Err(error) if may_pass(&error) => attempts.next(step, Some(&error)).await?,
                Err(error) => return Err(infra(step, &error)),
            }
        }
    }

    /// The process's lease, as often as it takes.
    pub(crate) async fn lease_id(
        &self,
        attempts: &mut Attempts,
        step: &'static str,
    ) -> Result<LeaseId, InfraError> {
        loop {
            match attempts.within(self.lease.id()).await {
                Ok(id) => return Ok(id),
                Err(error) if may_pass(&error) => attempts.next(step, Some(&error)).await?,
                Err(error) => return Err(infra(step, &error)),
            }
        }
    }

    pub(crate) async fn lease_has_ended(&self, id: LeaseId) {
        self.lease.has_ended(id).await;
    }

    /// Remembers a shard that is held, for its holder's next operation.
    pub(crate) fn remember(
        &mut self,
        tenant: TenantId,
        key: ShardKey,
        state: &ShardState,
        snapshot: Snapshot,
    ) {
        if state.lease.is_none() {
            return;
        }
        // Whoever works on so many shards reads one of them again.
        if self.memory.len() >= REMEMBERED_MAX {
            let other = self.memory.keys().next().copied();
            other.map(|other| self.memory.remove(&other));
        }
        self.memory.insert((tenant, key), snapshot);
    }

    /// Whether a worker that found nothing must still wait.
    pub(crate) fn cooldown(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        worker: WorkerId,
    ) -> Option<LogicalTime> {
        let cooldowns = self.cooldowns.lock().unwrap_or_else(PoisonError::into_inner);
        cooldowns.get(&(tenant, worker)).copied().filter(|&until| now < until)
    }

    /// Has a worker that found nothing wait, or one that found something not.
    pub(crate) fn set_cooldown(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        worker: WorkerId,
        found_nothing: bool,
    ) {
        let wait = self.config.claim_cooldown_ms();
        let mut cooldowns = self.cooldowns.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(until) = now.checked_add(wait).filter(|_| found_nothing && wait > 0) else {
            cooldowns.remove(&(tenant, worker));
            return;
        };
        // Workers that never come again.
        if cooldowns.len() >= COOLDOWNS_MAX {
            cooldowns.retain(|_, until| now < *until);
        }
        cooldowns.insert((tenant, worker), until);
    }
}

impl<K: Clone> Clone for AsyncEtcdCoordinator<K> {
    fn clone(&self) -> Self {
        Self {
            kv: self.kv.clone(),
            config: Arc::clone(&self.config),
            keyspace: self.keyspace.clone(),
            lease: self.lease.clone(),
            cooldowns: Arc::clone(&self.cooldowns),
            free_lists: Arc::clone(&self.free_lists),
            memory: HashMap::new(),
            decoded: DecodeScratch::new(),
            events: None,
            page: self.page,
            has_model_time: self.has_model_time,
        }
    }
}

/// What it remembers stays out: it holds keys and tokens.
impl<K> fmt::Debug for AsyncEtcdCoordinator<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncEtcdCoordinator")
            .field("namespace", &self.config.namespace)
            .finish_non_exhaustive()
    }
}
