//! One enum per worker's operation, with only the refusals that it can return.
//!
//! The tables at the end of this file are the routing: which [`CoordError`] each operation accepts
//! and which it rejects. Together they must name every variant, so a new one does not compile
//! until every operation has an answer.

use core::fmt;

use gossip_contracts::coordination::SplitValidationError;
use gossip_contracts::identity::{FenceEpoch, LogicalTime, OpId, RunId, ShardKey, TenantId};
use gossip_stdx::SlabFull;

use super::coord::{CoordError, CursorOutOfBoundsDetail, Length};
use super::infra::InfraError;
use crate::run::RunStatus;
use crate::status::ShardStatus;

/// Writes out one operation's enum and its `From<CoordError>` from a row of the table.
macro_rules! operation_error {
    ($(#[$meta:meta])* $name:ident {
        accepts: [$($accepted:ident)*],
        rejects: [$($rejected:ident)*],
        adds: [$($added:ident)*],
    }) => {
        operation_error!(@enum [$(#[$meta])* $name] {} $($accepted)* $($added)* BackendError);

        impl From<CoordError> for $name {
            fn from(error: CoordError) -> Self {
                operation_error!(@match error {} [$($accepted)*] [$($rejected)*])
            }
        }

        /// The variant, and as `Display`: the fields of some are not for showing.
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let variant = match self {
                    $(Self::$accepted { .. } => stringify!($accepted),)*
                    $(Self::$added { .. } => stringify!($added),)*
                    Self::BackendError { .. } => "BackendError",
                };
                write!(f, concat!(stringify!($name), "::{}({})"), variant, self)
            }
        }
    };

    // The enum, variant by variant.
    (@enum [$(#[$meta:meta])* $name:ident] { $($body:tt)* }) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, thiserror::Error)]
        #[non_exhaustive]
        #[allow(missing_docs, reason = "the fields name themselves")]
        pub enum $name { $($body)* }
    };
    (@enum $head:tt { $($body:tt)* } ShardNotFound $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The tenant has no such shard.
            #[error("there is no shard {shard}")]
            ShardNotFound {
                shard: ShardKey,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } TenantMismatch $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The lease belongs to another tenant than the request.
            #[error("the lease does not belong to tenant {expected}")]
            TenantMismatch {
                /// The tenant of the request.
                expected: TenantId,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } StaleFence $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// Somebody else has acquired the shard since: stop working on it.
            #[error("the shard is at fence {current}; the lease holds {presented}")]
            StaleFence {
                /// The lease's fence.
                presented: FenceEpoch,
                /// The shard's fence.
                current: FenceEpoch,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } LeaseExpired $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The lease ran out: acquire the shard again.
            #[error("the lease ended at {deadline}; it is {now}")]
            LeaseExpired {
                deadline: LogicalTime,
                /// The time of the request.
                now: LogicalTime,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } ShardTerminal $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// Workers are finished with the shard.
            #[error("shard {shard} is {status:?}")]
            ShardTerminal {
                shard: ShardKey,
                status: ShardStatus,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } RunNotActive $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The shard's run is not active.
            #[error("run {run} is {status:?}")]
            RunNotActive {
                run: RunId,
                status: RunStatus,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } OpIdConflict $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The operation id was used before with other parameters.
            #[error("operation {op_id} was used before with other parameters")]
            OpIdConflict {
                op_id: OpId,
                /// Hash of the earlier parameters; never shown.
                expected_hash: u64,
                /// Hash of these parameters; never shown.
                actual_hash: u64,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } CursorRegression $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The cursor would move back: to a lesser key, or at the same key to a lesser token.
            #[error(
                "the cursor would move back (from a key of {} to one of {}; at the same key, to a \
                 lesser token)",
                Length(*old_key), Length(*new_key)
            )]
            CursorRegression {
                /// Length of the current key.
                old_key: Option<usize>,
                /// Length of the offered key.
                new_key: Option<usize>,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } CursorOutOfBounds $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The cursor lies outside the shard.
            #[error("the cursor lies outside the shard: {0}")]
            CursorOutOfBounds(CursorOutOfBoundsDetail),
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } CursorKeyTooLarge $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The cursor's key is too long.
            #[error("the cursor key has {size} bytes; at most {max} are allowed")]
            CursorKeyTooLarge {
                size: usize,
                max: usize,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } CursorTokenTooLarge $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The cursor's token is too long.
            #[error("the cursor token has {size} bytes; at most {max} are allowed")]
            CursorTokenTooLarge {
                size: usize,
                max: usize,
            },
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } SplitInvalid $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The split plan does not fit the shard.
            #[error("the split is not valid: {0}")]
            SplitInvalid(#[source] SplitValidationError),
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } CheckpointMissingKey $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// A last key is needed.
            #[error("a checkpoint needs the last key that was handled")]
            CheckpointMissingKey,
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } ResourceExhausted $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The backend's byte pool is full. Nothing changed; retry when there is room.
            #[error("the backend has no room: {0}")]
            ResourceExhausted(#[from] SlabFull),
        } $($rest)*);
    };
    (@enum $head:tt { $($body:tt)* } BackendError $($rest:ident)*) => {
        operation_error!(@enum $head { $($body)*
            /// The backend failed.
            #[error("{0}")]
            BackendError(#[from] InfraError),
        } $($rest)*);
    };

    // The routing, variant by variant.
    (@match $error:ident { $($arms:tt)* } [] []) => {
        match $error { $($arms)* }
    };
    (@match $error:ident { $($arms:tt)* } [] [$rejected:ident $($rest:ident)*]) => {
        operation_error!(@match $error { $($arms)*
            CoordError::$rejected { .. } => unreachable!(
                concat!(stringify!($rejected), " is not a refusal of this operation")
            ),
        } [] [$($rest)*])
    };
    (@match $error:ident { $($arms:tt)* } [OpIdConflict $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::OpIdConflict { op_id, expected_hash, actual_hash } =>
                Self::OpIdConflict { op_id, expected_hash, actual_hash },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [CheckpointMissingKey $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::CheckpointMissingKey => Self::CheckpointMissingKey,
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [CursorOutOfBounds $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::CursorOutOfBounds(detail) => Self::CursorOutOfBounds(detail),
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [SplitInvalid $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::SplitInvalid(source) => Self::SplitInvalid(source),
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [ShardNotFound $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::ShardNotFound { shard } => Self::ShardNotFound { shard },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [TenantMismatch $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::TenantMismatch { expected } => Self::TenantMismatch { expected },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [StaleFence $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::StaleFence { presented, current } => Self::StaleFence { presented, current },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [LeaseExpired $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::LeaseExpired { deadline, now } => Self::LeaseExpired { deadline, now },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [ShardTerminal $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::ShardTerminal { shard, status } => Self::ShardTerminal { shard, status },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [RunNotActive $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::RunNotActive { run, status } => Self::RunNotActive { run, status },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [CursorRegression $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::CursorRegression { old_key, new_key } =>
                Self::CursorRegression { old_key, new_key },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [CursorKeyTooLarge $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::CursorKeyTooLarge { size, max } => Self::CursorKeyTooLarge { size, max },
        } [$($rest)*] $no)
    };
    (@match $error:ident { $($arms:tt)* } [CursorTokenTooLarge $($rest:ident)*] $no:tt) => {
        operation_error!(@match $error { $($arms)*
            CoordError::CursorTokenTooLarge { size, max } => Self::CursorTokenTooLarge { size, max },
        } [$($rest)*] $no)
    };
}

operation_error! {
    /// Why a lease was not renewed.
    RenewError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive],
        rejects: [OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
            CursorTokenTooLarge SplitInvalid CheckpointMissingKey],
        adds: [],
    }
}

operation_error! {
    /// Why a shard was not released.
    ReleaseError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive],
        rejects: [OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge
            CursorTokenTooLarge SplitInvalid CheckpointMissingKey],
        adds: [],
    }
}

operation_error! {
    /// Why a checkpoint was refused.
    CheckpointError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
            OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge
            CheckpointMissingKey],
        rejects: [SplitInvalid],
        adds: [ResourceExhausted],
    }
}

operation_error! {
    /// Why a shard was not completed.
    CompleteError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
            OpIdConflict CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge
            CheckpointMissingKey],
        rejects: [SplitInvalid],
        adds: [ResourceExhausted],
    }
}

operation_error! {
    /// Why a shard was not parked.
    ParkError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
            OpIdConflict],
        rejects: [CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge
            SplitInvalid CheckpointMissingKey],
        adds: [],
    }
}

operation_error! {
    /// Why a shard was not split.
    SplitError {
        accepts: [ShardNotFound TenantMismatch StaleFence LeaseExpired ShardTerminal RunNotActive
            OpIdConflict SplitInvalid],
        rejects: [CursorRegression CursorOutOfBounds CursorKeyTooLarge CursorTokenTooLarge
            CheckpointMissingKey],
        adds: [ResourceExhausted],
    }
}

/// Why a shard was not replaced by children.
pub type SplitReplaceError = SplitError;
/// Why a shard did not give away the rest of its range.
pub type SplitResidualError = SplitError;
