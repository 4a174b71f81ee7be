//! A regular expression over bytes: parsed when its rule is read, those of built-in rules when the
//! engine is built, and compiled when first needed.
//!
//! Most rules never meet their anchor in a scan, so a short scan compiles few expressions. Classes
//! and boundaries are ASCII, as in the rule files that users bring.

use std::sync::OnceLock;

use regex_automata::meta;
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;

use crate::limits::MAX_REGEX_BYTES;

/// Why an expression cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternFault {
    Invalid(String),
    TooLarge,
}

/// An expression that is known to parse.
#[derive(Clone)]
pub(crate) struct Pattern {
    source: String,
    regex: OnceLock<meta::Regex>,
}

pub(crate) fn syntax_config() -> syntax::Config {
    syntax::Config::new().unicode(false).utf8(false).nest_limit(100)
}

impl Pattern {
    /// Parses, and gives the syntax tree for whoever wants to look into it.
    pub(crate) fn parse(source: &str) -> Result<(Self, Hir), PatternFault> {
        let hir = syntax::parse_with(source, &syntax_config())
            .map_err(|error| PatternFault::Invalid(one_line(&error.to_string())))?;
        Ok((Self { source: source.to_owned(), regex: OnceLock::new() }, hir))
    }

    /// One that the build script or a test has parsed.
    pub(crate) fn known_to_parse(source: String) -> Self {
        Self { source, regex: OnceLock::new() }
    }

    /// Compiles now, so that an expression that is too large is refused when it is read.
    pub(crate) fn compile(&self) -> Result<(), PatternFault> {
        if self.regex.get().is_none() {
            let _ = self.regex.set(build(&self.source)?);
        }
        Ok(())
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// # Panics
    /// If a built-in expression does not compile; a test compiles them all.
    pub(crate) fn regex(&self) -> &meta::Regex {
        self.regex.get_or_init(|| match build(&self.source) {
            Ok(regex) => regex,
            Err(fault) => panic!("`{}` does not compile: {fault:?}", self.source),
        })
    }

    /// One expression that matches what any of these does; none if it would be too large.
    pub(crate) fn any_of<'p>(patterns: impl Iterator<Item = &'p Self>) -> Option<meta::Regex> {
        let sources: Vec<_> = patterns.map(Self::source).collect();
        meta::Builder::new().syntax(syntax_config()).configure(config()).build_many(&sources).ok()
    }

    pub(crate) fn is_match(&self, text: &[u8]) -> bool {
        self.regex().is_match(text)
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pattern({:?})", self.source)
    }
}

fn config() -> meta::Config {
    meta::Config::new()
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_REGEX_BYTES))
        .onepass_size_limit(Some(256 * 1024))
        .hybrid_cache_capacity(512 * 1024)
        .auto_prefilter(false)
}

fn build(source: &str) -> Result<meta::Regex, PatternFault> {
    let builder = &mut meta::Builder::new();
    builder.syntax(syntax_config()).configure(config()).build(source).map_err(|error| {
        match error.size_limit() {
            Some(_) => PatternFault::TooLarge,
            None => PatternFault::Invalid(one_line(&error.to_string())),
        }
    })
}

/// The last line of a parser's message is what is wrong; the lines above draw where.
fn one_line(message: &str) -> String {
    let last = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(message);
    last.trim().trim_start_matches("error: ").to_owned()
}
