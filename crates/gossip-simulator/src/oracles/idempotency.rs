//! S6: a repeated operation gets its first answer while it is remembered, and never another one
//! under its id.

use std::collections::VecDeque;

use gossip_contracts::coordination::SplitValidationError;
use gossip_coordination::{OpKind, OpLog, OpResult, ShardRecordView};

use super::ledger::{Executed, Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Effect, Operation, Refusal};

const S6: &str = "S6 idempotency";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let Some(op_id) = seen.operation.op_id() else { return Ok(()) };
    // Such a request is another tenant's business (S7).
    if seen.operation.lease().is_some_and(|lease| lease.tenant() != seen.operation.tenant()) {
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
                matches!(seen.answer, Answer::Replayed(effect) if is_first(effect, &first.effect));
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

/// Whether a replay says what was said first. Of a lease that a checkpoint renewed it may know that it
/// ended earlier, not later; and how many workers are idle is as of now.
fn is_first(said: &Effect, first: &Effect) -> bool {
    match (said, first) {
        (Effect::Renewed { deadline: said, .. }, Effect::Renewed { deadline: first, .. }) => {
            said <= first
        }
        _ => said == first,
    }
}

/// What the log has forgotten or never knew is not replayed, except a residual split: its parent
/// never forgets what it spawned.
fn check_new(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    if let Operation::SplitResidual { op_id, .. } = seen.operation
        && let Some((shard, _)) = ledger.subject(seen.operation)
        && let Some(first) = shard.residuals.iter().find(|split| split.op_id == *op_id)
    {
        return check_forgotten_split(shard, first, seen);
    }
    let known =
        !matches!(seen.answer, Answer::Replayed(_) | Answer::Refused(Refusal::OpIdConflict { .. }));
    demand(known, S6, || format!("{:?} was never carried out: {:?}", seen.operation, seen.answer))
}

/// The same plan gets its first answer for ever. Of another plan the shard knows only what it still
/// has: a plan that keeps less is refused, since calling it done would leave keys to nobody.
fn check_forgotten_split(shard: &Shard, first: &Executed, seen: Observation<'_>) -> OracleResult {
    let Operation::SplitResidual { kept, .. } = seen.operation else {
        unreachable!("only residual splits are asked about")
    };
    let keeps_enough = kept.start == shard.range.start && kept.end[..] >= shard.range.end[..];
    let expected = match &first.effect {
        Effect::Residual(shard) if !keeps_enough => {
            let shard = *shard;
            Answer::Refused(Refusal::SplitInvalid(SplitValidationError::DerivedIdCollision {
                shard,
            }))
        }
        effect => Answer::Replayed(effect.clone()),
    };
    let is_same = first.operation.asks_as(seen.operation);
    demand(keeps_enough || !is_same, S6, || {
        format!("{} has more than a split left it: {:?}", shard.key, shard.range)
    })?;
    demand(*seen.answer == expected, S6, || {
        format!("a split had {:?}; {:?} got {:?}", first.effect, seen.operation, seen.answer)
    })
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
    inspect_log(shard, record.op_log)
}

/// The log holds what was carried out, as what, when, and nothing else.
fn inspect_log(shard: &Shard, log: &OpLog) -> OracleResult {
    let known = shard.recent.iter().map(|executed| {
        (executed.op_id, kind_of(&executed.operation), OpResult::Completed, executed.at)
    });
    let stored = log.iter().map(|it| (it.op_id(), Some(it.kind()), it.result(), it.executed_at()));
    demand(stored.eq(known), S6, || format!("{}: the log holds {log:?}", shard.key))
}

const fn kind_of(operation: &Operation) -> Option<OpKind> {
    Some(match operation {
        Operation::Checkpoint { .. } => OpKind::Checkpoint,
        Operation::Complete { .. } => OpKind::Complete,
        Operation::Park { .. } => OpKind::Park,
        Operation::SplitReplace { .. } => OpKind::SplitReplace,
        Operation::SplitResidual { .. } => OpKind::SplitResidual,
        Operation::Unpark { .. } => OpKind::Unpark,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;

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
    fn a_forgotten_split_that_is_answered_by_another_plan_is_noticed() {
        use gossip_contracts::identity::ShardId;
        let mut ledger = Ledger::example();
        let split = |point, number| Operation::SplitResidual {
            tenant: tenant(1),
            lease: lease(1, 2, 100),
            kept: range(0, point),
            residual: range(point, 10),
            op_id: op(number),
        };
        let id = ShardId::derived_from_raw(1);
        ledger.saw(&split(8, 9), &Answer::Executed(Effect::Residual(id)));
        for number in 10..26 {
            ledger.saw(&checkpoint(lease(1, 2, 100), 4, number), &done());
        }
        let replayed = |raw| Answer::Replayed(Effect::Residual(ShardId::derived_from_raw(raw)));
        assert_eq!(judged(check, &ledger, &split(8, 9), &replayed(1)), Ok(()));
        assert_fires(judged(check, &ledger, &split(8, 9), &replayed(2)), "S6");
        assert_fires(judged(check, &ledger, &split(8, 9), &done()), "S6");
        // Less than the shard has now: the items 6 and 7 would be nobody's.
        assert_fires(judged(check, &ledger, &split(6, 9), &replayed(1)), "S6");
        let collision = SplitValidationError::DerivedIdCollision { shard: id };
        let refused = Answer::Refused(Refusal::SplitInvalid(collision));
        assert_eq!(judged(check, &ledger, &split(6, 9), &refused), Ok(()));
        // Another id was never used.
        assert_fires(judged(check, &ledger, &split(8, 40), &replayed(1)), "S6");
    }

    #[test]
    fn a_log_that_holds_something_else_than_was_done_is_noticed() {
        use gossip_coordination::OpLogEntry;
        let ledger = Ledger::example();
        let shard = ledger.shard(tenant(1), KEY).expect("the shard of the example");
        let judged = |entries: &[(u64, OpKind, OpResult, u64)]| {
            let mut log = OpLog::new();
            for &(number, kind, result, time) in entries {
                log.push_back_overwrite(OpLogEntry::new(op(number), kind, result, 1, at(time)));
            }
            inspect_log(shard, &log)
        };
        let first = (2, OpKind::Checkpoint, OpResult::Completed, 50);
        assert_eq!(judged(&[first]), Ok(()));
        assert_fires(judged(&[]), "S6");
        assert_fires(judged(&[first, (3, first.1, first.2, first.3)]), "S6");
        assert_fires(judged(&[(3, first.1, first.2, first.3)]), "S6");
        assert_fires(judged(&[(2, OpKind::Complete, first.2, first.3)]), "S6");
        assert_fires(judged(&[(2, first.1, OpResult::Superseded, first.3)]), "S6");
        assert_fires(judged(&[(2, first.1, first.2, 51)]), "S6");
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
