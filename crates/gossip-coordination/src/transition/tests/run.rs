//! V1 to V3: the life of a run, status by status.

use gossip_contracts::coordination::{InitialShardInput, ManifestValidationError, ShardLimitScope};

use super::*;
use crate::error::{CreateRunError, RegisterShardsError, RunOpIdConflict, RunTransitionError};
use crate::op_log::{OpLogEntry, RunOpKind};
use crate::payload;
use crate::run::{RunConfigError, RunProgress, RunRecord};

const CONFIG: RunConfig = RunConfig {
    cursor_semantics: CursorSemantics::Dispatched,
    lease_duration: 100,
    max_shard_retries: 3,
};
const ALL_DONE: RunProgress = RunProgress { active: 0, done: 2, split: 1, parked: 0, watermark: 3 };

fn manifest() -> [InitialShardInput<'static>; 2] {
    [(0, b"a", b"m"), (9, b"m", b"z")].map(|(id, start, end)| {
        InitialShardInput::new(
            ShardId::from_raw(id),
            ShardSpecRef::new(start, end, b"meta"),
            CursorUpdate::at(start),
        )
    })
}

/// A run in each status, as it would have got there.
fn run_in(status: RunStatus) -> RunRecord {
    let mut run = create_run(None, START, TENANT, RUN, CONFIG).unwrap();
    if status != RunStatus::Initializing {
        run.status = status;
        run.root_shards = vec![ShardId::from_raw(0)];
        run.completed_at = status.is_terminal().then_some(at(2_000));
    }
    run.assert_invariants();
    run
}

fn bytes(run: &RunRecord) -> Vec<u8> {
    let mut out = Vec::new();
    codec::encode_run(run, &mut out);
    out
}

fn unlimited() -> ShardRoom {
    World::new().room
}

fn entry(id: u64, kind: RunOpKind, hash: u64) -> OpLogEntry<RunOpKind> {
    OpLogEntry::new(operation(id), kind, OpResult::Completed, hash, at(1_500))
}

#[test]
fn a_new_run_is_initializing_and_empty() {
    let run = create_run(None, START, TENANT, RUN, CONFIG).unwrap();
    let expected = RunRecord {
        tenant: TENANT,
        run: RUN,
        config: CONFIG,
        status: RunStatus::Initializing,
        created_at: START,
        completed_at: None,
        root_shards: vec![],
        op_log: Default::default(),
        registration: None,
        result: None,
    };
    assert_eq!(run, expected);
    assert_eq!(
        run.gate(),
        RunGate { status: RunStatus::Initializing, config: CONFIG, hides_shards: false }
    );
}

#[test]
fn a_bad_configuration_is_reported_before_a_taken_id() {
    let existing = run_in(RunStatus::Active);
    let bad = RunConfig { lease_duration: 0, ..CONFIG };
    assert_eq!(
        create_run(Some(&existing), START, TENANT, RUN, bad),
        Err(CreateRunError::InvalidConfig(RunConfigError::ZeroLeaseDuration))
    );
    assert_eq!(
        create_run(Some(&existing), START, TENANT, RUN, CONFIG),
        Err(CreateRunError::RunAlreadyExists { run: RUN })
    );
}

#[test]
#[should_panic(expected = "some time")]
fn a_run_created_at_no_time_is_a_bug() {
    let _ = create_run(None, LogicalTime::ZERO, TENANT, RUN, CONFIG);
}

#[test]
fn registering_shards_makes_the_run_active() {
    let mut run = run_in(RunStatus::Initializing);
    let shards = manifest();
    let expected = RunUpdate {
        status: RunStatus::Active,
        completed_at: None,
        root_shards: Some(vec![ShardId::from_raw(0), ShardId::from_raw(9)]),
        registration: None,
        result: None,
        log: Some(entry(1, RunOpKind::RegisterShards, payload::register_shards(&shards))),
    };
    let decided =
        register_shards(Some(&run), at(1_500), TENANT, &unlimited(), &shards, operation(1));
    assert_eq!(decided, Ok(Decision::Execute(expected.clone())));
    run.apply(expected);
    assert_eq!(run.root_shards.len(), 2);
    // Replayed in whatever status, and whatever room is left.
    let none = ShardRoom { limits: ShardLimits { per_tenant: 0, global: 0 }, ..unlimited() };
    for status in RunStatus::ALL {
        run.status = status;
        let again = register_shards(Some(&run), at(9_000), TENANT, &none, &shards, operation(1));
        assert_eq!(again, Ok(Decision::Replay(())));
    }
}

#[test]
fn registration_reports_refusals_in_order() {
    let shards = manifest();
    let hash = payload::register_shards(&[]);
    let full = |tenant, global| ShardRoom {
        limits: ShardLimits { per_tenant: 5, global: 9 },
        counts: ShardCounts { tenant, global },
        ..unlimited()
    };
    let missing = register_shards(None, START, TENANT, &full(4, 8), &[], operation(1));
    assert_eq!(missing, Err(RegisterShardsError::RunNotFound));

    let mut run = run_in(RunStatus::Cancelled);
    run.op_log.push_back_overwrite(entry(1, RunOpKind::Cancel, 77));
    let before = bytes(&run);
    let ask = |run: &RunRecord, room: ShardRoom, shards: &[InitialShardInput<'_>], id| {
        register_shards(Some(run), START, TENANT, &room, shards, operation(id))
    };
    let conflict = RunOpIdConflict::new(operation(1), 77, hash);
    assert_eq!(ask(&run, full(4, 8), &[], 1), Err(RegisterShardsError::OpIdConflict(conflict)));
    assert_eq!(bytes(&run), before);
    for status in RunStatus::ALL.into_iter().filter(|&s| s != RunStatus::Initializing) {
        let run = run_in(status);
        let wrong = RegisterShardsError::WrongStatus { status };
        assert_eq!(ask(&run, full(4, 8), &[], 2), Err(wrong));
    }
    run = run_in(RunStatus::Initializing);
    assert_eq!(
        ask(&run, full(4, 8), &[], 2),
        Err(RegisterShardsError::ManifestInvalid(ManifestValidationError::Empty))
    );
    let limit = |current, max, scope| RegisterShardsError::ShardLimitExceeded {
        current,
        additional: 2,
        max,
        scope,
    };
    assert_eq!(ask(&run, full(4, 8), &shards, 2), Err(limit(4, 5, ShardLimitScope::Tenant)));
    assert_eq!(ask(&run, full(3, 8), &shards, 2), Err(limit(8, 9, ShardLimitScope::Global)));
    assert!(ask(&run, full(3, 7), &shards, 2).is_ok());
}

#[test]
fn a_registered_shard_begins_with_its_runs_semantics() {
    let run = run_in(RunStatus::Initializing);
    let input = manifest()[1];
    let shard = root_shard(&run, &input);
    shard.assert_invariants();
    assert_eq!((shard.tenant, shard.key), (TENANT, ShardKey::new(RUN, ShardId::from_raw(9))));
    assert_eq!((shard.spec, shard.cursor), (input.spec, input.cursor));
    assert_eq!(shard.cursor_semantics, CursorSemantics::Dispatched);
    assert_eq!((shard.parent, shard.state), (None, ShardState::NEW));
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Complete,
    Fail,
    Cancel,
}

impl End {
    fn ask(
        self,
        run: Option<&RunRecord>,
        id: u64,
    ) -> Result<Decision<RunUpdate, ()>, RunTransitionError> {
        match self {
            End::Complete => complete_run(run, at(1_500), TENANT, &ALL_DONE, None, operation(id)),
            End::Fail => fail_run(run, at(1_500), TENANT, operation(id)),
            End::Cancel => cancel_run(run, at(1_500), TENANT, operation(id)),
        }
    }

    fn parts(self) -> (RunStatus, RunOpKind, u64) {
        match self {
            End::Complete => {
                (RunStatus::Done, RunOpKind::Complete, payload::complete_run(RUN, None))
            }
            End::Fail => (RunStatus::Failed, RunOpKind::Fail, payload::fail_run(RUN)),
            End::Cancel => (RunStatus::Cancelled, RunOpKind::Cancel, payload::cancel_run(RUN)),
        }
    }
}

/// Five statuses, five operations. `+` is carried out, `w` the wrong status, `t` an ended run, `x`
/// a taken id.
#[test]
fn every_operation_in_every_status() {
    let table = [
        //                        create register complete fail cancel
        (RunStatus::Initializing, "x + w w +"),
        (RunStatus::Active, "x w + + +"),
        (RunStatus::Done, "x w t t t"),
        (RunStatus::Failed, "x w t t t"),
        (RunStatus::Cancelled, "x w t t t"),
    ];
    for (status, row) in table {
        let run = run_in(status);
        let before = bytes(&run);
        let created = match create_run(Some(&run), START, TENANT, RUN, CONFIG) {
            Err(CreateRunError::RunAlreadyExists { run: RUN }) => 'x',
            other => panic!("{other:?}"),
        };
        let registered = match register_shards(
            Some(&run),
            START,
            TENANT,
            &unlimited(),
            &manifest(),
            operation(1),
        ) {
            Ok(Decision::Execute(_)) => '+',
            Err(RegisterShardsError::WrongStatus { status: found }) if found == status => 'w',
            other => panic!("{other:?}"),
        };
        let ended =
            [End::Complete, End::Fail, End::Cancel].map(|end| match end.ask(Some(&run), 1) {
                Ok(Decision::Execute(_)) => '+',
                Err(RunTransitionError::WrongStatus { status: found, target })
                    if found == status && target == end.parts().0 =>
                {
                    'w'
                }
                Err(RunTransitionError::RunTerminal { status: found }) if found == status => 't',
                other => panic!("{other:?}"),
            });
        let shown = [created, registered, ended[0], ended[1], ended[2]].map(String::from).join(" ");
        assert_eq!(shown, row, "{status:?}");
        assert_eq!(bytes(&run), before);
    }
}

#[test]
fn an_end_is_written_with_its_time_and_replayed_ever_after() {
    for end in [End::Complete, End::Fail, End::Cancel] {
        assert_eq!(end.ask(None, 1), Err(RunTransitionError::RunNotFound));
        let mut run = run_in(RunStatus::Active);
        let (status, kind, hash) = end.parts();
        let expected = RunUpdate {
            status,
            completed_at: Some(at(1_500)),
            root_shards: None,
            registration: None,
            result: None,
            log: Some(entry(1, kind, hash)),
        };
        assert_eq!(end.ask(Some(&run), 1), Ok(Decision::Execute(expected.clone())));
        run.apply(expected);
        assert_eq!((run.status, run.completed_at), (status, Some(at(1_500))));
        assert_eq!(run.root_shards.len(), 1);
        assert_eq!(end.ask(Some(&run), 1), Ok(Decision::Replay(())));
        // The id is taken for every other end, and that is said before that the run has ended.
        for other in [End::Complete, End::Fail, End::Cancel].into_iter().filter(|&o| o != end) {
            let conflict = RunOpIdConflict::new(operation(1), hash, other.parts().2);
            let refused = other.ask(Some(&run), 1);
            assert_eq!(refused, Err(RunTransitionError::OpIdConflict(conflict)));
            assert_eq!(other.ask(Some(&run), 2), Err(RunTransitionError::RunTerminal { status }));
        }
        assert_eq!(end.ask(Some(&run), 2), Err(RunTransitionError::RunTerminal { status }));
    }
}

/// V2.
#[test]
fn a_run_is_complete_only_when_no_shard_is_active_or_parked() {
    let run = run_in(RunStatus::Active);
    for (active, parked) in [(1, 0), (0, 1), (3, 2)] {
        let progress = RunProgress { active, parked, ..ALL_DONE };
        assert_eq!(
            complete_run(Some(&run), START, TENANT, &progress, None, operation(1)),
            Err(RunTransitionError::ShardsRemaining { active, parked })
        );
    }
    // The status is reported before the shards, and a replay does not count them.
    let remaining = RunProgress { active: 1, ..ALL_DONE };
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        let refused =
            complete_run(Some(&run_in(status)), START, TENANT, &remaining, None, operation(1));
        assert_eq!(refused, Err(RunTransitionError::RunTerminal { status }));
    }
    let status = RunStatus::Initializing;
    let refused =
        complete_run(Some(&run_in(status)), START, TENANT, &remaining, None, operation(1));
    let target = RunStatus::Done;
    assert_eq!(refused, Err(RunTransitionError::WrongStatus { status, target }));
    let mut done = run;
    let Ok(Decision::Execute(update)) = End::Complete.ask(Some(&done), 1) else { panic!() };
    done.apply(update);
    let again = complete_run(Some(&done), START, TENANT, &remaining, None, operation(1));
    assert_eq!(again, Ok(Decision::Replay(())));
}

/// A run that never got its shards can be called off, and has none afterwards.
#[test]
fn a_run_without_shards_can_only_be_cancelled() {
    let mut run = run_in(RunStatus::Initializing);
    let Ok(Decision::Execute(update)) = End::Cancel.ask(Some(&run), 1) else { panic!() };
    run.apply(update);
    assert_eq!((run.status, run.root_shards.len()), (RunStatus::Cancelled, 0));
}

#[test]
fn a_run_remembers_eight_operations() {
    let mut run = run_in(RunStatus::Initializing);
    let shards = manifest();
    let decided = register_shards(Some(&run), START, TENANT, &unlimited(), &shards, operation(1));
    let Ok(Decision::Execute(update)) = decided else { panic!() };
    run.apply(update);
    // No protocol operation repeats on a run; later entries are put in by hand.
    for id in 2..=8 {
        run.op_log.push_back_overwrite(entry(id, RunOpKind::Fail, id));
    }
    let again = |run: &RunRecord| {
        register_shards(Some(run), START, TENANT, &unlimited(), &shards, operation(1))
    };
    assert_eq!(again(&run), Ok(Decision::Replay(())));
    run.op_log.push_back_overwrite(entry(9, RunOpKind::Fail, 9));
    let status = RunStatus::Active;
    assert_eq!(again(&run), Err(RegisterShardsError::WrongStatus { status }));
}

#[test]
#[should_panic(expected = "U2")]
fn storing_a_broken_run_is_a_bug() {
    let mut run = run_in(RunStatus::Initializing);
    run.apply(RunUpdate {
        status: RunStatus::Active,
        completed_at: None,
        root_shards: None,
        registration: None,
        result: None,
        log: Some(entry(1, RunOpKind::RegisterShards, 1)),
    });
}

/// A store that looked up by the wrong tenant gets no answer, not even from the op-log.
#[test]
fn another_tenants_run_is_refused_before_its_op_log_is_read() {
    let stranger = TenantId::from_bytes([0x5a; 32]);
    let (shards, done) = (manifest(), run_in(RunStatus::Done));
    let mismatch = RunTransitionError::TenantMismatch { expected: stranger };
    let registered =
        register_shards(Some(&done), START, stranger, &unlimited(), &shards, operation(1));
    assert_eq!(registered, Err(RegisterShardsError::TenantMismatch { expected: stranger }));
    assert_eq!(
        complete_run(Some(&done), START, stranger, &ALL_DONE, None, operation(1)),
        Err(mismatch.clone())
    );
    assert_eq!(fail_run(Some(&done), START, stranger, operation(1)), Err(mismatch.clone()));
    assert_eq!(cancel_run(Some(&done), START, stranger, operation(1)), Err(mismatch));
}

#[test]
fn a_run_whose_shards_are_not_all_counted_is_damaged_and_not_complete() {
    let (run, nothing) = (run_in(RunStatus::Active), RunProgress::default());
    let answer = complete_run(Some(&run), START, TENANT, &nothing, None, operation(1));
    let Err(RunTransitionError::BackendError(error)) = answer else { panic!("{answer:?}") };
    assert!(!error.is_retryable() && error.to_string().contains("0 are counted"), "{error}");
}
