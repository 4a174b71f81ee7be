//! The administrator's management through which a run begins with its shards: `create_run_with_shards` as a
//! scan calls it, each of its steps over the wire, where it may be lost, late or doubled.

use std::cell::{Cell, RefCell};
use std::num::NonZeroUsize;

use gossip_contracts::coordination::InitialShardInput;
use gossip_contracts::identity::{
    FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
};
use gossip_coordination::{
    ClaimCandidates, CreateRunError, DeleteRunError, GetRunError, IdempotentOutcome, InfraError,
    RegisterShardsError, RevokeLeaseError, RunConfig, RunManagement, RunProgress, RunRecord,
    RunSummary, RunTransitionError, ShardFilter, ShardSummary, UnparkError,
};

use super::op::{Answer, Operation, OwnedShardInput};
use super::oracles::{Begun, check_begun};
use super::perform::{ToAnswer, accepted, idempotent};
use super::simulated::SimulatedBackend;
use super::wire::Wire;

/// Begins a run, and has what its caller is told judged by what the steps were answered.
pub(super) fn begin<S: SimulatedBackend>(
    wire: &mut Wire<S>,
    now: LogicalTime,
    (tenant, run): (TenantId, RunId),
    config: RunConfig,
    shards: &[OwnedShardInput],
    op_id: OpId,
) -> Answer {
    let rows: Vec<InitialShardInput<'_>> = shards.iter().map(OwnedShardInput::as_ref).collect();
    let mut management = WireManagement { wire: RefCell::new(wire), now, begun: Cell::default() };
    let told =
        idempotent(&management.create_run_with_shards(now, tenant, run, config, &rows, op_id));
    let begun = management.begun.into_inner();
    let verdict = check_begun(&begun, run, config, &told);
    wire.conclude(verdict);
    told
}

struct WireManagement<'w, S> {
    wire: RefCell<&'w mut Wire<S>>,
    now: LogicalTime,
    begun: Cell<Begun>,
}

impl<S> WireManagement<'_, S> {
    fn note(&self, note: impl FnOnce(&mut Begun)) {
        let mut begun = self.begun.take();
        note(&mut begun);
        self.begun.set(begun);
    }
}

const BEGINS: &str = "runs begin through this management, and nothing else is done";

impl<S: SimulatedBackend> RunManagement for WireManagement<'_, S> {
    fn create_run(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        config: RunConfig,
    ) -> Result<(), CreateRunError> {
        let operation = Operation::CreateRun { tenant, run, config };
        let created = self.wire.get_mut().call(now, operation, |backend| {
            let result = backend.create_run(now, tenant, run, config);
            (accepted(&result), None, result)
        });
        self.note(|begun| begun.created = Some(accepted(&created)));
        created
    }

    fn register_shards(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        shards: &[InitialShardInput<'_>],
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, RegisterShardsError> {
        let rows = shards.iter().map(|&row| row.into()).collect();
        let operation = Operation::RegisterShards { tenant, run, shards: rows, op_id };
        let registered = self.wire.get_mut().call(now, operation, |backend| {
            let result = backend.register_shards(now, tenant, run, shards, op_id);
            (idempotent(&result), None, result)
        });
        self.note(|begun| begun.registered = Some(idempotent(&registered)));
        registered
    }

    fn get_run(&self, tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError> {
        let operation = Operation::GetRun { tenant, run };
        let found = self.wire.borrow_mut().call(self.now, operation, |backend| {
            let result = backend.get_run(tenant, run);
            (result.answer(), None, result)
        });
        self.note(|begun| begun.found = Some(found.answer()));
        found
    }

    fn get_run_progress(&self, _: TenantId, _: RunId) -> Result<RunProgress, GetRunError> {
        unreachable!("{BEGINS}")
    }

    fn list_shards_into(
        &self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: ShardFilter,
        _: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        unreachable!("{BEGINS}")
    }

    fn complete_run_with(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: Option<RunResult>,
        _: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        unreachable!("{BEGINS}")
    }

    fn fail_run(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        unreachable!("{BEGINS}")
    }

    fn cancel_run(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: OpId,
    ) -> Result<IdempotentOutcome<()>, RunTransitionError> {
        unreachable!("{BEGINS}")
    }

    fn unpark_shard(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: ShardKey,
        _: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        unreachable!("{BEGINS}")
    }

    fn collect_claim_candidates_into(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: WorkerId,
        _: &mut ClaimCandidates,
    ) -> Result<(), GetRunError> {
        unreachable!("{BEGINS}")
    }

    fn revoke_lease(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: ShardKey,
        _: FenceEpoch,
    ) -> Result<IdempotentOutcome<()>, RevokeLeaseError> {
        unreachable!("{BEGINS}")
    }

    fn list_runs_into(
        &self,
        _: TenantId,
        _: Option<RunId>,
        _: NonZeroUsize,
        _: &mut Vec<RunSummary>,
    ) -> Result<Option<RunId>, InfraError> {
        unreachable!("{BEGINS}")
    }

    fn list_shards_page_into(
        &self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: ShardFilter,
        _: Option<ShardId>,
        _: NonZeroUsize,
        _: &mut Vec<ShardSummary>,
    ) -> Result<Option<ShardId>, GetRunError> {
        unreachable!("{BEGINS}")
    }

    fn delete_run(&mut self, _: LogicalTime, _: TenantId, _: RunId) -> Result<(), DeleteRunError> {
        unreachable!("{BEGINS}")
    }

    fn note_idle(
        &mut self,
        _: LogicalTime,
        _: TenantId,
        _: RunId,
        _: WorkerId,
    ) -> Result<(), GetRunError> {
        unreachable!("{BEGINS}")
    }
}
