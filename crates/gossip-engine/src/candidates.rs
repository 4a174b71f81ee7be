//! From what rules matched to what is reported: each secret once per rule, in order.
//!
//! - C1: findings come in order of start, end and rule, whatever the segments.
//! - C2: of candidates that are largely the same bytes one is reported: the most specific.

use std::ops::Range;

use zeroize::Zeroize;

use crate::context::{BLOCK, Context, Known, MARGIN, SIGHT_BYTES, Sight};
use crate::decode::Encoding;
use crate::finding::{Finding, Reason, Secret, Silenced, Span};
use crate::limits::{CONTEXT_AFTER, CONTEXT_BEFORE, MAX_ENCODED_RUN_LEN, MAX_MATCH_LEN, NEARBY};
use crate::literals::MAX_REACH;
use crate::position::{LineCounter, Position};
use crate::rules::{Confidence, Knowledge, RuleSet};

/// What is found from a byte on starts at most so far before it: an anchor's reach, of characters of
/// two bytes.
const LOOK_BACK: u64 = 2 * if MAX_REACH > NEARBY { MAX_REACH } else { NEARBY } as u64;

// What is in sight of a secret is at hand when it is placed, wherever segments begin and end; so are the
// blocks that it is in.
const IN_SIGHT: usize = SIGHT_BYTES + BLOCK + MARGIN;
const _: () = assert!(CONTEXT_BEFORE >= LOOK_BACK as usize + IN_SIGHT);
const _: () = assert!(CONTEXT_AFTER >= MAX_ENCODED_RUN_LEN + IN_SIGHT);
const _: () = assert!(CONTEXT_AFTER >= MAX_MATCH_LEN + IN_SIGHT);

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
    /// Just behind it.
    pub(crate) end: Position,
    /// Something that came with the scanned tree allows it.
    pub(crate) silenced: Option<Silenced>,
    /// Place of the secret's bytes in the store.
    pub(crate) stored: Range<usize>,
    /// Place of what is in sight of it, in the other store, and where in that it stands.
    pub(crate) beside: Range<usize>,
    pub(crate) sight: Sight,
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

    /// Whether this is a file by its name, and the other what the file was found to be, more surely.
    fn is_by_name_of(&self, other: &Self) -> bool {
        self.secret.len == 0
            && self.secret.start == other.secret.start
            && other.confidence > self.confidence
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
    /// The bytes beside them.
    beside: Vec<u8>,
    longest: u64,
    /// What rules found that others require, in this segment and the one before it.
    companions: Vec<Companion>,
    segment: u64,
}

/// Where a rule found something.
struct Companion {
    segment: u64,
    rule: u32,
    position: Position,
}

impl Candidates {
    pub(crate) fn clear(&mut self) {
        self.waiting.clear();
        self.unplaced = 0;
        self.past.clear();
        self.forget_secrets();
        self.longest = 0;
        self.companions.clear();
        self.segment = 0;
    }

    pub(crate) fn push(&mut self, mut candidate: Candidate, secret: &[u8]) {
        candidate.stored = append(&mut self.store, secret);
        self.longest = self.longest.max(candidate.secret.len);
        self.waiting.push(candidate);
        self.unplaced += 1;
    }

    /// Gives the candidates since the last call their lines. `text` starts at `base`, at or before
    /// the first of them, and `lines` is the counter there.
    pub(crate) fn place(
        &mut self,
        text: &[u8],
        base: u64,
        mut lines: LineCounter,
        known: &mut Known,
        path: Option<&[u8]>,
    ) {
        let first = self.waiting.len() - self.unplaced;
        self.unplaced = 0;
        let new = &mut self.waiting[first..];
        new.sort_by_key(|candidate| candidate.secret.start);
        let mut at = 0;
        for candidate in new {
            let start = (lines.unit_start(candidate.secret.start) - base) as usize;
            let end = (candidate.secret.end() - base) as usize;
            lines.advance(&text[at..start]);
            candidate.position = lines.here();
            candidate.end = lines.position(&text[start..], end - start);
            at = start;
            let secret = (candidate.secret.start - base) as usize..end;
            let (seen, sight) = Sight::of(text, secret);
            known.look_at(text, base, base + seen.start as u64..base + seen.end as u64, path);
            candidate.beside = append(&mut self.beside, &text[seen]);
            candidate.sight = sight;
        }
    }

    /// Reports what no byte from `done` on can overrule. Pass `u64::MAX` at the end.
    pub(crate) fn flush(
        &mut self,
        done: u64,
        rules: &RuleSet,
        known: &mut Known,
        on_finding: &mut impl FnMut(Finding<'_>),
    ) {
        self.flush_each(done, rules, |candidates, at| {
            let candidate = &candidates.waiting[at];
            let (before, after) = candidates.context(at, known);
            let secret = &candidates.store[candidate.stored.clone()];
            on_finding(Finding {
                rule: rules.rule(candidate.rule as usize),
                rule_index: candidate.rule as usize,
                matched: candidate.matched,
                secret_span: candidate.secret,
                confidence: candidate.confidence,
                reason: candidate.reason,
                encoding: candidate.encoding,
                position: candidate.position,
                end: candidate.end,
                silenced: candidate.silenced,
                context: Context { before: &before, after: &after },
                secret: Secret::new(secret, candidate.public_len),
            });
        });
        let first = self.waiting.iter().map(|candidate| candidate.secret.start).min();
        let needed = first.unwrap_or(done).min(done).saturating_sub(LOOK_BACK + IN_SIGHT as u64);
        known.forget(needed);
    }

    /// Passes over what [`flush`](Self::flush) would report: it has been.
    pub(crate) fn flush_silently(&mut self, done: u64, rules: &RuleSet) {
        self.flush_each(done, rules, |_, _| {});
    }

    /// Calls back with the place of each waiting candidate that is to be reported.
    fn flush_each(&mut self, done: u64, rules: &RuleSet, mut each: impl FnMut(&Self, usize)) {
        debug_assert_eq!(self.unplaced, 0);
        self.note_companions(done, rules);
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
            let rule = rules.rule(candidate.rule as usize);
            if rule.skip_report
                || self.is_overruled(at, rules)
                || !self.has_companions(candidate, rules)
            {
                continue;
            }
            each(self, at);
        }
        self.waiting.drain(..ready);
        // As far back as a context has in sight: what was settled is masked there, too.
        self.past.retain(|candidate| candidate.secret.end() + SIGHT_BYTES as u64 >= settled);
        self.forget_reported_secrets();
    }

    /// What stands before and behind the candidate at `at`, masked.
    fn context(&self, at: usize, known: &Known) -> (String, String) {
        let candidate = &self.waiting[at];
        let bytes = &self.beside[candidate.beside.clone()];
        let start = candidate.secret.start - candidate.sight.secret.start as u64;
        let end = start + bytes.len() as u64;
        let value = &self.store[candidate.stored.clone()];
        let behind = self.waiting[at + 1..].iter().take_while(|other| other.secret.start < end);
        let ahead = self.past.iter().rev();
        let ahead = ahead.take_while(|other| other.secret.start + self.longest >= start);
        let spans = ahead.chain(behind).map(|other| other.secret);
        let spans = spans.chain(known.spans(start..end));
        candidate.sight.masked(bytes, start, value, spans)
    }

    /// Where the secrets of those that wait are.
    pub(crate) fn spans(&self) -> impl Iterator<Item = Span> {
        self.waiting.iter().map(|candidate| candidate.secret)
    }

    /// Notes where rules that others require found something, and forgets what is further back than
    /// the segment before: a scan that goes on from a mark knows as much.
    fn note_companions(&mut self, done: u64, rules: &RuleSet) {
        if done != u64::MAX {
            self.segment += 1;
        }
        let segment = self.segment;
        let is_any = !self.waiting.is_empty() || !self.companions.is_empty();
        if !is_any || !rules.has_required() {
            return;
        }
        self.companions.retain(|companion| companion.segment + 1 >= segment);
        let found = self.waiting.iter().filter(|candidate| candidate.silenced.is_none());
        self.companions.extend(found.map(|candidate| Companion {
            segment,
            rule: candidate.rule,
            position: candidate.position,
        }));
    }

    /// Whether each rule that the candidate's rule requires found something near enough.
    fn has_companions(&self, candidate: &Candidate, rules: &RuleSet) -> bool {
        let required = &rules.rule(candidate.rule as usize).required;
        required.iter().all(|required| {
            self.companions.iter().any(|companion| {
                rules.rule(companion.rule as usize).id() == required.id
                    && required.is_near(candidate.position, companion.position)
            })
        })
    }

    /// Keeps the bytes of those that still wait: without, an object in which something always waits
    /// would be held in memory.
    fn forget_reported_secrets(&mut self) {
        self.waiting.sort_by_key(|candidate| candidate.stored.start);
        compact(&mut self.store, self.waiting.iter_mut().map(|candidate| &mut candidate.stored));
        self.waiting.sort_by_key(|candidate| candidate.beside.start);
        compact(&mut self.beside, self.waiting.iter_mut().map(|candidate| &mut candidate.beside));
    }

    fn forget_secrets(&mut self) {
        if !self.store.is_empty() {
            self.store.zeroize();
        }
        if !self.beside.is_empty() {
            self.beside.zeroize();
        }
    }

    fn is_overruled(&self, at: usize, rules: &RuleSet) -> bool {
        let candidate = &self.waiting[at];
        // What is not reported hides nothing that is.
        let counts = |other: &Candidate| {
            (candidate.silenced.is_some() || other.silenced.is_none())
                && !rules.rule(other.rule as usize).skip_report
        };
        let is_same =
            |other: &Candidate| candidate.is_same_value(other) || candidate.is_by_name_of(other);
        let overrules = |other: &Candidate| {
            is_same(other) && other.specificity() >= candidate.specificity() && counts(other)
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
                    is_same(other) && other.specificity() > candidate.specificity() && counts(other)
                })
    }
}

fn append(store: &mut Vec<u8>, bytes: &[u8]) -> Range<usize> {
    let start = store.len();
    store.extend_from_slice(bytes);
    start..store.len()
}

/// Moves what the ranges, which ascend, name to the front, and wipes the rest.
fn compact<'r>(store: &mut Vec<u8>, ranges: impl Iterator<Item = &'r mut Range<usize>>) {
    let mut kept = 0;
    for range in ranges {
        let len = range.len();
        store.copy_within(range.clone(), kept);
        *range = kept..kept + len;
        kept += len;
    }
    store[kept..].zeroize();
    store.truncate(kept);
}

impl Drop for Candidates {
    fn drop(&mut self) {
        self.store.zeroize();
        self.beside.zeroize();
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
            position: Position::START,
            end: Position::START,
            silenced: None,
            stored: 0..0,
            beside: 0..0,
            sight: Sight::default(),
            public_len: 0,
        }
    }

    /// A long object full of secrets: at the end of each segment some wait for the next.
    #[test]
    fn secrets_that_were_reported_are_not_held_while_others_wait() {
        let rules = "[[rules]]\nid = \"mine\"\nregex = '''mine_[0-9]{8}'''\n";
        let rules = RuleSet::from_toml("test.toml", rules).unwrap();
        let (mut candidates, mut known) = (Candidates::default(), Known::default());
        let mut found = Vec::new();
        let segment = 4 * LOOK_BACK;
        for start in (0..100 * segment).step_by(64) {
            candidates.push(candidate(start, 13), format!("mine_{start:08}").as_bytes());
            if (start + 64) % segment == 0 {
                candidates.unplaced = 0;
                candidates.flush(start + 64, &rules, &mut known, &mut |finding| {
                    let expected = format!("mine_{:08}", finding.span().start);
                    assert_eq!(finding.secret().expose(), expected.as_bytes());
                    found.push(finding.span().start);
                });
                assert!(!candidates.waiting.is_empty(), "or nothing is tested");
                let held: usize = candidates.waiting.iter().map(|c| c.stored.len()).sum();
                assert_eq!(candidates.store.len(), held);
            }
        }
        candidates
            .flush(u64::MAX, &rules, &mut known, &mut |finding| found.push(finding.span().start));
        assert!(found.iter().copied().eq((0..100 * segment).step_by(64)), "each once, in order");
        assert!(candidates.store.is_empty());
    }
}
