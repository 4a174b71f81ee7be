//! The tar format: blocks of 512 bytes, a header before each member's bytes.
//!
//! Written here because a name or an extended header, whose length the archive states, must not be
//! read into memory beyond a bound (A3).

use std::io::{self, Read};

use crate::read_full;

pub(crate) const BLOCK: usize = 512;
/// The longest name or extended header that is read.
const EXTENSION_MAX: u64 = 1 << 20;
/// The longest list of a file's holes that is passed over.
const HOLE_BLOCKS_MAX: u32 = 1 << 14;

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Link,
    Special,
}

/// A member: its bytes follow, and zeros up to the end of a block.
pub(crate) struct Member {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: Kind,
    pub(crate) len: u64,
}

/// What comes next.
pub(crate) enum Next {
    Member(Member),
    /// A block that says something of the member after it, or nothing.
    Header,
    End,
}

/// Reads headers; what is between members the caller reads or passes over.
#[derive(Default)]
pub(crate) struct Headers {
    /// Of the next member.
    name: Option<Vec<u8>>,
    len: Option<u64>,
}

impl Headers {
    pub(crate) fn next(&mut self, input: &mut dyn Read) -> io::Result<Next> {
        let Some(header) = next_block(input)? else { return Ok(Next::End) };
        // Zeros end an archive; but another may follow, of which tar can be told to read as well.
        if header.iter().all(|byte| *byte == 0) {
            return Ok(Next::Header);
        }
        check(&header)?;
        let stored = number(&header[124..136])?;
        let kind = match header[156] {
            b'L' => {
                self.name = Some(until_nul(&extension(input, stored)?).to_vec());
                return Ok(Next::Header);
            }
            b'x' => {
                let records = extension(input, stored)?;
                if let Some(name) = pax(&records, b"path")? {
                    self.name = Some(name.to_vec());
                }
                if let Some(len) = pax(&records, b"size")? {
                    self.len = Some(decimal(len)?);
                }
                return Ok(Next::Header);
            }
            b'K' | b'g' => {
                extension(input, stored)?;
                return Ok(Next::Header);
            }
            b'1' | b'2' => Kind::Link,
            b'5' => Kind::Directory,
            b'3' | b'4' | b'6' | b'D' | b'V' => Kind::Special,
            b'S' => {
                pass_holes(input, &header)?;
                Kind::File
            }
            _ => Kind::File,
        };
        let (name, len) = (self.name.take(), self.len.take().unwrap_or(stored));
        let name = name.unwrap_or_else(|| name_of(&header));
        Ok(Next::Member(match kind {
            // A link's size is that of what it leads to; no bytes follow.
            Kind::Link => Member { name, kind, len: 0 },
            Kind::Directory if len > 0 => Member { name, kind: Kind::File, len },
            _ => Member { name, kind, len },
        }))
    }
}

/// The list of a file's holes may go on in blocks of its own.
fn pass_holes(input: &mut dyn Read, header: &[u8; BLOCK]) -> io::Result<()> {
    let mut has_more = header[482] != 0;
    for _ in 0..HOLE_BLOCKS_MAX {
        if !has_more {
            return Ok(());
        }
        let block = next_block(input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        has_more = block[504] != 0;
    }
    Err(damaged("a file of a tar file has too many holes"))
}

/// Bytes after a member of this length up to the end of a block.
pub(crate) const fn padding(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64) - len
}

/// `None` at the end of the input, before which there may be zeros.
fn next_block(input: &mut dyn Read) -> io::Result<Option<[u8; BLOCK]>> {
    let mut block = [0; BLOCK];
    match read_full(input, &mut block)? {
        BLOCK => Ok(Some(block)),
        _ if block.iter().all(|byte| *byte == 0) => Ok(None),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn check(header: &[u8; BLOCK]) -> io::Result<()> {
    let sum = header
        .iter()
        .enumerate()
        .map(|(at, byte)| u64::from(if (148..156).contains(&at) { b' ' } else { *byte }));
    if number(&header[148..156])? == sum.sum() {
        return Ok(());
    }
    Err(damaged("a header of a tar file has another checksum"))
}

fn extension(input: &mut dyn Read, len: u64) -> io::Result<Vec<u8>> {
    if len > EXTENSION_MAX {
        return Err(damaged("an extended header of a tar file is too long"));
    }
    let mut bytes = vec![0; (len + padding(len)) as usize];
    input.read_exact(&mut bytes)?;
    bytes.truncate(len as usize);
    Ok(bytes)
}

/// A record's value: records are `length name=value` and a newline.
fn pax<'r>(mut records: &'r [u8], wanted: &[u8]) -> io::Result<Option<&'r [u8]>> {
    let no_record = || damaged("a record of a tar file is none");
    let mut found = None;
    while let Some(space) = records.iter().position(|byte| *byte == b' ') {
        let len = usize::try_from(decimal(&records[..space])?).map_err(|_| no_record())?;
        let record = records.get(space + 1..len).and_then(|record| record.strip_suffix(b"\n"));
        let record = record.ok_or_else(no_record)?;
        if let Some(value) = record.strip_prefix(wanted).and_then(|rest| rest.strip_prefix(b"=")) {
            found = Some(value);
        }
        records = &records[len..];
    }
    Ok(found)
}

fn name_of(header: &[u8; BLOCK]) -> Vec<u8> {
    let name = until_nul(&header[..100]);
    let prefix = until_nul(&header[345..500]);
    // GNU keeps times there.
    if prefix.is_empty() || &header[257..263] != b"ustar\0" {
        return name.to_vec();
    }
    [prefix, b"/", name].concat()
}

fn until_nul(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Octal digits, or big-endian bytes if the first bit is set.
fn number(field: &[u8]) -> io::Result<u64> {
    if field[0] & 0x80 != 0 {
        let fold = |number: Option<u64>, byte: &u8| {
            number?.checked_mul(256)?.checked_add(u64::from(*byte))
        };
        let first = Some(u64::from(field[0] & 0x7f));
        return field[1..].iter().fold(first, fold).ok_or_else(|| damaged("a number is too large"));
    }
    let text = str::from_utf8(until_nul(field)).map_or("?", str::trim);
    if text.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(text, 8).map_err(|_| damaged("a number of a tar file is none"))
}

fn decimal(text: &[u8]) -> io::Result<u64> {
    let text = str::from_utf8(text).unwrap_or_default();
    text.parse().map_err(|_| damaged("a number of a tar file is none"))
}

fn damaged(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
