//! Where a machine's scans are remembered: a database, worker slots and the tenant's key, in one
//! directory that only its owner can read.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gossip_contracts::identity::{RunId, TenantId, TenantSecretKey};
use gossip_coordination::ShardLimits;
use gossip_coordination_sqlite::{
    OpenError, SlotError, SqliteConfig, SqliteCoordinator, WorkerSlot, WorkerSlots,
};

use crate::schema::SCHEMA;

/// The tenant of everything that a machine scans for itself.
pub(crate) const LOCAL_TENANT: TenantId =
    TenantId::from_bytes(*b"gossip: what this machine scans.");

/// How long a process that waits for a lock sleeps.
const LOCK_POLL: Duration = Duration::from_millis(20);

/// The directory that remembers a machine's scans.
#[derive(Clone, Debug)]
pub struct StateDir {
    path: PathBuf,
}

/// The right to take the second look of a run. The operating system frees it with its process.
pub(crate) struct SecondLookLock {
    path: PathBuf,
    // Held open for its lock.
    _file: File,
}

impl SecondLookLock {
    /// Removes the lock's file, once the run has ended: whoever still waits for it, or makes it
    /// again, finds that out.
    pub(crate) fn remove(self) {
        // If it stays, it is an empty file.
        fs::remove_file(&self.path).ok();
    }
}

/// Why the state cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum StateError {
    /// The directory or a file in it.
    #[error("{}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The key file holds something else.
    #[error("{} is not a gossip key: it must hold 32 bytes; move it away to start with a new key, \
             under which earlier findings are not recognised", .path.display())]
    BadKey { path: PathBuf },
    /// SQLite, or the disk below it.
    #[error(transparent)]
    Database(#[from] OpenError),
    /// A worker's slot.
    #[error(transparent)]
    Slot(#[from] SlotError),
}

impl StateDir {
    /// The directory at `path`, created for its owner only if it is missing.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StateError> {
        let path = path.into();
        if path.exists() && !path.is_dir() {
            let source = io::ErrorKind::NotADirectory.into();
            return Err(StateError::Io { path, source });
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&path)
            .map_err(|source| StateError::Io { path: path.clone(), source })?;
        Ok(Self { path })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where its database is.
    #[must_use]
    pub fn database_path(&self) -> PathBuf {
        self.path.join("gossip.db")
    }

    /// A connection of one's own to the database.
    pub(crate) fn coordinator(&self) -> Result<SqliteCoordinator, StateError> {
        // Shards of ended runs count until somebody deletes the runs: a ceiling would end a machine's
        // scans some day. How far one run can split is bounded anyway.
        let limits = ShardLimits { per_tenant: usize::MAX / 2, global: usize::MAX / 2 };
        let caller_schemas = vec![SCHEMA];
        let config = SqliteConfig { limits, caller_schemas, ..SqliteConfig::default() };
        Ok(SqliteCoordinator::open(self.database_path(), config)?)
    }

    /// A worker's identity, held until it is dropped.
    pub(crate) fn take_slot(&self) -> Result<WorkerSlot, StateError> {
        Ok(self.slots()?.take()?)
    }

    /// The identities of this machine's workers.
    pub(crate) fn slots(&self) -> Result<WorkerSlots, StateError> {
        Ok(WorkerSlots::open(self.path.join("workers"))?)
    }

    /// Waits until no other process takes the second look of `run`; `None` when told to stop.
    pub(crate) fn lock_second_look(
        &self,
        run: RunId,
        stopping: &dyn Fn() -> bool,
    ) -> Result<Option<SecondLookLock>, StateError> {
        let path = self.path.join(format!("second-look-{run}.lock"));
        let fail = |source| StateError::Io { path: path.clone(), source };
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(&path).map_err(fail)?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Some(SecondLookLock { path, _file: file })),
                Err(TryLockError::WouldBlock) if stopping() => return Ok(None),
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_POLL),
                Err(TryLockError::Error(error)) => return Err(fail(error)),
            }
        }
    }

    /// The key under which secrets are hashed, made on first use.
    pub fn tenant_key(&self) -> Result<TenantSecretKey, StateError> {
        let path = self.path.join("tenant.key");
        let fail = |source| StateError::Io { path: path.clone(), source };
        match fs::read(&path) {
            Ok(bytes) => match <[u8; 32]>::try_from(bytes) {
                Ok(key) => Ok(TenantSecretKey::from_bytes(key)),
                Err(_) => Err(StateError::BadKey { path }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_key(&path).map_err(fail)?;
                // Read what is there: another process may have been faster.
                self.tenant_key()
            }
            Err(error) => Err(fail(error)),
        }
    }

    /// Writes a whole key or none: killed here, no half of one is left under its name.
    fn make_key(&self, path: &Path) -> io::Result<()> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(io::Error::other)?;
        let suffix = getrandom::u64().map_err(io::Error::other)?;
        let draft = self.path.join(format!("tenant.key.{suffix:016x}"));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
        file.write_all(&key)?;
        file.sync_all()?;
        // A link does not replace a key that another process made meanwhile.
        let linked = match fs::hard_link(&draft, path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        };
        fs::remove_file(&draft)?;
        linked
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path().join("a/b")).unwrap();
        let key = state.tenant_key().unwrap();
        assert_eq!(state.tenant_key().unwrap(), key);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&state.path().join("tenant.key")), 0o600);
        assert_eq!(mode(state.path()), 0o700);
        let files = fs::read_dir(state.path()).unwrap().count();
        assert_eq!(files, 1, "a draft was left behind");
    }

    #[test]
    fn a_key_file_with_something_else_is_refused_and_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDir::open(dir.path()).unwrap();
        fs::write(dir.path().join("tenant.key"), b"short").unwrap();
        assert!(matches!(state.tenant_key(), Err(StateError::BadKey { .. })));
        assert_eq!(fs::read(dir.path().join("tenant.key")).unwrap(), b"short");
    }
}
