//! Every operation that changes something, for tests that disturb each of them.

use gossip_contracts::coordination::{
    CursorUpdate, ShardSpecRef, plan_split_replace_at_points, plan_split_residual_at_point,
};
use gossip_contracts::identity::{RunResult, WorkerId};
use gossip_coordination::{
    AcquireScratch, CoordinationBackend, IdempotentOutcome, Lease, ParkReason, RunManagement,
    ShardClaiming,
};
use gossip_coordination_etcd::EtcdCoordinator;
use gossip_coordination_etcd::consistency::Stored;
use gossip_coordination_etcd::kv::Kv;

use crate::world::*;

pub(crate) type Outcome = Result<IdempotentOutcome<()>, String>;

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
pub(crate) const OPERATIONS: [&str; 19] = [
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
pub(crate) const NOT_REPLAYED: [&str; 7] =
    ["acquire", "claim", "reacquire_own", "renew", "release", "create", "delete_run"];

/// Those that are several transactions.
pub(crate) const IN_STEPS: [&str; 2] = ["register", "delete_run"];

/// Brings everything to where `operation` can be carried out.
pub(crate) fn prepare<K: Kv>(
    coordinator: &mut EtcdCoordinator<K>,
    operation: &str,
) -> Option<Lease> {
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

pub(crate) fn attempt<K: Kv>(
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

/// Every key with its value, whatever the namespace: what an operation leaves behind.
pub(crate) fn contents(stored: &Stored) -> Vec<(String, Vec<u8>)> {
    let named = |key: &[u8]| key.escape_ascii().to_string().split_once('/').unwrap().1.to_owned();
    stored.contents().map(|(key, value)| (named(key), value.to_vec())).collect()
}
