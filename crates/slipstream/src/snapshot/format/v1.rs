//! Format 1, which is read only: a record for each update and each cursor, each with a check, but no
//! check of its lengths before they are used. Data may be ahead of the cursor.

use std::io::Read;

use super::{
    Bytes, DELETE, Op, PUT, Replay, Replayed, Source, corrupted, cursor_of, put_or_delete,
};
use crate::kv::WatchCursor;
use crate::snapshot::SnapshotError;

const CURSOR: u8 = 3;

pub(super) fn replay(
    mut source: Source<'_, impl Read>,
    to: &mut impl Replay,
) -> Result<Replayed, SnapshotError> {
    let mut replayed = Replayed { version: 1, cursor: WatchCursor::none(), valid_len: source.at };
    let mut record = Vec::new();
    loop {
        let start = source.at;
        record.clear();
        if source.left(5)? < 5 {
            return Ok(replayed);
        }
        let mut check = [0; 4];
        source.read(&mut check)?;
        if !read_record(&mut source, &mut record, start)? {
            return Ok(replayed);
        }
        if crc32fast::hash(&record) != u32::from_le_bytes(check) {
            return match source.only_zeros_left()? {
                true => Ok(replayed),
                false => Err(corrupted(start, "a record does not match its check")),
            };
        }
        let broken = || corrupted(start, "a record that no writer writes");
        let mut rest = Bytes(&record[1..]);
        if record[0] == CURSOR {
            replayed.cursor = cursor_of(&record[2..]);
        } else {
            to.ops(&[rest.op_1(record[0]).ok_or_else(broken)?]);
        }
        replayed.valid_len = source.at;
    }
}

/// Reads one record behind its check, by the lengths that it holds. False if it is cut short.
fn read_record(
    source: &mut Source<'_, impl Read>,
    record: &mut Vec<u8>,
    start: u64,
) -> Result<bool, SnapshotError> {
    // Each field's length is the number of bytes of the length before it.
    let fields: &[usize] = {
        source.append(record, 1)?;
        match record[0] {
            PUT => &[2, 4, 1],
            DELETE => &[2, 1],
            CURSOR => &[1],
            0 if source.only_zeros_left()? => return Ok(false),
            _ => return Err(corrupted(start, "a record of an unknown type")),
        }
    };
    for &width in fields {
        if source.left(width)? < width as u64 {
            return Ok(false);
        }
        let at = record.len();
        source.append(record, width)?;
        let mut len = [0; 8];
        len[..width].copy_from_slice(&record[at..]);
        let len = u64::from_le_bytes(len) as usize;
        if source.left(len)? < len as u64 {
            return Ok(false);
        }
        source.append(record, len)?;
    }
    Ok(true)
}

impl<'a> Bytes<'a> {
    fn op_1(&mut self, kind: u8) -> Option<Op<'a>> {
        let key_len = self.u16()?;
        let key = self.key(key_len)?;
        let value_len = if kind == PUT { self.u32()? } else { 0 };
        let value = self.take(value_len)?;
        let version_len = self.u8()?;
        let version = self.version(version_len)?;
        Some(put_or_delete(key, version, value))
    }
}
