//! What every operation that presents a lease must refuse, and in which order.

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{FenceEpoch, ShardKey, TenantId};

use crate::conformance::attempt::{Payload, fingerprint};
use crate::conformance::harness::Harness;
use crate::conformance::matrix::Operation;
use crate::conformance::world::{World, id, tenant, within, worker};
use crate::error::{CoordError, IdempotentOutcome};
use crate::lease::Lease;
use crate::run::RunStatus;
use crate::status::{ParkReason, ShardStatus};

/// A lease that no coordinator granted.
fn forged<H: Harness>(w: &World<H>, of: TenantId, shard: u64, by: u64, fence: u64) -> Lease {
    let deadline = w.now.checked_add(1_000).expect("cases end before time does");
    let key = ShardKey::new(w.run, id(shard));
    Lease::new(of, key, worker(by), FenceEpoch::from_raw(fence), deadline)
}

pub(crate) fn unknown_shard<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = forged(w, w.tenant, 9, 1, 1);
    let refused = Err(CoordError::ShardNotFound { shard: w.key(id(9)) });
    assert_eq!(w.attempt_new(operation, &lease), refused);
}

pub(crate) fn foreign_lease<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    // The other tenant has a shard under the same ids, and the lease is refused all the same.
    w.tenant = tenant(2);
    w.begin(1);
    w.lease(1, 0);
    let refused = Err(CoordError::TenantMismatch { expected: tenant(2) });
    assert_eq!(w.attempt_new(operation, &lease), refused);
}

pub(crate) fn stale_fence<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let zombie = w.lease(1, 0);
    w.expire(&zombie);
    let holder = w.lease(2, 0);
    let refused =
        Err(CoordError::StaleFence { presented: zombie.fence(), current: holder.fence() });
    assert_eq!(w.attempt_new(operation, &zombie), refused);
    assert!(w.attempt_new(operation, &holder).is_ok());
}

pub(crate) fn own_older_lease<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let older = w.lease(1, 0);
    let newer = w.lease(1, 0);
    let refused = Err(CoordError::StaleFence { presented: older.fence(), current: newer.fence() });
    assert_eq!(w.attempt_new(operation, &older), refused);
}

pub(crate) fn after_release<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.release(&lease).unwrap();
    let refused = Err(CoordError::StaleFence { presented: lease.fence(), current: lease.fence() });
    assert_eq!(w.attempt_new(operation, &lease), refused);
}

pub(crate) fn after_unpark<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let (park, unpark) = (w.op(), w.op());
    w.park(&lease, ParkReason::Other, park).unwrap();
    w.unpark(id(0), unpark).unwrap();
    let refused =
        Err(CoordError::StaleFence { presented: lease.fence(), current: lease.fence().next() });
    assert_eq!(w.attempt_new(operation, &lease), refused);
}

pub(crate) fn another_owner<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    let stolen = forged(w, w.tenant, 0, 2, lease.fence().as_raw());
    let refused = Err(CoordError::StaleFence { presented: lease.fence(), current: lease.fence() });
    assert_eq!(w.attempt_new(operation, &stolen), refused);
}

pub(crate) fn expired<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.now = lease.deadline();
    let refused = Err(CoordError::LeaseExpired { deadline: lease.deadline(), now: w.now });
    assert_eq!(w.attempt_new(operation, &lease), refused);
}

pub(crate) fn last_moment<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let lease = w.lease(1, 0);
    w.tick(crate::conformance::world::LEASE - 1);
    assert_eq!(w.attempt_new(operation, &lease), Ok(IdempotentOutcome::Executed(())));
}

pub(crate) fn terminal<H: Harness>(operation: Operation) {
    for (end, status) in [
        (Operation::Complete, ShardStatus::Done),
        (Operation::Park, ShardStatus::Parked),
        (Operation::SplitReplace, ShardStatus::Split),
    ] {
        let w = &mut World::<H>::new(1);
        let lease = w.lease(1, 0);
        w.attempt_new(end, &lease).unwrap();
        let refused = Err(CoordError::ShardTerminal { shard: w.key(id(0)), status });
        assert_eq!(w.attempt_new(operation, &lease), refused);
    }
}

pub(crate) fn run_over<H: Harness>(operation: Operation) {
    for status in [RunStatus::Done, RunStatus::Failed, RunStatus::Cancelled] {
        let w = &mut World::<H>::new(1);
        let lease = w.lease(1, 0);
        if status == RunStatus::Done {
            let op = w.op();
            w.complete(&lease, CursorUpdate::at(&within(0, "z")), op).unwrap();
        }
        w.bring_to(status);
        let refused = Err(CoordError::RunNotActive { run: w.run, status });
        assert_eq!(w.attempt_new(operation, &lease), refused);
    }
}

pub(crate) fn reused_op_id<H: Harness>(operation: Operation) {
    // Reused by the same operation with other parameters, and by every other operation.
    for &first in Operation::LOGGED {
        let w = &mut World::<H>::new(1);
        let (lease, op) = (w.lease(1, 0), w.op());
        w.attempt(first, &lease, op, Payload::Usual).unwrap();
        let conflict = CoordError::OpIdConflict {
            op_id: op,
            expected_hash: fingerprint(first, 0, Payload::Usual),
            actual_hash: fingerprint(operation, 0, Payload::Other),
        };
        assert_eq!(w.attempt(operation, &lease, op, Payload::Other), Err(conflict));
    }
}

pub(crate) fn replay<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    assert_eq!(
        w.attempt(operation, &lease, op, Payload::Usual),
        Ok(IdempotentOutcome::Executed(()))
    );
    // At once, after the lease ran out, after a restart, and after the run ended.
    assert_replays(w, operation, &lease, op);
    w.expire(&lease);
    assert_replays(w, operation, &lease, op);
    w.reopen();
    assert_replays(w, operation, &lease, op);
    w.bring_to(RunStatus::Cancelled);
    assert_replays(w, operation, &lease, op);
}

pub(crate) fn replay_by_a_zombie<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    w.attempt(operation, &lease, op, Payload::Usual).unwrap();
    w.expire(&lease);
    // Where the operation has not ended the shard, somebody else has it by now.
    let taken = w.acquire(2, id(0));
    assert_replays(w, operation, &lease, op);
    if let Ok(taken) = taken {
        w.attempt_new(Operation::Park, &taken.lease).unwrap();
        assert_replays(w, operation, &lease, op);
    }
}

pub(crate) fn no_replay_across_tenants<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    w.attempt(operation, &lease, op, Payload::Usual).unwrap();
    w.tenant = tenant(2);
    let refused = Err(CoordError::TenantMismatch { expected: tenant(2) });
    assert_eq!(w.attempt(operation, &lease, op, Payload::Usual), refused);
}

/// Each request is wrong in several ways; the answer names the first in the documented order.
pub(crate) fn order_of_checks<H: Harness>(operation: Operation) {
    let w = &mut World::<H>::new(1);
    let old = w.lease(1, 0);
    let current = w.lease(1, 0);
    let stolen = forged(w, w.tenant, 0, 2, current.fence().as_raw());

    // Owner and expiry: expiry.
    w.now = current.deadline();
    let expired = Err(CoordError::LeaseExpired { deadline: current.deadline(), now: w.now });
    assert_eq!(w.attempt_new(operation, &stolen), expired);
    // Fence and expiry: fence.
    let stale = CoordError::StaleFence { presented: old.fence(), current: current.fence() };
    assert_eq!(w.attempt_new(operation, &old), Err(stale));
    // Terminal, fence and expiry: terminal.
    w.expire(&current);
    let last = w.lease(1, 0);
    w.attempt_new(Operation::Park, &last).unwrap();
    let shard = w.key(id(0));
    let terminal = Err(CoordError::ShardTerminal { shard, status: ShardStatus::Parked });
    assert_eq!(w.attempt_new(operation, &old), terminal);
    // Run over, terminal, fence and expiry: run.
    w.bring_to(RunStatus::Failed);
    let over = Err(CoordError::RunNotActive { run: w.run, status: RunStatus::Failed });
    assert_eq!(w.attempt_new(operation, &old), over);
    // And a foreign tenant before everything.
    w.tenant = tenant(2);
    let foreign = Err(CoordError::TenantMismatch { expected: tenant(2) });
    assert_eq!(w.attempt_new(operation, &old), foreign);
}

#[track_caller]
fn assert_replays<H: Harness>(
    w: &mut World<H>,
    operation: Operation,
    lease: &Lease,
    op: gossip_contracts::identity::OpId,
) {
    let again = w.attempt(operation, lease, op, Payload::Usual);
    assert_eq!(again, Ok(IdempotentOutcome::Replayed(())));
}
