//! Which items were scanned, and in which version.
//!
//! - D1: a ledger row says that one version of an item was scanned under one policy, and its
//!   findings are in the same database: both were committed together, with the cursor.
//! - D2: an item has the occurrences of the version in its ledger row and no others. One that cannot be read
//!   has those that it had, and those of what could be read of it: that it cannot be read does not say
//!   that they are gone. What is below a directory that cannot be listed stays likewise. Where every run
//!   has keys of its own, an item that cannot be read takes over what an earlier run found in its version; and
//!   what lies below something that could not be listed stays under its old key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use gossip_contracts::connector::{KeyRange, Page, PageEntry, Provenance};
use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction, params};

use crate::findings::{self, OccurrenceRow};
use crate::reason::Reason;
use crate::runs::{self, Scope};
use crate::schema::scope_of_run;
use crate::totals::{Reasons, to_column};
use crate::transaction::Unwritten;

/// Items that one transaction forgets: others wait for it.
const FORGET_AT_ONCE: i64 = 1_000;

/// What a version in the table begins with: whether it is known for good, or only what was read.
const UNSETTLED: u8 = 0;
const SETTLED: u8 = 1;

/// The version that is known for good; empty if there is none.
fn settled_version(stored: &[u8]) -> &[u8] {
    match stored {
        [SETTLED, version @ ..] => version,
        _ => &[],
    }
}

/// What became of one item. No `Debug`: a key may be private.
pub(crate) struct ItemRow {
    pub(crate) key: Vec<u8>,
    /// What reports call it, where that is not its key. Committed of what is not scanned only.
    pub(crate) path: Option<Vec<u8>>,
    /// Of what could not be read: the version that was listed.
    pub(crate) unread: Option<Vec<u8>>,
    /// Empty if the bytes that were read cannot be named, so that they are read again next time.
    pub(crate) version: Vec<u8>,
    /// Equal versions are equal bytes; else they are read again, too.
    pub(crate) is_settled: bool,
    pub(crate) bytes: u64,
    pub(crate) skipped: Option<Reason>,
    pub(crate) failed: Option<Reason>,
    /// Of an archive: what inside of it was not scanned, beyond that.
    pub(crate) inside: Reasons,
    /// Who brought it in. Its other paths are committed of what has findings only.
    pub(crate) provenance: Option<Arc<Provenance>>,
    /// Those that are not committed yet.
    pub(crate) occurrences: Vec<OccurrenceRow>,
    /// Occurrences that are committed stay: earlier ones of this version, or all that is known of an item
    /// that cannot be read now.
    pub(crate) keeps_found: bool,
}

/// What the ledger says of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LedgerRow {
    pub(crate) version: Vec<u8>,
    pub(crate) run: RunId,
    pub(crate) bytes: u64,
    pub(crate) skipped: Option<Reason>,
    pub(crate) inside: Reasons,
    pub(crate) failed: bool,
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
        "SELECT key, version, run, bytes, skipped, failed IS NOT NULL, inside FROM scan_ledger
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
                version: settled_version(known.get_ref(1)?.as_blob()?).to_vec(),
                run: RunId::from_raw(known.get::<_, i64>(2)? as u64),
                bytes: known.get::<_, i64>(3)? as u64,
                skipped: known.get(4)?,
                failed: known.get(5)?,
                inside: Reasons::from_column(known.get_ref(6)?.as_blob_or_null()?)?,
            }),
            _ => None,
        });
    }
    Ok(())
}

/// How many items [`find_unlisted`] finds at most.
pub(crate) const UNLISTED_MAX: usize = 1024;

/// Items of the ledger behind `after` that a page, which goes on behind that or before it, passes over; the
/// first [`UNLISTED_MAX`]. `end` lies behind every key.
pub(crate) fn find_unlisted(
    tx: &Transaction<'_>,
    scope: Scope,
    after: &[u8],
    page: &Page,
    end: &[u8],
) -> rusqlite::Result<Vec<Vec<u8>>> {
    // Both ends bound the walk along the table: what all pages walk is the ledger once.
    let last = page.len().checked_sub(1).and_then(|last| page.get(last)).map(|entry| entry.key);
    let end = if page.is_last() { Some(end) } else { last };
    let Some(end) = end else { return Ok(Vec::new()) };
    let mut statement = tx.prepare_cached(
        "SELECT key FROM scan_ledger WHERE scope = ?1 AND key > ?2 AND key <= ?3 ORDER BY key",
    )?;
    let mut rows = statement.query((scope.0, after, end))?;
    let mut listed = page.iter().map(|entry| entry.key).peekable();
    let mut unlisted = Vec::new();
    while unlisted.len() < UNLISTED_MAX
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
    findings::forget_item(tx, scope, key)?;
    tx.prepare_cached("DELETE FROM scan_ledger WHERE scope = ?1 AND key = ?2")?
        .execute((scope.0, key))
        .map(drop)
}

/// Forgets some items of a scope that no run belongs to, as long as none does (D8); how many.
pub(crate) fn forget_some(tx: &Transaction<'_>, scope: Scope) -> rusqlite::Result<usize> {
    if !runs::scopes_without_runs(tx)?.contains(&scope) {
        return Ok(0);
    }
    let mut statement =
        tx.prepare_cached("SELECT key FROM scan_ledger WHERE scope = ?1 LIMIT ?2")?;
    let keys = statement.query_map((scope.0, FORGET_AT_ONCE), |row| row.get(0))?;
    let keys: Vec<Vec<u8>> = keys.collect::<rusqlite::Result<_>>()?;
    keys.iter().try_for_each(|key| forget_item(tx, scope, key))?;
    Ok(keys.len())
}

/// An unchanged item counts in this run, too.
pub(crate) fn keep_item(
    tx: &Transaction<'_>,
    scope: Scope,
    key: &[u8],
    run: RunId,
) -> Result<(), Unwritten> {
    let sql = "UPDATE scan_ledger SET run = ?3 WHERE scope = ?1 AND key = ?2 AND run <= ?3";
    let kept = tx.prepare_cached(sql)?.execute((scope.0, key, run.as_raw() as i64))?;
    if kept == 0 { Err(Unwritten::Superseded) } else { Ok(()) }
}

/// What lies below a directory that a run could not list counts in it, too (D2).
pub(crate) fn keep_below_unlisted(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
    let id = run.as_raw() as i64;
    let sql = concat!(
        "SELECT key FROM scan_ledger WHERE scope = ",
        scope_of_run!(),
        " AND run = ?1 AND failed IN (?2, ?3)"
    );
    let mut statement = tx.prepare(sql)?;
    let reasons = (id, Reason::PermissionDenied, Reason::Unreadable);
    let failed = statement.query_map(reasons, |row| row.get(0))?;
    let failed: Vec<Vec<u8>> = failed.collect::<rusqlite::Result<_>>()?;
    let mut keep = tx.prepare(concat!(
        "UPDATE scan_ledger SET run = ?1 WHERE scope = ",
        scope_of_run!(),
        " AND run < ?1 AND key > ?2 AND key < ?3"
    ))?;
    for key in failed {
        let (start, end) = below(&key);
        keep.execute((id, start, end))?;
    }
    Ok(())
}

/// The keys of what is below a directory.
pub(crate) fn below(directory: &[u8]) -> KeyRange {
    let mut start = directory.to_vec();
    if start.last() != Some(&b'/') {
        start.push(b'/');
    }
    let mut end = start.clone();
    *end.last_mut().expect("it ends with a slash") += 1;
    (start, end)
}

/// The version and the key of each item in these ranges of a run's scope of which the SQL `runs` is true. Of what
/// could not be read it is the version that was listed.
fn each_version(
    tx: &Transaction<'_>,
    run: RunId,
    runs: &str,
    ranges: &[KeyRange],
    each: &mut dyn FnMut(Vec<u8>, Vec<u8>),
) -> rusqlite::Result<()> {
    let sql = format!(
        "SELECT CAST(coalesce(unread, substr(version, 2), x'') AS BLOB), key FROM scan_ledger
         WHERE scope = {} AND run {runs}",
        scope_of_run!()
    );
    let mut statement = tx.prepare(&sql)?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        let (version, key): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if !version.is_empty() && ranges.iter().any(|(start, end)| (start..end).contains(&&key)) {
            each(version, key);
        }
    }
    Ok(())
}

/// Gives an item of these ranges that a run could not read what earlier runs found in the same version under
/// another key (D2), and the other paths that it has.
pub(crate) fn take_over_unread(
    tx: &Transaction<'_>,
    run: RunId,
    ranges: &[KeyRange],
) -> rusqlite::Result<()> {
    let mut unread = HashMap::new();
    each_version(tx, run, "= ?1 AND failed IS NOT NULL", ranges, &mut |version, key| {
        unread.insert(version, key);
    })?;
    if unread.is_empty() {
        return Ok(());
    }
    let mut pairs = Vec::new();
    each_version(tx, run, "< ?1", ranges, &mut |version, old| {
        pairs.extend(unread.get(&version).map(|new| (old, new.clone())));
    })?;
    for (old, new) in pairs {
        let values = (run.as_raw() as i64, old, new);
        // What was found again stays with the old one, and goes with it.
        let moved = tx
            .prepare_cached(concat!(
                "UPDATE OR IGNORE scan_occurrences SET key = ?3 WHERE scope = ",
                scope_of_run!(),
                " AND key = ?2"
            ))?
            .execute((values.0, &values.1, &values.2))?;
        if moved > 0 {
            tx.prepare_cached(concat!(
                "UPDATE scan_ledger SET (other_paths, more_paths) = (
                     SELECT other_paths, more_paths FROM scan_ledger old
                     WHERE old.scope = scan_ledger.scope AND old.key = ?2)
                 WHERE scope = ",
                scope_of_run!(),
                " AND key = ?3 AND other_paths IS NULL"
            ))?
            .execute(values)?;
        }
    }
    Ok(())
}

/// What a run did not list in these ranges counts in it, too: not all of them could be listed (D2). What it
/// listed in the same version under another key does not count twice.
pub(crate) fn keep_unlisted(
    tx: &Transaction<'_>,
    run: RunId,
    ranges: &[KeyRange],
) -> rusqlite::Result<()> {
    let mut met = HashSet::new();
    each_version(tx, run, "= ?1", ranges, &mut |version, _| {
        met.insert(version);
    })?;
    let mut unmet = Vec::new();
    each_version(tx, run, "< ?1 AND failed IS NULL", ranges, &mut |version, key| {
        unmet.extend((!met.contains(&version)).then_some(key));
    })?;
    for key in unmet {
        tx.prepare_cached(concat!(
            "UPDATE scan_ledger SET run = ?1 WHERE scope = ",
            scope_of_run!(),
            " AND key = ?2"
        ))?
        .execute((run.as_raw() as i64, key))?;
    }
    Ok(())
}

/// Forgets the items of a run's scope that it did not meet (D4).
pub(crate) fn forget_unmet(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
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

/// What a run did not meet of a range counts in it, too, but for what failed: that it has met, or it
/// is gone (D5).
pub(crate) fn keep_unmet(
    tx: &Transaction<'_>,
    run: RunId,
    (start, end): &KeyRange,
) -> rusqlite::Result<()> {
    let sql = concat!(
        "UPDATE scan_ledger SET run = ?1 WHERE scope = ",
        scope_of_run!(),
        " AND run < ?1 AND key >= ?2 AND key < ?3 AND failed IS NULL AND version >= x'01'"
    );
    tx.execute(sql, (run.as_raw() as i64, start, end)).map(drop)
}

/// Key and version of every item of a scope that is known for good.
pub(crate) fn each_settled(
    tx: &Transaction<'_>,
    scope: Scope,
    each: &mut dyn FnMut(&[u8], &[u8]),
) -> rusqlite::Result<()> {
    let mut statement = tx.prepare_cached(
        "SELECT key, version FROM scan_ledger
         WHERE scope = ?1 AND failed IS NULL AND version >= x'01' ORDER BY key",
    )?;
    let mut rows = statement.query([scope.0])?;
    while let Some(row) = rows.next()? {
        each(row.get_ref(0)?.as_blob()?, settled_version(row.get_ref(1)?.as_blob()?));
    }
    Ok(())
}

impl ItemRow {
    /// Of an item of which nothing is known.
    pub(crate) fn new(key: &[u8]) -> Self {
        Self {
            key: key.to_vec(),
            path: None,
            unread: None,
            version: Vec::new(),
            is_settled: true,
            bytes: 0,
            skipped: None,
            failed: None,
            inside: Reasons::default(),
            provenance: None,
            occurrences: Vec::new(),
            keeps_found: false,
        }
    }

    /// Occurrences that count as findings.
    pub(crate) fn findings(&self) -> u64 {
        self.occurrences.iter().filter(|found| found.silenced.is_none()).count() as u64
    }

    /// Why it was not scanned, if it was not.
    pub(crate) fn not_scanned(&self) -> Option<Reason> {
        self.skipped.or(self.failed)
    }

    /// Replaces all that was known of the item, but for occurrences that stay (D2).
    pub(crate) fn put(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        run: RunId,
    ) -> Result<(), Unwritten> {
        let flag = if self.is_settled { SETTLED } else { UNSETTLED };
        let version = [&[flag][..], &self.version].concat();
        let version = if self.version.is_empty() { &[] } else { &version[..] };
        self.put_as(tx, scope, run, version, self.bytes)
    }

    /// Writes down an item in progress, of which `bytes` are read. Its version is left empty, so that
    /// nobody takes it for the whole.
    pub(crate) fn put_partial(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        run: RunId,
        bytes: u64,
    ) -> Result<(), Unwritten> {
        self.put_as(tx, scope, run, b"", bytes)
    }

    fn put_as(
        &self,
        tx: &Transaction<'_>,
        scope: Scope,
        run: RunId,
        version: &[u8],
        bytes: u64,
    ) -> Result<(), Unwritten> {
        let Self { key, skipped, failed, occurrences, keeps_found, unread, .. } = self;
        let inside = self.inside.to_column();
        let id = run.as_raw() as i64;
        let is_scanned = self.not_scanned().is_none() && inside.is_none();
        let path = self.path.as_ref().filter(|_| !is_scanned);
        // They are shown with what is found.
        let from = self.provenance.as_ref().filter(|_| *keeps_found || !occurrences.is_empty());
        let others = from.filter(|from| !from.other_paths.is_empty());
        let others = others.map(|from| from.other_paths.join(&0));
        let more = from.map_or(0, |from| from.more_paths as i64);
        let bytes = to_column(bytes);
        let values = params![
            scope.0, key, version, bytes, skipped, failed, id, inside, path, others, more, unread
        ];
        let is_new = tx
            .prepare_cached(
                "INSERT INTO scan_ledger(scope, key, version, bytes, skipped, failed, run, inside, path,
                                         other_paths, more_paths, unread)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) ON CONFLICT DO NOTHING",
            )?
            .execute(values)?;
        if is_new == 0 {
            let replaced = tx
                .prepare_cached(
                    "UPDATE scan_ledger SET version = ?3, bytes = ?4, skipped = ?5, failed = ?6,
                     run = ?7, inside = ?8, path = ?9, other_paths = ?10, more_paths = ?11,
                     unread = ?12
                     WHERE scope = ?1 AND key = ?2 AND run <= ?7",
                )?
                .execute(values)?;
            if replaced == 0 {
                return Err(Unwritten::Superseded);
            }
            if !keeps_found {
                findings::forget_item(tx, scope, key)?;
            }
        }
        Ok(findings::put_all(tx, scope, key, run, occurrences)?)
    }
}

/// What became of one item, as it may be shown.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReportedItem {
    /// The connector's key of it.
    pub key: Vec<u8>,
    /// What was scanned of it; empty if that cannot be named, as it changed meanwhile.
    pub version: Vec<u8>,
    /// Bytes that it has.
    pub bytes: u64,
    /// Why it was not scanned.
    pub skipped: Option<String>,
    /// Why it could not be read.
    pub failed: Option<String>,
    /// Of an archive: how many of the files in it were not scanned, by reason.
    pub inside: Vec<(String, u64)>,
}

/// The items that a run covered, with those that newer runs of the same scope have taken over, in
/// key order.
pub(crate) fn each_item_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    mut each: impl FnMut(ReportedItem) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    let mut statement = tx.prepare(concat!(
        "SELECT key, version, bytes, skipped, failed, inside FROM scan_ledger WHERE scope = ",
        scope_of_run!(),
        " AND run >= ?1 ORDER BY key"
    ))?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        let item = ReportedItem {
            key: row.get(0)?,
            version: row.get_ref(1)?.as_blob()?.get(1..).unwrap_or_default().to_vec(),
            bytes: row.get::<_, i64>(2)? as u64,
            skipped: row.get(3)?,
            failed: row.get(4)?,
            inside: Reasons::from_column(row.get_ref(5)?.as_blob_or_null()?)?.all_in_words(),
        };
        if let Err(error) = each(item) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests;
