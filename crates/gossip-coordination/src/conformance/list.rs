//! All cases of the suite. This list is the only one: tests, data and dispatch are made from it.

use gossip_contracts::coordination::ShardLimitScope;

use super::cases;
use super::harness::Harness;
use super::matrix::{Aspect, Operation};
use super::runner::{Case, Covers};
use crate::run::RunStatus;

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
            checkpoint_and_renew_of_an_unknown_shard_is_refused = unknown_shard(CheckpointAndRenew)
                => [CheckpointAndRenew: ShardNotFound]
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
            checkpoint_and_renew_with_a_lease_of_another_tenant_is_refused = foreign_lease(CheckpointAndRenew)
                => [CheckpointAndRenew: TenantMismatch]
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
            checkpoint_and_renew_with_a_stale_fence_is_refused = stale_fence(CheckpointAndRenew)
                => [CheckpointAndRenew: StaleFence]
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
            checkpoint_and_renew_with_ones_own_older_lease_is_refused = own_older_lease(CheckpointAndRenew)
                => [CheckpointAndRenew: StaleFence]
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
            checkpoint_and_renew_after_release_is_refused = after_release(CheckpointAndRenew)
                => [CheckpointAndRenew: StaleFence]
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
            checkpoint_and_renew_after_unpark_is_refused = after_unpark(CheckpointAndRenew)
                => [CheckpointAndRenew: StaleFence]
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
            checkpoint_and_renew_with_the_fence_of_another_owner_is_refused = another_owner(CheckpointAndRenew)
                => [CheckpointAndRenew: StaleFence]
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
            checkpoint_and_renew_at_the_deadline_is_refused = expired(CheckpointAndRenew)
                => [CheckpointAndRenew: LeaseExpired]
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
            checkpoint_and_renew_just_before_the_deadline_is_carried_out = last_moment(CheckpointAndRenew)
                => [CheckpointAndRenew: Executes Emits Keeps WhenActive]
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
            checkpoint_and_renew_of_a_settled_shard_is_refused = terminal(CheckpointAndRenew)
                => [CheckpointAndRenew: ShardTerminal]
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
            checkpoint_and_renew_after_the_run_ended_is_refused = run_over(CheckpointAndRenew)
                => [CheckpointAndRenew: RunNotActive WhenDone WhenFailed WhenCancelled]
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
            checkpoint_and_renew_checks_tenant_run_status_fence_expiry_owner = order_of_checks(CheckpointAndRenew)
                => [CheckpointAndRenew: RunNotActive LeaseExpired]
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
            checkpoint_and_renew_under_a_used_op_id_is_refused = reused_op_id(CheckpointAndRenew)
                => [CheckpointAndRenew: OpIdConflict]
            complete_under_a_used_op_id_is_refused = reused_op_id(Complete)
                => [Complete: OpIdConflict]
            park_under_a_used_op_id_is_refused = reused_op_id(Park) => [Park: OpIdConflict]
            split_replace_under_a_used_op_id_is_refused = reused_op_id(SplitReplace)
                => [SplitReplace: OpIdConflict]
            split_residual_under_a_used_op_id_is_refused = reused_op_id(SplitResidual)
                => [SplitResidual: OpIdConflict]
            checkpoint_replays_after_expiry_restart_and_end_of_run = replay(Checkpoint)
                => [Checkpoint: Replays WhenCancelled]
            checkpoint_and_renew_replays_after_expiry_restart_and_end_of_run = replay(CheckpointAndRenew)
                => [CheckpointAndRenew: Replays WhenCancelled]
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
            checkpoint_and_renew_replays_for_a_worker_that_lost_the_shard = replay_by_a_zombie(CheckpointAndRenew)
                => [CheckpointAndRenew: Replays]
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
            checkpoint_and_renew_does_not_replay_to_another_tenant = no_replay_across_tenants(CheckpointAndRenew)
                => [CheckpointAndRenew: TenantMismatch]
            complete_does_not_replay_to_another_tenant = no_replay_across_tenants(Complete)
                => [Complete: TenantMismatch]
            park_does_not_replay_to_another_tenant = no_replay_across_tenants(Park)
                => [Park: TenantMismatch]
            split_replace_does_not_replay_to_another_tenant = no_replay_across_tenants(SplitReplace)
                => [SplitReplace: TenantMismatch]
            split_residual_does_not_replay_to_another_tenant = no_replay_across_tenants(SplitResidual)
                => [SplitResidual: TenantMismatch]
        }
        acquire {
            a_free_shard_is_granted_as_it_was_registered
                => [Acquire: Executes Emits Keeps WhenActive]
            the_next_worker_goes_on_where_the_last_one_stopped => [Acquire: Executes]
            every_acquire_raises_the_fence_by_one => [Acquire: Executes]
            an_unknown_shard_is_not_found => [Acquire: ShardNotFound]
            a_settled_shard_is_refused => [Acquire: ShardTerminal]
            a_shard_is_anothers_until_its_lease_is_over => [Acquire: AlreadyLeased Executes]
            the_holder_may_acquire_its_own_shard_again => [Acquire: Executes]
            the_holder_may_take_an_expired_shard_back => [Acquire: Executes]
            a_released_shard_is_free_at_once => [Acquire: Executes, Release: Executes]
            a_run_that_is_over_grants_nothing
                => [Acquire: RunNotActive WhenDone WhenFailed WhenCancelled]
            run_status_and_holder_are_checked_in_order
                => [Acquire: RunNotActive ShardTerminal AlreadyLeased]
        }
        poison {
            a_shard_tried_too_often_is_parked_as_poisoned => [Acquire: Poisons ShardTerminal]
            one_try_means_one_try => [Acquire: Poisons]
            acquiring_ones_own_shard_again_counts => [Acquire: Poisons]
            progress_starts_the_count_anew => [Acquire: Poisons, Checkpoint: Executes]
            a_checkpoint_at_the_same_place_is_no_progress => [Acquire: Poisons, Checkpoint: Executes]
            a_new_token_at_the_same_key_is_progress => [Checkpoint: Executes]
            a_released_shard_has_killed_nobody => [Acquire: Poisons, Release: Executes]
            renewing_is_no_progress => [Acquire: Poisons, Renew: Executes]
            an_unparked_shard_gets_all_its_tries_again => [Acquire: Poisons, Unpark: Executes]
            a_claim_parks_what_is_poisoned_and_goes_on => [Claim: Poisons Executes NoneAvailable]
            a_claim_among_poisoned_shards_only_finds_nothing => [Claim: Poisons NoneAvailable]
            a_claim_finds_the_free_shard_behind_many_poisoned_ones => [Claim: Poisons Executes]
        }
        time {
            renewing_extends_a_lease_from_now => [Renew: Executes Emits Keeps]
            renewing_keeps_others_out
                => [Renew: Executes, Acquire: AlreadyLeased, Claim: NoneAvailable]
            renewing_twice_is_harmless => [Renew: Executes]
            a_checkpoint_that_renews_extends_the_lease_from_now
                => [CheckpointAndRenew: Executes Emits Keeps]
            a_checkpoint_that_renews_extends_the_lease_once => [CheckpointAndRenew: Replays]
            a_checkpoint_that_renews_shortens_no_lease => [CheckpointAndRenew: Executes]
            a_replay_says_no_later_deadline_than_the_shard_is_held
                => [CheckpointAndRenew: Executes Replays]
            a_checkpoint_is_one_that_renews_or_one_that_does_not
                => [CheckpointAndRenew: OpIdConflict, Checkpoint: OpIdConflict]
            a_clock_that_steps_back_shortens_no_lease => [Renew: Executes]
            a_clock_that_steps_back_stops_no_work
                => [Renew: Executes, Claim: Executes, Complete: Executes]
            leases_granted_by_clocks_that_differ_expire_each_in_its_time
                => [Claim: Executes NoneAvailable]
            a_lease_may_outlive_the_clock => [Acquire: Executes, Renew: Executes]
            the_lease_lasts_as_long_as_the_run_says => [Acquire: Executes, Renew: Executes]
        }
        cursor {
            checkpoint_without_a_key_is_refused = missing_key(Checkpoint)
                => [Checkpoint: CheckpointMissingKey]
            checkpoint_and_renew_without_a_key_is_refused = missing_key(CheckpointAndRenew)
                => [CheckpointAndRenew: CheckpointMissingKey]
            complete_without_a_key_is_refused = missing_key(Complete)
                => [Complete: CheckpointMissingKey]
            checkpoint_that_moves_the_cursor_back_is_refused = regression(Checkpoint)
                => [Checkpoint: CursorRegression]
            checkpoint_and_renew_that_moves_the_cursor_back_is_refused = regression(CheckpointAndRenew)
                => [CheckpointAndRenew: CursorRegression]
            complete_that_moves_the_cursor_back_is_refused = regression(Complete)
                => [Complete: CursorRegression]
            checkpoint_that_moves_a_token_back_is_refused = token_regression(Checkpoint)
                => [Checkpoint: CursorRegression Executes]
            checkpoint_and_renew_that_moves_a_token_back_is_refused
                = token_regression(CheckpointAndRenew)
                => [CheckpointAndRenew: CursorRegression Executes, Checkpoint: Executes]
            complete_that_moves_a_token_back_is_refused = token_regression(Complete)
                => [Complete: CursorRegression Executes, Checkpoint: Executes]
            checkpoint_may_stay_or_advance = staying_and_advancing(Checkpoint)
                => [Checkpoint: Executes]
            checkpoint_and_renew_may_stay_or_advance = staying_and_advancing(CheckpointAndRenew)
                => [CheckpointAndRenew: Executes]
            complete_may_stay_or_advance = staying_and_advancing(Complete) => [Complete: Executes]
            checkpoint_outside_the_range_is_refused = bounds(Checkpoint)
                => [Checkpoint: CursorOutOfBounds Executes]
            checkpoint_and_renew_outside_the_range_is_refused = bounds(CheckpointAndRenew)
                => [CheckpointAndRenew: CursorOutOfBounds Executes]
            complete_outside_the_range_is_refused = bounds(Complete)
                => [Complete: CursorOutOfBounds Executes]
            checkpoint_takes_keys_and_tokens_up_to_their_limits = sizes(Checkpoint)
                => [Checkpoint: CursorKeyTooLarge CursorTokenTooLarge Executes]
            checkpoint_and_renew_takes_keys_and_tokens_up_to_their_limits = sizes(CheckpointAndRenew)
                => [CheckpointAndRenew: CursorKeyTooLarge CursorTokenTooLarge Executes]
            complete_takes_keys_and_tokens_up_to_their_limits = sizes(Complete)
                => [Complete: CursorKeyTooLarge CursorTokenTooLarge Executes]
            checkpoint_checks_presence_sizes_monotonicity_and_bounds_in_order
                = order_of_checks(Checkpoint)
                => [Checkpoint: CheckpointMissingKey CursorKeyTooLarge CursorTokenTooLarge
                    CursorRegression CursorOutOfBounds]
            checkpoint_and_renew_checks_presence_sizes_monotonicity_and_bounds_in_order
                = order_of_checks(CheckpointAndRenew)
                => [CheckpointAndRenew: CheckpointMissingKey CursorKeyTooLarge CursorTokenTooLarge
                    CursorRegression CursorOutOfBounds]
            complete_checks_presence_sizes_monotonicity_and_bounds_in_order
                = order_of_checks(Complete)
                => [Complete: CheckpointMissingKey CursorKeyTooLarge CursorTokenTooLarge
                    CursorRegression CursorOutOfBounds]
            a_checkpoint_replaces_key_and_token => [Checkpoint: Executes Emits Keeps]
            a_carried_over_cursor_is_where_work_starts
                => [RegisterShards: Executes, Checkpoint: CursorRegression]
            a_cursor_goes_on_under_the_next_lease => [Checkpoint: CursorRegression Executes]
        }
        settle {
            a_completed_shard_is_done_at_its_last_cursor => [Complete: Executes Emits Ends]
            an_empty_shard_is_completed_at_its_start => [Complete: Executes]
            a_parked_shard_keeps_its_reason_and_its_cursor => [Park: Executes Emits Ends]
            a_released_shard_keeps_fence_and_cursor => [Release: Executes Emits Keeps]
            operations_on_one_shard_leave_its_neighbours_alone => [Renew: Executes]
        }
        op_log {
            the_last_sixteen_operations_replay => [Checkpoint: Executes Replays]
            what_was_forgotten_is_judged_anew => [Checkpoint: Replays CursorRegression]
            a_refused_operation_may_be_retried_under_its_id
                => [Checkpoint: CursorOutOfBounds Executes Replays]
            op_ids_are_a_shards_own => [Checkpoint: Executes]
            a_checkpoint_and_a_completion_at_one_cursor_are_not_the_same => [Complete: OpIdConflict]
            a_residual_split_replays_after_the_log_forgot_it => [SplitResidual: Executes Replays]
            a_replace_split_replays_for_ever => [SplitReplace: Executes Replays]
        }
        unpark {
            an_unparked_shard_starts_over_from_its_cursor
                => [Unpark: Executes Emits Keeps WhenActive]
            only_a_parked_shard_is_unparked => [Unpark: NotParked]
            an_unknown_shard_is_not_unparked => [Unpark: ShardNotFound]
            a_run_that_is_over_stays_over => [Unpark: RunTerminal WhenFailed WhenCancelled]
            a_used_op_id_is_refused => [Unpark: OpIdConflict]
            a_retry_is_answered_whatever_has_happened_since => [Unpark: Executes Replays]
            whoever_parked_a_shard_cannot_come_back
                => [Unpark: Executes, leased: StaleFence, Park: Replays]
        }
        split {
            a_replaced_shard_hands_its_range_to_its_children => [SplitReplace: Executes Emits Ends]
            a_residual_split_leaves_the_parent_at_work
                => [SplitResidual: Executes Emits Keeps, Checkpoint: CursorOutOfBounds]
            children_are_found_by_claims_and_listings => [Claim: Executes, ListShards: Executes]
            a_retry_names_the_same_children => [SplitReplace: Replays]
            children_can_be_split_again => [SplitReplace: Executes]
            the_leaves_cover_the_range_after_many_splits
                => [SplitReplace: Executes, SplitResidual: Executes]
        }
        split_faults {
            a_replace_split_that_does_not_cover_its_parent_is_refused = coverage(SplitReplace)
                => [SplitReplace: SplitInvalid StartMismatch Gap Overlap EndMismatch]
            a_residual_split_that_does_not_cover_its_parent_is_refused = coverage(SplitResidual)
                => [SplitResidual: SplitInvalid StartMismatch Gap Overlap EndMismatch]
            a_replace_split_into_what_is_no_range_is_refused
                = parts_that_are_no_ranges(SplitReplace)
                => [SplitReplace: SplitInvalid ChildInvalid Executes]
            a_residual_split_into_what_is_no_range_is_refused
                = parts_that_are_no_ranges(SplitResidual)
                => [SplitResidual: SplitInvalid ChildInvalid Executes]
            a_replace_split_that_derives_a_taken_id_is_refused = taken_id(SplitReplace)
                => [SplitReplace: SplitInvalid DerivedIdCollision Executes]
            a_residual_split_that_derives_a_taken_id_is_refused = taken_id(SplitResidual)
                => [SplitResidual: SplitInvalid DerivedIdCollision Executes]
            a_split_has_at_least_two_parts => [SplitReplace: TooFewChildren]
            a_residual_split_keeps_the_cursor => [SplitResidual: CursorNotKept Executes]
            a_stale_plan_is_refused => [SplitReplace: EndMismatch, SplitResidual: EndMismatch]
        }
        split_limits {
            as_many_children_as_the_backend_allows
                => [SplitReplace: TooManyChildren Executes Replays]
            a_replace_split_of_more_bytes_than_the_backend_allows_is_refused
                = more_bytes_than_the_backend_allows(SplitReplace)
                => [SplitReplace: PartsTooLarge Executes]
            a_residual_split_of_more_bytes_than_the_backend_allows_is_refused
                = more_bytes_than_the_backend_allows(SplitResidual)
                => [SplitResidual: PartsTooLarge Executes]
            a_shard_spawns_no_more_than_it_may_by_residual_splits
                => [SplitResidual: SpawnLimitExceeded, SplitReplace: SpawnLimitExceeded]
            a_shard_spawns_no_more_than_it_may_by_a_replace_split
                => [SplitReplace: SpawnLimitExceeded Executes]
            a_replace_split_stops_at_the_tenants_ceiling
                = replace_under_a_ceiling(ShardLimitScope::Tenant)
                => [SplitReplace: TenantCeiling Executes Replays]
            a_replace_split_stops_at_the_global_ceiling
                = replace_under_a_ceiling(ShardLimitScope::Global)
                => [SplitReplace: GlobalCeiling Executes Replays]
            a_residual_split_stops_at_the_tenants_ceiling
                = residual_under_a_ceiling(ShardLimitScope::Tenant)
                => [SplitResidual: TenantCeiling Executes Replays]
            a_residual_split_stops_at_the_global_ceiling
                = residual_under_a_ceiling(ShardLimitScope::Global)
                => [SplitResidual: GlobalCeiling Executes Replays]
            a_tenants_ceiling_is_its_own => [SplitResidual: Executes]
            a_replace_split_without_room_for_its_bytes_is_undone
                = a_split_without_room_for_its_bytes_is_undone(SplitReplace)
                => [SplitReplace: ResourceExhausted Executes]
            a_residual_split_without_room_for_its_bytes_is_undone
                = a_split_without_room_for_its_bytes_is_undone(SplitResidual)
                => [SplitResidual: ResourceExhausted Executes]
        }
        runs {
            a_new_run_waits_for_its_shards
                => [CreateRun: Executes Emits, GetRun: Executes WhenInitializing]
            a_run_with_an_impossible_configuration_is_refused
                => [CreateRun: InvalidConfig ZeroLeaseDuration ZeroShardRetries]
            a_run_is_created_once => [CreateRun: RunAlreadyExists Executes]
            registering_shards_sets_a_run_going => [RegisterShards: Executes Emits]
            registering_again_is_answered_and_changes_nothing => [RegisterShards: Replays]
            registering_something_else_under_one_op_id_is_refused => [RegisterShards: OpIdConflict]
            shards_are_registered_once => [RegisterShards: WrongStatus]
            an_unknown_run_gets_no_shards => [RegisterShards: RunNotFound]
            a_faulty_manifest_is_refused
                => [RegisterShards: ManifestInvalid Empty DerivedShardId SpecInvalid UnboundedRange
                    CursorInvalid CursorOutOfBounds DuplicateShardId OverlappingRanges Executes]
            registering_stops_at_the_tenants_ceiling
                = register_under_a_ceiling(ShardLimitScope::Tenant)
                => [RegisterShards: ShardLimitExceeded TenantCeiling Executes]
            registering_stops_at_the_global_ceiling
                = register_under_a_ceiling(ShardLimitScope::Global)
                => [RegisterShards: ShardLimitExceeded GlobalCeiling Executes]
            creating_with_shards_is_one_step_that_can_be_repeated
                => [CreateRunWithShards: Executes Emits Replays]
            creating_with_shards_finishes_what_was_half_done => [CreateRunWithShards: Executes]
            creating_with_shards_under_another_configuration_is_refused
                => [CreateRunWithShards: ConfigMismatch InvalidConfig ZeroLeaseDuration]
            creating_with_a_faulty_manifest_leaves_a_run_that_can_be_mended
                => [CreateRunWithShards: RegisterShardsFailed Executes]
        }
        run_end {
            a_completed_run_stays_completed = ends(CompleteRun, RunStatus::Done)
                => [CompleteRun: Executes Emits Replays RunTerminal, FailRun: OpIdConflict,
                    CancelRun: OpIdConflict]
            a_failed_run_stays_failed = ends(FailRun, RunStatus::Failed)
                => [FailRun: Executes Emits Replays RunTerminal, CompleteRun: OpIdConflict,
                    CancelRun: OpIdConflict]
            a_cancelled_run_stays_cancelled = ends(CancelRun, RunStatus::Cancelled)
                => [CancelRun: Executes Emits Replays RunTerminal, CompleteRun: OpIdConflict,
                    FailRun: OpIdConflict]
            a_run_keeps_the_result_with_which_it_was_completed
                => [CompleteRun: Executes Replays OpIdConflict]
            complete_run_of_an_unknown_run_is_refused = unknown_run(CompleteRun)
                => [CompleteRun: RunNotFound]
            fail_run_of_an_unknown_run_is_refused = unknown_run(FailRun) => [FailRun: RunNotFound]
            cancel_run_of_an_unknown_run_is_refused = unknown_run(CancelRun)
                => [CancelRun: RunNotFound]
            complete_run_under_a_used_op_id_is_refused = used_op_id(CompleteRun)
                => [CompleteRun: OpIdConflict]
            fail_run_under_a_used_op_id_is_refused = used_op_id(FailRun) => [FailRun: OpIdConflict]
            cancel_run_under_a_used_op_id_is_refused = used_op_id(CancelRun)
                => [CancelRun: OpIdConflict]
            a_run_without_shards_can_only_be_cancelled
                => [CompleteRun: WrongStatus, FailRun: WrongStatus, CancelRun: Executes Replays]
            a_run_with_shards_remaining_is_not_completed => [CompleteRun: ShardsRemaining Executes]
            a_run_may_be_given_up_with_shards_at_work => [FailRun: Executes, CancelRun: Executes]
            an_initializing_run_allows_what_it_should = allows(RunStatus::Initializing)
                => [all: WhenInitializing]
            an_active_run_allows_what_it_should = allows(RunStatus::Active) => [all: WhenActive]
            a_done_run_allows_what_it_should = allows(RunStatus::Done) => [all: WhenDone]
            a_failed_run_allows_what_it_should = allows(RunStatus::Failed) => [all: WhenFailed]
            a_cancelled_run_allows_what_it_should = allows(RunStatus::Cancelled)
                => [all: WhenCancelled]
        }
        claims {
            many_workers_claim_every_shard_exactly_once
                => [Claim: Executes Emits Keeps NoneAvailable]
            a_run_is_worked_off_although_workers_die
                => [Claim: Executes NoneAvailable, CompleteRun: Executes]
            a_held_shard_is_not_claimed_not_even_by_its_holder => [Claim: NoneAvailable]
            an_expired_shard_is_claimed_with_its_cursor => [Claim: Executes]
            released_unparked_and_split_shards_are_claimable => [Claim: Executes NoneAvailable]
            a_run_whose_shards_are_settled_has_nothing_to_claim => [Claim: NoneAvailable]
            the_earliest_deadline_follows_renewals => [Claim: NoneAvailable, Renew: Executes]
            an_unknown_run_has_nothing_to_claim
                => [Claim: RunNotFound, CollectCandidates: RunNotFound]
            a_run_that_is_not_active_has_nothing_to_claim => [Claim: RunNotActive]
            candidates_can_be_acquired => [CollectCandidates: Executes]
            a_worker_that_found_nothing_waits => [Claim: Throttled NoneAvailable Executes]
            a_worker_gets_back_what_it_holds_and_nothing_else
                => [ReacquireOwn: Executes Emits Keeps]
            a_worker_gets_its_shard_back_after_its_lease => [ReacquireOwn: Executes]
            what_a_worker_gets_back_too_often_is_parked => [ReacquireOwn: Poisons]
            an_unknown_run_holds_nothing => [ReacquireOwn: RunNotFound]
            a_run_that_is_not_active_gives_nothing_back => [ReacquireOwn: RunNotActive]
            workers_without_work_are_counted => [NoteIdle: Executes, CheckpointAndRenew: Executes]
            an_unknown_run_has_no_idle_workers => [NoteIdle: RunNotFound]
            workers_on_their_own_handles_never_share_a_shard => [Claim: NoneAvailable]
        }
        listing {
            filters_show_what_they_say => [ListShards: Executes]
            what_is_available_depends_on_the_time_of_asking => [ListShards: Executes]
            shards_of_a_run_that_is_not_active_are_not_available => [ListShards: Executes]
            a_listing_replaces_what_the_buffer_held => [ListShards: Executes]
            a_summary_tells_what_matters => [ListShards: Executes]
            progress_counts_where_shards_stand => [GetRunProgress: Executes]
            an_unknown_run_cannot_be_looked_at
                => [GetRun: RunNotFound, GetRunProgress: RunNotFound, ListShards: RunNotFound]
            capacity_hints_tell_how_much_waits
                => [Acquire: Executes, Renew: Executes, Claim: Executes]
        }
        admin {
            a_revoked_shard_is_free_at_once_and_its_holder_shut_out
                => [RevokeLease: Executes Emits Keeps, leased: StaleFence]
            revoking_again_takes_nothing_from_the_next_holder => [RevokeLease: Replays]
            a_fence_that_was_never_granted_is_not_revoked
                => [RevokeLease: FenceNotGranted ShardNotFound]
            a_run_that_is_over_has_no_lease_to_revoke => [RevokeLease: RunTerminal]
            a_run_that_has_ended_is_deleted_with_its_shards
                => [DeleteRun: Executes Emits RunNotFound]
            a_run_that_has_not_ended_is_not_deleted => [DeleteRun: RunNotEnded]
            deleting_runs_makes_room => [DeleteRun: Executes, RegisterShards: Executes]
            runs_are_listed_a_page_at_a_time_in_the_order_of_their_ids => [ListRuns: Executes]
            shards_are_listed_a_page_at_a_time => [ListShardsPage: Executes RunNotFound]
        }
        tenants {
            the_same_ids_name_other_things_in_another_tenant
                => [Acquire: Executes, Checkpoint: Executes, Unpark: NotParked]
            nothing_of_another_tenant_is_found
                => [GetRun: RunNotFound, GetRunProgress: RunNotFound, ListShards: RunNotFound,
                    CollectCandidates: RunNotFound, Claim: RunNotFound, Acquire: ShardNotFound,
                    Unpark: ShardNotFound, RegisterShards: RunNotFound, CompleteRun: RunNotFound,
                    FailRun: RunNotFound, CancelRun: RunNotFound]
            claims_stay_with_their_tenant_and_run => [Claim: Executes NoneAvailable]
            ending_a_run_ends_no_other => [CancelRun: Executes, Claim: Executes]
            splits_in_two_tenants_do_not_meet => [SplitReplace: Executes, SplitResidual: Executes]
        }
        bytes {
            a_checkpoint_without_room_is_refused = a_cursor_without_room_is_refused(Checkpoint)
                => [Checkpoint: ResourceExhausted Executes]
            a_renewing_checkpoint_without_room_is_refused = a_cursor_without_room_is_refused(CheckpointAndRenew)
                => [CheckpointAndRenew: ResourceExhausted Executes]
            a_completion_without_room_is_refused = a_cursor_without_room_is_refused(Complete)
                => [Complete: ResourceExhausted Executes]
            a_manifest_without_room_is_refused => [RegisterShards: ResourceExhausted Executes]
            room_is_given_back => [Checkpoint: Executes]
        }
        scale {
            as_many_shards_as_the_backend_allows => [RegisterShards: TooManyShards Executes Replays]
            a_listing_shows_all_of_many_shards_in_order
                => [ListShards: Executes, GetRunProgress: Executes]
            claims_among_many_shards_are_distinct => [Claim: Executes]
            a_claim_finds_the_one_expired_shard_among_many => [Claim: Executes NoneAvailable]
        }
        reopen {
            a_run_survives_a_restart_after_every_operation => [CompleteRun: Executes]
            retries_are_answered_across_restarts => [logged: Executes Replays OpIdConflict]
            zombies_stay_out_across_restarts => [leased: StaleFence]
            a_busy_backend_is_the_same_after_a_restart => [Claim: Executes NoneAvailable]
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
