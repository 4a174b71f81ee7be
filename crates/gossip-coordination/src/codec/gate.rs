//! Gate records as bytes.

use gossip_contracts::identity::{RunId, TenantId};

use super::error::{CodecError, RecordKind};
use super::run::{read_config, write_config};
use super::wire::{Reader, Writer};
use crate::run::{GateRecord, RunGate, RunStatus};

/// Replaces what is in `out` by the record.
pub fn encode_gate(record: &GateRecord, out: &mut Vec<u8>) {
    let GateRecord { tenant, run, gate } = record;
    let mut w = Writer::begin(RecordKind::Gate, out);
    w.raw(tenant.as_bytes()).u64(run.as_raw());
    write_config(&mut w, &gate.config);
    w.u8(gate.status as u8).u8(gate.hides_shards.into());
    w.finish();
}

/// The record in `bytes`.
pub fn decode_gate(bytes: &[u8]) -> Result<GateRecord, CodecError> {
    let mut r = Reader::begin(RecordKind::Gate, bytes)?;
    let tenant = TenantId::from_bytes(r.array("tenant")?);
    let run = RunId::from_raw(r.u64("run")?);
    let config = read_config(&mut r)?;
    let status = r.discriminant("status", RunStatus::from_raw)?;
    // Version 1 did not say.
    let as_flag = |raw| [false, true].get(usize::from(raw)).copied();
    let hides_shards = r.version() >= 2 && r.discriminant("hides shards", as_flag)?;
    r.finish()?;
    config.validate()?;
    Ok(GateRecord { tenant, run, gate: RunGate { status, config, hides_shards } })
}
