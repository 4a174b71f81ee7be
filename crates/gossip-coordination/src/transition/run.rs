//! The life of a run: created, given its shards once (`register.rs`), ended once.
//!
//! - V1: shards are registered exactly once, and with that the run becomes active.
//! - V2: a run is completed only when every shard is done or split.
//! - V3: an ended run stays as it ended.
//! - V4: until a run is active nobody sees a shard of it.
//! - V5: shards that are staged belong to the registration in the record. One under another id takes
//!   its place and deletes first what it finds; the one before is refused for as long as the op-log
//!   remembers it.
//! - V6: a run becomes active when its whole manifest is staged and nothing else is.

use gossip_contracts::identity::{LogicalTime, OpId, RunId, RunResult, ShardId, TenantId};

use super::Decision;
use crate::error::{
    CreateRunError, DeleteRunError, InfraError, RunOpIdConflict, RunTransitionError,
};
use crate::op_log::{OpLogEntry, OpResult, Remembered, RunOpKind, RunOpLog};
use crate::payload;
use crate::run::{
    Registration, RunConfig, RunProgress, RunRecord, RunStatus, RunTerminalEvaluation,
    evaluate_run_terminal,
};

/// What a decision changes in a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunUpdate {
    /// The status that the run changes to.
    pub status: RunStatus,
    /// The end, when this is it; a run that has ended keeps its own.
    pub completed_at: Option<LogicalTime>,
    /// The shards with which it begins, when this is the end of the registration.
    pub root_shards: Option<Vec<ShardId>>,
    /// The registration that is in progress afterwards. This one replaces what the record says.
    pub registration: Option<Registration>,
    /// The run's result, when this is its end and somebody says so; a run that has one keeps it.
    pub result: Option<RunResult>,
    /// The entry to append to the op-log. Of a registration's steps the last has one, and the first
    /// if it takes another's place.
    pub log: Option<OpLogEntry<RunOpKind>>,
}

impl RunRecord {
    /// Carries out a decision.
    ///
    /// # Panics
    /// If the result would break a run invariant; the record is then as it was.
    pub fn apply(&mut self, update: RunUpdate) {
        let mut next = self.clone();
        next.status = update.status;
        next.completed_at = update.completed_at.or(self.completed_at);
        if let Some(root_shards) = update.root_shards {
            next.root_shards = root_shards;
        }
        next.registration = update.registration;
        next.result = update.result.or(self.result);
        update.log.into_iter().for_each(|entry| next.op_log.push_back_overwrite(entry));
        next.assert_invariants();
        *self = next;
    }
}

/// The record of a new run, if the id is free.
///
/// # Panics
/// If `now` is [`LogicalTime::ZERO`].
pub fn create_run(
    existing: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    run: RunId,
    config: RunConfig,
) -> Result<RunRecord, CreateRunError> {
    assert!(now > LogicalTime::ZERO, "a run is created at some time");
    config.validate()?;
    if existing.is_some() {
        return Err(CreateRunError::RunAlreadyExists { run });
    }
    let record = RunRecord {
        tenant,
        run,
        config,
        status: RunStatus::Initializing,
        created_at: now,
        completed_at: None,
        root_shards: Vec::new(),
        op_log: RunOpLog::new(),
        registration: None,
        result: None,
    };
    record.assert_invariants();
    Ok(record)
}

/// Decides whether the run is done, with this result. `progress` must be one consistent view of all
/// its shards.
///
/// A view of fewer shards than the run began with is a damaged count, and no ground to decide on.
pub fn complete_run(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    progress: &RunProgress,
    result: Option<RunResult>,
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let run = owned_by(tenant, run)?;
    let hash = payload::complete_run(run.run, result);
    let mut decision = end(run, now, RunStatus::Done, RunOpKind::Complete, op_id, hash)?;
    if let Decision::Execute(update) = &mut decision {
        update.result = result;
    }
    let executes = matches!(decision, Decision::Execute(_));
    // V2 rests on the view being whole.
    let (seen, roots) = (progress.total(), run.root_shards.len() as u64);
    if executes && seen < roots {
        let message = format!("run {} began with {roots} shards, and {seen} are counted", run.run);
        return Err(InfraError::corruption("complete_run.progress", message).into());
    }
    let all_done = evaluate_run_terminal(progress) == RunTerminalEvaluation::AllDone;
    if executes && !all_done {
        return Err(RunTransitionError::ShardsRemaining {
            active: progress.active,
            parked: progress.parked,
        });
    }
    Ok(decision)
}

/// Decides whether the run is given up.
pub fn fail_run(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let run = owned_by(tenant, run)?;
    end(run, now, RunStatus::Failed, RunOpKind::Fail, op_id, payload::fail_run(run.run))
}

/// Decides whether the run is called off. The only end for a run without shards. What a registration
/// had stored is then deleted by [`discard_staged`](super::discard_staged): whatever this answers, a
/// replay and `RunTerminal` too, as whoever cancelled it may have died before all of it was.
pub fn cancel_run(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let run = owned_by(tenant, run)?;
    end(run, now, RunStatus::Cancelled, RunOpKind::Cancel, op_id, payload::cancel_run(run.run))
}

/// Decides whether a run may be deleted, with its shards: when it has ended (V3 says how, for as long
/// as it is there).
pub fn delete_run(run: Option<&RunRecord>, tenant: TenantId) -> Result<(), DeleteRunError> {
    let run = run.ok_or(DeleteRunError::RunNotFound)?;
    if run.tenant != tenant {
        return Err(DeleteRunError::TenantMismatch { expected: tenant });
    }
    if !run.status.is_terminal() {
        return Err(DeleteRunError::RunNotEnded { status: run.status });
    }
    Ok(())
}

/// Look-up is by tenant; a store that offers another tenant's run is stopped here, before its
/// op-log could answer.
fn owned_by(tenant: TenantId, run: Option<&RunRecord>) -> Result<&RunRecord, RunTransitionError> {
    let run = run.ok_or(RunTransitionError::RunNotFound)?;
    if run.tenant != tenant {
        return Err(RunTransitionError::TenantMismatch { expected: tenant });
    }
    Ok(run)
}

fn end(
    run: &RunRecord,
    now: LogicalTime,
    target: RunStatus,
    kind: RunOpKind,
    op_id: OpId,
    hash: u64,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    if was_executed(run, op_id, hash)? {
        return Ok(Decision::Replay(()));
    }
    let status = run.status;
    if status.is_terminal() {
        return Err(RunTransitionError::RunTerminal { status });
    }
    if status == RunStatus::Initializing && target != RunStatus::Cancelled {
        return Err(RunTransitionError::WrongStatus { status, target });
    }
    Ok(Decision::Execute(RunUpdate {
        status: target,
        completed_at: Some(now),
        root_shards: None,
        registration: run.registration.and_then(Registration::abandoned),
        result: None,
        log: Some(entry(op_id, kind, hash, now)),
    }))
}

impl Registration {
    /// All that is stored is to be deleted; nothing remains of a registration that stored nothing.
    fn abandoned(self) -> Option<Self> {
        let leftover = self.hidden();
        (leftover > 0).then_some(Self { staged: 0, leftover, ..self })
    }
}

pub(super) fn was_executed(
    run: &RunRecord,
    op_id: OpId,
    hash: u64,
) -> Result<bool, RunOpIdConflict> {
    match run.op_log.look_up(op_id, hash) {
        Remembered::New => Ok(false),
        Remembered::Before(_) => Ok(true),
        Remembered::Otherwise(expected) => Err(RunOpIdConflict::new(op_id, expected, hash)),
    }
}

pub(super) fn entry(
    op_id: OpId,
    kind: RunOpKind,
    hash: u64,
    now: LogicalTime,
) -> OpLogEntry<RunOpKind> {
    OpLogEntry::new(op_id, kind, OpResult::Completed, hash, now)
}
