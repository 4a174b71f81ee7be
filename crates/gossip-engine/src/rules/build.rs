//! From what a file says of a rule to the rule.

use std::sync::Arc;

use gossip_contracts::identity::RuleFingerprint;
use regex_syntax::hir::Hir;
use toml::Spanned;

use super::rule::Required;
use super::schema::{AllowlistSchema, AssignSchema, RuleSchema};
use super::{Allowlist, Location, Rule, RuleFault, RuleFileError, Syntax, assign, keyword, known};
use crate::limits::{MAX_MATCH_LEN, MAX_REGEX_BYTES};
use crate::literals::{self, Anchor, Facts};
use crate::pattern::{Pattern, PatternFault};

/// An expression, and what the engine needs to know of it.
struct Expression {
    pattern: Pattern,
    anchors: Option<Vec<Anchor>>,
    /// Not counting the whole match.
    groups: usize,
    max_len: usize,
}

/// Builds what a file says, and names the file in what is wrong.
#[derive(Clone, Copy)]
pub(super) struct Builder<'a> {
    pub(super) name: &'a str,
    pub(super) text: &'a str,
    pub(super) syntax: Syntax,
    pub(super) rule: Option<&'a str>,
}

impl Builder<'_> {
    pub(super) fn error(&self, offset: Option<usize>, fault: RuleFault) -> RuleFileError {
        RuleFileError {
            file: self.name.to_owned(),
            at: offset.map(|offset| Location::of(self.text, offset)),
            rule: self.rule.map(str::to_owned),
            fault,
        }
    }

    pub(super) fn toml_error(&self, error: &toml::de::Error) -> RuleFileError {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let unknown = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        let fault = match unknown {
            Some((field, _)) => RuleFault::UnknownField { field: field.to_owned() },
            None => RuleFault::Toml { message },
        };
        let offset = error.span().map(|span| span.start);
        let rule = offset.and_then(|offset| rule_around(self.text, offset));
        Builder { rule: rule.as_deref(), ..*self }.error(offset, fault)
    }

    /// The rule that `schema`, whose table is at `at`, describes. What a rule below it says has no
    /// place in this file, so what is wrong with it is said to be at the table.
    pub(super) fn rule(&self, schema: RuleSchema, at: usize) -> Result<Rule, RuleFileError> {
        let mut rule = Builder { rule: Some(&schema.id), ..*self }.build(&schema, at)?;
        rule.fingerprint = rule.derive_fingerprint();
        rule.schema = Arc::new(schema);
        Ok(rule)
    }

    fn build(&self, schema: &RuleSchema, at: usize) -> Result<Rule, RuleFileError> {
        if schema.entropy.is_nan() || schema.entropy < 0.0 {
            return Err(self.error(Some(at), RuleFault::EntropyOutOfRange));
        }
        let expression = self.expression(schema, at)?;
        let path = schema.path.as_ref().map(|path| self.pattern("path", path)).transpose()?;
        if !schema.matches_something() {
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
        let announced = keyword::anchors(&keywords);
        // A keyword costs a search around it, an anchor a try at its place.
        const SEARCH: f64 = 30.0;
        let (anchors, anchored_by_keyword) = match derived {
            Some(derived) if literals::cost(&announced) * SEARCH >= literals::cost(&derived) => {
                (derived, false)
            }
            _ => (announced, true),
        };
        let allowlists = schema.own_allowlists().map(|list| self.allowlist(list));
        Ok(Rule {
            id: schema.id.clone(),
            description: schema.description.clone(),
            severity: schema.severity.unwrap_or_default(),
            confidence: schema.confidence.unwrap_or_default(),
            regex,
            is_assign: schema.assign.is_some(),
            detector: schema.detect,
            anchors,
            keywords,
            anchored_by_keyword,
            // 0 is gitleaks' way to leave it out.
            secret_group: schema.secret_group.as_ref().map(|at| *at.get_ref()).filter(|at| *at > 0),
            max_match_len,
            path,
            entropy: schema.entropy,
            surprise: schema.surprise,
            allowlists: allowlists.collect::<Result<_, _>>()?,
            checksum: schema.checksum,
            encoded: schema.encoded,
            standalone: schema.standalone,
            generic: schema.generic,
            placeholders: schema.placeholders,
            required: self.required(schema)?,
            skip_report: schema.skip_report,
            declared: (self.name.to_owned(), Location::of(self.text, at)),
            schema: Arc::default(),
            fingerprint: RuleFingerprint::from_bytes([0; 32]),
        })
    }

    fn required(&self, schema: &RuleSchema) -> Result<Vec<Required>, RuleFileError> {
        let required = |spanned: &Spanned<super::schema::RequiredSchema>| {
            let required = spanned.get_ref();
            if required.id.is_empty() {
                return Err(self.error(Some(spanned.span().start), RuleFault::RequiresNothing));
            }
            Ok(Required {
                id: required.id.clone(),
                within_lines: required.within_lines,
                within_columns: required.within_columns,
            })
        };
        schema.required.iter().map(required).collect()
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
        let (pattern, facts) = self.facts("regex", source, offset)?;
        if facts.matches_empty {
            return Err(self.error(Some(offset), RuleFault::MatchesEmpty));
        }
        let Facts { anchors, groups, max_len, .. } = facts;
        let max_len = max_len.unwrap_or(MAX_MATCH_LEN).min(MAX_MATCH_LEN);
        Ok(Expression { pattern, anchors, groups, max_len })
    }

    /// The name announces the match, so it alone is looked into; the long rest is the same for all.
    fn assign(&self, assign: &Spanned<AssignSchema>) -> Result<Expression, RuleFileError> {
        let AssignSchema { name, value } = assign.get_ref();
        let offset = assign.span().start;
        let (_, facts) = self.facts("assign", &assign::name_expression(name), offset)?;
        if facts.groups > 0 {
            let message = "the name may not have groups that capture: write (?:…)".to_owned();
            let fault = RuleFault::BadRegex { field: "assign", message };
            return Err(self.error(Some(offset), fault));
        }
        let source = assign::expression(name, value);
        let pattern = match self.syntax {
            Syntax::Go => self.parse("assign", &source, offset)?.0,
            Syntax::Own => Pattern::known_to_parse(source),
        };
        let anchors = facts.anchors;
        Ok(Expression { pattern, anchors, groups: 1, max_len: assign::MAX_LEN })
    }

    /// An expression and what is to know of it, which for the built-in ones is known.
    fn facts(
        &self,
        field: &'static str,
        source: &str,
        offset: usize,
    ) -> Result<(Pattern, Facts), RuleFileError> {
        let known = if self.syntax == Syntax::Own { known::facts(source) } else { None };
        match known {
            Some(facts) => Ok((Pattern::known_to_parse(source.to_owned()), facts)),
            None => {
                let (pattern, hir) = self.parse(field, source, offset)?;
                Ok((pattern, Facts::of(&hir)))
            }
        }
    }

    pub(super) fn allowlist(
        &self,
        list: &Spanned<AllowlistSchema>,
    ) -> Result<Allowlist, RuleFileError> {
        let patterns = |field, sources: &[Spanned<String>]| {
            sources.iter().map(|source| self.pattern(field, source)).collect::<Result<Vec<_>, _>>()
        };
        let schema = list.get_ref();
        let allowlist = Allowlist {
            condition: schema.condition,
            commits: schema.commits.clone(),
            paths: patterns("allowlists.paths", &schema.paths)?,
            target: schema.regex_target,
            regexes: patterns("allowlists.regexes", &schema.regexes)?,
            stopwords: schema.stopwords.iter().map(|word| word.to_ascii_lowercase()).collect(),
            target_rules: schema.target_rules.iter().map(|id| id.get_ref().clone()).collect(),
            is_local: schema.is_local,
            at: Location::of(self.text, list.span().start),
        };
        let empty = allowlist.commits.is_empty()
            && allowlist.paths.is_empty()
            && allowlist.regexes.is_empty()
            && allowlist.stopwords.is_empty();
        if empty {
            return Err(self.error(Some(list.span().start), RuleFault::EmptyAllowlist));
        }
        Ok(allowlist)
    }

    fn pattern(
        &self,
        field: &'static str,
        source: &Spanned<String>,
    ) -> Result<Pattern, RuleFileError> {
        // Those of built-in rules are parsed by a test, and not whenever a program starts.
        if self.syntax == Syntax::Own {
            return Ok(Pattern::known_to_parse(source.get_ref().clone()));
        }
        self.parse(field, source.get_ref(), source.span().start).map(|(pattern, _)| pattern)
    }

    fn parse(
        &self,
        field: &'static str,
        source: &str,
        offset: usize,
    ) -> Result<(Pattern, Hir), RuleFileError> {
        let parsed = Pattern::parse(source).and_then(|(pattern, hir)| {
            // So that one that is too large is refused.
            if self.syntax == Syntax::Go {
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
