//! The ar format: a line, and for each file a header of sixty bytes before its bytes.

use std::io::{self, Read};

const MAGIC_LEN: usize = 8;
const HEADER_LEN: usize = 60;
/// The longest table of names, and the longest name, that is read.
const NAMES_MAX: u64 = 1 << 20;

/// A file: its name, the length of its bytes, and whether a byte follows that is none of them. A table
/// of symbols has no name.
pub(crate) struct Entry {
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) len: u64,
    pub(crate) is_padded: bool,
}

/// Reads headers; what is between them the caller reads or passes over.
#[derive(Default)]
pub(crate) struct Headers {
    /// GNU's names that are too long for a header.
    names: Vec<u8>,
}

impl Headers {
    pub(crate) fn begin(input: &mut dyn Read) -> io::Result<Self> {
        input.read_exact(&mut [0; MAGIC_LEN])?;
        Ok(Self::default())
    }

    /// The next entry; `None` at the end. A table of names is read and not given.
    pub(crate) fn next(&mut self, input: &mut dyn Read) -> io::Result<Option<Entry>> {
        loop {
            let mut header = [0; HEADER_LEN];
            match input.read(&mut header[..1])? {
                0 => return Ok(None),
                _ => input.read_exact(&mut header[1..])?,
            }
            if &header[58..] != b"`\n" {
                return Err(damaged("a header of an ar file does not end as it should"));
            }
            let mut len = number(&header[48..58])?;
            let is_padded = !len.is_multiple_of(2);
            let name = header[..16].trim_ascii_end();
            if name == b"//" {
                self.names = take(input, len)?;
            } else if name == b"/" || name == b"/SYM64/" {
                return Ok(Some(Entry { name: None, len, is_padded }));
            } else {
                let name = if let Some(name_len) = name.strip_prefix(b"#1/") {
                    // BSD's: the name is the beginning of the bytes.
                    let name_len = number(name_len)?;
                    len = len.checked_sub(name_len).ok_or_else(|| damaged("a name is too long"))?;
                    let name = take(input, name_len)?;
                    name.split(|byte| *byte == 0).next().unwrap_or_default().to_vec()
                } else if let Some(at) = name.strip_prefix(b"/") {
                    let at = usize::try_from(number(at)?).unwrap_or(usize::MAX);
                    let names = self.names.get(at..).ok_or_else(|| damaged("no such name"))?;
                    let name = names.split(|byte| *byte == b'\n').next().unwrap_or_default();
                    name.strip_suffix(b"/").unwrap_or(name).to_vec()
                } else {
                    name.strip_suffix(b"/").unwrap_or(name).to_vec()
                };
                return Ok(Some(Entry { name: Some(name), len, is_padded }));
            }
            if is_padded {
                pad(input)?;
            }
        }
    }
}

/// Passes over the byte after an entry of an odd length. At the end of the file it may be missing.
pub(crate) fn pad(input: &mut dyn Read) -> io::Result<()> {
    input.read(&mut [0]).map(drop)
}

fn number(field: &[u8]) -> io::Result<u64> {
    let text = str::from_utf8(field).ok().map(str::trim);
    text.and_then(|text| text.parse().ok()).ok_or_else(|| damaged("a number is none"))
}

fn take(input: &mut dyn Read, len: u64) -> io::Result<Vec<u8>> {
    if len > NAMES_MAX {
        return Err(damaged("names are too long"));
    }
    let mut bytes = vec![0; len as usize];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn damaged(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}
