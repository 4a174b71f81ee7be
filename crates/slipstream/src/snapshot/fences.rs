//! Ascending keys that divide a space: which part is a key in?
//!
//! - Z1: the first fence stands for "from the beginning on", whatever its bytes; the others ascend.
//! - Z2: all fences but the first share their first `shared` bytes, and `heads` holds the eight bytes
//!   that follow, as numbers.

use super::page::{common, search};

#[derive(Clone)]
pub(super) struct Fences {
    lows: Vec<Box<[u8]>>,
    shared: usize,
    heads: Vec<u64>,
}

fn head(rest: &[u8]) -> u64 {
    if let Some(head) = rest.first_chunk() {
        return u64::from_be_bytes(*head);
    }
    let mut head = [0; 8];
    head[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(head)
}

impl Fences {
    pub(super) fn new(first: Box<[u8]>) -> Self {
        Self { lows: vec![first], shared: 0, heads: vec![0] }
    }

    pub(super) fn len(&self) -> usize {
        self.lows.len()
    }

    pub(super) fn get(&self, part: usize) -> Option<&[u8]> {
        self.lows.get(part).map(|low| &**low)
    }

    /// The part that a key is in.
    pub(super) fn part(&self, key: &[u8]) -> usize {
        let Some(second) = self.lows.get(1) else { return 0 };
        let shared = &second[..self.shared];
        match key.strip_prefix(shared) {
            Some(rest) => {
                let found = search(&self.heads[1..], head(rest), key, |nth| &self.lows[nth + 1]);
                // The last fence that is not above the key.
                found.map_or_else(|above| above, |same| same + 1)
            }
            None if key < shared => 0,
            None => self.len() - 1,
        }
    }

    /// Adds a fence before `part`, which is not the first.
    pub(super) fn insert(&mut self, part: usize, low: Box<[u8]>) {
        if self.len() > 1 && low.starts_with(&self.lows[1][..self.shared]) {
            self.heads.insert(part, head(&low[self.shared..]));
            self.lows.insert(part, low);
        } else {
            self.lows.insert(part, low);
            self.refit();
        }
    }

    /// Takes a fence away, and the part before it goes on; if it is the first, the next part begins
    /// there.
    pub(super) fn remove(&mut self, part: usize) {
        self.lows.remove(part.max(1));
        self.heads.remove(part.max(1));
    }

    pub(super) fn set_first(&mut self, low: Box<[u8]>) {
        self.lows[0] = low;
    }

    pub(super) fn split_off(&mut self, part: usize) -> Self {
        let mut right = Self { lows: self.lows.split_off(part), shared: 0, heads: Vec::new() };
        self.refit();
        right.refit();
        right
    }

    fn refit(&mut self) {
        let last = self.lows.last().expect("there is a first one");
        self.shared = self.lows.get(1).map_or(0, |second| common(second, last));
        let rest = self.lows[1..].iter().map(|low| head(&low[self.shared..]));
        self.heads = std::iter::once(0).chain(rest).collect();
    }
}
