//! `InlineVec` against `Vec`, and its drops.

use crate::soak::cases;
use crate::tally::{Counted, Tally, panics};
use gossip_stdx::InlineVec;
use proptest::prelude::*;
use std::hash::{BuildHasher, RandomState};

#[derive(Clone, Debug)]
enum Op {
    Push(String),
    Pop,
    Truncate(usize),
    Clear,
    ExtendFromSlice(Vec<String>),
    Extend(Vec<String>),
    Write(usize, String),
    Clone,
    RoundTrip { front: usize, back: usize },
}

fn any_op() -> impl Strategy<Value = Op> {
    let any_strings = || prop::collection::vec("[a-z]{0,3}", 0..5);
    prop_oneof![
        8 => "[a-z]{0,3}".prop_map(Op::Push),
        6 => Just(Op::Pop),
        2 => (0usize..12).prop_map(Op::Truncate),
        1 => Just(Op::Clear),
        2 => any_strings().prop_map(Op::ExtendFromSlice),
        2 => any_strings().prop_map(Op::Extend),
        2 => (any::<usize>(), "[a-z]{0,3}").prop_map(|(at, value)| Op::Write(at, value)),
        1 => Just(Op::Clone),
        1 => (0usize..3, 0usize..3).prop_map(|(front, back)| Op::RoundTrip { front, back }),
    ]
}

fn apply<const N: usize>(vec: &mut InlineVec<String, N>, model: &mut Vec<String>, op: Op) {
    match op {
        Op::Push(value) => {
            vec.push(value.clone());
            model.push(value);
        }
        Op::Pop => assert_eq!(vec.pop(), model.pop()),
        Op::Truncate(len) => {
            vec.truncate(len);
            model.truncate(len);
        }
        Op::Clear => {
            vec.clear();
            model.clear();
        }
        Op::ExtendFromSlice(values) => {
            vec.extend_from_slice(&values);
            model.extend_from_slice(&values);
        }
        Op::Extend(values) => {
            // Without a size hint, unlike the slice above.
            vec.extend(values.iter().filter(|_| true).cloned());
            model.extend(values);
        }
        Op::Write(at, value) if !model.is_empty() => {
            let at = at % model.len();
            vec[at] = value.clone();
            model[at] = value;
        }
        Op::Write(..) => {}
        Op::Clone => {
            let copy = vec.clone();
            assert_eq!(copy, *vec);
            assert_eq!(copy.spilled(), vec.len() > N);
            *vec = copy;
        }
        Op::RoundTrip { front, back } => {
            let mut iter = std::mem::take(vec).into_iter();
            let mut model_iter = std::mem::take(model).into_iter();
            for _ in 0..front {
                assert_eq!(iter.next(), model_iter.next());
            }
            for _ in 0..back {
                assert_eq!(iter.next_back(), model_iter.next_back());
            }
            assert_eq!(format!("{iter:?}"), format!("{model_iter:?}"));
            assert_eq!(iter.len(), model_iter.len());
            *vec = iter.collect();
            *model = model_iter.collect();
        }
    }
}

fn check<const N: usize>(vec: &mut InlineVec<String, N>, model: &mut Vec<String>) {
    assert_eq!(vec.as_slice(), model.as_slice());
    assert_eq!(vec.as_mut_slice(), model.as_mut_slice());
    assert_eq!((vec.len(), vec.is_empty()), (model.len(), model.is_empty()));
    assert!(vec.iter().eq(model.iter()));
    assert_eq!(format!("{vec:?}"), format!("{model:?}"));
    assert_eq!(*vec, InlineVec::from(model.as_slice()));
    let hasher = RandomState::new();
    assert_eq!(hasher.hash_one(&*vec), hasher.hash_one(&*model));
}

fn agree<const N: usize>(ops: &[Op]) {
    let mut vec: InlineVec<String, N> = InlineVec::new();
    let mut model = Vec::new();
    let mut was_spilled = false;
    for op in ops {
        apply(&mut vec, &mut model, op.clone());
        check(&mut vec, &mut model);
        assert!(vec.spilled() || vec.len() <= N);
        let starts_afresh = matches!(op, Op::Clone | Op::RoundTrip { .. });
        assert!(vec.spilled() || !was_spilled || starts_afresh, "returned inline");
        was_spilled = vec.spilled();
    }
}

proptest! {
    #![proptest_config(cases(128))]

    #[test]
    fn agrees_with_vec(ops in prop::collection::vec(any_op(), 100..300)) {
        agree::<0>(&ops);
        agree::<1>(&ops);
        agree::<4>(&ops);
        agree::<16>(&ops);
    }
}

fn filled<const N: usize>(tally: &Tally, len: usize) -> InlineVec<Counted, N> {
    (0..len).map(|_| tally.element()).collect()
}

/// Runs `f` on a vector that is inline and on one that is not.
fn inline_and_spilled(f: impl Fn(&Tally, InlineVec<Counted, 4>)) {
    for len in [4, 6] {
        let tally = Tally::default();
        let vec = filled(&tally, len);
        assert_eq!(vec.spilled(), len > 4);
        f(&tally, vec);
        tally.assert_settled();
    }
}

#[test]
fn spilling_moves_elements_without_dropping_them() {
    let tally = Tally::default();
    let mut vec: InlineVec<_, 2> = filled(&tally, 2);
    vec.push(tally.element());
    assert!(vec.spilled());
    assert_eq!(tally.dropped(), 0);
    vec.clear();
    assert!(vec.spilled());
    assert_eq!(tally.dropped(), 3);
    tally.assert_settled();
}

#[test]
fn dropping_drops_each_element_once() {
    inline_and_spilled(|_, vec| drop(vec));
}

#[test]
fn truncate_and_pop_drop_each_element_once() {
    inline_and_spilled(|tally, mut vec| {
        let len = vec.len();
        vec.truncate(2);
        assert_eq!(tally.dropped(), len - 2);
        vec.pop();
        assert_eq!(tally.dropped(), len - 1);
    });
}

#[test]
fn a_half_consumed_iterator_drops_the_rest() {
    inline_and_spilled(|tally, vec| {
        let mut iter = vec.into_iter();
        drop(iter.next());
        drop(iter.next_back());
        assert_eq!(tally.dropped(), 2);
        drop(iter);
    });
}

#[test]
fn a_panicking_clone_drops_the_clones_made() {
    inline_and_spilled(|tally, vec| {
        tally.allow_clones(3);
        panics(|| drop(vec.clone()));
        assert_eq!(tally.dropped(), 3);
    });
}

#[test]
fn a_panicking_clone_in_extend_from_slice_keeps_what_was_appended() {
    inline_and_spilled(|tally, mut vec| {
        let len = vec.len();
        let more: Vec<Counted> = (0..4).map(|_| tally.element()).collect();
        tally.allow_clones(2);
        panics(|| vec.extend_from_slice(&more));
        assert_eq!(vec.len(), len + 2);
        assert_eq!(tally.dropped(), 0);
    });
}

#[test]
fn a_panicking_iterator_in_extend_keeps_what_was_appended() {
    inline_and_spilled(|tally, mut vec| {
        vec.truncate(3);
        panics(|| {
            vec.extend((0..5).map(|i| if i < 4 { tally.element() } else { panic!("fifth") }))
        });
        assert_eq!(vec.len(), 7);
    });
}

#[test]
fn a_panicking_drop_neither_leaks_nor_repeats() {
    let shorten: [fn(&mut InlineVec<Counted, 8>); 2] = [InlineVec::clear, |vec| vec.truncate(1)];
    for shorten in shorten {
        let tally = Tally::default();
        let mut vec: InlineVec<_, 8> = filled(&tally, 2);
        vec.push(tally.element_that_panics_on_drop());
        vec.extend([tally.element(), tally.element()]);
        panics(|| shorten(&mut vec));
        drop(vec);
        tally.assert_settled();
    }

    let tally = Tally::default();
    let mut vec: InlineVec<_, 8> = filled(&tally, 2);
    vec.push(tally.element_that_panics_on_drop());
    vec.push(tally.element());
    let mut iter = vec.into_iter();
    drop(iter.next());
    panics(|| drop(iter));
    tally.assert_settled();
}

#[test]
fn elements_without_size_are_counted_and_dropped() {
    let mut vec: InlineVec<(), 2> = InlineVec::new();
    vec.extend([(), (), ()]);
    assert!(vec.spilled());
    assert_eq!(vec.into_iter().count(), 3);
}

#[test]
fn borrowed_iteration_reaches_every_element() {
    let mut vec: InlineVec<u32, 4> = InlineVec::from(&[1, 2, 3][..]);
    for value in &mut vec {
        *value *= 10;
    }
    let mut seen = Vec::new();
    for value in &vec {
        seen.push(*value);
    }
    assert_eq!(seen, [10, 20, 30]);
}

#[test]
fn a_const_vector_can_be_made() {
    const EMPTY: InlineVec<String, 3> = InlineVec::new();
    assert!(EMPTY.is_empty());
}
