//! Arbitrary bytes never panic a decoder, and what is accepted encodes to the same bytes.

use gossip_contracts::coordination::MAX_METADATA_SIZE;
use proptest::prelude::*;

use crate::checks::{check_hint_decode, check_metadata_decode};
use crate::test_support::cases;

/// Bytes that get past the first checks more often than chance would let them.
fn hint_bytes() -> impl Strategy<Value = Vec<u8>> {
    let tail = || prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        tail(),
        (0u8..4, tail()).prop_map(|(tag, tail)| [&[tag], &tail[..]].concat()),
        (0u32..45, tail()).prop_map(|(len, tail)| [&[1], &len.to_be_bytes()[..], &tail].concat()),
        (any::<u64>(), 0u64..4, 0u64..4, tail()).prop_map(|(id, start, end, tail)| {
            let [id, start, end] = [id, start, end].map(u64::to_be_bytes);
            [&[2], &id[..], &start, &end, &tail].concat()
        }),
    ]
}

proptest! {
    #![proptest_config(cases(4096))]

    #[test]
    fn hints_decode_to_what_encodes_the_same(data in hint_bytes()) {
        check_hint_decode(&data);
    }

    #[test]
    fn metadata_decodes_to_what_encodes_the_same(
        data in hint_bytes(),
        length in prop_oneof![0u32..50, Just(u32::MAX)],
    ) {
        check_metadata_decode(&data);
        check_metadata_decode(&[&length.to_be_bytes(), &data[..]].concat());
        let exact = data.len() as u32;
        check_metadata_decode(&[&exact.to_be_bytes(), &data[..], b"connector"].concat());
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn sizes_around_the_limit_decode_to_what_encodes_the_same(
        len in MAX_METADATA_SIZE - 12..MAX_METADATA_SIZE + 12,
        short in 0u32..12,
    ) {
        let prefix_len = (len as u32 - short).to_be_bytes();
        check_hint_decode(&[&[1], &prefix_len[..], &vec![7; len]].concat());
        let hint_len = (len as u32 - short + 5).to_be_bytes();
        check_metadata_decode(&[&hint_len[..], &[1], &prefix_len, &vec![7; len]].concat());
        check_metadata_decode(&[&[0, 0, 0, 1, 0], &vec![7; len][..]].concat());
    }
}

#[test]
fn empty_metadata_is_the_one_second_spelling() {
    check_metadata_decode(b"");
    check_hint_decode(b"");
}
