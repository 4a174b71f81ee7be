//! Which runs there were: what each scanned, under which policy, and whether it has ended.
//!
//! - D4: when a run finishes, items that it did not meet are forgotten with what was found in them:
//!   every item that there was has been met, so they are gone.
//! - D5: where a source lists only what is new, items that a finished run did not meet count in it as
//!   they are. A run that trusts nothing meets everything, so that D4 holds.
//! - D6: of each target and policy the newest run that has finished is not deleted, nor is a later one.
//!   What was found, which run saw it first and what need not be read again belong to the target and
//!   the policy, not to a run, and stay.
//! - D7: a run that is deleted leaves coordination first and the table of runs last, so that what a
//!   killed deletion leaves is seen by the next.
//! - D8: the items of a target under a policy that it is no longer scanned under are forgotten when
//!   somebody asks for that, once all runs of both are deleted, and never while there is one.
//! - D9: once a run's end is written down nothing is committed for it, and an item never goes back to an
//!   older run: another run may have begun.

use gossip_contracts::connector::{KeyRange, RunName};
use gossip_contracts::identity::{PolicyHash, RunId};
use gossip_coordination_sqlite::rusqlite::{self, OptionalExtension, Row, Transaction};

use crate::ledger;
use crate::totals::Totals;
use crate::transaction::Unwritten;

/// What makes runs comparable, a target under a policy, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope(pub(crate) i64);

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    Finished,
    Cancelled,
}

/// A run as the runtime remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    pub(crate) target: Vec<u8>,
    pub(crate) policy: PolicyHash,
    pub(crate) started_ms: u64,
    pub(crate) ended_ms: Option<u64>,
    pub(crate) is_cancelled: bool,
}

/// The scope of this target and policy.
pub(crate) fn scope(
    tx: &Transaction<'_>,
    target: &[u8],
    policy: PolicyHash,
) -> rusqlite::Result<Scope> {
    let known = tx
        .prepare_cached("SELECT scope FROM scan_scopes WHERE target = ?1 AND policy = ?2")?
        .query_row((target, policy.as_bytes()), |row| row.get(0))
        .optional()?;
    if let Some(scope) = known {
        return Ok(Scope(scope));
    }
    tx.prepare_cached("INSERT INTO scan_scopes(target, policy) VALUES (?1, ?2)")?
        .execute((target, policy.as_bytes()))?;
    Ok(Scope(tx.last_insert_rowid()))
}

/// The run of this target and policy that has not ended, or a new one: whether it is new. There is
/// one at most, so that two processes that begin at once work on the same. A new one that is `fresh`
/// trusts nothing that earlier runs stored, whoever goes on with it.
pub(crate) fn open_run(
    tx: &Transaction<'_>,
    target: &[u8],
    policy: PolicyHash,
    now_ms: u64,
    fresh: bool,
) -> rusqlite::Result<(RunId, bool)> {
    let open = tx
        .prepare_cached(
            "SELECT max(run) FROM scan_runs WHERE target = ?1 AND policy = ?2 AND ended_ms IS NULL",
        )?
        .query_row((target, policy.as_bytes()), |row| row.get::<_, Option<i64>>(0))?;
    if let Some(run) = open {
        return Ok((RunId::from_raw(run as u64), false));
    }
    tx.prepare_cached(
        "INSERT INTO scan_runs(target, policy, started_ms, fresh, nonce)
         VALUES (?1, ?2, ?3, ?4, randomblob(16))",
    )?
    .execute((target, policy.as_bytes(), now_ms as i64, fresh))?;
    Ok((RunId::from_raw(tx.last_insert_rowid() as u64), true))
}

/// Joins a run that another process has begun; `false` if it has ended.
pub(crate) fn join_run(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    let sql = "UPDATE scan_runs SET resumed = resumed + 1 WHERE run = ?1 AND ended_ms IS NULL";
    Ok(tx.execute(sql, [run.as_raw() as i64])? > 0)
}

/// Whether a run trusts nothing that earlier runs stored.
pub(crate) fn is_fresh(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    let sql = "SELECT fresh FROM scan_runs WHERE run = ?1";
    tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))
}

/// A run as sources know it.
pub(crate) fn name(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<RunName> {
    let sql = "SELECT nonce FROM scan_runs WHERE run = ?1";
    let nonce = tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))?;
    Ok(RunName { number: run, nonce })
}

/// How many processes have joined a run that another had begun.
pub(crate) fn times_resumed(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<i64> {
    let sql = "SELECT resumed FROM scan_runs WHERE run = ?1";
    tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))
}

/// Writes down that a run has ended, how, and its numbers (N1); whether that had not been done before.
fn end_run(tx: &Transaction<'_>, run: RunId, end: RunEnd, now_ms: u64) -> rusqlite::Result<bool> {
    let ended = tx.execute(
        "UPDATE scan_runs SET ended_ms = ?2, cancelled = ?3 WHERE run = ?1 AND ended_ms IS NULL",
        (run.as_raw() as i64, now_ms as i64, end == RunEnd::Cancelled),
    )?;
    if ended > 0 {
        Totals::count(tx, run)?.keep(tx, run)?;
    }
    Ok(ended > 0)
}

/// Writes down that a run was called off, unless it has ended; how it has.
pub(crate) fn cancel_run(
    tx: &Transaction<'_>,
    run: RunId,
    now_ms: u64,
) -> rusqlite::Result<RunEnd> {
    end_run(tx, run, RunEnd::Cancelled, now_ms)?;
    Ok(how_ended(tx, run)?.unwrap_or(RunEnd::Cancelled))
}

/// Writes down that a run has finished, and forgets the items that are gone (D4). In one step: once a
/// run has ended another may have begun, which trusts what it sees in the ledger. In `ranges` every run has
/// keys of its own.
pub(crate) fn finish_run(
    tx: &Transaction<'_>,
    run: RunId,
    now_ms: u64,
    ranges: &[KeyRange],
) -> rusqlite::Result<()> {
    if has_ended(tx, run)? {
        return Ok(());
    }
    ledger::keep_below_unlisted(tx, run)?;
    if !ranges.is_empty() {
        ledger::take_over_unread(tx, run, ranges)?;
    }
    end_run(tx, run, RunEnd::Finished, now_ms)?;
    ledger::forget_unmet(tx, run)
}

/// The same for a run that trusts nothing, and could not list all of some ranges of keys (D2).
pub(crate) fn finish_fresh_run(
    tx: &Transaction<'_>,
    run: RunId,
    now_ms: u64,
    ranges: &[KeyRange],
    unlisted: &[KeyRange],
) -> rusqlite::Result<()> {
    if !unlisted.is_empty() && !has_ended(tx, run)? {
        ledger::keep_unlisted(tx, run, unlisted)?;
    }
    finish_run(tx, run, now_ms, ranges)
}

/// The same for a run that listed only what is new in some ranges of keys (D5).
pub(crate) fn finish_incremental_run(
    tx: &Transaction<'_>,
    run: RunId,
    now_ms: u64,
    ranges: &[KeyRange],
) -> rusqlite::Result<()> {
    if !has_ended(tx, run)? {
        ranges.iter().try_for_each(|range| ledger::keep_unmet(tx, run, range))?;
    }
    finish_run(tx, run, now_ms, ranges)
}

/// The newest run before `run` of the same target and policy that has ended.
pub(crate) fn last_before(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT max(old.run) FROM scan_runs old JOIN scan_runs new USING (target, policy)
               WHERE new.run = ?1 AND old.run < ?1 AND old.ended_ms IS NOT NULL";
    let last: Option<i64> = tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))?;
    Ok(last.map(|run| RunId::from_raw(run as u64)))
}

/// How a run has ended, if that is written down. One that is deleted had ended.
pub(crate) fn how_ended(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Option<RunEnd>> {
    let sql = "SELECT ended_ms IS NOT NULL, cancelled FROM scan_runs WHERE run = ?1";
    let ended = tx
        .prepare_cached(sql)?
        .query_row([run.as_raw() as i64], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match ended {
        Some((false, _)) => None,
        Some((true, false)) => Some(RunEnd::Finished),
        Some((true, true)) | None => Some(RunEnd::Cancelled),
    })
}

/// Whether a run has been written down as ended.
pub(crate) fn has_ended(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    how_ended(tx, run).map(|end| end.is_some())
}

/// Fails once the run has ended (D9).
pub(crate) fn check_open(tx: &Transaction<'_>, run: RunId) -> Result<(), Unwritten> {
    if has_ended(tx, run)? { Err(Unwritten::Superseded) } else { Ok(()) }
}

pub(crate) fn list_runs(tx: &Transaction<'_>) -> rusqlite::Result<Vec<RunRow>> {
    let sql =
        "SELECT run, target, policy, started_ms, ended_ms, cancelled FROM scan_runs ORDER BY run";
    tx.prepare(sql)?.query_map([], run_row)?.collect()
}

pub(crate) fn newest_run(tx: &Transaction<'_>) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT max(run) FROM scan_runs";
    let run: Option<i64> = tx.query_row(sql, [], |row| row.get(0))?;
    Ok(run.map(|run| RunId::from_raw(run as u64)))
}

/// Deletes a run that has ended. What it found stays, and its number is not given again.
pub(crate) fn delete_run(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    let id = run.as_raw() as i64;
    tx.execute("DELETE FROM scan_totals WHERE run = ?1", [id])?;
    tx.execute("DELETE FROM scan_runs WHERE run = ?1 AND ended_ms IS NOT NULL", [id]).map(drop)
}

/// The scopes that no run belongs to.
pub(crate) fn scopes_without_runs(tx: &Transaction<'_>) -> rusqlite::Result<Vec<Scope>> {
    tx.prepare(
        "SELECT scope FROM scan_scopes
         WHERE (target, policy) NOT IN (SELECT target, policy FROM scan_runs)",
    )?
    .query_map([], |row| row.get(0).map(Scope))?
    .collect()
}

/// The newest run of a target that has not ended, whatever its policy.
pub(crate) fn newest_open_run(
    tx: &Transaction<'_>,
    target: &[u8],
) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT max(run) FROM scan_runs WHERE target = ?1 AND ended_ms IS NULL";
    let run: Option<i64> = tx.query_row(sql, [target], |row| row.get(0))?;
    Ok(run.map(|run| RunId::from_raw(run as u64)))
}

/// The newest run of a target that has ended, whatever its policy.
pub(crate) fn last_ended_run(
    tx: &Transaction<'_>,
    target: &[u8],
) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT max(run) FROM scan_runs WHERE target = ?1 AND ended_ms IS NOT NULL";
    let run: Option<i64> = tx.query_row(sql, [target], |row| row.get(0))?;
    Ok(run.map(|run| RunId::from_raw(run as u64)))
}

pub(crate) fn find_run(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Option<RunRow>> {
    let sql =
        "SELECT run, target, policy, started_ms, ended_ms, cancelled FROM scan_runs WHERE run = ?1";
    tx.prepare(sql)?.query_row([run.as_raw() as i64], run_row).optional()
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run: RunId::from_raw(row.get::<_, i64>(0)? as u64),
        target: row.get(1)?,
        policy: PolicyHash::from_bytes(row.get(2)?),
        started_ms: row.get::<_, i64>(3)? as u64,
        ended_ms: row.get::<_, Option<i64>>(4)?.map(|ms| ms as u64),
        is_cancelled: row.get(5)?,
    })
}

/// The newest run that has taken over the items of this one.
pub(crate) fn superseded_by(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Option<RunId>> {
    tx.query_row(
        "SELECT max(newer.run) FROM scan_runs old JOIN scan_runs newer USING (target, policy)
         WHERE old.run = ?1 AND newer.run > old.run",
        [run.as_raw() as i64],
        |row| row.get::<_, Option<i64>>(0),
    )
    .map(|newer| newer.map(|run| RunId::from_raw(run as u64)))
}
