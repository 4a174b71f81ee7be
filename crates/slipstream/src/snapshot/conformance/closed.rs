//! Directories that may not be written to.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rustix::process::{Gid, Uid};
use tempfile::TempDir;

use super::{cursor, put};
use crate::snapshot::{SnapshotError, SnapshotStore};

const NOBODY: u32 = 65_534;

/// Root may do everything, so there somebody else does it: one thread, and those that it starts.
pub fn as_nobody<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                rustix::thread::set_thread_gid(Gid::from_raw(NOBODY)).unwrap();
                rustix::thread::set_thread_uid(Uid::from_raw(NOBODY)).unwrap();
            }
            work()
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A directory of nobody's, of which the mode is to be set.
pub struct Closed(TempDir);

impl Closed {
    #[expect(clippy::new_without_default, reason = "it makes a directory")]
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        if rustix::process::geteuid().is_root() {
            chown(dir.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        Self(dir)
    }

    /// Of a fold in it.
    pub fn path(&self) -> PathBuf {
        self.0.path().join("fold")
    }

    pub fn mode(&self, mode: u32) {
        set_mode(self.0.path(), mode);
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        self.mode(0o700);
    }
}

pub fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[track_caller]
pub fn assert_denied(refused: Option<SnapshotError>) {
    let Some(SnapshotError::Io { source, .. }) = &refused else { panic!("{refused:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::PermissionDenied, "{refused:?}");
}

/// A fold is not made where that is not allowed, and is once it is. Threads of nobody's may be left:
/// for engines that keep some for the whole process, in a process of its own.
pub fn closed_directory<S: SnapshotStore>() {
    let dir = Closed::new();
    for mode in [0o500, 0o000] {
        dir.mode(mode);
        assert_denied(as_nobody(|| S::load(&dir.path()).err()));
        dir.mode(0o700);
        assert_eq!(fs::read_dir(dir.0.path()).unwrap().count(), 0);
    }
    as_nobody(|| S::load(&dir.path()).unwrap().1.apply(&[put("a", "1", 1)], &cursor(1))).unwrap();
}
