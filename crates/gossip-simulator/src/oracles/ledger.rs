//! What the answers so far add up to. Oracles hold each new answer against it, and then it takes
//! the answer in. It never asks the backend.

use std::collections::VecDeque;

use gossip_contracts::identity::{
    LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{EventKind, ParkReason, RunConfig, RunProgress, RunStatus, ShardStatus};
use hashbrown::HashMap;

use super::Observation;
use crate::op::{Answer, Effect, Operation, OwnedCursor, OwnedRange};
use crate::reference::Bounds;

/// Operations that a shard must remember, as the design has it.
pub(super) const SHARD_WINDOW: usize = 16;
/// Operations that a run must remember, as the design has it.
pub(super) const RUN_WINDOW: usize = 8;

/// An operation that was carried out, and with what effect.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    pub(super) op_id: OpId,
    pub(super) at: LogicalTime,
    pub(super) operation: Operation,
    pub(super) effect: Effect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) worker: WorkerId,
    pub(super) fence: u64,
    pub(super) deadline: LogicalTime,
    /// From when on another worker may take the shard.
    pub(super) free_from: LogicalTime,
    /// Its process was silent for so long since it last wrote that others may take the shard now.
    pub(super) is_silent: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Shard {
    pub(super) tenant: TenantId,
    pub(super) key: ShardKey,
    /// Its run's place in the ledger.
    pub(super) run: usize,
    pub(super) range: OwnedRange,
    pub(super) parent: Option<ShardId>,
    pub(super) status: ShardStatus,
    pub(super) park_reason: Option<ParkReason>,
    /// The highest fence seen.
    pub(super) fence: u64,
    pub(super) holder: Option<Holder>,
    pub(super) cursor: OwnedCursor,
    pub(super) spawned: Vec<ShardId>,
    /// Acquires since the cursor moved, releases taken off.
    pub(super) tries: u32,
    /// What its op-log must remember.
    pub(super) recent: VecDeque<Executed>,
    /// Its residual splits, which are never forgotten.
    pub(super) residuals: Vec<Executed>,
}

impl Shard {
    /// Whether a worker could claim it.
    pub(super) fn is_available_at(&self, now: LogicalTime) -> bool {
        self.status == ShardStatus::Active && self.holder.is_none_or(|held| held.free_from <= now)
    }

    /// Whether this worker could: also what another holds who was silent for too long.
    pub(super) fn is_available_to(&self, worker: WorkerId, now: LogicalTime) -> bool {
        let is_silent = |held: Holder| held.is_silent && held.worker != worker;
        let is_left = self.status == ShardStatus::Active && self.holder.is_some_and(is_silent);
        is_left || self.is_available_at(now)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) tenant: TenantId,
    pub(super) run: RunId,
    pub(super) config: RunConfig,
    pub(super) status: RunStatus,
    pub(super) created_at: LogicalTime,
    pub(super) completed_at: Option<LogicalTime>,
    /// What it came to.
    pub(super) result: Option<RunResult>,
    /// The ranges with which it began, in key order.
    pub(super) manifest: Vec<OwnedRange>,
    pub(super) roots: Vec<ShardId>,
    pub(super) progress: RunProgress,
    /// It has been deleted.
    pub(super) is_deleted: bool,
    /// Since faults stopped, something in it was refused for want of room.
    pub(super) ran_out: bool,
    /// All its shards' places in the ledger.
    pub(super) shards: Vec<usize>,
    /// What its op-log must remember.
    pub(super) recent: VecDeque<Executed>,
}

/// The sum of all answers.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// For how long after its deadline a lease keeps others out.
    skew_allowance: u64,
    /// Runs with more shards than this may have hints that are about a part of them.
    pub(super) hints_of_all_max: usize,
    shards: Vec<Shard>,
    runs: Vec<Run>,
    shard_places: HashMap<(TenantId, ShardKey), usize>,
    run_places: HashMap<(TenantId, RunId), usize>,
}

impl Ledger {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let &Bounds { skew_allowance, hints_of_all_max, .. } = bounds;
        Self { skew_allowance, hints_of_all_max, ..Self::default() }
    }

    fn free_from(&self, deadline: LogicalTime) -> LogicalTime {
        LogicalTime::from_raw(deadline.as_raw().saturating_add(self.skew_allowance))
    }

    pub(super) fn shard(&self, tenant: TenantId, key: ShardKey) -> Option<&Shard> {
        self.shard_places.get(&(tenant, key)).map(|&place| &self.shards[place])
    }

    pub(super) fn run(&self, tenant: TenantId, run: RunId) -> Option<&Run> {
        self.run_place(tenant, run).map(|place| &self.runs[place])
    }

    /// A number for a run that no other run has.
    pub(super) fn run_place(&self, tenant: TenantId, run: RunId) -> Option<usize> {
        self.run_places.get(&(tenant, run)).copied()
    }

    pub(super) fn run_at(&self, place: usize) -> &Run {
        &self.runs[place]
    }

    pub(super) fn shard_at(&self, place: usize) -> &Shard {
        &self.shards[place]
    }

    /// All processes were silent for too long.
    pub(super) fn note_silence(&mut self) {
        let holders = self.shards.iter_mut().filter_map(|shard| shard.holder.as_mut());
        holders.for_each(|holder| holder.is_silent = true);
    }

    /// Runs and shards that were made and not deleted.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.run_places.len(), self.shard_places.len())
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Notes that the run of an operation had no room.
    pub(super) fn note_no_room(&mut self, operation: &Operation) {
        let of_shard = || operation.shard().map(|(tenant, key)| (tenant, key.run));
        let place = operation.run().or_else(of_shard);
        if let Some(place) = place.and_then(|(tenant, run)| self.run_place(tenant, run)) {
            self.runs[place].ran_out = true;
        }
    }

    /// The shard and the run of an operation on a shard.
    pub(super) fn subject(&self, operation: &Operation) -> Option<(&Shard, &Run)> {
        let (tenant, key) = operation.shard()?;
        let shard = self.shard(tenant, key)?;
        Some((shard, &self.runs[shard.run]))
    }

    fn add_shard(
        &mut self,
        run: usize,
        shard: ShardId,
        range: OwnedRange,
        cursor: OwnedCursor,
        parent: Option<ShardId>,
    ) {
        let (tenant, key) = (self.runs[run].tenant, ShardKey::new(self.runs[run].run, shard));
        let place = self.shards.len();
        self.shard_places.insert((tenant, key), place);
        self.runs[run].shards.push(place);
        self.runs[run].progress.add(ShardStatus::Active);
        self.shards.push(Shard {
            tenant,
            key,
            run,
            range,
            parent,
            status: ShardStatus::Active,
            park_reason: None,
            fence: 1,
            holder: None,
            cursor,
            spawned: Vec::new(),
            tries: 0,
            recent: VecDeque::new(),
            residuals: Vec::new(),
        });
    }

    /// Takes an answer in. Returns whether anything changed.
    pub(super) fn take_in(&mut self, seen: Observation<'_>) {
        let Observation { now, operation, answer, events } = seen;
        match answer {
            Answer::Accepted => self.take_in_accepted(now, operation),
            Answer::Executed(effect) => self.take_in_executed(now, operation, effect, events),
            Answer::Acquired(acquired) => {
                let deadline = acquired.lease.deadline();
                let free_from = self.free_from(deadline);
                let Some(shard) = self.subject_mut(operation) else { return };
                shard.fence = acquired.lease.fence().as_raw();
                shard.tries += 1;
                let (worker, fence) = (acquired.lease.owner(), shard.fence);
                let is_silent = false;
                shard.holder = Some(Holder { worker, fence, deadline, free_from, is_silent });
            }
            Answer::Renewed { deadline } => {
                let free_from = self.free_from(*deadline);
                if let Some(shard) = self.subject_mut(operation)
                    && let Some(holder) = &mut shard.holder
                {
                    (holder.deadline, holder.free_from) = (*deadline, free_from);
                    holder.is_silent = false;
                }
            }
            Answer::Refused(_) => {
                // A refused acquire may have parked the shard; its event says so.
                let parks = |kind: &EventKind| matches!(kind, EventKind::ShardParked { .. });
                if matches!(operation, Operation::Acquire { .. })
                    && events.iter().any(|event| parks(&event.kind))
                {
                    self.settle(operation, ShardStatus::Parked, Some(ParkReason::Poisoned));
                }
            }
            Answer::Replayed(_) | Answer::Run(_) | Answer::Progress(_) | Answer::Shards(_) => {}
        }
    }

    fn take_in_accepted(&mut self, now: LogicalTime, operation: &Operation) {
        match operation {
            Operation::CreateRun { tenant, run, config } => {
                self.run_places.insert((*tenant, *run), self.runs.len());
                self.runs.push(Run {
                    tenant: *tenant,
                    run: *run,
                    config: *config,
                    status: RunStatus::Initializing,
                    created_at: now,
                    completed_at: None,
                    result: None,
                    manifest: Vec::new(),
                    roots: Vec::new(),
                    progress: RunProgress::default(),
                    is_deleted: false,
                    ran_out: false,
                    shards: Vec::new(),
                    recent: VecDeque::new(),
                });
            }
            Operation::DeleteRun { tenant, run } => {
                let Some(place) = self.run_places.remove(&(*tenant, *run)) else { return };
                self.runs[place].is_deleted = true;
                self.shard_places.retain(|(of, key), _| (*of, key.run) != (*tenant, *run));
            }
            Operation::Release { .. } => {
                if let Some(shard) = self.subject_mut(operation) {
                    shard.holder = None;
                    shard.tries = shard.tries.saturating_sub(1);
                }
            }
            _ => {}
        }
    }

    fn take_in_executed(
        &mut self,
        now: LogicalTime,
        operation: &Operation,
        effect: &Effect,
        events: &[gossip_coordination::StateTransitionEvent],
    ) {
        if let Operation::RevokeLease { .. } = operation
            && let Some(shard) = self.subject_mut(operation)
        {
            shard.holder = None;
            shard.fence += 1;
        }
        let Some(op_id) = operation.op_id() else { return };
        let executed =
            Executed { op_id, at: now, operation: operation.clone(), effect: effect.clone() };
        if let Some((tenant, run)) = operation.run() {
            let Some(place) = self.run_place(tenant, run) else { return };
            remember(&mut self.runs[place].recent, RUN_WINDOW, executed);
            self.take_in_run_change(now, place, operation);
            return;
        }
        let skew = self.skew_allowance;
        let Some(shard) = self.subject_mut(operation) else { return };
        remember(&mut shard.recent, SHARD_WINDOW, executed);
        shard.holder.iter_mut().for_each(|holder| holder.is_silent = false);
        match operation {
            Operation::Checkpoint { cursor, .. } | Operation::Complete { cursor, .. } => {
                if shard.cursor != *cursor {
                    shard.tries = 0;
                }
                shard.cursor = cursor.clone();
                if let Effect::Renewed { deadline, .. } = *effect
                    && let Some(holder) = &mut shard.holder
                {
                    holder.deadline = deadline;
                    holder.free_from =
                        LogicalTime::from_raw(deadline.as_raw().saturating_add(skew));
                }
                if matches!(operation, Operation::Complete { .. }) {
                    self.settle(operation, ShardStatus::Done, None);
                }
            }
            Operation::Park { reason, .. } => {
                self.settle(operation, ShardStatus::Parked, Some(*reason));
            }
            Operation::Unpark { .. } => {
                shard.tries = 0;
                shard.fence = events
                    .iter()
                    .find_map(|event| match event.kind {
                        EventKind::ShardUnparked { new_fence_epoch, .. } => {
                            Some(new_fence_epoch.as_raw())
                        }
                        _ => None,
                    })
                    .unwrap_or(shard.fence + 1);
                self.settle(operation, ShardStatus::Active, None);
            }
            Operation::SplitReplace { children, .. } => {
                let (run, parent) = (shard.run, shard.key.shard);
                let Effect::Children(ids) = effect else { return };
                shard.spawned.extend_from_slice(ids);
                self.settle(operation, ShardStatus::Split, None);
                for (&id, range) in ids.iter().zip(children) {
                    self.add_shard(run, id, range.clone(), OwnedCursor::default(), Some(parent));
                }
            }
            Operation::SplitResidual { kept, residual, .. } => {
                let (run, parent) = (shard.run, shard.key.shard);
                let Effect::Residual(id) = effect else { return };
                shard.spawned.push(*id);
                shard.residuals.push(Executed {
                    op_id,
                    at: now,
                    operation: operation.clone(),
                    effect: effect.clone(),
                });
                shard.range = kept.clone();
                self.add_shard(run, *id, residual.clone(), OwnedCursor::default(), Some(parent));
            }
            _ => {}
        }
    }

    fn take_in_run_change(&mut self, now: LogicalTime, place: usize, operation: &Operation) {
        let status = match operation {
            Operation::RegisterShards { shards, .. } => {
                let mut manifest: Vec<_> = shards.iter().map(|row| row.range.clone()).collect();
                manifest.sort_unstable_by(|a, b| a.start.cmp(&b.start));
                self.runs[place].manifest = manifest;
                self.runs[place].roots = shards.iter().map(|row| row.shard).collect();
                for row in shards {
                    self.add_shard(place, row.shard, row.range.clone(), row.cursor.clone(), None);
                }
                RunStatus::Active
            }
            Operation::CompleteRun { result, .. } => {
                self.runs[place].result = *result;
                RunStatus::Done
            }
            Operation::FailRun { .. } => RunStatus::Failed,
            Operation::CancelRun { .. } => RunStatus::Cancelled,
            _ => return,
        };
        let run = &mut self.runs[place];
        run.status = status;
        run.completed_at = status.is_terminal().then_some(now);
    }

    /// The shard goes to `status` and has no holder.
    fn settle(&mut self, operation: &Operation, status: ShardStatus, reason: Option<ParkReason>) {
        let Some(shard) = self.subject_mut(operation) else { return };
        let (before, run) = (shard.status, shard.run);
        shard.status = status;
        shard.park_reason = reason;
        shard.holder = None;
        self.runs[run].progress.remove(before);
        self.runs[run].progress.add(status);
    }

    fn subject_mut(&mut self, operation: &Operation) -> Option<&mut Shard> {
        let subject = operation.shard()?;
        self.shard_places.get(&subject).map(|&place| &mut self.shards[place])
    }
}

fn remember(recent: &mut VecDeque<Executed>, window: usize, executed: Executed) {
    if recent.len() == window {
        recent.pop_front();
    }
    recent.push_back(executed);
}
