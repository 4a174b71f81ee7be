//! What a run covered and what it found, read from the database.

use std::convert::Infallible;

use gossip_contracts::identity::{PolicyHash, RunId};
use gossip_coordination::CommitError;
use gossip_coordination::{InfraError, RunManagement, RunProgress, RunStatus};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::store::{self, scope_of_run};
use crate::totals::Totals;

/// A secret at a place, as it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// A run in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// Which run.
    pub run: RunId,
    /// What was scanned.
    pub target: Vec<u8>,
    /// What decided what was found.
    pub policy: PolicyHash,
    /// Where it stands.
    pub status: RunStatus,
    /// When it started, in Unix milliseconds.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Its shards.
    pub progress: RunProgress,
    /// Items that it covered.
    pub items: u64,
    /// Bytes of those items.
    pub bytes: u64,
    /// Items that were skipped, by reason.
    pub skipped: Vec<(String, u64)>,
    /// Items that could not be read, by reason.
    pub failed: Vec<(String, u64)>,
    /// Secrets that were found.
    pub findings: u64,
}

/// Why the database did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReportError {
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no such run.
    #[error("there is no run {run}; `gossip runs` lists those that there are")]
    NoSuchRun {
        /// The run asked for.
        run: RunId,
    },
    /// A newer run of the same target has taken over what this one found.
    #[error(
        "what run {run} found has been superseded by run {by}, which scanned the same again; \
             `gossip findings {by}` shows it"
    )]
    Superseded {
        /// The run asked for.
        run: RunId,
        /// The newest that covers the same.
        by: RunId,
    },
    /// The database failed.
    #[error("{0}")]
    Storage(InfraError),
}

/// Reads the database of a state directory.
#[derive(Debug)]
pub struct Reports {
    coordinator: SqliteCoordinator,
}

impl Reports {
    /// Opens the database.
    pub fn open(state: &StateDir) -> Result<Self, ReportError> {
        Ok(Self { coordinator: state.coordinator()? })
    }

    /// Every run, oldest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, ReportError> {
        let rows = self.read(store::list_runs)?;
        rows.into_iter().map(|row| self.summarize(row)).collect()
    }

    /// The newest run.
    pub fn newest(&self) -> Result<Option<RunId>, ReportError> {
        self.read(store::newest_run)
    }

    /// Bytes that the last run of a target that has ended covered.
    pub fn last_bytes(&self, target: &[u8]) -> Result<Option<u64>, ReportError> {
        self.read(|tx| {
            let last = store::last_ended_run(tx, target)?;
            last.map(|run| Totals::kept(tx, run).map(|totals| totals.bytes)).transpose()
        })
    }

    /// One run.
    pub fn run(&self, run: RunId) -> Result<RunSummary, ReportError> {
        let row = self.read(|tx| store::find_run(tx, run))?;
        self.summarize(row.ok_or(ReportError::NoSuchRun { run })?)
    }

    /// What a run found, in key order: new, and still there from earlier runs. Only the newest run
    /// of a target and policy can tell; older ones name it.
    pub fn findings(&self, run: RunId) -> Result<Vec<ReportedFinding>, ReportError> {
        let mut findings = Vec::new();
        let Ok(()) = self.each_finding(run, |found| {
            findings.push(found.clone());
            Ok::<_, Infallible>(())
        })?;
        Ok(findings)
    }

    /// Like [`findings`](Self::findings), one after the other, as there may be very many. The first
    /// error of `each` ends it.
    pub fn each_finding<E>(
        &self,
        run: RunId,
        each: impl FnMut(&ReportedFinding) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| {
            if let Some(by) = store::superseded_by(tx, run)? {
                return Ok(Err(ReportError::Superseded { run, by }));
            }
            if store::find_run(tx, run)?.is_none() {
                return Ok(Err(ReportError::NoSuchRun { run }));
            }
            findings_since(tx, run, each).map(Ok)
        })?
    }

    /// For the scan that has just ended: what it found, with what a newer run of the same may have
    /// learned since about the same items.
    pub fn each_finding_since<E>(
        &self,
        run: RunId,
        each: impl FnMut(&ReportedFinding) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| findings_since(tx, run, each))
    }

    fn summarize(&self, row: store::RunRow) -> Result<RunSummary, ReportError> {
        let run = row.run;
        // A process that died between the two left a run that coordination does not know.
        let status = self.coordinator.get_run(LOCAL_TENANT, run);
        let status = match status.map_or(RunStatus::Initializing, |record| record.status) {
            // Its process died after it had written the end down, before coordination heard of it.
            RunStatus::Active if row.ended_ms.is_some() => RunStatus::Done,
            status => status,
        };
        let progress = self.coordinator.get_run_progress(LOCAL_TENANT, run).unwrap_or_default();
        let totals = self.read(|tx| match row.ended_ms {
            Some(_) => Totals::kept(tx, run),
            // It may have ended since the row was read.
            None if store::has_ended(tx, run)? => Totals::kept(tx, run),
            None => Totals::count(tx, run),
        })?;
        let Totals { items, bytes, findings, skipped, failed } = totals;
        Ok(RunSummary {
            run,
            target: row.target,
            policy: row.policy,
            status,
            started_ms: row.started_ms,
            ended_ms: row.ended_ms,
            progress,
            items,
            bytes,
            skipped,
            failed,
            findings,
        })
    }

    fn read<T>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, ReportError> {
        self.coordinator
            .read(f)
            .map_err(|error| ReportError::Storage(storage_error("report", error)))
    }
}

/// An item belongs to the newest run that covered it, so these are disjoint.
fn findings_since<E>(
    tx: &Transaction<'_>,
    run: RunId,
    mut each: impl FnMut(&ReportedFinding) -> Result<(), E>,
) -> rusqlite::Result<Result<(), E>> {
    let mut statement = tx.prepare(concat!(
        "SELECT lower(hex(o.finding)), o.rule, o.severity, o.confidence, o.key, o.start,
                o.length, o.line, o.column, o.redacted
         FROM scan_occurrences o CROSS JOIN scan_ledger l USING (scope, key)
         WHERE o.scope = ",
        scope_of_run!(),
        " AND l.run >= ?1 ORDER BY o.key, o.start, o.rule"
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
        };
        if let Err(error) = each(&found) {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// What went wrong in a transaction of the runtime's own.
pub(crate) fn storage_error(
    step: &'static str,
    error: CommitError<InfraError, rusqlite::Error>,
) -> InfraError {
    match error {
        CommitError::Refused(error) => error,
        // SQLite's messages name tables and columns, never what is in them.
        CommitError::Caller(error) => InfraError::transient(step, error.to_string()),
    }
}
