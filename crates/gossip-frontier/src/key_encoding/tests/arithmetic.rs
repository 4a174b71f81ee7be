//! Invariants 8–16. Equality with the long form of each function is checked in `tests/it`.

use gossip_contracts::coordination::MAX_KEY_SIZE;
use proptest::prelude::*;
use rstest::rstest;

use crate::key_encoding::*;
use crate::test_support::cases;

fn prefix_successor_of(key: &[u8]) -> Option<Vec<u8>> {
    prefix_successor(key, &mut KeyBuf::new()).map(<[u8]>::to_vec)
}

fn key_successor_of(key: &[u8]) -> Option<Vec<u8>> {
    key_successor(key, &mut KeyBuf::new()).map(<[u8]>::to_vec)
}

fn midpoint_of(a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    byte_midpoint(a, b, &mut KeyBuf::new()).map(<[u8]>::to_vec)
}

/// Bytes with many extremes, so that carries run and successors shrink.
fn byte() -> impl Strategy<Value = u8> {
    prop_oneof![2 => Just(0xff), 1 => Just(0), 1 => Just(0x80), 1 => Just(0x7f), 3 => any::<u8>()]
}

fn key(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(byte(), len)
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn prefix_successor_is_strictly_greater(prefix in key(0..40)) {
        match prefix_successor_of(&prefix) {
            Some(next) => prop_assert!(next > prefix),
            None => prop_assert!(prefix.iter().all(|&byte| byte == 0xff)),
        }
    }

    #[test]
    fn prefix_successor_is_upper_bound_for_prefixed_keys(
        prefix in key(1..20),
        suffix in key(0..20),
        other in key(0..20),
    ) {
        if let Some(next) = prefix_successor_of(&prefix) {
            prop_assert!([prefix.as_slice(), &suffix].concat() < next);
            // Tight: nothing but prefixed keys between the two.
            prop_assert_eq!(prefix <= other && other < next, other.starts_with(&prefix));
        }
    }

    #[test]
    fn key_successor_is_strictly_greater(a in key(0..40), other in key(0..42)) {
        let next = key_successor_of(&a).unwrap();
        prop_assert!(next > a);
        // And nothing lies between.
        prop_assert!(!(a < other && other < next));
    }

    #[test]
    fn key_successor_appends_zero_when_below_max(
        a in prop_oneof![key(0..40), key(MAX_KEY_SIZE - 2..MAX_KEY_SIZE)],
    ) {
        prop_assert_eq!(key_successor_of(&a), Some([a.as_slice(), &[0]].concat()));
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn key_successor_none_only_when_expected(
        len in MAX_KEY_SIZE - 2..MAX_KEY_SIZE + 3,
        mixed in prop::option::of((0..MAX_KEY_SIZE - 2, 0..0xffu8)),
    ) {
        let mut a = vec![0xff; len];
        if let Some((at, byte)) = mixed {
            a[at] = byte;
        }
        let expected = len > MAX_KEY_SIZE || (len == MAX_KEY_SIZE && mixed.is_none());
        prop_assert_eq!(key_successor_of(&a).is_none(), expected);
    }

    #[test]
    fn key_successor_delegates_to_prefix_successor_at_max(
        head in key(0..80),
        fill in byte(),
        tail in key(0..80),
    ) {
        let mut a = [head.as_slice(), &vec![fill; MAX_KEY_SIZE - head.len() - tail.len()]].concat();
        a.extend(tail);
        prop_assert_eq!(a.len(), MAX_KEY_SIZE);
        prop_assert_eq!(key_successor_of(&a), prefix_successor_of(&a));
    }
}

proptest! {
    #![proptest_config(cases(1024))]

    #[test]
    fn byte_midpoint_is_strictly_between_when_present(
        shared in key(0..70),
        tails in key(1..150).prop_flat_map(|a| (key(a.len()..=a.len()), Just(a))),
    ) {
        let (a, b) = ([&shared[..], &tails.0].concat(), [&shared[..], &tails.1].concat());
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        match midpoint_of(&a, &b) {
            Some(middle) => prop_assert!(a < middle && middle < b),
            // Below the size limit there is always room between two keys of one length.
            None => prop_assert_eq!(a, b),
        }
    }

    #[test]
    fn byte_midpoint_different_lengths_strictly_between(
        shared in key(0..70),
        a in key(0..150),
        b in key(0..150),
    ) {
        let (a, b) = ([&shared[..], &a].concat(), [&shared[..], &b].concat());
        let (a, b) = if a < b { (a, b) } else { (b, a) };
        match midpoint_of(&a, &b) {
            Some(middle) => prop_assert!(a < middle && middle < b),
            None => prop_assert!(a == b || b == [&a[..], &[0]].concat()),
        }
        prop_assert_eq!(midpoint_of(&b, &a), None);
    }
}

#[test]
fn prefix_successor_basic() {
    assert_eq!(prefix_successor_of(b"abc").as_deref(), Some(&b"abd"[..]));
    assert_eq!(prefix_successor_of(b"ab\xff").as_deref(), Some(&b"ac"[..]));
    assert_eq!(prefix_successor_of(b"\x00").as_deref(), Some(&b"\x01"[..]));
    assert_eq!(prefix_successor_of(b"\xfe\xff\xff").as_deref(), Some(&b"\xff"[..]));
    assert_eq!(prefix_successor_of(b""), None);
    assert_eq!(prefix_successor_of(&[0xff; 5]), None);
    assert_eq!(prefix_successor_of(&[b'k'; MAX_KEY_SIZE]).map(|key| key.len()), Some(MAX_KEY_SIZE));
    assert_eq!(prefix_successor_of(&[b'k'; MAX_KEY_SIZE + 1]), None);
}

#[test]
fn prefix_successor_drops_ff_tails_of_every_length() {
    for len in 1..200 {
        for kept in 0..len {
            let mut prefix = vec![0xff; len];
            prefix[kept] = 7;
            let mut expected = prefix[..=kept].to_vec();
            expected[kept] = 8;
            assert_eq!(prefix_successor_of(&prefix), Some(expected), "{kept} of {len}");
        }
        assert_eq!(prefix_successor_of(&vec![0xff; len]), None);
    }
}

#[test]
fn a_prefix_without_a_successor_leaves_the_buffer_alone() {
    let mut buf = KeyBuf::new();
    buf.copy_from_slice(b"kept");
    for key in [&b""[..], &[0xff; 9], &[1; MAX_KEY_SIZE + 1]] {
        assert_eq!(prefix_successor(key, &mut buf), None);
        assert_eq!(buf.as_bytes(), b"kept");
    }
}

#[rstest]
#[case::equal(b"a", b"a", None)]
#[case::inverted(b"b", b"a", None)]
#[case::nothing_between(b"a", b"a\0", None)]
#[case::neighbours(b"a", b"b", Some(&b"a\0"[..]))]
#[case::middle(b"\x10", b"\x20", Some(&b"\x18"[..]))]
#[case::overflowing_sum(b"\xf0", b"\xfe", Some(&b"\xf7"[..]))]
#[case::from_the_empty_key(b"", b"\x80\x00", Some(&b"\x40\x00"[..]))]
#[case::same_number_but_longer(b"a", b"a\0\0\0", Some(&b"a\0"[..]))]
fn byte_midpoint_edge_cases(#[case] a: &[u8], #[case] b: &[u8], #[case] expected: Option<&[u8]>) {
    assert_eq!(midpoint_of(a, b).as_deref(), expected);
}

#[test]
fn byte_midpoint_carry_regression() {
    // A carry out of the first byte must come back as the top bit, not be lost.
    assert_eq!(midpoint_of(b"\x00\xff", b"\xff\x01").as_deref(), Some(&b"\x80\x00"[..]));
    assert_eq!(midpoint_of(b"\x80\x00", b"\x80\x02").as_deref(), Some(&b"\x80\x01"[..]));
    // Through every length: words, blocks and the bytes before them.
    for len in 2..300 {
        let (mut a, mut b) = (vec![0xff; len], vec![0; len]);
        (a[0], b[0]) = (0x01, 0x03);
        b[len - 1] = 0x01;
        let mut expected = vec![0; len];
        // 01 ff … ff + 03 00 … 01 = 05 00 … 00.
        (expected[0], expected[1]) = (0x02, 0x80);
        assert_eq!(midpoint_of(&a, &b), Some(expected), "{len}");
    }
}

#[test]
fn byte_midpoint_output_respects_max_key_size() {
    // One apart at full length: only a shorter key can lie between, and here none does.
    let mut a = vec![7; MAX_KEY_SIZE];
    let mut b = a.clone();
    b[MAX_KEY_SIZE - 1] += 1;
    assert_eq!(midpoint_of(&a, &b), None);
    // Here one does: the successor of `a` is shorter than `b`.
    a[MAX_KEY_SIZE - 1] = 0xff;
    b[MAX_KEY_SIZE - 2] += 1;
    b[MAX_KEY_SIZE - 1] = 0;
    assert_eq!(midpoint_of(&a, &b).as_deref(), Some(&b[..MAX_KEY_SIZE - 1]));
    // And an overflowing sum is one digit longer than a key only on the way.
    let (a, b) = (vec![0xf0; MAX_KEY_SIZE], vec![0xff; MAX_KEY_SIZE]);
    assert_eq!(midpoint_of(&a, &b).map(|key| key.len()), Some(MAX_KEY_SIZE));
}

#[test]
fn byte_midpoint_rejects_oversized_inputs() {
    let long = vec![b'b'; MAX_KEY_SIZE + 1];
    assert_eq!(midpoint_of(b"a", &long), None);
    assert_eq!(midpoint_of(&long, b"c"), None);
    assert!(midpoint_of(b"a", &long[1..]).is_some());
}
