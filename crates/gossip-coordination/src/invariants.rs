//! What must hold of every record, whoever wrote it. A record that breaks one of these is a bug in
//! this program, and the process stops before it is stored.
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

use gossip_contracts::coordination::MAX_SPAWNED_PER_SHARD;
use gossip_contracts::identity::{FenceEpoch, OpId, ShardId, ShardKey};

use crate::op_log::OP_LOG_CAP;
use crate::record::ShardState;
use crate::status::ShardStatus;

/// Takes iterators, so that a record can be checked as it will be without building it first.
pub(crate) fn assert_shard_invariants(
    key: ShardKey,
    state: &ShardState,
    parent: Option<ShardId>,
    spawned: impl Iterator<Item = ShardId>,
    op_ids: impl Iterator<Item = OpId>,
) {
    let status = state.status;
    assert!(
        state.park_reason.is_some() == (status == ShardStatus::Parked),
        "R1: shard {key} is {status:?} with park reason {:?}",
        state.park_reason
    );
    assert!(
        !status.is_terminal() || state.lease.is_none(),
        "R3: shard {key} is {status:?} and still leased"
    );
    assert!(state.fence >= FenceEpoch::INITIAL, "R4: shard {key} has fence {}", state.fence);
    assert!(parent.is_some() == key.shard.is_derived(), "R7: shard {key} has parent {parent:?}");

    let mut spawned_count = 0usize;
    for child in spawned {
        assert!(child.is_derived(), "R8: shard {key} spawned {child}, which is not a derived id");
        spawned_count += 1;
    }
    assert!(
        spawned_count <= MAX_SPAWNED_PER_SHARD,
        "R10: shard {key} has spawned {spawned_count} shards"
    );
    assert!(
        status != ShardStatus::Split || spawned_count > 0,
        "R6: shard {key} is split and has no children"
    );

    let mut ids = [0u64; OP_LOG_CAP];
    for (len, op_id) in op_ids.enumerate() {
        assert!(len < OP_LOG_CAP, "R5: shard {key} has more than {OP_LOG_CAP} op-log entries");
        assert!(
            !ids[..len].contains(&op_id.as_raw()),
            "R9: shard {key} has operation {op_id} twice in its log"
        );
        ids[len] = op_id.as_raw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lease::LeaseHolder;
    use crate::status::ParkReason;
    use gossip_contracts::identity::{LogicalTime, RunId, WorkerId};

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

        /// The message of the panic, if there is one.
        fn broken(&self) -> Option<String> {
            let check = || {
                assert_shard_invariants(
                    ShardKey::new(RunId::from_raw(1), self.shard),
                    &self.state,
                    self.parent,
                    self.spawned.iter().copied(),
                    self.op_ids.iter().copied().map(OpId::from_raw),
                );
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(check))
                .err()
                .map(|panic| *panic.downcast::<String>().expect("a formatted message"))
        }
    }

    #[track_caller]
    fn check(number: &str, change: impl FnOnce(&mut Case)) {
        let mut case = Case::good();
        change(&mut case);
        let message = case.broken().unwrap_or_else(|| panic!("{number} was not noticed"));
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
        assert_eq!(case.broken(), None);
        case.spawned = vec![ShardId::derived_from_raw(9); 1024];
        case.op_ids = (0..16).collect();
        case.state.status = ShardStatus::Split;
        assert_eq!(case.broken(), None);
        case.state.status = ShardStatus::Parked;
        case.state.park_reason = Some(ParkReason::NotFound);
        case.shard = ShardId::derived_from_raw(9);
        case.parent = Some(ShardId::from_raw(2));
        assert_eq!(case.broken(), None);
    }
}
