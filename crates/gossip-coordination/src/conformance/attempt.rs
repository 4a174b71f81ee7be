//! Leased operations by name, so that a case can ask the same of each.

use gossip_contracts::coordination::{
    CursorUpdate, ShardSpecRef, SplitReplacePlan, SplitResidualPlan, plan_split_replace_at_points,
    plan_split_residual_at_point,
};
use gossip_contracts::identity::OpId;

use super::harness::Harness;
use super::matrix::Operation;
use super::world::{World, about, start, within};
use crate::error::{
    CheckpointError, CompleteError, CoordError, IdempotentOutcome, ParkError, ReleaseError,
    RenewError, SplitError,
};
use crate::lease::Lease;
use crate::payload;
use crate::status::ParkReason;

/// With which parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    Usual,
    /// Also valid, but others.
    Other,
}

/// Parameters of every leased operation on a root shard that was never split, with their bytes.
struct Parameters {
    start: Vec<u8>,
    end: Vec<u8>,
    metadata: Vec<u8>,
    at: Vec<u8>,
    point: Vec<u8>,
    reason: ParkReason,
}

impl Parameters {
    fn of(shard: u64, payload: Payload) -> Self {
        let (at, point, reason) = match payload {
            Payload::Usual => ("m", "p", ParkReason::NotFound),
            Payload::Other => ("n", "q", ParkReason::Other),
        };
        Self {
            start: start(shard),
            end: start(shard + 1),
            metadata: about(shard),
            at: within(shard, at),
            point: within(shard, point),
            reason,
        }
    }

    fn cursor(&self) -> CursorUpdate<'_> {
        CursorUpdate::at(&self.at)
    }

    fn range(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(&self.start, &self.end, &self.metadata)
    }

    fn replace(&self) -> SplitReplacePlan<'_> {
        plan_split_replace_at_points(self.range(), &[&self.point]).expect("a point inside")
    }

    fn residual(&self) -> SplitResidualPlan<'_> {
        plan_split_residual_at_point(self.range(), &self.point).expect("a point inside")
    }

    fn fingerprint(&self, operation: Operation) -> u64 {
        match operation {
            Operation::Checkpoint => payload::checkpoint(self.cursor()),
            Operation::CheckpointAndRenew => payload::checkpoint_and_renew(self.cursor()),
            Operation::Complete => payload::complete(self.cursor()),
            Operation::Park => payload::park(self.reason),
            Operation::SplitReplace => payload::split_replace(&self.replace()),
            Operation::SplitResidual => payload::split_residual(&self.residual()),
            other => unreachable!("{other:?} has no op-log entry under a lease"),
        }
    }
}

/// The fingerprint of what [`World::attempt`] would send.
pub(super) fn fingerprint(operation: Operation, shard: u64, payload: Payload) -> u64 {
    Parameters::of(shard, payload).fingerprint(operation)
}

impl<H: Harness> World<H> {
    /// Attempts a leased operation on a root shard; whether it was executed or replayed.
    #[track_caller]
    pub(super) fn attempt(
        &mut self,
        operation: Operation,
        lease: &Lease,
        op: OpId,
        payload: Payload,
    ) -> Result<IdempotentOutcome<()>, CoordError> {
        let parameters = Parameters::of(lease.shard().as_raw(), payload);
        let at_once = IdempotentOutcome::Executed(());
        match operation {
            Operation::Renew => self.renew(lease).map(|_| at_once).map_err(widen),
            Operation::Release => self.release(lease).map(|()| at_once).map_err(widen),
            Operation::Checkpoint => self.checkpoint(lease, parameters.cursor(), op).map_err(widen),
            Operation::CheckpointAndRenew => {
                let outcome = self.checkpoint_and_renew(lease, parameters.cursor(), op);
                outcome.map(|outcome| outcome.map(drop)).map_err(widen)
            }
            Operation::Complete => self.complete(lease, parameters.cursor(), op).map_err(widen),
            Operation::Park => self.park(lease, parameters.reason, op).map_err(widen),
            Operation::SplitReplace => {
                let outcome = self.split_replace(lease, &parameters.replace(), op);
                outcome.map(|outcome| outcome.map(drop)).map_err(widen)
            }
            Operation::SplitResidual => {
                let outcome = self.split_residual(lease, &parameters.residual(), op);
                outcome.map(|outcome| outcome.map(drop)).map_err(widen)
            }
            other => unreachable!("{other:?} presents no lease"),
        }
    }

    /// [`World::attempt`] under a new id with the usual parameters.
    #[track_caller]
    pub(super) fn attempt_new(
        &mut self,
        operation: Operation,
        lease: &Lease,
    ) -> Result<IdempotentOutcome<()>, CoordError> {
        let op = self.op();
        self.attempt(operation, lease, op, Payload::Usual)
    }
}

/// An operation's refusal in the shared vocabulary, so that cases can compare those of all.
pub(super) trait Widen {
    fn widen(self) -> CoordError;
}

pub(super) fn widen(error: impl Widen) -> CoordError {
    error.widen()
}

macro_rules! widen {
    ($($error:ident: $($variant:ident $fields:tt)*;)*) => {$(
        impl Widen for $error {
            fn widen(self) -> CoordError {
                match self {
                    $($error::$variant $fields => CoordError::$variant $fields,)*
                    other => panic!("no rule refuses like this: {other}"),
                }
            }
        }
    )*};
}

widen! {
    RenewError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status };
    ReleaseError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status };
    CheckpointError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status }
        OpIdConflict { op_id, expected_hash, actual_hash } CursorRegression { old_key, new_key }
        CursorOutOfBounds(detail) CursorKeyTooLarge { size, max } CursorTokenTooLarge { size, max }
        CheckpointMissingKey {};
    CompleteError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status }
        OpIdConflict { op_id, expected_hash, actual_hash } CursorRegression { old_key, new_key }
        CursorOutOfBounds(detail) CursorKeyTooLarge { size, max } CursorTokenTooLarge { size, max }
        CheckpointMissingKey {};
    ParkError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status }
        OpIdConflict { op_id, expected_hash, actual_hash };
    SplitError: ShardNotFound { shard } TenantMismatch { expected }
        StaleFence { presented, current } LeaseExpired { deadline, now }
        ShardTerminal { shard, status } RunNotActive { run, status }
        OpIdConflict { op_id, expected_hash, actual_hash } SplitInvalid(source);
}
