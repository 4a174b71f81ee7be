//! Tables of the caller in the coordinator's database: findings, ledgers, whatever must commit
//! together with a checkpoint.
//!
//! - M1: a caller schema's tables, indexes, views and triggers start with its name and an underscore,
//!   and its steps change nothing else in the schema.
//! - M2: a step is carried out once, in order, and all steps of an opening together or none.

use rusqlite::{OptionalExtension, Transaction};

/// The name that the coordinator's own tables start with.
pub(crate) const OWN_NAME: &str = "coord";

/// A caller's tables: a name, and SQL that brings them from one version to the next.
///
/// Version *n* is what the first *n* steps make. Steps that were released are never edited; a
/// change is a new step at the end. Steps that no file in use needs any more are removed from the
/// front and counted in `retired`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerSchema {
    /// What its tables start with (M1): lower-case letters, and digits after the first.
    pub name: &'static str,
    /// How many versions there were before the first step. Tables of one of those are refused.
    pub retired: i64,
    /// The SQL of each step; one or more statements, none of which begins or ends a transaction.
    pub steps: &'static [&'static str],
}

/// Why a caller schema was not brought up to date.
#[derive(Debug)]
pub(crate) enum CallerSchemaFault {
    Newer { found: i64, newest: i64 },
    Retired { found: i64, oldest: i64 },
    Bad(String),
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for CallerSchemaFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl CallerSchema {
    fn newest(&self) -> i64 {
        self.retired + self.steps.len() as i64
    }

    fn oldest(&self) -> i64 {
        self.retired + 1
    }

    /// Whether there is nothing to do. Needs no write lock.
    pub(crate) fn is_current(&self, tx: &Transaction<'_>) -> Result<bool, CallerSchemaFault> {
        self.check_name()?;
        match self.stored_version(tx)? {
            found if found > self.newest() => {
                Err(CallerSchemaFault::Newer { found, newest: self.newest() })
            }
            found if found != 0 && found < self.oldest() => {
                Err(CallerSchemaFault::Retired { found, oldest: self.oldest() })
            }
            found => Ok(found == self.newest()),
        }
    }

    /// Carries out the steps that are missing.
    pub(crate) fn migrate(&self, tx: &Transaction<'_>) -> Result<(), CallerSchemaFault> {
        if self.is_current(tx)? {
            return Ok(());
        }
        let stored = self.stored_version(tx)?;
        let others = self.schema_of_others(tx)?;
        let done = (stored - self.retired).max(0) as usize;
        for (index, step) in self.steps.iter().enumerate().skip(done) {
            tx.execute_batch(step)
                .map_err(|error| CallerSchemaFault::Bad(format!("step {}: {error}", index + 1)))?;
            if tx.is_autocommit() {
                return Err(CallerSchemaFault::Bad(format!(
                    "step {} ends the transaction",
                    index + 1
                )));
            }
        }
        if self.schema_of_others(tx)? != others {
            let message =
                format!("M1: a step changes something that does not start with `{}_`", self.name);
            return Err(CallerSchemaFault::Bad(message));
        }
        tx.execute(
            "INSERT INTO coord_components(name, version) VALUES (?1, ?2) \
             ON CONFLICT(name) DO UPDATE SET version = excluded.version",
            (self.name, self.newest()),
        )?;
        Ok(())
    }

    fn check_name(&self) -> Result<(), CallerSchemaFault> {
        let mut bytes = self.name.bytes();
        let well_formed = bytes.next().is_some_and(|b| b.is_ascii_lowercase())
            && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        if !well_formed || self.name == OWN_NAME || self.name == "sqlite" {
            return Err(CallerSchemaFault::Bad("this name cannot be used".into()));
        }
        Ok(())
    }

    fn stored_version(&self, tx: &Transaction<'_>) -> rusqlite::Result<i64> {
        let sql = "SELECT version FROM coord_components WHERE name = ?1";
        Ok(tx.query_row(sql, [self.name], |row| row.get(0)).optional()?.unwrap_or(0))
    }

    /// Everything in the schema that is not this schema's, as name and SQL.
    fn schema_of_others(&self, tx: &Transaction<'_>) -> rusqlite::Result<Vec<(String, String)>> {
        let sql = "SELECT name, type || ' ' || tbl_name || ' ' || ifnull(sql, '') FROM sqlite_schema \
                   WHERE name NOT GLOB 'sqlite_*' \
                   AND NOT (name GLOB ?1 || '*' AND tbl_name GLOB ?1 || '*') ORDER BY name";
        let prefix = format!("{}_", self.name);
        let mut statement = tx.prepare(sql)?;
        let rows = statement.query_map([prefix], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect()
    }
}
