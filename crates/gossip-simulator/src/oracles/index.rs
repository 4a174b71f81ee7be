//! S9: the index says what the records say: a claim gets what is free, and nothing only when
//! nothing is.

use gossip_contracts::identity::{LogicalTime, ShardKey, TenantId};
use gossip_coordination::{CapacityHint, ClaimError, RunStatus};

use super::ledger::{Ledger, Run, Shard};
use super::{Observation, OracleResult, Violation, demand};
use crate::op::{Answer, Operation, Refusal};
use crate::simulated::{Applicant, SimulatedBackend};

const S9: &str = "S9 index";

/// A named shard that is free and whose run is active is not refused as held.
pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
    if let (&Operation::Acquire { worker, .. }, Answer::Refused(Refusal::AlreadyLeased { .. })) =
        (seen.operation, seen.answer)
    {
        return demand(!shard.is_available_to(worker, seen.now), S9, || {
            format!("{} is free, and was refused as held", shard.key)
        });
    }
    Ok(())
}

/// A claim grants only what was free: not what its own worker holds.
pub(super) fn check_claimed(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let (Some((shard, _)), &Operation::Acquire { worker, .. }) =
        (ledger.subject(seen.operation), seen.operation)
    else {
        return demand(false, S9, || format!("a claim got {:?}", seen.operation));
    };
    demand(shard.is_available_to(worker, seen.now), S9, || {
        format!(
            "a claim got {}, which is {:?} and held by {:?}",
            shard.key, shard.status, shard.holder
        )
    })
}

pub(super) fn check_empty_claim(
    ledger: &Ledger,
    by: Applicant,
    refusal: &ClaimError,
) -> OracleResult {
    let run = ledger.run(by.tenant, by.run);
    match *refusal {
        ClaimError::NoneAvailable { earliest_deadline } => {
            let Some(run) = run else {
                return demand(false, S9, || format!("a claim in {}, which is not", by.run));
            };
            let free = shards(ledger, run).find(|shard| shard.is_available_to(by.worker, by.now));
            demand(free.is_none() && run.status == RunStatus::Active, S9, || {
                format!("a claim of run {} got nothing: {free:?}", run.run)
            })?;
            let earliest = earliest_deadline_of(ledger, run);
            demand(earliest == earliest_deadline, S9, || {
                format!("the first shard is free at {earliest:?}, not {earliest_deadline:?}")
            })
        }
        ClaimError::RunNotFound => {
            demand(run.is_none(), S9, || format!("run {} was not found", by.run))
        }
        ClaimError::RunNotActive { status, .. } => {
            let known = run.map(|run| run.status);
            demand(known == Some(status) && status != RunStatus::Active, S9, || {
                format!("run {} is {known:?}; a claim says {status:?}", by.run)
            })
        }
        ClaimError::Throttled { retry_after } => {
            demand(by.now < retry_after, S9, || "a wait that is over".to_owned())
        }
        _ => Err(Violation { oracle: S9, what: format!("a claim was answered {refusal:?}") }),
    }
}

/// A worker that comes back gets what is its own, whether or not its lease is over.
pub(super) fn check_own(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let holder = ledger.subject(seen.operation).and_then(|(shard, _)| shard.holder);
    let Operation::Acquire { worker, .. } = *seen.operation else {
        unreachable!("a worker comes back by acquiring")
    };
    demand(holder.is_some_and(|held| held.worker == worker), S9, || {
        format!("a worker came back with {:?}, which was held by {holder:?}", seen.operation)
    })
}

/// A worker that comes back finds what is still its own.
pub(super) fn check_nothing_owned(ledger: &Ledger, by: Applicant) -> OracleResult {
    let Some(run) = ledger.run(by.tenant, by.run) else { return Ok(()) };
    let own = |shard: &&Shard| shard.holder.is_some_and(|held| held.worker == by.worker);
    let forgotten = shards(ledger, run).find(own);
    demand(forgotten.is_none(), S9, || {
        format!("a worker that came back to run {} was not told of {forgotten:?}", run.run)
    })
}

/// A hint that goes with a grant or renewal of `key` counts what is free. Once a lease is over it is an
/// estimate: what nobody holds and one more, at least. Of a run that is too large for that it may count
/// a part in which the shard itself lies: some of what is free, though not none of what is nearly
/// everything, and the first lease to end there, which ends no later than the shard's own.
pub(super) fn check_hint(
    ledger: &Ledger,
    now: LogicalTime,
    tenant: TenantId,
    key: ShardKey,
    hint: &CapacityHint,
) -> OracleResult {
    let Some(run) = ledger.run(tenant, key.run) else { return Ok(()) };
    let free = || shards(ledger, run).filter(|shard| shard.is_available_at(now));
    let unheld = free().filter(|shard| shard.holder.is_none()).count() as u32;
    let free = free().count() as u32;
    let least = if free > unheld { unheld + 1 } else { free };
    let fits =
        (least..=free).contains(&hint.available_count) && hint.is_estimate == (free > unheld);
    let earliest = earliest_deadline_of(ledger, run);
    let ends =
        |end| shards(ledger, run).any(|shard| shard.holder.is_some_and(|it| it.free_from == end));
    let own = ledger.shard(tenant, key).and_then(|shard| shard.holder).map(|it| it.free_from);
    let fits_own = match (hint.earliest_deadline, own) {
        (Some(first), own) => ends(first) && own.is_none_or(|own| first <= own),
        (None, own) => own.is_none(),
    };
    // Parts are drawn by hash, of some hundred shards: one without any of the half that is free is none.
    let is_most_free = 2 * unheld as usize > run.shards.len();
    let is_of_part = run.shards.len() > ledger.hints_of_all_max
        && hint.is_estimate
        && hint.available_count <= free
        && (hint.available_count > 0 || !is_most_free)
        && fits_own;
    demand(is_of_part || fits && earliest == hint.earliest_deadline, S9, || {
        format!(
            "{free} shards of run {} are free, the first held one at {earliest:?}: {hint:?}",
            run.run
        )
    })
}

fn shards<'l>(ledger: &'l Ledger, run: &'l Run) -> impl Iterator<Item = &'l Shard> {
    run.shards.iter().map(|&place| ledger.shard_at(place))
}

fn earliest_deadline_of(ledger: &Ledger, run: &Run) -> Option<LogicalTime> {
    shards(ledger, run).filter_map(|shard| shard.holder.map(|held| held.free_from)).min()
}

pub(super) fn inspect(subject: &mut impl SimulatedBackend) -> OracleResult {
    subject.check_consistent().map_err(|what| Violation { oracle: S9, what })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{OwnedCursor, OwnedShardInput};
    use crate::oracles::testing::*;
    use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, WorkerId};
    use gossip_coordination::Lease;

    fn claimed(now: u64, ledger: &Ledger, refusal: ClaimError) -> OracleResult {
        let (tenant, run, worker) = (tenant(1), RUN, WorkerId::from_raw(2));
        check_empty_claim(ledger, Applicant { now: at(now), tenant, run, worker }, &refusal)
    }

    #[test]
    fn a_claim_that_overlooks_a_free_shard_is_noticed() {
        let ledger = Ledger::example();
        let nothing = || ClaimError::NoneAvailable { earliest_deadline: Some(at(100)) };
        assert_eq!(claimed(99, &ledger, nothing()), Ok(()));
        assert_fires(claimed(100, &ledger, nothing()), "S9");
        let unknown = ClaimError::NoneAvailable { earliest_deadline: None };
        assert_fires(claimed(99, &ledger, unknown), "S9");
        assert_fires(claimed(99, &ledger, ClaimError::RunNotFound), "S9");
        assert_fires(claimed(99, &ledger, ClaimError::Throttled { retry_after: at(99) }), "S9");
    }

    #[test]
    fn a_claim_of_a_held_shard_is_noticed() {
        let ledger = Ledger::example();
        let answer = acquired(lease(1, 3, 150), OwnedCursor::default());
        assert_fires(judged(check_claimed, &ledger, &acquire(1), &answer), "S9");
        let operation = acquire(1);
        let later =
            Observation { now: at(100), operation: &operation, answer: &answer, events: &[] };
        assert_eq!(check_claimed(&ledger, later), Ok(()));
    }

    #[test]
    fn a_free_shard_that_is_refused_as_held_is_noticed() {
        let ledger = Ledger::example();
        let operation = acquire(2);
        let owner = WorkerId::from_raw(1);
        let answer = Answer::Refused(Refusal::AlreadyLeased { owner, deadline: at(100) });
        let seen =
            |now| Observation { now: at(now), operation: &operation, answer: &answer, events: &[] };
        assert_eq!(check(&ledger, seen(99)), Ok(()));
        assert_fires(check(&ledger, seen(100)), "S9");
    }

    #[test]
    fn a_shard_whose_holder_was_silent_is_free_for_others_and_not_for_the_holder() {
        let mut ledger = Ledger::example();
        ledger.note_silence();
        let nothing = ClaimError::NoneAvailable { earliest_deadline: Some(at(100)) };
        assert_fires(claimed(50, &ledger, nothing), "S9");
        let held = |owner, deadline| Answer::Refused(Refusal::AlreadyLeased { owner, deadline });
        let refused = held(WorkerId::from_raw(1), at(100));
        assert_fires(judged(check, &ledger, &acquire(2), &refused), "S9");
        let granted = |worker| acquired(lease(worker, 3, 150), OwnedCursor::default());
        assert_eq!(judged(check_claimed, &ledger, &acquire(2), &granted(2)), Ok(()));
        assert_fires(judged(check_claimed, &ledger, &acquire(1), &granted(1)), "S9");
    }

    #[test]
    fn a_hint_that_promises_too_much_or_too_little_is_noticed() {
        let ledger = Ledger::example();
        let hint = |available_count, is_estimate| CapacityHint {
            available_count,
            earliest_deadline: Some(at(100)),
            is_estimate,
        };
        let judged = |now, hint: CapacityHint| check_hint(&ledger, at(now), tenant(1), KEY, &hint);
        assert_eq!(judged(50, hint(0, false)), Ok(()));
        assert_fires(judged(50, hint(1, false)), "S9");
        assert_fires(judged(50, hint(1, true)), "S9");
        assert_fires(judged(50, hint(0, true)), "S9");
        assert_eq!(judged(100, hint(1, true)), Ok(()));
        assert_fires(judged(100, hint(0, true)), "S9");
        assert_fires(judged(100, hint(2, true)), "S9");
        assert_fires(judged(100, hint(1, false)), "S9");
    }

    #[test]
    fn a_hint_about_a_part_is_for_large_runs_and_promises_no_more_than_there_is() {
        let mut ledger = Ledger::example();
        let hint = |available_count, earliest_deadline| CapacityHint {
            available_count,
            earliest_deadline,
            is_estimate: true,
        };
        let judged =
            |ledger: &Ledger, hint: CapacityHint| check_hint(ledger, at(50), tenant(1), KEY, &hint);
        ledger.hints_of_all_max = 1;
        assert_fires(judged(&ledger, hint(0, Some(at(100)))), "S9");
        ledger.hints_of_all_max = 0;
        assert_eq!(judged(&ledger, hint(0, Some(at(100)))), Ok(()));
        assert_fires(judged(&ledger, hint(1, Some(at(100)))), "S9");
        assert_fires(judged(&ledger, hint(0, Some(at(99)))), "S9");
        assert_fires(judged(&ledger, hint(0, None)), "S9");
    }

    /// Shards 0 and 1 are held until 100 and 150, three others are free.
    #[test]
    fn a_hint_about_a_part_is_about_the_one_with_its_own_shard() {
        let mut ledger = Ledger::example();
        ledger.hints_of_all_max = 4;
        let (tenant, run, config) = (tenant(1), RunId::from_raw(2), ledger.runs()[0].config);
        ledger.saw(&Operation::CreateRun { tenant, run, config }, &Answer::Accepted);
        let row = |number: u32| OwnedShardInput {
            shard: ShardId::from_raw(number.into()),
            range: range(number, number + 1),
            cursor: OwnedCursor::default(),
        };
        let shards = (0..5).map(row).collect();
        ledger.saw(&Operation::RegisterShards { tenant, run, shards, op_id: op(1) }, &done());
        let key = |number| ShardKey::new(run, ShardId::from_raw(number));
        for (number, deadline) in [(0, 100), (1, 150)] {
            let (key, worker) = (key(number), WorkerId::from_raw(number + 1));
            let lease = Lease::new(tenant, key, worker, FenceEpoch::INITIAL.next(), at(deadline));
            let operation = Operation::Acquire { tenant, key, worker };
            ledger.saw(&operation, &acquired(lease, OwnedCursor::default()));
        }
        let judged = |number, available_count, end: Option<u64>| {
            let earliest_deadline = end.map(at);
            let hint = CapacityHint { available_count, earliest_deadline, is_estimate: true };
            check_hint(&ledger, at(50), tenant, key(number), &hint)
        };
        assert_eq!(judged(0, 1, Some(100)), Ok(()));
        assert_fires(judged(0, 1, Some(150)), "S9");
        assert_eq!([judged(1, 1, Some(100)), judged(1, 3, Some(150))], [Ok(()), Ok(())]);
        // Most are free, so that some are in every part; and only who holds nothing may see no lease.
        assert_fires(judged(1, 0, Some(150)), "S9");
        assert_fires(judged(1, 1, None), "S9");
        assert_eq!(judged(2, 1, None), Ok(()));
    }

    #[test]
    fn a_worker_that_comes_back_with_what_is_not_its_own_is_noticed() {
        let mut ledger = Ledger::example();
        let granted = acquired(lease(1, 3, 150), OwnedCursor::default());
        // Also when its lease is over, but not when it is another's.
        let late = |worker, ledger: &Ledger| {
            let operation = acquire(worker);
            let (now, answer) = (at(500), &granted);
            check_own(ledger, Observation { now, operation: &operation, answer, events: &[] })
        };
        assert_eq!(late(1, &ledger), Ok(()));
        assert_fires(late(2, &ledger), "S9");
        let release = Operation::Release { tenant: tenant(1), lease: lease(1, 2, 100) };
        ledger.saw(&release, &Answer::Accepted);
        assert_fires(late(1, &ledger), "S9");
    }

    #[test]
    fn a_worker_that_is_not_told_of_its_own_shard_is_noticed() {
        let ledger = Ledger::example();
        let owner = |worker: u64| Applicant {
            now: at(500),
            tenant: tenant(1),
            run: RUN,
            worker: WorkerId::from_raw(worker),
        };
        assert_fires(check_nothing_owned(&ledger, owner(1)), "S9");
        assert_eq!(check_nothing_owned(&ledger, owner(2)), Ok(()));
    }
}
