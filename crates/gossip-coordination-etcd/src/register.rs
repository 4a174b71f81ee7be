//! Giving a run its shards, in as many transactions as it takes, and deleting those of a registration
//! that never came to its end.
//!
//! Which step is next is decided by `transition::register_step` from the run's record, and stored only
//! if the record is still the one that was read. So it does not matter who takes a step, nor how often
//! it is tried.

use gossip_contracts::coordination::InitialShardInput;
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId};
use gossip_coordination::transition::{
    self, Decision, RegisterRequest, RegisterStep, discard_staged, register_step,
};
use gossip_coordination::{IdempotentOutcome, InfraError, RegisterShardsError, RunRecord};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, steps};
use crate::kv::Kv;
use crate::limits::{REGISTER_BYTES_MAX, largest_step};
use crate::runs::{Also, RunChange, RunVerdict, SeenRun};
use crate::shards::put_new;

/// What a step of a registration came to.
enum Progress {
    /// There are more.
    Step,
    Activated,
    Replayed,
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    pub(crate) async fn register(
        &mut self,
        now: LogicalTime,
        run: (TenantId, RunId),
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        let steps = steps!("register_shards");
        let request = RegisterRequest::new(run.0, shards, op_id);
        let chunk_max = largest_step(self.config.txn_ops_max);
        let check_leases = self.lease_check("register_shards.config");
        let (keys, room) = (self.keyspace.run(run.0, run.1), self.room(Default::default()));
        loop {
            let decide = |seen: SeenRun<'_>| {
                let room = gossip_coordination::ShardRoom { counts: seen.counts, ..room };
                let chunk = chunk(seen.record, shards, chunk_max);
                let step = match register_step(seen.record, now, &room, chunk, &request)? {
                    Decision::Execute(step) => step,
                    Decision::Replay(()) => return Ok(RunVerdict::Keep(Progress::Replayed)),
                };
                let record = seen.record.expect("a step is about a run");
                check_leases(&record.config)?;
                let progress = match step {
                    RegisterStep::Activate(_) => Progress::Activated,
                    _ => Progress::Step,
                };
                let mut change = RunChange::of(seen.record, step.update().clone());
                match step {
                    RegisterStep::Begin(_) | RegisterStep::Activate(_) => {}
                    RegisterStep::Discard { count, .. } => {
                        change.discard(&keys, leftover(&seen.shards, count)?);
                    }
                    RegisterStep::Stage { rows, .. } => {
                        change.shards_more += isize::try_from(rows.len()).expect("a step is small");
                        for input in &shards[rows] {
                            let shard = transition::root_shard(record, input);
                            put_new(&mut change.ops, &keys, &shard, seen.write);
                        }
                    }
                }
                Ok::<_, RegisterShardsError>(RunVerdict::Store(change, progress))
            };
            match self.change_run(steps, now, run, Also::shards(chunk_max), decide).await? {
                Progress::Step => {}
                Progress::Activated => return Ok(IdempotentOutcome::Executed(())),
                Progress::Replayed => return Ok(IdempotentOutcome::Replayed(())),
            }
        }
    }

    /// Deletes what a registration had stored when its run was cancelled.
    pub(crate) async fn discard_staged(
        &mut self,
        steps: Steps,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), InfraError> {
        let chunk_max = largest_step(self.config.txn_ops_max);
        let keys = self.keyspace.run(tenant, run);
        loop {
            let decide = |seen: SeenRun<'_>| {
                let step = seen.record.and_then(|record| discard_staged(record, chunk_max));
                let Some((update, count)) = step else { return Ok(RunVerdict::Keep(true)) };
                let mut change = RunChange::of(seen.record, update);
                change.discard(&keys, leftover(&seen.shards, count)?);
                Ok::<_, InfraError>(RunVerdict::Store(change, false))
            };
            let also = Also::shards(chunk_max);
            if self.change_run(steps, now, (tenant, run), also, decide).await? {
                return Ok(());
            }
        }
    }
}

/// How many shards the next step takes: of those that it stores, as many as fit.
fn chunk(record: Option<&RunRecord>, shards: &[InitialShardInput<'_>], max: usize) -> usize {
    let registration = record.and_then(|record| record.registration);
    if registration.is_some_and(|it| it.leftover > 0) {
        return max;
    }
    let staged = registration.map_or(0, |it| it.staged as usize);
    let size = |input: &InitialShardInput<'_>| {
        let (spec, cursor) = (input.spec, input.cursor);
        let cursor =
            cursor.last_key().map_or(0, <[u8]>::len) + cursor.token().map_or(0, <[u8]>::len);
        spec.start().len() + spec.end().len() + spec.metadata().len() + cursor
    };
    let mut left = REGISTER_BYTES_MAX;
    let rows = shards.get(staged..).unwrap_or_default().iter().take(max);
    let fits = |input: &&InitialShardInput<'_>| {
        let fits = size(input) <= left;
        left = left.saturating_sub(size(input));
        fits
    };
    rows.take_while(fits).count().max(1)
}

/// The shards to delete. The record counts them, so there are as many.
fn leftover(shards: &[ShardId], count: u32) -> Result<&[ShardId], InfraError> {
    shards.get(..count as usize).ok_or_else(|| {
        let message = "the run's record counts more staged shards than there are";
        InfraError::corruption("register_shards.load", message)
    })
}
