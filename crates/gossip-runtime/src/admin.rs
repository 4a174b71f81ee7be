//! What somebody does about a run from outside: call it off, set its parked shards going, check
//! that the records are in order.

use gossip_contracts::identity::{RunId, ShardKey};
use gossip_coordination::{GetRunError, InfraError, RunManagement, ShardFilter, UnparkError};
use gossip_coordination_sqlite::SqliteCoordinator;

use crate::clock::{new_op_id, now};
use crate::report::ReportError;
use crate::scan::{ScanError, cancel};
use crate::state::{LOCAL_TENANT, StateDir};
use crate::{runs, transaction};

/// Runs, from outside.
#[derive(Debug)]
pub struct Admin {
    coordinator: SqliteCoordinator,
}

impl Admin {
    /// Opens the database.
    pub fn open(state: &StateDir) -> Result<Self, ReportError> {
        Ok(Self { coordinator: state.coordinator()? })
    }

    /// Calls a run off. Its workers notice at their next checkpoint.
    pub fn cancel(&mut self, run: RunId) -> Result<(), ReportError> {
        // Not by its record: its process may have died before it was created in coordination.
        let known = transaction::read(&self.coordinator, "cancel", |tx| runs::find_run(tx, run));
        if known.map_err(ReportError::Storage)?.is_none() {
            return Err(ReportError::NoSuchRun { run });
        }
        cancel(&mut self.coordinator, run).map_err(|error| match error {
            ScanError::Storage(error) => ReportError::Storage(error),
            other => ReportError::Storage(InfraError::transient("cancel", other.to_string())),
        })
    }

    /// Sets every parked shard of a run going again; says how many.
    pub fn unpark(&mut self, run: RunId) -> Result<usize, ReportError> {
        self.check_exists(run)?;
        let mut parked = Vec::new();
        self.coordinator
            .list_shards_into(now(), LOCAL_TENANT, run, ShardFilter::parked(), &mut parked)
            .map_err(|error| lookup_error(run, error))?;
        for shard in &parked {
            let key = ShardKey::new(run, shard.shard);
            match self.coordinator.unpark_shard(now(), LOCAL_TENANT, key, new_op_id()) {
                // Somebody else was faster.
                Ok(_) | Err(UnparkError::NotParked { .. }) => {}
                Err(UnparkError::BackendError(error)) => return Err(ReportError::Storage(error)),
                Err(error) => {
                    let error = InfraError::transient("unpark", error.to_string());
                    return Err(ReportError::Storage(error));
                }
            }
        }
        Ok(parked.len())
    }

    /// Everything that is wrong with the records, in words.
    pub fn verify(&self) -> Result<Vec<String>, ReportError> {
        let verification = self.coordinator.verify().map_err(ReportError::Storage)?;
        Ok(verification.faults.iter().map(ToString::to_string).collect())
    }

    fn check_exists(&self, run: RunId) -> Result<(), ReportError> {
        let record = self.coordinator.get_run(LOCAL_TENANT, run);
        record.map(drop).map_err(|error| lookup_error(run, error))
    }
}

fn lookup_error(run: RunId, error: GetRunError) -> ReportError {
    match error {
        GetRunError::BackendError(error) => ReportError::Storage(error),
        _ => ReportError::NoSuchRun { run },
    }
}
