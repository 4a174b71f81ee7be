//! How rare literals are in ordinary text.
//!
//! Measured, not guessed: the 2400 most common groups of three bytes in 40 MB of sources,
//! documentation, configuration and logs, by bits of surprise. Bytes are folded as the first stage
//! folds them (bit 5 set), so that a line end shows as `*`; `·` is a blank and `_` itself.

use std::sync::OnceLock;

const GRAM_LEN: usize = 3;
pub(crate) const FOUR: usize = 4;
/// A group of three bytes that is not among the common ones.
const RARE_BITS: i32 = 15;

const TABLE: &str = include_str!("trigrams.txt");

/// The common groups of three and their bits, sorted.
fn common_grams() -> &'static [([u8; GRAM_LEN], u8)] {
    static GRAMS: OnceLock<Vec<([u8; GRAM_LEN], u8)>> = OnceLock::new();
    GRAMS.get_or_init(|| {
        let mut grams = Vec::with_capacity(2400);
        for line in TABLE.lines() {
            let (bits, text) = line.split_at(2);
            let bits = bits.trim().parse().expect("a line begins with its bits");
            let byte = |c: char| match c {
                '·' => b' ',
                '_' => fold(b'_'),
                c => c as u8,
            };
            let mut bytes = text[1..].chars().map(byte);
            while let (Some(a), Some(b), Some(c)) = (bytes.next(), bytes.next(), bytes.next()) {
                grams.push(([a, b, c], bits));
            }
        }
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

/// How often these four bytes are to be expected: as often as the rarer group of three in them, and
/// somewhat less, the rarer the other is. Groups that overlap do not come independently.
pub(crate) fn four_noise(four: [u8; FOUR]) -> f64 {
    let [a, b, c, d] = four;
    let (first, last) = (gram_bits([a, b, c]), gram_bits([b, c, d]));
    half_to(first.max(last) + first.min(last) / 4)
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

/// Groups of four bytes that are common, and how often each is to be expected.
pub(crate) fn common_fours() -> &'static [([u8; FOUR], f64)] {
    const LEAST: f64 = 1.0 / 16_384.0;
    static FOURS: OnceLock<Vec<([u8; FOUR], f64)>> = OnceLock::new();
    FOURS.get_or_init(|| {
        let grams = common_grams();
        let mut fours = Vec::new();
        for ([a, b, c], _) in grams {
            let from = grams.partition_point(|(gram, _)| gram[..2] < [*b, *c][..]);
            let next = grams[from..].iter().take_while(|(gram, _)| gram[..2] == [*b, *c][..]);
            let next = next.map(|([.., d], _)| [*a, *b, *c, *d]);
            let next = next.map(|four| (four, four_noise(four)));
            fours.extend(next.filter(|(_, noise)| *noise >= LEAST));
        }
        fours
    })
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
        assert!(
            four_noise(*b"tion") > four_noise(*b"toke")
                && four_noise(*b"toke") > four_noise(*b"ghp_")
        );
        assert!(common_fours().iter().any(|(four, _)| four == b"tion"));
    }
}
