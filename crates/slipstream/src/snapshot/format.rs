//! The append log as bytes: what is written, and what a reader makes of it.
//!
//! `docs/slipstream-format.md` has the layout. Pure: bytes in, operations and verdicts out; files
//! belong to `log`.
//!
//! - Y1: what a prefix of a log says is what the log said when it was that long; the rest of a frame
//!   that was being written is told apart and dropped.
//! - Y2: a changed byte is an error, or it lies in the last frame and drops it.

mod v1;

use std::io::{self, Read};

use super::arena::Entry;
use super::{SnapshotError, io_error, record};
use crate::kv::{KvUpdate, VersionToken, WatchCursor};

const MAGIC: [u8; 4] = *b"PGSS";
/// The format that is written.
pub(super) const VERSION: u16 = 2;
/// Magic and version, in every format.
const PREAMBLE: usize = 6;
pub(super) const FILE_HEADER: usize = 12;
const FRAME_HEADER: usize = 12;

/// Where format 1 has the type of its first record, and no type is 0xFF: a file whose version was
/// changed to 1 is not read as one.
const NOT_FORMAT_1: [u8; 2] = [0xFF; 2];

/// The frame sets the cursor.
const HAS_CURSOR: u8 = 1;
/// The frame counts only together with the next. Only a compacted state, which begins a file, is
/// written in parts.
const PART: u8 = 2;

const PUT: u8 = 1;
const DELETE: u8 = 2;

/// A change of the fold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op<'a> {
    Put(Entry<'a>),
    Delete { key: &'a [u8], version: &'a [u8] },
}

impl<'a> Op<'a> {
    pub(super) fn key(&self) -> &'a [u8] {
        match self {
            Self::Put(entry) => entry.key,
            Self::Delete { key, .. } => key,
        }
    }
}

/// Bytes that an entry takes in a log.
pub(super) fn put_len(key: usize, version: usize, value: usize) -> u64 {
    (8 + key + version + value) as u64
}

pub(super) fn file_header() -> [u8; FILE_HEADER] {
    let mut header = [0; FILE_HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&VERSION.to_le_bytes());
    let check = crc32fast::hash(&header[..PREAMBLE]);
    header[6..10].copy_from_slice(&check.to_le_bytes());
    header[10..].copy_from_slice(&NOT_FORMAT_1);
    header
}

/// A frame under construction.
pub(super) struct Frame<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Frame<'a> {
    /// Begins a frame at the end of `out`.
    pub(super) fn begin(out: &'a mut Vec<u8>, part: bool, cursor: Option<&WatchCursor>) -> Self {
        let start = out.len();
        out.extend_from_slice(&[0; FRAME_HEADER]);
        let flags = if part { PART } else { 0 };
        match cursor {
            Some(cursor) => {
                // A cursor has at most 255 bytes.
                out.extend_from_slice(&[flags | HAS_CURSOR, cursor.as_bytes().len() as u8]);
                out.extend_from_slice(cursor.as_bytes());
            }
            None => out.push(flags),
        }
        Self { out, start }
    }

    /// Bytes so far.
    pub(super) fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Adds an update. A put with an empty value is a delete.
    pub(super) fn push_update(&mut self, update: &KvUpdate) -> Result<(), SnapshotError> {
        record::check(update)?;
        self.push(&op_of(update));
        Ok(())
    }

    /// Adds an operation whose lengths are in order.
    pub(super) fn push(&mut self, op: &Op<'_>) {
        let (kind, key, version) = match op {
            Op::Put(entry) => (PUT, entry.key, entry.version),
            Op::Delete { key, version } => (DELETE, *key, *version),
        };
        let key_len = (key.len() as u16).to_le_bytes();
        self.out.extend_from_slice(&[kind, version.len() as u8, key_len[0], key_len[1]]);
        if let Op::Put(entry) = op {
            self.out.extend_from_slice(&(entry.value.len() as u32).to_le_bytes());
        }
        self.out.extend_from_slice(version);
        self.out.extend_from_slice(key);
        if let Op::Put(entry) = op {
            self.out.extend_from_slice(entry.value);
        }
    }

    /// Fills in lengths and checks.
    pub(super) fn finish(self) -> Result<(), SnapshotError> {
        let (header, body) = self.out[self.start..].split_at_mut(FRAME_HEADER);
        let (len, max) = (body.len(), u32::MAX as usize);
        if len > max {
            return Err(SnapshotError::TooLarge { what: "a batch", len, max });
        }
        header[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[4..8].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        let check = crc32fast::hash(&header[..8]);
        header[8..].copy_from_slice(&check.to_le_bytes());
        Ok(())
    }
}

/// What an update does to a fold.
pub(super) fn op_of(update: &KvUpdate) -> Op<'_> {
    match update {
        KvUpdate::Put(entry) if !entry.value.is_empty() => Op::Put(Entry {
            key: entry.key.as_bytes(),
            version: entry.version.as_bytes(),
            value: &entry.value,
        }),
        KvUpdate::Put(entry) => {
            Op::Delete { key: entry.key.as_bytes(), version: entry.version.as_bytes() }
        }
        KvUpdate::Delete { key, version } | KvUpdate::Purge { key, version } => {
            Op::Delete { key: key.as_bytes(), version: version.as_bytes() }
        }
    }
}

/// Who is told what a log says.
pub(super) trait Replay {
    /// Changes that belong together.
    fn ops(&mut self, ops: &[Op<'_>]);

    /// All changes so far were of a state that was never complete.
    fn forget(&mut self);
}

/// What a log came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Replayed {
    /// 1 or 2; 0 for a file without a whole header.
    pub(super) version: u16,
    pub(super) cursor: WatchCursor,
    /// How much of the file counts. What follows was being written when the writer died.
    pub(super) valid_len: u64,
}

/// Reads a log of `len` bytes.
pub(super) fn replay(
    file: impl Read,
    len: u64,
    to: &mut impl Replay,
) -> Result<Replayed, SnapshotError> {
    replay_growing(file, &mut |_| Ok(len), to)
}

/// How long a log is: at least as long as one asks for, or all of it.
pub(super) type Length<'a> = &'a mut dyn FnMut(u64) -> io::Result<u64>;

/// Reads a log that somebody may still be writing.
pub(super) fn replay_growing(
    file: impl Read,
    len: Length<'_>,
    to: &mut impl Replay,
) -> Result<Replayed, SnapshotError> {
    let mut source = Source { file, at: 0, len };
    let mut preamble = [0; PREAMBLE];
    let there = source.left(PREAMBLE)?.min(PREAMBLE as u64) as usize;
    let first = &mut preamble[..there];
    source.read(first)?;
    let first = &*first;
    if !MAGIC.starts_with(&first[..first.len().min(MAGIC.len())]) {
        return Err(SnapshotError::InvalidFormat("a file of something else".into()));
    }
    if first.len() < PREAMBLE {
        return Ok(Replayed { version: 0, cursor: WatchCursor::none(), valid_len: 0 });
    }
    match u16::from_le_bytes([first[4], first[5]]) {
        1 => v1::replay(source, to),
        VERSION => {
            let mut rest = [0; FILE_HEADER - PREAMBLE];
            if source.left(rest.len())? < rest.len() as u64 {
                return Ok(Replayed { version: 0, cursor: WatchCursor::none(), valid_len: 0 });
            }
            source.read(&mut rest)?;
            if rest != file_header()[PREAMBLE..] {
                return Err(corrupted(PREAMBLE as u64, "the header is not what was written"));
            }
            replay_2(source, to)
        }
        version => Err(SnapshotError::InvalidFormat(format!(
            "format {version}; this program knows formats 1 and {VERSION}"
        ))),
    }
}

fn corrupted(at: u64, what: &str) -> SnapshotError {
    SnapshotError::Corrupted(format!("at byte {at}: {what}"))
}

/// A file that is read once, from the beginning.
struct Source<'a, R> {
    file: R,
    at: u64,
    len: Length<'a>,
}

impl<R: Read> Source<'_, R> {
    /// Bytes that are left: at least so many, or all.
    fn left(&mut self, wanted: usize) -> Result<u64, SnapshotError> {
        let len = (self.len)(self.at + wanted as u64).map_err(io_error("reading the log"))?;
        // An export that has no room cuts a log back while it is read.
        Ok(len.saturating_sub(self.at))
    }

    fn read(&mut self, into: &mut [u8]) -> Result<(), SnapshotError> {
        self.file.read_exact(into).map_err(io_error("reading the log"))?;
        self.at += into.len() as u64;
        Ok(())
    }

    /// Reads `more` bytes behind what `into` has. They must be there.
    fn append(&mut self, into: &mut Vec<u8>, more: usize) -> Result<(), SnapshotError> {
        let start = into.len();
        into.resize(start + more, 0);
        self.read(&mut into[start..])
    }

    /// Whether nothing follows but zeros, as a crash of the machine can leave them.
    fn only_zeros_left(&mut self) -> Result<bool, SnapshotError> {
        let mut zeros = true;
        let mut chunk = [0; 4096];
        while zeros {
            let some = self.left(chunk.len())?.min(chunk.len() as u64) as usize;
            if some == 0 {
                break;
            }
            let some = &mut chunk[..some];
            self.read(some)?;
            zeros = some.iter().all(|&byte| byte == 0);
        }
        Ok(zeros)
    }
}

fn replay_2(
    mut source: Source<'_, impl Read>,
    to: &mut impl Replay,
) -> Result<Replayed, SnapshotError> {
    let mut replayed = Replayed { version: 2, cursor: WatchCursor::none(), valid_len: source.at };
    let mut body = Vec::new();
    // A state in parts, at the beginning of the file only.
    let mut in_parts = false;
    let mut frames = 0u64;
    while let Some(start) = next_frame(&mut source, &mut body)? {
        let flags = body[0];
        let part = flags & PART != 0;
        if flags & !(HAS_CURSOR | PART) != 0 || (part && !in_parts && frames > 0) {
            return Err(corrupted(start, "a frame that no writer writes"));
        }
        let cursor = parse_frame(&body, start, to)?;
        in_parts = part;
        frames += 1;
        if let Some(cursor) = cursor {
            replayed.cursor = cursor;
        }
        if !part {
            replayed.valid_len = source.at;
        }
    }
    if in_parts {
        to.forget();
        replayed.cursor = WatchCursor::none();
    }
    Ok(replayed)
}

/// Reads the next frame's body. `None` at the end of what counts.
fn next_frame(
    source: &mut Source<'_, impl Read>,
    body: &mut Vec<u8>,
) -> Result<Option<u64>, SnapshotError> {
    let start = source.at;
    if source.left(FRAME_HEADER)? < FRAME_HEADER as u64 {
        return Ok(None);
    }
    let mut header = [0; FRAME_HEADER];
    source.read(&mut header)?;
    let field = |at: usize| {
        u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
    };
    if crc32fast::hash(&header[..8]) != field(8) {
        // A whole header is written before anything that follows it.
        return match source.only_zeros_left()? && header[FRAME_HEADER - 1] == 0 {
            true => Ok(None),
            false => Err(corrupted(start, "a frame header does not match its check")),
        };
    }
    let len = field(0);
    if u64::from(len) > source.left(len as usize)? {
        return Ok(None);
    }
    body.clear();
    source.append(body, len as usize)?;
    if crc32fast::hash(body) != field(4) {
        return match source.only_zeros_left()? {
            true => Ok(None),
            false => Err(corrupted(start, "a frame does not match its check")),
        };
    }
    if body.is_empty() {
        return Err(corrupted(start, "a frame without content"));
    }
    Ok(Some(start))
}

/// Passes on what a frame says; its cursor.
fn parse_frame(
    body: &[u8],
    start: u64,
    to: &mut impl Replay,
) -> Result<Option<WatchCursor>, SnapshotError> {
    let broken = || corrupted(start, "a frame that no writer writes");
    let mut rest = Bytes(&body[1..]);
    let cursor = match body[0] & HAS_CURSOR != 0 {
        true => {
            let len = rest.u8().ok_or_else(broken)?;
            Some(cursor_of(rest.take(usize::from(len)).ok_or_else(broken)?))
        }
        false => None,
    };
    let mut ops = Vec::new();
    while !rest.0.is_empty() {
        ops.push(rest.op_2().ok_or_else(broken)?);
    }
    to.ops(&ops);
    Ok(cursor)
}

fn cursor_of(bytes: &[u8]) -> WatchCursor {
    WatchCursor::from_bytes(bytes.to_vec()).expect("its length was one byte")
}

/// Bytes that are taken from the front.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<usize> {
        self.take(2).map(|bytes| usize::from(u16::from_le_bytes([bytes[0], bytes[1]])))
    }

    fn u32(&mut self) -> Option<usize> {
        self.take(4)
            .map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize)
    }

    fn version(&mut self, len: u8) -> Option<&'a [u8]> {
        let len = usize::from(len);
        if len > VersionToken::MAX_LEN { None } else { self.take(len) }
    }

    fn key(&mut self, len: usize) -> Option<&'a [u8]> {
        self.take(len).filter(|key| std::str::from_utf8(key).is_ok())
    }

    fn op_2(&mut self) -> Option<Op<'a>> {
        let kind = self.u8()?;
        let version_len = self.u8()?;
        let key_len = self.u16()?;
        match kind {
            PUT => {
                let value_len = self.u32()?;
                let version = self.version(version_len)?;
                let key = self.key(key_len)?;
                Some(put_or_delete(key, version, self.take(value_len)?))
            }
            DELETE => {
                let version = self.version(version_len)?;
                Some(Op::Delete { key: self.key(key_len)?, version })
            }
            _ => None,
        }
    }
}

fn put_or_delete<'a>(key: &'a [u8], version: &'a [u8], value: &'a [u8]) -> Op<'a> {
    match value {
        [] => Op::Delete { key, version },
        _ => Op::Put(Entry { key, version, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_log_that_was_cut_below_where_it_is_read() {
        let mut source = Source { file: io::empty(), at: 100, len: &mut |_| Ok(40) };
        assert_eq!(source.left(1).unwrap(), 0);
    }
}
