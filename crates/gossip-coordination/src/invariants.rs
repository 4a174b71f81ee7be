//! What must hold of every record, whoever wrote it. In this program a record that breaks one of
//! these is a bug, and the process stops before it is stored; in bytes from outside it is damage,
//! and the codec refuses them. Both ask the functions here.
//!
//! - R1: a shard has a park reason exactly when it is parked.
//! - R2: a lease has an owner and a deadline (by type: [`LeaseHolder`](crate::LeaseHolder)).
//! - R3: a terminal shard holds no lease.
//! - R4: a fence epoch is at least [`FenceEpoch::INITIAL`].
//! - R5: an op-log holds at most its capacity.
//! - R6: a split shard has children.
//! - R7: a shard has a parent exactly when its id is a derived one.
//! - R8: every spawned shard has a derived id.
//! - R9: an operation id stands in the op-log at most once.
//! - R10: a shard spawns at most [`MAX_SPAWNED_PER_SHARD`] shards.
//!
//! - U1: a run has an end time exactly when it has ended.
//! - U2: a run has root shards unless it never got that far: it is initializing, or was cancelled
//!   while it was.
//! - U3: an operation id stands in a run's op-log at most once.
//! - U4: only a run without root shards has a registration under way. It is of at least one shard
//!   and at most as many as a manifest may have, and so is what an earlier one left; it stages no
//!   more than it counts. It stages none while some of an earlier one are left over, and a
//!   cancelled run has such ones only.
//! - U5: only a run that is done has a result.

use gossip_contracts::coordination::{MAX_INITIAL_SHARDS, MAX_SPAWNED_PER_SHARD};
use gossip_contracts::identity::{FenceEpoch, LogicalTime, OpId, RunId, ShardId, ShardKey};

use crate::op_log::{OP_LOG_CAP, RUN_OP_LOG_CAP};
use crate::record::{ShardRecordView, ShardState, ShardUpdate};
use crate::run::{Registration, RunRecord, RunStatus};
use crate::status::{ParkReason, ShardStatus};

/// An invariant that a record breaks. Messages start with its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum InvariantViolation {
    /// R1.
    #[error("R1: shard {shard} is {status:?} with park reason {reason:?}")]
    ParkReason {
        shard: ShardKey,
        status: ShardStatus,
        /// The reason that is there or not.
        reason: Option<ParkReason>,
    },
    /// R3.
    #[error("R3: shard {shard} is {status:?} and still leased")]
    TerminalLease { shard: ShardKey, status: ShardStatus },
    /// R4.
    #[error("R4: shard {shard} has fence {fence}")]
    Fence { shard: ShardKey, fence: FenceEpoch },
    /// R5.
    #[error("R5: shard {shard} has more than {OP_LOG_CAP} op-log entries")]
    OpLogLength { shard: ShardKey },
    /// R6.
    #[error("R6: shard {shard} is split and has no children")]
    SplitWithoutChildren { shard: ShardKey },
    /// R7.
    #[error("R7: shard {shard} has parent {parent:?}")]
    Parent {
        shard: ShardKey,
        /// The parent that is there or not.
        parent: Option<ShardId>,
    },
    /// R8.
    #[error("R8: shard {shard} spawned {child}, which is not a derived id")]
    SpawnedRoot { shard: ShardKey, child: ShardId },
    /// R9.
    #[error("R9: shard {shard} has operation {op_id} twice in its log")]
    RepeatedOp { shard: ShardKey, op_id: OpId },
    /// R10.
    #[error("R10: shard {shard} has spawned {count} shards")]
    SpawnedCount { shard: ShardKey, count: usize },
    /// U1.
    #[error("U1: run {run} is {status:?} with end {end:?}")]
    RunEnd {
        run: RunId,
        status: RunStatus,
        /// The end that is there or not.
        end: Option<LogicalTime>,
    },
    /// U2.
    #[error("U2: run {run} is {status:?} with {count} root shards")]
    RunShards { run: RunId, status: RunStatus, count: usize },
    /// U3.
    #[error("U3: run {run} has operation {op_id} twice in its log")]
    RepeatedRunOp { run: RunId, op_id: OpId },
    /// U4.
    #[error("U4: run {run} is {status:?} with {registration:?}")]
    Registration { run: RunId, status: RunStatus, registration: Registration },
    /// U5.
    #[error("U5: run {run} is {status:?} and has a result")]
    RunResult { run: RunId, status: RunStatus },
}

/// R1 to R10, of a whole record.
pub(crate) fn check_shard_invariants(
    shard: ShardKey,
    state: &ShardState,
    parent: Option<ShardId>,
    spawned: impl Iterator<Item = ShardId>,
    op_ids: impl Iterator<Item = OpId>,
) -> Result<(), InvariantViolation> {
    check_state(shard, state, parent)?;
    check_spawned(shard, state.status, 0, spawned)?;
    check_op_ids::<OP_LOG_CAP>(op_ids).map_err(|fault| match fault {
        LogFault::TooLong => InvariantViolation::OpLogLength { shard },
        LogFault::Repeated(op_id) => InvariantViolation::RepeatedOp { shard, op_id },
    })
}

/// R1 to R10, of a record as `update` will leave it. What an update does not touch was checked when
/// it was written, so the cost does not grow with what the shard has spawned.
pub(crate) fn check_update(
    before: &ShardRecordView<'_>,
    update: &ShardUpdate<'_>,
) -> Result<(), InvariantViolation> {
    let shard = before.key;
    check_state(shard, &update.state, before.parent)?;
    let spawned = update.spawned.iter().copied();
    check_spawned(shard, update.state.status, before.spawned.len(), spawned)?;
    if let Some(entry) = update.log {
        let op_id = entry.op_id();
        // R5 holds by the log's type. The entry that goes makes room for its own id, too.
        if before.op_log.op_ids().skip(update.evicted_from(before)).any(|id| id == op_id) {
            return Err(InvariantViolation::RepeatedOp { shard, op_id });
        }
    }
    Ok(())
}

/// R1, R3, R4 and R7.
fn check_state(
    shard: ShardKey,
    state: &ShardState,
    parent: Option<ShardId>,
) -> Result<(), InvariantViolation> {
    let (status, reason) = (state.status, state.park_reason);
    if reason.is_some() != (status == ShardStatus::Parked) {
        return Err(InvariantViolation::ParkReason { shard, status, reason });
    }
    if status.is_terminal() && state.lease.is_some() {
        return Err(InvariantViolation::TerminalLease { shard, status });
    }
    if state.fence < FenceEpoch::INITIAL {
        return Err(InvariantViolation::Fence { shard, fence: state.fence });
    }
    if parent.is_some() != shard.shard.is_derived() {
        return Err(InvariantViolation::Parent { shard, parent });
    }
    Ok(())
}

/// R6, R8 and R10, for shards spawned after the first `before`.
fn check_spawned(
    shard: ShardKey,
    status: ShardStatus,
    before: usize,
    spawned: impl Iterator<Item = ShardId>,
) -> Result<(), InvariantViolation> {
    let mut count = before;
    for child in spawned {
        if !child.is_derived() {
            return Err(InvariantViolation::SpawnedRoot { shard, child });
        }
        count += 1;
    }
    if count > MAX_SPAWNED_PER_SHARD {
        return Err(InvariantViolation::SpawnedCount { shard, count });
    }
    if status == ShardStatus::Split && count == 0 {
        return Err(InvariantViolation::SplitWithoutChildren { shard });
    }
    Ok(())
}

/// U1 to U5.
pub(crate) fn check_run_invariants(record: &RunRecord) -> Result<(), InvariantViolation> {
    let (run, status, end) = (record.run, record.status, record.completed_at);
    if end.is_some() != status.is_terminal() {
        return Err(InvariantViolation::RunEnd { run, status, end });
    }
    let count = record.root_shards.len();
    let in_order = match status {
        RunStatus::Initializing => count == 0,
        RunStatus::Active | RunStatus::Done | RunStatus::Failed => count > 0,
        RunStatus::Cancelled => true,
    };
    if !in_order {
        return Err(InvariantViolation::RunShards { run, status, count });
    }
    if let Some(registration) = record.registration {
        let Registration { count: wanted, staged, leftover, .. } = registration;
        let most = MAX_INITIAL_SHARDS as u32;
        let fits = (1..=most).contains(&wanted)
            && staged <= wanted
            && leftover <= most
            && (staged == 0 || leftover == 0);
        let is_allowed = match status {
            RunStatus::Initializing => true,
            RunStatus::Cancelled => count == 0 && staged == 0 && leftover > 0,
            RunStatus::Active | RunStatus::Done | RunStatus::Failed => false,
        };
        if !fits || !is_allowed {
            return Err(InvariantViolation::Registration { run, status, registration });
        }
    }
    if record.result.is_some() && status != RunStatus::Done {
        return Err(InvariantViolation::RunResult { run, status });
    }
    let op_ids = record.op_log.op_ids();
    check_op_ids::<RUN_OP_LOG_CAP>(op_ids).map_err(|fault| match fault {
        LogFault::TooLong => unreachable!("a run's op-log is no longer than its capacity"),
        LogFault::Repeated(op_id) => InvariantViolation::RepeatedRunOp { run, op_id },
    })
}

enum LogFault {
    TooLong,
    Repeated(OpId),
}

fn check_op_ids<const N: usize>(op_ids: impl Iterator<Item = OpId>) -> Result<(), LogFault> {
    let mut seen = [0u64; N];
    for (len, op_id) in op_ids.enumerate() {
        if len == N {
            return Err(LogFault::TooLong);
        }
        if seen[..len].contains(&op_id.as_raw()) {
            return Err(LogFault::Repeated(op_id));
        }
        seen[len] = op_id.as_raw();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LeaseHolder;
    use gossip_contracts::identity::WorkerId;

    struct Case {
        shard: ShardId,
        state: ShardState,
        parent: Option<ShardId>,
        spawned: Vec<ShardId>,
        op_ids: Vec<u64>,
    }

    impl Case {
        fn good() -> Self {
            Self {
                shard: ShardId::from_raw(1),
                state: ShardState::NEW,
                parent: None,
                spawned: vec![],
                op_ids: vec![],
            }
        }

        fn check(&self) -> Result<(), InvariantViolation> {
            check_shard_invariants(
                ShardKey::new(RunId::from_raw(1), self.shard),
                &self.state,
                self.parent,
                self.spawned.iter().copied(),
                self.op_ids.iter().copied().map(OpId::from_raw),
            )
        }
    }

    #[track_caller]
    fn check(number: &str, change: impl FnOnce(&mut Case)) {
        let mut case = Case::good();
        change(&mut case);
        let message = case.check().expect_err(number).to_string();
        assert!(message.starts_with(&format!("{number}:")), "{message}");
    }

    #[test]
    fn every_invariant_is_noticed_under_its_number() {
        let derived = ShardId::derived_from_raw(9);
        let holder = Some(LeaseHolder::new(WorkerId::from_raw(1), LogicalTime::from_raw(1)));
        check("R1", |c| c.state.status = ShardStatus::Parked);
        check("R1", |c| c.state.park_reason = Some(ParkReason::Other));
        check("R3", |c| {
            c.state.status = ShardStatus::Done;
            c.state.lease = holder;
        });
        check("R4", |c| c.state.fence = FenceEpoch::ZERO);
        check("R5", |c| c.op_ids = (0..17).collect());
        check("R6", |c| c.state.status = ShardStatus::Split);
        check("R7", |c| c.shard = derived);
        check("R7", |c| c.parent = Some(ShardId::from_raw(2)));
        check("R8", |c| c.spawned = vec![ShardId::from_raw(2)]);
        check("R9", |c| c.op_ids = vec![4, 5, 4]);
        check("R10", |c| c.spawned = vec![derived; 1025]);
    }

    #[test]
    fn records_at_the_limits_pass() {
        let mut case = Case::good();
        assert_eq!(case.check(), Ok(()));
        case.spawned = vec![ShardId::derived_from_raw(9); 1024];
        case.op_ids = (0..16).collect();
        case.state.status = ShardStatus::Split;
        assert_eq!(case.check(), Ok(()));
        case.state.status = ShardStatus::Parked;
        case.state.park_reason = Some(ParkReason::NotFound);
        case.shard = ShardId::derived_from_raw(9);
        case.parent = Some(ShardId::from_raw(2));
        assert_eq!(case.check(), Ok(()));
    }

    /// The message of the violation that `update` would leave behind, if it is one.
    fn broken_by(
        before: &ShardRecordView<'_>,
        change: impl FnOnce(&mut ShardUpdate<'_>),
    ) -> Option<String> {
        let mut update = ShardUpdate::of_state(before.state);
        change(&mut update);
        check_update(before, &update).err().map(|violation| violation.to_string())
    }

    #[test]
    fn an_update_is_checked_with_what_it_leaves_as_it_is() {
        use crate::op_log::{OpKind, OpLog, OpLogEntry, OpResult};
        use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, ShardSpecRef};
        use gossip_contracts::identity::TenantId;

        let entry = |id| {
            let (op_id, at) = (OpId::from_raw(id), LogicalTime::from_raw(1));
            OpLogEntry::new(op_id, OpKind::Checkpoint, OpResult::Completed, 1, at)
        };
        let mut log = OpLog::new();
        (0..16).for_each(|id| log.push_back_overwrite(entry(id)));
        let derived = ShardId::derived_from_raw(9);
        let spawned = vec![derived; 1024];
        let before = ShardRecordView {
            op_log: &log,
            spawned: &spawned,
            ..ShardRecordView::new_shard(
                TenantId::from_bytes([1; 32]),
                ShardKey::new(RunId::from_raw(1), ShardId::from_raw(1)),
                ShardSpecRef::new(b"a", b"b", b""),
                CursorUpdate::initial(),
                CursorSemantics::Completed,
                None,
            )
        };
        let number =
            |message: Option<String>| message.map(|m| m[..m.find(':').unwrap()].to_owned());
        let r = |name: &str| Some(name.to_owned());

        assert_eq!(broken_by(&before, |_| {}), None);
        assert_eq!(broken_by(&before, |u| u.state.status = ShardStatus::Split), None);
        // A full log forgets operation 0, so only that id may come again.
        assert_eq!(broken_by(&before, |u| u.log = Some(entry(0))), None);
        assert_eq!(number(broken_by(&before, |u| u.log = Some(entry(1)))), r("R9"));
        assert_eq!(number(broken_by(&before, |u| u.spawned.push(derived))), r("R10"));
        let fewer = ShardRecordView { spawned: &spawned[1..], ..before };
        assert_eq!(broken_by(&fewer, |u| u.spawned.push(derived)), None);
        let root = ShardId::from_raw(2);
        assert_eq!(number(broken_by(&fewer, |u| u.spawned.push(root))), r("R8"));
        let childless = ShardRecordView { spawned: &[], ..before };
        assert_eq!(number(broken_by(&childless, |u| u.state.status = ShardStatus::Split)), r("R6"));
        assert_eq!(number(broken_by(&before, |u| u.state.status = ShardStatus::Parked)), r("R1"));
        assert_eq!(number(broken_by(&before, |u| u.state.fence = FenceEpoch::ZERO)), r("R4"));
    }
}
