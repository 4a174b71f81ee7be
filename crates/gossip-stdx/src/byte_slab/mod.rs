//! A byte pool of fixed capacity with owner-checked handles.
//!
//! Records of any length live in one buffer, each in a block. [`block_map`] decides where,
//! [`free_index`] finds free blocks by size, [`stamp`] tells one record's slot from every other.
//!
//! - S1: live + free + untouched bytes == capacity, always.
//! - S2: a slot reads the record it was returned for, or is refused; never another record.
//! - S3: the slab allocates when it is made and never again.
//! - S4: a record is refused only when no free run of bytes holds it or the slots ran out.

mod block;
mod block_map;
mod error;
mod free_index;
mod stamp;

use block::{GRANULE, State};
use block_map::BlockMap;
pub use error::{ReplaceError, SlabFull, StaleSlot};
use stamp::Stamps;
use std::fmt;
use std::num::NonZeroU64;
use std::ops::Range;
use zeroize::Zeroize;

/// A pool of byte records whose capacity is chosen once.
///
/// A record takes a block: its length rounded up to 16 bytes, less only at the very end of the
/// slab. The byte counts here are in blocks. `alloc` takes the smallest free block that fits, and
/// the untouched tail when none does; `free` merges a block with its free neighbours and with the
/// tail, so an emptied slab is whole again. Both touch a handful of blocks, and where a free block
/// has 512 bytes or more, at most 23 + log2(2n) others of its size class, n being the slots.
///
/// All memory is reserved when the slab is made and touched only as it is used: the capacity, and
/// 64 bytes for each slot.
///
/// Freed bytes stay in memory until they are overwritten, also those left behind by `replace` and
/// by dropping the slab. Records that must not linger end with [`free_zeroed`](Self::free_zeroed)
/// or [`clear_zeroed`](Self::clear_zeroed).
///
/// ```
/// use gossip_stdx::{ByteSlab, SlabFull, StaleSlot};
///
/// let mut slab = ByteSlab::with_capacity(64);
/// let old = slab.alloc(b"src/a")?;
/// let new = slab.replace(old, b"src/b")?;
/// assert_eq!(slab.get(old), Err(StaleSlot));
/// assert_eq!(slab.get(new), Ok(&b"src/b"[..]));
/// assert_eq!(slab.alloc(&[0; 100]), Err(SlabFull { requested: 100, available: 48 }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ByteSlab {
    bytes: Vec<u8>,
    map: BlockMap,
    stamps: Stamps,
    live_slots: usize,
    slots_max: usize,
    /// Everything from here on has never been written.
    written_end: usize,
}

/// A record's handle. It names one record of one slab for the life of the process: after the record
/// is freed, replaced or cleared, every use is refused.
///
/// Slots are not reproducible from run to run; they are to be kept, not stored or ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteSlot {
    stamp: NonZeroU64,
    index: u32,
}

const _: () = assert!(size_of::<Option<ByteSlot>>() <= 16);

impl ByteSlab {
    /// The largest capacity, a byte short of 4 GiB.
    pub const CAPACITY_MAX: usize = u32::MAX as usize;

    /// The most slots a slab can have.
    pub const SLOTS_MAX: usize = 1 << 30;

    /// A slab of `bytes`, with slots enough that bytes run out first: one for each 16 bytes, and 64
    /// for empty records.
    ///
    /// # Panics
    ///
    /// When `bytes` exceeds [`CAPACITY_MAX`](Self::CAPACITY_MAX).
    pub fn with_capacity(bytes: usize) -> Self {
        Self::with_limits(bytes, bytes.div_ceil(GRANULE as usize) + 64)
    }

    /// A slab of `bytes` that holds at most `slots` records at a time.
    ///
    /// # Panics
    ///
    /// When `bytes` exceeds [`CAPACITY_MAX`](Self::CAPACITY_MAX) or `slots` exceeds
    /// [`SLOTS_MAX`](Self::SLOTS_MAX).
    pub fn with_limits(bytes: usize, slots: usize) -> Self {
        assert!(bytes <= Self::CAPACITY_MAX, "a slab of {bytes} bytes is too large");
        assert!(slots <= Self::SLOTS_MAX, "a slab of {slots} slots is too large");
        Self {
            bytes: vec![0; bytes],
            // One more than `slots`: a moving `replace` holds both records for a moment.
            map: BlockMap::new(bytes as u32, slots + 1),
            stamps: Stamps::new(),
            live_slots: 0,
            slots_max: slots,
            written_end: 0,
        }
    }

    /// Stores a copy of `bytes`. An empty record takes a slot but no bytes.
    pub fn alloc(&mut self, bytes: &[u8]) -> Result<ByteSlot, SlabFull> {
        self.alloc_parts(&[bytes])
    }

    /// Stores the parts one behind the other as one record. Where each begins is the caller's to
    /// remember; fields that are read together then lie together.
    pub fn alloc_parts(&mut self, parts: &[&[u8]]) -> Result<ByteSlot, SlabFull> {
        if self.live_slots == self.slots_max {
            return Err(SlabFull { requested: length_of(parts), available: 0 });
        }
        let slot = self.place(parts)?;
        self.live_slots += 1;
        Ok(slot)
    }

    /// The record's bytes.
    #[inline]
    pub fn get(&self, slot: ByteSlot) -> Result<&[u8], StaleSlot> {
        let (offset, len) = self.live(slot)?;
        Ok(&self.bytes[offset..offset + len])
    }

    /// True while the slot's record is live.
    pub fn contains(&self, slot: ByteSlot) -> bool {
        self.live(slot).is_ok()
    }

    /// Frees the record. Its bytes stay in memory until they are overwritten.
    pub fn free(&mut self, slot: ByteSlot) -> Result<(), StaleSlot> {
        self.live(slot)?;
        self.map.release(slot.index);
        self.live_slots -= 1;
        Ok(())
    }

    /// Frees the record and overwrites its whole block with zeros.
    pub fn free_zeroed(&mut self, slot: ByteSlot) -> Result<(), StaleSlot> {
        self.live(slot)?;
        let block = self.block_range(slot.index);
        self.bytes[block].zeroize();
        self.free(slot)
    }

    /// Replaces the record's bytes and returns its new slot; the old one is stale from then on.
    ///
    /// A record that outgrows its block moves, for which old and new must fit side by side. Otherwise
    /// it stays in place, and a block left less than half used is cut down to fit. So shortening a
    /// record never fails, nor does replacing one when all slots are taken.
    pub fn replace(&mut self, slot: ByteSlot, bytes: &[u8]) -> Result<ByteSlot, ReplaceError> {
        self.replace_parts(slot, &[bytes])
    }

    /// As [`replace`](Self::replace), with a record made of parts.
    pub fn replace_parts(
        &mut self,
        slot: ByteSlot,
        parts: &[&[u8]],
    ) -> Result<ByteSlot, ReplaceError> {
        self.live(slot)?;
        let stamp = self.stamps.next();
        let len = u32::try_from(length_of(parts));
        if len.is_ok_and(|len| self.map.reuse(slot.index, stamp, len)) {
            let start = self.block_range(slot.index).start;
            self.write(start, parts);
            return Ok(ByteSlot { stamp, index: slot.index });
        }
        let moved = self.place(parts)?;
        self.map.release(slot.index);
        Ok(moved)
    }

    /// Frees every record, in O(1). Their bytes stay in memory until they are overwritten.
    pub fn clear(&mut self) {
        self.map.clear();
        self.live_slots = 0;
    }

    /// Frees every record and overwrites all that was ever stored with zeros.
    pub fn clear_zeroed(&mut self) {
        self.clear();
        self.bytes[..self.written_end].zeroize();
        self.written_end = 0;
    }

    /// The bytes chosen at the start.
    pub fn capacity(&self) -> usize {
        self.map.capacity() as usize
    }

    /// Bytes in the blocks of live records.
    pub fn live_bytes(&self) -> usize {
        self.map.live_bytes() as usize
    }

    /// Bytes in free blocks before the last live one.
    pub fn free_bytes(&self) -> usize {
        self.map.free_bytes() as usize
    }

    /// Bytes after the last live block. Freeing that block gives its bytes back here.
    pub fn untouched_bytes(&self) -> usize {
        self.map.untouched_bytes() as usize
    }

    /// How many records are live.
    pub fn live_slots(&self) -> usize {
        self.live_slots
    }

    fn place(&mut self, parts: &[&[u8]]) -> Result<ByteSlot, SlabFull> {
        let stamp = self.stamps.next();
        let requested = length_of(parts);
        let placed = u32::try_from(requested).ok().and_then(|len| self.map.acquire(stamp, len));
        let Some(index) = placed else {
            let available = self.map.largest() as usize;
            return Err(SlabFull { requested, available });
        };
        let block = self.block_range(index);
        self.written_end = self.written_end.max(block.end);
        self.write(block.start, parts);
        Ok(ByteSlot { stamp, index })
    }

    fn write(&mut self, mut start: usize, parts: &[&[u8]]) {
        for part in parts {
            self.bytes[start..start + part.len()].copy_from_slice(part);
            start += part.len();
        }
    }

    /// Offset and length of a live record.
    #[inline]
    fn live(&self, slot: ByteSlot) -> Result<(usize, usize), StaleSlot> {
        match self.map.get(slot.index) {
            Some(block) => match block.state {
                State::Live { stamp, len } if stamp == slot.stamp => {
                    Ok((block.offset as usize, len as usize))
                }
                _ => Err(StaleSlot),
            },
            None => Err(StaleSlot),
        }
    }

    fn block_range(&self, index: u32) -> Range<usize> {
        let block = self.map.get(index).expect("the block was just found live");
        let start = block.offset as usize;
        start..start + block.size as usize
    }
}

/// Saturates, so that parts that no slab can hold are refused like any other record.
fn length_of(parts: &[&[u8]]) -> usize {
    parts.iter().fold(0, |sum, part| usize::saturating_add(sum, part.len()))
}

/// Figures only: the bytes may be secret.
impl fmt::Debug for ByteSlab {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteSlab")
            .field("capacity", &self.capacity())
            .field("live_bytes", &self.live_bytes())
            .field("free_bytes", &self.free_bytes())
            .field("untouched_bytes", &self.untouched_bytes())
            .field("live_slots", &self.live_slots)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(slab: &ByteSlab, byte: u8) -> usize {
        slab.bytes.iter().filter(|&&b| b == byte).count()
    }

    #[test]
    fn free_zeroed_erases_the_whole_block_with_what_replace_left_in_it() {
        let mut slab = ByteSlab::with_capacity(256);
        let slot = slab.alloc(&[7; 60]).unwrap();
        let slot = slab.replace(slot, &[8; 40]).unwrap();
        assert_eq!((stored(&slab, 7), stored(&slab, 8)), (20, 40));
        slab.free_zeroed(slot).unwrap();
        assert_eq!(stored(&slab, 0), 256);
    }

    #[test]
    fn clear_zeroed_erases_what_earlier_frees_and_clears_left() {
        let mut slab = ByteSlab::with_capacity(256);
        let slot = slab.alloc(&[7; 100]).unwrap();
        slab.free(slot).unwrap();
        slab.alloc(&[8; 10]).unwrap();
        slab.clear();
        assert_eq!(stored(&slab, 0), 256 - 100);
        slab.clear_zeroed();
        assert_eq!(stored(&slab, 0), 256);
    }
}
