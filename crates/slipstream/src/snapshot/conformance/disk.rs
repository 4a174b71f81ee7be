//! A disk that is full.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;

use rustix::fs::FallocateFlags;
use tempfile::TempDir;

use super::torn::remove_all;
use super::{Paused, contents, cursor, files, open, put};
use crate::artifact::About;
use crate::kv::{KvUpdate, WatchScope};
use crate::snapshot::{SnapshotError, SnapshotReader, SnapshotStore};

/// 1 where tests may be left out for want of root.
const ALLOW_SKIPS: &str = "GOSSIP_ALLOW_SKIPS";

/// A file system of its own, which ends with this.
pub struct SmallDisk(TempDir);

impl SmallDisk {
    /// `None` for those who may not have one and say that they know, with `GOSSIP_ALLOW_SKIPS`.
    pub fn mount(kilobytes: u32) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let options = format!("size={kilobytes}k,mode=700");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(dir.path());
        let mounted = mount.output().expect("mount is installed");
        if mounted.status.success() {
            return Some(Self(dir));
        }
        let why = String::from_utf8_lossy(&mounted.stderr);
        let skip = std::env::var_os(ALLOW_SKIPS).is_some_and(|allow| allow == "1");
        assert!(skip, "a file system of one's own takes root, or {ALLOW_SKIPS}=1 to skip: {why}");
        eprintln!("skipped: a file system of one's own takes root");
        None
    }

    pub fn path(&self) -> PathBuf {
        self.beside("fold")
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ballast(&self) -> PathBuf {
        self.beside("ballast")
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

    /// `ro` or `rw`.
    fn remount(&self, how: &str) {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-o", &format!("remount,{how}")]).arg(self.0.path()).status();
        assert!(mounted.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

#[track_caller]
pub fn assert_full(error: &SnapshotError) {
    assert_io(error, ErrorKind::StorageFull);
}

#[track_caller]
fn assert_io(error: &SnapshotError, kind: ErrorKind) {
    let SnapshotError::Io { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source.kind(), kind, "{error:?}");
}

/// A fold cannot be made on a disk without room, wherever in its making the room ends, and can be
/// once there is.
pub fn making_on_a_full_disk<S: SnapshotStore>(kilobytes: u32) {
    let Some(disk) = SmallDisk::mount(kilobytes) else { return };
    let path = disk.path();
    for pages in 0..24 {
        disk.fill(pages * 4096);
        match S::load(&path) {
            Err(error) => assert_full(&error),
            Ok(_) => assert!(pages > 0, "there was no room"),
        }
        disk.make_room();
        open::<S>(&path).apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
        assert_eq!(open::<S>(&path).cursor(), cursor(1));
        remove_all(&path);
    }
}

/// A fold on a disk that is not to be written to is refused, and left as it is.
pub fn read_only_disk<S: SnapshotStore>(kilobytes: u32) {
    let Some(disk) = SmallDisk::mount(kilobytes) else { return };
    open::<S>(&disk.path()).apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let before = files(disk.0.path());
    disk.remount("ro");
    for _ in 0..2 {
        let refused = S::load(&disk.path()).err().expect("it cannot be written to");
        assert_io(&refused, ErrorKind::ReadOnlyFilesystem);
    }
    assert!(files(disk.0.path()) == before);
    disk.remount("rw");
    assert_eq!(open::<S>(&disk.path()).cursor(), cursor(1));
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

/// An export that has no room fails, and leaves a fold that is read meanwhile; once there is room the
/// next export succeeds, though nobody has written to the fold since.
pub fn export_on_a_full_disk<S: SnapshotStore>(kilobytes: u32) {
    let Some(disk) = SmallDisk::mount(kilobytes) else { return };
    let mut store: S = open(&disk.path());
    let batch: Vec<KvUpdate> = (1..=40).map(|n| put(&format!("k.{n:03}"), noise(n), n)).collect();
    store.apply(&batch, &cursor(40)).unwrap();
    let before = contents(&store);
    let (artifact, copy) = (disk.beside("artifact"), disk.beside("copy"));
    disk.fill(100_000);
    for _ in 0..2 {
        assert!(
            store.export_to(&artifact, About::new(WatchScope::All)).is_err(),
            "there is no room"
        );
        assert!(contents(&store) == before);
        let names = fs::read_dir(disk.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let others = names.filter(|name| name != "fold" && name != "ballast");
        assert_eq!(others.count(), 0, "nothing is left of it");
    }
    disk.make_room();
    store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
    S::import(&artifact, &copy, &WatchScope::All).unwrap();
    assert!(contents(&open::<S>(&copy)) == before);
    store.apply(&[put("last", "1", 41)], &cursor(41)).unwrap();
    drop(store);
    let store: S = open(&disk.path());
    assert_eq!((store.cursor(), contents(&store).len()), (cursor(41), before.len() + 1));
}

/// Exports that have no room take the fold from no reader: while another is in the middle of a range,
/// and when nobody is and the database can be opened again.
pub fn readers_while_exports_fail_on_a_full_disk<S: SnapshotStore>(kilobytes: u32) {
    for leave in [0, 4096, 100_000] {
        let Some(disk) = SmallDisk::mount(kilobytes) else { return };
        let mut store: S = open(&disk.path());
        let batch: Vec<_> = (1..=40).map(|n| put(&format!("k.{n:03}"), noise(n), n)).collect();
        store.apply(&batch, &cursor(40)).unwrap();
        let (before, other) = (contents(&store), store.reader());
        let artifact = disk.beside("artifact");
        let fails_to_export = |store: &mut S| {
            let exported = store.export_to(&artifact, About::new(WatchScope::All));
            assert!(exported.is_err(), "there is no room");
            let got = other.get("k.007").unwrap().expect("it is there");
            assert_eq!((got.value.as_ref(), other.cursor()), (&noise(7)[..], cursor(40)));
        };
        disk.fill(leave);
        let reader = Paused::in_a_range(store.reader());
        for _ in 0..3 {
            fails_to_export(&mut store);
        }
        assert_eq!(reader.go_on().unwrap().len(), before.len());
        for _ in 0..3 {
            fails_to_export(&mut store);
        }
        disk.make_room();
        store.export_to(&artifact, About::new(WatchScope::All)).unwrap();
        store.apply(&[put("last", "1", 41)], &cursor(41)).unwrap();
        assert_eq!((other.cursor(), contents(&other).len()), (cursor(41), before.len() + 1));
    }
}

/// What no engine makes smaller.
fn noise(seed: u64) -> Vec<u8> {
    let mut value = vec![0; 50_000];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut value);
    value
}
