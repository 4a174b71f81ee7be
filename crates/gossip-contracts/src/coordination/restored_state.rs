//! What a worker gets back with a shard: everything needed to go on where work stopped.

use super::cursor::{Cursor, CursorSemantics};
use super::shard_spec::ShardSpec;
use crate::identity::{ShardId, ShardKey};

/// The owned state of an acquired shard, as handed from coordination to whoever scans it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredShardState {
    /// The shard, with its run.
    pub key: ShardKey,
    /// The keys that it covers.
    pub spec: ShardSpec,
    /// How far earlier work came.
    pub cursor: Cursor,
    /// What the cursor promises.
    pub cursor_semantics: CursorSemantics,
    /// The shard from which it was split, if any.
    pub parent: Option<ShardId>,
}
