//! All that a backend stores, in an order that does not depend on the backend.

use std::collections::BTreeMap;

use gossip_contracts::identity::{RunId, ShardId, ShardKey, TenantId};

use crate::record::{ShardRecord, ShardRecordView};
use crate::run::RunRecord;

/// Where an entry of a dump stands. Runs come before their shards, records before the rest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    Run(TenantId, RunId),
    Shard(TenantId, RunId, ShardId),
    Raw(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Run(Box<RunRecord>),
    Shard(Box<ShardRecord>),
    Raw(Vec<u8>),
}

/// All that a backend stores.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Dump {
    entries: BTreeMap<Place, Entry>,
}

impl Dump {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a run.
    pub fn add_run(&mut self, run: &RunRecord) {
        self.add(Place::Run(run.tenant, run.run), Entry::Run(Box::new(run.clone())));
    }

    /// Adds a shard.
    pub fn add_shard(&mut self, shard: &ShardRecordView<'_>) {
        let place = Place::Shard(shard.tenant, shard.key.run, shard.key.shard);
        self.add(place, Entry::Shard(Box::new(ShardRecord::from_view(shard))));
    }

    /// Adds anything else that must stay as it is when an operation is refused: index rows,
    /// counters. `name` must be unique.
    pub fn add_raw(&mut self, name: impl Into<String>, bytes: impl Into<Vec<u8>>) {
        self.add(Place::Raw(name.into()), Entry::Raw(bytes.into()));
    }

    fn add(&mut self, place: Place, entry: Entry) {
        let shown = format!("{place:?}");
        assert!(self.entries.insert(place, entry).is_none(), "{shown} is dumped twice");
    }

    pub(super) fn run(&self, tenant: TenantId, run: RunId) -> Option<&RunRecord> {
        match self.entries.get(&Place::Run(tenant, run))? {
            Entry::Run(record) => Some(record),
            _ => unreachable!("a place says what stands there"),
        }
    }

    pub(super) fn shard(&self, tenant: TenantId, key: ShardKey) -> Option<&ShardRecord> {
        match self.entries.get(&Place::Shard(tenant, key.run, key.shard))? {
            Entry::Shard(record) => Some(record),
            _ => unreachable!("a place says what stands there"),
        }
    }

    /// The shards of a run in id order.
    pub(super) fn shards(
        &self,
        tenant: TenantId,
        run: RunId,
    ) -> impl Iterator<Item = &ShardRecord> {
        let first = Place::Shard(tenant, run, ShardId::from_raw(0));
        let last = Place::Shard(tenant, run, ShardId::from_raw(u64::MAX));
        self.entries.range(first..=last).filter_map(|(_, entry)| match entry {
            Entry::Shard(record) => Some(&**record),
            _ => None,
        })
    }

    /// Where two dumps differ.
    pub(super) fn changes<'d>(&'d self, after: &'d Self) -> Vec<&'d Place> {
        let gone = self.entries.keys().filter(|place| !after.entries.contains_key(place));
        let changed =
            after.entries.iter().filter(|(place, entry)| self.entries.get(place) != Some(entry));
        gone.chain(changed.map(|(place, _)| place)).collect()
    }
}
