//! Workers in processes of their own, so that they can be killed.

use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId, WorkerId};
use gossip_coordination::{AcquireScratch, ClaimError, CoordinationBackend, ShardClaiming};
use gossip_coordination_etcd::{EtcdConfig, EtcdCoordinator};

use crate::world::*;

/// What a child is told: endpoints, namespace, worker.
const VARIABLE: &str = "GOSSIP_ETCD_CHILD";

/// What a child says on a line of its own, with the number of a shard and that of a key, or 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It claimed the shard, whose cursor is there.
    Began,
    /// It is about to have this stored.
    Sends,
    /// It was told that this is stored.
    Stored,
}

/// A line of a child: what it said, the shard, the key. Others are the test harness's.
pub(crate) fn understood(line: &str) -> Option<(Said, u64, u64)> {
    let words: Vec<_> = line.split(' ').collect();
    let [what, shard, key] = words[..] else { return None };
    let all = [Said::Began, Said::Sends, Said::Stored];
    let said = all.into_iter().find(|said| format!("{said:?}") == what)?;
    Some((said, shard.parse().ok()?, key.parse().ok()?))
}

/// A process that claims shards and checkpoints key after key until it is killed, or nothing is left.
pub(crate) fn spawn(config: &EtcdConfig, worker: u64) -> Child {
    let told = format!("{} {} {worker}", config.endpoints.join(","), config.namespace);
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "children::a_child_works_until_it_is_killed", "--nocapture"])
        .env(VARIABLE, told)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

pub(crate) fn clock() -> LogicalTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    LogicalTime::from_raw(u64::try_from(since.as_millis()).unwrap())
}

/// The body of [`spawn`]; without its variable there is nothing to do.
#[test]
fn a_child_works_until_it_is_killed() {
    let Ok(told) = std::env::var(VARIABLE) else { return };
    let told: Vec<_> = told.split(' ').collect();
    let [endpoints, namespace, worker] = told[..] else { panic!("{told:?}") };
    let mut config = crate::server::config(endpoints.split(',').map(str::to_owned));
    config.namespace = namespace.to_owned();
    config.owner_lease_ttl = std::time::Duration::from_secs(2);
    config.request_timeout = std::time::Duration::from_secs(1);
    config.attempts = 100;
    let mut coordinator = EtcdCoordinator::connect(config).unwrap();
    // Behind what the harness has begun to say.
    println!();
    work(&mut coordinator, worker.parse().unwrap());
}

/// Claims shards and checkpoints key after key; the token is the key's number, so that whoever goes on
/// can tell a cursor that was accepted from one that was not.
fn work(coordinator: &mut EtcdCoordinator, worker: u64) {
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(worker);
    loop {
        let claimed = coordinator.claim_next_available(clock(), TENANT, RUN, worker, &mut scratch);
        let (lease, state) = match claimed {
            Ok(claimed) => (claimed.lease, claimed.to_restored_state()),
            Err(ClaimError::NoneAvailable { .. }) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                continue;
            }
            Err(ClaimError::RunNotActive { .. }) => return,
            Err(error) => panic!("{error}"),
        };
        let number = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
        let range = state.spec.as_ref();
        let (first, end) = (number(range.start()), number(range.end()));
        let next = state.cursor.as_update().last_key().map_or(first, |last| number(last) + 1);
        // Whole lines in one write each, so that a kill leaves none in part.
        let say = |said: Said, key| println!("{said:?} {} {key}", lease.shard().as_raw());
        say(Said::Began, state.cursor.as_update().last_key().map_or(0, number));
        for at in next..end - 1 {
            let (bytes, id) = (key(at), OpId::from_raw(at));
            let cursor = CursorUpdate::new(Some(&bytes), Some(&bytes));
            say(Said::Sends, at);
            if coordinator.checkpoint(clock(), TENANT, &lease, cursor, id).is_err() {
                break;
            }
            say(Said::Stored, at);
        }
        let last = key(end - 1);
        let cursor = CursorUpdate::new(Some(&last), Some(&last));
        let _ = coordinator.complete(clock(), TENANT, &lease, cursor, OpId::from_raw(end));
    }
}
