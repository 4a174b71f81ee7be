//! The three functions against their long forms, over keys that make carries run, fall on word and
//! block edges, and reach the size limit.

use std::ops::Range;

use gossip_contracts::coordination::MAX_KEY_SIZE;
use proptest::prelude::*;

use crate::checks::{check_key_arithmetic, two_keys};
use crate::test_support::cases;

/// One way to fill a key: text (which never carries), binary, or extremes (which always do).
fn bytes(len: Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    let extremes = prop::sample::select(vec![0, 1, 0x7f, 0x80, 0xfe, 0xff]);
    prop_oneof![
        prop::collection::vec(b' '..=b'~', len.clone()),
        prop::collection::vec(any::<u8>(), len.clone()),
        prop::collection::vec(extremes.clone(), len.clone()),
        prop::collection::vec(prop_oneof![30 => b' '..=b'~', 1 => extremes], len),
    ]
}

fn check_pair(shared: &[u8], a: &[u8], b: &[u8]) {
    check_key_arithmetic(&[shared, a].concat(), &[shared, b].concat());
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn short_keys_agree(shared in bytes(0..5), a in bytes(0..20), b in bytes(0..20)) {
        check_pair(&shared, &a, &b);
    }

    #[test]
    fn keys_of_some_words_agree(shared in bytes(0..70), a in bytes(0..140), b in bytes(0..140)) {
        check_pair(&shared, &a, &b);
    }

    /// `b` is `a` and a bit: neighbours and near neighbours, where the fallback decides.
    #[test]
    fn neighbours_agree(a in bytes(1..140), at in any::<prop::sample::Index>(), step in 1u8..3) {
        let mut b = a.clone();
        let at = at.index(b.len());
        b[at] = b[at].saturating_add(step);
        check_key_arithmetic(&a, &b);
        // One apart as numbers: all that follows is 0xFF below and 0x00 above.
        let mut a = a;
        a[at + 1..].fill(0xff);
        b[at + 1..].fill(0);
        check_key_arithmetic(&a, &b);
        check_key_arithmetic(&a[..=at], &b);
        check_key_arithmetic(&a, &b[..=at]);
    }

    /// `b` is `a` and a tail, zeros often.
    #[test]
    fn extensions_agree(a in bytes(0..70), zeros in 0usize..70, tail in bytes(0..3)) {
        check_key_arithmetic(&a, &[&a[..], &vec![0; zeros], &tail].concat());
    }

    #[test]
    fn fuzzer_bytes_agree(data in bytes(0..200)) {
        let (a, b) = two_keys(&data);
        check_key_arithmetic(&a, &b);
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn the_longest_keys_agree(
        shared in prop_oneof![bytes(0..70), bytes(MAX_KEY_SIZE - 90..MAX_KEY_SIZE)],
        fill in bytes(MAX_KEY_SIZE + 1..MAX_KEY_SIZE + 2),
        a_short in 0usize..3,
        b_short in prop_oneof![0usize..3, 3..MAX_KEY_SIZE],
        twist in bytes(MAX_KEY_SIZE + 1..MAX_KEY_SIZE + 2),
    ) {
        let whole = |fill: &[u8], short: usize| {
            let len = (MAX_KEY_SIZE + 1 - short).max(shared.len());
            [&shared[..], &fill[shared.len()..len]].concat()
        };
        check_key_arithmetic(&whole(&fill, a_short), &whole(&twist, b_short));
        check_key_arithmetic(&whole(&fill, a_short), &whole(&fill, b_short));
    }
}

/// At full length nothing can be appended, so the successor of `a` decides alone.
#[test]
fn neighbours_of_full_length_agree_wherever_they_differ() {
    for at in [0, 1, 63, 64, 4031, 4032, 4033, 4094, 4095] {
        for tail in [[0xff, 0], [0, 0xff], [0x80, 0x80]] {
            let (mut a, mut b) = (vec![7; MAX_KEY_SIZE], vec![7; MAX_KEY_SIZE]);
            b[at] += 1;
            a[at + 1..].fill(tail[0]);
            b[at + 1..].fill(tail[1]);
            check_key_arithmetic(&a, &b);
            check_key_arithmetic(&a, &b[..=at]);
            check_key_arithmetic(&a[..=at], &b);
        }
    }
}

/// Every length at which the halving changes its stride, with a carry that crosses all of it.
#[test]
fn carries_cross_every_block() {
    for len in (0..=MAX_KEY_SIZE).filter(|len| len % 64 <= 9 || len % 64 >= 56) {
        let (mut a, mut b) = (vec![0xff; len], vec![0; len]);
        if let ([first_a, ..], [first_b, .., last_b]) = (&mut a[..], &mut b[..]) {
            (*first_a, *first_b, *last_b) = (0, 0xff, 1);
        }
        check_key_arithmetic(&a, &b);
    }
}
