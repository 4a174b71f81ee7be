use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{LogicalTime, OpId};
use gossip_coordination::{InMemoryCoordinator, WorkerSession};

fn twice(mut session: WorkerSession<'_, InMemoryCoordinator>, now: LogicalTime) {
    let _ = session.complete(now, CursorUpdate::at(b"m"), OpId::from_raw(1));
    let _ = session.renew(now);
}

fn main() {}
