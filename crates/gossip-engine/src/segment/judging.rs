//! What speaks against a match, and what a match that stands becomes.

use std::ops::Range;

use super::{Match, Segment, View};
use crate::candidates::Candidate;
use crate::checksum::Verdict;
use crate::context::Sight;
use crate::decode::Encoding;
use crate::detect::{self, Detected};
use crate::finding::{Reason, Silenced, Span};
use crate::judge;
use crate::limits::NEARBY;
use crate::literals::{Anchor, stands_alone};
use crate::options::BadChecksum;
use crate::position::Position;
use crate::rules::{Confidence, Placeholders, Rule, Subject, keyword_is_in};
use crate::scratch::Scratch;

impl Match {
    /// Without line ends at its ends, as in gitleaks. An expression takes one to see that the value
    /// is over; it is no part of the value, and the line behind it none of the match's lines.
    fn without_line_ends(&self, text: &[u8]) -> Self {
        let matched = &text[self.whole.clone()];
        let is_line_end = |byte: &&u8| **byte == b'\n';
        let ahead = matched.iter().take_while(is_line_end).count();
        let behind = matched[ahead..].iter().rev().take_while(is_line_end).count();
        let whole = self.whole.start + ahead..self.whole.end - behind;
        let inside = |at: usize| at.clamp(whole.start, whole.end);
        Self { secret: inside(self.secret.start)..inside(self.secret.end), whole }
    }
}

impl Segment<'_> {
    /// Makes a candidate of a match, unless something speaks against it.
    pub(super) fn judge(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        anchor: Option<&Anchor>,
        found: &Match,
    ) {
        let rule = self.engine.rules.rule(index as usize);
        let found = &found.without_line_ends(view.text);
        let secret = &view.text[found.secret.clone()];
        // The part that every such value shares is as public as the rule.
        let public_len = anchor.map_or(0, |anchor| {
            let at_start = anchor.reach.max == 0
                && found.secret.start == found.whole.start
                && !anchor.ignore_case;
            if at_start { anchor.bytes.len() } else { 0 }
        });
        let plain = if rule.encoded { detect::Plain::of(secret) } else { None };
        let value = plain.as_ref().map_or(secret, detect::Plain::bytes);
        let before = &view.text[found.whole.start..found.secret.start];
        if value.is_empty()
            || (rule.encoded && plain.is_none())
            || (rule.standalone && !stands_alone(view.text, found.whole.start))
            || (rule.entropy > 0.0 && judge::entropy(value) < rule.entropy)
            || rule.surprise.is_some_and(|least| {
                !detect::is_surprising(value, least)
                    || detect::is_tail_of_option(view.text, &found.secret)
            })
            || (rule.is_assign
                && (detect::is_wordlike(value)
                    || detect::may_be_shared(before)
                    || anchor.is_some_and(|anchor| is_across_humps(view.text, found, anchor))))
            || detect::is_harmless(value)
            || (rule.placeholders == Placeholders::Drop && judge::is_placeholder(value, public_len))
            || (rule.checksum.is_none()
                && !rule.is_assign
                && judge::is_line_of_block(view.text, found.secret.clone()))
            || !self.keyword_is_near(rule, view, found)
            || !self.path_fits(scratch, index)
        {
            return;
        }
        let Some((mut confidence, reason)) = self.verify(rule, secret) else { return };
        if rule.placeholders == Placeholders::Drop && judge::looks_typed(value) {
            if rule.generic {
                return;
            }
            confidence = Confidence::Low;
        }
        self.keep(scratch, view, index, found, confidence, reason, public_len);
    }

    /// Makes a candidate of what a detector found.
    pub(super) fn judge_detected(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        detected: &Detected,
    ) {
        if !self.path_fits(scratch, index) {
            return;
        }
        let Detected { whole, secret, confidence, reason } = detected;
        let found = Match { whole: whole.clone(), secret: secret.clone() };
        self.keep(scratch, view, index, &found, *confidence, *reason, 0);
    }

    /// Keeps what was judged, unless it is allowed.
    #[expect(clippy::too_many_arguments, reason = "all of them describe one candidate")]
    fn keep(
        &self,
        scratch: &mut Scratch,
        view: &View<'_>,
        index: u32,
        found: &Match,
        confidence: Confidence,
        reason: Reason,
        public_len: usize,
    ) {
        let rule = self.engine.rules.rule(index as usize);
        // What was verified is a secret wherever it stands.
        if reason != Reason::Checksum && judge::is_in_checksum(view.text, found.secret.start) {
            return;
        }
        let original = view.original(found.secret.clone());
        let Some(silenced) = self.reported(self.allowed(rule, view, found, &original)) else {
            return;
        };
        let candidate = Candidate {
            secret: self.span(original),
            matched: self.span(view.original(found.whole.clone())),
            rule: index,
            knowledge: rule.knowledge(),
            confidence,
            reason,
            encoding: view.encoding,
            position: Position::START,
            end: Position::START,
            silenced,
            stored: 0..0,
            beside: 0..0,
            sight: Sight::default(),
            public_len,
        };
        scratch.candidates.push(candidate, &view.text[found.secret.clone()]);
    }

    /// A rule that knows paths only.
    pub(crate) fn judge_path(&self, scratch: &mut Scratch, index: u32) {
        let rule = self.engine.rules.rule(index as usize);
        let nothing = Match { whole: 0..0, secret: 0..0 };
        let view = View { text: &[], decoded_from: None, encoding: Encoding::Plain, depth: 0 };
        if !self.path_fits(scratch, index) {
            return;
        }
        self.keep(scratch, &view, index, &nothing, rule.confidence(), Reason::Path, 0);
    }

    fn span(&self, range: Range<usize>) -> Span {
        Span { start: self.base + range.start as u64, len: range.len() as u64 }
    }

    /// Whether the rule is for such a path. It is asked for each view, and told by an expression once.
    pub(super) fn path_fits(&self, scratch: &mut Scratch, index: u32) -> bool {
        let Some(pattern) = &self.engine.rules.rule(index as usize).path else { return true };
        let is_match = || self.path.is_some_and(|path| pattern.is_match(path));
        *scratch.path_fits[index as usize].get_or_insert_with(is_match)
    }

    fn keyword_is_near(&self, rule: &Rule, view: &View<'_>, found: &Match) -> bool {
        let from = found.whole.start.saturating_sub(NEARBY);
        let to = (found.whole.end + NEARBY).min(view.text.len());
        let near = &view.text[from..to];
        rule.keywords.is_empty() || rule.keywords.iter().any(|keyword| keyword_is_in(keyword, near))
    }

    /// The confidence after verification, or none if the value is to be dropped.
    fn verify(&self, rule: &Rule, secret: &[u8]) -> Option<(Confidence, Reason)> {
        let by_format = (rule.confidence(), Reason::Format);
        let Some(checksum) = rule.checksum else { return Some(by_format) };
        match checksum.verify(secret) {
            Verdict::Valid => Some((Confidence::High, Reason::Checksum)),
            Verdict::Unknown => Some(by_format),
            Verdict::Invalid if self.engine.options.bad_checksum == BadChecksum::Distrust => {
                Some((Confidence::Low, Reason::Format))
            }
            Verdict::Invalid | Verdict::Impossible => None,
        }
    }

    /// Whether a match is reported, and if so as what is silenced by what.
    #[expect(clippy::option_option, reason = "not reported, reported, reported as silenced")]
    fn reported(&self, allowed: Allowed) -> Option<Option<Silenced>> {
        match allowed {
            Allowed::No => Some(None),
            Allowed::ByTree(by) if self.engine.options.report_silenced => Some(Some(by)),
            Allowed::ByTree(_) | Allowed::Yes => None,
        }
    }

    fn allowed(
        &self,
        rule: &Rule,
        view: &View<'_>,
        found: &Match,
        original: &Range<usize>,
    ) -> Allowed {
        let Match { whole, secret } = found;
        let line = judge::lines_around(view.text, whole.start, whole.end, NEARBY);
        if self.engine.options.allow_comments {
            let original = judge::lines_around(self.text, original.start, original.end, NEARBY);
            if judge::is_allowed_by_comment(line) || judge::is_allowed_by_comment(original) {
                return Allowed::ByTree(Silenced::ByComment);
            }
        }
        let subject = Subject {
            secret: &view.text[secret.clone()],
            matched: &view.text[whole.clone()],
            line,
            path: self.path,
        };
        let global = self.engine.rules.allowlists().filter(|list| list.concerns(rule.id()));
        let mut allowed = Allowed::No;
        for list in rule.allowlists.iter().chain(global) {
            if list.allows(&subject) {
                if !list.is_local {
                    return Allowed::Yes;
                }
                allowed = Allowed::ByTree(Silenced::ByLocalConfig);
            }
        }
        allowed
    }
}

/// Whether the name that announces a match is parts of two words: `CaMERAKit` names no service. Small letters before
/// it up to a sign are a word that is glued to it.
fn is_across_humps(text: &[u8], found: &Match, anchor: &Anchor) -> bool {
    const MAX_HUMP: usize = 24;
    let start = found.whole.start;
    let name = &text[start..text.len().min(start + anchor.reach.min + anchor.bytes.len())];
    let before = &text[start.saturating_sub(MAX_HUMP)..start];
    let hump = before.iter().rev().find(|byte| !byte.is_ascii_lowercase());
    hump.is_some_and(u8::is_ascii_uppercase)
        && name.first().is_some_and(u8::is_ascii_lowercase)
        && name.iter().any(u8::is_ascii_uppercase)
}

/// Whether an allow-list or a comment lets a match pass.
enum Allowed {
    No,
    Yes,
    /// Only by something that came with the scanned tree.
    ByTree(Silenced),
}
