//! A run in numbers: counted while it goes on, kept once it has ended.
//!
//! - N1: a ledger row belongs to the newest run that covered its item, so an ended run's numbers
//!   cannot be counted later: they are kept in the transaction that ends it.

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::schema::scope_of_run;

/// How much of what.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) items: u64,
    pub(crate) bytes: u64,
    pub(crate) findings: u64,
    pub(crate) skipped: Vec<(String, u64)>,
    pub(crate) failed: Vec<(String, u64)>,
}

impl Totals {
    /// Counts what the ledger holds of a run.
    pub(crate) fn count(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Self> {
        let id = run.as_raw() as i64;
        let mut totals = Self::default();
        let mut statement = tx.prepare_cached(concat!(
            "SELECT skipped, failed, count(*), sum(bytes) FROM scan_ledger WHERE scope = ",
            scope_of_run!(),
            " AND run = ?1 GROUP BY 1, 2 ORDER BY 1, 2"
        ))?;
        let mut rows = statement.query([id])?;
        while let Some(row) = rows.next()? {
            let (items, bytes) = (row.get::<_, i64>(2)? as u64, row.get::<_, i64>(3)? as u64);
            totals.items += items;
            totals.bytes += bytes;
            if let Some(reason) = row.get(0)? {
                totals.skipped.push((reason, items));
            }
            if let Some(reason) = row.get(1)? {
                totals.failed.push((reason, items));
            }
        }
        // From the occurrences, which are few, to their items.
        totals.findings = tx
            .prepare_cached(concat!(
                "SELECT count(*) FROM scan_occurrences o CROSS JOIN scan_ledger l
                 USING (scope, key) WHERE o.scope = ",
                scope_of_run!(),
                " AND l.run = ?1 AND NOT o.silenced"
            ))?
            .query_row([id], |row| Ok(row.get::<_, i64>(0)? as u64))?;
        Ok(totals)
    }

    /// Keeps them (N1).
    pub(crate) fn keep(&self, tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
        let mut statement = tx.prepare_cached("INSERT INTO scan_totals VALUES (?1, ?2, ?3, ?4)")?;
        let mut put = |what: &str, reason: &str, number: u64| {
            statement.execute((run.as_raw() as i64, what, reason, number as i64)).map(drop)
        };
        put("items", "", self.items)?;
        put("bytes", "", self.bytes)?;
        put("findings", "", self.findings)?;
        for (reason, number) in &self.skipped {
            put("skipped", reason, *number)?;
        }
        for (reason, number) in &self.failed {
            put("failed", reason, *number)?;
        }
        Ok(())
    }

    /// Those that were kept.
    pub(crate) fn kept(tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<Self> {
        let id = run.as_raw() as i64;
        let number = |what: &str| -> rusqlite::Result<u64> {
            let sql = "SELECT ifnull(sum(number), 0) FROM scan_totals WHERE run = ?1 AND what = ?2";
            tx.prepare_cached(sql)?.query_row((id, what), |row| Ok(row.get::<_, i64>(0)? as u64))
        };
        let reasons = |what: &str| {
            let sql = format!(
                "SELECT reason, number FROM scan_totals WHERE run = ?1 AND what = '{what}' \
                 ORDER BY reason"
            );
            by_reason(tx, &sql, id)
        };
        Ok(Self {
            items: number("items")?,
            bytes: number("bytes")?,
            findings: number("findings")?,
            skipped: reasons("skipped")?,
            failed: reasons("failed")?,
        })
    }
}

fn by_reason(tx: &Transaction<'_>, sql: &str, run: i64) -> rusqlite::Result<Vec<(String, u64)>> {
    tx.prepare_cached(sql)?
        .query_map([run], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?
        .collect()
}
