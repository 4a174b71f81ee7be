//! No heap on the paths that the requirements call hot, nor on the warm ones that build views,
//! fill arenas and propagate hints. Buffers are made before counting starts, as callers do.

use gossip_contracts::coordination::{CursorUpdate, ShardArena, ShardSpecRef};
use gossip_frontier::*;
use gossip_testalloc::{AllocationCount, CountingAllocator, count_allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[track_caller]
fn allocates_nothing(what: &str, work: impl FnOnce()) {
    let ((), count) = count_allocations(work);
    assert_eq!(count, AllocationCount::default(), "{what}");
}

/// Short, text over several blocks, binary, and as long as keys get.
fn key_pairs() -> Vec<(Vec<u8>, Vec<u8>)> {
    let text = |len: usize, seed: u8| (0..len).map(|i| b'a' + (i as u8 ^ seed) % 26).collect();
    let binary = |len: usize, seed: u8| (0..len).map(|i| (i as u8).wrapping_mul(seed)).collect();
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = [0, 1, 16, 64, 65, 1024, 4096]
        .iter()
        .flat_map(|&len| [(text(len, 1), text(len, 2)), (binary(len, 77), binary(len, 91))])
        .collect();
    pairs.push((vec![0xff; 4096], vec![0xff; 4096]));
    pairs.push((vec![7; 4097], vec![8; 9]));
    for (a, b) in &mut pairs {
        if a > b {
            std::mem::swap(a, b);
        }
    }
    pairs
}

#[test]
fn a_single_vec_would_be_noticed() {
    let (_, count) = count_allocations(|| std::hint::black_box(vec![1u8]));
    assert_eq!(count.allocations, 1);
    let caught = std::panic::catch_unwind(|| {
        allocates_nothing("a vec", || drop(std::hint::black_box(vec![1u8])));
    });
    assert!(caught.is_err());
}

#[test]
fn hot_key_encoding_and_arithmetic() {
    let pairs = key_pairs();
    let mut buf = KeyBuf::new();
    let path = "p".repeat(4096);
    allocates_nothing("encode_into", || {
        PathKey::new(&path).encode_into(&mut buf);
        RawPathKey::try_new(path.as_bytes()).unwrap().encode_into(&mut buf);
        ManifestRowKey::new(1, 2).encode_into(&mut buf);
        assert!(decode_manifest_row_key(buf.as_bytes()).is_some());
        ObjectKey::try_new("bucket", &path.as_bytes()[7..]).unwrap().encode_into(&mut buf);
        assert!(decode_object_key(buf.as_bytes()).is_some());
        let family = FamilyKey::try_new(1, PathKey::new(&path[1..]), &mut buf).unwrap();
        family.encode_into(&mut buf);
        assert_eq!(PathKey::try_new(""), Err(KeyInputError::Empty));
    });
    allocates_nothing("successors and midpoint", || {
        for (a, b) in &pairs {
            for key in [a, b] {
                let _ = prefix_successor(key, &mut buf);
                let _ = key_successor(key, &mut buf);
            }
            let _ = byte_midpoint(a, b, &mut buf);
            let _ = byte_midpoint(b, a, &mut buf);
        }
    });
}

fn hints(prefix: &[u8]) -> [ShardHint<'_>; 4] {
    [
        ShardHint::Range,
        ShardHint::Prefix { prefix },
        ShardHint::Manifest { manifest_id: 1, start_row: 2, end_row: 3 },
        ShardHint::Manifest { manifest_id: 1, start_row: 3, end_row: 3 },
    ]
}

#[test]
fn hot_hint_encode_and_decode() {
    let prefix = vec![7; 4096];
    let mut buf = MetadataBuf::new();
    allocates_nothing("hints and metadata", || {
        for hint in hints(&prefix) {
            if let Ok(bytes) = hint.encode_into(&mut buf) {
                assert!(ShardHint::decode(bytes).is_ok());
                assert!(ShardHint::decode(&bytes[..bytes.len() - 1]).is_err());
            }
            if let Ok(bytes) = ShardMetadata::new(hint, b"extra").encode_into(&mut buf) {
                let spec = ShardSpecRef::new(b"a", b"b", bytes);
                assert_eq!(decode_hint(spec), Ok(hint));
                assert_eq!(decode_metadata(spec).unwrap().hint, hint);
                assert_eq!(decode_connector_extra(spec), Ok(&b"extra"[..]));
            }
        }
        assert!(decode_hint(ShardSpecRef::new(b"a", b"b", b"\0\0\0\x01\x09")).is_err());
    });
}

#[test]
fn warm_ref_constructors() {
    let prefix = vec![7; 4096];
    let extra = vec![8; 4096];
    let mut scratch = ShardSpecScratch::new();
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let (a, b) = (PathKey::new("a"), PathKey::new("b"));
    allocates_nothing("views", || {
        range_shard_ref(b"a", b"b", &extra, &mut scratch).unwrap();
        range_shard_ref(b"b", b"a", &extra, &mut scratch).unwrap_err();
        prefix_shard_ref(&prefix, &extra, &mut scratch).unwrap();
        prefix_shard_ref(&[0xff; 64], &extra, &mut scratch).unwrap_err();
        manifest_shard_ref(1, 2, 3, &extra, &mut scratch).unwrap();
        shard_spec_from_keys_ref(&a, &b, &extra, &mut start, &mut end).unwrap();
        shard_spec_from_prefix_ref(&prefix, &extra, &mut end).unwrap();
        shard_spec_from_manifest_range_ref(1, 2, 3, &extra, &mut start, &mut end).unwrap();
    });
}

#[test]
fn warm_propagation() {
    let prefix = vec![7; 4096];
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    ManifestRowKey::new(1, 2).encode_into(&mut start);
    ManifestRowKey::new(1, 3).encode_into(&mut end);
    allocates_nothing("propagation", || {
        for hint in hints(&prefix) {
            let _ = propagate_hint_on_split(hint, start.as_bytes(), end.as_bytes());
            let _ = propagate_hint_on_split(hint, &prefix, b"\x08");
        }
    });
}

/// The arena was allocated with it; filling it is silent.
#[test]
fn warm_into_constructors_and_staging() {
    let mut scratch = ShardSpecScratch::new();
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let (a, b) = (PathKey::new("a"), PathKey::new("b"));
    let mut arena = ShardArena::with_capacity(64, 64 * 1024);
    allocates_nothing("arena", || {
        range_shard_into(&mut arena, b"a", b"b", b"x", &mut scratch).unwrap();
        prefix_shard_into(&mut arena, b"p", b"x", &mut scratch).unwrap();
        manifest_shard_into(&mut arena, 1, 2, 3, b"x", &mut scratch).unwrap();
        shard_spec_from_keys_into(&mut arena, &a, &b, b"x", &mut start, &mut end).unwrap();
        shard_spec_from_prefix_into(&mut arena, b"p", b"x", &mut end).unwrap();
        shard_spec_from_manifest_range_into(&mut arena, 1, 2, 3, b"x", &mut start, &mut end)
            .unwrap();
    });
    allocates_nothing("builder", || {
        let mut builder = PreallocShardBuilder::<64>::new(&mut arena, 64).unwrap();
        builder.add_range_with_cursor(b"a", b"b", b"x", CursorUpdate::at(b"aa")).unwrap();
        builder.add_prefix(b"p", b"x").unwrap();
        builder.split_range_by_boundaries(b"q", &[b"r", b"s"], b"t", b"x").unwrap();
        builder.split_manifest_by_rows(1, 0, 100, 10, b"x").unwrap();
        builder.split_manifest_by_rows(1, 0, 100, 1, b"x").unwrap_err();
        builder.reset();
    });
}
