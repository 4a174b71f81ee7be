//! Disks that are full, and directories that may not be written to: a typed error, nothing
//! overwritten, and the same store goes on once that is mended.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use slipstream::snapshot_conformance::{
    Closed, SmallDisk, as_nobody, assert_denied, assert_full, closed_directory,
    export_on_a_full_disk, full_disk, making_on_a_full_disk, read_only_disk,
    readers_while_exports_fail_on_a_full_disk, set_mode,
};
use slipstream::{
    AppendLogSnapshot, FjallSnapshot, Snapshot, SnapshotError, SnapshotStore, SnapshotWriter,
};

use super::append_log::format_1;
use super::append_log::support::{cursor, open, put, state};

#[test]
fn an_append_log_on_a_full_disk_goes_on_once_there_is_room() {
    full_disk::<AppendLogSnapshot>(4_000);
}

#[test]
fn a_fold_of_fjall_on_a_full_disk_goes_on_once_there_is_room() {
    full_disk::<FjallSnapshot>(80_000);
}

#[test]
fn an_append_log_is_exported_once_there_is_room() {
    export_on_a_full_disk::<AppendLogSnapshot>(8_000);
}

#[test]
fn a_fold_of_fjall_is_exported_once_there_is_room_though_nobody_writes() {
    export_on_a_full_disk::<FjallSnapshot>(80_000);
}

#[test]
fn an_append_log_is_read_while_exports_fail() {
    readers_while_exports_fail_on_a_full_disk::<AppendLogSnapshot>(8_000);
}

#[test]
fn a_fold_of_fjall_is_read_while_exports_fail() {
    readers_while_exports_fail_on_a_full_disk::<FjallSnapshot>(80_000);
}

#[test]
fn a_compaction_on_a_full_disk_leaves_the_log_and_no_litter() {
    let Some(disk) = SmallDisk::mount(4_000) else { return };
    let mut store = open(&disk.path());
    for n in 1..=20 {
        store
            .apply(&[put("a", vec![1; 50_000], n), put(&n.to_string(), "1", n)], &cursor(n))
            .unwrap();
    }
    store.apply(&[put("b", vec![1; 300_000], 21)], &cursor(21)).unwrap();
    disk.fill(100_000);
    let before = state(&store);
    let inode = fs::metadata(disk.path()).unwrap().ino();
    for _ in 0..2 {
        assert_full(&store.compact().expect_err("there is no room"));
        assert!(!disk.path().with_extension("compact").exists());
        assert_eq!(fs::metadata(disk.path()).unwrap().ino(), inode);
    }
    // What fits goes in meanwhile.
    store.apply(&[put("c", "1", 22)], &cursor(22)).unwrap();
    assert_eq!(Snapshot::load(&disk.path()).unwrap().cursor, cursor(22));
    disk.make_room();
    store.compact().unwrap();
    assert!(store.log_len() < 400_000, "{}", store.log_len());
    assert_eq!(state(&store).1.len(), before.1.len() + 1);
    let last = state(&store);
    drop(store);
    assert_eq!(state(&open(&disk.path())), last);
}

#[test]
fn a_writer_that_compacts_on_a_full_disk_leaves_the_log_and_no_litter() {
    let Some(disk) = SmallDisk::mount(4_000) else { return };
    let mut writer = SnapshotWriter::open(&disk.path(), 1).unwrap();
    writer.write_update(&put("a", vec![1; 300_000], 1)).unwrap();
    writer.checkpoint(&cursor(1)).unwrap();
    disk.fill(100_000);
    assert_full(&writer.compact().expect_err("there is no room"));
    assert!(!disk.path().with_extension("compact").exists());
    writer.write_update(&put("b", "1", 2)).unwrap();
    writer.checkpoint(&cursor(2)).unwrap();
    disk.make_room();
    writer.compact().unwrap();
    drop(writer);
    let read = Snapshot::load(&disk.path()).unwrap();
    assert_eq!((read.cursor, read.entries.len()), (cursor(2), 2));
}

#[test]
fn an_append_log_cannot_be_made_on_a_full_disk_and_can_be_once_there_is_room() {
    making_on_a_full_disk::<AppendLogSnapshot>(4_000);
}

#[test]
fn a_fold_of_fjall_cannot_be_made_on_a_full_disk_and_can_be_once_there_is_room() {
    making_on_a_full_disk::<FjallSnapshot>(80_000);
}

#[test]
fn an_append_log_on_a_read_only_disk_is_refused_and_left_as_it_is() {
    read_only_disk::<AppendLogSnapshot>(4_000);
}

#[test]
fn a_fold_of_fjall_on_a_read_only_disk_is_refused_and_left_as_it_is() {
    read_only_disk::<FjallSnapshot>(80_000);
}

#[test]
fn a_log_is_opened_and_cut_on_a_full_disk() {
    let Some(disk) = SmallDisk::mount(4_000) else { return };
    open(&disk.path()).apply(&[put("a", vec![1; 300_000], 1)], &cursor(1)).unwrap();
    let whole = fs::read(disk.path()).unwrap();
    fs::write(disk.path(), [&whole[..], &whole[12..100_000]].concat()).unwrap();
    disk.fill(0);
    assert_eq!(state(&open(&disk.path())).0, cursor(1));
    assert_eq!(fs::read(disk.path()).unwrap(), whole);
}

#[test]
fn a_log_of_format_1_is_left_alone_by_a_disk_without_room_for_a_new_one() {
    let Some(disk) = SmallDisk::mount(4_000) else { return };
    let old = format_1::log_of(&[(vec![put("a", vec![1; 300_000], 1)], cursor(1))]);
    fs::write(disk.path(), &old).unwrap();
    disk.fill(100_000);
    assert_full(&AppendLogSnapshot::load(&disk.path()).err().expect("there is no room"));
    assert_full(&SnapshotWriter::open(&disk.path(), 1).err().expect("there is no room"));
    assert!(fs::read(disk.path()).unwrap() == old, "it was written to");
    assert!(!disk.path().with_extension("compact").exists());
    disk.make_room();
    assert_eq!(state(&open(&disk.path())).0, cursor(1));
    assert!(fs::read(disk.path()).unwrap().starts_with(b"PGSS\x02\x00"));
}

#[test]
fn an_append_log_is_not_made_in_a_directory_that_may_not_be_written_to() {
    closed_directory::<AppendLogSnapshot>();
}

#[test]
fn a_fold_of_fjall_is_not_made_in_a_directory_that_may_not_be_written_to() {
    closed_directory::<FjallSnapshot>();
}

#[test]
fn a_log_that_may_not_be_written_to_is_refused_and_left_as_it_is() {
    let dir = Closed::new();
    open(&dir.path()).apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
    let bytes = fs::read(dir.path()).unwrap();
    // Of whoever ran this, and for all to read.
    set_mode(&dir.path(), 0o444);
    assert_denied(as_nobody(|| AppendLogSnapshot::load(&dir.path()).err()));
    assert_denied(as_nobody(|| SnapshotWriter::open(&dir.path(), 1).err()));
    let read = as_nobody(|| Snapshot::load(&dir.path()).unwrap());
    assert_eq!((read.cursor, fs::read(dir.path()).unwrap()), (cursor(1), bytes));
}

#[test]
fn a_directory_that_is_closed_under_a_log_costs_its_compactions_only() {
    let dir = Closed::new();
    as_nobody(|| {
        let mut store = open(&dir.path());
        store.apply(&[put("a", "1", 1)], &cursor(1)).unwrap();
        dir.mode(0o500);
        assert_denied(store.compact().err());
        store.apply(&[put("a", "2", 2)], &cursor(2)).unwrap();
        dir.mode(0o700);
        store.compact().unwrap();
    });
    assert_eq!(Snapshot::load(&dir.path()).unwrap().cursor, cursor(2));
}

/// A directory that cannot be opened cannot be synced: the compacted log is in its place, and only
/// that it stays there if the machine crashes is not certain.
#[test]
fn a_compaction_whose_directory_cannot_be_synced_does_not_lose_what_follows() {
    let dir = Closed::new();
    as_nobody(|| {
        let mut writer = SnapshotWriter::open(&dir.path(), 1).unwrap();
        writer.write_update(&put("a", "1", 1)).unwrap();
        writer.checkpoint(&cursor(1)).unwrap();
        dir.mode(0o300);
        assert_denied(writer.compact().err());
        writer.write_update(&put("b", "1", 2)).unwrap();
        writer.checkpoint(&cursor(2)).unwrap();
        assert_eq!(Snapshot::load(&dir.path()).unwrap().cursor, cursor(2));
        let second = SnapshotWriter::open(&dir.path(), 1).err();
        assert!(matches!(second, Some(SnapshotError::InUse)), "{second:?}");
        drop(writer);

        let mut store = open(&dir.path());
        assert_denied(store.compact().err());
        store.apply(&[put("c", "1", 3)], &cursor(3)).unwrap();
        assert_eq!(Snapshot::load(&dir.path()).unwrap().cursor, cursor(3));
        let second = AppendLogSnapshot::load(&dir.path()).err();
        assert!(matches!(second, Some(SnapshotError::InUse)), "{second:?}");
    });
    let read = Snapshot::load(Path::new(&dir.path())).unwrap();
    assert_eq!((read.cursor, read.entries.len()), (cursor(3), 3));
}
