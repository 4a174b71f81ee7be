//! Which answers a seed has seen to which operations: a simulator that never provokes a refusal says
//! nothing about it.

use core::fmt;

use super::op::{Answer, Operation, Refusal};

macro_rules! kinds {
    ($names:ident, $of:ident($type:ident), $($variant:ident)*) => {
        const $names: &[&str] = &[$(stringify!($variant)),*];

        /// The variant's place among those above.
        fn $of(value: &$type) -> usize {
            enum Place { $($variant),* }
            match value {
                $($type::$variant { .. } => Place::$variant as usize,)*
            }
        }
    };
}

kinds!(OPERATION_NAMES, kind_of(Operation),
    CreateRun RegisterShards GetRun GetRunProgress ListShards CompleteRun FailRun CancelRun Unpark
    Acquire Renew Release Checkpoint Complete Park SplitReplace SplitResidual);
kinds!(ANSWER_NAMES, kind_of_answer(Answer),
    Accepted Executed Replayed Acquired Renewed Run Progress Shards Refused);
kinds!(REFUSAL_NAMES, kind_of_refusal(Refusal),
    ShardNotFound RunNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
    AlreadyLeased OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
    CursorTokenTooLarge CheckpointMissingKey SplitInvalid ManifestInvalid ShardLimitExceeded
    InvalidConfig RunAlreadyExists ConfigMismatch RunTerminal WrongStatus ShardsRemaining NotParked
    ResourceExhausted Backend);

const _: () = assert!(ANSWER_NAMES.len() + REFUSAL_NAMES.len() <= 64);

/// Pairs of operation and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Seen {
    answers: [u64; OPERATION_NAMES.len()],
}

impl Seen {
    pub(super) fn note(&mut self, operation: &Operation, answer: &Answer) {
        let place = match answer {
            Answer::Refused(refusal) => ANSWER_NAMES.len() + kind_of_refusal(refusal),
            answer => kind_of_answer(answer),
        };
        self.answers[kind_of(operation)] |= 1 << place;
    }

    /// Takes in what another seed has seen.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.answers.iter_mut().zip(other.answers) {
            *mine |= theirs;
        }
    }

    /// How many pairs.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.answers.iter().map(|answers| answers.count_ones()).sum()
    }

    /// Pairs of `expected`, which is written like the seen ones are shown, that were not seen.
    #[must_use]
    pub fn lost(&self, expected: &str) -> Vec<String> {
        let expected = expected.lines().filter_map(|line| line.split_once(": ")).flat_map(
            |(operation, answers)| answers.split(' ').map(move |answer| (operation, answer)),
        );
        let lost = expected.filter(|pair| !self.pairs().any(|seen| seen == *pair));
        lost.map(|(operation, answer)| format!("{operation}: {answer}")).collect()
    }

    /// The names of all pairs, as `Operation: Answer`.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let names = || ANSWER_NAMES.iter().chain(REFUSAL_NAMES).copied().enumerate();
        OPERATION_NAMES.iter().zip(self.answers).flat_map(move |(&operation, answers)| {
            let seen = names().filter(move |(place, _)| answers & 1 << place != 0);
            seen.map(move |(_, answer)| (operation, answer))
        })
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for (operation, answer) in self.pairs() {
            if operation != last {
                write!(f, "{}{operation}:", if last.is_empty() { "" } else { "\n" })?;
                last = operation;
            }
            write!(f, " {answer}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gossip_contracts::identity::{RunId, TenantId};

    #[test]
    fn a_lost_kind_names_itself() {
        let get =
            Operation::GetRun { tenant: TenantId::from_bytes([1; 32]), run: RunId::from_raw(1) };
        let mut seen = Seen::default();
        assert_eq!(seen.lost("GetRun: RunNotFound"), ["GetRun: RunNotFound"]);
        seen.note(&get, &Answer::Refused(Refusal::RunNotFound));
        assert_eq!(seen.lost(&seen.to_string()), [""; 0]);
        let more = "GetRun: Run RunNotFound\nRenew: StaleFence\n";
        assert_eq!(seen.lost(more), ["GetRun: Run", "Renew: StaleFence"]);
    }
}
