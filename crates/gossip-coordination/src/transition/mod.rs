//! The protocol: every rule as a pure function from a record and a request to a decision.
//!
//! A backend looks the record up by tenant and key, asks the function here, and stores what it
//! decided under its own concurrency control. It adds no rule of its own. A decision about a shard has
//! been checked against the record invariants before it is returned; one about a run is checked
//! when it is applied ([`crate::RunRecord::apply`]), before it takes effect.

mod lease;
mod progress;
mod register;
mod run;
mod split;
mod unpark;

pub use lease::{AcquireDecision, acquire, release, renew, revoke_lease};
pub use progress::{
    CursorRequest, ParkRequest, RenewingCheckpoint, checkpoint, checkpoint_and_renew, complete,
    park,
};
pub use register::{
    RegisterRequest, RegisterStep, discard_staged, register_shards, register_step, root_shard,
};
pub use run::{RunUpdate, cancel_run, complete_run, create_run, delete_run, fail_run};
pub use split::{
    NewShard, SplitReplaceRequest, SplitReplaceResult, SplitResidualRequest, SplitResidualResult,
    SplitUpdate, split_replace, split_residual,
};
pub use unpark::unpark;

/// What to do about an idempotent operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision<U, R> {
    /// Store this.
    Execute(U),
    /// Store nothing; the operation was carried out before, with this result.
    Replay(R),
}

#[cfg(test)]
mod tests;
