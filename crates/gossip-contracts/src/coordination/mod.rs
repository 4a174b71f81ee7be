//! The shard data model: key ranges, cursors, manifests and split plans.
//!
//! A shard is a half-open range `[start, end)` over keys ordered as plain bytes. This module says
//! what a valid range, cursor, manifest and split is; the protocol that moves them lives in
//! `gossip-coordination`.

mod cursor;
mod limits;
mod shard_spec;

pub use cursor::{Cursor, CursorInputError, CursorSemantics, CursorUpdate};
pub use limits::{
    MAX_INITIAL_SHARDS, MAX_KEY_SIZE, MAX_METADATA_SIZE, MAX_SPAWNED_PER_SHARD, MAX_SPLIT_CHILDREN,
    MAX_TOKEN_SIZE,
};
pub use shard_spec::{IntoShardSpecRef, ShardSpec, ShardSpecInputError, ShardSpecRef};
