//! Why bytes are not a record.

use gossip_contracts::coordination::ShardSpecInputError;

use crate::invariants::InvariantViolation;
use crate::run::RunConfigError;

/// What an encoded record is of: its first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum RecordKind {
    /// A [`ShardRecord`](crate::ShardRecord).
    Shard = 1,
    /// A [`RunRecord`](crate::RunRecord).
    Run = 2,
    /// An [`OwnerRecord`](crate::OwnerRecord).
    Owner = 3,
    /// A [`GateRecord`](crate::GateRecord).
    Gate = 4,
}

impl RecordKind {
    /// The format version of this kind that is written, and the newest that is read. Every version
    /// from 1 on is read.
    #[must_use]
    pub const fn newest_version(self) -> u8 {
        match self {
            Self::Shard | Self::Owner => 1,
            Self::Run | Self::Gate => 2,
        }
    }
}

/// Why bytes were not decoded. Names fields and sizes, never what a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum CodecError {
    /// The bytes end before the record does.
    #[error("the record ends inside {field}")]
    Truncated {
        /// Where.
        field: &'static str,
    },
    /// The record ends before the bytes do.
    #[error("{count} bytes follow the record")]
    TrailingBytes {
        /// How many, the checksum not counted.
        count: usize,
    },
    /// The bytes are of another record.
    #[error("this is no {expected:?} record: its kind is {found}")]
    WrongKind {
        /// What was asked for.
        expected: RecordKind,
        found: u8,
    },
    /// A newer program wrote the record.
    #[error(
        "the {kind:?} record has format version {found}; this program reads up to {newest}: upgrade it"
    )]
    NewerVersion {
        kind: RecordKind,
        found: u8,
        /// The newest that can be read.
        newest: u8,
    },
    /// There never was such a version.
    #[error("there is no format version {found}")]
    UnknownVersion { found: u8 },
    /// The bytes are not those that were written.
    #[error("the checksum does not match")]
    ChecksumMismatch,
    /// An enum or option has no such variant.
    #[error("{field} cannot be {value}")]
    BadDiscriminant {
        /// The field that holds it.
        field: &'static str,
        value: u8,
    },
    /// A field is larger than it may be.
    #[error("{field} has size {size}; at most {max} are allowed")]
    LimitExceeded {
        /// The field whose length it is.
        field: &'static str,
        /// Bytes or elements given.
        size: usize,
        /// Bytes or elements allowed.
        max: usize,
    },
    /// A time, fence or hash is zero, which means "unset".
    #[error("{field} is zero")]
    Zero {
        /// The field that must not be zero.
        field: &'static str,
    },
    /// The shard's range is not valid.
    #[error("the range is not valid: {0}")]
    SpecInvalid(#[from] ShardSpecInputError),
    /// The shard's cursor lies outside its range.
    #[error("the cursor lies outside the shard's range")]
    CursorOutOfBounds,
    /// The run's configuration is not valid.
    #[error("the run's configuration is not valid: {0}")]
    ConfigInvalid(#[from] RunConfigError),
    /// The record breaks an invariant.
    #[error("{0}")]
    Invariant(#[from] InvariantViolation),
}
