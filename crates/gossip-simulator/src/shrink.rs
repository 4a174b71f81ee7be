//! From a seed that fails to the shortest story that still fails.

use super::oracles::Violation;
use super::simulated::SimulatedBackend;
use super::swarm::Ingredient;
use super::world::{Options, Report, run_seed};

/// The shortest failing prefix that was found, and what it takes to run it again.
#[derive(Clone, Debug)]
pub struct Shrunk {
    /// How to run it.
    pub options: Options,
    /// What it came to, with its text.
    pub report: Report,
}

/// Looks at all records after every operation, then leaves out one ingredient after the other, as
/// long as the same oracle still speaks, or the same panic, no later than before.
#[must_use]
pub fn shrink<S: SimulatedBackend>(seed: u64, options: &Options) -> Shrunk {
    let mut best = options.clone();
    let mut shortest = run_seed::<S>(seed, &best);
    let Some(kind) = shortest.violation.as_ref().map(Violation::kind) else {
        best.with_text = true;
        return Shrunk { report: run_seed::<S>(seed, &best), options: best };
    };
    let mut try_with = |candidate: Options| {
        let candidate =
            Options { operations_max: Some(shortest.operations), with_text: false, ..candidate };
        let report = run_seed::<S>(seed, &candidate);
        let same = report.violation.as_ref().is_some_and(|violation| violation.kind() == kind);
        if same {
            shortest = report;
            best = Options { operations_max: options.operations_max, ..candidate };
        }
        (same, best.clone())
    };
    let (_, mut current) = try_with(Options { inspect_always: true, ..options.clone() });
    // What is left out early may be needed for what is left out late, so go round until nothing
    // more goes.
    for _ in 0..3 {
        let mut any = false;
        for ingredient in Ingredient::ALL {
            if current.without.contains(&ingredient) {
                continue;
            }
            let mut candidate = current.clone();
            candidate.without.push(ingredient);
            let (shorter, kept) = try_with(candidate);
            any |= shorter;
            current = kept;
        }
        if !any {
            break;
        }
    }
    current.with_text = true;
    Shrunk { report: run_seed::<S>(seed, &current), options: current }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulated::Memory;
    use crate::testing::Faulty;

    #[test]
    fn a_failure_is_told_shorter_and_with_less() {
        let found = run_seed::<Faulty>(3, &Options::default());
        let shrunk = shrink::<Faulty>(3, &Options::default());
        let oracle = |report: &Report| report.violation.as_ref().map(|found| found.oracle);
        assert_eq!(oracle(&shrunk.report), oracle(&found));
        assert!(shrunk.report.operations < found.operations);
        assert!(!shrunk.options.without.is_empty() && shrunk.options.inspect_always);
        assert!(!shrunk.report.lines.is_empty());
        // What is printed is enough to see it again.
        let again = run_seed::<Faulty>(3, &shrunk.options);
        assert_eq!((again.operations, again.hash), (shrunk.report.operations, shrunk.report.hash));
    }

    #[test]
    fn a_seed_that_passes_stays_as_it_is() {
        let shrunk = shrink::<Memory>(3, &Options::default());
        assert!(shrunk.report.violation.is_none() && shrunk.options.without.is_empty());
    }
}
