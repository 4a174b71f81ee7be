//! By which grams anchors are recognised, and what the look-ups see around them.

use std::collections::HashSet;

use super::{END, FOLD, FOLD_WINDOW, HASH_BITS, WINDOW, WORDS, hash, insert, look_up, window_at};
use crate::literals::{Anchor, GRAM_LEN, Next, common_grams, fold, gram_bits};

const GRAM_MASK: u32 = 0xFF_FFFF;
/// A window begins at most so far before its gram, so that the gram is in it.
const MAX_BACK: usize = WINDOW - GRAM_LEN;
/// Of these the one is used under which the fewest common groups of three fall on an anchor's.
/// Odd, and shifted when used so that the fourth byte of a word falls out of the product.
const MULTIPLIERS: [u32; 12] = [
    0x9E_3779, 0x85_EBCB, 0xC2_B2AF, 0x27_D4EB, 0x16_5667, 0xD3_A265, 0xFD_7047, 0xB5_5A4F,
    0x5A_827B, 0x6E_D9EB, 0x8F_1BBD, 0xCA_62C1,
];
const AFTER_MULTIPLIER: u32 = 0x9E37_79B1;
const BEFORE_MULTIPLIER: u32 = 0x85EB_CA6B;

/// One gram of an anchor.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// What of the anchor, folded, stands in the eight bytes that begin `back` before the gram: few
    /// entries whose gram is there have this, too.
    window: u64,
    mask: u64,
    pub(super) literal: u32,
    /// Distance of the gram from the anchor's start.
    pub(super) shift: u8,
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
    pub(super) fn gram(&self) -> u32 {
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
    pub(super) fn may_be_at(&self, text: &[u8], at: usize) -> bool {
        let Some(from) = at.checked_sub(usize::from(self.back)) else { return false };
        (window_at(text, from) | FOLD_WINDOW) & self.mask == self.window
    }
}

/// With the byte after the gram.
#[inline(always)]
pub(super) fn hash_after(word: u32) -> u32 {
    (word | FOLD).wrapping_mul(AFTER_MULTIPLIER) >> (u32::BITS - HASH_BITS)
}

/// With the byte before the gram, which comes first in the word.
#[inline(always)]
pub(super) fn hash_before(word: u32) -> u32 {
    (word | FOLD).wrapping_mul(BEFORE_MULTIPLIER) >> (u32::BITS - HASH_BITS)
}

/// What the second look-up sees where the entry's gram is part of its literal: the byte before it
/// where the literal has one, else the byte after it, else whatever may follow.
pub(super) fn second_hashes(entry: &Entry, literal: &Anchor) -> Vec<u32> {
    let shift = usize::from(entry.shift);
    let gram = entry.gram();
    match (shift.checked_sub(1), literal.bytes.get(shift + GRAM_LEN)) {
        (Some(before), _) => {
            vec![hash_before(gram << 8 | u32::from(literal.bytes[before]))]
        }
        (None, Some(after)) => vec![hash_after(gram | u32::from(*after) << 24)],
        (None, None) => {
            following(literal.next).map(|after| hash_after(gram | u32::from(after) << 24)).collect()
        }
    }
}

/// The bytes by which the third look-up knows a gram. They are given with the byte before it first.
#[derive(Clone, Copy)]
pub(super) enum Around {
    /// One before it.
    Before,
    /// One after it.
    After,
    /// One on either side.
    Both,
    /// Two after it.
    TwoAfter,
}

impl Around {
    pub(super) const ALL: [Self; 4] = [Self::Before, Self::After, Self::Both, Self::TwoAfter];

    #[inline(always)]
    pub(super) fn hash(self, bytes: u64) -> u32 {
        let bytes = bytes | FOLD_WINDOW;
        // What is not looked at is shifted out, and the multipliers are as good as any.
        let product = match self {
            Self::Before => (bytes << 32).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            Self::After => (bytes >> 8 << 32).wrapping_mul(0xC2B2_AE3D_27D4_EB4F),
            Self::Both => (bytes << 24).wrapping_mul(0x85EB_CA77_C2B2_AE63),
            Self::TwoAfter => (bytes >> 8 << 24).wrapping_mul(0x27D4_EB2F_1656_67C5),
        };
        (product >> (u64::BITS - HASH_BITS)) as u32
    }
}

/// What the third look-up sees where the entry's gram is part of its literal.
pub(super) fn third_hashes(entry: &Entry, literal: &Anchor) -> Vec<u32> {
    let shift = usize::from(entry.shift);
    let bytes = &literal.bytes;
    let gram = u64::from(entry.gram()) << 8;
    let after = |at: usize| bytes.get(shift + GRAM_LEN + at).map(|byte| u64::from(*byte));
    match (shift.checked_sub(1).map(|before| u64::from(bytes[before])), after(0), after(1)) {
        (Some(before), Some(after), _) => vec![Around::Both.hash(before | gram | after << 32)],
        (Some(before), None, _) => vec![Around::Before.hash(before | gram)],
        (None, Some(one), Some(two)) => vec![Around::TwoAfter.hash(gram | one << 32 | two << 40)],
        (None, Some(after), None) => vec![Around::After.hash(gram | after << 32)],
        (None, None, _) => following(literal.next)
            .map(|after| Around::After.hash(gram | u64::from(after) << 32))
            .collect(),
    }
}

/// For each anchor one gram at an even and one at an odd distance. The rarest is not always the best:
/// one that stands for another anchor, too, makes no more bytes pass the first look.
pub(super) fn choose_entries(anchors: &[&Anchor]) -> Vec<Entry> {
    let mut slots: Vec<_> = anchors
        .iter()
        .enumerate()
        .flat_map(|(literal, anchor)| [0, 1].map(|parity| options(anchor, literal as u32, parity)))
        .map(|options| (options.iter().map(|one| noise(one)).fold(f64::MAX, f64::min), options))
        .collect();
    // Those without a rare one first: the others may share theirs.
    slots.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut taken: HashSet<u32> = HashSet::new();
    let mut entries = Vec::new();
    for (_, options) in slots {
        let cost = |option: &Vec<Entry>| {
            let new = option.iter().filter(|entry| !taken.contains(&entry.gram()));
            new.map(Entry::noise).sum::<f64>() + noise(option) / 2.0
        };
        let best = options.into_iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        let best = best.expect("three bytes have a gram at each distance");
        taken.extend(best.iter().map(Entry::gram));
        entries.extend(best);
    }
    entries
}

/// How often one of the grams is to be expected.
fn noise(entries: &[Entry]) -> f64 {
    entries.iter().map(Entry::noise).sum()
}

/// The grams by which an anchor may be recognised at such a distance. One that reaches past the anchor
/// stands for each byte that may follow.
fn options(anchor: &Anchor, literal: u32, parity: usize) -> Vec<Vec<Entry>> {
    let bytes = anchor.bytes.as_slice();
    let inside = (parity..=bytes.len() - GRAM_LEN).step_by(2);
    let inside = inside.map(|shift| vec![Entry::new(bytes, literal, shift)]);
    let last = bytes.len() + 1 - GRAM_LEN;
    let across = (last % 2 == parity).then(|| {
        let entry = |next| Entry::new(&[bytes, &[next]].concat(), literal, last);
        following(anchor.next).map(entry).collect()
    });
    inside.chain(across).collect()
}

/// The bytes that may follow, one for each that looks different when folded.
fn following(next: Next) -> impl Iterator<Item = u8> {
    let allowed = move |byte: u8| byte == END || next.allows(byte);
    (0..=u8::MAX)
        .filter(|byte| fold(*byte) == *byte)
        .filter(move |byte| allowed(*byte) || allowed(*byte & !fold(0)))
}

pub(super) fn quietest_multiplier(entries: &[Entry]) -> u32 {
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
