//! What a command says when it cannot go on: what is wrong, and what to do about it.

use std::fmt;
use std::process::ExitCode;

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong; nothing was done.
    Usage(String),
    /// Something failed or is missing, with what the reader can do about it where we know.
    Problem { what: String, fix: Option<String> },
}

impl Failure {
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::Usage(what.into())
    }

    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Problem { what: what.into(), fix: None }
    }

    /// Adds what to do about it.
    pub(crate) fn fix(self, fix: impl Into<String>) -> Self {
        match self {
            Self::Usage(what) => Self::Usage(what),
            Self::Problem { what, .. } => Self::Problem { what, fix: Some(fix.into()) },
        }
    }

    /// Says where it happened.
    pub(crate) fn within(self, place: impl fmt::Display) -> Self {
        match self {
            Self::Usage(what) => Self::Usage(format!("{place}: {what}")),
            Self::Problem { what, fix } => Self::Problem { what: format!("{place}: {what}"), fix },
        }
    }

    /// Adds another thing to do about it.
    pub(crate) fn or_fix(self, other: impl fmt::Display) -> Self {
        match self {
            Self::Problem { what, fix: Some(fix) } => {
                Self::Problem { what, fix: Some(format!("{fix}\n     or: {other}")) }
            }
            Self::Usage(_) | Self::Problem { .. } => self.fix(other.to_string()),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Problem { .. } => ExitCode::from(1),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Problem { what, fix: None } => f.write_str(what),
            Self::Problem { what, fix: Some(fix) } => write!(f, "{what}\n  to do: {fix}"),
        }
    }
}

/// Turns any error into a [`Failure`] that says what was being done.
pub(crate) trait OrFail<T> {
    fn or_fail(self, doing: impl FnOnce() -> String) -> Result<T>;
}

impl<T, E: fmt::Display> OrFail<T> for std::result::Result<T, E> {
    fn or_fail(self, doing: impl FnOnce() -> String) -> Result<T> {
        self.map_err(|error| Failure::new(format!("{}: {error}", doing())))
    }
}
