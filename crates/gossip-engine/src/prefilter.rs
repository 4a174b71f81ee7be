//! The first stage: where in a buffer do anchors stand?
//!
//! Every anchor has at least three bytes. At every second position of the buffer the three bytes
//! there, letters folded, are looked up in a bitmap of 262 144 hashes; an anchor is recognised by a
//! gram at an even and one at an odd distance from its start, so that each occurrence is met
//! exactly once, whatever its alignment. What passes is looked up again with a byte beside it, then
//! with two, and what is left is compared. The look-ups have no branches and no step depends on the
//! one before it, which is why this is several times faster than walking an automaton, and stays so
//! with hundreds of anchors. Anchors share grams where they can, so that fewer bytes pass.
//!
//! - P1: every occurrence of an anchor whose start is in the range is reported exactly once.
//! - P2: the cost of a byte that belongs to no anchor does not grow with the number of anchors,
//!   as long as the bitmaps are sparse.

mod entries;

use std::ops::Range;

use crate::literals::{Anchor, GRAM_LEN, MAX_ANCHOR_LEN, MIN_ANCHOR_LEN};
use entries::{
    Around, Entry, choose_entries, hash_after, hash_before, quietest_multiplier, second_hashes,
    third_hashes,
};

const _: () = assert!(MIN_ANCHOR_LEN >= GRAM_LEN);
/// Distances from an anchor's start fit a byte.
const _: () = assert!(MAX_ANCHOR_LEN <= u8::MAX as usize);
/// Sets the letter case bit; other bytes may collide, which the comparison sorts out.
const FOLD: u32 = 0x2020_2020;
const FOLD_WINDOW: u64 = 0x2020_2020_2020_2020;
/// A bitmap of 32 KiB: larger than half of some first caches, but with half the size a thousand
/// literals let every thirtieth group of bytes pass.
const HASH_BITS: u32 = 18;
const WORDS: usize = 1 << (HASH_BITS - 6);
const BUCKETS: usize = 8192;
/// What the end of the text looks like: a byte that text hardly has.
const END: u8 = 0xFF;
/// Grams that are looked at together.
const BATCH: usize = 256;
/// Bytes that a batch reads: the last gram's word goes past its position.
const BATCH_BYTES: usize = BATCH * 2 + WINDOW;
/// The byte before a batch, and the batch.
const AROUND: usize = 1 + BATCH_BYTES;
/// Bytes of an anchor that are compared at once.
const WINDOW: usize = 8;

/// Finds anchors. Built once, shared by all threads.
pub(crate) struct Prefilter {
    multiplier: u32,
    bitmap: Box<[u64; WORDS]>,
    second: Box<[u64; WORDS]>,
    third: Box<[u64; WORDS]>,
    /// Sorted by hash; a bucket is 32 hashes.
    entries: Vec<Entry>,
    buckets: Box<[u32; BUCKETS + 1]>,
    literals: Vec<Literal>,
    /// No gram stands further than this from its anchor's start.
    max_shift: usize,
}

/// Without a pointer, as it is looked at once for every gram that passes.
struct Literal {
    bytes: [u8; MAX_ANCHOR_LEN],
    len: u8,
    ignore_case: bool,
}

impl Literal {
    fn new(anchor: &Anchor) -> Self {
        let mut bytes = [0; MAX_ANCHOR_LEN];
        bytes[..anchor.bytes.len()].copy_from_slice(&anchor.bytes);
        Self { bytes, len: anchor.bytes.len() as u8, ignore_case: anchor.ignore_case }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

#[inline(always)]
fn hash(multiplier: u32, word: u32) -> u32 {
    (word | FOLD).wrapping_mul(multiplier) >> (u32::BITS - HASH_BITS)
}

#[inline(always)]
fn place(hash: u32) -> (usize, u32) {
    ((hash >> 6) as usize % WORDS, hash & 63)
}

fn insert(bitmap: &mut [u64; WORDS], hash: u32) {
    let (word, bit) = place(hash);
    bitmap[word] |= 1 << bit;
}

fn bucket(hash: u32) -> usize {
    (hash >> (HASH_BITS - BUCKETS.ilog2())) as usize
}

impl Prefilter {
    /// A filter for these anchors; an occurrence is reported by the anchor's place in the list.
    pub(crate) fn new<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> Self {
        let anchors: Vec<_> = anchors.into_iter().collect();
        let mut entries = choose_entries(&anchors);
        let multiplier = quietest_multiplier(&entries);
        let hash_of = |entry: &Entry| hash(multiplier, entry.gram());
        entries.sort_by_key(|entry| (hash_of(entry), entry.literal, entry.shift));
        let mut bitmap = Box::new([0u64; WORDS]);
        let mut second = Box::new([0u64; WORDS]);
        let mut third = Box::new([0u64; WORDS]);
        let mut buckets = Box::new([0u32; BUCKETS + 1]);
        for entry in &entries {
            for hash in second_hashes(entry, anchors[entry.literal as usize]) {
                insert(&mut second, hash);
            }
            for hash in third_hashes(entry, anchors[entry.literal as usize]) {
                insert(&mut third, hash);
            }
            let hash = hash_of(entry);
            insert(&mut bitmap, hash);
            buckets[bucket(hash) + 1] += 1;
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        let max_shift = entries.iter().map(|entry| usize::from(entry.shift)).max().unwrap_or(0);
        let literals = anchors.into_iter().map(Literal::new).collect();
        Self { multiplier, bitmap, second, third, entries, buckets, literals, max_shift }
    }

    /// Reports (anchor, start) of every anchor in `text` that starts in `range`, in no order.
    pub(crate) fn find(
        &self,
        text: &[u8],
        range: Range<usize>,
        on_hit: &mut impl FnMut(usize, usize),
    ) {
        debug_assert!(range.start <= range.end && range.end <= text.len());
        if self.literals.is_empty() || range.is_empty() {
            return;
        }
        let end = (range.end + self.max_shift).min(text.len());
        let mut at = range.start;
        let mut passed = [0u16; BATCH];
        // Nothing stands before the first byte.
        let mut first = [END; AROUND];
        while at < end && at + BATCH_BYTES <= text.len() {
            let batch: &[u8; BATCH_BYTES] =
                text[at..at + BATCH_BYTES].try_into().expect("the length is a constant");
            let around: &[u8; AROUND] = match at.checked_sub(1) {
                Some(before) => {
                    text[before..before + AROUND].try_into().expect("the length is a constant")
                }
                None => {
                    first[1..].copy_from_slice(batch);
                    &first
                }
            };
            let count = self.first_look(batch, &mut passed);
            let count = self.second_look(around, &mut passed, count);
            let count = self.third_look(around, &mut passed, count);
            for &gram in &passed[..count] {
                let gram = usize::from(gram);
                self.compare(text, at + gram, word(batch, gram), &range, on_hit);
            }
            at += BATCH * 2;
        }
        while at < end {
            let mut bytes = [END; 4];
            let rest = &text[at..text.len().min(at + 4)];
            bytes[..rest.len()].copy_from_slice(rest);
            let word = u32::from_le_bytes(bytes);
            if look_up(&self.bitmap, hash(self.multiplier, word)) == 1 {
                self.compare(text, at, word, &range, on_hit);
            }
            at += 2;
        }
    }

    /// Collects the positions whose three bytes may be a gram. Returns how many.
    #[inline(never)]
    fn first_look(&self, batch: &[u8; BATCH_BYTES], passed: &mut [u16; BATCH]) -> usize {
        let multiplier = self.multiplier;
        let mut count = 0;
        for gram in 0..BATCH {
            passed[count % BATCH] = gram as u16 * 2;
            count += look_up(&self.bitmap, hash(multiplier, word(batch, gram * 2)));
        }
        count
    }

    /// Keeps those of the first `count` that look right with one byte more. Returns how many.
    #[inline(never)]
    fn second_look(&self, around: &[u8; AROUND], passed: &mut [u16; BATCH], count: usize) -> usize {
        keep(around, passed, count, |bytes| {
            look_up(&self.second, hash_before(bytes as u32))
                | look_up(&self.second, hash_after((bytes >> 8) as u32))
        })
    }

    /// Keeps those that look right with two bytes more, where their anchors have as many.
    #[inline(never)]
    fn third_look(&self, around: &[u8; AROUND], passed: &mut [u16; BATCH], count: usize) -> usize {
        keep(around, passed, count, |bytes| {
            let looks = Around::ALL.map(|around| look_up(&self.third, around.hash(bytes)));
            looks[0] | looks[1] | looks[2] | looks[3]
        })
    }

    #[inline(never)]
    fn compare(
        &self,
        text: &[u8],
        at: usize,
        word: u32,
        range: &Range<usize>,
        on_hit: &mut impl FnMut(usize, usize),
    ) {
        let bucket = bucket(hash(self.multiplier, word));
        let entries = self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize;
        for entry in &self.entries[entries] {
            if !entry.may_be_at(text, at) {
                continue;
            }
            let Some(start) = at.checked_sub(usize::from(entry.shift)) else { continue };
            let literal = &self.literals[entry.literal as usize];
            let Some(found) = text.get(start..start + usize::from(literal.len)) else { continue };
            let equal = if literal.ignore_case {
                found.eq_ignore_ascii_case(literal.bytes())
            } else {
                found == literal.bytes()
            };
            if equal && range.contains(&start) {
                on_hit(entry.literal as usize, start);
            }
        }
    }
}

/// Keeps those of the first `count` that `looks_right`, which is given the bytes from the one before
/// the gram on. Without branches. Returns how many.
#[inline(always)]
fn keep(
    around: &[u8; AROUND],
    passed: &mut [u16; BATCH],
    count: usize,
    looks_right: impl Fn(u64) -> usize,
) -> usize {
    let mut kept = 0;
    for at in 0..count.min(BATCH) {
        let position = passed[at];
        passed[kept % BATCH] = position;
        // Never more than it was: without a check of the bounds.
        let before = usize::from(position) % (BATCH * 2);
        let bytes: &[u8; WINDOW] =
            around[before..before + WINDOW].try_into().expect("the length is a constant");
        kept += looks_right(u64::from_le_bytes(*bytes));
    }
    kept
}

#[inline(always)]
fn look_up(bitmap: &[u64; WORDS], hash: u32) -> usize {
    let (word, bit) = place(hash);
    (bitmap[word] >> bit & 1) as usize
}

/// The eight bytes from `at` on.
#[inline(always)]
fn window_at(text: &[u8], at: usize) -> u64 {
    match text.get(at..at + WINDOW) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        None => last_window(&text[at..]),
    }
}

#[cold]
fn last_window(rest: &[u8]) -> u64 {
    let mut bytes = [END; WINDOW];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(bytes)
}

#[inline(always)]
fn word(batch: &[u8; BATCH_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([batch[at], batch[at + 1], batch[at + 2], batch[at + 3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::literals::{Next, Reach};

    fn anchor(text: &str, ignore_case: bool) -> Anchor {
        let reach = Reach { min: 0, max: 0 };
        Anchor { bytes: text.as_bytes().to_vec(), ignore_case, next: Next::ANY, reach }
    }

    fn hits(anchors: &[Anchor], text: &[u8], range: Range<usize>) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        Prefilter::new(anchors).find(text, range, &mut |anchor, start| hits.push((anchor, start)));
        hits.sort_unstable();
        hits
    }

    fn naive(anchors: &[Anchor], text: &[u8], range: Range<usize>) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        for (id, anchor) in anchors.iter().enumerate() {
            for start in range.clone() {
                let Some(found) = text.get(start..start + anchor.bytes.len()) else { continue };
                let equal = if anchor.ignore_case {
                    found.eq_ignore_ascii_case(&anchor.bytes)
                } else {
                    found == anchor.bytes
                };
                if equal {
                    hits.push((id, start));
                }
            }
        }
        hits
    }

    #[test]
    fn anchors_at_the_very_start_and_end_are_met() {
        let anchors = [anchor("eyJ", false), anchor("ghp_", false), anchor("-----begin", true)];
        let text = b"eyJxxghp_yy-----BEGIN zzeyJ";
        assert_eq!(hits(&anchors, text, 0..text.len()), naive(&anchors, text, 0..text.len()));
        assert_eq!(hits(&anchors, text, 0..text.len()).len(), 4);
    }

    proptest! {
        /// P1, over a small alphabet so that hits are many and overlap.
        #[test]
        fn every_occurrence_is_met_once(
            text in prop::collection::vec(prop::sample::select(b"abAB_-".to_vec()), 0..200),
            words in prop::collection::vec(("[abAB_-]{3,9}", any::<bool>()), 1..8),
            cut in (0usize..200, 0usize..200),
        ) {
            let anchors: Vec<_> = words
                .iter()
                .map(|(word, fold)| {
                    let word = if *fold { word.to_ascii_lowercase() } else { word.clone() };
                    anchor(&word, *fold)
                })
                .collect();
            let from = cut.0.min(text.len());
            let to = cut.1.clamp(from, text.len());
            prop_assert_eq!(hits(&anchors, &text, from..to), naive(&anchors, &text, from..to));
        }
    }
}
