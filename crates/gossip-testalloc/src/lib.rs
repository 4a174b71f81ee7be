//! A counting allocator for tests that claim to allocate nothing.
//!
//! Counts are per thread, so tests running beside each other do not disturb one another. Only for
//! tests and benches: every allocation of the process pays for the counting.
//!
//! ```
//! use gossip_testalloc::{CountingAllocator, count_allocations};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator::new();
//!
//! let (sum, count) = count_allocations(|| (1..=4).sum::<u32>());
//! assert_eq!(sum, 10);
//! assert_eq!(count.allocations, 0);
//!
//! let (_, count) = count_allocations(|| vec![0u8; 100]);
//! assert_eq!((count.allocations, count.bytes), (1, 100));
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

/// The system allocator, counting what each thread asks of it.
#[derive(Debug, Default)]
pub struct CountingAllocator(());

impl CountingAllocator {
    /// For a `#[global_allocator]` static.
    pub const fn new() -> Self {
        Self(())
    }
}

/// What one thread asked of the allocator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationCount {
    /// New blocks, zeroed or not.
    pub allocations: u64,
    /// Blocks given back.
    pub deallocations: u64,
    /// Blocks resized, moved or not.
    pub reallocations: u64,
    /// Bytes asked for by allocations, and by reallocations in full.
    pub bytes: u64,
}

impl AllocationCount {
    const ZERO: Self = Self { allocations: 0, deallocations: 0, reallocations: 0, bytes: 0 };

    /// True when the allocator was not called at all.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations - earlier.allocations,
            deallocations: self.deallocations - earlier.deallocations,
            reallocations: self.reallocations - earlier.reallocations,
            bytes: self.bytes - earlier.bytes,
        }
    }
}

thread_local! {
    // Const-initialised and without a destructor: reaching it neither allocates nor registers
    // anything to run at thread exit.
    static COUNT: Cell<AllocationCount> = const { Cell::new(AllocationCount::ZERO) };
}

/// Runs `f` and returns what this thread asked of the allocator meanwhile. Calls nest.
///
/// # Panics
///
/// When [`CountingAllocator`] is not the global allocator: a count of zero would mean nothing.
pub fn count_allocations<R>(f: impl FnOnce() -> R) -> (R, AllocationCount) {
    let probe = COUNT.get();
    drop(black_box(Box::new(0u8)));
    assert!(
        COUNT.get() != probe,
        "nothing is counted: install CountingAllocator as the #[global_allocator]"
    );

    let before = COUNT.get();
    let result = f();
    (result, COUNT.get().since(before))
}

fn record(change: impl FnOnce(&mut AllocationCount)) {
    // Platforms may tear the thread-local down before the thread's last allocation; that one goes
    // uncounted.
    let _ = COUNT.try_with(|cell| {
        let mut count = cell.get();
        change(&mut count);
        cell.set(count);
    });
}

fn record_allocation(size: usize) {
    record(|count| {
        count.allocations += 1;
        count.bytes += size as u64;
    });
}

// SAFETY: every method hands its arguments to `System` unchanged and returns what it returns;
// `record` neither allocates nor unwinds.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record_allocation(layout.size());
        // SAFETY: the caller keeps `GlobalAlloc::alloc_zeroed`'s contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        record(|count| count.deallocations += 1);
        // SAFETY: the caller keeps `GlobalAlloc::dealloc`'s contract, and `ptr` came from `System`.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        record(|count| {
            count.reallocations += 1;
            count.bytes += new_size as u64;
        });
        // SAFETY: the caller keeps `GlobalAlloc::realloc`'s contract, and `ptr` came from `System`.
        unsafe { System.realloc(ptr, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "nothing is counted")]
    fn counting_without_the_allocator_installed_is_refused() {
        count_allocations(|| ());
    }
}
