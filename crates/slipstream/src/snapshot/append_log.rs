//! The default fold: a log on disk, the entries in memory.

use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard};

use super::compaction::{Job, Logs, Running, lock, write_state};
use super::fold::{Fold, entry_ref, for_each};
use super::format::{self, Frame, Op, Replay, Replayed, op_of};
use super::log::{LogFile, compacted_path, sync_directory, whole_path};
use super::tree::View;
use super::{
    Copied, EntryRef, FinishCopy, FoldFiles, OnEntry, SnapshotError, SnapshotReader, SnapshotStore,
    io_error,
};
use crate::artifact::{ArtifactFile, ExportManifest, Imported, ReadBehind};
use crate::kv::{KvEntry, KvUpdate, WatchCursor};

/// A fold in memory whose changes are appended to a file. For folds that fit into memory.
///
/// A batch is written to the page cache: it survives the process, and the machine once the system
/// has written it back ([`AppendLogOptions::sync`] for those who cannot wait). A file that is mostly
/// outdated is written anew beside the appends, on a thread of its own, and synced; a failure of
/// that is logged and shown by [`compaction_error`](Self::compaction_error), and the old file stays.
///
/// ```
/// use slipstream::{AppendLogSnapshot, KvEntry, KvUpdate, VersionToken, WatchCursor};
/// use slipstream::{SnapshotReader, SnapshotStore};
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("fold");
/// let (cursor, mut fold) = AppendLogSnapshot::load(&path)?;
/// assert!(cursor.is_none());
///
/// let version = VersionToken::from_u64(1);
/// let put = KvEntry { key: "rules.aws".into(), value: "on".into(), version };
/// fold.apply(&[KvUpdate::Put(put)], &WatchCursor::from_bytes(vec![1])?)?;
/// drop(fold);
///
/// let (cursor, fold) = AppendLogSnapshot::load(&path)?;
/// assert_eq!(cursor.as_bytes(), [1]);
/// assert_eq!(fold.range("rules.")?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AppendLogSnapshot {
    path: PathBuf,
    options: AppendLogOptions,
    imported: Imported,
    fold: Arc<RwLock<Fold>>,
    logs: Arc<Mutex<Logs>>,
    frame: Vec<u8>,
    compaction: Option<Running>,
    compaction_error: Option<SnapshotError>,
    /// After a failure, no compaction before the log has this length.
    not_before: u64,
}

/// How an append log is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AppendLogOptions {
    /// Outdated bytes below which the log is not compacted. Above, it is when they are at least as
    /// many as the bytes of the live entries, so that compactions write no more than was appended.
    pub compact_threshold: u64,
    /// Sync the file with every batch.
    pub sync: bool,
}

impl Default for AppendLogOptions {
    fn default() -> Self {
        Self { compact_threshold: 4 << 20, sync: false }
    }
}

/// Reads an [`AppendLogSnapshot`] while it applies; goes on to read its last state when it is gone.
#[derive(Clone)]
pub struct AppendLogReader(Arc<RwLock<Fold>>);

impl AppendLogSnapshot {
    /// [`load`](SnapshotStore::load) with other than the default options.
    pub fn load_with(
        path: &Path,
        options: AppendLogOptions,
    ) -> Result<(WatchCursor, Self), SnapshotError> {
        let path = whole_path(path)?;
        let mut fold = Fold::new();
        let (mut log, replayed) = LogFile::open(&path, &mut fold)?;
        fold.cursor = replayed.cursor.clone();
        if replayed.version == 1 {
            log = rewrite(&path, &fold)?;
            sync_directory(&path)?;
        }
        if replayed.version == 0 && options.sync {
            sync_directory(&path)?;
        }
        Ok((replayed.cursor, Self::new(path, options, fold, log)))
    }

    fn new(path: PathBuf, options: AppendLogOptions, fold: Fold, log: LogFile) -> Self {
        let imported = Imported::load(imported_beside(&path), &fold.cursor);
        Self {
            path,
            options,
            imported,
            fold: Arc::new(RwLock::new(fold)),
            logs: Arc::new(Mutex::new(Logs::new(log))),
            frame: Vec::new(),
            compaction: None,
            compaction_error: None,
            not_before: 0,
        }
    }

    /// Writes the log anew and waits for it. A compaction that goes on already counts.
    pub fn compact(&mut self) -> Result<(), SnapshotError> {
        if self.compaction.is_none() {
            self.start_compaction()?;
        }
        match self.compaction.take() {
            Some(running) => running.join(),
            None => Ok(()),
        }
    }

    /// Why the last compaction failed, if it did.
    #[must_use]
    pub fn compaction_error(&self) -> Option<&SnapshotError> {
        self.compaction_error.as_ref()
    }

    /// How long the log is.
    #[must_use]
    pub fn log_len(&self) -> u64 {
        lock(&self.logs).current.len()
    }

    /// Begins a compaction when the log is mostly outdated, and notes how the last one ended.
    fn compact_if_due(&mut self, log_len: u64, live_bytes: u64) {
        if let Some(running) = self.compaction.take_if(|running| running.is_finished()) {
            let ended = running.join();
            self.note_end(ended, log_len);
        }
        let outdated = log_len.saturating_sub(live_bytes);
        let due = outdated >= self.options.compact_threshold.max(live_bytes);
        if due && self.compaction.is_none() && log_len >= self.not_before {
            let started = self.start_compaction();
            if started.is_err() {
                self.note_end(started, log_len);
            }
        }
    }

    fn note_end(&mut self, ended: Result<(), SnapshotError>, log_len: u64) {
        if let Err(error) = &ended {
            tracing::warn!(%error, "the log was not compacted; it goes on as it is");
            self.not_before = log_len + self.options.compact_threshold;
        }
        self.compaction_error = ended.err();
    }

    /// The log of what it holds now, compacted.
    fn copy_to(&mut self, data: &Path) -> Result<FinishCopy, SnapshotError> {
        std::fs::create_dir(data).map_err(io_error("making a copy of the log"))?;
        let (view, cursor) = self.now();
        let mut log = LogFile::create(&log_in(data))?;
        Ok(Box::new(move || {
            let reading = ReadBehind::start(log.handle()?, |file, growing| {
                format::replay_growing(file, &mut |wanted| growing.len(wanted), &mut Nothing)
            });
            let reading = reading.map_err(io_error("reading a copy of the log"))?;
            write_state(&mut log, &view, &cursor, &AtomicBool::new(false))?;
            let (replayed, (size, hash)) =
                reading.finish().map_err(io_error("reading a copy of the log"))?;
            let Replayed { cursor, valid_len, .. } = replayed?;
            if (size, valid_len) != (log.len(), log.len()) {
                return Err(SnapshotError::Corrupted("a copy of the log has another end".into()));
            }
            let file = ArtifactFile { path: LOG.to_owned(), size, hash };
            Ok(Copied { files: vec![file], cursor: Some(cursor) })
        }))
    }

    /// Nobody applies while this is borrowed: fold and log agree.
    fn now(&self) -> (View, WatchCursor) {
        let fold = read(&self.fold);
        (fold.view(""), fold.cursor.clone())
    }

    fn start_compaction(&mut self) -> Result<(), SnapshotError> {
        let (view, cursor) = self.now();
        let from = lock(&self.logs).current.len();
        let (path, logs) = (self.path.clone(), self.logs.clone());
        self.compaction = Some(Running::start(Job { path, view, cursor, from, logs })?);
        Ok(())
    }
}

/// Writes a fold as a log of the newest format into the place of an old one. What is left to do is
/// to sync the directory.
pub(super) fn rewrite(path: &Path, fold: &Fold) -> Result<LogFile, SnapshotError> {
    let written = || {
        let mut log = LogFile::create_beside(path)?;
        write_state(&mut log, &fold.view(""), &fold.cursor, &AtomicBool::new(false))?;
        log.sync()?;
        std::fs::rename(compacted_path(path), path).map_err(io_error("replacing the log"))?;
        Ok(log)
    };
    // What is left of it would keep a full disk full.
    written().inspect_err(|_| drop(std::fs::remove_file(compacted_path(path))))
}

impl SnapshotStore for AppendLogSnapshot {
    type Reader = AppendLogReader;

    const FILES: Option<FoldFiles<Self>> = Some(FoldFiles {
        backend: "append-log",
        generation: format::VERSION as u32,
        owns: |name| name == LOG,
        copy: Self::copy_to,
        fold: log_in,
        imported: imported_beside,
        verify,
        entries,
    });

    fn load(path: &Path) -> Result<(WatchCursor, Self), SnapshotError> {
        Self::load_with(path, AppendLogOptions::default())
    }

    fn apply(&mut self, batch: &[KvUpdate], cursor: &WatchCursor) -> Result<(), SnapshotError> {
        self.frame.clear();
        let mut frame = Frame::begin(&mut self.frame, false, Some(cursor));
        for update in batch {
            frame.push_update(update)?;
        }
        frame.finish()?;
        let log_len = {
            let mut logs = lock(&self.logs);
            logs.append(&self.frame, self.options.sync)?;
            logs.current.len()
        };
        self.frame.shrink_to(FRAME_KEPT);
        let ops: Vec<Op<'_>> = batch.iter().map(op_of).collect();
        let live_bytes = {
            let mut fold = self.fold.write().expect("nobody panics while folding");
            fold.apply(&ops);
            fold.cursor = cursor.clone();
            fold.live_bytes()
        };
        self.imported.passed(cursor);
        self.compact_if_due(log_len, live_bytes);
        Ok(())
    }

    fn reader(&self) -> AppendLogReader {
        AppendLogReader(self.fold.clone())
    }

    fn imported(&self) -> Option<&ExportManifest> {
        self.imported.manifest()
    }

    fn set_imported(&mut self, manifest: &ExportManifest) -> io::Result<()> {
        self.imported.set(manifest)
    }
}

/// The log in an artifact.
const LOG: &str = "log";

/// Where an imported log keeps the manifest of its artifact.
fn imported_beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".imported");
    name.into()
}

fn log_in(data: &Path) -> PathBuf {
    data.join(LOG)
}

/// Keeps nothing of a log that is read.
struct Nothing;

impl Replay for Nothing {
    fn ops(&mut self, _: &[Op<'_>]) {}
    fn forget(&mut self) {}
}

fn verify(data: &Path) -> Result<WatchCursor, SnapshotError> {
    let (_, replayed) = LogFile::open(&whole_path(&log_in(data))?, &mut Nothing)?;
    Ok(replayed.cursor)
}

/// Reads the log, which is compacted, entry by entry. One that is not has its entries in another order.
fn entries(data: &Path, f: OnEntry<'_>) -> Result<(), SnapshotError> {
    struct Each<'a, F: ?Sized>(&'a mut F, ControlFlow<()>);
    impl<F: FnMut(EntryRef<'_>) -> ControlFlow<()> + ?Sized> Replay for Each<'_, F> {
        fn ops(&mut self, ops: &[Op<'_>]) {
            for op in ops {
                if let (Op::Put(entry), ControlFlow::Continue(())) = (op, self.1) {
                    self.1 = (self.0)(entry_ref(*entry));
                }
            }
        }
        fn forget(&mut self) {}
    }
    let log = whole_path(&log_in(data))?;
    LogFile::open(&log, &mut Each(f, ControlFlow::Continue(()))).map(drop)
}

/// A large batch does not keep its buffer.
const FRAME_KEPT: usize = 1 << 20;

fn read(fold: &RwLock<Fold>) -> RwLockReadGuard<'_, Fold> {
    fold.read().expect("nobody panics while folding")
}

impl SnapshotReader for AppendLogReader {
    fn cursor(&self) -> WatchCursor {
        read(&self.0).cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        Ok(read(&self.0).get(key))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        let view = read(&self.0).view(prefix);
        for_each(&view, f);
        Ok(())
    }
}

impl SnapshotReader for AppendLogSnapshot {
    fn cursor(&self) -> WatchCursor {
        read(&self.fold).cursor.clone()
    }

    fn get(&self, key: &str) -> Result<Option<KvEntry>, SnapshotError> {
        Ok(read(&self.fold).get(key))
    }

    fn for_each_in_range(
        &self,
        prefix: &str,
        f: &mut dyn FnMut(EntryRef<'_>) -> ControlFlow<()>,
    ) -> Result<(), SnapshotError> {
        self.reader().for_each_in_range(prefix, f)
    }
}
