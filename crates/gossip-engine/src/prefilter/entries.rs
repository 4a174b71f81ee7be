//! By which grams anchors are recognised.

use super::{BEFORE, BITMAP, END, FOLD_GRAM, GRAM, Multipliers, WINDOW};
use crate::literals::{Anchor, Next, common_grams, gram_bits};

/// Of these the pair is used under which the fewest common groups of bytes fall on an anchor's.
const MULTIPLIERS: [Multipliers; 8] = [
    Multipliers(0x9E37, 0x79B1),
    Multipliers(0x85EB, 0xCA6B),
    Multipliers(0xC2B2, 0xAE3D),
    Multipliers(0x27D4, 0xEB2F),
    Multipliers(0x1656, 0x67C5),
    Multipliers(0xD3A2, 0x646D),
    Multipliers(0xFD70, 0x46C5),
    Multipliers(0xB55A, 0x4F09),
];

/// One gram of an anchor.
#[derive(Clone, Copy)]
pub(super) struct Entry {
    /// Its bytes, as the first look sees them.
    pub(super) gram: u32,
    pub(super) literal: u32,
    /// What of the anchor stands in the window around the gram, where, and which of it are letters of
    /// either case.
    pub(super) window: u64,
    pub(super) mask: u64,
    pub(super) either_case: u64,
    /// How far behind the anchor's start the gram begins; it may begin one byte before it.
    pub(super) shift: i8,
    /// Of the anchor.
    pub(super) len: u8,
    /// The window has the whole anchor.
    pub(super) is_in_window: bool,
}

/// What stands at some distance from an anchor's start.
enum Byte {
    Known(u8),
    /// Behind the anchor.
    Next,
    Any,
}

fn byte_at(anchor: &Anchor, distance: isize) -> Byte {
    match usize::try_from(distance) {
        Ok(at) if at < anchor.bytes.len() => Byte::Known(anchor.bytes[at]),
        Ok(at) if at == anchor.bytes.len() => Byte::Next,
        _ => Byte::Any,
    }
}

/// The gram at distance `shift` of an anchor, once for every four bytes that it may be.
fn entries_at(anchor: &Anchor, literal: u32, shift: i8) -> Vec<Entry> {
    let (mut window, mut mask, mut either_case) = ([0; WINDOW], [0; WINDOW], [0; WINDOW]);
    for at in 0..WINDOW {
        let distance = isize::from(shift) + at as isize - BEFORE as isize;
        if let Byte::Known(byte) = byte_at(anchor, distance) {
            (window[at], mask[at]) = (byte, u8::MAX);
            either_case[at] = u8::from(anchor.ignore_case && byte.is_ascii_alphabetic()) << 5;
        }
    }
    let known = mask.iter().filter(|mask| **mask != 0).count();
    let entry = |gram| Entry {
        gram,
        literal,
        window: u64::from_le_bytes(window),
        mask: u64::from_le_bytes(mask),
        either_case: u64::from_le_bytes(either_case),
        shift,
        len: anchor.bytes.len() as u8,
        is_in_window: known == anchor.bytes.len(),
    };
    let mut grams = vec![0];
    for at in 0..GRAM {
        let bytes: Vec<u8> = match byte_at(anchor, isize::from(shift) + at as isize) {
            Byte::Known(byte) => vec![byte | FOLD_GRAM as u8],
            Byte::Next => following(anchor.next),
            Byte::Any => following(Next::ANY),
        };
        let with = |gram: u32, byte: u8| gram | u32::from(byte) << (8 * at);
        grams = grams
            .iter()
            .flat_map(|gram| bytes.iter().map(move |byte| with(*gram, *byte)))
            .collect();
    }
    grams.into_iter().map(entry).collect()
}

/// The bytes that may follow, one for each that looks different to the first look.
fn following(next: Next) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..=u8::MAX)
        .filter(|byte| *byte == END || next.allows(*byte))
        .map(|byte| byte | FOLD_GRAM as u8)
        .collect();
    bytes.sort_unstable();
    bytes.dedup();
    bytes
}

/// For each anchor the rarest gram at an even and at an odd distance.
pub(super) fn choose_entries(anchors: &[&Anchor]) -> Vec<Entry> {
    let mut entries = Vec::new();
    for (literal, anchor) in anchors.iter().enumerate() {
        for parity in [0, 1] {
            let options = options(anchor, literal as u32, parity);
            let noise = |option: &Vec<Entry>| option.iter().map(Entry::noise).sum::<f64>();
            let rarest =
                options.map(|option| (noise(&option), option)).min_by(|a, b| a.0.total_cmp(&b.0));
            entries.extend(rarest.expect("three bytes have a gram at each distance").1);
        }
    }
    entries
}

/// The grams by which an anchor may be recognised at distances of such a parity: of those that have
/// no more than one byte that is not the anchor's.
fn options(anchor: &Anchor, literal: u32, parity: i8) -> impl Iterator<Item = Vec<Entry>> {
    let last = (anchor.bytes.len() + 1 - GRAM) as i8;
    (-parity..=last).step_by(2).map(move |shift| entries_at(anchor, literal, shift))
}

impl Entry {
    /// How often its gram is to be expected.
    fn noise(&self) -> f64 {
        // What is in the table for nothing makes it fuller.
        const FULLNESS: f64 = 1.0 / (32 * BITMAP) as f64;
        (-four_bits(self.gram)).exp2() + FULLNESS
    }
}

/// The surprise of seeing these four bytes somewhere, in bits: that of the rarer group of three, and
/// something for the byte more.
fn four_bits(gram: u32) -> f64 {
    let [a, b, c, d] = gram.to_le_bytes().map(|byte| byte & 0x7F);
    let (first, second) = (gram_bits([a, b, c]), gram_bits([b, c, d]));
    first.max(second) + first.min(second) / 4.0
}

impl Multipliers {
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

pub(super) fn quietest_multipliers(entries: &[Entry]) -> Multipliers {
    let common = common_fours();
    let noise = |multipliers: &Multipliers| {
        let bitmap = multipliers.bitmap(entries);
        let hits = common.iter().filter(|(gram, _)| {
            let (word, bit) = multipliers.place(*gram);
            bitmap[word] & bit != 0
        });
        hits.map(|(_, noise)| noise).sum::<f64>()
    };
    let pairs = MULTIPLIERS.into_iter().map(|pair| (noise(&pair), pair));
    pairs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, pair)| pair).expect("there are some")
}

/// Groups of four bytes that common groups of three make, and how often they are to be expected.
fn common_fours() -> Vec<(u32, f64)> {
    let grams = common_grams();
    let mut fours = Vec::new();
    for ([a, b, c], _) in grams {
        let from = grams.partition_point(|(gram, _)| gram[..2] < [*b, *c][..]);
        let next = grams[from..].iter().take_while(|(gram, _)| gram[..2] == [*b, *c][..]);
        fours.extend(next.map(|([.., d], _)| u32::from_le_bytes([*a, *b, *c, *d])));
    }
    fours.into_iter().map(|gram| (gram, (-four_bits(gram)).exp2())).collect()
}
