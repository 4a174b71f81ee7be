//! Every version, byte for byte. What is in `tests/golden/` has been written to disks: a line that
//! changes there is a new format version.

use gossip_contracts::coordination::{
    Cursor, CursorSemantics, CursorUpdate, MAX_INITIAL_SHARDS, MAX_KEY_SIZE, MAX_METADATA_SIZE,
    MAX_SPAWNED_PER_SHARD, MAX_TOKEN_SIZE, ShardSpec, ShardSpecRef,
};
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};

use super::*;
use crate::lease::{LeaseHolder, OwnerRecord};
use crate::op_log::{OpKind, OpLog, OpLogEntry, OpResult, RunOpKind, RunOpLog};
use crate::record::{ShardRecordView, ShardState};
use crate::run::{Registration, RunConfig, RunStatus};
use crate::status::{ParkReason, ShardStatus};

const TENANT: TenantId = TenantId::from_bytes([0xa7; 32]);
const RUN: RunId = RunId::from_raw(0x0102_0304_0506_0708);

pub(super) fn minimal_shard() -> ShardRecord {
    ShardRecord::from_view(&ShardRecordView::new_shard(
        TENANT,
        ShardKey::new(RUN, ShardId::from_raw(9)),
        ShardSpecRef::new(b"a", b"b", b""),
        CursorUpdate::initial(),
        CursorSemantics::Completed,
        None,
    ))
}

/// Every field that an active shard can have is set, and no two fields hold the same bytes.
pub(super) fn rich_shard() -> ShardRecord {
    let holder = LeaseHolder::new(WorkerId::from_raw(0x1111), LogicalTime::from_raw(0x2222));
    let mut op_log = OpLog::new();
    for (id, kind, result) in [
        (0x51, OpKind::Checkpoint, OpResult::Completed),
        (0x52, OpKind::SplitResidual, OpResult::Superseded),
        (0x53, OpKind::Unpark, OpResult::Error),
    ] {
        let at = LogicalTime::from_raw(0x7777 + id);
        op_log.push_back_overwrite(OpLogEntry::new(
            OpId::from_raw(id),
            kind,
            result,
            0x6600 + id,
            at,
        ));
    }
    let spec = ShardSpecRef::new(b"src/", b"src0", b"metadata");
    let cursor = CursorUpdate::new(Some(b"src/lib.rs"), Some(b"token"));
    ShardRecord {
        tenant: TENANT,
        key: ShardKey::new(RUN, ShardId::derived_from_raw(0x3333)),
        state: ShardState {
            fence: FenceEpoch::from_raw(0x4444),
            lease: Some(holder),
            acquires_since_progress: 3,
            ..ShardState::NEW
        },
        spec: ShardSpec::new(spec).unwrap(),
        cursor: Cursor::new(cursor).unwrap(),
        cursor_semantics: CursorSemantics::Dispatched,
        parent: Some(ShardId::from_raw(0x5555)),
        spawned: vec![ShardId::derived_from_raw(0x81), ShardId::derived_from_raw(0x82)],
        op_log,
    }
}

pub(super) fn parked_shard() -> ShardRecord {
    ShardRecord {
        state: ShardState {
            status: ShardStatus::Parked,
            park_reason: Some(ParkReason::TooManyErrors),
            ..ShardState::NEW
        },
        ..minimal_shard()
    }
}

pub(super) fn rich_run() -> RunRecord {
    let mut op_log = RunOpLog::new();
    for (id, kind) in [(0x51, RunOpKind::RegisterShards), (0x52, RunOpKind::Fail)] {
        let (hash, at) = (0x6600 + id, LogicalTime::from_raw(0x7777 + id));
        let result = OpResult::Completed;
        op_log.push_back_overwrite(OpLogEntry::new(OpId::from_raw(id), kind, result, hash, at));
    }
    RunRecord {
        tenant: TENANT,
        run: RUN,
        config: RunConfig {
            cursor_semantics: CursorSemantics::Dispatched,
            lease_duration: 30_000,
            max_shard_retries: 5,
        },
        status: RunStatus::Failed,
        created_at: LogicalTime::from_raw(0x1111),
        completed_at: Some(LogicalTime::from_raw(0x2222)),
        root_shards: vec![ShardId::from_raw(0x41), ShardId::from_raw(0x42)],
        op_log,
        registration: None,
        result: None,
    }
}

pub(super) fn minimal_run() -> RunRecord {
    RunRecord {
        status: RunStatus::Initializing,
        completed_at: None,
        root_shards: vec![],
        op_log: RunOpLog::new(),
        ..rich_run()
    }
}

/// A run whose shards are being staged.
pub(super) fn registering_run() -> RunRecord {
    let registration = Registration {
        op_id: OpId::from_raw(0x91),
        payload_hash: 0x9292,
        count: 0x93,
        staged: 0x82,
        leftover: 0,
        stepped_at: LogicalTime::from_raw(0x9494),
    };
    RunRecord { registration: Some(registration), ..minimal_run() }
}

/// A run that came to something.
pub(super) fn done_run() -> RunRecord {
    let result = Some(RunResult::from_bytes([0xd5; 32]));
    RunRecord { status: RunStatus::Done, result, ..rich_run() }
}

pub(super) fn owner() -> OwnerRecord {
    OwnerRecord::new(WorkerId::from_raw(0x1111), FenceEpoch::from_raw(0x4444))
}

/// Hexadecimal, 32 bytes to a line.
fn to_hex(bytes: &[u8]) -> String {
    let line = |chunk: &[u8]| chunk.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(|chunk| line(chunk) + "\n").collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn path(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// `GOSSIP_BLESS=1` writes the fixture anew, for a new format version.
#[track_caller]
fn check(name: &str, bytes: &[u8]) -> Vec<u8> {
    let path = path(name);
    if std::env::var_os("GOSSIP_BLESS").is_some() {
        std::fs::write(&path, to_hex(bytes)).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    assert_eq!(to_hex(bytes), stored, "{name}");
    from_hex(&stored)
}

#[test]
fn shards_and_owners_of_version_1_are_written_and_read_as_in_the_fixtures() {
    for (name, shard) in [
        ("shard-minimal.v1.hex", minimal_shard()),
        ("shard-parked.v1.hex", parked_shard()),
        ("shard-rich.v1.hex", rich_shard()),
    ] {
        let stored = check(name, &encoded_shard(&shard));
        assert_eq!(decode_shard(&stored), Ok(shard), "{name}");
    }
    let stored = check("owner.v1.hex", &encoded_owner(&owner()));
    assert_eq!(decode_owner(&stored), Ok(owner()));
}

#[test]
fn gates_of_version_2_are_written_and_read_as_in_the_fixtures() {
    let cancelled = RunRecord { status: RunStatus::Cancelled, root_shards: vec![], ..rich_run() };
    for (name, run) in [("gate.v2.hex", rich_run()), ("gate-hiding.v2.hex", cancelled)] {
        let gate = run.gate_record();
        let stored = check(name, &encoded_gate(&gate));
        assert_eq!(decode_gate(&stored), Ok(gate), "{name}");
    }
}

#[test]
fn runs_of_version_2_are_written_and_read_as_in_the_fixtures() {
    for (name, run) in [
        ("run-minimal.v2.hex", minimal_run()),
        ("run-rich.v2.hex", rich_run()),
        ("run-registering.v2.hex", registering_run()),
        ("run-done.v2.hex", done_run()),
    ] {
        let stored = check(name, &encoded_run(&run));
        assert_eq!(decode_run(&stored), Ok(run), "{name}");
    }
}

/// What the version before has written is read for ever.
#[test]
fn a_gate_of_version_1_is_read_as_in_the_fixture() {
    let bytes = from_hex(&std::fs::read_to_string(path("gate.v1.hex")).unwrap());
    assert_eq!(bytes[1], 1);
    assert_eq!(decode_gate(&bytes), Ok(rich_run().gate_record()));
}

/// What the version before has written is read for ever.
#[test]
fn runs_of_version_1_are_read_as_in_the_fixtures() {
    for (name, run) in [("run-minimal.v1.hex", minimal_run()), ("run-rich.v1.hex", rich_run())] {
        let bytes = from_hex(&std::fs::read_to_string(path(name)).unwrap());
        assert_eq!(bytes[1], 1, "{name}");
        assert_eq!(decode_run(&bytes), Ok(run), "{name}");
    }
}

#[test]
fn records_at_every_limit_go_through() {
    let (key, token) = (vec![b'k'; MAX_KEY_SIZE], vec![1; MAX_TOKEN_SIZE]);
    let (end, metadata) = (vec![b'l'; MAX_KEY_SIZE], vec![2; MAX_METADATA_SIZE]);
    let mut shard = ShardRecord {
        spec: ShardSpec::new(ShardSpecRef::new(&key, &end, &metadata)).unwrap(),
        cursor: Cursor::new(CursorUpdate::new(Some(&key), Some(&token))).unwrap(),
        spawned: (0..MAX_SPAWNED_PER_SHARD as u64).map(ShardId::derived_from_raw).collect(),
        ..rich_shard()
    };
    let mut run = RunRecord {
        root_shards: (0..MAX_INITIAL_SHARDS as u64).map(ShardId::from_raw).collect(),
        ..rich_run()
    };
    // More than the logs hold: they start somewhere inside their rings.
    for id in 0..20 {
        let (op_id, result) = (OpId::from_raw(0x1000 + id), OpResult::Completed);
        let at = LogicalTime::from_raw(1);
        shard.op_log.push_back_overwrite(OpLogEntry::new(op_id, OpKind::Park, result, 1, at));
        run.op_log.push_back_overwrite(OpLogEntry::new(op_id, RunOpKind::Fail, result, 1, at));
    }
    assert!(shard.op_log.is_full() && run.op_log.is_full());
    assert_eq!(decode_shard(&encoded_shard(&shard)), Ok(shard));
    assert_eq!(decode_run(&encoded_run(&run)), Ok(run));
}
