//! The containers against their std models, their drop counts and their allocation counts.

mod byte_slab;
mod inline_vec;
mod ring_buffer;
mod soak;
mod tally;
mod zero_alloc;

#[global_allocator]
static ALLOCATOR: gossip_testalloc::CountingAllocator = gossip_testalloc::CountingAllocator::new();
