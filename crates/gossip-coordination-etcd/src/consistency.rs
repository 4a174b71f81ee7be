//! Everything that a namespace holds, and whether lists, owners, gates and totals say what the records
//! say. For tests: it reads all of it at once.

use core::time::Duration;
use std::collections::BTreeMap;

use gossip_coordination::codec::{decode_gate, decode_owner, decode_run, decode_shard};
use gossip_coordination::{RunRecord, ShardRecord};

use crate::keyspace::{Key, KeyRange, Keyspace};
use crate::kv::{Entry, Kv, Read, Revision, Txn};
use crate::retry::may_pass;
use crate::runs::is_open;
use crate::settle::WriteId;
use crate::shards::{list_key, list_value, worker_key};

/// Every key of a namespace, in one view.
#[derive(Debug)]
pub struct Stored {
    keyspace: Keyspace,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl Stored {
    /// Reads a namespace. A member that is gone is not asked alone: the next try may reach another.
    ///
    /// # Panics
    /// If the store does not answer.
    pub async fn read(kv: &impl Kv, keyspace: &Keyspace) -> Self {
        let mut tries = 0;
        loop {
            match kv.txn(Txn::reads([Read::range(keyspace.all())])).await {
                Ok(mut read) => return Self::of(keyspace, read.found.remove(0).entries),
                Err(error) => assert!(may_pass(&error) && tries < 100, "unreadable: {error:?}"),
            }
            tries += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// What is in these entries.
    #[must_use]
    pub fn of(keyspace: &Keyspace, entries: Vec<Entry>) -> Self {
        let entries = entries.into_iter().map(|entry| (entry.key.clone(), entry));
        Self { keyspace: keyspace.clone(), entries: entries.collect() }
    }

    /// The keyspace that was read.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.keyspace
    }

    /// Every entry, by key.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// What is stored under a key.
    #[must_use]
    pub fn value(&self, key: &Key) -> Option<&[u8]> {
        self.entries.get(key.as_bytes()).map(|entry| &entry.value[..])
    }

    /// The record under a key.
    #[must_use]
    pub fn record(&self, key: &Key) -> Option<&[u8]> {
        self.entries.get(key.as_bytes()).map(record_of)
    }

    /// Every key and its value, but for what tells one write of a record from another.
    pub fn contents(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let holds_record = |key: &[u8]| {
            key.ends_with(b"/record") || key.rsplit(|&byte| byte == b'/').nth(1) == Some(b"shard")
        };
        self.entries.values().map(move |entry| {
            let value = if holds_record(&entry.key) { record_of(entry) } else { &entry.value[..] };
            (&entry.key[..], value)
        })
    }

    /// Every run, by tenant and id.
    ///
    /// # Panics
    /// If a record does not decode.
    #[must_use]
    pub fn runs(&self) -> Vec<RunRecord> {
        let of_runs = self.entries.iter().filter(|(key, _)| key.ends_with(b"/record"));
        of_runs.map(|(_, entry)| decode_run(record_of(entry)).expect("it decodes")).collect()
    }

    /// Every shard, by tenant, run and id.
    ///
    /// # Panics
    /// If a record does not decode.
    #[must_use]
    pub fn shards(&self) -> Vec<ShardRecord> {
        let shards = self.runs().into_iter().flat_map(|run| {
            let range = self.keyspace.run(run.tenant, run.run).shards();
            let below = self.entries.iter().filter(move |(key, _)| range.contains(key));
            below.map(|(_, entry)| decode_shard(record_of(entry)).expect("it decodes"))
        });
        shards.collect()
    }

    /// Says what is wrong with lists, owners, gates and totals, if anything. Where leases of processes
    /// ended at some revision or before, shards that nobody has written since may lack their owner keys
    /// (Z3).
    pub fn check(&self, owners_ended_at: Option<Revision>) -> Result<(), String> {
        let mut expected: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let mut expect = |key: Key, what: String| expected.insert(key.into_bytes(), what);
        let (runs, shards) = (self.runs(), self.shards());
        for run in &runs {
            let keys = self.keyspace.run(run.tenant, run.run);
            expect(keys.record(), format!("the record of run {}", run.run));
            expect(keys.gate(), format!("the gate of run {}", run.run));
            let listed = self.keyspace.tenant(run.tenant).listed_run(run.run);
            expect(listed, format!("run {} in its tenant's list", run.run));
            if is_open(run) {
                expect(keys.open(), format!("the open run {}", run.run));
            }
            let gate = self.value(&keys.gate()).ok_or(format!("run {} has no gate", run.run))?;
            if decode_gate(gate) != Ok(run.gate_record()) {
                return Err(format!("the gate of run {} says something else", run.run));
            }
        }
        let mut totals: BTreeMap<Key, usize> = BTreeMap::new();
        let counted =
            |tenant| [self.keyspace.tenant(tenant).shard_total(), self.keyspace.shard_total()];
        for run in runs.iter().filter(|run| run.reserved() > 0) {
            for total in counted(run.tenant) {
                *totals.entry(total).or_default() += run.reserved();
            }
        }
        for shard in &shards {
            let (key, state) = (shard.key, &shard.state);
            let keys = self.keyspace.run(shard.tenant, key.run);
            expect(keys.shard(key.shard), format!("the record of shard {key}"));
            let listed = list_key(&keys, state, key.shard);
            if self.value(&listed).is_some_and(|said| said != list_value(state)) {
                return Err(format!("{listed} says something else than the record"));
            }
            expect(listed, format!("shard {key} in its list"));
            for total in counted(shard.tenant) {
                *totals.entry(total).or_default() += 1;
            }
            let Some(holder) = state.lease else { continue };
            let of_worker = worker_key(&keys, state, key.shard).expect("it has a holder");
            expect(of_worker, format!("shard {key} of its worker"));
            let owner = self.value(&keys.owner(key.shard));
            let written_at = self.entries[keys.shard(key.shard).as_bytes()].mod_revision;
            if owner.is_none() && owners_ended_at.is_some_and(|ended| written_at <= ended) {
                continue;
            }
            expect(keys.owner(key.shard), format!("the owner of shard {key}"));
            let owner = decode_owner(owner.ok_or(format!("shard {key} has no owner"))?);
            let said = owner.map(|owner| (owner.worker(), owner.fence()));
            if said != Ok((holder.owner(), state.fence)) {
                return Err(format!("shard {key} has another owner"));
            }
        }
        for (key, count) in totals {
            if self.value(&key) != Some(count.to_string().as_bytes()) {
                return Err(format!("{key} is not {count}"));
            }
            expected.insert(key.into_bytes(), "a total".to_owned());
        }
        let waiting =
            runs.iter().flat_map(|run| self.keyspace.run(run.tenant, run.run).all_waiting());
        self.compare(&expected, &waiting.collect::<Vec<_>>())
    }

    /// In the ranges of `waiting` there may be anything.
    fn compare(
        &self,
        expected: &BTreeMap<Vec<u8>, String>,
        waiting: &[KeyRange],
    ) -> Result<(), String> {
        if let Some((key, what)) = expected.iter().find(|(key, _)| !self.entries.contains_key(*key))
        {
            return Err(format!("{} is missing: {what}", key.escape_ascii()));
        }
        // Totals stay when the last shard is gone; who waits comes and goes.
        let is_known = |key: &[u8]| {
            key.ends_with(b"/shards") || waiting.iter().any(|range| range.contains(key))
        };
        let extra = self.entries.keys().find(|key| !expected.contains_key(*key) && !is_known(key));
        match extra {
            Some(key) => Err(format!("{} is there for nothing", key.escape_ascii())),
            None => Ok(()),
        }
    }
}

fn record_of(entry: &Entry) -> &[u8] {
    WriteId::taken_off(&entry.value)
}
