//! A fold on a key-value engine: all that does not depend on which one.
//!
//! An engine that implements [`Engine`] is a [`SnapshotStore`] as [`EngineSnapshot`]; how entries
//! become bytes is in [`record`].
//!
//! A file beside those of the engine, the label, says that a database is a fold, and of which
//! format. It is a file because engines write to a database when they open it, and the label is to be
//! read before.
//!
//! - E1: the label is on disk before a database is begun: one that has none is somebody else's. Once it
//!   was made, the label says so: one of which something is missing since is refused, and not made again.
//! - E2: an engine is given no directory that has something else in it, or a fold of another format.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use super::record::{self, Change};
use super::{
    Copied, EntryRef, FinishCopy, FoldFiles, SnapshotError, SnapshotReader, SnapshotStore, io_error,
};
use crate::artifact::{ExportManifest, Imported};
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

/// How entries and cursor are kept in a database; the same for all engines.
const FORMAT: u32 = 1;
/// The name of the file that says so.
pub(super) const LABEL: &str = "slipstream-format";
/// The name of the file that an imported fold keeps the manifest of its artifact in.
const IMPORTED: &str = "slipstream-imported";
/// More bytes than a label has.
const LABEL_MAX: u64 = 100;

/// An open database with batches that are written whole or not at all, ordered by key, which has
/// a directory to itself and locks it.
pub trait Engine: Send + Sync + Sized + 'static {
    /// What it is called.
    const NAME: &'static str;

    /// Whether there is a database in the directory: if not nothing is stored.
    fn is_complete(path: &Path) -> io::Result<bool>;

    /// Whether a database that was made has all that the engine itself would not miss.
    fn is_whole(path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(true)
    }

    /// Whether a making that was interrupted may have left a file of this name.
    fn is_unfinished(name: &str) -> bool;

    /// Removes what such a making has left and [`open`](Self::open) would stumble over, unless
    /// somebody is at it.
    fn clear_unfinished(path: &Path) -> Result<(), SnapshotError> {
        let _ = path;
        Ok(())
    }

    /// Opens the database, or makes it in a directory with nothing in it that it would mind but what
    /// [`is_unfinished`](Self::is_unfinished); and its cursor, as bytes, if it has one.
    fn open(path: &Path, options: &EngineOptions)
    -> Result<(Self, Option<Vec<u8>>), SnapshotError>;

    /// Opens a database that is there, and that nobody will write to, as cheaply as it can be. Readers
    /// have it, too, while [`open`](Self::open) fails.
    fn open_to_read(path: &Path) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        Self::open(path, &EngineOptions::default())
    }

    /// Makes the changes and sets the cursor, at once; on disk when it returns if it is to `sync`.
    fn write(
        &self,
        changes: &[Change<'_>],
        cursor: &WatchCursor,
        sync: bool,
    ) -> Result<(), SnapshotError>;

    /// As [`SnapshotStore::wait_for_tables`].
    fn wait_for_tables(&self) {}

    /// Copies the database, which is in the directory `from` and nobody writes to, to a directory that
    /// is not there yet: one that [`open`](Self::open) finds the same in. Files that never change may
    /// be links to those of the database.
    fn copy(&self, from: &Path, to: &Path) -> Result<(), SnapshotError>;

    /// Whether the database is to be opened again, after a [`copy`](Self::copy) that failed. An engine
    /// that cannot tell says that it is.
    fn has_failed(&self) -> bool {
        true
    }

    /// Whether a copy may have a file of this name, with `/` between directories. Others are not given
    /// to the engine.
    fn owns(name: &str) -> bool;

    /// As [`SnapshotReader::get`]; the key is not empty.
    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError>;

    /// As [`SnapshotReader::for_each_in_range`].
    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError>;
}

/// How an engine keeps a fold. Where nothing is said, the engine's own default holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineOptions {
    /// Sync every batch: it is on disk when `apply` returns, not only in the page cache.
    pub sync: bool,
    /// Most bytes of what was read from disk that are kept in memory.
    pub cache_bytes: Option<u64>,
    /// So many bytes of new entries are gathered in memory before they become a file. fjall takes
    /// this when the fold is made, and keeps it; an imported fold has that of the one it was exported
    /// from.
    pub memtable_bytes: Option<u64>,
}

/// A fold on disk, in a directory of its own.
///
/// A batch is in the page cache when `apply` returns, or on disk with [`EngineOptions::sync`].
///
/// Engines refuse everything once a write has failed, and to export is to write. The store then opens
/// its own again before the next batch or export, once no reader is in the middle of a call
/// ([`SnapshotError::BeingRead`]): a failure that has passed heals by itself. A batch does not wait for
/// readers that come later, which get an error until those before them are done. An export takes the
/// database from nobody: it fails while somebody reads, and who comes while it is opened again waits.
/// If it cannot be, readers go on with what can be opened to read, if anything can.
pub struct EngineSnapshot<E> {
    path: PathBuf,
    options: EngineOptions,
    imported: Imported,
    state: Arc<RwLock<State<E>>>,
    /// The database that a write failed on.
    failed: Weak<E>,
    /// Readers have a database that is to be opened again before it is written to or copied.
    is_stale: bool,
}

/// Reads an [`EngineSnapshot`] while it applies. The directory stays locked while a call goes on.
pub struct EngineReader<E>(Arc<RwLock<State<E>>>);

struct State<E> {
    /// Gone while the database is to be opened again.
    engine: Option<Arc<E>>,
    cursor: WatchCursor,
}

impl<E: Engine> State<E> {
    fn of((engine, stored): (E, Option<Vec<u8>>)) -> Result<Self, SnapshotError> {
        Ok(Self { engine: Some(Arc::new(engine)), cursor: cursor_of(stored)? })
    }
}

impl<E: Engine> EngineSnapshot<E> {
    /// [`load`](SnapshotStore::load), with other options.
    pub fn load_with(
        path: &Path,
        options: EngineOptions,
    ) -> Result<(WatchCursor, Self), SnapshotError> {
        match fs::create_dir(path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error("making the directory of the fold")(error));
            }
            _ => {}
        }
        if !is_made::<E>(path)? {
            E::clear_unfinished(path)?;
            write_label(path, &label_of::<E>(FORMAT)).map_err(io_error("making the fold"))?;
        }
        let state = State::of(E::open(path, &options)?)?;
        let made = made_label::<E>();
        if read_label(path).map_err(io_error("opening the fold"))? != made.as_bytes() {
            write_label(path, &made).map_err(io_error("making the fold"))?;
        }
        let cursor = state.cursor.clone();
        let imported = Imported::load(imported_in(path), &cursor);
        let (path, state) = (path.to_owned(), Arc::new(RwLock::new(state)));
        let (failed, is_stale) = (Weak::new(), false);
        Ok((cursor, Self { path, options, imported, state, failed, is_stale }))
    }

    fn copy_to(&mut self, data: &Path) -> Result<FinishCopy, SnapshotError> {
        if self.is_stale {
            self.reopen_unread()?;
        }
        let engine = self.engine()?;
        engine.copy(&self.path, data).inspect_err(|_| self.is_stale = engine.has_failed())?;
        // It is synced with everything else.
        let labelled = fs::write(data.join(LABEL), made_label::<E>());
        labelled.map_err(io_error("making a copy of the fold"))?;
        Ok(Box::new(|| Ok(Copied::default())))
    }

    /// Has the database closed, and opened again by the next call that needs it.
    fn close(&mut self) {
        // Dropped outside the lock: to close takes a while.
        let engine = write(&self.state).engine.take();
        if let Some(engine) = engine {
            self.failed = Arc::downgrade(&engine);
        }
        self.is_stale = false;
    }

    /// Opens the database again, unless somebody reads it.
    fn reopen_unread(&mut self) -> Result<(), SnapshotError> {
        let state = Arc::clone(&self.state);
        let mut state = write(&state);
        // Nobody gets another while the lock is held.
        if state.engine.as_ref().is_some_and(|engine| Arc::strong_count(engine) > 1) {
            return Err(SnapshotError::BeingRead);
        }
        self.open_in(&mut state)
    }

    /// The database, opened again if need be.
    fn engine(&mut self) -> Result<Arc<E>, SnapshotError> {
        if let Some(engine) = &read(&self.state).engine {
            return Ok(engine.clone());
        }
        if self.failed.strong_count() > 0 {
            return Err(SnapshotError::BeingRead);
        }
        let state = Arc::clone(&self.state);
        let mut state = write(&state);
        self.open_in(&mut state)?;
        Ok(state.engine.clone().expect("just opened"))
    }

    /// Opens the database, which nobody has but the state.
    fn open_in(&mut self, state: &mut State<E>) -> Result<(), SnapshotError> {
        // The engine would make another, without what was in this one.
        if !is_made::<E>(&self.path)? {
            return Err(SnapshotError::Corrupted("it was removed while it was open".into()));
        }
        // It has the lock.
        state.engine = None;
        let opened = E::open(&self.path, &self.options).and_then(State::of);
        self.is_stale = opened.is_err();
        match opened {
            Ok(opened) => *state = opened,
            Err(error) => {
                if let Ok(opened) = E::open_to_read(&self.path).and_then(State::of) {
                    *state = opened;
                }
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Whether the directory is a fold. If not there is nothing in it, or what is left of a making that
/// was interrupted; anything else is refused.
fn is_made<E: Engine>(path: &Path) -> Result<bool, SnapshotError> {
    let failed = || io_error("opening the fold");
    let names = fs::read_dir(path).map_err(failed())?;
    let names: Result<Vec<_>, _> = names.map(|name| name.map(|name| name.file_name())).collect();
    let names = names.map_err(failed())?;
    let is_complete = E::is_complete(path).map_err(failed())?;
    let label = read_label(path).map_err(failed())?;
    if let Some(format) = format_of::<E>(&label).filter(|format| *format != FORMAT) {
        let known = format!("this program knows format {FORMAT} of a fold on {}", E::NAME);
        return Err(SnapshotError::InvalidFormat(format!("format {format}; {known}")));
    }
    let (ours, made) = (label_of::<E>(FORMAT), made_label::<E>());
    if label == made.as_bytes() {
        return match is_complete && E::is_whole(path).map_err(failed())? {
            true => Ok(true),
            false => Err(SnapshotError::Corrupted("a part of it was removed".into())),
        };
    }
    let is_unfinished = |name: &str| name == LABEL || E::is_unfinished(name);
    if is_complete && label.starts_with(ours.as_bytes()) && made.as_bytes().starts_with(&label) {
        Ok(true)
    } else if is_complete {
        Err(SnapshotError::InvalidFormat("a database of something else".into()))
    } else if ours.as_bytes().starts_with(&label)
        && names.iter().all(|name| name.to_str().is_some_and(is_unfinished))
    {
        Ok(false)
    } else {
        Err(SnapshotError::InvalidFormat("a directory of something else".into()))
    }
}

/// The database in an artifact, and its cursor.
fn open_copy<E: Engine>(data: &Path) -> Result<(E, WatchCursor), SnapshotError> {
    if !is_made::<E>(data)? {
        return Err(SnapshotError::Corrupted("there is no database".into()));
    }
    let (engine, stored) = E::open_to_read(data)?;
    Ok((engine, cursor_of(stored)?))
}

fn cursor_of(stored: Option<Vec<u8>>) -> Result<WatchCursor, SnapshotError> {
    let cursor = WatchCursor::from_bytes(stored.unwrap_or_default());
    cursor.map_err(|error| SnapshotError::Corrupted(error.to_string()))
}

fn imported_in(path: &Path) -> PathBuf {
    path.join(IMPORTED)
}

fn label_of<E: Engine>(format: u32) -> String {
    format!("slipstream: a fold on {}, format {format}\n", E::NAME)
}

/// Of a database that was made.
fn made_label<E: Engine>() -> String {
    label_of::<E>(FORMAT) + "made\n"
}

/// `None` if it is not a whole label of this engine's.
fn format_of<E: Engine>(label: &[u8]) -> Option<u32> {
    let label = label.split_inclusive(|byte| *byte == b'\n').next()?;
    let (_, digits) = std::str::from_utf8(label).ok()?.trim_end().rsplit_once(' ')?;
    let format = digits.parse().ok()?;
    (label == label_of::<E>(format).as_bytes()).then_some(format)
}

/// Nothing if there is none.
fn read_label(path: &Path) -> io::Result<Vec<u8>> {
    let mut label = Vec::new();
    match File::open(path.join(LABEL)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        file => {
            file?.take(LABEL_MAX).read_to_end(&mut label)?;
        }
    }
    Ok(label)
}

/// What is there of it stays as it is meanwhile: somebody else may be making this fold as well.
fn write_label(path: &Path, label: &str) -> io::Result<()> {
    let mut options = File::options();
    let mut file = options.create(true).truncate(false).write(true).open(path.join(LABEL))?;
    file.write_all(label.as_bytes())?;
    file.sync_all()?;
    File::open(path)?.sync_all()
}

/// An engine that panics while it is opened leaves a state without one.
fn read<E>(state: &RwLock<State<E>>) -> RwLockReadGuard<'_, State<E>> {
    state.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<E>(state: &RwLock<State<E>>) -> RwLockWriteGuard<'_, State<E>> {
    state.write().unwrap_or_else(PoisonError::into_inner)
}

impl<E: Engine> SnapshotStore for EngineSnapshot<E> {
    type Reader = EngineReader<E>;

    const FILES: Option<FoldFiles<Self>> = Some(FoldFiles {
        backend: E::NAME,
        generation: FORMAT,
        owns: |name| name == LABEL || E::owns(name),
        copy: Self::copy_to,
        fold: Path::to_path_buf,
        imported: imported_in,
        verify: |data| Ok(open_copy::<E>(data)?.1),
        entries: |data, f| open_copy::<E>(data)?.0.for_each_in_range("", f),
    });

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, EngineOptions::default())
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        let changes = record::changes(batch)?;
        if self.is_stale {
            self.close();
        }
        let engine = self.engine()?;
        let written = engine.write(&changes, cursor, self.options.sync);
        if written.is_err() {
            self.close();
            return written;
        }
        write(&self.state).cursor = cursor.clone();
        self.imported.passed(cursor);
        Ok(())
    }

    fn reader(&self) -> EngineReader<E> {
        EngineReader(self.state.clone())
    }

    fn wait_for_tables(&self) {
        if let Some(engine) = &read(&self.state).engine {
            engine.wait_for_tables();
        }
    }

    fn imported(&self) -> Option<&ExportManifest> {
        self.imported.manifest()
    }

    fn set_imported(&mut self, manifest: &ExportManifest) -> io::Result<()> {
        self.imported.set(manifest)
    }
}

impl<E> Clone for EngineReader<E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<E: Engine> EngineReader<E> {
    fn engine(&self) -> Result<Arc<E>, SnapshotError> {
        read(&self.0).engine.clone().ok_or_else(|| SnapshotError::Engine {
            engine: E::NAME,
            message: "a write failed, and the database is not open again yet".into(),
        })
    }
}

impl<E: Engine> SnapshotReader for EngineReader<E> {
    fn cursor(&self) -> WatchCursor {
        read(&self.0).cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        if key.is_empty() {
            return Ok(None);
        }
        self.engine()?.get(key)
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.engine()?.for_each_in_range(prefix, f)
    }
}

impl<E: Engine> SnapshotReader for EngineSnapshot<E> {
    fn cursor(&self) -> WatchCursor {
        self.reader().cursor()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        self.reader().get(key)
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.reader().for_each_in_range(prefix, f)
    }
}

#[cfg(test)]
mod tests;
