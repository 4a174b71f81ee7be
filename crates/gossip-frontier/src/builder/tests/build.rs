//! Invariants 41–48 and 52: the manifest, reset and drop.

use gossip_contracts::coordination::{ManifestValidationError, validate_manifest};

use super::{arena, id, state};
use crate::builder::*;
use crate::{KeyBuf, KeyEncoding, ManifestRowKey, ShardHint, decode_connector_extra, decode_hint};

type Builder<'a> = PreallocShardBuilder<'a, 8>;

fn row_key(manifest_id: u64, row: u64) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    ManifestRowKey::new(manifest_id, row).encode_into(&mut buf);
    buf.as_bytes().to_vec()
}

#[test]
fn mixed_range_prefix_manifest_builds_valid_manifest() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"m", b"r").unwrap();
    builder.add_prefix(b"src/", b"p").unwrap();
    builder.add_manifest(7, 10, 20, b"m").unwrap();
    let shards = builder.build_inputs().unwrap();
    assert_eq!(validate_manifest(&shards), Ok(()));
    let hints: Vec<_> = shards.iter().map(|row| decode_hint(row.spec).unwrap()).collect();
    let manifest = ShardHint::Manifest { manifest_id: 7, start_row: 10, end_row: 20 };
    assert_eq!(hints, [ShardHint::Range, ShardHint::Prefix { prefix: b"src/" }, manifest]);
    let extra: Vec<_> = shards.iter().map(|row| decode_connector_extra(row.spec)).collect();
    assert_eq!(extra, [Ok(&b"r"[..]), Ok(b"p"), Ok(b"m")]);
    assert_eq!(shards[2].spec.start(), row_key(7, 10));
}

#[test]
fn ids_are_assigned_in_insertion_order() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    // Insertion order, not key order.
    assert_eq!(builder.add_range(b"m", b"z", b""), Ok(id(0)));
    assert!(builder.add_range(b"z", b"m", b"").is_err());
    assert_eq!(builder.add_prefix(b"b", b""), Ok(id(1)));
    assert_eq!(builder.add_manifest(0, 0, 1, b""), Ok(id(2)));
    let shards = builder.build_inputs().unwrap();
    assert_eq!(shards.iter().map(|row| row.shard).collect::<Vec<_>>(), [id(0), id(1), id(2)]);
    assert_eq!(shards[1].spec.start(), b"b");
}

#[test]
fn default_add_methods_use_initial_cursor() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    builder.add_prefix(b"p", b"").unwrap();
    builder.add_manifest(7, 10, 20, b"").unwrap();
    builder.split_manifest_by_rows(8, 0, 2, 1, b"").unwrap();
    let shards = builder.build_inputs().unwrap();
    assert!(shards.iter().all(|row| row.cursor == CursorUpdate::initial()));
}

#[test]
fn with_cursor_methods_preserve_non_initial_cursor() {
    let in_range = CursorUpdate::new(Some(b"am"), Some(b"token"));
    let in_prefix = CursorUpdate::at(b"px");
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range_with_cursor(b"a", b"b", b"", in_range).unwrap();
    builder.add_prefix_with_cursor(b"p", b"", in_prefix).unwrap();
    let shards = builder.build_inputs().unwrap();
    assert_eq!((shards[0].cursor, shards[1].cursor), (in_range, in_prefix));
}

#[test]
fn add_manifest_with_cursor_preserves_initial_cursor() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_manifest_with_cursor(7, 10, 20, b"", CursorUpdate::initial()).unwrap();
    assert_eq!(builder.build_inputs().unwrap()[0].cursor, CursorUpdate::initial());
}

#[test]
fn add_manifest_with_cursor_preserves_explicit_cursor() {
    let last_key = row_key(7, 15);
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_manifest_with_cursor(7, 10, 20, b"", CursorUpdate::at(&last_key)).unwrap();
    assert_eq!(builder.build_inputs().unwrap()[0].cursor.last_key(), Some(&last_key[..]));
}

#[test]
fn cursor_outside_range_fails_manifest_validation() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    builder.add_range_with_cursor(b"c", b"d", b"", CursorUpdate::at(b"d")).unwrap();
    assert_eq!(
        builder.build_inputs(),
        Err(PreallocShardBuilderError::ManifestInvalid(
            ManifestValidationError::CursorOutOfBounds { shard: id(1) }
        ))
    );
}

#[test]
fn overlapping_ranges_fail_on_build_validation() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"c", b"f", b"").unwrap();
    builder.add_range(b"a", b"d", b"").unwrap();
    let before = state(&builder);
    assert_eq!(
        builder.build_inputs(),
        Err(PreallocShardBuilderError::ManifestInvalid(
            ManifestValidationError::OverlappingRanges { first: id(1), second: id(0) }
        ))
    );
    assert_eq!(state(&builder), before);
}

#[test]
fn unbounded_ranges_fail_on_build_validation() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"", b"").unwrap();
    assert_eq!(
        builder.build_inputs(),
        Err(PreallocShardBuilderError::ManifestInvalid(ManifestValidationError::UnboundedRange {
            shard: id(0)
        }))
    );
}

#[test]
fn build_inputs_on_empty_builder_returns_manifest_empty() {
    let mut arena = arena();
    let builder = Builder::new(&mut arena, 8).unwrap();
    assert!(builder.is_empty());
    assert_eq!(
        builder.build_inputs(),
        Err(PreallocShardBuilderError::ManifestInvalid(ManifestValidationError::Empty))
    );
}

#[test]
fn build_inputs_is_idempotent() {
    let mut arena = arena();
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_range(b"a", b"b", b"x").unwrap();
    let before = state(&builder);
    assert_eq!(builder.build_inputs().unwrap(), builder.build_inputs().unwrap());
    assert_eq!(state(&builder), before);
    // And staging goes on behind it.
    builder.add_range(b"b", b"c", b"").unwrap();
    assert_eq!(builder.build_inputs().unwrap().len(), 2);
}

#[test]
fn reset_allows_fresh_reuse_and_resets_ids() {
    let mut arena = arena();
    let empty_bytes = arena.live_bytes();
    let mut builder = Builder::new(&mut arena, 2).unwrap();
    for _ in 0..3 {
        assert_eq!(builder.add_range(b"a", b"b", b"x"), Ok(id(0)));
        assert_eq!(builder.add_range(b"b", b"c", b"x"), Ok(id(1)));
        assert!(builder.add_range(b"c", b"d", b"x").is_err());
        builder.reset();
        assert!(builder.is_empty() && builder.arena().is_empty());
        assert_eq!((builder.next_id(), builder.arena().live_bytes()), (id(0), empty_bytes));
    }
}

#[test]
fn dropping_a_builder_clears_the_arena() {
    let mut arena = arena();
    let before = arena.alloc(ShardSpecRef::new(b"x", b"y", b""));
    let mut builder = Builder::new(&mut arena, 8).unwrap();
    builder.add_spec_handle(before.unwrap()).unwrap();
    builder.add_range(b"a", b"b", b"").unwrap();
    drop(builder);
    assert!(arena.is_empty());
    assert!(arena.get(before.unwrap()).is_none());
}

#[test]
fn several_builders_fill_one_run() {
    let mut arenas: Vec<_> = (0..3).map(|_| arena()).collect();
    let mut first = id(0);
    let mut builders = Vec::new();
    for (manifest_id, arena) in arenas.iter_mut().enumerate() {
        let mut builder = Builder::with_first_id(arena, 8, first).unwrap();
        builder.split_manifest_by_rows(manifest_id as u64, 0, 8, 1, b"").unwrap();
        first = builder.next_id();
        builders.push(builder);
    }
    let run: Vec<_> = builders.iter().flat_map(|builder| builder.build_inputs().unwrap()).collect();
    assert_eq!(run.len(), 24);
    assert_eq!(validate_manifest(&run), Ok(()));
    assert!(run.iter().enumerate().all(|(index, row)| row.shard == id(index as u64)));
}
