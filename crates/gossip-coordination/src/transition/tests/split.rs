//! X1 to X4: what splits make, and which plans and rooms they refuse.

use gossip_contracts::coordination::{
    MAX_SPAWNED_PER_SHARD, MAX_SPLIT_CHILDREN, ShardSpecInputError, SplitValidationError,
};

use super::*;
use crate::error::SplitError;
use crate::payload::{self, DerivedShardKind, derive_split_shard_id};

fn request(lease: Lease, op: Op<'_>) -> Request<'_> {
    Request { tenant: TENANT, lease, op, op_id: operation(5) }
}

fn child(index: u32) -> ShardId {
    derive_split_shard_id(RUN, SHARD, operation(5), DerivedShardKind::Child, index)
}

fn residual() -> ShardId {
    derive_split_shard_id(RUN, SHARD, operation(5), DerivedShardKind::Residual, 0)
}

fn spec<'a>(start: &'a [u8], end: &'a [u8]) -> ShardSpecRef<'a> {
    ShardSpecRef::new(start, end, b"")
}

#[test]
fn a_replacing_split_finishes_the_parent_and_names_its_children() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    let plan = halves();
    let request = request(lease, Op::SplitReplace(&plan));
    let state = ShardState { status: ShardStatus::Split, lease: None, ..world.shard.state };
    let hash = payload::split_replace(&plan);
    let answer = Answer::Execute {
        update: ShardUpdate {
            spawned: [child(0), child(1)].into_iter().collect(),
            log: Some(logged(operation(5), OpKind::SplitReplace, hash, START)),
            ..of_state(state)
        },
        deadline: None,
        shards: vec![
            NewShard { id: child(0), spec: plan.children()[0] },
            NewShard { id: child(1), spec: plan.children()[1] },
        ],
    };
    assert_eq!(world.perform(&request), Ok(answer));
    assert_eq!(world.shard.cursor.as_update().last_key(), Some(&b"k"[..]));
}

/// Children are numbered on from all that the parent spawned before.
#[test]
fn children_after_a_residual_have_indices_of_their_own() {
    let (mut world, lease) = World::leased();
    world.shard.spawned = vec![ShardId::derived_from_raw(1), ShardId::derived_from_raw(2)];
    let plan = halves();
    world.execute(&request(lease, Op::SplitReplace(&plan)));
    assert_eq!(world.shard.spawned[2..], [child(2), child(3)]);
}

#[test]
fn a_residual_split_keeps_lease_cursor_and_tries_of_the_parent() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"k", operation(1));
    world.state().acquires_since_progress = 2;
    let plan = residual_half();
    let request = request(lease, Op::SplitResidual(&plan));
    let hash = payload::split_residual(&plan);
    let answer = Answer::Execute {
        update: ShardUpdate {
            spec: Some(plan.parent),
            spawned: std::iter::once(residual()).collect(),
            log: Some(logged(operation(5), OpKind::SplitResidual, hash, START)),
            ..of_state(world.shard.state)
        },
        deadline: None,
        shards: vec![NewShard { id: residual(), spec: plan.residual }],
    };
    assert_eq!(world.perform(&request), Ok(answer));
    assert_eq!(world.shard.spec.as_ref(), plan.parent);
    // The parent works on in what it kept, and only there.
    world.checkpoint(lease, b"l", operation(6));
    let outside = Request { op_id: operation(7), ..request_checkpoint(lease, b"m") };
    assert!(matches!(world.perform(&outside), Err(CoordError::CursorOutOfBounds(_))));
}

fn request_checkpoint(lease: Lease, key: &[u8]) -> Request<'_> {
    request(lease, Op::Checkpoint(CursorUpdate::at(key)))
}

/// P1 and P2 as a worker meets them. The planner's own tests have the rest.
#[test]
fn plans_that_do_not_cover_the_shard_are_refused() {
    use SplitValidationError as E;
    let long = vec![b'k'; 4097];
    let inverted = ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 };
    let too_long = ShardSpecInputError::EndTooLarge { size: 4097, max: 4096 };
    for (children, error) in [
        (vec![], E::TooFewChildren { count: 0 }),
        (vec![spec(b"d", b"t")], E::TooFewChildren { count: 1 }),
        (vec![spec(b"d", b"l"), spec(b"m", b"t")], E::Gap { index: 0 }),
        (vec![spec(b"d", b"n"), spec(b"m", b"t")], E::Overlap { index: 0 }),
        (vec![spec(b"d", b""), spec(b"m", b"t")], E::Overlap { index: 0 }),
        (vec![spec(b"e", b"m"), spec(b"m", b"t")], E::StartMismatch),
        (vec![spec(b"", b"m"), spec(b"m", b"t")], E::StartMismatch),
        (vec![spec(b"d", b"m"), spec(b"m", b"s")], E::EndMismatch),
        (vec![spec(b"d", b"m"), spec(b"m", b"")], E::EndMismatch),
        (
            vec![spec(b"d", b"m"), spec(b"m", b"m"), spec(b"m", b"t")],
            E::ChildInvalid { index: 1, source: inverted },
        ),
        (
            vec![spec(b"d", &long), spec(&long, b"t")],
            E::ChildInvalid { index: 0, source: too_long },
        ),
    ] {
        let (mut world, lease) = World::leased();
        let plan = SplitReplacePlan::new(children.iter().copied());
        let answer = world.perform(&request(lease, Op::SplitReplace(&plan))).map(|_| ());
        assert_eq!(answer, Err(CoordError::SplitInvalid(error)));
        if let [parent, residual] = children[..] {
            let plan = SplitResidualPlan::new(parent, residual);
            let answer = world.perform(&request(lease, Op::SplitResidual(&plan))).map(|_| ());
            assert_eq!(answer, Err(CoordError::SplitInvalid(error)));
        }
    }
}

/// Cuts `[d, t)` into `parts`.
fn points(parts: usize) -> Vec<Vec<u8>> {
    let inner = (1..parts).map(|at| [b"d", &(at as u16).to_be_bytes()[..]].concat());
    std::iter::once(b"d".to_vec()).chain(inner).chain([b"t".to_vec()]).collect()
}

fn plan_of(points: &[Vec<u8>]) -> SplitReplacePlan<'_> {
    SplitReplacePlan::new(points.windows(2).map(|pair| spec(&pair[0], &pair[1])))
}

#[test]
fn a_split_has_at_most_256_children() {
    let (mut world, lease) = World::leased();
    let (most, too_many) = (points(MAX_SPLIT_CHILDREN), points(MAX_SPLIT_CHILDREN + 1));
    let error = SplitValidationError::TooManyChildren { count: 257, max: 256 };
    let plan = plan_of(&too_many);
    let answer = world.perform(&request(lease, Op::SplitReplace(&plan))).map(|_| ());
    assert_eq!(answer, Err(CoordError::SplitInvalid(error)));
    let plan = plan_of(&most);
    world.execute(&request(lease, Op::SplitReplace(&plan)));
    assert_eq!(world.shard.spawned, (0..256).map(child).collect::<Vec<_>>());
}

/// X4: a shard may spawn 1024 and a ceiling may be reached, neither passed.
#[test]
fn the_spawn_cap_and_the_ceilings_can_be_reached() {
    let (replace, residual) = (halves(), residual_half());
    for (op, additional) in [(Op::SplitReplace(&replace), 2), (Op::SplitResidual(&residual), 1)] {
        let (mut world, lease) = World::leased();
        let before = MAX_SPAWNED_PER_SHARD - additional;
        world.shard.spawned = (0..before as u64).map(ShardId::derived_from_raw).collect();
        world.room = ShardRoom {
            limits: ShardLimits { per_tenant: 10, global: 20 },
            counts: ShardCounts { tenant: 10 - additional, global: 20 - additional },
            ..world.room
        };
        world.execute(&request(lease, op));
        assert_eq!(world.shard.spawned.len(), 1024);
    }
}

/// X4: a backend's own caps, at and above.
#[test]
fn a_split_beyond_what_the_backend_commits_names_the_backends_maximum() {
    let (replace, residual) = (halves(), residual_half());
    let (mut world, lease) = World::leased();
    world.room.split = SplitCaps { max_children: 2, ..SplitCaps::PROTOCOL };
    let three = SplitReplacePlan::new([spec(b"d", b"g"), spec(b"g", b"m"), spec(b"m", b"t")]);
    let refused = |fault| Err(CoordError::SplitInvalid(fault));
    let too_many = SplitValidationError::TooManyChildren { count: 3, max: 2 };
    assert_eq!(world.ask(&request(lease, Op::SplitReplace(&three))), refused(too_many));
    assert!(world.ask(&request(lease, Op::SplitReplace(&replace))).is_ok());
    // Four keys of one byte, and "left" and "right" or "kept" and "given".
    for op in [Op::SplitReplace(&replace), Op::SplitResidual(&residual)] {
        world.room.split = SplitCaps { max_bytes: 13, ..SplitCaps::PROTOCOL };
        assert!(world.ask(&request(lease, op)).is_ok());
        world.room.split.max_bytes = 12;
        let too_large = SplitValidationError::PartsTooLarge { size: 13, max: 12 };
        assert_eq!(world.ask(&request(lease, op)), refused(too_large));
    }
}

/// P3: the key at which the shard stands must stay in what it keeps.
#[test]
fn a_residual_split_at_or_before_the_cursor_is_refused() {
    let plan = residual_half();
    for (key, kept) in [(&b"l\xff"[..], true), (b"m", false), (b"n", false)] {
        let (mut world, lease) = World::leased();
        world.checkpoint(lease, key, operation(1));
        let answer = world.perform(&request(lease, Op::SplitResidual(&plan))).map(|_| ());
        let refused = Err(CoordError::SplitInvalid(SplitValidationError::CursorNotKept));
        assert_eq!(answer, if kept { Ok(()) } else { refused }, "{key:?}");
    }
}

/// A replacing split starts its children from nothing, wherever the parent stood.
#[test]
fn a_replacing_split_does_not_ask_about_the_cursor() {
    let (mut world, lease) = World::leased();
    world.checkpoint(lease, b"s", operation(1));
    let plan = halves();
    world.execute(&request(lease, Op::SplitReplace(&plan)));
}

#[test]
fn a_taken_id_refuses_the_whole_split() {
    let (world, lease) = World::leased();
    let plan = halves();
    let request =
        SplitReplaceRequest { tenant: TENANT, lease: &lease, plan: &plan, op_id: operation(5) };
    let decision = world.with_found(|found| split_replace(found, START, &world.room, &request));
    let Ok(Decision::Execute(update)) = decision else { panic!() };
    let mut asked = vec![];
    let free = update.check_ids_free::<SplitError>(|id| {
        asked.push(id);
        Ok(false)
    });
    assert_eq!((free, asked), (Ok(()), vec![child(0), child(1)]));
    for taken in [child(0), child(1)] {
        let collision = SplitValidationError::DerivedIdCollision { shard: taken };
        assert_eq!(
            update.check_ids_free(|id| Ok::<_, SplitError>(id == taken)),
            Err(SplitError::SplitInvalid(collision))
        );
        assert_eq!(
            update.check_ids_free(|id| Ok::<_, CoordError>(id == taken)),
            Err(CoordError::SplitInvalid(collision))
        );
    }
    let broken = crate::InfraError::transient("split.look_up", "gone");
    assert_eq!(
        update.check_ids_free(|_| Err(SplitError::from(broken.clone()))),
        Err(SplitError::BackendError(broken))
    );
}

#[test]
fn a_child_record_is_the_parents_with_a_range_and_an_id_of_its_own() {
    let (world, _) = World::leased();
    let view = world.shard.view();
    let new = view.child(child(0), spec(b"d", b"m"));
    assert_eq!((new.tenant, new.key), (TENANT, ShardKey::new(RUN, child(0))));
    assert_eq!((new.spec, new.parent, new.state), (spec(b"d", b"m"), Some(SHARD), ShardState::NEW));
    assert!(new.spawned.is_empty() && new.op_log.is_empty() && new.cursor.is_initial());
}
