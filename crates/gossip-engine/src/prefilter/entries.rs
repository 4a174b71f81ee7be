//! By which grams literals are recognised.

use super::{BEFORE, BITMAP, END, FOLD_GRAM, GRAM, Literal, Multipliers, WINDOW};
use crate::literals::{FOUR, common_fours, four_noise, may_precede};

const _: () = assert!(GRAM == FOUR);
/// So many pairs of multipliers are tried.
const TRIES: u16 = 24;

/// One gram of a literal.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Its bytes, as the first look sees them.
    pub(super) gram: u32,
    pub(super) literal: u32,
    /// What of the literal stands in the window around the gram, where, and which of it are letters of
    /// either case.
    pub(super) window: u64,
    pub(super) mask: u64,
    pub(super) either_case: u64,
    /// How far behind the literal's start the gram begins; it may begin one byte before it.
    pub(super) shift: i8,
    /// The window has the whole literal.
    pub(super) is_in_window: bool,
}

/// For each literal the rarest gram at an even and at an odd distance.
pub(super) fn choose_entries(literals: &[Literal]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (index, literal) in literals.iter().enumerate() {
        let choice = Choice::new(literal);
        for parity in [0, 1] {
            let rarest = choice.rarest(parity);
            let entry = entry(literal, index as u32, rarest);
            choice.grams(rarest, &mut |gram| entries.push(Entry { gram, ..entry }));
        }
    }
    entries
}

/// The entry of the gram at distance `shift`, but for its gram.
fn entry(literal: &Literal, index: u32, shift: i8) -> Entry {
    let (mut window, mut mask, mut either_case) = ([0; WINDOW], [0; WINDOW], [0; WINDOW]);
    let mut known = 0;
    for at in 0..WINDOW {
        let Some(byte) = literal.byte_at(isize::from(shift) + at as isize - BEFORE as isize) else {
            continue;
        };
        (window[at], mask[at]) = (byte, u8::MAX);
        either_case[at] = u8::from(literal.ignore_case && byte.is_ascii_alphabetic()) << 5;
        known += 1;
    }
    Entry {
        gram: 0,
        literal: index,
        window: u64::from_le_bytes(window),
        mask: u64::from_le_bytes(mask),
        either_case: u64::from_le_bytes(either_case),
        shift,
        is_in_window: known == literal.bytes.len(),
    }
}

impl Literal {
    fn byte_at(&self, distance: isize) -> Option<u8> {
        usize::try_from(distance).ok().and_then(|at| self.bytes.get(at).copied())
    }
}

/// The grams by which a literal may be recognised: of those that have no more than one byte that is
/// not the literal's.
struct Choice<'l> {
    literal: &'l Literal,
    /// What may stand before the literal, and behind it.
    before: Vec<u8>,
    after: Vec<u8>,
}

impl<'l> Choice<'l> {
    fn new(literal: &'l Literal) -> Self {
        let before = distinct(|byte| !literal.standalone || may_precede(byte));
        let after = distinct(|byte| literal.next.allows(byte));
        Self { literal, before, after }
    }

    /// The distance of that parity whose grams are the rarest.
    fn rarest(&self, parity: i8) -> i8 {
        let last = (self.literal.bytes.len() + 1 - GRAM) as i8;
        let noise = |shift: &i8| {
            let mut sum = 0.0;
            self.grams(*shift, &mut |gram| sum += noise(gram));
            sum
        };
        let distances = (-parity..=last).step_by(2).map(|shift| (noise(&shift), shift));
        let rarest = distances.min_by(|a, b| a.0.total_cmp(&b.0));
        rarest.expect("three bytes have a gram at each distance").1
    }

    /// Calls back with every four bytes that the gram at distance `shift` may be.
    fn grams(&self, shift: i8, on_gram: &mut impl FnMut(u32)) {
        let mut known = [0; GRAM];
        let mut unknown = None;
        for (at, known) in known.iter_mut().enumerate() {
            match self.literal.byte_at(isize::from(shift) + at as isize) {
                Some(byte) => *known = byte,
                None => unknown = Some(at),
            }
        }
        let known = u32::from_le_bytes(known) | FOLD_GRAM;
        let Some(at) = unknown else { return on_gram(known) };
        let bytes = if at == 0 { &self.before } else { &self.after };
        let place = 8 * at;
        bytes.iter().for_each(|byte| on_gram(known & !(0xFF << place) | u32::from(*byte) << place));
    }
}

/// Those of the bytes, and the end, that look different to the first look.
fn distinct(is_one: impl Fn(u8) -> bool) -> Vec<u8> {
    let fold = FOLD_GRAM as u8;
    let looks = |seen: u8, byte: u8| byte | fold == seen && (byte == END || is_one(byte));
    // A byte looks like the three that lack a bit that folding sets.
    let is_seen = |seen: u8| [0, 0x20, 0x80, fold].iter().any(|bits| looks(seen, seen & !bits));
    (0..=u8::MAX).filter(|byte| byte | fold == *byte && is_seen(*byte)).collect()
}

/// How often a gram is to be expected.
fn noise(gram: u32) -> f64 {
    // What is in the table for nothing makes it fuller.
    const FULLNESS: f64 = 1.0 / (32 * BITMAP) as f64;
    four_noise(gram.to_le_bytes().map(|byte| byte & 0x7F)) + FULLNESS
}

impl Multipliers {
    /// Those under which the fewest common groups of four bytes fall on an entry's.
    pub(super) fn quietest(entries: &[Entry]) -> Self {
        let common = common_fours();
        let common: Vec<_> =
            common.into_iter().map(|(four, noise)| (u32::from_le_bytes(four), noise)).collect();
        let noise = |multipliers: Self| {
            let bitmap = multipliers.bitmap(entries);
            let hits = common.iter().filter(|(gram, _)| {
                let (word, bit) = multipliers.place(*gram);
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
