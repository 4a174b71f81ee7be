//! Invariants 56–58, and that a bulk split stages everything or nothing.

use gossip_contracts::coordination::{
    MAX_KEY_SIZE, MAX_METADATA_SIZE, MAX_SPLIT_CHILDREN, ShardArena, ShardSpec, ShardSpecInputError,
};
use proptest::prelude::*;

use super::{arena, id, refused, refused_for_room, state};
use crate::builder::*;
use crate::test_support::cases;
use crate::{ShardHint, decode_connector_extra, decode_hint};

type Builder<'a> = PreallocShardBuilder<'a, 8>;
type Roomy<'a> = PreallocShardBuilder<'a, 1024>;

fn ranges<const CAP: usize>(builder: &PreallocShardBuilder<'_, CAP>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let range = |spec: &ShardSpec| (spec.as_ref().start().into(), spec.as_ref().end().into());
    state(builder).entries.iter().map(|(spec, _)| range(spec)).collect()
}

fn rows<const CAP: usize>(builder: &PreallocShardBuilder<'_, CAP>) -> Vec<(u64, u64)> {
    (builder.build_inputs().unwrap().iter())
        .map(|row| match decode_hint(row.spec).unwrap() {
            ShardHint::Manifest { start_row, end_row, .. } => (start_row, end_row),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn split_range_by_boundaries_exact_capacity_preserves_ordering() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 4).unwrap();
    assert_eq!(builder.split_range_by_boundaries(b"a", &[b"g", b"m", b"t"], b"z", b"x"), Ok(4));
    let keys: [&[u8]; 5] = [b"a", b"g", b"m", b"t", b"z"];
    let expected: Vec<_> = keys.windows(2).map(|w| (w[0].to_vec(), w[1].to_vec())).collect();
    assert_eq!(ranges(&builder), expected);
    for (index, row) in builder.build_inputs().unwrap().iter().enumerate() {
        assert_eq!(row.shard, id(index as u64));
        assert_eq!(decode_hint(row.spec), Ok(ShardHint::Range));
        assert_eq!(decode_connector_extra(row.spec), Ok(&b"x"[..]));
    }
}

#[test]
fn split_range_by_boundaries_under_capacity_succeeds() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"A", b"B", b"").unwrap();
    assert_eq!(builder.split_range_by_boundaries(b"a", &[b"m"], b"z", b""), Ok(2));
    // Without points it is one range.
    assert_eq!(builder.split_range_by_boundaries(b"z", &[], b"zz", b""), Ok(1));
    assert_eq!((builder.len(), builder.next_id()), (4, id(4)));
    assert!(builder.build_inputs().is_ok());
}

#[test]
fn split_range_capacity_exceeded_has_no_partial_writes() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 3).unwrap();
    builder.add_range(b"A", b"B", b"").unwrap();
    let expected =
        PreallocShardBuilderError::CapacityExceeded { limit: 3, current: 1, additional: 3 };
    refused(&mut builder, expected, |builder| {
        builder.split_range_by_boundaries(b"a", &[b"g", b"m"], b"z", b"")
    });
}

#[test]
fn split_range_fan_out_exceeded_has_no_partial_writes() {
    let mut arena = ShardArena::with_capacity(1024, 1 << 20);
    let mut builder = Roomy::new(&mut arena, 1024).unwrap();
    let points: Vec<_> = (1..=MAX_SPLIT_CHILDREN as u16).map(u16::to_be_bytes).collect();
    let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
    let expected = PreallocShardBuilderError::FanOutExceeded { limit: 256, requested: 257 };
    refused(&mut builder, expected, |builder| {
        builder.split_range_by_boundaries(b"\0", &points, b"z", b"")
    });
    // One fewer is the limit.
    assert_eq!(builder.split_range_by_boundaries(b"\0", &points[1..], b"z", b""), Ok(256));
}

#[test]
fn split_range_boundary_errors_have_no_partial_writes() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"A", b"B", b"").unwrap();
    let long = vec![b'k'; MAX_KEY_SIZE + 1];
    let inverted = |start_len, end_len| ShardSpecInputError::InvertedRange { start_len, end_len };
    for (points, cause) in [
        (&[&b"m"[..], b"g"][..], inverted(1, 1)),
        (&[b"g", b"g"], inverted(1, 1)),
        (&[b"a"], inverted(1, 1)),
        (&[b"g", b"z"], inverted(1, 1)),
        (&[b"g", b""], inverted(1, 0)),
        (&[b""], inverted(1, 0)),
        (&[b"g", &long], ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 }),
    ] {
        let expected = PreallocShardBuilderError::RangeInvalid(cause);
        refused(&mut builder, expected, |builder| {
            builder.split_range_by_boundaries(b"a", points, b"z", b"")
        });
    }
    let extra = vec![0; MAX_METADATA_SIZE];
    let cause = ShardSpecInputError::MetadataTooLarge { size: 16_389, max: 16_384 };
    refused(&mut builder, PreallocShardBuilderError::RangeInvalid(cause), |builder| {
        builder.split_range_by_boundaries(b"a", &[b"m"], b"z", &extra)
    });
}

#[test]
fn a_boundary_error_is_reported_before_a_full_arena() {
    let mut arena = ShardArena::with_capacity(1, 4096);
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let cause = ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 };
    refused(&mut builder, PreallocShardBuilderError::RangeInvalid(cause), |builder| {
        builder.split_range_by_boundaries(b"a", &[b"c", b"e", b"d"], b"z", b"")
    });
}

#[test]
fn split_manifest_by_rows_exact_capacity_tiles_manifest_rows() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 4).unwrap();
    assert_eq!(builder.split_manifest_by_rows(7, 100, 400, 80, b"x"), Ok(4));
    assert_eq!(rows(&builder), [(100, 180), (180, 260), (260, 340), (340, 400)]);
    let shards = builder.build_inputs().unwrap();
    assert!(shards.windows(2).all(|pair| pair[0].spec.end() == pair[1].spec.start()));
    assert!(shards.iter().all(|row| decode_connector_extra(row.spec) == Ok(b"x")));
}

#[test]
fn split_manifest_by_rows_under_capacity_succeeds() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    assert_eq!(builder.split_manifest_by_rows(7, 0, 10, 5, b""), Ok(2));
    assert_eq!(builder.split_manifest_by_rows(8, 0, 10, 100, b""), Ok(1));
    assert_eq!(rows(&builder), [(0, 5), (5, 10), (0, 10)]);
}

#[test]
fn split_manifest_by_rows_capacity_exceeded_has_no_partial_writes() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 3).unwrap();
    builder.add_manifest(1, 0, 1, b"").unwrap();
    let expected =
        PreallocShardBuilderError::CapacityExceeded { limit: 3, current: 1, additional: 3 };
    refused(&mut builder, expected, |builder| builder.split_manifest_by_rows(7, 0, 9, 4, b""));
}

#[test]
fn split_manifest_by_rows_fan_out_exceeded_has_no_partial_writes() {
    let mut arena = ShardArena::with_capacity(1024, 1 << 20);
    let mut builder = Roomy::new(&mut arena, 1024).unwrap();
    for (end_row, rows_per_shard, requested) in
        [(257, 1, 257), (u64::MAX, 1, usize::MAX), (10, 0, usize::MAX)]
    {
        let expected = PreallocShardBuilderError::FanOutExceeded { limit: 256, requested };
        refused(&mut builder, expected, |builder| {
            builder.split_manifest_by_rows(7, 0, end_row, rows_per_shard, b"")
        });
    }
    assert_eq!(builder.split_manifest_by_rows(7, 0, 256, 1, b""), Ok(256));
}

#[test]
fn split_manifest_by_rows_refuses_ranges_without_rows() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let cause = ShardSpecInputError::InvertedRange { start_len: 16, end_len: 16 };
    let expected = PreallocShardBuilderError::ManifestCtorInvalid(cause);
    refused(&mut builder, expected, |builder| builder.split_manifest_by_rows(7, 9, 9, 1, b""));
    refused(&mut builder, expected, |builder| builder.split_manifest_by_rows(7, 9, 3, 1, b""));
    let extra = vec![0; MAX_METADATA_SIZE];
    let cause = ShardSpecInputError::MetadataTooLarge { size: 16_413, max: 16_384 };
    let expected = PreallocShardBuilderError::ManifestCtorInvalid(cause);
    refused(&mut builder, expected, |builder| builder.split_manifest_by_rows(7, 3, 9, 1, &extra));
}

#[test]
fn split_manifest_by_rows_handles_u64_boundary_without_wrap() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let max = u64::MAX;
    assert_eq!(builder.split_manifest_by_rows(7, max - 5, max, 3, b""), Ok(2));
    assert_eq!(rows(&builder), [(max - 5, max - 2), (max - 2, max)]);
    builder.reset();
    assert_eq!(builder.split_manifest_by_rows(7, 0, max, max / 2, b""), Ok(3));
    assert_eq!(rows(&builder), [(0, max / 2), (max / 2, max - 1), (max - 1, max)]);
    builder.reset();
    assert_eq!(builder.split_manifest_by_rows(7, max - 1, max, max, b""), Ok(1));
}

#[test]
fn a_range_split_without_slots_for_all_rolls_back() {
    for slots in 1..4 {
        let mut arena = ShardArena::with_capacity(slots, 4096);
        let mut builder = Builder::new(&mut arena, 8).unwrap();
        builder.add_range(b"A", b"B", b"kept").unwrap();
        refused_for_room(&mut builder, |builder| {
            builder.split_range_by_boundaries(b"a", &[b"g", b"m"], b"z", b"")
        });
        // The room that was taken back serves again, under the ids that were given back.
        for slot in 1..slots as u64 {
            assert_eq!(builder.add_manifest(1, slot, slot + 1, b""), Ok(id(slot)));
        }
    }
}

#[test]
fn a_manifest_split_without_bytes_for_all_rolls_back() {
    // Room for the children one by one, but not for all of them.
    let mut arena = ShardArena::with_capacity(16, 2048);
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_manifest(1, 0, 1, b"").unwrap();
    let extra = [7; 700];
    refused_for_room(&mut builder, |builder| builder.split_manifest_by_rows(7, 0, 4, 1, &extra));
    assert_eq!(builder.split_manifest_by_rows(7, 0, 4, 2, &extra), Ok(2));
    assert!(builder.build_inputs().is_ok());
}

proptest! {
    #![proptest_config(cases(256))]

    /// Whatever the arena's size and whatever came before: all children or none.
    #[test]
    fn bulk_splits_are_all_or_nothing(
        slots in 0usize..12,
        bytes in 0usize..3000,
        extra_len in 0usize..200,
        splits in prop::collection::vec((any::<bool>(), 1u64..7), 1..6),
    ) {
        let mut arena = ShardArena::with_capacity(slots, bytes);
        let mut builder = PreallocShardBuilder::<16>::new(&mut arena, 16).unwrap();
        let extra = vec![7; extra_len];
        for (index, (range, children)) in splits.into_iter().enumerate() {
            let before = state(&builder);
            let lead = [b'a' + index as u8];
            let outcome = if range {
                let points: Vec<_> = (1..children as u8).map(|point| [lead[0], point]).collect();
                let points: Vec<&[u8]> = points.iter().map(|point| &point[..]).collect();
                builder.split_range_by_boundaries(&lead, &points, &[lead[0], 0xff], &extra)
            } else {
                builder.split_manifest_by_rows(index as u64, 0, children, 1, &extra)
            };
            let after = state(&builder);
            match outcome {
                Ok(staged) => {
                    prop_assert_eq!(staged as u64, children);
                    prop_assert_eq!(after.entries.len(), before.entries.len() + staged);
                    prop_assert_eq!(after.arena_len, before.arena_len + staged);
                    prop_assert_eq!(&after.entries[..before.entries.len()], &before.entries[..]);
                }
                Err(_) => prop_assert_eq!(after, before),
            }
        }
    }
}
