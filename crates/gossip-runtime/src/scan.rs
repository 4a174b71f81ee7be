//! A scan from start to end: plan or resume, work, look again, finish.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, Page};
use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{PolicyHash, RunId, TenantSecretKey};
use gossip_coordination::{
    AcquireScratch, CreateRunError, GetRunError, InfraError, RunConfig, RunManagement, RunStatus,
    RunTerminalEvaluation, RunTransitionError, evaluate_run_terminal,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};
use gossip_engine::Engine;

use crate::batch::Batch;
use crate::clock::{new_op_id, now};
use crate::item::{Handled, InHand, ItemBuffers, ItemContext};
use crate::options::ScanOptions;
use crate::plan::{END_KEY, FIRST_KEY, with_initial_shards};
use crate::report::storage_error;
use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::stats::ScanStats;
use crate::store::{self, Scope};
use crate::worker::{PAGE_ENTRIES, Shared, Worker, look_up, release_dead};

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
    /// Set to stop: workers store what they have and give their shards back.
    pub stop: &'s AtomicBool,
}

/// How a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanOutcome {
    /// The run.
    pub run: RunId,
    /// Whether it went on where an earlier process had stopped.
    pub resumed: bool,
    /// Where it stands.
    pub end: ScanEnd,
}

/// Where a scan stands when it returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanEnd {
    /// Everything was scanned.
    Finished,
    /// It was told to stop. The same scan, started again, goes on.
    Interrupted,
    /// Some shards are parked; everything else was scanned.
    Parked {
        /// How many.
        shards: u64,
    },
    /// Somebody called the run off.
    Cancelled,
}

/// Why a scan could not go on. What was stored stays; the same scan, started again, goes on.
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
    /// A worker broke. This is a bug in gossip.
    #[error(
        "a worker stopped unexpectedly; this is a bug in gossip. Nothing that was stored is \
             lost: run the same command again to go on"
    )]
    WorkerPanicked,
}

impl Scan<'_> {
    /// Runs the scan.
    pub fn run(&self) -> Result<ScanOutcome, ScanError> {
        let key = self.state.tenant_key()?;
        let mut coordinator = self.state.coordinator()?;
        let policy = self.engine.policy_hash();
        let scope = store(&mut coordinator, |tx| store::scope(tx, self.target, policy))?;
        let (run, resumed) = self.begin(&mut coordinator, policy)?;
        let shared = Shared {
            context: self.context(&key, scope, run),
            options: self.options,
            slots: self.state.slots()?,
            lease_ms: lease_ms(&coordinator, run)?,
            stop: self.stop,
            halt: AtomicBool::new(false),
            idle: AtomicUsize::new(0),
        };
        if resumed {
            // Whoever died in this run need not be waited for.
            release_dead(&mut coordinator, run, &shared.slots, &mut AcquireScratch::new())?;
        }
        self.work(&shared)?;
        let end = self.finish(&mut coordinator, &shared)?;
        Ok(ScanOutcome { run, resumed, end })
    }

    fn context<'c>(
        &'c self,
        key: &'c TenantSecretKey,
        scope: Scope,
        run: RunId,
    ) -> ItemContext<'c> {
        let Self { source, target, engine, stats, .. } = *self;
        ItemContext { source, engine, key, target, scope, run, stats }
    }

    /// The run to work on: the one that was interrupted, or a new one.
    fn begin(
        &self,
        coordinator: &mut SqliteCoordinator,
        policy: PolicyHash,
    ) -> Result<(RunId, bool), ScanError> {
        loop {
            let started = now().as_raw();
            let (run, is_new) =
                store(coordinator, |tx| store::open_run(tx, self.target, policy, started))?;
            let status = status(coordinator, run)?;
            if status.is_terminal() {
                // Its process died before it could write the end down.
                store(coordinator, |tx| store::end_run(tx, run, now().as_raw()))?;
            } else if self.options.fresh && !is_new {
                cancel(coordinator, run)?;
            } else if status == RunStatus::Initializing {
                self.register(coordinator, run)?;
                return Ok((run, false));
            } else {
                store(coordinator, |tx| store::mark_resumed(tx, run))?;
                return Ok((run, true));
            }
        }
    }

    fn register(&self, coordinator: &mut SqliteCoordinator, run: RunId) -> Result<(), ScanError> {
        let config = RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration: self.options.lease_ms,
            max_shard_retries: self.options.max_shard_retries,
        };
        let created = with_initial_shards(self.source, self.options.threads, |shards| {
            let now = now();
            coordinator.create_run_with_shards(now, LOCAL_TENANT, run, config, shards, new_op_id())
        })?;
        match created {
            Ok(_) => Ok(()),
            Err(CreateRunError::BackendError(error)) => Err(error.into()),
            // Another process that began the same scan was faster; its shards are as good.
            Err(_) if status(coordinator, run)? != RunStatus::Initializing => {
                store(coordinator, |tx| store::mark_resumed(tx, run))
            }
            Err(error) => Err(InfraError::corruption("register", error.to_string()).into()),
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
        let progress = match coordinator.get_run_progress(LOCAL_TENANT, run) {
            Ok(progress) => progress,
            Err(GetRunError::BackendError(error)) => return Err(error.into()),
            Err(error) => return Err(InfraError::corruption("finish", error.to_string()).into()),
        };
        match evaluate_run_terminal(&progress) {
            RunTerminalEvaluation::StillActive => {
                let status = coordinator.get_run(LOCAL_TENANT, run).map(|record| record.status);
                let cancelled = status == Ok(RunStatus::Cancelled);
                return Ok(if cancelled { ScanEnd::Cancelled } else { ScanEnd::Interrupted });
            }
            RunTerminalEvaluation::HasFailures => {
                return Ok(ScanEnd::Parked { shards: progress.parked });
            }
            RunTerminalEvaluation::AllDone => {}
        }
        let resumed = store(coordinator, |tx| store::was_resumed(tx, run))?;
        if resumed && !self.look_again(coordinator, &shared.context)? {
            return Ok(ScanEnd::Interrupted);
        }
        match coordinator.complete_run(now(), LOCAL_TENANT, run, new_op_id()) {
            // Another process that worked on the same run was faster.
            Ok(_) | Err(RunTransitionError::RunTerminal { status: RunStatus::Done }) => {}
            Err(RunTransitionError::RunTerminal { .. }) => return Ok(ScanEnd::Cancelled),
            Err(RunTransitionError::BackendError(error)) => return Err(error.into()),
            Err(error) => return Err(InfraError::corruption("finish", error.to_string()).into()),
        }
        store(coordinator, |tx| {
            store::end_run(tx, run, now().as_raw())?;
            store::forget_unmet(tx, run)
        })?;
        Ok(ScanEnd::Finished)
    }

    /// A resumed scan looks at everything once more, for what was created or changed behind its
    /// cursors while it was away, and reads what its ledger lacks. `false`: told to stop.
    fn look_again(
        &self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
    ) -> Result<bool, ScanError> {
        let everything = ShardSpecRef::new(FIRST_KEY, END_KEY, b"");
        let (mut page, mut buffers) = (Page::new(), ItemBuffers::default());
        let (mut known, mut batch) = (Vec::new(), Batch::default());
        let go_on = || !self.stop.load(Ordering::Relaxed);
        let mut reached: Option<Vec<u8>> = None;
        while go_on() {
            let cursor = CursorUpdate::new(reached.as_deref(), None);
            self.source.list(everything, cursor, PAGE_ENTRIES, &mut page)?;
            look_up(coordinator, context, &page, &mut known)?;
            for (entry, known) in page.iter().zip(&known) {
                let go_on = &mut |_: &mut InHand<'_>| go_on();
                match context.handle(&entry, known.as_ref(), None, &mut buffers, go_on) {
                    Handled::Covered => continue,
                    Handled::Unchanged => batch.add_unchanged(entry.key),
                    Handled::Read(row) => batch.add_read(row),
                    Handled::Stopped => {
                        add_to_run(coordinator, context, &mut batch)?;
                        return Ok(false);
                    }
                }
                let now_ms = now().as_raw();
                batch.advance(entry.key, now_ms);
                if batch.is_due(0, self.options, now_ms)
                    && !add_to_run(coordinator, context, &mut batch)?
                {
                    return Ok(true);
                }
            }
            if !add_to_run(coordinator, context, &mut batch)? || page.is_last() {
                return Ok(true);
            }
            reached = page.iter().last().map(|entry| entry.key.to_vec()).or(reached);
        }
        Ok(false)
    }
}

/// Stores a batch that no shard's cursor goes with. `false`: the run has ended meanwhile, and the
/// items may be a newer run's.
fn add_to_run(
    coordinator: &mut SqliteCoordinator,
    context: &ItemContext<'_>,
    batch: &mut Batch,
) -> Result<bool, ScanError> {
    if batch.is_empty() {
        return Ok(true);
    }
    let goes_on = store(coordinator, |tx| {
        if store::has_ended(tx, context.run)? {
            return Ok(false);
        }
        batch.write(tx, context.scope, context.run)?;
        Ok(true)
    })?;
    batch.clear(0);
    Ok(goes_on)
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
        // Its process died before coordination heard of it.
        Err(GetRunError::RunNotFound) => Ok(RunStatus::Initializing),
        Err(GetRunError::BackendError(error)) => Err(error.into()),
        Err(error) => Err(InfraError::corruption("status", error.to_string()).into()),
    }
}

/// How long the run's leases last: what it was created with counts, not what is asked for now.
fn lease_ms(coordinator: &SqliteCoordinator, run: RunId) -> Result<u64, ScanError> {
    match coordinator.get_run(LOCAL_TENANT, run) {
        Ok(record) => Ok(record.config.lease_duration),
        Err(GetRunError::BackendError(error)) => Err(error.into()),
        Err(error) => Err(InfraError::corruption("lease", error.to_string()).into()),
    }
}

/// Calls a run off, in coordination and in the runtime's own table.
pub(crate) fn cancel(coordinator: &mut SqliteCoordinator, run: RunId) -> Result<(), ScanError> {
    match coordinator.cancel_run(now(), LOCAL_TENANT, run, new_op_id()) {
        Ok(_) | Err(RunTransitionError::RunTerminal { .. } | RunTransitionError::RunNotFound) => {}
        Err(RunTransitionError::BackendError(error)) => return Err(error.into()),
        Err(error) => return Err(InfraError::corruption("cancel", error.to_string()).into()),
    }
    store(coordinator, |tx| store::end_run(tx, run, now().as_raw()))
}

fn store<T>(
    coordinator: &mut SqliteCoordinator,
    f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, ScanError> {
    coordinator.transaction(f).map_err(|error| storage_error("scan.store", error).into())
}
