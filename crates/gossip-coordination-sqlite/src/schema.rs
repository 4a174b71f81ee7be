//! The coordinator's own tables, and how a database gets from one version of them to the next.
//!
//! - D1: the first thing ever written to a file is a page that says whose it is; everything else
//!   goes to the write-ahead log first. Whoever is killed whenever, the file is empty or its header
//!   is ours.
//! - D2: all missing steps are carried out in one transaction or not at all.

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::caller_schema::{CallerSchema, CallerSchemaFault};

/// "gosC", in the header of every file of ours.
pub(crate) const APPLICATION_ID: u32 = u32::from_be_bytes(*b"gosC");

/// Version *n* is what the first *n* steps make. Never edited, only added to.
pub(crate) const MIGRATIONS: &[&str] = &[V1, V2];

/// The version that this program writes.
pub(crate) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Records are codec blobs; every other column is there for an index or a count, and says what the
/// record says (`verify` compares them).
///
/// - Shards have row ids and an index on their key rather than being keyed by it: their records are
///   too large to be kept in the inner nodes of a tree.
/// - The parts of a run that every operation reads are apart from its record, which lists up to
///   10 000 root shards.
/// - `deadline` is the lease's, in an order-preserving map to signed integers; NULL means that nobody
///   was granted the shard. `place` is the shard's place in the queue of its run's free shards.
const V1: &str = "
CREATE TABLE coord_totals(
    id INTEGER PRIMARY KEY CHECK (id = 1),
    shards INTEGER NOT NULL CHECK (shards >= 0)
) STRICT;
INSERT INTO coord_totals(id, shards) VALUES (1, 0);

CREATE TABLE coord_tenants(
    tenant BLOB PRIMARY KEY CHECK (length(tenant) = 32),
    shards INTEGER NOT NULL CHECK (shards >= 0)
) STRICT, WITHOUT ROWID;

CREATE TABLE coord_runs(
    id INTEGER PRIMARY KEY,
    tenant BLOB NOT NULL CHECK (length(tenant) = 32),
    run INTEGER NOT NULL,
    status INTEGER NOT NULL,
    cursor_semantics INTEGER NOT NULL,
    lease_duration INTEGER NOT NULL,
    max_shard_retries INTEGER NOT NULL,
    active INTEGER NOT NULL DEFAULT 0 CHECK (active >= 0),
    done INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
    split INTEGER NOT NULL DEFAULT 0 CHECK (split >= 0),
    parked INTEGER NOT NULL DEFAULT 0 CHECK (parked >= 0),
    leased INTEGER NOT NULL DEFAULT 0 CHECK (leased BETWEEN 0 AND active),
    next_place INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, run)
) STRICT;

CREATE TABLE coord_run_records(
    run_id INTEGER PRIMARY KEY,
    record BLOB NOT NULL
) STRICT;

CREATE TABLE coord_shards(
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    status INTEGER NOT NULL,
    owner INTEGER,
    deadline INTEGER,
    place INTEGER NOT NULL,
    record BLOB NOT NULL,
    UNIQUE (run_id, shard)
) STRICT;
CREATE INDEX coord_shards_claimable ON coord_shards(run_id, deadline, place) WHERE status = 0;
CREATE INDEX coord_shards_owned ON coord_shards(run_id, owner) WHERE owner IS NOT NULL;

CREATE TABLE coord_components(
    name TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

/// Workers that look for work in vain, and until when that counts. Run records have format version 2
/// from here on, which programs that know one step only do not read.
const V2: &str = "
CREATE TABLE coord_idle(
    run_id INTEGER NOT NULL,
    worker INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (run_id, worker)
) STRICT, WITHOUT ROWID;
";

/// Why a schema was not brought up to date.
#[derive(Debug)]
pub(crate) enum SchemaFault {
    Foreign {
        application_id: u32,
    },
    Newer {
        found: i64,
        newest: i64,
    },
    /// No program of ours writes such a version.
    NoVersion {
        found: i64,
    },
    /// Write-ahead logging does not work where the file is.
    NoLog,
    CallerSchema {
        name: &'static str,
        fault: CallerSchemaFault,
    },
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for SchemaFault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

/// What a file's header says of its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    application_id: u32,
    version: i64,
}

impl Stamp {
    const NONE: Self = Self { application_id: 0, version: 0 };

    pub(crate) fn read(conn: &Connection) -> rusqlite::Result<Self> {
        let application_id =
            conn.pragma_query_value(None, "application_id", |row| row.get::<_, i32>(0))?;
        let version = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        Ok(Self { application_id: application_id.cast_unsigned(), version })
    }

    /// Refuses what is not ours, damaged, or too new for a program that knows `newest`.
    pub(crate) fn check(self, newest: i64) -> Result<(), SchemaFault> {
        if self.application_id != APPLICATION_ID {
            return Err(SchemaFault::Foreign { application_id: self.application_id });
        }
        if self.version > newest {
            return Err(SchemaFault::Newer { found: self.version, newest });
        }
        if self.version < 0 {
            return Err(SchemaFault::NoVersion { found: self.version });
        }
        Ok(())
    }
}

/// Makes an empty file ours (D1); refuses one that is not, or that is too new.
pub(crate) fn mark(conn: &Connection, newest: i64) -> Result<(), SchemaFault> {
    if pages(conn)? == 0 {
        let write = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
        // Somebody may have been faster. A write transaction gives an empty file its first page.
        if Stamp::read(&write)? == Stamp::NONE && pages(&write)? == 1 {
            write.pragma_update(None, "application_id", APPLICATION_ID.cast_signed())?;
        }
        write.commit()?;
    }
    Stamp::read(conn)?.check(newest)
}

/// Brings a database of ours up to date, if it is not.
pub(crate) fn migrate(
    conn: &Connection,
    migrations: &[&str],
    caller_schemas: &[CallerSchema],
) -> Result<(), SchemaFault> {
    let newest = migrations.len() as i64;
    let read = Transaction::new_unchecked(conn, TransactionBehavior::Deferred)?;
    if is_current(&read, newest, caller_schemas)? {
        return Ok(());
    }
    drop(read);
    let write = Transaction::new_unchecked(conn, TransactionBehavior::Immediate)?;
    // Somebody may have been faster.
    let stamp = Stamp::read(&write)?;
    stamp.check(newest)?;
    for step in &migrations[stamp.version as usize..] {
        write.execute_batch(step)?;
    }
    write.pragma_update(None, "user_version", newest)?;
    for schema in caller_schemas {
        let fault = |fault| SchemaFault::CallerSchema { name: schema.name, fault };
        schema.migrate(&write).map_err(fault)?;
    }
    write.commit()?;
    Ok(())
}

fn is_current(
    tx: &Transaction<'_>,
    newest: i64,
    caller_schemas: &[CallerSchema],
) -> Result<bool, SchemaFault> {
    let stamp = Stamp::read(tx)?;
    stamp.check(newest)?;
    if stamp.version < newest {
        return Ok(false);
    }
    for schema in caller_schemas {
        let fault = |fault| SchemaFault::CallerSchema { name: schema.name, fault };
        if !schema.is_current(tx).map_err(fault)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn pages(conn: &Connection) -> rusqlite::Result<i64> {
    conn.pragma_query_value(None, "page_count", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HISTORY: [&str; 3] = [
        "CREATE TABLE a(x); INSERT INTO a VALUES (1)",
        "CREATE TABLE coord_components(name TEXT PRIMARY KEY, version INTEGER NOT NULL)",
        "ALTER TABLE a ADD COLUMN y; UPDATE a SET y = x + 1",
    ];

    fn new() -> Connection {
        let conn = Connection::open_in_memory().unwrap();
        mark(&conn, 0).unwrap();
        conn
    }

    fn rows(conn: &Connection) -> i64 {
        conn.query_row("SELECT sum(y) FROM a", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn every_older_version_is_brought_up_to_date_and_the_newest_left_as_it_is() {
        for known in 0..=HISTORY.len() {
            let conn = new();
            migrate(&conn, &HISTORY[..known], &[]).unwrap();
            let stamp = Stamp::read(&conn).unwrap();
            assert_eq!(stamp, Stamp { application_id: APPLICATION_ID, version: known as i64 });
            for _ in 0..2 {
                migrate(&conn, &HISTORY, &[]).unwrap();
                assert_eq!(Stamp::read(&conn).unwrap().version, 3);
                assert_eq!(rows(&conn), 2);
            }
        }
    }

    #[test]
    fn a_newer_version_is_refused() {
        let conn = new();
        migrate(&conn, &HISTORY, &[]).unwrap();
        let refused = migrate(&conn, &HISTORY[..2], &[]);
        assert!(matches!(refused, Err(SchemaFault::Newer { found: 3, newest: 2 })), "{refused:?}");
        assert_eq!(rows(&conn), 2);
    }

    #[test]
    fn a_step_that_fails_undoes_those_before_it() {
        let conn = new();
        migrate(&conn, &HISTORY[..1], &[]).unwrap();
        let faulty = [HISTORY[0], HISTORY[1], "INSERT INTO missing VALUES (1)"];
        assert!(matches!(migrate(&conn, &faulty, &[]), Err(SchemaFault::Sqlite(_))));
        assert_eq!(Stamp::read(&conn).unwrap().version, 1);
        migrate(&conn, &HISTORY, &[]).unwrap();
        assert_eq!(rows(&conn), 2);
    }

    /// A released step never changes: databases that have carried it out would differ from those
    /// that are about to. A change is a new step.
    #[test]
    fn released_steps_are_as_they_were_released() {
        let hash = |step: &str| {
            step.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            })
        };
        assert_eq!(
            MIGRATIONS.iter().map(|step| hash(step)).collect::<Vec<_>>(),
            [3_750_318_613_227_153_921, 1_400_452_491_948_666_195]
        );
    }
}
