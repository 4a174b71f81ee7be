use gossip_contracts::coordination::SplitReplacePlan;
use gossip_contracts::identity::{LogicalTime, OpId};
use gossip_coordination::{InMemoryCoordinator, WorkerSession};

fn twice(mut session: WorkerSession<'_, InMemoryCoordinator>, now: LogicalTime) {
    let _ = session.split_replace(now, &SplitReplacePlan::new([]), OpId::from_raw(1));
    let _ = session.renew(now);
}

fn main() {}
