//! What the containers claim not to allocate, counted.

use gossip_stdx::{ByteSlab, ByteSlot, InlineVec, RingBuffer};
use gossip_testalloc::count_allocations;

#[test]
fn inline_vectors_do_not_allocate() {
    let (_, count) = count_allocations(|| {
        let mut vec: InlineVec<u64, 8> = (0..8).collect();
        vec.pop();
        vec.push(9);
        vec.truncate(4);
        vec.extend_from_slice(&[1, 2, 3, 4]);
        vec.clone().into_iter().rev().collect::<InlineVec<u64, 8>>()
    });
    assert!(count.is_zero(), "{count:?}");
}

#[test]
fn spilling_allocates_once_when_the_length_is_known() {
    let (vec, count) = count_allocations(|| InlineVec::<u64, 2>::from(&[7; 100][..]));
    assert!(vec.spilled());
    assert_eq!((count.allocations, count.reallocations), (1, 0));
}

#[test]
fn ring_buffers_do_not_allocate() {
    let (_, count) = count_allocations(|| {
        let mut ring: RingBuffer<u64, 8> = RingBuffer::new();
        for i in 0..20 {
            if i % 3 == 0 {
                let _ = ring.push_back(i);
            } else {
                ring.push_back_overwrite(i);
            }
        }
        assert_eq!(ring.clone(), ring);
        assert_eq!(ring.iter().rev().count(), 8);
        ring.pop_front();
        ring.clear();
    });
    assert!(count.is_zero(), "{count:?}");
}

/// xorshift64: reproducible, and nothing to allocate.
fn next(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state as usize
}

#[test]
fn a_slab_allocates_only_when_it_is_made() {
    const SLOTS: usize = 400;
    let record = [5u8; 2000];
    let mut live: Vec<Option<ByteSlot>> = vec![None; SLOTS];
    let mut refused = 0;
    // From the first operation on, not merely in the steady state; and past the stamps' batch.
    let mut slab = ByteSlab::with_capacity(100_000);
    let (_, count) = count_allocations(|| {
        let mut state = 1;
        for _ in 0..200_000 {
            let record = &record[..next(&mut state) % if state % 8 == 0 { 2000 } else { 200 }];
            let slot = &mut live[next(&mut state) % SLOTS];
            match (*slot, next(&mut state) % 4) {
                (None, _) => match slab.alloc(record) {
                    Ok(new) => *slot = Some(new),
                    Err(_) => refused += 1,
                },
                (Some(old), 0) => slab.free(old).unwrap(),
                (Some(old), 1) => slab.free_zeroed(old).unwrap(),
                (Some(old), _) => match slab.replace(old, record) {
                    Ok(new) => *slot = Some(new),
                    Err(_) => refused += 1,
                },
            }
            if slot.is_some_and(|slot| !slab.contains(slot)) {
                *slot = None;
            }
        }
        slab.clear();
        slab.clear_zeroed();
    });
    assert!(count.is_zero(), "{count:?}");
    assert!(refused > 0, "the slab was never full");
}
