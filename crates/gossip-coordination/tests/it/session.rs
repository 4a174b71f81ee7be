//! Sessions: what they remember, and that a finished one cannot be used.

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, plan_split_replace_at_points,
    plan_split_residual_at_point,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireError, AcquireScratch, CheckpointError, ClaimError, CoordinationBackend,
    InMemoryCoordinator, ParkReason, RunConfig, RunManagement, ShardStatus, WorkerSession,
};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const SHARD: ShardKey = ShardKey::new(RUN, ShardId::from_raw(0));
const WORKER: WorkerId = WorkerId::from_raw(7);
const DURATION: u64 = 1_000;

fn at(time: u64) -> LogicalTime {
    LogicalTime::from_raw(time)
}

fn op(id: u64) -> OpId {
    OpId::from_raw(id)
}

fn coordinator() -> InMemoryCoordinator {
    let mut coordinator = InMemoryCoordinator::default();
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: DURATION,
        max_shard_retries: 5,
    };
    let range = ShardSpecRef::new(b"a", b"z", b"meta");
    let shards = [InitialShardInput::new(SHARD.shard, range, CursorUpdate::initial())];
    coordinator.create_run_with_shards(at(1), TENANT, RUN, config, &shards, op(1)).unwrap();
    coordinator
}

fn session(coordinator: &mut InMemoryCoordinator) -> WorkerSession<'_, InMemoryCoordinator> {
    WorkerSession::new(coordinator, at(10), TENANT, SHARD, WORKER).unwrap()
}

fn status(coordinator: &InMemoryCoordinator) -> ShardStatus {
    let mut shards = Vec::new();
    let all = gossip_coordination::ShardFilter::all();
    coordinator.list_shards_into(at(10), TENANT, RUN, all, &mut shards).unwrap();
    shards[0].status
}

#[test]
fn a_session_knows_what_it_holds() {
    let mut coordinator = coordinator();
    let session = session(&mut coordinator);
    assert_eq!((session.tenant(), session.worker(), session.shard_key()), (TENANT, WORKER, SHARD));
    assert_eq!(session.spec(), ShardSpecRef::new(b"a", b"z", b"meta"));
    assert!(session.cursor().is_initial());
    assert_eq!(session.lease().deadline(), at(10 + DURATION));
    assert_eq!(session.capacity().available_count, 0);
    assert_eq!(session.initial_snapshot().status, ShardStatus::Active);
}

#[test]
fn a_renewal_moves_the_sessions_deadline() {
    let mut coordinator = coordinator();
    let mut session = session(&mut coordinator);
    let renewed = session.renew(at(500)).unwrap();
    assert_eq!((renewed.new_deadline, session.lease().deadline()), (at(1_500), at(1_500)));
    // The clock steps back: the deadline stays.
    session.renew(at(100)).unwrap();
    assert_eq!(session.lease().deadline(), at(1_500));
}

#[test]
fn a_checkpoint_is_seen_by_the_next_session_and_not_by_this_one() {
    let mut coordinator = coordinator();
    let mut first = session(&mut coordinator);
    assert!(first.checkpoint(at(11), CursorUpdate::at(b"m"), op(2)).unwrap().is_executed());
    assert!(first.cursor().is_initial());
    first.release(at(12)).unwrap();
    let next = WorkerSession::claim(&mut coordinator, at(13), TENANT, RUN, WORKER).unwrap();
    assert_eq!(next.cursor(), CursorUpdate::at(b"m"));
}

#[test]
fn a_residual_split_narrows_the_session_once() {
    let mut coordinator = coordinator();
    let mut session = session(&mut coordinator);
    let range = ShardSpecRef::new(b"a", b"z", b"meta");
    let first = plan_split_residual_at_point(range, b"p").unwrap();
    let residual = session.split_residual(at(11), &first, op(2)).unwrap().into_inner().residual;
    let narrowed = ShardSpecRef::new(b"a", b"p", b"meta");
    assert_eq!(session.spec(), narrowed);
    assert_eq!(session.initial_snapshot().spawned, [residual]);

    let second = plan_split_residual_at_point(narrowed, b"h").unwrap();
    session.split_residual(at(12), &second, op(3)).unwrap();
    // A late retry of the first split must not widen the range again.
    assert!(session.split_residual(at(13), &first, op(2)).unwrap().is_replay());
    assert_eq!(session.spec(), ShardSpecRef::new(b"a", b"h", b"meta"));
    assert_eq!(session.initial_snapshot().spawned.len(), 2);
}

/// The answer to the first split was lost, that to the second came, then the first is retried.
#[test]
fn a_replayed_split_that_was_overtaken_does_not_widen_the_session() {
    let mut coordinator = coordinator();
    let range = ShardSpecRef::new(b"a", b"z", b"meta");
    let first = plan_split_residual_at_point(range, b"p").unwrap();
    let lease = *session(&mut coordinator).lease();
    coordinator.split_residual(at(11), TENANT, &lease, &first, op(2)).unwrap();
    let mut session = session(&mut coordinator);
    let kept = ShardSpecRef::new(b"a", b"p", b"meta");
    let second = plan_split_residual_at_point(kept, b"h").unwrap();
    session.split_residual(at(12), &second, op(3)).unwrap();
    assert!(session.split_residual(at(13), &first, op(2)).unwrap().is_replay());
    assert_eq!(session.spec().end(), b"h");
    assert_eq!(session.initial_snapshot().spawned.len(), 2);
}

/// The shard has forgotten the plan and takes the other one for it; what it stores stays as it was.
#[test]
fn a_forgotten_split_answered_again_leaves_the_session_what_its_shard_has() {
    let mut coordinator = coordinator();
    let mut session = session(&mut coordinator);
    let range = ShardSpecRef::new(b"a", b"z", b"meta");
    let plan = plan_split_residual_at_point(range, b"p").unwrap();
    session.split_residual(at(11), &plan, op(2)).unwrap();
    for id in 3..=18 {
        session.checkpoint(at(12), CursorUpdate::at(b"b"), op(id)).unwrap();
    }
    let other = ShardSpecRef::new(b"a", b"z", b"other");
    let other = plan_split_residual_at_point(other, b"p").unwrap();
    assert!(session.split_residual(at(13), &other, op(2)).unwrap().is_replay());
    assert_eq!(session.spec(), ShardSpecRef::new(b"a", b"p", b"meta"));
}

#[test]
fn each_end_of_a_session_ends_the_shard_its_way() {
    let mut done = coordinator();
    session(&mut done).complete(at(11), CursorUpdate::at(b"y"), op(2)).unwrap();
    assert_eq!(status(&done), ShardStatus::Done);

    let mut parked = coordinator();
    session(&mut parked).park(at(11), ParkReason::NotFound, op(2)).unwrap();
    assert_eq!(status(&parked), ShardStatus::Parked);

    let mut split = coordinator();
    let range = ShardSpecRef::new(b"a", b"z", b"meta");
    let plan = plan_split_replace_at_points(range, &[b"m"]).unwrap();
    let children = session(&mut split).split_replace(at(11), &plan, op(2)).unwrap().into_inner();
    assert_eq!((status(&split), children.children.len()), (ShardStatus::Split, 2));

    let mut released = coordinator();
    session(&mut released).release(at(11)).unwrap();
    assert_eq!(status(&released), ShardStatus::Active);
}

#[test]
fn a_session_can_take_over_what_was_acquired() {
    let mut coordinator = coordinator();
    let mut scratch = Box::new(AcquireScratch::new());
    let acquired =
        coordinator.acquire_and_restore_into(at(10), TENANT, SHARD, WORKER, &mut scratch).unwrap();
    let restored = acquired.to_restored_state();
    let session = WorkerSession::from_acquire_result(&mut coordinator, &acquired);
    assert_eq!(session.initial_snapshot(), acquired.snapshot);
    assert_eq!((session.lease(), session.spec()), (&acquired.lease, restored.spec.as_ref()));
}

#[test]
fn a_zombie_session_is_fenced_off() {
    let mut coordinator = coordinator();
    let zombie = *session(&mut coordinator).lease();
    let other = WorkerId::from_raw(8);
    let late = at(10 + DURATION);
    let heir = WorkerSession::claim(&mut coordinator, late, TENANT, RUN, other).unwrap();
    let current = heir.lease().fence();
    let refused = coordinator.checkpoint(late, TENANT, &zombie, CursorUpdate::at(b"m"), op(2));
    let presented = zombie.fence();
    assert_eq!(refused, Err(CheckpointError::StaleFence { presented, current }));
}

#[test]
fn a_held_shard_is_neither_acquired_nor_claimed_by_others() {
    let mut coordinator = coordinator();
    session(&mut coordinator);
    let other = WorkerId::from_raw(8);
    let refused = WorkerSession::new(&mut coordinator, at(11), TENANT, SHARD, other).err();
    let deadline = at(10 + DURATION);
    assert_eq!(
        refused,
        Some(AcquireError::AlreadyLeased { current_owner: WORKER, lease_deadline: deadline })
    );
    let nothing = WorkerSession::claim(&mut coordinator, at(11), TENANT, RUN, other).err();
    let earliest_deadline = Some(deadline);
    assert_eq!(nothing, Some(ClaimError::NoneAvailable { earliest_deadline }));
}

/// Using a session after the operation that ends it does not compile.
#[test]
fn a_finished_session_cannot_be_used() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
