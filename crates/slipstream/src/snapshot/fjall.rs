//! A fold on fjall, a log-structured engine in Rust: for folds larger than memory.
//!
//! Entries are in one keyspace, the cursor in another, and a batch changes both at once.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Slice, Snapshot};

use super::{EntryRef, SnapshotError, SnapshotReader, SnapshotStore, io_error, record};
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

const CURSOR: &str = "cursor";

/// A fold on disk, in a directory of its own.
///
/// A batch is in the page cache when `apply` returns, or on disk with
/// [`load_synced`](Self::load_synced).
///
/// fjall refuses everything once a write has failed. The store then opens it again before the next
/// batch: a failure that has passed heals by itself.
pub struct FjallSnapshot {
    path: PathBuf,
    sync: bool,
    open: Arc<RwLock<State>>,
    record: Vec<u8>,
}

/// Reads a [`FjallSnapshot`] while it applies. The directory stays locked as long as a range goes
/// on.
#[derive(Clone)]
pub struct FjallReader(Arc<RwLock<State>>);

struct State {
    /// Gone while the database is to be opened again.
    open: Option<Open>,
    cursor: WatchCursor,
}

#[derive(Clone)]
struct Open {
    database: Database,
    data: Keyspace,
    meta: Keyspace,
}

impl FjallSnapshot {
    /// [`load`](SnapshotStore::load), syncing every batch.
    pub fn load_synced(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, true)
    }

    fn load_with(path: &Path, sync: bool) -> Result<(WatchCursor, Self), SnapshotError> {
        prepare(path)?;
        let (open, cursor) = Open::at(path)?;
        let state = State { open: Some(open), cursor: cursor.clone() };
        let open = Arc::new(RwLock::new(state));
        Ok((cursor, Self { path: path.to_owned(), sync, open, record: Vec::new() }))
    }

    /// The database, opened again if need be.
    fn open(&self) -> Result<Open, SnapshotError> {
        if let Some(open) = &read(&self.open).open {
            return Ok(open.clone());
        }
        let (open, cursor) = Open::at(&self.path)?;
        let mut state = self.open.write().expect("nobody panics with the lock");
        *state = State { open: Some(open.clone()), cursor };
        Ok(open)
    }
}

impl Open {
    fn at(path: &Path) -> Result<(Self, WatchCursor), SnapshotError> {
        let database = Database::builder(path).open().map_err(error)?;
        let data = database.keyspace("data", KeyspaceCreateOptions::default).map_err(error)?;
        let meta = database.keyspace("meta", KeyspaceCreateOptions::default).map_err(error)?;
        let stored = meta.get(CURSOR).map_err(error)?;
        let cursor = WatchCursor::from_bytes(stored.map_or(Vec::new(), |bytes| bytes.to_vec()));
        let cursor = cursor.map_err(|error| SnapshotError::Corrupted(error.to_string()))?;
        Ok((Self { database, data, meta }, cursor))
    }
}

/// Sees to it that `path` is a database, or that nothing else is lost when one is made there.
fn prepare(path: &Path) -> Result<(), SnapshotError> {
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
    if names.iter().any(|name| name == "version") {
        return Ok(());
    }
    // The version is written last: without it the making was interrupted, and nothing is stored.
    let unfinished = ["lock", "0.jnl", "keyspaces"];
    if !names.iter().all(|name| unfinished.iter().any(|known| name == known)) {
        return Err(SnapshotError::InvalidFormat("a directory of something else".into()));
    }
    if names.iter().any(|name| name == "0.jnl") {
        fs::remove_file(path.join("0.jnl")).map_err(io_error("removing an unfinished fold"))?;
    }
    Ok(())
}

fn error(error: fjall::Error) -> SnapshotError {
    match error {
        fjall::Error::Io(error) => io_error("in the database of the fold")(error),
        fjall::Error::Locked => SnapshotError::InUse,
        fjall::Error::InvalidVersion(version) => {
            SnapshotError::InvalidFormat(format!("a database of fjall's version {version:?}"))
        }
        fjall::Error::JournalRecovery(_)
        | fjall::Error::Decompress(_)
        | fjall::Error::InvalidTrailer
        | fjall::Error::InvalidTag(_)
        | fjall::Error::Unrecoverable => SnapshotError::Corrupted(error.to_string()),
        error => SnapshotError::Engine { engine: "fjall", message: error.to_string() },
    }
}

impl SnapshotStore for FjallSnapshot {
    type Reader = FjallReader;

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, false)
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        let changes = record::changes(batch)?;
        let open = self.open()?;
        let mode = if self.sync { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut write = open.database.batch().durability(Some(mode));
        for (key, entry) in changes {
            match entry {
                Some(entry) => {
                    record::encode(entry.version, &entry.value, &mut self.record);
                    write.insert(&open.data, key, Slice::from(&self.record[..]));
                }
                None => write.remove(&open.data, key),
            }
        }
        write.insert(&open.meta, CURSOR, cursor.as_bytes());
        let written = write.commit();
        drop(open);
        let mut state = self.open.write().expect("nobody panics with the lock");
        match written {
            Ok(()) => {
                state.cursor = cursor.clone();
                Ok(())
            }
            Err(failed) => {
                state.open = None;
                Err(error(failed))
            }
        }
    }

    fn reader(&self) -> FjallReader {
        FjallReader(self.open.clone())
    }
}

fn read(state: &RwLock<State>) -> RwLockReadGuard<'_, State> {
    state.read().expect("nobody panics with the lock")
}

impl FjallReader {
    /// The entries, and a moment between two batches. (Without one the engine shows half of a batch
    /// that is being written.)
    fn moment(&self) -> Result<(Keyspace, Snapshot), SnapshotError> {
        let state = read(&self.0);
        let open = state.open.as_ref().ok_or_else(|| error(fjall::Error::Poisoned))?;
        Ok((open.data.clone(), open.database.snapshot()))
    }
}

impl SnapshotReader for FjallReader {
    fn cursor(&self) -> WatchCursor {
        read(&self.0).cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        if key.is_empty() {
            return Ok(None);
        }
        let (data, moment) = self.moment()?;
        let Some(stored) = moment.get(&data, key).map_err(error)? else { return Ok(None) };
        record::decode(key.as_bytes(), &stored).map(|entry| Some(entry.to_entry()))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let (data, moment) = self.moment()?;
        for item in moment.prefix(&data, prefix) {
            let (key, stored) = item.into_inner().map_err(error)?;
            if f(record::decode(&key, &stored)?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl SnapshotReader for FjallSnapshot {
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
