//! Manifests: the shards with which a run starts.
//!
//! - M1: a manifest is neither empty nor larger than [`MAX_INITIAL_SHARDS`].
//! - M2: its shard ids are root ids, each used once.
//! - M3: its ranges are valid and bounded at both ends.
//! - M4: no two ranges share a key. Gaps are fine: a source need not fill the key space.
//! - M5: every cursor lies in its own range.

use super::cursor::{CursorInputError, CursorUpdate};
use super::limits::MAX_INITIAL_SHARDS;
use super::shard_spec::{ShardSpec, ShardSpecInputError, ShardSpecRef};
use crate::identity::{CanonicalBytes, CanonicalHasher, ShardId};

/// One shard of a manifest, borrowed from whoever planned it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialShardInput<'a> {
    /// The id under which it is registered.
    pub shard: ShardId,
    /// The keys that it covers.
    pub spec: ShardSpecRef<'a>,
    /// Where work starts; [`CursorUpdate::initial`] unless earlier progress is carried over.
    pub cursor: CursorUpdate<'a>,
}

impl<'a> InitialShardInput<'a> {
    /// One row of a manifest, unchecked.
    #[must_use]
    pub const fn new(shard: ShardId, spec: ShardSpecRef<'a>, cursor: CursorUpdate<'a>) -> Self {
        Self { shard, spec, cursor }
    }
}

impl CanonicalBytes for InitialShardInput<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(&self.shard).value(&self.spec).value(&self.cursor);
    }
}

/// Checks a whole manifest and reports the first fault in this order:
///
/// 1. M1: empty, then too many.
/// 2. Row by row: a derived id (M2), a bad range, an unbounded range (M3), a cursor that is too
///    large, a cursor out of bounds (M5).
/// 3. A repeated id (M2): of the repeated ids the lowest.
/// 4. Overlapping ranges (M4): of the overlapping pairs the first in key order.
pub fn validate_manifest(shards: &[InitialShardInput<'_>]) -> Result<(), ManifestValidationError> {
    if shards.is_empty() {
        return Err(ManifestValidationError::Empty);
    }
    if shards.len() > MAX_INITIAL_SHARDS {
        return Err(ManifestValidationError::TooManyShards {
            count: shards.len(),
            max: MAX_INITIAL_SHARDS,
        });
    }
    shards.iter().try_for_each(validate_row)?;
    validate_unique_ids(shards)?;
    validate_disjoint(shards)
}

fn validate_row(row: &InitialShardInput<'_>) -> Result<(), ManifestValidationError> {
    let shard = row.shard;
    if shard.is_derived() {
        return Err(ManifestValidationError::DerivedShardId { shard });
    }
    ShardSpec::validate_ref(row.spec)
        .map_err(|source| ManifestValidationError::SpecInvalid { shard, source })?;
    if !row.spec.is_bounded() {
        return Err(ManifestValidationError::UnboundedRange { shard });
    }
    row.cursor
        .validate_sizes()
        .map_err(|source| ManifestValidationError::CursorInvalid { shard, source })?;
    if !row.cursor.is_within(row.spec) {
        return Err(ManifestValidationError::CursorOutOfBounds { shard });
    }
    Ok(())
}

fn validate_unique_ids(shards: &[InitialShardInput<'_>]) -> Result<(), ManifestValidationError> {
    let mut ids: Vec<ShardId> = shards.iter().map(|row| row.shard).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(ManifestValidationError::DuplicateShardId { shard: pair[0] }),
        None => Ok(()),
    }
}

fn validate_disjoint(shards: &[InitialShardInput<'_>]) -> Result<(), ManifestValidationError> {
    let mut by_start: Vec<&InitialShardInput<'_>> = shards.iter().collect();
    by_start.sort_unstable_by_key(|row| (row.spec.start(), row.shard));
    match by_start.windows(2).find(|pair| pair[0].spec.end() > pair[1].spec.start()) {
        Some(pair) => Err(ManifestValidationError::OverlappingRanges {
            first: pair[0].shard,
            second: pair[1].shard,
        }),
        None => Ok(()),
    }
}

/// Why a manifest was refused. Nothing was registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ManifestValidationError {
    /// There is no shard in it.
    #[error("the manifest is empty")]
    Empty,
    /// There are more shards than one registration may bring.
    #[error("the manifest has {count} shards; at most {max} are allowed")]
    TooManyShards {
        /// Shards given.
        count: usize,
        /// Shards allowed.
        max: usize,
    },
    /// An id has bit 63 set, which marks the shards that splits make.
    #[error("shard id {shard} is reserved for shards made by splits")]
    DerivedShardId { shard: ShardId },
    /// A range is not valid.
    #[error("shard {shard}: {source}")]
    SpecInvalid {
        shard: ShardId,
        /// What is wrong with its range.
        source: ShardSpecInputError,
    },
    /// A range is open at one end or both.
    #[error("shard {shard} is not bounded at both ends")]
    UnboundedRange { shard: ShardId },
    /// A cursor is too large.
    #[error("shard {shard}: {source}")]
    CursorInvalid {
        shard: ShardId,
        /// What is wrong with its cursor.
        source: CursorInputError,
    },
    /// A cursor lies outside its range.
    #[error("the cursor of shard {shard} lies outside its range")]
    CursorOutOfBounds { shard: ShardId },
    /// An id is used twice.
    #[error("shard id {shard} is used more than once")]
    DuplicateShardId { shard: ShardId },
    /// Two ranges share keys.
    #[error("shards {first} and {second} overlap")]
    OverlappingRanges {
        /// The one that starts first.
        first: ShardId,
        /// The one that starts before the first has ended.
        second: ShardId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::{MAX_KEY_SIZE, MAX_TOKEN_SIZE};

    fn row<'a>(id: u64, start: &'a [u8], end: &'a [u8]) -> InitialShardInput<'a> {
        InitialShardInput::new(
            ShardId::from_raw(id),
            ShardSpecRef::new(start, end, b""),
            CursorUpdate::initial(),
        )
    }

    fn id(raw: u64) -> ShardId {
        ShardId::from_raw(raw)
    }

    #[test]
    fn disjoint_bounded_ranges_in_any_order_pass() {
        assert_eq!(
            validate_manifest(&[row(1, b"m", b"p"), row(0, b"a", b"m"), row(7, b"x", b"y")]),
            Ok(())
        );
    }

    #[test]
    fn the_number_of_shards_is_limited() {
        let keys: Vec<[u8; 4]> = (1..=10_002u32).map(u32::to_be_bytes).collect();
        let rows: Vec<_> =
            keys.windows(2).zip(0..).map(|(pair, id)| row(id, &pair[0], &pair[1])).collect();
        assert_eq!(validate_manifest(&[]), Err(ManifestValidationError::Empty));
        assert_eq!(validate_manifest(&rows[..10_000]), Ok(()));
        assert_eq!(
            validate_manifest(&rows),
            Err(ManifestValidationError::TooManyShards { count: 10_001, max: 10_000 })
        );
    }

    #[test]
    fn each_row_fault_has_its_own_error() {
        let long_key = vec![1u8; MAX_KEY_SIZE + 1];
        let long_token = vec![1u8; MAX_TOKEN_SIZE + 1];
        let derived = ShardId::derived_from_raw(1);
        let with_cursor = |cursor| InitialShardInput { cursor, ..row(3, b"b", b"d") };
        for (bad, expected) in [
            (
                row(derived.as_raw(), b"a", b"b"),
                ManifestValidationError::DerivedShardId { shard: derived },
            ),
            (
                row(3, b"b", b"a"),
                ManifestValidationError::SpecInvalid {
                    shard: id(3),
                    source: ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 },
                },
            ),
            (row(3, b"", b"a"), ManifestValidationError::UnboundedRange { shard: id(3) }),
            (row(3, b"a", b""), ManifestValidationError::UnboundedRange { shard: id(3) }),
            (
                with_cursor(CursorUpdate::at(&long_key)),
                ManifestValidationError::CursorInvalid {
                    shard: id(3),
                    source: CursorInputError::KeyTooLarge { size: 4097, max: 4096 },
                },
            ),
            (
                with_cursor(CursorUpdate::new(Some(b"c"), Some(&long_token))),
                ManifestValidationError::CursorInvalid {
                    shard: id(3),
                    source: CursorInputError::TokenTooLarge { size: 16_385, max: 16_384 },
                },
            ),
            (
                with_cursor(CursorUpdate::at(b"d")),
                ManifestValidationError::CursorOutOfBounds { shard: id(3) },
            ),
        ] {
            assert_eq!(validate_manifest(&[row(0, b"x", b"y"), bad]), Err(expected));
        }
    }

    #[test]
    fn repeated_ids_and_shared_keys_are_refused() {
        assert_eq!(
            validate_manifest(&[row(4, b"a", b"b"), row(5, b"c", b"d"), row(4, b"e", b"f")]),
            Err(ManifestValidationError::DuplicateShardId { shard: id(4) })
        );
        assert_eq!(
            validate_manifest(&[row(2, b"c", b"e"), row(1, b"a", b"c\0")]),
            Err(ManifestValidationError::OverlappingRanges { first: id(1), second: id(2) })
        );
        assert_eq!(
            validate_manifest(&[row(2, b"a", b"c"), row(1, b"a", b"b")]),
            Err(ManifestValidationError::OverlappingRanges { first: id(1), second: id(2) })
        );
    }

    /// The documented order: a manifest with every fault reports them one by one as they are mended.
    #[test]
    fn faults_are_reported_in_the_documented_order() {
        let mut rows = vec![row(1, b"a", b"d"), row(1, b"c", b""), row(2, b"c", b"e")];
        rows[1].cursor = CursorUpdate::at(b"a");
        assert_eq!(
            validate_manifest(&rows),
            Err(ManifestValidationError::UnboundedRange { shard: id(1) })
        );
        rows[1].spec = ShardSpecRef::new(b"c", b"e", b"");
        assert_eq!(
            validate_manifest(&rows),
            Err(ManifestValidationError::CursorOutOfBounds { shard: id(1) })
        );
        rows[1].cursor = CursorUpdate::initial();
        assert_eq!(
            validate_manifest(&rows),
            Err(ManifestValidationError::DuplicateShardId { shard: id(1) })
        );
        rows[1].shard = id(3);
        assert_eq!(
            validate_manifest(&rows),
            Err(ManifestValidationError::OverlappingRanges { first: id(1), second: id(2) })
        );
    }

    proptest::proptest! {
        /// M4, from the keys' side: no key may have two owners.
        #[test]
        fn overlap_is_found_exactly_when_some_key_has_two_owners(
            ranges in proptest::collection::vec((1u8..30, 1u8..6), 1..8),
        ) {
            let bounds: Vec<[[u8; 1]; 2]> =
                ranges.iter().map(|&(start, len)| [[start], [start + len]]).collect();
            let rows: Vec<_> =
                (bounds.iter().zip(0..)).map(|([start, end], id)| row(id, start, end)).collect();
            let owners = |key: u8| rows.iter().filter(|row| row.spec.contains(&[key])).count();
            let shared = (0..=40).any(|key| owners(key) > 1);
            let verdict = validate_manifest(&rows);
            proptest::prop_assert_eq!(
                matches!(verdict, Err(ManifestValidationError::OverlappingRanges { .. })),
                shared
            );
            proptest::prop_assert_eq!(verdict.is_ok(), !shared);
        }
    }
}
