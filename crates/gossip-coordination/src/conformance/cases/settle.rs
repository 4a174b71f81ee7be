//! Ending work on a shard: done, parked, or released.

use super::prelude::*;

pub(crate) fn a_completed_shard_is_done_at_its_last_cursor<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op, key) = (w.lease(1, 0), w.op(), within(0, "z"));
    let cursor = CursorUpdate::new(Some(&key), Some(b"token"));
    assert_eq!(w.complete(&lease, cursor, op), Ok(Executed(())));
    let record = w.shard(id(0));
    assert_eq!((record.state.status, record.state.lease), (ShardStatus::Done, None));
    assert_eq!(record.cursor.as_update(), cursor);
    assert_eq!(record.state.fence, lease.fence());
}

/// A worker that finds its shard empty completes at the shard's start.
pub(crate) fn an_empty_shard_is_completed_at_its_start<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, op) = (w.lease(1, 0), w.op());
    assert_eq!(w.complete(&lease, CursorUpdate::at(&start(0)), op), Ok(Executed(())));
}

pub(crate) fn a_parked_shard_keeps_its_reason_and_its_cursor<H: Harness>() {
    for reason in [
        ParkReason::PermissionDenied,
        ParkReason::NotFound,
        ParkReason::Poisoned,
        ParkReason::TooManyErrors,
        ParkReason::Other,
    ] {
        let w = &mut World::<H>::new(1);
        let (lease, key) = (w.lease(1, 0), within(0, "c"));
        let (checkpoint, park) = (w.op(), w.op());
        w.checkpoint(&lease, CursorUpdate::at(&key), checkpoint).unwrap();
        assert_eq!(w.park(&lease, reason, park), Ok(Executed(())));
        w.reopen();
        let record = w.shard(id(0));
        assert_eq!(
            (record.state.status, record.state.park_reason, record.state.lease),
            (ShardStatus::Parked, Some(reason), None)
        );
        assert_eq!(record.cursor.as_update(), CursorUpdate::at(&key));
    }
}

pub(crate) fn a_released_shard_keeps_fence_and_cursor<H: Harness>() {
    let w = &mut World::<H>::new(1);
    let (lease, key, op) = (w.lease(1, 0), within(0, "c"), w.op());
    w.checkpoint(&lease, CursorUpdate::at(&key), op).unwrap();
    w.release(&lease).unwrap();
    let record = w.shard(id(0));
    assert_eq!((record.state.status, record.state.lease), (ShardStatus::Active, None));
    assert_eq!(record.state.fence, lease.fence());
    assert_eq!(record.cursor.as_update(), CursorUpdate::at(&key));
}

pub(crate) fn operations_on_one_shard_leave_its_neighbours_alone<H: Harness>() {
    let w = &mut World::<H>::new(3);
    let neighbours = [w.shard(id(0)), w.shard(id(2))];
    for &operation in Operation::LEASED {
        // Whether it still can be carried out or not: the audit looks at the other records.
        let Ok(acquired) = w.acquire(1, id(1)) else { break };
        let _ = w.attempt_new(operation, &acquired.lease);
    }
    assert_eq!([w.shard(id(0)), w.shard(id(2))], neighbours);
}
