//! An encoding of somebody else's, made with what is public only: time-stamped rows, newest first.

use std::cmp::Reverse;

use gossip_frontier::testing::{assert_order_preserved, check_order_preservation};
use gossip_frontier::{
    FamilyKey, KeyBuf, KeyEncoding, ShardSpecScratch, prefix_shard_ref, shard_spec_from_keys_ref,
};
use proptest::prelude::*;

use crate::test_support::cases;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NewestFirst {
    table: u16,
    millis: Reverse<u64>,
    name: [u8; 4],
}

impl KeyEncoding for NewestFirst {
    fn encode_into(&self, buf: &mut KeyBuf) {
        buf.copy_from_slice(&self.table.to_be_bytes());
        buf.extend_from_slice(&(!self.millis.0).to_be_bytes());
        buf.extend_from_slice(&self.name);
    }
}

fn row(table: u16, millis: u64, name: [u8; 4]) -> NewestFirst {
    NewestFirst { table, millis: Reverse(millis), name }
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn its_order_is_preserved(
        a in (0u16..3, 0u64..3, any::<[u8; 4]>()),
        b in (0u16..3, any::<u64>(), any::<[u8; 4]>()),
        family in 0u8..2,
    ) {
        let (a, b) = (row(a.0, a.1, a.2), row(b.0, b.1, b.2));
        assert_order_preserved(&a, &b);
        let mut scratch = KeyBuf::new();
        let a = FamilyKey::try_new(family, a, &mut scratch).unwrap();
        let b = FamilyKey::try_new(1, b, &mut scratch).unwrap();
        assert_order_preserved(&a, &b);
    }
}

#[test]
fn it_makes_shards_like_any_other() {
    let (newest, oldest) = (row(1, 2000, *b"aaaa"), row(1, 1000, *b"aaaa"));
    check_order_preservation(&[newest, oldest]).unwrap();
    let (mut start, mut end) = (KeyBuf::new(), KeyBuf::new());
    let spec = shard_spec_from_keys_ref(&newest, &oldest, b"", &mut start, &mut end).unwrap();
    assert_eq!(spec.start()[..2], [0, 1]);

    // A family is a prefix shard that holds all of its keys and no others.
    let mut scratch = ShardSpecScratch::new();
    let family = prefix_shard_ref(b"\x07", b"", &mut scratch).unwrap();
    let mut buf = KeyBuf::new();
    for (number, inside) in [(6, false), (7, true), (8, false)] {
        let key = FamilyKey::try_new(number, newest, &mut buf).unwrap();
        key.encode_into(&mut buf);
        assert_eq!(family.contains(buf.as_bytes()), inside);
    }
}
