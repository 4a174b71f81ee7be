//! A worker: claims shards and works through them until none is left.
//!
//! - W1: what a worker read, what it found and how far it came are committed in one transaction. A
//!   worker that dies has done all of what its last checkpoint says, and nothing else counts.
//! - W2: a worker that lost its lease stores nothing more for that shard.
//! - W3: a worker that is told to stop stores what it has, and gives its shard back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gossip_contracts::connector::{ConnectorError, Page};
use gossip_contracts::coordination::{CursorUpdate, ShardSpec};
use gossip_contracts::identity::{OpId, RunId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, ClaimError, CompleteError, CoordinationBackend, GetRunError,
    IdempotentOutcome, InfraError, Lease, ParkError, ParkReason, ReleaseError, RenewError,
    RunManagement, ShardClaiming, SplitError,
};
use gossip_coordination_sqlite::rusqlite;
use gossip_coordination_sqlite::{CommitError, ReleaseDeadError, SqliteCoordinator, WorkerSlots};

use crate::batch::Batch;
use crate::clock::{new_op_id, now};
use crate::item::{Handled, ItemBuffers, ItemContext};
use crate::options::ScanOptions;
use crate::plan::ResidualSplit;
use crate::report::storage_error;
use crate::state::LOCAL_TENANT;
use crate::store::{self, LedgerRow};

/// Entries listed at a time.
pub(crate) const PAGE_ENTRIES: usize = 256;
/// How long an idle worker waits before it asks again.
const IDLE: Duration = Duration::from_millis(20);
/// Waits between two looks for workers that are gone.
const WAITS_PER_LOOK: u32 = 25;
/// Times that a commit is tried when the database fails in passing.
const COMMIT_TRIES: u32 = 5;
/// Listings in a row that may fail in passing before a shard is parked.
const LIST_TRIES: u32 = 5;

/// What all workers of a scan share.
pub(crate) struct Shared<'s> {
    pub(crate) context: ItemContext<'s>,
    pub(crate) options: &'s ScanOptions,
    pub(crate) slots: WorkerSlots,
    /// How long the run's leases last.
    pub(crate) lease_ms: u64,
    /// The caller wants an end.
    pub(crate) stop: &'s AtomicBool,
    /// A worker has failed.
    pub(crate) halt: AtomicBool,
    /// Workers that look for something to do.
    pub(crate) idle: AtomicUsize,
}

impl Shared<'_> {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.halt.load(Ordering::Relaxed)
    }
}

/// How work on a shard ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// It is done, parked or given back.
    Settled,
    /// Another worker has it, or its run is over.
    Lost,
}

pub(crate) struct Worker<'w> {
    shared: &'w Shared<'w>,
    coordinator: SqliteCoordinator,
    id: WorkerId,
    scratch: Box<AcquireScratch>,
    buffers: ItemBuffers,
    page: Page,
    known: Vec<Option<LedgerRow>>,
    waits: u32,
}

/// A shard in a worker's hands.
struct Hold {
    lease: Lease,
    spec: ShardSpec,
    batch: Batch,
    /// The last key stored, or the one with which the shard was acquired.
    stored_key: Option<Vec<u8>>,
}

impl<'w> Worker<'w> {
    pub(crate) fn new(
        shared: &'w Shared<'w>,
        coordinator: SqliteCoordinator,
        id: WorkerId,
    ) -> Self {
        Self {
            shared,
            coordinator,
            id,
            scratch: Box::new(AcquireScratch::new()),
            buffers: ItemBuffers::default(),
            page: Page::new(),
            known: Vec::new(),
            waits: 0,
        }
    }

    /// Works until the run has no active shard, or until it is told to stop.
    pub(crate) fn run(mut self) -> Result<(), InfraError> {
        let run = self.shared.context.run;
        while !self.stopping() {
            match self.claim() {
                Ok(hold) => {
                    let ended = self.work(hold)?;
                    tracing::debug!(worker = %self.id, ?ended, "a shard has ended");
                }
                Err(ClaimError::NoneAvailable { .. } | ClaimError::Throttled { .. }) => {
                    match self.coordinator.get_run_progress(LOCAL_TENANT, run) {
                        Ok(progress) if progress.active == 0 => return Ok(()),
                        Ok(_) => self.wait()?,
                        Err(GetRunError::BackendError(error)) => return Err(error),
                        Err(_) => return Ok(()),
                    }
                }
                Err(ClaimError::BackendError(error)) => return Err(error),
                // The run was cancelled or finished under us.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    fn stopping(&self) -> bool {
        self.shared.stopping()
    }

    /// Idle workers are counted: it makes busy ones split. Now and then one looks whether another
    /// process has died, whose shards it can have.
    fn wait(&mut self) -> Result<(), InfraError> {
        self.shared.idle.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(IDLE);
        self.shared.idle.fetch_sub(1, Ordering::Relaxed);
        self.waits += 1;
        if self.waits.is_multiple_of(WAITS_PER_LOOK) {
            let run = self.shared.context.run;
            release_dead(&mut self.coordinator, run, &self.shared.slots, &mut self.scratch)?;
        }
        Ok(())
    }

    /// First what this worker's slot held when its last process died, then anything that is free.
    fn claim(&mut self) -> Result<Hold, ClaimError> {
        let (now, run, id) = (now(), self.shared.context.run, self.id);
        let own = self.coordinator.reacquire_own(now, LOCAL_TENANT, run, id, &mut self.scratch)?;
        let (lease, restored) = match own {
            Some(acquired) => (acquired.lease, acquired.to_restored_state()),
            None => {
                let acquired = self.coordinator.claim_next_available(
                    now,
                    LOCAL_TENANT,
                    run,
                    id,
                    &mut self.scratch,
                )?;
                (acquired.lease, acquired.to_restored_state())
            }
        };
        Ok(Hold {
            lease,
            spec: restored.spec,
            batch: Batch::default(),
            stored_key: restored.cursor.as_update().last_key().map(Into::into),
        })
    }

    fn work(&mut self, mut hold: Hold) -> Result<Ended, InfraError> {
        let mut failures = 0;
        loop {
            let reached = hold.reached().map(<[u8]>::to_vec);
            let cursor = CursorUpdate::new(reached.as_deref(), None);
            let listed = self.shared.context.source.list(
                hold.spec.as_ref(),
                cursor,
                PAGE_ENTRIES,
                &mut self.page,
            );
            if let Err(error) = listed {
                failures += 1;
                if error.is_retryable() && failures < LIST_TRIES && !self.stopping() {
                    std::thread::sleep(IDLE * failures);
                    continue;
                }
                return self.park(hold, &error);
            }
            failures = 0;
            self.look_up_page()?;
            for index in 0..self.page.len() {
                if let Some(ended) = self.handle(&mut hold, index)? {
                    return Ok(ended);
                }
            }
            if self.page.is_last() {
                return self.complete(hold);
            }
            self.share(&mut hold)?;
        }
    }

    /// What the ledger says of the page's entries, in one look.
    fn look_up_page(&mut self) -> Result<(), InfraError> {
        look_up(&self.coordinator, &self.shared.context, &self.page, &mut self.known)
    }

    /// Handles one entry of the page, and checkpoints when it is time.
    fn handle(&mut self, hold: &mut Hold, index: usize) -> Result<Option<Ended>, InfraError> {
        if self.stopping() {
            return self.give_back(hold).map(Some);
        }
        let shared = self.shared;
        let entry = self.page.get(index).expect("the index is in the page");
        let Self { coordinator, buffers, known, .. } = self;
        let mut lost = None;
        let handled = shared.context.handle(&entry, known[index].as_ref(), buffers, &mut || {
            if shared.stopping() {
                return false;
            }
            match renew_if_needed(coordinator, &mut hold.lease, shared.lease_ms) {
                Ok(true) => true,
                Ok(false) => {
                    lost = Some(Ok(Ended::Lost));
                    false
                }
                Err(error) => {
                    lost = Some(Err(error));
                    false
                }
            }
        });
        if let Some(lost) = lost {
            return lost.map(Some);
        }
        match handled {
            Handled::Covered => {}
            Handled::Unchanged => hold.batch.add_unchanged(entry.key),
            Handled::Read(row) => hold.batch.add_read(row),
            Handled::Stopped => return self.give_back(hold).map(Some),
        }
        let now_ms = now().as_raw();
        hold.batch.advance(entry.key, now_ms);
        if hold.batch.is_due(shared.options, now_ms) && self.checkpoint(hold)? == Ended::Lost {
            return Ok(Some(Ended::Lost));
        }
        if !renew_if_needed(&mut self.coordinator, &mut hold.lease, shared.lease_ms)? {
            return Ok(Some(Ended::Lost));
        }
        Ok(None)
    }

    /// Stores the batch with its cursor.
    fn checkpoint(&mut self, hold: &mut Hold) -> Result<Ended, InfraError> {
        let Some(last_key) = hold.batch.last_key().map(<[u8]>::to_vec) else {
            return Ok(Ended::Settled);
        };
        let (batch, context) = (&hold.batch, &self.shared.context);
        let outcome = commit(|op_id| {
            self.coordinator.checkpoint_with(
                now(),
                LOCAL_TENANT,
                &hold.lease,
                CursorUpdate::at(&last_key),
                op_id,
                |tx| batch.write(tx, context.scope, context.run),
            )
        });
        match outcome {
            Ok(_) => {
                hold.batch.clear();
                hold.stored_key = Some(last_key);
                Ok(Ended::Settled)
            }
            Err(CommitError::Refused(CheckpointError::BackendError(error))) => Err(error),
            Err(CommitError::Refused(refusal)) => {
                tracing::info!(%refusal, "a checkpoint was refused");
                Ok(Ended::Lost)
            }
            Err(CommitError::Caller(error)) => Err(caller_error("checkpoint.writes", &error)),
        }
    }

    /// Everything is handled: stores the rest and marks the shard as done.
    fn complete(&mut self, hold: Hold) -> Result<Ended, InfraError> {
        // A shard in which nothing was found to do is done at its start: a final cursor needs a key.
        let start = hold.spec.as_ref().start();
        let last_key = hold.reached().unwrap_or(start).to_vec();
        let (batch, context) = (&hold.batch, &self.shared.context);
        let outcome = commit(|op_id| {
            self.coordinator.complete_with(
                now(),
                LOCAL_TENANT,
                &hold.lease,
                CursorUpdate::at(&last_key),
                op_id,
                |tx| batch.write(tx, context.scope, context.run),
            )
        });
        match outcome {
            Ok(_) => Ok(Ended::Settled),
            Err(CommitError::Refused(CompleteError::BackendError(error))) => Err(error),
            Err(CommitError::Refused(refusal)) => {
                tracing::info!(%refusal, "a completion was refused");
                Ok(Ended::Lost)
            }
            Err(CommitError::Caller(error)) => Err(caller_error("complete.writes", &error)),
        }
    }

    /// The source does not answer for this shard: stores what there is and halts it.
    fn park(&mut self, mut hold: Hold, error: &ConnectorError) -> Result<Ended, InfraError> {
        tracing::warn!(%error, "a shard cannot be listed and is parked");
        if self.checkpoint(&mut hold)? == Ended::Lost {
            return Ok(Ended::Lost);
        }
        let reason = match error {
            ConnectorError::PermissionDenied { .. } => ParkReason::PermissionDenied,
            ConnectorError::NotFound { .. } => ParkReason::NotFound,
            ConnectorError::Retryable { .. } => ParkReason::TooManyErrors,
            _ => ParkReason::Other,
        };
        let op_id = new_op_id();
        match self.coordinator.park_shard(now(), LOCAL_TENANT, &hold.lease, reason, op_id) {
            Ok(_) => Ok(Ended::Settled),
            Err(ParkError::BackendError(error)) => Err(error),
            Err(_) => Ok(Ended::Lost),
        }
    }

    /// W3.
    fn give_back(&mut self, hold: &mut Hold) -> Result<Ended, InfraError> {
        if self.checkpoint(hold)? == Ended::Lost {
            return Ok(Ended::Lost);
        }
        match self.coordinator.release(now(), LOCAL_TENANT, &hold.lease) {
            Ok(()) => Ok(Ended::Settled),
            Err(ReleaseError::BackendError(error)) => Err(error),
            Err(_) => Ok(Ended::Lost),
        }
    }

    /// Gives the half that is furthest away to a worker that has nothing to do.
    fn share(&mut self, hold: &mut Hold) -> Result<(), InfraError> {
        if self.shared.idle.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        // Everything up to here has been handed to the scanner, stored or not.
        let reached = hold.reached().map(<[u8]>::to_vec);
        let cursor = CursorUpdate::new(reached.as_deref(), None);
        let source = self.shared.context.source;
        let Ok(points) = source.split_points(hold.spec.as_ref(), cursor, 1) else {
            return Ok(());
        };
        let Some(point) = points.first() else { return Ok(()) };
        let split = match ResidualSplit::at(hold.spec.as_ref(), point) {
            Ok(split) => split,
            Err(error) => {
                tracing::debug!(%error, "a shard is not split there");
                return Ok(());
            }
        };
        let op_id = new_op_id();
        let plan = split.plan();
        match self.coordinator.split_residual(now(), LOCAL_TENANT, &hold.lease, &plan, op_id) {
            Ok(_) => {
                hold.spec = split.into_kept();
                Ok(())
            }
            Err(SplitError::BackendError(error)) => Err(error),
            Err(refusal) => {
                tracing::debug!(%refusal, "a split was refused");
                Ok(())
            }
        }
    }
}

impl Hold {
    /// The last key that was handled, stored or not.
    fn reached(&self) -> Option<&[u8]> {
        self.batch.last_key().or(self.stored_key.as_deref())
    }
}

/// What the ledger says of a page's entries.
pub(crate) fn look_up(
    coordinator: &SqliteCoordinator,
    context: &ItemContext<'_>,
    page: &Page,
    known: &mut Vec<Option<LedgerRow>>,
) -> Result<(), InfraError> {
    coordinator
        .read(|tx| store::find_items(tx, context.scope, page, known))
        .map_err(|error| storage_error("ledger.read", error))
}

/// Gives back what workers hold that are gone.
pub(crate) fn release_dead(
    coordinator: &mut SqliteCoordinator,
    run: RunId,
    slots: &WorkerSlots,
    scratch: &mut AcquireScratch,
) -> Result<(), InfraError> {
    match coordinator.release_dead(now(), LOCAL_TENANT, run, slots, scratch) {
        Ok(0) => Ok(()),
        Ok(shards) => {
            tracing::info!(shards, "shards of workers that are gone are free again");
            Ok(())
        }
        Err(
            ReleaseDeadError::Claim(ClaimError::BackendError(error))
            | ReleaseDeadError::Release(ReleaseError::BackendError(error)),
        ) => Err(error),
        // The run is over, or another process did the same.
        Err(error) => {
            tracing::debug!(%error, "shards of workers that are gone were not given back");
            Ok(())
        }
    }
}

/// Renews a lease of which less than half is left. `false`: it is lost.
fn renew_if_needed(
    coordinator: &mut SqliteCoordinator,
    lease: &mut Lease,
    lease_ms: u64,
) -> Result<bool, InfraError> {
    let now = now();
    let left = lease.deadline().as_raw().saturating_sub(now.as_raw());
    if left > lease_ms / 2 {
        return Ok(true);
    }
    match coordinator.renew(now, LOCAL_TENANT, lease) {
        Ok(renewed) => {
            lease.set_deadline(renewed.new_deadline);
            Ok(true)
        }
        Err(RenewError::BackendError(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// Commits under one operation id, again while the database fails in passing: a commit whose answer
/// was lost is then recognised.
fn commit<R: TransientRefusal>(
    mut attempt: impl FnMut(OpId) -> Result<IdempotentOutcome<()>, CommitError<R, rusqlite::Error>>,
) -> Result<IdempotentOutcome<()>, CommitError<R, rusqlite::Error>> {
    let op_id = new_op_id();
    for tried in 1.. {
        match attempt(op_id) {
            Err(CommitError::Refused(refusal))
                if refusal.is_transient() && tried < COMMIT_TRIES =>
            {
                std::thread::sleep(IDLE * tried);
            }
            outcome => return outcome,
        }
    }
    unreachable!("the tries are counted")
}

/// A refusal that may not be one.
trait TransientRefusal {
    fn is_transient(&self) -> bool;
}

impl TransientRefusal for CheckpointError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::BackendError(error) if error.is_retryable())
    }
}

impl TransientRefusal for CompleteError {
    fn is_transient(&self) -> bool {
        matches!(self, Self::BackendError(error) if error.is_retryable())
    }
}

/// SQLite's messages name tables and columns, never what is in them.
fn caller_error(step: &'static str, error: &rusqlite::Error) -> InfraError {
    InfraError::transient(step, error.to_string())
}
