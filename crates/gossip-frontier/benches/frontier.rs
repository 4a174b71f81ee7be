//! Key arithmetic and hints beside a copy of the same bytes.
//!
//! The reference of each figure is one `copy_from_slice` of as many bytes as the subject writes,
//! or, for decoding, reads: one key for successors, midpoint and hint encoding (with its frame),
//! the encoded hint for decoding. The midpoint reads two keys to write that one.

use std::hint::black_box;

use gossip_bench::compare;
use gossip_frontier::{
    KeyBuf, MetadataBuf, ShardHint, byte_midpoint, key_successor, prefix_successor,
};

const SIZES: [usize; 4] = [16, 64, 1024, 4096];

fn main() {
    for size in SIZES {
        successors(size);
    }
    for size in SIZES {
        midpoints(size);
    }
    for size in SIZES {
        hints(size);
    }
}

fn against_copy(name: String, bytes: &[u8], subject: impl FnMut()) {
    // Half a page away from the source, modulo pages: a copy to nearly the same offset in another
    // page is slowed down by false dependencies, and would flatter the subject.
    const PAGE: usize = 4096;
    let mut copy = vec![0; bytes.len() + PAGE];
    let distance = (copy.as_ptr() as usize).wrapping_sub(bytes.as_ptr() as usize) % PAGE;
    let offset = (PAGE / 2 + PAGE - distance) % PAGE;
    let copy = &mut copy[offset..offset + bytes.len()];
    compare(&name, || black_box(&mut *copy).copy_from_slice(black_box(bytes)), subject);
}

/// Bytes from a small generator (xorshift), the same in every run.
fn noise(len: usize, mut seed: u64) -> Vec<u8> {
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 32) as u8
    };
    (0..len).map(|_| next()).collect()
}

fn text(len: usize, seed: u64) -> Vec<u8> {
    noise(len, seed).into_iter().map(|byte| b'a' + byte % 26).collect()
}

fn successors(size: usize) {
    let mut buf = KeyBuf::new();
    let key = text(size, 1);
    against_copy(format!("key-successor-{size}"), &key, || {
        black_box(key_successor(black_box(&key), &mut buf));
    });
    against_copy(format!("prefix-successor-{size}"), &key, || {
        black_box(prefix_successor(black_box(&key), &mut buf));
    });
    // Worst: everything behind the first byte is looked at and dropped.
    let mut key = vec![0xff; size];
    key[0] = b'k';
    against_copy(format!("prefix-successor-all-ff-{size}"), &key, || {
        black_box(prefix_successor(black_box(&key), &mut buf));
    });
}

fn midpoints(size: usize) {
    let measure = |name: &str, mut a: Vec<u8>, mut b: Vec<u8>, shared: usize| {
        b[..shared].copy_from_slice(&a[..shared]);
        // Far apart where they part, so that the midpoint is a new key.
        (a[shared], b[shared]) = (b'b', b'y');
        let mut out = KeyBuf::new();
        assert!(byte_midpoint(&a, &b, &mut out).is_some());
        against_copy(format!("{name}-{size}"), &a, || {
            black_box(byte_midpoint(black_box(&a), black_box(&b), &mut out));
        });
    };
    // As keys of one shard are: text, with a prefix in common.
    measure("byte-midpoint", text(size, 1), text(size, 2), size / 2);
    // Best: all but the last byte in common.
    measure("byte-midpoint-all-shared", text(size, 1), text(size, 2), size - 1);
    // Worst for text: nothing in common.
    measure("byte-midpoint-none-shared", text(size, 1), text(size, 2), 0);
    // Worst: nothing in common, and carries everywhere.
    measure("byte-midpoint-binary", noise(size, 1), noise(size, 2), 0);
}

fn hints(size: usize) {
    let prefix = text(size, 1);
    let hint = ShardHint::Prefix { prefix: &prefix };
    let mut buf = MetadataBuf::new();
    let encoded = hint.encode_into(&mut buf).expect("a hint of a key").to_vec();
    against_copy(format!("hint-encode-{size}"), &encoded, || {
        let _ = black_box(black_box(hint).encode_into(&mut buf));
    });
    against_copy(format!("hint-decode-{size}"), &encoded, || {
        let _ = black_box(ShardHint::decode(black_box(&encoded)));
    });
}
