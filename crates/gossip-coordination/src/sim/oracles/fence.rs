//! S2: fences only rise, with every grant and every unpark.

use super::ledger::{Ledger, Shard};
use super::{Observation, Verdict, demand};
use crate::events::EventKind;
use crate::record::ShardRecordView;
use crate::sim::op::{Answer, Operation, Refusal};

const S2: &str = "S2 fence";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
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

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> Verdict {
    demand(record.state.fence.as_raw() == shard.fence, S2, || {
        format!("{}: fence {} is stored, {} was seen", shard.key, record.state.fence, shard.fence)
    })
}
