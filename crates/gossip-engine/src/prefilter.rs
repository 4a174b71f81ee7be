//! The first stage: where in a buffer do anchors stand?
//!
//! Every anchor has at least three bytes. At every second position of the buffer the three bytes
//! there, letters folded, are looked up in a bitmap of 262 144 hashes; an anchor is recognised by a
//! gram at an even and one at an odd distance from its start, so that each occurrence is met
//! exactly once, whatever its alignment. What passes is looked up again with the bytes beside it, and
//! then compared, eight bytes at once. The two look-ups have no branches and no step depends on the one before
//! it, which is why this is several times faster than walking an automaton, and stays so with
//! hundreds of anchors.
//!
//! - P1: every occurrence of an anchor whose start is in the range is reported exactly once.
//! - P2: the cost of a byte that belongs to no anchor does not grow with the number of anchors,
//!   as long as the bitmaps are sparse.

use std::ops::Range;

use crate::literals::{
    Anchor, GRAM_LEN, MAX_ANCHOR_LEN, MIN_ANCHOR_LEN, Next, common_grams, fold, gram_bits,
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
/// Looked up for few grams only, so it may be larger than the first cache.
const SECOND_BITS: u32 = 18;
const SECOND_WORDS: usize = 1 << (SECOND_BITS - 6);
const BUCKETS: usize = 8192;
const GRAM_MASK: u32 = 0xFF_FFFF;
/// Of these the one is used under which the fewest common groups of three fall on an anchor's.
/// Odd, and shifted when used so that the fourth byte of a word falls out of the product.
const MULTIPLIERS: [u32; 12] = [
    0x9E_3779, 0x85_EBCB, 0xC2_B2AF, 0x27_D4EB, 0x16_5667, 0xD3_A265, 0xFD_7047, 0xB5_5A4F,
    0x5A_827B, 0x6E_D9EB, 0x8F_1BBD, 0xCA_62C1,
];
/// What the end of the text looks like: a byte that text hardly has.
const END: u8 = 0xFF;
/// Grams that are looked at together.
const BATCH: usize = 256;
/// Bytes that a batch reads: the last gram's word goes past its position.
const BATCH_BYTES: usize = BATCH * 2 + WINDOW;
/// Bytes of an anchor that are compared at once.
const WINDOW: usize = 8;
/// A window begins at most so far before its gram, so that the gram is in it.
const MAX_BACK: usize = WINDOW - GRAM_LEN;

/// Finds anchors. Built once, shared by all threads.
pub(crate) struct Prefilter {
    multiplier: u32,
    bitmap: Box<[u64; WORDS]>,
    second: Box<[u64; SECOND_WORDS]>,
    /// Sorted by hash; a bucket is 32 hashes.
    entries: Vec<Entry>,
    buckets: Box<[u32; BUCKETS + 1]>,
    literals: Vec<Literal>,
    /// No gram stands further than this from its anchor's start.
    max_shift: usize,
}

/// One gram of an anchor.
#[derive(Clone, Copy)]
struct Entry {
    /// What of the anchor, folded, stands in the eight bytes that begin `back` before the gram: few
    /// entries whose gram is there have this, too.
    window: u64,
    mask: u64,
    literal: u32,
    /// Distance of the gram from the anchor's start.
    shift: u8,
    back: u8,
}

impl Entry {
    /// The gram at `shift` of `bytes`, an anchor and the byte that follows it if the gram reaches
    /// past it.
    fn new(bytes: &[u8], literal: u32, shift: usize) -> Self {
        let back = shift.min(MAX_BACK);
        let (mut window, mut mask) = ([0; WINDOW], [0; WINDOW]);
        for (at, byte) in bytes[shift - back..].iter().take(WINDOW).enumerate() {
            (window[at], mask[at]) = (fold(*byte), u8::MAX);
        }
        let (window, mask) = (u64::from_le_bytes(window), u64::from_le_bytes(mask));
        Self { window, mask, literal, shift: shift as u8, back: back as u8 }
    }

    /// The folded gram.
    fn gram(&self) -> u32 {
        (self.window >> (8 * self.back)) as u32 & GRAM_MASK
    }

    /// How often its gram is to be expected.
    fn noise(&self) -> f64 {
        let [a, b, c, _] = self.gram().to_le_bytes();
        // What is in the table for nothing makes it fuller.
        const FULLNESS: f64 = 1.0 / (1 << HASH_BITS) as f64;
        (-gram_bits([a, b, c])).exp2() + FULLNESS
    }

    /// Whether the anchor may be one whose gram stands at `at`.
    #[inline(always)]
    fn may_be_at(&self, text: &[u8], at: usize) -> bool {
        let Some(from) = at.checked_sub(usize::from(self.back)) else { return false };
        (window_at(text, from) | FOLD_WINDOW) & self.mask == self.window
    }
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

fn hash(multiplier: u32, word: u32) -> u32 {
    (word | FOLD).wrapping_mul(multiplier) >> (u32::BITS - HASH_BITS)
}

/// What the second look-up sees around a gram.
#[derive(Clone, Copy)]
enum Around {
    /// The byte after it.
    After,
    /// The byte before it.
    Before,
    /// Both.
    Both,
}

/// `bytes` begin with those around the gram.
#[inline(always)]
fn second_hash(around: Around, bytes: u64) -> u32 {
    const FOUR: u64 = 0xFFFF_FFFF;
    const FIVE: u64 = 0xFF_FFFF_FFFF;
    let bytes = bytes | FOLD_WINDOW;
    let product = match around {
        Around::After => (bytes & FOUR).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        Around::Before => (bytes & FOUR).wrapping_mul(0xC2B2_AE3D_27D4_EB4F),
        Around::Both => (bytes & FIVE).wrapping_mul(0x85EB_CA77_C2B2_AE63),
    };
    (product >> (u64::BITS - SECOND_BITS)) as u32
}

/// What the second look-up sees where the entry's gram is part of its literal: the bytes beside it
/// that the literal has, or else whatever may follow.
fn second_hashes(entry: &Entry, literal: &Anchor) -> Vec<u32> {
    let shift = usize::from(entry.shift);
    let gram = u64::from(entry.gram());
    let after = literal.bytes.get(shift + GRAM_LEN).map(|after| u64::from(*after) << 24);
    match (shift.checked_sub(1), after) {
        (Some(before), after) => {
            let before = u64::from(literal.bytes[before]);
            let around = if after.is_some() { Around::Both } else { Around::Before };
            vec![second_hash(around, (gram | after.unwrap_or(0)) << 8 | before)]
        }
        (None, Some(after)) => vec![second_hash(Around::After, gram | after)],
        (None, None) => following(literal.next)
            .map(|after| second_hash(Around::After, gram | u64::from(after) << 24))
            .collect(),
    }
}

#[inline(always)]
fn place<const LEN: usize>(hash: u32) -> (usize, u32) {
    ((hash >> 6) as usize % LEN, hash & 63)
}

fn insert<const LEN: usize>(bitmap: &mut [u64; LEN], hash: u32) {
    let (word, bit) = place::<LEN>(hash);
    bitmap[word] |= 1 << bit;
}

fn bucket(hash: u32) -> usize {
    (hash >> (HASH_BITS - BUCKETS.ilog2())) as usize
}

impl Prefilter {
    /// A filter for these anchors; an occurrence is reported by the anchor's place in the list.
    pub(crate) fn new<'a>(anchors: impl IntoIterator<Item = &'a Anchor>) -> Self {
        let mut entries = Vec::new();
        let anchors: Vec<_> = anchors.into_iter().collect();
        for (literal, anchor) in anchors.iter().enumerate() {
            push_entries(anchor, literal as u32, &mut entries);
        }
        let multiplier = quietest_multiplier(&entries);
        let hash_of = |entry: &Entry| hash(multiplier, entry.gram());
        entries.sort_by_key(|entry| (hash_of(entry), entry.literal, entry.shift));
        let mut bitmap = Box::new([0u64; WORDS]);
        let mut second = Box::new([0u64; SECOND_WORDS]);
        let mut buckets = Box::new([0u32; BUCKETS + 1]);
        for entry in &entries {
            for hash in second_hashes(entry, anchors[entry.literal as usize]) {
                insert(&mut second, hash);
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
        Self { multiplier, bitmap, second, entries, buckets, literals, max_shift }
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
        while at < end && at + BATCH_BYTES <= text.len() {
            let batch: &[u8; BATCH_BYTES] =
                text[at..at + BATCH_BYTES].try_into().expect("the length is a constant");
            let count = self.first_look(batch, &mut passed);
            let count = self.second_look(text, at, &mut passed, count);
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

    /// Keeps those of the first `count` that look right with one byte more, or two. `start` is where the
    /// batch is.
    #[inline(never)]
    fn second_look(
        &self,
        text: &[u8],
        start: usize,
        passed: &mut [u16; BATCH],
        count: usize,
    ) -> usize {
        let mut kept = 0;
        for at in 0..count.min(BATCH) {
            let position = passed[at];
            passed[kept % BATCH] = position;
            let here = start + usize::from(position);
            // Nothing stands before the first byte of all: two of the look-ups are in vain there.
            let from = here.saturating_sub(1);
            let bytes = window_at(text, from);
            let look_up = |around, bytes: u64| look_up(&self.second, second_hash(around, bytes));
            kept += look_up(Around::After, bytes >> (8 * (here - from)))
                | look_up(Around::Before, bytes)
                | look_up(Around::Both, bytes);
        }
        kept
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

#[inline(always)]
fn look_up<const LEN: usize>(bitmap: &[u64; LEN], hash: u32) -> usize {
    let (word, bit) = place::<LEN>(hash);
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

/// The rarest gram at an even and the rarest at an odd distance. One that reaches past the anchor
/// stands for each byte that may follow.
fn push_entries(anchor: &Anchor, literal: u32, entries: &mut Vec<Entry>) {
    let bytes = anchor.bytes.as_slice();
    for parity in [0, 1] {
        let inside = (parity..=bytes.len() - GRAM_LEN).step_by(2);
        let inside = inside.map(|shift| vec![Entry::new(bytes, literal, shift)]);
        let last = bytes.len() + 1 - GRAM_LEN;
        let across = (last % 2 == parity).then(|| {
            let entry = |next| Entry::new(&[bytes, &[next]].concat(), literal, last);
            following(anchor.next).map(entry).collect()
        });
        let noise = |entries: &Vec<Entry>| entries.iter().map(Entry::noise).sum::<f64>();
        let quietest = inside.chain(across).min_by(|a, b| noise(a).total_cmp(&noise(b)));
        entries.extend(quietest.expect("three bytes have a gram at each distance"));
    }
}

/// The bytes that may follow, one for each that looks different when folded.
fn following(next: Next) -> impl Iterator<Item = u8> {
    let allowed = move |byte: u8| byte == END || next.allows(byte);
    (0..=u8::MAX)
        .filter(|byte| fold(*byte) == *byte)
        .filter(move |byte| allowed(*byte) || allowed(*byte & !fold(0)))
}

fn quietest_multiplier(entries: &[Entry]) -> u32 {
    let noise = |multiplier: &u32| {
        let mut bitmap = [0u64; WORDS];
        for entry in entries {
            insert(&mut bitmap, hash(*multiplier, entry.gram()));
        }
        let hits = common_grams().iter().filter(|([a, b, c], _)| {
            look_up(&bitmap, hash(*multiplier, u32::from_le_bytes([*a, *b, *c, 0]))) == 1
        });
        hits.map(|(_, bits)| 0.5f64.powi(i32::from(*bits))).sum::<f64>()
    };
    let shifted = MULTIPLIERS.map(|multiplier| multiplier << 8 | 1 << 8);
    let quietest = shifted.into_iter().map(|multiplier| (noise(&multiplier), multiplier));
    quietest.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(MULTIPLIERS[0] << 8, |(_, best)| best)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::literals::Reach;

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
