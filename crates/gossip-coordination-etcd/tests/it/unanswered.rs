//! Answers that are lost: on the model at every step of every operation, and on a real server through
//! a proxy that drops the reply after the server has committed.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gossip_contracts::coordination::CursorUpdate;
use gossip_coordination::{CoordinationBackend, EventCollector, EventKind, IdempotentOutcome};
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::{EtcdKv, Interception, SimKv};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::operations::{IN_STEPS, NOT_REPLAYED, OPERATIONS, attempt, contents, prepare};
use crate::proxy::Proxy;
use crate::server::{EtcdServer, config};
use crate::world::*;

/// Without pauses: nothing is gained by waiting for a model.
fn on_model(kv: &SimKv) -> EtcdCoordinator<SimKv> {
    let mut config = config(["http://nowhere:1".into()]);
    config.backoff_max = config.backoff_min / 1_000;
    config.backoff_min = config.backoff_max;
    EtcdCoordinator::on_model(kv.clone(), config).unwrap()
}

fn stored_in(kv: &SimKv, of: &EtcdCoordinator<SimKv>) -> Vec<(String, Vec<u8>)> {
    contents(&Stored::of(of.keyspace(), kv.entries()))
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
        contents: stored_in(&kv, &coordinator),
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
                    stored_in(&kv, &coordinator) == expected.contents,
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
            let before = stored_in(&kv, &coordinator);
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
            let now = stored_in(&kv, &coordinator);
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
                stored_in(&kv, &coordinator) == expected.contents,
                "{what}: the next did something else"
            );
        }
    }
}

fn on_model_in(kv: &SimKv, like: &EtcdCoordinator<SimKv>) -> EtcdCoordinator<SimKv> {
    EtcdCoordinator::on_model(kv.clone(), like.config().clone()).unwrap()
}

/// A real server behind a proxy that drops an answer once the write is in the store, and before the
/// client knows: every operation takes effect, and writes nothing more.
#[test]
fn a_reply_that_a_real_server_sent_is_lost_and_nothing_else() {
    let server = EtcdServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for operation in OPERATIONS {
        let proxy = runtime.block_on(Proxy::to(server.port()));
        let through = config([proxy.url()]);
        let mut coordinator = EtcdCoordinator::connect(through.clone()).unwrap();
        let lease = prepare(&mut coordinator, operation);
        let direct = EtcdConfig { endpoints: vec![server.url()], ..through };
        let kv = runtime.block_on(EtcdKv::connect(&direct)).unwrap();
        let keyspace = coordinator.keyspace().clone();
        let entries = |stored: &Stored| stored.entries().cloned().collect::<Vec<_>>();
        let before = entries(&runtime.block_on(Stored::read(&kv, &keyspace)));
        // Revisions are compared, too: what is written again differs.
        let at_the_loss = Arc::new(Mutex::new(Vec::new()));
        let (kept, asked, asked_about) =
            (Arc::clone(&at_the_loss), kv.clone(), coordinator.keyspace().clone());
        proxy.drop_answer_once(move || {
            let (before, kept) = (before.clone(), Arc::clone(&kept));
            let (kv, keyspace) = (asked.clone(), asked_about.clone());
            async move {
                let now = entries(&Stored::read(&kv, &keyspace).await);
                let is_written = now != before;
                *kept.lock().unwrap() = now;
                is_written
            }
        });
        let outcome = attempt(&mut coordinator, operation, lease.as_ref());
        assert_eq!(outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
        assert!(proxy.has_dropped(), "{operation}: no answer to a write was dropped");
        let stored = runtime.block_on(Stored::read(&kv, &keyspace));
        stored.check(None).unwrap_or_else(|fault| panic!("{operation}: {fault}"));
        let is_in_steps = IN_STEPS.contains(&operation);
        let is_as_at_the_loss = entries(&stored) == *at_the_loss.lock().unwrap();
        assert_eq!(is_as_at_the_loss, !is_in_steps, "{operation}: written once");
        // Once more says that it was carried out, where an id tells.
        let again = attempt(&mut coordinator, operation, lease.as_ref());
        if !NOT_REPLAYED.contains(&operation) {
            assert_eq!(again, Ok(IdempotentOutcome::Replayed(())), "{operation}");
        }
    }
}
