//! What somebody does about runs from outside: call one off, set its parked shards going, delete
//! those that nobody needs, check that the records are in order.

use gossip_contracts::identity::{OpId, RunId, ShardKey};
use gossip_coordination::{
    DeleteRunError, GetRunError, InfraError, RunManagement, RunStatus, ShardFilter, UnparkError,
};

use crate::clock::now;
use crate::prune::Pruning;
use crate::report::{ReportError, Reports, RunSummary};
use crate::runs::RunEnd;
use crate::scan::{ScanError, cancel, cancel_in_coordination};
use crate::state::{LOCAL_TENANT, StateDir};
use crate::{ledger, runs, transaction};

/// Runs, from outside.
#[derive(Debug)]
pub struct Admin {
    reports: Reports,
}

impl Admin {
    /// Opens the database.
    pub fn open(state: &StateDir) -> Result<Self, ReportError> {
        Ok(Self { reports: Reports::open(state)? })
    }

    /// Calls a run off, unless it is done. Its workers notice at their next checkpoint.
    pub fn cancel(&mut self, run: RunId) -> Result<(), ReportError> {
        // Not by its record: its process may have died before it was created in coordination.
        if self.reports.run(run)?.status == RunStatus::Done {
            return Err(ReportError::Done { run });
        }
        match cancel(&mut self.reports.coordinator, run).map_err(cancel_error)? {
            RunEnd::Cancelled => Ok(()),
            // It has finished since.
            RunEnd::Finished => Err(ReportError::Done { run }),
        }
    }

    /// Deletes the runs that [`Reports::prunable`] names; those that were. After an error, and in
    /// whichever state a kill leaves them, the same call deletes the rest.
    pub fn prune(&mut self, pruning: &Pruning) -> Result<Vec<RunSummary>, ReportError> {
        let runs = self.reports.prunable(pruning)?;
        runs.iter().try_for_each(|run| self.delete(run.run))?;
        if pruning.other_policies {
            self.forget_left_scopes().map_err(ReportError::Storage)?;
        }
        Ok(runs)
    }

    /// Forgets the items of scopes without runs (D8). A scope keeps its number: a scan may just have
    /// asked for it, and have begun no run yet.
    fn forget_left_scopes(&mut self) -> Result<(), InfraError> {
        let coordinator = &mut self.reports.coordinator;
        for scope in transaction::read(coordinator, "prune", runs::scopes_without_runs)? {
            while transaction::in_transaction(coordinator, |tx| ledger::forget_some(tx, scope))? > 0
            {
            }
        }
        Ok(())
    }

    /// Deletes a run that has ended (D7).
    fn delete(&mut self, run: RunId) -> Result<(), ReportError> {
        let coordinator = &mut self.reports.coordinator;
        let mut deleted = coordinator.delete_run(now(), LOCAL_TENANT, run);
        if let Err(DeleteRunError::RunNotEnded { .. }) = deleted {
            // Its process died between the two ends: that of the scan and that in coordination.
            cancel_in_coordination(coordinator, run).map_err(cancel_error)?;
            deleted = coordinator.delete_run(now(), LOCAL_TENANT, run);
        }
        match deleted {
            // Killed, an earlier deletion came as far as this; or somebody else is faster.
            Ok(()) | Err(DeleteRunError::RunNotFound) => {}
            Err(DeleteRunError::BackendError(error)) => return Err(ReportError::Storage(error)),
            Err(error) => {
                let error = InfraError::refused("prune", error.to_string());
                return Err(ReportError::Storage(error));
            }
        }
        transaction::in_transaction(coordinator, |tx| runs::delete_run(tx, run))
            .map_err(ReportError::Storage)
    }

    /// Sets every parked shard of a run going again; says how many.
    pub fn unpark(&mut self, run: RunId) -> Result<usize, ReportError> {
        self.check_exists(run)?;
        let mut parked = Vec::new();
        self.reports
            .coordinator
            .list_shards_into(now(), LOCAL_TENANT, run, ShardFilter::parked(), &mut parked)
            .map_err(|error| lookup_error(run, error))?;
        for shard in &parked {
            let key = ShardKey::new(run, shard.shard);
            match self.reports.coordinator.unpark_shard(now(), LOCAL_TENANT, key, OpId::random()) {
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
        let verification = self.reports.coordinator.verify().map_err(ReportError::Storage)?;
        Ok(verification.faults.iter().map(ToString::to_string).collect())
    }

    fn check_exists(&self, run: RunId) -> Result<(), ReportError> {
        let record = self.reports.coordinator.get_run(LOCAL_TENANT, run);
        record.map(drop).map_err(|error| lookup_error(run, error))
    }
}

fn cancel_error(error: ScanError) -> ReportError {
    match error {
        ScanError::Storage(error) => ReportError::Storage(error),
        other => ReportError::Storage(InfraError::refused("cancel", other.to_string())),
    }
}

fn lookup_error(run: RunId, error: GetRunError) -> ReportError {
    match error {
        GetRunError::BackendError(error) => ReportError::Storage(error),
        _ => ReportError::NoSuchRun { run },
    }
}
