//! Leased, fenced, splittable shards of a key space, with cursors that only move forward.
//!
//! A run cuts its key space into shards. A worker acquires one under a lease, works through its
//! keys in order, and checkpoints how far it has come; whoever takes the shard over goes on from
//! there. A fencing token keeps workers out that were presumed dead, and operation ids make every
//! retry harmless.
//!
//! ```
//! use gossip_coordination::contracts::coordination::{
//!     CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef,
//! };
//! use gossip_coordination::contracts::identity::{
//!     LogicalTime, OpId, RunId, ShardId, TenantId, WorkerId,
//! };
//! use gossip_coordination::{
//!     EndError, InMemoryCoordinator, RunConfig, RunManagement, RunStatus, WorkerSession,
//! };
//!
//! // Time comes in with every call, as Unix milliseconds: tests and simulations own the clock.
//! let now = LogicalTime::from_raw(1_700_000_000_000);
//! let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
//! let config = RunConfig {
//!     cursor_semantics: CursorSemantics::Completed,
//!     lease_duration: 30_000,
//!     max_shard_retries: 5,
//! };
//! let range = ShardSpecRef::new(b"a", b"z", b"");
//! let shards = [InitialShardInput::new(ShardId::from_raw(0), range, CursorUpdate::initial())];
//! let mut coordinator = InMemoryCoordinator::default();
//! coordinator.create_run_with_shards(now, tenant, run, config, &shards, OpId::random())?;
//!
//! // A worker takes a shard, works from where its cursor stands, and says how far it has come.
//! let worker = WorkerId::from_raw(7);
//! let mut session = WorkerSession::claim(&mut coordinator, now, tenant, run, worker)?;
//! assert_eq!(session.cursor().last_key(), None);
//! let (cursor, op_id) = (CursorUpdate::at(b"m"), OpId::random());
//! session.checkpoint(now, cursor, op_id)?;
//! // No answer? The same request under the same id is carried out once.
//! assert!(session.checkpoint(now, cursor, op_id)?.is_replay());
//! let done = session.complete(now, CursorUpdate::at(b"y"), OpId::random());
//! done.map_err(EndError::into_error)?;
//!
//! coordinator.complete_run(now, tenant, run, OpId::random())?;
//! assert_eq!(coordinator.get_run(tenant, run)?.status, RunStatus::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | work on shards | [`WorkerSession`], or [`AsyncWorkerSession`]: one lease, and the operations under it |
//! | create, watch, end and delete runs | [`RunManagement`], or [`AsyncRunManagement`] |
//! | commit results together with the cursor | [`TransactionalBackend`], through `WorkerSession::checkpoint_with` and its like |
//! | take an acquire apart, as a session does | [`CoordinationBackend`], [`ShardClaiming`], [`AcquireScratch`] |
//! | watch what happens | [`EventCollector`] |
//! | write a backend | [`transition`], [`codec`] and, with the feature of that name, `conformance` |
//!
//! One machine: `gossip-coordination-sqlite`. Many: `gossip-coordination-etcd`. Tests, simulations and one
//! process: [`InMemoryCoordinator`]. All three ask the same rules: pure functions in [`transition`], a record
//! and a request in, a decision out.
//!
//! What a caller owes:
//!
//! - An operation id of its own for every operation ([`OpId::random`](contracts::identity::OpId::random)),
//!   and the same one for every retry of it. Errors say whether to retry: `is_retryable`, and
//!   [`LeasedOperationError::lease_is_over`] when to stop instead.
//! - A worker id that no other thread or process has.
//! - Times from a clock that agrees with other workers' to within what the backend allows for
//!   ([`Takeover`]); never [`LogicalTime::ZERO`](contracts::identity::LogicalTime::ZERO).
//! - Keys in order. While a cursor's key stays, its token counts up in byte order
//!   ([`CursorUpdate`](contracts::coordination::CursorUpdate)).

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
pub use claim::{ClaimSearch, ClaimStep, CoordinationFacade, ShardClaiming, claim_from_candidates};
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
