//! Shards as rows: look up, store what was decided.
//!
//! - Q1: what a row's columns say is what its record says.
//! - Q2: a run's counts change in the transaction that changes its shards.
//! - Q3: free shards of a run are claimed in the order in which they became free.

use std::num::NonZeroUsize;

use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{LogicalTime, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::codec::{
    DecodeScratch, decode_shard_view, encode_shard, encode_shard_after,
};
use gossip_coordination::{
    Availability, CapacityHint, FoundShard, InfraError, RunConfig, RunGate, RunStatus,
    ShardRecordView, ShardState, ShardStatus, ShardUpdate,
};
use rusqlite::{Row, Transaction};

use crate::error::{At, Steps};
use crate::sql::{id_from_sql, id_to_sql, ids_behind, time_from_sql, time_to_sql};

/// Room that operations share, so that none allocates once it has grown.
#[derive(Default)]
pub(crate) struct Buffers {
    pub(crate) record: Vec<u8>,
    pub(crate) decoded: DecodeScratch,
    pub(crate) encoded: Vec<u8>,
}

/// What [`RunRow::read`] reads, from `coord_runs AS r`.
macro_rules! run_columns {
    () => {
        "r.id, r.status, r.cursor_semantics, r.lease_duration, r.max_shard_retries, r.next_place"
    };
}

/// The part of a run that its shards' operations need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: i64,
    pub(crate) gate: RunGate,
    pub(crate) next_place: i64,
}

impl RunRow {
    fn read(row: &Row<'_>, step: &'static str) -> Result<Self, InfraError> {
        let status = RunStatus::from_raw(row.get(1).at(step)?);
        let cursor_semantics = CursorSemantics::from_raw(row.get(2).at(step)?);
        let (Some(status), Some(cursor_semantics)) = (status, cursor_semantics) else {
            return Err(InfraError::corruption(step, "a run's columns have no meaning"));
        };
        let config = RunConfig {
            cursor_semantics,
            lease_duration: id_from_sql(row.get(3).at(step)?),
            max_shard_retries: row.get(4).at(step)?,
        };
        config.validate().map_err(|fault| InfraError::corruption(step, fault.to_string()))?;
        let (id, next_place) = (row.get(0).at(step)?, row.get(5).at(step)?);
        // A run's shards are registered in one transaction here, so none are left over.
        Ok(Self { id, gate: RunGate { status, config, hides_shards: false }, next_place })
    }

    pub(crate) fn find(
        tx: &Transaction<'_>,
        step: &'static str,
        tenant: TenantId,
        run: RunId,
    ) -> Result<Option<Self>, InfraError> {
        let sql = concat!(
            "SELECT ",
            run_columns!(),
            " FROM coord_runs AS r WHERE r.tenant = ?1 AND r.run = ?2"
        );
        let mut statement = tx.prepare_cached(sql).at(step)?;
        let mut rows = statement.query((tenant.as_bytes(), id_to_sql(run.as_raw()))).at(step)?;
        rows.next().at(step)?.map(|row| Self::read(row, step)).transpose()
    }

    /// What else there is to do in the run.
    pub(crate) fn capacity(
        &self,
        tx: &Transaction<'_>,
        step: &'static str,
        now: LogicalTime,
    ) -> Result<CapacityHint, InfraError> {
        let sql = "SELECT active - leased FROM coord_runs WHERE id = ?1";
        let free: u32 = tx
            .prepare_cached(sql)
            .and_then(|mut s| s.query_row([self.id], |row| row.get(0)))
            .at(step)?;
        let earliest_deadline = self.earliest_deadline(tx, step)?;
        let some_expired = earliest_deadline.is_some_and(|deadline| deadline <= now);
        Ok(CapacityHint {
            available_count: free.saturating_add(u32::from(some_expired)),
            earliest_deadline,
            is_estimate: some_expired,
        })
    }

    /// Workers that look for work in the run in vain.
    pub(crate) fn idle_workers(
        &self,
        tx: &Transaction<'_>,
        step: &'static str,
        now: LogicalTime,
    ) -> Result<u32, InfraError> {
        let sql = "SELECT count(*) FROM coord_idle WHERE run_id = ?1 AND until > ?2";
        tx.prepare_cached(sql)
            .and_then(|mut s| s.query_row((self.id, time_to_sql(now)), |row| row.get(0)))
            .at(step)
    }

    /// A worker that has a shard is not idle.
    pub(crate) fn forget_idle(
        &self,
        tx: &Transaction<'_>,
        step: &'static str,
        worker: WorkerId,
    ) -> Result<(), InfraError> {
        let sql = "DELETE FROM coord_idle WHERE run_id = ?1 AND worker = ?2";
        let row = (self.id, id_to_sql(worker.as_raw()));
        tx.prepare_cached(sql).and_then(|mut s| s.execute(row)).map(drop).at(step)
    }

    /// When the first of the current leases ends.
    pub(crate) fn earliest_deadline(
        &self,
        tx: &Transaction<'_>,
        step: &'static str,
    ) -> Result<Option<LogicalTime>, InfraError> {
        let sql = "SELECT min(deadline) FROM coord_shards \
                   WHERE run_id = ?1 AND status = 0 AND deadline IS NOT NULL";
        let earliest: Option<i64> = tx
            .prepare_cached(sql)
            .and_then(|mut s| s.query_row([self.id], |row| row.get(0)))
            .at(step)?;
        Ok(earliest.map(time_from_sql))
    }
}

/// A shard that was found, decoded.
#[derive(Debug)]
pub(crate) struct Shard<'b> {
    id: i64,
    pub(crate) run: RunRow,
    pub(crate) view: ShardRecordView<'b>,
}

/// A change of a shard that is stored, to be reported once it is committed.
pub(crate) struct Stored<'r> {
    pub(crate) tenant: TenantId,
    pub(crate) key: ShardKey,
    pub(crate) before: ShardState,
    pub(crate) update: ShardUpdate<'r>,
}

impl<'r> Stored<'r> {
    /// `shard` is as it was before.
    pub(crate) fn new(shard: &Shard<'_>, update: ShardUpdate<'r>) -> Self {
        let ShardRecordView { tenant, key, state, .. } = shard.view;
        Self { tenant, key, before: state, update }
    }
}

impl<'b> Shard<'b> {
    /// The tenant's shard under `key`, its bytes in `record`.
    pub(crate) fn find(
        tx: &Transaction<'_>,
        steps: &Steps,
        tenant: TenantId,
        key: ShardKey,
        record: &'b mut Vec<u8>,
        decoded: &'b mut DecodeScratch,
    ) -> Result<Option<Self>, InfraError> {
        let sql = concat!(
            "SELECT ",
            run_columns!(),
            ", s.id, s.record FROM coord_runs AS r CROSS JOIN coord_shards AS s \
             WHERE r.tenant = ?1 AND r.run = ?2 AND s.run_id = r.id AND s.shard = ?3"
        );
        let step = steps.load;
        let (run, id) = {
            let mut statement = tx.prepare_cached(sql).at(step)?;
            let (run, shard) = (id_to_sql(key.run.as_raw()), id_to_sql(key.shard.as_raw()));
            let mut rows = statement.query((tenant.as_bytes(), run, shard)).at(step)?;
            let Some(row) = rows.next().at(step)? else {
                return Ok(None);
            };
            copy_blob(row, 7, step, record)?;
            (RunRow::read(row, step)?, row.get(6).at(step)?)
        };
        let view = decode_shard_view(record, decoded).at(step)?;
        if (view.tenant, view.key) != (tenant, key) {
            return Err(InfraError::corruption(step, format!("the record of {key} is another's")));
        }
        Ok(Some(Self { id, run, view }))
    }

    /// As transitions want it.
    pub(crate) fn found(&self) -> FoundShard<'_, 'b> {
        FoundShard { shard: &self.view, run: &self.run.gate }
    }

    /// Carries out a decision.
    pub(crate) fn store(
        &self,
        tx: &Transaction<'_>,
        steps: &Steps,
        update: &ShardUpdate<'_>,
        encoded: &mut Vec<u8>,
    ) -> Result<(), InfraError> {
        encode_shard_after(&self.view, update, encoded);
        let before = Columns::of(&self.view.state);
        let after = Columns::of(&update.state);
        if before == after {
            let sql = "UPDATE coord_shards SET record = ?2 WHERE id = ?1";
            let changed = tx
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute((self.id, &*encoded)));
            return changed.map(drop).at(steps.store);
        }
        // Q3: back at the end of the queue.
        let place = (after.is_free() && !before.is_free()).then_some(self.run.next_place);
        let sql = "UPDATE coord_shards SET status = ?2, owner = ?3, deadline = ?4, \
                   place = ifnull(?5, place), record = ?6 WHERE id = ?1";
        let row = (self.id, after.status, after.owner, after.deadline, place, &*encoded);
        tx.prepare_cached(sql)
            .and_then(|mut statement| statement.execute(row))
            .map(drop)
            .at(steps.store)?;
        let mut counts = Counts::default();
        counts.add(&before, -1);
        counts.add(&after, 1);
        counts.places = i64::from(place.is_some());
        counts.store(tx, steps.store, self.run.id)
    }
}

/// Adds shards to a run, behind those that wait already.
pub(crate) fn insert<'s>(
    tx: &Transaction<'_>,
    steps: &Steps,
    tenant: TenantId,
    run: &RunRow,
    shards: impl Iterator<Item = ShardRecordView<'s>>,
    encoded: &mut Vec<u8>,
) -> Result<(), InfraError> {
    let step = steps.store;
    let sql = "INSERT INTO coord_shards(run_id, shard, status, owner, deadline, place, record) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    let mut counts = Counts::default();
    for shard in shards {
        shard.assert_invariants();
        encode_shard(&shard, encoded);
        let columns = Columns::of(&shard.state);
        let id = id_to_sql(shard.key.shard.as_raw());
        let place = run.next_place + counts.places;
        let Columns { status, owner, deadline } = columns;
        statement.execute((run.id, id, status, owner, deadline, place, &*encoded)).at(step)?;
        counts.add(&columns, 1);
        counts.places += 1;
    }
    counts.store(tx, step, run.id)?;
    let sql = "INSERT INTO coord_tenants(tenant, shards) VALUES (?1, ?2) \
               ON CONFLICT(tenant) DO UPDATE SET shards = shards + excluded.shards";
    tx.prepare_cached(sql)
        .and_then(|mut statement| statement.execute((tenant.as_bytes(), counts.places)))
        .at(step)?;
    let sql = "UPDATE coord_totals SET shards = shards + ?1 WHERE id = 1";
    tx.prepare_cached(sql).and_then(|mut statement| statement.execute([counts.places])).at(step)?;
    Ok(())
}

/// Shows `f` the records of `limit` shards behind `after`, in id order; behind which one there are
/// more, if there are.
pub(crate) fn page(
    tx: &Transaction<'_>,
    step: &'static str,
    run: i64,
    after: Option<ShardId>,
    limit: NonZeroUsize,
    mut f: impl FnMut(&[u8]) -> Result<ShardId, InfraError>,
) -> Result<Option<ShardId>, InfraError> {
    let sql = "SELECT record FROM coord_shards WHERE run_id = ?1 AND shard BETWEEN ?2 AND ?3 \
               ORDER BY shard";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    let (mut last, mut left) = (None, limit.get());
    for (first, until) in ids_behind(after.map(ShardId::as_raw)) {
        let mut rows = statement.query((run, first, until)).at(step)?;
        while let Some(row) = rows.next().at(step)? {
            if left == 0 {
                return Ok(last);
            }
            let Ok(bytes) = row.get_ref(0).at(step)?.as_blob() else {
                return Err(InfraError::corruption(step, "a record is not a blob"));
            };
            (last, left) = (Some(f(bytes)?), left - 1);
        }
    }
    Ok(None)
}

/// Whether the run has a shard under this id.
pub(crate) fn exists(
    tx: &Transaction<'_>,
    step: &'static str,
    run: &RunRow,
    shard: ShardId,
) -> Result<bool, InfraError> {
    let sql = "SELECT 1 FROM coord_shards WHERE run_id = ?1 AND shard = ?2";
    let mut statement = tx.prepare_cached(sql).at(step)?;
    statement.exists((run.id, id_to_sql(shard.as_raw()))).at(step)
}

/// Replaces what `out` holds by the blob in a column.
pub(crate) fn copy_blob(
    row: &Row<'_>,
    column: usize,
    step: &'static str,
    out: &mut Vec<u8>,
) -> Result<(), InfraError> {
    let stored = row.get_ref(column).at(step)?;
    let Ok(bytes) = stored.as_blob() else {
        return Err(InfraError::corruption(step, "a record is not a blob"));
    };
    out.clear();
    out.extend_from_slice(bytes);
    Ok(())
}

/// What the indexes need to know of a shard (Q1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns {
    pub(crate) status: u8,
    pub(crate) owner: Option<i64>,
    pub(crate) deadline: Option<i64>,
}

impl Columns {
    pub(crate) fn of(state: &ShardState) -> Self {
        Self {
            status: state.status as u8,
            owner: state.lease.map(|holder| id_to_sql(holder.owner().as_raw())),
            deadline: match state.availability() {
                Availability::From(deadline) => Some(time_to_sql(deadline)),
                Availability::Now | Availability::Never => None,
            },
        }
    }

    fn is_free(&self) -> bool {
        self.status == ShardStatus::Active as u8 && self.deadline.is_none()
    }
}

/// A change of a run's counts (Q2). The table's checks refuse what would go below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    by_status: [i64; 4],
    leased: i64,
    places: i64,
}

impl Counts {
    pub(crate) fn add(&mut self, columns: &Columns, by: i64) {
        self.by_status[usize::from(columns.status)] += by;
        self.leased += if columns.deadline.is_some() { by } else { 0 };
    }

    fn store(&self, tx: &Transaction<'_>, step: &'static str, run: i64) -> Result<(), InfraError> {
        if *self == Self::default() {
            return Ok(());
        }
        let sql = "UPDATE coord_runs SET active = active + ?2, done = done + ?3, split = split + ?4, \
                   parked = parked + ?5, leased = leased + ?6, next_place = next_place + ?7 \
                   WHERE id = ?1";
        let [active, done, split, parked] = self.by_status;
        let row = (run, active, done, split, parked, self.leased, self.places);
        tx.prepare_cached(sql).and_then(|mut statement| statement.execute(row)).map(drop).at(step)
    }
}
