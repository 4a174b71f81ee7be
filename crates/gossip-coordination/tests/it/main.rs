//! What users of the crate can rely on, seen from outside.

mod async_session;
mod codec_allocations;
mod conformance;
mod coordinator_allocations;
mod lost_answers;
mod session;

#[global_allocator]
static ALLOCATOR: gossip_testalloc::CountingAllocator = gossip_testalloc::CountingAllocator::new();
