use gossip_contracts::identity::{LogicalTime, ShardKey, TenantId, WorkerId};
use gossip_coordination::{InMemoryCoordinator, WorkerSession};

fn both(
    backend: &mut InMemoryCoordinator,
    now: LogicalTime,
    tenant: TenantId,
    key: ShardKey,
    worker: WorkerId,
) {
    let mut first = WorkerSession::new(backend, now, tenant, key, worker).unwrap();
    let mut second = WorkerSession::new(backend, now, tenant, key, worker).unwrap();
    let _ = (first.renew(now), second.renew(now));
}

fn main() {}
