//! The life of a run: created, given its shards once, ended once.
//!
//! - V1: shards are registered exactly once, and with that the run becomes active.
//! - V2: a run is completed only when every shard is done or split.
//! - V3: an ended run stays as it ended.

use gossip_contracts::coordination::{InitialShardInput, validate_manifest};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId};

use super::Decision;
use crate::error::{
    CreateRunError, InfraError, RegisterShardsError, RunOpIdConflict, RunTransitionError,
};
use crate::op_log::{OpLogEntry, OpResult, Remembered, RunOpKind, RunOpLog};
use crate::payload;
use crate::record::ShardRecordView;
use crate::run::{
    RunConfig, RunProgress, RunRecord, RunStatus, RunTerminalEvaluation, evaluate_run_terminal,
};
use crate::shard_limits::ShardRoom;

/// What a decision changes in a run's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunUpdate {
    /// The new status.
    pub status: RunStatus,
    /// The end, when this is it.
    pub completed_at: Option<LogicalTime>,
    /// The shards with which it begins, when this is the registration.
    pub root_shards: Option<Vec<ShardId>>,
    /// The entry to append to the op-log.
    pub log: OpLogEntry<RunOpKind>,
}

impl RunRecord {
    /// Carries out a decision.
    ///
    /// # Panics
    /// If the result would break a run invariant; the record is then as it was.
    pub fn apply(&mut self, update: RunUpdate) {
        let mut next = self.clone();
        next.status = update.status;
        next.completed_at = update.completed_at;
        if let Some(root_shards) = update.root_shards {
            next.root_shards = root_shards;
        }
        next.op_log.push_back_overwrite(update.log);
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
    };
    record.assert_invariants();
    Ok(record)
}

/// Decides whether a run gets these shards. Each one's record is [`root_shard`].
pub fn register_shards(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    room: &ShardRoom,
    shards: &[InitialShardInput<'_>],
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RegisterShardsError> {
    let run = run.ok_or(RegisterShardsError::RunNotFound)?;
    if run.tenant != tenant {
        return Err(RegisterShardsError::TenantMismatch { expected: tenant });
    }
    let hash = payload::register_shards(shards);
    if was_executed(run, op_id, hash)? {
        return Ok(Decision::Replay(()));
    }
    if run.status != RunStatus::Initializing {
        return Err(RegisterShardsError::WrongStatus { status: run.status });
    }
    validate_manifest(shards)?;
    room.check(shards.len())?;
    Ok(Decision::Execute(RunUpdate {
        status: RunStatus::Active,
        completed_at: None,
        root_shards: Some(shards.iter().map(|shard| shard.shard).collect()),
        log: entry(op_id, RunOpKind::RegisterShards, hash, now),
    }))
}

/// The record with which a registered shard begins.
#[must_use]
pub fn root_shard<'a>(run: &RunRecord, input: &InitialShardInput<'a>) -> ShardRecordView<'a> {
    ShardRecordView::new_shard(
        run.tenant,
        ShardKey::new(run.run, input.shard),
        input.spec,
        input.cursor,
        run.config.cursor_semantics,
        None,
    )
}

/// Decides whether the run is done. `progress` must be one consistent view of all its shards.
///
/// A view of fewer shards than the run began with is a damaged count, and no ground to decide on.
pub fn complete_run(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    progress: &RunProgress,
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let run = owned_by(tenant, run)?;
    let decision =
        end(run, now, RunStatus::Done, RunOpKind::Complete, op_id, payload::complete_run)?;
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
    end(run, now, RunStatus::Failed, RunOpKind::Fail, op_id, payload::fail_run)
}

/// Decides whether the run is called off. The only end for a run without shards.
pub fn cancel_run(
    run: Option<&RunRecord>,
    now: LogicalTime,
    tenant: TenantId,
    op_id: OpId,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let run = owned_by(tenant, run)?;
    end(run, now, RunStatus::Cancelled, RunOpKind::Cancel, op_id, payload::cancel_run)
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
    payload: fn(RunId) -> u64,
) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
    let hash = payload(run.run);
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
        log: entry(op_id, kind, hash, now),
    }))
}

fn was_executed(run: &RunRecord, op_id: OpId, hash: u64) -> Result<bool, RunOpIdConflict> {
    match run.op_log.look_up(op_id, hash) {
        Remembered::New => Ok(false),
        Remembered::Before(_) => Ok(true),
        Remembered::Otherwise(expected) => Err(RunOpIdConflict::new(op_id, expected, hash)),
    }
}

fn entry(op_id: OpId, kind: RunOpKind, hash: u64, now: LogicalTime) -> OpLogEntry<RunOpKind> {
    OpLogEntry::new(op_id, kind, OpResult::Completed, hash, now)
}
