//! A scan from start to end: plan or resume, work, take a second look, finish.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, NewRun};
use gossip_contracts::coordination::CursorSemantics;
use gossip_contracts::identity::{OpId, PolicyHash, RunId, TenantSecretKey};
use gossip_coordination::{
    CreateRunError, GetRunError, InfraError, RunConfig, RunManagement, RunStatus,
    RunTerminalEvaluation, RunTransitionError, evaluate_run_terminal,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};
use gossip_engine::Engine;

use crate::clock::now;
use crate::item::ItemContext;
use crate::ledger;
use crate::options::ScanOptions;
use crate::plan::with_initial_shards;
use crate::policy::policy_hash;
use crate::runs::{self, RunEnd, Scope};
use crate::scan_loop::{Flow, Shared};
use crate::second_look::SecondLook;
use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::stats::ScanStats;
use crate::transaction::{self, in_transaction};
use crate::worker::{ShardChanges, Worker, release_dead};

/// What is scanned, and with what.
#[derive(Clone, Copy)]
pub struct Scan<'s> {
    /// Where scans are remembered.
    pub state: &'s StateDir,
    /// Reads the target.
    pub source: &'s dyn Connector,
    /// The target's name, the same in every scan of it: what makes two runs comparable.
    pub target: &'s [u8],
    /// Finds secrets.
    pub engine: &'s Engine,
    /// How to go about it.
    pub options: &'s ScanOptions,
    /// Counts what is done.
    pub stats: &'s ScanStats,
    /// Set to stop: workers commit what they have and release their shards.
    pub stop: &'s AtomicBool,
}

/// How a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOutcome {
    /// The run that was begun, or gone on with.
    pub run: RunId,
    /// Whether it went on where an earlier process had stopped.
    pub resumed: bool,
    /// Where it stands.
    pub end: ScanEnd,
}

/// Where a scan stands when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ScanEnd {
    /// Everything was scanned.
    Finished,
    /// It was told to stop. The same scan, started again, goes on.
    Interrupted,
    /// Some shards are parked; everything else was scanned.
    Parked { shards: u64 },
    /// Somebody called the run off.
    Cancelled,
}

/// Why a scan could not go on. What was committed stays; the same scan, started again, goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The state cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The target cannot be read at all.
    #[error("the target cannot be read: {0}")]
    Source(#[from] ConnectorError),
    /// The database failed.
    #[error("{0}")]
    Storage(#[from] InfraError),
    /// The run cannot be created as it was asked for.
    #[error("the run was not created: {0}")]
    NotCreated(CreateRunError),
    /// A shard was left by a program that wrote another kind of token.
    #[error(
        "the run was begun by another version of gossip, and this one cannot go on with it; \
             start over with `--fresh`"
    )]
    TokenOfAnotherKind,
    /// A worker broke. This is a bug in gossip.
    #[error(
        "a worker stopped unexpectedly; this is a bug in gossip. Nothing that was committed is \
             lost: run the same command again to go on"
    )]
    WorkerPanicked,
}

impl Scan<'_> {
    /// Runs the scan.
    pub fn run(&self) -> Result<ScanOutcome, ScanError> {
        let key = self.state.tenant_key()?;
        let mut coordinator = self.state.coordinator()?;
        let policy = policy_hash(self.engine, self.source.classifier());
        let scope = in_transaction(&mut coordinator, |tx| runs::scope(tx, self.target, policy))?;
        let (run, resumed) = match self.begin(&mut coordinator, scope, policy)? {
            Begun::New(run) => (run, false),
            Begun::Resumed(run) => (run, true),
            Begun::Cancelled(run) => {
                return Ok(ScanOutcome { run, resumed: false, end: ScanEnd::Cancelled });
            }
        };
        let fresh = in_transaction(&mut coordinator, |tx| runs::is_fresh(tx, run))?;
        let shared = Shared {
            context: self.context(&key, scope, run, fresh),
            options: self.options,
            slots: self.state.slots()?,
            lease_ms: lease_ms(&coordinator, run)?,
            stop: self.stop,
            halt: AtomicBool::new(false),
            idle: AtomicUsize::new(0),
            shard_changes: ShardChanges::default(),
        };
        if resumed {
            // Whoever died in this run need not be waited for.
            release_dead(&mut coordinator, run, &shared.slots)?;
        }
        self.work(&shared)?;
        let end = self.finish(&mut coordinator, &shared)?;
        Ok(ScanOutcome { run, resumed, end })
    }

    fn context<'c>(
        &'c self,
        tenant_key: &'c TenantSecretKey,
        scope: Scope,
        run: RunId,
        fresh: bool,
    ) -> ItemContext<'c> {
        let Self { source, target, engine, stats, stop, .. } = *self;
        ItemContext { source, engine, tenant_key, target, scope, run, fresh, stats, stop }
    }

    /// The run to work on: the one that was interrupted, or a new one.
    fn begin(
        &self,
        coordinator: &mut SqliteCoordinator,
        scope: Scope,
        policy: PolicyHash,
    ) -> Result<Begun, ScanError> {
        loop {
            let started = now().as_raw();
            let fresh = self.options.fresh;
            let (run, is_new) = in_transaction(coordinator, |tx| {
                runs::open_run(tx, self.target, policy, started, fresh)
            })?;
            let status = status(coordinator, run)?;
            if status.is_terminal() {
                // Its process died before it could write the end down.
                in_transaction(coordinator, |tx| match status {
                    RunStatus::Done => self.finish_run(tx, run),
                    _ => runs::cancel_run(tx, run, now().as_raw()).map(drop),
                })?;
            } else if fresh && !is_new {
                cancel(coordinator, run)?;
            } else if status == RunStatus::Initializing {
                self.begin_source(coordinator, scope, run)?;
                if let Some(begun) = self.register(coordinator, run)? {
                    return Ok(begun);
                }
            } else if in_transaction(coordinator, |tx| runs::join_run(tx, run))? {
                let name = in_transaction(coordinator, |tx| runs::name(tx, run))?;
                match self.source.resume(name) {
                    Ok(()) => return Ok(Begun::Resumed(run)),
                    Err(error) if error.is_retryable() => return Err(error.into()),
                    Err(error) => {
                        tracing::warn!(%error, "nobody can go on with the run; another is begun");
                        cancel(coordinator, run)?;
                    }
                }
            }
        }
    }

    /// Lets the source make ready for a new run.
    fn begin_source(
        &self,
        coordinator: &SqliteCoordinator,
        scope: Scope,
        run: RunId,
    ) -> Result<(), ScanError> {
        let read = |each: &mut dyn FnMut(&[u8], &[u8])| {
            transaction::read(coordinator, "ledger.settled", |tx| {
                if runs::is_fresh(tx, run)? {
                    return Ok(());
                }
                ledger::each_settled(tx, scope, each)
            })
        };
        let settled = |each: &mut dyn FnMut(&[u8], &[u8])| {
            let failed = |error: InfraError| ConnectorError::Retryable {
                operation: "begin",
                message: error.to_string(),
            };
            read(each).map_err(failed)
        };
        let (name, last) = transaction::read(coordinator, "runs.last", |tx| {
            let last = runs::last_before(tx, run)?;
            Ok((runs::name(tx, run)?, last.map(|last| runs::name(tx, last)).transpose()?))
        })?;
        let path_class = &|path: &[u8]| self.engine.path_class(path);
        let is_left_out = &|_: &[u8]| false;
        let new = NewRun { run: name, last, settled: &settled, path_class, is_left_out };
        Ok(self.source.begin(new)?)
    }

    /// Writes down that a run has finished.
    fn finish_run(&self, tx: &Transaction<'_>, run: RunId) -> rusqlite::Result<()> {
        let ranges = self.source.incremental_ranges();
        if ranges.is_empty() || runs::is_fresh(tx, run)? {
            let unlisted = self.source.unlisted_ranges();
            return runs::finish_fresh_run(tx, run, now().as_raw(), &ranges, &unlisted);
        }
        runs::finish_incremental_run(tx, run, now().as_raw(), &ranges)
    }

    /// Creates the run in coordination; `None` if another process that began the same scan was
    /// faster.
    fn register(
        &self,
        coordinator: &mut SqliteCoordinator,
        run: RunId,
    ) -> Result<Option<Begun>, ScanError> {
        let config = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: self.options.lease_ms,
            max_shard_retries: self.options.max_shard_retries,
        };
        let created = with_initial_shards(self.source, self.options.threads, |shards| {
            let now = now();
            coordinator.create_run_with_shards(
                now,
                LOCAL_TENANT,
                run,
                config,
                shards,
                OpId::random(),
            )
        })?;
        // After it was created: whoever called it off before could not do that in coordination, whoever
        // does it later can.
        if complete_cancellation(coordinator, run)? {
            return Ok(Some(Begun::Cancelled(run)));
        }
        match created {
            Ok(_) => Ok(Some(Begun::New(run))),
            Err(CreateRunError::BackendError(error)) => Err(error.into()),
            Err(_) if status(coordinator, run)? != RunStatus::Initializing => Ok(None),
            Err(error) => Err(ScanError::NotCreated(error)),
        }
    }

    fn work(&self, shared: &Shared<'_>) -> Result<(), ScanError> {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.threads.max(1))
                .map(|_| {
                    scope.spawn(move || -> Result<(), ScanError> {
                        // One that fails, in whatever way, stops the others in order: they could
                        // only wait for its shard. What it failed of is what the caller hears.
                        let halt = HaltUnlessDone(&shared.halt);
                        let slot = self.state.take_slot()?;
                        let coordinator = self.state.coordinator()?;
                        Worker::new(shared, coordinator, slot.id()).run()?;
                        std::mem::forget(halt);
                        Ok(())
                    })
                })
                .collect();
            let mut result = Ok(());
            for worker in workers {
                let ended = worker.join().unwrap_or(Err(ScanError::WorkerPanicked));
                result = result.and(ended);
            }
            result
        })
    }

    fn finish(
        &self,
        coordinator: &mut SqliteCoordinator,
        shared: &Shared<'_>,
    ) -> Result<ScanEnd, ScanError> {
        let run = shared.context.run;
        if complete_cancellation(coordinator, run)? {
            return Ok(ScanEnd::Cancelled);
        }
        let progress = match coordinator.get_run_progress(LOCAL_TENANT, run) {
            Ok(progress) => progress,
            Err(GetRunError::BackendError(error)) => return Err(error.into()),
            Err(error) => return Err(InfraError::refused("finish", error.to_string()).into()),
        };
        match evaluate_run_terminal(&progress) {
            RunTerminalEvaluation::StillActive | RunTerminalEvaluation::NoShards => {
                return Ok(ScanEnd::Interrupted);
            }
            RunTerminalEvaluation::HasFailures => {
                return Ok(ScanEnd::Parked { shards: progress.parked });
            }
            RunTerminalEvaluation::AllDone => {}
        }
        let mut lock = None;
        loop {
            let joined = in_transaction(coordinator, |tx| runs::times_resumed(tx, run))?;
            if joined > 0 {
                if lock.is_none() {
                    lock = self.state.lock_second_look(run, &|| shared.stopping())?;
                }
                if lock.is_none() || SecondLook::new(shared, coordinator).run()? == Flow::Stop {
                    return Ok(ScanEnd::Interrupted);
                }
            }
            // Whoever joined after that look began may want what was changed before it joined. Once
            // the end is written down nobody joins any more.
            let ended = in_transaction(coordinator, |tx| {
                let all_looked = runs::times_resumed(tx, run)? == joined;
                if all_looked {
                    self.finish_run(tx, run)?;
                }
                Ok(all_looked || runs::has_ended(tx, run)?)
            })?;
            if ended {
                break;
            }
        }
        if let Some(lock) = lock {
            lock.remove();
        }
        if complete_cancellation(coordinator, run)? {
            return Ok(ScanEnd::Cancelled);
        }
        match coordinator.complete_run(now(), LOCAL_TENANT, run, OpId::random()) {
            // Another process that worked on the same run was faster.
            Ok(_) | Err(RunTransitionError::RunTerminal { status: RunStatus::Done }) => {
                Ok(ScanEnd::Finished)
            }
            Err(RunTransitionError::RunTerminal { .. }) => Ok(ScanEnd::Cancelled),
            Err(RunTransitionError::BackendError(error)) => Err(error.into()),
            Err(error) => Err(InfraError::refused("finish", error.to_string()).into()),
        }
    }
}

/// A run that a scan found or made.
enum Begun {
    New(RunId),
    Resumed(RunId),
    /// Somebody called it off while it was planned.
    Cancelled(RunId),
}

/// Sets its flag when dropped.
struct HaltUnlessDone<'h>(&'h AtomicBool);

impl Drop for HaltUnlessDone<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn status(coordinator: &SqliteCoordinator, run: RunId) -> Result<RunStatus, ScanError> {
    match coordinator.get_run(LOCAL_TENANT, run) {
        Ok(record) => Ok(record.status),
        // Its process died before it was created in coordination.
        Err(GetRunError::RunNotFound) => Ok(RunStatus::Initializing),
        Err(GetRunError::BackendError(error)) => Err(error.into()),
        Err(error) => Err(InfraError::refused("status", error.to_string()).into()),
    }
}

/// How long the run's leases last: what it was created with counts, not what is asked for now.
fn lease_ms(coordinator: &SqliteCoordinator, run: RunId) -> Result<u64, ScanError> {
    match coordinator.get_run(LOCAL_TENANT, run) {
        Ok(record) => Ok(record.config.lease_duration),
        Err(GetRunError::BackendError(error)) => Err(error.into()),
        Err(error) => Err(InfraError::refused("lease", error.to_string()).into()),
    }
}

/// Calls a run off, unless it has ended; how it has. In the runtime's own table first, from when on nothing
/// is committed for it (D9), and then in coordination, where it may not have been created yet.
pub(crate) fn cancel(coordinator: &mut SqliteCoordinator, run: RunId) -> Result<RunEnd, ScanError> {
    let end = in_transaction(coordinator, |tx| runs::cancel_run(tx, run, now().as_raw()))?;
    if end == RunEnd::Cancelled {
        cancel_in_coordination(coordinator, run)?;
    }
    Ok(end)
}

/// Whether a run was called off. It is then called off in coordination, too: whoever did the one may
/// have died before the other, or the run may have been created in between.
pub(crate) fn complete_cancellation(
    coordinator: &mut SqliteCoordinator,
    run: RunId,
) -> Result<bool, ScanError> {
    let end = transaction::read(coordinator, "runs.end", |tx| runs::how_ended(tx, run))?;
    if end != Some(RunEnd::Cancelled) {
        return Ok(false);
    }
    cancel_in_coordination(coordinator, run)?;
    Ok(true)
}

pub(crate) fn cancel_in_coordination(
    coordinator: &mut SqliteCoordinator,
    run: RunId,
) -> Result<(), ScanError> {
    match coordinator.cancel_run(now(), LOCAL_TENANT, run, OpId::random()) {
        Ok(_) | Err(RunTransitionError::RunTerminal { .. } | RunTransitionError::RunNotFound) => {
            Ok(())
        }
        Err(RunTransitionError::BackendError(error)) => Err(error.into()),
        Err(error) => Err(InfraError::refused("cancel", error.to_string()).into()),
    }
}
