//! What a rule file looks like: gitleaks' fields, and ours.

use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

use super::{Checksum, Confidence, Severity};
use crate::detect::Detector;

/// A rule file. Keys that gitleaks reads in any case are read in the cases that people write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSchema {
    #[serde(default, rename = "title")]
    _title: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, rename = "minVersion")]
    _min_version: Option<String>,
    /// How to scan: for the program, which reads it from the same file.
    #[serde(default, rename = "scan")]
    _scan: Option<IgnoredAny>,
    #[serde(default)]
    pub(super) extend: ExtendSchema,
    #[serde(default)]
    pub(super) rules: Vec<Spanned<RuleSchema>>,
    /// gitleaks' older spelling of one global allow-list.
    #[serde(default, alias = "allowList")]
    pub(super) allowlist: Option<Spanned<AllowlistSchema>>,
    #[serde(default, alias = "allowLists")]
    pub(super) allowlists: Vec<Spanned<AllowlistSchema>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendSchema {
    #[serde(default, rename = "useDefault", alias = "usedefault")]
    pub(super) use_default: Option<Spanned<bool>>,
    #[serde(default, rename = "disabledRules", alias = "disabledrules")]
    pub(super) disabled_rules: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) url: Option<Spanned<String>>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleSchema {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default)]
    pub(super) description: String,
    #[serde(default)]
    pub(super) regex: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) assign: Option<Spanned<AssignSchema>>,
    #[serde(default)]
    pub(super) detect: Option<Detector>,
    #[serde(default)]
    pub(super) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) keywords: Vec<String>,
    #[serde(default)]
    pub(super) entropy: f64,
    #[serde(default)]
    pub(super) surprise: Option<f32>,
    #[serde(default, rename = "secretGroup", alias = "secretgroup")]
    pub(super) secret_group: Option<Spanned<usize>>,
    #[serde(default)]
    pub(super) tags: Vec<String>,
    #[serde(default, rename = "skipReport", alias = "skipreport")]
    pub(super) skip_report: bool,
    #[serde(default)]
    pub(super) required: Vec<Spanned<RequiredSchema>>,
    #[serde(default, alias = "allowList")]
    pub(super) allowlist: Option<Spanned<AllowlistSchema>>,
    #[serde(default, alias = "allowLists")]
    pub(super) allowlists: Vec<Spanned<AllowlistSchema>>,
    #[serde(default)]
    pub(super) severity: Option<Severity>,
    #[serde(default)]
    pub(super) confidence: Option<Confidence>,
    #[serde(default)]
    pub(super) checksum: Option<Checksum>,
    #[serde(default)]
    pub(super) encoded: bool,
    #[serde(default)]
    pub(super) standalone: bool,
    #[serde(default)]
    pub(super) generic: bool,
    #[serde(default)]
    pub(super) placeholders: Placeholders,
    #[serde(default)]
    pub(super) examples: Vec<String>,
    #[serde(default)]
    pub(super) counterexamples: Vec<String>,
}

impl RuleSchema {
    /// Whether it says what to match, rather than adjust what another file says.
    pub(super) fn matches_something(&self) -> bool {
        self.has_expression() || self.path.is_some()
    }

    fn has_expression(&self) -> bool {
        self.regex.is_some() || self.assign.is_some() || self.detect.is_some()
    }

    /// This rule as it goes on top of one of the same id, as gitleaks does it: what it says
    /// replaces, and keywords, tags and allow-lists are added. With another expression, what judges
    /// the value is that of the new one.
    pub(super) fn over(self, base: &Self) -> Self {
        let joined = |base: &[String], own: &[String]| [base, own].concat();
        let (judge, expression) = if self.has_expression() { (&self, &self) } else { (base, base) };
        Self {
            id: base.id.clone(),
            description: if self.description.is_empty() {
                base.description.clone()
            } else {
                self.description.clone()
            },
            regex: expression.regex.clone(),
            assign: expression.assign.clone(),
            detect: expression.detect,
            path: self.path.clone().or_else(|| base.path.clone()),
            keywords: joined(&base.keywords, &self.keywords),
            entropy: if self.entropy == 0.0 { base.entropy } else { self.entropy },
            surprise: self.surprise.or(judge.surprise),
            secret_group: match &self.secret_group {
                Some(group) if *group.get_ref() > 0 => self.secret_group.clone(),
                _ => base.secret_group.clone(),
            },
            tags: joined(&base.tags, &self.tags),
            skip_report: self.skip_report || base.skip_report,
            required: if self.required.is_empty() {
                base.required.clone()
            } else {
                self.required.clone()
            },
            allowlist: None,
            allowlists: [
                base.own_allowlists().cloned().collect::<Vec<_>>(),
                self.own_allowlists().cloned().collect(),
            ]
            .concat(),
            severity: self.severity.or(base.severity),
            confidence: self.confidence.or(base.confidence),
            checksum: self.checksum.or(judge.checksum),
            encoded: self.encoded || judge.encoded,
            standalone: self.standalone || judge.standalone,
            generic: self.generic || judge.generic,
            placeholders: judge.placeholders,
            examples: judge.examples.clone(),
            counterexamples: judge.counterexamples.clone(),
        }
    }

    /// Rewrites every expression.
    pub(super) fn translate(&mut self, translate: fn(&str) -> String) {
        let assign = self.assign.as_mut().map(Spanned::get_mut);
        let assign = assign.into_iter().flat_map(|assign| [&mut assign.name, &mut assign.value]);
        let own = [&mut self.regex, &mut self.path].into_iter().flatten().map(Spanned::get_mut);
        own.chain(assign).for_each(|source| *source = translate(source));
        let lists = self.allowlist.iter_mut().chain(&mut self.allowlists);
        lists.for_each(|list| list.get_mut().translate(translate));
    }

    /// In either spelling.
    pub(super) fn own_allowlists(&self) -> impl Iterator<Item = &Spanned<AllowlistSchema>> {
        self.allowlist.iter().chain(&self.allowlists)
    }
}

/// Another rule that must find something near by.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct RequiredSchema {
    #[serde(default)]
    pub(super) id: String,
    #[serde(default, rename = "withinLines", alias = "withinlines")]
    pub(super) within_lines: Option<u64>,
    #[serde(default, rename = "withinColumns", alias = "withincolumns")]
    pub(super) within_columns: Option<u64>,
}

/// A named value: `NAME = "VALUE"` in any of the languages that have names and values.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct AssignSchema {
    pub(super) name: String,
    pub(super) value: String,
}

/// Whether values that are obviously stand-ins are kept.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Placeholders {
    /// `your-key-here`, `xxxx…` and the like are not findings.
    #[default]
    Drop,
    /// The shape of the value leaves no room for a judgement.
    Keep,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(super) struct AllowlistSchema {
    #[serde(default, rename = "description")]
    _description: String,
    #[serde(default)]
    pub(super) condition: Condition,
    #[serde(default)]
    pub(super) commits: Vec<String>,
    #[serde(default)]
    pub(super) paths: Vec<Spanned<String>>,
    #[serde(default, rename = "regexTarget", alias = "regextarget")]
    pub(super) regex_target: RegexTarget,
    #[serde(default)]
    pub(super) regexes: Vec<Spanned<String>>,
    #[serde(default, alias = "stopWords")]
    pub(super) stopwords: Vec<String>,
    #[serde(default, rename = "targetRules", alias = "targetrules")]
    pub(super) target_rules: Vec<Spanned<String>>,
    /// Not of the file: it comes with the scanned tree.
    #[serde(skip)]
    pub(super) is_local: bool,
}

impl AllowlistSchema {
    /// Rewrites every expression.
    pub(super) fn translate(&mut self, translate: fn(&str) -> String) {
        let sources = self.paths.iter_mut().chain(&mut self.regexes).map(Spanned::get_mut);
        sources.for_each(|source| *source = translate(source));
    }
}

/// How the criteria of an allow-list combine.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    #[serde(alias = "or", alias = "Or", alias = "||", alias = "", rename = "OR")]
    Any,
    #[serde(alias = "and", alias = "And", alias = "&&", rename = "AND")]
    All,
}

/// What an allow-list's expressions look at.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RegexTarget {
    #[default]
    #[serde(alias = "")]
    Secret,
    Match,
    Line,
}
