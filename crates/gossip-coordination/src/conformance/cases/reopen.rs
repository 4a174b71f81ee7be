//! Restarts: every call of these cases is followed by one, and nothing may be missing after it.

use super::prelude::*;
use crate::conformance::attempt::Payload;
use crate::conformance::world::Manifest;
use crate::run::ShardFilter;

/// A world that restarts after every call.
fn restless<H: Harness>() -> World<H> {
    let mut w = World::<H>::open(&Limits::default());
    w.reopening = true;
    w
}

pub(crate) fn a_run_survives_a_restart_after_every_operation<H: Harness>() {
    let w = &mut restless::<H>();
    let (manifest, op) = (Manifest::of(0..4), w.op());
    w.create_run().unwrap();
    w.register(&manifest.rows(), op).unwrap();
    // One shard of every fate.
    let lease = w.lease(1, 0);
    w.attempt_new(Operation::Renew, &lease).unwrap();
    w.attempt_new(Operation::Checkpoint, &lease).unwrap();
    w.attempt_new(Operation::SplitResidual, &lease).unwrap();
    w.attempt_new(Operation::Release, &lease).unwrap();
    let lease = w.lease(1, 1);
    w.attempt_new(Operation::SplitReplace, &lease).unwrap();
    w.parked(2);
    let op = w.op();
    w.unpark(id(2), op).unwrap();
    let lease = w.lease(1, 3);
    w.expire(&lease);
    // And then whatever is left.
    while let Ok(acquired) = w.claim(2) {
        let (op, spec) = (w.op(), acquired.state.spec);
        let cursor = acquired.state.cursor.as_update();
        let last = cursor.last_key().unwrap_or(spec.as_ref().start());
        w.complete(&acquired.lease, CursorUpdate::at(last), op).unwrap();
    }
    let op = w.op();
    w.complete_run(op).unwrap();
    assert_eq!(w.progress().unwrap().total(), 7);
    assert_eq!(w.list(ShardFilter::all()).unwrap().len(), 7);
}

pub(crate) fn retries_are_answered_across_restarts<H: Harness>() {
    for &operation in Operation::LOGGED {
        let w = &mut restless::<H>();
        w.begin(1);
        let (lease, op) = (w.lease(1, 0), w.op());
        let first = w.attempt(operation, &lease, op, Payload::Usual);
        assert_eq!(first, Ok(Executed(())));
        assert_eq!(w.attempt(operation, &lease, op, Payload::Usual), Ok(Replayed(())));
        assert!(w.attempt(operation, &lease, op, Payload::Other).is_err());
    }
}

pub(crate) fn zombies_stay_out_across_restarts<H: Harness>() {
    let w = &mut restless::<H>();
    w.begin(1);
    let zombie = w.lease(1, 0);
    w.expire(&zombie);
    let holder = w.lease(2, 0);
    for &operation in Operation::LEASED {
        assert!(w.attempt_new(operation, &zombie).is_err());
    }
    w.attempt_new(Operation::Complete, &holder).unwrap();
}

/// A restart in the middle of everything: many shards, each in another state.
pub(crate) fn a_busy_backend_is_the_same_after_a_restart<H: Harness>() {
    let w = &mut World::<H>::new(40);
    for number in [2, 1] {
        w.tenant = tenant(number);
        if number == 2 {
            w.begin(40);
        }
        for (shard, &operation) in (0..36).zip(Operation::LEASED.iter().cycle()) {
            let lease = w.lease(shard % 5, shard);
            w.attempt_new(operation, &lease).unwrap();
        }
        w.reopen();
        w.tick(LEASE / 3);
        for shard in 36..40 {
            w.lease(7, shard);
            w.reopen();
        }
    }
    // Claims go on with what is free, and only that.
    let free = w.list(ShardFilter::available()).unwrap().len();
    w.audited = false;
    for _ in 0..free {
        assert!(w.claim(8).is_ok());
    }
    assert!(w.claim(8).is_err());
}
