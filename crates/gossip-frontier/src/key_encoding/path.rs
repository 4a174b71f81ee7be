//! File paths as keys: the bytes as they are.

use core::fmt;

use gossip_contracts::coordination::MAX_KEY_SIZE;

use super::{KeyBuf, KeyEncoding};

/// A UTF-8 path. Its encoding is its bytes: no normalisation, no case folding, `/` and `\` as they
/// come. Who needs one spelling per file must bring it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathKey<'a>(&'a str);

impl<'a> PathKey<'a> {
    /// The key of `path`, for paths known to be good. Others go through [`PathKey::try_new`].
    ///
    /// # Panics
    /// If `path` is empty or longer than `MAX_KEY_SIZE`.
    #[must_use]
    pub fn new(path: &'a str) -> Self {
        match Self::try_new(path) {
            Ok(key) => key,
            Err(error) => panic!("not a path key: {error}"),
        }
    }

    /// The key of `path`.
    pub fn try_new(path: &'a str) -> Result<Self, KeyInputError> {
        check_size(path.len())?;
        Ok(Self(path))
    }

    /// The path as it was given, separators included.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }
}

impl KeyEncoding for PathKey<'_> {
    fn encode_into(&self, buf: &mut KeyBuf) {
        buf.copy_from_slice(self.0.as_bytes());
    }
}

/// Shows a length: paths may be private.
impl fmt::Debug for PathKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PathKey([{} bytes])", self.0.len())
    }
}

/// A path of any bytes: Unix names need not be UTF-8. Encodes like [`PathKey`], so that both may
/// live in one key space.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RawPathKey<'a>(&'a [u8]);

impl<'a> RawPathKey<'a> {
    /// The key of `path`.
    pub fn try_new(path: &'a [u8]) -> Result<Self, KeyInputError> {
        check_size(path.len())?;
        Ok(Self(path))
    }

    /// The path as it was given, separators included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

impl<'a> From<PathKey<'a>> for RawPathKey<'a> {
    fn from(path: PathKey<'a>) -> Self {
        Self(path.0.as_bytes())
    }
}

impl KeyEncoding for RawPathKey<'_> {
    fn encode_into(&self, buf: &mut KeyBuf) {
        buf.copy_from_slice(self.0);
    }
}

/// Shows a length: paths may be private.
impl fmt::Debug for RawPathKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RawPathKey([{} bytes])", self.0.len())
    }
}

/// Why something cannot be a key. Sizes only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum KeyInputError {
    /// Nothing was given; an empty boundary would mean "unbounded".
    #[error("the key is empty")]
    Empty,
    /// The key is longer than a key may be.
    #[error("the key has {size} bytes; at most {max} are allowed")]
    TooLarge { size: usize, max: usize },
}

pub(super) fn check_size(size: usize) -> Result<(), KeyInputError> {
    match size {
        0 => Err(KeyInputError::Empty),
        1..=MAX_KEY_SIZE => Ok(()),
        _ => Err(KeyInputError::TooLarge { size, max: MAX_KEY_SIZE }),
    }
}
