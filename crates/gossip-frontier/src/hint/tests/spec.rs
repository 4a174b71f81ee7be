//! Invariants 30–32 and 38–40.

use gossip_contracts::coordination::{
    MAX_KEY_SIZE, MAX_METADATA_SIZE, ShardArena, ShardSpec, ShardSpecInputError, ShardSpecRef,
};
use proptest::prelude::*;

use crate::hint::*;
use crate::test_support::cases;
use crate::{PrefixShardError, ShardIntoError, decode_manifest_row_key};

const MANIFEST: ShardHint<'_> = ShardHint::Manifest { manifest_id: 7, start_row: 10, end_row: 20 };
const TOO_LARGE: ShardSpecInputError =
    ShardSpecInputError::MetadataTooLarge { size: 16_385, max: 16_384 };

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn prefix_shard_contains_all_keys_with_prefix(
        prefix in prop::collection::vec(prop_oneof![Just(0xff), any::<u8>()], 1..6),
        suffix in prop::collection::vec(any::<u8>(), 0..6),
        other in prop::collection::vec(prop_oneof![Just(0xff), any::<u8>()], 0..6),
    ) {
        let mut scratch = ShardSpecScratch::new();
        if let Ok(spec) = prefix_shard_ref(&prefix, b"", &mut scratch) {
            prop_assert!(spec.contains(&[&prefix[..], &suffix].concat()));
            prop_assert_eq!(spec.contains(&other), other.starts_with(&prefix));
        }
    }
}

#[test]
fn range_shard_roundtrip_with_decode_helpers() {
    let mut scratch = ShardSpecScratch::new();
    let spec = range_shard_ref(b"a", b"m", b"extra", &mut scratch).unwrap();
    assert_eq!((spec.start(), spec.end()), (&b"a"[..], &b"m"[..]));
    assert_eq!(decode_metadata(spec), Ok(ShardMetadata::new(ShardHint::Range, b"extra")));
    assert_eq!(decode_hint(spec), Ok(ShardHint::Range));
    assert_eq!(decode_connector_extra(spec), Ok(&b"extra"[..]));
    // Helpers take anything that is a spec.
    let owned = ShardSpec::new(spec).unwrap();
    assert_eq!(decode_connector_extra(&owned), Ok(&b"extra"[..]));
}

#[test]
fn prefix_shard_roundtrip_with_decode_helpers() {
    let mut scratch = ShardSpecScratch::new();
    let spec = prefix_shard_ref(b"src/", b"extra", &mut scratch).unwrap();
    assert_eq!((spec.start(), spec.end()), (&b"src/"[..], &b"src0"[..]));
    assert_eq!(decode_hint(spec), Ok(ShardHint::Prefix { prefix: b"src/" }));
    assert_eq!(decode_connector_extra(spec), Ok(&b"extra"[..]));
}

#[test]
fn manifest_shard_roundtrip_with_decode_helpers() {
    let mut scratch = ShardSpecScratch::new();
    let spec = manifest_shard_ref(7, 10, 20, b"extra", &mut scratch).unwrap();
    let row = |key: &[u8]| decode_manifest_row_key(key).map(|key| (key.manifest_id(), key.row()));
    assert_eq!((row(spec.start()), row(spec.end())), (Some((7, 10)), Some((7, 20))));
    assert_eq!(decode_hint(spec), Ok(MANIFEST));
    assert_eq!(decode_connector_extra(spec), Ok(&b"extra"[..]));
}

#[test]
fn prefix_shard_rejects_oversized_prefix_with_prefix_too_large() {
    let mut scratch = ShardSpecScratch::new();
    // Also where the hint alone would not fit.
    for size in [MAX_KEY_SIZE + 1, MAX_METADATA_SIZE + 1] {
        assert_eq!(
            prefix_shard_ref(&vec![b'p'; size], b"", &mut scratch),
            Err(PrefixShardError::PrefixTooLarge { size, max: 4096 })
        );
    }
    assert!(prefix_shard_ref(&[b'p'; MAX_KEY_SIZE], b"", &mut scratch).is_ok());
}

#[test]
fn prefix_shard_rejects_all_ff_prefix() {
    assert_eq!(
        prefix_shard_ref(&[0xff; 4], b"", &mut ShardSpecScratch::new()),
        Err(PrefixShardError::NoSuccessor)
    );
}

#[test]
fn prefix_shard_rejects_empty_prefix() {
    assert_eq!(
        prefix_shard_ref(b"", b"", &mut ShardSpecScratch::new()),
        Err(PrefixShardError::EmptyPrefix)
    );
}

#[test]
fn decode_helpers_propagate_malformed_metadata_errors() {
    let unknown = ShardHintDecodeError::UnknownTag(9);
    for (metadata, hint_error) in
        [(&b"\0\0\0\x01\x09extra"[..], Some(unknown)), (b"\0\0", None), (b"\0\0\0\x09\0", None)]
    {
        let spec = ShardSpecRef::new(b"a", b"b", metadata);
        let expected = ShardMetadataDecodeError { hint_error };
        assert_eq!(decode_metadata(spec), Err(expected));
        assert_eq!(decode_hint(spec), Err(expected));
        assert_eq!(decode_connector_extra(spec), Err(expected));
    }
}

#[test]
fn range_shard_rejects_oversized_metadata() {
    let mut scratch = ShardSpecScratch::new();
    let extra = vec![0; MAX_METADATA_SIZE - 4];
    assert_eq!(range_shard_ref(b"a", b"b", &extra, &mut scratch), Err(TOO_LARGE));
    assert!(range_shard_ref(b"a", b"b", &extra[1..], &mut scratch).is_ok());
    assert_eq!(
        prefix_shard_ref(b"p", &extra[5..], &mut scratch),
        Err(PrefixShardError::InvalidShardSpec(TOO_LARGE))
    );
    assert_eq!(manifest_shard_ref(1, 2, 3, &extra[24..], &mut scratch), Err(TOO_LARGE));
}

#[test]
fn range_shard_rejects_bad_boundaries() {
    let mut scratch = ShardSpecScratch::new();
    let long = vec![b'k'; MAX_KEY_SIZE + 1];
    for (start, end, expected) in [
        (&b"b"[..], &b"a"[..], ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 }),
        (b"b", b"b", ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 }),
        (&long, b"l", ShardSpecInputError::StartTooLarge { size: 4097, max: 4096 }),
        (b"a", &long, ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 }),
    ] {
        assert_eq!(range_shard_ref(start, end, b"", &mut scratch), Err(expected));
    }
}

#[test]
fn manifest_shard_rejects_inverted_rows() {
    let mut scratch = ShardSpecScratch::new();
    for (start, end) in [(20, 10), (10, 10), (u64::MAX, 0)] {
        assert_eq!(
            manifest_shard_ref(7, start, end, b"", &mut scratch),
            Err(ShardSpecInputError::InvertedRange { start_len: 16, end_len: 16 })
        );
    }
}

#[test]
fn into_forms_keep_what_the_ref_forms_return() {
    let mut arena = ShardArena::with_capacity(3, 1024);
    let mut scratch = ShardSpecScratch::new();
    let range = range_shard_into(&mut arena, b"a", b"m", b"x", &mut scratch).unwrap();
    let prefix = prefix_shard_into(&mut arena, b"src/", b"x", &mut scratch).unwrap();
    let rows = manifest_shard_into(&mut arena, 7, 10, 20, b"x", &mut scratch).unwrap();
    let mut fresh = ShardSpecScratch::new();
    assert_eq!(arena.get(range), range_shard_ref(b"a", b"m", b"x", &mut fresh).ok());
    assert_eq!(arena.get(prefix), prefix_shard_ref(b"src/", b"x", &mut fresh).ok());
    assert_eq!(arena.get(rows), manifest_shard_ref(7, 10, 20, b"x", &mut fresh).ok());

    let before = (arena.len(), arena.live_bytes());
    assert!(matches!(
        range_shard_into(&mut arena, b"n", b"o", b"", &mut scratch),
        Err(ShardIntoError::SlabFull(_))
    ));
    assert_eq!(
        range_shard_into(&mut arena, b"o", b"n", b"", &mut scratch),
        Err(ShardIntoError::Build(ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 }))
    );
    assert_eq!(
        prefix_shard_into(&mut arena, b"\xff", b"", &mut scratch),
        Err(ShardIntoError::Build(PrefixShardError::NoSuccessor))
    );
    assert_eq!(
        manifest_shard_into(&mut arena, 7, 9, 9, b"", &mut scratch),
        Err(ShardIntoError::Build(ShardSpecInputError::InvertedRange {
            start_len: 16,
            end_len: 16
        }))
    );
    assert_eq!((arena.len(), arena.live_bytes()), before);
}
