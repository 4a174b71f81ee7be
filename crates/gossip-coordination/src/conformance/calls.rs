//! Every operation as a case asks for it: tenant, run and time come from the world, and every call
//! is audited.

use core::num::NonZeroUsize;

use gossip_contracts::coordination::{
    CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
};
use gossip_contracts::identity::{FenceEpoch, OpId, RunId, RunResult, ShardId};

use super::audit::Scope;
use super::harness::Harness;
use super::matrix::Operation;
use super::world::{Acquired, World, worker};
use crate::claim::ShardClaiming;
use crate::error::{
    AcquireError, CheckpointError, ClaimError, CompleteError, CreateRunError, DeleteRunError,
    GetRunError, IdempotentOutcome, InfraError, ParkError, RegisterShardsError, ReleaseError,
    RenewError, RevokeLeaseError, RunTransitionError, SplitError, UnparkError,
};
use crate::events::{EventKind, RedactedKey};
use crate::lease::Lease;
use crate::run::{RunProgress, RunRecord, RunSummary, ShardFilter, ShardSummary};
use crate::scratch::{CheckpointRenewal, RenewResult};
use crate::status::ParkReason;
use crate::traits::{ClaimCandidates, CoordinationBackend, RunManagement};
use crate::transition::{SplitReplaceResult, SplitResidualResult};

type Done<T, E> = Result<IdempotentOutcome<T>, E>;

impl<H: Harness> World<H> {
    #[track_caller]
    pub(super) fn acquire(&mut self, by: u64, shard: ShardId) -> Result<Acquired, AcquireError> {
        let (now, tenant, key, by) = (self.now, self.tenant, self.key(shard), worker(by));
        self.call(
            Operation::Acquire,
            Scope::Shard(key),
            |backend, scratch| {
                backend.acquire_and_restore_into(now, tenant, key, by, scratch).map(Into::into)
            },
            acquired,
        )
    }

    #[track_caller]
    pub(super) fn claim(&mut self, by: u64) -> Result<Acquired, ClaimError> {
        let (now, tenant, run, by) = (self.now, self.tenant, self.run, worker(by));
        self.call(
            Operation::Claim,
            Scope::AnyShard(run),
            |backend, scratch| {
                backend.claim_next_available(now, tenant, run, by, scratch).map(Into::into)
            },
            acquired,
        )
    }

    #[track_caller]
    pub(super) fn reacquire_own(&mut self, by: u64) -> Result<Option<Acquired>, ClaimError> {
        let (now, tenant, run, by) = (self.now, self.tenant, self.run, worker(by));
        self.call(
            Operation::ReacquireOwn,
            Scope::AnyShard(run),
            |backend, scratch| {
                let own = backend.reacquire_own(now, tenant, run, by, scratch);
                own.map(|own| own.map(Into::into))
            },
            |own| own.iter().flat_map(acquired).collect(),
        )
    }

    #[track_caller]
    pub(super) fn note_idle(&mut self, by: u64) -> Result<(), GetRunError> {
        let (now, tenant, run, by) = (self.now, self.tenant, self.run, worker(by));
        self.call(
            Operation::NoteIdle,
            Scope::Nothing,
            |backend, _| backend.note_idle(now, tenant, run, by),
            |()| vec![],
        )
    }

    #[track_caller]
    pub(super) fn candidates(&mut self, by: u64) -> Result<ClaimCandidates, GetRunError> {
        let (now, tenant, run, by) = (self.now, self.tenant, self.run, worker(by));
        self.call(
            Operation::CollectCandidates,
            Scope::Nothing,
            |backend, _| {
                let mut out = ClaimCandidates::new();
                backend.collect_claim_candidates_into(now, tenant, run, by, &mut out)?;
                Ok(out)
            },
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn renew(&mut self, lease: &Lease) -> Result<RenewResult, RenewError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::Renew,
            Scope::Shard(lease.key()),
            |backend, _| backend.renew(now, tenant, lease),
            |renewed| {
                let (shard, new_deadline) = (lease.shard(), renewed.new_deadline);
                vec![EventKind::ShardLeaseRenewed { shard, new_deadline }]
            },
        )
    }

    #[track_caller]
    pub(super) fn release(&mut self, lease: &Lease) -> Result<(), ReleaseError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::Release,
            Scope::Shard(lease.key()),
            |backend, _| backend.release(now, tenant, lease),
            |()| vec![EventKind::ShardReleased { shard: lease.shard() }],
        )
    }

    #[track_caller]
    pub(super) fn checkpoint(
        &mut self,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op: OpId,
    ) -> Done<(), CheckpointError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::Checkpoint,
            Scope::Shard(lease.key()),
            |backend, _| backend.checkpoint(now, tenant, lease, cursor, op),
            |_| {
                let last_key = RedactedKey::new(cursor.last_key());
                let (shard, new_deadline) = (lease.shard(), None);
                vec![EventKind::ShardCheckpointed { shard, last_key, new_deadline }]
            },
        )
    }

    #[track_caller]
    pub(super) fn checkpoint_and_renew(
        &mut self,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op: OpId,
    ) -> Done<CheckpointRenewal, CheckpointError> {
        let (now, tenant) = (self.now, self.tenant);
        // The answer does not say whether the deadline is a new one, and the event does.
        let before = self.harness.dump().shard(tenant, lease.key());
        let before = before.and_then(|shard| shard.state.lease).map(|holder| holder.deadline());
        self.call(
            Operation::CheckpointAndRenew,
            Scope::Shard(lease.key()),
            |backend, _| backend.checkpoint_and_renew(now, tenant, lease, cursor, op),
            |outcome| {
                let deadline = outcome.as_ref().into_inner().new_deadline;
                vec![EventKind::ShardCheckpointed {
                    shard: lease.shard(),
                    last_key: RedactedKey::new(cursor.last_key()),
                    new_deadline: (before != Some(deadline)).then_some(deadline),
                }]
            },
        )
    }

    #[track_caller]
    pub(super) fn complete(
        &mut self,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op: OpId,
    ) -> Done<(), CompleteError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::Complete,
            Scope::Shard(lease.key()),
            |backend, _| backend.complete(now, tenant, lease, cursor, op),
            |_| vec![EventKind::ShardCompleted { shard: lease.shard() }],
        )
    }

    #[track_caller]
    pub(super) fn park(
        &mut self,
        lease: &Lease,
        reason: ParkReason,
        op: OpId,
    ) -> Done<(), ParkError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::Park,
            Scope::Shard(lease.key()),
            |backend, _| backend.park_shard(now, tenant, lease, reason, op),
            |_| vec![EventKind::ShardParked { shard: lease.shard(), reason }],
        )
    }

    #[track_caller]
    pub(super) fn split_replace(
        &mut self,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op: OpId,
    ) -> Done<SplitReplaceResult, SplitError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::SplitReplace,
            Scope::Shard(lease.key()),
            |backend, _| backend.split_replace(now, tenant, lease, plan, op),
            |outcome| {
                let children = outcome.as_ref().into_inner().children.to_vec();
                vec![EventKind::ShardSplit { parent: lease.shard(), children }]
            },
        )
    }

    #[track_caller]
    pub(super) fn split_residual(
        &mut self,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op: OpId,
    ) -> Done<SplitResidualResult, SplitError> {
        let (now, tenant) = (self.now, self.tenant);
        self.call(
            Operation::SplitResidual,
            Scope::Shard(lease.key()),
            |backend, _| backend.split_residual(now, tenant, lease, plan, op),
            |outcome| {
                let residual = outcome.as_ref().into_inner().residual;
                vec![EventKind::ShardResidualCreated { parent: lease.shard(), residual }]
            },
        )
    }

    #[track_caller]
    pub(super) fn create_run(&mut self) -> Result<(), CreateRunError> {
        let (now, tenant, run, config) = (self.now, self.tenant, self.run, self.config);
        self.call(
            Operation::CreateRun,
            Scope::Run(run),
            |backend, _| backend.create_run(now, tenant, run, config),
            |()| vec![EventKind::RunCreated],
        )
    }

    #[track_caller]
    pub(super) fn register(
        &mut self,
        rows: &[InitialShardInput<'_>],
        op: OpId,
    ) -> Done<(), RegisterShardsError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::RegisterShards,
            Scope::Run(run),
            |backend, _| backend.register_shards(now, tenant, run, rows, op),
            |_| vec![EventKind::RunActivated { shard_count: rows.len() }],
        )
    }

    /// `creates` says whether the run is not there yet.
    #[track_caller]
    pub(super) fn create_with_shards(
        &mut self,
        rows: &[InitialShardInput<'_>],
        op: OpId,
        creates: bool,
    ) -> Done<(), CreateRunError> {
        let (now, tenant, run, config) = (self.now, self.tenant, self.run, self.config);
        self.call(
            Operation::CreateRunWithShards,
            Scope::Run(run),
            |backend, _| backend.create_run_with_shards(now, tenant, run, config, rows, op),
            |_| {
                let created = creates.then_some(EventKind::RunCreated);
                let activated = EventKind::RunActivated { shard_count: rows.len() };
                created.into_iter().chain([activated]).collect()
            },
        )
    }

    #[track_caller]
    pub(super) fn complete_run(&mut self, op: OpId) -> Done<(), RunTransitionError> {
        self.complete_run_with(None, op)
    }

    #[track_caller]
    pub(super) fn complete_run_with(
        &mut self,
        result: Option<RunResult>,
        op: OpId,
    ) -> Done<(), RunTransitionError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::CompleteRun,
            Scope::Run(run),
            |backend, _| backend.complete_run_with(now, tenant, run, result, op),
            |_| vec![EventKind::RunCompleted],
        )
    }

    #[track_caller]
    pub(super) fn fail_run(&mut self, op: OpId) -> Done<(), RunTransitionError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::FailRun,
            Scope::Run(run),
            |backend, _| backend.fail_run(now, tenant, run, op),
            |_| vec![EventKind::RunFailed],
        )
    }

    #[track_caller]
    pub(super) fn cancel_run(&mut self, op: OpId) -> Done<(), RunTransitionError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::CancelRun,
            Scope::Run(run),
            |backend, _| backend.cancel_run(now, tenant, run, op),
            |_| vec![EventKind::RunCancelled],
        )
    }

    #[track_caller]
    pub(super) fn unpark(&mut self, shard: ShardId, op: OpId) -> Done<(), UnparkError> {
        let (now, tenant, key) = (self.now, self.tenant, self.key(shard));
        // The answer does not name the fence, and the event does.
        let parked = self.harness.dump().shard(tenant, key).map(|shard| shard.state.fence);
        self.call(
            Operation::Unpark,
            Scope::Shard(key),
            |backend, _| backend.unpark_shard(now, tenant, key, op),
            |_| {
                let new_fence_epoch = parked.expect("it was there").next();
                vec![EventKind::ShardUnparked { shard, new_fence_epoch }]
            },
        )
    }

    #[track_caller]
    pub(super) fn get_run(&mut self) -> Result<RunRecord, GetRunError> {
        let (tenant, run) = (self.tenant, self.run);
        self.call(
            Operation::GetRun,
            Scope::Nothing,
            |backend, _| backend.get_run(tenant, run),
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn progress(&mut self) -> Result<RunProgress, GetRunError> {
        let (tenant, run) = (self.tenant, self.run);
        self.call(
            Operation::GetRunProgress,
            Scope::Nothing,
            |backend, _| backend.get_run_progress(tenant, run),
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn list(&mut self, filter: ShardFilter) -> Result<Vec<ShardSummary>, GetRunError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::ListShards,
            Scope::Nothing,
            |backend, _| {
                let mut out = Vec::new();
                backend.list_shards_into(now, tenant, run, filter, &mut out)?;
                Ok(out)
            },
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn list_page(
        &mut self,
        filter: ShardFilter,
        after: Option<ShardId>,
        limit: usize,
    ) -> Result<(Vec<ShardSummary>, Option<ShardId>), GetRunError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        let limit = NonZeroUsize::new(limit).expect("a page has room");
        self.call(
            Operation::ListShardsPage,
            Scope::Nothing,
            |backend, _| {
                let mut out = Vec::new();
                let next = backend
                    .list_shards_page_into(now, tenant, run, filter, after, limit, &mut out)?;
                Ok((out, next))
            },
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn list_runs(
        &mut self,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<(Vec<RunSummary>, Option<RunId>), InfraError> {
        let tenant = self.tenant;
        let limit = NonZeroUsize::new(limit).expect("a page has room");
        self.call(
            Operation::ListRuns,
            Scope::Nothing,
            |backend, _| {
                let mut out = Vec::new();
                let next = backend.list_runs_into(tenant, after, limit, &mut out)?;
                Ok((out, next))
            },
            |_| vec![],
        )
    }

    #[track_caller]
    pub(super) fn delete_run(&mut self) -> Result<(), DeleteRunError> {
        let (now, tenant, run) = (self.now, self.tenant, self.run);
        self.call(
            Operation::DeleteRun,
            Scope::Deletes(run),
            |backend, _| backend.delete_run(now, tenant, run),
            |()| vec![EventKind::RunDeleted],
        )
    }

    #[track_caller]
    pub(super) fn revoke(
        &mut self,
        shard: ShardId,
        fence: FenceEpoch,
    ) -> Done<(), RevokeLeaseError> {
        let (now, tenant, key) = (self.now, self.tenant, self.key(shard));
        self.call(
            Operation::RevokeLease,
            Scope::Shard(key),
            |backend, _| backend.revoke_lease(now, tenant, key, fence),
            |_| vec![EventKind::ShardLeaseRevoked { shard, new_fence_epoch: fence.next() }],
        )
    }
}

fn acquired(acquired: &Acquired) -> Vec<EventKind> {
    vec![EventKind::ShardAcquired {
        shard: acquired.lease.shard(),
        worker: acquired.lease.owner(),
        fence_epoch: acquired.lease.fence(),
    }]
}
