//! What was found, as it is reported: a secret once, however many versions of its file have it.
//!
//! A history has a file in many versions, and a secret is in most of those that came after it. People
//! want to know of it once: what brought it in, and in how many versions it is. So the occurrences of one
//! secret by one rule at one path, in all versions and in the work tree, are one finding; the second copy of
//! a secret in a file is another. The database keeps every version.
//!
//! - V1: what stands for a finding is its place in the work tree, or else in its oldest version. Versions
//!   are in the order of their commits' dates, but never before those of their parents.
//! - V2: what has no history is never put together: two items of one name in two buckets are two.
//! - V3: memory does not grow with the number of findings: SQLite sorts and groups them, on disk.
//! - V4: a caller judges every occurrence by itself, and a finding is made of those that it wants reported.
//!   So a finding is reported if and only if one of its versions would be by itself.
//! - V5: when a finding was first seen is a matter of all its versions, however they are reported.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;

use gossip_contracts::connector::Provenance;
use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::types::ValueRef;
use gossip_coordination_sqlite::rusqlite::{self, OptionalExtension, Row, Transaction, params};

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
    /// Who brought in the version that is shown, if the source knows. The other paths are those of all
    /// versions that are reported with it.
    pub provenance: Option<Provenance>,
    /// How many versions of a history have it at this path.
    pub versions: u64,
    /// Of what is shown in the work tree: the oldest of its versions.
    pub oldest: Option<OldestVersion>,
    /// Whether it is shown in the work tree, which was scanned with its history.
    pub is_in_work_tree: bool,
}

/// The version that brought in what the work tree has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldestVersion {
    /// The line there.
    pub line: u64,
    /// Who brought it in, with the other paths of all versions.
    pub provenance: Provenance,
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
    /// What the keys of files in a work tree begin with, if it is scanned with its history.
    pub work_trees: Vec<Vec<u8>>,
}

/// What a caller says of one occurrence (V4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether it is reported.
    pub is_reported: bool,
    /// Its [fingerprint](crate::Fingerprints).
    pub fingerprint: String,
    /// What the caller wants to be told again.
    pub note: u32,
}

/// How many findings a run has, a secret in many versions being one. What is silenced is not among them.
pub(crate) fn count(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<u64> {
    let number = |row: &Row<'_>| Ok(row.get::<_, i64>(0)? as u64);
    let run = [run.as_raw() as i64];
    // This is done in the transaction that ends a run: what has no history is not sorted.
    let of_run = |columns: &str| {
        format!(
            "SELECT {columns} FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
             WHERE o.scope = {} AND l.run = ?1 AND NOT o.silenced",
            scope_of_run!()
        )
    };
    let (all, versions) = tx
        .prepare_cached(&of_run("count(*), count(o.commit_id)"))?
        .query_row(run, |row| Ok((number(row)?, row.get::<_, i64>(1)?)))?;
    if versions == 0 {
        return Ok(all);
    }
    sort_on_disk(tx)?;
    // A secret has as many copies as the version that has most of them.
    let sql = format!(
        "SELECT sum(iif(versions > 0, most, number)) FROM (
             SELECT sum(versions) AS versions, max(copies) AS most, sum(copies) AS number FROM (
                 SELECT path, inner, rule, secret, count(*) AS copies, count(commit_id) AS versions
                 FROM ({}) GROUP BY key, inner, rule, secret)
             GROUP BY path, inner, rule, secret)",
        of_run("o.key, o.inner, o.rule, o.secret, o.commit_id, ifnull(o.path, o.key) AS path")
    );
    tx.prepare_cached(&sql)?.query_row(run, number)
}

/// V3. The coordinator's connections keep what they sort in memory, which is little.
fn sort_on_disk(tx: &Transaction<'_>) -> rusqlite::Result<()> {
    tx.pragma_update(None, "temp_store", "file")?;
    // There are names of files in it, which are nowhere but in the state directory. The setting is one for
    // the whole process, and who changes it after the first sort is refused.
    let set: Option<String> =
        tx.pragma_query_value(None, "temp_store_directory", |row| row.get(0)).optional()?.flatten();
    let dir = tx.path().and_then(|path| Path::new(path).parent()?.to_str());
    match dir.filter(|_| set.is_none_or(|set| set.is_empty())) {
        Some(dir) => tx.pragma_update(None, "temp_store_directory", dir),
        None => Ok(()),
    }
}

/// What a run found, with what newer runs of the same scope know of the same items. An item belongs to
/// the newest run that covered it, so these are disjoint.
///
/// `judge` sees every occurrence, by path, what is in the work tree before the versions of a history, the
/// oldest of these first. `each` sees the findings that they make, in the order of what stands for them;
/// of one that is not reported, the first of its occurrences with its verdict.
pub(crate) fn each_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    versions: &Versions,
    mut judge: impl FnMut(&ReportedFinding) -> Verdict,
    mut each: impl FnMut(&ReportedFinding, &Verdict) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    sort_on_disk(tx)?;
    let has_history = has_history(tx, run)?;
    let mut members = Members { tx, number: 0, file: 0 };
    if has_history {
        members.create()?;
    }
    let sql = format!(
        "{} ORDER BY ifnull(o.path, o.key), o.inner, o.commit_order, o.key, o.start, o.rule",
        select_occurrences(">=")
    );
    let mut statement = tx.prepare(&sql)?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    let mut copies = Copies::default();
    let mut file = None;
    while let Some(row) = rows.next()? {
        let mut found = reported(row, versions)?;
        let copy = copies.next(row)?;
        if let Some(seen) = first_seen(tx, row, copy)? {
            found.first_seen = seen;
        }
        let verdict = judge(&found);
        if has_history {
            members.number += 1;
            let next = Some((row.get::<_, Vec<u8>>(22)?, row.get::<_, Option<Vec<u8>>>(23)?));
            if file != next {
                members.file += 1;
                file = next;
            }
            members.add(&found, row, copy, &verdict)?;
        } else if let Err(error) = each(&found, &verdict) {
            return Ok(Err(error));
        }
    }
    if has_history {
        return members.each(run, versions, each);
    }
    Ok(Ok(()))
}

/// Occurrences of a scope's items that belong to a run, in SQL, as [`reported`] reads them.
fn select_occurrences(runs: &str) -> String {
    format!(
        "SELECT o.finding, o.rule, o.severity, o.confidence, o.key, o.start, o.length, o.line, o.column,
                o.redacted, o.end_line, o.end_column, o.description, o.reason, o.before, o.after,
                o.silenced, o.commit_id, o.author, o.date_ms, l.other_paths, l.run,
                ifnull(o.path, o.key), o.inner, l.more_paths, o.secret, o.occurrence
         FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         WHERE o.scope = {} AND l.run {runs} ?1",
        scope_of_run!()
    )
}

/// Numbers the copies of a secret in one version of a file, which come in their order.
#[derive(Default)]
struct Copies {
    file: (Vec<u8>, Option<Vec<u8>>),
    seen: HashMap<(String, Vec<u8>, i64), i64>,
}

impl Copies {
    fn next(&mut self, row: &Row<'_>) -> rusqlite::Result<i64> {
        let file = (row.get(4)?, row.get(23)?);
        if self.file != file {
            *self = Self { file, seen: HashMap::new() };
        }
        let copy = self.seen.entry((row.get(1)?, row.get(25)?, row.get(16)?)).or_default();
        *copy += 1;
        Ok(*copy)
    }
}

/// The run that saw a copy of a secret in an item first, if that is known.
fn first_seen(tx: &Transaction<'_>, row: &Row<'_>, copy: i64) -> rusqlite::Result<Option<RunId>> {
    let sql = "SELECT run FROM scan_seen WHERE finding = ?1 AND inner = ?2 AND copy = ?3";
    let (finding, inner) = (row.get_ref(0)?.as_blob()?, row.get_ref(23)?.as_blob_or_null()?);
    let run = tx
        .prepare_cached(sql)?
        .query_row((finding, inner.unwrap_or_default(), copy), |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(run.map(|run| RunId::from_raw(run as u64)))
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

/// Levels of severity and confidence, in their order.
const LEVELS: [&str; 4] = ["low", "medium", "high", "critical"];

fn rank(level: &str) -> i64 {
    LEVELS.iter().position(|name| *name == level).unwrap_or(0) as i64
}

/// Judged occurrences, in a table of the connection.
struct Members<'t> {
    tx: &'t Transaction<'t>,
    /// Of the last one.
    number: i64,
    file: i64,
}

/// A finding, as its members make it.
struct Group {
    file: i64,
    what: Vec<u8>,
    /// What stands for it.
    shown: i64,
    versions: u64,
    oldest: Option<i64>,
    severity: i64,
    confidence: i64,
    seen: i64,
}

impl Members<'_> {
    fn create(&self) -> rusqlite::Result<()> {
        self.tx.execute_batch(
            "DROP TABLE IF EXISTS temp.scan_members;
             PRAGMA temp.cache_size = -16000;
             CREATE TEMP TABLE scan_members(
                 number INTEGER PRIMARY KEY,
                 file INTEGER NOT NULL,
                 what BLOB NOT NULL,
                 key BLOB NOT NULL,
                 occurrence BLOB NOT NULL,
                 fingerprint TEXT NOT NULL,
                 note INTEGER NOT NULL,
                 is_reported INTEGER NOT NULL,
                 is_version INTEGER NOT NULL,
                 severity INTEGER NOT NULL,
                 confidence INTEGER NOT NULL,
                 seen INTEGER NOT NULL
             ) STRICT;",
        )
    }

    /// Members of one file that are `what` are one finding.
    fn add(
        &self,
        found: &ReportedFinding,
        row: &Row<'_>,
        copy: i64,
        verdict: &Verdict,
    ) -> rusqlite::Result<()> {
        let is_version = found.versions > 0;
        // V2
        let alone = if is_version || found.is_in_work_tree { 0 } else { self.number };
        let secret = row.get_ref(25)?.as_blob()?;
        let silenced: i64 = row.get(16)?;
        let numbers = [silenced, copy, alone].map(i64::to_be_bytes).concat();
        let what = [found.rule.as_bytes(), &[0], secret, &numbers].concat();
        self.tx
            .prepare_cached(
                "INSERT INTO temp.scan_members
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?
            .execute(params![
                self.number,
                self.file,
                what,
                found.key,
                row.get_ref(26)?.as_blob()?,
                verdict.fingerprint,
                verdict.note,
                verdict.is_reported,
                is_version,
                rank(&found.severity),
                rank(&found.confidence),
                found.first_seen.as_raw() as i64,
            ])
            .map(drop)
    }

    fn each<E>(
        &self,
        run: RunId,
        versions: &Versions,
        mut each: impl FnMut(&ReportedFinding, &Verdict) -> Result<(), E>,
    ) -> rusqlite::Result<Result<(), E>> {
        // Once all are there: it is then sorted, and written from its beginning to its end.
        self.tx.execute_batch("CREATE INDEX temp.scan_members_what ON scan_members(file, what)")?;
        // V1: numbers are in that order.
        let sql = if versions.is_each_reported {
            "SELECT file, what, number, is_version, NULL, severity, confidence,
                    min(seen) OVER (PARTITION BY file, what)
             FROM temp.scan_members ORDER BY number"
        } else {
            "SELECT file, what, ifnull(min(iif(is_reported, number, NULL)), min(number)),
                    sum(is_reported AND is_version),
                    min(iif(is_reported AND is_version, number, NULL)),
                    max(iif(is_reported, severity, 0)), max(iif(is_reported, confidence, 0)),
                    min(seen)
             FROM temp.scan_members GROUP BY file, what ORDER BY 3"
        };
        let mut statement = self.tx.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let group = Group {
                file: row.get(0)?,
                what: row.get(1)?,
                shown: row.get(2)?,
                versions: row.get::<_, i64>(3)? as u64,
                oldest: row.get(4)?,
                severity: row.get(5)?,
                confidence: row.get(6)?,
                seen: row.get(7)?,
            };
            let (found, verdict) = self.finding(run, versions, &group)?;
            if let Err(error) = each(&found, &verdict) {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    fn finding(
        &self,
        run: RunId,
        versions: &Versions,
        group: &Group,
    ) -> rusqlite::Result<(ReportedFinding, Verdict)> {
        let (mut found, verdict) = self.member(run, versions, group.shown)?;
        found.first_seen = RunId::from_raw(group.seen as u64);
        if !verdict.is_reported {
            return Ok((found, verdict));
        }
        found.versions = group.versions;
        let level = |rank: i64| LEVELS[rank as usize % LEVELS.len()].to_owned();
        found.severity = level(group.severity);
        found.confidence = level(group.confidence);
        let Some(oldest) = group.oldest else { return Ok((found, verdict)) };
        if found.provenance.is_none() {
            let (oldest, _) = self.member(run, versions, oldest)?;
            let line = oldest.line;
            found.oldest = oldest.provenance.map(|provenance| OldestVersion { line, provenance });
        }
        if group.versions > 1
            && let Some(from) = found
                .provenance
                .as_mut()
                .or(found.oldest.as_mut().map(|oldest| &mut oldest.provenance))
        {
            self.add_paths(run, group, &found.path, from)?;
        }
        Ok((found, verdict))
    }

    fn member(
        &self,
        run: RunId,
        versions: &Versions,
        number: i64,
    ) -> rusqlite::Result<(ReportedFinding, Verdict)> {
        let sql = "SELECT key, occurrence, fingerprint, note, is_reported FROM temp.scan_members
                   WHERE number = ?1";
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut rows = statement.query([number])?;
        let row = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
        let verdict =
            Verdict { is_reported: row.get(4)?, fingerprint: row.get(2)?, note: row.get(3)? };
        let (key, occurrence) = (row.get_ref(0)?.as_blob()?, row.get_ref(1)?.as_blob()?);
        let sql = format!("{} AND o.key = ?2 AND o.occurrence = ?3", select_occurrences(">="));
        let mut statement = self.tx.prepare_cached(&sql)?;
        let found = statement
            .query_row((run.as_raw() as i64, key, occurrence), |row| reported(row, versions))?;
        Ok((found, verdict))
    }

    /// Adds the other paths of all versions. One that finds no room is counted each time.
    fn add_paths(
        &self,
        run: RunId,
        group: &Group,
        path: &[u8],
        from: &mut Provenance,
    ) -> rusqlite::Result<()> {
        let sql = concat!(
            "SELECT l.other_paths, l.more_paths, o.inner
             FROM temp.scan_members m CROSS JOIN scan_occurrences o CROSS JOIN scan_ledger l
             USING (scope, key)
             WHERE o.scope = ",
            scope_of_run!(),
            " AND m.file = ?2 AND m.what = ?3 AND m.is_reported AND m.is_version
              AND o.key = m.key AND o.occurrence = m.occurrence AND l.other_paths IS NOT NULL"
        );
        let mut statement = self.tx.prepare_cached(sql)?;
        let mut rows = statement.query((run.as_raw() as i64, group.file, &group.what))?;
        let mut bytes: usize = from.other_paths.iter().map(Vec::len).sum();
        while let Some(row) = rows.next()? {
            from.more_paths = from.more_paths.max(row.get::<_, i64>(1)? as u64);
            for other in other_paths(row.get_ref(0)?, row.get_ref(2)?)? {
                if other == path || from.other_paths.contains(&other) {
                    continue;
                }
                let has_room = from.other_paths.len() < Provenance::OTHER_PATHS_MAX
                    && bytes + other.len() <= Provenance::OTHER_PATHS_BYTES_MAX;
                if has_room {
                    bytes += other.len();
                    from.other_paths.push(other);
                } else {
                    from.more_paths = from.more_paths.saturating_add(1);
                }
            }
        }
        Ok(())
    }
}

fn reported(row: &Row<'_>, versions: &Versions) -> rusqlite::Result<ReportedFinding> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
    let key: Vec<u8> = row.get(4)?;
    let provenance = provenance(row)?;
    let is_version = provenance.is_some();
    let finding = row.get_ref(0)?.as_blob()?;
    Ok(ReportedFinding {
        finding: finding.iter().map(|byte| format!("{byte:02x}")).collect(),
        rule: row.get(1)?,
        severity: row.get(2)?,
        confidence: row.get(3)?,
        is_in_work_tree: !is_version
            && versions.work_trees.iter().any(|tree| key.starts_with(tree)),
        key,
        start: number(5)?,
        length: number(6)?,
        line: number(7)?,
        column: number(8)?,
        redacted: row.get(9)?,
        end_line: number(10)?,
        end_column: number(11)?,
        description: row.get(12)?,
        reason: row.get(13)?,
        before: row.get(14)?,
        after: row.get(15)?,
        silenced: Silence::from_column(row.get(16)?),
        provenance,
        first_seen: RunId::from_raw(number(21)?),
        path: with_inner(row.get(22)?, row.get_ref(23)?)?,
        is_inside: row.get_ref(23)? != ValueRef::Null,
        versions: u64::from(is_version),
        oldest: None,
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
