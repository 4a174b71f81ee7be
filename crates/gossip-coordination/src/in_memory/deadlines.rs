//! Leased shards by deadline.
//!
//! A heap that knows where each shard is, so that a renewal moves it and an end takes it out, in
//! time that grows with the logarithm of the number of leases, whatever the workers' clocks say.
//! Four children to a node: half the depth of a binary heap, and siblings share a cache line.

use gossip_contracts::identity::LogicalTime;

const ARITY: usize = 4;
/// Not in the heap.
const NOWHERE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry {
    deadline: LogicalTime,
    shard: u32,
}

#[derive(Debug, Default)]
pub(super) struct Deadlines {
    heap: Vec<Entry>,
    /// For each shard of the run, its place in the heap.
    places: Vec<u32>,
}

impl Deadlines {
    /// Makes room for shards, so that leasing them allocates nothing.
    pub(super) fn reserve(&mut self, additional: usize) {
        self.places.reserve(additional);
        let shards = self.places.len() + additional;
        self.heap.reserve(shards.saturating_sub(self.heap.len()));
    }

    /// One more shard, not leased.
    pub(super) fn add_shard(&mut self) {
        self.places.push(NOWHERE);
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// Every leased shard, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u32> {
        self.heap.iter().map(|entry| entry.shard)
    }

    /// The lease that ends first.
    pub(super) fn first(&self) -> Option<(LogicalTime, u32)> {
        self.heap.first().map(|entry| (entry.deadline, entry.shard))
    }

    pub(super) fn insert(&mut self, shard: u32, deadline: LogicalTime) {
        assert!(self.places[shard as usize] == NOWHERE, "shard {shard} is leased twice");
        let entry = Entry { deadline, shard };
        self.heap.push(entry);
        self.sift_up(self.heap.len() - 1, entry);
    }

    pub(super) fn remove(&mut self, shard: u32) {
        let place = std::mem::replace(&mut self.places[shard as usize], NOWHERE) as usize;
        let last = self.heap.pop().expect("a shard in the heap");
        if place < self.heap.len() {
            // The last entry takes the gap, and may belong higher or lower.
            self.sift_up(place, last);
            let place = self.places[last.shard as usize] as usize;
            self.sift_down(place, last);
        }
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.places[entry.shard as usize] = place as u32;
    }

    fn sift_up(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].deadline <= entry.deadline {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, entry);
    }

    fn sift_down(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * ARITY + 1;
            let children = first..(first + ARITY).min(self.heap.len());
            let Some(least) = children.min_by_key(|&child| self.heap[child].deadline) else {
                break;
            };
            if entry.deadline <= self.heap[least].deadline {
                break;
            }
            self.put(place, self.heap[least]);
            place = least;
        }
        self.put(place, entry);
    }

    /// Panics unless every entry is where its shard says, and no child ends before its parent.
    pub(super) fn assert_ordered(&self, deadline_of: impl Fn(u32) -> LogicalTime) {
        for (place, entry) in self.heap.iter().enumerate() {
            assert!(self.places[entry.shard as usize] as usize == place, "A2: place {place}");
            assert!(entry.deadline == deadline_of(entry.shard), "A2: deadline at {place}");
            let parent = &self.heap[place.saturating_sub(1) / ARITY];
            assert!(parent.deadline <= entry.deadline, "A2: order at {place}");
        }
        let placed = self.places.iter().filter(|&&place| place != NOWHERE).count();
        assert!(placed == self.heap.len(), "A2: {placed} places for {}", self.heap.len());
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_heap_behaves_like_a_sorted_map(
            ops in proptest::collection::vec((0u32..40, 1u64..20), 0..300),
        ) {
            let mut heap = Deadlines::default();
            heap.reserve(40);
            (0..40).for_each(|_| heap.add_shard());
            let mut model: BTreeMap<u32, LogicalTime> = BTreeMap::new();
            for (shard, deadline) in ops {
                let deadline = LogicalTime::from_raw(deadline);
                if model.remove(&shard).is_some() {
                    heap.remove(shard);
                } else {
                    heap.insert(shard, deadline);
                    model.insert(shard, deadline);
                }
                heap.assert_ordered(|shard| model[&shard]);
                prop_assert_eq!(heap.len(), model.len());
                let earliest = model.values().min().copied();
                prop_assert_eq!(heap.first().map(|(deadline, _)| deadline), earliest);
            }
        }
    }
}
