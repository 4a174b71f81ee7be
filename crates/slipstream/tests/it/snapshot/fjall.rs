//! The fold on fjall.

use std::fs;

use slipstream::{FjallSnapshot, SnapshotError, SnapshotStore};

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

#[test]
fn a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads() {
    slipstream::snapshot_conformance::failed_writes_heal::<FjallSnapshot>(concat!(
        module_path!(),
        "::a_failed_write_heals_when_the_disk_has_room_again_and_nobody_reads"
    ));
}
