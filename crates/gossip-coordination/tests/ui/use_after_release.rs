use gossip_contracts::identity::LogicalTime;
use gossip_coordination::{InMemoryCoordinator, WorkerSession};

fn twice(mut session: WorkerSession<'_, InMemoryCoordinator>, now: LogicalTime) {
    let _ = session.release(now);
    let _ = session.renew(now);
}

fn main() {}
