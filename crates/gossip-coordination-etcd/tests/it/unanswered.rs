//! Answers that are lost: on the model at every step of every operation, and on a real server through
//! a proxy that drops the reply after the server has committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use gossip_contracts::coordination::{
    CursorUpdate, ShardSpecRef, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::{RunResult, WorkerId};
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, EventCollector, EventKind, IdempotentOutcome, Lease,
    ParkReason, RunManagement, ShardClaiming,
};
use gossip_coordination_etcd::EtcdCoordinator;
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{EtcdKv, Interception, Kv, SimKv};

use crate::conformance::dump;
use crate::proxy::Proxy;
use crate::server::{EtcdServer, config};
use crate::world::*;

type Outcome = Result<IdempotentOutcome<()>, String>;

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

const WORKER: WorkerId = WorkerId::from_raw(1);

fn acquire<K: Kv>(coordinator: &mut EtcdCoordinator<K>, number: u64) -> Result<Lease, String> {
    let mut scratch = Box::new(AcquireScratch::new());
    let acquired =
        coordinator.acquire_and_restore_into(NOW, TENANT, shard(number), WORKER, &mut scratch);
    acquired.map(|acquired| acquired.lease).map_err(said)
}

/// Every operation that changes something, on shard 0 of a run of two; `lease` is on it.
const OPERATIONS: [&str; 19] = [
    "acquire",
    "claim",
    "reacquire_own",
    "renew",
    "release",
    "checkpoint",
    "checkpoint_and_renew",
    "complete",
    "park",
    "unpark",
    "revoke_lease",
    "split_replace",
    "split_residual",
    "create",
    "register",
    "complete_run_with",
    "fail",
    "cancel",
    "delete_run",
];

/// Those that say nothing of an earlier try: once more is done once more, or refused.
const NOT_REPLAYED: [&str; 7] =
    ["acquire", "claim", "reacquire_own", "renew", "release", "create", "delete_run"];

/// Those that are several transactions.
const IN_STEPS: [&str; 2] = ["register", "delete_run"];

/// Brings everything to where `operation` can be carried out.
fn prepare<K: Kv>(coordinator: &mut EtcdCoordinator<K>, operation: &str) -> Option<Lease> {
    match operation {
        "create" => return None,
        "register" => coordinator.create_run(NOW, TENANT, RUN, CONFIG).unwrap(),
        // More than one step's worth.
        "delete_run" => drop(begin(coordinator, 70, 10).unwrap()),
        _ => drop(begin(coordinator, 2, 10).unwrap()),
    }
    match operation {
        "acquire" | "claim" | "register" | "fail" | "cancel" => None,
        "delete_run" => {
            acquire(coordinator, 1).unwrap();
            coordinator.cancel_run(NOW, TENANT, RUN, op(1)).unwrap();
            None
        }
        "complete_run_with" => {
            for number in 0..2 {
                let lease = acquire(coordinator, number).unwrap();
                let last = key(1 + number * 10);
                let cursor = CursorUpdate::at(&last);
                coordinator.complete(NOW, TENANT, &lease, cursor, op(1)).unwrap();
            }
            None
        }
        "unpark" => {
            let lease = acquire(coordinator, 0).unwrap();
            coordinator.park_shard(NOW, TENANT, &lease, ParkReason::Other, op(1)).unwrap();
            None
        }
        _ => Some(acquire(coordinator, 0).unwrap()),
    }
}

fn attempt<K: Kv>(
    coordinator: &mut EtcdCoordinator<K>,
    operation: &str,
    lease: Option<&Lease>,
) -> Outcome {
    let executed = IdempotentOutcome::Executed(());
    let lease = || lease.expect("the operation is one under a lease");
    let (from, to, at_key) = (key(1), key(11), key(4));
    let (range, cursor) = (ShardSpecRef::new(&from, &to, b""), CursorUpdate::at(&at_key));
    match operation {
        "acquire" => acquire(coordinator, 0).map(|_| executed),
        "claim" => {
            let mut scratch = Box::new(AcquireScratch::new());
            let claimed = coordinator.claim_next_available(NOW, TENANT, RUN, WORKER, &mut scratch);
            claimed.map(|_| executed).map_err(said)
        }
        "reacquire_own" => {
            let mut scratch = Box::new(AcquireScratch::new());
            let own = coordinator.reacquire_own(NOW, TENANT, RUN, WORKER, &mut scratch);
            own.map_err(said)?.map(|_| executed).ok_or_else(|| "nothing is its own".to_owned())
        }
        "renew" => coordinator.renew(at(5), TENANT, lease()).map(|_| executed).map_err(said),
        "release" => coordinator.release(NOW, TENANT, lease()).map(|()| executed).map_err(said),
        "checkpoint" => coordinator.checkpoint(NOW, TENANT, lease(), cursor, op(9)).map_err(said),
        "checkpoint_and_renew" => {
            let stored = coordinator.checkpoint_and_renew(at(5), TENANT, lease(), cursor, op(9));
            stored.map(|outcome| outcome.map(drop)).map_err(said)
        }
        "complete" => coordinator.complete(NOW, TENANT, lease(), cursor, op(9)).map_err(said),
        "park" => {
            coordinator.park_shard(NOW, TENANT, lease(), ParkReason::Other, op(9)).map_err(said)
        }
        "unpark" => coordinator.unpark_shard(NOW, TENANT, shard(0), op(9)).map_err(said),
        "revoke_lease" => {
            let fence = lease().fence();
            coordinator.revoke_lease(NOW, TENANT, shard(0), fence).map_err(said)
        }
        "split_replace" => {
            let points = [key(4), key(7)];
            let plan = plan_split_replace_at_points(range, &[&points[0], &points[1]]).unwrap();
            let split = coordinator.split_replace(NOW, TENANT, lease(), &plan, op(9));
            split.map(|outcome| outcome.map(drop)).map_err(said)
        }
        "split_residual" => {
            let point = key(4);
            let plan = plan_split_residual_at_point(range, &point).unwrap();
            let split = coordinator.split_residual(NOW, TENANT, lease(), &plan, op(9));
            split.map(|outcome| outcome.map(drop)).map_err(said)
        }
        "create" => {
            coordinator.create_run(NOW, TENANT, RUN, CONFIG).map(|()| executed).map_err(said)
        }
        "register" => {
            // More than one step's worth.
            let manifest = Manifest::of(150, 10);
            coordinator.register_shards(NOW, TENANT, RUN, &manifest.rows(), op(9)).map_err(said)
        }
        "complete_run_with" => {
            let result = Some(RunResult::from_bytes([3; 32]));
            coordinator.complete_run_with(NOW, TENANT, RUN, result, op(9)).map_err(said)
        }
        "fail" => coordinator.fail_run(NOW, TENANT, RUN, op(9)).map_err(said),
        "delete_run" => coordinator.delete_run(NOW, TENANT, RUN).map(|()| executed).map_err(said),
        "cancel" => coordinator.cancel_run(NOW, TENANT, RUN, op(9)).map_err(said),
        other => unreachable!("{other}"),
    }
}

/// Without pauses: nothing is gained by waiting for a model.
fn on_model(kv: &SimKv) -> EtcdCoordinator<SimKv> {
    let mut config = config(["http://nowhere:1".into()]);
    config.backoff_max = config.backoff_min / 1_000;
    config.backoff_min = config.backoff_max;
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

/// Every key with its value: what an operation leaves behind.
fn contents(kv: &SimKv, of: &EtcdCoordinator<SimKv>) -> Vec<(String, Vec<u8>)> {
    let stored = Stored::of(of.keyspace(), kv.entries());
    // Namespaces differ.
    let named = |key: &[u8]| key.escape_ascii().to_string().split_once('/').unwrap().1.to_owned();
    stored.contents().map(|(key, value)| (named(key), value.to_vec())).collect()
}

/// What an operation leaves, says and reports when nothing is lost, and in how many transactions.
struct Undisturbed {
    contents: Vec<(String, Vec<u8>)>,
    events: Vec<EventKind>,
    txns: u64,
}

fn undisturbed(operation: &str) -> Undisturbed {
    let (kv, counted) = (SimKv::new(), Arc::new(AtomicU64::new(0)));
    let mut coordinator = on_model(&kv);
    let lease = prepare(&mut coordinator, operation);
    let seen = Arc::clone(&counted);
    kv.intercept(move |_| {
        seen.fetch_add(1, Ordering::Relaxed);
        Interception::Pass
    });
    let mut collector = EventCollector::new();
    let outcome =
        coordinator.with_events(&mut collector, |it| attempt(it, operation, lease.as_ref()));
    assert_eq!(outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
    kv.pass_all();
    let events = collector.drain().into_iter().map(|event| event.kind).collect();
    Undisturbed {
        contents: contents(&kv, &coordinator),
        events,
        txns: counted.load(Ordering::Relaxed),
    }
}

/// Wherever one message is lost, in whichever direction, an operation takes effect exactly once, says
/// so, and reports it once.
#[test]
fn a_lost_message_at_any_step_of_any_operation_changes_nothing() {
    for operation in OPERATIONS {
        let expected = undisturbed(operation);
        assert!(expected.txns >= 1, "{operation}");
        for step in 0..expected.txns {
            for fault in [Interception::LoseReply, Interception::LoseRequest, Interception::Refuse]
            {
                let kv = SimKv::new();
                let mut coordinator = on_model(&kv);
                let lease = prepare(&mut coordinator, operation);
                let mut left = step;
                kv.intercept(move |_| {
                    left = left.wrapping_sub(1);
                    if left == u64::MAX { fault } else { Interception::Pass }
                });
                let mut collector = EventCollector::new();
                let outcome = coordinator
                    .with_events(&mut collector, |it| attempt(it, operation, lease.as_ref()));
                let what = format!("{operation}, {fault:?} at step {step}");
                assert_eq!(outcome, Ok(IdempotentOutcome::Executed(())), "{what}");
                assert!(
                    contents(&kv, &coordinator) == expected.contents,
                    "{what}: something else is stored"
                );
                let events: Vec<_> =
                    collector.drain().into_iter().map(|event| event.kind).collect();
                assert_eq!(events, expected.events, "{what}");
            }
        }
    }
}

/// What another handle has carried out is a replay to this one, also when its own try went unanswered:
/// it was decided from what this handle remembered, and was refused. Found by the simulator.
#[test]
fn a_lost_refusal_of_what_another_handle_did_is_a_replay() {
    let kv = SimKv::new();
    let mut remembering = on_model(&kv);
    let lease = prepare(&mut remembering, "checkpoint").unwrap();
    let mut other = on_model_in(&kv, &remembering);
    let cursor = key(4);
    let cursor = CursorUpdate::at(&cursor);
    let executed = other.checkpoint(NOW, TENANT, &lease, cursor, op(9)).unwrap();
    assert_eq!(executed, IdempotentOutcome::Executed(()));
    let mut is_first = true;
    kv.intercept(move |_| match std::mem::take(&mut is_first) {
        true => Interception::LoseReply,
        false => Interception::Pass,
    });
    let mut collector = EventCollector::new();
    let again = remembering
        .with_events(&mut collector, |it| it.checkpoint(at(1), TENANT, &lease, cursor, op(9)));
    assert_eq!(again.unwrap(), IdempotentOutcome::Replayed(()));
    assert!(collector.is_empty());
}

/// A process that dies between any two messages leaves what another finishes: both splits all or
/// nothing, a registration or a deletion to be gone on with.
#[test]
fn a_process_that_dies_at_any_step_leaves_all_or_nothing() {
    for operation in OPERATIONS {
        let expected = undisturbed(operation);
        for step in 0..=expected.txns {
            let kv = SimKv::new();
            let mut coordinator = on_model(&kv);
            let lease = prepare(&mut coordinator, operation);
            let before = contents(&kv, &coordinator);
            let mut left = step;
            kv.intercept(move |_| {
                if left == 0 {
                    return Interception::LoseRequest;
                }
                left -= 1;
                Interception::Pass
            });
            let outcome = attempt(&mut coordinator, operation, lease.as_ref());
            coordinator.end_as_if_killed();
            kv.pass_all();
            let what = format!("{operation}, dead after {step} of {}", expected.txns);
            let now = contents(&kv, &coordinator);
            if !IN_STEPS.contains(&operation) {
                assert!(
                    now == before || now == expected.contents,
                    "{what}: neither all nor nothing"
                );
            }
            assert_eq!(outcome.is_ok(), step == expected.txns, "{what}");
            // Whoever goes on finishes it, or finds it finished.
            let mut next = on_model_in(&kv, &coordinator);
            let is_refused_now = NOT_REPLAYED.contains(&operation) && operation != "renew";
            if is_refused_now && now == expected.contents {
                continue;
            }
            attempt(&mut next, operation, lease.as_ref()).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(
                contents(&kv, &coordinator) == expected.contents,
                "{what}: the next did something else"
            );
        }
    }
}

fn on_model_in(kv: &SimKv, like: &EtcdCoordinator<SimKv>) -> EtcdCoordinator<SimKv> {
    EtcdCoordinator::on_model(kv.clone(), like.config().clone()).unwrap()
}

/// A real server behind a proxy that drops its next answer: the transaction is committed, and the
/// client waits in vain.
#[test]
fn a_reply_that_a_real_server_sent_is_lost_and_nothing_else() {
    let server = EtcdServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for operation in OPERATIONS {
        let proxy = runtime.block_on(Proxy::to(server.port()));
        let through = config([proxy.url()]);
        let mut coordinator = EtcdCoordinator::connect(through.clone()).unwrap();
        let lease = prepare(&mut coordinator, operation);
        let (kv, keyspace) = runtime.block_on(async {
            let direct = gossip_coordination_etcd::EtcdConfig {
                endpoints: vec![server.url()],
                ..through.clone()
            };
            let kv = EtcdKv::connect(&direct).await.unwrap();
            (kv, coordinator.keyspace().clone())
        });
        let before = dump(&runtime.block_on(Stored::read(&kv, &keyspace)));
        // Only the answer to a transaction that changes something: the store's revision tells.
        proxy.drop_answer_to_next_write();
        let outcome = attempt(&mut coordinator, operation, lease.as_ref());
        assert_eq!(outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
        assert!(proxy.has_dropped(), "{operation}: no answer was dropped");
        let stored = runtime.block_on(Stored::read(&kv, &keyspace));
        assert!(dump(&stored) != before || operation == "renew", "{operation} did nothing");
        stored.check(None).unwrap_or_else(|fault| panic!("{operation}: {fault}"));
        // Once more says that it was carried out, where an id tells.
        let again = attempt(&mut coordinator, operation, lease.as_ref());
        if !NOT_REPLAYED.contains(&operation) {
            assert_eq!(again, Ok(IdempotentOutcome::Replayed(())), "{operation}");
        }
    }
}
