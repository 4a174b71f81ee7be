//! Answers that are lost while others go on: what a call did is found in the record's history, and what
//! it did not do is not taken for its own.

use std::sync::{Arc, Mutex};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::WorkerId;
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, EventCollector, EventKind, IdempotentOutcome, Lease,
    ParkReason, ReleaseError, RunManagement,
};
use gossip_coordination_etcd::EtcdCoordinator;
use gossip_coordination_etcd::kv::{Interception, Op, SimKv};

use crate::server::config;
use crate::world::*;

type Process = EtcdCoordinator<SimKv>;

const EXECUTED: IdempotentOutcome<()> = IdempotentOutcome::Executed(());
const REPLAYED: IdempotentOutcome<()> = IdempotentOutcome::Replayed(());

fn process(kv: &SimKv) -> Process {
    let mut config = config(["http://nowhere:1".into()]);
    config.namespace = "settled".into();
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

fn acquire(coordinator: &mut Process, worker: u64, millis: u64) -> Lease {
    let (mut scratch, worker) = (Box::new(AcquireScratch::new()), WorkerId::from_raw(worker));
    let acquired =
        coordinator.acquire_and_restore_into(at(millis), TENANT, shard(0), worker, &mut scratch);
    acquired.unwrap().lease
}

/// Loses the first message about a write, as `fault` says, and has `rival` do something before the
/// next request arrives.
fn lose_and_then(
    kv: &SimKv,
    fault: Interception,
    rival: impl FnOnce(&mut Process) + Send + 'static,
) {
    let (mut other, mut rival) = (process(kv), Some(rival));
    let mut is_lost = false;
    kv.intercept(move |txn| {
        if !is_lost {
            is_lost = txn.writes();
            return if is_lost { fault } else { Interception::Pass };
        }
        if let Some(rival) = rival.take() {
            // A thread of its own: this one is inside the first process's runtime.
            std::thread::scope(|scope| {
                scope.spawn(|| rival(&mut other)).join().unwrap();
            });
        }
        Interception::Pass
    });
}

/// What a call says and reports.
fn told<R>(
    kv: &SimKv,
    coordinator: &mut Process,
    call: impl FnOnce(&mut Process) -> R,
) -> (R, Vec<EventKind>) {
    let mut collector = EventCollector::new();
    let said = coordinator.with_events(&mut collector, call);
    kv.pass_all();
    (said, collector.drain().into_iter().map(|event| event.kind).collect())
}

/// A run with one shard, and a lease on it.
fn held(kv: &SimKv) -> (Process, Lease) {
    let mut coordinator = process(kv);
    begin(&mut coordinator, 1, 10).unwrap();
    let lease = acquire(&mut coordinator, 1, 0);
    (coordinator, lease)
}

#[test]
fn a_release_that_took_place_is_none_that_lost_its_lease() {
    let kv = SimKv::new();
    let (mut coordinator, lease) = held(&kv);
    lose_and_then(&kv, Interception::LoseReply, |other| {
        // Several versions later.
        let taken = acquire(other, 2, 1);
        other.checkpoint(at(2), TENANT, &taken, CursorUpdate::at(&key(2)), op(7)).unwrap();
        other.renew(at(3), TENANT, &taken).unwrap();
    });
    let (said, events) = told(&kv, &mut coordinator, |it| it.release(at(1), TENANT, &lease));
    assert_eq!(said, Ok(()));
    assert!(matches!(events[..], [EventKind::ShardReleased { .. }]), "{events:?}");
}

#[test]
fn what_a_call_did_from_memory_is_executed_and_reported_though_others_came_after() {
    let cursor_key = key(4);
    let cursor = CursorUpdate::at(&cursor_key);
    type Call<'c> = Box<dyn Fn(&mut Process, &Lease) -> IdempotentOutcome<()> + 'c>;
    let calls: [(&str, Call<'_>); 4] = [
        (
            "checkpoint",
            Box::new(|it, lease| it.checkpoint(at(1), TENANT, lease, cursor, op(9)).unwrap()),
        ),
        (
            "checkpoint_and_renew",
            Box::new(|it, lease| {
                let done = it.checkpoint_and_renew(at(1), TENANT, lease, cursor, op(9));
                done.unwrap().map(drop)
            }),
        ),
        (
            "park",
            Box::new(|it, lease| {
                it.park_shard(at(1), TENANT, lease, ParkReason::Other, op(9)).unwrap()
            }),
        ),
        (
            "revoke",
            Box::new(|it, lease| it.revoke_lease(at(1), TENANT, shard(0), lease.fence()).unwrap()),
        ),
    ];
    for (name, call) in calls {
        let kv = SimKv::new();
        let (mut coordinator, lease) = held(&kv);
        let fence = lease.fence();
        lose_and_then(&kv, Interception::LoseReply, move |other| match name {
            "park" => drop(other.unpark_shard(at(2), TENANT, shard(0), op(8)).unwrap()),
            "revoke" => drop(acquire(other, 2, 2)),
            _ => drop(other.revoke_lease(at(2), TENANT, shard(0), fence).unwrap()),
        });
        let (said, events) = told(&kv, &mut coordinator, |it| call(it, &lease));
        assert_eq!(said, EXECUTED, "{name}");
        assert!(!events.is_empty(), "{name} is not reported");
    }
}

#[test]
fn a_run_that_was_created_exists_for_whoever_created_it() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    lose_and_then(&kv, Interception::LoseReply, |other| {
        let manifest = Manifest::of(2, 10);
        other.register_shards(NOW, TENANT, RUN, &manifest.rows(), op(1)).unwrap();
    });
    let (said, events) = told(&kv, &mut coordinator, |it| it.create_run(NOW, TENANT, RUN, CONFIG));
    assert_eq!(said, Ok(()));
    assert_eq!(events, [EventKind::RunCreated]);
}

#[test]
fn a_run_that_was_deleted_and_created_again_was_deleted() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap();
    coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
    lose_and_then(&kv, Interception::LoseReply, |other| {
        other.create_run(at(1), TENANT, RUN, CONFIG).unwrap();
    });
    let (said, events) = told(&kv, &mut coordinator, |it| it.delete_run(NOW, TENANT, RUN));
    assert_eq!(said, Ok(()));
    assert_eq!(events, [EventKind::RunDeleted]);
}

/// The other way round: a request that never arrived, and another process that carried out the same
/// operation under the same id.
#[test]
fn what_another_process_did_is_a_replay_and_reported_by_that_one_alone() {
    let kv = SimKv::new();
    let (mut coordinator, lease) = held(&kv);
    let theirs = Arc::new(Mutex::new(None));
    let said_there = Arc::clone(&theirs);
    lose_and_then(&kv, Interception::LoseRequest, move |other| {
        let said = other.checkpoint(at(2), TENANT, &lease, CursorUpdate::at(&key(4)), op(9));
        *said_there.lock().unwrap() = Some(said.unwrap());
    });
    let (said, events) = told(&kv, &mut coordinator, |it| {
        it.checkpoint(at(1), TENANT, &lease, CursorUpdate::at(&key(4)), op(9)).unwrap()
    });
    assert_eq!((said, events), (REPLAYED, Vec::new()));
    assert_eq!(*theirs.lock().unwrap(), Some(EXECUTED));
    // The same of a run, which is always decided from what etcd has.
    lose_and_then(&kv, Interception::LoseRequest, |other| {
        assert_eq!(other.cancel_run(at(4), TENANT, RUN, op(2)), Ok(EXECUTED));
    });
    let (said, events) =
        told(&kv, &mut coordinator, |it| it.cancel_run(at(3), TENANT, RUN, op(2)).unwrap());
    assert_eq!((said, events), (REPLAYED, Vec::new()));
}

/// What a process remembers is old: another has carried out the same operation, at the same time and
/// under the same id if there is one, and this one's request is lost. What it finds are the very records
/// that it would have written, and they are not its own.
#[test]
fn a_request_that_never_arrived_is_not_taken_for_the_same_one_of_another_process() {
    let kv = SimKv::new();
    let (mut coordinator, lease) = held(&kv);
    let (cursor_key, mut other) = (key(4), process(&kv));
    let cursor = CursorUpdate::at(&cursor_key);
    let checkpoint =
        |it: &mut Process| it.checkpoint(at(1), TENANT, &lease, cursor, op(9)).unwrap();
    assert_eq!(checkpoint(&mut other), EXECUTED);
    lose_and_then(&kv, Interception::LoseRequest, |_| {});
    assert_eq!(told(&kv, &mut coordinator, checkpoint), (REPLAYED, Vec::new()));
    let release = |it: &mut Process| it.release(at(2), TENANT, &lease);
    assert_eq!(release(&mut other), Ok(()));
    lose_and_then(&kv, Interception::LoseRequest, |_| {});
    let (said, events) = told(&kv, &mut coordinator, release);
    assert!(matches!(said, Err(ReleaseError::StaleFence { .. })), "{said:?}");
    assert_eq!(events, []);
}

/// What would tell is compacted: the operation takes effect once all the same.
#[test]
fn a_history_that_is_compacted_is_gone_without() {
    let kv = SimKv::new();
    let (mut coordinator, lease) = held(&kv);
    let (store, fence) = (kv.clone(), lease.fence());
    lose_and_then(&kv, Interception::LoseReply, move |other| {
        other.revoke_lease(at(2), TENANT, shard(0), fence).unwrap();
        store.compact(store.revision()).unwrap();
    });
    let (said, _) = told(&kv, &mut coordinator, |it| {
        it.checkpoint(at(1), TENANT, &lease, CursorUpdate::at(&key(4)), op(9)).unwrap()
    });
    assert_eq!(said, REPLAYED);
}

/// What was carried out is answered so, though what else there is to do in the run cannot be read: an
/// acquire that says that it failed costs its caller another try of the shard.
#[test]
fn an_acquire_that_took_place_is_granted_without_a_hint_if_the_hint_is_lost() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    begin(&mut coordinator, 3, 10).unwrap();
    let idle = coordinator.keyspace().run(TENANT, RUN).idle_at(NOW);
    kv.intercept(move |txn| {
        let asks_for_hint = |op: &Op| matches!(op, Op::Read(read) if read.range == idle);
        match (txn.writes(), txn.then.iter().any(asks_for_hint)) {
            (true, _) => Interception::LoseReply,
            (false, true) => Interception::LoseRequest,
            (false, false) => Interception::Pass,
        }
    });
    let (mut scratch, worker) = (Box::new(AcquireScratch::new()), WorkerId::from_raw(1));
    let acquired =
        coordinator.acquire_and_restore_into(NOW, TENANT, shard(0), worker, &mut scratch).unwrap();
    let (lease, hint) = (acquired.lease, acquired.capacity);
    kv.pass_all();
    assert!(hint.is_estimate && hint.available_count == 0 && hint.earliest_deadline.is_none());
    assert_eq!(lease.fence().as_raw(), 2, "it was acquired once");
    coordinator.renew(NOW, TENANT, &lease).unwrap();
}
