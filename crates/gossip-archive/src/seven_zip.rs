//! What reading a 7z archive takes of memory, told before it is taken (A3).
//!
//! The header of an archive is at its end, and may be compressed itself: its reader would unpack as
//! much of it as it says that there is.

use std::io::{self, Read, SeekFrom};

use sevenz_rust2::Block;

use crate::Source;

/// A header may take this part of the memory that is allowed: each of its bytes may name a file, which
/// takes many more.
const HEADER_PART: u64 = 32;
/// The signature, the version, a checksum, and where the header is.
const START: usize = 32;
/// More coders after each other than any writer has.
const CODERS_MAX: u64 = 8;

const END: u8 = 0x00;
const PACK_INFO: u8 = 0x06;
const UNPACK_INFO: u8 = 0x07;
const SIZE: u8 = 0x09;
const CRC: u8 = 0x0a;
const FOLDER: u8 = 0x0b;
const UNPACK_SIZE: u8 = 0x0c;
const ENCODED_HEADER: u8 = 0x17;

/// Whether the header can be read within `memory`.
pub(crate) fn header_fits(source: &mut dyn Source, memory: usize) -> io::Result<bool> {
    let max = memory as u64 / HEADER_PART;
    let mut start = [0; START];
    source.seek(SeekFrom::Start(0))?;
    source.read_exact(&mut start)?;
    if start[8..].iter().all(|byte| *byte == 0) {
        // Its reader would look for a header everywhere.
        return Err(damaged());
    }
    let number = |at: usize| start[at..].first_chunk().copied().map_or(0, u64::from_le_bytes);
    let (offset, size) = (number(12), number(20));
    if size > max {
        return Ok(false);
    }
    let at = offset.checked_add(START as u64).ok_or_else(damaged)?;
    source.seek(SeekFrom::Start(at))?;
    let mut header = Vec::new();
    source.take(size).read_to_end(&mut header)?;
    match header.split_first() {
        Some((&ENCODED_HEADER, mut info)) => {
            let (unpacked, dictionaries) = encoded(&mut info).ok_or_else(damaged)?;
            Ok(unpacked <= max && dictionaries <= memory as u64)
        }
        _ => Ok(true),
    }
}

/// Bytes of memory that the dictionaries of a block take.
pub(crate) fn dictionaries(block: &Block) -> u64 {
    let of =
        |coder: &sevenz_rust2::Coder| dictionary(coder.encoder_method_id(), coder.properties());
    block.coders.iter().map(of).sum()
}

fn dictionary(method: &[u8], properties: &[u8]) -> u64 {
    match (method, properties) {
        // LZMA and PPMd.
        ([3, 1, 1] | [3, 4, 1], [_, size @ ..]) => {
            size.first_chunk().map_or(0, |size| u64::from(u32::from_le_bytes(*size)))
        }
        // LZMA2.
        ([0x21], [bits, ..]) => (2 | u64::from(bits & 1)) << (bits.min(&40) / 2 + 11),
        _ => 0,
    }
}

/// How long a header is that is compressed, and what its dictionaries take; `None` if it is not what
/// its reader reads: one block of coders that have one input and one output each.
fn encoded(info: &mut &[u8]) -> Option<(u64, u64)> {
    (byte(info)? == PACK_INFO).then_some(())?;
    number(info)?;
    (number(info)? == 1).then_some(())?;
    let mut next = byte(info)?;
    if next == SIZE {
        number(info)?;
        next = byte(info)?;
    }
    if next == CRC {
        let is_known = byte(info)? != 0 || byte(info)? & 0x80 != 0;
        take(info, if is_known { 4 } else { 0 })?;
        next = byte(info)?;
    }
    (next == END && byte(info)? == UNPACK_INFO && byte(info)? == FOLDER).then_some(())?;
    (number(info)? == 1 && byte(info)? == 0).then_some(())?;
    let coders = number(info)?;
    (1..=CODERS_MAX).contains(&coders).then_some(())?;
    let mut dictionaries = 0;
    for _ in 0..coders {
        let flags = byte(info)?;
        let method = take(info, u64::from(flags & 0x0f))?;
        if flags & 0x10 != 0 {
            (number(info)? == 1 && number(info)? == 1).then_some(())?;
        }
        let len = if flags & 0x20 == 0 { 0 } else { number(info)? };
        dictionaries += dictionary(method, take(info, len)?);
    }
    // How they follow each other.
    for _ in 1..coders {
        number(info)?;
        number(info)?;
    }
    (byte(info)? == UNPACK_SIZE).then_some(())?;
    let mut unpacked = 0;
    for _ in 0..coders {
        unpacked = unpacked.max(number(info)?);
    }
    Some((unpacked, dictionaries))
}

fn byte(info: &mut &[u8]) -> Option<u8> {
    let (first, rest) = info.split_first()?;
    *info = rest;
    Some(*first)
}

fn take<'i>(info: &mut &'i [u8], len: u64) -> Option<&'i [u8]> {
    let (taken, rest) = info.split_at_checked(usize::try_from(len).ok()?)?;
    *info = rest;
    Some(taken)
}

/// The bits that are set at the front of the first byte say how many follow; the rest of it are the
/// highest.
fn number(info: &mut &[u8]) -> Option<u64> {
    let first = byte(info)?;
    let follow = first.leading_ones();
    let mut value = 0;
    for at in 0..follow {
        value |= u64::from(byte(info)?) << (8 * at);
    }
    if follow < 7 {
        value |= u64::from(first & (0x7f >> follow)) << (8 * follow);
    }
    Some(value)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a header of a 7z file is not as it should be")
}
