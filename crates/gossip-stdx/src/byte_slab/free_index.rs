//! Free blocks by size, for best fit.
//!
//! Sizes fall into classes: one per size up to 31 granules, then sixteen per power of two. A class
//! of one size is a list, so small blocks cost O(1). A class of several sizes is a digital search
//! tree: a block's path spells its size bit by bit and then its index, so the depth is bounded by
//! the bits that differ (at most 23 for the size, then those that tell equal sizes apart) with no
//! rebalancing. The links live in the block descriptors.
//!
//! - F1: every free block is in exactly the class of its size.
//! - F2: a class has its `occupied` bit exactly when it has a root.
//! - F3: below a node at depth `d` all keys share the node's first `d` bits.

use super::block::{BlockTable, Links, NONE, State};
use std::cmp::Ordering;

/// Sizes below this many granules have a class of their own.
const EXACT: u32 = 32;
const SUBCLASS_BITS: u32 = 4;
const GRANULES_BITS: u32 = 28;
const CLASSES: usize = (EXACT + ((GRANULES_BITS - SUBCLASS_BITS - 1) << SUBCLASS_BITS)) as usize;
const WORDS: usize = CLASSES.div_ceil(64);

/// In a list, the child that is the next element.
const NEXT: usize = 1;

const _: () = assert!(u32::MAX / super::block::GRANULE < 1 << GRANULES_BITS);
const _: () = assert!(EXACT == 2 << SUBCLASS_BITS);

#[derive(Debug)]
pub(super) struct FreeIndex {
    roots: Box<[u32; CLASSES]>,
    occupied: [u64; WORDS],
}

/// A range of sizes: the index of its root, and how many low bits tell its sizes apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Class {
    index: usize,
    size_bits: u32,
}

impl Class {
    fn of(granules: u32) -> Self {
        debug_assert!(granules > 0 && granules < 1 << GRANULES_BITS);
        if granules < EXACT {
            return Self { index: granules as usize, size_bits: 0 };
        }
        let size_bits = granules.ilog2() - SUBCLASS_BITS;
        let group = size_bits - 1;
        let subclass = (granules >> size_bits) - (1 << SUBCLASS_BITS);
        Self { index: (EXACT + (group << SUBCLASS_BITS) + subclass) as usize, size_bits }
    }

    fn is_list(self) -> bool {
        self.size_bits == 0
    }

    /// Which child the key turns to at `depth`: the size from its highest differing bit, then the
    /// index from its lowest, where neighbours differ soonest.
    fn turn(self, granules: u32, index: u32, depth: u32) -> usize {
        let bit = if depth < self.size_bits {
            granules >> (self.size_bits - 1 - depth)
        } else {
            index >> (depth - self.size_bits)
        };
        (bit & 1) as usize
    }
}

impl FreeIndex {
    pub(super) fn new() -> Self {
        Self { roots: Box::new([NONE; CLASSES]), occupied: [0; WORDS] }
    }

    pub(super) fn clear(&mut self) {
        self.roots.fill(NONE);
        self.occupied.fill(0);
    }

    /// Makes block `index` free and findable.
    pub(super) fn insert(&mut self, blocks: &mut BlockTable, index: u32) {
        let granules = blocks[index].granules();
        let class = Class::of(granules);
        let root = self.roots[class.index];
        let mut links = Links { parent: NONE, child: [NONE; 2] };
        if root == NONE || class.is_list() {
            links.child[NEXT] = root;
            if root != NONE {
                blocks[root].links_mut().parent = index;
            }
            self.set_root(class, index);
        } else {
            links.parent = attach(blocks, class, root, granules, index);
        }
        blocks[index].state = State::Free(links);
    }

    /// Takes block `index` out; the caller decides what it becomes.
    pub(super) fn remove(&mut self, blocks: &mut BlockTable, index: u32) {
        let class = Class::of(blocks[index].granules());
        let heir = if class.is_list() {
            blocks[index].links().child[NEXT]
        } else {
            take_leaf(blocks, index)
        };
        let links = *blocks[index].links();
        if heir != NONE {
            if !class.is_list() {
                adopt(blocks, heir, links);
            }
            blocks[heir].links_mut().parent = links.parent;
        }
        if links.parent == NONE {
            self.set_root(class, heir);
        } else {
            replace_child(blocks, links.parent, index, heir);
        }
    }

    /// The smallest free block of at least `granules`.
    pub(super) fn best_fit(&self, blocks: &BlockTable, granules: u32) -> Option<u32> {
        if granules >= 1 << GRANULES_BITS {
            return None;
        }
        let class = Class::of(granules);
        let root = self.roots[class.index];
        if class.is_list() {
            if root != NONE {
                return Some(root);
            }
        } else if let Some(fit) = best_fit_in(blocks, class, root, granules) {
            return Some(fit);
        }
        Some(self.extreme_of(blocks, self.occupied_from(class.index + 1)?, 0))
    }

    /// Size in granules of the largest free block; 0 when there is none.
    pub(super) fn largest(&self, blocks: &BlockTable) -> u32 {
        let Some(word) = self.occupied.iter().rposition(|&word| word != 0) else {
            return 0;
        };
        let class = word * 64 + self.occupied[word].ilog2() as usize;
        blocks[self.extreme_of(blocks, class, 1)].granules()
    }

    /// The smallest (`side` 0) or largest (`side` 1) block of an occupied class.
    fn extreme_of(&self, blocks: &BlockTable, class: usize, side: usize) -> u32 {
        let root = self.roots[class];
        // A list has one size, and may be long.
        if class < EXACT as usize { root } else { extreme(blocks, root, side) }
    }

    fn set_root(&mut self, class: Class, root: u32) {
        self.roots[class.index] = root;
        let bit = 1 << (class.index % 64);
        if root == NONE {
            self.occupied[class.index / 64] &= !bit;
        } else {
            self.occupied[class.index / 64] |= bit;
        }
    }

    /// The first class from `class` on that has a block.
    fn occupied_from(&self, class: usize) -> Option<usize> {
        let mut word = class / 64;
        let mut bits = self.occupied.get(word)? & (u64::MAX << (class % 64));
        while bits == 0 {
            word += 1;
            bits = *self.occupied.get(word)?;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// Hangs `index` below `root` and returns its parent.
fn attach(blocks: &mut BlockTable, class: Class, root: u32, granules: u32, index: u32) -> u32 {
    let mut node = root;
    let mut depth = 0;
    loop {
        let child = &mut blocks[node].links_mut().child[class.turn(granules, index, depth)];
        if *child == NONE {
            *child = index;
            return node;
        }
        node = *child;
        depth += 1;
    }
}

/// Cuts a leaf off from below `index` and returns it; `NONE` when `index` is a leaf itself. By F3 a
/// leaf may stand in for any node above it.
fn take_leaf(blocks: &mut BlockTable, index: u32) -> u32 {
    let mut leaf = index;
    loop {
        let [left, right] = blocks[leaf].links().child;
        match (left, right) {
            (NONE, NONE) => break,
            (NONE, child) | (child, _) => leaf = child,
        }
    }
    if leaf == index {
        return NONE;
    }
    let parent = blocks[leaf].links().parent;
    replace_child(blocks, parent, leaf, NONE);
    leaf
}

/// Gives `heir` the place that `links` describes, as far as its children are concerned.
fn adopt(blocks: &mut BlockTable, heir: u32, links: Links) {
    for child in links.child {
        if child != NONE {
            blocks[child].links_mut().parent = heir;
        }
    }
    *blocks[heir].links_mut() = links;
}

fn replace_child(blocks: &mut BlockTable, parent: u32, old: u32, new: u32) {
    let children = &mut blocks[parent].links_mut().child;
    let side = usize::from(children[0] != old);
    debug_assert_eq!(children[side], old);
    children[side] = new;
}

/// The smallest block of at least `granules` in its own class.
fn best_fit_in(blocks: &BlockTable, class: Class, root: u32, granules: u32) -> Option<u32> {
    let mut best = NONE;
    let mut best_granules = u32::MAX;
    let mut larger = NONE;
    let mut node = root;
    let mut depth = 0;
    while node != NONE {
        let size = blocks[node].granules();
        if size == granules {
            return Some(node);
        }
        if size > granules && size < best_granules {
            (best, best_granules) = (node, size);
        }
        // Past the size bits every key has the requested size and was returned above.
        debug_assert!(depth < class.size_bits);
        let [left, right] = blocks[node].links().child;
        if class.turn(granules, 0, depth) == 0 {
            if right != NONE {
                larger = right;
            }
            node = left;
        } else {
            node = right;
        }
        depth += 1;
    }
    // The deepest subtree passed by on the right holds the next larger sizes.
    if larger != NONE {
        let smallest = extreme(blocks, larger, 0);
        if blocks[smallest].granules() < best_granules {
            best = smallest;
        }
    }
    (best != NONE).then_some(best)
}

/// The smallest (`side` 0) or largest (`side` 1) block at or below `root`.
fn extreme(blocks: &BlockTable, root: u32, side: usize) -> u32 {
    let wanted = [Ordering::Less, Ordering::Greater][side];
    let mut best = root;
    let mut node = root;
    while node != NONE {
        if blocks[node].granules().cmp(&blocks[best].granules()) == wanted {
            best = node;
        }
        let child = blocks[node].links().child;
        node = if child[side] != NONE { child[side] } else { child[1 - side] };
    }
    best
}

#[cfg(test)]
mod tests;
