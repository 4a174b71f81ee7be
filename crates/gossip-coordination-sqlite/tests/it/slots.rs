//! A worker's id outlives its process, and so do its shards.

use std::path::Path;

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{FenceEpoch, OpId, WorkerId};
use gossip_coordination::{
    AcquireScratch, CheckpointError, ClaimError, CoordinationBackend, EventCollector, Lease,
    ShardClaiming,
};
use gossip_coordination_sqlite::{SqliteCoordinator, WorkerSlots};
use rusqlite::Connection;

use crate::children::{Running, say, wait_for_parent};
use crate::support::{Place, RUN, TENANT, assert_sound, begin, clock, config, key, shards};

/// The child: takes a slot and a shard, checkpoints once, and waits to be killed.
pub(crate) fn claims_and_waits(database: &Path) {
    let slot = WorkerSlots::open(database.with_extension("workers")).unwrap().take().unwrap();
    let mut coordinator = SqliteCoordinator::open(database, config()).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let claimed =
        coordinator.claim_next_available(clock(), TENANT, RUN, slot.id(), &mut scratch).unwrap();
    let lease = claimed.lease;
    let fifth = key(100 * lease.shard().as_raw() + 5);
    let cursor = CursorUpdate::at(&fifth);
    coordinator.checkpoint(clock(), TENANT, &lease, cursor, OpId::from_raw(1)).unwrap();
    say(&format!("{} {}", slot.id(), lease.fence()));
    wait_for_parent();
}

#[test]
fn whoever_takes_a_dead_workers_slot_gets_its_shards_at_once() {
    let place = Place::new();
    let hour = 3_600_000;
    begin(&mut place.open(), 1, 100, hour);
    let slots = WorkerSlots::open(place.db().with_extension("workers")).unwrap();
    let mut child = Running::start("claims-and-waits", &place.db());
    assert_eq!(child.next().as_deref(), Some("1 2"));

    // While it lives its slot is its own, and so is the shard.
    let other = slots.take().unwrap();
    assert_eq!(other.id(), WorkerId::from_raw(2));
    let mut coordinator = place.open();
    let mut scratch = Box::new(AcquireScratch::new());
    let now = clock();
    assert!(
        coordinator.reacquire_own(now, TENANT, RUN, other.id(), &mut scratch).unwrap().is_none()
    );
    let refused = coordinator.claim_next_available(now, TENANT, RUN, other.id(), &mut scratch);
    assert!(matches!(refused, Err(ClaimError::NoneAvailable { earliest_deadline: Some(_) })));

    child.kill();
    let heir = slots.take().unwrap();
    assert_eq!(heir.id(), WorkerId::from_raw(1));
    let back = coordinator.reacquire_own(now, TENANT, RUN, heir.id(), &mut scratch).unwrap();
    let back = back.expect("the dead worker held one");
    assert_eq!(back.lease.fence().as_raw(), 3);
    assert_eq!(back.snapshot.cursor, CursorUpdate::at(&key(5)));
    let lease = back.lease;

    // What the dead worker might still have in flight is fenced off.
    let zombie =
        Lease::new(TENANT, lease.key(), heir.id(), FenceEpoch::from_raw(2), lease.deadline());
    let six = key(6);
    let cursor = CursorUpdate::at(&six);
    let refused = coordinator.checkpoint(now, TENANT, &zombie, cursor, OpId::from_raw(2));
    assert!(matches!(refused, Err(CheckpointError::StaleFence { .. })));

    coordinator.complete(now, TENANT, &lease, cursor, OpId::from_raw(3)).unwrap();
    assert!(
        coordinator.reacquire_own(now, TENANT, RUN, heir.id(), &mut scratch).unwrap().is_none()
    );
    assert_sound(&coordinator);
}

#[test]
fn what_dead_workers_hold_is_given_back_without_taking_their_place() {
    let place = Place::new();
    let hour = 3_600_000;
    begin(&mut place.open(), 3, 100, hour);
    let slots = WorkerSlots::open(place.db().with_extension("workers")).unwrap();
    let mut children: Vec<_> =
        (0..3).map(|_| Running::start("claims-and-waits", &place.db())).collect();
    children.iter_mut().for_each(|child| assert!(child.next().is_some()));
    let mut coordinator = place.open();
    let mut scratch = Box::new(AcquireScratch::new());
    let now = clock();
    let nothing = coordinator.release_dead(now, TENANT, RUN, &slots).unwrap();
    assert_eq!(nothing, 0, "all of them live");

    children[0].kill();
    children[2].kill();
    let released = coordinator.release_dead(now, TENANT, RUN, &slots).unwrap();
    assert_eq!(released, 2);
    let worker = WorkerId::from_raw(99);
    for _ in 0..2 {
        coordinator.claim_next_available(now, TENANT, RUN, worker, &mut scratch).unwrap();
    }
    let third = coordinator.claim_next_available(now, TENANT, RUN, worker, &mut scratch);
    assert!(matches!(third, Err(ClaimError::NoneAvailable { .. })));
    assert_sound(&coordinator);
}

/// More than one transaction revokes. Each holder is fenced off, and its try counts (T5).
#[test]
fn all_that_a_dead_worker_holds_is_revoked() {
    const HELD: usize = 130;
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, HELD as u64, 100, 3_600_000);
    let slots = WorkerSlots::open(place.db().with_extension("workers")).unwrap();
    let dead = slots.take().unwrap();
    let (now, mut scratch) = (clock(), AcquireScratch::new());
    let mut claim = || {
        coordinator.claim_next_available(now, TENANT, RUN, dead.id(), &mut scratch).unwrap().lease
    };
    let leases: Vec<Lease> = (0..HELD).map(|_| claim()).collect();
    drop(dead);
    let mut events = EventCollector::new();
    let revoked = coordinator
        .with_events(&mut events, |coordinator| coordinator.release_dead(now, TENANT, RUN, &slots));
    assert_eq!((revoked.unwrap(), events.len()), (HELD as u64, HELD));
    for lease in &leases {
        let (five, op) = (key(5), OpId::from_raw(1));
        let late = coordinator.checkpoint(now, TENANT, lease, CursorUpdate::at(&five), op);
        assert!(matches!(late, Err(CheckpointError::StaleFence { .. })), "{late:?}");
    }
    for shard in shards(&coordinator) {
        assert_eq!((shard.acquires_since_progress, shard.lease_deadline), (1, None));
    }
    assert_sound(&coordinator);
}

/// The index says that the dead worker holds it; the record knows of another, who may live.
#[test]
fn a_lease_is_not_revoked_because_a_damaged_index_names_a_dead_worker() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 1, 100, 3_600_000);
    let slots = WorkerSlots::open(place.db().with_extension("workers")).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    let living = slots.take().unwrap();
    let now = clock();
    let lease = coordinator
        .claim_next_available(now, TENANT, RUN, living.id(), &mut scratch)
        .unwrap()
        .lease;
    let sql = "UPDATE coord_shards SET owner = 77 WHERE owner IS NOT NULL";
    assert_eq!(Connection::open(place.db()).unwrap().execute(sql, []).unwrap(), 1);

    let refused = coordinator.release_dead(now, TENANT, RUN, &slots).unwrap_err();
    assert!(refused.to_string().contains("damaged"), "{refused}");
    let fifth = key(5);
    let cursor = CursorUpdate::at(&fifth);
    coordinator.checkpoint(now, TENANT, &lease, cursor, OpId::from_raw(1)).unwrap();
}
