//! Every method of a coordinator once, so that a wrapper says only how it passes calls on.

/// Hands the methods of the three traits to a macro, behind whatever stands before them.
macro_rules! methods {
    ($emit:ident { $($head:tt)* }) => { $emit! { { $($head)* }
        CoordinationBackend AsyncCoordinationBackend {
            mut acquire_and_restore_into<'s>(
                now: LogicalTime, tenant: TenantId, key: ShardKey, worker: WorkerId,
                scratch: &'s mut AcquireScratch
            ) -> Result<AcquireResultView<'s>, AcquireError>;
            mut renew<>(now: LogicalTime, tenant: TenantId, lease: &Lease)
                -> Result<RenewResult, RenewError>;
            mut release<>(now: LogicalTime, tenant: TenantId, lease: &Lease)
                -> Result<(), ReleaseError>;
            mut checkpoint<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>, op: OpId
            ) -> Result<IdempotentOutcome<()>, CheckpointError>;
            mut checkpoint_and_renew<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>, op: OpId
            ) -> Result<IdempotentOutcome<CheckpointRenewal>, CheckpointError>;
            mut complete<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, cursor: CursorUpdate<'_>, op: OpId
            ) -> Result<IdempotentOutcome<()>, CompleteError>;
            mut park_shard<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, reason: ParkReason, op: OpId
            ) -> Result<IdempotentOutcome<()>, ParkError>;
            mut split_replace<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, plan: &SplitReplacePlan<'_>,
                op: OpId
            ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError>;
            mut split_residual<>(
                now: LogicalTime, tenant: TenantId, lease: &Lease, plan: &SplitResidualPlan<'_>,
                op: OpId
            ) -> Result<IdempotentOutcome<SplitResidualResult>, SplitResidualError>;
        }
        RunManagement AsyncRunManagement {
            mut create_run<>(now: LogicalTime, tenant: TenantId, run: RunId, config: RunConfig)
                -> Result<(), CreateRunError>;
            mut register_shards<>(
                now: LogicalTime, tenant: TenantId, run: RunId, shards: &[InitialShardInput<'_>],
                op: OpId
            ) -> Result<IdempotentOutcome<()>, RegisterShardsError>;
            ref get_run<>(tenant: TenantId, run: RunId) -> Result<RunRecord, GetRunError>;
            ref get_run_progress<>(tenant: TenantId, run: RunId) -> Result<RunProgress, GetRunError>;
            ref list_shards_into<>(
                now: LogicalTime, tenant: TenantId, run: RunId, filter: ShardFilter,
                out: &mut Vec<ShardSummary>
            ) -> Result<(), GetRunError>;
            mut complete_run_with<>(
                now: LogicalTime, tenant: TenantId, run: RunId, result: Option<RunResult>, op: OpId
            ) -> Result<IdempotentOutcome<()>, RunTransitionError>;
            mut fail_run<>(now: LogicalTime, tenant: TenantId, run: RunId, op: OpId)
                -> Result<IdempotentOutcome<()>, RunTransitionError>;
            mut cancel_run<>(now: LogicalTime, tenant: TenantId, run: RunId, op: OpId)
                -> Result<IdempotentOutcome<()>, RunTransitionError>;
            mut unpark_shard<>(now: LogicalTime, tenant: TenantId, key: ShardKey, op: OpId)
                -> Result<IdempotentOutcome<()>, UnparkError>;
            mut collect_claim_candidates_into<>(
                now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
                out: &mut ClaimCandidates
            ) -> Result<(), GetRunError>;
            mut revoke_lease<>(
                now: LogicalTime, tenant: TenantId, key: ShardKey, fence: FenceEpoch
            ) -> Result<IdempotentOutcome<()>, RevokeLeaseError>;
            ref list_runs_into<>(
                tenant: TenantId, after: Option<RunId>, limit: NonZeroUsize,
                out: &mut Vec<RunSummary>
            ) -> Result<Option<RunId>, InfraError>;
            ref list_shards_page_into<>(
                now: LogicalTime, tenant: TenantId, run: RunId, filter: ShardFilter,
                after: Option<ShardId>, limit: NonZeroUsize, out: &mut Vec<ShardSummary>
            ) -> Result<Option<ShardId>, GetRunError>;
            mut delete_run<>(now: LogicalTime, tenant: TenantId, run: RunId)
                -> Result<(), DeleteRunError>;
            mut note_idle<>(now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId)
                -> Result<(), GetRunError>;
        }
        ShardClaiming AsyncShardClaiming {
            mut claim_next_available<'s>(
                now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
                scratch: &'s mut AcquireScratch
            ) -> Result<AcquireResultView<'s>, ClaimError>;
            mut reacquire_own<'s>(
                now: LogicalTime, tenant: TenantId, run: RunId, worker: WorkerId,
                scratch: &'s mut AcquireScratch
            ) -> Result<Option<AcquireResultView<'s>>, ClaimError>;
        }
    } };
}

/// Implements all three traits; `$forward!(self, Trait, AsyncTrait, method, arguments…)` passes a
/// call on.
macro_rules! delegate_traits {
    (
        { $generics:tt $type:ty, $forward:ident }
        $($trait:ident $async_trait:ident $methods:tt)*
    ) => {
        $(impl_trait! { $generics $type, $forward, $trait $async_trait $methods })*
    };
}

macro_rules! impl_trait {
    (
        [$($generics:tt)*] $type:ty, $forward:ident, $trait:ident $async_trait:ident { $(
            $kind:ident $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty;
        )* }
    ) => {
        impl<$($generics)*> $trait for $type {
            $(impl_method! {
                $forward $trait $async_trait
                $kind $name<$($lt)?>($($arg: $ty),*) -> $ret
            })*
        }
    };
}

macro_rules! impl_method {
    ($forward:ident $trait:ident $async_trait:ident
        mut $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty
    ) => {
        fn $name<$($lt)?>(&mut self, $($arg: $ty),*) -> $ret {
            $forward!(self, $trait, $async_trait, $name, $($arg),*)
        }
    };
    ($forward:ident $trait:ident $async_trait:ident
        ref $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty
    ) => {
        fn $name<$($lt)?>(&self, $($arg: $ty),*) -> $ret {
            $forward!(self, $trait, $async_trait, $name, $($arg),*)
        }
    };
}

/// What the signatures name.
pub(crate) mod names {
    pub(crate) use gossip_contracts::coordination::{
        CursorUpdate, InitialShardInput, SplitReplacePlan, SplitResidualPlan,
    };
    pub(crate) use gossip_contracts::identity::{
        FenceEpoch, LogicalTime, OpId, RunId, RunResult, ShardId, ShardKey, TenantId, WorkerId,
    };
    pub(crate) use gossip_coordination::transition::{SplitReplaceResult, SplitResidualResult};
    pub(crate) use gossip_coordination::{
        AcquireError, AcquireResultView, AcquireScratch, CheckpointError, CheckpointRenewal,
        ClaimCandidates, ClaimError, CompleteError, CoordinationBackend, CreateRunError,
        GetRunError, IdempotentOutcome, Lease, ParkError, ParkReason, RegisterShardsError,
        ReleaseError, RenewError, RenewResult, RunConfig, RunManagement, RunProgress, RunRecord,
        RunTransitionError, ShardClaiming, ShardFilter, ShardSummary, SplitReplaceError,
        SplitResidualError, UnparkError,
    };
    pub(crate) use gossip_coordination::{
        DeleteRunError, InfraError, RevokeLeaseError, RunSummary,
    };
    pub(crate) use std::num::NonZeroUsize;
}

pub(crate) use {delegate_traits, impl_method, impl_trait, methods};
