//! A coordinator in memory: the reference for every other, and the one that simulations drive.
//!
//! `&mut self` is its concurrency control. Keys, cursors and metadata live in one
//! [`ByteSlab`] whose size is chosen at start, so acquiring, renewing and checkpointing allocate
//! nothing. Claims read an index; their cost does not grow with the number of shards.

mod backend;
mod deadlines;
mod list;
mod management;
mod run;
mod shard;

use gossip_contracts::identity::{LogicalTime, RunId, ShardKey, TenantId, WorkerId};
use gossip_stdx::ByteSlab;
use hashbrown::HashMap;

use crate::events::{EventCollector, EventKind, StateTransitionEvent};
use crate::lease::Takeover;
use crate::record::{FoundShard, ShardRecordView};
use crate::run::RunRecord;
use crate::shard_limits::{ShardCounts, ShardLimits, ShardRoom, SplitCaps};
use run::Run;

/// Shards that a tenant may have unless configured otherwise.
pub const DEFAULT_MAX_SHARDS_PER_TENANT: usize = 100_000;
/// Shards that all tenants may have unless configured otherwise.
pub const DEFAULT_MAX_TOTAL_SHARDS: usize = 1_000_000;
/// Bytes for keys, cursors and metadata unless configured otherwise: enough for some ten thousand
/// shards. Reserved at once; whoever has more configures more.
pub const DEFAULT_MAX_AUTO_SLAB_CAPACITY: usize = 16 << 20;

/// Limits of an [`InMemoryCoordinator`]. Nothing is forgotten but runs that are deleted, so they bound
/// what it takes in over its whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordinatorRuntimeConfig {
    /// Shards that one tenant may have.
    pub max_shards_per_tenant: usize,
    /// Shards that all tenants together may have.
    pub max_total_shards: usize,
    /// How long a worker whose claim found nothing must wait before it claims again, in
    /// milliseconds. Zero: not at all.
    pub claim_cooldown_interval: u64,
    /// Bytes for keys, cursors and metadata of all shards together.
    pub slab_capacity: usize,
    /// How far the clocks of workers may differ, in milliseconds: for so long after its deadline a
    /// lease keeps other workers out.
    pub skew_allowance: u64,
    /// The largest split that it takes.
    pub split_caps: SplitCaps,
}

impl Default for CoordinatorRuntimeConfig {
    fn default() -> Self {
        Self {
            max_shards_per_tenant: DEFAULT_MAX_SHARDS_PER_TENANT,
            max_total_shards: DEFAULT_MAX_TOTAL_SHARDS,
            claim_cooldown_interval: 0,
            slab_capacity: DEFAULT_MAX_AUTO_SLAB_CAPACITY,
            skew_allowance: 0,
            split_caps: SplitCaps::PROTOCOL,
        }
    }
}

/// The reference coordinator. The crate's front page shows it at work.
#[derive(Debug)]
pub struct InMemoryCoordinator {
    config: CoordinatorRuntimeConfig,
    slab: ByteSlab,
    tenants: HashMap<TenantId, Tenant>,
    total_shards: usize,
    events: Option<EventCollector>,
}

#[derive(Debug, Default)]
struct Tenant {
    runs: HashMap<RunId, Run>,
    shard_count: usize,
    cooldowns: HashMap<WorkerId, LogicalTime>,
}

/// A shard in its run.
struct Found<'m> {
    run: &'m mut Run,
    index: u32,
}

impl InMemoryCoordinator {
    /// A coordinator with these limits.
    ///
    /// # Panics
    /// If `slab_capacity` is 4 GiB or more.
    #[must_use]
    pub fn new(config: CoordinatorRuntimeConfig) -> Self {
        Self {
            config,
            slab: ByteSlab::with_limits(config.slab_capacity, slots(&config)),
            tenants: HashMap::new(),
            total_shards: 0,
            events: None,
        }
    }

    /// The limits that it was opened with.
    #[must_use]
    pub const fn config(&self) -> &CoordinatorRuntimeConfig {
        &self.config
    }

    /// Runs `f` and puts the events of what it does into `collector`, also when `f` panics.
    pub fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self) -> R,
    ) -> R {
        collector.lend(self, |coordinator| &mut coordinator.events, f)
    }

    /// Every tenant by its id: whoever looks twice sees the same, in every process.
    fn tenants_in_order(&self) -> Vec<(&TenantId, &Tenant)> {
        let mut tenants: Vec<_> = self.tenants.iter().collect();
        tenants.sort_unstable_by_key(|(tenant, _)| **tenant);
        tenants
    }

    /// Every run by tenant and id.
    fn runs_in_order(&self) -> impl Iterator<Item = (TenantId, &Run)> {
        self.tenants_in_order().into_iter().flat_map(|(&tenant, entry)| {
            let mut runs: Vec<_> = entry.runs.values().collect();
            runs.sort_unstable_by_key(|run| run.record.run);
            runs.into_iter().map(move |run| (tenant, run))
        })
    }

    /// Shows `f` every run, by tenant and id.
    pub fn for_each_run(&self, mut f: impl FnMut(&RunRecord)) {
        self.runs_in_order().for_each(|(_, run)| f(&run.record));
    }

    /// Shows `f` every shard, by tenant, run and id.
    pub fn for_each_shard(&self, mut f: impl FnMut(&ShardRecordView<'_>)) {
        for (_, run) in self.runs_in_order() {
            run.views(&self.slab).for_each(|shard| f(&shard));
        }
    }

    /// Panics unless every index and count says what the records say.
    pub fn assert_consistent(&self) {
        let (mut total, mut slots) = (0, 0);
        for (tenant, run) in self.runs_in_order() {
            run.assert_index(tenant);
            run.record.assert_invariants();
            for shard in run.views(&self.slab) {
                shard.assert_invariants();
                // A range, and a cursor once there is one.
                slots += 1 + usize::from(!shard.cursor.is_initial());
            }
        }
        for (_, entry) in self.tenants_in_order() {
            let count: usize = entry.runs.values().map(|run| run.progress.total() as usize).sum();
            assert!(entry.shard_count == count, "{count} shards, {} counted", entry.shard_count);
            total += count;
        }
        assert!(total == self.total_shards, "{total} shards, {} counted", self.total_shards);
        let live = self.slab.live_slots();
        assert!(slots == live, "the slab holds {live} values, and shards have {slots}");
    }

    fn room(&self, tenant: TenantId) -> ShardRoom {
        ShardRoom {
            limits: ShardLimits {
                per_tenant: self.config.max_shards_per_tenant,
                global: self.config.max_total_shards,
            },
            counts: ShardCounts {
                tenant: self.tenants.get(&tenant).map_or(0, |tenant| tenant.shard_count),
                global: self.total_shards,
            },
            split: self.config.split_caps,
        }
    }

    /// When a holder may be followed by another worker.
    const fn takeover(&self) -> Takeover {
        Takeover { holder_is_gone: false, skew_allowance: self.config.skew_allowance }
    }

    fn count_new_shards(&mut self, tenant: TenantId, additional: usize) {
        self.total_shards += additional;
        let entry = self.tenants.get_mut(&tenant).expect("a tenant with shards has an entry");
        entry.shard_count += additional;
    }
}

/// A range and a cursor for each shard, and some for what is stored before it replaces another.
fn slots(config: &CoordinatorRuntimeConfig) -> usize {
    config.max_total_shards.saturating_mul(2).saturating_add(1024).min(ByteSlab::SLOTS_MAX)
}

impl Default for InMemoryCoordinator {
    fn default() -> Self {
        Self::new(CoordinatorRuntimeConfig::default())
    }
}

fn find_run(
    tenants: &mut HashMap<TenantId, Tenant>,
    tenant: TenantId,
    run: RunId,
) -> Option<&mut Run> {
    tenants.get_mut(&tenant)?.runs.get_mut(&run)
}

fn find(
    tenants: &mut HashMap<TenantId, Tenant>,
    tenant: TenantId,
    key: ShardKey,
) -> Option<Found<'_>> {
    let run = find_run(tenants, tenant, key.run)?;
    let index = run.find(key.shard)?;
    Some(Found { run, index })
}

/// Asks a transition about what was found.
fn decide<R>(
    found: Option<&Found<'_>>,
    slab: &ByteSlab,
    transition: impl FnOnce(Option<FoundShard<'_, '_>>) -> R,
) -> R {
    match found {
        None => transition(None),
        Some(found) => {
            let shard = found.run.view(found.index, slab);
            transition(Some(FoundShard { shard: &shard, run: &found.run.record.gate() }))
        }
    }
}

fn emit(
    events: &mut Option<EventCollector>,
    tenant: TenantId,
    run: RunId,
    at: LogicalTime,
    kind: impl FnOnce() -> Option<EventKind>,
) {
    if let Some(collector) = events
        && let Some(kind) = kind()
    {
        collector.emit(StateTransitionEvent { tenant, run, at, kind });
    }
}

#[cfg(test)]
mod tests;
