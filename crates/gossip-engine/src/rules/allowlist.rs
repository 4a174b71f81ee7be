//! Allow-lists: what a rule, or every rule, is to leave alone.
//!
//! `commits` name what a scan of bytes does not see. They count when a finding is put down to a
//! commit; until then that criterion is not met.

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher};

use super::Location;
use super::gitleaks_ids::rules_for_gitleaks_id;
use super::schema::{Condition, RegexTarget};
use crate::ignore_case;
use crate::pattern::Pattern;

#[derive(Clone, Debug)]
pub(crate) struct Allowlist {
    pub(super) condition: Condition,
    pub(super) commits: Vec<String>,
    pub(super) paths: Vec<Pattern>,
    pub(super) target: RegexTarget,
    pub(super) regexes: Vec<Pattern>,
    /// In lower case.
    pub(super) stopwords: Vec<String>,
    /// Empty: all rules. Only in global lists.
    pub(super) target_rules: Vec<String>,
    /// It came with the scanned tree: what it lets pass is counted.
    pub(crate) is_local: bool,
    /// Where its file has it.
    pub(super) at: Location,
}

/// What an allow-list looks at.
pub(crate) struct Subject<'a> {
    pub(crate) secret: &'a [u8],
    pub(crate) matched: &'a [u8],
    pub(crate) line: &'a [u8],
    pub(crate) path: Option<&'a [u8]>,
}

impl Allowlist {
    pub(crate) fn concerns(&self, rule: &str) -> bool {
        let is_target = |target: &String| {
            target == rule || rules_for_gitleaks_id(target).is_some_and(|ours| ours.contains(&rule))
        };
        self.target_rules.is_empty() || self.target_rules.iter().any(is_target)
    }

    pub(crate) fn concerns_all(&self) -> bool {
        self.target_rules.is_empty()
    }

    /// Whether everything in this path is allowed, whatever is found there.
    pub(crate) fn allows_path(&self, path: &[u8]) -> bool {
        let only_paths =
            self.regexes.is_empty() && self.stopwords.is_empty() && self.commits.is_empty();
        (self.condition == Condition::Any || only_paths) && self.path_matches(Some(path))
    }

    pub(crate) fn allows(&self, subject: &Subject<'_>) -> bool {
        let target = match self.target {
            RegexTarget::Secret => subject.secret,
            RegexTarget::Match => subject.matched,
            RegexTarget::Line => subject.line,
        };
        let criteria = [
            (!self.commits.is_empty(), false),
            (!self.paths.is_empty(), self.path_matches(subject.path)),
            (!self.regexes.is_empty(), self.regexes.iter().any(|regex| regex.is_match(target))),
            (!self.stopwords.is_empty(), self.contains_stopword(subject.secret)),
        ];
        let mut given = criteria.iter().filter(|(given, _)| *given);
        match self.condition {
            Condition::Any => given.any(|(_, met)| *met),
            Condition::All => given.all(|(_, met)| *met),
        }
    }

    /// Whether a finding passes because of the commit that brought it in. What was matched around
    /// the secret is gone by then: a list that wants all its criteria met, one of them that, is not.
    pub(crate) fn allows_commit(&self, commit: &str, secret: &[u8], path: &[u8]) -> bool {
        let is_listed = self.commits.iter().any(|listed| listed.eq_ignore_ascii_case(commit));
        let sees_secret = self.target == RegexTarget::Secret;
        let regex_matches =
            || sees_secret && self.regexes.iter().any(|regex| regex.is_match(secret));
        is_listed
            && (self.condition == Condition::Any
                || (self.paths.is_empty() || self.path_matches(Some(path)))
                    && (self.regexes.is_empty() || regex_matches())
                    && (self.stopwords.is_empty() || self.contains_stopword(secret)))
    }

    /// Whether the path meets its criterion; `None` if it has none.
    pub(crate) fn path_condition(&self, path: &[u8]) -> Option<bool> {
        (!self.paths.is_empty()).then(|| self.path_matches(Some(path)))
    }

    /// The patterns of its paths.
    pub(super) fn path_patterns(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(Pattern::source)
    }

    fn path_matches(&self, path: Option<&[u8]>) -> bool {
        path.is_some_and(|path| self.paths.iter().any(|regex| regex.is_match(path)))
    }

    fn contains_stopword(&self, secret: &[u8]) -> bool {
        self.stopwords.iter().any(|word| ignore_case::contains(secret, word))
    }
}

impl CanonicalBytes for Allowlist {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&(self.condition as u8)).value(&(self.target as u8));
        let patterns = |hasher: &mut CanonicalHasher, patterns: &[Pattern]| {
            hasher.value(&(patterns.len() as u32));
            patterns.iter().for_each(|pattern| {
                hasher.value(pattern.source());
            });
        };
        let words = |hasher: &mut CanonicalHasher, words: &[String]| {
            hasher.value(&(words.len() as u32));
            words.iter().for_each(|word| {
                hasher.value(word.as_str());
            });
        };
        patterns(hasher, &self.paths);
        patterns(hasher, &self.regexes);
        words(hasher, &self.stopwords);
        words(hasher, &self.commits);
        words(hasher, &self.target_rules);
        if self.is_local {
            hasher.value(&1_u8);
        }
    }
}
