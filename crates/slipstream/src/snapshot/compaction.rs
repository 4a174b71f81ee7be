//! Compaction: the fold written as a new log, beside the old one, by a thread of its own.
//!
//! The state that was noted when it began is written and synced; then what was appended to the old
//! log meanwhile is carried over; while both say the same, every batch is appended to both, until
//! the new log has taken the place of the old one. No batch waits for more than the copy of the
//! last few kilobytes.
//!
//! - O1: at any moment the file at the path holds every batch whose `apply` has returned.
//! - O2: a compaction that fails leaves the old log as it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};

use super::SnapshotError;
use super::format::{Frame, Op};
use super::io_error;
use super::log::{LogFile, compacted_path, sync_directory};
use super::tree::View;
use crate::kv::WatchCursor;

/// A frame of the new state is closed beyond this.
const FRAME_BYTES: usize = 1 << 18;

/// What is still missing when the copying goes on under the lock.
const SMALL: u64 = 64 * 1024;

/// How often the copying goes round outside the lock. It is many times faster than appending.
const ROUNDS: usize = 16;

/// Where batches are appended.
pub(super) struct Logs {
    pub(super) current: LogFile,
    /// The compacted log, once it has all that the current one has.
    next: Option<LogFile>,
}

impl Logs {
    pub(super) fn new(current: LogFile) -> Self {
        Self { current, next: None }
    }

    /// To one log or to both, or nothing has changed.
    pub(super) fn append(&mut self, bytes: &[u8], sync: bool) -> Result<(), SnapshotError> {
        let before = self.current.len();
        self.current.append(bytes, sync)?;
        let Some(next) = &mut self.next else { return Ok(()) };
        next.append(bytes, sync).inspect_err(|_| {
            // Should this fail, the next append tries again before it writes.
            let _ = self.current.cut_to(before);
        })
    }
}

/// What a compaction begins with.
pub(super) struct Job {
    pub(super) path: PathBuf,
    pub(super) view: View,
    pub(super) cursor: WatchCursor,
    /// How long the log was when the view was noted.
    pub(super) from: u64,
    pub(super) logs: Arc<Mutex<Logs>>,
}

/// A compaction that goes on.
pub(super) struct Running {
    thread: Option<JoinHandle<Result<(), SnapshotError>>>,
    stop: Arc<AtomicBool>,
}

impl Running {
    pub(super) fn start(job: Job) -> Result<Self, SnapshotError> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let thread = thread::Builder::new()
            .name("slipstream-compact".into())
            .spawn(move || job.run(&seen))
            .map_err(io_error("starting a compaction"))?;
        Ok(Self { thread: Some(thread), stop })
    }

    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the end.
    pub(super) fn join(mut self) -> Result<(), SnapshotError> {
        let thread = self.thread.take().expect("joined once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Running {
    /// A store that is gone must not hold the lock of its log.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Job {
    fn run(self, stop: &AtomicBool) -> Result<(), SnapshotError> {
        let path = self.path.clone();
        let done = self.write_and_swap(stop);
        if done.is_err() {
            // What is left is removed when the log is opened, at the latest.
            let _ = fs::remove_file(compacted_path(&path));
        }
        done
    }

    fn write_and_swap(self, stop: &AtomicBool) -> Result<(), SnapshotError> {
        let Self { path, view, cursor, from, logs } = self;
        let mut new = LogFile::create_beside(&path)?;
        write_state(&mut new, &view, &cursor, stop)?;
        drop(view);
        new.sync()?;
        carry_over(new, from, &logs)?;
        let swapped = swap(&path, &logs);
        if swapped.is_err() {
            lock(&logs).next = None;
        }
        swapped
    }
}

pub(super) fn lock(logs: &Mutex<Logs>) -> MutexGuard<'_, Logs> {
    logs.lock().expect("nobody panics while appending")
}

/// Writes a state in parts, and the cursor that makes them count.
pub(super) fn write_state(
    log: &mut LogFile,
    view: &View,
    cursor: &WatchCursor,
    stop: &AtomicBool,
) -> Result<(), SnapshotError> {
    let mut entries = view.entries().peekable();
    let mut bytes = Vec::with_capacity(FRAME_BYTES * 2);
    while entries.peek().is_some() {
        if stop.load(Ordering::Relaxed) {
            return Err(SnapshotError::Stopped);
        }
        bytes.clear();
        let mut frame = Frame::begin(&mut bytes, true, None);
        while frame.len() < FRAME_BYTES
            && let Some(entry) = entries.next()
        {
            frame.push(&Op::Put(entry));
        }
        frame.finish()?;
        log.append(&bytes, false)?;
    }
    bytes.clear();
    Frame::begin(&mut bytes, false, Some(cursor)).finish()?;
    log.append(&bytes, false)
}

/// Copies what was appended to the old log from `from` on, and opens the new one for batches.
fn carry_over(mut new: LogFile, mut from: u64, logs: &Mutex<Logs>) -> Result<(), SnapshotError> {
    let old = lock(logs).current.handle()?;
    for _ in 0..ROUNDS {
        let to = lock(logs).current.len();
        if to - from <= SMALL {
            break;
        }
        new.carry_over(&old, from, to)?;
        from = to;
    }
    let mut logs = lock(logs);
    new.carry_over(&old, from, logs.current.len())?;
    logs.next = Some(new);
    Ok(())
}

/// Puts the new log, which has all that the old one has, into its place.
fn swap(path: &Path, logs: &Mutex<Logs>) -> Result<(), SnapshotError> {
    let new = lock(logs).next.as_ref().expect("opened for batches").handle()?;
    new.sync_all().map_err(io_error("syncing the compacted log"))?;
    fs::rename(compacted_path(path), path).map_err(io_error("replacing the log"))?;
    // Batches go to both until the new name is durable, so that a sync means what it says.
    let synced = sync_directory(path);
    let old = {
        let mut logs = lock(logs);
        let next = logs.next.take().expect("opened for batches");
        std::mem::replace(&mut logs.current, next)
    };
    // Outside the lock: to close the last handle of a large file takes a while.
    drop(old);
    synced
}
