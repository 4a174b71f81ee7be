//! Owner records as bytes.

use gossip_contracts::identity::{FenceEpoch, WorkerId};

use super::error::{CodecError, RecordKind};
use super::wire::{Reader, Writer};
use crate::lease::OwnerRecord;

/// Replaces what is in `out` by the record.
pub fn encode_owner(owner: &OwnerRecord, out: &mut Vec<u8>) {
    let mut w = Writer::begin(RecordKind::Owner, out);
    w.u64(owner.worker().as_raw()).u64(owner.fence().as_raw());
    w.finish();
}

/// The record in `bytes`.
pub fn decode_owner(bytes: &[u8]) -> Result<OwnerRecord, CodecError> {
    let mut r = Reader::begin(RecordKind::Owner, bytes)?;
    let worker = WorkerId::from_raw(r.u64("worker")?);
    let fence = FenceEpoch::from_raw(r.set_u64("fence")?);
    r.finish()?;
    Ok(OwnerRecord::new(worker, fence))
}
