//! E1 to E3 over arbitrary records and arbitrary bytes.

use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::{LogicalTime, OpId, ShardId};
use proptest::collection::vec;
use proptest::prelude::*;

use super::golden::{owner, rich_run, rich_shard};
use super::*;
use crate::op_log::{OpKind, OpLogEntry, OpResult};
use crate::record::ShardUpdate;
use crate::testing::{arbitrary, cases};

/// E1 and E2, whatever the bytes: what is accepted is encoded as it came, or in the newest version.
fn check_decoding(bytes: &[u8]) {
    let mut out = vec![0xee; 3];
    if let Ok(shard) = decode_shard(bytes) {
        shard.view().assert_invariants();
        encode_shard(&shard.view(), &mut out);
        assert_eq!(out, bytes);
    }
    if let Ok(run) = decode_run(bytes) {
        run.assert_invariants();
        encode_run(&run, &mut out);
        if bytes[1] == RecordKind::Run.newest_version() {
            assert_eq!(out, bytes);
        }
        assert_eq!(decode_run(&out), Ok(run));
    }
    if let Ok(gate) = decode_gate(bytes) {
        encode_gate(&gate, &mut out);
        assert_eq!(out, bytes);
    }
    if let Ok(owner) = decode_owner(bytes) {
        encode_owner(&owner, &mut out);
        assert_eq!(out, bytes);
    }
}

/// A change to an encoded record: what stands at a place is replaced.
fn edit() -> impl Strategy<Value = (prop::sample::Index, usize, Vec<u8>)> {
    (any::<prop::sample::Index>(), 0usize..9, vec(any::<u8>(), 0..9))
}

fn encoded() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => arbitrary::shard().prop_map(|record| encoded_shard(&record)),
        2 => arbitrary::run().prop_map(|record| encoded_run(&record)),
        1 => arbitrary::owner().prop_map(|record| encoded_owner(&record)),
        1 => arbitrary::run().prop_map(|record| encoded_gate(&record.gate_record())),
    ]
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn records_come_back_as_they_were(
        shard in arbitrary::shard(),
        run in arbitrary::run(),
        owner in arbitrary::owner(),
    ) {
        let gate = run.gate_record();
        prop_assert_eq!(decode_gate(&encoded_gate(&gate)), Ok(gate));
        prop_assert_eq!(decode_run(&encoded_run(&run)), Ok(run));
        prop_assert_eq!(decode_owner(&encoded_owner(&owner)), Ok(owner));
        prop_assert_eq!(decode_shard(&encoded_shard(&shard)), Ok(shard));
    }

    /// A scratch and a buffer that held other records change nothing.
    #[test]
    fn reused_scratch_and_buffers_leave_no_trace(
        records in vec(arbitrary::shard(), 1..6),
    ) {
        let (mut scratch, mut out) = (DecodeScratch::new(), Vec::new());
        for record in records {
            let bytes = encoded_shard(&record);
            let view = decode_shard_view(&bytes, &mut scratch).unwrap();
            encode_shard(&view, &mut out);
            prop_assert_eq!(&out, &bytes);
            prop_assert_eq!(ShardRecord::from_view(&view), record);
        }
    }

    #[test]
    fn encoding_an_update_is_applying_it_and_encoding(
        mut record in arbitrary::shard(),
        other in arbitrary::shard(),
        given in any::<[bool; 3]>(),
        spawned in vec(any::<u64>(), 0..6),
    ) {
        let entry = OpLogEntry::new(
            OpId::from_raw(1), OpKind::Park, OpResult::Completed, 2, LogicalTime::from_raw(3),
        );
        let update = ShardUpdate {
            state: other.state,
            cursor: given[0].then(|| CursorUpdate::at(b"key")),
            spec: given[1].then(|| ShardSpecRef::new(b"k", b"l", b"m")),
            spawned: spawned.into_iter().map(ShardId::derived_from_raw).collect(),
            log: given[2].then_some(entry),
        };
        let mut out = vec![0xee; 3];
        encode_shard_after(&record.view(), &update, &mut out);
        record.apply(&update);
        prop_assert_eq!(out, encoded_shard(&record));
    }

    #[test]
    fn flipped_cut_and_appended_bytes_are_refused(
        bytes in encoded(),
        at in any::<prop::sample::Index>(),
        flip in 1..=u8::MAX,
        tail in vec(any::<u8>(), 1..9),
    ) {
        let refused = |bytes: &[u8]| {
            decode_shard(bytes).is_err()
                && decode_run(bytes).is_err()
                && decode_owner(bytes).is_err()
                && decode_gate(bytes).is_err()
        };
        let at = at.index(bytes.len());
        let mut flipped = bytes.clone();
        flipped[at] ^= flip;
        prop_assert!(refused(&flipped));
        prop_assert!(refused(&bytes[..at]));
        prop_assert!(refused(&[&*bytes, &*tail].concat()));
        prop_assert!(refused(&seal(&[body(&bytes), &*tail].concat())));
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        kind in 0u8..5,
        version in 0u8..4,
        fields in vec(any::<u8>(), 0..400),
    ) {
        check_decoding(&fields);
        check_decoding(&[&[kind, version], &*fields].concat());
        check_decoding(&seal(&[&[kind, version], &*fields].concat()));
    }

    /// Records with a few places changed get far into the parser.
    #[test]
    fn edited_records_never_panic(bytes in encoded(), edits in vec(edit(), 1..4)) {
        let mut fields = body(&bytes).to_vec();
        for (at, removed, inserted) in edits {
            let at = at.index(fields.len() + 1);
            let until = fields.len().min(at + removed);
            fields.splice(at..until, inserted);
        }
        check_decoding(&seal(&fields));
    }
}

/// E3 for every byte of a record and every value that it could have instead.
#[test]
fn no_changed_byte_of_a_record_goes_unnoticed() {
    fn check(bytes: &[u8], is_refused: impl Fn(&[u8]) -> bool) {
        let mut changed = bytes.to_vec();
        for at in 0..bytes.len() {
            for flip in 1..=u8::MAX {
                changed[at] ^= flip;
                assert!(is_refused(&changed), "byte {at} flipped by {flip:#x}");
                changed[at] ^= flip;
            }
            assert!(is_refused(&bytes[..at]), "cut at {at}");
        }
        assert!(!is_refused(bytes));
    }
    check(&encoded_shard(&rich_shard()), |bytes| decode_shard(bytes).is_err());
    check(&encoded_run(&rich_run()), |bytes| decode_run(bytes).is_err());
    check(&encoded_gate(&rich_run().gate_record()), |bytes| decode_gate(bytes).is_err());
    check(&encoded_owner(&owner()), |bytes| decode_owner(bytes).is_err());
}
