//! Runs as keys: the loop in which every change of a run is decided and stored.
//!
//! A run's record changes only under a compare with what was read, and its gate, its entry among the
//! open runs and the totals change with it.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId};
use gossip_coordination::codec::{decode_run, encode_gate, encode_run};
use gossip_coordination::transition::RunUpdate;
use gossip_coordination::{
    EventKind, InfraError, RunProgress, RunRecord, RunStatus, ShardCounts, ShardState,
};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, damaged, infra};
use crate::keyspace::{Key, Keyspace, RunKeys, id_at_end};
use crate::kv::{Found, Kv, KvError, Op, Read, Txn};
use crate::retry::{Attempts, may_pass};
use crate::shards::{Stored, decode_total, encode_total, list_key};

/// What else a decision about a run needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Also {
    Nothing,
    /// How many of its shards stand where.
    Progress,
    /// Some of its shards' ids, whichever.
    Shards(usize),
}

/// What a decision about a run is made from, in one consistent read.
pub(crate) struct SeenRun<'v> {
    pub(crate) record: Option<&'v RunRecord>,
    pub(crate) counts: ShardCounts,
    pub(crate) progress: RunProgress,
    pub(crate) shards: Vec<ShardId>,
}

/// What to do about a run.
#[allow(clippy::large_enum_variant, reason = "one of them lives for one try of an operation")]
pub(crate) enum RunVerdict<R> {
    Store(RunChange, R),
    Keep(R),
}

/// What a decision about a run changes.
pub(crate) struct RunChange {
    pub(crate) next: RunRecord,
    /// What a watcher is told of it, if anything.
    pub(crate) event: Option<EventKind>,
    /// Changes of shards that go with it.
    pub(crate) ops: Vec<Op>,
    /// By how much the number of shards changes.
    pub(crate) shards_more: isize,
}

impl RunChange {
    pub(crate) fn new(next: RunRecord, event: Option<EventKind>) -> Self {
        Self { next, event, ops: Vec::new(), shards_more: 0 }
    }

    /// A change of a record that is there.
    pub(crate) fn of(record: Option<&RunRecord>, update: RunUpdate) -> Self {
        let mut next = record.expect("a run that is not there does not change").clone();
        let event = update.event();
        next.apply(update);
        Self::new(next, event)
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
    totals: [Key; 2],
}

impl RunPlace {
    fn new(keyspace: &Keyspace, tenant: TenantId, run: RunId) -> Self {
        let totals = [keyspace.tenant(tenant).shard_total(), keyspace.shard_total()];
        Self { tenant, run, keys: keyspace.run(tenant, run), totals }
    }

    fn reads(&self, also: Also) -> Vec<Read> {
        let [tenant, global] = &self.totals;
        let fixed = [Read::key(&self.keys.record()), Read::key(tenant), Read::key(global)];
        let more = match also {
            Also::Nothing => Vec::new(),
            Also::Progress => progress_reads(&self.keys),
            Also::Shards(limit) => vec![Read::first_keys(self.keys.shards(), limit)],
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
            Also::Shards(_) => shards = shard_ids(&found[3]),
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
    let record = decode_run(stored).map_err(|error| damaged(step, &key, &error))?;
    if (record.tenant, record.run) != (tenant, run) {
        return Err(InfraError::corruption(step, format!("{key}: the record is another's")));
    }
    Ok(record)
}

/// Whether its shards may be seen: not before it is active, nor what is left of a registration that
/// never got that far.
pub(crate) fn shows_shards(record: &RunRecord) -> bool {
    record.status != RunStatus::Initializing && !record.root_shards.is_empty()
}

/// A change whose transaction was not answered.
struct Unanswered<R> {
    record: Vec<u8>,
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
        let mut attempts = Attempts::new(&self.config);
        let mut unanswered: Option<Unanswered<R>> = None;
        loop {
            let answer = self.read(steps.load, Txn::reads(place.reads(also))).await?;
            let snapshot = RunSnapshot::parse(also, &answer.found);
            // B1: the record is as it was to become.
            if let Some(done) = unanswered.take_if(|tried| tried.record == snapshot.record.bytes) {
                self.emit_some(tenant, run, now, done.event);
                return Ok(done.answer);
            }
            let (change, answer) = match self.decide_run(steps, &place, &snapshot, &mut decide)? {
                RunVerdict::Store(change, answer) => (change, answer),
                RunVerdict::Keep(answer) => {
                    let Some(done) = unanswered else { return Ok(answer) };
                    self.emit_some(tenant, run, now, done.event);
                    return Ok(done.answer);
                }
            };
            let event = change.event.clone();
            let (txn, record) = store(steps, &place, &snapshot, change)?;
            match self.kv.txn(txn).await {
                Ok(stored) if stored.succeeded => {
                    self.emit_some(tenant, run, now, event);
                    return Ok(answer);
                }
                Ok(_) => attempts.next(steps.txn, None).await?,
                Err(error) if may_pass(&error) => {
                    if matches!(error, KvError::Unanswered(_)) {
                        unanswered = Some(Unanswered { record, answer, event });
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
        decide: &mut impl FnMut(SeenRun<'_>) -> Result<RunVerdict<R>, E>,
    ) -> Result<RunVerdict<R>, E> {
        let RunPlace { tenant, run, keys, .. } = place;
        let stored = &snapshot.record;
        let decode = || decode_record(&stored.bytes, keys, *tenant, *run, steps.load);
        let record = stored.exists().then(decode).transpose()?;
        let counts = counts(steps, place, snapshot)?;
        let shards = snapshot.shards.clone();
        let progress = match &record {
            Some(record) if shows_shards(record) => snapshot.progress,
            _ => RunProgress::default(),
        };
        decide(SeenRun { record: record.as_ref(), counts, progress, shards })
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
) -> Result<(Txn, Vec<u8>), InfraError> {
    let mut txn = Txn::default();
    txn.expect(place.keys.record(), snapshot.record.revision);
    let (mut record, mut gate) = (Vec::new(), Vec::new());
    encode_run(&change.next, &mut record);
    encode_gate(&change.next.gate_record(), &mut gate);
    txn.then.push(Op::put(place.keys.record(), record.clone()));
    txn.then.push(Op::put(place.keys.gate(), gate));
    txn.then.push(if change.next.status.is_terminal() {
        Op::Delete(place.keys.open())
    } else {
        Op::put(place.keys.open(), [])
    });
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
