//! The suite under test: coordinators that are wrong in one way each, and the cases that must say
//! so.

use std::marker::PhantomData;

use gossip_coordination::conformance::{CASES, Caps, run_case};
use gossip_coordination::{EventCollector, InMemoryCoordinator, ShardRecordView, Takeover};

use super::delegate::names::*;
use super::delegate::{delegate_traits, impl_method, impl_trait, methods};
use super::held::{Held, Holder};
use super::memory::Memory;

macro_rules! mutation_trait {
    (
        {}
        $($trait:ident $async_trait:ident { $(
            $kind:ident $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty;
        )* })*
    ) => {
        /// What goes wrong. By default nothing does.
        #[allow(clippy::too_many_arguments, reason = "a listing, and where in it")]
        trait Mutation: Send {
            fn restart(_inner: &mut InMemoryCoordinator) {}

            $($(mutation_method! { $kind $name<$($lt)?>($($arg: $ty),*) -> $ret })*)*
        }
    };
}

macro_rules! mutation_method {
    (mut $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        fn $name<$($lt)?>(inner: &mut InMemoryCoordinator, $($arg: $ty),*) -> $ret {
            inner.$name($($arg),*)
        }
    };
    (ref $name:ident<$($lt:lifetime)?>($($arg:ident: $ty:ty),*) -> $ret:ty) => {
        fn $name<$($lt)?>(inner: &InMemoryCoordinator, $($arg: $ty),*) -> $ret {
            inner.$name($($arg),*)
        }
    };
}

methods! { mutation_trait {} }

struct Mutant<M>(InMemoryCoordinator, PhantomData<M>);

macro_rules! mutated {
    ($self:expr, $trait:ident, $async_trait:ident, get_run, $($arg:expr),*) => {
        M::get_run(&$self.0, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, get_run_progress, $($arg:expr),*) => {
        M::get_run_progress(&$self.0, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, list_runs_into, $($arg:expr),*) => {
        M::list_runs_into(&$self.0, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, list_shards_page_into, $($arg:expr),*) => {
        M::list_shards_page_into(&$self.0, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, list_shards_into, $($arg:expr),*) => {
        M::list_shards_into(&$self.0, $($arg),*)
    };
    ($self:expr, $trait:ident, $async_trait:ident, $name:ident, $($arg:expr),*) => {
        M::$name(&mut $self.0, $($arg),*)
    };
}

methods! { delegate_traits { [M: Mutation] Mutant<M>, mutated } }

impl<M: Mutation> Holder for Mutant<M> {
    fn hold(coordinator: InMemoryCoordinator) -> Self {
        Self(coordinator, PhantomData)
    }

    fn swap(&mut self, other: &mut InMemoryCoordinator) {
        std::mem::swap(&mut self.0, other);
    }

    fn caps() -> Caps {
        Caps { durable: true, ..Memory::CAPS }
    }

    fn reopen(&mut self) {
        M::restart(&mut self.0);
    }
}

struct Honest;
impl Mutation for Honest {}

/// Whether the suite notices: each of the cases fails, and passes when nothing is wrong.
#[track_caller]
fn assert_noticed<M: Mutation>(cases: &[&str]) {
    for name in cases {
        let (family, case) = name.split_once("::").expect("family::case");
        run_case::<Held<Mutant<Honest>>>(family, case);
        let noticed = std::panic::catch_unwind(|| run_case::<Held<Mutant<M>>>(family, case));
        assert!(noticed.is_err(), "{name} did not notice");
    }
}

#[test]
fn an_honest_wrapper_passes() {
    for case in CASES.iter().filter(|case| case.family != "scale") {
        run_case::<Held<Mutant<Honest>>>(case.family, case.name);
    }
}

struct ReleaseKeepsTheShard;
impl Mutation for ReleaseKeepsTheShard {
    fn release(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<(), ReleaseError> {
        // Checks everything and gives nothing back.
        inner.renew(now, tenant, lease).map(drop).map_err(|error| match error {
            RenewError::StaleFence { presented, current } => {
                ReleaseError::StaleFence { presented, current }
            }
            other => panic!("{other}"),
        })
    }
}

#[test]
fn a_release_that_releases_nothing_is_noticed() {
    assert_noticed::<ReleaseKeepsTheShard>(&[
        "acquire::a_released_shard_is_free_at_once",
        "settle::a_released_shard_keeps_fence_and_cursor",
        "poison::a_released_shard_has_killed_nobody",
    ]);
}

struct ClaimHidesTheRunsStatus;
impl Mutation for ClaimHidesTheRunsStatus {
    fn claim_next_available<'s>(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        inner.claim_next_available(now, tenant, run, worker, scratch).map_err(|error| match error {
            ClaimError::RunNotActive { .. } => {
                ClaimError::NoneAvailable { earliest_deadline: None }
            }
            other => other,
        })
    }
}

#[test]
fn a_claim_that_ignores_the_runs_status_is_noticed() {
    assert_noticed::<ClaimHidesTheRunsStatus>(&[
        "claims::a_run_that_is_not_active_has_nothing_to_claim",
        "run_end::a_cancelled_run_allows_what_it_should",
    ]);
}

struct ClaimHandsOutWhatTheCallerHolds;
impl Mutation for ClaimHandsOutWhatTheCallerHolds {
    fn claim_next_available<'s>(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, ClaimError> {
        let mut held = None;
        inner.for_each_shard(|shard: &ShardRecordView<'_>| {
            let by_caller = |state: &gossip_coordination::ShardState| {
                state
                    .holder_at(now, Takeover::AT_DEADLINE)
                    .is_some_and(|holder| holder.owner() == worker)
            };
            if shard.tenant == tenant && shard.key.run == run && by_caller(&shard.state) {
                held = Some(shard.key);
            }
        });
        match held {
            Some(key) => inner
                .acquire_and_restore_into(now, tenant, key, worker, scratch)
                .map_err(|error| panic!("{error}")),
            None => inner.claim_next_available(now, tenant, run, worker, scratch),
        }
    }
}

#[test]
fn a_claim_that_hands_out_the_callers_own_shard_is_noticed() {
    assert_noticed::<ClaimHandsOutWhatTheCallerHolds>(&[
        "claims::a_held_shard_is_not_claimed_not_even_by_its_holder",
        "claims::many_workers_claim_every_shard_exactly_once",
    ]);
}

struct ReplayPassesForExecution;
impl Mutation for ReplayPassesForExecution {
    fn checkpoint(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        inner.checkpoint(now, tenant, lease, cursor, op).map(|_| IdempotentOutcome::Executed(()))
    }
}

#[test]
fn a_replay_that_passes_for_an_execution_is_noticed() {
    assert_noticed::<ReplayPassesForExecution>(&[
        "leased::checkpoint_replays_after_expiry_restart_and_end_of_run",
        "op_log::the_last_sixteen_operations_replay",
    ]);
}

struct RefusalGivesTheShardBack;
impl Mutation for RefusalGivesTheShardBack {
    fn checkpoint(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        cursor: CursorUpdate<'_>,
        op: OpId,
    ) -> Result<IdempotentOutcome<()>, CheckpointError> {
        let answer = inner.checkpoint(now, tenant, lease, cursor, op);
        if answer.is_err() {
            let _ = inner
                .with_events(&mut EventCollector::new(), |inner| inner.release(now, tenant, lease));
        }
        answer
    }
}

#[test]
fn a_refusal_that_writes_is_noticed() {
    assert_noticed::<RefusalGivesTheShardBack>(&[
        "cursor::checkpoint_that_moves_the_cursor_back_is_refused",
        "cursor::checkpoint_without_a_key_is_refused",
        "leased::checkpoint_under_a_used_op_id_is_refused",
    ]);
}

struct SplitForgetsItsEvent;
impl Mutation for SplitForgetsItsEvent {
    fn split_replace(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        inner.with_events(&mut EventCollector::new(), |inner| {
            inner.split_replace(now, tenant, lease, plan, op)
        })
    }
}

#[test]
fn a_split_that_forgets_its_event_is_noticed() {
    assert_noticed::<SplitForgetsItsEvent>(&[
        "split::a_replaced_shard_hands_its_range_to_its_children",
        "leased::split_replace_just_before_the_deadline_is_carried_out",
    ]);
}

struct SplitNamesItsChildrenBackwards;
impl Mutation for SplitNamesItsChildrenBackwards {
    fn split_replace(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
        plan: &SplitReplacePlan<'_>,
        op: OpId,
    ) -> Result<IdempotentOutcome<SplitReplaceResult>, SplitReplaceError> {
        let mut outcome = inner.split_replace(now, tenant, lease, plan, op)?;
        if let IdempotentOutcome::Replayed(result) = &mut outcome {
            result.children.as_mut_slice().reverse();
        }
        Ok(outcome)
    }
}

#[test]
fn a_replay_with_another_answer_is_noticed() {
    assert_noticed::<SplitNamesItsChildrenBackwards>(&["split::a_retry_names_the_same_children"]);
}

struct ListsBackwards;
impl Mutation for ListsBackwards {
    fn list_shards_into(
        inner: &InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        run: RunId,
        filter: ShardFilter,
        out: &mut Vec<ShardSummary>,
    ) -> Result<(), GetRunError> {
        inner.list_shards_into(now, tenant, run, filter, out)?;
        out.reverse();
        Ok(())
    }
}

#[test]
fn a_listing_in_the_wrong_order_is_noticed() {
    assert_noticed::<ListsBackwards>(&[
        "listing::filters_show_what_they_say",
        "scale::a_listing_shows_all_of_many_shards_in_order",
    ]);
}

struct CountsOneTooFew;
impl Mutation for CountsOneTooFew {
    fn get_run_progress(
        inner: &InMemoryCoordinator,
        tenant: TenantId,
        run: RunId,
    ) -> Result<RunProgress, GetRunError> {
        let mut progress = inner.get_run_progress(tenant, run)?;
        progress.parked = progress.parked.saturating_sub(1);
        Ok(progress)
    }
}

#[test]
fn progress_off_by_one_is_noticed() {
    assert_noticed::<CountsOneTooFew>(&[
        "listing::progress_counts_where_shards_stand",
        "unpark::an_unparked_shard_starts_over_from_its_cursor",
    ]);
}

struct RenewAnswersAnotherDeadline;
impl Mutation for RenewAnswersAnotherDeadline {
    fn renew(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        lease: &Lease,
    ) -> Result<RenewResult, RenewError> {
        let config = inner.get_run(tenant, lease.run()).map(|run| run.config);
        let mut renewed = inner.renew(now, tenant, lease)?;
        let duration = config.expect("a lease has a run").lease_duration;
        renewed.new_deadline = now.checked_add(duration).unwrap_or(renewed.new_deadline);
        Ok(renewed)
    }
}

#[test]
fn a_renewal_that_shortens_is_noticed() {
    assert_noticed::<RenewAnswersAnotherDeadline>(&[
        "time::a_clock_that_steps_back_shortens_no_lease",
    ]);
}

struct AcquireForgetsTheToken;
impl Mutation for AcquireForgetsTheToken {
    fn acquire_and_restore_into<'s>(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let mut acquired = inner.acquire_and_restore_into(now, tenant, key, worker, scratch)?;
        acquired.snapshot.cursor = CursorUpdate::new(acquired.snapshot.cursor.last_key(), None);
        Ok(acquired)
    }
}

#[test]
fn a_lost_token_is_noticed() {
    assert_noticed::<AcquireForgetsTheToken>(&[
        "acquire::the_next_worker_goes_on_where_the_last_one_stopped",
    ]);
}

struct AcquirePromisesTooMuch;
impl Mutation for AcquirePromisesTooMuch {
    fn acquire_and_restore_into<'s>(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        worker: WorkerId,
        scratch: &'s mut AcquireScratch,
    ) -> Result<AcquireResultView<'s>, AcquireError> {
        let mut acquired = inner.acquire_and_restore_into(now, tenant, key, worker, scratch)?;
        acquired.capacity.available_count += 1;
        Ok(acquired)
    }
}

#[test]
fn a_hint_that_promises_too_much_is_noticed() {
    assert_noticed::<AcquirePromisesTooMuch>(&["listing::capacity_hints_tell_how_much_waits"]);
}

struct RunsAreForEverybody;
impl Mutation for RunsAreForEverybody {
    fn get_run(
        inner: &InMemoryCoordinator,
        tenant: TenantId,
        run: RunId,
    ) -> Result<RunRecord, GetRunError> {
        let mut found = inner.get_run(tenant, run);
        inner.for_each_run(|record| {
            if found.is_err() && record.run == run {
                found = Ok(record.clone());
            }
        });
        found
    }
}

#[test]
fn a_leak_between_tenants_is_noticed() {
    assert_noticed::<RunsAreForEverybody>(&["tenants::nothing_of_another_tenant_is_found"]);
}

struct UnparkIsNotRemembered;
impl Mutation for UnparkIsNotRemembered {
    fn unpark_shard(
        inner: &mut InMemoryCoordinator,
        now: LogicalTime,
        tenant: TenantId,
        key: ShardKey,
        op: OpId,
    ) -> Result<IdempotentOutcome<()>, UnparkError> {
        match inner.unpark_shard(now, tenant, key, op)? {
            // As a backend would that asks for the status before the op-log.
            IdempotentOutcome::Replayed(()) => {
                let status = gossip_coordination::ShardStatus::Active;
                Err(UnparkError::NotParked { status })
            }
            executed => Ok(executed),
        }
    }
}

#[test]
fn an_unpark_that_asks_the_op_log_too_late_is_noticed() {
    assert_noticed::<UnparkIsNotRemembered>(&[
        "unpark::a_retry_is_answered_whatever_has_happened_since",
    ]);
}

struct RestartLosesLeases;
impl Mutation for RestartLosesLeases {
    fn restart(inner: &mut InMemoryCoordinator) {
        let mut held = Vec::new();
        inner.for_each_shard(|shard| {
            held.extend(shard.state.lease.map(|holder| {
                let (owner, deadline) = (holder.owner(), holder.deadline());
                Lease::new(shard.tenant, shard.key, owner, shard.state.fence, deadline)
            }));
        });
        let lost = |lease: &Lease| inner.release(LogicalTime::from_raw(1), lease.tenant(), lease);
        assert!(held.iter().map(lost).all(|lost| lost.is_ok()));
    }
}

#[test]
fn a_restart_that_loses_leases_is_noticed() {
    assert_noticed::<RestartLosesLeases>(&[
        "reopen::zombies_stay_out_across_restarts",
        "reopen::a_busy_backend_is_the_same_after_a_restart",
    ]);
}
