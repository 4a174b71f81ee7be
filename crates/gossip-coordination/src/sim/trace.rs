//! What happened in a seed: always as a number, on demand as text.

use core::fmt::Write as _;

use gossip_contracts::identity::LogicalTime;

use super::op::Operation;
use super::oracles::Observation;
use super::seen::Seen;
use super::show;
use super::subject::Applicant;
use crate::error::ClaimError;

/// A fingerprint of all that happened, and its text if wanted.
#[derive(Debug)]
pub(super) struct Trace {
    hash: u64,
    seen: Seen,
    lines: Option<Vec<String>>,
}

impl Trace {
    pub(super) fn new(with_text: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, seen: Seen::default(), lines: with_text.then(Vec::new) }
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn seen(&self) -> Seen {
        self.seen
    }

    pub(super) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }

    fn mix(&mut self, value: u64) {
        self.hash = (self.hash ^ value).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    }

    pub(super) fn note(&mut self, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("         {}", what()));
        }
    }

    pub(super) fn begin(&mut self, number: u64, now: LogicalTime, operation: &Operation) {
        self.mix(now.as_raw());
        self.mix(show::digest(operation));
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{number:>6} {now} {}", show::operation(operation)));
        }
    }

    pub(super) fn begin_claim(
        &mut self,
        number: u64,
        Applicant { now, tenant, run, worker }: Applicant,
        what: &str,
    ) {
        self.mix(now.as_raw() ^ run.as_raw() ^ worker.as_raw() << 32);
        if let Some(lines) = &mut self.lines {
            let tenant = show::tenant(tenant);
            lines.push(format!("{number:>6} {now} w{} {what} {tenant}/{run}", worker.as_raw()));
        }
    }

    pub(super) fn end(&mut self, Observation { operation, answer, events, .. }: Observation<'_>) {
        self.seen.note(operation, answer);
        self.mix(show::digest_answer(answer));
        self.mix(events.len() as u64);
        self.append(|line| write!(line, " -> {}", show::answer(answer)));
    }

    pub(super) fn end_claim(&mut self, refusal: &ClaimError) {
        self.append(|line| write!(line, " -> {refusal}"));
    }

    fn append(&mut self, what: impl FnOnce(&mut String) -> core::fmt::Result) {
        if let Some(line) = self.lines.as_mut().and_then(|lines| lines.last_mut()) {
            what(line).expect("text can be written into a string");
        }
    }
}
