//! What can be wrong with a rule file.

use std::fmt;

/// Where in a rule file, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    /// Counted from one.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl Location {
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = &text.as_bytes()[..offset.min(text.len())];
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        let column = String::from_utf8_lossy(&before[line_start..]).chars().count() + 1;
        Self { line, column }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// Why a rule file was refused. Nothing of it is used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {}{fault}", Here(.at), InRule(.rule))]
pub struct RuleFileError {
    /// The file's name, as the caller gave it.
    pub file: String,
    /// Where, if that is known.
    pub at: Option<Location>,
    /// The id of the rule, if the fault is in one.
    pub rule: Option<String>,
    /// What is wrong.
    pub fault: RuleFault,
}

/// What is wrong in a rule file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleFault {
    /// Not TOML, or a value of the wrong kind.
    #[error("{message}")]
    Toml {
        /// The parser's words.
        message: String,
    },
    /// A field that no rule file has; a misspelt one would silently do nothing.
    #[error("unknown field `{field}`")]
    UnknownField {
        /// As the file spells it.
        field: String,
    },
    /// A field that needs what the engine does not do.
    #[error("`{field}` is not supported: {reason}")]
    Unsupported {
        /// As gitleaks spells it.
        field: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A rule without an id.
    #[error("a rule needs a non-empty `id`")]
    EmptyId,
    /// Both of gitleaks' spellings of allow-lists.
    #[error("`allowlist` is the older spelling of `allowlists`: a file has one of them")]
    OldAndNewAllowlists,
    /// Both `extend.useDefault` and `extend.path`.
    #[error("a file extends the default rules or another file, not both")]
    TwoBases,
    /// The file that this one extends.
    #[error("`extend.path`: {message}")]
    BaseNotRead {
        /// Why not.
        message: String,
    },
    /// An allow-list for a rule that does not exist.
    #[error("there is no rule `{id}` to allow something of")]
    UnknownTarget {
        /// The id that no rule has.
        id: String,
    },
    /// A rule requires one that does not exist.
    #[error("there is no rule `{id}`, which this one requires")]
    UnknownRequired {
        /// The id that no rule has.
        id: String,
    },
    /// A `required` without an id.
    #[error("`required` needs the `id` of a rule")]
    RequiresNothing,
    /// Neither `regex`, `assign`, `detect` nor `path`.
    #[error("a rule needs `regex`, `assign`, `detect` or `path`")]
    NothingToMatch,
    /// More than one of `regex`, `assign` and `detect`.
    #[error("a rule has one of `regex`, `assign` and `detect`")]
    TwoExpressions,
    /// A regular expression that does not parse.
    #[error("`{field}` is not a valid regular expression: {message}")]
    BadRegex {
        /// The field that holds the expression.
        field: &'static str,
        /// The parser's words.
        message: String,
    },
    /// A regular expression whose compiled form is too large.
    #[error("`{field}` is too large: its compiled form exceeds {limit} bytes")]
    RegexTooLarge {
        /// The field that holds the expression.
        field: &'static str,
        /// The most bytes that a compiled expression may take.
        limit: usize,
    },
    /// An expression that matches nothing at all everywhere.
    #[error("`regex` matches the empty string")]
    MatchesEmpty,
    /// A group that the expression does not have.
    #[error("`secretGroup` is {group}, but the expression has {groups} groups")]
    SecretGroupOutOfRange {
        /// As written.
        group: usize,
        /// The capture groups that there are.
        groups: usize,
    },
    /// Entropy is bits per byte; above 8 a rule finds nothing.
    #[error("`entropy` must not be negative")]
    EntropyOutOfRange,
    /// An allow-list that allows nothing.
    #[error("an allow-list needs `regexes`, `paths`, `stopwords` or `commits`")]
    EmptyAllowlist,
    /// More rules than an engine takes.
    #[error("more than {limit} rules")]
    TooManyRules {
        /// The most rules that an engine takes.
        limit: usize,
    },
}

/// What a rule file says that is worth telling, and no reason to refuse it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum RuleNote {
    /// A rule that is to be disabled does not exist.
    #[error("{file}:{at}: there is no rule `{id}` to disable")]
    NothingToDisable { file: String, at: Location, id: String },
    /// Two rules of the same id: the last counts.
    #[error("{file}:{at}: the id `{id}` is used twice; the last rule counts")]
    IdTwice { file: String, at: Location, id: String },
    /// A rule of gitleaks is adjusted that has no counterpart here.
    #[error(
        "{file}:{at}: `{id}` is a rule of gitleaks; no rule here is for the same, so nothing changes"
    )]
    NothingToAdjust { file: String, at: Location, id: String },
    /// A chain of what files extend is longer than gitleaks follows.
    #[error(
        "{file}:{at}: `extend` is not followed: gitleaks follows it twice in a chain, and so do we"
    )]
    ChainTooLong { file: String, at: Location },
}

struct Here<'a>(&'a Option<Location>);

impl fmt::Display for Here<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |at| write!(f, ":{at}"))
    }
}

struct InRule<'a>(&'a Option<String>);

impl fmt::Display for InRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |rule| write!(f, "rule `{rule}`: "))
    }
}
