//! Asks a backend what an [`Operation`] says, through the traits, and writes the [`Answer`] down.

use std::convert::Infallible;

use gossip_contracts::coordination::{InitialShardInput, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::LogicalTime;
use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CheckpointRenewal,
    CommitError, CompleteError, CoordinationBackend, CreateRunError, DeleteRunError, GetRunError,
    IdempotentOutcome, InfraError, ParkError, RegisterShardsError, ReleaseError, RenewError,
    RenewResult, RevokeLeaseError, RunManagement, RunProgress, RunRecord, RunStatus,
    RunTransitionError, SplitError, UnparkError,
};

use super::op::{Acquired, Answer, Effect, Operation, Refusal, RunView};

/// Carries `operation` to `backend`.
pub fn perform<B: CoordinationBackend + RunManagement>(
    backend: &mut B,
    scratch: &mut AcquireScratch,
    now: LogicalTime,
    operation: &Operation,
) -> Answer {
    match operation {
        Operation::CreateRun { tenant, run, config } => {
            accepted(&backend.create_run(now, *tenant, *run, *config))
        }
        Operation::RegisterShards { tenant, run, shards, op_id } => {
            let rows: Vec<InitialShardInput<'_>> =
                shards.iter().map(super::op::OwnedShardInput::as_ref).collect();
            idempotent(&backend.register_shards(now, *tenant, *run, &rows, *op_id))
        }
        Operation::GetRun { tenant, run } => backend.get_run(*tenant, *run).answer(),
        Operation::GetRunProgress { tenant, run } => {
            backend.get_run_progress(*tenant, *run).answer()
        }
        Operation::ListShards { tenant, run, filter } => {
            let mut shards = Vec::new();
            match backend.list_shards_into(now, *tenant, *run, *filter, &mut shards) {
                Ok(()) => Answer::Shards(shards),
                Err(error) => Answer::Refused((&error).into()),
            }
        }
        Operation::CompleteRun { tenant, run, result, op_id } => {
            idempotent(&backend.complete_run_with(now, *tenant, *run, *result, *op_id))
        }
        Operation::FailRun { tenant, run, op_id } => {
            idempotent(&backend.fail_run(now, *tenant, *run, *op_id))
        }
        Operation::CancelRun { tenant, run, op_id } => {
            idempotent(&backend.cancel_run(now, *tenant, *run, *op_id))
        }
        Operation::DeleteRun { tenant, run } => accepted(&backend.delete_run(now, *tenant, *run)),
        Operation::RevokeLease { tenant, key, fence } => {
            idempotent(&backend.revoke_lease(now, *tenant, *key, *fence))
        }
        Operation::NoteIdle { tenant, run, worker } => {
            accepted(&backend.note_idle(now, *tenant, *run, *worker))
        }
        Operation::Unpark { tenant, key, op_id } => {
            idempotent(&backend.unpark_shard(now, *tenant, *key, *op_id))
        }
        Operation::Acquire { tenant, key, worker } => {
            backend.acquire_and_restore_into(now, *tenant, *key, *worker, scratch).answer()
        }
        Operation::Renew { tenant, lease } => backend.renew(now, *tenant, lease).answer(),
        Operation::Release { tenant, lease } => accepted(&backend.release(now, *tenant, lease)),
        Operation::Checkpoint { tenant, lease, cursor, renews, op_id } => {
            let cursor = cursor.as_update();
            if *renews {
                backend.checkpoint_and_renew(now, *tenant, lease, cursor, *op_id).answer()
            } else {
                idempotent(&backend.checkpoint(now, *tenant, lease, cursor, *op_id))
            }
        }
        Operation::Complete { tenant, lease, cursor, op_id } => {
            idempotent(&backend.complete(now, *tenant, lease, cursor.as_update(), *op_id))
        }
        Operation::Park { tenant, lease, reason, op_id } => {
            idempotent(&backend.park_shard(now, *tenant, lease, *reason, *op_id))
        }
        Operation::SplitReplace { tenant, lease, children, op_id } => {
            let plan = SplitReplacePlan::new(children.iter().map(super::op::OwnedRange::as_ref));
            backend.split_replace(now, *tenant, lease, &plan, *op_id).answer()
        }
        Operation::SplitResidual { tenant, lease, kept, residual, op_id } => {
            let plan = SplitResidualPlan::new(kept.as_ref(), residual.as_ref());
            backend.split_residual(now, *tenant, lease, &plan, *op_id).answer()
        }
    }
}

/// What a typed result says, as an [`Answer`].
pub(super) trait ToAnswer {
    fn answer(&self) -> Answer;
}

pub(super) fn accepted<E>(result: &Result<(), E>) -> Answer
where
    for<'e> &'e E: Into<Refusal>,
{
    match result {
        Ok(()) => Answer::Accepted,
        Err(error) => Answer::Refused(error.into()),
    }
}

pub(super) fn idempotent<E>(result: &Result<IdempotentOutcome<()>, E>) -> Answer
where
    for<'e> &'e E: Into<Refusal>,
{
    match result {
        Ok(outcome) => outcome_of(outcome, Effect::Nothing),
        Err(error) => Answer::Refused(error.into()),
    }
}

fn outcome_of<T>(outcome: &IdempotentOutcome<T>, effect: Effect) -> Answer {
    if outcome.is_replay() { Answer::Replayed(effect) } else { Answer::Executed(effect) }
}

impl ToAnswer for Result<AcquireResultView<'_>, AcquireError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(acquired) => {
                let snapshot = &acquired.snapshot;
                Answer::Acquired(Box::new(Acquired {
                    lease: acquired.lease,
                    status: snapshot.status,
                    range: snapshot.spec.into(),
                    cursor: snapshot.cursor.into(),
                    cursor_semantics: snapshot.cursor_semantics,
                    parent: snapshot.parent,
                    spawned: snapshot.spawned.to_vec(),
                }))
            }
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl ToAnswer for Result<RenewResult, RenewError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(renewed) => Answer::Renewed { deadline: renewed.new_deadline },
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl<E> ToAnswer for Result<IdempotentOutcome<CheckpointRenewal>, E>
where
    for<'e> &'e E: Into<Refusal>,
{
    fn answer(&self) -> Answer {
        match self {
            Ok(outcome) => {
                let renewal = outcome.as_ref().into_inner();
                // What a backend says that could not read it: whatever else a hint is about, it knows
                // of the lease that goes with it.
                let hint = renewal.capacity;
                let is_unknown = hint.is_estimate && hint.earliest_deadline.is_none();
                let deadline = renewal.new_deadline;
                let idle = (!is_unknown).then_some(renewal.idle_workers);
                outcome_of(outcome, Effect::Renewed { deadline, idle })
            }
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl ToAnswer for Result<IdempotentOutcome<SplitReplaceResult>, SplitError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(outcome) => {
                let children = outcome.as_ref().into_inner().children.to_vec();
                outcome_of(outcome, Effect::Children(children))
            }
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl ToAnswer for Result<IdempotentOutcome<SplitResidualResult>, SplitError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(outcome) => {
                outcome_of(outcome, Effect::Residual(outcome.as_ref().into_inner().residual))
            }
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl ToAnswer for Result<RunRecord, GetRunError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(run) => Answer::Run(Box::new(RunView {
                config: run.config,
                status: run.status,
                created_at: run.created_at,
                completed_at: run.completed_at,
                root_shards: run.root_shards.clone(),
                op_log: run
                    .op_log
                    .iter()
                    .map(|entry| (entry.op_id(), entry.kind(), entry.executed_at()))
                    .collect(),
                result: run.result,
            })),
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl ToAnswer for Result<RunProgress, GetRunError> {
    fn answer(&self) -> Answer {
        match self {
            Ok(progress) => Answer::Progress(*progress),
            Err(error) => Answer::Refused(error.into()),
        }
    }
}

impl From<&InfraError> for Refusal {
    fn from(error: &InfraError) -> Self {
        Self::Backend { retryable: error.is_retryable() }
    }
}

macro_rules! refusals_without_writes {
    ($($error:ident)*) => {$(
        impl From<&CommitError<$error, Infallible>> for Refusal {
            fn from(error: &CommitError<$error, Infallible>) -> Self {
                match error {
                    CommitError::Refused(refusal) => refusal.into(),
                    CommitError::Caller(never) => match *never {},
                }
            }
        }
    )*};
}

refusals_without_writes! { CheckpointError CompleteError }

/// One row per enum: the variants that carry over as they are, then those that need a word.
macro_rules! refusals {
    ($($error:ident {
        $($variant:ident $({ $($field:ident),* })?)* ;
        $($pattern:pat => $refusal:expr,)*
    })*) => {$(
        impl From<&$error> for Refusal {
            fn from(error: &$error) -> Self {
                match error {
                    $(&$error::$variant $({ $($field),* })? => Self::$variant $({ $($field),* })?,)*
                    $($pattern => $refusal,)*
                    $error::BackendError(error) => error.into(),
                    // A variant that was added to the protocol and not to the simulator.
                    unknown => panic!("the simulator does not know {unknown:?}"),
                }
            }
        }
    )*};
}

refusals! {
    AcquireError {
        TenantMismatch { expected } ShardTerminal { shard, status } RunNotActive { run, status };
        AcquireError::ShardNotFound { .. } => Self::ShardNotFound,
        &AcquireError::AlreadyLeased { current_owner, lease_deadline } =>
            Self::AlreadyLeased { owner: current_owner, deadline: lease_deadline },
    }
    RenewError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status };
        RenewError::ShardNotFound { .. } => Self::ShardNotFound,
    }
    ReleaseError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status };
        ReleaseError::ShardNotFound { .. } => Self::ShardNotFound,
    }
    CheckpointError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status } CursorRegression { old_key, new_key }
        CursorKeyTooLarge { size, max } CursorTokenTooLarge { size, max } CheckpointMissingKey;
        CheckpointError::ShardNotFound { .. } => Self::ShardNotFound,
        &CheckpointError::OpIdConflict { op_id, .. } => Self::OpIdConflict { op_id },
        CheckpointError::CursorOutOfBounds(detail) => Self::CursorOutOfBounds {
            last_key: detail.last_key, start: detail.spec_start, end: detail.spec_end,
        },
        CheckpointError::ResourceExhausted(_) => Self::ResourceExhausted,
    }
    CompleteError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status } CursorRegression { old_key, new_key }
        CursorKeyTooLarge { size, max } CursorTokenTooLarge { size, max } CheckpointMissingKey;
        CompleteError::ShardNotFound { .. } => Self::ShardNotFound,
        &CompleteError::OpIdConflict { op_id, .. } => Self::OpIdConflict { op_id },
        CompleteError::CursorOutOfBounds(detail) => Self::CursorOutOfBounds {
            last_key: detail.last_key, start: detail.spec_start, end: detail.spec_end,
        },
        CompleteError::ResourceExhausted(_) => Self::ResourceExhausted,
    }
    ParkError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status };
        ParkError::ShardNotFound { .. } => Self::ShardNotFound,
        &ParkError::OpIdConflict { op_id, .. } => Self::OpIdConflict { op_id },
    }
    SplitError {
        TenantMismatch { expected } StaleFence { presented, current }
        LeaseExpired { deadline, now } ShardTerminal { shard, status }
        RunNotActive { run, status };
        SplitError::ShardNotFound { .. } => Self::ShardNotFound,
        &SplitError::OpIdConflict { op_id, .. } => Self::OpIdConflict { op_id },
        &SplitError::SplitInvalid(source) => Self::SplitInvalid(source),
        SplitError::ResourceExhausted(_) => Self::ResourceExhausted,
    }
    CreateRunError {
        RunAlreadyExists { run } ConfigMismatch { run };
        &CreateRunError::InvalidConfig(source) => Self::InvalidConfig(source),
        CreateRunError::RegisterShardsFailed(error) => error.into(),
        CreateRunError::GetRunFailed(error) => error.into(),
    }
    RegisterShardsError {
        RunNotFound TenantMismatch { expected }
        ShardLimitExceeded { current, additional, max, scope };
        &RegisterShardsError::WrongStatus { status } =>
            Self::WrongStatus { status, target: RunStatus::Active },
        &RegisterShardsError::ManifestInvalid(source) => Self::ManifestInvalid(source),
        RegisterShardsError::OpIdConflict(conflict) =>
            Self::OpIdConflict { op_id: conflict.op_id() },
        RegisterShardsError::ResourceExhausted { .. } => Self::ResourceExhausted,
    }
    GetRunError {
        RunNotFound TenantMismatch { expected };
    }
    RunTransitionError {
        RunNotFound TenantMismatch { expected } RunTerminal { status }
        WrongStatus { status, target } ShardsRemaining { active, parked };
        RunTransitionError::OpIdConflict(conflict) =>
            Self::OpIdConflict { op_id: conflict.op_id() },
    }
    DeleteRunError {
        RunNotFound TenantMismatch { expected } RunNotEnded { status };
    }
    RevokeLeaseError {
        ShardNotFound TenantMismatch { expected } RunTerminal { status }
        FenceNotGranted { presented, current };
    }
    UnparkError {
        ShardNotFound TenantMismatch { expected } RunTerminal { status } NotParked { status };
        UnparkError::OpIdConflict(conflict) => Self::OpIdConflict { op_id: conflict.op_id() },
    }
}
