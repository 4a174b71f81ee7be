//! Containers with a fixed memory bill, below every other gossip crate.
//!
//! - [`InlineVec`]: a vector whose first `N` elements need no heap.
//! - [`RingBuffer`]: a queue of at most `N` elements, never on the heap.
//! - [`FixedBuf`]: up to `N` bytes in place, made once and filled again and again.
//! - [`ByteSlab`]: a pool of byte records with a capacity chosen once and owner-checked handles.
//!
//! No clock, no I/O, no threads; unsafe code is confined to the first two.
//!
//! ```
//! use gossip_stdx::{ByteSlab, InlineVec, RingBuffer};
//!
//! let mut path: InlineVec<&str, 4> = InlineVec::new();
//! path.extend(["src", "main.rs"]);
//! assert!(!path.spilled());
//!
//! let mut recent: RingBuffer<u32, 2> = RingBuffer::new();
//! recent.push_back_overwrite(1);
//! recent.push_back_overwrite(2);
//! assert_eq!(recent.push_back_overwrite(3), Some(1));
//!
//! let mut keys = ByteSlab::with_capacity(1024);
//! let key = keys.alloc(b"src/main.rs")?;
//! assert_eq!(keys.get(key)?, b"src/main.rs");
//! keys.free(key)?;
//! assert!(keys.get(key).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[forbid(unsafe_code)]
mod byte_slab;
#[forbid(unsafe_code)]
mod fixed_buf;
mod inline_vec;
mod ring_buffer;
#[cfg(test)]
#[path = "../tests/it/soak.rs"]
mod soak;

pub use byte_slab::{ByteSlab, ByteSlot, ReplaceError, SlabFull, StaleSlot};
pub use fixed_buf::FixedBuf;
pub use inline_vec::{InlineVec, IntoIter as InlineVecIntoIter};
pub use ring_buffer::{Iter as RingBufferIter, RingBuffer};
