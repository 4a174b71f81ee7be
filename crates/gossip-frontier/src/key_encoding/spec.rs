//! Key ranges from typed keys, prefixes and manifest rows.
//!
//! Each constructor has a `_ref` form, which returns a view over the caller's buffers and keeps
//! nothing, and an `_into` form, which copies that view into an arena. Metadata goes through as it
//! is; `range_shard_ref` and its siblings write hints into it.

use gossip_contracts::coordination::{
    MAX_KEY_SIZE, ShardArena, ShardSpec, ShardSpecHandle, ShardSpecInputError, ShardSpecRef,
};
use gossip_stdx::SlabFull;

use super::{KeyBuf, KeyEncoding, ManifestRowKey, prefix_successor};

/// The range `[start, end)`, encoded into `start_buf` and `end_buf`.
pub fn shard_spec_from_keys_ref<'a>(
    start: &impl KeyEncoding,
    end: &impl KeyEncoding,
    metadata: &'a [u8],
    start_buf: &'a mut KeyBuf,
    end_buf: &'a mut KeyBuf,
) -> Result<ShardSpecRef<'a>, ShardSpecInputError> {
    start.encode_into(start_buf);
    end.encode_into(end_buf);
    checked(ShardSpecRef::new(start_buf.as_bytes(), end_buf.as_bytes(), metadata))
}

/// The range of all keys that begin with `prefix`. Only its end is written, into `end_buf`.
///
/// Checks, in this order: the prefix is there, it is no longer than a key, it has a successor, the
/// metadata fits.
pub fn shard_spec_from_prefix_ref<'a>(
    prefix: &'a [u8],
    metadata: &'a [u8],
    end_buf: &'a mut KeyBuf,
) -> Result<ShardSpecRef<'a>, PrefixShardError> {
    check_prefix_size(prefix)?;
    let end = prefix_successor(prefix, end_buf).ok_or(PrefixShardError::NoSuccessor)?;
    Ok(checked(ShardSpecRef::new(prefix, end, metadata))?)
}

/// The rows `[start_row, end_row)` of one manifest, encoded into `start_buf` and `end_buf`.
pub fn shard_spec_from_manifest_range_ref<'a>(
    manifest_id: u64,
    start_row: u64,
    end_row: u64,
    metadata: &'a [u8],
    start_buf: &'a mut KeyBuf,
    end_buf: &'a mut KeyBuf,
) -> Result<ShardSpecRef<'a>, ShardSpecInputError> {
    let start = ManifestRowKey::new(manifest_id, start_row);
    let end = ManifestRowKey::new(manifest_id, end_row);
    shard_spec_from_keys_ref(&start, &end, metadata, start_buf, end_buf)
}

/// [`shard_spec_from_keys_ref`], copied into `arena`.
pub fn shard_spec_from_keys_into(
    arena: &mut ShardArena,
    start: &impl KeyEncoding,
    end: &impl KeyEncoding,
    metadata: &[u8],
    start_buf: &mut KeyBuf,
    end_buf: &mut KeyBuf,
) -> Result<ShardSpecHandle, ShardIntoError<ShardSpecInputError>> {
    keep(arena, shard_spec_from_keys_ref(start, end, metadata, start_buf, end_buf))
}

/// [`shard_spec_from_prefix_ref`], copied into `arena`.
pub fn shard_spec_from_prefix_into(
    arena: &mut ShardArena,
    prefix: &[u8],
    metadata: &[u8],
    end_buf: &mut KeyBuf,
) -> Result<ShardSpecHandle, ShardIntoError<PrefixShardError>> {
    keep(arena, shard_spec_from_prefix_ref(prefix, metadata, end_buf))
}

/// [`shard_spec_from_manifest_range_ref`], copied into `arena`.
pub fn shard_spec_from_manifest_range_into(
    arena: &mut ShardArena,
    manifest_id: u64,
    start_row: u64,
    end_row: u64,
    metadata: &[u8],
    start_buf: &mut KeyBuf,
    end_buf: &mut KeyBuf,
) -> Result<ShardSpecHandle, ShardIntoError<ShardSpecInputError>> {
    let spec = shard_spec_from_manifest_range_ref(
        manifest_id,
        start_row,
        end_row,
        metadata,
        start_buf,
        end_buf,
    );
    keep(arena, spec)
}

/// The second half of every `_into` constructor. A refused spec leaves the arena alone.
pub(crate) fn keep<E>(
    arena: &mut ShardArena,
    spec: Result<ShardSpecRef<'_>, E>,
) -> Result<ShardSpecHandle, ShardIntoError<E>> {
    arena.alloc(spec.map_err(ShardIntoError::Build)?).map_err(ShardIntoError::SlabFull)
}

pub(crate) fn checked(spec: ShardSpecRef<'_>) -> Result<ShardSpecRef<'_>, ShardSpecInputError> {
    ShardSpec::validate_ref(spec)?;
    Ok(spec)
}

pub(crate) fn check_prefix_size(prefix: &[u8]) -> Result<(), PrefixShardError> {
    if prefix.is_empty() {
        return Err(PrefixShardError::EmptyPrefix);
    }
    if prefix.len() > MAX_KEY_SIZE {
        return Err(PrefixShardError::PrefixTooLarge { size: prefix.len(), max: MAX_KEY_SIZE });
    }
    Ok(())
}

/// Why a prefix does not make a bounded key range. Sizes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum PrefixShardError {
    /// The prefix is empty: it would cover every key.
    #[error("the prefix is empty")]
    EmptyPrefix,
    /// The prefix is longer than a key may be.
    #[error("the prefix has {size} bytes; at most {max} are allowed")]
    PrefixTooLarge { size: usize, max: usize },
    /// Every byte is `0xFF`: no key lies behind all that begin with the prefix.
    #[error("the prefix is all 0xFF bytes; no key bounds it above")]
    NoSuccessor,
    /// The range was refused, for example for its metadata.
    #[error("the prefix range is refused: {0}")]
    InvalidShardSpec(#[from] ShardSpecInputError),
}

/// Why an `_into` constructor stored nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardIntoError<E> {
    /// The spec itself was refused.
    #[error("the shard is refused: {0}")]
    Build(#[source] E),
    /// The spec is good, the arena has no room for it.
    #[error("the shard arena is full: {0}")]
    SlabFull(#[source] SlabFull),
}
