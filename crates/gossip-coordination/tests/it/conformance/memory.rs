//! The suite on the reference coordinator.

use gossip_contracts::coordination::{MAX_INITIAL_SHARDS, MAX_SPLIT_CHILDREN};
use gossip_coordination::conformance::{Caps, Dump, Harness, Limits};
use gossip_coordination::{CoordinatorRuntimeConfig, EventCollector, InMemoryCoordinator};

pub(super) struct Memory(pub(super) InMemoryCoordinator);

impl Memory {
    pub(super) const CAPS: Caps = Caps {
        max_split_children: MAX_SPLIT_CHILDREN,
        max_split_bytes: usize::MAX,
        max_initial_shards: MAX_INITIAL_SHARDS,
        takeover_delay: 0,
        shard_ceilings: true,
        claim_cooldown: true,
        byte_capacity: true,
        durable: false,
    };

    pub(super) fn config(limits: &Limits) -> CoordinatorRuntimeConfig {
        CoordinatorRuntimeConfig {
            max_shards_per_tenant: limits.shards_per_tenant,
            max_total_shards: limits.shards_total,
            claim_cooldown_interval: limits.claim_cooldown,
            slab_capacity: limits.byte_capacity.unwrap_or(8 << 20),
            ..CoordinatorRuntimeConfig::default()
        }
    }

    pub(super) fn dump_of(coordinator: &InMemoryCoordinator) -> Dump {
        let mut dump = Dump::new();
        coordinator.for_each_run(|run| dump.add_run(run));
        coordinator.for_each_shard(|shard| dump.add_shard(shard));
        dump
    }
}

impl Harness for Memory {
    type Backend = InMemoryCoordinator;

    fn caps() -> Caps {
        Self::CAPS
    }

    fn open(limits: &Limits) -> Self {
        Self(InMemoryCoordinator::new(Self::config(limits)))
    }

    fn backend(&mut self) -> &mut InMemoryCoordinator {
        &mut self.0
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut InMemoryCoordinator) -> R,
    ) -> R {
        self.0.with_events(collector, f)
    }

    fn dump(&mut self) -> Dump {
        Self::dump_of(&self.0)
    }

    fn assert_consistent(&mut self) {
        self.0.assert_consistent();
    }
}

gossip_coordination::conformance_suite!(Memory);
