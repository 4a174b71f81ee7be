//! A worker: claims shards and works through them until none is left.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use gossip_contracts::identity::{RunId, WorkerId};
use gossip_coordination::{
    AcquireScratch, ClaimError, GetRunError, InfraError, RevokeLeaseError, RunManagement,
    ShardClaiming, WorkerSession,
};
use gossip_coordination_sqlite::{ReleaseDeadError, SqliteCoordinator, WorkerSlots};

use crate::clock::now;
use crate::scan::{ScanError, complete_cancellation};
use crate::scan_loop::{Flow, ScanLoop, Shared};
use crate::shard_work::ShardWork;
use crate::state::LOCAL_TENANT;

/// How long an idle worker waits before it asks again: another process may have left it something.
const IDLE: Duration = Duration::from_millis(20);
/// Waits between two looks for workers that are gone.
const WAITS_PER_LOOK: u32 = 25;
/// Waits between two notes for the workers of other processes.
const WAITS_PER_NOTE: u32 = 100;

pub(crate) struct Worker<'w> {
    shared: &'w Shared<'w>,
    coordinator: SqliteCoordinator,
    id: WorkerId,
    scratch: Box<AcquireScratch>,
    scan_loop: ScanLoop,
    idle: Option<Idle<'w>>,
}

/// Shards that workers of this process have split or are done with, so that those who wait need not ask.
#[derive(Default)]
pub(crate) struct ShardChanges {
    count: Mutex<u64>,
    changed: Condvar,
}

impl ShardChanges {
    pub(crate) fn announce(&self) {
        *self.lock() += 1;
        self.changed.notify_all();
    }

    fn count(&self) -> u64 {
        *self.lock()
    }

    /// Waits until there are more than `seen`, or for so long.
    fn wait(&self, seen: u64, at_most: Duration) {
        let waited = self.changed.wait_timeout_while(self.lock(), at_most, |now| *now == seen);
        drop(waited.expect("nobody panics while holding it"));
    }

    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().expect("nobody panics while holding it")
    }
}

/// Counts a worker among those of its process that have nothing to do: busy ones split, or let it
/// help.
struct Idle<'w> {
    count: &'w AtomicUsize,
    waits: u32,
}

impl<'w> Idle<'w> {
    fn new(count: &'w AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self { count, waits: 0 }
    }
}

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'w> Worker<'w> {
    pub(crate) fn new(
        shared: &'w Shared<'w>,
        coordinator: SqliteCoordinator,
        id: WorkerId,
    ) -> Self {
        let (scratch, scan_loop) = (Box::new(AcquireScratch::new()), ScanLoop::default());
        Self { shared, coordinator, id, scratch, scan_loop, idle: None }
    }

    /// Works until the run has no active shard, or until it is told to stop.
    pub(crate) fn run(mut self) -> Result<(), ScanError> {
        let run = self.shared.context.run;
        while !self.shared.stopping() {
            let seen = self.shared.shard_changes.count();
            let Self { shared, coordinator, id, scratch, scan_loop, idle, .. } = &mut self;
            match claim(coordinator, run, *id, scratch) {
                Ok(session) => {
                    *idle = None;
                    tracing::debug!(worker = %id, shard = %session.shard_key(), "a shard is claimed");
                    if ShardWork::new(shared, session).run(scan_loop)? == Flow::Lost {
                        complete_cancellation(coordinator, run)?;
                    }
                    shared.shard_changes.announce();
                }
                Err(ClaimError::NoneAvailable { .. } | ClaimError::Throttled { .. }) => {
                    match coordinator.get_run_progress(LOCAL_TENANT, run) {
                        Ok(progress) if progress.active == 0 => return Ok(()),
                        Ok(_) => self.wait(seen)?,
                        Err(GetRunError::BackendError(error)) => return Err(error.into()),
                        Err(_) => return Ok(()),
                    }
                }
                Err(ClaimError::BackendError(error)) => return Err(error.into()),
                // The run was cancelled or finished under us.
                Err(_) => return Ok(()),
            }
        }
        Ok(())
    }

    /// Now and then it looks whether another process has died, whose shards it can have, and tells
    /// those that live that it has nothing to do.
    fn wait(&mut self, seen: u64) -> Result<(), InfraError> {
        let idle = self.idle.get_or_insert_with(|| Idle::new(&self.shared.idle));
        self.shared.shard_changes.wait(seen, IDLE);
        idle.waits += 1;
        let (run, waits) = (self.shared.context.run, idle.waits);
        if waits.is_multiple_of(WAITS_PER_LOOK) {
            release_dead(&mut self.coordinator, run, &self.shared.slots)?;
        }
        if waits.is_multiple_of(WAITS_PER_NOTE) {
            // A run that is over is noticed by the next claim.
            let noted = self.coordinator.note_idle(now(), LOCAL_TENANT, run, self.id);
            if let Err(GetRunError::BackendError(error)) = noted {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// First what this worker's slot held when its last process died, then anything that is free.
fn claim<'c>(
    coordinator: &'c mut SqliteCoordinator,
    run: RunId,
    worker: WorkerId,
    scratch: &mut AcquireScratch,
) -> Result<WorkerSession<'c, SqliteCoordinator>, ClaimError> {
    let now = now();
    match coordinator.reacquire_own(now, LOCAL_TENANT, run, worker, scratch)? {
        Some(own) => Ok(WorkerSession::from_acquire_result(coordinator, &own)),
        None => WorkerSession::claim(coordinator, now, LOCAL_TENANT, run, worker),
    }
}

/// Releases what workers hold that are gone.
pub(crate) fn release_dead(
    coordinator: &mut SqliteCoordinator,
    run: RunId,
    slots: &WorkerSlots,
) -> Result<(), InfraError> {
    match coordinator.release_dead(now(), LOCAL_TENANT, run, slots) {
        Ok(0) => Ok(()),
        Ok(shards) => {
            tracing::info!(shards, "shards of workers that are gone are free again");
            Ok(())
        }
        Err(
            ReleaseDeadError::Claim(ClaimError::BackendError(error))
            | ReleaseDeadError::Revoke(RevokeLeaseError::BackendError(error)),
        ) => Err(error),
        // The run is over, or another process did the same.
        Err(error) => {
            tracing::debug!(%error, "shards of workers that are gone were not released");
            Ok(())
        }
    }
}
