//! Rules: what a secret looks like, how sure that makes us, and how bad it is.
//!
//! A rule file is TOML in gitleaks' schema, with a few fields of ours. Fields that are not known are
//! refused, so that a misspelt one does not silently do nothing. The built-in rules are such files.

mod allowlist;
mod assign;
mod build;
mod builtin;
mod error;
mod gitleaks_ids;
mod go_syntax;
mod keyword;
mod known;
mod read;
mod rule;
mod schema;
mod set;

pub(crate) use allowlist::{Allowlist, Subject};
pub use error::{Location, RuleFault, RuleFileError, RuleNote};
pub use gitleaks_ids::rules_for_gitleaks_id;
pub(crate) use keyword::is_in as keyword_is_in;
pub(crate) use rule::Knowledge;
pub use rule::Rule;
pub(crate) use schema::Placeholders;
pub use set::{Origin, RuleSet};

use serde::Deserialize;

pub use crate::checksum::Checksum;

/// In which syntax a file's expressions are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Syntax {
    /// Go's, as gitleaks has it. They are compiled when the file is read.
    Go,
    /// Rust's: the built-in files, which a test compiles.
    Own,
}

/// What a leak of this kind can do.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// An identifier, or a key that is meant to be seen.
    Low,
    /// Limited reach.
    #[default]
    Medium,
    /// Access to an account or to data.
    High,
    /// Access to everything behind it.
    Critical,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// It may be something else.
    Low,
    /// It has the shape.
    #[default]
    Medium,
    /// It has a shape that nothing else has, or its checksum is right.
    High,
}

impl Severity {
    /// As it is written in rule files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Critical => "critical",
        }
    }
}

impl Confidence {
    /// As it is written in rule files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

impl std::fmt::Display for Severity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

impl std::fmt::Display for Confidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
