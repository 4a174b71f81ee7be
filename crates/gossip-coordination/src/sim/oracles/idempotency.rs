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
            let expected = matches!(seen.answer, Answer::Replayed(effect) if *effect == first.effect);
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
