//! Sessions whose backend carries requests out and loses the answers.

use gossip_contracts::coordination::{
    CursorSemantics, ShardSpecRef, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::ShardId;
use gossip_coordination::{
    EndError, InMemoryCoordinator, InfraError, LeasedOperationError, ShardStatus, WorkerSession,
};

use crate::conformance::delegate::names::*;
use crate::conformance::delegate::{delegate_traits, impl_method, impl_trait, methods};

const TENANT: TenantId = TenantId::from_bytes([1; 32]);
const RUN: RunId = RunId::from_raw(1);
const WORKER: WorkerId = WorkerId::from_raw(7);
const RANGE: ShardSpecRef<'static> = ShardSpecRef::new(b"a", b"z", b"");

struct Lossy {
    coordinator: InMemoryCoordinator,
    /// Answers to workers' operations that are still to be lost.
    losses: u32,
}

impl Lossy {
    fn lose<T, E: From<InfraError>>(&mut self, answer: Result<T, E>) -> Result<T, E> {
        if self.losses == 0 {
            return answer;
        }
        self.losses -= 1;
        Err(InfraError::transient("test", "the answer was lost").into())
    }
}

macro_rules! lossy {
    ($self:expr, CoordinationBackend, $async:ident, acquire_and_restore_into, $($arg:expr),*) => {
        $self.coordinator.acquire_and_restore_into($($arg),*)
    };
    ($self:expr, CoordinationBackend, $async:ident, $name:ident, $($arg:expr),*) => {{
        let answer = $self.coordinator.$name($($arg),*);
        $self.lose(answer)
    }};
    ($self:expr, $trait:ident, $async:ident, $name:ident, $($arg:expr),*) => {
        $self.coordinator.$name($($arg),*)
    };
}

methods! { delegate_traits { [] Lossy, lossy } }

fn at(time: u64) -> LogicalTime {
    LogicalTime::from_raw(time)
}

fn op(id: u64) -> OpId {
    OpId::from_raw(id)
}

fn backend(losses: u32) -> Lossy {
    let mut coordinator = InMemoryCoordinator::default();
    let config = RunConfig {
        cursor_semantics: CursorSemantics::Completed,
        lease_duration: 1_000,
        max_shard_retries: 5,
    };
    let shards = [InitialShardInput::new(ShardId::from_raw(0), RANGE, CursorUpdate::initial())];
    coordinator.create_run_with_shards(at(1), TENANT, RUN, config, &shards, op(1)).unwrap();
    Lossy { coordinator, losses }
}

fn session(backend: &mut Lossy) -> WorkerSession<'_, Lossy> {
    WorkerSession::claim(backend, at(10), TENANT, RUN, WORKER).unwrap()
}

fn status(backend: &Lossy) -> ShardStatus {
    let mut shards = Vec::new();
    backend.list_shards_into(at(10), TENANT, RUN, ShardFilter::all(), &mut shards).unwrap();
    shards[0].status
}

/// The answer to the first try is lost; the session that comes back learns it from the second.
#[track_caller]
fn assert_settled<T>(
    ends: ShardStatus,
    end: impl for<'b> Fn(
        WorkerSession<'b, Lossy>,
    ) -> Result<T, (bool, Option<Box<WorkerSession<'b, Lossy>>>)>,
) {
    let mut backend = backend(1);
    let Err((is_retryable, Some(again))) = end(session(&mut backend)) else {
        panic!("the answer was lost and the session did not come back");
    };
    assert!(is_retryable);
    assert!(end(*again).is_ok(), "the retry is answered");
    assert_eq!(status(&backend), ends);
}

fn unended<S, E: LeasedOperationError>(error: EndError<S, E>) -> (bool, Option<Box<S>>) {
    (error.error.is_retryable(), error.session)
}

#[test]
fn an_end_whose_answer_was_lost_is_settled_by_the_session_that_comes_back() {
    assert_settled(ShardStatus::Done, |session| {
        session.complete(at(11), CursorUpdate::at(b"y"), op(2)).map_err(unended)
    });
    assert_settled(ShardStatus::Parked, |session| {
        session.park(at(11), ParkReason::NotFound, op(2)).map_err(unended)
    });
    assert_settled(ShardStatus::Split, |session| {
        let plan = plan_split_replace_at_points(RANGE, &[b"m"]).unwrap();
        session.split_replace(at(11), &plan, op(2)).map_err(unended)
    });
}

/// A release has no operation id: done, it is refused the second time, and either way the lease is
/// over.
#[test]
fn a_release_whose_answer_was_lost_is_over_when_it_is_sent_again() {
    let mut backend = backend(1);
    let lost = session(&mut backend).release(at(11)).unwrap_err();
    let again = lost.session.expect("nobody knows").release(at(12)).unwrap_err();
    assert!(again.error.lease_is_over() && again.session.is_none(), "{again}");
    assert_eq!(session(&mut backend).worker(), WORKER);
}

#[test]
fn a_session_whose_lease_is_over_does_not_come_back() {
    let mut backend = backend(0);
    let late = at(10 + 1_000);
    let refused = session(&mut backend).complete(late, CursorUpdate::at(b"y"), op(2)).unwrap_err();
    assert!(matches!(refused.error, CompleteError::LeaseExpired { .. }), "{refused}");
    assert!(refused.session.is_none() && !refused.error.is_retryable());
}

#[test]
fn a_session_that_asked_for_the_impossible_comes_back() {
    let mut backend = backend(0);
    let beyond = CursorUpdate::at(b"zz");
    let refused = session(&mut backend).complete(at(11), beyond, op(2)).unwrap_err();
    assert!(matches!(refused.error, CompleteError::CursorOutOfBounds(_)), "{refused}");
    let again = refused.session.expect("the shard is still held");
    again.complete(at(12), CursorUpdate::at(b"y"), op(3)).unwrap();
    assert_eq!(status(&backend), ShardStatus::Done);
}

#[test]
fn a_split_whose_answer_was_lost_narrows_the_session_when_it_is_settled() {
    let mut backend = backend(1);
    let mut session = session(&mut backend);
    let plan = plan_split_residual_at_point(RANGE, b"m").unwrap();
    assert!(session.split_residual(at(11), &plan, op(2)).unwrap_err().is_retryable());
    assert_eq!(session.spec(), RANGE);
    assert!(session.split_residual(at(12), &plan, op(2)).unwrap().is_replay());
    assert_eq!(session.spec().end(), b"m");
}
