//! Sessions of async workers, and what a dropped future leaves behind.

use std::future::{Future, pending};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gossip_contracts::coordination::{
    CursorSemantics, CursorUpdate, InitialShardInput, ShardSpecRef, plan_split_residual_at_point,
};
use gossip_contracts::identity::{LogicalTime, OpId, RunId, ShardId, ShardKey, TenantId, WorkerId};
use gossip_coordination::{
    AcquireScratch, AsyncRunManagement, AsyncShardClaiming, AsyncWorkerSession, CompleteError,
    EndError, Immediate, InMemoryCoordinator, ParkReason, RunConfig, ShardFilter, ShardStatus,
};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const ADA: WorkerId = WorkerId::from_raw(1);
const BOB: WorkerId = WorkerId::from_raw(2);

type Backend = Immediate<InMemoryCoordinator>;

/// [`Immediate`] answers at once; anything else would wait for ever.
pub(crate) fn at_once<T>(answer: impl Future<Output = T>) -> T {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => panic!("an immediate backend made its caller wait"),
    }
}

fn at(time: u64) -> LogicalTime {
    LogicalTime::from_raw(time)
}

fn op(id: u64) -> OpId {
    OpId::from_raw(id)
}

fn backend() -> Backend {
    let mut backend = Immediate(InMemoryCoordinator::default());
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 1_000,
        max_shard_retries: 5,
    };
    let range = ShardSpecRef::new(b"a", b"z", b"");
    let shards = [InitialShardInput::new(ShardId::from_raw(0), range, CursorUpdate::initial())];
    at_once(backend.create_run_with_shards(at(1), TENANT, RUN, config, &shards, op(1))).unwrap();
    backend
}

fn statuses(backend: &Backend) -> Vec<ShardStatus> {
    let mut shards = Vec::new();
    at_once(backend.list_shards_into(at(1), TENANT, RUN, ShardFilter::all(), &mut shards)).unwrap();
    shards.iter().map(|shard| shard.status).collect()
}

#[test]
fn a_session_works_through_its_shard_and_ends_with_it() {
    let mut backend = backend();
    at_once(async {
        let mut session =
            AsyncWorkerSession::claim(&mut backend, at(10), TENANT, RUN, ADA).await.unwrap();
        assert_eq!((session.spec().end(), session.worker()), (&b"z"[..], ADA));
        session.checkpoint(at(20), CursorUpdate::at(b"b"), op(2)).await.unwrap();
        let renewed = session.renew(at(30)).await.unwrap();
        assert_eq!((renewed.new_deadline, session.lease().deadline()), (at(1_030), at(1_030)));
        for is_replay in [false, true] {
            let moved = session.checkpoint_and_renew(at(40), CursorUpdate::at(b"c"), op(3)).await;
            assert_eq!(moved.unwrap().is_replay(), is_replay);
            assert_eq!(session.lease().deadline(), at(1_040));
        }
        let plan = plan_split_residual_at_point(ShardSpecRef::new(b"a", b"z", b""), b"m").unwrap();
        let residual = session.split_residual(at(50), &plan, op(4)).await.unwrap();
        let residual = residual.into_inner().residual;
        assert_eq!((session.spec().end(), session.capacity().available_count), (&b"m"[..], 0));
        assert_eq!(session.initial_snapshot().spawned, [residual]);

        // Refused for itself: the session comes back, and goes on.
        let refused = session.complete(at(60), CursorUpdate::at(b"n"), op(5)).await;
        let Err(EndError { error: CompleteError::CursorOutOfBounds(_), session }) = refused else {
            panic!("{refused:?}")
        };
        let session = session.expect("the lease is live");
        session.complete(at(70), CursorUpdate::at(b"l"), op(5)).await.unwrap();

        let key = ShardKey::new(RUN, residual);
        let session =
            AsyncWorkerSession::new(&mut backend, at(80), TENANT, key, BOB).await.unwrap();
        session.release(at(90)).await.unwrap();
        let session =
            AsyncWorkerSession::new(&mut backend, at(95), TENANT, key, BOB).await.unwrap();
        session.park(at(99), ParkReason::Other, op(6)).await.unwrap();
    });
    assert_eq!(statuses(&backend), [ShardStatus::Done, ShardStatus::Parked]);
}

/// The claim was carried out, and whoever waited for its answer is gone.
#[test]
fn a_worker_whose_claim_was_dropped_gets_its_shard_back() {
    let mut backend = backend();
    {
        let mut scratch = Box::new(AcquireScratch::new());
        let claim = async {
            backend.claim_next_available(at(10), TENANT, RUN, ADA, &mut scratch).await.unwrap();
            pending::<()>().await;
        };
        let mut claim = pin!(claim);
        let polled = claim.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Pending);
    }
    let mut scratch = Box::new(AcquireScratch::new());
    let others = at_once(backend.claim_next_available(at(20), TENANT, RUN, BOB, &mut scratch));
    assert!(others.is_err(), "the shard is held");
    let own = at_once(backend.reacquire_own(at(20), TENANT, RUN, ADA, &mut scratch)).unwrap();
    let own = own.expect("the shard is hers");
    let session = AsyncWorkerSession::from_acquire_result(&mut backend, &own);
    at_once(session.complete(at(30), CursorUpdate::at(b"y"), op(2))).unwrap();
    assert_eq!(statuses(&backend), [ShardStatus::Done]);
}

/// A future that is never polled asks for nothing.
#[test]
fn a_future_that_is_dropped_before_it_began_leaves_nothing() {
    let mut backend = backend();
    let mut scratch = Box::new(AcquireScratch::new());
    drop(backend.claim_next_available(at(10), TENANT, RUN, ADA, &mut scratch));
    let own = at_once(backend.reacquire_own(at(20), TENANT, RUN, ADA, &mut scratch)).unwrap();
    assert!(own.is_none());
}
