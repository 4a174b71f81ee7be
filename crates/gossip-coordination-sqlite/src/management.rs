//! Operations on runs, and what can be read of them.

use std::num::NonZeroUsize;

use gossip_contracts::coordination::InitialShardInput;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::codec::{DecodeScratch, decode_shard_view};
use gossip_coordination::transition::{self, Decision, RunUpdate};
use gossip_coordination::{
    ClaimCandidates, CreateRunError, DeleteRunError, EventKind, GetRunError, IdempotentOutcome,
    InfraError, RegisterShardsError, RevokeLeaseError, RunConfig, RunManagement, RunProgress,
    RunRecord, RunSummary, RunTransitionError, ShardFilter, ShardSummary, Takeover, UnparkError,
};
use rusqlite::Transaction;

use crate::coordinator::SqliteCoordinator;
use crate::error::{At, Steps, steps};
use crate::runs::{self, Run};
use crate::shards::{self, Buffers, RunRow, Shard, Stored};
use crate::sql::{self, id_to_sql, time_to_sql};

impl RunManagement for SqliteCoordinator {
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        let steps = steps!("create_run");
        let Self { conn, buffers, .. } = self;
        sql::write(conn, steps, |tx| {
            let existing = Run::find(tx, steps, tenant, run)?;
            let existing = existing.as_ref().map(|run| &run.record);
            let record = transition::create_run(existing, now, tenant, run, config)?;
            runs::insert(tx, steps, &record, &mut buffers.encoded)?;
            Ok::<_, CreateRunError>(())
        })?;
        self.emit(tenant, run, now, || EventKind::RunCreated);
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
        let steps = steps!("register_shards");
        let Self { conn, config, buffers, .. } = self;
        let event = sql::write(conn, steps, |tx| {
            let found = Run::find(tx, steps, tenant, run)?;
            let room = runs::room(tx, steps.load, config.limits, tenant)?;
            let record = found.as_ref().map(|run| &run.record);
            let update =
                match transition::register_shards(record, now, tenant, &room, shards, op_id)? {
                    Decision::Execute(update) => update,
                    Decision::Replay(()) => return Ok(None),
                };
            let mut found = found.expect("shards are registered in a run that is there");
            let roots = shards.iter().map(|input| transition::root_shard(&found.record, input));
            shards::insert(tx, steps, tenant, &found.row, roots, &mut buffers.encoded)?;
            let event = update.event();
            found.record.apply(update);
            found.store(tx, steps, &mut buffers.encoded)?;
            Ok::<_, RegisterShardsError>(event)
        })?;
        Ok(self.report_run(now, tenant, run, event))
    }

    fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        let steps = steps!("get_run");
        sql::read(&self.conn, steps, |tx| match Run::find(tx, steps, tenant, run)? {
            Some(run) => Ok(run.record),
            None => Err(GetRunError::RunNotFound),
        })
    }

    fn get_run_progress(&self, tenant: TenantId, run: RunId) -> Result<RunProgress, GetRunError> {
        let progress = runs::progress(&self.conn, "get_run_progress.load", tenant, run)?;
        progress.ok_or(GetRunError::RunNotFound)
    }

    fn list_shards_into(
        &self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        let steps = steps!("list_shards");
        out.clear();
        sql::read(&self.conn, steps, |tx| {
            let run = RunRow::find(tx, steps.load, tenant, run)?.ok_or(GetRunError::RunNotFound)?;
            list(tx, steps, &run, now, filter, out)?;
            Ok(())
        })
    }

    fn complete_run_with(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        result: Option<RunResult>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let steps = steps!("complete_run");
        self.end_run(steps, now, tenant, run, |tx, record| {
            let progress = runs::progress(tx, steps.load, tenant, run)?.unwrap_or_default();
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
        self.end_run(steps!("fail_run"), now, tenant, run, |_, record| {
            transition::fail_run(record, now, tenant, op_id)
        })
    }

    fn cancel_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        self.end_run(steps!("cancel_run"), now, tenant, run, |_, record| {
            transition::cancel_run(record, now, tenant, op_id)
        })
    }

    fn unpark_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        let steps = steps!("unpark");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let stored = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, key, record, decoded)?;
            let decision =
                transition::unpark(found.as_ref().map(Shard::found), now, tenant, key, op_id)?;
            let Decision::Execute(update) = decision else {
                return Ok::<_, UnparkError>(None);
            };
            let shard = found.expect("a shard that is not there is not unparked");
            shard.store(tx, steps, &update, encoded)?;
            Ok(Some(Stored::new(&shard, update)))
        })?;
        Ok(self.report(now, stored))
    }

    fn collect_claim_candidates_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        _worker: WorkerId,
        out: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        self.collect_candidates(now, tenant, run, out)?.ok_or(GetRunError::RunNotFound)
    }

    fn revoke_lease(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        fence: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        let steps = steps!("revoke_lease");
        let Self { conn, buffers: Buffers { record, decoded, encoded }, .. } = self;
        let stored = sql::write(conn, steps, |tx| {
            let found = Shard::find(tx, steps, tenant, key, record, decoded)?;
            let decision =
                transition::revoke_lease(found.as_ref().map(Shard::found), tenant, fence)?;
            let Decision::Execute(update) = decision else {
                return Ok::<_, RevokeLeaseError>(None);
            };
            let shard = found.expect("a lease is revoked on a shard that is there");
            shard.store(tx, steps, &update, encoded)?;
            Ok(Some(Stored::new(&shard, update)))
        })?;
        Ok(self.report(now, stored))
    }

    fn list_runs_into(
        &self,
        tenant: TenantId,
        after: Option<RunId>,
        limit: NonZeroUsize,
        out: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        let steps = steps!("list_runs");
        out.clear();
        sql::read(&self.conn, steps, |tx| runs::list(tx, steps.load, tenant, after, limit, out))
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
        let steps = steps!("list_shards");
        out.clear();
        sql::read(&self.conn, steps, |tx| {
            let run = RunRow::find(tx, steps.load, tenant, run)?.ok_or(GetRunError::RunNotFound)?;
            let mut scratch = DecodeScratch::new();
            let next = shards::page(tx, steps.load, run.id, after, limit, |bytes| {
                let shard = decode_shard_view(bytes, &mut scratch).at(steps.load)?;
                if filter.admits(&shard, run.gate.status, now, Takeover::AT_DEADLINE) {
                    out.push(ShardSummary::of(&shard));
                }
                Ok(shard.key.shard)
            });
            Ok(next?)
        })
    }

    fn delete_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
    ) -> Result<(), DeleteRunError> {
        let steps = steps!("delete_run");
        sql::write(&self.conn, steps, |tx| {
            let found = Run::find(tx, steps, tenant, run)?;
            transition::delete_run(found.as_ref().map(|run| &run.record), tenant)?;
            let found = found.expect("a run that is deleted is there");
            Ok::<_, DeleteRunError>(runs::delete(tx, steps.store, tenant, found.row.id)?)
        })?;
        self.emit(tenant, run, now, || EventKind::RunDeleted);
        Ok(())
    }

    fn note_idle(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
    ) -> Result<(), GetRunError> {
        let steps = steps!("note_idle");
        sql::write(&self.conn, steps, |tx| {
            let row = RunRow::find(tx, steps.load, tenant, run)?.ok_or(GetRunError::RunNotFound)?;
            let until = time_to_sql(row.gate.config.lease_deadline(now));
            let sql = "INSERT INTO coord_idle(run_id, worker, until) VALUES (?1, ?2, ?3) \
                       ON CONFLICT(run_id, worker) DO UPDATE SET until = excluded.until";
            let row = (row.id, id_to_sql(worker.as_raw()), until);
            tx.prepare_cached(sql).and_then(|mut s| s.execute(row)).map(drop).at(steps.store)?;
            Ok(())
        })
    }
}

impl SqliteCoordinator {
    fn end_run(
        &mut self,
        steps: &Steps,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        decide: impl FnOnce(
            &Transaction<'_>,
            Option<&RunRecord>,
        ) -> Result<Decision<RunUpdate, ()>, RunTransitionError>,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        let Self { conn, buffers, .. } = self;
        let event = sql::write(conn, steps, |tx| {
            let found = Run::find(tx, steps, tenant, run)?;
            match (decide(tx, found.as_ref().map(|run| &run.record))?, found) {
                (Decision::Execute(update), Some(mut found)) => {
                    let event = update.event();
                    found.record.apply(update);
                    found.store(tx, steps, &mut buffers.encoded)?;
                    Ok::<_, RunTransitionError>(event)
                }
                (Decision::Replay(()), _) => Ok(None),
                (Decision::Execute(_), None) => {
                    unreachable!("a run that is not there does not end")
                }
            }
        })?;
        Ok(self.report_run(now, tenant, run, event))
    }

    /// Reports what was committed, if anything was.
    fn report_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        event: Option<EventKind>,
    ) -> IdempotentOutcome<()> {
        let Some(event) = event else { return IdempotentOutcome::Replayed(()) };
        self.emit(tenant, run, now, || event);
        IdempotentOutcome::Executed(())
    }
}

/// Appends the run's shards that `filter` admits, in id order: derived ids have their top bit set,
/// so SQLite takes them for negative, and they come second.
fn list(
    tx: &Transaction<'_>,
    steps: &Steps,
    run: &RunRow,
    now: LogicalTime,
    filter: ShardFilter,
    out: &mut Vec<ShardSummary>,
) -> Result<(), InfraError> {
    let step = steps.load;
    let mut scratch = DecodeScratch::new();
    for sql in [
        "SELECT record FROM coord_shards WHERE run_id = ?1 AND shard >= 0 \
         AND (?2 IS NULL OR status = ?2) ORDER BY shard",
        "SELECT record FROM coord_shards WHERE run_id = ?1 AND shard < 0 \
         AND (?2 IS NULL OR status = ?2) ORDER BY shard",
    ] {
        let mut statement = tx.prepare_cached(sql).at(step)?;
        let status = filter.status.map(|status| status as u8);
        let mut rows = statement.query((run.id, status)).at(step)?;
        while let Some(row) = rows.next().at(step)? {
            let Ok(bytes) = row.get_ref(0).at(step)?.as_blob() else {
                return Err(InfraError::corruption(step, "a record is not a blob"));
            };
            let shard = decode_shard_view(bytes, &mut scratch).at(step)?;
            if filter.admits(&shard, run.gate.status, now, Takeover::AT_DEADLINE) {
                out.push(ShardSummary::of(&shard));
            }
        }
    }
    Ok(())
}
