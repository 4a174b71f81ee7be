//! What the letters and digits of a value weigh.

use crate::detect::words;

/// Runs of letters by their surprise, short ones and digits by how they alternate.
pub(super) fn letters_and_digits(value: &[u8]) -> f32 {
    let mut bits = 0.0;
    let mut at = 0;
    while at < value.len() {
        let start = at;
        if value[at].is_ascii_alphabetic() {
            at = end_of_word(value, at);
            bits += word_bits(value, start, at);
        } else if value[at].is_ascii_digit() {
            at += value[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let letter_before = start > 0 && value[start - 1].is_ascii_alphabetic();
            let letter_after = value.get(at).is_some_and(u8::is_ascii_alphabetic);
            bits += match (letter_before, letter_after) {
                (true, true) => 2.0,
                (false, true) => 1.0,
                (true, false) => 0.3 * (at - start).min(4) as f32,
                (false, false) => 0.0,
            };
        } else {
            at += 1;
        }
    }
    bits
}

/// A run of letters of one case, or a capital and what follows it.
fn end_of_word(value: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < value.len() && value[at].is_ascii_alphabetic() {
        let up = value[at].is_ascii_uppercase();
        let was_up = value[at - 1].is_ascii_uppercase();
        let down_next = value.get(at + 1).is_some_and(u8::is_ascii_lowercase);
        if up && (!was_up || down_next) {
            break;
        }
        at += 1;
    }
    at
}

fn word_bits(value: &[u8], start: usize, end: usize) -> f32 {
    let neighbour = |at: Option<&u8>| at.is_some_and(u8::is_ascii_alphanumeric);
    let before = neighbour(start.checked_sub(1).and_then(|at| value.get(at)));
    let after = neighbour(value.get(end));
    match end - start {
        1 | 2 if before && after => 1.6,
        1 | 2 if before || after => 0.8,
        1 | 2 => 0.0,
        len => {
            // Digits on either side leave little of a short word.
            let is_digit = |at: Option<&u8>| at.is_some_and(u8::is_ascii_digit);
            let digits = [start.checked_sub(1).and_then(|at| value.get(at)), value.get(end)];
            let least = match (len, digits.map(is_digit)) {
                (3 | 4, [true, true]) => 0.0,
                (3, [true, _] | [_, true]) => -1.0,
                _ => f32::MIN,
            };
            words::surprise(&value[start..end]).max(least)
        }
    }
}
