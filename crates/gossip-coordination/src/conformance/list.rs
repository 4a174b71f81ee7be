//! All cases of the suite. This list is the only one: tests, data and dispatch are made from it.

use super::cases;
use super::harness::Harness;
use super::matrix::{Aspect, Operation};
use super::runner::{Case, Covers};

/// Hands the list to a macro. A family holds cases, each with what it covers: operations, a colon,
/// aspects. `name = body(argument)` is a case whose body serves several.
#[doc(hidden)]
#[macro_export]
#[rustfmt::skip]
macro_rules! for_each_case {
    ([$($emit:tt)+]) => { $($emit)+! {
        leased {
            renew_of_an_unknown_shard_is_refused = unknown_shard(Renew) => [Renew: ShardNotFound]
            release_of_an_unknown_shard_is_refused = unknown_shard(Release)
                => [Release: ShardNotFound]
            checkpoint_of_an_unknown_shard_is_refused = unknown_shard(Checkpoint)
                => [Checkpoint: ShardNotFound]
            complete_of_an_unknown_shard_is_refused = unknown_shard(Complete)
                => [Complete: ShardNotFound]
            park_of_an_unknown_shard_is_refused = unknown_shard(Park) => [Park: ShardNotFound]
            split_replace_of_an_unknown_shard_is_refused = unknown_shard(SplitReplace)
                => [SplitReplace: ShardNotFound]
            split_residual_of_an_unknown_shard_is_refused = unknown_shard(SplitResidual)
                => [SplitResidual: ShardNotFound]
            renew_with_a_lease_of_another_tenant_is_refused = foreign_lease(Renew)
                => [Renew: TenantMismatch]
            release_with_a_lease_of_another_tenant_is_refused = foreign_lease(Release)
                => [Release: TenantMismatch]
            checkpoint_with_a_lease_of_another_tenant_is_refused = foreign_lease(Checkpoint)
                => [Checkpoint: TenantMismatch]
            complete_with_a_lease_of_another_tenant_is_refused = foreign_lease(Complete)
                => [Complete: TenantMismatch]
            park_with_a_lease_of_another_tenant_is_refused = foreign_lease(Park)
                => [Park: TenantMismatch]
            split_replace_with_a_lease_of_another_tenant_is_refused = foreign_lease(SplitReplace)
                => [SplitReplace: TenantMismatch]
            split_residual_with_a_lease_of_another_tenant_is_refused = foreign_lease(SplitResidual)
                => [SplitResidual: TenantMismatch]
            renew_with_a_stale_fence_is_refused = stale_fence(Renew) => [Renew: StaleFence]
            release_with_a_stale_fence_is_refused = stale_fence(Release) => [Release: StaleFence]
            checkpoint_with_a_stale_fence_is_refused = stale_fence(Checkpoint)
                => [Checkpoint: StaleFence]
            complete_with_a_stale_fence_is_refused = stale_fence(Complete) => [Complete: StaleFence]
            park_with_a_stale_fence_is_refused = stale_fence(Park) => [Park: StaleFence]
            split_replace_with_a_stale_fence_is_refused = stale_fence(SplitReplace)
                => [SplitReplace: StaleFence]
            split_residual_with_a_stale_fence_is_refused = stale_fence(SplitResidual)
                => [SplitResidual: StaleFence]
            renew_with_ones_own_older_lease_is_refused = own_older_lease(Renew)
                => [Renew: StaleFence]
            release_with_ones_own_older_lease_is_refused = own_older_lease(Release)
                => [Release: StaleFence]
            checkpoint_with_ones_own_older_lease_is_refused = own_older_lease(Checkpoint)
                => [Checkpoint: StaleFence]
            complete_with_ones_own_older_lease_is_refused = own_older_lease(Complete)
                => [Complete: StaleFence]
            park_with_ones_own_older_lease_is_refused = own_older_lease(Park) => [Park: StaleFence]
            split_replace_with_ones_own_older_lease_is_refused = own_older_lease(SplitReplace)
                => [SplitReplace: StaleFence]
            split_residual_with_ones_own_older_lease_is_refused = own_older_lease(SplitResidual)
                => [SplitResidual: StaleFence]
            renew_after_release_is_refused = after_release(Renew) => [Renew: StaleFence]
            release_after_release_is_refused = after_release(Release) => [Release: StaleFence]
            checkpoint_after_release_is_refused = after_release(Checkpoint)
                => [Checkpoint: StaleFence]
            complete_after_release_is_refused = after_release(Complete) => [Complete: StaleFence]
            park_after_release_is_refused = after_release(Park) => [Park: StaleFence]
            split_replace_after_release_is_refused = after_release(SplitReplace)
                => [SplitReplace: StaleFence]
            split_residual_after_release_is_refused = after_release(SplitResidual)
                => [SplitResidual: StaleFence]
            renew_after_unpark_is_refused = after_unpark(Renew) => [Renew: StaleFence]
            release_after_unpark_is_refused = after_unpark(Release) => [Release: StaleFence]
            checkpoint_after_unpark_is_refused = after_unpark(Checkpoint)
                => [Checkpoint: StaleFence]
            complete_after_unpark_is_refused = after_unpark(Complete) => [Complete: StaleFence]
            park_after_unpark_is_refused = after_unpark(Park) => [Park: StaleFence]
            split_replace_after_unpark_is_refused = after_unpark(SplitReplace)
                => [SplitReplace: StaleFence]
            split_residual_after_unpark_is_refused = after_unpark(SplitResidual)
                => [SplitResidual: StaleFence]
            renew_with_the_fence_of_another_owner_is_refused = another_owner(Renew)
                => [Renew: StaleFence]
            release_with_the_fence_of_another_owner_is_refused = another_owner(Release)
                => [Release: StaleFence]
            checkpoint_with_the_fence_of_another_owner_is_refused = another_owner(Checkpoint)
                => [Checkpoint: StaleFence]
            complete_with_the_fence_of_another_owner_is_refused = another_owner(Complete)
                => [Complete: StaleFence]
            park_with_the_fence_of_another_owner_is_refused = another_owner(Park)
                => [Park: StaleFence]
            split_replace_with_the_fence_of_another_owner_is_refused = another_owner(SplitReplace)
                => [SplitReplace: StaleFence]
            split_residual_with_the_fence_of_another_owner_is_refused = another_owner(SplitResidual)
                => [SplitResidual: StaleFence]
            renew_at_the_deadline_is_refused = expired(Renew) => [Renew: LeaseExpired]
            release_at_the_deadline_is_refused = expired(Release) => [Release: LeaseExpired]
            checkpoint_at_the_deadline_is_refused = expired(Checkpoint)
                => [Checkpoint: LeaseExpired]
            complete_at_the_deadline_is_refused = expired(Complete) => [Complete: LeaseExpired]
            park_at_the_deadline_is_refused = expired(Park) => [Park: LeaseExpired]
            split_replace_at_the_deadline_is_refused = expired(SplitReplace)
                => [SplitReplace: LeaseExpired]
            split_residual_at_the_deadline_is_refused = expired(SplitResidual)
                => [SplitResidual: LeaseExpired]
            renew_just_before_the_deadline_is_carried_out = last_moment(Renew)
                => [Renew: Executes Emits Keeps WhenActive]
            release_just_before_the_deadline_is_carried_out = last_moment(Release)
                => [Release: Executes Emits Keeps WhenActive]
            checkpoint_just_before_the_deadline_is_carried_out = last_moment(Checkpoint)
                => [Checkpoint: Executes Emits Keeps WhenActive]
            complete_just_before_the_deadline_is_carried_out = last_moment(Complete)
                => [Complete: Executes Emits Ends WhenActive]
            park_just_before_the_deadline_is_carried_out = last_moment(Park)
                => [Park: Executes Emits Ends WhenActive]
            split_replace_just_before_the_deadline_is_carried_out = last_moment(SplitReplace)
                => [SplitReplace: Executes Emits Ends WhenActive]
            split_residual_just_before_the_deadline_is_carried_out = last_moment(SplitResidual)
                => [SplitResidual: Executes Emits Keeps WhenActive]
            renew_of_a_settled_shard_is_refused = terminal(Renew) => [Renew: ShardTerminal]
            release_of_a_settled_shard_is_refused = terminal(Release) => [Release: ShardTerminal]
            checkpoint_of_a_settled_shard_is_refused = terminal(Checkpoint)
                => [Checkpoint: ShardTerminal]
            complete_of_a_settled_shard_is_refused = terminal(Complete) => [Complete: ShardTerminal]
            park_of_a_settled_shard_is_refused = terminal(Park) => [Park: ShardTerminal]
            split_replace_of_a_settled_shard_is_refused = terminal(SplitReplace)
                => [SplitReplace: ShardTerminal]
            split_residual_of_a_settled_shard_is_refused = terminal(SplitResidual)
                => [SplitResidual: ShardTerminal]
            renew_after_the_run_ended_is_refused = run_over(Renew)
                => [Renew: RunNotActive WhenDone WhenFailed WhenCancelled]
            release_after_the_run_ended_is_refused = run_over(Release)
                => [Release: RunNotActive WhenDone WhenFailed WhenCancelled]
            checkpoint_after_the_run_ended_is_refused = run_over(Checkpoint)
                => [Checkpoint: RunNotActive WhenDone WhenFailed WhenCancelled]
            complete_after_the_run_ended_is_refused = run_over(Complete)
                => [Complete: RunNotActive WhenDone WhenFailed WhenCancelled]
            park_after_the_run_ended_is_refused = run_over(Park)
                => [Park: RunNotActive WhenDone WhenFailed WhenCancelled]
            split_replace_after_the_run_ended_is_refused = run_over(SplitReplace)
                => [SplitReplace: RunNotActive WhenDone WhenFailed WhenCancelled]
            split_residual_after_the_run_ended_is_refused = run_over(SplitResidual)
                => [SplitResidual: RunNotActive WhenDone WhenFailed WhenCancelled]
            renew_checks_tenant_run_status_fence_expiry_owner = order_of_checks(Renew)
                => [Renew: RunNotActive LeaseExpired]
            release_checks_tenant_run_status_fence_expiry_owner = order_of_checks(Release)
                => [Release: RunNotActive LeaseExpired]
            checkpoint_checks_tenant_run_status_fence_expiry_owner = order_of_checks(Checkpoint)
                => [Checkpoint: RunNotActive LeaseExpired]
            complete_checks_tenant_run_status_fence_expiry_owner = order_of_checks(Complete)
                => [Complete: RunNotActive LeaseExpired]
            park_checks_tenant_run_status_fence_expiry_owner = order_of_checks(Park)
                => [Park: RunNotActive LeaseExpired]
            split_replace_checks_tenant_run_status_fence_expiry_owner = order_of_checks(SplitReplace)
                => [SplitReplace: RunNotActive LeaseExpired]
            split_residual_checks_tenant_run_status_fence_expiry_owner = order_of_checks(SplitResidual)
                => [SplitResidual: RunNotActive LeaseExpired]
            checkpoint_under_a_used_op_id_is_refused = reused_op_id(Checkpoint)
                => [Checkpoint: OpIdConflict]
            complete_under_a_used_op_id_is_refused = reused_op_id(Complete)
                => [Complete: OpIdConflict]
            park_under_a_used_op_id_is_refused = reused_op_id(Park) => [Park: OpIdConflict]
            split_replace_under_a_used_op_id_is_refused = reused_op_id(SplitReplace)
                => [SplitReplace: OpIdConflict]
            split_residual_under_a_used_op_id_is_refused = reused_op_id(SplitResidual)
                => [SplitResidual: OpIdConflict]
            checkpoint_replays_after_expiry_restart_and_end_of_run = replay(Checkpoint)
                => [Checkpoint: Replays WhenCancelled]
            complete_replays_after_expiry_restart_and_end_of_run = replay(Complete)
                => [Complete: Replays WhenCancelled]
            park_replays_after_expiry_restart_and_end_of_run = replay(Park)
                => [Park: Replays WhenCancelled]
            split_replace_replays_after_expiry_restart_and_end_of_run = replay(SplitReplace)
                => [SplitReplace: Replays WhenCancelled]
            split_residual_replays_after_expiry_restart_and_end_of_run = replay(SplitResidual)
                => [SplitResidual: Replays WhenCancelled]
            checkpoint_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(Checkpoint)
                => [Checkpoint: Replays]
            complete_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(Complete)
                => [Complete: Replays]
            park_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(Park)
                => [Park: Replays]
            split_replace_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(SplitReplace)
                => [SplitReplace: Replays]
            split_residual_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(SplitResidual)
                => [SplitResidual: Replays]
            checkpoint_does_not_replay_to_another_tenant = no_replay_across_tenants(Checkpoint)
                => [Checkpoint: TenantMismatch]
            complete_does_not_replay_to_another_tenant = no_replay_across_tenants(Complete)
                => [Complete: TenantMismatch]
            park_does_not_replay_to_another_tenant = no_replay_across_tenants(Park)
                => [Park: TenantMismatch]
            split_replace_does_not_replay_to_another_tenant = no_replay_across_tenants(SplitReplace)
                => [SplitReplace: TenantMismatch]
            split_residual_does_not_replay_to_another_tenant = no_replay_across_tenants(SplitResidual)
                => [SplitResidual: TenantMismatch]
        }
    } };
}

macro_rules! operations {
    (all) => {
        Operation::ALL
    };
    (leased) => {
        Operation::LEASED
    };
    (logged) => {
        Operation::LOGGED
    };
    ($operation:ident) => {
        &[Operation::$operation]
    };
}

macro_rules! as_data {
    ($(
        $family:ident {
            $($name:ident $(= $body:ident($($arg:expr),*))? => [$($operations:ident: $($aspect:ident)+),*])*
        }
    )*) => {
        /// Every case of the suite.
        pub static CASES: &[Case] = &[$($(Case {
            family: stringify!($family),
            name: stringify!($name),
            covers: &[$(Covers {
                operations: operations!($operations),
                aspects: &[$(Aspect::$aspect),+],
            }),*],
        },)*)*];
    };
}

macro_rules! call_body {
    ($family:ident $name:ident) => {
        || cases::$family::$name::<H>()
    };
    ($family:ident $name:ident = $body:ident($($arg:expr),*)) => {
        || cases::$family::$body::<H>($($arg),*)
    };
}

macro_rules! as_bodies {
    ($(
        $family:ident { $($name:ident $(= $body:ident($($arg:expr),*))? => $covers:tt)* }
    )*) => {
        /// What a case does.
        pub(super) fn body<H: Harness>(family: &str, name: &str) -> Option<fn()> {
            use Operation::*;
            match (family, name) {
                $($((stringify!($family), stringify!($name)) => {
                    Some(call_body!($family $name $(= $body($($arg),*))?))
                })*)*
                _ => None,
            }
        }
    };
}

for_each_case! { [as_data] }
for_each_case! { [as_bodies] }
