//! S12: every change is reported by exactly its event, and nothing else is reported.

use gossip_contracts::identity::LogicalTime;
use gossip_coordination::{EventKind, ParkReason, ShardStatus, StateTransitionEvent};

use super::ledger::Ledger;
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Effect, Operation, Refusal};

const S12: &str = "S12 events";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let expected = expected(ledger, seen);
    let told = match (seen.events, &expected) {
        ([], None) => true,
        ([event], Some(expected)) => {
            event.at == seen.now
                && event.run == run_of(seen.operation)
                && is_like(&event.kind, expected)
        }
        _ => false,
    };
    demand(told, S12, || {
        format!(
            "{:?} and {:?} told {:?}, not {expected:?}",
            seen.operation, seen.answer, seen.events
        )
    })
}

/// After a request that changed nothing, or nothing more.
pub(super) fn check_silence(told: &[StateTransitionEvent]) -> OracleResult {
    demand(told.is_empty(), S12, || format!("nothing was changed, and {told:?} was told"))
}

fn run_of(operation: &Operation) -> gossip_contracts::identity::RunId {
    match (operation.run(), operation.shard()) {
        (Some((_, run)), _) => run,
        (None, Some((_, key))) => key.run,
        (None, None) => unreachable!("every operation is about a run or a shard"),
    }
}

/// S2 looks at the fence of an unpark.
fn is_like(told: &EventKind, expected: &EventKind) -> bool {
    match (told, expected) {
        (EventKind::ShardUnparked { shard: a, .. }, EventKind::ShardUnparked { shard: b, .. }) => {
            a == b
        }
        _ => told == expected,
    }
}

/// The new deadline, if it is one.
fn extended(ledger: &Ledger, operation: &Operation, deadline: LogicalTime) -> Option<LogicalTime> {
    let held = ledger.subject(operation).and_then(|(shard, _)| shard.holder);
    (held.map(|held| held.deadline) != Some(deadline)).then_some(deadline)
}

fn expected(ledger: &Ledger, seen: Observation<'_>) -> Option<EventKind> {
    use gossip_contracts::identity::FenceEpoch;

    let shard = seen.operation.shard().map(|(_, key)| key.shard);
    match (seen.operation, seen.answer) {
        (Operation::CreateRun { .. }, Answer::Accepted) => Some(EventKind::RunCreated),
        (Operation::DeleteRun { .. }, Answer::Accepted) => Some(EventKind::RunDeleted),
        (Operation::Release { .. }, Answer::Accepted) => {
            Some(EventKind::ShardReleased { shard: shard? })
        }
        (_, Answer::Acquired(acquired)) => Some(EventKind::ShardAcquired {
            shard: shard?,
            worker: acquired.lease.owner(),
            fence_epoch: acquired.lease.fence(),
        }),
        (_, &Answer::Renewed { deadline }) => {
            Some(EventKind::ShardLeaseRenewed { shard: shard?, new_deadline: deadline })
        }
        // Poisoned just now, which is told once.
        (Operation::Acquire { .. }, Answer::Refused(Refusal::ShardTerminal { .. }))
            if ledger.subject(seen.operation)?.0.status == ShardStatus::Active =>
        {
            Some(EventKind::ShardParked { shard: shard?, reason: ParkReason::Poisoned })
        }
        (operation, Answer::Executed(effect)) => Some(match (operation, effect) {
            (Operation::RegisterShards { shards, .. }, _) => {
                EventKind::RunActivated { shard_count: shards.len() }
            }
            (Operation::RevokeLease { fence, .. }, _) => {
                EventKind::ShardLeaseRevoked { shard: shard?, new_fence_epoch: fence.next() }
            }
            (Operation::CompleteRun { .. }, _) => EventKind::RunCompleted,
            (Operation::FailRun { .. }, _) => EventKind::RunFailed,
            (Operation::CancelRun { .. }, _) => EventKind::RunCancelled,
            (Operation::Unpark { .. }, _) => {
                EventKind::ShardUnparked { shard: shard?, new_fence_epoch: FenceEpoch::INITIAL }
            }
            (Operation::Checkpoint { cursor, .. }, _) => EventKind::ShardCheckpointed {
                shard: shard?,
                last_key: gossip_coordination::RedactedKey::new(cursor.last_key.as_deref()),
                new_deadline: match *effect {
                    Effect::Renewed { deadline, .. } => extended(ledger, seen.operation, deadline),
                    _ => None,
                },
            },
            (Operation::Complete { .. }, _) => EventKind::ShardCompleted { shard: shard? },
            (&Operation::Park { reason, .. }, _) => {
                EventKind::ShardParked { shard: shard?, reason }
            }
            (Operation::SplitReplace { .. }, Effect::Children(children)) => {
                EventKind::ShardSplit { parent: shard?, children: children.clone() }
            }
            (Operation::SplitResidual { .. }, &Effect::Residual(residual)) => {
                EventKind::ShardResidualCreated { parent: shard?, residual }
            }
            _ => return None,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;

    #[test]
    fn a_change_that_is_not_reported_once_is_noticed() {
        let operation = complete(lease(1, 2, 100), 9, 9);
        let told = event(EventKind::ShardCompleted { shard: KEY.shard });
        let other = event(EventKind::ShardReleased { shard: KEY.shard });
        let judged = |answer: &Answer, events: &[_]| {
            let seen = Observation { now: at(50), operation: &operation, answer, events };
            check(&Ledger::example(), seen)
        };
        assert_eq!(judged(&done(), std::slice::from_ref(&told)), Ok(()));
        assert_fires(judged(&done(), &[]), "S12");
        assert_fires(judged(&done(), &[other]), "S12");
        assert_fires(judged(&done(), &[told.clone(), told.clone()]), "S12");
        let replayed = Answer::Replayed(Effect::Nothing);
        assert_eq!(judged(&replayed, &[]), Ok(()));
        assert_fires(judged(&replayed, &[told]), "S12");
    }

    #[test]
    fn a_parking_that_is_reported_again_or_not_at_all_is_noticed() {
        let mut ledger = Ledger::example();
        let status = ShardStatus::Parked;
        let operation = acquire(1);
        let answer = Answer::Refused(Refusal::ShardTerminal { shard: KEY, status });
        let reason = ParkReason::Poisoned;
        let told = [event(EventKind::ShardParked { shard: KEY.shard, reason })];
        let judged = |ledger: &Ledger, events: &[StateTransitionEvent]| {
            let (now, operation, answer) = (at(50), &operation, &answer);
            check(ledger, Observation { now, operation, answer, events })
        };
        assert_eq!(judged(&ledger, &told), Ok(()));
        assert_fires(judged(&ledger, &[]), "S12");
        ledger.saw_with(&operation, &answer, &told);
        assert_eq!(judged(&ledger, &[]), Ok(()));
        assert_fires(judged(&ledger, &told), "S12");
    }

    #[test]
    fn an_event_of_a_claim_that_got_nothing_is_noticed() {
        assert_eq!(check_silence(&[]), Ok(()));
        assert_fires(check_silence(&[event(EventKind::RunCompleted)]), "S12");
    }
}
