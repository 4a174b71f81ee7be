//! The shard data model: key ranges, cursors, manifests and split plans.
//!
//! A shard is a half-open range `[start, end)` over keys ordered as plain bytes. This module says
//! what a valid range, cursor, manifest and split is; the protocol that moves them lives in
//! `gossip-coordination`.

mod arena;
mod cursor;
mod limits;
mod manifest;
mod pooled;
mod restored_state;
mod shard_spec;
mod split;

pub use arena::{ShardArena, ShardSpecHandle};
pub use cursor::{Cursor, CursorInputError, CursorSemantics, CursorUpdate};
pub use limits::{
    MAX_INITIAL_SHARDS, MAX_KEY_SIZE, MAX_METADATA_SIZE, MAX_SPAWNED_PER_SHARD, MAX_SPLIT_CHILDREN,
    MAX_TOKEN_SIZE,
};
pub use manifest::{InitialShardInput, ManifestValidationError, validate_manifest};
pub use pooled::{PooledCursor, PooledShardSpec};
pub use restored_state::RestoredShardState;
pub use shard_spec::{IntoShardSpecRef, ShardSpec, ShardSpecInputError, ShardSpecRef};
pub use split::{
    ShardLimitScope, SplitReplacePlan, SplitResidualPlan, SplitValidationError, plan_split_replace,
    plan_split_replace_at_points, plan_split_replace_from_cursor, plan_split_residual,
    plan_split_residual_at_point, plan_split_residual_from_cursor, validate_residual_split,
    validate_residual_split_bounds, validate_split_coverage,
};
