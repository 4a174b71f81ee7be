//! The tar format: blocks of 512 bytes, a header before each member's bytes.
//!
//! Written here because a name or an extended header, whose length the archive states, must not be
//! read into memory beyond a bound (A3).

use std::io::{self, Read};

pub(crate) const BLOCK: usize = 512;
/// The longest name or extended header that is read.
const EXTENSION_MAX: u64 = 1 << 20;

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

/// The next member; `None` at the end. What it says of the one after it is read and not given.
pub(crate) fn next_member(input: &mut dyn Read) -> io::Result<Option<Member>> {
    let (mut name, mut len) = (None, None);
    loop {
        let Some(header) = next_block(input)? else { return Ok(None) };
        if header.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        check(&header)?;
        let stored = number(&header[124..136])?;
        let kind = match header[156] {
            b'L' => {
                name = Some(until_nul(&extension(input, stored)?).to_vec());
                continue;
            }
            b'x' => {
                let records = extension(input, stored)?;
                name = pax(&records, b"path").map(<[u8]>::to_vec).or(name);
                len = pax(&records, b"size").map(decimal).transpose()?.or(len);
                continue;
            }
            b'K' | b'g' => {
                extension(input, stored)?;
                continue;
            }
            b'1' | b'2' => Kind::Link,
            b'5' => Kind::Directory,
            b'3' | b'4' | b'6' | b'D' | b'V' => Kind::Special,
            b'S' => {
                // The list of its holes may go on in blocks of its own.
                let mut has_more = header[482] != 0;
                while has_more {
                    let block = next_block(input)?.ok_or(io::ErrorKind::UnexpectedEof)?;
                    has_more = block[504] != 0;
                }
                Kind::File
            }
            _ => Kind::File,
        };
        // A link's size is that of what it leads to; no bytes follow.
        let len = if kind == Kind::Link { 0 } else { len.unwrap_or(stored) };
        return Ok(Some(Member { name: name.unwrap_or_else(|| name_of(&header)), kind, len }));
    }
}

/// Bytes after a member of this length up to the end of a block.
pub(crate) const fn padding(len: u64) -> u64 {
    len.next_multiple_of(BLOCK as u64) - len
}

/// `None` at the end of the input.
fn next_block(input: &mut dyn Read) -> io::Result<Option<[u8; BLOCK]>> {
    let mut block = [0; BLOCK];
    if input.read(&mut block[..1])? == 0 {
        return Ok(None);
    }
    input.read_exact(&mut block[1..])?;
    Ok(Some(block))
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
fn pax<'r>(mut records: &'r [u8], wanted: &[u8]) -> Option<&'r [u8]> {
    let mut found = None;
    while let Some(space) = records.iter().position(|byte| *byte == b' ') {
        let len = decimal(&records[..space]).ok().and_then(|len| usize::try_from(len).ok())?;
        let record = records.get(space + 1..len)?.strip_suffix(b"\n")?;
        if let Some(value) = record.strip_prefix(wanted).and_then(|rest| rest.strip_prefix(b"=")) {
            found = Some(value);
        }
        records = &records[len..];
    }
    found
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
