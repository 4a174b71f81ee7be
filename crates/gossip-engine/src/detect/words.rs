//! Words against random letters: a small model of which letter follows which two.
//!
//! The table is made by `examples/word_model.rs` from sources and word lists; it knows no value that
//! anything here is measured on.

/// Cost of each symbol after the two before it, in eighths of a bit.
static COSTS: &[u8; SYMBOLS * SYMBOLS * SYMBOLS] = include_bytes!("words.bin");
/// Letters, and the edge of a word.
const SYMBOLS: usize = 27;
const EDGE: usize = 26;
/// What a symbol costs if all are equally likely, in eighths of a bit: log2(27) * 8.
const EVEN_COST: i32 = 38;

/// How much likelier the letters are by chance than as a word, in bits. Words are negative.
pub(super) fn surprise(letters: &[u8]) -> f32 {
    debug_assert!(letters.iter().all(u8::is_ascii_alphabetic));
    let (mut a, mut b) = (EDGE, EDGE);
    let mut eighths = 0;
    for c in letters.iter().map(|byte| usize::from((byte | 0x20) - b'a')).chain([EDGE]) {
        eighths += i32::from(COSTS[(a * SYMBOLS + b) * SYMBOLS + c]) - EVEN_COST;
        (a, b) = (b, c);
    }
    eighths as f32 / 8.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_cost_less_than_chance_and_random_letters_more() {
        for word in ["password", "Controller", "settings", "internal", "secret", "admin", "test"] {
            assert!(surprise(word.as_bytes()) < 0.0, "{word} {}", surprise(word.as_bytes()));
        }
        for letters in ["kdxnyjwb", "rltskqif", "zvqxjnoj", "BXQWKZ", "hgtfpq"] {
            assert!(surprise(letters.as_bytes()) > 4.0, "{letters}");
        }
    }
}
