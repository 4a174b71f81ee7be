//! Operations on runs, and claims.

use core::num::NonZeroUsize;

use gossip_contracts::coordination::InitialShardInput;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_stdx::SlabFull;

use super::backend::carry_out;
use super::run::Run;
use super::shard::Shard;
use super::{InMemoryCoordinator, decide, emit, find, find_run};
use crate::claim::{ClaimSearch, ClaimStep, ShardClaiming, claim_from_candidates};
use crate::error::{
    ClaimError, CreateRunError, DeleteRunError, GetRunError, IdempotentOutcome, InfraError,
    RegisterShardsError, RevokeLeaseError, RunTransitionError, UnparkError,
};
use crate::events::EventKind;
use crate::record::ShardRecordView;
use crate::run::{
    RunConfig, RunProgress, RunRecord, RunStatus, RunSummary, ShardFilter, ShardSummary,
};
use crate::scratch::{AcquireResultView, AcquireScratch, Granted};
use crate::traits::{ClaimCandidates, CoordinationBackend, RunManagement};
use crate::transition::{self, Decision, RunUpdate};

/// Nobody can be faster, so the first candidate is taken. If it turns out to be poisoned, another
/// look finds the next: the second of this one may be free while another worker's lease is over.
const CANDIDATES: usize = 1;

/// Waiting workers to remember before those whose wait is over are forgotten.
const WAITING_MAX: usize = 4096;

impl InMemoryCoordinator {
    fn get(&self, tenant: TenantId, run: RunId) -> Result<&Run, GetRunError> {
        self.tenants
            .get(&tenant)
            .and_then(|tenant| tenant.runs.get(&run))
            .ok_or(GetRunError::RunNotFound)
    }

    fn end_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        transition: impl FnOnce(Option<&Run>) -> Result<Decision<RunUpdate, ()>, RunTransitionError>,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let found = find_run(&mut self.tenants, tenant, run);
        match (transition(found.as_deref())?, found) {
            (Decision::Execute(update), Some(found)) => {
                let event = update.event();
                found.record.apply(update);
                emit(&mut self.events, tenant, run, now, || event);
                Ok(IdempotentOutcome::Executed(()))
            }
            (Decision::Replay(()), _) => Ok(IdempotentOutcome::Replayed(())),
            (Decision::Execute(_), None) => unreachable!("a run that is not there does not end"),
        }
    }
}

impl RunManagement for InMemoryCoordinator {
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        let existing = find_run(&mut self.tenants, tenant, run).map(|run| &run.record);
        let record = transition::create_run(existing, now, tenant, run, config)?;
        self.tenants.entry(tenant).or_default().runs.insert(run, Run::new(record));
        emit(&mut self.events, tenant, run, now, || Some(EventKind::RunCreated));
        Ok(())
    }

    fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        let room = self.room(tenant);
        let found = find_run(&mut self.tenants, tenant, run);
        let record = found.as_ref().map(|run| &run.record);
        let update = match transition::register_shards(record, now, tenant, &room, shards, op_id)? {
            Decision::Execute(update) => update,
            Decision::Replay(()) => return Ok(IdempotentOutcome::Replayed(())),
        };
        let found = found.expect("shards are registered in a run that is there");
        let mut stored: Vec<Shard> = Vec::with_capacity(shards.len());
        let all_stored = shards.iter().try_for_each(|input| {
            let record = transition::root_shard(&found.record, input);
            stored.push(Shard::store(&mut self.slab, &record)?);
            Ok(())
        });
        if let Err(SlabFull { .. }) = all_stored {
            stored.into_iter().for_each(|shard| shard.release(&mut self.slab));
            return Err(RegisterShardsError::ResourceExhausted { resource: "slab bytes" });
        }
        found.reserve(stored.len());
        let event = update.event();
        found.record.apply(update);
        stored.into_iter().for_each(|shard| found.add(shard));
        self.count_new_shards(tenant, shards.len());
        emit(&mut self.events, tenant, run, now, || event);
        Ok(IdempotentOutcome::Executed(()))
    }

    fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        self.get(tenant, run).map(|run| run.record.clone())
    }

    fn get_run_progress(&self, tenant: TenantId, run: RunId) -> Result<RunProgress, GetRunError> {
        self.get(tenant, run).map(|run| run.progress)
    }

    fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        out.clear();
        let run = self.get(tenant, run)?;
        let shown = run
            .views(&self.slab)
            .filter(|shard| filter.admits(shard, run.record.status, now, self.takeover()))
            .map(|shard| ShardSummary::of(&shard));
        out.extend(shown);
        Ok(())
    }

    fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.end_run(now, tenant, run, |run| {
            let progress = run.map_or_else(RunProgress::default, |run| run.progress);
            let record = run.map(|run| &run.record);
            transition::complete_run(record, now, tenant, &progress, result, op_id)
        })
    }

    fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.end_run(now, tenant, run, |run| {
            transition::fail_run(run.map(|run| &run.record), now, tenant, op_id)
        })
    }

    fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.end_run(now, tenant, run, |run| {
            transition::cancel_run(run.map(|run| &run.record), now, tenant, op_id)
        })
    }

    fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        let found = find(&mut self.tenants, tenant, key);
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::unpark(shard, now, tenant, key, op_id)
        })?;
        let carried_out = carry_out(found, &mut self.slab, &mut self.events, now, decision);
        Ok(carried_out.expect("this update carries no bytes"))
    }

    fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        _worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        out.clear();
        let run = self.get(tenant, run)?;
        out.status = run.record.status;
        out.earliest_deadline = run.earliest_deadline(self.takeover());
        if out.status == RunStatus::Active {
            out.shards.extend(run.claimable(now, self.takeover()).take(CANDIDATES));
        }
        Ok(())
    }

    fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        let found = find(&mut self.tenants, tenant, key);
        let decision = decide(found.as_ref(), &self.slab, |shard| {
            transition::revoke_lease(shard, tenant, fence)
        })?;
        let carried_out = carry_out(found, &mut self.slab, &mut self.events, now, decision);
        Ok(carried_out.expect("this update carries no bytes"))
    }

    fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        out.clear();
        let runs = self.tenants.get(&tenant).into_iter().flat_map(|tenant| tenant.runs.values());
        let behind = runs.filter(|run| after.is_none_or(|after| run.record.run > after));
        out.extend(behind.map(|run| RunSummary::of(&run.record)));
        out.sort_unstable_by_key(|run| run.run);
        let more = out.len() > limit.get();
        out.truncate(limit.get());
        Ok(out.last().filter(|_| more).map(|run| run.run))
    }

    fn list_shards_page_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        out: &mut Vec<ShardSummary>,
    ) -> Result<Option<ShardId>, GetRunError> {
        out.clear();
        let run = self.get(tenant, run)?;
        let is_behind = |shard: &ShardRecordView<'_>| after.is_none_or(|it| shard.key.shard > it);
        let mut behind = run.views(&self.slab).filter(is_behind);
        let mut last = None;
        for shard in behind.by_ref().take(limit.get()) {
            last = Some(shard.key.shard);
            if filter.admits(&shard, run.record.status, now, self.takeover()) {
                out.push(ShardSummary::of(&shard));
            }
        }
        Ok(last.filter(|_| behind.next().is_some()))
    }

    fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError> {
        let entry = self.tenants.get_mut(&tenant);
        let record = entry.as_ref().and_then(|entry| entry.runs.get(&run)).map(|run| &run.record);
        transition::delete_run(record, tenant)?;
        let entry = entry.expect("a run that is deleted has a tenant");
        let deleted = entry.runs.remove(&run).expect("a run that is deleted is there");
        let count = deleted.release(&mut self.slab);
        entry.shard_count -= count;
        self.total_shards -= count;
        emit(&mut self.events, tenant, run, now, || Some(EventKind::RunDeleted));
        Ok(())
    }

    fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        let run = find_run(&mut self.tenants, tenant, run).ok_or(GetRunError::RunNotFound)?;
        if run.idle.len() >= WAITING_MAX {
            run.idle.retain(|_, &mut until| now < until);
        }
        run.idle.insert(worker, run.record.config.lease_deadline(now));
        Ok(())
    }
}

impl ShardClaiming for InMemoryCoordinator {
    fn claim_next_available<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        let cooldown = self.config.claim_cooldown_interval;
        let until = now.checked_add(cooldown).unwrap_or(LogicalTime::from_raw(u64::MAX));
        if cooldown > 0
            && self.get(tenant, run)?.record.status == RunStatus::Active
            && let Some(entry) = self.tenants.get_mut(&tenant)
            && let Some(&retry_after) = entry.cooldowns.get(&worker)
        {
            // A wait longer than the cooldown was noted before the clock stepped back.
            let is_noted_later = retry_after > until;
            if now < retry_after && !is_noted_later {
                return Err(ClaimError::Throttled { retry_after });
            }
            entry.cooldowns.remove(&worker);
        }
        // The result borrows `scratch`, so what it says about waiting is read before it is returned.
        let result = claim_from_candidates(self, now, tenant, run, worker, scratch);
        let found_nothing = matches!(result, Err(ClaimError::NoneAvailable { .. }));
        if cooldown > 0
            && found_nothing
            && let Some(entry) = self.tenants.get_mut(&tenant)
        {
            if entry.cooldowns.len() >= WAITING_MAX {
                entry.cooldowns.retain(|_, &mut retry_after| now < retry_after);
            }
            entry.cooldowns.insert(worker, until);
        }
        result
    }

    fn reacquire_own<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<Option<AcquireResultView<'s>>, ClaimError> {
        let mut search = ClaimSearch::new(run);
        loop {
            match search.step() {
                ClaimStep::Collect => {
                    let found = self.get(tenant, run)?;
                    let (status, own) = (found.record.status, found.owned_by(worker));
                    let shards = own.into_iter().collect();
                    let out = search.candidates_mut();
                    *out = ClaimCandidates { status, shards, earliest_deadline: None };
                }
                ClaimStep::Acquire(key) => {
                    let acquired = self.acquire_and_restore_into(now, tenant, key, worker, scratch);
                    match acquired.map(|view| Granted::of(&view)) {
                        Ok(granted) => return Ok(Some(granted.view(scratch))),
                        Err(refusal) => search.refused(refusal)?,
                    }
                }
                ClaimStep::End(ClaimError::NoneAvailable { .. }) => return Ok(None),
                ClaimStep::End(error) => return Err(error),
            }
        }
    }
}
