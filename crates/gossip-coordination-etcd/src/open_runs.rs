//! Runs that have not ended: listing them, and calling off those that never got their shards.

use gossip_contracts::identity::{LogicalTime, OpId, RunId, TenantId};
use gossip_coordination::{
    AsyncRunManagement, GetRunError, InfraError, RunGate, RunStatus, RunTransitionError,
};

use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, steps};
use crate::keyspace::id_at_end;
use crate::kv::{Kv, Read, Txn, Wanted};
use crate::shards::{Stored, decode_gate_of};

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Replaces what `out` holds by the tenant's active runs, in id order. The cost grows with the
    /// runs that are open, not with those that ended.
    pub async fn list_active_runs_into(
        &self,
        tenant: TenantId,
        out: &mut Vec<RunId>,
    ) -> Result<(), InfraError> {
        let is_active = |gate: &RunGate| gate.status == RunStatus::Active;
        self.open_runs_into(steps!("list_active_runs"), tenant, is_active, out).await
    }

    /// Cancels the tenant's runs that have not got all of their shards and that nobody has worked on
    /// since before `cutoff`, deletes what they got, and replaces what `out` holds by their ids. One
    /// operation id does for all of them; a call that failed in the middle is made again, and deletes
    /// what is left of runs that were cancelled by then.
    pub async fn gc_stale_initializing_runs_into(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        cutoff: LogicalTime,
        op_id: OpId,
        out: &mut Vec<RunId>,
    ) -> Result<(), InfraError> {
        let steps = steps!("gc_stale_initializing_runs");
        let mut without_shards = Vec::new();
        let is_wanted = |gate: &RunGate| {
            gate.status == RunStatus::Initializing || gate.status == RunStatus::Cancelled
        };
        self.open_runs_into(steps, tenant, is_wanted, &mut without_shards).await?;
        out.clear();
        for run in without_shards {
            let record = match self.get_run(tenant, run).await {
                Ok(record) => record,
                Err(GetRunError::BackendError(error)) => return Err(error),
                // It went away in between.
                Err(_) => continue,
            };
            if record.status.is_terminal() {
                self.discard_staged(steps, now, tenant, run).await?;
                out.push(run);
            } else if record.is_stale(cutoff) {
                match self.cancel_run(now, tenant, run, op_id).await {
                    Ok(_) => out.push(run),
                    Err(RunTransitionError::BackendError(error)) => return Err(error),
                    // It ended, or went away, in between.
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }

    async fn open_runs_into(
        &self,
        steps: Steps,
        tenant: TenantId,
        is_wanted: impl Fn(&RunGate) -> bool + Send,
        out: &mut Vec<RunId>,
    ) -> Result<(), InfraError> {
        out.clear();
        let range = self.keyspace.tenant(tenant).open_runs();
        let open = self.all_in(steps, range, Wanted::Keys).await?;
        let runs = open.iter().filter_map(|entry| id_at_end(&entry.key)).map(RunId::from_raw);
        let runs: Vec<RunId> = runs.collect();
        for page in runs.chunks(self.page) {
            let reads = page.iter().map(|&run| Read::key(&self.keyspace.run(tenant, run).gate()));
            let answer = self.read(&mut self.attempts(), steps.load, Txn::reads(reads)).await?;
            for (&run, found) in page.iter().zip(&answer.found) {
                let stored = Stored::of(found);
                if !stored.exists() {
                    continue;
                }
                let keys = self.keyspace.run(tenant, run);
                if is_wanted(&decode_gate_of(&stored.bytes, &keys, (tenant, run), steps.load)?) {
                    out.push(run);
                }
            }
        }
        Ok(())
    }
}
