//! A disk that is full.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::FallocateFlags;
use tempfile::TempDir;

use super::{contents, cursor, open, put};
use crate::snapshot::{SnapshotError, SnapshotStore};

/// A file system of its own, which ends with this.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` for those who may not have one. For them a limit on the size of files has to do.
    pub fn mount(kilobytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let options = format!("size={kilobytes}k,mode=700");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path()).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(dir));
        }
        eprintln!("skipped: a file system of one's own takes root");
        None
    }

    pub fn path(&self) -> PathBuf {
        self.0.path().join("fold")
    }

    fn ballast(&self) -> PathBuf {
        self.0.path().join("ballast")
    }

    /// Leaves so much room, to the page.
    pub fn fill(&self, leave: u64) {
        let disk = rustix::fs::statvfs(self.0.path()).unwrap();
        let room = disk.f_bavail * disk.f_frsize;
        let ballast = File::create(self.ballast()).unwrap();
        let len = room.saturating_sub(leave);
        rustix::fs::fallocate(ballast, FallocateFlags::empty(), 0, len).unwrap();
    }

    pub fn make_room(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[track_caller]
pub fn assert_full(error: &SnapshotError) {
    let SnapshotError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), std::io::ErrorKind::StorageFull, "{error:?}");
}

/// Applies until a disk of so many kilobytes has no more room, and goes on once it has.
pub fn full_disk<S: SnapshotStore>(kilobytes: u32) {
    let Some(disk) = SmallDisk::mount(kilobytes) else { return };
    let mut store: S = open(&disk.path());
    store.apply(&[put("first", "1", 1)], &cursor(1)).unwrap();
    disk.fill(500_000);
    let batch = |n: u64| [put(&format!("k.{n:03}"), vec![n as u8; 50_000], n)];
    let mut n = 1;
    let refused = loop {
        match store.apply(&batch(n + 1), &cursor(n + 1)) {
            Ok(()) => n += 1,
            Err(error) => break error,
        }
    };
    assert_full(&refused);
    assert!(n > 1, "something was applied before");
    for _ in 0..3 {
        assert!(store.apply(&batch(n + 1), &cursor(n + 1)).is_err());
        assert_eq!(store.cursor(), cursor(n));
    }
    disk.make_room();
    for n in n + 1..n + 5 {
        store.apply(&batch(n), &cursor(n)).unwrap();
    }
    let last = contents(&store);
    assert_eq!((store.cursor(), last.len() as u64), (cursor(n + 4), n + 4));
    drop(store);
    let store: S = open(&disk.path());
    assert_eq!((store.cursor(), contents(&store)), (cursor(n + 4), last));
}
