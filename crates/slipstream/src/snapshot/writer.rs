//! The append log without a store: for callers that keep the entries in structures of their own.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::append_log::rewrite;
use super::fold::{Fold, entry_ref};
use super::format::{self, Frame, Op, Replay, op_of};
use super::log::{LogFile, sync_directory, whole_path};
use super::{SnapshotError, io_error};
use crate::kv::{Key, KvEntry, KvUpdate, WatchCursor};

/// What a log says: the entries, and the cursor that they stand at or are ahead of.
///
/// Reading takes no lock and changes nothing: the log of a store that is at work can be looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Where to go on.
    pub cursor: WatchCursor,
    /// The entries by key.
    pub entries: BTreeMap<Key, KvEntry>,
}

impl Snapshot {
    /// Reads the log at `path`; where there is none, nothing was folded yet.
    pub fn load(path: &Path) -> Result<Self, SnapshotError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            file => file.map_err(io_error("opening the log"))?,
        };
        let len = file.metadata().map_err(io_error("reading the log"))?.len();
        Self::read(BufReader::with_capacity(1 << 18, file), len)
    }

    /// Reads a log that is `len` bytes long.
    pub fn read(log: impl io::Read, len: u64) -> Result<Self, SnapshotError> {
        let mut snapshot = Self::default();
        snapshot.cursor = format::replay(log, len, &mut snapshot)?.cursor;
        Ok(snapshot)
    }

    /// The keys that are not among `live`, in order: what was deleted while nobody watched.
    pub fn stale_keys<'a, 'b>(
        &'a self,
        live: impl IntoIterator<Item = &'b str>,
    ) -> impl Iterator<Item = &'a str> {
        let live: HashSet<&str> = live.into_iter().collect();
        let keys = self.entries.keys().map(Key::as_str);
        keys.filter(|key| !live.contains(key)).collect::<Vec<_>>().into_iter()
    }
}

impl Replay for Snapshot {
    fn ops(&mut self, ops: &[Op<'_>]) {
        for op in ops {
            match op {
                Op::Put(entry) => {
                    let entry = entry_ref(*entry).to_entry();
                    self.entries.insert(entry.key.clone(), entry);
                }
                Op::Delete { key, .. } => {
                    let key = std::str::from_utf8(key).expect("keys are text");
                    self.entries.remove(key);
                }
            }
        }
    }

    fn forget(&mut self) {
        self.entries.clear();
    }
}

/// Appends to a log, and keeps nothing of it in memory.
///
/// Updates are collected and reach the file with the next [`checkpoint`](Self::checkpoint), or
/// before it when they are many: then the log is ahead of its cursor, which is harmless, since what
/// follows the cursor comes again.
///
/// With [`Snapshot`], it is what a caller needs who keeps the entries in a map of their own, and
/// resumes or repairs it without [`watch_applied`](crate::watch_applied):
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use slipstream::{Connection, MemoryConnection, StoreConfig};
/// # let connection = MemoryConnection::new();
/// # let bucket = connection.store("rules", &StoreConfig::default()).await?;
/// # bucket.writer().unwrap().put("gone", "soon".into()).await?;
/// # let dir = tempfile::tempdir()?;
/// # let path = &dir.path().join("rules.log");
/// use std::collections::HashMap;
///
/// use slipstream::{
///     Key, KvEntry, KvError, KvStore, KvUpdate, Snapshot, SnapshotWriter, VersionToken,
///     WatchCursor, WatchEvent, WatchScope,
/// };
///
/// /// Brings the map and its log up to date.
/// async fn catch_up(
///     bucket: &dyn KvStore,
///     path: &std::path::Path,
/// ) -> Result<HashMap<Key, KvEntry>, Box<dyn std::error::Error>> {
///     let stored = Snapshot::load(path)?;
///     let mut writer = SnapshotWriter::open(path, 64 << 20)?;
///     let mut map: HashMap<_, _> = stored.entries.clone().into_iter().collect();
///     let watcher = bucket.watcher().unwrap();
///     let mut watch = match watcher.watch(&WatchScope::All, &stored.cursor).await {
///         Err(KvError::CursorExpired(_)) => {
///             // The log has forgotten what came next. First what the bucket no longer has, and
///             // only when that is stored, the rest.
///             let live = bucket.reader().keys("").await?;
///             for key in stored.stale_keys(live.iter().map(Key::as_str)) {
///                 let version = VersionToken::unknown();
///                 writer.write_update(&KvUpdate::Delete { key: key.into(), version })?;
///                 map.remove(key);
///             }
///             writer.checkpoint(&stored.cursor)?;
///             watcher.watch(&WatchScope::All, &WatchCursor::none()).await?
///         }
///         watch => watch?,
///     };
///     let mut updates = Vec::new();
///     while let WatchEvent::Updates { .. } = watch.next(&mut updates, 100).await? {
///         for update in updates.drain(..) {
///             writer.write_update(&update)?;
///             match update {
///                 KvUpdate::Put(entry) => map.insert(entry.key.clone(), entry),
///                 KvUpdate::Delete { key, .. } | KvUpdate::Purge { key, .. } => map.remove(&key),
///             };
///         }
///         if writer.checkpoint(&watch.cursor())? {
///             writer.compact()?;
///         }
///     }
///     Ok(map)
/// }
///
/// assert_eq!(catch_up(&*bucket, path).await?.len(), 1);
/// # // The log forgets that the key was deleted.
/// # let kv = bucket.writer().unwrap();
/// # kv.delete("gone").await?;
/// # let kept = kv.put("kept", "on".into()).await?;
/// # connection.bucket("rules").unwrap().evict_below(kept.as_u64().unwrap());
/// let map = catch_up(&*bucket, path).await?;
/// assert!(map.contains_key("kept") && !map.contains_key("gone"));
/// assert_eq!(Snapshot::load(path)?.entries.len(), 1);
/// # Ok(()) }
/// ```
///
/// Unlike `watch_applied` it sees neither what retention takes from under a running watch, nor that
/// a bucket forgets current values ([`Retention`](crate::Retention)), of which `stale_keys` must then
/// not be believed.
pub struct SnapshotWriter {
    path: PathBuf,
    log: LogFile,
    compact_threshold: u64,
    /// How long the log was when it was last compacted, or opened.
    compacted_len: u64,
    pending: Vec<KvUpdate>,
    pending_bytes: usize,
}

/// Updates that are collected, at the most.
const PENDING_BYTES: usize = 256 * 1024;

impl SnapshotWriter {
    /// Opens the log for appending, or makes it. What was being written when the last writer died is
    /// cut off; a log of format 1 is written anew.
    pub fn open(path: &Path, compact_threshold: u64) -> Result<Self, SnapshotError> {
        let path = whole_path(path)?;
        let mut fold = Fold::new();
        let (mut log, replayed) = LogFile::open(&path, &mut fold)?;
        if replayed.version == 1 {
            fold.cursor = replayed.cursor;
            log = rewrite(&path, &fold)?;
            sync_directory(&path)?;
        }
        let compacted_len = log.len();
        Ok(Self {
            path,
            log,
            compact_threshold,
            compacted_len,
            pending: Vec::new(),
            pending_bytes: 0,
        })
    }

    /// Adds an update. An error concerns this update, or that those before it could not be written;
    /// these are tried again.
    pub fn write_update(&mut self, update: &KvUpdate) -> Result<(), SnapshotError> {
        let mut frame = Vec::new();
        Frame::begin(&mut frame, false, None).push_update(update)?;
        if self.pending_bytes + frame.len() > PENDING_BYTES {
            self.flush(None)?;
        }
        self.pending_bytes += frame.len();
        self.pending.push(update.clone());
        Ok(())
    }

    /// Writes what was added, together with the cursor that it leads to. True when the log has grown
    /// by the threshold since it was last compacted: time to [`compact`](Self::compact).
    pub fn checkpoint(&mut self, cursor: &WatchCursor) -> Result<bool, SnapshotError> {
        self.flush(Some(cursor))?;
        Ok(self.log.len() - self.compacted_len >= self.compact_threshold)
    }

    /// Writes the log anew without what is outdated, and syncs it. Blocks, and needs memory for all
    /// entries. After an error the log says what it said, and goes on.
    pub fn compact(&mut self) -> Result<(), SnapshotError> {
        self.flush(None)?;
        let mut fold = Fold::new();
        let file = self.log.handle()?;
        let replayed =
            format::replay(BufReader::new(FromStart { file, at: 0 }), self.log.len(), &mut fold)?;
        fold.cursor = replayed.cursor;
        // The old file is gone from the path by now, whether or not a crash may bring it back.
        self.log = rewrite(&self.path, &fold)?;
        self.compacted_len = self.log.len();
        sync_directory(&self.path)
    }

    fn flush(&mut self, cursor: Option<&WatchCursor>) -> Result<(), SnapshotError> {
        if self.pending.is_empty() && cursor.is_none() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(self.pending_bytes);
        let mut frame = Frame::begin(&mut bytes, false, cursor);
        self.pending.iter().for_each(|update| frame.push(&op_of(update)));
        frame.finish()?;
        self.log.append(&bytes, false)?;
        self.pending.clear();
        self.pending_bytes = 0;
        Ok(())
    }
}

/// Reads a file from its beginning, wherever its other handles are.
struct FromStart {
    file: File,
    at: u64,
}

impl io::Read for FromStart {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = std::os::unix::fs::FileExt::read_at(&self.file, into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}
