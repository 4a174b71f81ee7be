//! What an answer of the operating system means to a listing or a reader.

use gossip_contracts::connector::{ConnectorError, SkipReason};
use rustix::io::Errno;

/// Why something that was there cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FsError {
    /// It is not there any more, or something else is: a link took its place.
    Gone,
    /// The rights at hand do not suffice.
    Denied,
    /// The system is short of something; another time it may work.
    Short(Errno),
    /// It does not work.
    Broken(Errno),
}

impl From<Errno> for FsError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV => Self::Gone,
            Errno::ACCESS | Errno::PERM => Self::Denied,
            Errno::AGAIN
            | Errno::BUSY
            | Errno::INTR
            | Errno::MFILE
            | Errno::NFILE
            | Errno::NOMEM
            | Errno::NOBUFS
            | Errno::STALE
            | Errno::TIMEDOUT => Self::Short(errno),
            _ => Self::Broken(errno),
        }
    }
}

impl FsError {
    /// As the answer to `operation` on the thing itself.
    pub(super) fn into_error(self, operation: &'static str) -> ConnectorError {
        match self {
            Self::Gone => ConnectorError::NotFound { operation },
            Self::Denied => ConnectorError::PermissionDenied { operation },
            Self::Short(errno) => {
                ConnectorError::Retryable { operation, message: errno.to_string() }
            }
            Self::Broken(errno) => {
                ConnectorError::Permanent { operation, message: errno.to_string() }
            }
        }
    }

    /// As met by a listing that can go on without it: the reason to report, none if it is gone. An
    /// error if the listing itself should wait.
    pub(super) fn skip(self) -> Result<Option<SkipReason>, ConnectorError> {
        match self {
            Self::Gone => Ok(None),
            Self::Denied => Ok(Some(SkipReason::PermissionDenied)),
            Self::Broken(_) => Ok(Some(SkipReason::Unreadable)),
            Self::Short(_) => Err(self.into_error("list")),
        }
    }
}
