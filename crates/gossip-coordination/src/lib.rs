//! Leased, fenced, splittable shards of a key space, with cursors that only move forward.
//!
//! A run cuts its key space into shards. A worker acquires one under a lease, works through its
//! keys in order, and checkpoints how far it has come; whoever takes the shard over goes on from
//! there. A fencing token keeps workers out that were presumed dead, and operation ids make every
//! retry harmless.
//!
//! Every rule is a pure function in [`transition`]: a record and a request in, a decision out.
//! Backends look records up, ask, and store what was decided.
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
//! let run = RunGate { status: RunStatus::Active, config };
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

mod async_session;
mod async_traits;
mod claim;
pub mod codec;
#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
mod events;
mod in_memory;
mod invariants;
mod lease;
mod op_log;
mod payload;
mod record;
mod run;
mod scratch;
mod session;
mod shard_limits;
mod status;
#[cfg(test)]
mod testing;
mod traits;
pub mod transition;
pub mod validation;

/// Identities, ranges, cursors and split plans, which the signatures here are made of.
pub use gossip_contracts as contracts;

pub use async_session::AsyncWorkerSession;
pub use async_traits::{
    AsyncCoordinationBackend, AsyncRunManagement, AsyncShardClaiming, Immediate,
};
pub use claim::{
    ClaimSearch, ClaimStep, CoordinationFacade, ShardClaiming, claim_from_candidates,
    claim_from_candidates_async,
};
pub use error::{
    AcquireError, CheckpointError, ClaimError, CommitError, CompleteError, CoordError,
    CreateRunError, CursorOutOfBoundsDetail, DeleteRunError, GetRunError, IdempotentOutcome,
    InfraError, LeasedOperationError, ParkError, RegisterShardsError, ReleaseError, RenewError,
    RevokeLeaseError, RunOpIdConflict, RunTransitionError, SplitError, SplitReplaceError,
    SplitResidualError, UnparkError,
};
pub use events::{EventCollector, EventKind, RedactedKey, StateTransitionEvent};
pub use in_memory::{
    CoordinatorRuntimeConfig, DEFAULT_MAX_AUTO_SLAB_CAPACITY, DEFAULT_MAX_SHARDS_PER_TENANT,
    DEFAULT_MAX_TOTAL_SHARDS, InMemoryCoordinator,
};
pub use invariants::InvariantViolation;
pub use lease::{Lease, LeaseHolder, OwnerRecord, Takeover};
pub use op_log::{
    OP_LOG_CAP, OpKind, OpLog, OpLogEntry, OpResult, OperationLog, RUN_OP_LOG_CAP, RunOpKind,
    RunOpLog,
};
pub use payload::{DerivedShardKind, derive_split_shard_id};
pub use record::{Availability, FoundShard, ShardRecord, ShardRecordView, ShardState, ShardUpdate};
pub use run::{
    GateRecord, Registration, RunConfig, RunConfigError, RunGate, RunProgress, RunRecord,
    RunStatus, RunSummary, RunTerminalEvaluation, ShardFilter, ShardSummary, evaluate_run_terminal,
};
pub use scratch::{
    AcquireResultView, AcquireScratch, CapacityHint, CheckpointRenewal, Granted, RenewResult,
    ShardSnapshotView,
};
pub use session::{EndError, HeldShard, WorkerSession};
pub use shard_limits::{ShardCounts, ShardLimitViolation, ShardLimits, ShardRoom, SplitCaps};
pub use status::{ParkReason, ShardStatus};
pub use traits::{ClaimCandidates, CoordinationBackend, RunManagement, TransactionalBackend};

/// The scenario book is a program; this runs it.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/coordination.md")]
struct ScenarioBook;
