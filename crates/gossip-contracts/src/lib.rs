//! The vocabulary that every gossip crate shares: identities, hashing and the shard data model.
//!
//! Pure data and pure functions. No clock, no file system, no async; time and bytes come in as
//! arguments.
//!
//! - [`identity`]: who and what (tenants, runs, shards, findings) and how each is hashed.
//! - [`coordination`]: key ranges, cursors, manifests and split plans.
//! - [`connector`]: what a source of things to scan offers.
//!
//! ```
//! use gossip_contracts::coordination::{ShardSpec, ShardSpecRef};
//!
//! let shard = ShardSpec::new(ShardSpecRef::new(b"src/", b"src0", b""))?;
//! assert!(shard.as_ref().contains(b"src/main.rs"));
//! assert!(!shard.as_ref().contains(b"tests/it.rs"));
//! # Ok::<(), gossip_contracts::coordination::ShardSpecInputError>(())
//! ```

pub mod connector;
pub mod coordination;
pub mod identity;
