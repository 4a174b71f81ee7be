//! A fold on fjall, a log-structured engine in Rust: for folds larger than memory.
//!
//! Entries are in one keyspace, the cursor in another, and a batch changes both at once.

mod copy;

use std::fs::{self, File, TryLockError};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use ::fjall::{Database, DatabaseBuilder, Keyspace, KeyspaceCreateOptions, PersistMode, Readable};

use self::copy::Journals;
use super::engine::{Engine, EngineOptions, EngineReader, EngineSnapshot};
use super::record::{self, Change};
use super::{EntryRef, SnapshotError, io_error};
use crate::kv::{KvEntry, WatchCursor};

/// A fold on fjall.
pub type FjallSnapshot = EngineSnapshot<Fjall>;
/// Reads a [`FjallSnapshot`] while it applies.
pub type FjallReader = EngineReader<Fjall>;

const CURSOR: &str = "cursor";
const FIRST_JOURNAL: &str = "0.jnl";
const LOCK: &str = "lock";
const VERSION: &str = "version";
/// How long somebody waits for workers.
const QUIESCE: Duration = Duration::from_secs(2);
/// Of what is in it; a number follows.
const VERSION_BEGIN: &[u8] = b"FJL";

/// An open database of fjall.
pub struct Fjall {
    database: Database,
    data: Keyspace,
    meta: Keyspace,
}

impl Engine for Fjall {
    const NAME: &'static str = "fjall";

    /// The version comes last. Its file is empty, or holds part of it, while it is being written and
    /// after that failed on a full disk.
    fn is_complete(path: &Path) -> io::Result<bool> {
        match fs::read(path.join(VERSION)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            version => Ok(!VERSION_BEGIN.starts_with(&version?)),
        }
    }

    /// The engine makes keyspaces and journals that it does not find, and drops the entries that were
    /// in them without a word.
    fn is_whole(path: &Path) -> io::Result<bool> {
        copy::is_whole(path)
    }

    fn is_unfinished(name: &str) -> bool {
        [LOCK, FIRST_JOURNAL, "keyspaces", VERSION].contains(&name)
    }

    /// It would not write over the files of a making that was interrupted.
    fn clear_unfinished(path: &Path) -> Result<(), SnapshotError> {
        let failed = || io_error("removing an unfinished fold");
        // The engine's own lock: whoever makes a database holds it from before the journal.
        let lock = File::options().create(true).truncate(false).write(true).open(path.join(LOCK));
        let lock = lock.map_err(failed())?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => SnapshotError::InUse,
            TryLockError::Error(error) => failed()(error),
        })?;
        // It may have been completed since the directory was read.
        if Self::is_complete(path).map_err(failed())? {
            return Ok(());
        }
        for name in [FIRST_JOURNAL, VERSION] {
            match fs::remove_file(path.join(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed()(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn open(
        path: &Path,
        options: &EngineOptions,
    ) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        let mut database = Database::builder(path);
        if let Some(bytes) = options.cache_bytes {
            database = database.cache_size(bytes);
        }
        Self::open_built(database, options)
    }

    /// Without the workers, who would begin to write tables anew.
    fn open_to_read(path: &Path) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        let database = Database::builder(path).worker_threads_unchecked(0);
        Self::open_built(database, &EngineOptions::default())
    }

    fn write(
        &self,
        changes: &[Change<'_>],
        cursor: &WatchCursor,
        sync: bool,
    ) -> Result<(), SnapshotError> {
        let mode = if sync { PersistMode::SyncData } else { PersistMode::Buffer };
        let mut write = self.database.batch().durability(Some(mode));
        let mut scratch = Vec::new();
        for change in changes {
            match change.record(&mut scratch) {
                Some(record) => write.insert(&self.data, change.key, record),
                None => write.remove(&self.data, change.key),
            }
        }
        write.insert(&self.meta, CURSOR, cursor.as_bytes());
        write.commit().map_err(error)
    }

    /// By itself the engine goes on until four memtables wait.
    fn wait_for_tables(&self) {
        Self::wait_until(|| self.is_flushed());
    }

    fn copy(&self, from: &Path, to: &Path) -> Result<(), SnapshotError> {
        let journals = match self.flush()? {
            true => Journals::Empty,
            false => Journals::Copied,
        };
        self.database.persist(PersistMode::Buffer).map_err(error)?;
        copy::copy(from, to, journals)
    }

    /// Its worker has had no room for a table, or its journal none.
    fn has_failed(&self) -> bool {
        self.database.persist(PersistMode::Buffer).is_err()
    }

    fn owns(name: &str) -> bool {
        copy::owns(name)
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        let stored = self.database.snapshot().get(&self.data, key).map_err(error)?;
        let Some(stored) = stored else { return Ok(None) };
        record::decode(key.as_bytes(), &stored).map(|entry| Some(entry.to_entry()))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        // A moment between two batches; without one the engine shows half of a batch that is being
        // written.
        for item in self.database.snapshot().prefix(&self.data, prefix) {
            let (key, stored) = item.into_inner().map_err(error)?;
            if f(record::decode(&key, &stored)?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl Fjall {
    fn open_built(
        database: DatabaseBuilder<Database>,
        options: &EngineOptions,
    ) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        let database = database.open().map_err(error)?;
        let made_with = || {
            let made = KeyspaceCreateOptions::default();
            options.memtable_bytes.map_or(made.clone(), |bytes| made.max_memtable_size(bytes))
        };
        let data = database.keyspace("data", made_with).map_err(error)?;
        let meta = database.keyspace("meta", KeyspaceCreateOptions::default).map_err(error)?;
        let cursor = meta.get(CURSOR).map_err(error)?.map(|bytes| bytes.to_vec());
        Ok((Self { database, data, meta }, cursor))
    }

    /// Has what is in memory made into tables, and waits for that and for the other workers, for a while:
    /// a journal is read entry by entry when a database is opened, and is there whole until the cursor's
    /// few bytes are in a table, too. Whether all entries are in tables.
    fn flush(&self) -> Result<bool, SnapshotError> {
        for keyspace in [&self.data, &self.meta] {
            keyspace.rotate_memtable().map_err(error)?;
        }
        // Copying is easier when nobody compacts, and right in any case.
        let is_quiet = || self.is_flushed() && self.database.active_compactions() == 0;
        Self::wait_until(|| is_quiet() || self.has_failed());
        Ok(self.is_flushed())
    }

    fn is_flushed(&self) -> bool {
        [&self.data, &self.meta].iter().all(|of| of.sealed_memtable_count() == 0)
    }

    fn wait_until(done: impl Fn() -> bool) {
        let give_up_at = Instant::now() + QUIESCE;
        while !done() && Instant::now() < give_up_at {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

fn error(error: ::fjall::Error) -> SnapshotError {
    use ::fjall::{Error, LsmError};
    match error {
        Error::Io(error) | Error::Storage(LsmError::Io(error)) => {
            io_error("in the database of the fold")(error)
        }
        Error::Locked => SnapshotError::InUse,
        Error::InvalidVersion(version) => {
            SnapshotError::InvalidFormat(format!("a database of fjall's version {version:?}"))
        }
        Error::JournalRecovery(_)
        | Error::Decompress(_)
        | Error::InvalidTrailer
        | Error::InvalidTag(_)
        | Error::Unrecoverable
        | Error::Storage(_) => SnapshotError::Corrupted(error.to_string()),
        error => SnapshotError::Engine { engine: Fjall::NAME, message: error.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_as_large_as_it_is_told_to_be() {
        let dir = tempfile::tempdir().unwrap();
        let options = EngineOptions { cache_bytes: Some(5 << 20), ..EngineOptions::default() };
        let (engine, _) = Fjall::open(dir.path(), &options).unwrap();
        assert_eq!(engine.database.cache_capacity(), 5 << 20);
    }
}
