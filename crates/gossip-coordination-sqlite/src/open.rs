//! Opening a database file: whose it is, whether it can be used, and what it needs first.
//!
//! - F1: a file that is not ours, or that a newer program wrote, is not written to, not even by the
//!   recovery that SQLite does when it opens a file.
//! - F2: the file and those that SQLite keeps beside it can be read by their owner only, whatever
//!   the umask. (SQLite gives its files the mode of the database.)
//! - F3: the database file itself is opened by SQLite alone. Closing any other descriptor of it would
//!   drop the locks that this process holds on it through other connections.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::Access;

use crate::backoff::{self, Backoff};
use crate::caller_schema::CallerSchemaFault;
use crate::config::{Durability, SqliteConfig};
use crate::error::OpenError;
use crate::file_system;
use crate::schema::{self, SchemaFault, Stamp};

/// F3: no connection of this process is made while another thread creates the file.
static CREATION: Mutex<()> = Mutex::new(());

/// Statements of ours are about 25; the caller's share the cache.
const STATEMENTS: usize = 64;

/// A connection to a database that is ours and up to date.
pub(crate) fn open(path: &Path, config: &SqliteConfig) -> Result<Connection, OpenError> {
    open_on(path, config, file_system::network_kind)
}

fn open_on(
    path: &Path,
    config: &SqliteConfig,
    network_kind: impl FnOnce(&Path) -> Option<String>,
) -> Result<Connection, OpenError> {
    let (path, dir) = locate(path)?;
    if let Some(kind) = network_kind(&dir) {
        return Err(OpenError::NetworkFileSystem { path, kind });
    }
    prepare_file(&path, &dir)?;
    look_at_header(&path)?;
    let conn = connect(&path, config).map_err(|error| open_error(&path, config, error))?;
    bring_up(&conn, config).map_err(|fault| schema_error(&path, config, fault))?;
    Ok(conn)
}

/// The absolute path of the file, links resolved, and of its directory.
fn locate(path: &Path) -> Result<(PathBuf, PathBuf), OpenError> {
    let other =
        |error: io::Error| OpenError::Other { path: path.into(), message: error.to_string() };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(OpenError::IsDirectory { path: path.into() }),
        Ok(found) if !found.is_file() => return Err(OpenError::NotAFile { path: path.into() }),
        Ok(_) => {
            let path = fs::canonicalize(path).map_err(other)?;
            let dir = path.parent().expect("a file is in a directory").to_path_buf();
            return Ok((path, dir));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(other(error)),
    }
    // A link to nowhere would be followed at its own peril. A file that is there by now is another
    // process's, which opens the same database.
    if fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Err(OpenError::NotAFile { path: path.into() });
    }
    let Some(name) = path.file_name() else {
        return Err(OpenError::IsDirectory { path: path.into() });
    };
    let dir = match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    };
    match fs::canonicalize(dir) {
        Ok(found) if found.is_dir() => Ok((found.join(name), found)),
        Ok(_) => Err(OpenError::NoDirectory { dir: dir.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::NoDirectory { dir: dir.into() })
        }
        Err(error) => Err(other(error)),
    }
}

/// Creates the file if it is missing (F2), else checks that it can be written.
fn prepare_file(path: &Path, dir: &Path) -> Result<(), OpenError> {
    let writable = |path: &Path, access| match rustix::fs::access(path, access) {
        Ok(()) => Ok(()),
        Err(_) => Err(OpenError::ReadOnly { path: path.into() }),
    };
    writable(dir, Access::WRITE_OK | Access::EXEC_OK)?;
    let _alone = CREATION.lock().unwrap_or_else(PoisonError::into_inner);
    let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match created {
        Ok(file) => file
            .set_permissions(Permissions::from_mode(0o600))
            .map_err(|error| OpenError::Other { path: path.into(), message: error.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            writable(path, Access::READ_OK | Access::WRITE_OK)
        }
        Err(error) if error.kind() == io::ErrorKind::StorageFull => {
            Err(OpenError::DiskFull { path: path.into() })
        }
        Err(error) => Err(OpenError::Other { path: path.into(), message: error.to_string() }),
    }
}

/// F1: refuses what is not ours by the file's own header, through a connection that neither locks
/// nor recovers nor looks at other files. D1 makes the header tell. A file without a byte is new.
fn look_at_header(path: &Path) -> Result<(), OpenError> {
    let len = || match fs::metadata(path) {
        Ok(found) => Ok(found.len()),
        Err(error) => Err(OpenError::Other { path: path.into(), message: error.to_string() }),
    };
    if len()? == 0 {
        // D1: by the time that there is a log, the file has its first page. SQLite would delete it.
        if has_beside(path, "-wal") && len()? == 0 {
            let message = "it is empty, and there is a log beside it".into();
            return Err(OpenError::Damaged { path: path.into(), message });
        }
        return Ok(());
    }
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' => uri.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => uri.push(byte.into()),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let header = Connection::open_with_flags(uri, flags).and_then(|conn| {
        let page_size: i64 = conn.pragma_query_value(None, "page_size", |row| row.get(0))?;
        Ok((Stamp::read(&conn)?, page_size.unsigned_abs().max(1)))
    });
    match header {
        Ok((stamp, page_size)) => {
            stamp.check(schema::NEWEST).map_err(|fault| stamp_error(path, fault))?;
            // SQLite would make up the rest of a page that is cut off.
            let is_whole = len()?.is_multiple_of(page_size);
            if !is_whole && !has_beside(path, "-wal") && !has_beside(path, "-journal") {
                let message = "its last page is cut off".into();
                return Err(OpenError::Damaged { path: path.into(), message });
            }
            Ok(())
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(OpenError::NotADatabase { path: path.into() })
        }
        // What is missing here may be in the log beside it: the real connection decides.
        Err(_) => Ok(()),
    }
}

/// Whether a file that is not empty lies beside the database: a log or journal, from which SQLite
/// mends what a crash cut off.
fn has_beside(path: &Path, suffix: &str) -> bool {
    let mut beside = path.as_os_str().to_owned();
    beside.push(suffix);
    fs::metadata(beside).is_ok_and(|found| found.len() > 0)
}

fn connect(path: &Path, config: &SqliteConfig) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(path, flags)?;
    conn.busy_handler(Some(backoff::handler(config.busy_timeout)))?;
    // F1: a connection that turns away must not clean up.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    // Plans do not depend on what is bound. Without this, a partial index that a statement might use
    // makes SQLite prepare the statement anew at every binding: a quarter of a checkpoint's time.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    Ok(conn)
}

fn bring_up(conn: &Connection, config: &SqliteConfig) -> Result<(), SchemaFault> {
    until_free(config, || schema::mark(conn, schema::NEWEST))?;
    until_free(config, || {
        let mode: String =
            conn.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
        if mode == "wal" { Ok(()) } else { Err(SchemaFault::NoLog) }
    })?;
    until_free(config, || schema::migrate(conn, schema::MIGRATIONS, &config.caller_schemas))?;
    // Readable, whatever the header says.
    conn.query_row("SELECT shards FROM coord_totals WHERE id = 1", [], |row| row.get::<_, i64>(0))?;
    let synchronous = match config.durability {
        Durability::Normal => "normal",
        Durability::Full => "full",
        Durability::Off => "off",
    };
    conn.pragma_update(None, "synchronous", synchronous)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "cache_size", -16_000)?;
    // Pages that change often are written back once for many commits; 16 MiB of log at most are
    // read again after a crash.
    conn.pragma_update(None, "wal_autocheckpoint", 4096)?;
    // What a burst made the log grow to is given back.
    conn.pragma_update(None, "journal_size_limit", 64 << 20)?;
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
    Ok(())
}

/// Tries again while others are in the way: not every such failure of SQLite asks its busy handler.
fn until_free<T>(
    config: &SqliteConfig,
    mut step: impl FnMut() -> Result<T, SchemaFault>,
) -> Result<T, SchemaFault> {
    let mut backoff = Backoff::new(config.busy_timeout);
    loop {
        match step() {
            Err(SchemaFault::Sqlite(error)) if is_busy(&error) && backoff.wait() => {}
            outcome => return outcome,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::FileLockingProtocolFailed
        )
    )
}

fn stamp_error(path: &Path, fault: SchemaFault) -> OpenError {
    let path = path.to_path_buf();
    match fault {
        SchemaFault::Foreign { application_id } => OpenError::Foreign { path, application_id },
        SchemaFault::Newer { found, newest } => OpenError::Newer { path, found, newest },
        SchemaFault::NoVersion { found } => {
            OpenError::Damaged { path, message: format!("its schema version is {found}") }
        }
        SchemaFault::NoLog => {
            let message = "its file system has no shared memory: choose a place on a local disk";
            OpenError::Other { path, message: message.into() }
        }
        fault => OpenError::Other { path, message: format!("{fault:?}") },
    }
}

fn schema_error(path: &Path, config: &SqliteConfig, fault: SchemaFault) -> OpenError {
    match fault {
        SchemaFault::Sqlite(error) => open_error(path, config, error),
        SchemaFault::CallerSchema { name, fault } => {
            let (path, schema) = (path.to_path_buf(), name.to_owned());
            match fault {
                CallerSchemaFault::Newer { found, newest } => {
                    OpenError::NewerCallerSchema { path, schema, found, newest }
                }
                CallerSchemaFault::Retired { found, oldest } => {
                    OpenError::RetiredCallerSchema { path, schema, found, oldest }
                }
                CallerSchemaFault::Bad(message) => {
                    OpenError::CallerSchema { path, schema, message }
                }
                CallerSchemaFault::Sqlite(error) => open_error(&path, config, error),
            }
        }
        fault => stamp_error(path, fault),
    }
}

fn open_error(path: &Path, config: &SqliteConfig, error: rusqlite::Error) -> OpenError {
    let path = path.to_path_buf();
    if is_busy(&error) {
        return OpenError::Busy { path, waited: config.busy_timeout };
    }
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => OpenError::NotADatabase { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::Unknown) => {
            OpenError::Damaged { path, message }
        }
        Some(ErrorCode::DiskFull) => OpenError::DiskFull { path },
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path },
        None if matches!(error, rusqlite::Error::QueryReturnedNoRows) => {
            OpenError::Damaged { path, message: "a row that must be there is missing".into() }
        }
        _ => OpenError::Other { path, message },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_file_system_is_refused_before_anything_is_made_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.db");
        let refused = open_on(&path, &SqliteConfig::default(), |_| Some("nfs".into()));
        let message = refused.unwrap_err().to_string();
        assert!(message.contains("network file system (nfs)") && message.contains("local disk"));
        assert!(!path.exists());
    }
}
