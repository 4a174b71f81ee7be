//! What was found, as it is reported: a secret once, however many versions of its file have it.
//!
//! A history has a file in many versions, and a secret is in most of those that came after it. People
//! want to know of it once: what brought it in, and in how many versions it is. So the occurrences of one
//! secret by one rule at one path, in all versions and in the work tree, are one finding; the second copy of
//! a secret in a file is another. The database keeps every version.
//!
//! - V1: what stands for a finding is its place in the work tree, or else in its oldest version. Versions
//!   are in the order of their commits' dates, and parents before their children: it does not depend on how
//!   a repository is packed.
//! - V2: what has no history is never put together: two items of one name in two buckets are two.
//! - V3: memory does not grow with the number of findings: SQLite sorts and groups them, on disk.

use std::fmt;

use gossip_contracts::connector::Provenance;
use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::types::ValueRef;
use gossip_coordination_sqlite::rusqlite::{self, OptionalExtension, Row, Transaction};

use crate::findings::Silence;
use crate::schema::scope_of_run;

/// A secret at a place, as it may be shown.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedFinding {
    /// The finding, in hexadecimal: the same in every scan of this state directory that sees this
    /// secret in this item.
    pub finding: String,
    /// The rule that found it.
    pub rule: String,
    /// What the rule finds, in words.
    pub description: String,
    /// How bad.
    pub severity: String,
    /// How sure.
    pub confidence: String,
    /// What spoke for it: a [`gossip_engine::Reason`].
    pub reason: String,
    /// The item's key.
    pub key: Vec<u8>,
    /// What to call the place: the key, unless the source has a better name for it, and for a file
    /// in an archive its path there after a `!`.
    pub path: Vec<u8>,
    /// Whether it is in a file in an archive, so that offsets are not the item's.
    pub is_inside: bool,
    /// Offset of its first byte.
    pub start: u64,
    /// Its length in bytes.
    pub length: u64,
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The line of its end.
    pub end_line: u64,
    /// The column just behind it.
    pub end_column: u64,
    /// What may be shown of it.
    pub redacted: String,
    /// What stands before it in its line, masked.
    pub before: String,
    /// What stands behind it in its line, masked.
    pub after: String,
    /// Why it is no finding, if it is none.
    pub silenced: Option<Silence>,
    /// The run that saw it first, in whichever version.
    pub first_seen: RunId,
    /// Who brought it in, if the source knows: of several versions, the oldest.
    pub provenance: Option<Provenance>,
    /// The line in the version that brought it in.
    pub first_line: u64,
    /// How many versions of a history have it at this path.
    pub versions: u64,
    /// Whether the work tree has it at this path, where that is known.
    pub is_in_work_tree: Option<bool>,
    /// Whether it stands for all versions. Those that it stands for come by themselves, too: they have
    /// fingerprints.
    pub is_first: bool,
}

/// A key and a path may be private; the rest may be shown.
impl fmt::Debug for ReportedFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReportedFinding")
            .field("rule", &self.rule)
            .field("key", &format_args!("[{} bytes]", self.key.len()))
            .field("start", &self.start)
            .field("line", &self.line)
            .finish_non_exhaustive()
    }
}

/// How versions of a file are reported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Each is a finding by itself.
    pub is_each_reported: bool,
    /// What comes before a path in the key of the file that the work tree has there, if the work tree is
    /// scanned with the history.
    pub work_tree: Option<Vec<u8>>,
}

/// What makes occurrences one finding, in SQL. The copies of a secret in one version are numbered.
const SAME: &str = "path, inner, rule, secret, silenced, copy";

/// The occurrences of a scope's items that belong to the run `?1`, or to one after it, in SQL.
fn occurrences(runs: &str) -> String {
    format!(
        "SELECT o.key, o.occurrence, o.finding, o.inner, o.rule, o.secret, o.silenced, o.commit_id,
                o.date_ms, o.commit_order, l.run, ifnull(o.path, o.key) AS path,
                row_number() OVER (PARTITION BY o.key, o.inner, o.rule, o.secret, o.silenced
                                   ORDER BY o.start) AS copy
         FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         WHERE o.scope = {} AND l.run {runs} ?1",
        scope_of_run!()
    )
}

/// How many findings a run has. What is silenced is not among them.
pub(crate) fn count(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<u64> {
    let sql = format!(
        "SELECT ifnull(sum(iif(versions > 0, 1, number)), 0) FROM (
             SELECT count(commit_id) AS versions, count(*) AS number FROM ({}) WHERE NOT silenced
             GROUP BY {SAME})",
        occurrences("=")
    );
    tx.prepare_cached(&sql)?
        .query_row([run.as_raw() as i64], |row| Ok(row.get::<_, i64>(0)? as u64))
}

/// What a run found, with what newer runs of the same scope know of the same items: by path, what
/// is in the work tree before the versions of a history, the oldest of these first. An item belongs to
/// the newest run that covered it, so these are disjoint.
pub(crate) fn each_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    versions: &Versions,
    mut each: impl FnMut(&ReportedFinding) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    // V3. The coordinator's connections keep what they sort in memory, which is little.
    tx.pragma_update(None, "temp_store", "file")?;
    let is_grouped = !versions.is_each_reported && has_history(tx, run)?;
    let (members, grouped) = if is_grouped {
        group(tx, run)?;
        ("temp.scan_members m CROSS JOIN", "m.place, m.versions, m.seen, m.number")
    } else {
        ("", "NULL, o.commit_id IS NOT NULL, NULL, 1")
    };
    let on = if is_grouped { "AND o.key = m.key AND o.occurrence = m.occurrence" } else { "" };
    let sql = format!(
        "SELECT lower(hex(o.finding)), o.rule, o.severity, o.confidence, o.key, o.start,
                o.length, o.line, o.column, o.redacted, o.end_line, o.end_column, o.description,
                o.reason, o.before, o.after, o.silenced, o.commit_id, o.author, o.date_ms,
                l.other_paths, ifnull(s.run, l.run), ifnull(o.path, o.key), o.inner,
                l.more_paths, {grouped}
         FROM {members} scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         LEFT JOIN scan_seen s USING (finding)
         WHERE o.scope = {} {on} AND l.run >= ?1
         ORDER BY ifnull(o.path, o.key), o.inner, o.date_ms, o.commit_order, o.key, o.start, o.rule",
        scope_of_run!()
    );
    let work_tree = match &versions.work_tree {
        Some(prefix) if is_complete(tx, run)? => Some(prefix),
        _ => None,
    };
    let mut statement = tx.prepare(&sql)?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        let mut found = reported(row)?;
        if found.is_first && is_grouped && found.versions > 0 {
            add_versions(tx, run, &mut found, row)?;
            let has_commit = row.get_ref(17)? != ValueRef::Null;
            let is_elsewhere =
                versions.work_tree.as_ref().is_some_and(|prefix| !found.key.starts_with(prefix));
            let is_tree = !has_commit && !is_elsewhere;
            found.is_in_work_tree = match work_tree {
                _ if is_tree => Some(true),
                Some(prefix) => lacks(tx, run, prefix, row)?.then_some(false),
                None => None,
            };
        }
        if let Err(error) = each(&found) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Whether something was found in a version of a history.
fn has_history(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    let sql = concat!(
        "SELECT EXISTS (SELECT 1 FROM scan_occurrences WHERE scope = ",
        scope_of_run!(),
        " AND commit_id IS NOT NULL)"
    );
    tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0))
}

/// Whether a run has ended and could read everything: what it did not meet is not there.
fn is_complete(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<bool> {
    let sql = "SELECT ended_ms IS NOT NULL AND NOT cancelled AND NOT EXISTS (
                   SELECT 1 FROM scan_totals t WHERE t.run = r.run AND what = 'failed')
               FROM scan_runs r WHERE run = ?1";
    Ok(tx.query_row(sql, [run.as_raw() as i64], |row| row.get(0)).optional()?.unwrap_or(false))
}

/// Puts occurrences together, in a table that ends with the transaction.
fn group(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    tx.execute_batch(
        "DROP TABLE IF EXISTS temp.scan_members;
         CREATE TEMP TABLE scan_members(
             place INTEGER NOT NULL,
             number INTEGER NOT NULL,
             versions INTEGER NOT NULL,
             seen INTEGER NOT NULL,
             key BLOB NOT NULL,
             occurrence BLOB NOT NULL,
             PRIMARY KEY(place, number)
         ) STRICT, WITHOUT ROWID;",
    )?;
    // V1: the work tree has no date, and NULL comes first.
    let sql = format!(
        "INSERT INTO temp.scan_members
         SELECT dense_rank() OVER (ORDER BY {SAME}),
                row_number() OVER (PARTITION BY {SAME} ORDER BY date_ms, commit_order, key),
                count(commit_id) OVER (PARTITION BY {SAME}),
                min(ifnull(s.run, o.run)) OVER (PARTITION BY {SAME}),
                key, occurrence
         FROM ({}) o LEFT JOIN scan_seen s USING (finding)",
        occurrences(">=")
    );
    tx.execute(&sql, [run.as_raw() as i64]).map(drop)
}

/// Adds what its versions say: who brought it in, and all other paths.
fn add_versions(
    tx: &Transaction<'_>,
    run: RunId,
    found: &mut ReportedFinding,
    row: &Row<'_>,
) -> rusqlite::Result<()> {
    let place: i64 = row.get(25)?;
    let mut statement = tx.prepare_cached(concat!(
        "SELECT o.line, o.commit_id, o.author, o.date_ms, l.other_paths, l.more_paths, o.inner
         FROM temp.scan_members m CROSS JOIN scan_occurrences o CROSS JOIN scan_ledger l
         USING (scope, key)
         WHERE o.scope = ",
        scope_of_run!(),
        " AND m.place = ?2 AND o.key = m.key AND o.occurrence = m.occurrence
          AND o.commit_id IS NOT NULL ORDER BY m.number"
    ))?;
    let mut rows = statement.query((run.as_raw() as i64, place))?;
    let (mut first, mut bytes, mut all) = (None::<Provenance>, 0, 0);
    while let Some(version) = rows.next()? {
        let more = version.get::<_, i64>(5)? as u64;
        let paths = other_paths(version.get_ref(4)?, version.get_ref(6)?)?;
        all = all.max(paths.len() as u64 + more);
        if first.is_none() {
            found.first_line = version.get::<_, i64>(0)? as u64;
        }
        let first = match &mut first {
            Some(first) => first,
            none => none.insert(Provenance {
                commit: version.get(1)?,
                author: version.get(2)?,
                date_ms: version.get::<_, i64>(3)? as u64,
                ..Provenance::default()
            }),
        };
        for path in paths {
            bytes += path.len();
            let has_room = first.other_paths.len() < Provenance::OTHER_PATHS_MAX
                && bytes <= Provenance::OTHER_PATHS_BYTES_MAX;
            if has_room && path != found.path && !first.other_paths.contains(&path) {
                first.other_paths.push(path);
            }
        }
    }
    if let Some(first) = &mut first {
        first.more_paths = all.saturating_sub(first.other_paths.len() as u64);
    }
    found.provenance = first;
    Ok(())
}

/// Whether the work tree was scanned and does not have what a row of a version has: its file is there
/// and was read, or is not there.
fn lacks(tx: &Transaction<'_>, run: RunId, prefix: &[u8], row: &Row<'_>) -> rusqlite::Result<bool> {
    let key = [prefix, row.get_ref(22)?.as_blob()?].concat();
    let sql = concat!(
        "SELECT coalesce(skipped, failed, inside) IS NULL FROM scan_ledger WHERE scope = ",
        scope_of_run!(),
        " AND key = ?2"
    );
    let is_read = tx.prepare_cached(sql)?.query_row((run.as_raw() as i64, key), |row| row.get(0));
    Ok(is_read.optional()?.unwrap_or(true))
}

fn reported(row: &Row<'_>) -> rusqlite::Result<ReportedFinding> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
    let (line, versions) = (number(7)?, number(26)?);
    // V2: what has no versions stands for itself.
    let is_first = number(28)? == 1 || versions == 0;
    let seen = row.get::<_, Option<i64>>(27)?.filter(|_| versions > 0);
    Ok(ReportedFinding {
        finding: row.get(0)?,
        rule: row.get(1)?,
        severity: row.get(2)?,
        confidence: row.get(3)?,
        key: row.get(4)?,
        start: number(5)?,
        length: number(6)?,
        line,
        column: number(8)?,
        redacted: row.get(9)?,
        end_line: number(10)?,
        end_column: number(11)?,
        description: row.get(12)?,
        reason: row.get(13)?,
        before: row.get(14)?,
        after: row.get(15)?,
        silenced: Silence::from_column(row.get(16)?),
        provenance: provenance(row)?,
        first_seen: RunId::from_raw(seen.map_or(number(21)?, |seen| seen as u64)),
        path: with_inner(row.get(22)?, row.get_ref(23)?)?,
        is_inside: row.get_ref(23)? != ValueRef::Null,
        first_line: line,
        versions,
        is_in_work_tree: None,
        is_first,
    })
}

fn provenance(row: &Row<'_>) -> rusqlite::Result<Option<Provenance>> {
    let Some(commit) = row.get(17)? else { return Ok(None) };
    let other_paths = other_paths(row.get_ref(20)?, row.get_ref(23)?)?;
    let date_ms = row.get::<_, i64>(19)? as u64;
    let more_paths = row.get::<_, i64>(24)? as u64;
    // Findings come in their order.
    let order = 0;
    Ok(Some(Provenance { commit, author: row.get(18)?, date_ms, order, other_paths, more_paths }))
}

/// The paths in a column of other paths.
fn other_paths(column: ValueRef<'_>, inner: ValueRef<'_>) -> rusqlite::Result<Vec<Vec<u8>>> {
    let paths = column.as_blob_or_null()?.unwrap_or_default();
    let paths = paths.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    paths.map(|path| with_inner(path.to_vec(), inner)).collect()
}

/// The path of an item, and of a file in it if that is where the finding is.
fn with_inner(mut path: Vec<u8>, inner: ValueRef<'_>) -> rusqlite::Result<Vec<u8>> {
    if let Some(inner) = inner.as_blob_or_null()? {
        path.push(b'!');
        path.extend_from_slice(inner);
    }
    Ok(path)
}
