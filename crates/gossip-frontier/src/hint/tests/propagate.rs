//! Invariants 33–37.

use proptest::prelude::*;

use crate::hint::*;
use crate::test_support::cases;
use crate::{KeyBuf, KeyEncoding, ManifestRowKey, prefix_successor};

const MANIFEST: ShardHint<'_> = ShardHint::Manifest { manifest_id: 7, start_row: 10, end_row: 30 };
const SRC: ShardHint<'_> = ShardHint::Prefix { prefix: b"src/" };

const BAD_PREFIX_START: HintPropagationError =
    HintPropagationError::InvalidPrefixBoundary { boundary: SplitBoundary::Start };
const BAD_PREFIX_END: HintPropagationError =
    HintPropagationError::InvalidPrefixBoundary { boundary: SplitBoundary::End };
const BAD_ROW_START: HintPropagationError =
    HintPropagationError::InvalidManifestBoundary { boundary: SplitBoundary::Start };
const BAD_ROW_END: HintPropagationError =
    HintPropagationError::InvalidManifestBoundary { boundary: SplitBoundary::End };

fn row_key(manifest_id: u64, row: u64) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    ManifestRowKey::new(manifest_id, row).encode_into(&mut buf);
    buf.as_bytes().to_vec()
}

fn rows(start: u64, end: u64) -> Result<ShardHint<'static>, HintPropagationError> {
    propagate_hint_on_split(MANIFEST, &row_key(7, start), &row_key(7, end))
}

proptest! {
    #![proptest_config(cases(512))]

    /// Against the definition: a child of `[prefix, successor)`, with the successor written down.
    #[test]
    fn prefix_propagation_follows_the_range_of_the_prefix(
        prefix in prop::collection::vec(prop_oneof![Just(0xff), Just(0xfe), Just(b'a')], 0..4),
        start in prop::collection::vec(prop_oneof![Just(0xff), Just(0xfe), Just(b'a')], 0..5),
        end in prop::collection::vec(prop_oneof![Just(0xff), Just(0xfe), Just(b'b')], 0..5),
    ) {
        let mut buf = KeyBuf::new();
        let upper = prefix_successor(&prefix, &mut buf);
        let start_fits = prefix <= start && upper.is_none_or(|upper| start.as_slice() < upper);
        let end_fits = match (end.is_empty(), upper) {
            (true, upper) => upper.is_none(),
            (false, None) => prefix < end,
            (false, Some(upper)) => prefix < end && end.as_slice() <= upper,
        };
        // Behind an all-0xFF prefix there are longer keys of 0xFF and others: all have it.
        prop_assert!(upper.is_some() || !start_fits || start.starts_with(&prefix));
        let expected = match (start_fits, end_fits) {
            (false, _) => Err(BAD_PREFIX_START),
            (_, false) => Err(BAD_PREFIX_END),
            _ => Ok(ShardHint::Range),
        };
        let hint = ShardHint::Prefix { prefix: &prefix };
        prop_assert_eq!(propagate_hint_on_split(hint, &start, &end), expected);
    }

    #[test]
    fn a_manifest_child_claims_rows_of_its_parent_only(
        start in 0u64..40,
        end in 0u64..40,
    ) {
        match rows(start, end) {
            Ok(hint) => {
                let child = ShardHint::Manifest { manifest_id: 7, start_row: start, end_row: end };
                prop_assert_eq!(hint, child);
                prop_assert!(10 <= start && start < end && end <= 30);
            }
            Err(_) => prop_assert!(start < 10 || start >= end || end > 30),
        }
    }
}

#[test]
fn propagate_hint_on_split_range_stays_range() {
    for (start, end) in [(&b"a"[..], &b"b"[..]), (b"", b""), (b"z", b"a")] {
        assert_eq!(propagate_hint_on_split(ShardHint::Range, start, end), Ok(ShardHint::Range));
    }
}

#[test]
fn propagate_hint_on_split_prefix_demotes_to_range() {
    for (start, end) in [(&b"src/"[..], &b"src/m"[..]), (b"src/m", b"src0"), (b"src/", b"src0")] {
        assert_eq!(propagate_hint_on_split(SRC, start, end), Ok(ShardHint::Range));
    }
}

#[test]
fn propagate_hint_on_split_prefix_rejects_out_of_range_start() {
    for start in [&b""[..], b"src", b"src.", b"src0", b"t"] {
        assert_eq!(propagate_hint_on_split(SRC, start, b"src/z"), Err(BAD_PREFIX_START));
    }
}

#[test]
fn propagate_hint_on_split_prefix_rejects_out_of_range_end() {
    for end in [&b""[..], b"src", b"src/", b"src0\0", b"src1", b"t"] {
        assert_eq!(propagate_hint_on_split(SRC, b"src/a", end), Err(BAD_PREFIX_END));
    }
}

#[test]
fn propagate_hint_on_split_manifest_adjusts_child_rows() {
    assert_eq!(
        rows(10, 20),
        Ok(ShardHint::Manifest { manifest_id: 7, start_row: 10, end_row: 20 })
    );
    assert_eq!(
        rows(15, 16),
        Ok(ShardHint::Manifest { manifest_id: 7, start_row: 15, end_row: 16 })
    );
}

#[test]
fn propagate_hint_on_split_manifest_child_end_at_parent_end() {
    assert_eq!(
        rows(20, 30),
        Ok(ShardHint::Manifest { manifest_id: 7, start_row: 20, end_row: 30 })
    );
    assert_eq!(rows(10, 30), Ok(MANIFEST));
}

#[test]
fn propagate_hint_on_split_manifest_rejects_non_manifest_boundaries() {
    for start in [&b""[..], b"src/", &[0; 15], &[0; 17]] {
        let child = propagate_hint_on_split(MANIFEST, start, &row_key(7, 20));
        assert_eq!(child, Err(BAD_ROW_START));
    }
}

#[test]
fn propagate_hint_on_split_manifest_rejects_non_manifest_end_boundary() {
    for end in [&b""[..], b"src/", &[0; 15], &[0; 17]] {
        let child = propagate_hint_on_split(MANIFEST, &row_key(7, 10), end);
        assert_eq!(child, Err(BAD_ROW_END));
    }
}

#[test]
fn propagate_hint_on_split_manifest_rejects_manifest_id_mismatch() {
    assert_eq!(
        propagate_hint_on_split(MANIFEST, &row_key(8, 10), &row_key(7, 20)),
        Err(HintPropagationError::ManifestIdMismatch { parent: 7, child: 8 })
    );
}

#[test]
fn propagate_hint_on_split_manifest_rejects_end_manifest_id_mismatch() {
    assert_eq!(
        propagate_hint_on_split(MANIFEST, &row_key(7, 10), &row_key(8, 20)),
        Err(HintPropagationError::ManifestIdMismatch { parent: 7, child: 8 })
    );
}

#[test]
fn propagate_hint_on_split_manifest_rejects_out_of_parent_bounds() {
    for start in [0, 9, 30, u64::MAX] {
        assert_eq!(rows(start, 20), Err(BAD_ROW_START));
    }
    assert_eq!(rows(10, 9), Err(BAD_ROW_END));
}

#[test]
fn propagate_hint_on_split_manifest_rejects_end_row_beyond_parent() {
    for end in [31, u64::MAX] {
        assert_eq!(rows(10, end), Err(BAD_ROW_END));
    }
}

#[test]
fn propagate_hint_on_split_manifest_rejects_empty_child_range() {
    for (start_row, end_row) in [(20, 20), (20, 15), (10, 10)] {
        assert_eq!(
            rows(start_row, end_row),
            Err(HintPropagationError::EmptyManifestRange { start_row, end_row })
        );
    }
}

#[test]
fn split_boundaries_are_named_in_messages() {
    assert_eq!(format!("{} {}", SplitBoundary::Start, SplitBoundary::End), "start end");
    assert!(BAD_PREFIX_END.to_string().contains("child's end"));
}
