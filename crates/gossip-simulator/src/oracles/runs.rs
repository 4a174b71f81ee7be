//! S8: work happens in active runs only; counts, listings and ends agree with the shards.

use gossip_contracts::identity::RunId;
use gossip_coordination::{
    RunConfig, RunRecord, RunStatus, ShardFilter, ShardRecordView, ShardSummary,
};

use super::ledger::{Ledger, Run, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Operation, Refusal, RunView};

const S8: &str = "S8 runs";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    match seen.operation.run() {
        Some((tenant, run)) => match ledger.run(tenant, run) {
            Some(run) => check_run(ledger, run, seen),
            None => Ok(()),
        },
        None => {
            let Some((shard, run)) = ledger.subject(seen.operation) else { return Ok(()) };
            check_gate(shard, run, seen)
        }
    }
}

/// What the steps of `create_run_with_shards` were answered, as far as they were asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Begun {
    pub(crate) created: Option<Answer>,
    pub(crate) found: Option<Answer>,
    pub(crate) registered: Option<Answer>,
}

/// A run begins with the shards that were asked for, also when it was created before, but not when
/// it is another run than was meant.
pub(crate) fn check_begun(
    begun: &Begun,
    run: RunId,
    config: RunConfig,
    told: &Answer,
) -> OracleResult {
    let (created, found) = (begun.created.as_ref(), begun.found.as_ref());
    let (expected, may_register) = match (created, found) {
        (Some(Answer::Accepted), None) => (begun.registered.clone(), true),
        (Some(Answer::Refused(Refusal::RunAlreadyExists { .. })), Some(Answer::Run(view))) => {
            match view.config == config {
                true => (begun.registered.clone(), true),
                false => (Some(Answer::Refused(Refusal::ConfigMismatch { run })), false),
            }
        }
        (Some(Answer::Refused(Refusal::RunAlreadyExists { .. })), refused) => {
            (refused.cloned(), false)
        }
        (refused, _) => (refused.cloned(), false),
    };
    let fits = expected.as_ref() == Some(told) && may_register == begun.registered.is_some();
    demand(fits, S8, || format!("run {run} was begun with {begun:?}, and its caller told {told:?}"))
}

/// A shard's operation against its run.
fn check_gate(shard: &Shard, run: &Run, seen: Observation<'_>) -> OracleResult {
    let changed = matches!(
        seen.answer,
        Answer::Executed(_) | Answer::Acquired(_) | Answer::Renewed { .. } | Answer::Accepted
    ) || !seen.events.is_empty();
    demand(!changed || run.status == RunStatus::Active, S8, || {
        format!("{} was worked on in a run that is {:?}", shard.key, run.status)
    })?;
    match *seen.answer {
        Answer::Refused(Refusal::RunNotActive { status, .. } | Refusal::RunTerminal { status }) => {
            demand(status == run.status && status != RunStatus::Active, S8, || {
                format!("run {} is {:?}; a refusal says {status:?}", run.run, run.status)
            })
        }
        _ => Ok(()),
    }
}

fn check_run(ledger: &Ledger, run: &Run, seen: Observation<'_>) -> OracleResult {
    let (name, progress) = (run.run, run.progress);
    match (seen.operation, seen.answer) {
        (Operation::CreateRun { .. }, answer) => {
            demand(!matches!(answer, Answer::Accepted), S8, || format!("run {name} was made twice"))
        }
        (Operation::DeleteRun { .. }, Answer::Accepted) => {
            demand(run.status.is_terminal(), S8, || {
                format!("run {name} was deleted while it was {:?}", run.status)
            })
        }
        (Operation::RegisterShards { .. }, Answer::Executed(_)) => {
            demand(run.status == RunStatus::Initializing, S8, || {
                format!("run {name} got shards while it was {:?}", run.status)
            })
        }
        (Operation::CompleteRun { .. }, Answer::Executed(_)) => {
            demand(progress.active + progress.parked == 0 && progress.total() > 0, S8, || {
                format!("run {name} was completed at {progress:?}")
            })
        }
        (_, &Answer::Refused(Refusal::ShardsRemaining { active, parked })) => {
            demand((active, parked) == (progress.active, progress.parked), S8, || {
                format!("run {name} has {progress:?}; a refusal says {active} and {parked}")
            })
        }
        (_, &Answer::Progress(said)) => demand(said == progress, S8, || {
            format!("run {name} has {progress:?}, and was said to have {said:?}")
        }),
        (_, Answer::Run(said)) => demand(is_like(said, run), S8, || {
            format!("run {name} is {run:?}, and was said to be {said:?}")
        }),
        (Operation::ListShards { filter, .. }, Answer::Shards(listed)) => {
            check_listing(ledger, run, *filter, listed, seen)
        }
        _ => Ok(()),
    }
}

fn is_like(said: &RunView, run: &Run) -> bool {
    let same = |at: usize, entry: &(gossip_contracts::identity::OpId, _, _)| {
        run.recent[at].op_id == entry.0
    };
    (said.config, said.status, said.created_at, said.completed_at, said.result)
        == (run.config, run.status, run.created_at, run.completed_at, run.result)
        && said.root_shards == run.roots
        && said.op_log.len() == run.recent.len()
        && said.op_log.iter().enumerate().all(|(at, entry)| same(at, entry))
}

fn check_listing(
    ledger: &Ledger,
    run: &Run,
    filter: ShardFilter,
    listed: &[ShardSummary],
    seen: Observation<'_>,
) -> OracleResult {
    demand(listed.is_sorted_by_key(|row| row.shard), S8, || "a listing is not in order".into())?;
    let admits = |shard: &Shard| {
        filter.status.is_none_or(|status| shard.status == status)
            && (!filter.available_only
                || run.status == RunStatus::Active && shard.is_available_at(seen.now))
            && (!filter.root_only || shard.parent.is_none())
    };
    let shards = run.shards.iter().map(|&place| ledger.shard_at(place));
    let expected = shards.filter(|shard| admits(shard)).count();
    demand(expected == listed.len(), S8, || {
        format!("{expected} shards of run {} fit {filter:?}; {} are listed", run.run, listed.len())
    })?;
    for row in listed {
        let key = gossip_contracts::identity::ShardKey::new(run.run, row.shard);
        let shard = ledger.shard(run.tenant, key);
        let same = shard.is_some_and(|shard| {
            admits(shard)
                && shard.status == row.status
                && *shard.range.start == *row.start
                && *shard.range.end == *row.end
                && shard.cursor.last_key.as_deref() == row.last_key.as_deref()
                && shard.holder.map(|held| held.deadline) == row.lease_deadline
                && shard.fence == row.fence.as_raw()
                && shard.tries == row.acquires_since_progress
                && shard.parent == row.parent
                && shard.spawned.len() == row.spawned_count
        });
        demand(same, S8, || format!("{row:?} is listed, and {shard:?} was answered"))?;
    }
    Ok(())
}

pub(super) fn inspect(run: &Run, record: &RunRecord) -> OracleResult {
    let stored =
        (record.config, record.status, record.created_at, record.completed_at, record.result);
    let known = (run.config, run.status, run.created_at, run.completed_at, run.result);
    let same_log = record.op_log.op_ids().eq(run.recent.iter().map(|executed| executed.op_id));
    demand(stored == known && record.root_shards == run.roots && same_log, S8, || {
        format!("run {}: {record:?} is stored, {known:?} was answered", run.run)
    })
}

/// What a shard's cursor promises is its run's to say.
pub(super) fn inspect_semantics(run: &Run, record: &ShardRecordView<'_>) -> OracleResult {
    demand(record.cursor_semantics == run.config.cursor_semantics, S8, || {
        format!("{}: a cursor that is {:?} is stored", record.key, record.cursor_semantics)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;
    use gossip_contracts::coordination::CursorSemantics;
    use gossip_coordination::RunProgress;

    #[test]
    fn work_in_an_ended_run_is_noticed() {
        let mut ledger = Ledger::example();
        let fine = checkpoint(lease(1, 2, 100), 4, 9);
        assert_eq!(judged(check, &ledger, &fine, &done()), Ok(()));
        let cancel = Operation::CancelRun { tenant: tenant(1), run: RUN, op_id: op(8) };
        ledger.saw(&cancel, &done());
        assert_fires(judged(check, &ledger, &fine, &done()), "S8");
        let wrong = Refusal::RunNotActive { run: RUN, status: RunStatus::Failed };
        assert_fires(judged(check, &ledger, &fine, &Answer::Refused(wrong)), "S8");
    }

    #[test]
    fn an_end_that_is_a_lie_is_noticed() {
        let mut ledger = Ledger::example();
        let end =
            Operation::CompleteRun { tenant: tenant(1), run: RUN, result: None, op_id: op(9) };
        assert_fires(judged(check, &ledger, &end, &done()), "S8");
        ledger.saw(&complete(lease(1, 2, 100), 9, 8), &done());
        assert_eq!(judged(check, &ledger, &end, &done()), Ok(()));
        let remaining = Answer::Refused(Refusal::ShardsRemaining { active: 1, parked: 0 });
        assert_fires(judged(check, &ledger, &end, &remaining), "S8");
    }

    #[test]
    fn counts_and_listings_that_differ_from_the_shards_are_noticed() {
        let ledger = Ledger::example();
        let (tenant, run) = (tenant(1), RUN);
        let progress = Operation::GetRunProgress { tenant, run };
        let none = Answer::Progress(RunProgress::default());
        assert_fires(judged(check, &ledger, &progress, &none), "S8");
        let list = Operation::ListShards { tenant, run, filter: ShardFilter::all() };
        assert_fires(judged(check, &ledger, &list, &Answer::Shards(Vec::new())), "S8");
        let row = |last_key: &[u8]| ShardSummary {
            shard: KEY.shard,
            status: gossip_coordination::ShardStatus::Active,
            start: crate::keys::key(0)[..].into(),
            end: crate::keys::key(10)[..].into(),
            last_key: Some(last_key.into()),
            token: None,
            lease_deadline: Some(at(100)),
            fence: gossip_contracts::identity::FenceEpoch::from_raw(2),
            acquires_since_progress: 0,
            parent: None,
            spawned_count: 0,
        };
        let listed = |item| Answer::Shards(vec![row(&crate::keys::key(item))]);
        assert_eq!(judged(check, &ledger, &list, &listed(3)), Ok(()));
        assert_fires(judged(check, &ledger, &list, &listed(2)), "S8");
    }

    #[test]
    fn a_second_registration_is_noticed() {
        let ledger = Ledger::example();
        let (tenant, run, op_id) = (tenant(1), RUN, op(9));
        let again = Operation::RegisterShards { tenant, run, shards: Vec::new(), op_id };
        assert_fires(judged(check, &ledger, &again, &done()), "S8");
    }

    #[test]
    fn a_run_that_began_otherwise_than_its_caller_was_told_is_noticed() {
        let config = |lease_duration| RunConfig {
            cursor_semantics: CursorSemantics::Completed,
            lease_duration,
            max_shard_retries: TRIES,
        };
        let view = RunView {
            config: config(50),
            status: RunStatus::Initializing,
            created_at: at(1),
            completed_at: None,
            root_shards: Vec::new(),
            op_log: Vec::new(),
            result: None,
        };
        let exists = || Some(Answer::Refused(Refusal::RunAlreadyExists { run: RUN }));
        let found = || Some(Answer::Run(Box::new(view.clone())));
        let judged = |created, found, registered, asked, told: &Answer| {
            check_begun(&Begun { created, found, registered }, RUN, config(asked), told)
        };
        let mismatch = Answer::Refused(Refusal::ConfigMismatch { run: RUN });
        let accepted = || Some(Answer::Accepted);
        assert_eq!(judged(accepted(), None, Some(done()), 50, &done()), Ok(()));
        assert_eq!(judged(exists(), found(), Some(done()), 50, &done()), Ok(()));
        assert_eq!(judged(exists(), found(), None, 51, &mismatch), Ok(()));
        assert_fires(judged(exists(), found(), Some(done()), 51, &done()), "S8");
        assert_fires(judged(exists(), found(), None, 50, &mismatch), "S8");
        assert_fires(judged(exists(), None, None, 50, &exists().unwrap()), "S8");
        assert_fires(judged(accepted(), None, None, 50, &done()), "S8");
    }
}
