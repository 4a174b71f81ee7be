//! What is simulated: a backend, and how to look behind it.

use gossip_contracts::identity::{LogicalTime, RunId, TenantId, WorkerId};
use gossip_coordination::{
    CoordinationFacade, CoordinatorRuntimeConfig, EventCollector, InMemoryCoordinator, RunRecord,
    ShardLimits, ShardRecordView, SplitCaps, StateTransitionEvent,
};

/// With what a simulated backend is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackendLimits {
    /// Ceilings on the number of shards.
    pub shards: ShardLimits,
    /// Wait after a claim that found nothing, in milliseconds, where the backend has that.
    pub claim_cooldown: u64,
    /// Bytes for keys, cursors and metadata, where the backend bounds them.
    pub byte_capacity: usize,
    /// For how long after its deadline a lease keeps other workers out, in milliseconds, where the
    /// backend allows for clocks that differ.
    pub skew_allowance: u64,
    /// The largest split, where the backend has caps of its own.
    pub split: SplitCaps,
}

impl BackendLimits {
    /// Ceilings and room for a test, and nothing else.
    #[must_use]
    pub const fn of_shards(shards: ShardLimits) -> Self {
        let split = SplitCaps::PROTOCOL;
        Self { shards, claim_cooldown: 0, byte_capacity: 1 << 16, skew_allowance: 0, split }
    }
}

/// A worker, and where it looks for a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the fields name themselves")]
pub struct Applicant {
    pub now: LogicalTime,
    pub tenant: TenantId,
    pub run: RunId,
    pub worker: WorkerId,
}

/// How a store fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Somebody else holds it all the time.
    Busy,
    /// Somebody else wants to write when the operation has come so far. That is no failure: who came
    /// first is served.
    Rival {
        /// In steps of the store's own.
        after: u32,
    },
    /// It gives up when the operation has come so far.
    Interrupted {
        /// In steps of the store's own.
        after: u32,
    },
    /// It has no room for anything more.
    Full,
    /// It takes back what it should commit.
    CommitRefused,
    /// It commits, and says that it failed.
    CommitUnknown,
}

/// What came of an operation on a store that failed. Its events are those of what was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disturbed<R> {
    /// What was answered.
    pub told: R,
    /// What a store that does not fail answers, if it was stored and the answer does not say so.
    pub unsaid: Option<R>,
}

/// With which of its steps an operation takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effective {
    /// With the first that changes something.
    WithItsChange,
    /// With the last: what those before it store, nobody sees.
    AtItsEnd,
    /// With the first: it reads, and the others read on in the same view.
    AtItsBeginning,
}

/// What came of an operation in whose middle another process carried one out.
#[derive(Debug)]
pub struct Overtaken<R> {
    /// What was answered.
    pub told: R,
    /// What the other process was answered, if it came between at all.
    pub rival: Option<Rival<R>>,
}

/// What another process did.
#[derive(Debug)]
pub struct Rival<R> {
    /// What it was answered.
    pub told: R,
    /// The events of what it did.
    pub events: Vec<StateTransitionEvent>,
    /// Whether the operation in whose middle it came was over already, but for saying so.
    pub is_second: bool,
}

/// A backend under simulation.
pub trait SimulatedBackend: Sized {
    /// What the world's workers call.
    type Backend: CoordinationFacade;

    /// Whether [`BackendLimits::claim_cooldown`] is kept.
    const HAS_COOLDOWN: bool;

    /// Whether [`SimulatedBackend::reopen`] and [`SimulatedBackend::crash_during`] crash anything.
    const IS_DURABLE: bool;

    /// Whether [`BackendLimits::byte_capacity`] bounds what it stores.
    const BOUNDS_BYTES: bool = false;

    /// Whether [`BackendLimits::skew_allowance`] and [`BackendLimits::split`] are kept.
    const HAS_CAPS: bool = false;

    /// Whether claims get the shard that has waited longest, rather than any.
    const CLAIMS_IN_TURN: bool = true;

    /// The most shards that a run may have whose hints are about all of it. Those of larger ones may be
    /// estimates from a part in which the hint's own shard lies.
    const HINTS_OF_ALL_MAX: usize = usize::MAX;

    /// Whether a claim is one transaction: if it fails, no shard was parked on the way.
    const CLAIMS_AT_ONCE: bool = true;

    /// Whether it calls a full store a failure that may pass, rather than one that somebody has to
    /// end.
    const FULL_MAY_PASS: bool = true;

    /// Whether a lease also ends for other workers when its holder's process was silent for too long;
    /// see [`SimulatedBackend::end_silent_processes`].
    const HAS_OWNERS: bool = false;

    /// Whether registrations and listings are several transactions.
    const WORKS_IN_STEPS: bool = false;

    /// The largest split that it can be opened with.
    const SPLIT_MAX: SplitCaps = SplitCaps::PROTOCOL;

    /// A fresh and empty backend.
    fn open(limits: &BackendLimits) -> Self;

    /// Runs `f` and puts the events of what it does into `collector`.
    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Self::Backend) -> R,
    ) -> R;

    /// Crashes the backend's process and starts it again on what is stored. A backend that stores
    /// nothing durably does not crash.
    fn reopen(&mut self) {}

    /// All of the backend's processes were silent for so long that the store takes them for dead. They
    /// live, and know nothing of it.
    fn end_silent_processes(&mut self) {}

    /// Runs `f`, and crashes the backend's process when `written` of a thousand parts of what `f`
    /// writes are written. Says what `f` returned and whether all was. `None` where nothing is
    /// stored durably.
    fn crash_during<R>(
        &mut self,
        collector: &mut EventCollector,
        written: u64,
        f: impl FnOnce(&mut Self::Backend) -> R,
    ) -> Option<(R, bool)> {
        let _ = (collector, written, f);
        None
    }

    /// Runs `f` on a store that fails as `fault` says. `None` where there is no store that could.
    fn disturbed<R>(
        &mut self,
        collector: &mut EventCollector,
        fault: StoreFault,
        f: impl FnMut(&mut Self::Backend) -> R,
    ) -> Option<Disturbed<R>> {
        let _ = (collector, fault, f);
        None
    }

    /// Runs `f`, and `rival` through another handle when the first has come `after` steps of the
    /// store's own. The rival changes something, or wants to. `None` where there is one handle only.
    fn overtaken<R: Send + 'static>(
        &mut self,
        collector: &mut EventCollector,
        after: u32,
        effect: Effective,
        f: impl FnOnce(&mut Self::Backend) -> R,
        rival: impl FnOnce(&mut Self::Backend) -> R + Send + 'static,
    ) -> Option<Overtaken<R>> {
        let _ = (collector, after, effect, f, rival);
        None
    }

    /// Shows `f` every run of every tenant.
    fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord));

    /// Shows `f` every shard of every tenant.
    fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>));

    /// Says what is wrong with the backend's own indexes and counts, if anything.
    fn check_consistent(&mut self) -> Result<(), String>;
}

/// The coordinator in memory.
#[derive(Debug)]
pub struct Memory(InMemoryCoordinator);

impl SimulatedBackend for Memory {
    type Backend = InMemoryCoordinator;
    const HAS_COOLDOWN: bool = true;
    const IS_DURABLE: bool = false;
    const BOUNDS_BYTES: bool = true;
    const HAS_CAPS: bool = true;

    fn open(limits: &BackendLimits) -> Self {
        Self(InMemoryCoordinator::new(CoordinatorRuntimeConfig {
            max_shards_per_tenant: limits.shards.per_tenant,
            max_total_shards: limits.shards.global,
            claim_cooldown_interval: limits.claim_cooldown,
            slab_capacity: limits.byte_capacity,
            skew_allowance: limits.skew_allowance,
            split_caps: limits.split,
        }))
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut InMemoryCoordinator) -> R,
    ) -> R {
        self.0.with_events(collector, f)
    }

    fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord)) {
        self.0.for_each_run(f);
    }

    fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>)) {
        self.0.for_each_shard(f);
    }

    /// It panics, with the number of the invariant.
    fn check_consistent(&mut self) -> Result<(), String> {
        self.0.assert_consistent();
        Ok(())
    }
}
