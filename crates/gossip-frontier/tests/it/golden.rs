//! Every wire format, byte for byte. A line of a golden file is a name and hex; a change in one is
//! a change of what is stored in running systems, and needs a new tag or encoding instead.

use gossip_frontier::{
    FamilyKey, KeyBuf, KeyEncoding, ManifestRowKey, MetadataBuf, ObjectKey, PathKey, RawPathKey,
    ShardHint, ShardMetadata, decode_manifest_row_key, decode_object_key,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[track_caller]
fn compare(golden: &str, actual: &[(&str, Vec<u8>)]) {
    let actual: String =
        actual.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes))).collect();
    assert_eq!(actual, golden, "left is what is written now, right is the golden file");
}

fn encoded(key: &impl KeyEncoding) -> Vec<u8> {
    let mut buf = KeyBuf::new();
    key.encode_into(&mut buf);
    buf.as_bytes().to_vec()
}

const RANGE: ShardHint<'_> = ShardHint::Range;
const PREFIX: ShardHint<'_> = ShardHint::Prefix { prefix: b"src/" };
const EMPTY_PREFIX: ShardHint<'_> = ShardHint::Prefix { prefix: b"" };
const MANIFEST: ShardHint<'_> = ShardHint::Manifest {
    manifest_id: 0x0102_0304_0506_0708,
    start_row: 9,
    end_row: 0xfeff_0000_0000_0001,
};

#[test]
fn hints_are_written_as_ever() {
    let mut buf = MetadataBuf::new();
    let lines = [
        ("range", RANGE),
        ("prefix", PREFIX),
        ("prefix-empty", EMPTY_PREFIX),
        ("manifest", MANIFEST),
    ]
    .map(|(name, hint)| {
        let bytes = hint.encode_into(&mut buf).unwrap().to_vec();
        assert_eq!(ShardHint::decode(&bytes), Ok((hint, bytes.len())));
        (name, bytes)
    });
    compare(include_str!("../golden/hint.hex"), &lines);
}

#[test]
fn metadata_is_written_as_ever() {
    let mut buf = MetadataBuf::new();
    let lines = [
        ("range", ShardMetadata::from_hint(RANGE)),
        ("range-extra", ShardMetadata::new(RANGE, b"extra")),
        ("prefix", ShardMetadata::from_hint(PREFIX)),
        ("prefix-extra", ShardMetadata::new(PREFIX, &[0x00, 0xff])),
        ("manifest", ShardMetadata::from_hint(MANIFEST)),
        ("manifest-extra", ShardMetadata::new(MANIFEST, b"extra")),
    ]
    .map(|(name, metadata)| {
        let bytes = metadata.encode_into(&mut buf).unwrap().to_vec();
        assert_eq!(ShardMetadata::decode(&bytes), Ok(metadata));
        (name, bytes)
    });
    compare(include_str!("../golden/metadata.hex"), &lines);
}

#[test]
fn keys_are_written_as_ever() {
    let mut scratch = KeyBuf::new();
    let row = ManifestRowKey::new(0x0102_0304_0506_0708, 0x090a_0b0c_0d0e_0f10);
    let object = ObjectKey::try_new("bucket", b"a/b").unwrap();
    let path = PathKey::new("src/lib.rs");
    let raw_path = RawPathKey::try_new(b"caf\xe9").unwrap();
    let lines = [
        ("path", encoded(&path)),
        ("raw-path", encoded(&raw_path)),
        ("manifest-row", encoded(&row)),
        ("object", encoded(&object)),
        ("object-bucket-start", encoded(&ObjectKey::try_new("bucket", b"").unwrap())),
        ("family-path", encoded(&FamilyKey::try_new(b'p', path, &mut scratch).unwrap())),
        ("family-manifest-row", encoded(&FamilyKey::try_new(0x80, row, &mut scratch).unwrap())),
        ("family-object", encoded(&FamilyKey::try_new(0xff, object, &mut scratch).unwrap())),
    ];
    assert_eq!(decode_manifest_row_key(&lines[2].1), Some(row));
    assert_eq!(decode_object_key(&lines[3].1), Some(object));
    compare(include_str!("../golden/key.hex"), &lines);
}
