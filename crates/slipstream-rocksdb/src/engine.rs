//! RocksDB as a fold wants it.

use std::fs;
use std::io;
use std::path::Path;

use rocksdb::{
    BlockBasedIndexType, BlockBasedOptions, ColumnFamily, ColumnFamilyDescriptor, DB,
    DBCompressionType, DBRawIterator, Error, ErrorKind, Options, PrefixRange, ReadOptions,
};
use slipstream::{SnapshotError, WatchCursor};

pub(crate) const CURSOR: &str = "cursor";

const DATA: &str = "data";
const META: &str = "meta";

pub(crate) struct Engine(DB);

impl Engine {
    /// Opens the database, or makes it in an empty directory; its cursor.
    pub(crate) fn open(path: &Path) -> Result<(Self, WatchCursor), SnapshotError> {
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
        let stored = engine.0.get_cf(engine.meta(), CURSOR).map_err(error)?;
        let cursor = WatchCursor::from_bytes(stored.unwrap_or_default());
        let cursor = cursor.map_err(|error| SnapshotError::Corrupted(error.to_string()))?;
        Ok((engine, cursor))
    }

    pub(crate) fn database(&self) -> &DB {
        &self.0
    }

    pub(crate) fn data(&self) -> &ColumnFamily {
        self.0.cf_handle(DATA).expect("opened with it")
    }

    pub(crate) fn meta(&self) -> &ColumnFamily {
        self.0.cf_handle(META).expect("opened with it")
    }

    /// At the first entry whose key begins with `prefix`; ends behind the last.
    pub(crate) fn iterate(&self, prefix: &str) -> DBRawIterator<'_> {
        let mut options = ReadOptions::default();
        options.set_iterate_range(PrefixRange(prefix));
        let mut iterator = self.0.raw_iterator_cf_opt(self.data(), options);
        iterator.seek(prefix);
        iterator
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

/// Sees to it that `path` is a database, or that nothing else is lost when one is made there.
pub(crate) fn prepare(path: &Path) -> Result<(), SnapshotError> {
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
    if names.iter().any(|name| name == "CURRENT") {
        return Ok(());
    }
    // CURRENT is written last: without it the making was interrupted, and nothing is stored.
    let unfinished = ["LOCK", "LOG", "IDENTITY", "MANIFEST-", "OPTIONS-", "000000.dbtmp"];
    let is_unfinished = |name: &str| unfinished.iter().any(|known| name.starts_with(known));
    if !names.iter().all(|name| name.to_str().is_some_and(is_unfinished)) {
        return Err(SnapshotError::InvalidFormat("a directory of something else".into()));
    }
    Ok(())
}

pub(crate) fn error(error: Error) -> SnapshotError {
    let message = error.to_string();
    match error.kind() {
        // "lock hold by current process", "While lock file: …/LOCK: Resource temporarily unavailable".
        ErrorKind::IOError if message.contains("/LOCK") => SnapshotError::InUse,
        ErrorKind::Corruption => SnapshotError::Corrupted(message),
        ErrorKind::InvalidArgument | ErrorKind::NotSupported => {
            SnapshotError::InvalidFormat(message)
        }
        _ => SnapshotError::Engine { engine: "RocksDB", message },
    }
}

fn io_error(doing: &'static str) -> impl FnOnce(io::Error) -> SnapshotError {
    move |source| SnapshotError::Io { doing, source }
}
