//! The cases, grouped by what they are about. Each is a function over any harness; the list in
//! `list.rs` names them all.

pub(super) mod acquire;
pub(super) mod admin;
pub(super) mod bytes;
pub(super) mod claims;
pub(super) mod cursor;
pub(super) mod leased;
pub(super) mod listing;
pub(super) mod op_log;
pub(super) mod poison;
pub(super) mod reopen;
pub(super) mod run_end;
pub(super) mod runs;
pub(super) mod scale;
pub(super) mod settle;
pub(super) mod split;
pub(super) mod split_faults;
pub(super) mod split_limits;
pub(super) mod tenants;
pub(super) mod time;
pub(super) mod unpark;

/// What nearly every case needs.
mod prelude {
    pub(super) use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
    pub(super) use gossip_contracts::identity::{FenceEpoch, LogicalTime, ShardId};

    pub(super) use crate::conformance::harness::{Harness, Limits};
    pub(super) use crate::conformance::matrix::Operation;
    pub(super) use crate::conformance::runner::skip;
    pub(super) use crate::conformance::world::{
        LEASE, RETRIES, World, about, id, start, tenant, within, worker,
    };
    pub(super) use crate::error::IdempotentOutcome::{Executed, Replayed};
    pub(super) use crate::run::RunStatus;
    pub(super) use crate::status::{ParkReason, ShardStatus};
}
