//! What was found, and where.

use std::collections::HashMap;
use std::sync::Arc;

use gossip_contracts::connector::Provenance;
use gossip_contracts::identity::{FindingId, OccurrenceId, RuleFingerprint, RunId, SecretHash};
use gossip_coordination_sqlite::rusqlite::{self, Transaction, params};

use crate::runs::Scope;

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
    pub(crate) silenced: Option<Silence>,
    pub(crate) provenance: Option<Arc<Provenance>>,
}

/// Writes down what was found in an item, and which run saw each copy of a secret first.
pub(crate) fn put_all(
    tx: &Transaction<'_>,
    scope: Scope,
    key: &[u8],
    run: RunId,
    found: &[OccurrenceRow],
) -> rusqlite::Result<()> {
    // As in most items: even a statement from the cache costs a microsecond.
    if found.is_empty() {
        return Ok(());
    }
    found.iter().try_for_each(|found| found.put(tx, scope, key))?;
    // What is silenced was not reported: when it is, it is new.
    let mut found: Vec<_> = found.iter().filter(|found| found.silenced.is_none()).collect();
    found.sort_by_key(|found| found.start);
    let mut copies = HashMap::new();
    let mut statement =
        tx.prepare_cached("INSERT INTO scan_seen VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?;
    for row in found {
        let inner = row.inner.as_deref().unwrap_or_default();
        let copy = copies.entry((row.finding.as_bytes(), inner)).or_insert(0_i64);
        *copy += 1;
        statement.execute((row.finding.as_bytes(), inner, *copy, run.as_raw() as i64))?;
    }
    Ok(())
}

impl OccurrenceRow {
    fn put(&self, tx: &Transaction<'_>, scope: Scope, key: &[u8]) -> rusqlite::Result<()> {
        let provenance = self.provenance.as_ref();
        tx.prepare_cached(
            "INSERT OR REPLACE INTO scan_occurrences(
                 scope, key, occurrence, finding, secret, rule, fingerprint, severity, confidence,
                 redacted, start, length, line, column, end_line, end_column, description, reason,
                 before, after, silenced, commit_id, author, date_ms, commit_order, path, inner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27)",
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
            self.silenced.map_or(0, |silence| silence as u8),
            provenance.map(|provenance| &provenance.commit),
            provenance.map(|provenance| &provenance.author),
            provenance.map(|provenance| provenance.date_ms as i64),
            provenance.map(|provenance| provenance.order as i64),
            self.path,
            self.inner,
        ])
        .map(drop)
    }
}

/// Why something that was found is no finding of its run. The numbers are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Silence {
    /// A configuration that came with the scanned tree allows it.
    LocalConfig = 1,
    /// What stood in the place of the item before has it, too, and the run is of what is new.
    Before = 2,
    /// A comment in its line allows it.
    Comment = 3,
}

impl Silence {
    pub(crate) fn from_column(number: i64) -> Option<Self> {
        let all = [Self::LocalConfig, Self::Before, Self::Comment];
        all.into_iter().find(|silence| *silence as i64 == number)
    }
}

/// Forgets what was found in an item.
pub(crate) fn forget_item(tx: &Transaction<'_>, scope: Scope, key: &[u8]) -> rusqlite::Result<()> {
    tx.prepare_cached("DELETE FROM scan_occurrences WHERE scope = ?1 AND key = ?2")?
        .execute((scope.0, key))
        .map(drop)
}
