//! Runs as rows: a small one that every operation reads, and the record beside it.

use std::num::NonZeroUsize;

use gossip_contracts::identity::{RunId, TenantId};
use gossip_coordination::codec::{decode_run, encode_run};
use gossip_coordination::{
    InfraError, RunProgress, RunRecord, RunSummary, ShardCounts, ShardLimits, ShardRoom, SplitCaps,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use crate::error::{At, Steps};
use crate::shards::RunRow;
use crate::sql::{id_to_sql, ids_behind};

/// A run that was found, decoded.
pub(crate) struct Run {
    pub(crate) row: RunRow,
    pub(crate) record: RunRecord,
}

impl Run {
    pub(crate) fn find(
        tx: &Transaction<'_>,
        steps: &Steps,
        tenant: TenantId,
        run: RunId,
    ) -> Result<Option<Self>, InfraError> {
        let Some(row) = RunRow::find(tx, steps.load, tenant, run)? else {
            return Ok(None);
        };
        let record = read_record(tx, steps.load, row.id)?;
        if (record.tenant, record.run) != (tenant, run) {
            let message = format!("the record of run {run} is another's");
            return Err(InfraError::corruption(steps.load, message));
        }
        if (record.status, record.config) != (row.gate.status, row.gate.config) {
            let message = format!("the record of run {run} and its columns differ");
            return Err(InfraError::corruption(steps.load, message));
        }
        Ok(Some(Self { row, record }))
    }

    /// Stores the record as it is now.
    pub(crate) fn store(
        &self,
        tx: &Transaction<'_>,
        steps: &Steps,
        encoded: &mut Vec<u8>,
    ) -> Result<(), InfraError> {
        encode_run(&self.record, encoded);
        let sql = "UPDATE coord_run_records SET record = ?2 WHERE run_id = ?1";
        tx.prepare_cached(sql)
            .and_then(|mut statement| statement.execute((self.row.id, &*encoded)))
            .at(steps.store)?;
        let sql = "UPDATE coord_runs SET status = ?2 WHERE id = ?1";
        tx.prepare_cached(sql)
            .and_then(|mut statement| statement.execute((self.row.id, self.record.status as u8)))
            .map(drop)
            .at(steps.store)
    }
}

pub(crate) fn read_record(
    tx: &Transaction<'_>,
    step: &'static str,
    run_id: i64,
) -> Result<RunRecord, InfraError> {
    let sql = "SELECT record FROM coord_run_records WHERE run_id = ?1";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    let mut rows = statement.query([run_id]).at(step)?;
    let Some(row) = rows.next().at(step)? else {
        return Err(InfraError::corruption(step, "the record of a run is missing"));
    };
    match row.get_ref(0).at(step)?.as_blob() {
        Ok(bytes) => decode_run(bytes).at(step),
        Err(_) => Err(InfraError::corruption(step, "a record is not a blob")),
    }
}

/// Adds a run without shards.
pub(crate) fn insert(
    tx: &Transaction<'_>,
    steps: &Steps,
    record: &RunRecord,
    encoded: &mut Vec<u8>,
) -> Result<(), InfraError> {
    let sql = "INSERT INTO coord_runs \
               (tenant, run, status, cursor_semantics, lease_duration, max_shard_retries) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let row = (
        record.tenant.as_bytes(),
        id_to_sql(record.run.as_raw()),
        record.status as u8,
        record.config.cursor_semantics as u8,
        id_to_sql(record.config.lease_duration),
        record.config.max_shard_retries,
    );
    tx.prepare_cached(sql).and_then(|mut statement| statement.execute(row)).at(steps.store)?;
    let id = tx.last_insert_rowid();
    encode_run(record, encoded);
    let sql = "INSERT INTO coord_run_records(run_id, record) VALUES (?1, ?2)";
    tx.prepare_cached(sql)
        .and_then(|mut statement| statement.execute((id, &*encoded)))
        .map(drop)
        .at(steps.store)
}

/// How many shards of a run stand where, if there is such a run. One statement, one view.
pub(crate) fn progress(
    conn: &Connection,
    step: &'static str,
    tenant: TenantId,
    run: RunId,
) -> Result<Option<RunProgress>, InfraError> {
    let sql = "SELECT active, done, split, parked FROM coord_runs WHERE tenant = ?1 AND run = ?2";
    let mut statement = conn.prepare_cached(sql).at(step)?;
    let counts =
        statement.query_row((tenant.as_bytes(), id_to_sql(run.as_raw())), read_progress).optional();
    counts.at(step)
}

/// Appends the tenant's runs behind `after`, in id order; behind which one there are more, if there
/// are.
pub(crate) fn list(
    tx: &Transaction<'_>,
    step: &'static str,
    tenant: TenantId,
    after: Option<RunId>,
    limit: NonZeroUsize,
    out: &mut Vec<RunSummary>,
) -> Result<Option<RunId>, InfraError> {
    let sql = "SELECT id FROM coord_runs WHERE tenant = ?1 AND run BETWEEN ?2 AND ?3 ORDER BY run";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    for (first, until) in ids_behind(after.map(RunId::as_raw)) {
        let mut rows = statement.query((tenant.as_bytes(), first, until)).at(step)?;
        while let Some(row) = rows.next().at(step)? {
            if out.len() == limit.get() {
                return Ok(out.last().map(|run| run.run));
            }
            out.push(RunSummary::of(&read_record(tx, step, row.get(0).at(step)?)?));
        }
    }
    Ok(None)
}

/// Deletes a run, its shards and all that counts them.
pub(crate) fn delete(
    tx: &Transaction<'_>,
    step: &'static str,
    tenant: TenantId,
    run_id: i64,
) -> Result<(), InfraError> {
    let shards = tx.execute("DELETE FROM coord_shards WHERE run_id = ?1", [run_id]).at(step)?;
    for sql in [
        "DELETE FROM coord_run_records WHERE run_id = ?1",
        "DELETE FROM coord_idle WHERE run_id = ?1",
        "DELETE FROM coord_runs WHERE id = ?1",
    ] {
        tx.execute(sql, [run_id]).at(step)?;
    }
    let shards = shards as i64;
    let sql = "UPDATE coord_tenants SET shards = shards - ?2 WHERE tenant = ?1";
    tx.execute(sql, (tenant.as_bytes(), shards)).at(step)?;
    let sql = "UPDATE coord_totals SET shards = shards - ?1 WHERE id = 1";
    tx.execute(sql, [shards]).map(drop).at(step)
}

/// From the first four columns.
fn read_progress(row: &Row<'_>) -> rusqlite::Result<RunProgress> {
    let (active, done) = (count(row, 0)?, count(row, 1)?);
    let (split, parked) = (count(row, 2)?, count(row, 3)?);
    Ok(RunProgress { active, done, split, parked, watermark: done + split })
}

/// Ceilings and what exists under them.
pub(crate) fn room(
    tx: &Transaction<'_>,
    step: &'static str,
    limits: ShardLimits,
    tenant: TenantId,
) -> Result<ShardRoom, InfraError> {
    let sql = "SELECT shards, (SELECT shards FROM coord_tenants WHERE tenant = ?1) \
               FROM coord_totals WHERE id = 1";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    let counts = statement.query_row([tenant.as_bytes()], |row| {
        let tenant = if row.get_ref(1)? == ValueRef::Null { 0 } else { count(row, 1)? };
        Ok(ShardCounts { global: count(row, 0)? as usize, tenant: tenant as usize })
    });
    Ok(ShardRoom { limits, counts: counts.at(step)?, split: SplitCaps::PROTOCOL })
}

/// A number that is not below zero.
pub(crate) fn count(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let stored: i64 = row.get(column)?;
    u64::try_from(stored).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, stored))
}
