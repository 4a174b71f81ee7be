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
    /// Other paths of the same bytes.
    pub other_paths: Vec<Vec<u8>>,
}

/// Authors and paths may be private.
impl fmt::Debug for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provenance").field("commit", &self.commit).finish_non_exhaustive()
    }
}
