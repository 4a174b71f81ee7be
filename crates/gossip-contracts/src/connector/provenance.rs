//! Who brought an item into a source, where the source knows that.

use core::fmt;

/// Who brought an item in, when and as what.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The commit, in hexadecimal.
    pub commit: String,
    /// Its author, as the source writes authors.
    pub author: String,
    /// When, in Unix milliseconds.
    pub date_ms: u64,
    /// Its place among all commits of its source: by date, but always behind its parents. Less than 2^63.
    pub order: u64,
    /// Other paths of the same bytes, up to [`OTHER_PATHS_MAX`](Self::OTHER_PATHS_MAX).
    pub other_paths: Vec<Vec<u8>>,
    /// How many there are besides.
    pub more_paths: u64,
}

impl Provenance {
    /// Other paths that are named; who wants all of them asks the source.
    pub const OTHER_PATHS_MAX: usize = 100;
    /// Their bytes, all together: paths may be as long as a source likes.
    pub const OTHER_PATHS_BYTES_MAX: usize = 64 << 10;
}

/// Authors and paths may be private.
impl fmt::Debug for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provenance").field("commit", &self.commit).finish_non_exhaustive()
    }
}
