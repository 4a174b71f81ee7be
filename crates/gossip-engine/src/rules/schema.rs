//! What a rule file looks like: gitleaks' fields, and ours.

use serde::Deserialize;
use toml::Spanned;

use super::{Checksum, Confidence, Severity};
use crate::detect::Detector;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileSchema {
    #[serde(default, rename = "title")]
    _title: Option<String>,
    #[serde(default, rename = "minVersion")]
    _min_version: Option<String>,
    #[serde(default)]
    pub(super) extend: ExtendSchema,
    #[serde(default)]
    pub(super) rules: Vec<Spanned<RuleSchema>>,
    /// gitleaks' older spelling of one global allow-list.
    #[serde(default)]
    pub(super) allowlist: Option<AllowlistSchema>,
    #[serde(default)]
    pub(super) allowlists: Vec<AllowlistSchema>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExtendSchema {
    #[serde(default, rename = "useDefault")]
    pub(super) use_default: bool,
    #[serde(default, rename = "disabledRules")]
    pub(super) disabled_rules: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) path: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) url: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
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
    #[serde(default, rename = "secretGroup")]
    pub(super) secret_group: Option<Spanned<usize>>,
    #[serde(default, rename = "tags")]
    _tags: Vec<String>,
    #[serde(default, rename = "skipReport")]
    pub(super) skip_report: bool,
    #[serde(default)]
    pub(super) required: Option<toml::Value>,
    #[serde(default)]
    pub(super) allowlist: Option<AllowlistSchema>,
    #[serde(default)]
    pub(super) allowlists: Vec<AllowlistSchema>,
    #[serde(default)]
    pub(super) severity: Severity,
    #[serde(default)]
    pub(super) confidence: Confidence,
    #[serde(default)]
    pub(super) checksum: Option<Checksum>,
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

/// A named value: `NAME = "VALUE"` in any of the languages that have names and values.
#[derive(Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
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
    #[serde(default, rename = "regexTarget")]
    pub(super) regex_target: RegexTarget,
    #[serde(default)]
    pub(super) regexes: Vec<Spanned<String>>,
    #[serde(default)]
    pub(super) stopwords: Vec<String>,
    #[serde(default, rename = "targetRules")]
    pub(super) target_rules: Vec<String>,
}

/// How the criteria of an allow-list combine.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(crate) enum Condition {
    #[default]
    #[serde(alias = "or", alias = "||", rename = "OR")]
    Any,
    #[serde(alias = "and", alias = "&&", rename = "AND")]
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
