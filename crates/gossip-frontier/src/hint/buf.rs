//! Scratch for metadata, and for a whole shard.

use core::fmt;

use gossip_contracts::coordination::MAX_METADATA_SIZE;

use crate::KeyBuf;

/// A reusable buffer that holds one encoded hint or metadata envelope.
///
/// Make one per thread and keep it: creating it writes 16 KiB, using it writes the encoding only.
pub struct MetadataBuf {
    len: usize,
    bytes: [u8; Self::CAPACITY],
}

impl MetadataBuf {
    /// Bytes that fit.
    pub const CAPACITY: usize = MAX_METADATA_SIZE;

    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { len: 0, bytes: [0; Self::CAPACITY] }
    }

    /// What was encoded last.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Length of what was encoded last.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing was encoded yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Sets the length and gives the bytes, whatever they hold, to the caller to fill.
    pub(super) fn overwrite(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= Self::CAPACITY, "metadata of {len} bytes; {} fit", Self::CAPACITY);
        self.len = len;
        &mut self.bytes[..len]
    }
}

impl Default for MetadataBuf {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows a length: metadata holds prefixes and connectors' private bytes.
impl fmt::Debug for MetadataBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetadataBuf([{} bytes])", self.len)
    }
}

/// Everything that building one shard needs: both boundaries and the metadata.
///
/// A shard built with it borrows it, so the next one cannot be built before that is done with.
#[derive(Debug, Default)]
pub struct ShardSpecScratch {
    pub(super) start: KeyBuf,
    pub(super) end: KeyBuf,
    pub(super) metadata: MetadataBuf,
}

impl ShardSpecScratch {
    /// Empty scratch.
    #[must_use]
    pub const fn new() -> Self {
        Self { start: KeyBuf::new(), end: KeyBuf::new(), metadata: MetadataBuf::new() }
    }
}
