//! What a source of things to scan offers: keys in order, and their bytes.
//!
//! A connector reads one target (a directory tree, a repository, a bucket). Its keys are byte
//! strings; coordination cuts their space into shards, and a worker lists a shard page by page and
//! opens what is listed.
//!
//! - K1: a listing is strictly ascending in byte order, lies in the range asked for and behind the
//!   cursor, and is complete: a key that exists throughout is listed.
//! - K2: listing from a cursor at the last key of one page gives the next; which pages came before
//!   does not matter.
//! - K3: a version names content: two opens that return equal versions read equal bytes.
//! - K4: nothing outside the target is ever read.
//! - K5: every key that is ever listed lies in the connector's key range, which is bounded.

#[cfg(feature = "conformance")]
pub mod conformance;
mod content;
mod new_run;
mod provenance;
mod wrapper;

use core::fmt;

use crate::coordination::{CursorUpdate, ShardSpecRef};

pub use content::{Classifier, ContentKind};
pub use new_run::{EachSettled, KeyRange, NewRun, RunName};
pub use provenance::Provenance;
pub use wrapper::Wrapper;

/// Reads one target. Shared by all workers of a process.
pub trait Connector: Send + Sync {
    /// What this connector can do.
    fn capabilities(&self) -> Capabilities;

    /// Makes ready for a run that has no shards yet. Comes before everything that has to do with keys;
    /// several processes may begin the same run, and a run may be begun again after one of them died.
    fn begin(&self, _run: NewRun<'_>) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Makes ready to go on with a run that was begun before. An error that is not retryable means
    /// that nobody can.
    fn resume(&self, _run: RunName) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Whether the target has something by now that the run at hand never lists, and only one that
    /// begins later does: where what a run lists is decided when it begins.
    fn has_newer(&self) -> Result<bool, ConnectorError> {
        Ok(false)
    }

    /// Ranges of keys in which a run lists only what is new: an item there that a finished run did not
    /// list still counts. Everywhere else it is gone.
    fn incremental_ranges(&self) -> Vec<KeyRange> {
        Vec::new()
    }

    /// Ranges of keys of which not everything could be listed, for something there could not be read when
    /// the run began: an item there that a finished run did not list still counts, unless it listed the
    /// same version.
    fn unlisted_ranges(&self) -> Vec<KeyRange> {
        Vec::new()
    }

    /// The path of a listed item relative to the target, where that is not its key: what patterns of
    /// paths are held against. Cheap, as it is asked of every entry.
    fn path_of(&self, _key: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// What reports call a listed item, where that is not its key: [`ItemReader::path`], of one that
    /// may be impossible to open.
    fn shown_path(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.path_of(key)
    }

    /// A bounded range that holds every key of the target, now and later (K5).
    fn key_range(&self) -> ShardSpecRef<'_>;

    /// What tells the kind of an item's bytes.
    fn classifier(&self) -> &dyn Classifier;

    /// Replaces what `page` holds by the next entries of `range` behind `cursor` (K1, K2), at most
    /// `max_entries`. After an error the page is empty.
    ///
    /// A cursor's token is one that a page before its last key gave, and only saves time: entries up
    /// to the last key are left out all the same, and a token that is no longer good is ignored.
    fn list(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        max_entries: usize,
        page: &mut Page,
    ) -> Result<(), ConnectorError>;

    /// Opens the item that a listing called `key`.
    fn open(&self, key: &[u8]) -> Result<Box<dyn ItemReader>, ConnectorError>;

    /// Opens what stood in the place of an item before, where a run is of what is new: what is in both is
    /// not new. `None` if nothing stood there.
    fn open_base(&self, _key: &[u8]) -> Result<Option<Box<dyn ItemReader>>, ConnectorError> {
        Ok(None)
    }

    /// Whether equal versions may be taken for equal bytes (K3), given that an item of this version
    /// was opened at `opened_at_ms`: one that was changed a moment before may be changed again
    /// without a trace.
    fn is_settled(&self, version: &[u8], opened_at_ms: u64) -> bool;

    /// Up to `want` ascending keys strictly inside `range` and behind `cursor` that cut what is left
    /// into parts of about the same work. Fewer, or none, where that cannot be told.
    fn split_points(
        &self,
        range: ShardSpecRef<'_>,
        cursor: CursorUpdate<'_>,
        want: usize,
    ) -> Result<Vec<Box<[u8]>>, ConnectorError>;
}

/// The bytes of one item, in the version that was current when it was opened.
pub trait ItemReader: Send {
    /// The item's size when it was opened.
    fn size(&self) -> u64;

    /// The opaque name of what was opened (K3). Empty if the source cannot say; then nothing may be
    /// concluded from equal versions.
    fn version(&self) -> &[u8];

    /// The path by which rules and reports know the item, where that is not its key.
    fn path(&self) -> Option<&[u8]> {
        None
    }

    /// What the identity of the item, and so of what is found in it, is derived from, where that is
    /// not its key: two items with the same are one.
    fn identity(&self) -> Option<&[u8]> {
        None
    }

    /// Reads at `offset` into the front of `buf`; 0 at the end of the item.
    fn read_at(&mut self, offset: u64, buf: &mut [u8]) -> Result<usize, ConnectorError>;

    /// Whether reads may start anywhere at no extra cost; asked where the source says so of
    /// [itself](Capabilities::range_reads). One that does not is read from its start to its end.
    fn reads_anywhere(&self) -> bool {
        true
    }

    /// Nothing behind `end` will be read, until this says otherwise: a reader that fetches ahead stops
    /// there. It is no bound on reads.
    fn limit_read_ahead(&mut self, _end: u64) {}

    /// The version now. One that differs from [`ItemReader::version`] means that what was read may
    /// be a mixture.
    fn version_now(&self) -> Result<Vec<u8>, ConnectorError>;

    /// Who brought it in, if the source knows.
    fn provenance(&self) -> Option<Provenance> {
        None
    }
}

/// What a connector can do beyond listing and opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Listings resume from a token faster than from a key.
    pub resume_tokens: bool,
    /// Reads may start anywhere at no extra cost, unless a reader says otherwise.
    pub range_reads: bool,
    /// It finds split points.
    pub split_points: bool,
    /// Versions are not empty.
    pub versions: bool,
}

/// One page of a listing. Reuse it: its memory stays.
#[derive(Clone, Default)]
pub struct Page {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    token: Option<Vec<u8>>,
    is_last: bool,
}

#[derive(Clone)]
struct Entry {
    key_end: usize,
    version_end: usize,
    size: u64,
    skip: Option<SkipReason>,
}

/// An entry of a page.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PageEntry<'p> {
    /// Its place in key order, by which a cursor names it.
    pub key: &'p [u8],
    /// Its version as listed; empty if the listing does not tell.
    pub version: &'p [u8],
    /// Its size as listed.
    pub size: u64,
    /// Why it is not to be opened, if it is not. It still counts as handled.
    pub skip: Option<SkipReason>,
}

/// Why something that exists is not scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SkipReason {
    /// A link; what it points to is scanned where it is, if it is inside.
    Link,
    /// Not a file: a socket, a pipe, a device.
    Special,
    /// It cannot be read with the rights at hand.
    PermissionDenied,
    /// It cannot be read, whatever the rights: what holds it answered with an error.
    Unreadable,
    /// An ignore file excludes it, or an option does.
    Ignored,
    /// Whoever scans does not want it.
    Excluded,
    /// It is larger than whoever scans wants to read.
    TooLarge,
    /// It lies on another file system, and the listing was to stay on one.
    OtherFileSystem,
    /// Its key is longer than a key may be.
    KeyTooLong,
    /// Another repository, which is scanned by itself.
    Submodule,
    /// A partial clone does not have it.
    NotFetched,
    /// The history of a repository that lies inside of what is scanned, and is scanned by itself.
    NestedHistory,
    /// What came before a commit, which a shallow clone does not have.
    Shallow,
    /// It has more paths than are told apart, and something may have been missed below others of them.
    ManyPaths,
}

impl Page {
    /// An empty page.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the page and keeps its memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
        self.token = None;
        self.is_last = false;
    }

    /// Appends an entry. For connectors.
    pub fn push(&mut self, entry: PageEntry<'_>) {
        self.bytes.extend_from_slice(entry.key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(entry.version);
        let version_end = self.bytes.len();
        self.entries.push(Entry { key_end, version_end, size: entry.size, skip: entry.skip });
    }

    /// Says that nothing in the range follows this page, and with which token to go on. For
    /// connectors.
    pub fn finish(&mut self, is_last: bool, token: Option<Vec<u8>>) {
        self.is_last = is_last;
        self.token = token;
    }

    /// Entries held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none. An empty page may still not be the last.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether nothing in the range follows.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        self.is_last
    }

    /// The token to resume with behind this page's last key.
    #[must_use]
    pub fn token(&self) -> Option<&[u8]> {
        self.token.as_deref()
    }

    /// The entry at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<PageEntry<'_>> {
        let entry = self.entries.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.entries[before].version_end);
        Some(PageEntry {
            key: &self.bytes[start..entry.key_end],
            version: &self.bytes[entry.key_end..entry.version_end],
            size: entry.size,
            skip: entry.skip,
        })
    }

    /// The entries in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = PageEntry<'_>> {
        (0..self.len()).map(|index| self.get(index).expect("the index is in the page"))
    }
}

/// Lengths only: keys may be private paths.
impl fmt::Debug for PageEntry<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageEntry")
            .field("key", &format_args!("[{} bytes]", self.key.len()))
            .field("version", &format_args!("[{} bytes]", self.version.len()))
            .field("size", &self.size)
            .field("skip", &self.skip)
            .finish()
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("len", &self.len()).field("is_last", &self.is_last).finish()
    }
}

/// Why a source did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum ConnectorError {
    /// It may answer another time.
    #[error("{operation}: {message}; trying again may help")]
    Retryable {
        /// What was asked: `list`, `open`, `read`.
        operation: &'static str,
        /// What happened. Holds no key.
        message: String,
    },
    /// What was asked for is gone.
    #[error("{operation}: it is gone")]
    NotFound { operation: &'static str },
    /// Access was refused.
    #[error("{operation}: access was refused")]
    PermissionDenied { operation: &'static str },
    /// It will not answer.
    #[error("{operation}: {message}")]
    Permanent {
        operation: &'static str,
        /// What is wrong. Holds no key.
        message: String,
    },
}

impl ConnectorError {
    /// Whether asking again may help.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Self::Retryable { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_gives_back_what_was_pushed() {
        let entries = [
            PageEntry { key: b"a", version: b"v1", size: 1, skip: None },
            PageEntry { key: b"bb", version: b"", size: 2, skip: Some(SkipReason::Link) },
            PageEntry { key: b"", version: b"v3", size: 3, skip: None },
        ];
        let mut page = Page::new();
        for _ in 0..2 {
            page.clear();
            assert!(page.is_empty() && !page.is_last());
            entries.iter().for_each(|&entry| page.push(entry));
            page.finish(true, Some(b"token".to_vec()));
            assert!(page.iter().eq(entries));
            assert_eq!((page.len(), page.is_last(), page.token()), (3, true, Some(&b"token"[..])));
            assert_eq!(page.get(3), None);
        }
    }

    #[test]
    fn debug_shows_no_key_byte() {
        let mut page = Page::new();
        page.push(PageEntry { key: b"hush", version: b"hush", size: 1, skip: None });
        assert!(!format!("{page:?} {:?}", page.get(0)).contains("hush"));
    }
}
