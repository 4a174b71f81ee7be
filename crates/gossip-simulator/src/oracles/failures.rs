//! S15: the backend fails only when its store was made to fail, and then says that trying again may
//! help: what was stored before is whole.

use gossip_coordination::StateTransitionEvent;

use super::{Observation, OracleResult, demand};
use crate::op::{Answer, Refusal};

const S15: &str = "S15 failures";

/// An answer of a backend whose store works.
pub(super) fn check(seen: Observation<'_>) -> OracleResult {
    let failed = matches!(seen.answer, Answer::Refused(Refusal::Backend { .. }));
    demand(!failed, S15, || {
        format!(
            "{:?} was answered {:?}, and nothing made the store fail",
            seen.operation, seen.answer
        )
    })
}

/// A failure of a backend whose store was made to fail for a moment. `told`: events of a change that
/// was not stored.
pub(super) fn check_provoked(
    retryable: bool,
    told: &[StateTransitionEvent],
    what: impl FnOnce() -> String,
) -> OracleResult {
    demand(retryable && told.is_empty(), S15, || {
        format!("{}: failed, to be tried again: {retryable}; told {told:?}", what())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracles::testing::*;
    use gossip_coordination::EventKind;

    #[test]
    fn a_failure_that_nothing_provoked_is_noticed() {
        let operation = checkpoint(lease(1, 2, 100), 4, 9);
        for retryable in [true, false] {
            let answer = Answer::Refused(Refusal::Backend { retryable });
            let seen =
                Observation { now: at(50), operation: &operation, answer: &answer, events: &[] };
            assert_fires(check(seen), "S15");
        }
        let seen = Observation { now: at(50), operation: &operation, answer: &done(), events: &[] };
        assert_eq!(check(seen), Ok(()));
    }

    #[test]
    fn a_failure_that_calls_a_busy_store_damaged_or_tells_of_a_change_is_noticed() {
        let answered = |retryable| check_provoked(retryable, &[], String::new);
        assert_eq!(answered(true), Ok(()));
        assert_fires(answered(false), "S15");
        let told = [event(EventKind::RunCreated)];
        assert_fires(check_provoked(true, &told, String::new), "S15");
    }
}
