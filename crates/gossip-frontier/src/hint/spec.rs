//! Shards whose metadata says what they are.
//!
//! `_ref` forms return a view over the scratch and keep nothing; `_into` forms copy that view into
//! an arena. Metadata is checked before boundaries.

use gossip_contracts::coordination::{
    ShardArena, ShardSpecHandle, ShardSpecInputError, ShardSpecRef,
};

use super::buf::ShardSpecScratch;
use super::error::ShardEncodeError;
use super::metadata::ShardMetadata;
use super::wire::ShardHint;
use crate::key_encoding::{
    ManifestRowKey, PrefixShardError, ShardIntoError, check_prefix_size, checked, keep,
    shard_spec_from_manifest_range_ref, shard_spec_from_prefix_ref,
};

/// The range `[start, end)`. The boundaries are borrowed, not copied.
pub fn range_shard_ref<'a>(
    start: &'a [u8],
    end: &'a [u8],
    connector_extra: &[u8],
    scratch: &'a mut ShardSpecScratch,
) -> Result<ShardSpecRef<'a>, ShardSpecInputError> {
    let metadata = ShardMetadata::new(ShardHint::Range, connector_extra)
        .encode_into(&mut scratch.metadata)
        .map_err(as_spec_error)?;
    checked(ShardSpecRef::new(start, end, metadata))
}

/// All keys that begin with `prefix`, which is borrowed, not copied.
pub fn prefix_shard_ref<'a>(
    prefix: &'a [u8],
    connector_extra: &[u8],
    scratch: &'a mut ShardSpecScratch,
) -> Result<ShardSpecRef<'a>, PrefixShardError> {
    check_prefix_size(prefix)?;
    let metadata = ShardMetadata::new(ShardHint::Prefix { prefix }, connector_extra)
        .encode_into(&mut scratch.metadata)
        .map_err(as_spec_error)?;
    shard_spec_from_prefix_ref(prefix, metadata, &mut scratch.end)
}

/// The rows `[start_row, end_row)` of one manifest.
pub fn manifest_shard_ref<'a>(
    manifest_id: u64,
    start_row: u64,
    end_row: u64,
    connector_extra: &[u8],
    scratch: &'a mut ShardSpecScratch,
) -> Result<ShardSpecRef<'a>, ShardSpecInputError> {
    let hint = ShardHint::Manifest { manifest_id, start_row, end_row };
    let metadata = ShardMetadata::new(hint, connector_extra)
        .encode_into(&mut scratch.metadata)
        .map_err(as_spec_error)?;
    shard_spec_from_manifest_range_ref(
        manifest_id,
        start_row,
        end_row,
        metadata,
        &mut scratch.start,
        &mut scratch.end,
    )
}

/// [`range_shard_ref`], copied into `arena`.
pub fn range_shard_into(
    arena: &mut ShardArena,
    start: &[u8],
    end: &[u8],
    connector_extra: &[u8],
    scratch: &mut ShardSpecScratch,
) -> Result<ShardSpecHandle, ShardIntoError<ShardSpecInputError>> {
    keep(arena, range_shard_ref(start, end, connector_extra, scratch))
}

/// [`prefix_shard_ref`], copied into `arena`.
pub fn prefix_shard_into(
    arena: &mut ShardArena,
    prefix: &[u8],
    connector_extra: &[u8],
    scratch: &mut ShardSpecScratch,
) -> Result<ShardSpecHandle, ShardIntoError<PrefixShardError>> {
    keep(arena, prefix_shard_ref(prefix, connector_extra, scratch))
}

/// [`manifest_shard_ref`], copied into `arena`.
pub fn manifest_shard_into(
    arena: &mut ShardArena,
    manifest_id: u64,
    start_row: u64,
    end_row: u64,
    connector_extra: &[u8],
    scratch: &mut ShardSpecScratch,
) -> Result<ShardSpecHandle, ShardIntoError<ShardSpecInputError>> {
    keep(arena, manifest_shard_ref(manifest_id, start_row, end_row, connector_extra, scratch))
}

/// What an encoding error means for the shard: too much metadata, or a range without rows.
fn as_spec_error(error: ShardEncodeError) -> ShardSpecInputError {
    match error {
        ShardEncodeError::PrefixTooLarge { size, max }
        | ShardEncodeError::HintTooLarge { size, max }
        | ShardEncodeError::MetadataTooLarge { size, max } => {
            ShardSpecInputError::MetadataTooLarge { size, max }
        }
        ShardEncodeError::InvertedManifestRows { .. } => ShardSpecInputError::InvertedRange {
            start_len: ManifestRowKey::ENCODED_LEN,
            end_len: ManifestRowKey::ENCODED_LEN,
        },
    }
}
