//! A queue of fixed capacity, stored inline.
//!
//! - R1: the elements `head .. head + len` (modulo `N`) are initialised, and no others.
//! - R2: `head < N` and `len <= N`.

use std::fmt;
use std::iter::FusedIterator;
use std::mem::MaybeUninit;
use std::slice;

/// A queue of at most `N` elements that never touches the heap. `N` is a power of two, checked
/// when the program is compiled.
///
/// ```
/// use gossip_stdx::RingBuffer;
///
/// let mut queue: RingBuffer<char, 2> = RingBuffer::new();
/// queue.push_back('a').unwrap();
/// queue.push_back('b').unwrap();
/// assert_eq!(queue.push_back('c'), Err('c'));
/// assert_eq!(queue.pop_front(), Some('a'));
/// ```
///
/// ```compile_fail
/// let queue = gossip_stdx::RingBuffer::<u8, 3>::new();
/// ```
pub struct RingBuffer<T, const N: usize> {
    head: usize,
    len: usize,
    slots: [MaybeUninit<T>; N],
}

impl<T, const N: usize> RingBuffer<T, N> {
    /// An empty queue.
    pub const fn new() -> Self {
        const { assert!(N.is_power_of_two(), "a ring buffer's capacity is a power of two") };
        Self { head: 0, len: 0, slots: [const { MaybeUninit::uninit() }; N] }
    }

    /// How many elements are queued.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True when nothing is queued.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when [`push_back`](Self::push_back) would give its element back.
    pub const fn is_full(&self) -> bool {
        self.len == N
    }

    /// `N`.
    pub const fn capacity(&self) -> usize {
        N
    }

    /// Queues `value`, or gives it back when the queue is full.
    pub fn push_back(&mut self, value: T) -> Result<(), T> {
        if self.is_full() {
            return Err(value);
        }
        let slot = self.slot(self.len);
        self.slots[slot].write(value);
        self.len += 1;
        Ok(())
    }

    /// Queues `value`; when the queue is full, the oldest element makes room and is returned.
    pub fn push_back_overwrite(&mut self, value: T) -> Option<T> {
        let evicted = if self.is_full() { self.pop_front() } else { None };
        let slot = self.slot(self.len);
        self.slots[slot].write(value);
        self.len += 1;
        evicted
    }

    /// Removes the oldest element.
    pub fn pop_front(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let slot = self.head;
        self.head = self.slot(1);
        self.len -= 1;
        // SAFETY: `slot` held the oldest element (R1); head and len no longer cover it, so it is
        // read out once.
        Some(unsafe { self.slots[slot].assume_init_read() })
    }

    /// The oldest element.
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The newest element.
    pub fn back(&self) -> Option<&T> {
        self.get(self.len.checked_sub(1)?)
    }

    /// The element `index` places after the oldest.
    pub fn get(&self, index: usize) -> Option<&T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: R1, as `index < len`.
        Some(unsafe { self.slots[self.slot(index)].assume_init_ref() })
    }

    /// From the oldest to the newest.
    pub fn iter(&self) -> Iter<'_, T> {
        let until_wrap = self.len.min(N - self.head);
        let (wrapped, older) = self.slots.split_at(self.head);
        // SAFETY: R1; `older` starts at `head`, and what does not fit before the end of the array
        // continues at its start.
        unsafe {
            Iter {
                older: older[..until_wrap].assume_init_ref().iter(),
                newer: wrapped[..self.len - until_wrap].assume_init_ref().iter(),
            }
        }
    }

    /// Drops every element.
    pub fn clear(&mut self) {
        /// Goes on with the rest when an element's drop panics.
        struct Rest<'a, T, const N: usize>(&'a mut RingBuffer<T, N>);

        impl<T, const N: usize> Drop for Rest<'_, T, N> {
            fn drop(&mut self) {
                while self.0.pop_front().is_some() {}
            }
        }

        let rest = Rest(self);
        while rest.0.pop_front().is_some() {}
    }

    const fn slot(&self, index: usize) -> usize {
        (self.head + index) & (N - 1)
    }
}

impl<T, const N: usize> Drop for RingBuffer<T, N> {
    fn drop(&mut self) {
        self.clear();
    }
}

impl<T, const N: usize> Default for RingBuffer<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone, const N: usize> Clone for RingBuffer<T, N> {
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        for value in self {
            copy.push_back_overwrite(value.clone());
        }
        copy
    }
}

impl<T: fmt::Debug, const N: usize> fmt::Debug for RingBuffer<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T: PartialEq, const N: usize> PartialEq for RingBuffer<T, N> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other)
    }
}

impl<T: Eq, const N: usize> Eq for RingBuffer<T, N> {}

impl<'a, T, const N: usize> IntoIterator for &'a RingBuffer<T, N> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The elements of a [`RingBuffer`], from the oldest to the newest.
#[derive(Debug)]
pub struct Iter<'a, T> {
    older: slice::Iter<'a, T>,
    newer: slice::Iter<'a, T>,
}

impl<T> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { older: self.older.clone(), newer: self.newer.clone() }
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.older.next().or_else(|| self.newer.next())
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.older.len() + self.newer.len();
        (len, Some(len))
    }
}

impl<T> DoubleEndedIterator for Iter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.newer.next_back().or_else(|| self.older.next_back())
    }
}

impl<T> ExactSizeIterator for Iter<'_, T> {}
impl<T> FusedIterator for Iter<'_, T> {}
