//! Creating a run and giving it its shards.

use gossip_contracts::coordination::{
    CursorInputError, InitialShardInput, MAX_KEY_SIZE, MAX_TOKEN_SIZE, ManifestValidationError,
    ShardLimitScope, ShardSpecInputError,
};

use super::prelude::*;
use crate::conformance::world::Manifest;
use crate::error::{CreateRunError, RegisterShardsError, RunOpIdConflict};
use crate::payload;
use crate::run::{RunConfigError, RunProgress};

fn row<'a>(shard: u64, start: &'a [u8], end: &'a [u8]) -> InitialShardInput<'a> {
    let range = ShardSpecRef::new(start, end, b"");
    InitialShardInput::new(id(shard), range, CursorUpdate::initial())
}

/// A run without shards.
fn created<H: Harness>(limits: &Limits) -> World<H> {
    let mut w = World::<H>::open(limits);
    w.create_run().unwrap();
    w
}

pub(crate) fn a_new_run_waits_for_its_shards<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    assert_eq!(w.create_run(), Ok(()));
    let record = w.get_run().unwrap();
    assert_eq!((record.tenant, record.run, record.config), (w.tenant, w.run, w.config));
    assert_eq!((record.status, record.created_at), (RunStatus::Initializing, w.now));
    assert_eq!((record.completed_at, record.root_shards.len()), (None, 0));
    assert!(record.op_log.is_empty());
    assert_eq!(w.progress(), Ok(RunProgress::default()));
}

pub(crate) fn a_run_with_an_impossible_configuration_is_refused<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    let good = w.config;
    w.config.lease_duration = 0;
    let refused = CreateRunError::InvalidConfig(RunConfigError::ZeroLeaseDuration);
    assert_eq!(w.create_run(), Err(refused.clone()));
    w.config = good;
    w.config.max_shard_retries = 0;
    let retries = CreateRunError::InvalidConfig(RunConfigError::ZeroShardRetries);
    assert_eq!(w.create_run(), Err(retries));
    w.config = good;
    w.create_run().unwrap();
    // Also where the run exists: the configuration is looked at first.
    w.config.lease_duration = 0;
    assert_eq!(w.create_run(), Err(refused));
}

pub(crate) fn a_run_is_created_once<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    let refused = Err(CreateRunError::RunAlreadyExists { run: w.run });
    assert_eq!(w.create_run(), refused);
    w.reopen();
    w.config.lease_duration += 1;
    assert_eq!(w.create_run(), refused);
    w.run = gossip_contracts::identity::RunId::from_raw(2);
    assert_eq!(w.create_run(), Ok(()));
}

pub(crate) fn registering_shards_sets_a_run_going<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    w.tick(5);
    // In any order, with gaps between ranges.
    let (manifest, op) = (Manifest::of([7, 3, 900]), w.op());
    assert_eq!(w.register(&manifest.rows(), op), Ok(Executed(())));
    let record = w.run_record();
    assert_eq!((record.status, record.completed_at), (RunStatus::Active, None));
    assert_eq!(record.root_shards, [id(7), id(3), id(900)]);
    for row in manifest.rows() {
        let shard = w.shard(row.shard);
        assert_eq!((shard.spec.as_ref(), shard.cursor.as_update()), (row.spec, row.cursor));
        assert_eq!(shard.state, crate::record::ShardState::NEW);
    }
    assert_eq!(w.progress().unwrap(), RunProgress { active: 3, ..RunProgress::default() });
}

pub(crate) fn registering_again_is_answered_and_changes_nothing<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    let (manifest, op) = (Manifest::of(0..3), w.op());
    assert_eq!(w.register(&manifest.rows(), op), Ok(Executed(())));
    assert_eq!(w.register(&manifest.rows(), op), Ok(Replayed(())));
    w.reopen();
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::Complete, &lease).unwrap();
    assert_eq!(w.register(&manifest.rows(), op), Ok(Replayed(())));
    w.bring_to(RunStatus::Failed);
    assert_eq!(w.register(&manifest.rows(), op), Ok(Replayed(())));
}

pub(crate) fn registering_something_else_under_one_op_id_is_refused<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    let (manifest, other, op) = (Manifest::of(0..3), Manifest::of(0..4), w.op());
    w.register(&manifest.rows(), op).unwrap();
    let conflict = RunOpIdConflict::new(
        op,
        payload::register_shards(&manifest.rows()),
        payload::register_shards(&other.rows()),
    );
    assert_eq!(w.register(&other.rows(), op), Err(RegisterShardsError::OpIdConflict(conflict)));
}

pub(crate) fn shards_are_registered_once<H: Harness>() {
    for status in [RunStatus::Active, RunStatus::Failed, RunStatus::Cancelled] {
        let w = &mut World::<H>::new(1);
        w.bring_to(status);
        // The status is named before anything that is wrong with the manifest.
        for rows in [Manifest::of(5..6).rows(), vec![]] {
            let op = w.op();
            assert_eq!(w.register(&rows, op), Err(RegisterShardsError::WrongStatus { status }));
        }
    }
}

pub(crate) fn an_unknown_run_gets_no_shards<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    let (manifest, op) = (Manifest::of(0..1), w.op());
    assert_eq!(w.register(&manifest.rows(), op), Err(RegisterShardsError::RunNotFound));
}

pub(crate) fn a_faulty_manifest_is_refused<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    let (good, long, token) =
        (row(0, b"x", b"y"), vec![b'k'; MAX_KEY_SIZE + 1], vec![0; MAX_TOKEN_SIZE + 1]);
    let with = |cursor| InitialShardInput { cursor, ..row(3, b"b", b"d") };
    let derived = ShardId::derived_from_raw(1);
    let spec = |source| ManifestValidationError::SpecInvalid { shard: id(3), source };
    let cursor = |source| ManifestValidationError::CursorInvalid { shard: id(3), source };
    let (size, max) = (MAX_KEY_SIZE + 1, MAX_KEY_SIZE);
    use ManifestValidationError as Fault;
    for (rows, fault) in [
        (vec![], Fault::Empty),
        (vec![good, row(derived.as_raw(), b"a", b"b")], Fault::DerivedShardId { shard: derived }),
        (
            vec![good, row(3, b"b", b"a")],
            spec(ShardSpecInputError::InvertedRange { start_len: 1, end_len: 1 }),
        ),
        (vec![good, row(3, b"a", &long)], spec(ShardSpecInputError::EndTooLarge { size, max })),
        (vec![good, row(3, b"", b"a")], Fault::UnboundedRange { shard: id(3) }),
        (vec![good, row(3, b"a", b"")], Fault::UnboundedRange { shard: id(3) }),
        (
            vec![good, with(CursorUpdate::at(&long))],
            cursor(CursorInputError::KeyTooLarge { size, max }),
        ),
        (
            vec![good, with(CursorUpdate::new(Some(b"c"), Some(&token)))],
            cursor(CursorInputError::TokenTooLarge { size: token.len(), max: MAX_TOKEN_SIZE }),
        ),
        (vec![good, with(CursorUpdate::at(b"d"))], Fault::CursorOutOfBounds { shard: id(3) }),
        (vec![good, row(0, b"a", b"b")], Fault::DuplicateShardId { shard: id(0) }),
        (
            vec![row(2, b"c", b"e"), row(1, b"a", b"cc")],
            Fault::OverlappingRanges { first: id(1), second: id(2) },
        ),
    ] {
        let op = w.op();
        assert_eq!(w.register(&rows, op), Err(RegisterShardsError::ManifestInvalid(fault)));
    }
    // A refusal uses nothing up: the run still gets its shards.
    let op = w.op();
    assert_eq!(w.register(&[good], op), Ok(Executed(())));
}

pub(crate) fn register_under_a_ceiling<H: Harness>(scope: ShardLimitScope) {
    if !H::caps().shard_ceilings {
        return skip("the backend has no ceilings");
    }
    let limits = match scope {
        ShardLimitScope::Tenant => Limits { shards_per_tenant: 5, ..Limits::default() },
        ShardLimitScope::Global => Limits { shards_total: 5, ..Limits::default() },
    };
    let w = &mut World::<H>::open(&limits);
    if scope == ShardLimitScope::Global {
        w.tenant = tenant(2);
    }
    w.run = gossip_contracts::identity::RunId::from_raw(2);
    w.begin(2);
    w.tenant = tenant(1);
    w.run = gossip_contracts::identity::RunId::from_raw(1);
    w.create_run().unwrap();
    let (four, three, op) = (Manifest::of(0..4), Manifest::of(0..3), w.op());
    let over = RegisterShardsError::ShardLimitExceeded { current: 2, additional: 4, max: 5, scope };
    assert_eq!(w.register(&four.rows(), op), Err(over));
    assert_eq!(w.register(&three.rows(), op), Ok(Executed(())));
    assert_eq!(w.register(&three.rows(), op), Ok(Replayed(())));
}

pub(crate) fn creating_with_shards_is_one_step_that_can_be_repeated<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    let (manifest, op) = (Manifest::of(0..3), w.op());
    assert_eq!(w.create_with_shards(&manifest.rows(), op, true), Ok(Executed(())));
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), Ok(Replayed(())));
    w.reopen();
    w.tick(99);
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), Ok(Replayed(())));
    w.bring_to(RunStatus::Cancelled);
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), Ok(Replayed(())));
}

/// Whoever created the run may have died before it had shards.
pub(crate) fn creating_with_shards_finishes_what_was_half_done<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    w.reopen();
    let (manifest, op) = (Manifest::of(0..3), w.op());
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), Ok(Executed(())));
    assert_eq!(w.get_run().unwrap().status, RunStatus::Active);
}

pub(crate) fn creating_with_shards_under_another_configuration_is_refused<H: Harness>() {
    let w = &mut created::<H>(&Limits::default());
    let (manifest, op) = (Manifest::of(0..3), w.op());
    w.config.max_shard_retries += 1;
    let refused = Err(CreateRunError::ConfigMismatch { run: w.run });
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), refused);
    w.config.lease_duration = 0;
    let refused = Err(CreateRunError::InvalidConfig(RunConfigError::ZeroLeaseDuration));
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), refused);
}

pub(crate) fn creating_with_a_faulty_manifest_leaves_a_run_that_can_be_mended<H: Harness>() {
    let w = &mut World::<H>::open(&Limits::default());
    let op = w.op();
    let fault = RegisterShardsError::ManifestInvalid(ManifestValidationError::Empty);
    let refused = CreateRunError::RegisterShardsFailed(fault);
    assert_eq!(w.create_with_shards(&[], op, true), Err(refused.clone()));
    assert_eq!(w.create_with_shards(&[], op, false), Err(refused));
    let manifest = Manifest::of(0..1);
    assert_eq!(w.create_with_shards(&manifest.rows(), op, false), Ok(Executed(())));
    // Under a new id the run has its shards already.
    let (status, op) = (RunStatus::Active, w.op());
    let refused = RegisterShardsError::WrongStatus { status };
    assert_eq!(
        w.create_with_shards(&manifest.rows(), op, false),
        Err(CreateRunError::RegisterShardsFailed(refused))
    );
}
