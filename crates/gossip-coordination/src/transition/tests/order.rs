//! Every operation against every refusal, and which one a request with several faults gets.

use gossip_contracts::coordination::{
    Cursor, MAX_KEY_SIZE, MAX_SPAWNED_PER_SHARD, MAX_TOKEN_SIZE, ShardLimitScope,
    SplitValidationError,
};

use super::*;
use crate::error::CursorOutOfBoundsDetail;
use crate::payload;

/// A request that would be carried out, until faults are put in.
#[derive(Clone)]
struct Scene<'a> {
    world: World,
    exists: bool,
    request: Request<'a>,
}

/// A fault, and the refusal that it alone causes.
struct Fault<'a> {
    name: &'static str,
    put_in: Box<dyn Fn(&mut Scene<'a>) + 'a>,
    refusal: Box<dyn Fn(&Scene<'a>) -> CoordError + 'a>,
}

fn fault<'a>(
    name: &'static str,
    put_in: impl Fn(&mut Scene<'a>) + 'a,
    refusal: impl Fn(&Scene<'a>) -> CoordError + 'a,
) -> Fault<'a> {
    Fault { name, put_in: Box::new(put_in), refusal: Box::new(refusal) }
}

impl Scene<'_> {
    fn answer(&self) -> Result<Answer<'_>, CoordError> {
        if self.exists {
            self.world.ask(&self.request)
        } else {
            decide(None, self.world.now, &self.world.room, &self.request)
        }
    }

    fn stale(&self) -> CoordError {
        CoordError::StaleFence {
            presented: self.request.lease.fence(),
            current: self.world.shard.state.fence,
        }
    }
}

/// Puts in each fault alone, then together with all that are asked about later.
fn check_ladder<'a>(good: &Scene<'a>, faults: &[Fault<'a>]) {
    let answer = good.answer();
    assert!(matches!(answer, Ok(Answer::Execute { .. })), "{:?}: {answer:?}", good.request);
    for (index, fault) in faults.iter().enumerate() {
        let mut alone = good.clone();
        (fault.put_in)(&mut alone);
        let mut with_all_later = good.clone();
        // The first fault last, so that nothing later covers it up.
        for later in faults[index..].iter().rev() {
            (later.put_in)(&mut with_all_later);
        }
        for scene in [alone, with_all_later] {
            let before = scene.world.bytes();
            let refusal = (fault.refusal)(&scene);
            assert_eq!(scene.answer(), Err(refusal), "{}: {:?}", fault.name, scene.request.op);
            assert_eq!(scene.world.bytes(), before);
        }
    }
}

/// Steps 1 to 4 of the documented order.
fn shared_faults<'a>(op: Op<'_>) -> Vec<Fault<'a>> {
    let mut faults = vec![
        fault(
            "the lease is another tenant's",
            |scene| {
                let lease = scene.request.lease;
                scene.request.lease = Lease::new(
                    OTHER_TENANT,
                    lease.key(),
                    lease.owner(),
                    lease.fence(),
                    lease.deadline(),
                );
            },
            |_| CoordError::TenantMismatch { expected: TENANT },
        ),
        fault(
            "there is no such shard",
            |scene| scene.exists = false,
            |_| CoordError::ShardNotFound { shard: KEY },
        ),
        fault(
            "the record is another tenant's",
            |scene| scene.world.shard.tenant = OTHER_TENANT,
            |_| CoordError::TenantMismatch { expected: TENANT },
        ),
    ];
    if op.is_idempotent() {
        faults.push(fault(
            "the operation id was used otherwise",
            |scene| {
                let used = logged(scene.request.op_id, OpKind::Park, 0x1234, START);
                scene.world.shard.op_log.push_back_overwrite(used);
            },
            |scene| CoordError::OpIdConflict {
                op_id: scene.request.op_id,
                expected_hash: 0x1234,
                actual_hash: match scene.request.op {
                    Op::Checkpoint(cursor) => payload::checkpoint(cursor),
                    Op::Complete(cursor) => payload::complete(cursor),
                    Op::Park(reason) => payload::park(reason),
                    Op::SplitReplace(plan) => payload::split_replace(plan),
                    Op::SplitResidual(plan) => payload::split_residual(plan),
                    Op::Renew | Op::Release => unreachable!(),
                },
            },
        ));
    }
    faults.extend([
        fault(
            "the run has ended",
            |scene| scene.world.gate.status = RunStatus::Cancelled,
            |_| CoordError::RunNotActive { run: RUN, status: RunStatus::Cancelled },
        ),
        fault(
            "the shard is finished",
            |scene| scene.world.state().status = ShardStatus::Done,
            |_| CoordError::ShardTerminal { shard: KEY, status: ShardStatus::Done },
        ),
        fault(
            "somebody acquired the shard since",
            |scene| scene.world.state().fence = fence(9),
            Scene::stale,
        ),
        fault(
            "the lease ran out",
            |scene| scene.world.now = DEADLINE,
            |_| CoordError::LeaseExpired { deadline: DEADLINE, now: DEADLINE },
        ),
        fault(
            "another worker holds it under the same fence",
            |scene| scene.world.state().lease = holder(OTHER_WORKER, DEADLINE),
            Scene::stale,
        ),
    ]);
    faults
}

fn good_scene(op: Op<'_>) -> Scene<'_> {
    let (world, lease) = World::leased();
    let op_id = operation(50);
    Scene { world, exists: true, request: Request { tenant: TENANT, lease, op, op_id } }
}

#[test]
fn every_operation_reports_the_shared_refusals_in_order() {
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        check_ladder(&good_scene(op), &shared_faults(op));
    }
}

fn checkpoint_at(cursor: CursorUpdate<'_>) -> Op<'_> {
    Op::Checkpoint(cursor)
}

fn complete_at(cursor: CursorUpdate<'_>) -> Op<'_> {
    Op::Complete(cursor)
}

/// Nothing later is asked before the lease is found good.
#[test]
fn cursor_refusals_come_last_and_in_order() {
    let long_key = vec![b'c'; MAX_KEY_SIZE + 1];
    let long_token = vec![b'x'; MAX_TOKEN_SIZE + 1];
    for wrap in [checkpoint_at as fn(CursorUpdate<'_>) -> Op<'_>, complete_at] {
        let mut faults = shared_faults(wrap(CursorUpdate::initial()));
        faults.extend([
            fault(
                "no key",
                move |scene| scene.request.op = wrap(CursorUpdate::initial()),
                |_| CoordError::CheckpointMissingKey,
            ),
            fault(
                "a long key",
                |scene| {
                    scene.request.op = wrap(CursorUpdate::new(Some(&long_key), Some(&long_token)))
                },
                |_| CoordError::CursorKeyTooLarge { size: 4097, max: 4096 },
            ),
            fault(
                "a long token",
                |scene| scene.request.op = wrap(CursorUpdate::new(Some(b"c"), Some(&long_token))),
                |_| CoordError::CursorTokenTooLarge { size: 16_385, max: 16_384 },
            ),
            fault(
                "a step back",
                |scene| {
                    scene.world.shard.cursor = Cursor::new(CursorUpdate::at(b"kk")).unwrap();
                    scene.request.op = wrap(CursorUpdate::at(b"c"));
                },
                |_| CoordError::CursorRegression { old_key: Some(2), new_key: Some(1) },
            ),
        ]);
        check_ladder(&good_scene(wrap(CursorUpdate::at(b"k"))), &faults);

        // Bounds by themselves: a step back is in the range whenever the old key is.
        let outside = |key: &'static [u8]| {
            fault(
                "outside the range",
                move |scene: &mut Scene<'_>| scene.request.op = wrap(CursorUpdate::at(key)),
                move |_| {
                    CoordError::CursorOutOfBounds(CursorOutOfBoundsDetail {
                        last_key: key.len(),
                        spec_start: 1,
                        spec_end: 1,
                    })
                },
            )
        };
        let mut faults = shared_faults(wrap(CursorUpdate::initial()));
        faults.push(outside(b"t"));
        check_ladder(&good_scene(wrap(CursorUpdate::at(b"k"))), &faults);
        check_ladder(&good_scene(wrap(CursorUpdate::at(b"k"))), &[outside(b"cc")]);
    }
}

fn split_invalid(error: SplitValidationError) -> impl Fn(&Scene<'_>) -> CoordError {
    move |_| CoordError::SplitInvalid(error)
}

/// The two ceilings and the spawn cap, for a split that adds `additional` shards.
fn room_faults<'a>(additional: usize) -> Vec<Fault<'a>> {
    let full = MAX_SPAWNED_PER_SHARD - additional + 1;
    let limit = |current, max, scope| {
        split_invalid(SplitValidationError::ShardLimitExceeded { current, additional, max, scope })
    };
    vec![
        fault(
            "the shard has spawned too many",
            move |scene| {
                scene.world.shard.spawned =
                    (0..full as u64).map(ShardId::derived_from_raw).collect();
            },
            split_invalid(SplitValidationError::SpawnLimitExceeded {
                current: full,
                additional,
                max: 1024,
            }),
        ),
        fault(
            "the tenant has too many",
            move |scene| {
                scene.world.room.limits.per_tenant = 10;
                scene.world.room.counts.tenant = 10 - additional + 1;
            },
            limit(10 - additional + 1, 10, ShardLimitScope::Tenant),
        ),
        fault(
            "all tenants together have too many",
            move |scene| {
                scene.world.room.limits.global = 20;
                scene.world.room.counts.global = 20 - additional + 1;
            },
            limit(20 - additional + 1, 20, ShardLimitScope::Global),
        ),
    ]
}

#[test]
fn split_refusals_come_last_and_in_order() {
    let (replace, residual) = (halves(), residual_half());
    let gap = SplitReplacePlan::new([
        ShardSpecRef::new(b"d", b"l", b""),
        ShardSpecRef::new(b"m", b"t", b""),
    ]);
    let residual_gap = SplitResidualPlan::new(
        ShardSpecRef::new(b"d", b"l", b""),
        ShardSpecRef::new(b"m", b"t", b""),
    );
    let at_m = |scene: &mut Scene<'_>| {
        let cursor = CursorUpdate::at(b"m");
        scene.world.shard.cursor = Cursor::new(cursor).unwrap();
    };

    let mut faults = shared_faults(Op::SplitReplace(&replace));
    faults.push(fault(
        "a gap",
        |scene| scene.request.op = Op::SplitReplace(&gap),
        split_invalid(SplitValidationError::Gap { index: 0 }),
    ));
    faults.extend(room_faults(2));
    check_ladder(&good_scene(Op::SplitReplace(&replace)), &faults);

    let mut faults = shared_faults(Op::SplitResidual(&residual));
    faults.push(fault(
        "a gap",
        |scene| scene.request.op = Op::SplitResidual(&residual_gap),
        split_invalid(SplitValidationError::Gap { index: 0 }),
    ));
    faults.push(fault(
        "the cursor would be given away",
        at_m,
        split_invalid(SplitValidationError::CursorNotKept),
    ));
    faults.extend(room_faults(1));
    check_ladder(&good_scene(Op::SplitResidual(&residual)), &faults);
}

/// The gate of every status, the reasons a shard may be finished for, and a lease that nobody
/// holds.
#[test]
fn every_run_status_and_every_terminal_state_is_told() {
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        let good = good_scene(op);
        for status in RunStatus::ALL {
            let mut scene = good.clone();
            scene.world.gate.status = status;
            let answer = scene.answer();
            match status {
                RunStatus::Active => assert!(answer.is_ok()),
                // V4: a shard that is staged is not there yet.
                RunStatus::Initializing => {
                    assert_eq!(answer, Err(CoordError::ShardNotFound { shard: KEY }));
                }
                _ => assert_eq!(answer, Err(CoordError::RunNotActive { run: RUN, status })),
            }
        }
        for status in [ShardStatus::Done, ShardStatus::Split, ShardStatus::Parked] {
            let mut scene = good.clone();
            scene.world.state().status = status;
            let refusal = CoordError::ShardTerminal { shard: KEY, status };
            assert_eq!(scene.answer(), Err(refusal));
        }
        let mut released = good.clone();
        released.world.state().lease = None;
        assert_eq!(released.answer(), Err(released.stale()));
        // A lease from the future is no better than one from the past.
        let mut older = good.clone();
        older.world.state().fence = FenceEpoch::INITIAL;
        assert_eq!(older.answer(), Err(older.stale()));
    }
}

/// L1 at its edge.
#[test]
fn a_lease_works_until_just_before_its_deadline() {
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        let mut scene = good_scene(op);
        scene.world.now = at(1_099);
        assert!(scene.answer().is_ok());
        for now in [at(1_100), at(1_101), at(u64::MAX)] {
            scene.world.now = now;
            let refusal = CoordError::LeaseExpired { deadline: DEADLINE, now };
            assert_eq!(scene.answer(), Err(refusal));
        }
        // The record's deadline counts, not the one that the worker remembers.
        scene.world.now = DEADLINE;
        scene.world.state().lease = holder(WORKER, at(1_200));
        assert!(scene.answer().is_ok());
    }
}

#[test]
fn an_operation_at_no_time_is_a_bug() {
    let (replace, residual) = (halves(), residual_half());
    for op in every_op(&replace, &residual) {
        let mut scene = good_scene(op);
        scene.world.now = LogicalTime::ZERO;
        let asked = std::panic::AssertUnwindSafe(|| drop(scene.answer()));
        assert!(std::panic::catch_unwind(asked).is_err(), "{op:?}");
    }
}
