//! Every way in which bytes can be wrong, and what is said of it.

use gossip_contracts::coordination::ShardSpecInputError;
use gossip_contracts::identity::{OpId, RunId, ShardId, ShardKey};

use super::golden::{
    done_run, minimal_run, minimal_shard, owner, parked_shard, registering_run, rich_run,
    rich_shard,
};
use super::*;
use crate::invariants::InvariantViolation;
use crate::run::{RunConfigError, RunStatus};
use crate::status::{ParkReason, ShardStatus};

/// The record with the only occurrence of `find` replaced, under a checksum that fits.
#[track_caller]
fn replaced(bytes: &[u8], find: &[u8], with: &[u8]) -> Vec<u8> {
    let body = body(bytes);
    let at: Vec<usize> =
        (0..=body.len() - find.len()).filter(|&at| body[at..].starts_with(find)).collect();
    let [at] = at[..] else { panic!("{find:x?} stands at {at:?}") };
    seal(&[&body[..at], with, &body[at + find.len()..]].concat())
}

fn le(value: u64) -> [u8; 8] {
    value.to_le_bytes()
}

/// Adjacent fields.
fn all(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn headers_are_checked_in_order() {
    let good = encoded_owner(&owner());
    let with = |kind: u8, version: u8| {
        let mut bytes = good.clone();
        bytes[..2].copy_from_slice(&[kind, version]);
        decode_owner(&bytes)
    };
    let kind = |found| CodecError::WrongKind { expected: RecordKind::Owner, found };
    assert_eq!(with(3, 1), Ok(owner()));
    assert_eq!(with(1, 9), Err(kind(1)));
    assert_eq!(with(0, 1), Err(kind(0)));
    let newer = CodecError::NewerVersion { kind: RecordKind::Owner, found: 2, newest: 1 };
    assert_eq!(with(3, 2), Err(newer));
    assert_eq!(with(3, 0), Err(CodecError::UnknownVersion { found: 0 }));
    assert_eq!(
        decode_shard(&good),
        Err(CodecError::WrongKind { expected: RecordKind::Shard, found: 3 })
    );
    assert_eq!(
        decode_run(&good),
        Err(CodecError::WrongKind { expected: RecordKind::Run, found: 3 })
    );
    for (len, field) in [(0, "header"), (1, "header"), (2, "checksum"), (5, "checksum")] {
        assert_eq!(decode_owner(&good[..len]), Err(CodecError::Truncated { field }));
    }
    assert_eq!(decode_owner(&good[..6]), Err(CodecError::ChecksumMismatch));
    let message = newer.to_string();
    assert!(message.contains("Owner") && message.contains("upgrade"), "{message}");
    let mut run = encoded_run(&minimal_run());
    run[1] = 3;
    let newer = CodecError::NewerVersion { kind: RecordKind::Run, found: 3, newest: 2 };
    assert_eq!(decode_run(&run), Err(newer));
}

/// Cuts a record at every length, mends the checksum, and lists where it was said to end: the
/// fields in the documented order.
fn fields(bytes: &[u8], decode: impl Fn(&[u8]) -> Option<CodecError>) -> Vec<&'static str> {
    let body = body(bytes);
    let mut fields: Vec<_> = (2..body.len())
        .map(|len| match decode(&seal(&body[..len])) {
            Some(CodecError::Truncated { field }) => field,
            other => panic!("cut at {len}: {other:?}"),
        })
        .collect();
    fields.dedup();
    fields
}

#[test]
fn a_cut_record_names_the_field_in_which_it_ends() {
    let rich = fields(&encoded_shard(&rich_shard()), |bytes| decode_shard(bytes).err());
    let entry = ["op-log id", "op-log kind", "op-log result", "op-log payload hash", "op-log time"];
    let expected = [
        &["tenant", "run", "shard", "status", "park reason", "fence", "lease", "lease owner"][..],
        &["lease deadline", "acquires since progress", "start key", "end key", "metadata"],
        &["last key", "token", "cursor semantics", "parent", "spawned", "op-log"],
        &entry,
        &entry,
        &entry,
    ]
    .concat();
    assert_eq!(rich, expected);

    let run = fields(&encoded_run(&rich_run()), |bytes| decode_run(bytes).err());
    let expected = [
        &["tenant", "run", "cursor semantics", "lease duration", "max shard retries", "status"][..],
        &["created at", "completed at", "root shards", "op-log"],
        &entry,
        &entry,
        &["registration", "result"],
    ]
    .concat();
    assert_eq!(run, expected);
    let registering = fields(&encoded_run(&registering_run()), |bytes| decode_run(bytes).err());
    let expected = ["registration", "registration id", "registration payload hash"]
        .into_iter()
        .chain(["registration count", "registration staged", "registration leftover"])
        .chain(["registration stepped at", "result"]);
    assert!(registering.ends_with(&expected.collect::<Vec<_>>()), "{registering:?}");

    let gate = rich_run().gate_record();
    let gate = fields(&encoded_gate(&gate), |bytes| decode_gate(bytes).err());
    let config = ["cursor semantics", "lease duration", "max shard retries", "status"];
    assert_eq!(gate, [&["tenant", "run"][..], &config, &["hides shards"]].concat());

    let owner = fields(&encoded_owner(&owner()), |bytes| decode_owner(bytes).err());
    assert_eq!(owner, ["worker", "fence"]);
}

#[test]
fn trailing_bytes_are_refused_under_a_checksum_that_fits() {
    let longer = |bytes: &[u8]| seal(&all(&[body(bytes), &[0, 0, 0]]));
    let trailing = CodecError::TrailingBytes { count: 3 };
    assert_eq!(decode_shard(&longer(&encoded_shard(&rich_shard()))), Err(trailing));
    assert_eq!(decode_run(&longer(&encoded_run(&rich_run()))), Err(trailing));
    assert_eq!(decode_owner(&longer(&encoded_owner(&owner()))), Err(trailing));
}

#[test]
fn unknown_discriminants_name_their_field_and_value() {
    let gate = encoded_gate(&rich_run().gate_record());
    let (_, before) = body(&gate).split_last().unwrap();
    let bad = CodecError::BadDiscriminant { field: "hides shards", value: 2 };
    assert_eq!(decode_gate(&seal(&all(&[before, &[2]]))), Err(bad));
    let (rich, parked) = (encoded_shard(&rich_shard()), encoded_shard(&parked_shard()));
    let fence = le(0x4444);
    let op = le(0x51);
    for (bytes, find, with, field, value) in [
        (&rich, all(&[&[0, 0], &fence]), all(&[&[4, 0], &fence]), "status", 4),
        (&rich, all(&[&[0, 0], &fence]), all(&[&[0, 2], &fence]), "park reason", 2),
        (&parked, all(&[&[3, 1, 3], &le(1)]), all(&[&[3, 1, 5], &le(1)]), "park reason", 5),
        (&rich, all(&[&fence, &[1]]), all(&[&fence, &[0xff]]), "lease", 0xff),
        (&rich, all(&[&[1], &[10, 0, 0, 0]]), all(&[&[7], &[10, 0, 0, 0]]), "last key", 7),
        (&rich, all(&[b"lib.rs", &[1]]), all(&[b"lib.rs", &[2]]), "token", 2),
        (&rich, all(&[b"token", &[1]]), all(&[b"token", &[2]]), "cursor semantics", 2),
        (&rich, all(&[&[1], &le(0x5555)]), all(&[&[3], &le(0x5555)]), "parent", 3),
        (&rich, all(&[&op, &[0, 0]]), all(&[&op, &[6, 0]]), "op-log kind", 6),
        (&rich, all(&[&op, &[0, 0]]), all(&[&op, &[0, 3]]), "op-log result", 3),
    ] {
        let found = decode_shard(&replaced(bytes, &find, &with));
        assert_eq!(found, Err(CodecError::BadDiscriminant { field, value }));
    }
    let run = encoded_run(&rich_run());
    let created = le(0x1111);
    for (find, with, field, value) in [
        (all(&[&[1], &le(30_000)]), all(&[&[2], &le(30_000)]), "cursor semantics", 2),
        (all(&[&[3], &created]), all(&[&[5], &created]), "status", 5),
        (all(&[&created, &[1]]), all(&[&created, &[9]]), "completed at", 9),
        (all(&[&op, &[0, 0]]), all(&[&op, &[4, 0]]), "op-log kind", 4),
    ] {
        let found = decode_run(&replaced(&run, &find, &with));
        assert_eq!(found, Err(CodecError::BadDiscriminant { field, value }));
    }
}

#[test]
fn zero_times_fences_and_hashes_are_refused() {
    let rich = encoded_shard(&rich_shard());
    for (value, field) in [
        (0x4444, "fence"),
        (0x2222, "lease deadline"),
        (0x6652, "op-log payload hash"),
        (0x77c9, "op-log time"),
    ] {
        let found = decode_shard(&replaced(&rich, &le(value), &le(0)));
        assert_eq!(found, Err(CodecError::Zero { field }));
    }
    let run = encoded_run(&rich_run());
    for (value, field) in [
        (0x1111, "created at"),
        (0x2222, "completed at"),
        (0x6651, "op-log payload hash"),
        (0x77c8, "op-log time"),
    ] {
        let found = decode_run(&replaced(&run, &le(value), &le(0)));
        assert_eq!(found, Err(CodecError::Zero { field }));
    }
    let found = decode_owner(&replaced(&encoded_owner(&owner()), &le(0x4444), &le(0)));
    assert_eq!(found, Err(CodecError::Zero { field: "fence" }));
}

#[test]
fn sizes_above_a_limit_and_sizes_that_are_not_there_are_told_apart() {
    let rich = encoded_shard(&rich_shard());
    let size = |size: u32| size.to_le_bytes();
    let sized = |len: u32, content: &[u8]| all(&[&size(len), content]);
    for (content, field, max) in [
        (&b"src/\x04"[..], "start key", 4096),
        (b"src0", "end key", 4096),
        (b"metadata", "metadata", 16_384),
        (b"src/lib.rs", "last key", 4096),
        (b"token", "token", 16_384),
    ] {
        // The start key is told from the others by the length that follows it.
        let find = sized(content.strip_suffix(&[4]).unwrap_or(content).len() as u32, content);
        for len in [max + 1, u32::MAX] {
            let error = CodecError::LimitExceeded { field, size: len as usize, max: max as usize };
            let found = decode_shard(&replaced(&rich, &find, &sized(len, content)));
            assert_eq!(found, Err(error));
        }
        let found = decode_shard(&replaced(&rich, &find, &sized(max, content)));
        assert_eq!(found, Err(CodecError::Truncated { field }));
    }
    let spawned = le(0x81 | 1 << 63);
    let op = le(0x51);
    for (content, count, field, max) in [(&spawned, 2, "spawned", 1024), (&op, 3, "op-log", 16)] {
        let error = CodecError::LimitExceeded { field, size: max + 1, max };
        let with = sized(max as u32 + 1, content);
        assert_eq!(decode_shard(&replaced(&rich, &sized(count, content), &with)), Err(error));
    }
    let found = decode_shard(&replaced(&rich, &sized(2, &spawned), &sized(1024, &spawned)));
    assert_eq!(found, Err(CodecError::Truncated { field: "spawned" }));
    let found = decode_shard(&replaced(&rich, &sized(3, &op), &sized(4, &op)));
    assert_eq!(found, Err(CodecError::Truncated { field: "op-log id" }));

    let run = encoded_run(&rich_run());
    let root = le(0x41);
    for (content, count, field, max) in [(&root, 2, "root shards", 10_000), (&op, 2, "op-log", 8)] {
        let error = CodecError::LimitExceeded { field, size: max + 1, max };
        let with = sized(max as u32 + 1, content);
        assert_eq!(decode_run(&replaced(&run, &sized(count, content), &with)), Err(error));
    }
    let found = decode_run(&replaced(&run, &sized(2, &root), &sized(10_000, &root)));
    assert_eq!(found, Err(CodecError::Truncated { field: "root shards" }));
}

#[test]
fn ranges_cursors_and_configurations_are_checked() {
    let rich = encoded_shard(&rich_shard());
    let inverted = ShardSpecInputError::InvertedRange { start_len: 4, end_len: 4 };
    let found = decode_shard(&replaced(&rich, b"src0", b"src/"));
    assert_eq!(found, Err(CodecError::SpecInvalid(inverted)));
    let found = decode_shard(&replaced(&rich, b"src/lib.rs", b"src.lib.rs"));
    assert_eq!(found, Err(CodecError::CursorOutOfBounds));
    let found = decode_shard(&replaced(&rich, b"src/lib.rs", b"src0lib.rs"));
    assert_eq!(found, Err(CodecError::CursorOutOfBounds));

    let run = encoded_run(&rich_run());
    let found = decode_run(&replaced(&run, &le(30_000), &le(0)));
    assert_eq!(found, Err(CodecError::ConfigInvalid(RunConfigError::ZeroLeaseDuration)));
    let found = decode_run(&replaced(&run, &[5, 0, 0, 0, 3], &[0, 0, 0, 0, 3]));
    assert_eq!(found, Err(CodecError::ConfigInvalid(RunConfigError::ZeroShardRetries)));
}

#[test]
fn broken_invariants_are_errors_with_their_number() {
    let run = RunId::from_raw(0x0102_0304_0506_0708);
    let key = |shard| ShardKey::new(run, shard);
    let (root, derived) = (ShardId::from_raw(9), ShardId::derived_from_raw(0x3333));
    // R4, R5 and R10 cannot be reached: zero fences and long lists are refused field by field.
    let mut rootless_child = rich_shard();
    rootless_child.parent = None;
    let mut split = minimal_shard();
    split.state.status = ShardStatus::Split;
    let mut parked = parked_shard();
    parked.state.park_reason = None;
    let mut reasoned = minimal_shard();
    reasoned.state.park_reason = Some(ParkReason::Other);
    let mut leased = minimal_shard();
    leased.state = rich_shard().state;
    leased.state.status = ShardStatus::Done;
    let mut twice = rich_shard();
    let first = twice.op_log.iter().next().unwrap();
    twice.op_log.push_back_overwrite(first);
    let mut parent_of_root = minimal_shard();
    parent_of_root.spawned.push(ShardId::from_raw(5));
    for (record, number, violation) in [
        (
            parked,
            "R1",
            InvariantViolation::ParkReason {
                shard: key(root),
                status: ShardStatus::Parked,
                reason: None,
            },
        ),
        (
            reasoned,
            "R1",
            InvariantViolation::ParkReason {
                shard: key(root),
                status: ShardStatus::Active,
                reason: Some(ParkReason::Other),
            },
        ),
        (
            leased,
            "R3",
            InvariantViolation::TerminalLease { shard: key(root), status: ShardStatus::Done },
        ),
        (split, "R6", InvariantViolation::SplitWithoutChildren { shard: key(root) }),
        (rootless_child, "R7", InvariantViolation::Parent { shard: key(derived), parent: None }),
        (
            parent_of_root,
            "R8",
            InvariantViolation::SpawnedRoot { shard: key(root), child: ShardId::from_raw(5) },
        ),
        (
            twice,
            "R9",
            InvariantViolation::RepeatedOp { shard: key(derived), op_id: OpId::from_raw(0x51) },
        ),
    ] {
        assert_eq!(decode_shard(&encoded_shard(&record)), Err(violation.into()));
        assert!(CodecError::from(violation).to_string().starts_with(&format!("{number}: ")));
    }

    let mut ended = minimal_run();
    ended.completed_at = rich_run().completed_at;
    let mut empty = rich_run();
    empty.root_shards.clear();
    let mut twice = rich_run();
    let first = twice.op_log.iter().next().unwrap();
    twice.op_log.push_back_overwrite(first);
    for (record, number, violation) in [
        (
            ended,
            "U1",
            InvariantViolation::RunEnd {
                run,
                status: RunStatus::Initializing,
                end: rich_run().completed_at,
            },
        ),
        (empty, "U2", InvariantViolation::RunShards { run, status: RunStatus::Failed, count: 0 }),
        (twice, "U3", InvariantViolation::RepeatedRunOp { run, op_id: OpId::from_raw(0x51) }),
        (
            RunRecord { status: RunStatus::Failed, ..done_run() },
            "U5",
            InvariantViolation::RunResult { run, status: RunStatus::Failed },
        ),
    ] {
        assert_eq!(decode_run(&encoded_run(&record)), Err(violation.into()));
        assert!(CodecError::from(violation).to_string().starts_with(&format!("{number}: ")));
    }
}
