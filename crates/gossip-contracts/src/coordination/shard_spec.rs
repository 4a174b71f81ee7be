//! Key ranges: what a shard covers.
//!
//! - S1: a stored range is never empty or inverted: `start < end`, or `end` is unbounded.
//! - S2: no boundary exceeds [`MAX_KEY_SIZE`], no metadata [`MAX_METADATA_SIZE`].

use core::fmt;

use super::limits::{MAX_KEY_SIZE, MAX_METADATA_SIZE};
use crate::identity::{CanonicalBytes, CanonicalHasher};

/// A borrowed key range with its metadata. A plain view: it may hold bytes that
/// [`ShardSpec::validate_ref`] would refuse.
///
/// An empty `start` means the beginning of the key space, an empty `end` its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardSpecRef<'a> {
    start: &'a [u8],
    end: &'a [u8],
    metadata: &'a [u8],
}

impl<'a> ShardSpecRef<'a> {
    /// A view of these bytes, unchecked.
    #[must_use]
    pub const fn new(start: &'a [u8], end: &'a [u8], metadata: &'a [u8]) -> Self {
        Self { start, end, metadata }
    }

    /// The first key of the range; empty means the beginning of the key space.
    #[must_use]
    pub const fn start(&self) -> &'a [u8] {
        self.start
    }

    /// The first key behind the range; empty means that the range has no upper bound.
    #[must_use]
    pub const fn end(&self) -> &'a [u8] {
        self.end
    }

    /// Opaque bytes that travel with the range.
    #[must_use]
    pub const fn metadata(&self) -> &'a [u8] {
        self.metadata
    }

    /// The same range with other metadata.
    #[must_use]
    pub const fn with_metadata(self, metadata: &'a [u8]) -> Self {
        Self { metadata, ..self }
    }

    /// Whether both ends are given.
    #[must_use]
    pub const fn is_bounded(&self) -> bool {
        !self.start.is_empty() && !self.end.is_empty()
    }

    /// Whether `key` lies in `[start, end)`.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start <= key && (self.end.is_empty() || key < self.end)
    }
}

/// Shows lengths: keys may name private files.
impl fmt::Debug for ShardSpecRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardSpecRef")
            .field("start", &format_args!("[{} bytes]", self.start.len()))
            .field("end", &format_args!("[{} bytes]", self.end.len()))
            .field("metadata", &format_args!("[{} bytes]", self.metadata.len()))
            .finish()
    }
}

impl CanonicalBytes for ShardSpecRef<'_> {
    fn feed(&self, hasher: &mut CanonicalHasher) {
        hasher.value(self.start).value(self.end).value(self.metadata);
    }
}

/// Anything that can be seen as a key range.
pub trait IntoShardSpecRef<'a> {
    /// The range as a borrowed view.
    fn into_shard_spec_ref(self) -> ShardSpecRef<'a>;
}

impl<'a> IntoShardSpecRef<'a> for ShardSpecRef<'a> {
    fn into_shard_spec_ref(self) -> ShardSpecRef<'a> {
        self
    }
}

impl<'a> IntoShardSpecRef<'a> for &'a ShardSpec {
    fn into_shard_spec_ref(self) -> ShardSpecRef<'a> {
        self.as_ref()
    }
}

/// An owned key range that has been validated (S1, S2).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ShardSpec {
    start: Box<[u8]>,
    end: Box<[u8]>,
    metadata: Box<[u8]>,
}

impl ShardSpec {
    /// Copies a view that passes [`ShardSpec::validate_ref`].
    pub fn new(spec: ShardSpecRef<'_>) -> Result<Self, ShardSpecInputError> {
        Self::validate_ref(spec)?;
        Ok(Self { start: spec.start.into(), end: spec.end.into(), metadata: spec.metadata.into() })
    }

    /// Checks, in this order: start size, end size, metadata size, `start < end`.
    pub fn validate_ref(spec: ShardSpecRef<'_>) -> Result<(), ShardSpecInputError> {
        if spec.start.len() > MAX_KEY_SIZE {
            return Err(ShardSpecInputError::StartTooLarge {
                size: spec.start.len(),
                max: MAX_KEY_SIZE,
            });
        }
        if spec.end.len() > MAX_KEY_SIZE {
            return Err(ShardSpecInputError::EndTooLarge {
                size: spec.end.len(),
                max: MAX_KEY_SIZE,
            });
        }
        if spec.metadata.len() > MAX_METADATA_SIZE {
            return Err(ShardSpecInputError::MetadataTooLarge {
                size: spec.metadata.len(),
                max: MAX_METADATA_SIZE,
            });
        }
        if !spec.end.is_empty() && spec.start >= spec.end {
            return Err(ShardSpecInputError::InvertedRange {
                start_len: spec.start.len(),
                end_len: spec.end.len(),
            });
        }
        Ok(())
    }

    /// The range as a borrowed view.
    #[must_use]
    #[allow(clippy::should_implement_trait, reason = "AsRef cannot return a view by value")]
    pub fn as_ref(&self) -> ShardSpecRef<'_> {
        ShardSpecRef { start: &self.start, end: &self.end, metadata: &self.metadata }
    }
}

impl fmt::Debug for ShardSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_ref().fmt(f)
    }
}

/// Why bytes do not make a key range. Sizes only: the bytes themselves stay out of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ShardSpecInputError {
    /// The lower boundary is longer than a key may be.
    #[error("the start key has {size} bytes; at most {max} are allowed")]
    StartTooLarge { size: usize, max: usize },
    /// The upper boundary is longer than a key may be.
    #[error("the end key has {size} bytes; at most {max} are allowed")]
    EndTooLarge { size: usize, max: usize },
    /// The metadata is longer than allowed.
    #[error("the metadata has {size} bytes; at most {max} are allowed")]
    MetadataTooLarge { size: usize, max: usize },
    /// The range holds no key: its start is at or behind its end.
    #[error(
        "the range is empty: its start ({start_len} bytes) is not before its end ({end_len} bytes)"
    )]
    InvertedRange {
        /// Length of the start key.
        start_len: usize,
        /// Length of the end key.
        end_len: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_half_open() {
        let spec = ShardSpecRef::new(b"b", b"d", b"");
        assert!(!spec.contains(b"a"));
        assert!(spec.contains(b"b"));
        assert!(spec.contains(b"c\xff"));
        assert!(!spec.contains(b"d"));
    }

    #[test]
    fn empty_ends_are_unbounded() {
        assert!(ShardSpecRef::new(b"", b"", b"").contains(b"anything"));
        assert!(ShardSpecRef::new(b"b", b"", b"").contains(&[0xff; 9]));
        assert!(!ShardSpecRef::new(b"b", b"", b"").is_bounded());
        assert!(!ShardSpecRef::new(b"", b"b", b"").is_bounded());
        assert!(ShardSpecRef::new(b"a", b"b", b"").is_bounded());
    }

    #[test]
    fn sizes_at_the_limit_pass_and_above_it_fail_with_their_own_error() {
        let key = vec![b'k'; MAX_KEY_SIZE + 1];
        let meta = vec![0; MAX_METADATA_SIZE + 1];
        let at = &key[..MAX_KEY_SIZE];
        assert!(ShardSpec::new(ShardSpecRef::new(at, b"l", &meta[1..])).is_ok());
        assert!(ShardSpec::new(ShardSpecRef::new(b"a", at, b"")).is_ok());
        assert_eq!(
            ShardSpec::new(ShardSpecRef::new(&key, b"l", b"")),
            Err(ShardSpecInputError::StartTooLarge { size: 4097, max: 4096 })
        );
        assert_eq!(
            ShardSpec::new(ShardSpecRef::new(b"a", &key, b"")),
            Err(ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 })
        );
        assert_eq!(
            ShardSpec::new(ShardSpecRef::new(b"a", b"b", &meta)),
            Err(ShardSpecInputError::MetadataTooLarge { size: 16_385, max: 16_384 })
        );
    }

    #[test]
    fn equal_and_inverted_ends_are_refused() {
        for (start, end) in [(&b"b"[..], &b"a"[..]), (b"b", b"b")] {
            assert_eq!(
                ShardSpec::new(ShardSpecRef::new(start, end, b"")),
                Err(ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 })
            );
        }
    }

    #[test]
    fn debug_shows_no_key_byte() {
        let spec = ShardSpec::new(ShardSpecRef::new(b"hush", b"hushed", b"hush")).unwrap();
        let shown = "ShardSpecRef { start: [4 bytes], end: [6 bytes], metadata: [4 bytes] }";
        assert_eq!(format!("{spec:?}"), shown);
        assert_eq!(format!("{:?}", spec.as_ref()), shown);
    }
}
