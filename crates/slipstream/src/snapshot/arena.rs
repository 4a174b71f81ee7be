//! The bytes of a fold's entries, in segments, in the order in which they came.
//!
//! Segments are shared with whoever reads; one that is about to change while somebody reads it is
//! copied first.
//!
//! - R1: an address leads to the start of a record, from [`push`](Arena::push) until
//!   [`release`](Arena::release).
//! - R2: `dead` counts the bytes of records that were released.

use std::sync::Arc;

use crate::kv::VersionToken;

/// Small enough that copying one is nothing, large enough that a fold has few.
const SEGMENT_BYTES: usize = 64 * 1024;

/// Lengths of version, key and value.
const HEADER: usize = 7;

const _: () = assert!(VersionToken::MAX_LEN <= u8::MAX as usize);

/// An entry as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) key: &'a [u8],
    pub(super) version: &'a [u8],
    pub(super) value: &'a [u8],
}

impl Entry<'_> {
    fn stored_len(&self) -> usize {
        HEADER + self.version.len() + self.key.len() + self.value.len()
    }
}

/// Where a record is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Address {
    segment: u32,
    offset: u32,
}

#[derive(Default)]
pub(super) struct Segment(Vec<u8>);

impl Clone for Segment {
    /// Keeps the room: one that is copied is about to change.
    fn clone(&self) -> Self {
        let mut bytes = Vec::with_capacity(self.0.capacity());
        bytes.extend_from_slice(&self.0);
        Self(bytes)
    }
}

#[derive(Default)]
pub(super) struct Arena {
    segments: Vec<Arc<Segment>>,
    /// Dead bytes of each segment.
    dead_in: Vec<usize>,
    /// Segments without bytes, to be used again.
    free: Vec<u32>,
    /// The segment that is being filled.
    open: Option<u32>,
    bytes: usize,
    dead: usize,
}

impl Segment {
    fn entry(&self, offset: usize) -> Entry<'_> {
        let record = &self.0[offset..];
        let version = usize::from(record[0]);
        let key = usize::from(u16::from_le_bytes([record[1], record[2]]));
        let value = u32::from_le_bytes([record[3], record[4], record[5], record[6]]) as usize;
        let (version, rest) = record[HEADER..].split_at(version);
        let (key, rest) = rest.split_at(key);
        Entry { key, version, value: &rest[..value] }
    }
}

impl Arena {
    pub(super) fn entry(&self, at: Address) -> Entry<'_> {
        self.segments[at.segment as usize].entry(at.offset as usize)
    }

    /// Reads the cache lines on which a record begins and goes on.
    pub(super) fn touch(&self, at: Address) -> u64 {
        let bytes = &self.segments[at.segment as usize].0[at.offset as usize..];
        let lines = [0, 64, 128].map(|line| u64::from(*bytes.get(line).unwrap_or(&0)));
        lines.iter().sum()
    }

    pub(super) fn push(&mut self, entry: &Entry<'_>) -> Address {
        let len = entry.stored_len();
        let index = self.segment_for(len);
        let segment = Arc::make_mut(&mut self.segments[index as usize]);
        let offset = u32::try_from(segment.0.len()).expect("a segment of several is small");
        let key_len = u16::try_from(entry.key.len()).expect("the batch was checked");
        let value_len = u32::try_from(entry.value.len()).expect("the batch was checked");
        segment.0.push(entry.version.len() as u8);
        segment.0.extend_from_slice(&key_len.to_le_bytes());
        segment.0.extend_from_slice(&value_len.to_le_bytes());
        segment.0.extend_from_slice(entry.version);
        segment.0.extend_from_slice(entry.key);
        segment.0.extend_from_slice(entry.value);
        self.bytes += len;
        Address { segment: index, offset }
    }

    /// Replaces version and value, if the new ones are as long.
    pub(super) fn replace(&mut self, at: Address, entry: &Entry<'_>) -> bool {
        let old = self.entry(at);
        let (version, value) = (old.version.len(), old.value.len());
        if (version, value) != (entry.version.len(), entry.value.len()) {
            return false;
        }
        let Segment(bytes) = Arc::make_mut(&mut self.segments[at.segment as usize]);
        let start = at.offset as usize + HEADER;
        bytes[start..start + version].copy_from_slice(entry.version);
        let start = start + version + entry.key.len();
        bytes[start..start + value].copy_from_slice(entry.value);
        true
    }

    pub(super) fn release(&mut self, at: Address) {
        let len = self.entry(at).stored_len();
        let index = at.segment as usize;
        self.dead_in[index] += len;
        self.dead += len;
        if self.dead_in[index] == self.segments[index].0.len() {
            self.clear(at.segment);
        }
    }

    /// Forgets all records of a segment.
    pub(super) fn clear(&mut self, index: u32) {
        let segment = std::mem::take(&mut self.segments[index as usize]);
        self.bytes -= segment.0.len();
        self.dead -= std::mem::take(&mut self.dead_in[index as usize]);
        if self.open == Some(index) {
            self.open = None;
        }
        self.free.push(index);
    }

    /// The segment with the most dead bytes, if a third of all bytes are dead. It is not filled any
    /// further: its records are moved to others, then it is [cleared](Self::clear).
    pub(super) fn worst(&mut self) -> Option<(u32, Arc<Segment>)> {
        if self.dead < SEGMENT_BYTES || self.dead * 3 < self.bytes {
            return None;
        }
        let (index, _) = self.dead_in.iter().enumerate().max_by_key(|&(_, dead)| dead)?;
        self.open = self.open.filter(|&open| open as usize != index);
        Some((index as u32, self.segments[index].clone()))
    }

    /// The records of a segment, dead ones too.
    pub(super) fn records(
        index: u32,
        segment: &Segment,
    ) -> impl Iterator<Item = (Address, Entry<'_>)> {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let at = Address { segment: index, offset: offset as u32 };
            (offset < segment.0.len()).then(|| {
                let entry = segment.entry(offset);
                offset += entry.stored_len();
                (at, entry)
            })
        })
    }

    fn segment_for(&mut self, len: usize) -> u32 {
        if let Some(open) = self.open
            && self.segments[open as usize].0.len() + len <= SEGMENT_BYTES
        {
            return open;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.segments.push(Arc::default());
            self.dead_in.push(0);
            u32::try_from(self.segments.len() - 1).expect("memory ends before")
        });
        let bytes = Vec::with_capacity(len.max(SEGMENT_BYTES));
        self.segments[index as usize] = Arc::new(Segment(bytes));
        // One that is filled by a single record is never open.
        if len <= SEGMENT_BYTES {
            self.open = Some(index);
        }
        index
    }
}

/// Segments that a reader has noted.
pub(super) struct Noted(Vec<Option<Arc<Segment>>>);

impl Arena {
    pub(super) fn note_all(&self) -> Noted {
        Noted(self.segments.iter().cloned().map(Some).collect())
    }

    pub(super) fn note(&self, addresses: impl Iterator<Item = Address>) -> Noted {
        let mut noted = vec![None; self.segments.len()];
        for at in addresses {
            let index = at.segment as usize;
            noted[index].get_or_insert_with(|| self.segments[index].clone());
        }
        Noted(noted)
    }
}

impl Noted {
    pub(super) fn entry(&self, at: Address) -> Entry<'_> {
        let segment = self.0[at.segment as usize].as_ref().expect("noted with its page");
        segment.entry(at.offset as usize)
    }
}

#[cfg(test)]
impl Arena {
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn assert_invariants(&self) {
        let bytes = self.segments.iter().map(|segment| segment.0.len()).sum::<usize>();
        assert_eq!(bytes, self.bytes);
        assert_eq!(self.dead_in.iter().sum::<usize>(), self.dead, "R2");
        for (&dead, segment) in self.dead_in.iter().zip(&self.segments) {
            assert!(dead <= segment.0.len(), "R2");
        }
    }
}
