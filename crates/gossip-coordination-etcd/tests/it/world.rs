//! A small world: a tenant, a run over numbered keys, a clock.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId};
use gossip_coordination::{CreateRunError, IdempotentOutcome, RunConfig, RunManagement};

pub(crate) const TENANT: TenantId = TenantId::from_bytes([7; 32]);
pub(crate) const RUN: RunId = RunId::from_raw(1);
pub(crate) const NOW: LogicalTime = LogicalTime::from_raw(1_000_000);
pub(crate) const LEASE_MS: u64 = 30_000;

pub(crate) const CONFIG: RunConfig = RunConfig {
    cursor_semantics: CursorSemantics::Completed,
    lease_duration: LEASE_MS,
    max_shard_retries: u32::MAX,
};

pub(crate) fn at(millis: u64) -> LogicalTime {
    LogicalTime::from_raw(NOW.as_raw() + millis)
}

pub(crate) fn op(number: u64) -> OpId {
    OpId::from_raw(number)
}

pub(crate) fn shard(number: u64) -> ShardKey {
    ShardKey::new(RUN, ShardId::from_raw(number))
}

/// The key whose number is `number`.
pub(crate) fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

/// The manifest of a run whose shards cover `keys` numbers each, from 1 on.
pub(crate) struct Manifest {
    bounds: Vec<[u8; 8]>,
}

impl Manifest {
    pub(crate) fn of(shards: u64, keys: u64) -> Self {
        Self { bounds: (0..=shards).map(|shard| key(1 + shard * keys)).collect() }
    }

    pub(crate) fn rows(&self) -> Vec<InitialShardInput<'_>> {
        let pairs = self.bounds.windows(2).zip(0..);
        pairs
            .map(|(pair, id)| {
                let range = ShardSpecRef::new(&pair[0], &pair[1], b"");
                InitialShardInput::new(ShardId::from_raw(id), range, CursorUpdate::initial())
            })
            .collect()
    }
}

/// A run whose shards cover `keys` numbers each.
pub(crate) fn begin(
    coordinator: &mut impl RunManagement,
    shards: u64,
    keys: u64,
) -> Result<IdempotentOutcome<()>, CreateRunError> {
    let manifest = Manifest::of(shards, keys);
    coordinator.create_run_with_shards(NOW, TENANT, RUN, CONFIG, &manifest.rows(), op(u64::MAX))
}
