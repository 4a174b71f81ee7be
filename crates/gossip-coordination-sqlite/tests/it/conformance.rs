//! The suite of all coordinators. Reopening is a crash: the files are copied as they lie there,
//! while the old connection has not been told to finish anything.

use std::path::PathBuf;

use gossip_coordination::codec::{decode_run, decode_shard};
use gossip_coordination::conformance::transactional::TransactionalHarness;
use gossip_coordination::conformance::{Caps, Dump, Harness, Limits};
use gossip_coordination::{EventCollector, ShardLimits};
use gossip_coordination_sqlite::{SqliteConfig, SqliteCoordinator};
use rusqlite::Transaction;
use tempfile::TempDir;

gossip_coordination::conformance_suite!(OnSqlite);

mod transactional {
    gossip_coordination::transactional_conformance_suite!(super::OnSqlite);
}

struct OnSqlite {
    dir: TempDir,
    config: SqliteConfig,
    crashes: u32,
    // Dropped before its directory is.
    coordinator: Option<SqliteCoordinator>,
}

impl OnSqlite {
    fn path(&self) -> PathBuf {
        self.dir.path().join(format!("{}.db", self.crashes))
    }

    fn start(&mut self) {
        let opened = SqliteCoordinator::open(self.path(), self.config.clone());
        self.coordinator = Some(opened.expect("it opens"));
    }
}

impl Drop for OnSqlite {
    fn drop(&mut self) {
        self.coordinator = None;
    }
}

impl Harness for OnSqlite {
    type Backend = SqliteCoordinator;

    fn caps() -> Caps {
        Caps {
            max_split_children: gossip_contracts::coordination::MAX_SPLIT_CHILDREN,
            max_split_bytes: usize::MAX,
            max_initial_shards: gossip_contracts::coordination::MAX_INITIAL_SHARDS,
            takeover_delay: 0,
            shard_ceilings: true,
            claim_cooldown: false,
            byte_capacity: false,
            durable: true,
        }
    }

    fn open(limits: &Limits) -> Self {
        let limits =
            ShardLimits { per_tenant: limits.shards_per_tenant, global: limits.shards_total };
        let config = SqliteConfig { limits, ..crate::support::config() };
        let dir = tempfile::Builder::new().prefix("gossip-sqlite-").tempdir().unwrap();
        let mut harness = Self { dir, config, crashes: 0, coordinator: None };
        harness.start();
        harness
    }

    fn backend(&mut self) -> &mut SqliteCoordinator {
        self.coordinator.as_mut().expect("it is open")
    }

    fn reopen(&mut self) {
        let old = self.path();
        self.crashes += 1;
        let new = self.path();
        for suffix in ["", "-wal"] {
            let file = |path: &PathBuf| PathBuf::from(format!("{}{suffix}", path.display()));
            std::fs::copy(file(&old), file(&new)).expect("an open database has its log");
        }
        self.start();
    }

    fn connect(&mut self) -> Option<SqliteCoordinator> {
        Some(SqliteCoordinator::open(self.path(), self.config.clone()).expect("it opens"))
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut SqliteCoordinator) -> R,
    ) -> R {
        self.backend().with_events(collector, f)
    }

    fn dump(&mut self) -> Dump {
        let mut dump = Dump::new();
        let read = self.backend().read(|tx| {
            let mut statement = tx.prepare("SELECT record FROM coord_run_records")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                dump.add_run(&decode_run(row.get_ref(0)?.as_blob()?).expect("it decodes"));
            }
            let mut statement = tx.prepare("SELECT id, place, record FROM coord_shards")?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (id, place): (i64, i64) = (row.get(0)?, row.get(1)?);
                dump.add_raw(format!("place of row {id}"), place.to_le_bytes());
                let record = decode_shard(row.get_ref(2)?.as_blob()?).expect("it decodes");
                dump.add_shard(&record.view());
            }
            Ok::<_, rusqlite::Error>(())
        });
        read.expect("everything can be read");
        dump
    }

    fn assert_consistent(&mut self) {
        crate::support::assert_sound(self.backend());
    }
}

impl TransactionalHarness for OnSqlite {
    fn write(tx: &Transaction<'_>, row: u64) {
        tx.execute("INSERT INTO pages_rows VALUES (?1, 1)", [row as i64]).expect("it is new");
    }

    fn rows(&mut self) -> Vec<u64> {
        crate::support::pages(&self.connect().expect("a second connection"))
    }
}
