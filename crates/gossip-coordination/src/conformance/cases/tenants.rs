//! Tenants: what belongs to one is not there for another.

use super::prelude::*;
use crate::conformance::attempt::Payload;
use crate::conformance::world::Manifest;
use crate::error::{
    AcquireError, ClaimError, GetRunError, RegisterShardsError, RunTransitionError, UnparkError,
};
use crate::run::ShardFilter;

/// Tenants 1 and 2 with the same run and the same shards.
fn twins<H: Harness>() -> World<H> {
    let mut w = World::<H>::open(&Limits::default());
    for number in [2, 1] {
        w.tenant = tenant(number);
        w.begin(3);
    }
    w
}

pub(crate) fn the_same_ids_name_other_things_in_another_tenant<H: Harness>() {
    let w = &mut twins::<H>();
    let (lease, op) = (w.lease(1, 0), w.op());
    w.attempt(Operation::Checkpoint, &lease, op, Payload::Usual).unwrap();
    w.parked(1);
    let done = w.lease(1, 2);
    w.attempt_new(Operation::Complete, &done).unwrap();

    // The audit has seen that none of this touched the other's records.
    w.tenant = tenant(2);
    assert_eq!(w.progress().unwrap().active, 3);
    let theirs = w.acquire(1, id(0)).unwrap();
    assert_eq!(theirs.lease.fence(), FenceEpoch::INITIAL.next());
    assert!(theirs.state.cursor.as_update().is_initial());
    // The same operation id is theirs to use.
    let outcome = w.attempt(Operation::Checkpoint, &theirs.lease, op, Payload::Usual);
    assert_eq!(outcome, Ok(Executed(())));
    let op = w.op();
    let status = ShardStatus::Active;
    assert_eq!(w.unpark(id(1), op), Err(UnparkError::NotParked { status }));
}

pub(crate) fn nothing_of_another_tenant_is_found<H: Harness>() {
    let w = &mut World::<H>::new(1);
    w.parked(0);
    w.tenant = tenant(2);
    let (op, manifest) = (w.op(), Manifest::of(0..1));
    assert_eq!(w.get_run(), Err(GetRunError::RunNotFound));
    assert_eq!(w.progress(), Err(GetRunError::RunNotFound));
    assert_eq!(w.list(ShardFilter::all()), Err(GetRunError::RunNotFound));
    assert_eq!(w.candidates(1), Err(GetRunError::RunNotFound));
    assert_eq!(w.claim(1), Err(ClaimError::RunNotFound));
    let shard = w.key(id(0));
    assert_eq!(w.acquire(1, id(0)), Err(AcquireError::ShardNotFound { shard }));
    assert_eq!(w.unpark(id(0), op), Err(UnparkError::ShardNotFound));
    assert_eq!(w.register(&manifest.rows(), op), Err(RegisterShardsError::RunNotFound));
    assert_eq!(w.complete_run(op), Err(RunTransitionError::RunNotFound));
    assert_eq!(w.fail_run(op), Err(RunTransitionError::RunNotFound));
    assert_eq!(w.cancel_run(op), Err(RunTransitionError::RunNotFound));
}

pub(crate) fn claims_stay_with_their_tenant_and_run<H: Harness>() {
    let w = &mut twins::<H>();
    w.run = gossip_contracts::identity::RunId::from_raw(2);
    w.begin(2);
    for shard in [0, 1] {
        let claimed = w.claim(1).unwrap().lease;
        assert_eq!((claimed.tenant(), claimed.run()), (w.tenant, w.run), "shard {shard}");
    }
    assert!(w.claim(1).is_err());
    // The first run's three shards are all still there, and so are the other tenant's.
    w.run = gossip_contracts::identity::RunId::from_raw(1);
    for number in [1, 2] {
        w.tenant = tenant(number);
        assert_eq!(w.list(ShardFilter::available()).unwrap().len(), 3);
    }
}

pub(crate) fn ending_a_run_ends_no_other<H: Harness>() {
    let w = &mut twins::<H>();
    w.bring_to(RunStatus::Cancelled);
    w.tenant = tenant(2);
    assert_eq!(w.get_run().unwrap().status, RunStatus::Active);
    assert!(w.claim(1).is_ok());
}

pub(crate) fn splits_in_two_tenants_do_not_meet<H: Harness>() {
    let w = &mut twins::<H>();
    let op = w.op();
    // The same operation in both derives the same ids, which is no collision.
    for number in [1, 2] {
        w.tenant = tenant(number);
        let (replaced, shrunk) = (w.lease(1, 0), w.lease(1, 1));
        for (operation, lease) in
            [(Operation::SplitReplace, replaced), (Operation::SplitResidual, shrunk)]
        {
            let outcome = w.attempt(operation, &lease, op, Payload::Usual);
            assert_eq!(outcome, Ok(Executed(())));
        }
        assert_eq!(w.progress().unwrap().total(), 6);
    }
}
