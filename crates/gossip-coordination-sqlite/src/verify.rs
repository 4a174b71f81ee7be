//! Looking over a whole database: what the rest of this crate relies on, checked record by record.

use std::collections::HashMap;
use std::fmt;

use gossip_contracts::identity::TenantId;
use gossip_coordination::codec::{DecodeScratch, decode_shard_view};
use gossip_coordination::{InfraError, RunProgress, RunRecord};
use rusqlite::Transaction;

use crate::coordinator::SqliteCoordinator;
use crate::error::{At, steps};
use crate::runs::{count, read_record};
use crate::shards::Columns;
use crate::sql::{self, id_from_sql, id_to_sql};

/// Faults that a report lists; the first ones tell what happened.
const FAULTS_MAX: usize = 100;

/// What [`SqliteCoordinator::verify`] found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Verification {
    /// Runs looked at.
    pub runs: u64,
    /// Shards looked at.
    pub shards: u64,
    /// What is wrong, if anything; the first hundred.
    pub faults: Vec<Fault>,
}

impl Verification {
    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.faults.is_empty()
    }

    fn add(&mut self, what: impl Into<String>, fault: impl Into<String>) {
        if self.faults.len() < FAULTS_MAX {
            self.faults.push(Fault { what: what.into(), fault: fault.into() });
        }
    }
}

/// Something that is wrong. Names runs and shards, never keys, tokens or owners.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// With what.
    pub what: String,
    /// What.
    pub fault: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.fault)
    }
}

/// A run's row, its record, and what its shards add up to.
struct RunSum {
    name: String,
    record: Option<RunRecord>,
    counts: [u64; 5],
    summed: RunProgress,
    leased: u64,
}

impl SqliteCoordinator {
    /// Reads everything and checks that the file is whole, that every record decodes and holds its
    /// invariants, that columns and records agree (Q1), and that counts are what they count (Q2).
    /// Takes time in proportion to the database; holds nobody up.
    pub fn verify(&self) -> Result<Verification, InfraError> {
        let mut report = Verification::default();
        sql::read(&self.conn, steps!("verify"), |tx| {
            check_file(tx, &mut report)?;
            let mut runs = read_runs(tx, &mut report)?;
            read_shards(tx, &mut runs, &mut report)?;
            compare(tx, &runs, &mut report)
        })?;
        Ok(report)
    }
}

const STEP: &str = "verify.load";

fn check_file(tx: &Transaction<'_>, report: &mut Verification) -> Result<(), InfraError> {
    let mut statement = tx.prepare("PRAGMA integrity_check(20)").at(STEP)?;
    let mut rows = statement.query([]).at(STEP)?;
    while let Some(row) = rows.next().at(STEP)? {
        let line: String = row.get(0).at(STEP)?;
        if line != "ok" {
            report.add("the file", line);
        }
    }
    Ok(())
}

fn read_runs(
    tx: &Transaction<'_>,
    report: &mut Verification,
) -> Result<HashMap<i64, RunSum>, InfraError> {
    let sql = "SELECT id, tenant, run, status, cursor_semantics, lease_duration, max_shard_retries, \
               active, done, split, parked, leased FROM coord_runs";
    let mut statement = tx.prepare(sql).at(STEP)?;
    let mut rows = statement.query([]).at(STEP)?;
    let mut runs = HashMap::new();
    while let Some(row) = rows.next().at(STEP)? {
        let id: i64 = row.get(0).at(STEP)?;
        let tenant: [u8; 32] = row.get(1).at(STEP)?;
        let run = id_from_sql(row.get(2).at(STEP)?);
        let name = format!("run {run}");
        let mut columns = [0; 4];
        for (at, column) in columns.iter_mut().enumerate() {
            *column = row.get(3 + at).at(STEP)?;
        }
        let mut counts = [0; 5];
        for (at, counted) in counts.iter_mut().enumerate() {
            *counted = count(row, 7 + at).at(STEP)?;
        }
        let record = match read_record(tx, STEP, id) {
            Ok(record) => Some(record),
            Err(error) => {
                report.add(&name, error.to_string());
                None
            }
        };
        if let Some(record) = &record {
            let config = record.config;
            let expected = [
                record.status as i64,
                config.cursor_semantics as i64,
                id_to_sql(config.lease_duration),
                config.max_shard_retries.into(),
            ];
            if (record.tenant, record.run.as_raw()) != (TenantId::from_bytes(tenant), run) {
                report.add(&name, "its record is another run's");
            } else if columns != expected {
                report.add(&name, "Q1: its columns and its record differ");
            }
        }
        report.runs += 1;
        let (summed, leased) = (RunProgress::default(), 0);
        runs.insert(id, RunSum { name, record, counts, summed, leased });
    }
    Ok(runs)
}

fn read_shards(
    tx: &Transaction<'_>,
    runs: &mut HashMap<i64, RunSum>,
    report: &mut Verification,
) -> Result<(), InfraError> {
    let sql = "SELECT run_id, shard, status, owner, deadline, record FROM coord_shards";
    let mut statement = tx.prepare(sql).at(STEP)?;
    let mut rows = statement.query([]).at(STEP)?;
    let mut exists =
        tx.prepare("SELECT 1 FROM coord_shards WHERE run_id = ?1 AND shard = ?2").at(STEP)?;
    let mut scratch = DecodeScratch::new();
    while let Some(row) = rows.next().at(STEP)? {
        report.shards += 1;
        let run_id: i64 = row.get(0).at(STEP)?;
        let shard = id_from_sql(row.get(1).at(STEP)?);
        let Some(run) = runs.get_mut(&run_id) else {
            report.add(format!("shard {shard}"), "its run is missing");
            continue;
        };
        let name = format!("{}, shard {shard}", run.name);
        let columns = Columns {
            status: row.get(2).at(STEP)?,
            owner: row.get(3).at(STEP)?,
            deadline: row.get(4).at(STEP)?,
        };
        let bytes = row.get_ref(5).at(STEP)?.as_blob().unwrap_or_default();
        let record = match decode_shard_view(bytes, &mut scratch) {
            Ok(record) => record,
            Err(error) => {
                report.add(name, error.to_string());
                continue;
            }
        };
        run.summed.add(record.state.status);
        run.leased += u64::from(record.state.lease.is_some());
        if record.key.shard.as_raw() != shard
            || run
                .record
                .as_ref()
                .is_some_and(|run| (record.tenant, record.key.run) != (run.tenant, run.run))
        {
            report.add(&name, "its record is another shard's");
        }
        if columns != Columns::of(&record.state) {
            report.add(&name, "Q1: its columns and its record differ");
        }
        for relative in record.spawned.iter().chain(&record.parent) {
            if !exists.exists((run_id, id_to_sql(relative.as_raw()))).at(STEP)? {
                report.add(&name, format!("its parent or child {relative} is missing"));
            }
        }
    }
    Ok(())
}

fn compare(
    tx: &Transaction<'_>,
    runs: &HashMap<i64, RunSum>,
    report: &mut Verification,
) -> Result<(), InfraError> {
    let mut by_tenant: HashMap<TenantId, u64> = HashMap::new();
    let mut total = 0;
    for (id, run) in runs {
        let RunProgress { active, done, split, parked, .. } = run.summed;
        if [active, done, split, parked, run.leased] != run.counts {
            report.add(&run.name, format!("Q2: it counts {:?}, not {:?}", run.counts, run.summed));
        }
        total += run.summed.total();
        let Some(record) = &run.record else { continue };
        *by_tenant.entry(record.tenant).or_default() += run.summed.total();
        let mut exists = tx
            .prepare_cached("SELECT 1 FROM coord_shards WHERE run_id = ?1 AND shard = ?2")
            .at(STEP)?;
        for root in &record.root_shards {
            if !exists.exists((id, id_to_sql(root.as_raw()))).at(STEP)? {
                report.add(&run.name, format!("its root shard {root} is missing"));
            }
        }
    }
    let sql = "SELECT tenant, shards FROM coord_tenants";
    let mut statement = tx.prepare(sql).at(STEP)?;
    let mut rows = statement.query([]).at(STEP)?;
    while let Some(row) = rows.next().at(STEP)? {
        let (tenant, counted) = (row.get(0).at(STEP)?, count(row, 1).at(STEP)?);
        let summed = by_tenant.remove(&TenantId::from_bytes(tenant)).unwrap_or(0);
        if summed != counted {
            report.add("a tenant", format!("Q2: it counts {counted} shards, not {summed}"));
        }
    }
    if by_tenant.values().any(|&shards| shards > 0) {
        report.add("a tenant", "Q2: it has shards and no count");
    }
    let sql = "SELECT shards FROM coord_totals WHERE id = 1";
    let counted = tx.query_row(sql, [], |row| count(row, 0)).at(STEP)?;
    if counted != total {
        report.add("the database", format!("Q2: it counts {counted} shards, not {total}"));
    }
    Ok(())
}
