//! Which runs may be deleted: those whose results a later one has taken over (D6).

use std::collections::HashMap;
use std::time::Duration;

use gossip_contracts::identity::PolicyHash;
use gossip_coordination::RunStatus;

use crate::report::RunSummary;

/// Which of the runs that may be deleted (D6) are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Only runs that ended at least so long ago.
    pub older_than: Option<Duration>,
    /// Keeps so many of the newest runs that have ended, of each target and policy.
    pub keep: usize,
}

impl Pruning {
    /// Those of `runs`, which are all that there are, oldest first.
    pub(crate) fn select(&self, mut runs: Vec<RunSummary>, now_ms: u64) -> Vec<RunSummary> {
        let mut seen = HashMap::<(Vec<u8>, PolicyHash), Seen>::new();
        let age = self.older_than.unwrap_or_default().as_millis();
        let is_meant = |run: &RunSummary| {
            let Some(ended_ms) = run.ended_ms else { return false };
            let later = seen.entry((run.target.clone(), run.policy)).or_default();
            let is_meant = later.has_finished
                && later.ended >= self.keep
                && u128::from(now_ms.saturating_sub(ended_ms)) >= age;
            later.ended += 1;
            later.has_finished |= run.status == RunStatus::Done;
            is_meant
        };
        runs.reverse();
        runs.retain(is_meant);
        runs.reverse();
        runs
    }
}

/// The later runs of a target and policy.
#[derive(Default)]
struct Seen {
    ended: usize,
    has_finished: bool,
}

#[cfg(test)]
mod tests {
    use gossip_contracts::identity::RunId;
    use gossip_coordination::RunProgress;

    use super::*;

    const NOW_MS: u64 = 1_000_000;

    /// A run of the target `target` that ended at `ended_ms`.
    fn run(number: u64, target: &str, status: RunStatus, ended_ms: Option<u64>) -> RunSummary {
        RunSummary {
            run: RunId::from_raw(number),
            target: target.into(),
            policy: PolicyHash::from_bytes([1; 32]),
            status,
            started_ms: 1,
            ended_ms,
            progress: RunProgress::default(),
            items: 0,
            bytes: 0,
            skipped: vec![],
            failed: vec![],
            findings: 0,
        }
    }

    #[track_caller]
    fn assert_selects(pruning: Pruning, runs: &[RunSummary], expected: &[u64]) {
        let selected = pruning.select(runs.to_vec(), NOW_MS);
        let selected: Vec<u64> = selected.iter().map(|run| run.run.as_raw()).collect();
        assert_eq!(selected, expected);
    }

    #[test]
    fn what_a_later_run_has_finished_may_go_and_the_newest_finished_stays() {
        use RunStatus::{Active, Cancelled, Done};
        let all = Pruning::default();
        let of_a = |number, status| run(number, "a", status, Some(10));
        let (one, two, three) = (of_a(1, Done), of_a(2, Cancelled), of_a(3, Done));
        assert_selects(all, &[], &[]);
        assert_selects(all, std::slice::from_ref(&one), &[]);
        // Nothing has taken over what run 1 found: run 2 was called off, and run 4 goes on.
        assert_selects(all, &[one.clone(), two.clone()], &[]);
        let open = run(4, "a", Active, None);
        assert_selects(all, &[one.clone(), two.clone(), open.clone()], &[]);
        assert_selects(all, &[one.clone(), two.clone(), three.clone(), open.clone()], &[1, 2]);
        // An open run is never deleted, whatever came later.
        let old_open = run(1, "a", Active, None);
        assert_selects(all, &[old_open, two.clone(), three.clone()], &[2]);
        // Done in coordination, and its process died before it wrote the end down.
        assert_selects(all, &[one, run(2, "a", Done, None)], &[]);
        assert_selects(all, &[two, three, open], &[2]);
    }

    #[test]
    fn runs_of_other_targets_and_policies_take_nothing_over() {
        let (mut other_policy, done) = (run(2, "a", RunStatus::Done, Some(10)), RunStatus::Done);
        other_policy.policy = PolicyHash::from_bytes([2; 32]);
        let runs = [run(1, "a", done, Some(10)), other_policy, run(3, "b", done, Some(10))];
        assert_selects(Pruning::default(), &runs, &[]);
    }

    #[test]
    fn the_newest_and_the_young_are_kept_when_asked() {
        let runs: Vec<_> =
            (1..=5).map(|n| run(n, "a", RunStatus::Done, Some(n * 100_000))).collect();
        let keep = |keep| Pruning { keep, ..Pruning::default() };
        assert_selects(keep(0), &runs, &[1, 2, 3, 4]);
        assert_selects(keep(1), &runs, &[1, 2, 3, 4]);
        assert_selects(keep(3), &runs, &[1, 2]);
        assert_selects(keep(9), &runs, &[]);
        let older = |ms| Pruning { older_than: Some(Duration::from_millis(ms)), keep: 0 };
        assert_selects(older(0), &runs, &[1, 2, 3, 4]);
        assert_selects(older(800_000), &runs, &[1, 2]);
        assert_selects(older(800_001), &runs, &[1]);
        assert_selects(older(u64::MAX), &runs, &[]);
    }
}
