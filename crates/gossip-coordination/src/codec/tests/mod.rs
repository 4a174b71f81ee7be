//! The format pinned, its faults named, and its promises as properties.

mod faults;
mod golden;
mod properties;

use super::*;

use crate::record::ShardRecord;
use crate::run::RunRecord;

/// Puts the checksum right, so that the parser behind it is reached.
fn seal(body: &[u8]) -> Vec<u8> {
    let mut bytes = body.to_vec();
    bytes.extend(crc32fast::hash(body).to_le_bytes());
    bytes
}

/// Everything but the checksum.
fn body(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len() - 4]
}

fn encoded_shard(record: &ShardRecord) -> Vec<u8> {
    let mut out = Vec::new();
    encode_shard(&record.view(), &mut out);
    out
}

fn encoded_run(record: &RunRecord) -> Vec<u8> {
    let mut out = Vec::new();
    encode_run(record, &mut out);
    out
}

fn encoded_gate(record: &crate::GateRecord) -> Vec<u8> {
    let mut out = Vec::new();
    encode_gate(record, &mut out);
    out
}

fn encoded_owner(record: &crate::OwnerRecord) -> Vec<u8> {
    let mut out = Vec::new();
    encode_owner(record, &mut out);
    out
}
