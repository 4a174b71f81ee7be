//! Shards as keys: what a decision about one changes, as one transaction.
//!
//! - Z1: a shard's record, its place in the run's lists and its worker's list change together.
//! - Z2: a change is stored only if record, gate and owner key are as they were when it was decided.
//! - Z3: a shard that is held has an owner key after every change that its holder makes.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::codec::{
    DecodeScratch, decode_gate, decode_shard_view, encode_owner, encode_shard, encode_shard_after,
};
use gossip_coordination::transition::NewShard;
use gossip_coordination::{
    Availability, FoundShard, InfraError, OwnerRecord, RunGate, ShardCounts, ShardRecordView,
    ShardState, ShardStatus, ShardUpdate,
};
use gossip_stdx::InlineVec;

use crate::error::damaged;
use crate::keyspace::{Key, Keyspace, Listed, RunKeys};
use crate::kv::{Found, LeaseId, Op, Read, Revision, Txn};
use crate::settle::WriteId;

/// A value and when it was written; nothing was, at revision zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) bytes: Vec<u8>,
    pub(crate) revision: Revision,
    /// When its key was created, and how often it was written since.
    pub(crate) created: Revision,
    pub(crate) version: i64,
}

impl Stored {
    pub(crate) fn of(found: &Found) -> Self {
        match found.entries.first() {
            Some(entry) => Self {
                bytes: entry.value.clone(),
                revision: entry.mod_revision,
                created: entry.create_revision,
                version: entry.version,
            },
            None => Self::default(),
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.revision != 0
    }
}

/// The keys that operations on one shard read and compare.
#[derive(Clone, Debug)]
pub(crate) struct ShardPlace {
    pub(crate) tenant: TenantId,
    pub(crate) key: ShardKey,
    pub(crate) run: RunKeys,
    /// Of the tenant and of all tenants, for operations that make shards.
    totals: Option<[Key; 2]>,
    /// Who is to get the shard, for operations that grant it.
    applicant: Option<WorkerId>,
}

impl ShardPlace {
    pub(crate) fn new(
        keyspace: &Keyspace,
        tenant: TenantId,
        key: ShardKey,
        grows: bool,
        applicant: Option<WorkerId>,
    ) -> Self {
        let totals = || [keyspace.tenant(tenant).shard_total(), keyspace.shard_total()];
        let run = keyspace.run(tenant, key.run);
        Self { tenant, key, run, totals: grows.then(totals), applicant }
    }

    fn compared(&self) -> impl Iterator<Item = Key> {
        let shard = self.key.shard;
        let always = [self.run.gate(), self.run.shard(shard), self.run.owner(shard)];
        always.into_iter().chain(self.totals.iter().flatten().cloned())
    }

    /// What a decision needs, in one consistent read.
    pub(crate) fn read(&self) -> Txn {
        Txn::reads(self.compared().map(|key| Read::key(&key)).chain(self.read_beside()))
    }

    /// What is read and not compared: whether the applicant waits, which only itself says.
    fn read_beside(&self) -> impl Iterator<Item = Read> {
        self.applicant.iter().map(|&worker| Read::key(&self.run.waiting(worker)))
    }
}

/// A shard as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) gate: Stored,
    pub(crate) record: Stored,
    /// When the owner's key was written; zero, if there is none.
    pub(crate) owner: Revision,
    totals: Option<[Stored; 2]>,
    /// Until when the applicant counts as idle.
    idle_until: Option<LogicalTime>,
    /// Children that a split wanted to make, and that are there.
    taken: InlineVec<ShardId, 4>,
}

impl Snapshot {
    /// From the answer to [`ShardPlace::read`], or from the reads of a transaction of
    /// [`Snapshot::store`] that did not take place. `children` are those that it wanted to make.
    pub(crate) fn parse(place: &ShardPlace, found: &[Found], children: &[NewShard<'_>]) -> Self {
        let stored = |at: usize| Stored::of(&found[at]);
        let totals = place.totals.as_ref().map(|_| [stored(3), stored(4)]);
        let mut fixed = if totals.is_some() { 5 } else { 3 };
        let idle_until = place.applicant.and_then(|_| {
            fixed += 1;
            decode_time(&stored(fixed - 1).bytes)
        });
        let taken = children.iter().zip(&found[fixed..]);
        let taken = taken.filter(|(_, found)| found.count > 0).map(|(child, _)| child.id);
        Self {
            gate: stored(0),
            record: stored(1),
            owner: stored(2).revision,
            totals,
            idle_until,
            taken: taken.collect(),
        }
    }

    /// Whether a child that a split wanted to make is there, which only that transaction reads.
    pub(crate) fn has_taken(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Decodes what was read and shows it to `decide`.
    pub(crate) fn decide<R, E: From<InfraError>>(
        &self,
        place: &ShardPlace,
        step: &'static str,
        scratch: &mut DecodeScratch,
        decide: impl FnOnce(DecisionInput<'_, '_>) -> Result<R, E>,
    ) -> Result<R, E> {
        let counts = self.counts(place, step)?;
        let rest = |found| DecisionInput {
            found,
            holder_is_gone: self.owner == 0,
            counts,
            taken: &self.taken,
        };
        if !self.gate.exists() || !self.record.exists() {
            return decide(rest(None));
        }
        let gate = self.decode_gate(place, step)?;
        let shard = self.decode(place, step, scratch)?;
        decide(rest(Some(FoundShard { shard: &shard, run: &gate })))
    }

    fn decode_gate(&self, place: &ShardPlace, step: &'static str) -> Result<RunGate, InfraError> {
        decode_gate_of(&self.gate.bytes, &place.run, (place.tenant, place.key.run), step)
    }

    /// The record, if it is what its key says.
    pub(crate) fn decode<'a>(
        &'a self,
        place: &ShardPlace,
        step: &'static str,
        scratch: &'a mut DecodeScratch,
    ) -> Result<ShardRecordView<'a>, InfraError> {
        let (key, run) = (place.run.shard(place.key.shard), (place.tenant, place.key.run));
        decode_shard_at(&self.record.bytes, &key, &place.run, run, step, scratch)
    }

    fn counts(&self, place: &ShardPlace, step: &'static str) -> Result<ShardCounts, InfraError> {
        let (Some(keys), Some([tenant, global])) = (&place.totals, &self.totals) else {
            return Ok(ShardCounts::default());
        };
        Ok(ShardCounts {
            tenant: decode_total(tenant, &keys[0], step)?,
            global: decode_total(global, &keys[1], step)?,
        })
    }

    /// The transaction that stores a change, and the record's new bytes (Z1, Z2).
    pub(crate) fn store(
        &self,
        place: &ShardPlace,
        step: &'static str,
        shard: &ShardRecordView<'_>,
        change: &Change<'_>,
        (write, lease): (WriteId, Option<LeaseId>),
    ) -> Result<(Txn, Vec<u8>), InfraError> {
        let counts = self.counts(place, step)?;
        let mut txn = Txn::default();
        let totals = self.totals.iter().flatten().map(|total| total.revision);
        let revisions = [self.gate.revision, self.record.revision, self.owner];
        for (key, revision) in place.compared().zip(revisions.into_iter().chain(totals)) {
            txn.expect(key, revision);
        }
        txn.otherwise.extend(place.read_beside());
        let mut record = Vec::new();
        encode_shard_after(shard, &change.update, &mut record);
        write.end(&mut record);
        let (id, run) = (place.key.shard, &place.run);
        txn.then.push(Op::put(run.shard(id), record.clone()));
        let (before, after) = (&shard.state, &change.update.state);
        let listed = |state| Some((list_key(run, state, id), list_value(state)));
        replace(&mut txn.then, listed(before), listed(after));
        let of_worker = |state| worker_key(run, state, id).map(|key| (key, Vec::new()));
        replace(&mut txn.then, of_worker(before), of_worker(after));
        if change.puts_owner(before, self.owner) {
            let holder = after.lease.expect("only a held shard has an owner");
            let mut value = Vec::new();
            encode_owner(&OwnerRecord::new(holder.owner(), after.fence), &mut value);
            txn.then.push(Op::Put { key: run.owner(id), value, lease });
            if let Some(until) = self.idle_until {
                txn.then.push(Op::Delete(run.waiting(holder.owner())));
                txn.then.push(Op::Delete(run.idle(until, holder.owner())));
            }
        } else if after.lease.is_none() && self.owner != 0 {
            txn.then.push(Op::Delete(run.owner(id)));
        }
        for new in &change.children {
            txn.expect(run.shard(new.id), 0);
            put_new(&mut txn.then, run, &shard.child(new.id, new.spec), write);
        }
        if let Some([tenant, global]) = &place.totals {
            let more = change.children.len();
            txn.then.push(Op::put(tenant.clone(), encode_total(counts.tenant + more)));
            txn.then.push(Op::put(global.clone(), encode_total(counts.global + more)));
        }
        Ok((txn, record))
    }

    /// What is stored once that transaction has taken place.
    pub(crate) fn after(
        self,
        record: Vec<u8>,
        change: &Change<'_>,
        before: &ShardState,
        revision: Revision,
    ) -> Self {
        let owner = match change.update.state.lease {
            Some(_) if change.puts_owner(before, self.owner) => revision,
            Some(_) => self.owner,
            None => 0,
        };
        let record =
            Stored { bytes: record, revision, version: self.record.version + 1, ..self.record };
        Self { record, owner, idle_until: None, ..self }
    }
}

/// What a decision is made from.
pub(crate) struct DecisionInput<'v, 'a> {
    /// The shard and its run's gate, if there are both.
    pub(crate) found: Option<FoundShard<'v, 'a>>,
    /// There is no owner key.
    pub(crate) holder_is_gone: bool,
    /// The shards that exist, for operations that make shards.
    pub(crate) counts: ShardCounts,
    /// Ids of children that are taken, as far as it is known.
    pub(crate) taken: &'v [ShardId],
}

/// What a decision changes.
#[derive(Debug)]
pub(crate) struct Change<'r> {
    pub(crate) update: ShardUpdate<'r>,
    pub(crate) children: InlineVec<NewShard<'r>, 4>,
}

impl<'r> Change<'r> {
    pub(crate) fn of(update: ShardUpdate<'r>) -> Self {
        Self { update, children: InlineVec::new() }
    }

    /// Z3: whoever gets the shard writes the owner's key, and whoever has it does so again if it is
    /// gone because the process was silent for too long.
    pub(crate) fn puts_owner(&self, before: &ShardState, owner: Revision) -> bool {
        let after = &self.update.state;
        after.lease.is_some() && (after.fence != before.fence || owner == 0)
    }
}

/// A new shard's record and its place among the free.
pub(crate) fn put_new(
    ops: &mut Vec<Op>,
    run: &RunKeys,
    shard: &ShardRecordView<'_>,
    write: WriteId,
) {
    shard.assert_invariants();
    let mut record = Vec::new();
    encode_shard(shard, &mut record);
    write.end(&mut record);
    ops.push(Op::put(run.shard(shard.key.shard), record));
    ops.push(Op::put(list_key(run, &shard.state, shard.key.shard), list_value(&shard.state)));
}

/// Where the run lists a shard in this state.
pub(crate) fn list_key(run: &RunKeys, state: &ShardState, shard: ShardId) -> Key {
    let listed = match (state.availability(), state.status) {
        (Availability::Now, _) => Listed::Free,
        (Availability::From(_), _) => Listed::Held,
        (Availability::Never, ShardStatus::Split) => Listed::Split,
        (Availability::Never, ShardStatus::Parked) => Listed::Parked,
        (Availability::Never, ShardStatus::Done | ShardStatus::Active) => Listed::Done,
    };
    run.listed(listed, shard)
}

/// What that list says of it: when its lease ends.
pub(crate) fn list_value(state: &ShardState) -> Vec<u8> {
    match state.availability() {
        Availability::From(deadline) => encode_time(deadline),
        Availability::Now | Availability::Never => Vec::new(),
    }
}

/// Where the shard's worker lists it.
pub(crate) fn worker_key(run: &RunKeys, state: &ShardState, shard: ShardId) -> Option<Key> {
    state.lease.map(|holder| run.held_by(holder.owner(), shard))
}

/// A transaction changes a key once, and an entry that stays as it is is left alone.
fn replace(ops: &mut Vec<Op>, before: Option<(Key, Vec<u8>)>, after: Option<(Key, Vec<u8>)>) {
    if before == after {
        return;
    }
    let stays = |key: &Key| after.as_ref().is_some_and(|(after, _)| after == key);
    ops.extend(before.map(|(key, _)| key).filter(|key| !stays(key)).map(Op::Delete));
    ops.extend(after.map(|(key, value)| Op::put(key, value)));
}

/// The record under a key, if it is what the key says.
pub(crate) fn decode_shard_at<'a>(
    bytes: &'a [u8],
    at: &Key,
    keys: &RunKeys,
    (tenant, run): (TenantId, RunId),
    step: &'static str,
    scratch: &'a mut DecodeScratch,
) -> Result<ShardRecordView<'a>, InfraError> {
    let record = WriteId::taken_off(bytes);
    let shard = decode_shard_view(record, scratch).map_err(|error| damaged(step, at, &error))?;
    let is_here = keys.shard(shard.key.shard) == *at;
    if !is_here || (shard.tenant, shard.key.run) != (tenant, run) {
        return Err(InfraError::corruption(step, format!("{at}: the record is another's")));
    }
    Ok(shard)
}

/// A run's gate, if it is what its key says.
pub(crate) fn decode_gate_of(
    bytes: &[u8],
    keys: &RunKeys,
    run: (TenantId, RunId),
    step: &'static str,
) -> Result<RunGate, InfraError> {
    let key = keys.gate();
    let record = decode_gate(bytes).map_err(|error| damaged(step, &key, &error))?;
    if (record.tenant, record.run) != run {
        return Err(InfraError::corruption(step, format!("{key}: the gate is another's")));
    }
    Ok(record.gate)
}

/// A time as a value. Values are in the order of their times.
pub(crate) fn encode_time(time: LogicalTime) -> Vec<u8> {
    time.as_raw().to_be_bytes().to_vec()
}

/// The time that a value says, if it says one.
pub(crate) fn decode_time(value: &[u8]) -> Option<LogicalTime> {
    let raw = u64::from_be_bytes(value.try_into().ok()?);
    (raw > 0).then(|| LogicalTime::from_raw(raw))
}

pub(crate) fn encode_total(total: usize) -> Vec<u8> {
    total.to_string().into_bytes()
}

pub(crate) fn decode_total(
    stored: &Stored,
    key: &Key,
    step: &'static str,
) -> Result<usize, InfraError> {
    if !stored.exists() {
        return Ok(0);
    }
    let text = core::str::from_utf8(&stored.bytes).ok();
    let total = text.and_then(|text| text.parse().ok());
    total.ok_or_else(|| InfraError::corruption(step, format!("{key}: this is no number")))
}
