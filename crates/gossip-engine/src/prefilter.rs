//! The first stage: where in a buffer do anchors stand?
//!
//! At every second position of the buffer the four bytes there, letters folded, are looked up in a
//! bitmap of 262 144 hashes. An anchor is recognised by such a gram at an even and one at an odd
//! distance from its start, so that each occurrence is met exactly once, whatever its alignment. The
//! first look hashes a batch of grams at once, in lanes of 16 bits that every processor has; the
//! second compares the bytes around a gram with what all anchors that have it agree on. Neither has
//! branches, and no step depends on the one before it, which is why this is several times faster
//! than walking an automaton, and stays so with thousands of anchors. What is left is compared.
//!
//! - P1: every occurrence of an anchor whose start is in the range is reported exactly once.
//! - P2: the cost of a byte that belongs to no anchor does not grow with the number of anchors,
//!   as long as the bitmap is sparse.

mod entries;

use std::ops::Range;

use crate::literals::{Anchor, MAX_ANCHOR_LEN};
use entries::{Entry, choose_entries, quietest_multipliers};

/// Distances from an anchor's start fit a byte.
const _: () = assert!(MAX_ANCHOR_LEN <= i8::MAX as usize);
/// Sets the letter case bit; other bytes may collide, which the comparison sorts out.
const FOLD: u64 = 0x2020_2020_2020_2020;
/// Sets the highest bit, too: then a byte that may be anything is one of 64.
const FOLD_GRAM: u32 = 0xA0A0_A0A0;
/// Bytes of a gram.
const GRAM: usize = 4;
/// Bytes around a gram that the second look compares, and how many of them stand before it.
const WINDOW: usize = 8;
const BEFORE: usize = 2;
/// Words of the bitmap: 32 KiB.
const BITMAP_BITS: u32 = 13;
const BITMAP: usize = 1 << BITMAP_BITS;
/// Groups of entries are found by so many bits of a hash.
const SLOT_BITS: u32 = 15;
const SLOTS: usize = 1 << SLOT_BITS;
/// What stands before and behind the text: a byte that text hardly has.
const END: u8 = 0xFF;
/// Grams that are looked at together.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 * BATCH;
/// What a batch sees: the windows of all its bytes.
const SEEN: usize = BATCH_BYTES + WINDOW - 1;

/// Grams that are hashed together, and those that are looked up without a loop.
const LANES: usize = 32;
const UNROLLED: usize = 16;
const _: () = assert!(BATCH.is_multiple_of(LANES) && LANES.is_multiple_of(UNROLLED));

/// Finds anchors. Built once, shared by all threads.
pub(crate) struct Prefilter {
    multipliers: Multipliers,
    bitmap: Box<[u32; BITMAP]>,
    /// For each hash the group of the entries that have it.
    slots: Box<[u16; SLOTS]>,
    groups: Vec<Group>,
    /// Those of a group stand together.
    entries: Vec<Entry>,
    literals: Vec<Literal>,
    /// No gram begins further than this behind its anchor's start.
    max_shift: usize,
}

/// What the first look hashes with.
#[derive(Clone, Copy)]
struct Multipliers(u16, u16);

impl Multipliers {
    /// Which word of the bitmap has the bit of the gram whose halves these are.
    #[inline(always)]
    fn word(self, first: u16, second: u16) -> u16 {
        let fold = FOLD_GRAM as u16;
        let (first, second) = (first | fold, second | fold);
        let sum = first.wrapping_mul(self.0).wrapping_add(second.wrapping_mul(self.1));
        sum >> (u16::BITS - BITMAP_BITS)
    }

    /// The place of a gram in the bitmap: its word, and a bit for what of its last byte is the same in
    /// both cases.
    fn place(self, gram: u32) -> (usize, u32) {
        let [a, b, c, d] = gram.to_le_bytes();
        let word = self.word(u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
        (usize::from(word), 1 << (d % 32))
    }
}

/// Entries whose grams have one hash.
struct Group {
    /// What all of them have in their windows, and where.
    window: u64,
    mask: u64,
    entries: Range<u32>,
}

impl Group {
    /// That of all hashes that no gram has: nothing is in it.
    const NONE: Self = Self { window: u64::MAX, mask: 0, entries: 0..0 };

    fn new(entries: &[Entry], first: usize) -> Self {
        let folded = |entry: &Entry| entry.window | FOLD & entry.mask;
        let mask = entries.iter().fold(u64::MAX, |mask, entry| {
            let differs = folded(entry) ^ folded(&entries[0]);
            // Whole bytes, as the case bit alone tells little.
            let differs = u64::from_le_bytes(
                differs.to_le_bytes().map(|byte| if byte == 0 { 0 } else { u8::MAX }),
            );
            mask & entry.mask & !differs
        });
        let entries_at = first as u32..(first + entries.len()) as u32;
        Self { window: folded(&entries[0]) & mask, mask, entries: entries_at }
    }
}

/// Without a pointer, as it is looked at for every gram that passes.
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

    fn is_at(&self, text: &[u8], start: usize) -> bool {
        let len = usize::from(self.len);
        let (found, bytes) = (&text[start..start + len], &self.bytes[..len]);
        if self.ignore_case { found.eq_ignore_ascii_case(bytes) } else { found == bytes }
    }
}

/// Where the group of a gram is found.
#[inline(always)]
fn slot(gram: u32) -> usize {
    ((gram | FOLD_GRAM).wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS)) as usize
}

/// The gram in the middle of a window.
#[inline(always)]
fn gram_of(window: u64) -> u32 {
    (window >> (8 * BEFORE)) as u32
}

impl Prefilter {
    /// A filter for these anchors; an occurrence is reported by the anchor's place in the list.
    pub(crate) fn new<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> Self {
        let anchors: Vec<_> = anchors.into_iter().collect();
        let mut entries = choose_entries(&anchors);
        let multipliers = quietest_multipliers(&entries);
        let bitmap = multipliers.bitmap(&entries);
        entries.sort_by_key(|entry| (slot(entry.gram), entry.literal, entry.shift));
        // One that stands for several bytes may have one hash for some of them.
        entries.dedup_by_key(|entry| (slot(entry.gram), entry.literal, entry.shift));
        let mut slots = Box::new([0u16; SLOTS]);
        let mut groups = vec![Group::NONE];
        let mut first = 0;
        for group in entries.chunk_by(|a, b| slot(a.gram) == slot(b.gram)) {
            slots[slot(group[0].gram)] = groups.len() as u16;
            groups.push(Group::new(group, first));
            first += group.len();
        }
        let max_shift = entries.iter().map(|entry| entry.shift).max().unwrap_or(0).max(0) as usize;
        let literals = anchors.into_iter().map(Literal::new).collect();
        Self { multipliers, bitmap, slots, groups, entries, literals, max_shift }
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
        let mut passed = [0u16; BATCH];
        let mut at = range.start;
        let mut padded = [END; SEEN];
        while at < end {
            let seen = seen_from(text, at, &mut padded);
            let count = self.first_look(seen, &mut passed, (end - at).div_ceil(2));
            let count = self.second_look(seen, &mut passed, count);
            for &gram in &passed[..count] {
                self.compare(text, at + usize::from(gram), window(seen, gram), &range, on_hit);
            }
            at += BATCH_BYTES;
        }
    }

    /// Collects the positions of the first `grams` whose four bytes may be a gram. Returns how many.
    #[inline(never)]
    fn first_look(&self, seen: &[u8; SEEN], passed: &mut [u16; BATCH], grams: usize) -> usize {
        let multipliers = self.multipliers;
        let mut count = 0;
        for first in (0..grams.min(BATCH)).step_by(LANES) {
            let bytes: &[u8; 2 * LANES + GRAM - 2] = seen[2 * first + BEFORE..]
                [..2 * LANES + GRAM - 2]
                .try_into()
                .expect("the length is a constant");
            let half = |at: usize| u16::from_le_bytes([bytes[2 * at], bytes[2 * at + 1]]);
            let mut words = [0; LANES];
            for (at, word) in words.iter_mut().enumerate() {
                *word = multipliers.word(half(at), half(at + 1));
            }
            // Nested, so that the compiler unrolls the inner loop.
            for from in (0..LANES).step_by(UNROLLED) {
                for at in from..from + UNROLLED {
                    passed[count % BATCH] = (2 * (first + at)) as u16;
                    let bits = self.bitmap[usize::from(words[at]) % BITMAP];
                    count += (bits >> (bytes[2 * at + GRAM - 1] % 32) & 1) as usize;
                }
            }
        }
        count
    }

    /// Keeps those of the first `count` around which stands what their groups agree on. Returns how
    /// many.
    #[inline(never)]
    fn second_look(&self, seen: &[u8; SEEN], passed: &mut [u16; BATCH], count: usize) -> usize {
        let mut kept = 0;
        for at in 0..count.min(BATCH) {
            let position = passed[at];
            passed[kept % BATCH] = position;
            let window = window(seen, position);
            let group = self.group(window);
            kept += usize::from((window | FOLD) & group.mask == group.window);
        }
        kept
    }

    #[inline(always)]
    fn group(&self, window: u64) -> &Group {
        &self.groups[usize::from(self.slots[slot(gram_of(window))])]
    }

    #[inline(never)]
    fn compare(
        &self,
        text: &[u8],
        at: usize,
        window: u64,
        range: &Range<usize>,
        on_hit: &mut impl FnMut(usize, usize),
    ) {
        let Range { start, end } = self.group(window).entries;
        for entry in &self.entries[start as usize..end as usize] {
            if (window | entry.either_case) & entry.mask != entry.window {
                continue;
            }
            let Some(start) = at.checked_add_signed(-isize::from(entry.shift)) else { continue };
            let literal = &self.literals[entry.literal as usize];
            let is_whole = start + usize::from(entry.len) <= text.len()
                && (entry.is_in_window || literal.is_at(text, start));
            if is_whole && range.contains(&start) {
                on_hit(entry.literal as usize, start);
            }
        }
    }
}

/// What the batch at `at` sees of `text`; `padded` has it where the text begins or ends in it.
#[inline(always)]
fn seen_from<'t>(text: &'t [u8], at: usize, padded: &'t mut [u8; SEEN]) -> &'t [u8; SEEN] {
    let inside = at.checked_sub(BEFORE).and_then(|from| text.get(from..from + SEEN));
    match inside {
        Some(seen) => seen.try_into().expect("the length is a constant"),
        None => {
            *padded = [END; SEEN];
            let missing = BEFORE.saturating_sub(at);
            let rest = &text[at + missing - BEFORE..];
            let len = rest.len().min(SEEN - missing);
            padded[missing..missing + len].copy_from_slice(&rest[..len]);
            padded
        }
    }
}

/// The bytes around the gram at `position` of a batch.
#[inline(always)]
fn window(seen: &[u8; SEEN], position: u16) -> u64 {
    // Never more than it was: without a check of the bounds.
    let from = usize::from(position) % BATCH_BYTES;
    u64::from_le_bytes(seen[from..from + WINDOW].try_into().expect("the length is a constant"))
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
