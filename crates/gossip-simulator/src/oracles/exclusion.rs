//! S1: a shard has one holder at a time; only the holder is obeyed, and no longer than its lease.

use gossip_coordination::{ShardRecordView, ShardStatus};

use super::ledger::{Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Effect, Operation, Refusal};

const S1: &str = "S1 exclusion";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let Some((shard, run)) = ledger.subject(seen.operation) else { return Ok(()) };
    let key = shard.key;
    // Nobody gets a shard that another holds, nor parks it by asking.
    let check_unheld = |worker| {
        let rival = shard.holder.filter(|held| held.free_from > seen.now && !held.is_silent);
        demand(rival.is_none_or(|held| held.worker == worker), S1, || {
            format!("{key} was taken at {} while another holds it: {rival:?}", seen.now)
        })
    };
    match (seen.operation, seen.answer) {
        (&Operation::Acquire { worker, .. }, Answer::Acquired(acquired)) => {
            check_unheld(worker)?;
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
        (&Operation::Acquire { worker, .. }, Answer::Refused(Refusal::ShardTerminal { .. }))
            if shard.status == ShardStatus::Active =>
        {
            check_unheld(worker)?;
            demand(shard.tries >= run.config.max_shard_retries, S1, || {
                format!("{key} was parked as poisoned after {} tries", shard.tries)
            })
        }
        // Whoever holds it, an administrator may end that; but only the lease that was meant.
        (Operation::RevokeLease { fence, .. }, Answer::Executed(_)) => {
            demand(shard.holder.is_some_and(|held| held.fence == fence.as_raw()), S1, || {
                format!("{key}: fence {fence} was revoked from {:?}", shard.holder)
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
            let (Answer::Renewed { deadline } | Answer::Executed(Effect::Renewed { deadline, .. })) =
                seen.answer
            else {
                return Ok(());
            };
            demand(shard.holder.is_some_and(|held| held.deadline <= *deadline), S1, || {
                format!("{key}: a renewal moved the deadline back to {deadline}")
            })
        }
        _ => Ok(()),
    }
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::OwnedCursor;
    use crate::oracles::testing::*;

    #[test]
    fn a_second_holder_is_noticed() {
        let ledger = Ledger::example();
        let granted = acquired(lease(2, 3, 150), cursor(3));
        assert_fires(judged(check, &ledger, &acquire(2), &granted), "S1");
        // The owner may acquire again, and another worker once the lease is over.
        let again = acquired(lease(1, 3, 150), cursor(3));
        assert_eq!(judged(check, &ledger, &acquire(1), &again), Ok(()));
        let (operation, answer) = (acquire(2), acquired(lease(2, 3, 150), cursor(3)));
        let late =
            Observation { now: at(100), operation: &operation, answer: &answer, events: &[] };
        assert_eq!(check(&ledger, late), Ok(()));
    }

    #[test]
    fn a_holder_that_was_silent_keeps_nobody_out_until_it_writes() {
        let mut ledger = Ledger::example();
        let granted = acquired(lease(2, 3, 150), cursor(3));
        ledger.note_silence();
        assert_eq!(judged(check, &ledger, &acquire(2), &granted), Ok(()));
        ledger.saw(&checkpoint(lease(1, 2, 100), 4, 9), &done());
        assert_fires(judged(check, &ledger, &acquire(2), &granted), "S1");
    }

    #[test]
    fn obedience_to_anybody_but_the_holder_is_noticed() {
        let ledger = Ledger::example();
        let fine = checkpoint(lease(1, 2, 100), 4, 9);
        assert_eq!(judged(check, &ledger, &fine, &done()), Ok(()));
        for other in [lease(1, 1, 100), lease(2, 2, 100), lease(1, 3, 100)] {
            assert_fires(judged(check, &ledger, &checkpoint(other, 4, 9), &done()), "S1");
        }
        let late = Observation { now: at(100), operation: &fine, answer: &done(), events: &[] };
        assert_fires(check(&ledger, late), "S1");
    }

    #[test]
    fn a_renewal_that_shortens_is_noticed() {
        let ledger = Ledger::example();
        let renew = Operation::Renew { tenant: tenant(1), lease: lease(1, 2, 100) };
        let shorter = Answer::Renewed { deadline: at(99) };
        assert_fires(judged(check, &ledger, &renew, &shorter), "S1");
        assert_eq!(judged(check, &ledger, &renew, &Answer::Renewed { deadline: at(100) }), Ok(()));
    }

    #[test]
    fn tries_that_are_miscounted_are_noticed() {
        let mut ledger = Ledger::example();
        let early =
            Answer::Refused(Refusal::ShardTerminal { shard: KEY, status: ShardStatus::Parked });
        assert_fires(judged(check, &ledger, &acquire(1), &early), "S1");
        for fence in 3..=5 {
            ledger.saw(&acquire(1), &acquired(lease(1, fence, 100), OwnedCursor::default()));
        }
        let one_more = acquired(lease(1, 6, 100), cursor(3));
        assert_fires(judged(check, &ledger, &acquire(1), &one_more), "S1");
        // Poisoned by its own worker, but not by one that does not hold it.
        assert_eq!(judged(check, &ledger, &acquire(1), &early), Ok(()));
        assert_fires(judged(check, &ledger, &acquire(2), &early), "S1");
    }
}
