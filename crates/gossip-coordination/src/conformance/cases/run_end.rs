//! Ending a run, and what a run that stands somewhere still allows.

use gossip_contracts::identity::{OpId, RunId, RunResult, ShardKey};

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::{
    AcquireError, ClaimError, CoordError, CreateRunError, IdempotentOutcome, RegisterShardsError,
    RunOpIdConflict, RunTransitionError, UnparkError,
};
use crate::error::{DeleteRunError, RevokeLeaseError};
use crate::lease::Lease;
use crate::payload;
use crate::run::ShardFilter;

const ENDS: [(Operation, RunStatus); 3] = [
    (Operation::CompleteRun, RunStatus::Done),
    (Operation::FailRun, RunStatus::Failed),
    (Operation::CancelRun, RunStatus::Cancelled),
];

#[track_caller]
fn end<H: Harness>(
    w: &mut World<H>,
    operation: Operation,
    op: OpId,
) -> Result<IdempotentOutcome<()>, RunTransitionError> {
    match operation {
        Operation::CompleteRun => w.complete_run(op),
        Operation::FailRun => w.fail_run(op),
        Operation::CancelRun => w.cancel_run(op),
        other => unreachable!("{other:?} ends no run"),
    }
}

/// A run whose only shard is done.
fn ready<H: Harness>() -> World<H> {
    let mut w = World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::Complete, &lease).unwrap();
    w
}

fn fingerprint(operation: Operation, run: RunId) -> u64 {
    match operation {
        Operation::CompleteRun => payload::complete_run(run, None),
        Operation::FailRun => payload::fail_run(run),
        _ => payload::cancel_run(run),
    }
}

pub(crate) fn a_run_keeps_the_result_with_which_it_was_completed<H: Harness>() {
    let (w, op) = (&mut ready::<H>(), OpId::from_raw(77));
    let (result, other) = (RunResult::from_bytes([7; 32]), RunResult::from_bytes([8; 32]));
    assert_eq!(w.complete_run_with(Some(result), op), Ok(Executed(())));
    w.reopen();
    assert_eq!(w.get_run().unwrap().result, Some(result));
    assert_eq!(w.list_runs(None, 9).unwrap().0[0].result, Some(result));
    assert_eq!(w.complete_run_with(Some(result), op), Ok(Replayed(())));
    // Under one id there is one result, and none is not the same as some.
    let expected = payload::complete_run(w.run, Some(result));
    for asked in [Some(other), None] {
        let conflict = RunOpIdConflict::new(op, expected, payload::complete_run(w.run, asked));
        let refused = Err(RunTransitionError::OpIdConflict(conflict));
        assert_eq!(w.complete_run_with(asked, op), refused);
    }
    assert_eq!(w.get_run().unwrap().result, Some(result));
}

pub(crate) fn ends<H: Harness>(operation: Operation, status: RunStatus) {
    let (w, op) = (&mut ready::<H>(), OpId::from_raw(77));
    w.tick(5);
    assert_eq!(end(w, operation, op), Ok(Executed(())));
    let record = w.get_run().unwrap();
    assert_eq!((record.status, record.completed_at), (status, Some(w.now)));
    // A retry is answered, later and after a restart too; anything else comes too late.
    w.tick(5);
    w.reopen();
    assert_eq!(end(w, operation, op), Ok(Replayed(())));
    for (other, _) in ENDS {
        let new = w.op();
        assert_eq!(end(w, other, new), Err(RunTransitionError::RunTerminal { status }));
        if other != operation {
            let (expected, actual) = (fingerprint(operation, w.run), fingerprint(other, w.run));
            let conflict = RunOpIdConflict::new(op, expected, actual);
            assert_eq!(end(w, other, op), Err(RunTransitionError::OpIdConflict(conflict)));
        }
    }
}

pub(crate) fn unknown_run<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::open(&Limits::default());
    let op = w.op();
    assert_eq!(end(w, operation, op), Err(RunTransitionError::RunNotFound));
}

pub(crate) fn used_op_id<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::open(&Limits::default());
    let (manifest, op) = (Manifest::of(0..1), w.op());
    w.create_run().unwrap();
    w.register(&manifest.rows(), op).unwrap();
    // Refused as a conflict although shards remain: the op-log is asked first.
    let registered = payload::register_shards(&manifest.rows());
    let conflict = RunOpIdConflict::new(op, registered, fingerprint(operation, w.run));
    assert_eq!(end(w, operation, op), Err(RunTransitionError::OpIdConflict(conflict)));
}

pub(crate) fn a_run_without_shards_can_only_be_cancelled<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    w.create_run().unwrap();
    for (operation, target) in [ENDS[0], ENDS[1]] {
        let (op, status) = (w.op(), RunStatus::Initializing);
        let refused = RunTransitionError::WrongStatus { status, target };
        assert_eq!(end(w, operation, op), Err(refused));
    }
    let (op, manifest) = (w.op(), Manifest::of(0..1));
    assert_eq!(w.cancel_run(op), Ok(Executed(())));
    assert_eq!(w.cancel_run(op), Ok(Replayed(())));
    let (op, status) = (w.op(), RunStatus::Cancelled);
    assert_eq!(w.register(&manifest.rows(), op), Err(RegisterShardsError::WrongStatus { status }));
    assert_eq!(w.claim(1), Err(ClaimError::RunNotActive { run: w.run, status }));
}

pub(crate) fn a_run_with_shards_remaining_is_not_completed<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let remaining = |active, parked| Err(RunTransitionError::ShardsRemaining { active, parked });
    let op = w.op();
    assert_eq!(w.complete_run(op), remaining(3, 0));
    w.parked(0);
    assert_eq!(w.complete_run(op), remaining(2, 1));
    let lease = w.lease(1, 1);
    assert_eq!(w.complete_run(op), remaining(2, 1));
    w.attempt_new(Operation::SplitReplace, &lease).unwrap();
    assert_eq!(w.complete_run(op), remaining(3, 1));
    while let Ok(acquired) = w.claim(1) {
        let (op, key) = (w.op(), acquired.state.spec.as_ref().start().to_vec());
        w.complete(&acquired.lease, CursorUpdate::at(&key), op).unwrap();
    }
    assert_eq!(w.complete_run(op), remaining(0, 1));
    let unpark = w.op();
    w.unpark(id(0), unpark).unwrap();
    assert_eq!(w.complete_run(op), remaining(1, 0));
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::Complete, &lease).unwrap();
    // The same id all the time: a refusal is not remembered.
    assert_eq!(w.complete_run(op), Ok(Executed(())));
}

pub(crate) fn a_run_may_be_given_up_with_shards_at_work<H: Harness>() {
    for (operation, status) in [ENDS[1], ENDS[2]] {
        let w = &mut World::<H>::new(2);
        let (lease, op) = (w.lease(1, 0), w.op());
        assert_eq!(end(w, operation, op), Ok(Executed(())));
        let refused = Err(CoordError::RunNotActive { run: w.run, status });
        assert_eq!(w.attempt_new(Operation::Checkpoint, &lease), refused);
        // What the shards were stays to be seen.
        assert_eq!(w.progress().unwrap().active, 2);
        assert_eq!(w.list(ShardFilter::all()).unwrap().len(), 2);
    }
}

/// A world whose run stands there, and a lease as a worker would have it.
fn standing<H: Harness>(status: RunStatus) -> (World<H>, Lease) {
    let mut w = World::<H>::open(&Limits::default());
    if status == RunStatus::Initializing {
        w.create_run().unwrap();
        let (key, later) = (ShardKey::new(w.run, id(0)), w.now.checked_add(LEASE).unwrap());
        let lease = Lease::new(w.tenant, key, worker(1), FenceEpoch::INITIAL, later);
        return (w, lease);
    }
    w.begin(2);
    let lease = w.lease(1, 0);
    if status == RunStatus::Done {
        for shard in [0, 1] {
            let lease = w.lease(1, shard);
            w.attempt_new(Operation::Complete, &lease).unwrap();
        }
    }
    w.bring_to(status);
    (w, lease)
}

/// Every operation in a run that stands there.
pub(crate) fn allows<H: Harness>(status: RunStatus) {
    let (waiting, active, over) =
        (status == RunStatus::Initializing, status == RunStatus::Active, status.is_terminal());
    let manifest = Manifest::of(0..2);
    for &operation in Operation::ALL {
        let (w, lease) = &mut standing::<H>(status);
        let (run, op, shard) = (w.run, w.op(), w.key(id(0)));
        match operation {
            Operation::Acquire => match w.acquire(1, id(0)) {
                Err(error) if waiting => assert_eq!(error, AcquireError::ShardNotFound { shard }),
                Err(error) => assert_eq!(error, AcquireError::RunNotActive { run, status }),
                Ok(_) => assert!(active),
            },
            Operation::Claim => match w.claim(2) {
                Err(error) => assert_eq!(error, ClaimError::RunNotActive { run, status }),
                Ok(_) => assert!(active),
            },
            Operation::ReacquireOwn => match w.reacquire_own(1) {
                Err(error) => assert_eq!(error, ClaimError::RunNotActive { run, status }),
                Ok(own) => assert!(active && own.is_some()),
            },
            Operation::NoteIdle => assert_eq!(w.note_idle(1), Ok(())),
            Operation::RevokeLease => {
                let expected = match status {
                    RunStatus::Initializing => Err(RevokeLeaseError::ShardNotFound),
                    RunStatus::Active => Ok(Executed(())),
                    // Its shards are done, and hold no lease.
                    RunStatus::Done => Ok(Replayed(())),
                    status => Err(RevokeLeaseError::RunTerminal { status }),
                };
                let fence = w.harness.dump().shard(w.tenant, shard).map(|it| it.state.fence);
                assert_eq!(w.revoke(id(0), fence.unwrap_or(FenceEpoch::INITIAL)), expected);
            }
            Operation::DeleteRun => {
                let refused = Err(DeleteRunError::RunNotEnded { status });
                assert_eq!(w.delete_run(), if over { Ok(()) } else { refused });
            }
            Operation::ListRuns => {
                let (runs, next) = w.list_runs(None, 9).unwrap();
                assert_eq!((runs[0].status, runs.len(), next), (status, 1, None));
            }
            Operation::ListShardsPage => {
                let (page, _) = w.list_page(ShardFilter::all(), None, 1).unwrap();
                assert_eq!(page.len(), if waiting { 0 } else { 1 });
            }
            Operation::CollectCandidates => {
                let candidates = w.candidates(2).unwrap();
                assert_eq!((candidates.status, !candidates.shards.is_empty()), (status, active));
            }
            Operation::CreateRun => {
                assert_eq!(w.create_run(), Err(CreateRunError::RunAlreadyExists { run }));
            }
            Operation::RegisterShards => {
                let refused = Err(RegisterShardsError::WrongStatus { status });
                let expected = if waiting { Ok(Executed(())) } else { refused };
                assert_eq!(w.register(&manifest.rows(), op), expected);
            }
            Operation::CreateRunWithShards => {
                let refused = RegisterShardsError::WrongStatus { status };
                let refused = Err(CreateRunError::RegisterShardsFailed(refused));
                let expected = if waiting { Ok(Executed(())) } else { refused };
                assert_eq!(w.create_with_shards(&manifest.rows(), op, false), expected);
            }
            Operation::CompleteRun | Operation::FailRun | Operation::CancelRun => {
                let target = ENDS.iter().find(|(end, _)| *end == operation).unwrap().1;
                let expected = match (operation, status) {
                    _ if over => Err(RunTransitionError::RunTerminal { status }),
                    (Operation::CancelRun, _) => Ok(Executed(())),
                    _ if waiting => Err(RunTransitionError::WrongStatus { status, target }),
                    (Operation::FailRun, _) => Ok(Executed(())),
                    _ => Err(RunTransitionError::ShardsRemaining { active: 2, parked: 0 }),
                };
                assert_eq!(end(w, operation, op), expected);
            }
            Operation::Unpark => {
                let not_parked = UnparkError::NotParked { status: ShardStatus::Active };
                let expected = match status {
                    RunStatus::Initializing => UnparkError::ShardNotFound,
                    RunStatus::Active => not_parked,
                    status => UnparkError::RunTerminal { status },
                };
                assert_eq!(w.unpark(id(0), op), Err(expected));
            }
            Operation::GetRun => assert_eq!(w.get_run().unwrap().status, status),
            Operation::GetRunProgress => {
                assert_eq!(w.progress().unwrap().total(), if waiting { 0 } else { 2 });
            }
            Operation::ListShards => {
                let listed = w.list(ShardFilter::all()).unwrap();
                assert_eq!(listed.len(), if waiting { 0 } else { 2 });
            }
            leased => {
                let expected = match status {
                    RunStatus::Initializing => Err(CoordError::ShardNotFound { shard }),
                    RunStatus::Active => Ok(Executed(())),
                    status => Err(CoordError::RunNotActive { run, status }),
                };
                assert_eq!(w.attempt_new(leased, lease), expected);
            }
        }
    }
}
