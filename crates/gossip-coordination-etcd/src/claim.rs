//! Claims: some shard of a run that is free, found in one bounded page of its lists.
//!
//! A worker begins to look at a place of its own, so that workers rarely want the same shard. Of the
//! held shards etcd returns those with the lowest deadlines: leases that are over, and those of
//! processes that died, as whoever lives renews.

use gossip_contracts::identity::{LogicalTime, RunId, ShardId, TenantId, WorkerId};
use gossip_coordination::{
    AcquireResultView, AcquireScratch, AsyncShardClaiming, ClaimCandidates, ClaimError,
    ClaimSearch, ClaimStep, GetRunError, Granted, InfraError, RunGate, RunStatus,
};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{infra, steps};
use crate::free_list::Part;
use crate::keyspace::{RunKeys, id_at_end, place_of};
use crate::kv::{Entry, Found, Kv, KvError, Op, Read, Txn};
use crate::limits::CLAIM_PAGE;
use crate::retry::{Attempts, may_pass};
use crate::runs::shard_ids;
use crate::shards::{Stored, decode_gate_of, decode_time, encode_time};

/// Which shards a claim is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those that anybody may have.
    Claimable,
    /// Those that the worker holds, or held last.
    Own,
}

/// Who wants a shard, of which run.
#[derive(Clone, Copy, Debug)]
struct Applicant {
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    worker: WorkerId,
}

impl<K: Kv> AsyncShardClaiming for AsyncEtcdCoordinator<K> {
    async fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        if let Some(retry_after) = self.cooldown(now, tenant, worker) {
            return Err(ClaimError::Throttled { retry_after });
        }
        let by = Applicant { now, tenant, run, worker };
        let claimed = self.search(Wanted::Claimable, by, scratch).await;
        let found_nothing = matches!(claimed, Err(ClaimError::NoneAvailable { .. }));
        self.set_cooldown(now, tenant, worker, found_nothing);
        Ok(claimed?.view(scratch))
    }

    async fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        let by = Applicant { now, tenant, run, worker };
        match self.search(Wanted::Own, by, scratch).await {
            Ok(granted) => Ok(Some(granted.view(scratch))),
            Err(ClaimError::NoneAvailable { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Tries candidates until one is granted, or none is left.
    async fn search(
        &mut self,
        wanted: Wanted,
        by: Applicant,
        scratch: &mut AcquireScratch,
    ) -> Result<Granted, ClaimError> {
        let Applicant { now, tenant, run, worker } = by;
        let (mut search, mut attempts) = (ClaimSearch::new(run), self.attempts());
        loop {
            match search.step() {
                ClaimStep::Collect => {
                    let out = search.candidates_mut();
                    match wanted {
                        Wanted::Claimable => {
                            self.collect_within(&mut attempts, by, out).await?;
                        }
                        Wanted::Own => self.collect_own(&mut attempts, by, out).await?,
                    }
                }
                ClaimStep::Acquire(key) => {
                    let mut attempts = attempts.renewed(&self.config);
                    let acquired =
                        self.acquire_within(&mut attempts, now, tenant, key, worker, scratch).await;
                    match acquired.map(|view| Granted::of(&view)) {
                        Ok(granted) => return Ok(granted),
                        Err(refusal) => search.refused(refusal)?,
                    }
                }
                ClaimStep::End(error) => return Err(error),
            }
        }
    }

    /// What the worker's own list has.
    async fn collect_own(
        &self,
        attempts: &mut Attempts,
        Applicant { tenant, run, worker, .. }: Applicant,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        let step = steps!("reacquire_own").load;
        out.clear();
        let keys = self.keyspace.run(tenant, run);
        let own = Read::first_keys(keys.all_held_by(worker), ClaimCandidates::MAX);
        let reads = Txn::reads([Read::key(&keys.gate()), own]);
        let answer = self.read(attempts, step, reads).await?;
        out.status = found_gate(step, &keys, (tenant, run), &answer.found[0])?.status;
        if out.status == RunStatus::Active {
            out.shards.extend(shard_ids(&answer.found[1]));
        }
        Ok(())
    }

    /// Notes under the process's lease that a worker waits for work. The gate is compared: what is
    /// noted ends with the run.
    pub(crate) async fn put_idle(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        let steps = steps!("note_idle");
        let keys = self.keyspace.run(tenant, run);
        let mut attempts = self.attempts();
        loop {
            let reads = [Read::key(&keys.gate()), Read::key(&keys.waiting(worker))];
            let answer = self.read(&mut attempts, steps.load, Txn::reads(reads)).await?;
            let [gate, before] = [0, 1].map(|at| Stored::of(&answer.found[at]));
            let gate_now = found_gate(steps.load, &keys, (tenant, run), &answer.found[0])?;
            let until = gate_now.config.lease_deadline(now);
            let lease = self.lease_id(&mut attempts, steps.lease).await?;
            let mut txn = Txn::default();
            txn.expect(keys.gate(), gate.revision);
            txn.expect(keys.waiting(worker), before.revision);
            let put = |key, value| Op::Put { key, value, lease: Some(lease) };
            txn.then.push(put(keys.waiting(worker), encode_time(until)));
            txn.then.push(put(keys.idle(until, worker), Vec::new()));
            let old = decode_time(&before.bytes).filter(|&old| old != until);
            txn.then.extend(old.map(|old| Op::Delete(keys.idle(old, worker))));
            match attempts.within(self.kv.txn(txn)).await {
                Ok(stored) if stored.succeeded => return Ok(()),
                Ok(_) => attempts.next(steps.txn, None).await?,
                Err(KvError::LeaseNotFound) => {
                    self.lease_has_ended(lease).await;
                    attempts.next(steps.txn, Some(&KvError::LeaseNotFound)).await?;
                }
                Err(error) if may_pass(&error) => attempts.next(steps.txn, Some(&error)).await?,
                Err(error) => return Err(infra(steps.txn, &error).into()),
            }
        }
    }

    pub(crate) async fn collect_candidates(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        let by = Applicant { now, tenant, run, worker };
        self.collect_within(&mut self.attempts(), by, out).await
    }

    async fn collect_within(
        &self,
        attempts: &mut Attempts,
        by: Applicant,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        let (run, place) = ((by.tenant, by.run), place_of(by.worker));
        let part = self.free_lists.for_claim(run, place);
        self.collect_near(attempts, by, part, out).await?;
        if out.shards.is_empty() && !part.is_all() {
            // V2.
            self.free_lists.saw_nothing(run, part);
            self.collect_near(attempts, by, Part::all(place), out).await?;
        }
        Ok(())
    }

    /// Those whose leases are over, and the free ones of a part of the list; if it is all of it and
    /// there are none, those whose owners are gone.
    async fn collect_near(
        &self,
        attempts: &mut Attempts,
        Applicant { now, tenant, run, worker }: Applicant,
        part: Part,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        let step = steps!("collect_claim_candidates").load;
        out.clear();
        let keys = self.keyspace.run(tenant, run);
        let [here, before] = keys.free_part(part.from, part.width);
        let reads = [
            Read::key(&keys.gate()),
            Read::first_keys(here, ClaimCandidates::MAX),
            Read::first_keys(before, ClaimCandidates::MAX),
            Read::lowest(keys.held(), CLAIM_PAGE),
        ];
        let counts = self.free_lists.is_count_due((tenant, run));
        let count = counts.then(|| Read::count(keys.shards()));
        let reads = Txn::reads(reads.into_iter().chain(count));
        let answer = self.read(attempts, step, reads).await?;
        if let Some(shards) = answer.found.get(4) {
            self.free_lists.counted((tenant, run), shards.count);
        }
        out.status = found_gate(step, &keys, (tenant, run), &answer.found[0])?.status;
        let held = leases(step, &keys, &answer.found[3])?;
        // A lease keeps others out for as long as clocks may differ.
        let free_from = |deadline| self.takeover(false).free_from(deadline);
        out.earliest_deadline = held.first().map(|&(_, deadline)| free_from(deadline));
        if out.status != RunStatus::Active {
            return Ok(());
        }
        let over = held.iter().filter(|&&(_, deadline)| free_from(deadline) <= now);
        let over = over.map(|&(shard, _)| shard);
        let free = answer.found[1..3].iter().flat_map(shard_ids);
        out.shards.extend(over.chain(free).take(ClaimCandidates::MAX));
        if out.shards.is_empty() && part.is_all() {
            let held: Vec<ShardId> = held.iter().map(|&(shard, _)| shard).collect();
            let ownerless = self.ownerless(attempts, step, &keys, worker, &held).await?;
            out.shards.extend(ownerless.into_iter().take(ClaimCandidates::MAX));
        }
        Ok(())
    }

    /// Those of `held` whose owner keys are gone, and which the worker does not hold itself.
    async fn ownerless(
        &self,
        attempts: &mut Attempts,
        step: &'static str,
        keys: &RunKeys,
        worker: WorkerId,
        held: &[ShardId],
    ) -> Result<Vec<ShardId>, InfraError> {
        if held.is_empty() {
            return Ok(Vec::new());
        }
        let own = held.iter().map(|&shard| Read::key(&keys.held_by(worker, shard)));
        let owners = held.iter().map(|&shard| Read::key(&keys.owner(shard)));
        let answer = self.read(attempts, step, Txn::reads(own.chain(owners))).await?;
        let (own, owners) = answer.found.split_at(held.len());
        let gone = held.iter().zip(own).zip(owners);
        let gone = gone.filter(|((_, own), owner)| own.count == 0 && owner.count == 0);
        Ok(gone.map(|((&shard, _), _)| shard).collect())
    }
}

/// Held shards and when their leases end, as the list says.
fn leases(
    step: &'static str,
    keys: &RunKeys,
    held: &Found,
) -> Result<Vec<(ShardId, LogicalTime)>, InfraError> {
    let lease = |entry: &Entry| {
        let (shard, deadline) = (id_at_end(&entry.key), decode_time(&entry.value));
        shard.map(ShardId::from_raw).zip(deadline).ok_or_else(|| {
            let key = keys.named(&entry.key);
            InfraError::corruption(step, format!("{key}: this is no deadline of a shard"))
        })
    };
    held.entries.iter().map(lease).collect()
}

fn found_gate(
    step: &'static str,
    keys: &RunKeys,
    run: (TenantId, RunId),
    found: &Found,
) -> Result<RunGate, GetRunError> {
    let stored = Stored::of(found);
    if !stored.exists() {
        return Err(GetRunError::RunNotFound);
    }
    Ok(decode_gate_of(&stored.bytes, keys, run, step)?)
}
