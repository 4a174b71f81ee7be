//! Operations in steady state leave the heap alone but for what SQLite's binding itself takes.

use gossip_contracts::coordination::CursorUpdate;
use gossip_contracts::identity::{OpId, WorkerId};
use gossip_coordination::{AcquireScratch, CoordinationBackend, ShardClaiming};
use gossip_testalloc::{CountingAllocator, count_allocations};

use crate::support::{NOW, Place, RUN, TENANT, begin, key};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn claims_and_checkpoints_hardly_allocate_once_warm() {
    let place = Place::new();
    let mut coordinator = place.open();
    begin(&mut coordinator, 4, 1000, 60_000);
    let mut scratch = Box::new(AcquireScratch::new());
    let worker = WorkerId::from_raw(1);
    let mut most = [(0, 0); 3];
    for round in 0..40u64 {
        let (lease, claim) = count_allocations(|| {
            coordinator.claim_next_available(NOW, TENANT, RUN, worker, &mut scratch).unwrap().lease
        });
        let at = key(1 + 1000 * lease.shard().as_raw() + round);
        let op = OpId::from_raw(round);
        let (_, checkpoint) = count_allocations(|| {
            coordinator.checkpoint(NOW, TENANT, &lease, CursorUpdate::at(&at), op).unwrap()
        });
        let (_, renew) = count_allocations(|| coordinator.renew(NOW, TENANT, &lease).unwrap());
        coordinator.release(NOW, TENANT, &lease).unwrap();
        if round >= 20 {
            for (most, count) in most.iter_mut().zip([claim, checkpoint, renew]) {
                *most = (most.0.max(count.allocations), most.1.max(count.bytes));
            }
        }
    }
    println!("claim, checkpoint, renew: allocations and bytes {most:?}");
    // The binding takes a small block for each statement that it fetches from its cache.
    for (allocations, bytes) in most {
        assert!(allocations <= 16 && bytes <= 2048, "{most:?}");
    }
}
