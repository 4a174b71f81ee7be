//! A [slipstream] fold on RocksDB: for folds larger than memory, where its tools are at
//! home. It is a crate of its own because RocksDB takes long to build.
//!
//! ```
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
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use rocksdb::checkpoint::Checkpoint;
use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompressionType, DBRecoveryMode, Error, ErrorKind, Options, PrefixRange, ReadOptions,
    WriteBatch, WriteOptions,
};
use slipstream::engine::{Engine, EngineOptions, EngineReader, EngineSnapshot};
use slipstream::record::{self, Change};
use slipstream::{EntryRef, KvEntry, SnapshotError, WatchCursor};

/// A fold on RocksDB.
pub type RocksDbSnapshot = EngineSnapshot<RocksDb>;
/// Reads a [`RocksDbSnapshot`] while it applies.
pub type RocksDbReader = EngineReader<RocksDb>;

const CURSOR: &str = "cursor";
const DATA: &str = "data";
const META: &str = "meta";

/// An open database of RocksDB: entries in one column family, the cursor in another.
pub struct RocksDb(DB);

impl RocksDb {
    fn family(&self, name: &str) -> &ColumnFamily {
        self.0.cf_handle(name).expect("opened with it")
    }
}

impl Engine for RocksDb {
    const NAME: &'static str = "RocksDB";

    /// The name of the manifest comes last, and whole.
    fn is_complete(path: &Path) -> io::Result<bool> {
        path.join("CURRENT").try_exists()
    }

    fn is_unfinished(name: &str) -> bool {
        let unfinished = ["LOCK", "LOG", "IDENTITY", "MANIFEST-", "OPTIONS-", "000000.dbtmp"];
        unfinished.iter().any(|known| name.starts_with(known))
    }

    fn open(
        path: &Path,
        settings: &EngineOptions,
    ) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        // A log counts up to where it was torn or damaged, and no log behind that one does: any
        // other mode refuses what a crash leaves, or goes on with what comes after a gap.
        options.set_wal_recovery_mode(DBRecoveryMode::PointInTime);
        // Its own log of what it does.
        options.set_keep_log_file_num(2);
        let families = [
            ColumnFamilyDescriptor::new("default", Options::default()),
            ColumnFamilyDescriptor::new(DATA, data_options(settings)),
            ColumnFamilyDescriptor::new(META, Options::default()),
        ];
        let engine = Self(DB::open_cf_descriptors(&options, path, families).map_err(error)?);
        let cursor = engine.0.get_cf(engine.family(META), CURSOR).map_err(error)?;
        Ok((engine, cursor))
    }

    fn write(
        &self,
        changes: &[Change<'_>],
        cursor: &WatchCursor,
        sync: bool,
    ) -> Result<(), SnapshotError> {
        let data = self.family(DATA);
        let mut write = WriteBatch::default();
        let mut scratch = Vec::new();
        for change in changes {
            match change.record(&mut scratch) {
                Some(record) => write.put_cf(data, change.key, record),
                None => write.delete_cf(data, change.key),
            }
        }
        write.put_cf(self.family(META), CURSOR, cursor.as_bytes());
        let mut options = WriteOptions::default();
        options.set_sync(sync);
        self.0.write_opt(write, &options).map_err(error)
    }

    /// A checkpoint of the engine's own: tables are linked, logs are copied.
    fn copy(&self, _: &Path, to: &Path) -> Result<(), SnapshotError> {
        Checkpoint::new(&self.0).and_then(|made| made.create_checkpoint(to)).map_err(error)
    }

    fn owns(name: &str) -> bool {
        let numbered = |end: &str| {
            let number = name.strip_suffix(end);
            number.is_some_and(|n| !n.is_empty() && n.bytes().all(|byte| byte.is_ascii_digit()))
        };
        let begins = ["LOCK", "LOG", "IDENTITY", "CURRENT", "MANIFEST-", "OPTIONS-"];
        !name.contains('/')
            && (begins.iter().any(|known| name.starts_with(known))
                || [".sst", ".log", ".blob"].into_iter().any(numbered))
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        let stored = self.0.get_pinned_cf(self.family(DATA), key).map_err(error)?;
        let Some(stored) = stored else { return Ok(None) };
        record::decode(key.as_bytes(), &stored).map(|entry| Some(entry.to_entry()))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let mut options = ReadOptions::default();
        options.set_iterate_range(PrefixRange(prefix));
        // An iterator of the engine is of the moment in which it was made.
        let mut iterator = self.0.raw_iterator_cf_opt(self.family(DATA), options);
        iterator.seek(prefix);
        while let Some((key, stored)) = iterator.item() {
            if f(record::decode(key, stored)?).is_break() {
                return Ok(());
            }
            iterator.next();
        }
        iterator.status().map_err(error)
    }
}

/// For very many keys, most of which are asked for because they are there: small filters, none at
/// the last level, an index in parts that need not stay in memory, and compression only at the last
/// level, where nearly all of the data is.
fn data_options(settings: &EngineOptions) -> Options {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut blocks = BlockBasedOptions::default();
    if let Some(cache) = settings.cache_bytes {
        blocks.set_block_cache(&Cache::new_lru_cache(bytes(cache)));
    }
    blocks.set_ribbon_filter(10.0);
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_top_level_index_and_filter(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    if let Some(memtable) = settings.memtable_bytes {
        options.set_write_buffer_size(bytes(memtable));
    }
    options.set_optimize_filters_for_hits(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options
}

fn error(error: Error) -> SnapshotError {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::IOError if is_lock_held(&message) => SnapshotError::InUse,
        ErrorKind::IOError => SnapshotError::Io {
            doing: "in the database of the fold",
            source: io::Error::new(io_kind(&message), message),
        },
        ErrorKind::Corruption => SnapshotError::Corrupted(message),
        ErrorKind::InvalidArgument | ErrorKind::NotSupported => {
            SnapshotError::InvalidFormat(message)
        }
        _ => SnapshotError::Engine { engine: RocksDb::NAME, message },
    }
}

/// By another store of this process, or by another process. The engine has no code for it.
fn is_lock_held(message: &str) -> bool {
    let by_another = message.starts_with("IO error: While lock file: ")
        && message.ends_with("/LOCK: Resource temporarily unavailable");
    by_another || message.starts_with("IO error: lock hold by current process")
}

/// The engine begins or ends with what the system says.
fn io_kind(message: &str) -> io::ErrorKind {
    let kinds = [
        ("No space left on device", io::ErrorKind::StorageFull),
        ("Permission denied", io::ErrorKind::PermissionDenied),
        ("Read-only file system", io::ErrorKind::ReadOnlyFilesystem),
        ("No such file or directory", io::ErrorKind::NotFound),
    ];
    let message = message.trim_start_matches("IO error: ");
    let said = kinds.iter().find(|(text, _)| message.starts_with(text) || message.ends_with(text));
    said.map_or(io::ErrorKind::Other, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_that_is_held_is_in_use() {
        let held = [
            "IO error: While lock file: /a/LOCK: Resource temporarily unavailable",
            "IO error: lock hold by current process, acquire time 1 acquiring thread 2: /a/LOCK: No locks available",
        ];
        for message in held {
            assert!(is_lock_held(message), "{message}");
        }
        let others = [
            (
                "IO error: while open a file for lock: /a/LOCK: Permission denied",
                "PermissionDenied",
            ),
            (
                "IO error: while open a file for lock: /a/LOCK: Read-only file system",
                "ReadOnlyFilesystem",
            ),
            (
                "IO error: No space left on device: while open a file for lock: /a/LOCK: No space left on device",
                "StorageFull",
            ),
            (
                "IO error: No such file or directory: while open a file for lock: /a/LOCK",
                "NotFound",
            ),
            ("IO error: While lock file: /a/LOCK: No locks available", "Other"),
            (
                "IO error: While appending to file: /lock hold by current process/LOCK: Input/output error",
                "Other",
            ),
        ];
        for (message, kind) in others {
            assert!(!is_lock_held(message), "{message}");
            assert_eq!(format!("{:?}", io_kind(message)), kind, "{message}");
        }
    }
}
