//! S10: once faults stop, every run ends, but for those that find no room any more.

use gossip_coordination::ShardStatus;

use super::ledger::{Ledger, Run};
use super::{OracleResult, demand};

const S10: &str = "S10 liveness";

/// Asked when the calm at the end of a seed has lasted as long as it may.
pub(super) fn check(ledger: &Ledger) -> OracleResult {
    let open = ledger.runs().iter().find(|run| must_end(run));
    demand(open.is_none(), S10, || {
        let run = open.expect("this is said of an open run");
        let left: Vec<_> = run
            .shards
            .iter()
            .map(|&place| ledger.shard_at(place))
            .filter(|shard| matches!(shard.status, ShardStatus::Active | ShardStatus::Parked))
            .map(|shard| (shard.key, shard.status, shard.holder))
            .collect();
        format!("run {} is still {:?}; left: {left:?}", run.run, run.status)
    })
}

fn must_end(run: &Run) -> bool {
    !run.status.is_terminal() && !run.ran_out
}

/// Shards with work left, in runs that have not ended and must; and such runs.
pub(super) fn work_left(ledger: &Ledger) -> usize {
    let open = ledger.runs().iter().filter(|run| must_end(run));
    open.map(|run| 1 + (run.progress.active + run.progress.parked) as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Answer, Operation};
    use crate::oracles::testing::*;
    use gossip_contracts::identity::RunId;

    #[test]
    fn a_run_that_does_not_end_is_noticed() {
        let mut ledger = Ledger::example();
        assert_fires(check(&ledger), "S10");
        assert_eq!(work_left(&ledger), 2);
        ledger.saw(&complete(lease(1, 2, 100), 9, 8), &done());
        assert_fires(check(&ledger), "S10");
        let end =
            Operation::CompleteRun { tenant: tenant(1), run: RUN, result: None, op_id: op(9) };
        ledger.saw(&end, &done());
        assert_eq!((check(&ledger), work_left(&ledger)), (Ok(()), 0));
    }

    #[test]
    fn only_the_run_that_had_no_room_is_excused() {
        let mut ledger = Ledger::example();
        let config = ledger.runs()[0].config;
        let other = RunId::from_raw(2);
        let create = Operation::CreateRun { tenant: tenant(1), run: other, config };
        ledger.saw(&create, &Answer::Accepted);
        ledger.note_no_room(&checkpoint(lease(1, 2, 100), 9, 9));
        assert_eq!(work_left(&ledger), 1);
        assert_fires(check(&ledger), "S10");
        ledger.note_no_room(&create);
        assert_eq!((check(&ledger), work_left(&ledger)), (Ok(()), 0));
    }
}
