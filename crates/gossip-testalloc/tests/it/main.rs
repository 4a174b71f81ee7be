//! The counting allocator, installed and counted against known traffic.

use gossip_testalloc::{AllocationCount, CountingAllocator, count_allocations};
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

#[test]
fn each_kind_of_call_is_counted() {
    let (mut bytes, count) = count_allocations(|| black_box(Vec::<u8>::with_capacity(10)));
    assert_eq!(count, AllocationCount { allocations: 1, bytes: 10, ..Default::default() });

    let (_, count) = count_allocations(|| bytes.reserve_exact(black_box(30)));
    assert_eq!(count, AllocationCount { reallocations: 1, bytes: 30, ..Default::default() });

    let (_, count) = count_allocations(|| drop(black_box(bytes)));
    assert_eq!(count, AllocationCount { deallocations: 1, ..Default::default() });

    let (_zeroed, count) = count_allocations(|| black_box(vec![0u8; 7]));
    assert_eq!(count, AllocationCount { allocations: 1, bytes: 7, ..Default::default() });
}

#[test]
fn counting_nothing_counts_nothing() {
    let (_, count) = count_allocations(|| ());
    assert!(count.is_zero());
}

#[test]
fn another_threads_allocations_are_not_counted() {
    use std::sync::Barrier;
    let start = Barrier::new(2);
    let done = Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            start.wait();
            let (_, theirs) = count_allocations(|| drop(black_box(vec![1u8; 1000])));
            assert_eq!(theirs.bytes, 1000);
            done.wait();
        });
        let (_, ours) = count_allocations(|| {
            start.wait();
            done.wait();
        });
        assert_eq!(ours.bytes, 0);
    });
}

#[test]
fn nested_counts_both_see_the_inner_traffic() {
    let ((_, inner), outer) =
        count_allocations(|| count_allocations(|| drop(black_box(Box::new([0u8; 64])))));
    assert_eq!(inner.allocations, 1);
    // The inner call's own probe shows in the outer count.
    assert_eq!(outer.allocations, 2);
}

#[test]
fn allocating_in_a_thread_local_destructor_is_safe() {
    struct Allocates;
    impl Drop for Allocates {
        fn drop(&mut self) {
            drop(black_box(vec![0u8; 128]));
        }
    }
    thread_local! {
        static AT_EXIT: Allocates = const { Allocates };
    }
    std::thread::spawn(|| AT_EXIT.with(|_| drop(black_box(Box::new(1u8))))).join().unwrap();
}
