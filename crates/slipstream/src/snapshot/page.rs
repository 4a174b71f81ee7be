//! A page of a fold: where some neighbouring entries are, in the order of their keys.
//!
//! A search reads the four bytes in which the keys differ first (`heads`), then the entry that
//! agrees in them, as a rule the only one. A page lies in one piece, so that these reads are few.
//!
//! - G1: `heads` and the keys behind `addresses` ascend together.
//! - G2: every key of the page, and every key that is looked up in it, has the same first `skip`
//!   bytes. (The tree sees to it: they lie between the same two fences.)

use super::arena::{Address, Arena};

pub(super) const PAGE_ENTRIES: usize = 64;

#[derive(Clone)]
pub(super) struct Page {
    len: usize,
    skip: usize,
    heads: [u32; PAGE_ENTRIES],
    addresses: [Address; PAGE_ENTRIES],
}

/// The bytes after the common prefix, as a number that compares as they do, as far as it goes.
fn head(rest: &[u8]) -> u32 {
    if let Some(head) = rest.first_chunk() {
        return u32::from_be_bytes(*head);
    }
    let mut head = [0; 4];
    head[..rest.len()].copy_from_slice(rest);
    u32::from_be_bytes(head)
}

/// How many bytes two keys have in common at their beginning.
pub(super) fn common(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Where `key`, with this head, is among ascending keys, or would be.
pub(super) fn search<'a, H: Ord>(
    heads: &[H],
    head: H,
    key: &[u8],
    nth: impl Fn(usize) -> &'a [u8],
) -> Result<usize, usize> {
    let mut from = heads.partition_point(|other| *other < head);
    let mut to = from;
    if heads.get(from) == Some(&head) {
        to += heads[from..].partition_point(|other| *other == head);
    }
    while from < to {
        let middle = from.midpoint(to);
        match nth(middle).cmp(key) {
            std::cmp::Ordering::Less => from = middle + 1,
            std::cmp::Ordering::Equal => return Ok(middle),
            std::cmp::Ordering::Greater => to = middle,
        }
    }
    Err(from)
}

impl Page {
    pub(super) fn new() -> Self {
        Self {
            len: 0,
            skip: 0,
            heads: [0; PAGE_ENTRIES],
            addresses: [Address::default(); PAGE_ENTRIES],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_full(&self) -> bool {
        self.len == PAGE_ENTRIES
    }

    pub(super) fn addresses(&self) -> &[Address] {
        &self.addresses[..self.len]
    }

    pub(super) fn find(&self, arena: &Arena, key: &[u8]) -> Result<usize, usize> {
        let heads = &self.heads[..self.len];
        search(heads, head(&key[self.skip..]), key, |index| arena.entry(self.addresses[index]).key)
    }

    /// Reads every cache line that a search may read.
    pub(super) fn touch(&self) -> u32 {
        const LINE: usize = 16;
        self.heads.iter().step_by(LINE).fold(self.len as u32, |sum, &head| sum.wrapping_add(head))
    }

    /// The only entry that a search for `key` will look at, as a rule.
    pub(super) fn candidate(&self, key: &[u8]) -> Option<Address> {
        let head = head(&key[self.skip..]);
        let index = self.heads[..self.len].partition_point(|&other| other < head);
        self.addresses().get(index).copied()
    }

    /// Adds an entry that is not there, at the place that [`find`](Self::find) gave.
    pub(super) fn insert(&mut self, index: usize, key: &[u8], at: Address) {
        self.heads.copy_within(index..self.len, index + 1);
        self.addresses.copy_within(index..self.len, index + 1);
        self.heads[index] = head(&key[self.skip..]);
        self.addresses[index] = at;
        self.len += 1;
    }

    pub(super) fn remove(&mut self, index: usize) {
        self.heads.copy_within(index + 1..self.len, index);
        self.addresses.copy_within(index + 1..self.len, index);
        self.len -= 1;
    }

    pub(super) fn set_address(&mut self, index: usize, at: Address) {
        self.addresses[index] = at;
    }

    /// Splits off the entries from `at` on. The new page must be told its fences.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::new();
        right.len = self.len - at;
        right.addresses[..right.len].copy_from_slice(&self.addresses[at..self.len]);
        self.len = at;
        right
    }

    /// Sets how many bytes all keys between the page's fences share.
    pub(super) fn set_skip(&mut self, skip: usize, arena: &Arena) {
        self.skip = skip;
        for (head_of, &at) in self.heads.iter_mut().zip(&self.addresses[..self.len]) {
            *head_of = head(&arena.entry(at).key[skip..]);
        }
    }
}
