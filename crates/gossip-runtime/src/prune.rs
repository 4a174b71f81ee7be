//! Which runs may be deleted: those whose results a later one has taken over (D6), and if so asked those
//! of policies that their target is no longer scanned under (D8).

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use gossip_contracts::identity::{PolicyHash, RunId};
use gossip_coordination::RunStatus;

use crate::report::RunSummary;

/// Which of the runs that may be deleted (D6) are to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pruning {
    /// Only runs that ended at least so long ago.
    pub older_than: Option<Duration>,
    /// Keeps so many of the newest runs that have ended, of each target and policy.
    pub keep: usize,
    /// Also all runs of policies under which nothing has begun since the target's newest finished run,
    /// which had another, and what is remembered of items under those policies.
    pub other_policies: bool,
}

impl Pruning {
    /// Those of `runs`, which are all that there are, oldest first.
    pub(crate) fn select(&self, mut runs: Vec<RunSummary>, now_ms: u64) -> Vec<RunSummary> {
        let mut seen = HashMap::<(Vec<u8>, PolicyHash), LaterRuns>::new();
        let age = self.older_than.unwrap_or_default().as_millis();
        let left = if self.other_policies { left_policies(&runs) } else { HashSet::new() };
        let is_meant = |run: &RunSummary| {
            let Some(ended_ms) = run.ended_ms else { return false };
            let scope = (run.target.clone(), run.policy);
            let is_left = left.contains(&scope);
            let later = seen.entry(scope).or_default();
            let is_superseded = later.has_finished && later.ended >= self.keep;
            let is_meant =
                (is_superseded || is_left) && u128::from(now_ms.saturating_sub(ended_ms)) >= age;
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

/// Targets with policies that they are no longer scanned under: all runs have ended, and a run under
/// another policy began after all of them and has finished.
fn left_policies(runs: &[RunSummary]) -> HashSet<(Vec<u8>, PolicyHash)> {
    let finished =
        runs.iter().filter(|run| run.status == RunStatus::Done && run.ended_ms.is_some());
    // Oldest first, so that the newest stays.
    let newest: HashMap<&[u8], RunId> = finished.map(|run| (&run.target[..], run.run)).collect();
    let is_old = |run: &RunSummary| {
        run.ended_ms.is_some()
            && newest.get(&run.target[..]).is_some_and(|newest| run.run < *newest)
    };
    let scope = |run: &RunSummary| (run.target.clone(), run.policy);
    let in_use: HashSet<_> = runs.iter().filter(|run| !is_old(run)).map(scope).collect();
    runs.iter().map(scope).filter(|scope| !in_use.contains(scope)).collect()
}

/// The later runs of a target and policy.
#[derive(Default)]
struct LaterRuns {
    ended: usize,
    has_finished: bool,
}

#[cfg(test)]
mod tests {
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
            is_of_another_version: false,
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
    fn runs_of_a_policy_that_is_no_longer_used_go_when_asked() {
        use RunStatus::{Active, Cancelled, Done};
        let with = |policy, run: RunSummary| RunSummary {
            policy: PolicyHash::from_bytes([policy; 32]),
            ..run
        };
        let all = Pruning { keep: 9, other_policies: true, ..Pruning::default() };
        let old = with(1, run(1, "a", Done, Some(10)));
        let new = with(2, run(3, "a", Done, Some(30)));
        let other = with(1, run(2, "b", Done, Some(20)));
        assert_selects(all, &[old.clone(), other.clone(), new.clone()], &[1]);
        // Nothing has finished under the new one.
        for (status, ended_ms) in [(Cancelled, Some(30)), (Active, None), (Done, None)] {
            assert_selects(all, &[old.clone(), with(2, run(3, "a", status, ended_ms))], &[]);
        }
        // The old one is in use.
        let open = with(1, run(4, "a", Active, None));
        assert_selects(all, &[old.clone(), new.clone(), open], &[]);
        // Back to the old one: then the new one is left.
        let again = with(1, run(4, "a", Done, Some(40)));
        assert_selects(all, &[old.clone(), new.clone(), again], &[3]);
        let young = Pruning { older_than: Some(Duration::from_secs(1_000)), ..all };
        assert_selects(young, &[old, new], &[]);
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
        let older_than = |ms| Some(Duration::from_millis(ms));
        let older = |ms| Pruning { older_than: older_than(ms), ..Pruning::default() };
        assert_selects(older(0), &runs, &[1, 2, 3, 4]);
        assert_selects(older(800_000), &runs, &[1, 2]);
        assert_selects(older(800_001), &runs, &[1]);
        assert_selects(older(u64::MAX), &runs, &[]);
    }
}
