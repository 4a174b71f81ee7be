//! Block descriptors and the table that holds them.
//!
//! Blocks are kept beside the bytes rather than in front of them: a record's bytes can then not
//! damage the slab, and all links are checked indices.

use std::num::NonZeroU64;
use std::ops::{Index, IndexMut};

/// Block sizes are multiples of this, except for a block that reaches the end of the slab.
pub(super) const GRANULE: u32 = 16;

/// No block.
pub(super) const NONE: u32 = u32::MAX;

/// A run of bytes and its neighbours. A live block of size 0 stands for an empty record and has
/// neither place nor neighbours.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub(super) offset: u32,
    pub(super) size: u32,
    pub(super) before: u32,
    pub(super) after: u32,
    pub(super) state: State,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum State {
    /// Holds a record of `len` bytes.
    Live { stamp: NonZeroU64, len: u32 },
    /// In the free index.
    Free(Links),
    /// A descriptor without a block; `next` is the next such.
    Vacant { next: u32 },
}

/// A free block's place in the free index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links {
    pub(super) parent: u32,
    pub(super) child: [u32; 2],
}

// Two descriptors to a cache line.
const _: () = assert!(size_of::<Block>() == 32);

impl Block {
    pub(super) fn is_free(&self) -> bool {
        matches!(self.state, State::Free(_))
    }

    /// Size of a free block in granules.
    pub(super) fn granules(&self) -> u32 {
        debug_assert_eq!(self.size % GRANULE, 0, "only a live block ends off the grid");
        self.size / GRANULE
    }

    pub(super) fn links(&self) -> &Links {
        match &self.state {
            State::Free(links) => links,
            state => unreachable!("a linked block is free, not {state:?}"),
        }
    }

    pub(super) fn links_mut(&mut self) -> &mut Links {
        match &mut self.state {
            State::Free(links) => links,
            state => unreachable!("a linked block is free, not {state:?}"),
        }
    }
}

/// Descriptors by index, reused last-out first-in. Reserved once, never grown.
#[derive(Debug)]
pub(super) struct BlockTable {
    blocks: Vec<Block>,
    vacant: u32,
    limit: usize,
}

impl BlockTable {
    pub(super) fn with_limit(limit: usize) -> Self {
        assert!(limit < NONE as usize, "{limit} block descriptors cannot be indexed");
        Self { blocks: Vec::with_capacity(limit), vacant: NONE, limit }
    }

    pub(super) fn get(&self, index: u32) -> Option<&Block> {
        self.blocks.get(index as usize)
    }

    pub(super) fn add(&mut self, block: Block) -> u32 {
        if self.vacant == NONE {
            assert!(self.blocks.len() < self.limit, "more than {} block descriptors", self.limit);
            self.blocks.push(block);
            return (self.blocks.len() - 1) as u32;
        }
        let index = self.vacant;
        let State::Vacant { next } = self[index].state else {
            unreachable!("descriptor {index} is on the vacant list");
        };
        self.vacant = next;
        self[index] = block;
        index
    }

    pub(super) fn remove(&mut self, index: u32) {
        self[index].state = State::Vacant { next: self.vacant };
        self.vacant = index;
    }

    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.vacant = NONE;
    }
}

impl Index<u32> for BlockTable {
    type Output = Block;

    fn index(&self, index: u32) -> &Block {
        &self.blocks[index as usize]
    }
}

impl IndexMut<u32> for BlockTable {
    fn index_mut(&mut self, index: u32) -> &mut Block {
        &mut self.blocks[index as usize]
    }
}
