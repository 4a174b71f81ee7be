//! S3: what is done, split or ended stays so; only an unpark leaves "parked".

use gossip_coordination::{ShardRecordView, ShardStatus};

use super::ledger::{Ledger, Shard};
use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Operation, Refusal};

const S3: &str = "S3 terminal";

pub(super) fn check(ledger: &Ledger, seen: Observation<'_>) -> OracleResult {
    let changes = matches!(
        seen.answer,
        Answer::Executed(_) | Answer::Acquired(_) | Answer::Renewed { .. } | Answer::Accepted
    );
    // Neither changes a record: one is a note, the other leaves none.
    if matches!(seen.operation, Operation::NoteIdle { .. } | Operation::DeleteRun { .. }) {
        return Ok(());
    }
    if let Some((tenant, run)) = seen.operation.run() {
        let ended = ledger.run(tenant, run).filter(|run| run.status.is_terminal());
        return demand(!changes || ended.is_none(), S3, || {
            format!("run {run} has ended, and was changed by {:?}", seen.operation)
        });
    }
    let Some((shard, _)) = ledger.subject(seen.operation) else { return Ok(()) };
    let (key, status) = (shard.key, shard.status);
    let revives = matches!(seen.operation, Operation::Unpark { .. });
    let legal = match status {
        ShardStatus::Active => !revives,
        ShardStatus::Parked => revives,
        ShardStatus::Done | ShardStatus::Split => false,
    };
    demand(!changes || legal, S3, || format!("{key} is {status:?}, and {:?}", seen.answer))?;
    if let Answer::Refused(Refusal::ShardTerminal { status: said, .. }) = *seen.answer {
        // An acquire may have parked it just now, which S12 must have been told.
        let parked = matches!(seen.operation, Operation::Acquire { .. })
            && (status, said) == (ShardStatus::Active, ShardStatus::Parked);
        return demand(said == status || parked, S3, || {
            format!("{key} is {status:?}; a refusal says {said:?}")
        });
    }
    Ok(())
}

pub(super) fn inspect(shard: &Shard, record: &ShardRecordView<'_>) -> OracleResult {
    let stored = (record.state.status, record.state.park_reason);
    demand(stored == (shard.status, shard.park_reason), S3, || {
        let known = (shard.status, shard.park_reason);
        format!("{}: {stored:?} is stored, {known:?} was answered", shard.key)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;

    #[test]
    fn work_on_a_done_shard_is_noticed() {
        let mut ledger = Ledger::example();
        assert_eq!(judged(check, &ledger, &complete(lease(1, 2, 100), 9, 8), &done()), Ok(()));
        ledger.saw(&complete(lease(1, 2, 100), 9, 8), &done());
        assert_fires(judged(check, &ledger, &checkpoint(lease(1, 2, 100), 9, 9), &done()), "S3");
        assert_fires(
            judged(check, &ledger, &acquire(1), &acquired(lease(1, 3, 100), cursor(9))),
            "S3",
        );
        let unpark = Operation::Unpark { tenant: tenant(1), key: KEY, op_id: op(9) };
        assert_fires(judged(check, &ledger, &unpark, &done()), "S3");
        let parked = Refusal::ShardTerminal { shard: KEY, status: ShardStatus::Parked };
        assert_fires(judged(check, &ledger, &acquire(1), &Answer::Refused(parked)), "S3");
    }

    #[test]
    fn a_run_that_ends_twice_is_noticed() {
        let mut ledger = Ledger::example();
        let cancel =
            |number| Operation::CancelRun { tenant: tenant(1), run: RUN, op_id: op(number) };
        assert_eq!(judged(check, &ledger, &cancel(8), &done()), Ok(()));
        ledger.saw(&cancel(8), &done());
        assert_fires(judged(check, &ledger, &cancel(9), &done()), "S3");
    }
}
