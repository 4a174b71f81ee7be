//! Which answers a seed has seen to which operations: a simulator that never provokes a refusal says
//! nothing about it.

use core::fmt;

use gossip_contracts::coordination::{ManifestValidationError, SplitValidationError};
use gossip_coordination::ClaimError;

use super::op::{Answer, Operation, Refusal};

macro_rules! kinds {
    ($names:ident, $of:ident($type:ident), $prefix:literal, $($variant:ident)* $(; $other:pat)?) => {
        const $names: &[&str] = &[$(concat!($prefix, stringify!($variant))),*];

        /// The variant's place among those above.
        fn $of(value: &$type) -> usize {
            enum Place { $($variant),* }
            match value {
                $($type::$variant { .. } => Place::$variant as usize,)*
                $($other => panic!("{value:?} has no place in the list"),)?
            }
        }
    };
}

kinds!(OPERATION_NAMES, kind_of(Operation), "",
    CreateRun RegisterShards GetRun GetRunProgress ListShards CompleteRun FailRun CancelRun DeleteRun RevokeLease NoteIdle
    Unpark Acquire Renew Release Checkpoint Complete Park SplitReplace SplitResidual);
kinds!(ANSWER_NAMES, kind_of_answer(Answer), "",
    Accepted Executed Replayed Acquired Renewed Run Progress Shards Refused);
kinds!(REFUSAL_NAMES, kind_of_refusal(Refusal), "",
    ShardNotFound RunNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
    AlreadyLeased OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
    CursorTokenTooLarge CheckpointMissingKey SplitInvalid ManifestInvalid ShardLimitExceeded
    InvalidConfig RunAlreadyExists ConfigMismatch RunTerminal WrongStatus ShardsRemaining NotParked
    FenceNotGranted RunNotEnded
    ResourceExhausted Backend);
kinds!(SPLIT_NAMES, kind_of_split(SplitValidationError), "Split",
    TooFewChildren TooManyChildren PartsTooLarge EmptyPoint ChildInvalid StartMismatch Gap Overlap EndMismatch
    CursorNotKept SpawnLimitExceeded ShardLimitExceeded DerivedIdCollision; _);
kinds!(MANIFEST_NAMES, kind_of_manifest(ManifestValidationError), "Manifest",
    Empty TooManyShards DerivedShardId SpecInvalid UnboundedRange CursorInvalid CursorOutOfBounds
    DuplicateShardId OverlappingRanges; _);
kinds!(APPLICATION_NAMES, kind_of_application(Application), "", Claim Reacquire);
kinds!(OUTCOME_NAMES, kind_of_outcome(Outcome), "", Granted Nothing Poisoned);
kinds!(CLAIM_REFUSAL_NAMES, kind_of_claim_refusal(ClaimError), "",
    NoneAvailable RunNotFound TenantMismatch RunNotActive Throttled BackendError; _);

/// A request in which the backend chooses the shard.
#[derive(Clone, Copy, Debug)]
pub(super) enum Application {
    Claim,
    Reacquire,
}

/// What it came to, if it was not refused.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Granted,
    /// The worker holds nothing.
    Nothing,
    /// A shard was parked on the way.
    Poisoned,
}

/// Names of all that is asked.
const ASKED: [&[&str]; 2] = [OPERATION_NAMES, APPLICATION_NAMES];
const ASKED_COUNT: usize = OPERATION_NAMES.len() + APPLICATION_NAMES.len();

/// Names of all that is answered. A refusal for a plan or a manifest is told apart by its fault.
const ANSWERED: [&[&str]; 6] =
    [ANSWER_NAMES, REFUSAL_NAMES, SPLIT_NAMES, MANIFEST_NAMES, OUTCOME_NAMES, CLAIM_REFUSAL_NAMES];

/// Where the names of a group begin among all that is answered.
const fn first_of(group: usize) -> usize {
    let (mut first, mut at) = (0, 0);
    while at < group {
        first += ANSWERED[at].len();
        at += 1;
    }
    first
}

const _: () = assert!(first_of(ANSWERED.len()) <= u128::BITS as usize);

/// Pairs of operation and answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct AnswerKinds {
    answers: [u128; ASKED_COUNT],
}

impl AnswerKinds {
    pub(super) fn note(&mut self, operation: &Operation, answer: &Answer) {
        let place = match answer {
            Answer::Refused(Refusal::SplitInvalid(fault)) => first_of(2) + kind_of_split(fault),
            Answer::Refused(Refusal::ManifestInvalid(fault)) => {
                first_of(3) + kind_of_manifest(fault)
            }
            Answer::Refused(refusal) => first_of(1) + kind_of_refusal(refusal),
            answer => kind_of_answer(answer),
        };
        self.answers[kind_of(operation)] |= 1 << place;
    }

    pub(super) fn note_application(
        &mut self,
        application: Application,
        answer: Result<Outcome, &ClaimError>,
    ) {
        let place = match answer {
            Ok(outcome) => first_of(4) + kind_of_outcome(&outcome),
            Err(refusal) => first_of(5) + kind_of_claim_refusal(refusal),
        };
        self.answers[OPERATION_NAMES.len() + kind_of_application(&application)] |= 1 << place;
    }

    /// Takes in what another seed has seen.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.answers.iter_mut().zip(other.answers) {
            *mine |= theirs;
        }
    }

    /// How many pairs of operation and answer were met.
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
        let names = || ANSWERED.into_iter().flatten().copied().enumerate();
        let asked = ASKED.into_iter().flatten();
        asked.zip(self.answers).flat_map(move |(&operation, answers)| {
            let seen = names().filter(move |(place, _)| answers & 1 << place != 0);
            seen.map(move |(_, answer)| (operation, answer))
        })
    }
}

impl fmt::Display for AnswerKinds {
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
        let mut seen = AnswerKinds::default();
        assert_eq!(seen.lost("GetRun: RunNotFound"), ["GetRun: RunNotFound"]);
        seen.note(&get, &Answer::Refused(Refusal::RunNotFound));
        assert_eq!(seen.lost(&seen.to_string()), [""; 0]);
        let more = "GetRun: Run RunNotFound\nRenew: StaleFence\n";
        assert_eq!(seen.lost(more), ["GetRun: Run", "Renew: StaleFence"]);
    }

    #[test]
    fn claims_and_the_faults_of_plans_are_told_apart() {
        let mut seen = AnswerKinds::default();
        seen.note_application(Application::Claim, Ok(Outcome::Granted));
        let retry_after = gossip_contracts::identity::LogicalTime::from_raw(1);
        let refusal = ClaimError::Throttled { retry_after };
        seen.note_application(Application::Reacquire, Err(&refusal));
        let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
        let op_id = gossip_contracts::identity::OpId::from_raw(1);
        let register = Operation::RegisterShards { tenant, run, shards: Vec::new(), op_id };
        let empty = Refusal::ManifestInvalid(ManifestValidationError::Empty);
        seen.note(&register, &Answer::Refused(empty));
        let shown = "RegisterShards: ManifestEmpty\nClaim: Granted\nReacquire: Throttled";
        assert_eq!(seen.to_string(), shown);
        assert_eq!(seen.lost("Claim: Granted Poisoned"), ["Claim: Poisoned"]);
    }
}
