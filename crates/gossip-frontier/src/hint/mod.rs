//! What a shard's metadata says about its range, and how that survives a split.
//!
//! - H1: what decodes, encodes to the same bytes. Only empty metadata has a second spelling.
//! - H2: a manifest hint names at least one row.
//! - H3: a child's hint claims no key that its parent's does not.
//!
//! The format carries no version: a new kind of hint gets a new tag, and an unknown tag is an
//! error. Coordination never reads any of it.

mod buf;
mod error;
mod metadata;
mod propagate;
mod spec;
#[cfg(test)]
mod tests;
mod wire;

pub use buf::{MetadataBuf, ShardSpecScratch};
pub use error::{ShardEncodeError, ShardHintDecodeError, ShardMetadataDecodeError};
pub use metadata::{ShardMetadata, decode_connector_extra, decode_hint, decode_metadata};
pub use propagate::{HintPropagationError, SplitBoundary, propagate_hint_on_split};
pub use spec::{
    manifest_shard_into, manifest_shard_ref, prefix_shard_into, prefix_shard_ref, range_shard_into,
    range_shard_ref,
};
pub use wire::ShardHint;
