//! N1 and N2: an administrator sets a parked shard going again.

use super::*;
use crate::error::{RunOpIdConflict, UnparkError};
use crate::payload;

/// A shard parked in its third try, at cursor `k`.
fn parked() -> (World, Lease) {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    world.state().acquires_since_progress = 3;
    let park = Op::Park(ParkReason::Poisoned);
    world.execute(&Request { tenant: TENANT, lease, op: park, op_id: operation(2) });
    (world, lease)
}

fn ask(
    world: &World,
    tenant: TenantId,
    op_id: OpId,
) -> Result<Decision<ShardUpdate<'static>, ()>, UnparkError> {
    world.with_found(|found| unpark(found, world.now, tenant, KEY, op_id))
}

#[test]
fn unparking_raises_the_fence_and_starts_the_tries_anew() {
    let (mut world, lease) = parked();
    world.now = at(2_000);
    let state = ShardState { fence: fence(3), ..ShardState::NEW };
    let expected = ShardUpdate {
        log: Some(logged(operation(3), OpKind::Unpark, payload::unpark(KEY), at(2_000))),
        ..of_state(state)
    };
    assert_eq!(ask(&world, TENANT, operation(3)), Ok(Decision::Execute(expected.clone())));
    world.shard.apply(&expected);
    assert_eq!(world.shard.cursor.as_update().last_key(), Some(&b"k"[..]));
    assert_eq!(ask(&world, TENANT, operation(3)), Ok(Decision::Replay(())));
    // Whoever parked it is a zombie now, even inside its old lease.
    world.now = START;
    let request = Request { tenant: TENANT, lease, op: Op::Renew, op_id: operation(9) };
    let stale = CoordError::StaleFence { presented: fence(2), current: fence(3) };
    assert_eq!(world.perform(&request), Err(stale));
    assert_eq!(world.acquire(WORKER).fence(), fence(4));
}

#[test]
fn refusals_come_in_order_and_the_log_is_asked_before_status() {
    let (mut world, _) = parked();
    let missing = unpark(None, world.now, TENANT, KEY, operation(2));
    assert_eq!(missing, Err(UnparkError::ShardNotFound));
    world.gate.status = RunStatus::Failed;
    world.shard.state.status = ShardStatus::Done;
    let before = world.bytes();
    assert_eq!(
        ask(&world, OTHER_TENANT, operation(2)),
        Err(UnparkError::TenantMismatch { expected: OTHER_TENANT })
    );
    let park_hash = payload::park(ParkReason::Poisoned);
    let conflict = RunOpIdConflict::new(operation(2), park_hash, payload::unpark(KEY));
    assert_eq!(ask(&world, TENANT, operation(2)), Err(UnparkError::OpIdConflict(conflict)));
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        world.gate.status = status;
        assert_eq!(ask(&world, TENANT, operation(3)), Err(UnparkError::RunTerminal { status }));
    }
    world.gate.status = RunStatus::Active;
    for status in [ShardStatus::Done, ShardStatus::Split, ShardStatus::Active] {
        world.shard.state.status = status;
        assert_eq!(ask(&world, TENANT, operation(3)), Err(UnparkError::NotParked { status }));
    }
    world.shard.state.status = ShardStatus::Done;
    assert_eq!(world.bytes(), before);
}

#[test]
fn a_retry_is_replayed_in_any_run_and_any_state() {
    let (mut world, _) = parked();
    let Ok(Decision::Execute(update)) = ask(&world, TENANT, operation(3)) else { panic!() };
    world.shard.apply(&update);
    world.gate.status = RunStatus::Done;
    world.shard.state.status = ShardStatus::Done;
    assert_eq!(ask(&world, TENANT, operation(3)), Ok(Decision::Replay(())));
    // And the fence has gone up once.
    assert_eq!(world.shard.state.fence, fence(3));
}

#[test]
#[should_panic(expected = "some time")]
fn unparking_at_no_time_is_a_bug() {
    let _ = unpark(None, LogicalTime::ZERO, TENANT, KEY, operation(1));
}

#[test]
#[should_panic(expected = "overflowed")]
fn a_fence_at_its_end_is_not_reused() {
    let (mut world, _) = parked();
    world.state().fence = fence(u64::MAX);
    let _ = ask(&world, TENANT, operation(3));
}
