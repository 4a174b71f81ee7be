//! T1 to T5: granting, renewing, giving back, revoking, and counting tries.

use super::*;
use crate::error::{AcquireError, RevokeLeaseError};

#[track_caller]
fn granted(world: &World, worker: WorkerId) -> (Lease, ShardUpdate<'static>) {
    match world.ask_acquire(TENANT, worker) {
        Ok(AcquireDecision::Grant { lease, update }) => (lease, update),
        other => panic!("not granted: {other:?}"),
    }
}

fn request(lease: Lease, op: Op<'_>) -> Request<'_> {
    Request { tenant: TENANT, lease, op, op_id: operation(99) }
}

#[test]
fn a_grant_raises_the_fence_and_counts_the_try() {
    let world = World::new();
    let (lease, update) = granted(&world, WORKER);
    assert_eq!(lease, Lease::new(TENANT, KEY, WORKER, fence(2), DEADLINE));
    let state = ShardState {
        fence: fence(2),
        lease: holder(WORKER, DEADLINE),
        acquires_since_progress: 1,
        ..ShardState::NEW
    };
    assert_eq!(update, of_state(state));
}

/// The order of the questions, by mending one fault after the other.
#[test]
fn acquire_reports_refusals_in_order() {
    let (mut world, _) = World::leased();
    world.shard.tenant = OTHER_TENANT;
    world.gate.status = RunStatus::Failed;
    world.state().status = ShardStatus::Split;
    world.state().acquires_since_progress = RETRIES;
    let ask = |world: &World| world.ask_acquire(TENANT, OTHER_WORKER);
    let missing = acquire(None, world.now, world.takeover, TENANT, KEY, OTHER_WORKER);
    assert_eq!(missing, Err(AcquireError::ShardNotFound { shard: KEY }));
    assert_eq!(ask(&world), Err(AcquireError::TenantMismatch { expected: TENANT }));
    world.shard.tenant = TENANT;
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        world.gate.status = status;
        assert_eq!(ask(&world), Err(AcquireError::RunNotActive { run: RUN, status }));
    }
    // V4: a shard that is staged is not there yet.
    world.gate.status = RunStatus::Initializing;
    assert_eq!(ask(&world), missing);
    world.gate.status = RunStatus::Active;
    for status in [ShardStatus::Done, ShardStatus::Split, ShardStatus::Parked] {
        world.state().status = status;
        assert_eq!(ask(&world), Err(AcquireError::ShardTerminal { shard: KEY, status }));
    }
    world.state().status = ShardStatus::Active;
    let held = AcquireError::AlreadyLeased { current_owner: WORKER, lease_deadline: DEADLINE };
    assert_eq!(ask(&world), Err(held));
    world.now = DEADLINE;
    assert!(matches!(ask(&world), Ok(AcquireDecision::Poison { .. })));
    world.state().acquires_since_progress = RETRIES - 1;
    assert!(matches!(ask(&world), Ok(AcquireDecision::Grant { .. })));
}

#[test]
#[should_panic(expected = "some time")]
fn an_acquire_at_no_time_is_a_bug() {
    let _ = acquire(None, LogicalTime::ZERO, Takeover::AT_DEADLINE, TENANT, KEY, WORKER);
}

#[test]
fn another_worker_gets_the_shard_at_the_deadline_and_not_before() {
    let (mut world, _) = World::leased();
    world.now = at(1_099);
    assert!(world.ask_acquire(TENANT, OTHER_WORKER).is_err());
    world.now = at(1_100);
    let (lease, update) = granted(&world, OTHER_WORKER);
    assert_eq!((lease.fence(), lease.deadline()), (fence(3), at(1_200)));
    assert_eq!(update.state.lease, holder(OTHER_WORKER, at(1_200)));
}

/// L3: clocks that differ keep others out for longer; a holder that is gone, not at all.
#[test]
fn another_worker_gets_the_shard_when_the_backend_knows_that_it_may() {
    let (mut world, _) = World::leased();
    world.takeover.skew_allowance = 30;
    world.now = at(1_129);
    // Whoever waits until then gets it.
    let held = AcquireError::AlreadyLeased { current_owner: WORKER, lease_deadline: at(1_130) };
    assert_eq!(world.ask_acquire(TENANT, OTHER_WORKER), Err(held));
    // Its own worker need not wait.
    assert_eq!(granted(&world, WORKER).0.fence(), fence(3));
    world.now = at(1_130);
    assert_eq!(granted(&world, OTHER_WORKER).0.fence(), fence(3));
    world.now = at(1_001);
    world.takeover.holder_is_gone = true;
    assert_eq!(granted(&world, OTHER_WORKER).0.fence(), fence(3));
}

/// The allowance is for others: a worker whose own clock says that its lease is over stops.
#[test]
fn a_lease_is_over_at_its_deadline_whatever_others_are_allowed() {
    let (mut world, lease) = World::leased();
    (world.takeover.skew_allowance, world.now) = (30, DEADLINE);
    let expired = CoordError::LeaseExpired { deadline: DEADLINE, now: DEADLINE };
    assert_eq!(world.ask(&request(lease, Op::Renew)), Err(expired));
}

fn revoke(
    world: &World,
    tenant: TenantId,
    at_fence: u64,
) -> Result<Decision<ShardUpdate<'static>, ()>, RevokeLeaseError> {
    world.with_found(|found| revoke_lease(found, tenant, fence(at_fence)))
}

/// T5.
#[test]
fn a_revoked_lease_is_dead_and_its_shard_free() {
    let (mut world, lease) = World::leased();
    let Ok(Decision::Execute(update)) = revoke(&world, TENANT, 2) else { panic!("it is held") };
    let state = ShardState { fence: fence(3), lease: None, ..world.shard.state };
    assert_eq!(update, of_state(state));
    assert_eq!(state.acquires_since_progress, 1);
    let event = update.event(SHARD, &world.shard.state);
    let told = crate::EventKind::ShardLeaseRevoked { shard: SHARD, new_fence_epoch: fence(3) };
    assert_eq!(event, told);
    world.shard.apply(&update);
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        let stale = CoordError::StaleFence { presented: fence(2), current: fence(3) };
        assert_eq!(world.ask(&request(lease, op)), Err(stale));
    }
    assert_eq!(granted(&world, OTHER_WORKER).0.fence(), fence(4));
}

#[test]
fn revoking_again_takes_nothing_from_whoever_came_since() {
    let (mut world, _) = World::leased();
    let Ok(Decision::Execute(update)) = revoke(&world, TENANT, 2) else { panic!("it is held") };
    world.shard.apply(&update);
    // Twice, before and after somebody else got the shard; and a lease that was released.
    for granted_to in [None, Some(OTHER_WORKER)] {
        if let Some(worker) = granted_to {
            world.acquire(worker);
        }
        assert_eq!(revoke(&world, TENANT, 2), Ok(Decision::Replay(())));
        assert_eq!(revoke(&world, TENANT, 3), Ok(Decision::Replay(())));
    }
    let current = fence(4);
    let unknown = RevokeLeaseError::FenceNotGranted { presented: fence(5), current };
    assert_eq!(revoke(&world, TENANT, 5), Err(unknown));
}

#[test]
fn revoking_is_refused_for_another_tenant_and_in_an_ended_run() {
    let (mut world, _) = World::leased();
    assert_eq!(revoke_lease(None, TENANT, fence(2)), Err(RevokeLeaseError::ShardNotFound));
    let foreign = RevokeLeaseError::TenantMismatch { expected: OTHER_TENANT };
    assert_eq!(revoke(&world, OTHER_TENANT, 2), Err(foreign));
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        world.gate.status = status;
        assert_eq!(revoke(&world, TENANT, 2), Err(RevokeLeaseError::RunTerminal { status }));
    }
}

/// T2: a lost answer does not lock the owner out.
#[test]
fn the_owner_may_acquire_again_and_its_older_lease_is_dead() {
    let (mut world, first) = World::leased();
    world.now = at(1_010);
    let second = world.acquire(WORKER);
    assert_eq!((second.fence(), second.deadline()), (fence(3), at(1_110)));
    assert_eq!(world.shard.state.acquires_since_progress, 2);
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        let stale = CoordError::StaleFence { presented: fence(2), current: fence(3) };
        assert_eq!(world.ask(&request(first, op)), Err(stale));
        assert!(world.ask(&request(second, op)).is_ok());
    }
}

#[test]
fn a_renewal_moves_only_the_deadline() {
    let (mut world, lease) = World::leased();
    world.now = at(1_040);
    let expected = ShardState { lease: holder(WORKER, at(1_140)), ..world.shard.state };
    let answer =
        Answer::Execute { update: of_state(expected), deadline: Some(at(1_140)), shards: vec![] };
    assert_eq!(world.perform(&request(lease, Op::Renew)), Ok(answer));
    assert_eq!(world.shard.state, expected);
}

/// T3.
#[test]
fn a_clock_that_steps_back_does_not_shorten_a_lease() {
    let (mut world, lease) = World::leased();
    for (now, deadline) in [(1_000, 1_100), (1_050, 1_150), (900, 1_150), (1, 1_150)] {
        world.now = at(now);
        let renewed = renewed_until(&mut world, lease);
        assert_eq!(renewed, at(deadline), "renewed at {now}");
        assert_eq!(world.shard.state.lease, holder(WORKER, at(deadline)));
    }
}

#[track_caller]
fn renewed_until(world: &mut World, lease: Lease) -> LogicalTime {
    match world.perform(&request(lease, Op::Renew)) {
        Ok(Answer::Execute { deadline: Some(deadline), .. }) => deadline,
        other => panic!("{other:?}"),
    }
}

#[test]
fn deadlines_stop_at_the_end_of_time() {
    let mut world = World::new();
    world.gate.config.max_shard_retries = 9;
    world.now = at(u64::MAX - 100);
    let lease = world.acquire(WORKER);
    assert_eq!(lease.deadline(), at(u64::MAX));
    world.now = at(u64::MAX - 99);
    assert_eq!(renewed_until(&mut world, lease), at(u64::MAX));
    assert_eq!(world.acquire(WORKER).deadline(), at(u64::MAX));
    world.gate.config.lease_duration = u64::MAX;
    world.now = at(1);
    assert_eq!(world.acquire(WORKER).deadline(), at(u64::MAX));
    world.now = at(u64::MAX);
    assert_eq!(world.acquire(OTHER_WORKER).deadline(), at(u64::MAX));
}

#[test]
#[should_panic(expected = "overflowed")]
fn a_fence_at_its_end_is_not_reused() {
    let mut world = World::new();
    world.state().fence = fence(u64::MAX);
    let _ = world.ask_acquire(TENANT, WORKER);
}

#[test]
fn a_release_keeps_fence_and_cursor_and_takes_back_the_try() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    world.state().acquires_since_progress = 2;
    let state = ShardState { lease: None, acquires_since_progress: 1, ..world.shard.state };
    let release = request(lease, Op::Release);
    assert_eq!(world.perform(&release), Ok(Answer::execute(of_state(state))));
    assert_eq!(world.shard.cursor.as_update().last_key(), Some(&b"k"[..]));
    assert_eq!(world.shard.state.fence, fence(2));
    // It is free at once, and its former holder has nothing.
    let stale = CoordError::StaleFence { presented: fence(2), current: fence(2) };
    assert_eq!(world.perform(&request(lease, Op::Release)), Err(stale));
    assert_eq!(world.acquire(OTHER_WORKER).fence(), fence(3));
}

#[test]
fn a_release_after_progress_counts_nothing_below_zero() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    assert_eq!(world.shard.state.acquires_since_progress, 0);
    world.execute(&request(lease, Op::Release));
    assert_eq!(world.shard.state.acquires_since_progress, 0);
}

/// T4, from the first try to the parking, with the refusal that the last worker gets.
#[test]
fn a_shard_that_keeps_killing_its_workers_is_parked_as_poisoned() {
    let mut world = World::new();
    for tries in 1..=RETRIES {
        world.acquire(WORKER);
        assert_eq!(world.shard.state.acquires_since_progress, tries);
        world.now = world.shard.state.lease.unwrap().deadline();
    }
    let state = ShardState {
        status: ShardStatus::Parked,
        park_reason: Some(ParkReason::Poisoned),
        fence: fence(4),
        lease: None,
        acquires_since_progress: RETRIES,
    };
    let refusal = AcquireError::ShardTerminal { shard: KEY, status: ShardStatus::Parked };
    let poison = AcquireDecision::Poison { update: of_state(state), refusal: refusal.clone() };
    assert_eq!(world.ask_acquire(TENANT, OTHER_WORKER), Ok(poison));
    world.shard.apply(&of_state(state));
    assert_eq!(world.ask_acquire(TENANT, OTHER_WORKER), Err(refusal));
}

/// A live holder that loses its answers again and again is as suspicious as one that dies.
#[test]
fn the_owner_itself_cannot_acquire_without_end() {
    let mut world = World::new();
    for _ in 0..RETRIES {
        world.acquire(WORKER);
    }
    assert!(matches!(world.ask_acquire(TENANT, WORKER), Ok(AcquireDecision::Poison { .. })));
    // Others still see a live lease, and do not park what its owner is working on.
    assert!(world.ask_acquire(TENANT, OTHER_WORKER).is_err());
}

#[test]
fn only_a_cursor_that_moves_resets_the_tries() {
    let (mut world, lease) = World::leased();
    world.state().acquires_since_progress = 2;
    let tries = |world: &World| world.shard.state.acquires_since_progress;
    world.checkpoint(lease, b"k", operation(1));
    assert_eq!(tries(&world), 0, "the first key is progress");
    world.state().acquires_since_progress = 2;
    world.checkpoint(lease, b"k", operation(2));
    assert_eq!(tries(&world), 2, "the same key is not");
    let token_only = CursorUpdate::new(Some(b"k"), Some(b"next page"));
    world.execute(&Request { op_id: operation(3), ..request(lease, Op::Checkpoint(token_only)) });
    assert_eq!(tries(&world), 0, "another token is");
    world.state().acquires_since_progress = 2;
    world.checkpoint(lease, b"ka", operation(4));
    assert_eq!(tries(&world), 0, "and so is another key");
}

#[test]
fn the_most_tries_that_a_run_can_allow_do_not_overflow() {
    let mut world = World::new();
    world.gate.config.max_shard_retries = u32::MAX;
    world.state().acquires_since_progress = u32::MAX - 1;
    world.acquire(WORKER);
    assert_eq!(world.shard.state.acquires_since_progress, u32::MAX);
    assert!(matches!(world.ask_acquire(TENANT, WORKER), Ok(AcquireDecision::Poison { .. })));
}
