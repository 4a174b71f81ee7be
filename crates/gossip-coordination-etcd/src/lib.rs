//! The coordinator for fleets: runs and shards in etcd, for workers on many machines.
//!
//! It reads records, asks [`gossip_coordination::transition`], and stores what was decided in one
//! transaction that compares what was read. Whoever dies at whatever moment leaves records in which
//! every operation was carried out whole or not at all; an operation whose answer was lost is found
//! to have been carried out, whoever has written since, or is carried out then.
//!
//! A shard that is held has an owner key under the etcd lease of its worker's process. When the
//! process is silent for too long the key vanishes, and others may take the shard before its deadline.
//!
//! [`EtcdCoordinator`] is for sync callers, [`AsyncEtcdCoordinator`] for async ones. `docs/etcd.md`
//! has the layout of the keys, the transactions, and what a cluster needs.
//!
//! ```
//! use gossip_contracts::coordination::{CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef};
//! use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, TenantId, WorkerId};
//! use gossip_coordination::{EndError, RunConfig, RunManagement, WorkerSession};
//! use gossip_coordination_etcd::kv::SimKv;
//! use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};
//!
//! let config = EtcdConfig::new(["http://10.0.0.1:2379", "http://10.0.0.2:2379"]);
//! // On a cluster: EtcdCoordinator::connect(config)?
//! let mut coordinator = EtcdCoordinator::on_model(SimKv::new(), config)?;
//!
//! let (tenant, run) = (TenantId::from_bytes([1; 32]), RunId::from_raw(1));
//! let config = RunConfig {
//!     cursor_semantics: CursorSemantics::Completed,
//!     lease_duration: 30_000,
//!     max_shard_retries: 5,
//! };
//! let range = ShardSpecRef::new(b"a", b"z", b"");
//! let shards = [InitialShardInput::new(ShardId::from_raw(0), range, CursorUpdate::initial())];
//! let (now, worker) = (LogicalTime::from_raw(1_000), WorkerId::from_raw(7));
//! coordinator.create_run_with_shards(now, tenant, run, config, &shards, OpId::from_raw(1))?;
//!
//! // Any worker on any machine.
//! let mut session = WorkerSession::claim(&mut coordinator, now, tenant, run, worker)?;
//! session.checkpoint(now, CursorUpdate::at(b"m"), OpId::from_raw(2))?;
//! session.complete(now, CursorUpdate::at(b"y"), OpId::from_raw(3)).map_err(EndError::into_error)?;
//! coordinator.complete_run(now, tenant, run, OpId::from_raw(4))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backend;
mod blocking;
mod change;
mod claim;
mod config;
#[cfg(feature = "sim")]
pub mod consistency;
mod coordinator;
mod error;
mod free_list;
pub mod keyspace;
pub mod kv;
mod limits;
mod listing;
mod management;
mod open_runs;
mod process_lease;
mod register;
mod retry;
mod runs;
mod settle;
mod shards;

pub use blocking::EtcdCoordinator;
pub use config::{Credentials, EtcdConfig, Tls};
pub use coordinator::AsyncEtcdCoordinator;
pub use error::{ConfigError, ConnectError};
