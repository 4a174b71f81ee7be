//! What was found, and where.

use std::fmt;
use std::sync::Arc;

use gossip_contracts::connector::Provenance;
use gossip_contracts::identity::{FindingId, OccurrenceId, RuleFingerprint, RunId, SecretHash};
use gossip_coordination_sqlite::rusqlite::types::ValueRef;
use gossip_coordination_sqlite::rusqlite::{self, Row, Transaction, params};

use crate::runs::Scope;
use crate::schema::scope_of_run;

/// A secret at a place.
pub(crate) struct OccurrenceRow {
    pub(crate) occurrence: OccurrenceId,
    pub(crate) finding: FindingId,
    /// What the item is called, where that is not its key.
    pub(crate) path: Option<Vec<u8>>,
    /// Of a file in an archive: where there.
    pub(crate) inner: Option<Vec<u8>>,
    pub(crate) secret: SecretHash,
    pub(crate) rule: String,
    pub(crate) fingerprint: RuleFingerprint,
    pub(crate) description: String,
    pub(crate) severity: String,
    pub(crate) confidence: String,
    pub(crate) reason: &'static str,
    pub(crate) redacted: String,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
    pub(crate) end_line: u64,
    pub(crate) end_column: u64,
    /// What stands beside it in its line, masked.
    pub(crate) before: String,
    pub(crate) after: String,
    pub(crate) is_silenced: bool,
    pub(crate) provenance: Option<Arc<Provenance>>,
}

impl OccurrenceRow {
    pub(crate) fn put(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        key: &[u8],
        run: RunId,
    ) -> rusqlite::Result<()> {
        let provenance = self.provenance.as_ref();
        tx.prepare_cached(
            "INSERT OR REPLACE INTO scan_occurrences(
                 scope, key, occurrence, finding, secret, rule, fingerprint, severity, confidence,
                 redacted, start, length, line, column, end_line, end_column, description, reason,
                 before, after, silenced, commit_id, author, date_ms, path, inner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26)",
        )?
        .execute(params![
            scope.0,
            key,
            self.occurrence.as_bytes(),
            self.finding.as_bytes(),
            self.secret.as_bytes(),
            self.rule,
            self.fingerprint.as_bytes(),
            self.severity,
            self.confidence,
            self.redacted,
            self.start as i64,
            self.length as i64,
            self.line as i64,
            self.column as i64,
            self.end_line as i64,
            self.end_column as i64,
            self.description,
            self.reason,
            self.before,
            self.after,
            self.is_silenced,
            provenance.map(|provenance| &provenance.commit),
            provenance.map(|provenance| &provenance.author),
            provenance.map(|provenance| provenance.date_ms as i64),
            self.path,
            self.inner,
        ])?;
        tx.prepare_cached("INSERT INTO scan_seen VALUES (?1, ?2) ON CONFLICT DO NOTHING")?
            .execute((self.finding.as_bytes(), run.as_raw() as i64))
            .map(drop)
    }
}

/// Forgets what was found in an item.
pub(crate) fn forget_item(tx: &Transaction<'_>, scope: Scope, key: &[u8]) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM scan_occurrences WHERE scope = ?1 AND key = ?2")?
        .execute((scope.0, key))
        .map(drop)
}

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
    /// A configuration that came with the scanned tree allows it.
    pub is_silenced: bool,
    /// The run that saw it first.
    pub first_seen: RunId,
    /// Who brought it in, if the source knows.
    pub provenance: Option<Provenance>,
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

/// What a run found, with what newer runs of the same scope know of the same items: by path, what
/// is in the work tree before the versions of a history, the oldest of these first. An item belongs to
/// the newest run that covered it, so these are disjoint.
pub(crate) fn each_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    mut each: impl FnMut(&ReportedFinding) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    let mut statement = tx.prepare(concat!(
        "SELECT lower(hex(o.finding)), o.rule, o.severity, o.confidence, o.key, o.start,
                o.length, o.line, o.column, o.redacted, o.end_line, o.end_column, o.description,
                o.reason, o.before, o.after, o.silenced, o.commit_id, o.author, o.date_ms,
                l.other_paths, ifnull(s.run, l.run), ifnull(o.path, o.key), o.inner,
                l.more_paths
         FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         LEFT JOIN scan_seen s USING (finding)
         WHERE o.scope = ",
        scope_of_run!(),
        " AND l.run >= ?1 ORDER BY ifnull(o.path, o.key), o.inner, o.date_ms, o.commit_id, o.key,
                                   o.start, o.rule"
    ))?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        if let Err(error) = each(&reported(row)?) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

fn reported(row: &Row<'_>) -> rusqlite::Result<ReportedFinding> {
    let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
    Ok(ReportedFinding {
        finding: row.get(0)?,
        rule: row.get(1)?,
        severity: row.get(2)?,
        confidence: row.get(3)?,
        key: row.get(4)?,
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
        is_silenced: row.get(16)?,
        provenance: provenance(row)?,
        first_seen: RunId::from_raw(number(21)?),
        path: with_inner(row.get(22)?, row)?,
        is_inside: row.get_ref(23)? != ValueRef::Null,
    })
}

fn provenance(row: &Row<'_>) -> rusqlite::Result<Option<Provenance>> {
    let Some(commit) = row.get(17)? else { return Ok(None) };
    let paths: Vec<u8> = row.get::<_, Option<_>>(20)?.unwrap_or_default();
    let mut other_paths = Vec::new();
    for path in paths.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        other_paths.push(with_inner(path.to_vec(), row)?);
    }
    let date_ms = row.get::<_, i64>(19)? as u64;
    let more_paths = row.get::<_, i64>(24)? as u64;
    Ok(Some(Provenance { commit, author: row.get(18)?, date_ms, other_paths, more_paths }))
}

/// The path of an item, and of a file in it if that is where the finding is.
fn with_inner(mut path: Vec<u8>, row: &Row<'_>) -> rusqlite::Result<Vec<u8>> {
    if let Some(inner) = row.get_ref(23)?.as_blob_or_null()? {
        path.push(b'!');
        path.extend_from_slice(inner);
    }
    Ok(path)
}
