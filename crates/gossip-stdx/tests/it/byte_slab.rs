//! `ByteSlab` against a map of byte vectors.

use crate::soak::cases;
use gossip_stdx::{ByteSlab, ByteSlot, ReplaceError, SlabFull, StaleSlot};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};

const CAPACITY: usize = 16 * 1024 + 5;

#[derive(Clone, Debug)]
enum Op {
    Alloc { len: usize, fill: u8 },
    Free { pick: usize, zeroed: bool },
    Replace { pick: usize, len: usize, fill: u8 },
    Clear { zeroed: bool },
}

/// Mostly small records, some that need the size trees, a few that cannot fit.
fn any_len() -> impl Strategy<Value = usize> {
    prop_oneof![
        1 => Just(0usize),
        20 => 1usize..100,
        10 => 100usize..1_500,
        3 => 1_500usize..6_000,
        1 => 6_000usize..CAPACITY + 100,
    ]
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        40 => (any_len(), any::<u8>()).prop_map(|(len, fill)| Op::Alloc { len, fill }),
        35 => (any::<usize>(), any::<bool>())
            .prop_map(|(pick, zeroed)| Op::Free { pick, zeroed }),
        25 => (any::<usize>(), any_len(), any::<u8>())
            .prop_map(|(pick, len, fill)| Op::Replace { pick, len, fill }),
        1 => any::<bool>().prop_map(|zeroed| Op::Clear { zeroed }),
    ]
}

fn record(len: usize, fill: u8) -> Vec<u8> {
    (0..len).map(|i| fill.wrapping_add(i as u8)).collect()
}

/// The slab beside what it should hold.
struct Checked {
    slab: ByteSlab,
    live: HashMap<ByteSlot, Vec<u8>>,
    /// Live slots in a reproducible order.
    order: Vec<ByteSlot>,
    dead: Vec<ByteSlot>,
    foreign: (ByteSlab, ByteSlot),
}

impl Checked {
    fn new(slab: ByteSlab) -> Self {
        let mut other = ByteSlab::with_capacity(64);
        let slot = other.alloc(b"foreign").unwrap();
        Self {
            slab,
            live: HashMap::new(),
            order: Vec::new(),
            dead: Vec::new(),
            foreign: (other, slot),
        }
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Alloc { len, fill } => self.alloc(record(len, fill)),
            Op::Free { .. } | Op::Replace { .. } if self.order.is_empty() => {}
            Op::Free { pick, zeroed } => {
                let slot = self.order.swap_remove(pick % self.order.len());
                let freed = if zeroed { self.slab.free_zeroed(slot) } else { self.slab.free(slot) };
                assert_eq!(freed, Ok(()));
                self.live.remove(&slot);
                self.dead.push(slot);
            }
            Op::Replace { pick, len, fill } => {
                self.replace(pick % self.order.len(), record(len, fill));
            }
            Op::Clear { zeroed } => {
                if zeroed {
                    self.slab.clear_zeroed()
                } else {
                    self.slab.clear()
                }
                self.live.clear();
                self.dead.append(&mut self.order);
                assert_eq!(self.slab.untouched_bytes(), self.slab.capacity());
            }
        }
    }

    fn alloc(&mut self, bytes: Vec<u8>) {
        match self.slab.alloc(&bytes) {
            Ok(slot) => {
                assert!(self.live.insert(slot, bytes).is_none());
                self.order.push(slot);
            }
            Err(full) => {
                assert_eq!(full.requested, bytes.len());
                assert!(full.available < bytes.len());
                assert!(bytes.len() > self.slab.untouched_bytes());
                self.accepts_exactly(full.available);
            }
        }
    }

    /// `available` is the true limit: a record of that length fits and one byte more does not.
    fn accepts_exactly(&mut self, available: usize) {
        let refused = self.slab.alloc(&vec![0; available + 1]).unwrap_err();
        assert_eq!(refused.available, available);
        let accepted = self.slab.alloc(&vec![0; available]).unwrap();
        self.slab.free(accepted).unwrap();
        self.dead.push(accepted);
    }

    fn replace(&mut self, at: usize, bytes: Vec<u8>) {
        let old = self.order[at];
        match self.slab.replace(old, &bytes) {
            Ok(new) => {
                assert_ne!(old, new);
                self.order[at] = new;
                self.live.remove(&old);
                self.live.insert(new, bytes);
                self.dead.push(old);
            }
            Err(ReplaceError::Full(full)) => {
                assert!(bytes.len() > self.live[&old].len(), "a shorter record was refused");
                assert!(full.available < bytes.len());
            }
            Err(ReplaceError::Stale(_)) => panic!("a live slot was refused"),
        }
    }

    fn check(&mut self) {
        let slab = &mut self.slab;
        assert_eq!(slab.live_bytes() + slab.free_bytes() + slab.untouched_bytes(), slab.capacity());
        assert_eq!(slab.live_slots(), self.live.len());
        assert!(slab.live_bytes() >= self.live.values().map(Vec::len).sum::<usize>());
        for (&slot, bytes) in &self.live {
            assert_eq!(slab.get(slot), Ok(&bytes[..]));
            assert!(slab.contains(slot));
        }
        for &slot in self.dead.iter().chain([&self.foreign.1]) {
            assert_eq!(slab.get(slot), Err(StaleSlot));
            assert_eq!(slab.free(slot), Err(StaleSlot));
            assert_eq!(slab.free_zeroed(slot), Err(StaleSlot));
            assert_eq!(slab.replace(slot, b"x"), Err(ReplaceError::Stale(StaleSlot)));
            assert!(!slab.contains(slot));
        }
        for &slot in self.live.keys() {
            assert_eq!(self.foreign.0.get(slot), Err(StaleSlot));
        }
    }

    /// Frees what is left in random order; then one record takes the whole slab.
    fn drain(mut self) {
        for slot in self.live.keys() {
            self.slab.free(*slot).unwrap();
        }
        assert_eq!(self.slab.untouched_bytes(), self.slab.capacity());
        let all = vec![7; self.slab.capacity()];
        let slot = self.slab.alloc(&all).unwrap();
        assert_eq!(self.slab.get(slot), Ok(&all[..]));
        assert_eq!(self.slab.live_bytes(), self.slab.capacity());
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn agrees_with_a_map_of_vectors(ops in prop::collection::vec(any_op(), 100..400)) {
        let mut checked = Checked::new(ByteSlab::with_capacity(CAPACITY));
        for op in ops {
            checked.apply(op);
            checked.check();
        }
        checked.drain();
    }

    #[test]
    fn a_slab_short_of_slots_says_so_and_loses_none(
        ops in prop::collection::vec(any_op(), 50..200),
    ) {
        const SLOTS: usize = 5;
        let mut slab = ByteSlab::with_limits(CAPACITY, SLOTS);
        let mut live: Vec<ByteSlot> = Vec::new();
        for op in ops {
            match op {
                Op::Alloc { len, fill } => match slab.alloc(&record(len, fill)) {
                    Ok(slot) => live.push(slot),
                    Err(full) => prop_assert!(live.len() < SLOTS || full.available == 0),
                },
                Op::Free { pick, .. } if !live.is_empty() => {
                    let slot = live.swap_remove(pick % live.len());
                    prop_assert_eq!(slab.free(slot), Ok(()));
                }
                // A full table must not stop a replacement, in place or moving.
                Op::Replace { pick, len, fill } if !live.is_empty() => {
                    let at = pick % live.len();
                    if let Ok(new) = slab.replace(live[at], &record(len, fill)) {
                        live[at] = new;
                    }
                }
                _ => {}
            }
            prop_assert!(live.len() <= SLOTS);
            prop_assert_eq!(slab.live_slots(), live.len());
        }
    }
}

#[test]
fn an_empty_record_takes_a_slot_and_no_bytes() {
    let mut slab = ByteSlab::with_limits(0, 2);
    let first = slab.alloc(b"").unwrap();
    let second = slab.alloc(b"").unwrap();
    assert_ne!(first, second);
    assert_eq!(slab.alloc(b""), Err(SlabFull { requested: 0, available: 0 }));
    assert_eq!((slab.live_slots(), slab.live_bytes()), (2, 0));
    assert_eq!(slab.get(first), Ok(&b""[..]));
    let second = slab.replace(second, b"").unwrap();
    slab.free(first).unwrap();
    slab.free_zeroed(second).unwrap();
    assert_eq!(slab.live_slots(), 0);
}

#[test]
fn a_failed_replace_changes_nothing() {
    let mut slab = ByteSlab::with_capacity(64);
    let slot = slab.alloc(&[1; 40]).unwrap();
    let full = SlabFull { requested: 60, available: 16 };
    assert_eq!(slab.replace(slot, &[2; 60]), Err(ReplaceError::Full(full)));
    assert_eq!(slab.get(slot), Ok(&[1; 40][..]));
    assert_eq!(slab.live_slots(), 1);
}

#[test]
fn a_full_slab_still_shortens_a_record() {
    let mut slab = ByteSlab::with_limits(1000, 1);
    let slot = slab.alloc(&[1; 1000]).unwrap();
    let slot = slab.replace(slot, &[2; 600]).unwrap();
    assert_eq!(slab.live_bytes(), 1000, "more than half used: kept as slack");
    let slot = slab.replace(slot, &[3; 100]).unwrap();
    assert_eq!(slab.live_bytes(), 112);
    let slot = slab.replace(slot, b"").unwrap();
    assert_eq!(slab.live_bytes(), 0);
    assert_eq!(slab.get(slot), Ok(&b""[..]));
}

#[test]
fn capacity_is_exact_and_never_grows() {
    let mut slab = ByteSlab::with_capacity(100);
    assert_eq!(slab.alloc(&[0; 101]), Err(SlabFull { requested: 101, available: 100 }));
    let whole = slab.alloc(&[0; 100]).unwrap();
    assert_eq!(slab.alloc(&[0]), Err(SlabFull { requested: 1, available: 0 }));
    slab.free(whole).unwrap();
    assert_eq!(slab.capacity(), 100);
}

#[test]
fn a_slot_of_a_dropped_slab_is_stale_in_its_successor() {
    let slot = ByteSlab::with_capacity(64).alloc(b"one").unwrap();
    let mut next = ByteSlab::with_capacity(64);
    next.alloc(b"two").unwrap();
    assert_eq!(next.get(slot), Err(StaleSlot));
}

#[test]
fn slots_of_slabs_on_many_threads_never_meet() {
    let slots: Vec<ByteSlot> = std::thread::scope(|scope| {
        let fill = || {
            let mut slab = ByteSlab::with_limits(0, 1000);
            (0..1000).map(|_| slab.alloc(b"").unwrap()).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(fill)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(slots.iter().collect::<HashSet<_>>().len(), slots.len());
}

#[test]
fn debug_shows_figures_and_no_bytes() {
    let mut slab = ByteSlab::with_capacity(64);
    slab.alloc(b"AAAA").unwrap();
    let shown = format!("{slab:?}");
    assert!(shown.contains("live_bytes: 16"), "{shown}");
    assert!(!shown.contains("65") && !shown.contains("AAAA"), "{shown}");
}

#[test]
fn a_slab_of_one_slot_grows_its_record_again_and_again() {
    let mut slab = ByteSlab::with_limits(1000, 1);
    let mut slot = slab.alloc(&[0; 10]).unwrap();
    for (len, fill) in [(50, 1), (100, 2), (200, 3), (0, 4), (300, 5)] {
        slot = slab.replace(slot, &record(len, fill)).unwrap();
        assert_eq!(slab.get(slot), Ok(&record(len, fill)[..]));
    }
}

#[test]
#[should_panic(expected = "too large")]
fn a_capacity_that_cannot_be_indexed_is_refused() {
    ByteSlab::with_limits(ByteSlab::CAPACITY_MAX + 1, 1);
}
