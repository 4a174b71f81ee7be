//! The embedded coordinator: one SQLite file for the threads and processes of one machine.
//!
//! It looks records up, asks [`gossip_coordination::transition`], and stores what was decided, each
//! operation in one transaction. Whoever dies at whatever moment leaves a database in which every
//! operation was carried out whole or not at all, and which the next process opens as it is.
//!
//! What a worker found and how far it came belong together: [`checkpoint_with`](gossip_coordination::TransactionalBackend::checkpoint_with)
//! stores both in one transaction, in tables that the caller brings along ([`CallerSchema`]).
//!
//! ```
//! use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef};
//! use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId};
//! use gossip_coordination::{AcquireScratch, CoordinationBackend, RunConfig, RunManagement, ShardClaiming, TransactionalBackend};
//! use gossip_coordination_sqlite::{CallerSchema, SqliteConfig, SqliteCoordinator, WorkerSlots};
//!
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let findings = CallerSchema {
//!     name: "findings",
//!     retired: 0,
//!     steps: &["CREATE TABLE findings_rows(key BLOB PRIMARY KEY, what TEXT NOT NULL) STRICT"],
//! };
//! let config = SqliteConfig { caller_schemas: vec![findings], ..SqliteConfig::default() };
//! let mut coordinator = SqliteCoordinator::open(dir.join("gossip.db"), config)?;
//!
//! let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
//! let config = RunConfig {
//!     cursor_semantics: CursorSemantics::Completed,
//!     lease_duration: 30_000,
//!     max_shard_retries: 5,
//! };
//! let range = ShardSpecRef::new(b"a", b"z", b"");
//! let shards = [InitialShardInput::new(ShardId::from_raw(0), range, CursorUpdate::initial())];
//! let now = LogicalTime::from_raw(1_000);
//! coordinator.create_run_with_shards(now, tenant, run, config, &shards, OpId::from_raw(1))?;
//!
//! // A worker is a slot; whoever takes it over gets what it held back at once.
//! let worker = WorkerSlots::open(dir.join("workers"))?.take()?;
//! let mut scratch = AcquireScratch::new();
//! assert!(coordinator.reacquire_own(now, tenant, run, worker.id(), &mut scratch)?.is_none());
//! let lease =
//!     coordinator.claim_next_available(now, tenant, run, worker.id(), &mut scratch)?.lease;
//!
//! // What was found at `m`, and that everything up to `m` is done: both or neither.
//! coordinator.checkpoint_with(now, tenant, &lease, CursorUpdate::at(b"m"), OpId::from_raw(2), |tx| {
//!     tx.execute("INSERT INTO findings_rows VALUES (?1, 'a token')", [&b"m"[..]]).map(drop)
//! })?;
//! coordinator.complete(now, tenant, &lease, CursorUpdate::at(b"y"), OpId::from_raw(3))?;
//! coordinator.complete_run(now, tenant, run, OpId::from_raw(4))?;
//! assert!(coordinator.verify()?.is_sound());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod acquire;
mod backend;
mod backoff;
mod caller_schema;
mod claim;
mod commit;
mod config;
mod coordinator;
mod error;
mod file_system;
mod management;
mod open;
mod runs;
mod schema;
mod shards;
mod slots;
mod sql;
mod verify;

pub use caller_schema::CallerSchema;
pub use claim::ReleaseDeadError;
pub use config::{Durability, SqliteConfig};
pub use coordinator::SqliteCoordinator;
pub use error::OpenError;
pub use slots::{SlotError, WorkerSlot, WorkerSlots};
pub use verify::{Fault, Verification};

/// The SQLite binding whose transactions the caller's writes get.
pub use rusqlite;
