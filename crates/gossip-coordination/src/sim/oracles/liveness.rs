//! S10: once faults stop, every run ends.

use super::ledger::Ledger;
use super::{Verdict, demand};
use crate::status::ShardStatus;

const S10: &str = "S10 liveness";

/// Asked when the calm at the end of a seed has lasted as long as it may.
pub(super) fn check(ledger: &Ledger) -> Verdict {
    let open = ledger.runs().iter().find(|run| !run.status.is_terminal());
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

/// Shards with work left, in runs that have not ended; and such runs.
pub(super) fn work_left(ledger: &Ledger) -> usize {
    let open = ledger.runs().iter().filter(|run| !run.status.is_terminal());
    open.map(|run| 1 + (run.progress.active + run.progress.parked) as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::op::Operation;
    use crate::sim::oracles::testing::*;

    #[test]
    fn a_run_that_does_not_end_is_noticed() {
        let mut ledger = Ledger::example();
        assert_fires(check(&ledger), "S10");
        assert_eq!(work_left(&ledger), 2);
        ledger.saw(&complete(lease(1, 2, 100), 9, 8), &done());
        assert_fires(check(&ledger), "S10");
        let end = Operation::CompleteRun { tenant: tenant(1), run: RUN, op_id: op(9) };
        ledger.saw(&end, &done());
        assert_eq!((check(&ledger), work_left(&ledger)), (Ok(()), 0));
    }
}
