//! A scan from start to end: plan or resume, work, look again, finish.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, Page};
use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{PolicyHash, RunId, TenantSecretKey};
use gossip_coordination::{
    CreateRunError, GetRunError, InfraError, RunConfig, RunManagement, RunStatus,
    RunTerminalEvaluation, RunTransitionError, evaluate_run_terminal,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};
use gossip_engine::Engine;

use crate::batch::Batch;
use crate::clock::{new_op_id, now};
use crate::item::{Handled, ItemBuffers, ItemContext};
use crate::options::ScanOptions;
use crate::plan::{END_KEY, FIRST_KEY, with_initial_shards};
use crate::report::storage_error;
use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::stats::ScanStats;
use crate::store;
use crate::worker::{PAGE_ENTRIES, Shared, Worker};

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
        let (run, resumed) = self.begin(&mut coordinator, policy)?;
        let shared = Shared {
            context: self.context(&key, policy, run),
            options: self.options,
            stop: self.stop,
            idle: AtomicUsize::new(0),
        };
        self.work(&shared)?;
        let end = self.finish(&mut coordinator, &shared)?;
        Ok(ScanOutcome { run, resumed, end })
    }

    fn context<'c>(
        &'c self,
        key: &'c TenantSecretKey,
        policy: PolicyHash,
        run: RunId,
    ) -> ItemContext<'c> {
        let Self { source, target, engine, stats, .. } = *self;
        ItemContext { source, engine, key, target, policy, run, stats }
    }

    /// The run to work on: the one that was interrupted, or a new one.
    fn begin(
        &self,
        coordinator: &mut SqliteCoordinator,
        policy: PolicyHash,
    ) -> Result<(RunId, bool), ScanError> {
        while let Some(run) =
            store(coordinator, |tx| store::find_open_run(tx, self.target, policy))?
        {
            let status = match coordinator.get_run(LOCAL_TENANT, run) {
                Ok(record) => record.status,
                // Its process died before coordination heard of it.
                Err(GetRunError::RunNotFound) => RunStatus::Initializing,
                Err(GetRunError::BackendError(error)) => return Err(error.into()),
                Err(error) => {
                    return Err(InfraError::corruption("resume", error.to_string()).into());
                }
            };
            if status.is_terminal() {
                // Its process died before it could write the end down.
                store(coordinator, |tx| store::end_run(tx, run, now().as_raw()))?;
            } else if self.options.fresh {
                cancel(coordinator, run)?;
            } else {
                if status == RunStatus::Initializing {
                    self.register(coordinator, run)?;
                } else {
                    store(coordinator, |tx| store::mark_resumed(tx, run))?;
                }
                return Ok((run, status == RunStatus::Active));
            }
        }
        let started = now().as_raw();
        let run = store(coordinator, |tx| store::insert_run(tx, self.target, policy, started))?;
        self.register(coordinator, run)?;
        Ok((run, false))
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
            Err(error) => Err(InfraError::corruption("register", error.to_string()).into()),
        }
    }

    fn work(&self, shared: &Shared<'_>) -> Result<(), ScanError> {
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.threads.max(1))
                .map(|_| {
                    scope.spawn(move || -> Result<(), ScanError> {
                        let slot = self.state.take_slot()?;
                        let coordinator = self.state.coordinator()?;
                        let worked = Worker::new(shared, coordinator, slot.id()).run();
                        if worked.is_err() {
                            // One that cannot store anything is enough; the others stop in order.
                            self.stop.store(true, Ordering::Relaxed);
                        }
                        Ok(worked?)
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
        store(coordinator, |tx| store::end_run(tx, run, now().as_raw()))?;
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
        let mut reached: Option<Vec<u8>> = None;
        loop {
            let cursor = CursorUpdate::new(reached.as_deref(), None);
            self.source.list(everything, cursor, PAGE_ENTRIES, &mut page)?;
            for entry in page.iter() {
                let item = context.item_id(entry.key);
                let known = store(coordinator, |tx| store::find_item(tx, item, context.policy))?;
                let mut batch = Batch::default();
                let go_on = &mut || !self.stop.load(Ordering::Relaxed);
                match context.handle(&entry, known.as_ref(), &mut buffers, go_on) {
                    Handled::Covered => {}
                    Handled::Unchanged(item) => batch.add_unchanged(item),
                    Handled::Read(row) => batch.add_read(row),
                    Handled::Stopped => return Ok(false),
                }
                if !batch.is_empty() {
                    store(coordinator, |tx| batch.write(tx, context.policy, context.run))?;
                }
            }
            if page.is_last() {
                return Ok(true);
            }
            reached = page.iter().last().map(|entry| entry.key.to_vec()).or(reached);
        }
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
