//! Records as bytes: what durable backends store, in one format for all of them.
//!
//! A backend reads a blob, decodes a view of it, asks [`crate::transition`], and writes the blob
//! that the decision makes ([`encode_shard_after`]); with a [`DecodeScratch`] and a buffer that it
//! keeps, none of this touches the heap in steady state.
//!
//! - E1: a record has one encoding of the newest version: re-encoding what was decoded from it gives
//!   the same bytes.
//! - E2: whatever the bytes, decoding returns a record that holds R1 to R10 or U1 to U5, or an
//!   error; it neither panics nor allocates for a length that is not there.
//! - E3: no single changed byte, cut or appended byte goes unnoticed.
//!
//! # Format
//!
//! A [kind](RecordKind) byte, a version byte (each kind has versions of its own, and every one that
//! there was is read), the fields of the record in the order below, and the
//! CRC-32 (IEEE) of everything before it. Integers are little-endian. `bytes` is a u32 length and
//! that many bytes; `[x]` a u32 count and that many `x`; `x?` a 0, or a 1 and an `x`. Enums are
//! their stored discriminants. Fixtures under `tests/golden/` pin each version.
//!
//! | shard, version 1 | | run, version 2 | | gate, version 2 | |
//! |---|---|---|---|---|---|
//! | tenant | 32 bytes | tenant | 32 bytes | tenant | 32 bytes |
//! | run, shard | u64, u64 | run | u64 | run | u64 |
//! | status | u8 | cursor semantics | u8 | cursor semantics | u8 |
//! | park reason | u8? | lease duration | u64 | lease duration | u64 |
//! | fence | u64 | max shard retries | u32 | max shard retries | u32 |
//! | lease: owner, deadline | (u64, u64)? | status | u8 | status | u8 |
//! | acquires since progress | u32 | created at | u64 | hides shards | u8 |
//! | start, end, metadata | bytes × 3 | completed at | u64? | | |
//! | last key, token | bytes? × 2 | root shards | \[u64\] | | |
//! | cursor semantics | u8 | op-log | \[entry\] | owner, version 1 | |
//! | parent | u64? | registration | (see below)? | worker | u64 |
//! | spawned | \[u64\] | result | 32 bytes? | fence | u64 |
//! | op-log, oldest first | \[entry\] | | | | |
//!
//! An op-log entry is op id u64, kind u8, result u8, payload hash u64, executed at u64. A registration
//! is op id u64, payload hash u64, the numbers of shards counted, staged and left over, u32 each, and the
//! time of its last step u64. Version 1 of a run ends with its op-log, and of a gate with its status.
//!
//! ```
//! use gossip_contracts::identity::{FenceEpoch, WorkerId};
//! use gossip_coordination::OwnerRecord;
//! use gossip_coordination::codec::{CodecError, decode_owner, encode_owner};
//!
//! let owner = OwnerRecord::new(WorkerId::from_raw(7), FenceEpoch::from_raw(2));
//! let mut blob = Vec::new();
//! encode_owner(&owner, &mut blob);
//! assert_eq!(decode_owner(&blob), Ok(owner));
//!
//! blob[5] ^= 1;
//! assert_eq!(decode_owner(&blob), Err(CodecError::ChecksumMismatch));
//! ```

mod error;
mod gate;
mod owner;
mod run;
mod shard;
mod wire;

pub use error::{CodecError, RecordKind};
pub use gate::{decode_gate, encode_gate};
pub use owner::{decode_owner, encode_owner};
pub use run::{decode_run, encode_run};
pub use shard::{DecodeScratch, decode_shard, decode_shard_view, encode_shard, encode_shard_after};

#[cfg(test)]
mod tests;
