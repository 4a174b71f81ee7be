//! Workers' operations: decide, and store the decision.

use gossip_contracts::coordination::{CursorUpdate, SplitReplacePlan, SplitResidualPlan};
use gossip_contracts::identity::{LogicalTime, OpId, ShardKey, TenantId, WorkerId};
use gossip_coordination::transition::{
    self, AcquireDecision, CursorRequest, Decision, ParkRequest, RenewingCheckpoint,
    SplitReplaceRequest, SplitReplaceResult, SplitResidualRequest, SplitResidualResult,
    SplitUpdate,
};
use gossip_coordination::{
    AcquireError, AcquireResultView, AcquireScratch, AsyncCoordinationBackend, CheckpointError,
    CheckpointRenewal, CompleteError, CoordError, FoundShard, IdempotentOutcome, InfraError, Lease,
    ParkError, ParkReason, ReleaseError, RenewError, RenewResult, ShardRoom, ShardUpdate,
    SplitError, SplitReplaceError, SplitResidualError,
};

use crate::change::{Manner, Outcome, StoreDecision};
use crate::coordinator::AsyncEtcdCoordinator;
use crate::error::{Steps, steps};
use crate::kv::Kv;
use crate::retry::Attempts;
use crate::shards::{Change, DecisionInput};

impl<'r> StoreDecision<'r, IdempotentOutcome<()>> {
    /// Store an idempotent operation, or say that it was.
    pub(crate) fn of(decision: Decision<ShardUpdate<'r>, ()>) -> Self {
        match decision {
            Decision::Execute(update) => {
                Self::Store(Change::of(update), IdempotentOutcome::Executed(()))
            }
            Decision::Replay(()) => Self::Keep(IdempotentOutcome::Replayed(())),
        }
    }
}

impl Manner {
    pub(crate) const fn plain(steps: Steps, now: LogicalTime) -> Self {
        Self { steps, now, grows: false, applicant: None, tells_capacity: false }
    }

    const fn telling_capacity(steps: Steps, now: LogicalTime) -> Self {
        Self { tells_capacity: true, ..Self::plain(steps, now) }
    }
}

impl<K: Kv> AsyncCoordinationBackend for AsyncEtcdCoordinator<K> {
    async fn acquire_and_restore_into<'s>(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let mut attempts = self.attempts();
        self.acquire_within(&mut attempts, now, tenant, key, worker, scratch).await
    }

    async fn renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        let manner = Manner::telling_capacity(steps!("renew"), now);
        let decide = |seen: DecisionInput<'_, '_>| {
            let (new_deadline, update) = transition::renew(seen.found, now, tenant, lease)?;
            Ok::<_, RenewError>(StoreDecision::Store(Change::of(update), new_deadline))
        };
        let Outcome { answer, capacity, .. } =
            self.change_shard(&mut self.attempts(), manner, tenant, lease.key(), decide).await?;
        Ok(RenewResult { new_deadline: answer, capacity })
    }

    async fn release(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        let manner = Manner::plain(steps!("release"), now);
        let decide = |seen: DecisionInput<'_, '_>| {
            let update = transition::release(seen.found, now, tenant, lease)?;
            Ok::<_, ReleaseError>(StoreDecision::Store(Change::of(update), ()))
        };
        self.change_shard(&mut self.attempts(), manner, tenant, lease.key(), decide).await.map(drop)
    }

    async fn checkpoint(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide =
            |found: Option<FoundShard<'_, '_>>| transition::checkpoint(found, now, &request);
        self.change_leased(steps!("checkpoint"), now, tenant, lease, decide).await
    }

    async fn checkpoint_and_renew(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide = |seen: DecisionInput<'_, '_>| {
            let decision = transition::checkpoint_and_renew(seen.found, now, &request)?;
            Ok::<_, CheckpointError>(match decision {
                Decision::Execute(RenewingCheckpoint { update, new_deadline }) => {
                    StoreDecision::Store(
                        Change::of(update),
                        IdempotentOutcome::Executed(new_deadline),
                    )
                }
                Decision::Replay(deadline) => {
                    StoreDecision::Keep(IdempotentOutcome::Replayed(deadline))
                }
            })
        };
        let manner = Manner::telling_capacity(steps!("checkpoint_and_renew"), now);
        let Outcome { answer, capacity, idle_workers } =
            self.change_shard(&mut self.attempts(), manner, tenant, lease.key(), decide).await?;
        Ok(answer.map(|new_deadline| CheckpointRenewal { new_deadline, capacity, idle_workers }))
    }

    async fn complete(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, CompleteError> {
        let request = CursorRequest { tenant, lease, cursor, op_id };
        let decide = |found: Option<FoundShard<'_, '_>>| transition::complete(found, now, &request);
        self.change_leased(steps!("complete"), now, tenant, lease, decide).await
    }

    async fn park_shard(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        reason: ParkReason,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<()>, ParkError> {
        let request = ParkRequest { tenant, lease, reason, op_id };
        let decide = |found: Option<FoundShard<'_, '_>>| transition::park(found, now, &request);
        self.change_leased(steps!("park"), now, tenant, lease, decide).await
    }

    async fn split_replace(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        let request = SplitReplaceRequest { tenant, lease, plan, op_id };
        self.split(
            steps!("split_replace"),
            now,
            tenant,
            lease,
            |found, room| transition::split_replace(found, now, room, &request),
            |update| SplitReplaceResult {
                children: update.shards.iter().map(|new| new.id).collect(),
            },
        )
        .await
    }

    async fn split_residual(
        &mut self,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitResidualPlan<'_>,
        op_id: OpId,
    ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError> {
        let request = SplitResidualRequest { tenant, lease, plan, op_id };
        self.split(
            steps!("split_residual"),
            now,
            tenant,
            lease,
            |found, room| transition::split_residual(found, now, room, &request),
            |update| SplitResidualResult { residual: update.shards[0].id },
        )
        .await
    }
}

impl<K: Kv> AsyncEtcdCoordinator<K> {
    /// Acquires a shard in what is left of an operation's time.
    pub(crate) async fn acquire_within<'s>(
        &mut self,
        attempts: &mut Attempts,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let manner = Manner::telling_capacity(steps!("acquire"), now);
        let manner = Manner { applicant: Some(worker), ..manner };
        let skewed = self.takeover(false);
        let decide = |seen: DecisionInput<'_, '_>| {
            let takeover =
                gossip_coordination::Takeover { holder_is_gone: seen.holder_is_gone, ..skewed };
            let decision = transition::acquire(seen.found, now, takeover, tenant, key, worker)?;
            Ok::<_, AcquireError>(match decision {
                AcquireDecision::Grant { lease, update } => {
                    let shard = seen.found.expect("a shard that is granted is there").shard;
                    scratch.write_record(shard);
                    let small = (update.state.status, shard.cursor_semantics, shard.parent);
                    StoreDecision::Store(Change::of(update), Ok((lease, small)))
                }
                AcquireDecision::Poison { update, refusal } => {
                    StoreDecision::Store(Change::of(update), Err(refusal))
                }
            })
        };
        let Outcome { answer, capacity, .. } =
            self.change_shard(attempts, manner, tenant, key, decide).await?;
        let (lease, (status, cursor_semantics, parent)) = answer?;
        let snapshot = scratch.view(status, cursor_semantics, parent);
        Ok(AcquireResultView { lease, snapshot, capacity })
    }

    async fn change_leased<'r, E>(
        &mut self,
        steps: Steps,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        mut decide: impl FnMut(
            Option<FoundShard<'_, '_>>,
        ) -> Result<Decision<ShardUpdate<'r>, ()>, CoordError>
        + Send,
    ) -> Result<IdempotentOutcome<()>, E>
    where
        E: From<CoordError> + From<InfraError> + Send,
    {
        let decide =
            |seen: DecisionInput<'_, '_>| Ok::<_, E>(StoreDecision::of(decide(seen.found)?));
        let manner = Manner::plain(steps, now);
        Ok(self
            .change_shard(&mut self.attempts(), manner, tenant, lease.key(), decide)
            .await?
            .answer)
    }

    /// Stores the parent and every new shard, or nothing.
    async fn split<'r, R: Send>(
        &mut self,
        steps: Steps,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        mut decide: impl FnMut(
            Option<FoundShard<'_, '_>>,
            &ShardRoom,
        ) -> Result<Decision<SplitUpdate<'r>, R>, CoordError>
        + Send,
        result: fn(&SplitUpdate<'r>) -> R,
    ) -> Result<IdempotentOutcome<R>, SplitError> {
        let empty = self.room(Default::default());
        let decide = |seen: DecisionInput<'_, '_>| {
            let room = ShardRoom { counts: seen.counts, ..empty };
            let update = match decide(seen.found, &room)? {
                Decision::Execute(update) => update,
                Decision::Replay(result) => {
                    return Ok(StoreDecision::Keep(IdempotentOutcome::Replayed(result)));
                }
            };
            update.check_ids_free(|id| Ok::<_, SplitError>(seen.taken.contains(&id)))?;
            let answer = IdempotentOutcome::Executed(result(&update));
            let change = Change { update: update.parent, children: update.shards };
            Ok::<_, SplitError>(StoreDecision::Store(change, answer))
        };
        let manner = Manner { grows: true, ..Manner::plain(steps, now) };
        Ok(self
            .change_shard(&mut self.attempts(), manner, tenant, lease.key(), decide)
            .await?
            .answer)
    }
}
