use gossip_contracts::identity::{LogicalTime, OpId};
use gossip_coordination::ParkReason;
use gossip_coordination::{InMemoryCoordinator, WorkerSession};

fn twice(mut session: WorkerSession<'_, InMemoryCoordinator>, now: LogicalTime) {
    let _ = session.park(now, ParkReason::Other, OpId::from_raw(1));
    let _ = session.renew(now);
}

fn main() {}
