//! Making SQLite fail by its own means: another connection, a progress handler, a limit on pages.
//!
//! A commit hook would not do: what it refuses is a broken constraint to SQLite, which no disk causes.

use std::cell::Cell;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::StoreFault;
use gossip_coordination_sqlite::{SqliteCoordinator, rusqlite};
use rusqlite::Connection;
use rusqlite::trace::{TraceEvent, TraceEventCodes};

/// Another process on the same database.
#[derive(Clone)]
pub(crate) struct Rival(Arc<Mutex<Connection>>);

impl Rival {
    pub(crate) fn open(path: &Path) -> Self {
        let conn = Connection::open(path).expect("it opens again");
        conn.busy_timeout(Duration::ZERO).expect("a timeout can be set");
        Self(Arc::new(Mutex::new(conn)))
    }

    fn with<R>(&self, f: impl FnOnce(&Connection) -> R) -> R {
        f(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number that changes with everything that others store.
    pub(crate) fn version(&self) -> i64 {
        let version =
            self.with(|conn| conn.pragma_query_value(None, "data_version", |row| row.get(0)));
        version.expect("a database has a version")
    }

    /// Writes the log back and empties it, while nobody uses the database.
    pub(crate) fn write_log_back(&self) {
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let busy: i64 = self.with(|conn| conn.query_row(sql, [], |row| row.get(0))).expect("it is");
        assert_eq!(busy, 0, "nobody uses the database");
    }

    fn pack(&self) {
        self.with(|conn| conn.execute_batch("VACUUM")).expect("nobody uses the database");
    }

    fn begin(&self) {
        self.with(|conn| conn.execute_batch("BEGIN IMMEDIATE")).expect("nobody else writes");
    }

    fn give_up(&self) {
        self.with(|conn| conn.execute_batch("ROLLBACK")).expect("a transaction can be given up");
    }

    /// Writes, unless somebody else does.
    fn try_write(&self) {
        let sql = "INSERT INTO sim_rival VALUES (1, 1) \
                   ON CONFLICT(id) DO UPDATE SET times = times + 1";
        match self.with(|conn| conn.execute(sql, [])) {
            Ok(_) => {}
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {}
            Err(error) => panic!("a rival cannot write: {error}"),
        }
    }
}

/// What a connection is doing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Beginning,
    Committing,
    RollingBack,
    Other,
}

/// Calls of a progress handler up to the step that begins a transaction or ends it; the next call
/// comes when that is done.
const BEFORE: u32 = 2;

thread_local! {
    static DOING: Cell<Doing> = const { Cell::new(Doing::Other) };
    /// Calls of a progress handler since the statement began.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn note_statement(sql: &str) {
    CALLS.set(0);
    DOING.set(match sql.split(' ').next() {
        Some("BEGIN") => Doing::Beginning,
        Some("COMMIT") => Doing::Committing,
        Some("ROLLBACK") => Doing::RollingBack,
        _ => Doing::Other,
    });
}

/// What is being done, and how often it was asked whether to go on with it, now included.
fn now_doing() -> (Doing, u32) {
    let calls = CALLS.get() + 1;
    CALLS.set(calls);
    (DOING.get(), calls)
}

/// Whether a store could give up here. It does not say that a transaction has not begun which has, nor
/// does it keep one that is to be rolled back; only a handler like ours can make SQLite do so.
fn can_fail((doing, calls): (Doing, u32)) -> bool {
    match doing {
        Doing::Beginning => calls <= BEFORE,
        Doing::RollingBack => false,
        Doing::Committing | Doing::Other => true,
    }
}

fn interrupt(
    conn: &mut Connection,
    when: impl FnMut() -> bool + Send + 'static,
) -> rusqlite::Result<()> {
    let note = |event: TraceEvent<'_>| {
        if let TraceEvent::Stmt(_, sql) = event {
            note_statement(sql);
        }
    };
    conn.trace_v2(TraceEventCodes::SQLITE_TRACE_STMT, Some(note))?;
    conn.progress_handler(1, Some(when))
}

/// A fault that waits in a connection.
pub(crate) struct Armed(Option<Rival>);

/// No page count is higher.
const PAGES_MAX: u32 = 0xffff_fffe;

impl Armed {
    pub(crate) fn new(
        coordinator: &mut SqliteCoordinator,
        fault: StoreFault,
        rival: &Rival,
    ) -> Self {
        let conn = coordinator.connection_mut();
        note_statement("");
        let armed = match fault {
            StoreFault::Busy => {
                rival.begin();
                return Self(Some(rival.clone()));
            }
            StoreFault::Rival { after } => {
                let (rival, mut steps) = (rival.clone(), 0);
                conn.progress_handler(
                    1,
                    Some(move || {
                        if steps == after {
                            rival.try_write();
                        }
                        steps += 1;
                        false
                    }),
                )
            }
            StoreFault::Interrupted { after } => {
                let (mut steps, mut fired) = (0, false);
                interrupt(conn, move || {
                    steps += 1;
                    let fires = can_fail(now_doing()) && !fired && steps > after;
                    fired |= fires;
                    fires
                })
            }
            StoreFault::CommitRefused => {
                interrupt(conn, || matches!(now_doing(), (Doing::Committing, 1)))
            }
            StoreFault::CommitUnknown => interrupt(
                conn,
                || matches!(now_doing(), (Doing::Committing, calls) if calls == BEFORE + 1),
            ),
            StoreFault::Full => {
                // Pages without gaps: most of what grows needs another one.
                rival.pack();
                let pages = conn.pragma_query_value(None, "page_count", |row| row.get(0));
                pages.and_then(|pages| limit(conn, pages))
            }
        };
        armed.expect("a connection can be made to fail");
        Self(None)
    }

    /// Calls `act` when the connection has come `after` steps, and says whether its transaction was
    /// over by then: if `act` gets the lock, it comes second.
    pub(crate) fn with_rival(
        coordinator: &mut SqliteCoordinator,
        after: u32,
        mut act: impl FnMut(bool) + Send + 'static,
    ) -> Self {
        note_statement("");
        let mut steps = 0;
        let armed = interrupt(coordinator.connection_mut(), move || {
            if steps == after {
                act(matches!(DOING.get(), Doing::Committing | Doing::RollingBack));
            }
            steps += 1;
            false
        });
        armed.expect("a connection can be made to wait for another");
        Self(None)
    }

    pub(crate) fn disarm(self, coordinator: &mut SqliteCoordinator) {
        if let Some(rival) = self.0 {
            return rival.give_up();
        }
        let conn = coordinator.connection_mut();
        let disarmed = conn
            .trace_v2(TraceEventCodes::empty(), None::<fn(TraceEvent<'_>)>)
            .and_then(|()| conn.progress_handler(0, None::<fn() -> bool>))
            .and_then(|()| limit(conn, PAGES_MAX));
        disarmed.expect("a connection can be mended");
    }
}

fn limit(conn: &Connection, pages: u32) -> rusqlite::Result<()> {
    conn.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()))
}
