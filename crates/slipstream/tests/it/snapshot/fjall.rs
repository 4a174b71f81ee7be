//! The fold on fjall.

use std::fs;
use std::path::Path;
use std::process::Command;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slipstream::{FjallSnapshot, SnapshotError, SnapshotReader, SnapshotStore};

use super::append_log::support::{cursor, place, put, state};

mod conformance {
    slipstream::snapshot_conformance!(slipstream::FjallSnapshot);
}

#[test]
fn a_synced_fold_is_like_any_other() {
    let (_dir, path) = place();
    let (_, mut store) = FjallSnapshot::load_synced(&path).unwrap();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let before = state(&store);
    drop(store);
    assert_eq!(state(&FjallSnapshot::load(&path).unwrap().1), before);
}

#[test]
fn a_fold_whose_making_was_interrupted_is_made_again() {
    let (_dir, path) = place();
    fs::create_dir_all(path.join("keyspaces")).unwrap();
    fs::write(path.join("lock"), "").unwrap();
    fs::write(path.join("0.jnl"), "").unwrap();
    let (at, mut store) = FjallSnapshot::load(&path).unwrap();
    assert!(at.is_none());
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
}

/// The journal is theirs.
#[test]
fn a_fold_that_somebody_else_is_making_is_left_alone() {
    let (_dir, path) = place();
    fs::create_dir_all(path.join("keyspaces")).unwrap();
    let lock = fs::File::create(path.join("lock")).unwrap();
    lock.try_lock().unwrap();
    fs::write(path.join("0.jnl"), "theirs").unwrap();
    assert!(matches!(FjallSnapshot::load(&path), Err(SnapshotError::InUse)));
    assert_eq!(fs::read(path.join("0.jnl")).unwrap(), b"theirs");
}

#[test]
fn a_newer_database_is_refused() {
    let (_dir, path) = place();
    drop(FjallSnapshot::load(&path).unwrap());
    let mut version = fs::read(path.join("version")).unwrap();
    *version.last_mut().unwrap() = 200;
    fs::write(path.join("version"), &version).unwrap();
    let refused = FjallSnapshot::load(&path).err().unwrap();
    assert!(matches!(refused, SnapshotError::InvalidFormat(_)), "{refused}");
    assert_eq!(fs::read(path.join("version")).unwrap(), version);
}

const CHILD: &str = "SLIPSTREAM_FJALL_FULL_CHILD";

/// Files of this process may not grow beyond a limit, for a while.
#[test]
fn a_failed_write_heals_when_the_disk_has_room_again() {
    if let Some(path) = std::env::var_os(CHILD) {
        return fail_and_heal(Path::new(&path));
    }
    let (_dir, path) = place();
    let name = "snapshot::fjall::a_failed_write_heals_when_the_disk_has_room_again";
    // Without the trap the limit kills.
    let limited = Command::new("sh")
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(CHILD, &path)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&limited.stdout);
    let errors = String::from_utf8_lossy(&limited.stderr);
    assert!(limited.status.success() && said.contains("1 passed"), "{said}{errors}");
    let (at, store) = FjallSnapshot::load(&path).unwrap();
    assert_eq!((at, store.range("").unwrap().len()), (cursor(4), 3));
}

fn fail_and_heal(path: &Path) {
    let (_, mut store) = FjallSnapshot::load(path).unwrap();
    let reader = store.reader();
    store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let before = state(&store);
    let unlimited = getrlimit(Resource::Fsize);
    setrlimit(Resource::Fsize, Rlimit { current: Some(100), maximum: unlimited.maximum }).unwrap();
    let batch = [put("b", vec![1; 1000], 2), put("c", "1", 3)];
    for _ in 0..3 {
        assert!(store.apply(&batch, &cursor(3)).is_err());
        assert_eq!(store.cursor(), cursor(1));
    }
    setrlimit(Resource::Fsize, unlimited).unwrap();
    store.apply(&batch, &cursor(3)).unwrap();
    assert_eq!(reader.cursor(), cursor(3));
    assert_eq!(reader.range("").unwrap().len(), 3);
    assert_eq!(reader.get("a").unwrap(), Some(before.1[0].clone()));
    store.apply(&[], &cursor(4)).unwrap();
}
