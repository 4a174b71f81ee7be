//! The shared vocabulary of refusals.

use core::fmt;

use gossip_contracts::coordination::SplitValidationError;
use gossip_contracts::identity::{FenceEpoch, LogicalTime, OpId, RunId, ShardKey, TenantId};

use crate::run::RunStatus;
use crate::status::ShardStatus;

/// Everything that the rules for workers' operations can refuse. Operations return narrower enums
/// made from it.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum CoordError {
    /// The tenant has no such shard.
    #[error("there is no shard {shard}")]
    ShardNotFound { shard: ShardKey },
    /// The lease belongs to another tenant than the request.
    #[error("the lease does not belong to tenant {expected}")]
    TenantMismatch {
        /// The tenant of the request.
        expected: TenantId,
    },
    /// Somebody else has acquired the shard since: the presenter is a zombie.
    #[error("the shard is at fence {current}; the lease holds {presented}")]
    StaleFence {
        /// The lease's fence.
        presented: FenceEpoch,
        /// The shard's fence.
        current: FenceEpoch,
    },
    /// The lease ran out.
    #[error("the lease ended at {deadline}; it is {now}")]
    LeaseExpired {
        deadline: LogicalTime,
        /// The time of the request.
        now: LogicalTime,
    },
    /// Workers are finished with the shard.
    #[error("shard {shard} is {status:?}")]
    ShardTerminal { shard: ShardKey, status: ShardStatus },
    /// The shard's run is not active.
    #[error("run {run} is {status:?}")]
    RunNotActive { run: RunId, status: RunStatus },
    /// The operation id was used before with other parameters.
    #[error("operation {op_id} was used before with other parameters")]
    OpIdConflict {
        op_id: OpId,
        /// Hash of the earlier parameters; never shown.
        expected_hash: u64,
        /// Hash of these parameters; never shown.
        actual_hash: u64,
    },
    /// The cursor would move back: to a lesser key, or at the same key to a lesser token.
    #[error(
        "the cursor would move back (from a key of {} to one of {}; at the same key, to a lesser \
         token)",
        Length(*old_key),
        Length(*new_key)
    )]
    CursorRegression {
        /// Length of the current key.
        old_key: Option<usize>,
        /// Length of the offered key.
        new_key: Option<usize>,
    },
    /// The cursor lies outside the shard.
    #[error("the cursor lies outside the shard: {0}")]
    CursorOutOfBounds(CursorOutOfBoundsDetail),
    /// The cursor's key is too long.
    #[error("the cursor key has {size} bytes; at most {max} are allowed")]
    CursorKeyTooLarge { size: usize, max: usize },
    /// The cursor's token is too long.
    #[error("the cursor token has {size} bytes; at most {max} are allowed")]
    CursorTokenTooLarge { size: usize, max: usize },
    /// The split plan does not fit the shard.
    #[error("the split is not valid: {0}")]
    SplitInvalid(#[source] SplitValidationError),
    /// A checkpoint or completion without a last key.
    #[error("a checkpoint needs the last key that was handled")]
    CheckpointMissingKey,
}

/// The variant, and as `Display`: the fields of some are not for showing.
impl fmt::Debug for CoordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variant = match self {
            Self::ShardNotFound { .. } => "ShardNotFound",
            Self::TenantMismatch { .. } => "TenantMismatch",
            Self::StaleFence { .. } => "StaleFence",
            Self::LeaseExpired { .. } => "LeaseExpired",
            Self::ShardTerminal { .. } => "ShardTerminal",
            Self::RunNotActive { .. } => "RunNotActive",
            Self::OpIdConflict { .. } => "OpIdConflict",
            Self::CursorRegression { .. } => "CursorRegression",
            Self::CursorOutOfBounds(_) => "CursorOutOfBounds",
            Self::CursorKeyTooLarge { .. } => "CursorKeyTooLarge",
            Self::CursorTokenTooLarge { .. } => "CursorTokenTooLarge",
            Self::SplitInvalid(_) => "SplitInvalid",
            Self::CheckpointMissingKey => "CheckpointMissingKey",
        };
        write!(f, "CoordError::{variant}({self})")
    }
}

/// Lengths of what was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CursorOutOfBoundsDetail {
    /// Length of the cursor's key.
    pub last_key: usize,
    /// Length of the shard's first key.
    pub spec_start: usize,
    /// Length of the first key behind the shard.
    pub spec_end: usize,
}

impl fmt::Display for CursorOutOfBoundsDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a key of {} bytes, bounds of {} and {} bytes",
            self.last_key, self.spec_start, self.spec_end
        )
    }
}

/// The length of a key that may be absent.
pub(super) struct Length(pub(super) Option<usize>);

impl fmt::Display for Length {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(len) => write!(f, "{len} bytes"),
            None => f.write_str("none"),
        }
    }
}
