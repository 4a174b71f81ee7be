//! A run in numbers: those of its shards' tokens (T2) while it goes on, those of the ledger once it has
//! ended, which has also what a second look saw.
//!
//! - N1: a ledger row belongs to the newest run that covered its item, so an ended run's numbers
//!   cannot be counted later: they are kept in the transaction that ends it.
//! - N2: sizes are what a source claims. Sums of them stop at the largest number that there is, so that no
//!   size keeps a run from ending.

use std::collections::BTreeMap;

use gossip_contracts::identity::RunId;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::reason::Reason;
use crate::reported;
use crate::schema::scope_of_run;
use crate::shard_token::take;

/// How many are not scanned, by reason.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reasons(BTreeMap<Reason, u64>);

impl Reasons {
    pub(crate) fn add(&mut self, reason: Reason, number: u64) {
        let sum = self.0.entry(reason).or_default();
        *sum = sum.saturating_add(number);
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        other.0.iter().for_each(|(reason, number)| self.add(*reason, *number));
    }

    /// Takes one out that is a failure, if there is any.
    pub(crate) fn take_failure(&mut self) -> Option<Reason> {
        let reason = *self.0.keys().find(|reason| reason.is_failure())?;
        let number = self.0.get_mut(&reason)?;
        *number -= 1;
        if *number == 0 {
            self.0.remove(&reason);
        }
        Some(reason)
    }

    /// As a column: nothing if there are none.
    pub(crate) fn to_column(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        (!self.0.is_empty()).then_some(bytes)
    }

    /// From a column.
    pub(crate) fn from_column(column: Option<&[u8]>) -> rusqlite::Result<Self> {
        let Some(mut rest) = column else { return Ok(Self::default()) };
        let damaged = || rusqlite::Error::InvalidColumnName("inside".to_owned());
        Self::decode(&mut rest).filter(|_| rest.is_empty()).ok_or_else(damaged)
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.push(u8::try_from(self.0.len()).expect("there are few reasons"));
        for (reason, number) in &self.0 {
            bytes.push(reason.code());
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }

    /// Takes them off the front. `None` if a reason is not known.
    pub(crate) fn decode(rest: &mut &[u8]) -> Option<Self> {
        let [len] = take(rest)?;
        let mut reasons = BTreeMap::new();
        for _ in 0..len {
            let [code] = take(rest)?;
            reasons.insert(Reason::from_code(code)?, u64::from_le_bytes(take(rest)?));
        }
        Some(Self(reasons))
    }

    /// Every reason, and how often.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Reason, u64)> {
        self.0.iter().map(|(reason, number)| (*reason, *number))
    }

    pub(crate) fn all_in_words(&self) -> Vec<(String, u64)> {
        self.iter().map(|(reason, number)| (reason.to_string(), number)).collect()
    }

    /// In words, those that are failures or those that are not.
    fn in_words(&self, failures: bool) -> Vec<(String, u64)> {
        let of_kind = self.0.iter().filter(|(reason, _)| reason.is_failure() == failures);
        let mut of_kind: Vec<_> = of_kind.map(|(reason, n)| (reason.to_string(), *n)).collect();
        of_kind.sort();
        of_kind
    }
}

/// Items, and how many of them are not scanned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    items: u64,
    bytes: u64,
    not_scanned: Reasons,
}

impl Counts {
    /// Counts an item, and what inside of it is not scanned.
    pub(crate) fn add_item(&mut self, bytes: u64, not_scanned: Option<Reason>, inside: &Reasons) {
        self.add_items(1, bytes, not_scanned);
        self.not_scanned.add_all(inside);
    }

    fn add_items(&mut self, items: u64, bytes: u64, not_scanned: Option<Reason>) {
        self.items = self.items.saturating_add(items);
        self.bytes = self.bytes.saturating_add(bytes);
        if let Some(reason) = not_scanned {
            self.not_scanned.add(reason, items);
        }
    }

    /// Counts what another counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.items = self.items.saturating_add(other.items);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.not_scanned.add_all(&other.not_scanned);
    }

    pub(crate) fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.items.to_le_bytes());
        bytes.extend_from_slice(&self.bytes.to_le_bytes());
        self.not_scanned.encode(bytes);
    }

    /// Takes them off the front.
    pub(crate) fn decode(rest: &mut &[u8]) -> Option<Self> {
        Some(Self {
            items: u64::from_le_bytes(take(rest)?),
            bytes: u64::from_le_bytes(take(rest)?),
            not_scanned: Reasons::decode(rest)?,
        })
    }
}

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
        let mut counts = Counts::default();
        let mut statement = tx.prepare_cached(concat!(
            // In halves: SQLite fails of a sum that is too large (N2).
            "SELECT ifnull(skipped, failed), count(*), sum(bytes >> 32), sum(bytes & 0xffffffff)
             FROM scan_ledger WHERE scope = ",
            scope_of_run!(),
            " AND run = ?1 GROUP BY 1"
        ))?;
        let mut rows = statement.query([run.as_raw() as i64])?;
        while let Some(row) = rows.next()? {
            let number = |at: usize| row.get::<_, i64>(at).map(|number| number as u64);
            let high = number(2)?.saturating_mul(1 << 32);
            counts.add_items(number(1)?, high.saturating_add(number(3)?), row.get(0)?);
        }
        let mut statement = tx.prepare_cached(concat!(
            "SELECT inside FROM scan_ledger WHERE scope = ",
            scope_of_run!(),
            " AND run = ?1 AND inside IS NOT NULL"
        ))?;
        let mut rows = statement.query([run.as_raw() as i64])?;
        while let Some(row) = rows.next()? {
            let inside = row.get_ref(0)?.as_blob_or_null()?;
            counts.not_scanned.add_all(&Reasons::from_column(inside)?);
        }
        Self::of(tx, run, &counts)
    }

    /// Of items that were counted elsewhere.
    pub(crate) fn of(tx: &Transaction<'_>, run: RunId, counts: &Counts) -> rusqlite::Result<Self> {
        Ok(Self {
            items: counts.items,
            bytes: counts.bytes,
            findings: reported::count(tx, run)?,
            skipped: counts.not_scanned.in_words(false),
            failed: counts.not_scanned.in_words(true),
        })
    }

    /// Keeps them (N1).
    pub(crate) fn keep(&self, tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
        let mut statement = tx.prepare_cached("INSERT INTO scan_totals VALUES (?1, ?2, ?3, ?4)")?;
        let mut put = |what: &str, reason: &str, number: u64| {
            statement.execute((run.as_raw() as i64, what, reason, to_column(number))).map(drop)
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

/// As a column, which has no larger number (N2).
pub(crate) fn to_column(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn by_reason(tx: &Transaction<'_>, sql: &str, run: i64) -> rusqlite::Result<Vec<(String, u64)>> {
    tx.prepare_cached(sql)?
        .query_map([run], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?
        .collect()
}
