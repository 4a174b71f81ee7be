//! Which bytes are live, free or untouched. Knows offsets and sizes, never the bytes.
//!
//! - B1: the blocks tile `0 .. frontier` in offset order; `frontier .. capacity` is untouched.
//! - B2: no two free blocks are neighbours, and the last block is live.
//! - B3: only the last block may have a size off the granule grid.
//!
//! By B2 there are at most as many free blocks as live ones.

use super::block::{Block, BlockTable, GRANULE, NONE, State};
use super::free_index::FreeIndex;
use std::num::NonZeroU64;

#[derive(Debug)]
pub(super) struct BlockMap {
    blocks: BlockTable,
    free: FreeIndex,
    last: u32,
    frontier: u32,
    capacity: u32,
    live_bytes: u32,
}

impl BlockMap {
    /// A map in which up to `live_max` blocks are live at a time.
    pub(super) fn new(capacity: u32, live_max: usize) -> Self {
        Self {
            blocks: BlockTable::with_limit(2 * live_max),
            free: FreeIndex::new(),
            last: NONE,
            frontier: 0,
            capacity,
            live_bytes: 0,
        }
    }

    pub(super) fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(super) fn live_bytes(&self) -> u32 {
        self.live_bytes
    }

    pub(super) fn free_bytes(&self) -> u32 {
        self.frontier - self.live_bytes
    }

    pub(super) fn untouched_bytes(&self) -> u32 {
        self.capacity - self.frontier
    }

    pub(super) fn get(&self, index: u32) -> Option<&Block> {
        self.blocks.get(index)
    }

    /// The longest record that [`acquire`](Self::acquire) would place.
    pub(super) fn largest(&self) -> u32 {
        (self.free.largest(&self.blocks) * GRANULE).max(self.untouched_bytes())
    }

    /// A live block for `len` bytes: the best-fitting free block, else the untouched tail.
    pub(super) fn acquire(&mut self, stamp: NonZeroU64, len: u32) -> Option<u32> {
        let state = State::Live { stamp, len };
        if len == 0 {
            let nowhere = Block { offset: 0, size: 0, before: NONE, after: NONE, state };
            return Some(self.blocks.add(nowhere));
        }
        let index = match self.free.best_fit(&self.blocks, len.div_ceil(GRANULE)) {
            Some(index) => {
                self.free.remove(&mut self.blocks, index);
                self.blocks[index].state = state;
                self.live_bytes += self.blocks[index].size;
                self.trim(index, block_size(len, self.blocks[index].size));
                index
            }
            None if len <= self.untouched_bytes() => self.append(state, len),
            None => return None,
        };
        Some(index)
    }

    /// Frees a live block, merging it with free neighbours or with the tail.
    pub(super) fn release(&mut self, index: u32) {
        let Block { size, before, after, .. } = self.blocks[index];
        self.live_bytes -= size;
        if size == 0 {
            self.blocks.remove(index);
            return;
        }
        let mut index = index;
        if before != NONE && self.blocks[before].is_free() {
            self.free.remove(&mut self.blocks, before);
            self.absorb_next(before);
            index = before;
        }
        if after != NONE && self.blocks[after].is_free() {
            self.free.remove(&mut self.blocks, after);
            self.absorb_next(index);
        }
        if index == self.last {
            self.retreat(index);
        } else {
            self.free.insert(&mut self.blocks, index);
        }
    }

    /// Gives a live block another record in place, if it is large enough. A block at least half used
    /// keeps its slack for the next replacement; below that it is trimmed.
    pub(super) fn reuse(&mut self, index: u32, stamp: NonZeroU64, len: u32) -> bool {
        let size = self.blocks[index].size;
        if len > size || (len == 0 && size > 0) {
            return false;
        }
        self.blocks[index].state = State::Live { stamp, len };
        if len < size / 2 {
            self.trim(index, block_size(len, size));
        }
        true
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.free.clear();
        self.last = NONE;
        self.frontier = 0;
        self.live_bytes = 0;
    }

    /// Cuts a live block down to `keep` bytes, more than none.
    fn trim(&mut self, index: u32, keep: u32) {
        let Block { offset, size, after, .. } = self.blocks[index];
        let excess = size - keep;
        if excess == 0 {
            return;
        }
        self.live_bytes -= excess;
        self.blocks[index].size = keep;
        if after == NONE {
            self.frontier = offset + keep;
            return;
        }
        if self.blocks[after].is_free() {
            self.free.remove(&mut self.blocks, after);
            self.blocks[after].offset -= excess;
            self.blocks[after].size += excess;
            self.free.insert(&mut self.blocks, after);
            return;
        }
        let state = State::Vacant { next: NONE };
        let rest = Block { offset: offset + keep, size: excess, before: index, after, state };
        let rest = self.blocks.add(rest);
        self.blocks[index].after = rest;
        self.blocks[after].before = rest;
        self.free.insert(&mut self.blocks, rest);
    }

    /// A new last block from the untouched tail.
    fn append(&mut self, state: State, len: u32) -> u32 {
        let size = block_size(len, self.untouched_bytes());
        let block = Block { offset: self.frontier, size, before: self.last, after: NONE, state };
        let index = self.blocks.add(block);
        if self.last != NONE {
            self.blocks[self.last].after = index;
        }
        self.last = index;
        self.frontier += size;
        self.live_bytes += size;
        index
    }

    /// Merges the block after `index` into it.
    fn absorb_next(&mut self, index: u32) {
        let absorbed = self.blocks[index].after;
        let Block { size, after, .. } = self.blocks[absorbed];
        self.blocks[index].size += size;
        self.blocks[index].after = after;
        if after == NONE {
            self.last = index;
        } else {
            self.blocks[after].before = index;
        }
        self.blocks.remove(absorbed);
    }

    /// Returns the last block to the untouched tail.
    fn retreat(&mut self, index: u32) {
        let Block { offset, before, .. } = self.blocks[index];
        self.frontier = offset;
        self.last = before;
        if before != NONE {
            self.blocks[before].after = NONE;
        }
        self.blocks.remove(index);
    }
}

/// `len` rounded up to the granule grid, within `room`.
fn block_size(len: u32, room: u32) -> u32 {
    debug_assert!(len <= room);
    len.checked_next_multiple_of(GRANULE).map_or(room, |size| size.min(room))
}

#[cfg(test)]
mod tests;
