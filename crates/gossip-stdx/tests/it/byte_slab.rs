//! `ByteSlab` against a map of byte vectors.

use gossip_stdx::{ByteSlab, ByteSlot, ReplaceError, StaleSlot};
use proptest::prelude::*;
use std::collections::HashMap;

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
    #![proptest_config(crate::cases(192))]

    #[test]
    fn agrees_with_a_map_of_vectors(ops in prop::collection::vec(any_op(), 100..400)) {
        let mut checked = Checked::new(ByteSlab::with_capacity(CAPACITY));
        for op in ops {
            checked.apply(op);
            checked.check();
        }
        checked.drain();
    }
}
