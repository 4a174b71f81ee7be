//! From what rules matched to what is reported: each secret once per rule, in order.
//!
//! - C1: findings come in order of start, end and rule, whatever the segments.
//! - C2: of candidates that are largely the same bytes one is reported: the most specific.

use zeroize::Zeroize;

use crate::decode::Encoding;
use crate::finding::{Finding, Reason, Secret, Span};
use crate::limits::NEARBY;
use crate::literals::MAX_REACH;
use crate::position::{LineCounter, Position};
use crate::rules::{Confidence, Knowledge, RuleSet};

/// What is found from a byte on starts at most so far before it: an anchor's reach, of characters of
/// two bytes.
const LOOK_BACK: u64 = 2 * if MAX_REACH > NEARBY { MAX_REACH } else { NEARBY } as u64;

/// What a rule matched and its filters let through.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) secret: Span,
    pub(crate) matched: Span,
    pub(crate) rule: u32,
    /// How much the rule knows of what it finds.
    pub(crate) knowledge: Knowledge,
    pub(crate) confidence: Confidence,
    pub(crate) reason: Reason,
    pub(crate) encoding: Encoding,
    pub(crate) position: Position,
    /// Place of the secret's bytes in the store.
    pub(crate) stored_at: usize,
    pub(crate) stored_len: usize,
    pub(crate) public_len: usize,
}

impl Candidate {
    /// The outermost first among those that start together, so that C2 looks back only.
    fn order(&self) -> impl Ord + use<> {
        (self.secret.start, std::cmp::Reverse(self.secret.end()), self.rule, self.encoding)
    }

    /// Whether they share more than half of the shorter one. Neighbours in an encoded run may share
    /// a digit, and are two all the same.
    fn is_same_value(&self, other: &Self) -> bool {
        let start = self.secret.start.max(other.secret.start);
        let end = self.secret.end().min(other.secret.end());
        let shorter = self.secret.len.min(other.secret.len);
        end.saturating_sub(start) * 2 > shorter || self.secret == other.secret
    }

    /// Of two that are the same value the greater one is reported.
    fn specificity(&self) -> impl Ord + use<> {
        (
            self.knowledge,
            self.reason == Reason::Checksum,
            self.confidence,
            self.secret.len,
            self.matched.len,
            self.public_len,
            std::cmp::Reverse((self.encoding, self.rule)),
        )
    }
}

/// Candidates that later bytes may still overrule. No `Debug`: it holds secrets.
#[derive(Default)]
pub(crate) struct Candidates {
    waiting: Vec<Candidate>,
    /// Of those, how many have no position yet; they are the last.
    unplaced: usize,
    /// Done with, but they may still overrule later ones.
    past: Vec<Candidate>,
    /// The bytes of the secrets.
    store: Vec<u8>,
    longest: u64,
}

impl Candidates {
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.unplaced = 0;
        self.past.clear();
        self.forget_secrets();
        self.longest = 0;
    }

    pub(crate) fn push(&mut self, mut candidate: Candidate, secret: &[u8]) {
        candidate.stored_at = self.store.len();
        candidate.stored_len = secret.len();
        self.store.extend_from_slice(secret);
        self.longest = self.longest.max(candidate.secret.len);
        self.waiting.push(candidate);
        self.unplaced += 1;
    }

    /// Gives the candidates since the last call their lines. `text` starts at `base`, at or before
    /// the first of them, and `lines` is the counter there.
    pub(crate) fn place(&mut self, text: &[u8], base: u64, mut lines: LineCounter) {
        let first = self.waiting.len() - self.unplaced;
        self.unplaced = 0;
        let new = &mut self.waiting[first..];
        new.sort_by_key(|candidate| candidate.secret.start);
        let mut at = 0;
        for candidate in new {
            let start = (candidate.secret.start - base) as usize;
            lines.advance(&text[at..start]);
            candidate.position = lines.position(&[], 0);
            at = start;
        }
    }

    /// Reports what no byte from `done` on can overrule. Pass `u64::MAX` at the end.
    pub(crate) fn flush(
        &mut self,
        done: u64,
        rules: &RuleSet,
        on_finding: &mut impl FnMut(Finding<'_>),
    ) {
        debug_assert_eq!(self.unplaced, 0);
        if self.waiting.is_empty() && self.past.is_empty() {
            return;
        }
        self.waiting.sort_by_key(Candidate::order);
        let settled = done.saturating_sub(LOOK_BACK);
        let ready = if done == u64::MAX {
            self.waiting.len()
        } else {
            let late =
                self.waiting.iter().position(|c| c.secret.end().max(c.matched.end()) >= settled);
            late.unwrap_or(self.waiting.len())
        };
        for at in 0..ready {
            let candidate = &self.waiting[at];
            self.past.push(candidate.clone());
            if self.is_overruled(at) {
                continue;
            }
            let stored = candidate.stored_at..candidate.stored_at + candidate.stored_len;
            on_finding(Finding {
                rule: rules.rule(candidate.rule as usize),
                rule_index: candidate.rule as usize,
                matched: candidate.matched,
                secret_span: candidate.secret,
                confidence: candidate.confidence,
                reason: candidate.reason,
                encoding: candidate.encoding,
                position: candidate.position,
                secret: Secret::new(&self.store[stored], candidate.public_len),
            });
        }
        self.waiting.drain(..ready);
        self.past.retain(|candidate| candidate.secret.end() >= settled);
        self.forget_reported_secrets();
    }

    /// Keeps the bytes of those that still wait: without, an object in which something always waits
    /// would be held in memory.
    fn forget_reported_secrets(&mut self) {
        let mut kept = 0;
        self.waiting.sort_by_key(|candidate| candidate.stored_at);
        for candidate in &mut self.waiting {
            let stored = candidate.stored_at..candidate.stored_at + candidate.stored_len;
            self.store.copy_within(stored, kept);
            candidate.stored_at = kept;
            kept += candidate.stored_len;
        }
        self.store[kept..].zeroize();
        self.store.truncate(kept);
    }

    fn forget_secrets(&mut self) {
        if !self.store.is_empty() {
            self.store.zeroize();
        }
    }

    fn is_overruled(&self, at: usize) -> bool {
        let candidate = &self.waiting[at];
        let overrules = |other: &Candidate| {
            candidate.is_same_value(other) && other.specificity() >= candidate.specificity()
        };
        // Waiting ones are sorted by start, and none is longer than the longest.
        let far = |other: &&Candidate| other.secret.start + self.longest >= candidate.secret.start;
        let past = self.past.len() - (at + 1);
        // So are those that are done with.
        self.past[..past].iter().rev().take_while(far).any(overrules)
            || self.waiting[..at].iter().rev().take_while(far).any(overrules)
            || self.waiting[at + 1..]
                .iter()
                .take_while(|other| other.secret.start <= candidate.secret.end())
                .any(|other| {
                    candidate.is_same_value(other) && other.specificity() > candidate.specificity()
                })
    }
}

impl Drop for Candidates {
    fn drop(&mut self) {
        self.store.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(start: u64, len: u64) -> Candidate {
        let span = Span { start, len };
        Candidate {
            secret: span,
            matched: span,
            rule: 0,
            knowledge: Knowledge::Vendor,
            confidence: Confidence::High,
            reason: Reason::Format,
            encoding: Encoding::Plain,
            position: Position { line: 1, column: 1 },
            stored_at: 0,
            stored_len: 0,
            public_len: 0,
        }
    }

    /// A long object full of secrets: at the end of each segment some wait for the next.
    #[test]
    fn secrets_that_were_reported_are_not_held_while_others_wait() {
        let rules = "[[rules]]\nid = \"mine\"\nregex = '''mine_[0-9]{8}'''\n";
        let rules = RuleSet::from_toml("test.toml", rules).unwrap();
        let mut candidates = Candidates::default();
        let mut found = Vec::new();
        let segment = 4 * LOOK_BACK;
        for start in (0..100 * segment).step_by(64) {
            candidates.push(candidate(start, 13), format!("mine_{start:08}").as_bytes());
            if (start + 64) % segment == 0 {
                candidates.unplaced = 0;
                candidates.flush(start + 64, &rules, &mut |finding| {
                    let expected = format!("mine_{:08}", finding.span().start);
                    assert_eq!(finding.secret().expose(), expected.as_bytes());
                    found.push(finding.span().start);
                });
                assert!(!candidates.waiting.is_empty(), "or nothing is tested");
                let held: usize = candidates.waiting.iter().map(|c| c.stored_len).sum();
                assert_eq!(candidates.store.len(), held);
            }
        }
        candidates.flush(u64::MAX, &rules, &mut |finding| found.push(finding.span().start));
        assert!(found.iter().copied().eq((0..100 * segment).step_by(64)), "each once, in order");
        assert!(candidates.store.is_empty());
    }
}
