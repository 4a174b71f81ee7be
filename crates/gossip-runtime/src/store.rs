//! The runtime's own tables, in the coordinator's database: which runs there were, which objects
//! were scanned, what was found.
//!
//! - D1: a ledger row says that one version of an item was scanned under one policy, and its
//!   findings are in the same database: both were committed together, with the cursor.
//! - D2: an item has the occurrences of the version in its ledger row and no others.
//! - D3: no byte of a secret is stored: a keyed hash, and the public prefix of its format.

use gossip_contracts::identity::{
    FindingId, ItemId, ObjectVersionId, OccurrenceId, PolicyHash, RuleFingerprint, RunId,
    SecretHash,
};
use gossip_coordination_sqlite::Component;
use gossip_coordination_sqlite::rusqlite::{self, OptionalExtension, Row, Transaction};

use crate::totals::Totals;

/// The tables.
pub(crate) const COMPONENT: Component = Component {
    name: "scan",
    steps: &["
        CREATE TABLE scan_runs(
            run INTEGER PRIMARY KEY AUTOINCREMENT,
            target BLOB NOT NULL,
            policy BLOB NOT NULL,
            started_ms INTEGER NOT NULL,
            ended_ms INTEGER,
            resumed INTEGER NOT NULL DEFAULT 0
        ) STRICT;
        CREATE INDEX scan_runs_open ON scan_runs(target, policy) WHERE ended_ms IS NULL;

        CREATE TABLE scan_totals(
            run INTEGER NOT NULL,
            what TEXT NOT NULL,
            reason TEXT NOT NULL,
            number INTEGER NOT NULL,
            PRIMARY KEY(run, what, reason)
        ) STRICT, WITHOUT ROWID;

        CREATE TABLE scan_ledger(
            item BLOB NOT NULL,
            policy BLOB NOT NULL,
            key BLOB NOT NULL,
            version BLOB NOT NULL,
            bytes INTEGER NOT NULL,
            skipped TEXT,
            failed TEXT,
            run INTEGER NOT NULL,
            PRIMARY KEY(item, policy)
        ) STRICT, WITHOUT ROWID;
        CREATE INDEX scan_ledger_run ON scan_ledger(run);

        CREATE TABLE scan_occurrences(
            item BLOB NOT NULL,
            policy BLOB NOT NULL,
            occurrence BLOB NOT NULL,
            finding BLOB NOT NULL,
            secret BLOB NOT NULL,
            rule TEXT NOT NULL,
            fingerprint BLOB NOT NULL,
            severity TEXT NOT NULL,
            confidence TEXT NOT NULL,
            redacted TEXT NOT NULL,
            start INTEGER NOT NULL,
            length INTEGER NOT NULL,
            line INTEGER NOT NULL,
            column INTEGER NOT NULL,
            PRIMARY KEY(item, policy, occurrence)
        ) STRICT, WITHOUT ROWID;
    "],
};

/// A run as the runtime remembers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunRow {
    pub(crate) run: RunId,
    pub(crate) target: Vec<u8>,
    pub(crate) policy: PolicyHash,
    pub(crate) started_ms: u64,
    pub(crate) ended_ms: Option<u64>,
}

/// What became of one item.
#[derive(Clone, Debug)]
pub(crate) struct ItemRow {
    pub(crate) item: ItemId,
    pub(crate) key: Vec<u8>,
    /// Empty if the bytes that were read cannot be named, so that they are read again next time.
    pub(crate) version: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) skipped: Option<String>,
    pub(crate) failed: Option<String>,
    pub(crate) occurrences: Vec<OccurrenceRow>,
}

/// A secret at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OccurrenceRow {
    pub(crate) occurrence: OccurrenceId,
    pub(crate) finding: FindingId,
    pub(crate) secret: SecretHash,
    pub(crate) rule: String,
    pub(crate) fingerprint: RuleFingerprint,
    pub(crate) severity: String,
    pub(crate) confidence: String,
    pub(crate) redacted: String,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

/// What the ledger says of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerRow {
    pub(crate) version: Vec<u8>,
    pub(crate) run: RunId,
    pub(crate) failed: bool,
}

/// The run of this target and policy that has not ended, or a new one: whether it is new. There is
/// one at most, so that two processes that begin at once work on the same.
pub(crate) fn open_run(
    tx: &Transaction<'_>,
    target: &[u8],
    policy: PolicyHash,
    now_ms: u64,
) -> rusqlite::Result<(RunId, bool)> {
    let open = tx
        .prepare_cached(
            "SELECT max(run) FROM scan_runs WHERE target = ?1 AND policy = ?2 AND ended_ms IS NULL",
        )?
        .query_row((target, policy.as_bytes()), |row| row.get::<_, Option<i64>>(0))?;
    if let Some(run) = open {
        return Ok((RunId::from_raw(run as u64), false));
    }
    tx.prepare_cached("INSERT INTO scan_runs(target, policy, started_ms) VALUES (?1, ?2, ?3)")?
        .execute((target, policy.as_bytes(), now_ms as i64))?;
    Ok((RunId::from_raw(tx.last_insert_rowid() as u64), true))
}

pub(crate) fn mark_resumed(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    tx.execute("UPDATE scan_runs SET resumed = resumed + 1 WHERE run = ?1", [run.as_raw() as i64])
        .map(drop)
}

/// Whether an earlier process worked on the run.
pub(crate) fn was_resumed(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    tx.query_row("SELECT resumed > 0 FROM scan_runs WHERE run = ?1", [run.as_raw() as i64], |row| {
        row.get(0)
    })
}

/// Writes down that a run has ended, and its numbers (N1).
pub(crate) fn end_run(tx: &Transaction<'_>, run: RunId, now_ms: u64) -> rusqlite::Result<()> {
    let ended = tx.execute(
        "UPDATE scan_runs SET ended_ms = ?2 WHERE run = ?1 AND ended_ms IS NULL",
        (run.as_raw() as i64, now_ms as i64),
    )?;
    if ended == 0 { Ok(()) } else { Totals::count(tx, run)?.keep(tx, run) }
}

/// Whether a run has been written down as ended.
pub(crate) fn has_ended(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    let sql = "SELECT ended_ms IS NOT NULL FROM scan_runs WHERE run = ?1";
    tx.prepare_cached(sql)?.query_row([run.as_raw() as i64], |row| row.get(0))
}

pub(crate) fn list_runs(tx: &Transaction<'_>) -> rusqlite::Result<Vec<RunRow>> {
    tx.prepare("SELECT run, target, policy, started_ms, ended_ms FROM scan_runs ORDER BY run")?
        .query_map([], run_row)?
        .collect()
}

pub(crate) fn find_run(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Option<RunRow>> {
    tx.prepare("SELECT run, target, policy, started_ms, ended_ms FROM scan_runs WHERE run = ?1")?
        .query_row([run.as_raw() as i64], run_row)
        .optional()
}

fn run_row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow {
        run: RunId::from_raw(row.get::<_, i64>(0)? as u64),
        target: row.get(1)?,
        policy: PolicyHash::from_bytes(row.get(2)?),
        started_ms: row.get::<_, i64>(3)? as u64,
        ended_ms: row.get::<_, Option<i64>>(4)?.map(|ms| ms as u64),
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

pub(crate) fn find_item(
    tx: &Transaction<'_>,
    item: ItemId,
    policy: PolicyHash,
) -> rusqlite::Result<Option<LedgerRow>> {
    tx.prepare_cached(
        "SELECT version, run, failed IS NOT NULL FROM scan_ledger WHERE item = ?1 AND policy = ?2",
    )?
    .query_row((item.as_bytes(), policy.as_bytes()), |row| {
        Ok(LedgerRow {
            version: row.get(0)?,
            run: RunId::from_raw(row.get::<_, i64>(1)? as u64),
            failed: row.get(2)?,
        })
    })
    .optional()
}

/// An unchanged item counts in this run, too.
pub(crate) fn keep_item(
    tx: &Transaction<'_>,
    item: ItemId,
    policy: PolicyHash,
    run: RunId,
) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE scan_ledger SET run = ?3 WHERE item = ?1 AND policy = ?2")?
        .execute((item.as_bytes(), policy.as_bytes(), run.as_raw() as i64))
        .map(drop)
}

/// Replaces all that was known of an item (D2).
pub(crate) fn put_item(
    tx: &Transaction<'_>,
    row: &ItemRow,
    policy: PolicyHash,
    run: RunId,
) -> rusqlite::Result<()> {
    let (item, policy) = (row.item.as_bytes(), policy.as_bytes());
    tx.prepare_cached("DELETE FROM scan_occurrences WHERE item = ?1 AND policy = ?2")?
        .execute((item, policy))?;
    tx.prepare_cached(
        "INSERT OR REPLACE INTO scan_ledger(item, policy, key, version, bytes, skipped, failed, run)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute((
        item,
        policy,
        &row.key,
        &row.version,
        row.bytes as i64,
        &row.skipped,
        &row.failed,
        run.as_raw() as i64,
    ))?;
    for found in &row.occurrences {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO scan_occurrences VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute((
            item,
            policy,
            found.occurrence.as_bytes(),
            found.finding.as_bytes(),
            found.secret.as_bytes(),
            &found.rule,
            found.fingerprint.as_bytes(),
            &found.severity,
            &found.confidence,
            &found.redacted,
            found.start as i64,
            found.length as i64,
            found.line as i64,
            found.column as i64,
        ))?;
    }
    Ok(())
}

/// The name of an item's version, for occurrences.
pub(crate) fn version_id(item: ItemId, version: &[u8]) -> ObjectVersionId {
    ObjectVersionId::derive(item, version)
}
