//! By which grams literals are recognised.

use super::{BEFORE, BITMAP, CASE, END, GRAM, GRAM_MASK, Literal, Multipliers, WINDOW};
use std::sync::OnceLock;

use crate::literals::{ByteSet, FOUR, RARE_FOUR, common_fours, three_noise};

const _: () = assert!(GRAM == FOUR);
/// So many pairs of multipliers are tried.
const TRIES: u16 = 24;

/// One gram of a literal.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Its bytes, as the first look sees them.
    pub(super) gram: u32,
    pub(super) literal: u32,
    /// What of the literal stands in the window around the gram, and which bits of it: without the one
    /// of its case, where a letter may have either.
    pub(super) window: u64,
    pub(super) mask: u64,
    /// How far behind the literal's start the gram begins; it may begin one byte before it.
    pub(super) shift: i8,
    /// The window has the whole literal.
    pub(super) is_in_window: bool,
}

/// For each literal the rarest gram at an even and at an odd distance.
pub(super) fn choose_entries(literals: &[Literal]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, literal) in literals.iter().enumerate() {
        let choice = Choice { literal, after: Seen::last(literal.next.allowed()) };
        for parity in [0, 1] {
            let rarest = choice.rarest(parity);
            let entry = entry(literal, index as u32, rarest);
            entries.extend(choice.grams(rarest).map(|gram| Entry { gram, ..entry }));
        }
    }
    entries
}

/// The entry of the gram at distance `shift`, but for its gram.
fn entry(literal: &Literal, index: u32, shift: i8) -> Entry {
    let (mut window, mut mask) = ([0; WINDOW], [0; WINDOW]);
    let mut known = 0;
    for at in 0..WINDOW {
        let Some(byte) = literal.byte_at(isize::from(shift) + at as isize - BEFORE as isize) else {
            continue;
        };
        let has_case = literal.ignore_case && byte.is_ascii_alphabetic();
        mask[at] = if has_case { !CASE } else { u8::MAX };
        window[at] = byte & mask[at];
        known += 1;
    }
    Entry {
        gram: 0,
        literal: index,
        window: u64::from_le_bytes(window),
        mask: u64::from_le_bytes(mask),
        shift,
        is_in_window: known == literal.bytes.len(),
    }
}

impl Literal {
    fn byte_at(&self, distance: isize) -> Option<u8> {
        usize::try_from(distance).ok().and_then(|at| self.bytes.get(at).copied())
    }
}

/// Bytes as the first look sees them: a bit for each of the 64 that lack the bits that it does not
/// look at.
#[derive(Clone, Copy)]
struct Seen(u64);

const _: () = assert!(GRAM_MASK.to_le_bytes()[GRAM - 1] == 0x5F);
const _: () = assert!(GRAM_MASK.to_le_bytes()[0] == 0x07);

impl Seen {
    /// What the first byte of a gram may look like, whatever it is.
    const FIRST: Self = Self(0xFF);

    /// What these bytes and the end look like as the last byte of a gram.
    fn last(bytes: ByteSet) -> Self {
        let [a, b, c, d] = bytes.bits();
        let folded = |bits: u64| (bits | bits >> 32) as u32;
        let bits = u64::from(folded(a | c)) | u64::from(folded(b | d)) << 32;
        Self(bits | Self::only(END).0)
    }

    fn only(byte: u8) -> Self {
        Self(1 << (byte & 0x1F | byte >> 1 & 0x20))
    }

    fn has(self, byte: u8) -> bool {
        self.0 & Self::only(byte).0 != 0
    }

    fn count(self) -> f64 {
        f64::from(self.0.count_ones())
    }

    fn bytes(self) -> impl Iterator<Item = u8> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let place = (left != 0).then_some(left.trailing_zeros() as u8)?;
            left &= left - 1;
            Some(place & 0x1F | (place & 0x20) << 1)
        })
    }
}

/// The grams by which a literal may be recognised: of those that have no more than one byte that is
/// not the literal's.
struct Choice<'l> {
    literal: &'l Literal,
    /// What may stand behind the literal.
    after: Seen,
}

impl Choice<'_> {
    /// The distance of that parity whose grams are the rarest.
    fn rarest(&self, parity: i8) -> i8 {
        let last = (self.literal.bytes.len() + 1 - GRAM) as i8;
        let is_inside = |shift: &i8| (0..last).contains(shift);
        let distances = (-parity..=last).step_by(2);
        // Those first that stand for one gram each: the others mostly come to more at once.
        let inside = distances.clone().filter(is_inside);
        let mut rarest = (f64::MAX, last);
        for shift in inside.chain(distances.filter(|shift| !is_inside(shift))) {
            let noise = self.noise(shift);
            if noise < rarest.0 {
                rarest = (noise, shift);
            }
        }
        rarest.1
    }

    /// How often the grams at distance `shift` are to be expected.
    fn noise(&self, shift: i8) -> f64 {
        match self.bytes(shift) {
            [Some(a), Some(b), Some(c), Some(d)] => noise([a, b, c], Seen::only(d)),
            [Some(a), Some(b), Some(c), None] => noise([a, b, c], self.after),
            [_, b, c, d] => {
                let known = [b, c, d].map(|byte| byte.expect("one is unknown"));
                three_noise(known) + Seen::FIRST.count() * FULLNESS
            }
        }
    }

    /// Every four bytes that the gram at distance `shift` may be, as the first look sees them.
    fn grams(&self, shift: i8) -> impl Iterator<Item = u32> + use<> {
        let bytes = self.bytes(shift);
        let known = u32::from_le_bytes(bytes.map(Option::unwrap_or_default)) & GRAM_MASK;
        let (place, seen) = match bytes {
            [None, ..] => (0, Seen::FIRST),
            [.., None] => (8 * (GRAM - 1), self.after),
            _ => (0, Seen::only(known as u8)),
        };
        let others = known & !(0xFF << place);
        seen.bytes().map(move |byte| others | u32::from(byte) << place)
    }

    /// What of the gram at distance `shift` is the literal's.
    fn bytes(&self, shift: i8) -> [Option<u8>; GRAM] {
        std::array::from_fn(|at| self.literal.byte_at(isize::from(shift) + at as isize))
    }
}

/// What is in the table for nothing makes it fuller.
const FULLNESS: f64 = 1.0 / (32 * BITMAP) as f64;

/// How often grams of these bytes and one of the last ones are to be expected.
fn noise(first: [u8; GRAM - 1], last: Seen) -> f64 {
    let [a, b, c] = first;
    let of = |gram: u32| gram >> 8;
    let prefix = of(in_order([a, b, c, 0]));
    let common = common_grams();
    let from = common.partition_point(|(gram, _)| of(*gram) < prefix);
    let same = common[from..].iter().take_while(|(gram, _)| of(*gram) == prefix);
    let known = same.filter(|(gram, _)| last.has(*gram as u8)).map(|(_, noise)| noise);
    known.sum::<f64>() + last.count() * (RARE_FOUR + FULLNESS)
}

/// Common grams as the first look sees them, in order, and how often each is to be expected.
fn common_grams() -> &'static [(u32, f64)] {
    static GRAMS: OnceLock<Vec<(u32, f64)>> = OnceLock::new();
    GRAMS.get_or_init(|| {
        let mut grams: Vec<_> =
            common_fours().map(|(four, noise)| (in_order(four), noise)).collect();
        grams.sort_unstable_by_key(|(gram, _)| *gram);
        // Of the first byte little is seen.
        grams.dedup_by(|next, gram| {
            let is_same = next.0 == gram.0;
            gram.1 += if is_same { next.1 } else { 0.0 };
            is_same
        });
        grams
    })
}

/// A gram as the first look sees it, its first byte first.
fn in_order(gram: [u8; GRAM]) -> u32 {
    (u32::from_le_bytes(gram) & GRAM_MASK).swap_bytes()
}

impl Multipliers {
    /// Those under which the fewest common groups of four bytes fall on an entry's.
    pub(super) fn quietest(entries: &[Entry]) -> Self {
        let common = common_grams();
        let noise = |multipliers: Self| {
            let bitmap = multipliers.bitmap(entries);
            let hits = common.iter().filter(|(gram, _)| {
                let (word, bit) = multipliers.place(gram.swap_bytes());
                bitmap[word] & bit != 0
            });
            hits.map(|(_, noise)| noise).sum::<f64>()
        };
        let odd = |seed: u16, n: u16| seed.wrapping_mul(2 * n + 1) | 1;
        let pairs = (0..TRIES).map(|n| Self(odd(0x9E37, n), odd(0x79B1, 7 * n)));
        let quietest = pairs.map(|pair| (noise(pair), pair)).min_by(|a, b| a.0.total_cmp(&b.0));
        quietest.expect("some are tried").1
    }

    /// The bitmap of all grams of the entries.
    pub(super) fn bitmap(self, entries: &[Entry]) -> Box<[u32; BITMAP]> {
        let mut bitmap = Box::new([0; BITMAP]);
        for entry in entries {
            let (word, bit) = self.place(entry.gram);
            bitmap[word] |= bit;
        }
        bitmap
    }
}
