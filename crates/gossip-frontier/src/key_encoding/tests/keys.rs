//! Invariants 1–7 and 21, and the encodings beyond the document.

use gossip_contracts::coordination::MAX_KEY_SIZE;
use proptest::prelude::*;

use super::encoded;
use crate::key_encoding::*;
use crate::test_support::cases;
use crate::testing::{OrderViolation, assert_order_preserved, check_order_preservation};

/// Short and from few bytes, so that equal keys and shared prefixes are common.
fn few_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(
        prop_oneof![Just(0u8), Just(1), Just(b'/'), Just(0x7f), Just(0x80), Just(0xff)],
        1..6,
    )
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn path_key_encoding_preserves_logical_order(a in "[a/é\u{10ffff}.]{1,6}", b in "\\PC{1,12}") {
        assert_order_preserved(&PathKey::new(&a), &PathKey::new(&b));
        assert_order_preserved(&PathKey::new(&a), &PathKey::new(&a.clone()));
    }

    #[test]
    fn manifest_row_key_encoding_preserves_logical_order(
        a in (any::<u64>(), any::<u64>()),
        b in (any::<u64>(), any::<u64>()),
    ) {
        assert_order_preserved(&ManifestRowKey::new(a.0, a.1), &ManifestRowKey::new(b.0, b.1));
        assert_order_preserved(&ManifestRowKey::new(a.0, a.1), &ManifestRowKey::new(a.0, b.1));
    }

    #[test]
    fn manifest_row_key_encode_decode_roundtrip(manifest_id: u64, row: u64) {
        let key = ManifestRowKey::new(manifest_id, row);
        prop_assert_eq!(decode_manifest_row_key(&encoded(&key)), Some(key));
    }

    #[test]
    fn raw_path_key_encoding_preserves_logical_order(a in few_bytes(), b in few_bytes()) {
        assert_order_preserved(
            &RawPathKey::try_new(&a).unwrap(),
            &RawPathKey::try_new(&b).unwrap(),
        );
    }

    #[test]
    fn object_key_encoding_preserves_logical_order(
        a in ("[a\u{1}-]{1,3}", few_bytes()),
        b in ("[a\u{1}-]{1,3}", few_bytes()),
    ) {
        let a = ObjectKey::try_new(&a.0, &a.1).unwrap();
        let b = ObjectKey::try_new(&b.0, &b.1).unwrap();
        assert_order_preserved(&a, &b);
        let bytes = encoded(&a);
        prop_assert_eq!(decode_object_key(&bytes), Some(a));
    }

    #[test]
    fn family_key_encoding_preserves_logical_order(
        a in (0u8..3, few_bytes()),
        b in (0u8..3, few_bytes()),
    ) {
        let mut scratch = KeyBuf::new();
        let mut key = |family, path| {
            FamilyKey::try_new(family, RawPathKey::try_new(path).unwrap(), &mut scratch).unwrap()
        };
        assert_order_preserved(&key(a.0, &a.1), &key(b.0, &b.1));
    }

    #[test]
    fn decode_object_key_takes_what_encodes_to_the_same_bytes(
        key in prop::collection::vec(any::<u8>(), 0..12),
    ) {
        if let Some(object) = decode_object_key(&key) {
            prop_assert_eq!(encoded(&object), key);
        }
    }
}

#[test]
fn path_key_uses_identity_utf8_encoding() {
    for path in ["/", "src/lib.rs", "C:\\Temp", "e\u{301}", "\u{e9}", "ABC"] {
        assert_eq!(encoded(&PathKey::new(path)), path.as_bytes());
        assert_eq!(PathKey::new(path).as_str(), path);
    }
}

#[test]
#[should_panic(expected = "the key is empty")]
fn path_key_new_rejects_empty_path() {
    let _ = PathKey::new("");
}

#[test]
#[should_panic(expected = "the key has 4097 bytes; at most 4096 are allowed")]
fn path_key_new_rejects_oversized_path() {
    let _ = PathKey::new(&"p".repeat(MAX_KEY_SIZE + 1));
}

#[test]
fn path_key_new_accepts_path_at_max_size() {
    let path = "p".repeat(MAX_KEY_SIZE);
    assert_eq!(encoded(&PathKey::new(&path)), path.as_bytes());
}

#[test]
fn path_key_try_new_returns_the_typed_error() {
    let long = "p".repeat(MAX_KEY_SIZE + 1);
    let too_large = KeyInputError::TooLarge { size: 4097, max: 4096 };
    assert_eq!(PathKey::try_new(""), Err(KeyInputError::Empty));
    assert_eq!(PathKey::try_new(&long), Err(too_large));
    assert_eq!(PathKey::try_new(&long[1..]).map(|key| key.as_str().len()), Ok(MAX_KEY_SIZE));
    assert_eq!(RawPathKey::try_new(b""), Err(KeyInputError::Empty));
    assert_eq!(RawPathKey::try_new(long.as_bytes()), Err(too_large));
}

#[test]
fn raw_path_key_takes_names_that_are_not_utf8() {
    assert_eq!(encoded(&RawPathKey::try_new(b"caf\xe9/\xff").unwrap()), b"caf\xe9/\xff");
    let path = PathKey::new("src/lib.rs");
    assert_eq!(encoded(&RawPathKey::from(path)), encoded(&path));
}

#[test]
fn manifest_row_key_is_fixed_width_and_decodes() {
    for (manifest_id, row) in [(0, 0), (0, u64::MAX), (1 << 40, 7), (u64::MAX, u64::MAX)] {
        let key = ManifestRowKey::new(manifest_id, row);
        let bytes = encoded(&key);
        assert_eq!(bytes.len(), ManifestRowKey::ENCODED_LEN);
        assert_eq!(bytes[..8], manifest_id.to_be_bytes());
        assert_eq!(bytes[8..], row.to_be_bytes());
        assert_eq!(decode_manifest_row_key(&bytes), Some(key));
        assert_eq!((key.manifest_id(), key.row()), (manifest_id, row));
    }
}

#[test]
fn decode_manifest_row_key_rejects_non_fixed_width_inputs() {
    for len in (0..64).filter(|&len| len != 16) {
        assert_eq!(decode_manifest_row_key(&vec![0; len]), None, "{len} bytes");
    }
}

#[test]
fn key_encoding_returns_encoded_bytes() {
    let mut buf = KeyBuf::new();
    PathKey::new("a/longer/path").encode_into(&mut buf);
    // What was there before does not shine through.
    PathKey::new("b").encode_into(&mut buf);
    assert_eq!(buf.as_bytes(), b"b");
    assert_eq!((buf.len(), buf.is_empty()), (1, false));
}

#[test]
fn object_keys_refuse_what_would_break_their_order() {
    let long = vec![b'k'; MAX_KEY_SIZE];
    assert_eq!(ObjectKey::try_new("", b"k"), Err(ObjectKeyError::EmptyBucket));
    assert_eq!(ObjectKey::try_new("a\0b", b"k"), Err(ObjectKeyError::SeparatorInBucket));
    assert_eq!(
        ObjectKey::try_new("b", &long),
        Err(ObjectKeyError::TooLarge { size: 4098, max: 4096 })
    );
    assert!(ObjectKey::try_new("b", &long[2..]).is_ok());
    for not_ours in [&b""[..], b"no-separator", b"\0key", b"\xff\0key"] {
        assert_eq!(decode_object_key(not_ours), None);
    }
}

#[test]
fn a_bucket_is_a_prefix_and_buckets_do_not_mix() {
    let keys = [("logs", &b""[..]), ("logs", b"\xff"), ("logs-old", b"a"), ("logs.2", b"")]
        .map(|(bucket, key)| ObjectKey::try_new(bucket, key).unwrap());
    assert_eq!(check_order_preservation(&keys), Ok(()));
    assert!(encoded(&keys[1]).starts_with(&encoded(&keys[0])));
    assert!(!encoded(&keys[2]).starts_with(&encoded(&keys[0])));
}

#[test]
fn a_family_key_leaves_room_for_its_family() {
    let mut scratch = KeyBuf::new();
    let path = "p".repeat(MAX_KEY_SIZE);
    assert_eq!(
        FamilyKey::try_new(1, PathKey::new(&path), &mut scratch),
        Err(KeyInputError::TooLarge { size: 4097, max: 4096 })
    );
    let inner = FamilyKey::try_new(2, PathKey::new(&path[2..]), &mut scratch).unwrap();
    let outer = FamilyKey::try_new(1, inner, &mut scratch).unwrap();
    assert_eq!(encoded(&outer)[..3], [1, 2, b'p']);
    assert_eq!(encoded(&outer).len(), MAX_KEY_SIZE);
    assert_eq!((outer.family(), outer.inner().family()), (1, 2));
}

#[test]
fn the_order_check_finds_encodings_that_lie() {
    #[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
    struct LittleEndian(u16);
    impl KeyEncoding for LittleEndian {
        fn encode_into(&self, buf: &mut KeyBuf) {
            buf.copy_from_slice(&self.0.to_le_bytes());
        }
    }
    let violation = check_order_preservation(&[LittleEndian(1), LittleEndian(256)]).unwrap_err();
    use core::cmp::Ordering::{Greater, Less};
    assert_eq!(violation, OrderViolation { left: 0, right: 1, keys: Less, bytes: Greater });

    /// Not canonical: one key, two encodings.
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    struct Counting(std::cell::Cell<u8>);
    impl KeyEncoding for Counting {
        fn encode_into(&self, buf: &mut KeyBuf) {
            self.0.set(self.0.get() + 1);
            buf.copy_from_slice(&[self.0.get()]);
        }
    }
    assert!(check_order_preservation(&[Counting(0.into())]).is_err());
}

#[test]
fn a_key_buf_grows_at_both_ends_up_to_its_capacity() {
    let mut buf = KeyBuf::default();
    buf.extend_from_slice(b"cd");
    buf.prepend(b"ab");
    buf.extend_from_slice(b"e");
    assert_eq!(buf.as_bytes(), b"abcde");
    buf.copy_from_slice(&[7; KeyBuf::CAPACITY - 1]);
    buf.prepend(&[6]);
    assert_eq!((buf.as_bytes()[0], buf.as_bytes()[1], buf.len()), (6, 7, KeyBuf::CAPACITY));
    assert_eq!(buf.clone().as_bytes(), buf.as_bytes());
}

#[test]
#[should_panic(expected = "4098 bytes in a buffer for 4097")]
fn a_key_buf_takes_no_more_than_its_capacity() {
    KeyBuf::new().copy_from_slice(&[0; KeyBuf::CAPACITY + 1]);
}

#[test]
fn debug_of_keys_shows_lengths_only() {
    let mut buf = KeyBuf::new();
    buf.copy_from_slice(b"hush");
    let path = PathKey::new("hush");
    let shown = [
        format!("{buf:?}"),
        format!("{path:?}"),
        format!("{:?}", RawPathKey::from(path)),
        format!("{:?}", ObjectKey::try_new("hush", b"hush").unwrap()),
        format!("{:?}", FamilyKey::try_new(1, path, &mut KeyBuf::new())),
    ];
    for shown in shown {
        assert!(!shown.contains("hush") && shown.contains("[4 bytes]"), "{shown}");
    }
}
