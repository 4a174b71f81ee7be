//! The file of an append log: opened by one process, cut to what counts, appended to or not.
//!
//! - L1: behind a failed append the file is as long as before it, or nothing more is appended.
//! - L2: whoever holds the lock of the file that is at the path now owns the log.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

#[cfg(target_os = "linux")]
use rustix::fs::{FallocateFlags, fallocate};

use super::format::{self, FILE_HEADER, Replay, Replayed};
use super::{SnapshotError, io_error};

/// A usual batch.
#[cfg(target_os = "linux")]
const ROOM: u64 = 16 * 1024;

/// Bytes that are read or copied at a time.
const CHUNK: usize = 1 << 18;

/// A log that is open for appending.
pub(super) struct LogFile {
    file: File,
    len: u64,
    /// A failed append may have left bytes behind `len`.
    torn: bool,
}

impl LogFile {
    /// Opens or makes the log, and tells `to` what it says. What was being written when the last
    /// writer died is cut off.
    ///
    /// A log of format 1 is not cut, and must not be appended to.
    ///
    /// `path` must be [`whole`](whole_path).
    pub(super) fn open(
        path: &Path,
        to: &mut impl Replay,
    ) -> Result<(Self, Replayed), SnapshotError> {
        let file = open_locked(path)?;
        remove_unfinished(&compacted_path(path))?;
        let len = file.metadata().map_err(io_error("reading the log"))?.len();
        let replayed = format::replay(BufReader::with_capacity(CHUNK, &file), len, to)?;
        let mut log = Self { file, len: replayed.valid_len, torn: len > replayed.valid_len };
        if log.torn {
            tracing::warn!(
                bytes = len - replayed.valid_len,
                "dropping an unfinished end of the log"
            );
        }
        if replayed.version == 0 {
            log.append(&format::file_header(), false)?;
        } else if replayed.version == format::VERSION {
            log.cut()?;
            log.set_room_aside();
        }
        Ok((log, replayed))
    }

    /// Has room set aside behind the end, which no reader sees: the first append since a file was
    /// opened would otherwise wait for the system to do so. A full disk is for a batch to report.
    #[cfg(target_os = "linux")]
    fn set_room_aside(&self) {
        let _ = fallocate(&self.file, FallocateFlags::KEEP_SIZE, self.len, ROOM);
    }

    #[cfg(not(target_os = "linux"))]
    fn set_room_aside(&self) {}

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// All of `bytes`, or none of them.
    pub(super) fn append(&mut self, bytes: &[u8], sync: bool) -> Result<(), SnapshotError> {
        self.cut()?;
        self.torn = true;
        let written = self.file.write_all_at(bytes, self.len);
        match written.and_then(|()| if sync { self.file.sync_data() } else { Ok(()) }) {
            Ok(()) => {
                self.torn = false;
                self.len += bytes.len() as u64;
                Ok(())
            }
            Err(error) => {
                // If this fails too, the next append tries again.
                let _ = self.cut();
                Err(io_error("writing to the log")(error))
            }
        }
    }

    /// Takes back the end of the log.
    pub(super) fn cut_to(&mut self, len: u64) -> Result<(), SnapshotError> {
        self.len = len;
        self.torn = true;
        self.cut()
    }

    fn cut(&mut self) -> Result<(), SnapshotError> {
        if self.torn {
            self.file.set_len(self.len).map_err(io_error("cutting an unfinished end off"))?;
            self.torn = false;
        }
        Ok(())
    }

    pub(super) fn sync(&self) -> Result<(), SnapshotError> {
        self.file.sync_all().map_err(io_error("syncing the log"))
    }

    /// A second handle, for reading what was appended.
    pub(super) fn handle(&self) -> Result<File, SnapshotError> {
        self.file.try_clone().map_err(io_error("opening the log again"))
    }

    /// An empty log beside the one at `path`, locked, to take its place.
    pub(super) fn create_beside(path: &Path) -> Result<Self, SnapshotError> {
        Self::create(&compacted_path(path))
    }

    /// An empty log at `path`, locked, whatever was there.
    pub(super) fn create(path: &Path) -> Result<Self, SnapshotError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(path).map_err(io_error("making a compacted log"))?;
        lock(&file)?;
        let mut log = Self { file, len: 0, torn: false };
        log.append(&format::file_header(), false)?;
        debug_assert_eq!(log.len, FILE_HEADER as u64);
        Ok(log)
    }

    /// Appends bytes `from..to` of another log.
    pub(super) fn carry_over(
        &mut self,
        other: &File,
        from: u64,
        to: u64,
    ) -> Result<(), SnapshotError> {
        let mut chunk = vec![0; CHUNK.min((to - from) as usize)];
        let mut at = from;
        while at < to {
            let some = (to - at).min(chunk.len() as u64) as usize;
            other.read_exact_at(&mut chunk[..some], at).map_err(io_error("reading the log"))?;
            self.append(&chunk[..some], false)?;
            at += some as u64;
        }
        Ok(())
    }
}

impl Drop for LogFile {
    /// Not left to the closing of the file: a process that is being started elsewhere in this one
    /// has a copy of the handle for a moment, and the log would be in use until then.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

/// The path from the root, without links: a compacted log takes the place of the file itself, not
/// that of a link to it, wherever the process has gone meanwhile.
pub(super) fn whole_path(path: &Path) -> Result<PathBuf, SnapshotError> {
    if path.as_os_str().as_bytes().ends_with(COMPACTED.as_bytes()) {
        let what = format!("a name that ends with {COMPACTED} is that of a compaction");
        return Err(SnapshotError::InvalidFormat(what));
    }
    let whole = match path.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (Some(name), directory) = (path.file_name(), directory_of(path)) else {
                return Err(io_error("opening the log")(error));
            };
            directory.canonicalize().map(|directory| directory.join(name))
        }
        whole => whole,
    };
    whole.map_err(io_error("opening the log"))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

const COMPACTED: &str = ".compact";

/// Where a compacted log is written before it takes the place of the one at `path`.
pub(super) fn compacted_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(COMPACTED);
    name.into()
}

/// Makes a rename in the directory of `path` survive a crash of the machine.
pub(super) fn sync_directory(path: &Path) -> Result<(), SnapshotError> {
    let synced = File::open(directory_of(path)).and_then(|directory| directory.sync_all());
    synced.map_err(io_error("syncing the directory of the log"))
}

fn open_locked(path: &Path) -> Result<File, SnapshotError> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(path).map_err(io_error("opening the log"))?;
        let ours = file.metadata().map_err(io_error("opening the log"))?;
        if !ours.is_file() {
            return Err(SnapshotError::InvalidFormat("a device or a pipe".into()));
        }
        lock(&file)?;
        // A compaction may have put another file in its place in between.
        match fs::metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => return Ok(file),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("opening the log")(error)),
        }
    }
}

/// Removes what a compaction left that was killed. Nobody else is at work: the lock of the log is
/// ours. A file that no compaction writes is somebody's.
fn remove_unfinished(beside: &Path) -> Result<(), SnapshotError> {
    let failed = |error| io_error("removing an unfinished compaction")(error);
    let is_file = match fs::symlink_metadata(beside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        there => there.map_err(failed)?.is_file(),
    };
    let mut begin = Vec::new();
    if is_file {
        let file = File::open(beside).map_err(failed)?;
        file.take(FILE_HEADER as u64).read_to_end(&mut begin).map_err(failed)?;
    }
    // A crash of the machine can leave zeros of it.
    let ours = format::file_header().starts_with(&begin) || begin.iter().all(|&byte| byte == 0);
    if !is_file || !ours {
        let what = "something else is where its compactions are written".to_owned();
        return Err(SnapshotError::InvalidFormat(what));
    }
    fs::remove_file(beside).map_err(failed)
}

fn lock(file: &File) -> Result<(), SnapshotError> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => SnapshotError::InUse,
        TryLockError::Error(error) => io_error("locking the log")(error),
    })
}
