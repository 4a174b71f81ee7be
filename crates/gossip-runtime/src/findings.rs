//! What was found, and where.

use std::fmt;

use gossip_contracts::identity::{FindingId, OccurrenceId, RuleFingerprint, RunId, SecretHash};
use gossip_coordination_sqlite::rusqlite::types::ValueRef;
use gossip_coordination_sqlite::rusqlite::{self, Row, Transaction};

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
    pub(crate) severity: String,
    pub(crate) confidence: String,
    pub(crate) redacted: String,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl OccurrenceRow {
    pub(crate) fn put(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        key: &[u8],
    ) -> rusqlite::Result<()> {
        tx.prepare_cached(
            "INSERT OR REPLACE INTO scan_occurrences VALUES
             (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        )?
        .execute((
            scope.0,
            key,
            self.occurrence.as_bytes(),
            self.finding.as_bytes(),
            self.secret.as_bytes(),
            &self.rule,
            self.fingerprint.as_bytes(),
            &self.severity,
            &self.confidence,
            &self.redacted,
            self.start as i64,
            self.length as i64,
            self.line as i64,
            self.column as i64,
            &self.path,
            &self.inner,
        ))
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
pub struct ReportedFinding {
    /// The finding, in hexadecimal: the same in every scan that sees this secret in this item.
    pub finding: String,
    /// The rule that found it.
    pub rule: String,
    /// How bad.
    pub severity: String,
    /// How sure.
    pub confidence: String,
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
    /// The column, from 1.
    pub column: u64,
    /// What may be shown of it.
    pub redacted: String,
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

/// What a run found, with what newer runs of the same scope know of the same items, in key order.
/// An item belongs to the newest run that covered it, so these are disjoint.
pub(crate) fn each_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    mut each: impl FnMut(&ReportedFinding) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    let mut statement = tx.prepare(concat!(
        "SELECT lower(hex(o.finding)), o.rule, o.severity, o.confidence, o.key, o.start,
                o.length, o.line, o.column, o.redacted, ifnull(o.path, o.key), o.inner
         FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         WHERE o.scope = ",
        scope_of_run!(),
        " AND l.run >= ?1 ORDER BY o.key, o.inner, o.start, o.rule"
    ))?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        let found = ReportedFinding {
            finding: row.get(0)?,
            rule: row.get(1)?,
            severity: row.get(2)?,
            confidence: row.get(3)?,
            key: row.get(4)?,
            start: row.get::<_, i64>(5)? as u64,
            length: row.get::<_, i64>(6)? as u64,
            line: row.get::<_, i64>(7)? as u64,
            column: row.get::<_, i64>(8)? as u64,
            redacted: row.get(9)?,
            path: path_of(row)?,
            is_inside: row.get_ref(11)? != ValueRef::Null,
        };
        if let Err(error) = each(&found) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

fn path_of(row: &Row<'_>) -> rusqlite::Result<Vec<u8>> {
    let mut path: Vec<u8> = row.get(10)?;
    if let Some(inner) = row.get_ref(11)?.as_blob_or_null()? {
        path.push(b'!');
        path.extend_from_slice(inner);
    }
    Ok(path)
}
