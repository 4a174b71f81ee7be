//! Operations on runs, and what can be read of them.

use core::num::NonZeroUsize;

use gossip_contracts::coordination::InitialShardInput;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::transition::{self, Decision, RunUpdate};
use gossip_coordination::{
    AsyncRunManagement, ClaimCandidates, CreateRunError, DeleteRunError, EventKind, GetRunError,
    IdempotentOutcome, InfraError, RegisterShardsError, RevokeLeaseError, RunConfig, RunProgress,
    RunRecord, RunSummary, RunTransitionError, ShardFilter, ShardSummary, UnparkError,
};

use crate::change::{Manner, StoreDecision};
use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, steps};
use crate::kv::{Kv, Read, Txn};
use crate::limits::largest_deletion;
use crate::runs::{
    Also, RunChange, RunVerdict, SeenRun, decode_record, parse_progress, progress_reads,
};
use crate::shards::{DecisionInput, Stored};

/// Where a deletion goes on.
enum Deletion {
    Behind(ShardId),
    /// Nothing is left behind what was deleted; before it there may be.
    FromTheStart,
    Done,
}

impl<K: Kv> AsyncRunManagement for AsyncEtcdCoordinator<K> {
    async fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        let check_leases = self.lease_check("create_run.config");
        let decide = |seen: SeenRun<'_>| {
            let record = transition::create_run(seen.record, now, tenant, run, config)?;
            check_leases(&config)?;
            let change = RunChange::new(record, Some(EventKind::RunCreated));
            Ok::<_, CreateRunError>(RunVerdict::Store(change, ()))
        };
        self.change_run(steps!("create_run"), now, (tenant, run), Also::Nothing, decide).await
    }

    async fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        self.register(now, (tenant, run), shards, op_id).await
    }

    async fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        self.read_run(steps!("get_run"), tenant, run, []).await.map(|(record, _)| record)
    }

    async fn get_run_progress(
        &self,
        tenant: TenantId,
        run: RunId,
    ) -> Result<RunProgress, GetRunError> {
        let reads = progress_reads(&self.keyspace.run(tenant, run));
        let (record, found) = self.read_run(steps!("get_run_progress"), tenant, run, reads).await?;
        Ok(if record.shows_shards() { parse_progress(&found) } else { RunProgress::default() })
    }

    async fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        out.clear();
        let takeover = self.takeover(false);
        self.for_each_shard(steps!("list_shards"), tenant, run, out, |out, status, shard| {
            if filter.admits(shard, status, now, takeover) {
                out.push(ShardSummary::of(shard));
            }
        })
        .await
    }

    async fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        // Once every shard is done or split in one view they stay so, and the record's compare keeps
        // the run from ending otherwise meanwhile.
        let decide = |seen: &SeenRun<'_>| {
            transition::complete_run(seen.record, now, tenant, &seen.progress, result, op_id)
        };
        self.end_run(steps!("complete_run"), now, (tenant, run), Also::Progress, decide).await
    }

    async fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let decide = |seen: &SeenRun<'_>| transition::fail_run(seen.record, now, tenant, op_id);
        self.end_run(steps!("fail_run"), now, (tenant, run), Also::Nothing, decide).await
    }

    async fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let decide = |seen: &SeenRun<'_>| transition::cancel_run(seen.record, now, tenant, op_id);
        let steps = steps!("cancel_run");
        let outcome = self.end_run(steps, now, (tenant, run), Also::Nothing, decide).await;
        // Whoever cancelled it before may have died before all of it was deleted.
        if matches!(outcome, Ok(_) | Err(RunTransitionError::RunTerminal { .. })) {
            self.discard_staged(steps, now, tenant, run).await?;
        }
        outcome
    }

    async fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        let decide = |seen: DecisionInput<'_, '_>| {
            let decision = transition::unpark(seen.found, now, tenant, key, op_id)?;
            Ok::<_, UnparkError>(StoreDecision::of(decision))
        };
        let manner = Manner::plain(steps!("unpark"), now);
        Ok(self.change_shard(&mut self.attempts(), manner, tenant, key, decide).await?.answer)
    }

    async fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        self.collect_candidates(now, tenant, run, worker, out).await
    }

    async fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        let decide = |seen: DecisionInput<'_, '_>| {
            let decision = transition::revoke_lease(seen.found, tenant, fence)?;
            Ok::<_, RevokeLeaseError>(StoreDecision::of(decision))
        };
        let manner = Manner::plain(steps!("revoke_lease"), now);
        Ok(self.change_shard(&mut self.attempts(), manner, tenant, key, decide).await?.answer)
    }

    async fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        self.runs_page_into(tenant, after, limit, out).await
    }

    async fn list_shards_page_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: NonZeroUsize,
        out: &mut Vec<ShardSummary>,
    ) -> Result<Option<ShardId>, GetRunError> {
        let takeover = self.takeover(false);
        out.clear();
        self.shards_page(steps!("list_shards_page"), tenant, run, after, limit, |status, shard| {
            if filter.admits(shard, status, now, takeover) {
                out.push(ShardSummary::of(shard));
            }
        })
        .await
    }

    async fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError> {
        let keys = self.keyspace.run(tenant, run);
        let limit = largest_deletion(self.config.txn_ops_max);
        // etcd walks over what was deleted, so that each step goes on behind the one before.
        let mut after = None;
        loop {
            let decide = |seen: SeenRun<'_>| {
                transition::delete_run(seen.record, tenant)?;
                let record = seen.record.expect("a run that is deleted is there");
                let step = match (seen.shards.last().copied(), after) {
                    (Some(last), _) => Deletion::Behind(last),
                    (None, Some(_)) => return Ok(RunVerdict::Keep(Deletion::FromTheStart)),
                    (None, None) => Deletion::Done,
                };
                let change = RunChange::delete(&keys, record, &seen.shards);
                Ok::<_, DeleteRunError>(RunVerdict::Store(change, step))
            };
            let also = Also::Shards { after, limit };
            match self.change_run(steps!("delete_run"), now, (tenant, run), also, decide).await? {
                Deletion::Behind(last) => after = Some(last),
                Deletion::FromTheStart => after = None,
                Deletion::Done => return Ok(()),
            }
        }
    }

    async fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        self.put_idle(now, tenant, run, worker).await
    }
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    async fn end_run(
        &mut self,
        steps: Steps,
        now: LogicalTime,
        run: (TenantId, RunId),
        also: Also,
        mut decide: impl FnMut(&SeenRun<'_>) -> Result<Decision<RunUpdate, ()>, RunTransitionError>
        + Send,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let decide = |seen: SeenRun<'_>| {
            Ok::<_, RunTransitionError>(match decide(&seen)? {
                Decision::Execute(update) => {
                    let change = RunChange::of(seen.record, update);
                    RunVerdict::Store(change, IdempotentOutcome::Executed(()))
                }
                Decision::Replay(()) => RunVerdict::Keep(IdempotentOutcome::Replayed(())),
            })
        };
        self.change_run(steps, now, run, also, decide).await
    }

    /// A run's record, and what `reads` find in the same view.
    pub(crate) async fn read_run(
        &self,
        steps: Steps,
        tenant: TenantId,
        run: RunId,
        reads: impl IntoIterator<Item = Read>,
    ) -> Result<(RunRecord, Vec<crate::kv::Found>), GetRunError> {
        let keys = self.keyspace.run(tenant, run);
        let reads = core::iter::once(Read::key(&keys.record())).chain(reads);
        let mut answer = self.read(&mut self.attempts(), steps.load, Txn::reads(reads)).await?;
        let stored = Stored::of(&answer.found[0]);
        if !stored.exists() {
            return Err(GetRunError::RunNotFound);
        }
        let record = decode_record(&stored.bytes, &keys, tenant, run, steps.load)?;
        answer.found.remove(0);
        Ok((record, answer.found))
    }
}
