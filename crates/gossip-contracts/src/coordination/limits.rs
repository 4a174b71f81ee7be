//! Every size limit of the shard model. A value above its limit is refused, never cut.

/// Longest key: a shard boundary or a cursor's last key, in bytes.
pub const MAX_KEY_SIZE: usize = 4096;

/// Longest connector resume token, in bytes.
pub const MAX_TOKEN_SIZE: usize = 16_384;

/// Longest shard metadata (hint envelope and connector bytes together), in bytes.
pub const MAX_METADATA_SIZE: usize = 16_384;

/// Most shards that one registration may bring into a run.
pub const MAX_INITIAL_SHARDS: usize = 10_000;

/// Most children of one split.
pub const MAX_SPLIT_CHILDREN: usize = 256;

/// Most children and residuals that one shard may ever spawn.
pub const MAX_SPAWNED_PER_SHARD: usize = 1024;

const _: () = assert!(MAX_SPLIT_CHILDREN <= MAX_SPAWNED_PER_SHARD);
// The canonical encoding writes lengths as u32.
const _: () =
    assert!(MAX_METADATA_SIZE <= u32::MAX as usize && MAX_TOKEN_SIZE <= u32::MAX as usize);
