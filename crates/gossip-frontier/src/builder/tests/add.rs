//! Invariants 49–51, 53–55: single adds, limits and ids.

use gossip_contracts::coordination::{
    MAX_INITIAL_SHARDS, MAX_KEY_SIZE, MAX_METADATA_SIZE, ShardArena, ShardSpecInputError,
    ShardSpecRef,
};

use super::{arena, id, refused, refused_for_room, state};
use crate::PrefixShardError;
use crate::builder::*;

type Builder<'a> = PreallocShardBuilder<'a, 8>;

const INVERTED: ShardSpecInputError =
    ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 };
const INVERTED_ROWS: ShardSpecInputError =
    ShardSpecInputError::InvertedRange { start_len: 16, end_len: 16 };
const METADATA_TOO_LARGE: ShardSpecInputError =
    ShardSpecInputError::MetadataTooLarge { size: 16_385, max: 16_384 };

#[test]
fn config_rejects_zero_entry_limit() {
    let mut arena = arena();
    assert_eq!(Builder::new(&mut arena, 0).unwrap_err(), PreallocShardBuilderError::EntryLimitZero);
}

#[test]
fn config_rejects_entry_limit_exceeding_cap() {
    let mut arena = arena();
    assert_eq!(
        Builder::new(&mut arena, 9).unwrap_err(),
        PreallocShardBuilderError::CapMismatch { entry_limit: 9, cap: 8 }
    );
    assert_eq!(Builder::new(&mut arena, 8).unwrap().entry_limit(), 8);
    // Innermost first: also where the outermost limit is passed as well.
    assert_eq!(
        Builder::new(&mut arena, MAX_INITIAL_SHARDS + 1).unwrap_err(),
        PreallocShardBuilderError::CapMismatch { entry_limit: 10_001, cap: 8 }
    );
    assert_eq!(
        check_limits(MAX_INITIAL_SHARDS + 1, MAX_INITIAL_SHARDS + 1, id(0)),
        Err(PreallocShardBuilderError::EntryLimitExceedsManifestMax {
            entry_limit: 10_001,
            max: 10_000
        })
    );
}

#[test]
fn a_refused_builder_leaves_the_arena_alone() {
    let mut arena = arena();
    arena.alloc(ShardSpecRef::new(b"a", b"b", b"")).unwrap();
    let before = (arena.len(), arena.live_bytes());
    assert!(Builder::new(&mut arena, 0).is_err());
    assert_eq!((arena.len(), arena.live_bytes()), before);
}

#[test]
fn ids_count_up_from_the_first_id() {
    let mut arena = arena();
    let mut builder = Builder::with_first_id(&mut arena, 8, id(1024)).unwrap();
    assert_eq!(builder.next_id(), id(1024));
    assert_eq!(builder.add_range(b"a", b"b", b""), Ok(id(1024)));
    assert_eq!(builder.add_range(b"b", b"c", b""), Ok(id(1025)));
    let shards: Vec<_> = builder.build_inputs().unwrap().iter().map(|row| row.shard).collect();
    assert_eq!(shards, [id(1024), id(1025)]);
    builder.reset();
    assert_eq!(builder.next_id(), id(1024));
}

#[test]
fn ids_never_reach_those_of_split_shards() {
    let mut arena = arena();
    let last = (1 << 63) - 1;
    for (first, entry_limit) in [(last, 2), (last - 6, 8), (1 << 63, 1), (u64::MAX, 1)] {
        assert_eq!(
            Builder::with_first_id(&mut arena, entry_limit, id(first)).unwrap_err(),
            PreallocShardBuilderError::ShardIdsExhausted { first: id(first), entry_limit }
        );
    }
    let mut builder = Builder::with_first_id(&mut arena, 2, id(last - 1)).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    let shard = builder.add_range(b"b", b"c", b"").unwrap();
    assert!(!shard.is_derived() && builder.next_id().is_derived());
    assert!(builder.build_inputs().is_ok());
}

#[test]
fn entry_limit_exhaustion_returns_capacity_exceeded() {
    let mut arena = arena();
    // Below CAP: the limit is the caller's.
    let mut builder = Builder::new(&mut arena, 2).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    builder.add_prefix(b"p", b"").unwrap();
    let full = PreallocShardBuilderError::CapacityExceeded { limit: 2, current: 2, additional: 1 };
    refused(&mut builder, full, |builder| builder.add_range(b"b", b"c", b""));
    refused(&mut builder, full, |builder| builder.add_prefix(b"q", b""));
    refused(&mut builder, full, |builder| builder.add_manifest(1, 2, 3, b""));
    refused(&mut builder, full, |builder| builder.add_spec_ref(ShardSpecRef::new(b"x", b"y", b"")));
    assert!(!builder.entries.spilled());
}

#[test]
fn arena_slot_exhaustion_returns_slab_full() {
    let mut arena = ShardArena::with_capacity(1, 4096);
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    refused_for_room(&mut builder, |builder| builder.add_range(b"b", b"c", b""));
    refused_for_room(&mut builder, |builder| builder.add_prefix(b"p", b""));
    refused_for_room(&mut builder, |builder| builder.add_manifest(1, 2, 3, b""));
}

#[test]
fn arena_byte_exhaustion_returns_slab_full() {
    let mut arena = ShardArena::with_capacity(8, 256);
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    refused_for_room(&mut builder, |builder| builder.add_range(b"b", &[b'c'; 300], b""));
    refused_for_room(&mut builder, |builder| builder.add_range(b"b", b"c", &[0; 300]));
    // What fits still does, under the id that the refused ones did not take.
    assert_eq!(builder.add_range(b"b", b"c", b""), Ok(id(1)));
}

#[test]
fn add_spec_ref_slab_full() {
    let mut arena = ShardArena::with_capacity(1, 4096);
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let spec = ShardSpecRef::new(b"a", b"b", b"");
    builder.add_spec_ref(spec).unwrap();
    refused_for_room(&mut builder, |builder| builder.add_spec_ref(spec));
}

#[test]
fn stale_or_foreign_handle_is_rejected_without_panic() {
    let mut arena = arena();
    let mut other = self::arena();
    let spec = ShardSpecRef::new(b"a", b"b", b"");
    let live = arena.alloc(spec).unwrap();
    let stale = arena.alloc(spec).unwrap();
    assert!(arena.free(stale));
    let foreign = other.alloc(spec).unwrap();

    let mut builder = Builder::new(&mut arena, 8).unwrap();
    assert_eq!(builder.add_spec_handle(live), Ok(id(0)));
    let invalid = PreallocShardBuilderError::InvalidSpecHandle;
    refused(&mut builder, invalid, |builder| builder.add_spec_handle(stale));
    refused(&mut builder, invalid, |builder| builder.add_spec_handle(foreign));
    builder.reset();
    refused(&mut builder, invalid, |builder| builder.add_spec_handle(live));
}

#[test]
fn add_spec_handle_checks_what_the_arena_does_not() {
    let mut arena = arena();
    let inverted = arena.alloc(ShardSpecRef::new(b"b", b"a", b"")).unwrap();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let expected = PreallocShardBuilderError::SpecInvalid(INVERTED);
    refused(&mut builder, expected, |builder| builder.add_spec_handle(inverted));
}

#[test]
fn add_spec_ref_happy_path() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let spec = ShardSpecRef::new(b"a", b"b", b"any metadata");
    assert_eq!(builder.add_spec_ref(spec), Ok(id(0)));
    let shards = builder.build_inputs().unwrap();
    assert_eq!((shards[0].spec, shards[0].cursor), (spec, CursorUpdate::initial()));
}

#[test]
fn add_spec_ref_rejects_inverted_range() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    let expected = PreallocShardBuilderError::SpecInvalid(INVERTED);
    refused(&mut builder, expected, |b| b.add_spec_ref(ShardSpecRef::new(b"b", b"a", b"")));
}

#[test]
fn add_range_with_inverted_bounds_returns_range_invalid() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    let long = vec![b'k'; MAX_KEY_SIZE + 1];
    let extra = vec![0; MAX_METADATA_SIZE - 4];
    let start_too_large = ShardSpecInputError::StartTooLarge { size: 4097, max: 4096 };
    let end_too_large = ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 };
    for (start, end, extra, cause) in [
        (&b"c"[..], &b"b"[..], &b""[..], INVERTED),
        (b"c", b"c", b"", INVERTED),
        (&long, b"l", b"", start_too_large),
        (b"a", &long, b"", end_too_large),
        (b"a", b"b", &extra, METADATA_TOO_LARGE),
    ] {
        let expected = PreallocShardBuilderError::RangeInvalid(cause);
        refused(&mut builder, expected, |builder| builder.add_range(start, end, extra));
    }
}

#[test]
fn add_prefix_with_empty_prefix_returns_prefix_invalid() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    let long = vec![b'p'; MAX_KEY_SIZE + 1];
    for (prefix, cause) in [
        (&b""[..], PrefixShardError::EmptyPrefix),
        (&[0xff; 4096], PrefixShardError::NoSuccessor),
        (&long, PrefixShardError::PrefixTooLarge { size: 4097, max: 4096 }),
    ] {
        let expected = PreallocShardBuilderError::PrefixInvalid(cause);
        refused(&mut builder, expected, |builder| builder.add_prefix(prefix, b""));
    }
    let extra = vec![0; MAX_METADATA_SIZE - 9];
    let cause = PrefixShardError::InvalidShardSpec(METADATA_TOO_LARGE);
    let expected = PreallocShardBuilderError::PrefixInvalid(cause);
    refused(&mut builder, expected, |builder| builder.add_prefix(b"p", &extra));
}

#[test]
fn add_manifest_with_inverted_rows_returns_manifest_ctor_invalid() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    let expected = PreallocShardBuilderError::ManifestCtorInvalid(INVERTED_ROWS);
    refused(&mut builder, expected, |builder| builder.add_manifest(7, 20, 10, b""));
    refused(&mut builder, expected, |builder| builder.add_manifest(7, 10, 10, b""));
    let extra = vec![0; MAX_METADATA_SIZE - 28];
    let expected = PreallocShardBuilderError::ManifestCtorInvalid(METADATA_TOO_LARGE);
    refused(&mut builder, expected, |builder| builder.add_manifest(7, 10, 20, &extra));
}

#[test]
fn debug_of_a_builder_shows_no_key() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_prefix(b"hush", b"hush").unwrap();
    let shown = format!("{builder:?}");
    assert!(!shown.contains("hush") && shown.contains("len: 1"), "{shown}");
    assert_eq!(state(&builder).arena_len, 1);
}
