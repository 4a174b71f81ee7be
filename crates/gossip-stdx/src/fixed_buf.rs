//! Bytes in place: a buffer that is made once and filled again and again.

use core::fmt;

/// Up to `N` bytes without an allocation.
///
/// Make one and keep it: creating it writes `N` bytes, using it writes what it is given only.
#[derive(Clone)]
pub struct FixedBuf<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> FixedBuf<N> {
    /// Bytes that fit.
    pub const CAPACITY: usize = N;

    /// An empty buffer.
    #[must_use]
    pub const fn new() -> Self {
        Self { len: 0, bytes: [0; N] }
    }

    /// What the buffer holds.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// How many bytes it holds.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets what it holds. The bytes stay in memory until they are overwritten.
    pub const fn clear(&mut self) {
        self.len = 0;
    }

    /// Replaces what it holds.
    ///
    /// # Panics
    /// If `bytes` does not fit.
    #[inline]
    pub fn copy_from_slice(&mut self, bytes: &[u8]) {
        self.overwrite(bytes.len()).copy_from_slice(bytes);
    }

    /// Adds `part` behind what it holds.
    ///
    /// # Panics
    /// If the result does not fit.
    #[inline]
    pub fn extend_from_slice(&mut self, part: &[u8]) {
        let old = self.len;
        self.overwrite(old + part.len())[old..].copy_from_slice(part);
    }

    /// Adds `part` before what it holds, so that one encoding can wrap another.
    ///
    /// # Panics
    /// If the result does not fit.
    pub fn prepend(&mut self, part: &[u8]) {
        let old = self.len;
        let bytes = self.overwrite(old + part.len());
        bytes.copy_within(..old, part.len());
        bytes[..part.len()].copy_from_slice(part);
    }

    /// Sets the length and gives the bytes, whatever they hold, to the caller to fill.
    ///
    /// # Panics
    /// If so many do not fit.
    #[inline]
    pub fn overwrite(&mut self, len: usize) -> &mut [u8] {
        assert!(len <= N, "{len} bytes in a buffer for {N}");
        self.len = len;
        &mut self.bytes[..len]
    }
}

impl<const N: usize> Default for FixedBuf<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> PartialEq for FixedBuf<N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl<const N: usize> Eq for FixedBuf<N> {}

/// A length: the bytes may be a private path or a credential.
impl<const N: usize> fmt::Debug for FixedBuf<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FixedBuf([{} bytes])", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_was_written_last() {
        let mut buf = FixedBuf::<8>::new();
        assert!(buf.is_empty() && buf == FixedBuf::default());
        buf.copy_from_slice(b"middle");
        buf.copy_from_slice(b"mid");
        buf.extend_from_slice(b"end");
        buf.prepend(b"a-");
        assert_eq!((buf.as_bytes(), buf.len()), (&b"a-midend"[..], 8));
        buf.overwrite(2).fill(b'x');
        assert_eq!(buf.as_bytes(), b"xx");
        buf.clear();
        assert_eq!(buf, FixedBuf::new());
    }

    #[test]
    fn bytes_left_over_do_not_count() {
        let (mut one, mut other) = (FixedBuf::<4>::new(), FixedBuf::<4>::new());
        one.copy_from_slice(b"abcd");
        one.copy_from_slice(b"x");
        other.copy_from_slice(b"x");
        assert_eq!(one, other);
    }

    #[test]
    #[should_panic(expected = "9 bytes in a buffer for 8")]
    fn what_does_not_fit_is_refused() {
        FixedBuf::<8>::new().copy_from_slice(&[0; 9]);
    }

    #[test]
    fn debug_shows_no_byte() {
        let mut buf = FixedBuf::<8>::new();
        buf.copy_from_slice(b"hush");
        assert_eq!(format!("{buf:?}"), "FixedBuf([4 bytes])");
    }
}
