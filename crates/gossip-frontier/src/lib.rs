//! The shard algebra: between connectors, which think in paths, objects and manifest rows, and
//! coordination, which sees only byte ranges `[start, end)`.
//!
//! - Keys: [`KeyEncoding`] turns a typed key into bytes of the same order; [`prefix_successor`],
//!   [`key_successor`] and [`byte_midpoint`] compute with those bytes.
//! - Hints: [`ShardHint`] and [`ShardMetadata`] are what a shard's metadata says about its range;
//!   [`propagate_hint_on_split`] says what its children may still say.
//! - Manifests: [`PreallocShardBuilder`] stages the shards with which a run starts.
//!
//! What this crate is not: it moves no cursor, holds no lease and does no I/O. Working memory is
//! the caller's ([`KeyBuf`], [`MetadataBuf`], [`ShardSpecScratch`], an arena), so nothing here
//! allocates except [`PreallocShardBuilder::build_inputs`].
//!
//! ```
//! use gossip_contracts::coordination::ShardArena;
//! use gossip_frontier::{KeyBuf, PreallocShardBuilder, ShardHint, byte_midpoint, decode_hint};
//!
//! // Cut one directory in two, and add a manifest of 1000 rows in chunks of 400.
//! let mut middle = KeyBuf::new();
//! let cut = byte_midpoint(b"src/", b"src0", &mut middle).expect("room between the two");
//!
//! let mut arena = ShardArena::with_capacity(8, 4096);
//! let mut builder = PreallocShardBuilder::<8>::new(&mut arena, 8)?;
//! builder.split_range_by_boundaries(b"src/", &[cut], b"src0", b"")?;
//! builder.split_manifest_by_rows(7, 0, 1000, 400, b"")?;
//!
//! let shards = builder.build_inputs()?;
//! assert_eq!(shards.len(), 2 + 3);
//! assert_eq!(decode_hint(shards[0].spec)?, ShardHint::Range);
//! assert_eq!(
//!     decode_hint(shards[4].spec)?,
//!     ShardHint::Manifest { manifest_id: 7, start_row: 800, end_row: 1000 },
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod builder;
mod hint;
mod key_encoding;
#[cfg(test)]
mod test_support;
pub mod testing;

pub use builder::{PreallocShardBuilder, PreallocShardBuilderError};
pub use hint::{
    HintPropagationError, MetadataBuf, ShardEncodeError, ShardHint, ShardHintDecodeError,
    ShardMetadata, ShardMetadataDecodeError, ShardSpecScratch, SplitBoundary,
    decode_connector_extra, decode_hint, decode_metadata, manifest_shard_into, manifest_shard_ref,
    prefix_shard_into, prefix_shard_ref, propagate_hint_on_split, range_shard_into,
    range_shard_ref,
};
pub use key_encoding::{
    FamilyKey, KeyBuf, KeyEncoding, KeyInputError, ManifestRowKey, ObjectKey, ObjectKeyError,
    PathKey, PrefixShardError, RawPathKey, ShardIntoError, byte_midpoint, decode_manifest_row_key,
    decode_object_key, key_successor, prefix_successor, shard_spec_from_keys_into,
    shard_spec_from_keys_ref, shard_spec_from_manifest_range_into,
    shard_spec_from_manifest_range_ref, shard_spec_from_prefix_into, shard_spec_from_prefix_ref,
};
