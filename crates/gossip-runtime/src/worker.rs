//! A worker: claims shards and works through them until none is left.
//!
//! - W1: what a worker read, what it found and how far it came are committed in one transaction. A
//!   worker that dies has done all of what its last checkpoint says, and nothing else counts.
//! - W2: a worker that lost its lease stores nothing more for that shard.
//! - W3: a worker that is told to stop stores what it has, and gives its shard back.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use gossip_contracts::connector::{Connector, ConnectorError, Page, PageEntry};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{RunId, WorkerId};
use gossip_coordination::{
    AcquireScratch, ClaimError, CoordinationBackend, GetRunError, InfraError, ParkError,
    ParkReason, ReleaseError, RunManagement, ShardClaiming, SplitError,
};
use gossip_coordination_sqlite::{ReleaseDeadError, SqliteCoordinator, WorkerSlots};

use crate::clock::{new_op_id, now};
use crate::hold::{Held, Hold};
use crate::in_item::InItem;
use crate::item::{Handled, InHand, ItemBuffers, ItemContext};
use crate::options::ScanOptions;
use crate::plan::ResidualSplit;
use crate::report::storage_error;
use crate::state::LOCAL_TENANT;
use crate::store::{self, LedgerRow};

/// Entries listed at a time.
const PAGE_ENTRIES: usize = 256;
/// How long an idle worker waits before it asks again.
const IDLE: Duration = Duration::from_millis(20);
/// Waits between two looks for workers that are gone.
const WAITS_PER_LOOK: u32 = 25;
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
        Ok(Hold::new(lease, restored)?)
    }

    fn work(&mut self, mut hold: Hold) -> Result<Ended, InfraError> {
        if let Some(part) = hold.take_part() {
            let entry = PageEntry { key: &part.key, version: b"", size: 0, skip: None };
            let Self { shared, coordinator, buffers, .. } = self;
            let went = handle(shared, coordinator, buffers, &mut hold, &entry, None, Some(&part))?;
            if went != Went::On {
                return self.end(hold, went);
            }
        }
        loop {
            let shared = self.shared;
            let stopping = || shared.stopping();
            let source = shared.context.source;
            let range = hold.spec.as_ref();
            if let Err(error) = list(source, range, hold.reached(), &mut self.page, &stopping) {
                return self.park(hold, &error);
            }
            self.look_up_page()?;
            let went = self.handle_page(&mut hold)?;
            if went != Went::On {
                return self.end(hold, went);
            }
            if self.page.is_last() {
                let held = hold.complete(&mut self.coordinator, &self.shared.context)?;
                return Ok(if held == Held::Yes { Ended::Settled } else { Ended::Lost });
            }
            self.share(&mut hold)?;
        }
    }

    /// What the ledger says of the page's entries, in one look.
    fn look_up_page(&mut self) -> Result<(), InfraError> {
        look_up(&self.coordinator, &self.shared.context, &self.page, &mut self.known)
    }

    fn handle_page(&mut self, hold: &mut Hold) -> Result<Went, InfraError> {
        let Self { shared, coordinator, buffers, page, known, .. } = self;
        for (entry, known) in page.iter().zip(&*known) {
            let known = known.as_ref();
            let went = handle(shared, coordinator, buffers, hold, &entry, known, None)?;
            if went != Went::On {
                return Ok(went);
            }
        }
        Ok(Went::On)
    }

    /// No more of this shard for now.
    fn end(&mut self, hold: Hold, went: Went) -> Result<Ended, InfraError> {
        match went {
            Went::Lost => Ok(Ended::Lost),
            Went::Stopped | Went::On => self.give_back(hold),
        }
    }

    /// The source does not answer for this shard: stores what there is and halts it.
    fn park(&mut self, mut hold: Hold, error: &ConnectorError) -> Result<Ended, InfraError> {
        tracing::warn!(%error, "a shard cannot be listed and is parked");
        if hold.save(&mut self.coordinator, &self.shared.context)? == Held::Lost {
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
    fn give_back(&mut self, mut hold: Hold) -> Result<Ended, InfraError> {
        if hold.save(&mut self.coordinator, &self.shared.context)? == Held::Lost {
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

/// How an entry went.
#[derive(Debug, PartialEq, Eq)]
enum Went {
    On,
    /// The worker was told to stop.
    Stopped,
    /// The shard is lost.
    Lost,
}

/// Handles one entry, and stores what is done when it is time.
fn handle(
    shared: &Shared<'_>,
    coordinator: &mut SqliteCoordinator,
    buffers: &mut ItemBuffers,
    hold: &mut Hold,
    entry: &PageEntry<'_>,
    known: Option<&LedgerRow>,
    part: Option<&InItem>,
) -> Result<Went, InfraError> {
    let Shared { context, options, lease_ms, .. } = shared;
    if shared.stopping() {
        return Ok(Went::Stopped);
    }
    let mut held = Ok(Held::Yes);
    let mut go_on = |item: &mut InHand<'_>| {
        let stopping = shared.stopping();
        held = hold.pace(coordinator, context, options, stopping, item);
        if held == Ok(Held::Yes) {
            held = hold.renew_if_needed(coordinator, *lease_ms);
        }
        held == Ok(Held::Yes) && !stopping
    };
    let handled = context.handle(entry, known, part, buffers, &mut go_on);
    if held? == Held::Lost {
        return Ok(Went::Lost);
    }
    match handled {
        Handled::Covered => {}
        Handled::Unchanged => hold.batch.add_unchanged(entry.key),
        Handled::Read(row) => hold.batch.add_read(row),
        Handled::Stopped => return Ok(Went::Stopped),
    }
    let now_ms = now().as_raw();
    hold.batch.advance(entry.key, now_ms);
    if hold.batch.is_due(0, options, now_ms) && hold.save(coordinator, context)? == Held::Lost
        || hold.renew_if_needed(coordinator, *lease_ms)? == Held::Lost
    {
        return Ok(Went::Lost);
    }
    Ok(Went::On)
}

/// Lists what comes behind `reached`, again while that fails in passing.
pub(crate) fn list(
    source: &dyn Connector,
    range: ShardSpecRef<'_>,
    reached: Option<&[u8]>,
    page: &mut Page,
    stopping: &dyn Fn() -> bool,
) -> Result<(), ConnectorError> {
    let cursor = CursorUpdate::new(reached, None);
    let mut failures = 0;
    loop {
        match source.list(range, cursor, PAGE_ENTRIES, page) {
            Err(error) if error.is_retryable() && failures + 1 < LIST_TRIES && !stopping() => {
                failures += 1;
                std::thread::sleep(IDLE * failures);
            }
            listed => return listed,
        }
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
