//! Shard records as bytes.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, MAX_KEY_SIZE, MAX_METADATA_SIZE, MAX_SPAWNED_PER_SHARD,
    MAX_TOKEN_SIZE, ShardSpec, ShardSpecRef,
};
use gossip_contracts::identity::{FenceEpoch, RunId, ShardId, ShardKey, TenantId, WorkerId};

use super::error::{CodecError, RecordKind};
use super::wire::{Reader, Writer};
use crate::lease::LeaseHolder;
use crate::op_log::{OpKind, OpLog, OpLogEntry};
use crate::record::{ShardRecord, ShardRecordView, ShardState, ShardUpdate};
use crate::status::{ParkReason, ShardStatus};

/// What a decoded view cannot borrow from the bytes. Keep one and reuse it: once it has grown to
/// the longest list met, decoding allocates nothing.
#[derive(Debug, Default)]
pub struct DecodeScratch {
    spawned: Vec<ShardId>,
    op_log: OpLog,
}

impl DecodeScratch {
    /// An empty scratch.
    #[must_use]
    pub const fn new() -> Self {
        Self { spawned: Vec::new(), op_log: OpLog::new() }
    }
}

/// Replaces what is in `out` by the record.
pub fn encode_shard(shard: &ShardRecordView<'_>, out: &mut Vec<u8>) {
    write(shard, shard.spawned.iter().copied(), shard.op_log.iter(), out);
}

/// Replaces what is in `out` by the record as `update` leaves it.
pub fn encode_shard_after(
    shard: &ShardRecordView<'_>,
    update: &ShardUpdate<'_>,
    out: &mut Vec<u8>,
) {
    let after = ShardRecordView {
        state: update.state,
        spec: update.spec.unwrap_or(shard.spec),
        cursor: update.cursor.unwrap_or(shard.cursor),
        ..*shard
    };
    write(&after, update.spawned_after(shard), update.op_log_after(shard), out);
}

/// The view's own lists are passed beside it, so that a record can be written as it will be.
fn write(
    shard: &ShardRecordView<'_>,
    spawned: impl Iterator<Item = ShardId>,
    op_log: impl Iterator<Item = OpLogEntry<OpKind>>,
    out: &mut Vec<u8>,
) {
    let state = &shard.state;
    let mut w = Writer::begin(RecordKind::Shard, out);
    w.raw(shard.tenant.as_bytes());
    w.u64(shard.key.run.as_raw()).u64(shard.key.shard.as_raw());
    w.u8(state.status as u8);
    w.option(state.park_reason, |w, reason| {
        w.u8(reason as u8);
    });
    w.u64(state.fence.as_raw());
    w.option(state.lease, |w, holder| {
        w.u64(holder.owner().as_raw()).u64(holder.deadline().as_raw());
    });
    w.u32(state.acquires_since_progress);
    w.bytes(shard.spec.start()).bytes(shard.spec.end()).bytes(shard.spec.metadata());
    for field in [shard.cursor.last_key(), shard.cursor.token()] {
        w.option(field, |w, bytes| {
            w.bytes(bytes);
        });
    }
    w.u8(shard.cursor_semantics as u8);
    w.option(shard.parent, |w, parent| {
        w.u64(parent.as_raw());
    });
    w.shard_ids(spawned);
    w.op_log(op_log, |kind| kind as u8);
    w.finish();
}

/// The record in `bytes`, owned.
pub fn decode_shard(bytes: &[u8]) -> Result<ShardRecord, CodecError> {
    let mut scratch = DecodeScratch::new();
    decode_shard_view(bytes, &mut scratch).map(|view| ShardRecord::from_view(&view))
}

/// The record in `bytes`: keys, token and metadata borrowed from there, lists from `scratch`.
pub fn decode_shard_view<'a>(
    bytes: &'a [u8],
    scratch: &'a mut DecodeScratch,
) -> Result<ShardRecordView<'a>, CodecError> {
    let mut r = Reader::begin(RecordKind::Shard, bytes)?;
    let tenant = TenantId::from_bytes(r.array("tenant")?);
    let run = RunId::from_raw(r.u64("run")?);
    let key = ShardKey::new(run, ShardId::from_raw(r.u64("shard")?));
    let state = read_state(&mut r)?;
    let spec = ShardSpecRef::new(
        r.bytes("start key", MAX_KEY_SIZE)?,
        r.bytes("end key", MAX_KEY_SIZE)?,
        r.bytes("metadata", MAX_METADATA_SIZE)?,
    );
    let cursor = CursorUpdate::new(
        r.option("last key", |r| r.bytes("last key", MAX_KEY_SIZE))?,
        r.option("token", |r| r.bytes("token", MAX_TOKEN_SIZE))?,
    );
    let cursor_semantics = r.discriminant("cursor semantics", CursorSemantics::from_raw)?;
    let parent = r.option("parent", |r| r.u64("parent"))?.map(ShardId::from_raw);
    r.shard_ids("spawned", MAX_SPAWNED_PER_SHARD, &mut scratch.spawned)?;
    r.op_log(&mut scratch.op_log, OpKind::from_raw)?;
    r.finish()?;

    ShardSpec::validate_ref(spec)?;
    if !cursor.is_within(spec) {
        return Err(CodecError::CursorOutOfBounds);
    }
    let DecodeScratch { spawned, op_log } = scratch;
    let view = ShardRecordView {
        tenant,
        key,
        state,
        spec,
        cursor,
        cursor_semantics,
        parent,
        spawned,
        op_log,
    };
    view.check_invariants()?;
    Ok(view)
}

fn read_state(r: &mut Reader<'_>) -> Result<ShardState, CodecError> {
    Ok(ShardState {
        status: r.discriminant("status", ShardStatus::from_raw)?,
        park_reason: r
            .option("park reason", |r| r.discriminant("park reason", ParkReason::from_raw))?,
        fence: FenceEpoch::from_raw(r.set_u64("fence")?),
        lease: r.option("lease", |r| {
            let owner = WorkerId::from_raw(r.u64("lease owner")?);
            Ok(LeaseHolder::new(owner, r.time("lease deadline")?))
        })?,
        acquires_since_progress: r.u32("acquires since progress")?,
    })
}
