//! Files that are not what they should be: each is named, explained, and left as it is.

use std::fs::{self, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, ShardId, ShardKey, WorkerId};
use gossip_coordination::{
    AcquireError, AcquireScratch, CoordinationBackend, InfraError, RunManagement,
};
use gossip_coordination_sqlite::{OpenError, SqliteConfig, SqliteCoordinator};
use rusqlite::Connection;

use crate::support::{NOW, Place, RUN, TENANT, assert_sound, begin, key};

/// Every file of a directory with its bytes.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}

/// Opens, expects a refusal that says `message`, and that no byte has changed.
#[track_caller]
fn refuses(place: &Place, message: &str) -> OpenError {
    let before = contents(place.dir.path());
    let refused = SqliteCoordinator::open(place.db(), SqliteConfig::default());
    let refused = refused.expect_err(message);
    assert!(refused.to_string().contains(message), "{refused}");
    let after = contents(place.dir.path());
    for (path, bytes) in &before {
        let now = after.iter().find(|(other, _)| other == path);
        let same = now.is_some_and(|(_, now)| now == bytes);
        // Shared memory is scratch; SQLite rebuilds it from the log.
        assert!(same || path.to_string_lossy().ends_with("-shm"), "{} changed", path.display());
    }
    refused
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    for bytes in [&b"hello"[..], b"SQLite format 3", &[0; 100], &[0; 8192], &[b'x'; 9000]] {
        let place = Place::new();
        fs::write(place.db(), bytes).unwrap();
        refuses(&place, "it was left alone; choose another path");
    }
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    for application_id in [0, 42] {
        let place = Place::new();
        let other = Connection::open(place.db()).unwrap();
        other.pragma_update(None, "application_id", application_id).unwrap();
        other.pragma_update(None, "journal_mode", "wal").unwrap();
        other.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").unwrap();
        let refused = refuses(&place, "a database of another program");
        assert!(matches!(refused, OpenError::Foreign { .. }));
        // Also while its owner is not at home and a log lies beside it.
        let elsewhere = Place::new();
        for suffix in ["", "-wal"] {
            fs::copy(place.beside(suffix), elsewhere.beside(suffix)).unwrap();
        }
        refuses(&elsewhere, "a database of another program");
        other.query_row("SELECT x FROM t", [], |row| row.get::<_, i64>(0)).unwrap();
    }
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let place = Place::new();
    begin(&mut place.open(), 3, 10, 1000);
    let newer = Connection::open(place.db()).unwrap();
    newer.pragma_update(None, "user_version", 99).unwrap();
    // The version is in the log only …
    let refused = refuses(&place, "use a newer version of this program");
    assert!(matches!(refused, OpenError::Newer { found: 99, newest: 2, .. }));
    // … and in the file.
    drop(newer);
    refuses(&place, "schema version 99");
}

/// The header's field is signed, so one flipped bit makes it negative.
#[test]
fn a_database_of_a_negative_version_is_damaged() {
    let place = Place::new();
    begin(&mut place.open(), 3, 10, 1000);
    let damaged = Connection::open(place.db()).unwrap();
    for version in [-1, i32::MIN + 2] {
        damaged.pragma_update(None, "user_version", version).unwrap();
        let refused = refuses(&place, &format!("schema version is {version}"));
        assert!(matches!(refused, OpenError::Damaged { .. }), "{refused:?}");
    }
}

#[test]
fn a_truncated_database_is_left_alone() {
    let place = Place::new();
    begin(&mut place.open(), 200, 10, 1000);
    let whole = fs::read(place.db()).unwrap();
    assert!(whole.len() > 40_000, "{} bytes", whole.len());
    for len in [1, 99, 100, 512, 4095, 4096, 8192, whole.len() / 2, whole.len() - 1] {
        fs::write(place.db(), &whole[..len]).unwrap();
        let refused = refuses(&place, "left alone");
        assert!(
            matches!(
                refused,
                OpenError::Damaged { .. }
                    | OpenError::NotADatabase { .. }
                    | OpenError::Foreign { .. }
            ),
            "{len} bytes: {refused:?}"
        );
        for suffix in ["-wal", "-shm"] {
            let _ = fs::remove_file(place.beside(suffix));
        }
    }
    fs::write(place.db(), &whole).unwrap();
    assert_sound(&place.open());
}

#[test]
fn a_database_that_was_emptied_keeps_its_log() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 3, 10, 1000);
    let emptied = Place::new();
    fs::copy(place.beside("-wal"), emptied.beside("-wal")).unwrap();
    fs::write(emptied.db(), b"").unwrap();
    let refused = refuses(&emptied, "there is a log beside it");
    assert!(matches!(refused, OpenError::Damaged { .. }));
    // Also when it is gone.
    fs::remove_file(emptied.db()).unwrap();
    refuses(&emptied, "there is a log beside it");
}

#[test]
fn paths_that_can_hold_no_database_are_named() {
    let place = Place::new();
    let open = |path: &Path| SqliteCoordinator::open(path, SqliteConfig::default()).unwrap_err();
    let dir = place.dir.path();
    assert!(matches!(open(dir), OpenError::IsDirectory { .. }));
    assert!(matches!(open(Path::new("/")), OpenError::IsDirectory { .. }));
    assert!(matches!(open(&dir.join("missing/a.db")), OpenError::NoDirectory { .. }));
    assert!(matches!(open(Path::new("/dev/null")), OpenError::NotAFile { .. }));
    fs::write(dir.join("file"), "x").unwrap();
    let below_a_file = open(&dir.join("file/a.db"));
    assert!(matches!(below_a_file, OpenError::Other { .. }), "{below_a_file:?}");
    symlink(dir.join("nowhere"), dir.join("link.db")).unwrap();
    assert!(matches!(open(&dir.join("link.db")), OpenError::NotAFile { .. }));
    assert!(!dir.join("nowhere").exists());
}

#[test]
fn a_link_to_a_database_and_a_name_that_needs_escaping_both_work() {
    let place = Place::new();
    let odd = place.dir.path().join("odd ?#%name&.db");
    drop(SqliteCoordinator::open(&odd, SqliteConfig::default()).unwrap());
    assert_sound(&SqliteCoordinator::open(&odd, SqliteConfig::default()).unwrap());
    let link = place.dir.path().join("link.db");
    symlink(&odd, &link).unwrap();
    assert_sound(&SqliteCoordinator::open(&link, SqliteConfig::default()).unwrap());
}

/// Root may write anywhere, so this needs a file system that nobody may write to.
#[test]
fn a_file_or_directory_that_cannot_be_written_is_named() {
    let place = Place::new();
    let Some(mounted) = Mounted::tmpfs(place.dir.path().join("mount"), "1m") else { return };
    let path = mounted.dir.join("a.db");
    drop(SqliteCoordinator::open(&path, SqliteConfig::default()).unwrap());
    let before = fs::read(&path).unwrap();
    mounted.remount("ro");
    let refused = SqliteCoordinator::open(&path, SqliteConfig::default()).unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
    assert!(refused.to_string().contains("make it writable"), "{refused}");
    let missing = mounted.dir.join("b.db");
    let refused = SqliteCoordinator::open(missing, SqliteConfig::default()).unwrap_err();
    assert!(matches!(refused, OpenError::ReadOnly { .. }), "{refused:?}");
    assert_eq!(fs::read(&path).unwrap(), before);
}

/// The same without a mount, for those who are not root.
#[test]
fn a_file_without_write_permission_is_named() {
    let place = Place::new();
    drop(place.open());
    fs::set_permissions(place.db(), Permissions::from_mode(0o400)).unwrap();
    let opened = SqliteCoordinator::open(place.db(), SqliteConfig::default());
    match opened {
        Err(OpenError::ReadOnly { .. }) => {}
        Ok(_) => println!("skipped: root may write to it all the same"),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn a_damaged_record_is_an_error_that_names_the_operation() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 2, 10, 1000);
    let other = Connection::open(place.db()).unwrap();
    other.execute_batch("UPDATE coord_shards SET record = x'0101' WHERE shard = 0").unwrap();
    let acquire = |coordinator: &mut SqliteCoordinator, shard| {
        let mut scratch = Box::new(AcquireScratch::new());
        let (key, worker) = (ShardKey::new(RUN, ShardId::from_raw(shard)), WorkerId::from_raw(1));
        coordinator
            .acquire_and_restore_into(NOW, TENANT, key, worker, &mut scratch)
            .map(|acquired| acquired.lease)
    };
    let Err(AcquireError::BackendError(error)) = acquire(&mut coordinator, 0) else { panic!() };
    assert!(matches!(error, InfraError::Corruption { operation: "acquire.load", .. }), "{error:?}");
    let lease = acquire(&mut coordinator, 1).unwrap();

    // Another shard's record under this shard's key.
    other
        .execute_batch(
            "UPDATE coord_shards SET record = (SELECT record FROM coord_shards WHERE shard = 1) \
             WHERE shard = 0",
        )
        .unwrap();
    let Err(AcquireError::BackendError(error)) = acquire(&mut coordinator, 0) else { panic!() };
    assert!(error.to_string().contains("is another's"), "{error}");

    // A run without its record; a count below zero.
    other.execute_batch("DELETE FROM coord_run_records").unwrap();
    let error = coordinator.get_run(TENANT, RUN).unwrap_err();
    assert!(error.to_string().contains("get_run.load: stored data is damaged"), "{error}");
    other.execute_batch("UPDATE coord_runs SET leased = 0, active = 0").unwrap();
    let eleven = key(11);
    let done =
        coordinator.complete(NOW, TENANT, &lease, CursorUpdate::at(&eleven), OpId::from_raw(1));
    assert!(done.unwrap_err().to_string().contains("complete.store: stored data is damaged"));
    let report = coordinator.verify().unwrap();
    assert!(report.faults.len() >= 3, "{report:?}");
}

#[test]
fn a_damaged_page_is_an_error_and_not_a_panic() {
    let place = Place::new();
    begin(&mut place.open(), 500, 10, 1000);
    let pages = fs::metadata(place.db()).unwrap().len() / 4096;
    for page in 1..pages {
        let damaged = Place::new();
        fs::copy(place.db(), damaged.db()).unwrap();
        let mut file = fs::OpenOptions::new().write(true).open(damaged.db()).unwrap();
        file.seek(SeekFrom::Start(page * 4096)).unwrap();
        file.write_all(&[0xa5; 4096]).unwrap();
        drop(file);
        match SqliteCoordinator::open(damaged.db(), SqliteConfig::default()) {
            Err(error) => assert!(matches!(error, OpenError::Damaged { .. }), "{error:?}"),
            // Either the report says so, or reading fails.
            Ok(coordinator) => {
                let report = coordinator.verify();
                assert!(report.is_err() || !report.unwrap().is_sound(), "page {page}");
            }
        }
    }
}

/// A small file system of its own, gone when this is dropped.
pub(crate) struct Mounted {
    pub(crate) dir: PathBuf,
}

impl Mounted {
    /// `None` for those who may not have one and say that they know, with `GOSSIP_ALLOW_SKIPS`.
    pub(crate) fn tmpfs(dir: PathBuf, size: &str) -> Option<Self> {
        fs::create_dir(&dir).unwrap();
        let options = format!("size={size}");
        if mount(&["-t", "tmpfs", "-o", &options, "tmpfs"], &dir) {
            return Some(Self { dir });
        }
        let skip = std::env::var("GOSSIP_ALLOW_SKIPS").is_ok_and(|allow| allow == "1");
        assert!(skip, "a file system of one's own takes root, or GOSSIP_ALLOW_SKIPS=1 to skip");
        println!("skipped: a file system of one's own takes root");
        None
    }

    pub(crate) fn remount(&self, options: &str) {
        assert!(mount(&["-o", &format!("remount,{options}")], &self.dir));
    }
}

fn mount(args: &[&str], dir: &Path) -> bool {
    Command::new("mount").args(args).arg(dir).output().is_ok_and(|output| output.status.success())
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.dir).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} stays mounted",
            self.dir.display()
        );
    }
}
