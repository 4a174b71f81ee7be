//! One rule, ready to be used.

use std::sync::Arc;

use gossip_contracts::identity::{CanonicalBytes, CanonicalHasher, RuleFingerprint};

use super::schema::RuleSchema;
use super::{Allowlist, Checksum, Confidence, Location, Placeholders, Severity};
use crate::detect::Detector;
use crate::literals::Anchor;
use crate::pattern::Pattern;
use crate::position::Position;

/// Another rule, which must find something near what this one found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) id: String,
    pub(super) within_lines: Option<u64>,
    pub(super) within_columns: Option<u64>,
}

impl Required {
    /// Whether two places are near enough to each other.
    pub(crate) fn is_near(&self, one: Position, other: Position) -> bool {
        let within = |max: Option<u64>, one: u64, other: u64| {
            max.is_none_or(|max| one.abs_diff(other) <= max)
        };
        within(self.within_lines, one.line, other.line)
            && within(self.within_columns, one.column, other.column)
    }
}

/// How much a rule knows of what it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Knowledge {
    /// A name that speaks of a secret, in general.
    Name,
    /// A place where secrets stand.
    Place,
    /// Whose it is.
    Vendor,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(super) id: String,
    pub(super) description: String,
    pub(super) severity: Severity,
    pub(super) confidence: Confidence,
    pub(crate) regex: Option<Pattern>,
    /// The expression is that of a named value, whose shape is no more than letters and digits.
    pub(crate) is_assign: bool,
    /// Instead of an expression.
    pub(crate) detector: Option<Detector>,
    pub(crate) anchors: Vec<Anchor>,
    /// In lower case. Needed near a match; the anchors themselves when the expression has none.
    pub(crate) keywords: Vec<String>,
    /// The anchors are the keywords, so a match may stand apart from them.
    pub(crate) anchored_by_keyword: bool,
    pub(crate) secret_group: Option<usize>,
    pub(crate) max_match_len: usize,
    pub(crate) path: Option<Pattern>,
    /// Bits per byte that a secret must have at least.
    pub(crate) entropy: f64,
    /// Bits by which the secret must be likelier by chance than as words.
    pub(crate) surprise: Option<f32>,
    pub(crate) allowlists: Vec<Allowlist>,
    pub(crate) checksum: Option<Checksum>,
    /// The secret is text in base64, and judged as that text.
    pub(crate) encoded: bool,
    pub(crate) standalone: bool,
    pub(crate) generic: bool,
    pub(crate) placeholders: Placeholders,
    /// Rules without which it finds nothing.
    pub(crate) required: Vec<Required>,
    /// It is there for others to require.
    pub(crate) skip_report: bool,
    /// The file that says it, or the last that adjusts it, and where.
    pub(super) declared: (String, Location),
    /// What its file says, for a file on top to adjust.
    pub(super) schema: Arc<RuleSchema>,
    pub(super) fingerprint: RuleFingerprint,
}

impl Rule {
    /// The name by which users know the rule.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it finds, in words.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    /// How bad a leak is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// How sure a finding is, before any checksum.
    #[must_use]
    pub fn confidence(&self) -> Confidence {
        self.confidence
    }

    /// Whether the rule only knows what values look like in general, so that a rule that knows
    /// better wins over it.
    #[must_use]
    pub fn is_generic(&self) -> bool {
        self.generic
    }

    pub(crate) fn knowledge(&self) -> Knowledge {
        match (self.generic, self.detector) {
            (false, _) => Knowledge::Vendor,
            (true, None) => Knowledge::Place,
            (true, Some(_)) => Knowledge::Name,
        }
    }

    /// How values of this kind are verified offline, if they can be.
    #[must_use]
    pub fn checksum(&self) -> Option<Checksum> {
        self.checksum
    }

    /// Whether it looks at paths only: the file itself is the finding.
    #[must_use]
    pub fn is_of_paths(&self) -> bool {
        self.regex.is_none() && self.detector.is_none()
    }

    /// Whether the first stage of a scan can look for it. A rule without a literal is tried on
    /// every byte.
    #[must_use]
    pub fn has_literals(&self) -> bool {
        !self.anchors.is_empty()
    }

    /// The literals that announce a match, letters of either case in lower case.
    pub fn literals(&self) -> impl Iterator<Item = &[u8]> {
        self.anchors.iter().map(|anchor| anchor.bytes.as_slice())
    }

    /// gitleaks' tags.
    #[must_use]
    pub fn tags(&self) -> &[String] {
        &self.schema.tags
    }

    /// Bits per byte that a secret must have; 0 if that does not matter.
    #[must_use]
    pub fn entropy(&self) -> f64 {
        self.entropy
    }

    /// One of these must stand near a match, if there are any; in lower case.
    #[must_use]
    pub fn keywords(&self) -> &[String] {
        &self.keywords
    }

    /// Templates of text that the rule finds; see [`crate::template`].
    #[must_use]
    pub fn examples(&self) -> &[String] {
        &self.schema.examples
    }

    /// Templates of text that the rule must not find.
    #[must_use]
    pub fn counterexamples(&self) -> &[String] {
        &self.schema.counterexamples
    }

    /// The rule's identity: changes with what it detects, not with its description, severity,
    /// confidence or examples, so that editing those keeps the findings' identities.
    #[must_use]
    pub fn fingerprint(&self) -> RuleFingerprint {
        self.fingerprint
    }

    pub(super) fn derive_fingerprint(&self) -> RuleFingerprint {
        RuleFingerprint::derive(self)
    }
}

/// What decides whether and where the rule finds something.
impl CanonicalBytes for Rule {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        let source = |pattern: &Option<Pattern>, hasher: &mut CanonicalHasher| {
            hasher.value(&pattern.as_ref().map(Pattern::source));
        };
        hasher.value(self.id.as_str());
        source(&self.regex, hasher);
        source(&self.path, hasher);
        hasher.value(&(self.keywords.len() as u32));
        for keyword in &self.keywords {
            hasher.value(keyword.as_str());
        }
        hasher.value(&self.secret_group.map(|group| group as u64));
        hasher.value(&self.entropy.to_bits());
        hasher.value(&(self.allowlists.len() as u32));
        for allowlist in &self.allowlists {
            hasher.value(allowlist);
        }
        hasher.value(&self.checksum.map(|checksum| checksum as u8));
        hasher.value(&u8::from(self.standalone)).value(&u8::from(self.generic));
        hasher.value(&(self.placeholders as u8));
        // Rules without one keep the identity that they had before there were any.
        if let Some(detector) = self.detector {
            hasher.value(&(detector as u8));
        }
        if let Some(surprise) = self.surprise {
            hasher.value(&surprise.to_bits());
        }
        for Required { id, within_lines, within_columns } in &self.required {
            hasher.value(id.as_str()).value(within_lines).value(within_columns);
        }
        if self.skip_report {
            hasher.value(&1_u8);
        }
        if self.encoded {
            hasher.value("encoded");
        }
    }
}
