//! The scratch buffer of all key work.

use core::fmt;

use gossip_contracts::coordination::MAX_KEY_SIZE;

/// A reusable buffer that holds one key.
///
/// Make one per thread and keep it: creating it writes 4 KiB, using it writes the key only.
#[derive(Clone)]
pub struct KeyBuf {
    len: usize,
    bytes: [u8; Self::CAPACITY],
}

impl KeyBuf {
    /// Bytes that fit: the longest key, and one more.
    pub const CAPACITY: usize = MAX_KEY_SIZE + 1;

    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { len: 0, bytes: [0; Self::CAPACITY] }
    }

    /// The key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Length of the key.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer holds no byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Replaces the key.
    ///
    /// # Panics
    /// If `key` is longer than [`KeyBuf::CAPACITY`].
    #[inline]
    pub fn copy_from_slice(&mut self, key: &[u8]) {
        self.overwrite(key.len()).copy_from_slice(key);
    }

    /// Adds `part` behind the key.
    ///
    /// # Panics
    /// If the result is longer than [`KeyBuf::CAPACITY`].
    #[inline]
    pub fn extend_from_slice(&mut self, part: &[u8]) {
        let old = self.len;
        self.overwrite(old + part.len())[old..].copy_from_slice(part);
    }

    /// Adds `part` before the key, so that one encoding can wrap another.
    ///
    /// # Panics
    /// If the result is longer than [`KeyBuf::CAPACITY`].
    pub fn prepend(&mut self, part: &[u8]) {
        let old = self.len;
        let bytes = self.overwrite(old + part.len());
        bytes.copy_within(..old, part.len());
        bytes[..part.len()].copy_from_slice(part);
    }

    /// Sets the length and gives the bytes, whatever they hold, to the caller to fill.
    #[inline]
    pub(super) fn overwrite(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= Self::CAPACITY, "a key of {len} bytes; {} fit", Self::CAPACITY);
        self.len = len;
        &mut self.bytes[..len]
    }
}

impl Default for KeyBuf {
    fn default() -> Self {
        Self::new()
    }
}

/// Shows a length: keys may name private files.
impl fmt::Debug for KeyBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyBuf([{} bytes])", self.len)
    }
}
