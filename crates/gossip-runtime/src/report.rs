//! What a run covered and what it found, read from the database.

use std::convert::Infallible;

use gossip_contracts::identity::{PolicyHash, RunId};
use gossip_coordination::{
    GetRunError, InfraError, RunManagement, RunProgress, RunStatus, ShardFilter, ShardStatus,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

use crate::clock::now;
use crate::ledger::{ReportedItem, each_item_since};
use crate::missed::{self, Missed};
use crate::prune::Pruning;
use crate::reported::{ReportedFinding, Verdict, Versions, each_since};
use crate::runs;
use crate::shard_token::ShardToken;
use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::totals::{Counts, Totals};
use crate::transaction;

/// A run in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunSummary {
    /// The run's number, as commands take it.
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
    /// Its shards by status.
    pub progress: RunProgress,
    /// Items that it covered.
    pub items: u64,
    /// Bytes of those items.
    pub bytes: u64,
    /// Items that were skipped, by reason.
    pub skipped: Vec<(String, u64)>,
    /// Items that could not be read, by reason.
    pub failed: Vec<(String, u64)>,
    /// Secrets that were found, each once at a path, however many versions have it.
    pub findings: u64,
    /// Its shards say how far they are in a way that this version of the program cannot read: items, bytes
    /// and what was skipped are without what those shards covered.
    pub is_of_another_version: bool,
}

impl RunSummary {
    /// Whether the run ended by itself and could read everything.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.is_done() && self.failed.is_empty()
    }

    /// Whether the run ended by itself: nobody called it off, and nothing of it is left to do.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.status == RunStatus::Done
    }
}

/// Why the database did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ReportError {
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// There is no such run.
    #[error("there is no run {run}; `gossip runs` lists those that there are")]
    NoSuchRun { run: RunId },
    /// A newer run of the same target has taken over what this one found.
    #[error(
        "what run {run} found has been superseded by run {by}, which scanned the same again; \
             `gossip findings {by}` shows it"
    )]
    Superseded {
        run: RunId,
        /// The newest that covers the same.
        by: RunId,
    },
    /// It has ended, so there is nothing to call off.
    #[error("run {run} is done: there is nothing to call off")]
    Done { run: RunId },
    /// The database failed.
    #[error("{0}")]
    Storage(InfraError),
}

/// Reads the database of a state directory.
#[derive(Debug)]
pub struct Reports {
    pub(crate) coordinator: SqliteCoordinator,
}

impl Reports {
    /// Opens the database.
    pub fn open(state: &StateDir) -> Result<Self, ReportError> {
        Ok(Self { coordinator: state.coordinator()? })
    }

    /// Every run, oldest first.
    pub fn runs(&self) -> Result<Vec<RunSummary>, ReportError> {
        let rows = self.read(runs::list_runs)?;
        rows.into_iter().map(|row| self.summarize(row)).collect()
    }

    /// The runs that [`Admin::prune`](crate::Admin::prune) would delete, oldest first.
    pub fn prunable(&self, pruning: &Pruning) -> Result<Vec<RunSummary>, ReportError> {
        Ok(pruning.select(self.runs()?, now().as_raw()))
    }

    /// Fails if no run has had this number. One that was deleted has.
    pub fn check_was_begun(&self, run: RunId) -> Result<(), ReportError> {
        let newest = self.newest()?.map_or(0, RunId::as_raw);
        let was_begun = (1..=newest).contains(&run.as_raw());
        was_begun.then_some(()).ok_or(ReportError::NoSuchRun { run })
    }

    /// The newest run that is known in coordination: one that died or failed before covers nothing.
    pub fn newest_begun(&self) -> Result<Option<RunId>, ReportError> {
        for row in self.read(runs::list_runs)?.into_iter().rev() {
            if created(self.coordinator.get_run(LOCAL_TENANT, row.run))?.is_some() {
                return Ok(Some(row.run));
            }
        }
        Ok(None)
    }

    /// The run that was begun last, if any was.
    pub fn newest(&self) -> Result<Option<RunId>, ReportError> {
        self.read(runs::newest_run)
    }

    /// Bytes that the last run of a target that has ended covered.
    pub fn last_bytes(&self, target: &[u8]) -> Result<Option<u64>, ReportError> {
        self.read(|tx| {
            let last = runs::last_ended_run(tx, target)?;
            last.map(|run| Totals::kept(tx, run).map(|totals| totals.bytes)).transpose()
        })
    }

    /// One run.
    pub fn run(&self, run: RunId) -> Result<RunSummary, ReportError> {
        let row = self.read(|tx| runs::find_run(tx, run))?;
        self.summarize(row.ok_or(ReportError::NoSuchRun { run })?)
    }

    /// What a run found, by path: new, and still there from earlier runs; a secret once, however many
    /// versions have it. Only the newest run of a target and policy can tell; older ones name it.
    pub fn findings(&self, run: RunId) -> Result<Vec<ReportedFinding>, ReportError> {
        let mut findings = Vec::new();
        let judge = |_: &ReportedFinding| Verdict {
            is_reported: true,
            fingerprint: String::new(),
            note: 0,
        };
        let Ok(()) = self.each_finding(run, &Versions::default(), judge, |found, _| {
            findings.push(found.clone());
            Ok::<_, Infallible>(())
        })?;
        Ok(findings)
    }

    /// Like [`findings`](Self::findings), one after the other, as there may be very many. Every version is
    /// judged by itself, by path, the work tree's first and then the oldest; each finding then comes with the
    /// verdict of what stands for it, the first that is reported, or with the first verdict if none is. The
    /// first error of `each` ends it.
    pub fn each_finding<E>(
        &self,
        run: RunId,
        versions: &Versions,
        judge: impl FnMut(&ReportedFinding) -> Verdict,
        each: impl FnMut(&ReportedFinding, &Verdict) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| {
            if let Some(by) = runs::superseded_by(tx, run)? {
                return Ok(Err(ReportError::Superseded { run, by }));
            }
            if runs::find_run(tx, run)?.is_none() {
                return Ok(Err(ReportError::NoSuchRun { run }));
            }
            each_since(tx, run, versions, judge, each).map(Ok)
        })?
    }

    /// For the scan that has just ended: what it found, with what a newer run of the same may have
    /// learned since about the same items.
    pub fn each_finding_since<E>(
        &self,
        run: RunId,
        versions: &Versions,
        judge: impl FnMut(&ReportedFinding) -> Verdict,
        each: impl FnMut(&ReportedFinding, &Verdict) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| each_since(tx, run, versions, judge, each))
    }

    /// The items of a run, in key order: what was scanned and what was not. For the newest run of a
    /// target and policy, as for [`findings`](Self::findings).
    pub fn each_item<E>(
        &self,
        run: RunId,
        each: impl FnMut(ReportedItem) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| each_item_since(tx, run, each))
    }

    /// What a run should have scanned and did not, in key order, item by item. For the newest run of
    /// a target and policy, as for [`findings`](Self::findings).
    pub fn each_missed<E>(
        &self,
        run: RunId,
        each: impl FnMut(Missed) -> Result<(), E>,
    ) -> Result<Result<(), E>, ReportError> {
        self.read(|tx| missed::each_since(tx, run, each))
    }

    /// The last key that was handled of each parked shard of a run, or else its first: what could not
    /// be listed comes after it.
    pub fn parked_after(&self, run: RunId) -> Result<Vec<Vec<u8>>, ReportError> {
        let mut shards = Vec::new();
        let (now, parked) = (now(), ShardFilter::parked());
        created(self.coordinator.list_shards_into(now, LOCAL_TENANT, run, parked, &mut shards))?;
        Ok(shards.into_iter().map(|shard| shard.last_key.unwrap_or(shard.start).into()).collect())
    }

    /// The newer run that has taken over what this one found and did not scan, if there is one.
    pub fn superseded_by(&self, run: RunId) -> Result<Option<RunId>, ReportError> {
        self.read(|tx| runs::superseded_by(tx, run))
    }

    /// The shards of the open run of a target, if there is one: for whoever draws a progress bar.
    pub fn open_progress(&self, target: &[u8]) -> Result<Option<RunProgress>, ReportError> {
        let open = self.read(|tx| runs::newest_open_run(tx, target))?;
        let Some(run) = open else { return Ok(None) };
        created(self.coordinator.get_run_progress(LOCAL_TENANT, run))
    }

    fn summarize(&self, row: runs::RunRow) -> Result<RunSummary, ReportError> {
        let run = row.run;
        let record = created(self.coordinator.get_run(LOCAL_TENANT, run))?;
        let status = match (row.ended_ms, record) {
            // Whatever coordination says: a process may have died between the two ends.
            (Some(_), _) if row.is_cancelled => RunStatus::Cancelled,
            (Some(_), _) => RunStatus::Done,
            // Its process has not created it in coordination yet, or died before.
            (None, None) => RunStatus::Initializing,
            (None, Some(record)) => record.status,
        };
        let progress = created(self.coordinator.get_run_progress(LOCAL_TENANT, run))?;
        let progress = progress.unwrap_or_default();
        let covered = match row.ended_ms {
            Some(_) => Some(Counts::default()),
            None => self.covered(run)?,
        };
        let is_of_another_version = covered.is_none();
        let covered = covered.unwrap_or_default();
        let totals = self.read(|tx| match row.ended_ms {
            Some(_) => Totals::kept(tx, run),
            // It may have ended since the row was read.
            None if runs::has_ended(tx, run)? => Totals::kept(tx, run),
            None => Totals::of(tx, run, &covered),
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
            is_of_another_version,
        })
    }

    /// What the shards of a run have covered, each item once (T2). `None` if one of them says it as another
    /// version of the program does.
    fn covered(&self, run: RunId) -> Result<Option<Counts>, ReportError> {
        let mut shards = Vec::new();
        let (now, all) = (now(), ShardFilter::all());
        created(self.coordinator.list_shards_into(now, LOCAL_TENANT, run, all, &mut shards))?;
        let mut covered = Counts::default();
        for shard in shards.iter().filter(|shard| shard.status != ShardStatus::Split) {
            let Some(token) = shard.token.as_deref() else { continue };
            let Some(token) = ShardToken::from_bytes(token) else { return Ok(None) };
            covered.add(&token.counts);
        }
        Ok(Some(covered))
    }

    fn read<T>(
        &self,
        f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, ReportError> {
        transaction::read(&self.coordinator, "report", f).map_err(ReportError::Storage)
    }
}

/// A process that died early left a run that was not created in coordination; that is no error.
fn created<T>(found: Result<T, GetRunError>) -> Result<Option<T>, ReportError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(GetRunError::RunNotFound) => Ok(None),
        Err(GetRunError::BackendError(error)) => Err(ReportError::Storage(error)),
        Err(error) => {
            Err(ReportError::Storage(InfraError::refused("report.run", error.to_string())))
        }
    }
}
