//! A scan from start to end: plan or resume, work, look again, finish.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use gossip_contracts::connector::{Connector, ConnectorError, Page};
use gossip_contracts::coordination::{CursorSemantics, ShardSpecRef};
use gossip_contracts::identity::{PolicyHash, RunId, TenantSecretKey};
use gossip_coordination::{
    AcquireScratch, CreateRunError, GetRunError, InfraError, RunConfig, RunManagement, RunStatus,
    RunTerminalEvaluation, RunTransitionError, evaluate_run_terminal,
};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};
use gossip_engine::Engine;

use crate::batch::{Batch, OCCURRENCES_MAX};
use crate::clock::{new_op_id, now};
use crate::item::{Handled, InHand, ItemBuffers, ItemContext};
use crate::options::ScanOptions;
use crate::plan::{END_KEY, FIRST_KEY, with_initial_shards};
use crate::policy::policy_hash;
use crate::report::storage_error;
use crate::state::{LOCAL_TENANT, StateDir, StateError};
use crate::stats::ScanStats;
use crate::store::{self, Scope};
use crate::worker::{Shared, Worker, list, look_up, release_dead};

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
        let policy = policy_hash(self.engine);
        let scope = store(&mut coordinator, |tx| store::scope(tx, self.target, policy))?;
        let (run, resumed) = self.begin(&mut coordinator, policy)?;
        let fresh = store(&mut coordinator, |tx| store::is_fresh(tx, run))?;
        let shared = Shared {
            context: self.context(&key, scope, run, fresh),
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
        fresh: bool,
    ) -> ItemContext<'c> {
        let Self { source, target, engine, stats, .. } = *self;
        ItemContext { source, engine, key, target, scope, run, fresh, stats }
    }

    /// The run to work on: the one that was interrupted, or a new one.
    fn begin(
        &self,
        coordinator: &mut SqliteCoordinator,
        policy: PolicyHash,
    ) -> Result<(RunId, bool), ScanError> {
        loop {
            let started = now().as_raw();
            let fresh = self.options.fresh;
            let (run, is_new) =
                store(coordinator, |tx| store::open_run(tx, self.target, policy, started, fresh))?;
            let status = status(coordinator, run)?;
            if status.is_terminal() {
                // Its process died before it could write the end down.
                store(coordinator, |tx| match status {
                    RunStatus::Done => store::finish_run(tx, run, now().as_raw()),
                    _ => store::end_run(tx, run, now().as_raw()).map(drop),
                })?;
            } else if fresh && !is_new {
                cancel(coordinator, run)?;
            } else if status == RunStatus::Initializing {
                if self.register(coordinator, run)? {
                    return Ok((run, false));
                }
            } else if store(coordinator, |tx| store::join_run(tx, run))? {
                return Ok((run, true));
            }
        }
    }

    /// `false`: another process that began the same scan was faster.
    fn register(&self, coordinator: &mut SqliteCoordinator, run: RunId) -> Result<bool, ScanError> {
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
            Ok(_) => Ok(true),
            Err(CreateRunError::BackendError(error)) => Err(error.into()),
            Err(_) if status(coordinator, run)? != RunStatus::Initializing => Ok(false),
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
        loop {
            let joined = store(coordinator, |tx| store::times_resumed(tx, run))?;
            if joined > 0 && !self.look_again(coordinator, &shared.context)? {
                return Ok(ScanEnd::Interrupted);
            }
            // Whoever joined after that look began may want what was changed before it joined. Once
            // the end is written down nobody joins any more.
            let ended = store(coordinator, |tx| {
                let all_looked = store::times_resumed(tx, run)? == joined;
                if all_looked {
                    store::finish_run(tx, run, now().as_raw())?;
                }
                Ok(all_looked || store::has_ended(tx, run)?)
            })?;
            if ended {
                break;
            }
        }
        match coordinator.complete_run(now(), LOCAL_TENANT, run, new_op_id()) {
            // Another process that worked on the same run was faster.
            Ok(_) | Err(RunTransitionError::RunTerminal { status: RunStatus::Done }) => {
                Ok(ScanEnd::Finished)
            }
            Err(RunTransitionError::RunTerminal { .. }) => Ok(ScanEnd::Cancelled),
            Err(RunTransitionError::BackendError(error)) => Err(error.into()),
            Err(error) => Err(InfraError::corruption("finish", error.to_string()).into()),
        }
    }

    /// A resumed scan looks at everything once more, for what was created or changed behind its
    /// cursors while it was away, and reads what its ledger lacks; what has gone since it was read is
    /// forgotten. `false`: told to stop.
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
            list(self.source, everything, reached.as_deref(), &mut page, &|| !go_on())?;
            let after = reached.as_deref().unwrap_or(FIRST_KEY);
            if !self.forget_gone(coordinator, context, after, &page)? {
                return Ok(true);
            }
            look_up(coordinator, context, &page, &mut known)?;
            for (entry, known) in page.iter().zip(&known) {
                // No lease to keep and no cursor to store: memory is all there is to bound.
                let mut stored = Ok(true);
                let go_on = &mut |item: &mut InHand<'_>| {
                    if item.row.occurrences.len() >= OCCURRENCES_MAX {
                        stored = add_part_to_run(coordinator, context, item);
                    }
                    matches!(stored, Ok(true)) && go_on()
                };
                let handled = context.handle(&entry, known.as_ref(), None, &mut buffers, go_on);
                if !stored? {
                    return Ok(true);
                }
                match handled {
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

    /// Forgets what the page, which goes on behind `after`, passes over. `false`: the run has ended
    /// meanwhile.
    fn forget_gone(
        &self,
        coordinator: &mut SqliteCoordinator,
        context: &ItemContext<'_>,
        after: &[u8],
        page: &Page,
    ) -> Result<bool, ScanError> {
        loop {
            let mut gone = coordinator
                .read(|tx| store::find_unlisted(tx, context.scope, after, page))
                .map_err(|error| storage_error("ledger.read", error))?;
            // Another process may have stored what was created since the page was listed: only what
            // cannot be opened either is gone.
            gone.retain(|key| {
                use ConnectorError::{NotFound, Permanent};
                matches!(self.source.open(key), Err(NotFound { .. } | Permanent { .. }))
            });
            if gone.is_empty() {
                return Ok(true);
            }
            let goes_on = store(coordinator, |tx| {
                if store::has_ended(tx, context.run)? {
                    return Ok(false);
                }
                gone.iter().try_for_each(|key| store::forget_item(tx, context.scope, key))?;
                Ok(true)
            })?;
            if !goes_on {
                return Ok(false);
            }
        }
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

/// Stores what was found so far in an item of which the rest is still to be read. `false`: as above.
fn add_part_to_run(
    coordinator: &mut SqliteCoordinator,
    context: &ItemContext<'_>,
    item: &mut InHand<'_>,
) -> Result<bool, ScanError> {
    let row = item.part_row();
    let goes_on = store(coordinator, |tx| {
        if store::has_ended(tx, context.run)? {
            return Ok(false);
        }
        store::put_item(tx, context.scope, &row, context.run)?;
        Ok(true)
    })?;
    item.part_is_stored(context.stats);
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
    store(coordinator, |tx| store::end_run(tx, run, now().as_raw()).map(drop))
}

fn store<T>(
    coordinator: &mut SqliteCoordinator,
    f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, ScanError> {
    coordinator.transaction(f).map_err(|error| storage_error("scan.store", error).into())
}
