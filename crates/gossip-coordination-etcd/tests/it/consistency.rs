//! Everything that is stored, and whether lists, owners, gates and totals say what the records say.

use std::collections::BTreeMap;

use gossip_contracts::identity::WorkerId;
use gossip_coordination::codec::{decode_gate, decode_owner, decode_run, decode_shard};
use gossip_coordination::conformance::Dump;
use gossip_coordination::{Availability, RunRecord, ShardRecord, ShardStatus};
use gossip_coordination_etcd::keyspace::{Key, Keyspace, Listed};
use gossip_coordination_etcd::kv::{Entry, Kv, Read, Txn};

/// Every key of a namespace, in one view.
pub(crate) struct Stored {
    keyspace: Keyspace,
    entries: BTreeMap<Vec<u8>, Entry>,
}

impl Stored {
    pub(crate) async fn read(kv: &impl Kv, keyspace: &Keyspace) -> Self {
        let read = kv.txn(Txn::reads([Read::range(keyspace.all())])).await;
        let found = read.expect("everything can be read").found.remove(0);
        let entries = found.entries.into_iter().map(|entry| (entry.key.clone(), entry));
        Self { keyspace: keyspace.clone(), entries: entries.collect() }
    }

    fn value(&self, key: &Key) -> Option<&[u8]> {
        self.entries.get(key.as_bytes()).map(|entry| &entry.value[..])
    }

    fn runs(&self) -> Vec<RunRecord> {
        let of_runs = self.entries.iter().filter(|(key, _)| key.ends_with(b"/record"));
        of_runs.map(|(_, entry)| decode_run(&entry.value).expect("it decodes")).collect()
    }

    pub(crate) fn shards(&self) -> Vec<ShardRecord> {
        let shards = self.runs().into_iter().flat_map(|run| {
            let range = self.keyspace.run(run.tenant, run.run).shards();
            let below = self.entries.iter().filter(move |(key, _)| range.contains(key));
            below.map(|(_, entry)| decode_shard(&entry.value).expect("it decodes"))
        });
        shards.collect()
    }

    /// As the suite compares it: records, and totals. All other keys follow from the records, which
    /// [`Stored::check`] looks after.
    pub(crate) fn dump(&self) -> Dump {
        let mut dump = Dump::new();
        for run in self.runs() {
            let key = self.keyspace.run(run.tenant, run.run).record();
            dump.add_stored_run(run.tenant, run.run, self.value(&key).expect("it was read"));
        }
        for shard in self.shards() {
            let key = self.keyspace.run(shard.tenant, shard.key.run).shard(shard.key.shard);
            dump.add_stored_shard(shard.tenant, shard.key, self.value(&key).expect("it was read"));
        }
        for (key, entry) in self.entries.iter().filter(|(key, _)| key.ends_with(b"/shards")) {
            dump.add_raw(key.escape_ascii().to_string(), &entry.value[..]);
        }
        dump
    }

    /// Says what is wrong with lists, owners, gates and totals, if anything. Where leases of
    /// processes may have ended, owner keys may be missing.
    pub(crate) fn check(&self, owners_may_be_gone: bool) -> Result<(), String> {
        let mut expected: BTreeMap<Vec<u8>, String> = BTreeMap::new();
        let mut expect = |key: Key, what: String| expected.insert(key.into_bytes(), what);
        let (runs, shards) = (self.runs(), self.shards());
        for run in &runs {
            let keys = self.keyspace.run(run.tenant, run.run);
            expect(keys.record(), format!("the record of run {}", run.run));
            expect(keys.gate(), format!("the gate of run {}", run.run));
            if !run.status.is_terminal() {
                expect(keys.open(), format!("the open run {}", run.run));
            }
            let gate = self.value(&keys.gate()).ok_or(format!("run {} has no gate", run.run))?;
            if decode_gate(gate) != Ok(run.gate_record()) {
                return Err(format!("the gate of run {} says something else", run.run));
            }
        }
        let mut totals: BTreeMap<Key, usize> = BTreeMap::new();
        for shard in &shards {
            let (key, state) = (shard.key, &shard.state);
            let keys = self.keyspace.run(shard.tenant, key.run);
            expect(keys.shard(key.shard), format!("the record of shard {key}"));
            let listed = match (state.availability(), state.status) {
                (Availability::Now, _) => Listed::Free,
                (Availability::From(deadline), _) => Listed::Held(deadline),
                (_, ShardStatus::Split) => Listed::Split,
                (_, ShardStatus::Parked) => Listed::Parked,
                _ => Listed::Done,
            };
            expect(keys.listed(listed, key.shard), format!("shard {key} as {listed:?}"));
            for total in
                [self.keyspace.tenant(shard.tenant).shard_total(), self.keyspace.shard_total()]
            {
                *totals.entry(total).or_default() += 1;
            }
            let Some(holder) = state.lease else { continue };
            expect(keys.held_by(holder.owner(), key.shard), format!("{key} of its worker"));
            let owner = self.value(&keys.owner(key.shard));
            if owner.is_none() && owners_may_be_gone {
                continue;
            }
            expect(keys.owner(key.shard), format!("the owner of shard {key}"));
            let owner = decode_owner(owner.ok_or(format!("shard {key} has no owner"))?);
            let said = owner.map(|owner| (owner.worker(), owner.fence()));
            let is: (WorkerId, _) = (holder.owner(), state.fence);
            if said != Ok(is) {
                return Err(format!("shard {key} has another owner"));
            }
        }
        for (key, count) in totals {
            if self.value(&key) != Some(count.to_string().as_bytes()) {
                return Err(format!("{key} is not {count}"));
            }
            expected.insert(key.into_bytes(), "a total".to_owned());
        }
        self.compare(&expected)
    }

    fn compare(&self, expected: &BTreeMap<Vec<u8>, String>) -> Result<(), String> {
        if let Some((key, what)) = expected.iter().find(|(key, _)| !self.entries.contains_key(*key))
        {
            return Err(format!("{} is missing: {what}", key.escape_ascii()));
        }
        // Totals stay when the last shard is gone.
        let is_known = |key: &[u8]| key.ends_with(b"/shards");
        let extra = self.entries.keys().find(|key| !expected.contains_key(*key) && !is_known(key));
        match extra {
            Some(key) => Err(format!("{} is there for nothing", key.escape_ascii())),
            None => Ok(()),
        }
    }
}
