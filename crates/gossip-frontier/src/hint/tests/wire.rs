//! Invariants 23–29.

use std::error::Error;

use gossip_contracts::coordination::{MAX_KEY_SIZE, MAX_METADATA_SIZE};
use proptest::prelude::*;

use crate::hint::*;
use crate::test_support::cases;

fn encoded(hint: ShardHint<'_>) -> Vec<u8> {
    hint.encode_into(&mut MetadataBuf::new()).unwrap().to_vec()
}

fn roundtrip(hint: ShardHint<'_>) {
    let bytes = encoded(hint);
    assert_eq!(hint.encoded_len(), Ok(bytes.len()));
    assert_eq!(ShardHint::decode(&bytes), Ok((hint, bytes.len())));
}

fn manifest(manifest_id: u64, start_row: u64, end_row: u64) -> ShardHint<'static> {
    ShardHint::Manifest { manifest_id, start_row, end_row }
}

/// A hint that borrows from `prefix`.
fn hint_of(kind: u8, prefix: &[u8], rows: (u64, u64, u64)) -> ShardHint<'_> {
    match kind {
        0 => ShardHint::Range,
        1 => ShardHint::Prefix { prefix },
        _ => manifest(rows.0, rows.1.min(u64::MAX - 1), rows.1.saturating_add(rows.2.max(1))),
    }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn shard_hint_proptest_roundtrip(
        kind in 0u8..3,
        prefix in prop::collection::vec(any::<u8>(), 0..64),
        rows: (u64, u64, u64),
    ) {
        roundtrip(hint_of(kind, &prefix, rows));
    }

    #[test]
    fn shard_metadata_proptest_roundtrip(
        kind in 0u8..3,
        prefix in prop::collection::vec(any::<u8>(), 0..64),
        rows: (u64, u64, u64),
        extra in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let metadata = ShardMetadata::new(hint_of(kind, &prefix, rows), &extra);
        let mut buf = MetadataBuf::new();
        let bytes = metadata.encode_into(&mut buf).unwrap();
        prop_assert_eq!(metadata.encoded_len(), Ok(bytes.len()));
        prop_assert_eq!(ShardMetadata::decode(bytes), Ok(metadata));
    }
}

#[test]
fn shard_hint_range_roundtrip() {
    roundtrip(ShardHint::Range);
    assert_eq!(encoded(ShardHint::Range), [0x00]);
}

#[test]
fn shard_hint_prefix_roundtrip() {
    for prefix in [&b""[..], b"src/", &[0xff; 3], &[7; MAX_KEY_SIZE], &[7; MAX_METADATA_SIZE - 5]] {
        roundtrip(ShardHint::Prefix { prefix });
    }
    assert_eq!(encoded(ShardHint::Prefix { prefix: b"ab" }), b"\x01\0\0\0\x02ab");
}

#[test]
fn shard_hint_manifest_roundtrip() {
    for (id, start, end) in [(0, 0, 1), (7, 100, 200), (u64::MAX, u64::MAX - 1, u64::MAX)] {
        roundtrip(manifest(id, start, end));
    }
    assert_eq!(encoded(manifest(1, 2, 3)).len(), 25);
}

#[test]
fn shard_hint_decode_rejects_empty_data() {
    assert_eq!(ShardHint::decode(b""), Err(ShardHintDecodeError::EmptyData));
}

#[test]
fn shard_hint_decode_rejects_unknown_tag() {
    for tag in 3..=u8::MAX {
        assert_eq!(ShardHint::decode(&[tag; 64]), Err(ShardHintDecodeError::UnknownTag(tag)));
    }
}

#[test]
fn shard_hint_decode_rejects_truncated_prefix_header() {
    let frame = encoded(ShardHint::Prefix { prefix: b"abc" });
    for actual in 1..5 {
        assert_eq!(
            ShardHint::decode(&frame[..actual]),
            Err(ShardHintDecodeError::TruncatedPrefix { expected_min: 5, actual })
        );
    }
}

#[test]
fn shard_hint_decode_rejects_truncated_prefix_payload() {
    let frame = encoded(ShardHint::Prefix { prefix: b"abc" });
    for actual in 5..8 {
        assert_eq!(
            ShardHint::decode(&frame[..actual]),
            Err(ShardHintDecodeError::TruncatedPrefix { expected_min: 8, actual })
        );
    }
    assert_eq!(
        ShardHint::decode(b"\x01\xff\xff\xff\xff"),
        Err(ShardHintDecodeError::TruncatedPrefix { expected_min: (1 << 32) + 4, actual: 5 })
    );
}

#[test]
fn shard_hint_decode_rejects_a_prefix_that_could_not_be_encoded() {
    let mut data = vec![b'p'; MAX_METADATA_SIZE + 100];
    data[..5].copy_from_slice(&[1, 0, 0, 0x3f, 0xfb]);
    assert_eq!(ShardHint::decode(&data).map(|(_, consumed)| consumed), Ok(MAX_METADATA_SIZE));
    data[4] += 1;
    assert_eq!(
        ShardHint::decode(&data),
        Err(ShardHintDecodeError::TruncatedPrefix {
            expected_min: MAX_METADATA_SIZE + 1,
            actual: MAX_METADATA_SIZE
        })
    );
}

#[test]
fn shard_hint_decode_rejects_truncated_manifest() {
    let frame = encoded(manifest(1, 2, 3));
    for actual in 1..25 {
        assert_eq!(
            ShardHint::decode(&frame[..actual]),
            Err(ShardHintDecodeError::TruncatedManifest { expected_min: 25, actual })
        );
    }
}

/// A manifest frame whatever its rows.
fn raw_manifest(manifest_id: u64, start_row: u64, end_row: u64) -> Vec<u8> {
    [&[2], &manifest_id.to_be_bytes()[..], &start_row.to_be_bytes(), &end_row.to_be_bytes()]
        .concat()
}

#[test]
fn shard_hint_decode_rejects_inverted_manifest_rows() {
    assert_eq!(
        ShardHint::decode(&raw_manifest(1, 9, 4)),
        Err(ShardHintDecodeError::InvertedManifestRows { start_row: 9, end_row: 4 })
    );
}

#[test]
fn shard_hint_decode_rejects_equal_manifest_rows() {
    assert_eq!(
        ShardHint::decode(&raw_manifest(1, 9, 9)),
        Err(ShardHintDecodeError::InvertedManifestRows { start_row: 9, end_row: 9 })
    );
}

#[test]
fn shard_hint_decode_rejects_raw_inverted_manifest() {
    // Take a good frame and swap its rows, as a faulty writer would.
    let mut frame = encoded(manifest(1, 0, u64::MAX));
    frame[9..].rotate_left(8);
    assert_eq!(
        ShardHint::decode(&frame),
        Err(ShardHintDecodeError::InvertedManifestRows { start_row: u64::MAX, end_row: 0 })
    );
}

#[test]
fn shard_hint_encode_rejects_inverted_manifest_rows() {
    let expected = ShardEncodeError::InvertedManifestRows { start_row: 9, end_row: 4 };
    let mut buf = MetadataBuf::new();
    assert_eq!(manifest(1, 9, 4).encoded_len(), Err(expected));
    assert_eq!(manifest(1, 9, 4).encode_into(&mut buf), Err(expected));
    assert_eq!(ShardMetadata::from_hint(manifest(1, 9, 4)).encode_into(&mut buf), Err(expected));
    assert!(buf.is_empty());
}

#[test]
fn shard_hint_encode_rejects_equal_manifest_rows() {
    let expected = ShardEncodeError::InvertedManifestRows { start_row: 9, end_row: 9 };
    assert_eq!(manifest(1, 9, 9).encode_into(&mut MetadataBuf::new()), Err(expected));
}

#[test]
fn shard_hint_encode_rejects_oversized_prefix() {
    let prefix = vec![b'p'; MAX_METADATA_SIZE - 4];
    let expected = ShardEncodeError::HintTooLarge { size: 16_385, max: 16_384 };
    let mut buf = MetadataBuf::new();
    buf.overwrite(3).copy_from_slice(b"old");
    assert_eq!(ShardHint::Prefix { prefix: &prefix }.encode_into(&mut buf), Err(expected));
    assert_eq!(buf.as_bytes(), b"old");
}

#[test]
fn shard_hint_decode_returns_consumed_length_with_trailing_bytes() {
    let hints = [ShardHint::Range, ShardHint::Prefix { prefix: b"abc" }, manifest(1, 2, 3)];
    for (hint, consumed) in hints.into_iter().zip([1, 8, 25]) {
        let mut bytes = encoded(hint);
        bytes.extend(b"not ours");
        assert_eq!(ShardHint::decode(&bytes), Ok((hint, consumed)));
    }
}

#[test]
fn shard_metadata_encode_decode_roundtrip() {
    let mut buf = MetadataBuf::new();
    for hint in [ShardHint::Range, ShardHint::Prefix { prefix: b"abc" }, manifest(1, 2, 3)] {
        for extra in [&b""[..], b"extra", &[0; 1000]] {
            let metadata = ShardMetadata::new(hint, extra);
            let bytes = metadata.encode_into(&mut buf).unwrap();
            assert_eq!(ShardMetadata::decode(bytes), Ok(metadata));
        }
    }
    assert_eq!(
        ShardMetadata::from_hint(ShardHint::Range),
        ShardMetadata::new(ShardHint::Range, b"")
    );
    let bytes = ShardMetadata::new(ShardHint::Range, b"xy").encode_into(&mut buf).unwrap();
    assert_eq!(bytes, b"\0\0\0\x01\0xy");
    assert_eq!(buf.len(), 7);
}

#[test]
fn shard_metadata_decode_empty_defaults_to_range_hint() {
    assert_eq!(ShardMetadata::decode(b""), Ok(ShardMetadata::new(ShardHint::Range, b"")));
}

#[test]
fn shard_metadata_decode_rejects_non_empty_non_conforming_input() {
    let envelope = Err(ShardMetadataDecodeError { hint_error: None });
    // The length field is cut, announces too much, or does not end where the hint does.
    for bytes in [&b"\0"[..], b"\0\0\0", b"\0\0\0\x02\0", b"\xff\xff\xff\xff\0", b"\0\0\0\x02\0\0"]
    {
        assert_eq!(ShardMetadata::decode(bytes), envelope, "{bytes:?}");
    }
    let too_long = [&[0, 0, 0, 1, 0][..], &vec![0; MAX_METADATA_SIZE - 4]].concat();
    assert_eq!(ShardMetadata::decode(&too_long), envelope);
    assert!(ShardMetadata::decode(&too_long[..MAX_METADATA_SIZE]).is_ok());
    for (bytes, hint_error) in [
        (&b"\0\0\0\0"[..], ShardHintDecodeError::EmptyData),
        (b"\0\0\0\x01\x09", ShardHintDecodeError::UnknownTag(9)),
        (
            // The hint may not reach into the connector's bytes.
            b"\0\0\0\x05\x01\0\0\0\x01x",
            ShardHintDecodeError::TruncatedPrefix { expected_min: 6, actual: 5 },
        ),
        (
            b"\0\0\0\x01\x02xxxxxxxxxxxxxxxxxxxxxxxxxxx",
            ShardHintDecodeError::TruncatedManifest { expected_min: 25, actual: 1 },
        ),
    ] {
        let expected = ShardMetadataDecodeError { hint_error: Some(hint_error) };
        assert_eq!(ShardMetadata::decode(bytes), Err(expected));
        assert_eq!(expected.source().unwrap().to_string(), hint_error.to_string());
        assert!(expected.to_string().ends_with(&hint_error.to_string()));
    }
    assert!(ShardMetadataDecodeError { hint_error: None }.source().is_none());
}

#[test]
fn shard_metadata_encode_rejects_oversized_payload() {
    let mut buf = MetadataBuf::new();
    let extra = vec![0; MAX_METADATA_SIZE - 4];
    assert_eq!(
        ShardMetadata::new(ShardHint::Range, &extra).encode_into(&mut buf),
        Err(ShardEncodeError::MetadataTooLarge { size: 16_385, max: 16_384 })
    );
    assert!(buf.is_empty());
    let fits = ShardMetadata::new(ShardHint::Range, &extra[1..]);
    assert_eq!(fits.encode_into(&mut buf).map(<[u8]>::len), Ok(MAX_METADATA_SIZE));
    // A hint that fits by itself need not fit into an envelope.
    let hint = ShardHint::Prefix { prefix: &extra[1..] };
    assert_eq!(hint.encoded_len(), Ok(MAX_METADATA_SIZE));
    assert_eq!(
        ShardMetadata::from_hint(hint).encoded_len(),
        Err(ShardEncodeError::MetadataTooLarge { size: 16_388, max: 16_384 })
    );
}

#[test]
fn debug_of_hints_and_metadata_shows_lengths_only() {
    let hint = ShardHint::Prefix { prefix: b"hush" };
    let metadata = ShardMetadata::new(hint, b"hush");
    let mut scratch = ShardSpecScratch::new();
    prefix_shard_ref(b"hush", b"hush", &mut scratch).unwrap();
    let shown = format!("{hint:?} {metadata:?} {scratch:?}");
    assert!(!shown.contains("hush"));
    assert!(shown.starts_with(
        "Prefix { prefix: [4 bytes] } \
         ShardMetadata { hint: Prefix { prefix: [4 bytes] }, connector_extra: [4 bytes] }"
    ));
    assert!(shown.contains("FixedBuf([17 bytes])"), "{shown}");
    assert_eq!(
        format!("{:?} {:?}", ShardHint::Range, manifest(1, 2, 3)),
        "Range Manifest { manifest_id: 1, start_row: 2, end_row: 3 }"
    );
}
