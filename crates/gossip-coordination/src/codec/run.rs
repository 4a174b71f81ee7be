//! Run records as bytes.

use gossip_contracts::coordination::{CursorSemantics, MAX_INITIAL_SHARDS};
use gossip_contracts::identity::{OpId, RunId, RunResult, TenantId};

use super::error::{CodecError, RecordKind};
use super::wire::{Reader, Writer};
use crate::invariants::check_run_invariants;
use crate::op_log::{RunOpKind, RunOpLog};
use crate::run::{Registration, RunConfig, RunRecord, RunStatus};

/// Replaces what is in `out` by the record.
pub fn encode_run(run: &RunRecord, out: &mut Vec<u8>) {
    let mut w = Writer::begin(RecordKind::Run, out);
    w.raw(run.tenant.as_bytes()).u64(run.run.as_raw());
    write_config(&mut w, &run.config);
    w.u8(run.status as u8);
    w.u64(run.created_at.as_raw());
    w.option(run.completed_at, |w, end| {
        w.u64(end.as_raw());
    });
    w.shard_ids(run.root_shards.iter().copied());
    w.op_log(run.op_log.iter(), |kind| kind as u8);
    w.option(run.registration, |w, registration| {
        let Registration { op_id, payload_hash, count, staged, leftover, stepped_at } =
            registration;
        w.u64(op_id.as_raw()).u64(payload_hash).u32(count).u32(staged).u32(leftover);
        w.u64(stepped_at.as_raw());
    });
    w.option(run.result, |w, result| {
        w.raw(result.as_bytes());
    });
    w.finish();
}

pub(super) fn write_config(w: &mut Writer<'_>, config: &RunConfig) {
    w.u8(config.cursor_semantics as u8);
    w.u64(config.lease_duration).u32(config.max_shard_retries);
}

pub(super) fn read_config(r: &mut Reader<'_>) -> Result<RunConfig, CodecError> {
    Ok(RunConfig {
        cursor_semantics: r.discriminant("cursor semantics", CursorSemantics::from_raw)?,
        lease_duration: r.u64("lease duration")?,
        max_shard_retries: r.u32("max shard retries")?,
    })
}

fn read_registration(r: &mut Reader<'_>) -> Result<Registration, CodecError> {
    Ok(Registration {
        op_id: OpId::from_raw(r.u64("registration id")?),
        payload_hash: r.set_u64("registration payload hash")?,
        count: r.u32("registration count")?,
        staged: r.u32("registration staged")?,
        leftover: r.u32("registration leftover")?,
        stepped_at: r.time("registration stepped at")?,
    })
}

/// The record in `bytes`.
pub fn decode_run(bytes: &[u8]) -> Result<RunRecord, CodecError> {
    let mut r = Reader::begin(RecordKind::Run, bytes)?;
    let tenant = TenantId::from_bytes(r.array("tenant")?);
    let run = RunId::from_raw(r.u64("run")?);
    let config = read_config(&mut r)?;
    let status = r.discriminant("status", RunStatus::from_raw)?;
    let created_at = r.time("created at")?;
    let completed_at = r.option("completed at", |r| r.time("completed at"))?;
    let mut root_shards = Vec::new();
    r.shard_ids("root shards", MAX_INITIAL_SHARDS, &mut root_shards)?;
    let mut op_log = RunOpLog::new();
    r.op_log(&mut op_log, RunOpKind::from_raw)?;
    let (mut registration, mut result) = (None, None);
    if r.version() >= 2 {
        registration = r.option("registration", read_registration)?;
        result = r.option("result", |r| r.array("result"))?.map(RunResult::from_bytes);
    }
    r.finish()?;

    config.validate()?;
    let record = RunRecord {
        tenant,
        run,
        config,
        status,
        created_at,
        completed_at,
        root_shards,
        op_log,
        registration,
        result,
    };
    check_run_invariants(&record)?;
    Ok(record)
}
