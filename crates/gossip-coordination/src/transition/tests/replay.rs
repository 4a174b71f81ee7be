//! The same request twice: the second changes nothing, whatever happened in between.

use super::*;
use gossip_contracts::coordination::SplitValidationError;

fn request(lease: Lease, op: Op<'_>) -> Request<'_> {
    Request { tenant: TENANT, lease, op, op_id: operation(5) }
}

/// Each idempotent operation carried out once, and what its replay must say.
fn each_executed(check: impl Fn(World, &Request<'_>, Answer<'_>)) {
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        if !op.is_idempotent() {
            continue;
        }
        let (mut world, lease) = World::leased();
        let request = request(lease, op);
        let Ok(Answer::Execute { shards, .. }) = world.perform(&request) else { panic!("{op:?}") };
        let replay = Answer::Replay(shards.iter().map(|new| new.id).collect());
        check(world, &request, replay);
    }
}

#[test]
fn a_retry_is_replayed_at_once_after_expiry_and_after_a_takeover() {
    each_executed(|mut world, request, replay| {
        assert_eq!(world.perform(request), Ok(replay.clone()));
        world.now = at(5_000);
        assert_eq!(world.perform(request), Ok(replay.clone()));
        if world.shard.state.status == ShardStatus::Active {
            world.acquire(OTHER_WORKER);
            assert_eq!(world.perform(request), Ok(replay));
        }
    });
}

#[test]
fn a_retry_is_replayed_whatever_became_of_the_run() {
    each_executed(|mut world, request, replay| {
        // No run that was active is initializing again.
        for status in RunStatus::ALL.into_iter().filter(|&it| it != RunStatus::Initializing) {
            world.gate.status = status;
            assert_eq!(world.perform(request), Ok(replay.clone()));
        }
    });
}

#[test]
fn a_retry_is_replayed_whatever_room_is_left() {
    each_executed(|mut world, request, replay| {
        world.room.limits = ShardLimits { per_tenant: 0, global: 0 };
        assert_eq!(world.perform(request), Ok(replay));
    });
}

#[test]
fn a_retry_of_work_before_the_shard_was_finished_is_replayed() {
    let (mut world, lease) = World::leased();
    let checkpoint = request(lease, Op::Checkpoint(CursorUpdate::at(b"k")));
    world.execute(&checkpoint);
    let plan = residual_half();
    let residual = Request { op_id: operation(6), ..request(lease, Op::SplitResidual(&plan)) };
    world.execute(&residual);
    let done = Op::Complete(CursorUpdate::at(b"k"));
    world.execute(&Request { op_id: operation(7), ..request(lease, done) });
    assert_eq!(world.perform(&checkpoint), Ok(Answer::REPLAY));
    assert_eq!(world.perform(&residual), Ok(Answer::Replay(world.shard.spawned.clone())));
}

/// A retry needs the tenant, and the log is not asked before that.
#[test]
fn no_replay_crosses_tenants() {
    each_executed(|mut world, request, _| {
        let mismatch = |expected| Err(CoordError::TenantMismatch { expected });
        let foreign_request = Request { tenant: OTHER_TENANT, ..*request };
        assert_eq!(world.perform(&foreign_request), mismatch(OTHER_TENANT));
        let lease = request.lease;
        let foreign_lease =
            Lease::new(OTHER_TENANT, lease.key(), lease.owner(), lease.fence(), lease.deadline());
        let request_of_other = Request { lease: foreign_lease, ..*request };
        assert_eq!(world.perform(&request_of_other), mismatch(TENANT));
        let all_of_other = Request { tenant: OTHER_TENANT, ..request_of_other };
        assert_eq!(world.perform(&all_of_other), mismatch(OTHER_TENANT));
    });
}

#[test]
fn an_id_with_other_parameters_is_a_conflict_for_every_operation() {
    each_executed(|mut world, executed, _| {
        let replace = SplitReplacePlan::new([
            ShardSpecRef::new(b"d", b"e", b""),
            ShardSpecRef::new(b"e", b"t", b""),
        ]);
        let residual = SplitResidualPlan::new(
            ShardSpecRef::new(b"d", b"e", b""),
            ShardSpecRef::new(b"e", b"t", b""),
        );
        for op in [
            Op::Checkpoint(CursorUpdate::at(b"kk")),
            Op::Complete(CursorUpdate::at(b"kk")),
            Op::Park(ParkReason::Other),
            Op::SplitReplace(&replace),
            Op::SplitResidual(&residual),
        ] {
            let reused = Request { op, ..*executed };
            let Err(CoordError::OpIdConflict { op_id, expected_hash, actual_hash }) =
                world.perform(&reused)
            else {
                panic!("{op:?} after {executed:?}")
            };
            let logged = world.shard.op_log.iter().last().unwrap().payload_hash();
            assert_eq!((op_id, expected_hash), (executed.op_id, logged));
            assert_ne!(actual_hash, logged);
        }
    });
}

/// A checkpoint and a completion at one cursor are different operations.
#[test]
fn an_id_used_for_another_operation_with_the_same_cursor_is_a_conflict() {
    let (mut world, lease) = World::leased();
    let cursor = CursorUpdate::at(b"k");
    world.execute(&request(lease, Op::Checkpoint(cursor)));
    let reused = request(lease, Op::Complete(cursor));
    let answer = world.perform(&reused);
    assert!(matches!(answer, Err(CoordError::OpIdConflict { .. })), "{answer:?}");
}

/// Sixteen later operations, and the log has forgotten.
#[test]
fn a_forgotten_checkpoint_converges_or_is_refused() {
    let (mut world, lease) = World::leased();
    let first = request(lease, Op::Checkpoint(CursorUpdate::at(b"k")));
    world.execute(&first);
    for id in 0..15 {
        world.checkpoint(lease, b"k", operation(100 + id));
    }
    assert_eq!(world.ask(&first), Ok(Answer::REPLAY), "15 later operations");
    world.checkpoint(lease, b"k", operation(115));
    let mut same_place = world.clone();
    same_place.execute(&first);
    assert_eq!(same_place.shard.cursor.as_update(), CursorUpdate::at(b"k"));
    world.checkpoint(lease, b"l", operation(116));
    let regression = CoordError::CursorRegression { old_key: Some(1), new_key: Some(1) };
    assert_eq!(world.perform(&first), Err(regression));
}

/// The parent works on after a residual split; what it spawned is never forgotten.
#[test]
fn a_forgotten_residual_split_is_replayed_from_what_was_spawned() {
    let (mut world, lease) = World::leased();
    let plan = residual_half();
    let split = request(lease, Op::SplitResidual(&plan));
    world.execute(&split);
    let replay = Answer::Replay(world.shard.spawned.clone());
    for id in 0..20 {
        world.checkpoint(lease, b"k", operation(100 + id));
    }
    assert!(world.shard.op_log.iter().all(|entry| entry.op_id() != split.op_id));
    assert_eq!(world.perform(&split), Ok(replay.clone()));
    world.now = at(9_999);
    world.gate.status = RunStatus::Done;
    assert_eq!(world.perform(&split), Ok(replay));
    assert_eq!(world.shard.spawned.len(), 1);
}

/// Called done, it would leave the keys between the two plans to nobody.
#[test]
fn a_forgotten_residual_split_is_not_replayed_for_a_plan_that_keeps_less() {
    let (mut world, lease) = World::leased();
    let plan = residual_half();
    let split = request(lease, Op::SplitResidual(&plan));
    world.execute(&split);
    let residual = world.shard.spawned[0];
    for id in 0..16 {
        world.checkpoint(lease, b"k", operation(100 + id));
    }
    let (kept, given) = (plan.parent, plan.residual);
    let less = SplitResidualPlan::new(
        ShardSpecRef::new(kept.start(), b"l", b""),
        ShardSpecRef::new(b"l", kept.end(), b""),
    );
    let elsewhere = SplitResidualPlan::new(ShardSpecRef::new(b"e", given.start(), b""), given);
    for other in [&less, &elsewhere] {
        let other = request(lease, Op::SplitResidual(other));
        let refused = world.perform(&other);
        let taken = SplitValidationError::DerivedIdCollision { shard: residual };
        assert_eq!(refused, Err(CoordError::SplitInvalid(taken)));
    }
    // A later split leaves the parent with less than the forgotten one kept; that one still counts.
    let later = Request { op_id: operation(200), ..request(lease, Op::SplitResidual(&less)) };
    world.execute(&later);
    assert_eq!(world.perform(&split), Ok(Answer::Replay(vec![residual])));
}

/// A replaced shard logs nothing any more, so its split is never forgotten.
#[test]
fn a_replay_of_a_split_names_the_last_children_only() {
    let (mut world, lease) = World::leased();
    let residual = residual_half();
    world.execute(&Request { op_id: operation(4), ..request(lease, Op::SplitResidual(&residual)) });
    let plan = SplitReplacePlan::new([
        ShardSpecRef::new(b"d", b"f", b""),
        ShardSpecRef::new(b"f", b"m", b""),
    ]);
    let split = request(lease, Op::SplitReplace(&plan));
    world.execute(&split);
    assert_eq!(world.shard.spawned.len(), 3);
    let children = world.shard.spawned[1..].to_vec();
    assert_eq!(world.perform(&split), Ok(Answer::Replay(children)));
}
