//! The first stage: where in a buffer do anchors stand?
//!
//! Every anchor has at least three bytes. At every second position of the buffer the three bytes
//! there, letters folded, are looked up in a bitmap of 65 536 hashes; an anchor is recognised by a
//! gram at an even and one at an odd distance from its start, so that each occurrence is met
//! exactly once, whatever its alignment. No step depends on the one before it, which is why this
//! is several times faster than walking an automaton, and it stays so with hundreds of anchors.
//!
//! - P1: every occurrence of an anchor whose start is in the range is reported exactly once.
//! - P2: the cost of a byte that belongs to no anchor does not grow with the number of anchors,
//!   as long as the bitmap is sparse.

use std::ops::Range;

use crate::literals::{Anchor, MIN_ANCHOR_LEN, rarity_bits};

const GRAM_LEN: usize = 3;
const _: () = assert!(MIN_ANCHOR_LEN >= GRAM_LEN);
/// Sets the letter case bit; other bytes may collide, which the comparison sorts out.
const FOLD: u32 = 0x2020_2020;
/// Odd, and shifted so that the fourth byte of a word falls out of the product.
const MULTIPLIER: u32 = 0x9E37_79B1 << 8;
/// Positions that are looked at together; half as many grams.
const BLOCK: usize = 16;
/// A block reads this far past its positions.
const OVERREAD: usize = 4;

/// Finds anchors. Built once, shared by all threads.
pub(crate) struct Prefilter {
    bitmap: Box<[u64; 1024]>,
    /// Sorted by hash; `buckets[h >> 4]` is where hashes from `h & !15` begin.
    entries: Vec<Entry>,
    buckets: Box<[u16; 4097]>,
    literals: Vec<Literal>,
    /// No gram stands further than this from its anchor's start.
    max_shift: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u16,
    /// Distance of the gram from the anchor's start.
    shift: u8,
    literal: u16,
}

struct Literal {
    bytes: Vec<u8>,
    ignore_case: bool,
}

fn hash(word: u32) -> u16 {
    ((word | FOLD).wrapping_mul(MULTIPLIER) >> 16) as u16
}

fn gram_hash(gram: [u8; GRAM_LEN]) -> u16 {
    hash(u32::from_le_bytes([gram[0], gram[1], gram[2], 0]))
}

impl Prefilter {
    /// A filter for these anchors; an occurrence is reported by the anchor's place in the list.
    ///
    /// # Panics
    /// With more than 65 535 anchors or grams; rule sets are bounded far below.
    pub(crate) fn new<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> Self {
        let mut entries = Vec::new();
        let mut literals = Vec::new();
        for anchor in anchors {
            let literal = u16::try_from(literals.len()).expect("fewer than 65 536 anchors");
            for (gram, shift) in grams(anchor) {
                entries.push(Entry { hash: gram_hash(gram), shift, literal });
            }
            let Anchor { bytes, ignore_case, .. } = anchor;
            literals.push(Literal { bytes: bytes.clone(), ignore_case: *ignore_case });
        }
        entries.sort_by_key(|entry| (entry.hash, entry.literal, entry.shift));
        entries.dedup_by_key(|entry| (entry.hash, entry.literal, entry.shift));
        assert!(entries.len() <= usize::from(u16::MAX), "{} grams", entries.len());
        let mut bitmap = Box::new([0u64; 1024]);
        let mut buckets = Box::new([0u16; 4097]);
        for entry in &entries {
            bitmap[usize::from(entry.hash >> 6)] |= 1 << (entry.hash & 63);
            buckets[usize::from(entry.hash >> 4) + 1] += 1;
        }
        for at in 1..buckets.len() {
            buckets[at] += buckets[at - 1];
        }
        let max_shift = entries.iter().map(|entry| usize::from(entry.shift)).max().unwrap_or(0);
        Self { bitmap, entries, buckets, literals, max_shift }
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
        while at + BLOCK + OVERREAD <= text.len() && at < end {
            let block: &[u8; BLOCK + OVERREAD] =
                text[at..at + BLOCK + OVERREAD].try_into().expect("the length is a constant");
            let mut any = 0;
            for gram in 0..BLOCK / 2 {
                any |= self.bit(word(block, gram * 2));
            }
            if any & 1 != 0 {
                for gram in 0..BLOCK / 2 {
                    let word = word(block, gram * 2);
                    if self.bit(word) & 1 != 0 {
                        self.compare(text, at + gram * 2, hash(word), &range, on_hit);
                    }
                }
            }
            at += BLOCK;
        }
        // The rest, as if zeros followed.
        while at < end {
            let mut bytes = [0u8; 4];
            let rest = &text[at..text.len().min(at + 4)];
            bytes[..rest.len()].copy_from_slice(rest);
            let word = u32::from_le_bytes(bytes);
            if self.bit(word) & 1 != 0 {
                self.compare(text, at, hash(word), &range, on_hit);
            }
            at += 2;
        }
    }

    /// The hash's bit is the lowest of the result.
    #[inline(always)]
    fn bit(&self, word: u32) -> u64 {
        let hash = hash(word);
        self.bitmap[usize::from(hash >> 6)] >> (hash & 63)
    }

    #[inline(never)]
    fn compare(
        &self,
        text: &[u8],
        at: usize,
        hash: u16,
        range: &Range<usize>,
        on_hit: &mut impl FnMut(usize, usize),
    ) {
        let bucket = usize::from(hash >> 4);
        let entries = usize::from(self.buckets[bucket])..usize::from(self.buckets[bucket + 1]);
        for entry in &self.entries[entries] {
            if entry.hash != hash {
                continue;
            }
            let Some(start) = at.checked_sub(usize::from(entry.shift)) else { continue };
            let literal = &self.literals[usize::from(entry.literal)];
            let Some(found) = text.get(start..start + literal.bytes.len()) else { continue };
            let equal = if literal.ignore_case {
                found.eq_ignore_ascii_case(&literal.bytes)
            } else {
                found == literal.bytes
            };
            if equal && range.contains(&start) {
                on_hit(usize::from(entry.literal), start);
            }
        }
    }
}

#[inline(always)]
fn word(block: &[u8; BLOCK + OVERREAD], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// The rarest gram at an even and the rarest at an odd distance. The odd one of a three-byte
/// anchor reaches past it, so it stands for each byte that may follow (zero: the end).
fn grams(anchor: &Anchor) -> Vec<([u8; GRAM_LEN], u8)> {
    let rarest = |parity: usize| {
        (parity..=anchor.bytes.len().saturating_sub(GRAM_LEN))
            .step_by(2)
            .map(|shift| {
                let gram: [u8; GRAM_LEN] =
                    anchor.bytes[shift..shift + GRAM_LEN].try_into().expect("three bytes");
                (gram, shift as u8)
            })
            .max_by(|a, b| rarity_bits(&fold(a.0)).total_cmp(&rarity_bits(&fold(b.0))))
    };
    let mut grams: Vec<_> = rarest(0).into_iter().collect();
    match rarest(1) {
        Some(gram) => grams.push(gram),
        None => {
            let [_, second, third] = anchor.bytes[..] else { unreachable!("three bytes") };
            let next = (0..=u8::MAX).filter(|&byte| byte == 0 || anchor.next.contains(byte));
            grams.extend(next.map(|byte| ([second, third, byte], 1)));
        }
    }
    grams
}

fn fold(gram: [u8; GRAM_LEN]) -> [u8; GRAM_LEN] {
    gram.map(|byte| byte.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::literals::{ByteSet, Reach};

    fn anchor(text: &str, ignore_case: bool) -> Anchor {
        let reach = Reach { min: 0, max: 0 };
        Anchor { bytes: text.as_bytes().to_vec(), ignore_case, next: ByteSet::ALL, reach }
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
