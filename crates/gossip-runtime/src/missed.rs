//! What a run should have scanned and did not, by name.

use std::fmt;

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::reason::Reason;
use crate::schema::scope_of_run;
use crate::totals::Reasons;

/// Something that could not be read, or that is out of reach: encrypted, a submodule, a Git LFS
/// pointer. What is left out by choice or for its kind is not missed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missed {
    /// What to call the item, as in [`ReportedFinding::path`](crate::ReportedFinding::path).
    pub path: Vec<u8>,
    /// Why it is not scanned, in words.
    pub reason: String,
    /// How many there are: one, but for files in an archive, which is named in their place.
    pub number: u64,
    /// It could not be read, and is tried again by the next run.
    pub is_failure: bool,
}

impl Missed {
    /// Whether this reason of a [`RunSummary`](crate::RunSummary) is one for which things are missed.
    #[must_use]
    pub fn is_reason(words: &str) -> bool {
        Reason::from_words(words).is_some_and(Reason::is_miss)
    }
}

/// A path may be private; the rest may be shown.
impl fmt::Debug for Missed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Missed")
            .field("reason", &self.reason)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// What a run missed, with what newer runs of the same scope know of the same items, in key order.
pub(crate) fn each_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    mut each: impl FnMut(Missed) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    let mut statement = tx.prepare(concat!(
        "SELECT ifnull(path, key), skipped, failed, inside FROM scan_ledger WHERE scope = ",
        scope_of_run!(),
        " AND run >= ?1 AND coalesce(skipped, failed, inside) IS NOT NULL ORDER BY key"
    ))?;
    let mut rows = statement.query([run.as_raw() as i64])?;
    while let Some(row) = rows.next()? {
        let whole = row.get::<_, Option<Reason>>(1)?.or(row.get(2)?);
        let mut reasons = Reasons::from_column(row.get_ref(3)?.as_blob_or_null()?)?;
        if let Some(reason) = whole {
            reasons.add(reason, 1);
        }
        for (reason, number) in reasons.iter().filter(|(reason, _)| reason.is_miss()) {
            let (path, is_failure) = (row.get(0)?, reason.is_failure());
            let missed = Missed { path, reason: reason.to_string(), number, is_failure };
            if let Err(error) = each(missed) {
                return Ok(Err(error));
            }
        }
    }
    Ok(Ok(()))
}
