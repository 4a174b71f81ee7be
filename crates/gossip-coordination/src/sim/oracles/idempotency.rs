//! S6: a repeated operation gets its first answer while it is remembered, and never another one
//! under its id.

use std::collections::VecDeque;

use super::ledger::{Executed, Ledger, Shard};
use super::{Observation, Verdict, demand};
use crate::record::ShardRecordView;
use crate::sim::op::{Answer, Effect, Operation, Refusal};

const S6: &str = "S6 idempotency";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let Some(op_id) = seen.operation.op_id() else { return Ok(()) };
    // Such a request is another tenant's business (S7), or the backend's.
    if seen.operation.lease().is_some_and(|lease| lease.tenant() != seen.operation.tenant())
        || matches!(seen.answer, Answer::Refused(Refusal::Backend { .. }))
    {
        return Ok(());
    }
    let recent: &VecDeque<Executed> = if let Some((tenant, run)) = seen.operation.run() {
        let Some(run) = ledger.run(tenant, run) else { return Ok(()) };
        &run.recent
    } else {
        let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
        &shard.recent
    };
    match recent.iter().find(|executed| executed.op_id == op_id) {
        Some(first) if first.operation.asks_as(seen.operation) => {
            let expected =
                matches!(seen.answer, Answer::Replayed(effect) if *effect == first.effect);
            demand(expected, S6, || {
                format!("operation {op_id} had {:?}, and now {:?}", first.effect, seen.answer)
            })
        }
        Some(_) => {
            let conflict = Answer::Refused(Refusal::OpIdConflict { op_id });
            demand(*seen.answer == conflict, S6, || {
                format!("operation {op_id} came with other parameters: {:?}", seen.answer)
            })
        }
        None => check_new(ledger, seen),
    }
}

/// What the log has forgotten or never knew is not replayed, except a residual split: its parent
/// never forgets what it spawned.
fn check_new(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let known = match (seen.operation, seen.answer) {
        (Operation::SplitResidual { .. }, Answer::Replayed(Effect::Residual(id))) => {
            ledger.subject(seen.operation).is_some_and(|(shard, _)| shard.spawned.contains(id))
        }
        (_, Answer::Replayed(_) | Answer::Refused(Refusal::OpIdConflict { .. })) => false,
        _ => true,
    };
    demand(known, S6, || format!("{:?} was never carried out: {:?}", seen.operation, seen.answer))
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> Verdict {
    let known = shard.recent.iter().map(|executed| executed.op_id);
    demand(record.op_log.op_ids().eq(known), S6, || {
        let stored: Vec<_> = record.op_log.op_ids().collect();
        format!("{}: the log holds {stored:?}", shard.key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::oracles::testing::*;

    #[test]
    fn a_repeated_operation_that_is_not_replayed_is_noticed() {
        let ledger = Ledger::example();
        // Under another lease, which is not part of what is asked.
        let again = checkpoint(lease(1, 7, 200), 3, 2);
        assert_fires(judged(check, &ledger, &again, &done()), "S6");
        let refused = Answer::Refused(Refusal::CheckpointMissingKey);
        assert_fires(judged(check, &ledger, &again, &refused), "S6");
        let replayed = Answer::Replayed(Effect::Nothing);
        assert_eq!(judged(check, &ledger, &again, &replayed), Ok(()));
    }

    #[test]
    fn other_parameters_under_a_used_id_are_noticed() {
        let ledger = Ledger::example();
        let replayed = Answer::Replayed(Effect::Nothing);
        let conflict = Answer::Refused(Refusal::OpIdConflict { op_id: op(2) });
        for other in [checkpoint(lease(1, 2, 100), 4, 2), complete(lease(1, 2, 100), 3, 2)] {
            assert_fires(judged(check, &ledger, &other, &replayed), "S6");
            assert_fires(judged(check, &ledger, &other, &done()), "S6");
            assert_eq!(judged(check, &ledger, &other, &conflict), Ok(()));
        }
    }

    #[test]
    fn an_answer_to_what_was_never_carried_out_is_noticed() {
        let ledger = Ledger::example();
        let new = checkpoint(lease(1, 2, 100), 4, 9);
        assert_fires(judged(check, &ledger, &new, &Answer::Replayed(Effect::Nothing)), "S6");
        let conflict = Answer::Refused(Refusal::OpIdConflict { op_id: op(9) });
        assert_fires(judged(check, &ledger, &new, &conflict), "S6");
        assert_eq!(judged(check, &ledger, &new, &done()), Ok(()));
    }

    #[test]
    fn an_operation_is_forgotten_after_sixteen_more() {
        let mut ledger = Ledger::example();
        let first = checkpoint(lease(1, 2, 100), 3, 2);
        for number in 10..26 {
            assert_fires(judged(check, &ledger, &first, &done()), "S6");
            ledger.saw(&checkpoint(lease(1, 2, 100), 4, number), &done());
        }
        assert_eq!(judged(check, &ledger, &first, &done()), Ok(()));
    }
}
