//! What ends in the middle, and what its run leaves behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gossip_contracts::identity::WorkerId;
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, GetRunError, IdempotentOutcome, RegisterShardsError,
    RunManagement, RunTransitionError, ShardFilter,
};
use gossip_coordination_etcd::EtcdCoordinator;
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{Interception, Op, Read, Revision, SimKv, Txn};

use crate::server::config;
use crate::world::*;

fn process(kv: &SimKv) -> EtcdCoordinator<SimKv> {
    let mut config = config(["http://nowhere:1".into()]);
    config.namespace = "leftovers".into();
    config.backoff_min = std::time::Duration::from_nanos(1);
    config.backoff_max = config.backoff_min;
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

/// Lets so many writes through, and then nothing that changes anything.
fn stop_after(kv: &SimKv, writes: usize) {
    let mut left = writes;
    kv.intercept(move |txn| {
        if !txn.writes() {
            return Interception::Pass;
        }
        if left == 0 {
            return Interception::LoseRequest;
        }
        left -= 1;
        Interception::Pass
    });
}

fn stored(kv: &SimKv, coordinator: &EtcdCoordinator<SimKv>) -> Stored {
    let stored = Stored::of(coordinator.keyspace(), kv.entries());
    stored.check(Some(Revision::MAX)).unwrap();
    stored
}

/// A run some of whose shards a registration has staged before it ended.
fn half_registered(kv: &SimKv, coordinator: &mut EtcdCoordinator<SimKv>) -> usize {
    coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap();
    stop_after(kv, 4);
    let manifest = Manifest::of(500, 10);
    coordinator.register_shards(NOW, TENANT, RUN, &manifest.rows(), op(1)).unwrap_err();
    kv.pass_all();
    let staged = stored(kv, coordinator).shards().len();
    assert!(staged > 150, "{staged}");
    staged
}

fn assert_no_shards(kv: &SimKv, coordinator: &EtcdCoordinator<SimKv>) {
    let stored = stored(kv, coordinator);
    assert!(stored.shards().is_empty());
    assert_eq!(stored.value(&coordinator.keyspace().shard_total()), Some(&b"0"[..]));
}

/// A collection, or a cancellation, that ended before everything was deleted goes on where it stopped,
/// whoever makes the call again and under whatever id.
#[test]
fn a_cancellation_that_ended_in_the_middle_goes_on() {
    for writes in 1..4 {
        for is_collected in [true, false] {
            let kv = SimKv::new();
            let mut coordinator = process(&kv);
            half_registered(&kv, &mut coordinator);
            stop_after(&kv, writes);
            let (mut next, mut collected) = (process(&kv), Vec::new());
            let mut collect = |it: &mut EtcdCoordinator<SimKv>, id| {
                let cutoff = at(1);
                it.gc_stale_initializing_runs_into(at(5), TENANT, cutoff, op(id), &mut collected)
            };
            if is_collected {
                collect(&mut coordinator, 2).unwrap_err();
                kv.pass_all();
                collect(&mut next, 3).unwrap();
                assert_eq!(collected, [RUN], "{writes}");
            } else {
                coordinator.cancel_run(at(5), TENANT, RUN, op(2)).unwrap_err();
                kv.pass_all();
                let again = next.cancel_run(at(6), TENANT, RUN, op(3));
                assert!(matches!(again, Err(RunTransitionError::RunTerminal { .. })), "{again:?}");
            }
            assert_no_shards(&kv, &next);
            // There is nothing left to collect.
            let mut collected = Vec::new();
            next.gc_stale_initializing_runs_into(at(7), TENANT, at(7), op(4), &mut collected)
                .unwrap();
            assert!(collected.is_empty());
        }
    }
}

/// A deletion and the rest of a cancellation delete the same shards: what one has deleted the other does
/// not miss.
#[test]
fn a_deletion_between_the_steps_of_a_cancellation_is_no_damage() {
    let kv = SimKv::new();
    let (mut coordinator, mut other) = (process(&kv), process(&kv));
    let staged = half_registered(&kv, &mut coordinator);
    stop_after(&kv, 1);
    coordinator.cancel_run(at(5), TENANT, RUN, op(2)).unwrap_err();
    stop_after(&kv, 1);
    other.delete_run(at(6), TENANT, RUN).unwrap_err();
    kv.pass_all();
    let left = stored(&kv, &other).shards().len();
    assert!(left > 0 && left < staged, "{left} of {staged}");
    let again = coordinator.cancel_run(at(7), TENANT, RUN, op(2));
    assert_eq!(again, Ok(IdempotentOutcome::Replayed(())));
    assert_no_shards(&kv, &coordinator);
    other.delete_run(at(8), TENANT, RUN).unwrap();
    assert!(stored(&kv, &other).runs().is_empty());
}

/// V5: of two registrations that meet half-way the second has taken the first one's place. The first is
/// refused however often it is made, so that two who retry come to an end.
#[test]
fn a_registration_whose_place_was_taken_half_way_is_refused() {
    let kv = SimKv::new();
    let (mut first, mut second) = (process(&kv), process(&kv));
    half_registered(&kv, &mut first);
    let (manifest, other) = (Manifest::of(500, 10), Manifest::of(300, 10));
    stop_after(&kv, 6);
    second.register_shards(at(1), TENANT, RUN, &other.rows(), op(2)).unwrap_err();
    kv.pass_all();
    for _ in 0..2 {
        let refused = first.register_shards(at(2), TENANT, RUN, &manifest.rows(), op(1));
        assert_eq!(refused, Err(RegisterShardsError::Overtaken { by: op(2) }));
    }
    second.register_shards(at(3), TENANT, RUN, &other.rows(), op(2)).unwrap();
    assert_eq!(stored(&kv, &second).shards().len(), 300);
    let late = first.register_shards(at(4), TENANT, RUN, &manifest.rows(), op(1));
    assert!(matches!(late, Err(RegisterShardsError::WrongStatus { .. })), "{late:?}");
}

/// What an earlier registration staged is deleted in steps as large as they can be, however small the
/// next manifest is.
#[test]
fn a_small_manifest_takes_the_place_of_a_large_one_in_few_steps() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    let staged = half_registered(&kv, &mut coordinator);
    let (writes, counted) = (Arc::new(AtomicUsize::new(0)), Manifest::of(1, 10));
    let seen = Arc::clone(&writes);
    kv.intercept(move |txn| {
        seen.fetch_add(usize::from(txn.writes()), Ordering::Relaxed);
        Interception::Pass
    });
    coordinator.register_shards(at(1), TENANT, RUN, &counted.rows(), op(2)).unwrap();
    kv.pass_all();
    // Besides the deletions: begin, stage, activate.
    assert_eq!(writes.load(Ordering::Relaxed), staged.div_ceil(61) + 3);
    assert_eq!(stored(&kv, &coordinator).shards().len(), 1);
}

/// Who waits for work in a run is forgotten when it is deleted, and not noted afterwards, also by a call
/// that was under way.
#[test]
fn nobody_waits_in_a_run_that_is_deleted() {
    let kv = SimKv::new();
    let (mut coordinator, mut other) = (process(&kv), process(&kv));
    begin(&mut coordinator, 1, 10).unwrap();
    coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
    let keys = coordinator.keyspace().run(TENANT, RUN);
    let left =
        |kv: &SimKv| kv.entries().iter().filter(|entry| keys.all().contains(&entry.key)).count();
    let before = left(&kv);
    for worker in 1..=3 {
        coordinator.note_idle(NOW, TENANT, RUN, WorkerId::from_raw(worker)).unwrap();
    }
    assert_eq!(left(&kv), before + 6);
    // The run goes between a note's read and its write.
    let mut is_deleted = false;
    kv.intercept(move |txn| {
        if txn.writes() && !std::mem::replace(&mut is_deleted, true) {
            // A thread of its own: this one is inside the other's runtime.
            std::thread::scope(|scope| {
                let delete = || other.delete_run(at(1), TENANT, RUN).unwrap();
                scope.spawn(delete).join().unwrap();
            });
        }
        Interception::Pass
    });
    let noted = coordinator.note_idle(at(1), TENANT, RUN, WorkerId::from_raw(4));
    assert_eq!(noted, Err(GetRunError::RunNotFound));
    kv.pass_all();
    assert_eq!(left(&kv), 0);
}

/// A step of a deletion leaves the record as it is: that it is found so does not say that it took place.
#[test]
fn a_deletion_whose_steps_never_arrive_comes_to_an_end() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    begin(&mut coordinator, 70, 10).unwrap();
    coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
    stop_after(&kv, 1);
    let error = coordinator.delete_run(at(1), TENANT, RUN).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    kv.pass_all();
    assert_eq!(stored(&kv, &coordinator).shards().len(), 70 - 17);
    coordinator.delete_run(at(2), TENANT, RUN).unwrap();
    assert_no_shards(&kv, &coordinator);
}

/// Whoever deletes a run asks its shards' records nothing: one that is damaged, or that is another's,
/// goes with the others, and so does every key about it.
#[test]
fn a_run_with_damaged_records_can_be_deleted() {
    let kv = SimKv::new();
    let mut coordinator = process(&kv);
    begin(&mut coordinator, 40, 10).unwrap();
    let mut scratch = Box::new(AcquireScratch::new());
    for number in [3, 4, 30] {
        let worker = WorkerId::from_raw(number);
        coordinator
            .acquire_and_restore_into(NOW, TENANT, shard(number), worker, &mut scratch)
            .unwrap();
    }
    coordinator.fail_run(at(1), TENANT, RUN, op(1)).unwrap();
    let keys = coordinator.keyspace().run(TENANT, RUN);
    let place = |number| keys.shard(shard(number).shard);
    let read = kv.txn_now(&Txn::reads([Read::key(&place(5))])).unwrap();
    let another = read.found[0].entries[0].value.clone();
    let damage = [Op::put(place(3), b"damaged"), Op::put(place(30), another)];
    kv.txn_now(&Txn { then: damage.into(), ..Txn::default() }).unwrap();
    let listed =
        coordinator.list_shards_into(NOW, TENANT, RUN, ShardFilter::all(), &mut Vec::new());
    assert!(listed.is_err());
    coordinator.delete_run(at(2), TENANT, RUN).unwrap();
    let left: Vec<_> =
        kv.entries().into_iter().filter(|entry| keys.all().contains(&entry.key)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_no_shards(&kv, &coordinator);
}
