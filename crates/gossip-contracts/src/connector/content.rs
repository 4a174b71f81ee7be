//! What kind of bytes an item has.

use core::fmt;

use crate::identity::CanonicalBytes;

/// Names the kind of an item's bytes from the first of them.
///
/// What it feeds to a hasher is all that decides its answers: what was left out as binary is worth
/// another look when that changes.
pub trait Classifier: CanonicalBytes + Send + Sync {
    /// The kind of the item `key`, whose bytes begin with `head`.
    fn kind(&self, key: &[u8], head: &[u8]) -> ContentKind;
}

/// What kind of bytes an item has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ContentKind {
    /// It may be text.
    Text,
    /// An archive, or compressed.
    Archive,
    /// A picture, by its first bytes.
    Image,
    /// Sound or film.
    Media,
    /// A program, a library or bytecode.
    Executable,
    /// A database file, by its first bytes.
    Database,
    /// A font, by its first bytes.
    Font,
    /// It has NUL bytes where no text has them.
    NulBytes,
    /// It names a file that Git LFS keeps elsewhere.
    LfsPointer,
}

impl fmt::Display for ContentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Archive => "archive",
            Self::Image => "image",
            Self::Media => "media",
            Self::Executable => "executable",
            Self::Database => "database",
            Self::Font => "font",
            Self::NulBytes => "NUL bytes",
            Self::LfsPointer => "Git LFS pointer",
        })
    }
}
