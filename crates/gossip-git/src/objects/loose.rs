//! Loose objects: a file each, compressed with its header.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::hash::Kind as HashKind;

use super::inflate::{Compressed, InflateStream, Inflater};
use super::{ObjectError, ObjectKind};

/// More than any header has.
const HEADER_MAX: usize = 64;

const BAD: ObjectError = ObjectError::Corrupt("the header of a loose object");

/// The file of an object.
pub(crate) fn path_of(dir: &Path, id: &gix::oid) -> PathBuf {
    let hex = id.to_hex().to_string();
    let (folder, name) = hex.split_at(2);
    dir.join(folder).join(name)
}

/// All loose objects of a directory, in no order.
pub(crate) fn list_loose(dir: &Path, hash: HashKind, into: &mut Vec<ObjectId>) -> io::Result<()> {
    for folder in 0..=255_u8 {
        let folder = format!("{folder:02x}");
        let entries = match fs::read_dir(dir.join(&folder)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let name = entry?.file_name();
            let hex = [folder.as_bytes(), name.as_encoded_bytes()].concat();
            // Temporary files have other names.
            if let Ok(id) = ObjectId::from_hex(&hex)
                && id.kind() == hash
            {
                into.push(id);
            }
        }
    }
    Ok(())
}

/// What the header of a loose object says.
pub(crate) struct LooseHead {
    pub(crate) kind: ObjectKind,
    pub(crate) len: u64,
    /// The header's own length, with the NUL byte that ends it.
    pub(crate) header_len: usize,
}

/// A loose object, opened.
pub(crate) struct Loose {
    pub(crate) head: LooseHead,
    file: File,
}

impl Loose {
    pub(crate) fn open(path: &Path, inflater: &mut Inflater) -> Result<Self, ObjectError> {
        let file = File::open(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => ObjectError::Missing,
            _ => ObjectError::Io(error),
        })?;
        let (mut input, mut out) = ([0; 4 * HEADER_MAX], [0; HEADER_MAX]);
        let read = read_front(&file, &mut input).map_err(ObjectError::Io)?;
        let len = inflater.head(&input[..read], &mut out)?;
        Ok(Self { head: parse(&out[..len])?, file })
    }

    /// The whole object behind its header.
    pub(crate) fn whole(self, inflater: &mut Inflater) -> Result<Vec<u8>, ObjectError> {
        let len = self.head.len as usize + self.head.header_len;
        let mut compressed = Vec::new();
        io::Read::read_to_end(&mut &self.file, &mut compressed).map_err(ObjectError::Io)?;
        inflater.exactly(&compressed, len)
    }

    pub(crate) fn stream(self) -> InflateStream {
        let LooseHead { len, header_len, .. } = self.head;
        InflateStream::new(Compressed::Loose(self.file), header_len as u64, len)
    }
}

fn read_front(file: &File, buf: &mut [u8]) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut len = 0;
    while len < buf.len() {
        match file.read_at(&mut buf[len..], len as u64) {
            Ok(0) => break,
            Ok(read) => len += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

/// `blob 12` and a NUL byte.
fn parse(bytes: &[u8]) -> Result<LooseHead, ObjectError> {
    let end = bytes.iter().position(|&byte| byte == 0).ok_or(BAD)?;
    let text = std::str::from_utf8(&bytes[..end]).map_err(|_| BAD)?;
    let (kind, len) = text.split_once(' ').ok_or(BAD)?;
    let kind = match kind {
        "blob" => ObjectKind::Blob,
        "tree" => ObjectKind::Tree,
        "commit" => ObjectKind::Commit,
        "tag" => ObjectKind::Tag,
        _ => return Err(BAD),
    };
    let is_number = !len.is_empty() && len.bytes().all(|byte| byte.is_ascii_digit());
    let len = len.parse().ok().filter(|_| is_number).ok_or(BAD)?;
    Ok(LooseHead { kind, len, header_len: end + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_names_kind_and_length() {
        let head = parse(b"blob 12\0content").unwrap();
        assert_eq!((head.kind, head.len, head.header_len), (ObjectKind::Blob, 12, 8));
        for bad in [&b"blob 12"[..], b"blob\0", b"blob +1\0", b"lump 1\0", b"blob \0", b"\xff 1\0"]
        {
            assert!(parse(bad).is_err());
        }
    }
}
