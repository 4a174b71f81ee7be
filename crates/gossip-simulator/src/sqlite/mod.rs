//! The embedded coordinator under simulation.

mod faults;
mod store;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gossip_coordination::codec::{decode_run, decode_shard};
use gossip_coordination::{EventCollector, RunRecord, ShardRecordView};

use crate::{BackendLimits, Disturbed, Effective, Overtaken, Rival, SimulatedBackend, StoreFault};
use gossip_coordination_sqlite::{Durability, SqliteConfig, SqliteCoordinator, rusqlite};
use tempfile::TempDir;

use self::faults::{Armed, Rival as Locker};
use self::store::{PAGES, Page, Store};

/// A log longer than this is written back before a crash in the middle of an operation: SQLite does
/// so by itself at 16 MiB, and then its end alone does not say what a crash would leave. Shorter,
/// since each crash copies it.
const LOG_MAX: u64 = 1 << 20;

/// Connections to the database.
const HANDLES: usize = 2;

/// A database on a file system in memory, where there is one.
pub struct Sqlite {
    dir: TempDir,
    config: SqliteConfig,
    crashes: u32,
    /// Two handles, as two processes have, which take turns. Dropped before their directory is.
    stores: Vec<Store>,
    turns: usize,
    /// Another process, which can hold the database up, and sees what is stored in it.
    rival: Option<Locker>,
    /// The log ends in bytes that a crash left behind, which are written over.
    is_torn: bool,
    /// The caller's rows, and how often each must be there: an id that its shard has forgotten may
    /// move the cursor again.
    pages: BTreeMap<Page, u32>,
}

impl Sqlite {
    fn path(&self) -> PathBuf {
        self.dir.path().join(format!("{}.db", self.crashes))
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join(format!("{}.db-wal", self.crashes))
    }

    fn start(&mut self) {
        let open = || SqliteCoordinator::open(self.path(), self.config.clone());
        self.stores = (0..HANDLES).map(|_| Store::new(open().expect("it opens"))).collect();
    }

    /// The handle whose turn it is: one for a few operations, then the other.
    fn store(&mut self) -> &mut Store {
        self.turns += 1;
        let at = self.turns / 3 % self.stores.len();
        &mut self.stores[at]
    }

    fn coordinator(&mut self) -> &mut SqliteCoordinator {
        &mut self.store().coordinator
    }

    /// The files are copied as they lie there, the log up to `log_len`, while the old connection
    /// has not been told to finish anything.
    fn crash(&mut self, log_len: u64) {
        let (old, old_log) = (self.path(), self.log());
        self.rival = None;
        self.is_torn = log_len < self.log_len();
        self.crashes += 1;
        std::fs::copy(&old, self.path()).expect("an open database is a file");
        std::fs::copy(&old_log, self.log()).expect("an open database has its log");
        let log = std::fs::OpenOptions::new().write(true).open(self.log());
        log.and_then(|log| log.set_len(log_len)).expect("a copy can be cut");
        self.start();
        for suffix in ["", "-wal", "-shm"] {
            // The old connection may have taken some of them with it.
            std::fs::remove_file(format!("{}{suffix}", old.display())).ok();
        }
    }

    fn log_len(&self) -> u64 {
        std::fs::metadata(self.log()).expect("an open database has its log").len()
    }

    /// From here on the log grows by what is written.
    fn settle_log(&mut self) {
        if self.is_torn || self.log_len() > LOG_MAX {
            self.rival().write_log_back();
            self.is_torn = false;
        }
    }

    fn rival(&mut self) -> &Locker {
        let path = self.path();
        self.rival.get_or_insert_with(|| Locker::open(&path))
    }

    /// The database as it is, beside it.
    fn copy(&self) -> PathBuf {
        let copy = self.dir.path().join("copy.db");
        std::fs::copy(self.path(), &copy).expect("an open database is a file");
        let log = self.dir.path().join("copy.db-wal");
        std::fs::copy(self.log(), log).expect("an open database has its log");
        copy
    }

    fn expect_pages(&mut self, pages: Vec<Page>) {
        count(&mut self.pages, pages);
    }

    /// Every cursor move has brought its row, and nothing else has.
    fn check_pages(&mut self) -> Result<(), String> {
        let read = self.coordinator().read(|tx| {
            let mut statement =
                tx.prepare_cached("SELECT tenant, run, shard, op FROM sim_pages")?;
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect::<rusqlite::Result<Vec<Page>>>()
        });
        let mut stored = BTreeMap::new();
        count(&mut stored, read.expect("the caller's rows can be read"));
        if stored == self.pages {
            return Ok(());
        }
        let (stored, expected) = (&stored, &self.pages);
        let at = |pages: &BTreeMap<Page, u32>, page: &Page| pages.get(page).copied().unwrap_or(0);
        let wrong = expected.keys().chain(stored.keys());
        let wrong = wrong.copied().find(|page| at(stored, page) != at(expected, page));
        let page = &wrong.expect("they differ");
        let (_, run, shard, op) = page;
        Err(format!(
            "of operation {op} on shard {shard:#x} of run {run} the caller has {} rows, not {}",
            at(stored, page),
            at(expected, page),
        ))
    }
}

fn count(counts: &mut BTreeMap<Page, u32>, pages: Vec<Page>) {
    for page in pages {
        *counts.entry(page).or_default() += 1;
    }
}

impl Drop for Sqlite {
    fn drop(&mut self) {
        self.stores.clear();
        self.rival = None;
    }
}

fn scratch_dir() -> TempDir {
    let shm = Path::new("/dev/shm");
    let mut builder = tempfile::Builder::new();
    builder.prefix("gossip-sim-");
    let made = if shm.is_dir() { builder.tempdir_in(shm) } else { builder.tempdir() };
    made.expect("a directory can be made")
}

impl SimulatedBackend for Sqlite {
    type Backend = Store;
    const HAS_COOLDOWN: bool = false;
    const IS_DURABLE: bool = true;

    fn open(limits: &BackendLimits) -> Self {
        let config = SqliteConfig {
            // The simulation crashes processes, not machines.
            durability: Durability::Off,
            limits: limits.shards,
            busy_timeout: Duration::ZERO,
            caller_schemas: vec![PAGES],
        };
        let mut subject = Self {
            dir: scratch_dir(),
            config,
            crashes: 0,
            stores: Vec::new(),
            turns: 0,
            rival: None,
            is_torn: false,
            pages: BTreeMap::new(),
        };
        subject.start();
        subject
    }

    fn with_events<R>(
        &mut self,
        collector: &mut EventCollector,
        f: impl FnOnce(&mut Store) -> R,
    ) -> R {
        let store = self.store();
        let result = store.with_events(collector, f);
        let pages = std::mem::take(&mut store.pages);
        self.expect_pages(pages);
        result
    }

    fn reopen(&mut self) {
        let whole = self.log_len();
        self.crash(whole);
    }

    fn crash_during<R>(
        &mut self,
        collector: &mut EventCollector,
        written: u64,
        f: impl FnOnce(&mut Store) -> R,
    ) -> Option<(R, bool)> {
        self.settle_log();
        let before = self.log_len();
        let store = self.store();
        let result = store.with_events(collector, f);
        let pages = std::mem::take(&mut store.pages);
        let after = self.log_len();
        let cut = before + (after - before) * written / 1000;
        if cut == after {
            self.expect_pages(pages);
        }
        self.crash(cut);
        Some((result, cut == after))
    }

    fn disturbed<R>(
        &mut self,
        collector: &mut EventCollector,
        fault: StoreFault,
        mut f: impl FnMut(&mut Store) -> R,
    ) -> Option<Disturbed<R>> {
        let reported = collector.len();
        let rival = self.rival().clone();
        let may_be_stored =
            matches!(fault, StoreFault::Interrupted { .. } | StoreFault::CommitUnknown);
        let copy = may_be_stored.then(|| self.copy());
        let before = rival.version();
        let store = self.store();
        let armed = Armed::new(&mut store.coordinator, fault, &rival);
        store.page_len = if fault == StoreFault::Full { 5_000 } else { 0 };
        let told = store.with_events(collector, &mut f);
        store.page_len = 0;
        armed.disarm(&mut store.coordinator);
        let mut pages = std::mem::take(&mut store.pages);
        // Every change reports itself, unless its commit seemed to fail.
        let is_unsaid = collector.len() == reported && rival.version() != before;
        let unsaid = copy.filter(|_| is_unsaid).map(|copy| {
            let coordinator = SqliteCoordinator::open(copy, self.config.clone());
            let mut store = Store::new(coordinator.expect("a copy opens"));
            let told = store.with_events(collector, &mut f);
            pages.append(&mut store.pages);
            told
        });
        self.expect_pages(pages);
        Some(Disturbed { told, unsaid })
    }

    fn overtaken<R: Send + 'static>(
        &mut self,
        collector: &mut EventCollector,
        after: u32,
        _: Effective,
        f: impl FnOnce(&mut Store) -> R,
        rival: impl FnOnce(&mut Store) -> R + Send + 'static,
    ) -> Option<Overtaken<R>> {
        let other = self.stores.swap_remove(0);
        let turn = Arc::new(Mutex::new((other, None)));
        let (theirs, mut rival) = (Arc::clone(&turn), Some(rival));
        let store = self.store();
        let armed = Armed::with_rival(&mut store.coordinator, after, move |is_second| {
            let rival = rival.take().expect("it comes once");
            let (other, came) = &mut *theirs.lock().expect("nobody else uses it");
            let mut collector = EventCollector::new();
            let told = other.with_events(&mut collector, rival);
            *came = Some(Rival { told, events: collector.drain(), is_second });
        });
        let told = store.with_events(collector, f);
        armed.disarm(&mut store.coordinator);
        let mut pages = std::mem::take(&mut store.pages);
        let turn = Arc::into_inner(turn).expect("the other process is done");
        let (mut other, rival) = turn.into_inner().unwrap_or_else(PoisonError::into_inner);
        pages.append(&mut other.pages);
        self.stores.push(other);
        self.expect_pages(pages);
        Some(Overtaken { told, rival })
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
        self.check_pages()?;
        let report = self.coordinator().verify().map_err(|error| error.to_string())?;
        if report.is_sound() { Ok(()) } else { Err(format!("{:?}", report.faults)) }
    }
}
