//! The embedded coordinator as the simulator's subject.

use std::path::{Path, PathBuf};
use std::time::Duration;

use gossip_coordination::codec::{decode_run, decode_shard};
use gossip_coordination::sim::{Subject, SubjectLimits};
use gossip_coordination::{EventCollector, RunRecord, ShardRecordView};
use gossip_coordination_sqlite::{Durability, SqliteConfig, SqliteCoordinator, rusqlite};
use tempfile::TempDir;

/// A database on a file system in memory, where there is one.
pub(crate) struct Sqlite {
    dir: TempDir,
    config: SqliteConfig,
    crashes: u32,
    // Dropped before its directory is.
    coordinator: Option<SqliteCoordinator>,
    /// Another process, which can hold the database up.
    rival: Option<rusqlite::Connection>,
}

impl Sqlite {
    fn path(&self) -> PathBuf {
        self.dir.path().join(format!("{}.db", self.crashes))
    }

    fn start(&mut self) {
        let opened = SqliteCoordinator::open(self.path(), self.config.clone()).expect("it opens");
        self.coordinator = Some(opened);
    }

    fn coordinator(&mut self) -> &mut SqliteCoordinator {
        self.coordinator.as_mut().expect("it is open")
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.coordinator = None;
        self.rival = None;
    }
}

fn scratch_dir() -> TempDir {
    let shm = Path::new("/dev/shm");
    let builder = || tempfile::Builder::new();
    let made = if shm.is_dir() {
        builder().prefix("gossip-sim-").tempdir_in(shm)
    } else {
        builder().prefix("gossip-sim-").tempdir()
    };
    made.expect("a directory can be made")
}

impl Subject for Sqlite {
    type Backend = SqliteCoordinator;
    const HAS_COOLDOWN: bool = false;

    fn open(limits: &SubjectLimits) -> Self {
        let config = SqliteConfig {
            // The simulation crashes processes, not machines.
            durability: Durability::Off,
            limits: limits.shards,
            busy_timeout: Duration::ZERO,
            ..SqliteConfig::default()
        };
        let mut subject =
            Self { dir: scratch_dir(), config, crashes: 0, coordinator: None, rival: None };
        subject.start();
        subject
    }

    fn backend(&mut self) -> &mut SqliteCoordinator {
        self.coordinator()
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut SqliteCoordinator) -> R,
    ) -> R {
        self.coordinator().with_events(collector, f)
    }

    /// The files are copied as they lie there, while the old connection has not been told to
    /// finish anything.
    fn reopen(&mut self) {
        let old = self.path();
        self.rival = None;
        self.crashes += 1;
        let new = self.path();
        for suffix in ["", "-wal"] {
            let file = |path: &PathBuf| PathBuf::from(format!("{}{suffix}", path.display()));
            std::fs::copy(file(&old), file(&new)).expect("an open database has its log");
        }
        self.start();
        for suffix in ["", "-wal", "-shm"] {
            // The old connection may have taken some of them with it.
            std::fs::remove_file(format!("{}{suffix}", old.display())).ok();
        }
    }

    /// Another process holds the write lock meanwhile.
    fn obstructed<R>(&mut self, f: impl FnOnce(&mut SqliteCoordinator) -> R) -> Option<R> {
        if self.rival.is_none() {
            let conn = rusqlite::Connection::open(self.path()).expect("it opens again");
            self.rival = Some(conn);
        }
        let rival = self.rival.as_ref().expect("it was opened");
        rival.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        let coordinator = self.coordinator.as_mut().expect("it is open");
        let result = f(coordinator);
        rival.execute_batch("ROLLBACK").expect("a transaction can be given up");
        Some(result)
    }

    fn for_each_run(&mut self, f: &mut dyn FnMut(&RunRecord)) {
        let read = self.coordinator().read(|tx| {
            let mut statement = tx.prepare_cached("SELECT record FROM coord_run_records")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                f(&decode_run(row.get_ref(0)?.as_blob()?).expect("it decodes"));
            }
            Ok::<_, rusqlite::Error>(())
        });
        read.expect("every run can be read");
    }

    fn for_each_shard(&mut self, f: &mut dyn FnMut(&ShardRecordView<'_>)) {
        let read = self.coordinator().read(|tx| {
            let mut statement = tx.prepare_cached("SELECT record FROM coord_shards")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                f(&decode_shard(row.get_ref(0)?.as_blob()?).expect("it decodes").view());
            }
            Ok::<_, rusqlite::Error>(())
        });
        read.expect("every shard can be read");
    }

    fn check_consistent(&mut self) -> Result<(), String> {
        let report = self.coordinator().verify().map_err(|error| error.to_string())?;
        if report.is_sound() { Ok(()) } else { Err(format!("{:?}", report.faults)) }
    }
}
