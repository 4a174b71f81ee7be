//! What a slab operation costs as the slab fills, beside `Box<[u8]>` under the same traffic.
//!
//! Each store is filled half as far again as its live count and then thinned at random, so that the
//! free space is fragmented. A call frees (or replaces) one random record and stores another of
//! random length. The slab is shown against `Box` at the same live count, and both against
//! themselves at 1 k.
//!
//! Larger stores miss the caches more, whatever the algorithm, and the slab more than `Box`: its
//! descriptors lie apart from the bytes and from their neighbours. `dependent-read` gives the price
//! of one such miss: reads one after another at random in a table as large as the descriptors. That
//! the steps themselves stay logarithmic is for the tests of the free index to show, not for times.

use gossip_bench::compare;
use gossip_stdx::{ByteSlab, ByteSlot};
use std::hint::black_box;

static RECORD: [u8; 4096] = [0xa5; 4096];

/// xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * end as u128) >> 64) as usize
    }
}

/// Record lengths.
#[derive(Clone, Copy)]
enum Mix {
    /// Keys and cursors, with the odd long one.
    Mixed,
    /// Past the size classes of one size each.
    Large,
}

impl Mix {
    fn record(self, random: &mut Random) -> &'static [u8] {
        let len = match (self, random.below(100)) {
            (Self::Mixed, 0..70) => 8 + random.below(56),
            (Self::Mixed, 70..95) => 64 + random.below(192),
            (Self::Mixed, _) => 256 + random.below(1792),
            (Self::Large, _) => 512 + random.below(3584),
        };
        &RECORD[..len]
    }

    fn mean_len(self) -> usize {
        match self {
            Self::Mixed => 130,
            Self::Large => 2304,
        }
    }
}

trait Store {
    type Handle;
    fn alloc(&mut self, record: &[u8]) -> Self::Handle;
    fn free(&mut self, handle: Self::Handle);
    fn replace(&mut self, handle: &mut Self::Handle, record: &[u8]);
}

impl Store for ByteSlab {
    type Handle = ByteSlot;

    fn alloc(&mut self, record: &[u8]) -> ByteSlot {
        ByteSlab::alloc(self, record).expect("the slab was made large enough")
    }

    fn free(&mut self, slot: ByteSlot) {
        ByteSlab::free(self, slot).expect("the slot is live");
    }

    fn replace(&mut self, slot: &mut ByteSlot, record: &[u8]) {
        *slot = ByteSlab::replace(self, *slot, record).expect("the slab was made large enough");
    }
}

struct Heap;

impl Store for Heap {
    type Handle = Box<[u8]>;

    fn alloc(&mut self, record: &[u8]) -> Box<[u8]> {
        record.into()
    }

    fn free(&mut self, record: Box<[u8]>) {
        drop(record);
    }

    fn replace(&mut self, handle: &mut Box<[u8]>, record: &[u8]) {
        *handle = record.into();
    }
}

/// A store under random traffic.
struct Traffic<S: Store> {
    store: S,
    live: Vec<Option<S::Handle>>,
    random: Random,
    mix: Mix,
}

impl<S: Store> Traffic<S> {
    fn new(store: S, live: usize, mix: Mix) -> Self {
        let random = Random(0x9e37_79b9_7f4a_7c15);
        let mut traffic = Self { store, live: Vec::new(), random, mix };
        for _ in 0..live + live / 2 {
            let record = mix.record(&mut traffic.random);
            let handle = traffic.store.alloc(record);
            traffic.live.push(Some(handle));
        }
        for _ in 0..live / 2 {
            let at = traffic.random.below(traffic.live.len());
            traffic.store.free(traffic.live.swap_remove(at).expect("every place is live"));
        }
        // Two turnovers, so that the free space is that of a store long in use.
        for _ in 0..2 * live {
            traffic.alloc_free();
        }
        traffic
    }

    fn alloc_free(&mut self) {
        let record = self.mix.record(&mut self.random);
        let place = self.random.below(self.live.len());
        let place = &mut self.live[place];
        self.store.free(place.take().expect("every place is live"));
        *place = Some(self.store.alloc(black_box(record)));
    }

    fn replace(&mut self) {
        let record = self.mix.record(&mut self.random);
        let place = self.random.below(self.live.len());
        let handle = self.live[place].as_mut().expect("every place is live");
        self.store.replace(handle, black_box(record));
    }
}

fn slab(live: usize, mix: Mix) -> Traffic<ByteSlab> {
    let slots = live * 2;
    Traffic::new(ByteSlab::with_limits(slots * mix.mean_len() + 16 * slots, slots), live, mix)
}

/// One random cycle through a table of entries as large as two block descriptors for each record.
struct Reads {
    table: Vec<[u32; 16]>,
    at: usize,
}

impl Reads {
    fn new(live: usize) -> Self {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let mut table: Vec<[u32; 16]> = (0..live as u32).map(|next| [next; 16]).collect();
        // Sattolo's shuffle: a permutation that is a single cycle.
        for last in (1..live).rev() {
            table.swap(last, random.below(last));
        }
        Self { table, at: 0 }
    }

    fn read(&mut self) {
        self.at = black_box(self.table[self.at][0]) as usize;
    }
}

fn measure(label: &str, live: usize, mix: Mix) {
    let (mut slab_1k, mut slab) = (slab(1_000, mix), slab(live, mix));
    let (mut heap_1k, mut heap) = (Traffic::new(Heap, 1_000, mix), Traffic::new(Heap, live, mix));

    let name = |store: &str, op: &str, reference: &str| format!("{store}-{op}-{label}-{reference}");
    let op = "alloc-free";
    compare(&name("slab", op, "vs-box"), || heap.alloc_free(), || slab.alloc_free());
    compare(&name("slab", op, "vs-1k"), || slab_1k.alloc_free(), || slab.alloc_free());
    compare(&name("box", op, "vs-1k"), || heap_1k.alloc_free(), || heap.alloc_free());
    let op = "replace";
    compare(&name("slab", op, "vs-box"), || heap.replace(), || slab.replace());
    compare(&name("slab", op, "vs-1k"), || slab_1k.replace(), || slab.replace());
    compare(&name("box", op, "vs-1k"), || heap_1k.replace(), || heap.replace());

    let (mut reads_1k, mut reads) = (Reads::new(1_000), Reads::new(live));
    compare(&format!("dependent-read-{label}-vs-1k"), || reads_1k.read(), || reads.read());

    let slab = &slab.store;
    let live_share = slab.live_bytes() as f64 / (slab.live_bytes() + slab.free_bytes()) as f64;
    gossip_bench::figure(&format!("slab-fill-{label}"), 100.0 * live_share, "%", None);
}

fn main() {
    measure("1k", 1_000, Mix::Mixed);
    measure("100k", 100_000, Mix::Mixed);
    measure("1m", 1_000_000, Mix::Mixed);
    measure("large-100k", 100_000, Mix::Large);
}
