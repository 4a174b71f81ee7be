//! What happened in a seed: always as a number, on demand as text.

use core::fmt::Write as _;
use core::hash::{Hash, Hasher};

use gossip_contracts::identity::LogicalTime;
use gossip_coordination::{CapacityHint, ClaimError};

use super::answer_kinds::{AnswerKinds, Application, Outcome};
use super::op::Operation;
use super::oracles::Observation;
use super::show;
use super::simulated::Applicant;

/// A fingerprint of every request and every answer in full, and their text if wanted.
#[derive(Debug)]
pub(super) struct Trace {
    fingerprint: Fingerprint,
    seen: AnswerKinds,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(super) fn new(with_text: bool) -> Self {
        let (fingerprint, seen) = (Fingerprint::EMPTY, AnswerKinds::default());
        Self { fingerprint, seen, lines: with_text.then(Vec::new) }
    }

    pub(super) fn hash(&self) -> u64 {
        self.fingerprint.finish()
    }

    pub(super) fn seen(&self) -> AnswerKinds {
        self.seen
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("         {}", what()));
        }
    }

    pub(super) fn begin(&mut self, number: u64, now: LogicalTime, operation: &Operation) {
        (now, operation).hash(&mut self.fingerprint);
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{number:>6} {now} {}", show::operation(operation)));
        }
    }

    pub(super) fn begin_claim(&mut self, number: u64, by: Applicant, what: &str) {
        (by, what).hash(&mut self.fingerprint);
        let Applicant { now, tenant, run, worker } = by;
        if let Some(lines) = &mut self.lines {
            let tenant = show::tenant(tenant);
            lines.push(format!("{number:>6} {now} w{} {what} {tenant}/{run}", worker.as_raw()));
        }
    }

    pub(super) fn end(&mut self, seen: Observation<'_>) {
        self.seen.note(seen.operation, seen.answer);
        self.end_part(seen);
    }

    /// One of the acquires that a claim is made of.
    pub(super) fn end_part(&mut self, Observation { answer, events, .. }: Observation<'_>) {
        (answer, events).hash(&mut self.fingerprint);
        self.append(|line| write!(line, " -> {}", show::answer(answer)));
    }

    /// What came with an answer.
    pub(super) fn add_hint(&mut self, hint: &CapacityHint) {
        hint.hash(&mut self.fingerprint);
    }

    /// What the backend chose, or why it chose nothing.
    pub(super) fn note_application(
        &mut self,
        application: Application,
        answer: Result<Outcome, &ClaimError>,
    ) {
        self.seen.note_application(application, answer);
    }

    pub(super) fn end_claim(&mut self, refusal: &ClaimError) {
        refusal.hash(&mut self.fingerprint);
        self.append(|line| write!(line, " -> {refusal}"));
    }

    fn append(&mut self, what: impl FnOnce(&mut String) -> core::fmt::Result) {
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.last_mut()) {
            what(line).expect("text can be written into a string");
        }
    }
}

/// A hash that is the same in every process: the library's own are not meant to be.
#[derive(Clone, Copy, Debug)]
struct Fingerprint(u64);

impl Fingerprint {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn mix(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(rest.len() as u64, |last, &byte| last << 8 | u64::from(byte));
        self.mix(last);
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Acquired, Answer, Effect, OwnedCursor, OwnedRange, Refusal};
    use gossip_contracts::coordination::CursorSemantics;
    use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, ShardKey, TenantId, WorkerId};
    use gossip_coordination::Lease;
    use gossip_coordination::RunProgress;
    use gossip_coordination::ShardStatus;
    use gossip_coordination::{EventKind, StateTransitionEvent};

    const TENANT: TenantId = TenantId::from_bytes([1; 32]);
    const RUN: RunId = RunId::from_raw(1);

    fn hash_of(answer: &Answer, events: &[StateTransitionEvent]) -> u64 {
        let (now, key) = (LogicalTime::from_raw(5), ShardKey::new(RUN, ShardId::from_raw(0)));
        let worker = WorkerId::from_raw(1);
        let operation = &Operation::Acquire { tenant: TENANT, key, worker };
        let mut trace = Trace::new(false);
        trace.begin(1, now, operation);
        trace.end(Observation { now, operation, answer, events });
        trace.hash()
    }

    fn acquired() -> Acquired {
        let (key, owner) = (ShardKey::new(RUN, ShardId::from_raw(0)), WorkerId::from_raw(1));
        let deadline = LogicalTime::from_raw(9);
        let bytes = |text: &[u8]| text.into();
        Acquired {
            lease: Lease::new(TENANT, key, owner, FenceEpoch::INITIAL, deadline),
            status: ShardStatus::Active,
            range: OwnedRange { start: bytes(b"a"), end: bytes(b"m"), metadata: bytes(b"") },
            cursor: OwnedCursor { last_key: Some(bytes(b"b")), token: None },
            cursor_semantics: CursorSemantics::Completed,
            parent: None,
            spawned: Vec::new(),
        }
    }

    #[test]
    fn answers_of_one_kind_that_differ_in_anything_have_another_hash() {
        let of_acquired = |change: fn(&mut Acquired)| {
            let mut other = acquired();
            change(&mut other);
            hash_of(&Answer::Acquired(Box::new(other)), &[])
        };
        let event = |at| StateTransitionEvent {
            tenant: TENANT,
            run: RUN,
            at: LogicalTime::from_raw(at),
            kind: EventKind::RunCreated,
        };
        let counts = |split| Answer::Progress(RunProgress { split, ..RunProgress::default() });
        let hashes = [
            of_acquired(|_| {}),
            of_acquired(|it| it.cursor.last_key = None),
            of_acquired(|it| it.cursor.token = Some(b"b"[..].into())),
            of_acquired(|it| it.range.end = b"n"[..].into()),
            of_acquired(|it| it.range.metadata = b"m"[..].into()),
            of_acquired(|it| it.lease.set_deadline(LogicalTime::from_raw(10))),
            of_acquired(|it| it.parent = Some(ShardId::from_raw(0))),
            of_acquired(|it| it.spawned.push(ShardId::from_raw(0))),
            hash_of(&Answer::Executed(Effect::Nothing), &[]),
            hash_of(&Answer::Executed(Effect::Residual(ShardId::from_raw(1))), &[]),
            hash_of(&Answer::Executed(Effect::Nothing), &[event(5)]),
            hash_of(&Answer::Executed(Effect::Nothing), &[event(6)]),
            hash_of(&Answer::Refused(Refusal::ShardNotFound), &[]),
            hash_of(&Answer::Refused(Refusal::RunNotFound), &[]),
            hash_of(&counts(0), &[]),
            hash_of(&counts(1), &[]),
        ];
        for (at, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..at].contains(hash), "number {at} is like one before it");
        }
        assert_eq!(hashes[0], of_acquired(|_| {}));
    }
}
