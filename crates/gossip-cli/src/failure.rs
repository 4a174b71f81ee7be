//! One line for the user: what was wrong, with what, and what to do.

use std::fmt;
use std::io;
use std::path::Path;

use gossip_contracts::connector::ConnectorError;

use crate::say::shown;

/// Why a command did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    closed_pipe: bool,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), closed_pipe: false }
    }

    /// Something about a file.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Self {
        Self::new(format!("{}: {error}", shown(path)))
    }

    /// The same, of a file.
    pub(crate) fn about(self, path: &Path) -> Self {
        Self { message: format!("{}: {}", shown(path), self.message), ..self }
    }

    pub(crate) fn is_closed_pipe(&self) -> bool {
        self.closed_pipe
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Writing to standard output failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let closed_pipe = error.kind() == io::ErrorKind::BrokenPipe;
        Self { message: format!("the output could not be written: {error}"), closed_pipe }
    }
}

impl From<gossip_runtime::ReportError> for Failure {
    fn from(error: gossip_runtime::ReportError) -> Self {
        match error {
            gossip_runtime::ReportError::State(error) => error.into(),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<gossip_runtime::ScanError> for Failure {
    fn from(error: gossip_runtime::ScanError) -> Self {
        match error {
            // It says of itself what is wrong, and with what.
            gossip_runtime::ScanError::Source(ConnectorError::Permanent { message, .. }) => {
                Self::new(message)
            }
            gossip_runtime::ScanError::State(error) => error.into(),
            error => Self::new(error.to_string()),
        }
    }
}

impl From<gossip_runtime::StateError> for Failure {
    fn from(error: gossip_runtime::StateError) -> Self {
        use gossip_runtime::StateError::{Database, Io};
        let message = error.to_string();
        // Others say what to do.
        let is_of_the_system = match &error {
            Io { .. } => true,
            Database(_) => message.contains("cannot be opened"),
            _ => false,
        };
        let hint = "; scans are remembered there, so it must be writable and have room: --state-dir \
                    DIR names another place";
        Self::new(if is_of_the_system { message + hint } else { message })
    }
}
