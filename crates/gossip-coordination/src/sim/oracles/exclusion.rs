//! S1: a shard has one holder at a time; only the holder is obeyed, and no longer than its lease.

use super::ledger::{Ledger, Shard};
use super::{Observation, Verdict, demand};
use crate::record::ShardRecordView;
use crate::sim::op::{Answer, Operation, Refusal};
use crate::status::ShardStatus;

const S1: &str = "S1 exclusion";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> Verdict {
    let Some((shard, run)) = ledger.subject(seen.operation) else { return Ok(()) };
    let key = shard.key;
    match (seen.operation, seen.answer) {
        (&Operation::Acquire { worker, .. }, Answer::Acquired(acquired)) => {
            let rival = shard.holder.filter(|held| held.deadline > seen.now);
            demand(rival.is_none_or(|held| held.worker == worker), S1, || {
                format!("{key} was granted at {} while another holds it: {rival:?}", seen.now)
            })?;
            let lease = &acquired.lease;
            let granted = (lease.tenant(), lease.key(), lease.owner());
            demand(granted == (shard.tenant, key, worker), S1, || {
                format!("a request for {key} was granted {lease:?}")
            })?;
            demand(lease.deadline() > seen.now, S1, || format!("{key}: a lease that is over"))?;
            demand(shard.tries < run.config.max_shard_retries, S1, || {
                format!("{key} was granted after {} tries without progress", shard.tries)
            })
        }
        (Operation::Acquire { .. }, Answer::Refused(Refusal::ShardTerminal { .. }))
            if shard.status == ShardStatus::Active =>
        {
            demand(shard.tries >= run.config.max_shard_retries, S1, || {
                format!("{key} was parked as poisoned after {} tries", shard.tries)
            })
        }
        (operation, Answer::Executed(_) | Answer::Renewed { .. } | Answer::Accepted) => {
            let Some(lease) = operation.lease() else { return Ok(()) };
            let held = shard.holder.is_some_and(|held| {
                (held.worker, held.fence) == (lease.owner(), lease.fence().as_raw())
                    && seen.now < held.deadline
            });
            demand(held, S1, || {
                format!("{key}: {lease:?} was obeyed at {}; holder {:?}", seen.now, shard.holder)
            })?;
            let Answer::Renewed { deadline } = seen.answer else { return Ok(()) };
            demand(shard.holder.is_some_and(|held| held.deadline <= *deadline), S1, || {
                format!("{key}: a renewal moved the deadline back to {deadline}")
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> Verdict {
    let stored = record.state.lease.map(|holder| (holder.owner(), holder.deadline()));
    let known = shard.holder.map(|holder| (holder.worker, holder.deadline));
    demand(stored == known, S1, || {
        format!("{}: {stored:?} is stored as holder, {known:?} was answered", shard.key)
    })?;
    demand(record.state.acquires_since_progress == shard.tries, S1, || {
        let stored = record.state.acquires_since_progress;
        format!("{}: {stored} tries are stored, {} were made", shard.key, shard.tries)
    })
}
