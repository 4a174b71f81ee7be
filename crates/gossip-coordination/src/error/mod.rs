//! Why an operation was refused. Nothing was written, with one exception: an acquire that finds a
//! shard poisoned parks it and then says that it is terminal.
//!
//! [`CoordError`] is the vocabulary of the pure rules; each operation narrows it to an enum of its
//! own with only the variants that it can return. No message, `Debug` included, shows a payload
//! hash, a lease owner, a key or another tenant.

mod acquire;
mod claim;
mod commit;
mod coord;
mod infra;
mod leased;
#[macro_use]
mod operation;
mod outcome;
mod run;

pub use acquire::AcquireError;
pub use claim::ClaimError;
pub use commit::CommitError;
pub use coord::{CoordError, CursorOutOfBoundsDetail};
pub use infra::InfraError;
pub use leased::LeasedOperationError;
pub use operation::{
    CheckpointError, CompleteError, ParkError, ReleaseError, RenewError, SplitError,
    SplitReplaceError, SplitResidualError,
};
pub use outcome::IdempotentOutcome;
pub use run::{
    CreateRunError, DeleteRunError, GetRunError, RegisterShardsError, RevokeLeaseError,
    RunOpIdConflict, RunTransitionError, UnparkError,
};

#[cfg(test)]
mod tests;
