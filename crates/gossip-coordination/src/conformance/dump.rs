//! All that a backend stores, byte for byte, in an order that does not depend on the backend.

use std::collections::BTreeMap;

use gossip_contracts::identity::{RunId, ShardId, ShardKey, TenantId};

use crate::codec::{decode_run, decode_shard, encode_run, encode_shard};
use crate::record::{ShardRecord, ShardRecordView};
use crate::run::RunRecord;

/// Where an entry of a dump stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Run(TenantId, RunId),
    Shard(TenantId, RunId, ShardId),
    Raw(String),
}

/// All that a backend stores: every record in its [encoding](crate::codec), and whatever else the
/// backend keeps.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Dump {
    entries: BTreeMap<Place, Vec<u8>>,
}

impl Dump {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a run.
    pub fn add_run(&mut self, run: &RunRecord) {
        let mut bytes = Vec::new();
        encode_run(run, &mut bytes);
        self.add_stored_run(run.tenant, run.run, bytes);
    }

    /// Adds a shard.
    pub fn add_shard(&mut self, shard: &ShardRecordView<'_>) {
        let mut bytes = Vec::new();
        encode_shard(shard, &mut bytes);
        self.add_stored_shard(shard.tenant, shard.key, bytes);
    }

    /// Adds a run as it is stored: its encoding.
    pub fn add_stored_run(&mut self, tenant: TenantId, run: RunId, bytes: impl Into<Vec<u8>>) {
        self.add(Place::Run(tenant, run), bytes.into());
    }

    /// Adds a shard as it is stored: its encoding.
    pub fn add_stored_shard(&mut self, tenant: TenantId, key: ShardKey, bytes: impl Into<Vec<u8>>) {
        self.add(Place::Shard(tenant, key.run, key.shard), bytes.into());
    }

    /// Adds anything else that must stay as it is when an operation is refused: index rows,
    /// counters. `name` must be unique.
    pub fn add_raw(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.add(Place::Raw(name.into()), bytes.into());
    }

    fn add(&mut self, place: Place, bytes: Vec<u8>) {
        let shown = format!("{place:?}");
        assert!(self.entries.insert(place, bytes).is_none(), "{shown} is dumped twice");
    }

    pub(super) fn run(&self, tenant: TenantId, run: RunId) -> Option<RunRecord> {
        let bytes = self.entries.get(&Place::Run(tenant, run))?;
        let record = decode_run(bytes).expect("a stored run decodes");
        assert_eq!(
            (record.tenant, record.run),
            (tenant, run),
            "a run is stored in another's place"
        );
        Some(record)
    }

    pub(super) fn shard(&self, tenant: TenantId, key: ShardKey) -> Option<ShardRecord> {
        let bytes = self.entries.get(&Place::Shard(tenant, key.run, key.shard))?;
        let record = decode_shard(bytes).expect("a stored shard decodes");
        assert_eq!(
            (record.tenant, record.key),
            (tenant, key),
            "a shard is stored in another's place"
        );
        Some(record)
    }

    /// The shards of a run in id order.
    pub(super) fn shards(&self, tenant: TenantId, run: RunId) -> impl Iterator<Item = ShardRecord> {
        let first = Place::Shard(tenant, run, ShardId::from_raw(0));
        let last = Place::Shard(tenant, run, ShardId::from_raw(u64::MAX));
        let shards = self.entries.range(first..=last);
        shards.map(|(_, bytes)| decode_shard(bytes).expect("a stored shard decodes"))
    }

    /// Where two dumps differ.
    pub(super) fn changes<'d>(&'d self, after: &'d Self) -> Vec<&'d Place> {
        let gone = self.entries.keys().filter(|place| !after.entries.contains_key(place));
        let changed =
            after.entries.iter().filter(|(place, bytes)| self.entries.get(place) != Some(bytes));
        gone.chain(changed.map(|(place, _)| place)).collect()
    }
}

/// Where the entries stand; keys and owners are in their bytes.
impl core::fmt::Debug for Dump {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.entries.keys()).finish()
    }
}
