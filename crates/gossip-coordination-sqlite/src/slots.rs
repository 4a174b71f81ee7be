//! Worker ids of one machine: numbers that a lock file guards.
//!
//! - W1: a slot is held by at most one [`WorkerSlot`] at a time, in whichever process.
//! - W2: the operating system frees a slot when its process ends, however it ends. Whoever takes the
//!   slot next knows by that alone that the worker before it is gone, and may have its shards
//!   ([`gossip_coordination::ShardClaiming::reacquire_own`]).
//!
//! Lock files are never deleted: a file that is locked and one that was made again under the same
//! name would be two.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use gossip_contracts::identity::WorkerId;

/// Slots of one directory: more workers than a machine has use for.
const SLOTS_MAX: u64 = 4096;

/// The slots of one database.
#[derive(Clone, Debug)]
pub struct WorkerSlots {
    dir: PathBuf,
}

/// A worker's id, held.
#[derive(Debug)]
pub struct WorkerSlot {
    id: WorkerId,
    // Held open for its lock.
    _lock: File,
}

/// Why a slot was not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the fields name themselves")]
pub enum SlotError {
    /// The directory or a lock file in it cannot be used.
    #[error("{} cannot be used for worker slots: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    /// Every slot is held.
    #[error("all {SLOTS_MAX} worker slots in {} are held: stop some workers", .dir.display())]
    AllTaken { dir: PathBuf },
}

impl WorkerSlots {
    /// The slots in `dir`, beside the database and for it alone. Created, for its owner only, if it
    /// is missing.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self, SlotError> {
        let dir = dir.as_ref().to_path_buf();
        let made = match DirBuilder::new().mode(0o700).create(&dir) {
            // The umask may have taken bits away.
            Ok(()) => fs::set_permissions(&dir, Permissions::from_mode(0o700)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            Err(error) => Err(error),
        };
        match made {
            Ok(()) => Ok(Self { dir }),
            Err(source) => Err(SlotError::Io { path: dir, source }),
        }
    }

    /// Takes the lowest slot that is free, so that a process that starts again gets the slots of the
    /// one that ended.
    pub fn take(&self) -> Result<WorkerSlot, SlotError> {
        for number in 1..=SLOTS_MAX {
            if let Some(slot) = self.try_take(WorkerId::from_raw(number))? {
                return Ok(slot);
            }
        }
        Err(SlotError::AllTaken { dir: self.dir.clone() })
    }

    /// Takes a particular slot, if it is free: of a worker that is known to have held shards, say.
    pub fn try_take(&self, id: WorkerId) -> Result<Option<WorkerSlot>, SlotError> {
        let path = self.dir.join(format!("{id}.lock"));
        let fail = |source| SlotError::Io { path: path.clone(), source };
        let lock = self.open_lock(&path).map_err(fail)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(WorkerSlot { id, _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(fail(source)),
        }
    }

    fn open_lock(&self, path: &Path) -> io::Result<File> {
        match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
            Ok(file) => {
                file.set_permissions(Permissions::from_mode(0o600))?;
                Ok(file)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path)
            }
            Err(error) => Err(error),
        }
    }
}

impl WorkerSlot {
    /// The id. It names this worker for as long as the slot is held.
    #[must_use]
    pub const fn id(&self) -> WorkerId {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_held_once_and_the_lowest_free_one_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let slots = WorkerSlots::open(dir.path().join("workers")).unwrap();
        let again = WorkerSlots::open(dir.path().join("workers")).unwrap();
        let [a, b, c] = [slots.take(), again.take(), slots.take()].map(Result::unwrap);
        assert_eq!([&a, &b, &c].map(|slot| slot.id().as_raw()), [1, 2, 3]);
        assert!(again.try_take(b.id()).unwrap().is_none());
        drop(b);
        assert_eq!(again.take().unwrap().id().as_raw(), 2);
    }

    #[test]
    fn slots_are_their_owners_only() {
        let dir = tempfile::tempdir().unwrap();
        let slots = WorkerSlots::open(dir.path().join("workers")).unwrap();
        let _slot = slots.take().unwrap();
        let mode =
            |path: &str| fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("workers"), 0o700);
        assert_eq!(mode("workers/1.lock"), 0o600);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("missing/workers");
        let message = WorkerSlots::open(path).unwrap_err().to_string();
        assert!(message.contains("missing/workers cannot be used"), "{message}");
    }
}
