//! A run in numbers: counted while it goes on, kept once it has ended.
//!
//! - N1: a ledger row belongs to the newest run that covered its item, so an ended run's numbers
//!   cannot be counted later: they are kept in the transaction that ends it.

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

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
        let number = |sql: &str| -> rusqlite::Result<u64> {
            tx.prepare_cached(sql)?.query_row([id], |row| Ok(row.get::<_, i64>(0)? as u64))
        };
        Ok(Self {
            items: number("SELECT count(*) FROM scan_ledger WHERE run = ?1")?,
            bytes: number("SELECT ifnull(sum(bytes), 0) FROM scan_ledger WHERE run = ?1")?,
            findings: number(
                "SELECT count(*) FROM scan_ledger l JOIN scan_occurrences o USING (item, policy)
                 WHERE l.run = ?1",
            )?,
            skipped: by_reason(
                tx,
                "SELECT skipped, count(*) FROM scan_ledger
                 WHERE run = ?1 AND skipped IS NOT NULL GROUP BY 1 ORDER BY 1",
                id,
            )?,
            failed: by_reason(
                tx,
                "SELECT failed, count(*) FROM scan_ledger
                 WHERE run = ?1 AND failed IS NOT NULL GROUP BY 1 ORDER BY 1",
                id,
            )?,
        })
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
