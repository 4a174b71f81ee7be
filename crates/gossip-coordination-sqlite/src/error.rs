//! What can go wrong with a database file, and where failures of SQLite end up.

use std::path::PathBuf;
use std::time::Duration;

use gossip_coordination::InfraError;
use gossip_coordination::codec::CodecError;
use rusqlite::ErrorCode;

/// Why a database was not opened. The file is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum OpenError {
    /// The directory that should hold it is missing.
    #[error("there is no directory {}: create it, or choose another place", .dir.display())]
    NoDirectory { dir: PathBuf },
    /// The path names a directory.
    #[error("{} is a directory: give the path of a file in it", .path.display())]
    IsDirectory { path: PathBuf },
    /// The path names a device, a socket, a broken link or the like.
    #[error("{} is not a regular file: choose another path", .path.display())]
    NotAFile { path: PathBuf },
    /// The file or its directory cannot be written. SQLite keeps two more files beside it.
    #[error("{} cannot be written: make it writable, or choose another place", .path.display())]
    ReadOnly { path: PathBuf },
    /// Locks and shared memory do not work there between machines, nor often on one.
    #[error("{} is on a network file system ({kind}): choose a place on a local disk", .path.display())]
    NetworkFileSystem { path: PathBuf, kind: String },
    /// The file is something else.
    #[error("{} is not a database: it was left alone; choose another path", .path.display())]
    NotADatabase { path: PathBuf },
    /// The database is another program's.
    #[error(
        "{} is a database of another program (application id {application_id:#010x}): \
         it was left alone; choose another path",
        .path.display()
    )]
    Foreign { path: PathBuf, application_id: u32 },
    /// A newer version of this program wrote it.
    #[error(
        "{} has schema version {found}, and this program knows up to {newest}: \
         it was left alone; use a newer version of this program",
        .path.display()
    )]
    Newer { path: PathBuf, found: i64, newest: i64 },
    /// A newer version of a caller schema wrote its tables.
    #[error(
        "{}: the tables of `{schema}` have version {found}, and this program knows up to \
         {newest}: nothing was changed; use a newer version of this program",
        .path.display()
    )]
    NewerCallerSchema { path: PathBuf, schema: String, found: i64, newest: i64 },
    /// An older version of the caller wrote its tables, which this one no longer reads.
    #[error(
        "{0}: the tables of `{schema}` have version {found}, and this program reads from {oldest} on: \
         nothing was changed; to start over, move {0}, {0}-wal and {0}-shm away and leave all other \
         files where they are; or use the version that wrote it",
        .path.display()
    )]
    RetiredCallerSchema { path: PathBuf, schema: String, found: i64, oldest: i64 },
    /// A caller schema's migration is faulty: a bug in this program. Nothing was changed.
    #[error("{}: setting up the tables of `{schema}` failed: {message}", .path.display())]
    CallerSchema { path: PathBuf, schema: String, message: String },
    /// The file is damaged.
    #[error(
        "{0} is damaged ({message}): it was left alone; restore a copy; or, to start over, move {0}, \
         {0}-wal and {0}-shm away and leave all other files where they are",
        .path.display()
    )]
    Damaged { path: PathBuf, message: String },
    /// Somebody else held it for too long.
    #[error("{} is in use: another process held it for {waited:?}; try again later", .path.display())]
    Busy { path: PathBuf, waited: Duration },
    /// There is no room.
    #[error("there is no room for {}: free some space on its disk", .path.display())]
    DiskFull { path: PathBuf },
    /// Anything else that the system or SQLite reported.
    #[error("{} cannot be opened: {message}", .path.display())]
    Other { path: PathBuf, message: String },
}

/// Says at which step something failed.
pub(crate) trait At<T> {
    fn at(self, step: &'static str) -> Result<T, InfraError>;
}

impl<T> At<T> for Result<T, rusqlite::Error> {
    fn at(self, step: &'static str) -> Result<T, InfraError> {
        self.map_err(|error| infra(step, &error))
    }
}

impl<T> At<T> for Result<T, CodecError> {
    fn at(self, step: &'static str) -> Result<T, InfraError> {
        self.map_err(|error| InfraError::corruption(step, error.to_string()))
    }
}

/// SQLite's messages name tables and columns, never what is in them.
fn infra(step: &'static str, error: &rusqlite::Error) -> InfraError {
    use rusqlite::Error as E;
    let Some(code) = error.sqlite_error_code() else {
        // A column that does not hold what its type says, or a row that must be there.
        return match error {
            E::InvalidColumnType(..)
            | E::IntegralValueOutOfRange(..)
            | E::FromSqlConversionFailure(..)
            | E::QueryReturnedNoRows => InfraError::corruption(step, error.to_string()),
            _ => InfraError::transient(step, error.to_string()),
        };
    };
    match code {
        ErrorCode::DatabaseCorrupt
        | ErrorCode::NotADatabase
        | ErrorCode::ConstraintViolation
        | ErrorCode::TypeMismatch
        // "no such table": the schema was checked at open.
        | ErrorCode::Unknown => InfraError::corruption(step, error.to_string()),
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => InfraError::transient(
            step,
            "other processes held the database for the whole time that this one waits",
        ),
        ErrorCode::DiskFull => {
            InfraError::transient(step, "the disk is full: free some space and try again")
        }
        _ => InfraError::transient(step, error.to_string()),
    }
}

/// The steps of an operation, for errors to name.
pub(crate) struct Steps {
    pub(crate) begin: &'static str,
    pub(crate) load: &'static str,
    pub(crate) writes: &'static str,
    pub(crate) store: &'static str,
    pub(crate) commit: &'static str,
}

macro_rules! steps {
    ($operation:literal) => {
        &$crate::error::Steps {
            begin: concat!($operation, ".begin"),
            load: concat!($operation, ".load"),
            writes: concat!($operation, ".writes"),
            store: concat!($operation, ".store"),
            commit: concat!($operation, ".commit"),
        }
    };
}
pub(crate) use steps;

#[cfg(test)]
mod tests {
    use rusqlite::types::FromSql;

    use super::*;

    fn read<T: FromSql>(sql: &str) -> InfraError {
        let conn = rusqlite::Connection::open_in_memory().expect("SQLite opens in memory");
        let result = conn.query_row(sql, [], |row| row.get::<_, T>(0));
        result.at("load").err().expect("the row does not hold what is asked for")
    }

    #[test]
    fn a_row_that_does_not_hold_what_its_type_says_is_corruption() {
        for error in [
            read::<i64>("SELECT 'text'"),
            read::<u8>("SELECT 256"),
            read::<[u8; 32]>("SELECT x'00'"),
            read::<i64>("SELECT 1 WHERE 0"),
        ] {
            assert!(matches!(error, InfraError::Corruption { operation: "load", .. }), "{error:?}");
        }
    }

    #[test]
    fn what_says_nothing_about_the_bytes_is_transient() {
        let error = infra("load", &rusqlite::Error::InvalidQuery);
        assert!(matches!(error, InfraError::Transient { operation: "load", .. }), "{error:?}");
    }
}
