//! What whoever runs a scan may do, read off the documents.

use gossip_contracts::coordination::ShardLimitScope;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    RunConfig, RunConfigError, RunProgress, RunStatus, ShardFilter, ShardStatus, ShardSummary,
};

use super::plans::manifest_fault;
use super::state::{Known, Run, RunOp, Shard, ShardOp};
use super::{Decided, Reference};
use crate::op::{Answer, Effect, OwnedShardInput, Refusal, RunView};

impl Reference {
    pub(super) fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Decided {
        if config.lease_duration == 0 {
            return Err(Refusal::InvalidConfig(RunConfigError::ZeroLeaseDuration));
        }
        if config.max_shard_retries == 0 {
            return Err(Refusal::InvalidConfig(RunConfigError::ZeroShardRetries));
        }
        if self.runs.contains_key(&(tenant, run)) {
            return Err(Refusal::RunAlreadyExists { run });
        }
        self.runs.insert((tenant, run), Run::new(config, now));
        Ok(Answer::Accepted)
    }

    pub(super) fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        rows: &[OwnedShardInput],
        op_id: OpId,
    ) -> Decided {
        let no_room = self.no_room(tenant, rows.len());
        let run = self.run_mut(tenant, run)?;
        let op = RunOp::Register(rows.to_vec());
        if was_done(run, op_id, &op)? {
            return Ok(Answer::Replayed(Effect::Nothing));
        }
        if run.status != RunStatus::Initializing {
            return Err(Refusal::WrongStatus { status: run.status, target: RunStatus::Active });
        }
        if let Some(fault) = manifest_fault(rows) {
            return Err(Refusal::ManifestInvalid(fault));
        }
        if let Some(NoRoom { current, additional, max, scope }) = no_room {
            return Err(Refusal::ShardLimitExceeded { current, additional, max, scope });
        }
        for row in rows {
            run.roots.push(row.shard);
            run.add(row.shard, Shard::new(None, row.range.clone(), row.cursor.clone()));
        }
        run.status = RunStatus::Active;
        run.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn complete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Decided {
        self.end_run(now, tenant, run, op_id, RunOp::Complete(result))
    }

    pub(super) fn fail_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Decided {
        self.end_run(now, tenant, run, op_id, RunOp::Fail)
    }

    pub(super) fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Decided {
        self.end_run(now, tenant, run, op_id, RunOp::Cancel)
    }

    fn end_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
        op: RunOp,
    ) -> Decided {
        let run = self.run_mut(tenant, run)?;
        if was_done(run, op_id, &op)? {
            return Ok(Answer::Replayed(Effect::Nothing));
        }
        let target = match op {
            RunOp::Complete(_) => RunStatus::Done,
            RunOp::Fail => RunStatus::Failed,
            _ => RunStatus::Cancelled,
        };
        let status = run.status;
        match status {
            RunStatus::Active => {}
            RunStatus::Initializing if target == RunStatus::Cancelled => {}
            RunStatus::Initializing => return Err(Refusal::WrongStatus { status, target }),
            _ => return Err(Refusal::RunTerminal { status }),
        }
        let RunProgress { active, parked, .. } = progress_of(run);
        if target == RunStatus::Done && active + parked > 0 {
            return Err(Refusal::ShardsRemaining { active, parked });
        }
        run.status = target;
        run.completed_at = Some(now);
        if let RunOp::Complete(result) = op {
            run.result = result;
        }
        run.memory.note(now, op_id, op);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn unpark(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Decided {
        let run = self.runs.get_mut(&(tenant, key.run)).ok_or(Refusal::ShardNotFound)?;
        let shard = run.shards.get_mut(&key.shard).ok_or(Refusal::ShardNotFound)?;
        match shard.memory.knows(op_id, &ShardOp::Unpark) {
            Known::Same => return Ok(Answer::Replayed(Effect::Nothing)),
            Known::Different => return Err(Refusal::OpIdConflict { op_id }),
            Known::No => {}
        }
        if run.status.is_terminal() {
            return Err(Refusal::RunTerminal { status: run.status });
        }
        if shard.status != ShardStatus::Parked {
            return Err(Refusal::NotParked { status: shard.status });
        }
        shard.status = ShardStatus::Active;
        shard.park_reason = None;
        shard.fence += 1;
        shard.tries = 0;
        shard.memory.note(now, op_id, ShardOp::Unpark);
        run.line_up(key.shard);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn delete_run(&mut self, tenant: TenantId, run: RunId) -> Decided {
        let status = self.run(tenant, run)?.status;
        if !status.is_terminal() {
            return Err(Refusal::RunNotEnded { status });
        }
        self.runs.remove(&(tenant, run));
        Ok(Answer::Accepted)
    }

    pub(super) fn revoke_lease(&mut self, tenant: TenantId, key: ShardKey, fence: u64) -> Decided {
        let run = self.runs.get_mut(&(tenant, key.run)).ok_or(Refusal::ShardNotFound)?;
        let shard = run.shards.get_mut(&key.shard).ok_or(Refusal::ShardNotFound)?;
        if fence > shard.fence {
            return Err(Refusal::FenceNotGranted {
                presented: FenceEpoch::from_raw(fence),
                current: FenceEpoch::from_raw(shard.fence),
            });
        }
        // A lease that is over needs no revoking.
        if fence < shard.fence || shard.holder.is_none() {
            return Ok(Answer::Replayed(Effect::Nothing));
        }
        if run.status.is_terminal() {
            return Err(Refusal::RunTerminal { status: run.status });
        }
        shard.holder = None;
        shard.fence += 1;
        run.line_up(key.shard);
        Ok(Answer::Executed(Effect::Nothing))
    }

    pub(super) fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Decided {
        let run = self.run_mut(tenant, run)?;
        let until = now.as_raw().saturating_add(run.config.lease_duration);
        run.idle.insert(worker, LogicalTime::from_raw(until));
        Ok(Answer::Accepted)
    }

    pub(super) fn get_run(&self, tenant: TenantId, run: RunId) -> Decided {
        let run = self.run(tenant, run)?;
        Ok(Answer::Run(Box::new(RunView {
            config: run.config,
            status: run.status,
            created_at: run.created_at,
            completed_at: run.completed_at,
            root_shards: run.roots.clone(),
            op_log: run.memory.done.iter().map(|(id, op, at)| (*id, op.kind(), *at)).collect(),
            result: run.result,
        })))
    }

    pub(super) fn get_run_progress(&self, tenant: TenantId, run: RunId) -> Decided {
        Ok(Answer::Progress(progress_of(self.run(tenant, run)?)))
    }

    pub(super) fn list_shards(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
    ) -> Decided {
        let run = self.run(tenant, run)?;
        let shown = run.shards.iter().filter(|(_, shard)| {
            filter.status.is_none_or(|status| status == shard.status)
                && (!filter.available_only
                    || run.status == RunStatus::Active && shard.is_free_at(now))
                && (!filter.root_only || shard.parent.is_none())
        });
        let summaries = shown.map(|(&id, shard)| ShardSummary {
            shard: id,
            status: shard.status,
            start: shard.range.start[..].into(),
            end: shard.range.end[..].into(),
            last_key: shard.cursor.last_key.as_ref().map(|key| key[..].into()),
            token: shard.cursor.token.as_ref().map(|token| token[..].into()),
            lease_deadline: shard.holder.map(|holder| holder.deadline),
            fence: FenceEpoch::from_raw(shard.fence),
            acquires_since_progress: shard.tries,
            parent: shard.parent,
            spawned_count: shard.spawned.len(),
        });
        Ok(Answer::Shards(summaries.collect()))
    }

    /// The ceiling, if any, under which `additional` shards of `tenant` do not fit.
    pub(super) fn no_room(&self, tenant: TenantId, additional: usize) -> Option<NoRoom> {
        let count = |wanted: Option<TenantId>| -> usize {
            self.runs
                .iter()
                .filter(|((owner, _), _)| wanted.is_none_or(|wanted| wanted == *owner))
                .map(|(_, run)| run.shards.len())
                .sum()
        };
        let of_tenant =
            (ShardLimitScope::Tenant, count(Some(tenant)), self.bounds.shards.per_tenant);
        let of_all = (ShardLimitScope::Global, count(None), self.bounds.shards.global);
        [of_tenant, of_all]
            .into_iter()
            .find(|(_, current, max)| current + additional > *max)
            .map(|(scope, current, max)| NoRoom { current, additional, max, scope })
    }

    fn run(&self, tenant: TenantId, run: RunId) -> Result<&Run, Refusal> {
        self.runs.get(&(tenant, run)).ok_or(Refusal::RunNotFound)
    }

    fn run_mut(&mut self, tenant: TenantId, run: RunId) -> Result<&mut Run, Refusal> {
        self.runs.get_mut(&(tenant, run)).ok_or(Refusal::RunNotFound)
    }
}

/// A ceiling that would be passed.
pub(super) struct NoRoom {
    pub(super) current: usize,
    pub(super) additional: usize,
    pub(super) max: usize,
    pub(super) scope: ShardLimitScope,
}

fn was_done(run: &Run, op_id: OpId, op: &RunOp) -> Result<bool, Refusal> {
    match run.memory.knows(op_id, op) {
        Known::No => Ok(false),
        Known::Same => Ok(true),
        Known::Different => Err(Refusal::OpIdConflict { op_id }),
    }
}

fn progress_of(run: &Run) -> RunProgress {
    let count = |status| run.shards.values().filter(|shard| shard.status == status).count() as u64;
    let (done, split) = (count(ShardStatus::Done), count(ShardStatus::Split));
    RunProgress {
        active: count(ShardStatus::Active),
        done,
        split,
        parked: count(ShardStatus::Parked),
        watermark: done + split,
    }
}
