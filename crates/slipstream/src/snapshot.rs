//! Durable folds: the current entries of a bucket on local disk, with the cursor that they stand at.
//!
//! [`SnapshotStore`] is what a fold promises; where the bytes live is the backend's business. What a
//! backend does not do: watch, resume or repair. It stores what it is given.
//!
//! - F1: a fold is a function of the log. An empty store that is given every update from the
//!   beginning, and one that is given only what follows its cursor, hold the same entries.
//! - F2: the cursor follows the data. A batch and its cursor become visible, and survive a crash,
//!   together or not at all; a cursor never stands for an update whose data is missing.
//! - F3: a fold is a copy. A crash of the machine may cost the newest batches (unless the backend
//!   syncs each), and then it costs their cursors too: a watch from the cursor brings them back.
//! - F4: an artifact or an imported fold is at its place complete and synced, or nothing is: it is made
//!   beside it, and moved there last.
//! - F5: the cursor of a manifest is that of the files: the copy was opened, and stood there.
//! - F6: no byte of an artifact becomes part of a fold unless the manifest has its hash.

mod append_log;
mod arena;
mod compaction;
#[cfg(feature = "conformance")]
pub mod conformance;
mod cursor_only;
pub mod engine;
mod fences;
#[cfg(feature = "fjall")]
mod fjall;
mod fold;
mod format;
mod log;
mod page;
pub mod record;
mod tree;
mod writer;

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use bytes::Bytes;

pub use self::append_log::{AppendLogOptions, AppendLogReader, AppendLogSnapshot};
pub use self::cursor_only::CursorOnly;
#[cfg(feature = "fjall")]
pub use self::fjall::{Fjall, FjallReader, FjallSnapshot};
pub use self::writer::{Snapshot, SnapshotWriter};
use crate::artifact::{About, ArtifactError, ArtifactFile, Export, ExportManifest, import};
use crate::kv::{Key, KvEntry, KvUpdate, VersionToken, WatchCursor, WatchScope};

/// A durable fold with one writer.
///
/// Entries are in ascending order of their keys' bytes. A put with an empty value is a delete, as
/// everywhere else, so no entry has one.
///
/// Calls may block on the disk: from async code they belong on a blocking thread.
pub trait SnapshotStore: SnapshotReader + Sized + 'static {
    /// A handle for reading while the store applies.
    type Reader: SnapshotReader + Clone + Sync + 'static;

    /// How its files travel; `None` for a store that has none.
    const FILES: Option<FoldFiles<Self>> = None;

    /// Opens the fold at `path`, or makes an empty one where nothing is, and says where to go on:
    /// [`WatchCursor::none`] for an empty fold.
    ///
    /// `path` is a file or a directory, as the backend has it; what is above it must exist. One
    /// process at a time: [`SnapshotError::InUse`]. A file that is not this backend's, is of a newer
    /// format, or is damaged is refused, and left as it is.
    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError>;

    /// Folds a batch in and moves the cursor (F2).
    ///
    /// Updates take effect in the order of the batch, the last one of a key counts. Versions are
    /// stored, not compared. The batch may be empty, and the cursor the old one.
    ///
    /// After an error nothing has changed, in memory or on disk, and the same call may be made
    /// again.
    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError>;

    /// A handle that sees what is applied after it was made, too.
    fn reader(&self) -> Self::Reader;

    /// The manifest of the artifact that the fold was [imported](Self::import) or restored from, as long as
    /// the fold stands where that did. It has more witnesses than the fold's cursor, so that a log which was
    /// written to meanwhile is recognised nevertheless.
    fn imported(&self) -> Option<&ExportManifest> {
        None
    }

    /// Keeps the manifest of an artifact for [`imported`](Self::imported): with the next batch, the fold
    /// stands where that does.
    ///
    /// # Errors
    /// It is not kept, or not durably. The fold is as it was.
    fn set_imported(&mut self, _manifest: &ExportManifest) -> io::Result<()> {
        Ok(())
    }

    /// Waits, for a while, until what was applied is out of memory as far as it can be. A restore applies
    /// batches faster than an engine writes its tables.
    fn wait_for_tables(&self) {}

    /// Makes an artifact of the fold, a directory at `destination`, where nothing may be. Tables of an
    /// engine are shared with it as hard links if both are on one file system; so it keeps the room
    /// of what the fold drops later, and is to be deleted when it was used.
    ///
    /// # Errors
    /// Nothing is at the destination, but for [`ArtifactError::NotDurable`].
    fn export_to(
        &mut self,
        destination: &Path,
        about: About,
    ) -> Result<ExportManifest, ArtifactError> {
        Export::begin(self, destination, about)?.finish()
    }

    /// Makes a fold of `scope` at `path`, where nothing may be, of an artifact of the same scope and
    /// backend. It is opened like any other, and a watch of it begins with what follows the artifact's
    /// cursor.
    ///
    /// # Errors
    /// A bad artifact is [`ArtifactError::Invalid`]. Nothing is at the path, but for
    /// [`ArtifactError::NotDurable`].
    fn import(
        artifact: &Path,
        path: &Path,
        scope: &WatchScope,
    ) -> Result<ExportManifest, ArtifactError> {
        import::<Self>(artifact, path, scope)
    }
}

/// Takes an entry, and says whether to go on.
pub type OnEntry<'a> = &'a mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>;

/// What is left of copying a fold when the store itself may apply on. It says which files it has hashed as
/// it wrote them, and nobody changes since.
pub type FinishCopy = Box<dyn FnOnce() -> Result<Vec<ArtifactFile>, SnapshotError> + Send>;

/// The files of a backend, as artifacts have them.
pub struct FoldFiles<S> {
    /// The name of the backend: an artifact becomes a fold of the same one only.
    pub backend: &'static str,
    /// The format of the files, likewise.
    pub generation: u32,
    /// Whether an artifact may have a file of this name.
    pub owns: fn(&str) -> bool,
    /// Copies what the store holds to a directory that is not there yet. What need not be done now,
    /// while nobody applies, is returned.
    pub copy: fn(&mut S, &Path) -> Result<FinishCopy, SnapshotError>,
    /// Where in that directory the fold is.
    pub fold: fn(&Path) -> PathBuf,
    /// Where an imported fold keeps the manifest of its artifact: inside of it, or beside.
    pub imported: fn(&Path) -> PathBuf,
    /// Opens the fold in such a directory, and says where it stands.
    pub verify: fn(&Path) -> Result<WatchCursor, SnapshotError>,
    /// Calls a function with each entry of the fold in such a directory, in the order of an artifact's
    /// files, until it breaks. What is in memory of them does not grow with the fold.
    pub entries: fn(&Path, OnEntry<'_>) -> Result<(), SnapshotError>,
}

impl<S> Clone for FoldFiles<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for FoldFiles<S> {}

/// Reads of a fold.
///
/// A call sees the fold between two batches, never half of one, and holds up an
/// [`apply`](SnapshotStore::apply) no longer than it takes to note what to read.
pub trait SnapshotReader: Send {
    /// The cursor of the last batch.
    fn cursor(&self) -> WatchCursor;

    /// The entry of a key.
    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError>;

    /// Calls `f` with each entry whose key begins with `prefix`, in order, until `f` breaks.
    ///
    /// Costs as much as the entries that are visited, however many there are besides.
    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError>;

    /// The entries whose keys begin with `prefix`, in order.
    fn range(&self, prefix: &str) -> Result<Vec<KvEntry>, SnapshotError> {
        let mut entries = Vec::new();
        self.for_each_in_range(prefix, &mut |entry| {
            entries.push(entry.to_entry());
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    }

    /// Calls `f` with each key that begins with `prefix`, in order, until `f` breaks.
    fn for_each_key(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(&str) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.for_each_in_range(prefix, &mut |entry| f(entry.key))
    }
}

/// An entry where it lies.
#[derive(Clone, Copy)]
pub struct EntryRef<'a> {
    /// The key as the bucket spells it.
    pub key: &'a str,
    /// The value, never empty.
    pub value: &'a [u8],
    /// The version that holds it.
    pub version: VersionToken,
}

impl EntryRef<'_> {
    /// A copy, of key and value in one buffer.
    #[must_use]
    pub fn to_entry(self) -> KvEntry {
        let mut both = Vec::with_capacity(self.key.len() + self.value.len());
        both.extend_from_slice(self.key.as_bytes());
        both.extend_from_slice(self.value);
        let mut key = Bytes::from(both);
        let value = key.split_off(self.key.len());
        let key = Key::try_from(key).expect("copied from text");
        KvEntry { key, value, version: self.version }
    }
}

/// Why a fold could not be opened, changed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// What it said.
        source: io::Error,
    },
    /// The bytes are this backend's, but some of them were changed or are missing. Deleting the
    /// fold and watching from the beginning rebuilds it.
    #[error("the fold is damaged: {0}")]
    Corrupted(String),
    /// Not a fold of this backend, or one of a newer format.
    #[error("not a fold that this program can read: {0}")]
    InvalidFormat(String),
    /// Somebody else has the fold open.
    #[error("the fold is in use by another process or store")]
    InUse,
    /// The batch holds what the format cannot.
    #[error("{what} of {len} bytes; the limit is {max}")]
    TooLarge {
        /// Key, value or cursor.
        what: &'static str,
        /// How many bytes it has.
        len: usize,
        /// How many bytes it may have.
        max: usize,
    },
    /// The batch has an update without a key.
    #[error("an empty key")]
    EmptyKey,
    /// A write failed, and the fold cannot be opened again while calls of its own readers go on.
    /// Try again when they are done: until then this is no failure of the disk.
    #[error("a write failed, and the fold can be opened again only when nobody reads it any more")]
    BeingRead,
    /// A compaction was given up, because the store was closed.
    #[error("the store was closed before it was done")]
    Stopped,
    /// The storage engine refused.
    #[error("{engine}: {message}")]
    Engine {
        /// The engine's name, as its label file has it.
        engine: &'static str,
        /// What it said.
        message: String,
    },
}

pub(crate) fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { doing, source }
}
