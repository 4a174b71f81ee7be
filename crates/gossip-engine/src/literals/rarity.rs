//! How rare literals are in ordinary text.
//!
//! Measured, not guessed: the 2400 most common groups of three bytes in 40 MB of sources,
//! documentation, configuration and logs, and the 8000 most common groups of four in 67 MB, by bits of
//! surprise. Bytes are folded as the first stage folds them (bit 5 set), so that a line end shows as
//! `*`; `·` is a blank and `_` itself. `examples/gram_model.rs` made the second table.

use std::sync::OnceLock;

const GRAM_LEN: usize = 3;
pub(crate) const FOUR: usize = 4;
/// A group of three bytes that is not among the common ones.
const RARE_BITS: i32 = 15;

/// A group of four that is not.
pub(crate) const RARE_FOUR: f64 = 1.0 / (1 << 22) as f64;

const THREES: &str = include_str!("trigrams.txt");
const FOURS: &str = include_str!("fours.txt");

/// The groups of a table, with their bits.
fn groups<const LEN: usize>(table: &'static str) -> impl Iterator<Item = ([u8; LEN], u8)> {
    let byte = |c: char| match c {
        '·' => b' ',
        '_' => fold(b'_'),
        c => c as u8,
    };
    table.lines().flat_map(move |line| {
        let (bits, text) = line.split_at(2);
        let bits = bits.trim().parse().expect("a line begins with its bits");
        let mut bytes = text[1..].chars().map(byte);
        std::iter::from_fn(move || {
            let mut group = [0; LEN];
            for place in &mut group {
                *place = bytes.next()?;
            }
            Some((group, bits))
        })
    })
}

/// The common groups of three and their bits, sorted.
fn common_grams() -> &'static [([u8; GRAM_LEN], u8)] {
    static GRAMS: OnceLock<Vec<([u8; GRAM_LEN], u8)>> = OnceLock::new();
    GRAMS.get_or_init(|| {
        let mut grams: Vec<_> = groups(THREES).collect();
        grams.sort_unstable();
        grams
    })
}

/// As the first stage sees a byte.
const fn fold(byte: u8) -> u8 {
    byte | 0x20
}

/// Six bits of each byte: all that ASCII has when folded.
fn place(gram: [u8; GRAM_LEN]) -> usize {
    let six = |byte: u8| usize::from(byte & 0x1F | byte >> 1 & 0x20);
    six(gram[0]) << 12 | six(gram[1]) << 6 | six(gram[2])
}

/// The surprise of seeing these three bytes somewhere, in bits.
fn gram_bits(gram: [u8; GRAM_LEN]) -> i32 {
    // By place: it is asked often.
    static BITS: OnceLock<Vec<u8>> = OnceLock::new();
    let bits = BITS.get_or_init(|| {
        let mut bits = vec![0; 1 << 18];
        common_grams().iter().for_each(|(gram, rarity)| bits[place(*gram)] = *rarity);
        bits
    });
    let gram = gram.map(fold);
    match bits[place(gram)] {
        bits if bits > 0 && gram.is_ascii() => i32::from(bits),
        // Among the rare ones, letters are the least rare.
        _ => RARE_BITS + gram.iter().filter(|byte| !byte.is_ascii_lowercase()).count() as i32,
    }
}

/// How often these three bytes are to be expected.
pub(crate) fn three_noise(three: [u8; 3]) -> f64 {
    half_to(gram_bits(three))
}

/// A half to this power: only the exponent of the number is not that of 1.
fn half_to(power: i32) -> f64 {
    debug_assert!((0..1023).contains(&power));
    f64::from_bits(((1023 - power) as u64) << (f64::MANTISSA_DIGITS - 1))
}

/// Groups of four bytes that are common, folded, and how often each is to be expected.
pub(crate) fn common_fours() -> impl Iterator<Item = ([u8; FOUR], f64)> {
    groups::<FOUR>(FOURS).map(|(four, bits)| (four, half_to(i32::from(bits))))
}

/// The surprise of seeing `literal`, in bits: its rarest group decides, and length helps a little.
pub(super) fn rarity_bits(literal: &[u8]) -> f64 {
    let grams = literal.windows(GRAM_LEN);
    let rarest = grams.map(|gram| gram_bits([gram[0], gram[1], gram[2]])).max().unwrap_or(0);
    f64::from(rarest) + literal.len().saturating_sub(GRAM_LEN).min(8) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_a_half_are_exact() {
        assert!((0..64).all(|power| half_to(power) == 0.5f64.powi(power)));
    }

    #[test]
    fn the_table_is_whole_and_words_are_less_rare_than_prefixes() {
        let grams = common_grams();
        assert_eq!(grams.len(), 2400);
        assert!(grams.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(rarity_bits(b"key") < rarity_bits(b"scw"));
        assert!(rarity_bits(b"token") < rarity_bits(b"ghp_"));
        assert!(gram_bits(*b"the") < gram_bits(*b"int"));
        let noise =
            |four| common_fours().find(|(common, _)| common == four).map(|(_, noise)| noise);
        assert_eq!(common_fours().count(), 8000);
        assert!(common_fours().all(|(_, noise)| noise > RARE_FOUR));
        assert!(noise(b"tion") > noise(b"toke") && noise(b"toke") > noise(b"ghp_"));
    }
}
