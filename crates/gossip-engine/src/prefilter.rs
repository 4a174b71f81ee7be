//! The first stage: where in a buffer do anchors stand?
//!
//! At every second position of the buffer the four bytes there, letters folded, are looked up in a
//! bitmap of 262 144 hashes. Three bits of the first byte count: more would tell grams apart a
//! little better, but a short literal, whose neighbour may be anything, would fill the bitmap. An
//! anchor is recognised by such a gram at an even and one at an odd distance from its start, so
//! that each occurrence is met exactly once, whatever its alignment. The first look hashes a batch
//! of grams at once, in lanes of 16 bits that every processor has; the second compares the bytes
//! around a gram with what the anchors that have it share. Neither has branches, and no step
//! depends on the one before it, which is why this is several times faster than walking an
//! automaton, and stays so with thousands of anchors. What is left is compared.
//!
//! - P1: every occurrence of an anchor whose start is in the range, where it may stand by the bytes
//!   beside it, is reported exactly once.
//! - P2: the cost of a byte that belongs to no anchor does not grow with the number of anchors,
//!   as long as the bitmap is sparse.

mod entries;

use std::ops::Range;

use crate::literals::{Anchor, MAX_ANCHOR_LEN, MIN_ANCHOR_LEN, Next, stands_alone};
use entries::{Entry, choose_entries};

/// Distances from an anchor's start fit a byte.
const _: () = assert!(MAX_ANCHOR_LEN <= i8::MAX as usize);
/// By this bit alone a letter differs from itself in the other case.
const CASE: u8 = 0x20;
/// What of a gram is looked at. Letters are the same in both cases, and a last byte that may be
/// anything is one of 64; of the first there are three bits, so that one that may be anything is one
/// of eight.
const GRAM_MASK: u32 = 0x5F5F_5F07;
/// Bytes of a gram. One of them may be a literal's neighbour.
const GRAM: usize = 4;
const _: () = assert!(MIN_ANCHOR_LEN + 1 >= GRAM);
/// Bytes around a gram that the second look compares, and how many of them stand before it.
const WINDOW: usize = 8;
const BEFORE: usize = 2;
/// Words of the bitmap: 32 KiB.
const BITMAP_BITS: u32 = 13;
const BITMAP: usize = 1 << BITMAP_BITS;
/// Groups of entries are found by so many bits of a hash: the more, the fewer entries share a group by chance.
const SLOT_BITS: u32 = 17;
const SLOTS: usize = 1 << SLOT_BITS;
/// So many slots share a group where there are more entries than a slot can count groups.
const CROWDED: usize = 4;
const _: () = assert!(SLOTS / CROWDED < u16::MAX as usize);
/// What stands before and behind the text: a byte that text hardly has.
const END: u8 = 0xFF;
/// Grams that are looked at together.
const BATCH: usize = 256;
const BATCH_BYTES: usize = 2 * BATCH;
/// What a batch sees: the windows of all its bytes.
const SEEN: usize = BATCH_BYTES + WINDOW - 1;
/// Grams that are looked up without a loop.
const UNROLLED: usize = 16;
const _: () = assert!(BATCH.is_multiple_of(UNROLLED));

/// A gram that passed, by its position in the batch, and the group of its hash.
#[derive(Clone, Copy, Default)]
struct Passed {
    position: u16,
    group: u16,
}

/// Finds anchors. Built once, shared by all threads.
pub(crate) struct Prefilter {
    multipliers: Multipliers,
    bitmap: Box<[u32; BITMAP]>,
    /// For each hash the group of the entries that have it.
    slots: Box<[u16; SLOTS]>,
    groups: Vec<Group>,
    /// Where the entries of each group are, apart from it: most groups are only looked at.
    ranges: Vec<Range<u32>>,
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
        let (first, second) = (first & GRAM_MASK as u16, second & (GRAM_MASK >> 16) as u16);
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

/// What the entries have whose grams have one hash. Each in one line of a cache.
#[repr(align(32))]
struct Group {
    kinds: [Kind; 2],
}

/// What some entries have in their windows, and which bits of it: without the one of its case, where a
/// letter may have either.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kind {
    window: u64,
    mask: u64,
}

impl Kind {
    /// That of no window.
    const NONE: Self = Self { window: u64::MAX, mask: 0 };

    fn of(entry: &Entry) -> Self {
        Self { window: entry.window, mask: entry.mask }
    }

    fn is_none(self) -> bool {
        self.window & !self.mask != 0
    }

    /// What both have.
    fn with(self, other: Self) -> Self {
        if self.is_none() {
            return other;
        }
        // Whole bytes, or all but the case: single bits tell little.
        let same =
            (self.window ^ other.window).to_le_bytes().map(|differs| match differs & !CASE {
                0 => !differs,
                _ => 0,
            });
        let mask = self.mask & other.mask & u64::from_le_bytes(same);
        Self { window: self.window & mask, mask }
    }

    /// How many bits of a window it asks for.
    fn bits(self) -> u32 {
        self.mask.count_ones()
    }

    #[inline(always)]
    fn fits(self, window: u64) -> bool {
        window & self.mask == self.window
    }
}

impl Group {
    /// That of all hashes that no gram has: nothing is in it.
    const NONE: Self = Self { kinds: [Kind::NONE; 2] };

    /// Two kinds, as grams that have nothing to do with each other may have one hash: those that let the
    /// fewest windows through, of all that begin with two of the entries.
    fn new(entries: &[Entry]) -> Self {
        let mut kinds: Vec<_> = entries.iter().map(Kind::of).collect();
        kinds.sort_unstable_by_key(|kind| (kind.window, kind.mask));
        kinds.dedup();
        match kinds[..] {
            [one] => Self { kinds: [one, Kind::NONE] },
            [one, other] => Self { kinds: [one, other] },
            _ => Self::around_two(&kinds),
        }
    }

    fn around_two(kinds: &[Kind]) -> Self {
        // More are tried for no gain, and a rule file may have any number.
        const SEEDS_MAX: usize = 16;
        let seeds = &kinds[..kinds.len().min(SEEDS_MAX)];
        let pairs = seeds.iter().enumerate();
        let seeds = pairs.flat_map(|(at, one)| seeds[at + 1..].iter().map(|other| [*one, *other]));
        let of_seeds = |seeds: [Kind; 2]| {
            let mut found = seeds;
            for kind in kinds {
                let bits = |found: Kind| found.with(*kind).bits();
                let nearer = usize::from(bits(found[1]) > bits(found[0]));
                found[nearer] = found[nearer].with(*kind);
            }
            Self { kinds: found }
        };
        let noise = |group: &Self| {
            group.kinds.iter().map(|kind| (-f64::from(kind.bits())).exp2()).sum::<f64>()
        };
        let least = seeds.map(of_seeds).min_by(|one, other| noise(one).total_cmp(&noise(other)));
        least.expect("there are more than two kinds")
    }

    #[inline(always)]
    fn fits(&self, window: u64) -> bool {
        self.kinds[0].fits(window) | self.kinds[1].fits(window)
    }
}

/// What is looked for.
pub(crate) struct Literal {
    /// At least three; in lower case where `ignore_case` is set.
    pub(crate) bytes: Vec<u8>,
    pub(crate) ignore_case: bool,
    /// What may follow it.
    pub(crate) next: Next,
    /// It must not be the tail of a longer word.
    pub(crate) standalone: bool,
}

impl Literal {
    pub(crate) fn new(anchor: &Anchor, standalone: bool) -> Self {
        let Anchor { bytes, ignore_case, next, .. } = anchor.clone();
        Self { bytes, ignore_case, next, standalone }
    }

    fn is_at(&self, text: &[u8], start: usize) -> bool {
        let found = &text[start..start + self.bytes.len()];
        if self.ignore_case { found.eq_ignore_ascii_case(&self.bytes) } else { found == self.bytes }
    }
}

/// Where the group of a gram is found.
#[inline(always)]
fn slot(gram: u32) -> usize {
    ((gram & GRAM_MASK).wrapping_mul(0x9E37_79B1) >> (u32::BITS - SLOT_BITS)) as usize
}

/// The gram in the middle of a window.
#[inline(always)]
fn gram_of(window: u64) -> u32 {
    (window >> (8 * BEFORE)) as u32
}

impl Prefilter {
    /// A filter for these literals; an occurrence is reported by the literal's place in the list.
    pub(crate) fn new(literals: Vec<Literal>) -> Self {
        let mut entries = choose_entries(&literals);
        let multipliers = Multipliers::quietest(&entries);
        let bitmap = multipliers.bitmap(&entries);
        let shared = if entries.len() < usize::from(u16::MAX) { 1 } else { CROWDED };
        let slots_of = |entry: &Entry| slot(entry.gram) / shared;
        let place = |entry: &Entry| {
            (slots_of(entry) as u64) << 40
                | u64::from(entry.literal) << 8
                | entry.shift as u8 as u64
        };
        entries.sort_unstable_by_key(place);
        // One that stands for several bytes may have one hash for some of them.
        entries.dedup_by_key(|entry| place(entry));
        let mut slots = Box::new([0u16; SLOTS]);
        let mut groups = vec![Group::NONE];
        let mut ranges = vec![Range { start: 0, end: 0 }];
        let mut first = 0;
        for group in entries.chunk_by(|a, b| slots_of(a) == slots_of(b)) {
            slots[slots_of(&group[0]) * shared..][..shared].fill(groups.len() as u16);
            groups.push(Group::new(group));
            ranges.push(first..first + group.len() as u32);
            first += group.len() as u32;
        }
        let max_shift = entries.iter().map(|entry| entry.shift).max().unwrap_or(0).max(0) as usize;
        Self { multipliers, bitmap, slots, groups, ranges, entries, literals, max_shift }
    }

    /// Reports (literal, start) of every literal in `text` that starts in `range`, in no order.
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
        let mut words = [0u16; BATCH];
        let mut passed = [0u16; BATCH];
        let mut at = range.start;
        let mut kept = [Passed::default(); BATCH];
        let mut padded = [END; SEEN];
        while at < end {
            let seen = seen_from(text, at, &mut padded);
            let count = self.first_look(seen, &mut words, &mut passed, (end - at).div_ceil(2));
            let count = self.second_look(seen, &passed[..count], &mut kept);
            for gram in &kept[..count] {
                let window = window(seen, gram.position);
                for entry in self.entries_of(gram.group) {
                    if window & entry.mask == entry.window
                        && let Some(start) =
                            self.start_of(entry, text, at + usize::from(gram.position))
                        && range.contains(&start)
                    {
                        on_hit(entry.literal as usize, start);
                    }
                }
            }
            at += BATCH_BYTES;
        }
    }

    /// Collects the positions of the first `grams` whose four bytes may be a gram. Returns how many.
    /// `words` is room for hashes.
    #[inline(never)]
    fn first_look(
        &self,
        seen: &[u8; SEEN],
        words: &mut [u16; BATCH],
        passed: &mut [u16; BATCH],
        grams: usize,
    ) -> usize {
        let bytes: &[u8; BATCH_BYTES + GRAM - 2] =
            seen[BEFORE..][..BATCH_BYTES + GRAM - 2].try_into().expect("the length is a constant");
        // As pairs of bytes, which the compiler loads by lanes however the program is built.
        let first = bytes[..BATCH_BYTES].as_chunks::<2>().0.iter();
        let second = bytes[2..].as_chunks::<2>().0.iter();
        for (word, (first, second)) in words.iter_mut().zip(first.zip(second)) {
            *word = self.multipliers.word(u16::from_le_bytes(*first), u16::from_le_bytes(*second));
        }
        let mut count = 0;
        let mut first = 0;
        // In parts of a constant length, so that the compiler unrolls the inner loop.
        let words = words.as_chunks::<UNROLLED>().0.iter();
        let last_bytes = bytes[GRAM - 2..].as_chunks::<{ 2 * UNROLLED }>().0.iter();
        for (words, last_bytes) in words.zip(last_bytes).take(grams.div_ceil(UNROLLED)) {
            for at in 0..UNROLLED {
                passed[count % BATCH] = first + 2 * at as u16;
                let bits = self.bitmap[usize::from(words[at]) % BITMAP];
                count += (bits >> (last_bytes[2 * at + 1] % 32) & 1) as usize;
            }
            first += 2 * UNROLLED as u16;
        }
        count
    }

    /// Keeps those around which stands what their groups have. Returns how many.
    #[inline(never)]
    fn second_look(&self, seen: &[u8; SEEN], passed: &[u16], kept: &mut [Passed; BATCH]) -> usize {
        let mut count = 0;
        for &position in passed {
            let window = window(seen, position);
            let group = self.slots[slot(gram_of(window))];
            kept[count % BATCH] = Passed { position, group };
            count += usize::from(self.groups[usize::from(group)].fits(window));
        }
        count
    }

    #[inline(always)]
    fn entries_of(&self, group: u16) -> &[Entry] {
        let Range { start, end } = self.ranges[usize::from(group)];
        &self.entries[start as usize..end as usize]
    }

    /// Where the literal of an entry starts whose gram is at `at` and whose window fits, if it is all
    /// there and may stand there. Most of what comes so far is the end of a longer word.
    #[inline(always)]
    fn start_of(&self, entry: &Entry, text: &[u8], at: usize) -> Option<usize> {
        // The window may show no more than the literal's tail, at the start of the text.
        let start = at.checked_add_signed(-isize::from(entry.shift))?;
        let literal = &self.literals[entry.literal as usize];
        let end = start + literal.bytes.len();
        let is_there = end <= text.len()
            && literal.next.may_be(text.get(end))
            && (!literal.standalone || stands_alone(text, start))
            && (entry.is_in_window || literal.is_at(text, start));
        is_there.then_some(start)
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

    fn literal(text: &str, ignore_case: bool) -> Literal {
        let bytes = text.as_bytes().to_vec();
        Literal { bytes, ignore_case, next: Next::ANY, standalone: false }
    }

    fn hits(literals: Vec<Literal>, text: &[u8], range: Range<usize>) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        let prefilter = Prefilter::new(literals);
        prefilter.find(text, range, &mut |literal, start| hits.push((literal, start)));
        hits.sort_unstable();
        hits
    }

    fn naive(literals: &[Literal], text: &[u8], range: Range<usize>) -> Vec<(usize, usize)> {
        let mut hits = Vec::new();
        for (id, literal) in literals.iter().enumerate() {
            for start in range.clone() {
                let end = start + literal.bytes.len();
                let is_there = end <= text.len()
                    && literal.is_at(text, start)
                    && literal.next.may_be(text.get(end))
                    && (!literal.standalone || stands_alone(text, start));
                if is_there {
                    hits.push((id, start));
                }
            }
        }
        hits
    }

    #[test]
    fn literals_at_the_very_start_and_end_are_met() {
        let literals =
            || vec![literal("eyJ", false), literal("ghp_", false), literal("-----begin", true)];
        let text = b"eyJxxghp_yy-----BEGIN zzeyJ";
        let found = hits(literals(), text, 0..text.len());
        assert_eq!(found, naive(&literals(), text, 0..text.len()));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn a_text_that_begins_with_the_tail_of_a_literal_has_no_hit() {
        let words = ["-----begin openssh", "client_secret_post", "zqxzqxzqxzqx"];
        for tail in words.iter().flat_map(|word| (1..word.len()).map(|at| &word[at..])) {
            let literals = words.iter().map(|word| literal(word, true)).collect();
            assert_eq!(hits(literals, tail.as_bytes(), 0..tail.len()), [], "{tail}");
        }
    }

    /// Each literal has grams of its own, so that many share a hash, or there are more than groups can be counted.
    #[test]
    fn of_very_many_literals_none_is_missed() {
        none_is_missed(8_000);
        none_is_missed(70_000);
    }

    fn none_is_missed(count: usize) {
        let words: Vec<_> = (0..count).map(|n| format!("{:05x}", n * 7919 % 0xF_FFFF)).collect();
        let text = words.iter().take(200).map(String::as_str).collect::<Vec<_>>().join("-");
        let literals = || words.iter().map(|word| literal(word, false)).collect::<Vec<_>>();
        let range = 1..text.len() - 2;
        let found = hits(literals(), text.as_bytes(), range.clone());
        assert_eq!(found, naive(&literals(), text.as_bytes(), range));
        assert!(found.len() > 190);
    }

    proptest! {
        /// P1, over a small alphabet so that hits are many and overlap; batches end in the text.
        #[test]
        fn every_occurrence_is_met_once(
            text in prop::collection::vec(prop::sample::select(b"abAB_-\\n\xFF".to_vec()), 0..1300),
            words in prop::collection::vec(("[abAB_-]{3,9}", any::<bool>(), any::<bool>(), 0u8..4), 1..8),
            cut in (0usize..1300, 0usize..1300),
        ) {
            let literals = || words.iter().map(|(word, ignore_case, standalone, next)| {
                let word = if *ignore_case { word.to_ascii_lowercase() } else { word.clone() };
                let next = match next {
                    0 => Next::only(|byte| byte == b'-'),
                    1 => Next::only(|byte| byte.is_ascii_uppercase()),
                    _ => Next::ANY,
                };
                Literal { next, standalone: *standalone, ..literal(&word, *ignore_case) }
            }).collect::<Vec<_>>();
            let from = cut.0.min(text.len());
            let to = cut.1.clamp(from, text.len());
            prop_assert_eq!(hits(literals(), &text, from..to), naive(&literals(), &text, from..to));
        }
    }
}
