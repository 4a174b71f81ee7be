//! Splits whose wire to a real server is cut.

use std::time::Duration;

use gossip_coordination::IdempotentOutcome;
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::operations::{Outcome, attempt, contents, prepare};
use crate::proxy::{Lost, Proxy};
use crate::server::EtcdServer;

/// More messages than a split sends: it is cut off before its last one, and behind it.
const MESSAGES_OF_SPLIT: u64 = 8;
const ROUNDS_MAX: usize = 5;

type Contents = Vec<(String, Vec<u8>)>;

/// What was in etcd before a split that was cut off, what it left, and what is there after another
/// process has tried it again.
struct CutOff {
    before: Contents,
    outcome: Outcome,
    left: Contents,
    again: Outcome,
    finally: Contents,
}

/// Splits, through a wire that is cut at a message, and then once more as another process would.
fn split_cut_at(server: &EtcdServer, operation: &str, message: u64, lost: Lost) -> CutOff {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let proxy = runtime.block_on(Proxy::to(server.port()));
    let mut direct = server.config();
    direct.request_timeout = Duration::from_secs(2);
    direct.operation_timeout = Duration::from_secs(3);
    let through = EtcdConfig { endpoints: vec![proxy.url()], ..direct.clone() };
    let mut next = EtcdCoordinator::connect(direct).unwrap();
    let mut coordinator = EtcdCoordinator::connect(through).unwrap();
    let lease = prepare(&mut coordinator, operation);
    let (kv, keyspace) = (next.kv().clone(), next.keyspace().clone());
    let stored = || {
        let stored = runtime.block_on(Stored::read(&kv, &keyspace));
        stored.check(None).unwrap_or_else(|fault| panic!("{operation}: {fault}"));
        contents(&stored)
    };
    let before = stored();
    proxy.cut_at(message, lost);
    let outcome = attempt(&mut coordinator, operation, lease.as_ref());
    coordinator.end_as_if_killed();
    let left = stored();
    let again = attempt(&mut next, operation, lease.as_ref());
    CutOff { before, outcome, left, again, finally: stored() }
}

/// Wherever the wire to a real server breaks, a split leaves all or nothing in it, and another process
/// finishes it, or is told that it is finished.
fn cut_off_everywhere(server: &EtcdServer, operation: &str) {
    // There is no such message.
    let whole = split_cut_at(server, operation, u64::MAX / 2, Lost::Request);
    assert_eq!(whole.outcome, Ok(IdempotentOutcome::Executed(())), "{operation}");
    assert_eq!(whole.again, Ok(IdempotentOutcome::Replayed(())), "{operation}");
    assert!(whole.left != whole.before && whole.finally == whole.left, "{operation}");
    // A message is what the wire has in one piece. On a busy machine several requests come in one, or one
    // in several, so that a round may cut before or behind what matters only.
    let (mut nothing, mut all) = (0, 0);
    for _ in 0..ROUNDS_MAX {
        let (left_nothing, left_all) = cut_off_at_each_message(server, operation, &whole);
        (nothing, all) = (nothing + left_nothing, all + left_all);
        if nothing > 0 && all > 0 {
            return;
        }
    }
    panic!("{operation}: {nothing} left nothing, {all} all unanswered");
}

/// How many left nothing, and how many all of it though nobody was told.
fn cut_off_at_each_message(server: &EtcdServer, operation: &str, whole: &CutOff) -> (u64, u64) {
    let (mut nothing, mut all) = (0, 0);
    std::thread::scope(|scope| {
        let messages = 0..MESSAGES_OF_SPLIT;
        let cases = messages.flat_map(|at| [(at, Lost::Request), (at, Lost::Answer)]);
        let spawned = cases.map(|(message, lost)| {
            let what = format!("{operation}, {lost:?} lost at message {message}");
            (what, scope.spawn(move || split_cut_at(server, operation, message, lost)))
        });
        for (what, case) in spawned.collect::<Vec<_>>() {
            let case = case.join().unwrap();
            let is_whole = case.left == whole.left;
            assert!(is_whole || case.left == case.before, "{what}: neither all nor nothing");
            assert!(is_whole || case.outcome.is_err(), "{what}: said to be done, and is not");
            let again = match is_whole {
                true => IdempotentOutcome::Replayed(()),
                false => IdempotentOutcome::Executed(()),
            };
            assert_eq!(case.again, Ok(again), "{what}");
            assert!(case.finally == whole.left, "{what}: the next did something else");
            nothing += u64::from(!is_whole);
            all += u64::from(is_whole && case.outcome.is_err());
        }
    });
    (nothing, all)
}

#[test]
fn a_split_that_is_cut_off_at_any_message_leaves_all_or_nothing() {
    let server = EtcdServer::start();
    std::thread::scope(|scope| {
        for operation in ["split_replace", "split_residual"] {
            let server = &server;
            scope.spawn(move || cut_off_everywhere(server, operation));
        }
    });
}
