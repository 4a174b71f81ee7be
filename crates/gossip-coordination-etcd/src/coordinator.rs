//! The coordinator: a connection, what it remembers, and the loop in which every change of a shard is
//! decided and stored.
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
    CapacityHint, EventCollector, EventKind, InfraError, RunConfig, ShardCounts, ShardRoom,
    ShardState, SplitCaps, StateTransitionEvent, Takeover,
};

use crate::config::EtcdConfig;
use crate::error::{ConnectError, Steps, infra};
use crate::free_list::{FreeLists, Part};
use crate::keyspace::{Keyspace, RunKeys, place_of_shard};
use crate::kv::{EtcdKv, Found, Kv, KvError, LeaseId, Op, Read, Txn, TxnAnswer};
use crate::limits::PAGE;
use crate::process_lease::ProcessLease;
use crate::retry::{Attempts, may_pass};
use crate::settle::{Fate, Write, WriteId};
use crate::shards::{Change, DecisionInput, ShardPlace, Snapshot, decode_time};

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
    memory: HashMap<(TenantId, ShardKey), Snapshot>,
    decoded: DecodeScratch,
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
}

/// What to do about an operation on a shard.
#[allow(clippy::large_enum_variant, reason = "one of them lives for one try of an operation")]
pub(crate) enum StoreDecision<'r, R> {
    /// Store this, and then answer so.
    Store(Change<'r>, R),
    /// Answer so; there is nothing to store.
    Keep(R),
}

/// How an operation on a shard goes about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) steps: Steps,
    pub(crate) now: LogicalTime,
    /// It may make shards.
    pub(crate) grows: bool,
    /// Who is to get the shard.
    pub(crate) applicant: Option<WorkerId>,
    /// Its answer says what else there is to do in the run.
    pub(crate) tells_capacity: bool,
}

/// What an operation on a shard came to.
pub(crate) struct Outcome<R> {
    pub(crate) answer: R,
    pub(crate) capacity: CapacityHint,
    /// Workers that look for work in the run in vain.
    pub(crate) idle_workers: u32,
}

/// A change whose transaction was not answered.
struct Unanswered<R> {
    /// It was decided from what etcd had, and not from what was remembered: nobody had carried it out
    /// before.
    was_new: bool,
    write: Write,
    answer: R,
    event: Option<EventKind>,
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Decides about a shard and stores the decision, as often as it takes (B1, B2). `decide` may be
    /// asked several times, each time about what etcd has by then.
    pub(crate) async fn change_shard<'r, R: Send, E>(
        &mut self,
        attempts: &mut Attempts,
        manner: Manner,
        tenant: TenantId,
        key: ShardKey,
        mut decide: impl FnMut(DecisionInput<'_, '_>) -> Result<StoreDecision<'r, R>, E> + Send,
    ) -> Result<Outcome<R>, E>
    where
        E: From<InfraError> + Send,
    {
        let steps = manner.steps;
        let place = ShardPlace::new(&self.keyspace, tenant, key, manner.grows, manner.applicant);
        let is_remembered = !manner.grows && manner.applicant.is_none();
        let remembered = self.memory.remove(&(tenant, key)).filter(|_| is_remembered);
        let mut is_fresh = remembered.is_none();
        let (mut next, id) = (remembered, WriteId::random(steps.txn)?);
        let mut unanswered: Option<Unanswered<R>> = None;
        loop {
            let snapshot = match next.take() {
                Some(snapshot) => snapshot,
                None => {
                    is_fresh = true;
                    let answer = self.read(attempts, steps.load, place.read()).await?;
                    Snapshot::parse(&place, &answer.found, &[])
                }
            };
            // B1.
            if let Some(tried) = unanswered.take() {
                let record = place.run.shard(key.shard);
                let fate = self.fate_of(attempts, steps, &record, &tried.write, &snapshot.record);
                match fate.await? {
                    Fate::TookPlace => {
                        let (event, answer) = (tried.event, tried.answer);
                        return Ok(self
                            .finish(attempts, manner, &place, event, answer, None)
                            .await);
                    }
                    Fate::DidNot => {}
                    Fate::Unknown => unanswered = Some(tried),
                }
            }
            let mut before = ShardState::NEW;
            let verdict = snapshot.decide(&place, steps.load, &mut self.decoded, |seen| {
                before = seen.found.map_or(ShardState::NEW, |found| found.shard.state);
                decide(seen)
            });
            let (change, answer) = match verdict {
                Ok(StoreDecision::Store(change, answer)) => (change, answer),
                // B2.
                _ if !is_fresh => continue,
                Ok(StoreDecision::Keep(answer)) => {
                    // A replay of what this very call did is no replay.
                    let (event, answer) = match unanswered.filter(|tried| tried.was_new) {
                        Some(done) => (done.event, done.answer),
                        None => (None, answer),
                    };
                    self.remember(tenant, key, &before, snapshot);
                    return Ok(self.finish(attempts, manner, &place, event, answer, None).await);
                }
                Err(refusal) => return Err(refusal),
            };

            let event = self.events.is_some();
            let event = event.then(|| change.update.event(key.shard, &before));
            let lease = if change.puts_owner(&before, snapshot.owner) {
                Some(self.lease_id(attempts, steps.lease).await?)
            } else {
                None
            };
            let shard = snapshot.decode(&place, steps.load, &mut self.decoded)?;
            let (mut txn, record) =
                snapshot.store(&place, steps.load, &shard, &change, (id, lease))?;
            let part = self.free_lists.for_hint((tenant, key.run), place_of_shard(key.shard));
            if manner.tells_capacity {
                txn.then.extend(capacity_reads(&place.run, part, manner.now).map(Op::Read));
            }
            match attempts.within(self.kv.txn(txn)).await {
                Ok(stored) if stored.succeeded => {
                    let after = snapshot.after(record, &change, &before, stored.revision);
                    self.remember(tenant, key, &change.update.state, after);
                    let found = Some((part, stored.found));
                    return Ok(self.finish(attempts, manner, &place, event, answer, found).await);
                }
                Ok(refused) => {
                    let seen = Snapshot::parse(&place, &refused.found, &change.children);
                    // What was remembered is merely old; other writers cost a try, and what they left
                    // is old after the backoff: tried then, it would lose again to whoever came meanwhile.
                    let is_old = is_fresh && !seen.has_taken();
                    if is_fresh {
                        attempts.next(steps.txn, None).await?;
                    }
                    next = (!is_old).then_some(seen);
                    is_fresh = true;
                }
                Err(KvError::LeaseNotFound) => {
                    if let Some(lease) = lease {
                        self.lease_has_ended(lease).await;
                    }
                    attempts.next(steps.txn, Some(&KvError::LeaseNotFound)).await?;
                }
                Err(error) if may_pass(&error) => {
                    if matches!(error, KvError::Unanswered(_)) {
                        let (was_new, write) = (is_fresh, Write::over(&snapshot.record, record));
                        unanswered = Some(Unanswered { was_new, write, answer, event });
                    }
                    attempts.next(steps.txn, Some(&error)).await?;
                }
                Err(error) => return Err(infra(steps.txn, &error).into()),
            }
        }
    }

    /// Reports what was stored, and says what else there is to do, where that belongs to the answer.
    async fn finish<R>(
        &mut self,
        attempts: &Attempts,
        manner: Manner,
        place: &ShardPlace,
        event: Option<EventKind>,
        answer: R,
        found: Option<(Part, Vec<Found>)>,
    ) -> Outcome<R> {
        if let Some(event) = event {
            self.emit(place.tenant, place.key.run, manner.now, || event);
        }
        let nothing =
            CapacityHint { available_count: 0, earliest_deadline: None, is_estimate: true };
        let run = (place.tenant, place.key.run);
        let found = match found {
            _ if !manner.tells_capacity => None,
            Some(found) => Some(found),
            // The answer that had it was lost. The operation was carried out, whatever becomes of this.
            None => {
                let part = self.free_lists.for_hint(run, place_of_shard(place.key.shard));
                let reads = Txn::reads(capacity_reads(&place.run, part, manner.now));
                let read = attempts.within(self.kv.txn(reads)).await;
                read.ok().map(|answer| (part, answer.found))
            }
        };
        let told = found.and_then(|(part, found)| self.capacity(manner.now, place, part, &found));
        let (capacity, idle_workers) = told.unwrap_or((nothing, 0));
        Outcome { answer, capacity, idle_workers }
    }

    /// What [`capacity_reads`] found: the hint, and how many workers wait.
    fn capacity(
        &self,
        now: LogicalTime,
        place: &ShardPlace,
        part: Part,
        found: &[Found],
    ) -> Option<(CapacityHint, u32)> {
        let [free, held, idle] = found else { return None };
        self.free_lists.saw((place.tenant, place.key.run), part, free.count);
        let count = |found: &Found| u32::try_from(found.count).unwrap_or(u32::MAX);
        let earliest = held.entries.first().and_then(|entry| decode_time(&entry.value));
        let earliest_deadline = earliest.map(|deadline| self.takeover(false).free_from(deadline));
        let some_expired = earliest_deadline.is_some_and(|free_from| free_from <= now);
        let hint = CapacityHint {
            available_count: count(free).saturating_add(u32::from(some_expired)),
            earliest_deadline,
            // V1.
            is_estimate: some_expired || !part.is_all(),
        };
        Some((hint, count(idle)))
    }

    /// Remembers a shard that is held, for its holder's next operation.
    fn remember(
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

/// What a hint is made of, read in the transaction that it goes with.
fn capacity_reads(
    run: &RunKeys,
    part: Part,
    now: LogicalTime,
) -> impl Iterator<Item = Read> + use<> {
    let to = part.from + part.width;
    let free = Read::count(run.free_between(part.from, to));
    let held = Read::lowest(run.held_between(part.from, to), 1);
    [free, held, Read::count(run.idle_at(now))].into_iter()
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
