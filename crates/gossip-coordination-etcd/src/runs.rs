//! Runs as keys: the loop in which every change of a run is decided and stored.
//!
//! A run's record changes only under a compare with what was read, and its gate, its entry among the
//! open runs and the totals change with it.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId};
use gossip_coordination::codec::{decode_run, encode_gate, encode_run};
use gossip_coordination::transition::{RunUpdate, discard_staged};
use gossip_coordination::{EventKind, InfraError, RunProgress, RunRecord, ShardCounts, ShardState};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, damaged, infra};
use crate::keyspace::{Key, Keyspace, Listed, RunKeys, id_at_end};
use crate::kv::{Found, Kv, KvError, Op, Read, Txn};
use crate::retry::may_pass;
use crate::settle::{Fate, Write, WriteId};
use crate::shards::{Stored, decode_total, encode_total, list_key};

/// What else a decision about a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    Nothing,
    /// How many of its shards stand where.
    Progress,
    /// Some of its shards' ids: the first behind a shard, or of all.
    Shards {
        after: Option<ShardId>,
        limit: usize,
    },
}

impl Also {
    /// Some of its shards' ids, whichever.
    pub(crate) const fn shards(limit: usize) -> Self {
        Self::Shards { after: None, limit }
    }
}

/// What a decision about a run is made from, in one consistent read.
pub(crate) struct SeenRun<'v> {
    pub(crate) record: Option<&'v RunRecord>,
    pub(crate) counts: ShardCounts,
    pub(crate) progress: RunProgress,
    pub(crate) shards: Vec<ShardId>,
    /// Of what it writes.
    pub(crate) write: WriteId,
}

/// What to do about a run.
#[allow(clippy::large_enum_variant, reason = "one of them lives for one try of an operation")]
pub(crate) enum RunVerdict<R> {
    Store(RunChange, R),
    Keep(R),
}

/// What a decision about a run changes.
pub(crate) struct RunChange {
    /// The record; nothing, when the run is deleted.
    pub(crate) next: Option<RunRecord>,
    /// What a watcher is told of it, if anything.
    pub(crate) event: Option<EventKind>,
    /// Changes of shards that go with it.
    pub(crate) ops: Vec<Op>,
    /// By how much the number of shards changes, those for which a place is reserved included.
    pub(crate) shards_more: isize,
}

impl RunChange {
    pub(crate) fn new(next: RunRecord, event: Option<EventKind>) -> Self {
        Self { next: Some(next), event, ops: Vec::new(), shards_more: 0 }
    }

    /// A change of a record that is there.
    pub(crate) fn of(record: Option<&RunRecord>, update: RunUpdate) -> Self {
        let mut next = record.expect("a run that is not there does not change").clone();
        let (event, reserved) = (update.event(), next.reserved());
        next.apply(update);
        let shards_more = next.reserved().wrapping_sub(reserved).cast_signed();
        Self { shards_more, ..Self::new(next, event) }
    }

    /// Deletes shards of a run that has ended, and the run itself when there are no more. Those that
    /// a registration left are counted down in the record, for whoever else deletes them. Their own
    /// records are not asked where they are listed: one that is damaged can be deleted as well.
    pub(crate) fn delete(run: &RunKeys, record: &RunRecord, shards: &[ShardId]) -> Self {
        let mut change = Self::new(record.clone(), None);
        if shards.is_empty() {
            (change.next, change.event) = (None, Some(EventKind::RunDeleted));
        } else if let Some((update, _)) = discard_staged(record, shards.len()) {
            change.next.iter_mut().for_each(|next| next.apply(update.clone()));
        }
        for &id in shards {
            let lists = Listed::ALL.map(|list| run.listed(list, id));
            let keys = [run.shard(id), run.owner(id)].into_iter().chain(lists);
            change.ops.extend(keys.map(Op::Delete));
        }
        change.shards_more = -isize::try_from(shards.len()).expect("a step is small");
        change
    }

    /// Deletes shards that nobody has seen yet.
    pub(crate) fn discard(&mut self, run: &RunKeys, shards: &[ShardId]) {
        for &shard in shards {
            self.ops.push(Op::Delete(run.shard(shard)));
            self.ops.push(Op::Delete(list_key(run, &ShardState::NEW, shard)));
        }
        self.shards_more -= isize::try_from(shards.len()).expect("a step is small");
    }
}

/// The keys that operations on a run read and compare.
struct RunPlace {
    tenant: TenantId,
    run: RunId,
    keys: RunKeys,
    /// Its entry in the tenant's list of runs.
    listed: Key,
    totals: [Key; 2],
}

impl RunPlace {
    fn new(keyspace: &Keyspace, tenant: TenantId, run: RunId) -> Self {
        let totals = [keyspace.tenant(tenant).shard_total(), keyspace.shard_total()];
        let listed = keyspace.tenant(tenant).listed_run(run);
        Self { tenant, run, keys: keyspace.run(tenant, run), listed, totals }
    }

    fn reads(&self, also: Also) -> Vec<Read> {
        let [tenant, global] = &self.totals;
        let fixed = [Read::key(&self.keys.record()), Read::key(tenant), Read::key(global)];
        let more = match also {
            Also::Nothing => Vec::new(),
            Also::Progress => progress_reads(&self.keys),
            Also::Shards { after, limit } => {
                let all = self.keys.shards();
                let rest = after.map(|after| all.after(self.keys.shard(after).as_bytes()));
                vec![Read::first_keys(rest.unwrap_or(all), limit)]
            }
        };
        fixed.into_iter().chain(more).collect()
    }
}

/// A run as it was read.
struct RunSnapshot {
    record: Stored,
    totals: [Stored; 2],
    progress: RunProgress,
    shards: Vec<ShardId>,
}

impl RunSnapshot {
    fn parse(also: Also, found: &[Found]) -> Self {
        let (mut progress, mut shards) = (RunProgress::default(), Vec::new());
        match also {
            Also::Nothing => {}
            Also::Progress => progress = parse_progress(&found[3..]),
            Also::Shards { .. } => shards = shard_ids(&found[3]),
        }
        let totals = [Stored::of(&found[1]), Stored::of(&found[2])];
        Self { record: Stored::of(&found[0]), totals, progress, shards }
    }
}

/// Counts of one moment: every shard is in one list of its run.
pub(crate) fn progress_reads(run: &RunKeys) -> Vec<Read> {
    let lists = [run.free(), run.held(), run.done(), run.split(), run.parked()];
    lists.into_iter().map(Read::count).collect()
}

pub(crate) fn parse_progress(found: &[Found]) -> RunProgress {
    let (free, held) = (found[0].count, found[1].count);
    let (done, split, parked) = (found[2].count, found[3].count, found[4].count);
    RunProgress { active: free + held, done, split, parked, watermark: done + split }
}

pub(crate) fn shard_ids(found: &Found) -> Vec<ShardId> {
    let ids = found.entries.iter().filter_map(|entry| id_at_end(&entry.key));
    ids.map(ShardId::from_raw).collect()
}

/// The record, if it is what its key says.
pub(crate) fn decode_record(
    stored: &[u8],
    keys: &RunKeys,
    tenant: TenantId,
    run: RunId,
    step: &'static str,
) -> Result<RunRecord, InfraError> {
    let key = keys.record();
    let record = decode_run(WriteId::taken_off(stored));
    let record = record.map_err(|error| damaged(step, &key, &error))?;
    if (record.tenant, record.run) != (tenant, run) {
        return Err(InfraError::corruption(step, format!("{key}: the record is another's")));
    }
    Ok(record)
}

/// A change whose transaction was not answered.
struct Unanswered<R> {
    write: Write,
    answer: R,
    event: Option<EventKind>,
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Decides about a run and stores the decision, as often as it takes.
    pub(crate) async fn change_run<R: Send, E>(
        &mut self,
        steps: Steps,
        now: LogicalTime,
        (tenant, run): (TenantId, RunId),
        also: Also,
        mut decide: impl FnMut(SeenRun<'_>) -> Result<RunVerdict<R>, E> + Send,
    ) -> Result<R, E>
    where
        E: From<InfraError> + Send,
    {
        let place = RunPlace::new(&self.keyspace, tenant, run);
        let (mut attempts, id) = (self.attempts(), WriteId::random(steps.txn)?);
        let mut unanswered: Option<Unanswered<R>> = None;
        loop {
            let reads = Txn::reads(place.reads(also));
            let answer = self.read(&mut attempts, steps.load, reads).await?;
            let snapshot = RunSnapshot::parse(also, &answer.found);
            // B1.
            if let Some(tried) = unanswered.take() {
                let (key, write) = (place.keys.record(), &tried.write);
                let fate = self.fate_of(&mut attempts, steps, &key, write, &snapshot.record);
                match fate.await? {
                    Fate::TookPlace => {
                        self.emit_some(tenant, run, now, tried.event);
                        return Ok(tried.answer);
                    }
                    Fate::DidNot => {}
                    Fate::Unknown => unanswered = Some(tried),
                }
            }
            let verdict = self.decide_run(steps, &place, &snapshot, id, &mut decide)?;
            let (change, answer) = match verdict {
                RunVerdict::Store(change, answer) => (change, answer),
                RunVerdict::Keep(answer) => {
                    let Some(done) = unanswered else { return Ok(answer) };
                    self.emit_some(tenant, run, now, done.event);
                    return Ok(done.answer);
                }
            };
            let event = change.event.clone();
            let (txn, record) = store(steps, &place, &snapshot, change, id)?;
            match attempts.within(self.kv.txn(txn)).await {
                Ok(stored) if stored.succeeded => {
                    self.emit_some(tenant, run, now, event);
                    return Ok(answer);
                }
                Ok(_) => attempts.next(steps.txn, None).await?,
                Err(error) if may_pass(&error) => {
                    if matches!(error, KvError::Unanswered(_)) {
                        let write = Write::over(&snapshot.record, record);
                        unanswered = Some(Unanswered { write, answer, event });
                    }
                    attempts.next(steps.txn, Some(&error)).await?;
                }
                Err(error) => return Err(infra(steps.txn, &error).into()),
            }
        }
    }

    fn decide_run<R, E: From<InfraError>>(
        &self,
        steps: Steps,
        place: &RunPlace,
        snapshot: &RunSnapshot,
        write: WriteId,
        decide: &mut impl FnMut(SeenRun<'_>) -> Result<RunVerdict<R>, E>,
    ) -> Result<RunVerdict<R>, E> {
        let RunPlace { tenant, run, keys, .. } = place;
        let stored = &snapshot.record;
        let decode = || decode_record(&stored.bytes, keys, *tenant, *run, steps.load);
        let record = stored.exists().then(decode).transpose()?;
        let counts = counts(steps, place, snapshot)?;
        let shards = snapshot.shards.clone();
        let progress = match &record {
            Some(record) if record.shows_shards() => snapshot.progress,
            _ => RunProgress::default(),
        };
        decide(SeenRun { record: record.as_ref(), counts, progress, shards, write })
    }

    fn emit_some(
        &mut self,
        tenant: TenantId,
        run: RunId,
        now: LogicalTime,
        event: Option<EventKind>,
    ) {
        if let Some(event) = event {
            self.emit(tenant, run, now, || event);
        }
    }
}

fn counts(
    steps: Steps,
    place: &RunPlace,
    snapshot: &RunSnapshot,
) -> Result<ShardCounts, InfraError> {
    Ok(ShardCounts {
        tenant: decode_total(&snapshot.totals[0], &place.totals[0], steps.load)?,
        global: decode_total(&snapshot.totals[1], &place.totals[1], steps.load)?,
    })
}

/// The transaction that stores a change, and the record's new bytes.
fn store(
    steps: Steps,
    place: &RunPlace,
    snapshot: &RunSnapshot,
    change: RunChange,
    write: WriteId,
) -> Result<(Txn, Vec<u8>), InfraError> {
    let mut txn = Txn::default();
    txn.expect(place.keys.record(), snapshot.record.revision);
    let mut record = Vec::new();
    match &change.next {
        Some(next) => {
            encode_run(next, &mut record);
            write.end(&mut record);
            put_run(&mut txn, place, next, &record);
        }
        None => {
            let keys = [place.keys.record(), place.keys.gate(), place.keys.open()];
            txn.then.extend(keys.into_iter().chain([place.listed.clone()]).map(Op::Delete));
            // What is said of workers is written under a compare with the gate, so that none comes after.
            let of_workers = place.keys.all_waiting().chain([place.keys.all_held()]);
            txn.then.extend(of_workers.map(Op::DeleteRange));
        }
    }
    if change.shards_more != 0 {
        let counts = counts(steps, place, snapshot)?;
        let totals = place.totals.iter().zip(&snapshot.totals).zip([counts.tenant, counts.global]);
        for ((key, stored), total) in totals {
            let Some(total) = total.checked_add_signed(change.shards_more) else {
                let message = format!("{key}: fewer shards are counted than exist");
                return Err(InfraError::corruption(steps.load, message));
            };
            txn.expect(key.clone(), stored.revision);
            txn.then.push(Op::put(key.clone(), encode_total(total)));
        }
    }
    txn.then.extend(change.ops);
    Ok((txn, record))
}

/// Whether the run is listed among the open ones: it has not ended, or shards that a registration left
/// are still to be deleted.
pub(crate) fn is_open(run: &RunRecord) -> bool {
    !run.status.is_terminal() || run.registration.is_some()
}

fn put_run(txn: &mut Txn, place: &RunPlace, next: &RunRecord, record: &[u8]) {
    let mut gate = Vec::new();
    encode_gate(&next.gate_record(), &mut gate);
    txn.then.push(Op::put(place.keys.record(), record));
    txn.then.push(Op::put(place.keys.gate(), gate));
    txn.then.push(Op::put(place.listed.clone(), []));
    txn.then.push(if is_open(next) {
        Op::put(place.keys.open(), [])
    } else {
        Op::Delete(place.keys.open())
    });
}
