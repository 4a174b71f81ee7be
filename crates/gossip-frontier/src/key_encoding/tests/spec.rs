//! Invariants 17–20 and 22, and the `_into` forms.

use std::error::Error;

use gossip_contracts::coordination::{
    MAX_KEY_SIZE, MAX_METADATA_SIZE, ShardArena, ShardSpecInputError, ShardSpecRef,
};
use gossip_stdx::SlabFull;
use proptest::prelude::*;
use rstest::rstest;

use super::encoded;
use crate::key_encoding::*;
use crate::test_support::cases;

const INVERTED_ROWS: ShardSpecInputError =
    ShardSpecInputError::InvertedRange { start_len: 16, end_len: 16 };

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn shard_spec_from_prefix_produces_valid_half_open_range(
        prefix in prop::collection::vec(prop_oneof![Just(0xff), any::<u8>()], 0..8),
        metadata in prop::collection::vec(any::<u8>(), 0..8),
    ) {
        let mut end = KeyBuf::new();
        match shard_spec_from_prefix_ref(&prefix, &metadata, &mut end) {
            Ok(spec) => {
                prop_assert!(spec.start() < spec.end());
                prop_assert_eq!((spec.start(), spec.metadata()), (&prefix[..], &metadata[..]));
                prop_assert!(spec.contains(&prefix) && !spec.contains(spec.end()));
            }
            Err(PrefixShardError::EmptyPrefix) => prop_assert!(prefix.is_empty()),
            Err(error) => {
                prop_assert_eq!(error, PrefixShardError::NoSuccessor);
                prop_assert!(prefix.iter().all(|&byte| byte == 0xff));
            }
        }
    }

    #[test]
    fn shard_spec_from_manifest_range_rejects_inverted_or_degenerate(
        manifest_id: u64,
        a: u64,
        b in prop_oneof![any::<u64>(), Just(u64::MAX)],
    ) {
        let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
        for (first, last) in [(a, b), (b, a), (a, a)] {
            let spec = shard_spec_from_manifest_range_ref(
                manifest_id, first, last, b"m", &mut start, &mut end,
            );
            if first < last {
                let spec = spec.unwrap();
                let row = |key: &[u8]| decode_manifest_row_key(key).unwrap().row();
                prop_assert_eq!((row(spec.start()), row(spec.end())), (first, last));
                prop_assert_eq!(spec.metadata(), b"m");
            } else {
                prop_assert_eq!(spec, Err(INVERTED_ROWS));
            }
        }
    }
}

#[rstest]
#[case(PrefixShardError::EmptyPrefix, "empty")]
#[case(PrefixShardError::PrefixTooLarge { size: 5000, max: 4096 }, "5000 bytes; at most 4096")]
#[case(PrefixShardError::NoSuccessor, "0xFF")]
fn prefix_shard_error_display_contains(#[case] error: PrefixShardError, #[case] part: &str) {
    assert!(error.to_string().contains(part), "{error}");
}

#[test]
fn prefix_shard_error_source_delegates_for_invalid_shard_spec() {
    let cause = ShardSpecInputError::MetadataTooLarge { size: 9, max: 8 };
    let error = PrefixShardError::from(cause);
    assert_eq!(error, PrefixShardError::InvalidShardSpec(cause));
    assert_eq!(error.source().unwrap().to_string(), cause.to_string());
    assert!(PrefixShardError::NoSuccessor.source().is_none());
    let error = ShardIntoError::Build(error);
    assert_eq!(error.source().unwrap().source().unwrap().to_string(), cause.to_string());
    let full = SlabFull { requested: 9, available: 8 };
    let error: ShardIntoError<PrefixShardError> = ShardIntoError::SlabFull(full);
    assert_eq!(error.source().unwrap().to_string(), full.to_string());
}

#[test]
fn shard_spec_from_keys_surfaces_oversized_encoded_boundary() {
    struct Oversized;
    impl KeyEncoding for Oversized {
        fn encode_into(&self, buf: &mut KeyBuf) {
            buf.copy_from_slice(&[b'x'; KeyBuf::CAPACITY]);
        }
    }
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let path = PathKey::new("a");
    assert_eq!(
        shard_spec_from_keys_ref(&Oversized, &path, b"", &mut start, &mut end),
        Err(ShardSpecInputError::StartTooLarge { size: 4097, max: 4096 })
    );
    assert_eq!(
        shard_spec_from_keys_ref(&path, &Oversized, b"", &mut start, &mut end),
        Err(ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 })
    );
}

#[test]
fn keys_may_be_of_different_types() {
    let mut scratch = KeyBuf::new();
    let first = FamilyKey::try_new(b'p', PathKey::new("a"), &mut scratch).unwrap();
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let spec =
        shard_spec_from_keys_ref(&first, &PathKey::new("q"), b"m", &mut start, &mut end).unwrap();
    assert_eq!(spec, ShardSpecRef::new(b"pa", b"q", b"m"));
}

#[test]
fn into_forms_keep_what_the_ref_forms_return() {
    let mut arena = ShardArena::with_capacity(3, 1024);
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let (a, b) = (PathKey::new("a"), PathKey::new("b"));
    let keys = shard_spec_from_keys_into(&mut arena, &a, &b, b"k", &mut start, &mut end).unwrap();
    let prefix = shard_spec_from_prefix_into(&mut arena, b"p", b"p", &mut end).unwrap();
    let rows = shard_spec_from_manifest_range_into(&mut arena, 1, 2, 3, b"r", &mut start, &mut end)
        .unwrap();
    // The buffers are free for other work.
    start.copy_from_slice(b"zzz");
    end.copy_from_slice(b"zzz");
    assert_eq!(arena.get(keys), Some(ShardSpecRef::new(b"a", b"b", b"k")));
    assert_eq!(arena.get(prefix), Some(ShardSpecRef::new(b"p", b"q", b"p")));
    let row = |row| encoded(&ManifestRowKey::new(1, row));
    assert_eq!(arena.get(rows), Some(ShardSpecRef::new(&row(2), &row(3), b"r")));
}

#[test]
fn into_forms_refuse_bad_input_and_leave_the_arena_as_it_was() {
    let mut arena = ShardArena::with_capacity(1, 64);
    arena.alloc(ShardSpecRef::new(b"a", b"b", b"")).unwrap();
    let before = (arena.len(), arena.live_bytes());
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let (a, b) = (PathKey::new("a"), PathKey::new("b"));
    let metadata = vec![0; MAX_METADATA_SIZE + 1];
    let long = vec![b'p'; MAX_KEY_SIZE + 1];

    let inverted = ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 };
    let too_large = ShardSpecInputError::MetadataTooLarge { size: 16_385, max: 16_384 };
    for (left, right, metadata, expected) in
        [(b, a, &b""[..], inverted), (a, a, b"", inverted), (a, b, &metadata, too_large)]
    {
        assert_eq!(
            shard_spec_from_keys_into(&mut arena, &left, &right, metadata, &mut start, &mut end),
            Err(ShardIntoError::Build(expected))
        );
    }
    for (prefix, metadata, expected) in [
        (&b""[..], &b""[..], PrefixShardError::EmptyPrefix),
        (&long, b"", PrefixShardError::PrefixTooLarge { size: 4097, max: 4096 }),
        (&[0xff; 3], b"", PrefixShardError::NoSuccessor),
        (b"p", &metadata, PrefixShardError::InvalidShardSpec(too_large)),
    ] {
        assert_eq!(
            shard_spec_from_prefix_into(&mut arena, prefix, metadata, &mut end),
            Err(ShardIntoError::Build(expected))
        );
    }
    assert_eq!(
        shard_spec_from_manifest_range_into(&mut arena, 1, 3, 3, b"", &mut start, &mut end),
        Err(ShardIntoError::Build(INVERTED_ROWS))
    );
    assert!(matches!(
        shard_spec_from_prefix_into(&mut arena, b"p", b"", &mut end),
        Err(ShardIntoError::SlabFull(_))
    ));
    assert_eq!((arena.len(), arena.live_bytes()), before);
}
