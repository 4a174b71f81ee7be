//! The runtime's own transactions in the coordinator's database.

use gossip_coordination::{CommitError, InfraError};
use gossip_coordination_sqlite::SqliteCoordinator;
use gossip_coordination_sqlite::rusqlite::{self, Transaction};

/// Why what a run did is not committed.
#[derive(Debug)]
pub(crate) enum Unwritten {
    /// The run has ended, or a newer one has the item (D9).
    Superseded,
    Failed(rusqlite::Error),
}

impl From<rusqlite::Error> for Unwritten {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error)
    }
}

/// Runs `f` in a transaction that is committed when `f` succeeds.
pub(crate) fn in_transaction<T>(
    coordinator: &mut SqliteCoordinator,
    f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, InfraError> {
    coordinator.transaction(f).map_err(|error| infra_error("scan.transaction", error))
}

/// Runs `f` on one consistent view.
pub(crate) fn read<T>(
    coordinator: &SqliteCoordinator,
    step: &'static str,
    f: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
) -> Result<T, InfraError> {
    coordinator.read(f).map_err(|error| infra_error(step, error))
}

/// What failed, whichever side it was.
pub(crate) fn infra_error<R: From<InfraError>>(
    step: &'static str,
    error: CommitError<R, rusqlite::Error>,
) -> R {
    match error {
        CommitError::Refused(error) => error,
        // SQLite's messages name tables and columns, never what is in them.
        CommitError::Caller(error) => InfraError::transient(step, error.to_string()).into(),
    }
}
