//! `RingBuffer` against `VecDeque`, and its drops.

use crate::soak::cases;
use crate::tally::{Counted, Tally, panics};
use gossip_stdx::RingBuffer;
use proptest::prelude::*;
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Op {
    PushBack(String),
    PushBackOverwrite(String),
    PopFront,
    Clear,
    Clone,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => "[a-z]{0,3}".prop_map(Op::PushBack),
        5 => "[a-z]{0,3}".prop_map(Op::PushBackOverwrite),
        8 => Just(Op::PopFront),
        1 => Just(Op::Clear),
        1 => Just(Op::Clone),
    ]
}

fn apply<const N: usize>(ring: &mut RingBuffer<String, N>, model: &mut VecDeque<String>, op: Op) {
    match op {
        Op::PushBack(value) => {
            let expected = if model.len() == N { Err(value.clone()) } else { Ok(()) };
            assert_eq!(ring.push_back(value.clone()), expected);
            if expected.is_ok() {
                model.push_back(value);
            }
        }
        Op::PushBackOverwrite(value) => {
            let evicted = if model.len() == N { model.pop_front() } else { None };
            assert_eq!(ring.push_back_overwrite(value.clone()), evicted);
            model.push_back(value);
        }
        Op::PopFront => assert_eq!(ring.pop_front(), model.pop_front()),
        Op::Clear => {
            ring.clear();
            model.clear();
        }
        Op::Clone => {
            let copy = ring.clone();
            assert_eq!(copy, *ring);
            *ring = copy;
        }
    }
}

fn check<const N: usize>(ring: &RingBuffer<String, N>, model: &VecDeque<String>) {
    assert_eq!(ring.capacity(), N);
    assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
    assert_eq!(ring.is_full(), model.len() == N);
    assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
    for i in 0..=N {
        assert_eq!(ring.get(i), model.get(i));
    }
    assert_eq!(ring.iter().len(), model.len());
    assert!(ring.iter().eq(model));
    assert!(ring.iter().rev().eq(model.iter().rev()));
    assert_eq!(format!("{ring:?}"), format!("{model:?}"));
}

fn agree<const N: usize>(ops: &[Op]) {
    let mut ring: RingBuffer<String, N> = RingBuffer::new();
    let mut model = VecDeque::new();
    for op in ops {
        apply(&mut ring, &mut model, op.clone());
        check(&ring, &model);
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn agrees_with_vec_deque(ops in prop::collection::vec(any_op(), 100..300)) {
        agree::<1>(&ops);
        agree::<2>(&ops);
        agree::<8>(&ops);
    }

    #[test]
    fn iterating_from_both_ends_meets_in_the_middle(
        skipped in 0usize..8, len in 0usize..=8, turns in prop::collection::vec(any::<bool>(), 10),
    ) {
        let mut ring: RingBuffer<usize, 8> = RingBuffer::new();
        for i in 0..skipped + len {
            ring.push_back_overwrite(i);
            if i < skipped {
                ring.pop_front();
            }
        }
        let model: Vec<usize> = (skipped..skipped + len).collect();
        let (mut iter, mut expected) = (ring.iter(), model.iter());
        for from_front in turns {
            prop_assert_eq!(iter.len(), expected.len());
            if from_front {
                prop_assert_eq!(iter.next(), expected.next());
            } else {
                prop_assert_eq!(iter.next_back(), expected.next_back());
            }
        }
    }
}

/// A full ring whose oldest element is not in the first slot.
fn wrapped(tally: &Tally) -> RingBuffer<Counted, 4> {
    let mut ring = RingBuffer::new();
    for _ in 0..6 {
        drop(ring.push_back_overwrite(tally.element()));
    }
    assert_eq!((ring.len(), tally.dropped()), (4, 2));
    ring
}

#[test]
fn dropping_drops_each_element_once() {
    let tally = Tally::default();
    drop(wrapped(&tally));
    tally.assert_settled();
}

#[test]
fn overwriting_hands_the_oldest_over_undropped() {
    let tally = Tally::default();
    let mut ring = wrapped(&tally);
    let evicted = ring.push_back_overwrite(tally.element());
    assert_eq!(tally.dropped(), 2);
    drop(evicted);
    assert_eq!(tally.dropped(), 3);
    drop(ring);
    tally.assert_settled();
}

#[test]
fn a_refused_element_comes_back_undropped() {
    let tally = Tally::default();
    let mut ring = wrapped(&tally);
    let refused = ring.push_back(tally.element());
    assert!(refused.is_err());
    assert_eq!(tally.dropped(), 2);
    drop((refused, ring));
    tally.assert_settled();
}

#[test]
fn a_panicking_clone_drops_the_clones_made() {
    let tally = Tally::default();
    let ring = wrapped(&tally);
    tally.allow_clones(3);
    panics(|| drop(ring.clone()));
    assert_eq!(tally.dropped(), 2 + 3);
    drop(ring);
    tally.assert_settled();
}

#[test]
fn a_panicking_drop_neither_leaks_nor_repeats() {
    let end: [fn(RingBuffer<Counted, 4>); 2] = [|mut ring| ring.clear(), drop];
    for end in end {
        let tally = Tally::default();
        let mut ring = wrapped(&tally);
        drop(ring.push_back_overwrite(tally.element_that_panics_on_drop()));
        drop(ring.push_back_overwrite(tally.element()));
        panics(|| end(ring));
        tally.assert_settled();
    }
}

#[test]
fn a_const_ring_can_be_made() {
    const EMPTY: RingBuffer<String, 4> = RingBuffer::new();
    assert!(EMPTY.is_empty());
}
