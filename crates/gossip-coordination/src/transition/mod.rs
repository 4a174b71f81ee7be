//! The protocol: every rule as a pure function from a record and a request to a decision.
//!
//! A backend looks the record up by tenant and key, asks the function here, and stores what it
//! decided under its own concurrency control. It adds no rule of its own. A decision about a shard has
//! been checked against the record invariants before it is returned; one about a run is checked
//! when it is applied ([`crate::RunRecord::apply`]), before it takes effect.
//!
//! ```
//! use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, ShardSpecRef};
//! use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
//! use gossip_coordination::transition::{self, AcquireDecision, CursorRequest, Decision};
//! use gossip_coordination::{FoundShard, RunConfig, RunGate, RunStatus, ShardRecord, ShardRecordView, Takeover};
//!
//! let tenant = TenantId::from_bytes([1; 32]);
//! let key = ShardKey::new(RunId::from_raw(1), ShardId::from_raw(0));
//! let range = ShardSpecRef::new(b"a", b"z", b"");
//! let semantics = CursorSemantics::Completed;
//! let view =
//!     ShardRecordView::new_shard(tenant, key, range, CursorUpdate::initial(), semantics, None);
//! let mut shard = ShardRecord::from_view(&view);
//! let config =
//!     RunConfig { cursor_semantics: semantics, lease_duration: 30_000, max_shard_retries: 5 };
//! let run = RunGate { status: RunStatus::Active, config, hides_shards: false };
//!
//! // A worker acquires the shard …
//! let (now, worker) = (LogicalTime::from_raw(1_000), WorkerId::from_raw(7));
//! let found = FoundShard { shard: &shard.view(), run: &run };
//! let decision = transition::acquire(Some(found), now, Takeover::AT_DEADLINE, tenant, key, worker)?;
//! let AcquireDecision::Grant { lease, update } = decision else { unreachable!() };
//! shard.apply(&update);
//!
//! // … and moves its cursor.
//! let cursor = CursorUpdate::at(b"m");
//! let request = CursorRequest { tenant, lease: &lease, cursor, op_id: OpId::from_raw(42) };
//! let found = FoundShard { shard: &shard.view(), run: &run };
//! let decision = transition::checkpoint(Some(found), now, &request)?;
//! let Decision::Execute(update) = decision else { unreachable!() };
//! shard.apply(&update);
//! assert_eq!(shard.cursor.as_update().last_key(), Some(&b"m"[..]));
//!
//! // The same request again changes nothing.
//! let found = FoundShard { shard: &shard.view(), run: &run };
//! let again = transition::checkpoint(Some(found), now, &request)?;
//! assert_eq!(again, Decision::Replay(()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
