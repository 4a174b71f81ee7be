//! A fold on a key-value engine: all that does not depend on which one.
//!
//! An engine that implements [`Engine`] is a [`SnapshotStore`] as [`EngineSnapshot`]; how entries
//! become bytes is in [`record`].

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard, Weak};
use std::{fs, io};

use super::record::{self, Change};
use super::{EntryRef, SnapshotError, SnapshotReader, SnapshotStore, io_error};
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

/// An open database with batches that are written whole or not at all, ordered by key, which has
/// a directory to itself and locks it.
pub trait Engine: Send + Sync + Sized + 'static {
    /// What it is called.
    const NAME: &'static str;
    /// The file that is written last when a database is made: without it nothing is stored.
    const COMPLETE: &'static str;

    /// Whether a making that was interrupted may have left a file of this name.
    fn is_unfinished(name: &str) -> bool;

    /// Removes what such a making has left and [`open`](Self::open) would stumble over, unless
    /// somebody is at it.
    fn clear_unfinished(path: &Path) -> Result<(), SnapshotError> {
        let _ = path;
        Ok(())
    }

    /// Opens the database, or makes it in a directory with nothing in it but what
    /// [`is_unfinished`](Self::is_unfinished); and its cursor, as bytes, if it has one.
    fn open(path: &Path) -> Result<(Self, Option<Vec<u8>>), SnapshotError>;

    /// Makes the changes and sets the cursor, at once; on disk when it returns if it is to `sync`.
    fn write(
        &self,
        changes: &[Change<'_>],
        cursor: &WatchCursor,
        sync: bool,
    ) -> Result<(), SnapshotError>;

    /// As [`SnapshotReader::get`]; the key is not empty.
    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError>;

    /// As [`SnapshotReader::for_each_in_range`].
    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError>;
}

/// A fold on disk, in a directory of its own.
///
/// A batch is in the page cache when `apply` returns, or on disk with
/// [`load_synced`](Self::load_synced).
///
/// Engines refuse everything once a write has failed. The store then opens its own again before the
/// next batch, once no reader is in the middle of a call ([`SnapshotError::BeingRead`]): a failure
/// that has passed heals by itself.
pub struct EngineSnapshot<E> {
    path: PathBuf,
    sync: bool,
    state: Arc<RwLock<State<E>>>,
    /// The database that a write failed on.
    failed: Weak<E>,
}

/// Reads an [`EngineSnapshot`] while it applies. The directory stays locked while a call goes on.
pub struct EngineReader<E>(Arc<RwLock<State<E>>>);

struct State<E> {
    /// Gone while the database is to be opened again.
    engine: Option<Arc<E>>,
    cursor: WatchCursor,
}

impl<E: Engine> State<E> {
    fn open(path: &Path) -> Result<Self, SnapshotError> {
        let (engine, stored) = E::open(path)?;
        let cursor = WatchCursor::from_bytes(stored.unwrap_or_default());
        let cursor = cursor.map_err(|error| SnapshotError::Corrupted(error.to_string()))?;
        Ok(Self { engine: Some(Arc::new(engine)), cursor })
    }
}

impl<E: Engine> EngineSnapshot<E> {
    /// [`load`](SnapshotStore::load), syncing every batch.
    pub fn load_synced(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, true)
    }

    fn load_with(path: &Path, sync: bool) -> Result<(WatchCursor, Self), SnapshotError> {
        prepare::<E>(path)?;
        let state = State::open(path)?;
        let cursor = state.cursor.clone();
        let (path, state) = (path.to_owned(), Arc::new(RwLock::new(state)));
        Ok((cursor, Self { path, sync, state, failed: Weak::new() }))
    }

    /// The database, opened again if need be.
    fn engine(&self) -> Result<Arc<E>, SnapshotError> {
        if let Some(engine) = &read(&self.state).engine {
            return Ok(engine.clone());
        }
        if self.failed.strong_count() > 0 {
            return Err(SnapshotError::BeingRead);
        }
        let state = State::open(&self.path)?;
        let engine = state.engine.clone().expect("just opened");
        *self.state.write().expect("nobody panics with the lock") = state;
        Ok(engine)
    }
}

/// Sees to it that `path` is a database, or that nothing else is lost when one is made there.
fn prepare<E: Engine>(path: &Path) -> Result<(), SnapshotError> {
    let names = match fs::read_dir(path) {
        Ok(names) => names,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // The engine would make what is above, too.
            return fs::create_dir(path).map_err(io_error("making the directory of the fold"));
        }
        Err(error) => return Err(io_error("opening the fold")(error)),
    };
    let names: Result<Vec<_>, _> = names.map(|name| name.map(|name| name.file_name())).collect();
    let names = names.map_err(io_error("opening the fold"))?;
    let is_complete = names.iter().any(|name| name == E::COMPLETE);
    if is_complete {
        Ok(())
    } else if names.iter().all(|name| name.to_str().is_some_and(E::is_unfinished)) {
        E::clear_unfinished(path)
    } else {
        Err(SnapshotError::InvalidFormat("a directory of something else".into()))
    }
}

fn read<E>(state: &RwLock<State<E>>) -> RwLockReadGuard<'_, State<E>> {
    state.read().expect("nobody panics with the lock")
}

impl<E: Engine> SnapshotStore for EngineSnapshot<E> {
    type Reader = EngineReader<E>;

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, false)
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        let changes = record::changes(batch)?;
        let engine = self.engine()?;
        let written = engine.write(&changes, cursor, self.sync);
        let mut state = self.state.write().expect("nobody panics with the lock");
        match written {
            Ok(()) => state.cursor = cursor.clone(),
            Err(_) => {
                state.engine = None;
                self.failed = Arc::downgrade(&engine);
            }
        }
        written
    }

    fn reader(&self) -> EngineReader<E> {
        EngineReader(self.state.clone())
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
