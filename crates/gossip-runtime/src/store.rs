//! The runtime's own tables, in the coordinator's database: which runs there were, which objects
//! were scanned, what was found.
//!
//! - D1: a ledger row says that one version of an item was scanned under one policy, and its
//!   findings are in the same database: both were committed together, with the cursor.
//! - D2: an item has the occurrences of the version in its ledger row and no others.
//! - D3: no byte of a secret is stored: a keyed hash, and the public prefix of its format.
//! - D4: when a run finishes, items that it did not meet are forgotten with what was found in them:
//!   every item that there was has been met, so they are gone.

use gossip_contracts::connector::{Page, PageEntry};
use gossip_contracts::identity::{
    FindingId, OccurrenceId, PolicyHash, RuleFingerprint, RunId, SecretHash,
};
use gossip_coordination_sqlite::CallerSchema;
use gossip_coordination_sqlite::rusqlite::{self, OptionalExtension, Row, Transaction};

use crate::plan::END_KEY;
use crate::totals::Totals;

/// The tables.
///
/// Both large tables are in key order, as a worker writes: a checkpoint then touches the few pages
/// at its place, where rows under a hash touched as many pages as they were. No index follows
/// `run` for the same reason: who counts a run's items walks its scope.
pub(crate) const COMPONENT: CallerSchema = CallerSchema {
    name: "scan",
    steps: &[
        "
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
        ",
        "
        CREATE TABLE scan_scopes(
            scope INTEGER PRIMARY KEY,
            target BLOB NOT NULL,
            policy BLOB NOT NULL,
            UNIQUE(target, policy)
        ) STRICT;
        INSERT INTO scan_scopes(target, policy) SELECT DISTINCT target, policy FROM scan_runs;

        DROP INDEX scan_ledger_run;
        ALTER TABLE scan_ledger RENAME TO scan_ledger_by_hash;
        ALTER TABLE scan_occurrences RENAME TO scan_occurrences_by_hash;
        CREATE TABLE scan_ledger(
            scope INTEGER NOT NULL,
            key BLOB NOT NULL,
            version BLOB NOT NULL,
            bytes INTEGER NOT NULL,
            skipped TEXT,
            failed TEXT,
            run INTEGER NOT NULL,
            PRIMARY KEY(scope, key)
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE scan_occurrences(
            scope INTEGER NOT NULL,
            key BLOB NOT NULL,
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
            PRIMARY KEY(scope, key, occurrence)
        ) STRICT, WITHOUT ROWID;
        INSERT INTO scan_ledger
            SELECT s.scope, l.key, l.version, l.bytes, l.skipped, l.failed, l.run
            FROM scan_ledger_by_hash l
            JOIN scan_runs r USING (run)
            JOIN scan_scopes s ON s.target = r.target AND s.policy = l.policy;
        INSERT INTO scan_occurrences
            SELECT s.scope, l.key, o.occurrence, o.finding, o.secret, o.rule, o.fingerprint,
                   o.severity, o.confidence, o.redacted, o.start, o.length, o.line, o.column
            FROM scan_occurrences_by_hash o
            JOIN scan_ledger_by_hash l USING (item, policy)
            JOIN scan_runs r USING (run)
            JOIN scan_scopes s ON s.target = r.target AND s.policy = l.policy;
        DROP TABLE scan_occurrences_by_hash;
        DROP TABLE scan_ledger_by_hash;
        ",
        "
        ALTER TABLE scan_runs ADD COLUMN fresh INTEGER NOT NULL DEFAULT 0;
        ",
    ],
};

/// What makes runs comparable, a target under a policy, as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope(i64);

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
    pub(crate) key: Vec<u8>,
    /// Empty if the bytes that were read cannot be named, so that they are read again next time.
    pub(crate) version: Vec<u8>,
    pub(crate) bytes: u64,
    pub(crate) skipped: Option<String>,
    pub(crate) failed: Option<String>,
    /// Those that are not stored yet.
    pub(crate) occurrences: Vec<OccurrenceRow>,
    /// The first part of this version has been stored, with its occurrences.
    pub(crate) begun: bool,
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

/// The scope that a run belongs to, in SQL, with the run as its first parameter.
macro_rules! scope_of_run {
    () => {
        "(SELECT scope FROM scan_scopes JOIN scan_runs USING (target, policy) WHERE run = ?1)"
    };
}
pub(crate) use scope_of_run;

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
        "INSERT INTO scan_runs(target, policy, started_ms, fresh) VALUES (?1, ?2, ?3, ?4)",
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

/// How many processes have joined a run that another had begun.
pub(crate) fn times_resumed(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<i64> {
    let sql = "SELECT resumed FROM scan_runs WHERE run = ?1";
    tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))
}

/// Writes down that a run has ended, and its numbers (N1); whether that had not been done before.
pub(crate) fn end_run(tx: &Transaction<'_>, run: RunId, now_ms: u64) -> rusqlite::Result<bool> {
    let ended = tx.execute(
        "UPDATE scan_runs SET ended_ms = ?2 WHERE run = ?1 AND ended_ms IS NULL",
        (run.as_raw() as i64, now_ms as i64),
    )?;
    if ended > 0 {
        Totals::count(tx, run)?.keep(tx, run)?;
    }
    Ok(ended > 0)
}

/// Writes down that a run has finished, and forgets the items that are gone (D4). In one step: once a
/// run has ended another may have begun, which trusts what it sees in the ledger.
pub(crate) fn finish_run(tx: &Transaction<'_>, run: RunId, now_ms: u64) -> rusqlite::Result<()> {
    if end_run(tx, run, now_ms)? { forget_unmet(tx, run) } else { Ok(()) }
}

fn forget_unmet(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    tx.execute(
        concat!(
            "DELETE FROM scan_occurrences WHERE (scope, key) IN (
                 SELECT scope, key FROM scan_ledger WHERE scope = ",
            scope_of_run!(),
            " AND run < ?1)"
        ),
        [run.as_raw() as i64],
    )?;
    tx.execute(
        concat!("DELETE FROM scan_ledger WHERE scope = ", scope_of_run!(), " AND run < ?1"),
        [run.as_raw() as i64],
    )
    .map(drop)
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

pub(crate) fn newest_run(tx: &Transaction<'_>) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT max(run) FROM scan_runs";
    let run: Option<i64> = tx.query_row(sql, [], |row| row.get(0))?;
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

/// What the ledger says of a page's entries, in their order.
pub(crate) fn find_items(
    tx: &Transaction<'_>,
    scope: Scope,
    page: &Page,
    found: &mut Vec<Option<LedgerRow>>,
) -> rusqlite::Result<()> {
    found.clear();
    let key_at = |index| page.get(index).map(|entry| entry.key);
    let (Some(first), Some(last)) = (key_at(0), key_at(page.len().saturating_sub(1))) else {
        return Ok(());
    };
    // One walk along the table, beside the keys: a look-up for each would cost several times that.
    let mut statement = tx.prepare_cached(
        "SELECT key, version, run, failed IS NOT NULL FROM scan_ledger
         WHERE scope = ?1 AND key BETWEEN ?2 AND ?3 ORDER BY key",
    )?;
    let mut rows = statement.query((scope.0, first, last))?;
    let mut row = rows.next()?;
    for PageEntry { key, .. } in page.iter() {
        while let Some(known) = row
            && known.get_ref(0)?.as_blob()? < key
        {
            row = rows.next()?;
        }
        found.push(match row {
            Some(known) if known.get_ref(0)?.as_blob()? == key => Some(LedgerRow {
                version: known.get(1)?,
                run: RunId::from_raw(known.get::<_, i64>(2)? as u64),
                failed: known.get(3)?,
            }),
            _ => None,
        });
    }
    Ok(())
}

/// Items of the ledger that a page, which goes on behind `after`, passes over; the first few.
pub(crate) fn find_unlisted(
    tx: &Transaction<'_>,
    scope: Scope,
    after: &[u8],
    page: &Page,
) -> rusqlite::Result<Vec<Vec<u8>>> {
    const MAX: usize = 1024;
    // Both ends bound the walk along the table: what all pages walk is the ledger once.
    let last = page.len().checked_sub(1).and_then(|last| page.get(last)).map(|entry| entry.key);
    let end = if page.is_last() { Some(END_KEY) } else { last };
    let Some(end) = end else { return Ok(Vec::new()) };
    let mut statement = tx.prepare_cached(
        "SELECT key FROM scan_ledger WHERE scope = ?1 AND key > ?2 AND key <= ?3 ORDER BY key",
    )?;
    let mut rows = statement.query((scope.0, after, end))?;
    let mut listed = page.iter().map(|entry| entry.key).peekable();
    let mut unlisted = Vec::new();
    while unlisted.len() < MAX
        && let Some(row) = rows.next()?
    {
        let key = row.get_ref(0)?.as_blob()?;
        while listed.next_if(|listed| *listed < key).is_some() {}
        if listed.peek().is_none_or(|listed| *listed != key) {
            unlisted.push(key.to_vec());
        }
    }
    Ok(unlisted)
}

/// Forgets an item that is gone, with what was found in it.
pub(crate) fn forget_item(tx: &Transaction<'_>, scope: Scope, key: &[u8]) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM scan_occurrences WHERE scope = ?1 AND key = ?2",
        "DELETE FROM scan_ledger WHERE scope = ?1 AND key = ?2",
    ] {
        tx.prepare_cached(sql)?.execute((scope.0, key))?;
    }
    Ok(())
}

/// An unchanged item counts in this run, too.
pub(crate) fn keep_item(
    tx: &Transaction<'_>,
    scope: Scope,
    key: &[u8],
    run: RunId,
) -> rusqlite::Result<()> {
    tx.prepare_cached("UPDATE scan_ledger SET run = ?3 WHERE scope = ?1 AND key = ?2")?
        .execute((scope.0, key, run.as_raw() as i64))
        .map(drop)
}

/// Replaces all that was known of an item, but for the first part of the same version (D2).
pub(crate) fn put_item(
    tx: &Transaction<'_>,
    scope: Scope,
    row: &ItemRow,
    run: RunId,
) -> rusqlite::Result<()> {
    let ItemRow { key, version, bytes, skipped, failed, occurrences, begun } = row;
    let values = (scope.0, key, version, *bytes as i64, skipped, failed, run.as_raw() as i64);
    let is_new = tx
        .prepare_cached(
            "INSERT INTO scan_ledger(scope, key, version, bytes, skipped, failed, run)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO NOTHING",
        )?
        .execute(values)?;
    if is_new == 0 {
        tx.prepare_cached(
            "UPDATE scan_ledger SET version = ?3, bytes = ?4, skipped = ?5, failed = ?6, run = ?7
             WHERE scope = ?1 AND key = ?2",
        )?
        .execute(values)?;
        if !begun {
            tx.prepare_cached("DELETE FROM scan_occurrences WHERE scope = ?1 AND key = ?2")?
                .execute((scope.0, key))?;
        }
    }
    for found in occurrences {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO scan_occurrences VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
        )?
        .execute((
            scope.0,
            key,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_database_of_the_first_version_knew_is_kept() {
        let mut database = rusqlite::Connection::open_in_memory().unwrap();
        database.execute_batch(COMPONENT.steps[0]).unwrap();
        let (policy, other_policy) = ([1u8; 32], [2u8; 32]);
        for (target, policy) in [("a", policy), ("b", policy), ("a", other_policy)] {
            let sql = "INSERT INTO scan_runs(target, policy, started_ms) VALUES (?1, ?2, 5)";
            database.execute(sql, (target.as_bytes(), policy)).unwrap();
        }
        for (item, policy, key, run) in
            [(7u8, policy, "k", 1), (8, policy, "k", 2), (7, other_policy, "k", 3)]
        {
            let sql = "INSERT INTO scan_ledger VALUES (?1, ?2, ?3, ?4, 10, NULL, NULL, ?5)";
            let version = [item, policy[0]];
            database.execute(sql, ([item; 32], policy, key.as_bytes(), version, run)).unwrap();
            let sql = "INSERT INTO scan_occurrences VALUES
                (?1, ?2, ?3, ?3, ?3, 'r', ?3, 'high', 'high', '…', 1, 2, 3, 4)";
            database.execute(sql, ([item; 32], policy, version)).unwrap();
        }
        database.execute_batch(COMPONENT.steps[1]).unwrap();

        let tx = database.transaction().unwrap();
        for (target, policy, item) in [("a", policy, 7), ("b", policy, 8), ("a", other_policy, 7)] {
            let scope = scope(&tx, target.as_bytes(), PolicyHash::from_bytes(policy)).unwrap();
            for table in ["scan_ledger", "scan_occurrences"] {
                let column = if table == "scan_ledger" { "version" } else { "occurrence" };
                let sql = format!("SELECT {column} FROM {table} WHERE scope = ?1 AND key = ?2");
                let kept: Vec<Vec<u8>> = tx
                    .prepare(&sql)
                    .unwrap()
                    .query_map((scope.0, &b"k"[..]), |row| row.get(0))
                    .unwrap()
                    .collect::<Result<_, _>>()
                    .unwrap();
                assert_eq!(kept, [[item, policy[0]]], "{table} of {target}");
            }
        }
    }

    fn row(key: &str, occurrences: usize) -> ItemRow {
        let occurrence = |number| OccurrenceRow {
            occurrence: OccurrenceId::from_bytes([number as u8 + 1; 32]),
            finding: FindingId::from_bytes([9; 32]),
            secret: SecretHash::from_bytes([9; 32]),
            rule: "r".to_owned(),
            fingerprint: RuleFingerprint::from_bytes([9; 32]),
            severity: "high".to_owned(),
            confidence: "high".to_owned(),
            redacted: "…".to_owned(),
            start: 1,
            length: 2,
            line: 3,
            column: 4,
        };
        ItemRow {
            key: key.as_bytes().to_vec(),
            version: b"v".to_vec(),
            bytes: 10,
            skipped: None,
            failed: None,
            occurrences: (0..occurrences).map(occurrence).collect(),
            begun: false,
        }
    }

    fn count(tx: &Transaction<'_>, table: &str) -> i64 {
        tx.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn what_a_finished_run_did_not_meet_is_forgotten_in_its_scope_alone() {
        let mut database = rusqlite::Connection::open_in_memory().unwrap();
        COMPONENT.steps.iter().for_each(|step| database.execute_batch(step).unwrap());
        let tx = database.transaction().unwrap();
        let policy = PolicyHash::from_bytes([1; 32]);
        let open = |target: &[u8]| {
            let scope = scope(&tx, target, policy).unwrap();
            let (run, _) = open_run(&tx, target, policy, 5, false).unwrap();
            (scope, run)
        };
        let (other_scope, other_run) = open(b"other");
        put_item(&tx, other_scope, &row("gone", 1), other_run).unwrap();
        let (scope, first) = open(b"target");
        put_item(&tx, scope, &row("gone", 2), first).unwrap();
        put_item(&tx, scope, &row("there", 1), first).unwrap();
        finish_run(&tx, first, 6).unwrap();
        assert_eq!((count(&tx, "scan_ledger"), count(&tx, "scan_occurrences")), (3, 4));

        let (_, second) = open(b"target");
        keep_item(&tx, scope, b"there", second).unwrap();
        finish_run(&tx, second, 7).unwrap();
        assert_eq!((count(&tx, "scan_ledger"), count(&tx, "scan_occurrences")), (2, 2));
        assert_eq!(Totals::kept(&tx, first).unwrap().findings, 3);
        assert_eq!(Totals::kept(&tx, second).unwrap().findings, 1);
        assert_eq!(Totals::count(&tx, other_run).unwrap().findings, 1);
    }

    /// Who finds the end written down must not forget: another run may have begun since.
    #[test]
    fn only_who_writes_the_end_down_forgets_what_was_not_met() {
        let mut database = rusqlite::Connection::open_in_memory().unwrap();
        for step in COMPONENT.steps {
            database.execute_batch(step).unwrap();
        }
        let tx = database.transaction().unwrap();
        let policy = PolicyHash::from_bytes([1; 32]);
        let open = || open_run(&tx, b"target", policy, 5, false).unwrap().0;
        let scope = scope(&tx, b"target", policy).unwrap();
        let rows = || tx.query_row("SELECT count(*) FROM scan_ledger", [], |row| row.get(0));
        let first = open();
        let row = ItemRow {
            key: b"k".to_vec(),
            version: b"v".to_vec(),
            bytes: 1,
            skipped: None,
            failed: None,
            occurrences: Vec::new(),
            begun: false,
        };
        put_item(&tx, scope, &row, first).unwrap();
        assert!(join_run(&tx, first).unwrap());
        finish_run(&tx, first, 6).unwrap();
        assert!(!join_run(&tx, first).unwrap(), "nobody joins a run that has ended");
        let second = open();
        assert!(end_run(&tx, second, 7).unwrap());
        finish_run(&tx, second, 8).unwrap();
        assert_eq!(rows(), Ok(1_i64));
        finish_run(&tx, open(), 9).unwrap();
        assert_eq!(rows(), Ok(0));
    }

    #[test]
    fn what_a_page_passes_over_is_what_lies_between_its_entries_and_no_further() {
        let mut database = rusqlite::Connection::open_in_memory().unwrap();
        for step in COMPONENT.steps {
            database.execute_batch(step).unwrap();
        }
        let tx = database.transaction().unwrap();
        let policy = PolicyHash::from_bytes([1; 32]);
        let other = scope(&tx, b"other", policy).unwrap();
        let scope = scope(&tx, b"target", policy).unwrap();
        for (scope, keys) in [(scope, "abcdefgh"), (other, "ceg")] {
            for key in keys.bytes() {
                let sql = "INSERT INTO scan_ledger VALUES (?1, ?2, x'00', 0, NULL, NULL, 1)";
                tx.execute(sql, (scope.0, [key])).unwrap();
            }
        }
        let unlisted = |after: &str, keys: &str, is_last| {
            let mut page = Page::new();
            for key in keys.bytes() {
                page.push(PageEntry { key: &[key], version: b"", size: 0, skip: None });
            }
            page.finish(is_last, None);
            let keys = find_unlisted(&tx, scope, after.as_bytes(), &page).unwrap();
            String::from_utf8(keys.concat()).unwrap()
        };
        assert_eq!(unlisted("\0", "bd", false), "ac");
        assert_eq!(unlisted("d", "fg", false), "e");
        assert_eq!(unlisted("d", "fz", true), "egh");
        assert_eq!(unlisted("d", "efgh", true), "");
        assert_eq!(unlisted("b", "", true), "cdefgh");
        assert_eq!(unlisted("b", "", false), "");
        forget_item(&tx, scope, b"e").unwrap();
        assert_eq!(unlisted("d", "", true), "fgh");
    }
}
