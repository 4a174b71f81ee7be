//! From the text of a rule file to rules.

use std::collections::BTreeSet;

use gossip_contracts::identity::RuleFingerprint;
use regex_syntax::hir::Hir;
use toml::Spanned;

use super::schema::{AllowlistSchema, AssignSchema, FileSchema, RuleSchema};
use super::{Allowlist, Location, Rule, RuleFault, RuleFileError, assign};
use crate::limits::{MAX_MATCH_LEN, MAX_REGEX_BYTES, NEARBY};
use crate::literals::{self, Anchor, MAX_ANCHOR_LEN, MIN_ANCHOR_LEN, Next, Reach};
use crate::pattern::{Pattern, PatternFault};

/// What a file says.
pub(super) struct RuleFile {
    pub(super) rules: Vec<Rule>,
    pub(super) allowlists: Vec<Allowlist>,
    pub(super) use_default: bool,
    pub(super) disabled: Vec<(String, Location)>,
}

/// When expressions are compiled.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compile {
    /// While reading, so that one that is too large is refused.
    Now,
    /// When first needed: for files that a test has already compiled.
    WhenNeeded,
}

/// Reads `text`, which errors call `name`.
pub(super) fn read(name: &str, text: &str, compile: Compile) -> Result<RuleFile, RuleFileError> {
    let reader = Reader { name, text, compile, rule: None };
    let schema: FileSchema = toml::from_str(text).map_err(|error| reader.toml_error(&error))?;
    for (field, value) in [("extend.path", &schema.extend.path), ("extend.url", &schema.extend.url)]
    {
        if let Some(value) = value {
            let reason = "name every file yourself, the engine reads none";
            let fault = RuleFault::Unsupported { field, reason };
            return Err(reader.error(Some(value.span().start), fault));
        }
    }
    let mut seen = BTreeSet::new();
    let mut rules = Vec::new();
    for rule in &schema.rules {
        let at = rule.span().start;
        let rule = rule.get_ref();
        if rule.id.trim().is_empty() {
            return Err(reader.error(Some(at), RuleFault::EmptyId));
        }
        let reader = Reader { rule: Some(&rule.id), ..reader };
        if !seen.insert(&rule.id) {
            return Err(reader.error(Some(at), RuleFault::DuplicateId));
        }
        rules.push(reader.rule(rule, at)?);
    }
    let allowlists = reader.allowlists(schema.allowlist.iter().chain(&schema.allowlists))?;
    let disabled = schema.extend.disabled_rules.iter();
    let disabled =
        disabled.map(|id| (id.get_ref().clone(), Location::of(text, id.span().start))).collect();
    Ok(RuleFile { rules, allowlists, use_default: schema.extend.use_default, disabled })
}

/// What the engine needs to know of an expression.
struct Expression {
    pattern: Pattern,
    anchors: Option<Vec<Anchor>>,
    /// Not counting the whole match.
    groups: usize,
    max_len: usize,
}

#[derive(Clone, Copy)]
struct Reader<'a> {
    name: &'a str,
    text: &'a str,
    compile: Compile,
    rule: Option<&'a str>,
}

impl Reader<'_> {
    fn error(&self, offset: Option<usize>, fault: RuleFault) -> RuleFileError {
        RuleFileError {
            file: self.name.to_owned(),
            at: offset.map(|offset| Location::of(self.text, offset)),
            rule: self.rule.map(str::to_owned),
            fault,
        }
    }

    fn toml_error(&self, error: &toml::de::Error) -> RuleFileError {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        let fault = match unknown {
            Some((field, _)) => RuleFault::UnknownField { field: field.to_owned() },
            None => RuleFault::Toml { message },
        };
        let offset = error.span().map(|span| span.start);
        let rule = offset.and_then(|offset| rule_around(self.text, offset));
        Reader { rule: rule.as_deref(), ..*self }.error(offset, fault)
    }

    fn rule(&self, schema: &RuleSchema, at: usize) -> Result<Rule, RuleFileError> {
        if schema.skip_report || schema.required.is_some() {
            let field = if schema.skip_report { "skipReport" } else { "required" };
            let reason = "every rule stands by itself";
            return Err(self.error(Some(at), RuleFault::Unsupported { field, reason }));
        }
        if !(0.0..=8.0).contains(&schema.entropy) {
            return Err(self.error(Some(at), RuleFault::EntropyOutOfRange));
        }
        let expression = self.expression(schema, at)?;
        let path = schema.path.as_ref().map(|path| self.pattern("path", path)).transpose()?;
        if expression.is_none() && path.is_none() && schema.detect.is_none() {
            return Err(self.error(Some(at), RuleFault::NothingToMatch));
        }
        let groups = expression.as_ref().map_or(0, |expression| expression.groups);
        if let Some(group) = &schema.secret_group
            && *group.get_ref() > groups
        {
            let fault = RuleFault::SecretGroupOutOfRange { group: *group.get_ref(), groups };
            return Err(self.error(Some(group.span().start), fault));
        }
        let keywords: Vec<_> =
            schema.keywords.iter().map(|keyword| keyword.to_ascii_lowercase()).collect();
        let (regex, derived, max_match_len) = match (expression, schema.detect) {
            (Some(Expression { pattern, anchors, max_len, .. }), _) => {
                (Some(pattern), anchors, max_len)
            }
            (None, Some(detector)) => (None, Some(detector.anchors()), 0),
            (None, None) => (None, None, 0),
        };
        let announced = keyword_anchors(&keywords);
        // A keyword costs a search around it, an anchor a try at its place.
        const SEARCH: f64 = 30.0;
        let (anchors, anchored_by_keyword) = match derived {
            Some(derived) if literals::cost(&announced) * SEARCH >= literals::cost(&derived) => {
                (derived, false)
            }
            _ => (announced, true),
        };
        let allowlists = self.allowlists(schema.allowlist.iter().chain(&schema.allowlists))?;
        let mut rule = Rule {
            id: schema.id.clone(),
            description: schema.description.clone(),
            severity: schema.severity,
            confidence: schema.confidence,
            regex,
            is_assign: schema.assign.is_some(),
            detector: schema.detect,
            anchors,
            keywords,
            anchored_by_keyword,
            secret_group: schema.secret_group.as_ref().map(|group| *group.get_ref()),
            max_match_len,
            path,
            entropy: schema.entropy,
            surprise: schema.surprise,
            allowlists,
            checksum: schema.checksum,
            standalone: schema.standalone,
            generic: schema.generic,
            placeholders: schema.placeholders,
            examples: schema.examples.clone(),
            counterexamples: schema.counterexamples.clone(),
            fingerprint: RuleFingerprint::from_bytes([0; 32]),
        };
        rule.fingerprint = rule.derive_fingerprint();
        Ok(rule)
    }

    fn expression(
        &self,
        schema: &RuleSchema,
        at: usize,
    ) -> Result<Option<Expression>, RuleFileError> {
        match (&schema.regex, &schema.assign, schema.detect) {
            (None, None, _) => Ok(None),
            (Some(regex), None, None) => self.regex(regex.get_ref(), regex.span().start).map(Some),
            (None, Some(assign), None) => self.assign(assign).map(Some),
            _ => Err(self.error(Some(at), RuleFault::TwoExpressions)),
        }
    }

    fn regex(&self, source: &str, offset: usize) -> Result<Expression, RuleFileError> {
        let (pattern, hir) = self.parse("regex", source, offset)?;
        let properties = hir.properties();
        if properties.minimum_len() == Some(0) {
            return Err(self.error(Some(offset), RuleFault::MatchesEmpty));
        }
        Ok(Expression {
            pattern,
            anchors: literals::anchors(&hir),
            groups: properties.explicit_captures_len(),
            max_len: properties.maximum_len().unwrap_or(MAX_MATCH_LEN).min(MAX_MATCH_LEN),
        })
    }

    /// The name announces the match, so it alone is looked into; the long rest is the same for all.
    fn assign(&self, assign: &Spanned<AssignSchema>) -> Result<Expression, RuleFileError> {
        let AssignSchema { name, value } = assign.get_ref();
        let offset = assign.span().start;
        let (_, hir) = self.parse("assign", &assign::name_expression(name), offset)?;
        if hir.properties().explicit_captures_len() > 0 {
            let message = "the name may not have groups that capture: write (?:…)".to_owned();
            let fault = RuleFault::BadRegex { field: "assign", message };
            return Err(self.error(Some(offset), fault));
        }
        let source = assign::expression(name, value);
        let pattern = match self.compile {
            Compile::Now => self.parse("assign", &source, offset)?.0,
            Compile::WhenNeeded => Pattern::known_to_parse(source),
        };
        let anchors = literals::anchors(&hir);
        Ok(Expression { pattern, anchors, groups: 1, max_len: assign::MAX_LEN })
    }

    fn allowlists<'s>(
        &self,
        schemas: impl Iterator<Item = &'s AllowlistSchema>,
    ) -> Result<Vec<Allowlist>, RuleFileError> {
        schemas.map(|schema| self.allowlist(schema)).collect()
    }

    fn allowlist(&self, schema: &AllowlistSchema) -> Result<Allowlist, RuleFileError> {
        let patterns = |field, sources: &[Spanned<String>]| {
            sources.iter().map(|source| self.pattern(field, source)).collect::<Result<Vec<_>, _>>()
        };
        let allowlist = Allowlist {
            condition: schema.condition,
            commits: schema.commits.clone(),
            paths: patterns("allowlists.paths", &schema.paths)?,
            target: schema.regex_target,
            regexes: patterns("allowlists.regexes", &schema.regexes)?,
            stopwords: schema.stopwords.iter().map(|word| word.to_ascii_lowercase()).collect(),
            target_rules: schema.target_rules.clone(),
        };
        let empty = allowlist.commits.is_empty()
            && allowlist.paths.is_empty()
            && allowlist.regexes.is_empty()
            && allowlist.stopwords.is_empty();
        if empty { Err(self.error(None, RuleFault::EmptyAllowlist)) } else { Ok(allowlist) }
    }

    fn pattern(
        &self,
        field: &'static str,
        source: &Spanned<String>,
    ) -> Result<Pattern, RuleFileError> {
        self.parse(field, source.get_ref(), source.span().start).map(|(pattern, _)| pattern)
    }

    fn parse(
        &self,
        field: &'static str,
        source: &str,
        offset: usize,
    ) -> Result<(Pattern, Hir), RuleFileError> {
        let parsed = Pattern::parse(source).and_then(|(pattern, hir)| {
            if self.compile == Compile::Now {
                pattern.compile()?;
            }
            Ok((pattern, hir))
        });
        parsed.map_err(|fault| {
            let fault = match fault {
                PatternFault::Invalid(message) => RuleFault::BadRegex { field, message },
                PatternFault::TooLarge => {
                    RuleFault::RegexTooLarge { field, limit: MAX_REGEX_BYTES }
                }
            };
            self.error(Some(offset), fault)
        })
    }
}

/// Keywords as anchors of an expression that guarantees no literal. One that is too short leaves
/// the rule without any: the others could miss what it announces.
fn keyword_anchors(keywords: &[String]) -> Vec<Anchor> {
    if keywords.iter().any(|keyword| keyword.len() < MIN_ANCHOR_LEN) {
        return Vec::new();
    }
    let anchor = |keyword: &String| Anchor {
        bytes: keyword.bytes().take(MAX_ANCHOR_LEN).collect(),
        ignore_case: true,
        next: Next::ANY,
        reach: Reach { min: 0, max: NEARBY },
    };
    keywords.iter().map(anchor).collect()
}

/// The id of the rule in whose table the offset is, for faults that keep the file from being read.
fn rule_around(text: &str, offset: usize) -> Option<String> {
    let start = text.get(..offset)?.rfind("[[rules]]")?;
    let table = &text[start + "[[rules]]".len()..];
    let table = &table[..table.find("[[rules]]").unwrap_or(table.len())];
    let value = table.lines().find_map(|line| {
        line.trim().strip_prefix("id")?.trim_start().strip_prefix('=').map(str::trim)
    })?;
    Some(value.trim_matches(['"', '\'']).to_owned())
}
