//! Bytes that came through a pipe, as a source of one item.
//!
//! A pipe gives its bytes once. They are kept, in memory or beyond a bound in a file that has no name,
//! and their hash names them: the same bytes piped again are the same version, and a scan of them that
//! was interrupted goes on.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use gossip_contracts::connector::{
    Capabilities, Classifier, Connector, ConnectorError, ItemReader, Page, PageEntry,
};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::TenantSecretKey;

use crate::content::HeadClassifier;

/// Bytes that are kept in memory.
const MEMORY_MAX: usize = 64 << 20;
/// Read at a time.
const CHUNK: usize = 256 << 10;

/// Bytes that were read from somewhere, as a source of one item. A clone shares them.
#[derive(Clone)]
pub struct Bytes {
    key: Vec<u8>,
    end: Vec<u8>,
    hash: blake3::Hash,
    size: u64,
    kept: Arc<Kept>,
}

enum Kept {
    Memory(Vec<u8>),
    File(File),
}

impl Bytes {
    /// Reads everything from `input`, which reports call `key`. What the bytes are is a hash under
    /// `hash_key`: they may be a short secret, which a plain hash would let others guess. `spill` gives a
    /// file without a name for what is too much for memory.
    pub fn read(
        key: &[u8],
        hash_key: &TenantSecretKey,
        input: &mut dyn Read,
        spill: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Self> {
        Self::read_within(MEMORY_MAX, key, hash_key, input, spill)
    }

    fn read_within(
        memory_max: usize,
        key: &[u8],
        hash_key: &TenantSecretKey,
        input: &mut dyn Read,
        spill: impl FnOnce() -> io::Result<File>,
    ) -> io::Result<Self> {
        let mut memory = Vec::new();
        input.take(memory_max as u64).read_to_end(&mut memory)?;
        let mut hasher = blake3::Hasher::new_keyed(hash_key.expose_bytes());
        hasher.update(&memory);
        let mut size = memory.len() as u64;
        let mut kept = Kept::Memory(Vec::new());
        if memory.len() == memory_max {
            let mut file = spill()?;
            file.write_all(&memory)?;
            memory.resize(CHUNK, 0);
            loop {
                let read = match input.read(&mut memory) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => return Err(error),
                };
                hasher.update(&memory[..read]);
                file.write_all(&memory[..read])?;
                size += read as u64;
            }
            file.rewind()?;
            kept = Kept::File(file);
        } else if let Kept::Memory(bytes) = &mut kept {
            *bytes = memory;
        }
        let end = [key, b"\0"].concat();
        Ok(Self { key: key.to_vec(), end, hash: hasher.finalize(), size, kept: Arc::new(kept) })
    }

    /// What the bytes are, in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        self.hash.to_string()
    }
}

impl Connector for Bytes {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            resume_tokens: false,
            range_reads: true,
            split_points: false,
            versions: true,
        }
    }

    fn key_range(&self) -> ShardSpecRef<'_> {
        ShardSpecRef::new(b"\0", &self.end, b"")
    }

    fn classifier(&self) -> &dyn Classifier {
        &HeadClassifier
    }

    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError> {
        page.clear();
        let is_ahead = cursor.last_key().is_none_or(|last| last < &self.key[..]);
        let is_left = is_ahead && range.contains(&self.key);
        if is_left && max_entries > 0 {
            let (key, version) = (&self.key[..], &self.hash.as_bytes()[..]);
            page.push(PageEntry { key, version, size: self.size, skip: None });
        }
        page.finish(!is_left || max_entries > 0, None);
        Ok(())
    }

    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError> {
        if key != self.key {
            return Err(ConnectorError::NotFound { operation: "open" });
        }
        let (hash, size, kept) = (self.hash, self.size, Arc::clone(&self.kept));
        Ok(Box::new(BytesReader { hash, size, kept }))
    }

    fn is_settled(&self, _: &[u8], _: u64) -> bool {
        true
    }

    fn split_points(
        &self,
        _: ShardSpecRef<'_>,
        _: CursorUpdate<'_>,
        _: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError> {
        Ok(Vec::new())
    }
}

struct BytesReader {
    hash: blake3::Hash,
    size: u64,
    kept: Arc<Kept>,
}

impl ItemReader for BytesReader {
    fn size(&self) -> u64 {
        self.size
    }

    fn version(&self) -> &[u8] {
        self.hash.as_bytes()
    }

    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError> {
        match &*self.kept {
            Kept::Memory(bytes) => {
                let start = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
                let rest = &bytes[start..];
                let len = rest.len().min(buf.len());
                buf[..len].copy_from_slice(&rest[..len]);
                Ok(len)
            }
            Kept::File(file) if offset < self.size => file.read_at(buf, offset).map_err(|error| {
                ConnectorError::Retryable { operation: "read", message: error.kind().to_string() }
            }),
            Kept::File(_) => Ok(0),
        }
    }

    fn version_now(&self) -> Result<Vec<u8>, ConnectorError> {
        Ok(self.version().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(byte: u8) -> TenantSecretKey {
        TenantSecretKey::from_bytes([byte; 32])
    }

    #[test]
    fn what_is_too_much_for_memory_reads_the_same_from_a_file() {
        let content: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let read = |memory_max| {
            let mut input = &content[..];
            Bytes::read_within(memory_max, b"stdin", &key(1), &mut input, tempfile::tempfile)
                .unwrap()
        };
        let (small, large) = (read(1 << 10), read(1 << 30));
        assert_eq!((small.hash(), small.size), (large.hash(), large.size));
        for bytes in [small, large] {
            let mut reader = bytes.open(b"stdin").unwrap();
            let mut buf = [0; 1000];
            for offset in [0, 1023, 1024, 399_500, 400_000, u64::MAX] {
                let rest = &content[content.len().min(usize::try_from(offset).unwrap())..];
                let expected = &rest[..rest.len().min(1000)];
                let len = reader.read_at(offset, &mut buf).unwrap();
                assert_eq!(&buf[..len], expected);
            }
        }
    }

    #[test]
    fn there_is_one_item_and_its_bytes_name_its_version() {
        let read = |mut input: &[u8]| {
            Bytes::read(b"stdin", &key(1), &mut input, tempfile::tempfile).unwrap()
        };
        let mut input = &b"one"[..];
        let elsewhere = Bytes::read(b"stdin", &key(2), &mut input, tempfile::tempfile).unwrap();
        assert_ne!(elsewhere.hash(), read(b"one").hash());
        let (one, other) = (read(b"one"), read(b"other"));
        let mut page = Page::new();
        one.list(one.key_range(), CursorUpdate::initial(), 9, &mut page).unwrap();
        assert_eq!((page.len(), page.is_last()), (1, true));
        assert_eq!(page.get(0).unwrap().version, one.open(b"stdin").unwrap().version());
        assert_ne!(page.get(0).unwrap().version, other.open(b"stdin").unwrap().version());
        one.list(one.key_range(), CursorUpdate::at(b"stdin"), 9, &mut page).unwrap();
        assert_eq!((page.len(), page.is_last()), (0, true));
        assert!(one.open(b"another").is_err());
    }
}
