//! A vector whose first elements need no heap.
//!
//! - V1: inline, the first `len` slots are initialised, and no others.
//! - V2: once on the heap, the vector stays there.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::iter::FusedIterator;
use std::mem::{self, MaybeUninit};
use std::ops::{Deref, DerefMut, Range};
use std::{ptr, slice, vec};

/// A vector that holds up to `N` elements inline and moves to the heap when one more arrives.
///
/// The move is one-way: a vector that grew once is expected to grow again, so it keeps its heap
/// buffer even after [`clear`](Self::clear). A clone starts afresh.
///
/// ```
/// use gossip_stdx::InlineVec;
///
/// let mut vec: InlineVec<u32, 2> = InlineVec::new();
/// vec.push(1);
/// vec.push(2);
/// assert!(!vec.spilled());
/// vec.push(3);
/// assert!(vec.spilled());
/// assert_eq!(vec.as_slice(), [1, 2, 3]);
/// ```
pub struct InlineVec<T, const N: usize> {
    storage: Storage<T, N>,
}

enum Storage<T, const N: usize> {
    Inline(Inline<T, N>),
    Heap(Vec<T>),
}

struct Inline<T, const N: usize> {
    len: usize,
    slots: [MaybeUninit<T>; N],
}

impl<T, const N: usize> Inline<T, N> {
    const fn new() -> Self {
        Self { len: 0, slots: [const { MaybeUninit::uninit() }; N] }
    }

    fn as_slice(&self) -> &[T] {
        // SAFETY: V1.
        unsafe { self.slots[..self.len].assume_init_ref() }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: V1.
        unsafe { self.slots[..self.len].assume_init_mut() }
    }

    fn pop(&mut self) -> Option<T> {
        self.len = self.len.checked_sub(1)?;
        // SAFETY: the slot held the last element (V1); `len` no longer covers it, so it is read
        // out once.
        Some(unsafe { self.slots[self.len].assume_init_read() })
    }

    fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let tail: *mut [T] = &mut self.as_mut_slice()[len..];
        // Shortened first: should a drop panic, no element is dropped a second time.
        self.len = len;
        // SAFETY: `tail` was initialised (V1) and `len` no longer covers it.
        unsafe { ptr::drop_in_place(tail) }
    }

    /// Moves every element into a heap vector with room for `additional` more.
    fn take_to_heap(&mut self, additional: usize) -> Vec<T> {
        let mut heap = Vec::with_capacity(self.len.saturating_add(additional).max(2 * N));
        let len = mem::take(&mut self.len);
        // SAFETY: the first `len` slots were initialised (V1) and `self.len` no longer covers them,
        // so this moves each element once; `heap` has room for them and is a distinct allocation.
        unsafe {
            ptr::copy_nonoverlapping(self.slots.as_ptr().cast::<T>(), heap.as_mut_ptr(), len);
            heap.set_len(len);
        }
        heap
    }
}

impl<T, const N: usize> Drop for Inline<T, N> {
    fn drop(&mut self) {
        self.truncate(0);
    }
}

impl<T, const N: usize> InlineVec<T, N> {
    /// An empty vector, inline.
    pub const fn new() -> Self {
        Self { storage: Storage::Inline(Inline::new()) }
    }

    /// Appends `value`. Allocates only when the vector leaves its inline storage or its heap buffer
    /// is full.
    pub fn push(&mut self, value: T) {
        match &mut self.storage {
            Storage::Inline(inline) if inline.len < N => {
                inline.slots[inline.len].write(value);
                inline.len += 1;
            }
            Storage::Inline(_) => self.spill(1).push(value),
            Storage::Heap(heap) => heap.push(value),
        }
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        match &mut self.storage {
            Storage::Inline(inline) => inline.pop(),
            Storage::Heap(heap) => heap.pop(),
        }
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        match &self.storage {
            Storage::Inline(inline) => inline.len,
            Storage::Heap(heap) => heap.len(),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops every element and keeps the storage.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Drops the elements from `len` on, if there are any.
    pub fn truncate(&mut self, len: usize) {
        match &mut self.storage {
            Storage::Inline(inline) => inline.truncate(len),
            Storage::Heap(heap) => heap.truncate(len),
        }
    }

    /// True once the vector has left its inline storage.
    pub fn spilled(&self) -> bool {
        matches!(self.storage, Storage::Heap(_))
    }

    /// All elements.
    pub fn as_slice(&self) -> &[T] {
        match &self.storage {
            Storage::Inline(inline) => inline.as_slice(),
            Storage::Heap(heap) => heap,
        }
    }

    /// All elements.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        match &mut self.storage {
            Storage::Inline(inline) => inline.as_mut_slice(),
            Storage::Heap(heap) => heap,
        }
    }

    /// Appends a clone of each element of `values`.
    pub fn extend_from_slice(&mut self, values: &[T])
    where
        T: Clone,
    {
        self.extend(values.iter().cloned());
    }

    /// Makes room for `additional` elements, inline if they fit.
    fn reserve(&mut self, additional: usize) {
        match &mut self.storage {
            Storage::Inline(inline) if additional <= N - inline.len => {}
            Storage::Inline(_) => {
                self.spill(additional);
            }
            Storage::Heap(heap) => heap.reserve(additional),
        }
    }

    fn spill(&mut self, additional: usize) -> &mut Vec<T> {
        if let Storage::Inline(inline) = &mut self.storage {
            self.storage = Storage::Heap(inline.take_to_heap(additional));
        }
        match &mut self.storage {
            Storage::Heap(heap) => heap,
            Storage::Inline(_) => unreachable!("just moved to the heap"),
        }
    }
}

impl<T, const N: usize> Deref for InlineVec<T, N> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T, const N: usize> DerefMut for InlineVec<T, N> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<T, const N: usize> Extend<T> for InlineVec<T, N> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        let values = values.into_iter();
        self.reserve(values.size_hint().0);
        values.for_each(|value| self.push(value));
    }
}

impl<T, const N: usize> FromIterator<T> for InlineVec<T, N> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut vec = Self::new();
        vec.extend(values);
        vec
    }
}

impl<T: Clone, const N: usize> From<&[T]> for InlineVec<T, N> {
    fn from(values: &[T]) -> Self {
        values.iter().cloned().collect()
    }
}

impl<T: Clone, const N: usize> Clone for InlineVec<T, N> {
    /// Inline when the elements fit, whatever the original outgrew.
    fn clone(&self) -> Self {
        Self::from(self.as_slice())
    }
}

impl<T, const N: usize> Default for InlineVec<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for InlineVec<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

impl<T: PartialEq, const N: usize> PartialEq for InlineVec<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Eq, const N: usize> Eq for InlineVec<T, N> {}

impl<T: Hash, const N: usize> Hash for InlineVec<T, N> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a InlineVec<T, N> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> slice::Iter<'a, T> {
        self.iter()
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a mut InlineVec<T, N> {
    type Item = &'a mut T;
    type IntoIter = slice::IterMut<'a, T>;

    fn into_iter(self) -> slice::IterMut<'a, T> {
        self.iter_mut()
    }
}

impl<T, const N: usize> IntoIterator for InlineVec<T, N> {
    type Item = T;
    type IntoIter = IntoIter<T, N>;

    fn into_iter(self) -> IntoIter<T, N> {
        IntoIter(match self.storage {
            Storage::Inline(mut inline) => {
                let live = 0..mem::take(&mut inline.len);
                let slots = mem::replace(&mut inline.slots, [const { MaybeUninit::uninit() }; N]);
                Remaining::Inline(Drain { live, slots })
            }
            Storage::Heap(heap) => Remaining::Heap(heap.into_iter()),
        })
    }
}

/// The elements of an [`InlineVec`], by value.
pub struct IntoIter<T, const N: usize>(Remaining<T, N>);

enum Remaining<T, const N: usize> {
    Inline(Drain<T, N>),
    Heap(vec::IntoIter<T>),
}

/// The slots in `live` are initialised, and no others.
struct Drain<T, const N: usize> {
    live: Range<usize>,
    slots: [MaybeUninit<T>; N],
}

impl<T, const N: usize> Drop for Drain<T, N> {
    fn drop(&mut self) {
        // SAFETY: the slots in `live` are initialised, and nothing reads them after this.
        unsafe { self.slots[self.live.clone()].assume_init_drop() }
    }
}

impl<T, const N: usize> Iterator for IntoIter<T, N> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match &mut self.0 {
            Remaining::Inline(drain) => {
                let slot = drain.live.next()?;
                // SAFETY: `live` covered the slot and no longer does, so it is read out once.
                Some(unsafe { drain.slots[slot].assume_init_read() })
            }
            Remaining::Heap(heap) => heap.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match &self.0 {
            Remaining::Inline(drain) => drain.live.size_hint(),
            Remaining::Heap(heap) => heap.size_hint(),
        }
    }
}

impl<T, const N: usize> DoubleEndedIterator for IntoIter<T, N> {
    fn next_back(&mut self) -> Option<T> {
        match &mut self.0 {
            Remaining::Inline(drain) => {
                let slot = drain.live.next_back()?;
                // SAFETY: `live` covered the slot and no longer does, so it is read out once.
                Some(unsafe { drain.slots[slot].assume_init_read() })
            }
            Remaining::Heap(heap) => heap.next_back(),
        }
    }
}

impl<T, const N: usize> ExactSizeIterator for IntoIter<T, N> {}
impl<T, const N: usize> FusedIterator for IntoIter<T, N> {}

impl<T: fmt::Debug, const N: usize> fmt::Debug for IntoIter<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remaining = match &self.0 {
            // SAFETY: the slots in `live` are initialised.
            Remaining::Inline(drain) => unsafe {
                drain.slots[drain.live.clone()].assume_init_ref()
            },
            Remaining::Heap(heap) => heap.as_slice(),
        };
        f.debug_tuple("IntoIter").field(&remaining).finish()
    }
}
