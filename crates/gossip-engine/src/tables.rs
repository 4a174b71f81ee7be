//! What an engine looks for first, made of its rules.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use regex_automata::meta;

use crate::decode::escapes;
use crate::literals::Next;
use crate::options::Options;
use crate::pattern::Pattern;
use crate::prefilter::{Literal, Prefilter};
use crate::rules::RuleSet;

pub(crate) struct Tables {
    pub(crate) prefilter: Prefilter,
    /// For each literal of the first stage: the rules' anchors that it is.
    pub(crate) links: Vec<Vec<Link>>,
    /// From this literal of the first stage on, they announce escapes and no rule.
    pub(crate) first_escape: usize,
    /// Rules without an anchor, tried everywhere.
    pub(crate) everywhere: Vec<u32>,
    /// Rules that look at paths only.
    pub(crate) by_path: Vec<u32>,
    /// Of those and of rules that are tried everywhere, but in some files only, the paths.
    pub(crate) paths: Paths,
    pub(crate) slots: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Link {
    pub(crate) rule: u32,
    pub(crate) anchor: u32,
}

/// The paths of rules that no literal announces: every file would be held against each of them.
pub(crate) struct Paths {
    pub(crate) rules: Vec<u32>,
    /// All of them in one; none if that would be too large.
    regex: OnceLock<Option<meta::Regex>>,
}

impl Tables {
    /// Of the built-in rules there are one, as a scan has several engines with them: its own, and what looks at
    /// what is shown of a finding.
    pub(crate) fn of(rules: &RuleSet, options: &Options) -> Arc<Self> {
        static BUILTIN: OnceLock<Arc<Tables>> = OnceLock::new();
        let with_escapes = options.decoding.escapes;
        if with_escapes && rules.are_builtin() {
            return BUILTIN.get_or_init(|| Arc::new(Self::new(rules, with_escapes))).clone();
        }
        Arc::new(Self::new(rules, with_escapes))
    }

    fn new(rules: &RuleSet, with_escapes: bool) -> Self {
        // Rules that share a literal share its place in the first stage.
        let mut literals: BTreeMap<_, (Literal, Vec<Link>)> = BTreeMap::new();
        let mut everywhere = Vec::new();
        let mut by_path = Vec::new();
        let mut slots = 2;
        for (index, rule) in rules.iter().enumerate() {
            let index = index as u32;
            match &rule.regex {
                Some(regex) => {
                    slots = slots.max(2 + 2 * groups(regex.source()));
                    if rule.anchors.is_empty() {
                        everywhere.push(index);
                    }
                }
                None if rule.detector.is_none() => by_path.push(index),
                None if rule.anchors.is_empty() => everywhere.push(index),
                None => {}
            }
            let begins_matches = !rule.anchored_by_keyword && rule.detector.is_none();
            for (at, anchor) in rule.anchors.iter().enumerate() {
                let standalone = rule.standalone && begins_matches && anchor.reach.max == 0;
                let (shared, links) = literals
                    .entry((anchor.bytes.as_slice(), anchor.ignore_case))
                    .or_insert_with(|| (Literal::new(anchor, standalone), Vec::new()));
                shared.next = shared.next.union(anchor.next);
                shared.standalone &= standalone;
                links.push(Link { rule: index, anchor: at as u32 });
            }
        }
        let (mut literals, links): (Vec<_>, Vec<_>) = literals.into_values().unzip();
        let first_escape = literals.len();
        if with_escapes {
            literals.extend(escapes::BACKSLASH_ANCHORS.map(|text| Literal {
                bytes: text.as_bytes().to_vec(),
                ignore_case: false,
                next: Next::only(escapes::may_follow),
                standalone: false,
            }));
        }
        let prefilter = Prefilter::new(literals);
        let of_paths = |index: &u32| rules.rule(*index as usize).path.is_some();
        let of_paths = everywhere.iter().chain(&by_path).copied().filter(of_paths).collect();
        let paths = Paths { rules: of_paths, regex: OnceLock::new() };
        Self { prefilter, links, first_escape, everywhere, by_path, paths, slots }
    }
}

impl Paths {
    /// Whether a file of this path may be of any of the rules.
    pub(crate) fn may_have(&self, path: &[u8], rules: &RuleSet) -> bool {
        let sources =
            || self.rules.iter().filter_map(|rule| rules.rule(*rule as usize).path.as_ref());
        let any = self.regex.get_or_init(|| Pattern::any_of(sources()));
        any.as_ref().is_none_or(|any| any.is_match(path))
    }
}

fn groups(source: &str) -> usize {
    // Every group has a parenthesis; counting them costs less than keeping the syntax tree.
    source.bytes().filter(|byte| *byte == b'(').count()
}
