//! Why a builder could not be made, took nothing, or built nothing.

use gossip_contracts::coordination::{ManifestValidationError, ShardSpecInputError};
use gossip_contracts::identity::ShardId;
use gossip_stdx::SlabFull;

use crate::PrefixShardError;

/// Why a builder refused. It holds what it held before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PreallocShardBuilderError {
    /// A builder for no shards.
    #[error("the entry limit is 0")]
    EntryLimitZero,
    /// The limit is above what the builder can hold.
    #[error("the entry limit is {entry_limit}; this builder holds {cap}")]
    CapMismatch {
        /// The limit asked for.
        entry_limit: usize,
        /// Entries that the builder can hold.
        cap: usize,
    },
    /// The limit is above what a run may start with.
    #[error("the entry limit is {entry_limit}; a run starts with at most {max} shards")]
    EntryLimitExceedsManifestMax {
        /// The limit asked for.
        entry_limit: usize,
        /// Shards allowed.
        max: usize,
    },
    /// Ids counted up from the first would reach those of shards that splits make.
    #[error("{entry_limit} shard ids from {first} on run into those of shards made by splits")]
    ShardIdsExhausted {
        /// The first id asked for.
        first: ShardId,
        /// The limit asked for.
        entry_limit: usize,
    },
    /// The builder is full.
    #[error("{additional} more shards do not fit: {current} of {limit} are staged")]
    CapacityExceeded {
        /// The builder's limit.
        limit: usize,
        /// Shards staged.
        current: usize,
        /// Shards asked for.
        additional: usize,
    },
    /// One split would make too many children.
    #[error("the split makes {requested} children; at most {limit} are allowed")]
    FanOutExceeded {
        /// Children allowed.
        limit: usize,
        /// Children asked for; `usize::MAX` where there is no end of them.
        requested: usize,
    },
    /// The arena is out of slots or bytes.
    #[error("the shard arena is full: {0}")]
    SlabFull(#[source] SlabFull),
    /// A range was refused.
    #[error("the range is refused: {0}")]
    RangeInvalid(#[source] ShardSpecInputError),
    /// A prefix was refused.
    #[error("the prefix is refused: {0}")]
    PrefixInvalid(#[source] PrefixShardError),
    /// Manifest rows were refused.
    #[error("the manifest rows are refused: {0}")]
    ManifestCtorInvalid(#[source] ShardSpecInputError),
    /// A ready-made spec was refused.
    #[error("the shard spec is refused: {0}")]
    SpecInvalid(#[source] ShardSpecInputError),
    /// The handle is stale, or of another arena.
    #[error("the shard handle names nothing in this builder's arena")]
    InvalidSpecHandle,
    /// What is staged is not a manifest.
    #[error("the staged shards are not a manifest: {0}")]
    ManifestInvalid(#[source] ManifestValidationError),
}
