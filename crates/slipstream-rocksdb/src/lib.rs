//! A [slipstream] fold on RocksDB: for folds larger than memory, where its tools are at
//! home. It is a crate of its own because RocksDB takes long to build.
//!
//! ```
//! # #[cfg(feature = "rocksdb")] {
//! use slipstream::{KvEntry, KvUpdate, SnapshotReader, SnapshotStore, VersionToken, WatchCursor};
//! use slipstream_rocksdb::RocksDbSnapshot;
//!
//! let dir = tempfile::tempdir()?;
//! let (cursor, mut fold) = RocksDbSnapshot::load(&dir.path().join("fold"))?;
//! assert!(cursor.is_none());
//! let version = VersionToken::from_u64(1);
//! let put = KvEntry { key: "rules.aws".into(), value: "on".into(), version };
//! fold.apply(&[KvUpdate::Put(put)], &WatchCursor::from_bytes(vec![1])?)?;
//! assert_eq!(fold.range("rules.")?.len(), 1);
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Without the feature `rocksdb` the crate is empty.
#![cfg(feature = "rocksdb")]

mod engine;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use rocksdb::{WriteBatch, WriteOptions};
use slipstream::{
    EntryRef, KvEntry, KvUpdate, SnapshotError, SnapshotReader, SnapshotStore, WatchCursor, record,
};

use crate::engine::{Engine, error};

/// A fold on disk, in a directory of its own.
///
/// Entries are in one column family, the cursor in another, and a batch changes both at once. It is
/// in the write-ahead log, in the page cache, when `apply` returns; on disk with
/// [`load_synced`](Self::load_synced).
///
/// RocksDB refuses everything once a write has failed. The store then opens it again before the next
/// batch: a failure that has passed heals by itself.
pub struct RocksDbSnapshot {
    path: PathBuf,
    sync: bool,
    state: Arc<RwLock<State>>,
    record: Vec<u8>,
}

/// Reads a [`RocksDbSnapshot`] while it applies. The directory stays locked as long as one is there.
#[derive(Clone)]
pub struct RocksDbReader(Arc<RwLock<State>>);

struct State {
    /// Gone while the database is to be opened again.
    engine: Option<Arc<Engine>>,
    cursor: WatchCursor,
}

impl RocksDbSnapshot {
    /// [`load`](SnapshotStore::load), syncing every batch.
    pub fn load_synced(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, true)
    }

    fn load_with(path: &Path, sync: bool) -> Result<(WatchCursor, Self), SnapshotError> {
        engine::prepare(path)?;
        let (engine, cursor) = Engine::open(path)?;
        let state = State { engine: Some(Arc::new(engine)), cursor: cursor.clone() };
        let state = Arc::new(RwLock::new(state));
        Ok((cursor, Self { path: path.to_owned(), sync, state, record: Vec::new() }))
    }

    /// The database, opened again if need be.
    fn engine(&self) -> Result<Arc<Engine>, SnapshotError> {
        if let Some(engine) = &read(&self.state).engine {
            return Ok(engine.clone());
        }
        let (engine, cursor) = Engine::open(&self.path)?;
        let engine = Arc::new(engine);
        let mut state = self.state.write().expect("nobody panics with the lock");
        *state = State { engine: Some(engine.clone()), cursor };
        Ok(engine)
    }
}

impl SnapshotStore for RocksDbSnapshot {
    type Reader = RocksDbReader;

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, false)
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        let changes = record::changes(batch)?;
        let engine = self.engine()?;
        let mut write = WriteBatch::default();
        for (key, entry) in changes {
            match entry {
                Some(entry) => {
                    record::encode(entry.version, &entry.value, &mut self.record);
                    write.put_cf(engine.data(), key, &self.record);
                }
                None => write.delete_cf(engine.data(), key),
            }
        }
        write.put_cf(engine.meta(), engine::CURSOR, cursor.as_bytes());
        let mut options = WriteOptions::default();
        options.set_sync(self.sync);
        let written = engine.database().write_opt(write, &options);
        drop(engine);
        let mut state = self.state.write().expect("nobody panics with the lock");
        match written {
            Ok(()) => {
                state.cursor = cursor.clone();
                Ok(())
            }
            Err(failed) => {
                state.engine = None;
                Err(error(failed))
            }
        }
    }

    fn reader(&self) -> RocksDbReader {
        RocksDbReader(self.state.clone())
    }
}

fn read(state: &RwLock<State>) -> RwLockReadGuard<'_, State> {
    state.read().expect("nobody panics with the lock")
}

impl RocksDbReader {
    fn engine(&self) -> Result<Arc<Engine>, SnapshotError> {
        read(&self.0).engine.clone().ok_or_else(|| SnapshotError::Engine {
            engine: "RocksDB",
            message: "a write failed, and the database is not open again yet".into(),
        })
    }
}

impl SnapshotReader for RocksDbReader {
    fn cursor(&self) -> WatchCursor {
        read(&self.0).cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        let engine = self.engine()?;
        let stored = engine.database().get_pinned_cf(engine.data(), key).map_err(error)?;
        let Some(stored) = stored else { return Ok(None) };
        record::decode(key.as_bytes(), &stored).map(|entry| Some(entry.to_entry()))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let engine = self.engine()?;
        // An iterator of the engine is of the moment in which it was made.
        let mut cursor = engine.iterate(prefix);
        while let Some((key, stored)) = cursor.item() {
            if f(record::decode(key, stored)?).is_break() {
                return Ok(());
            }
            cursor.next();
        }
        cursor.status().map_err(error)
    }
}

impl SnapshotReader for RocksDbSnapshot {
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
