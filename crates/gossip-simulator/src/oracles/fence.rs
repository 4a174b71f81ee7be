//! S2: fences only rise, with every grant and every unpark.

use gossip_coordination::{EventKind, ShardRecordView};

use super::ledger::{Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Operation, Refusal};

const S2: &str = "S2 fence";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
    let (key, before) = (shard.key, shard.fence);
    match (seen.operation, seen.answer) {
        (_, Answer::Acquired(acquired)) => {
            let fence = acquired.lease.fence().as_raw();
            demand(fence > before, S2, || format!("{key} at {before} was granted at {fence}"))
        }
        (Operation::Unpark { .. }, Answer::Executed(_)) => {
            let raised = seen.events.iter().any(|event| match event.kind {
                EventKind::ShardUnparked { new_fence_epoch, .. } => {
                    new_fence_epoch.as_raw() > before
                }
                _ => false,
            });
            demand(raised, S2, || format!("{key} at {before} was unparked without a higher fence"))
        }
        (_, Answer::Refused(Refusal::StaleFence { current, .. })) => {
            demand(current.as_raw() == before, S2, || {
                format!("{key} is at {before}; a refusal says {current}")
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
    demand(record.state.fence.as_raw() == shard.fence, S2, || {
        format!("{}: fence {} is stored, {} was seen", shard.key, record.state.fence, shard.fence)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;
    use gossip_contracts::identity::FenceEpoch;
    use gossip_coordination::ParkReason;
    use gossip_coordination::StateTransitionEvent;

    #[test]
    fn a_grant_that_does_not_raise_the_fence_is_noticed() {
        let ledger = Ledger::example();
        assert_fires(
            judged(check, &ledger, &acquire(1), &acquired(lease(1, 2, 100), cursor(3))),
            "S2",
        );
        assert_eq!(
            judged(check, &ledger, &acquire(1), &acquired(lease(1, 3, 100), cursor(3))),
            Ok(())
        );
    }

    #[test]
    fn an_unpark_that_does_not_raise_the_fence_is_noticed() {
        let mut ledger = Ledger::example();
        let (tenant, op_id) = (tenant(1), op(8));
        let lease = lease(1, 2, 100);
        ledger.saw(&Operation::Park { tenant, lease, reason: ParkReason::Other, op_id }, &done());
        let unpark = Operation::Unpark { tenant, key: KEY, op_id: op(9) };
        let told = |fence: u64| -> Vec<StateTransitionEvent> {
            let new_fence_epoch = FenceEpoch::from_raw(fence);
            vec![event(EventKind::ShardUnparked { shard: KEY.shard, new_fence_epoch })]
        };
        let judged = |events: &[StateTransitionEvent]| {
            check(&ledger, Observation { now: at(50), operation: &unpark, answer: &done(), events })
        };
        assert_fires(judged(&told(2)), "S2");
        assert_fires(judged(&[]), "S2");
        assert_eq!(judged(&told(3)), Ok(()));
    }

    #[test]
    fn a_refusal_that_names_another_fence_is_noticed() {
        let ledger = Ledger::example();
        let stale = |current: u64| {
            let (presented, current) = (FenceEpoch::INITIAL, FenceEpoch::from_raw(current));
            Answer::Refused(Refusal::StaleFence { presented, current })
        };
        let old = checkpoint(lease(1, 1, 100), 4, 9);
        assert_fires(judged(check, &ledger, &old, &stale(1)), "S2");
        assert_eq!(judged(check, &ledger, &old, &stale(2)), Ok(()));
    }
}
