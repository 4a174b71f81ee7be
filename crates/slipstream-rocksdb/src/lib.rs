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

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompressionType, Error, ErrorKind, Options, PrefixRange, ReadOptions, WriteBatch,
    WriteOptions,
};
use slipstream::engine::{Engine, EngineReader, EngineSnapshot};
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
    const COMPLETE: &'static str = "CURRENT";

    fn is_unfinished(name: &str) -> bool {
        let unfinished = ["LOCK", "LOG", "IDENTITY", "MANIFEST-", "OPTIONS-", "000000.dbtmp"];
        unfinished.iter().any(|known| name.starts_with(known))
    }

    fn open(path: &Path) -> Result<(Self, Option<Vec<u8>>), SnapshotError> {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        // Its own log of what it does.
        options.set_keep_log_file_num(2);
        let families = [
            ColumnFamilyDescriptor::new("default", Options::default()),
            ColumnFamilyDescriptor::new(DATA, data_options()),
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
fn data_options() -> Options {
    let mut blocks = BlockBasedOptions::default();
    blocks.set_ribbon_filter(10.0);
    blocks.set_index_type(BlockBasedIndexType::TwoLevelIndexSearch);
    blocks.set_partition_filters(true);
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_pin_top_level_index_and_filter(true);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.set_optimize_filters_for_hits(true);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_compression_type(DBCompressionType::None);
    options.set_bottommost_compression_type(DBCompressionType::Zstd);
    options
}

fn error(error: Error) -> SnapshotError {
    let message = error.to_string();
    match error.kind() {
        // "lock hold by current process", "While lock file: …/LOCK: Resource temporarily unavailable".
        ErrorKind::IOError if message.contains("/LOCK") => SnapshotError::InUse,
        ErrorKind::IOError if message.contains("No space left on device") => SnapshotError::Io {
            doing: "in the database of the fold",
            source: io::Error::new(io::ErrorKind::StorageFull, message),
        },
        ErrorKind::Corruption => SnapshotError::Corrupted(message),
        ErrorKind::InvalidArgument | ErrorKind::NotSupported => {
            SnapshotError::InvalidFormat(message)
        }
        _ => SnapshotError::Engine { engine: RocksDb::NAME, message },
    }
}
