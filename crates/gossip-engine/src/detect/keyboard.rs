//! Where fingers go on a keyboard: `asdf1234`, `qwertzyxcv8`, `1q2w3e4r`, `123QWEasd`.
//!
//! The model of words has seen none of it, and programs do not write it. People do, for a password as
//! well as for an example.

/// Keys beside each other, and those that two hands take in turn.
const ROWS: &[&[u8]] = &[
    b"qwertyuiop",
    b"qwertzuiop",
    b"azertyuiop",
    b"asdfghjkl",
    b"qsdfghjklm",
    b"zxcvbnm",
    b"yxcvbnm",
    b"wxcvbn",
    b"1q2w3e4r5t6z7u",
    b"1q2w3e4r5t6y7u",
    b"q1w2e3r4t5",
    b"1qaz2wsx3edc4rfv5tgb6yhn",
    b"1qay2wsx3edc4rfv5tgb6zhn",
    b"zaq1xsw2cde3vfr4",
    b"zaq12wsx",
];
const DIGITS: &[u8] = b"1234567890";
/// Fewer keys are part of any word.
const PIECE_MIN: usize = 3;
/// A number and signs behind them.
const TAIL_MAX: usize = 6;
const LEN_MIN: usize = 6;
const LEN_MAX: usize = 24;

/// How far fingers went, and what was put behind it.
struct Walk<'v> {
    pieces: usize,
    tail: &'v [u8],
}

/// Whether the value is such a walk as a whole, with a number.
pub(super) fn is_walk(value: &[u8]) -> bool {
    walk(value).is_some()
}

/// Whether it is more than what everybody types for an example: two walks, or a number that does not count.
pub(super) fn is_long_walk(value: &[u8]) -> bool {
    walk(value).is_some_and(|walk| {
        let digits = walk.tail.iter().filter(|byte| byte.is_ascii_digit());
        let is_counted = digits.zip(b'1'..).all(|(digit, next)| *digit == next);
        walk.pieces > 1 || !is_counted
    })
}

fn walk(value: &[u8]) -> Option<Walk<'_>> {
    let has_digit = value.iter().any(u8::is_ascii_digit);
    if !(LEN_MIN..=LEN_MAX).contains(&value.len()) || !has_digit {
        return None;
    }
    // Digits in order lead to letters, or they are a number.
    let digits = longest_run(value, DIGITS.iter().copied());
    let is_led = digits >= PIECE_MIN && value.get(digits).is_some_and(u8::is_ascii_alphabetic);
    let (mut at, mut pieces) = if is_led { (digits, 0) } else { (0, 0) };
    while let Some(len) = piece(&value[at..]) {
        at += len;
        pieces += 1;
    }
    let tail = &value[at..];
    let in_tail = |byte: &u8| byte.is_ascii_digit() || b"!.*?#@$+-_".contains(byte);
    (pieces > 0 && tail.len() <= TAIL_MAX && tail.iter().all(in_tail))
        .then_some(Walk { pieces, tail })
}

/// How many keys of one row, in either direction, the text begins with.
fn piece(text: &[u8]) -> Option<usize> {
    let longest = |row: &&[u8]| {
        let forward = row.iter().copied();
        longest_run(text, forward.clone()).max(longest_run(text, forward.rev()))
    };
    ROWS.iter().map(longest).max().filter(|len| *len >= PIECE_MIN)
}

/// How many bytes of `text` follow each other in the row, from its first one on.
fn longest_run(text: &[u8], mut row: impl Iterator<Item = u8>) -> usize {
    let Some(first) = text.first() else { return 0 };
    if !row.any(|key| key.eq_ignore_ascii_case(first)) {
        return 0;
    }
    1 + text[1..].iter().zip(row).take_while(|(byte, key)| byte.eq_ignore_ascii_case(key)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_may_be_several_with_a_number_behind_them() {
        for value in [
            "asdf1234",
            "1q2w3e4r",
            "qwertz12",
            "lkjhgfqwer7",
            "Yxcvbn.83",
            "1qaz2wsxdfgh4",
            "zxcv5821",
            "Azerty94*",
            "123QWEasd",
            "1234qwer",
        ] {
            assert!(is_walk(value.as_bytes()), "{value}");
        }
        for value in [
            "asdfghjk",
            "abc12345",
            "qwertine7",
            "sadf1234",
            "asdf12345678",
            "qwx123",
            "123abc",
            "1234567",
        ] {
            assert!(!is_walk(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn what_everybody_types_is_a_short_walk() {
        for value in ["lkjhgfqwer7", "Yxcvbn.83", "zxcv5821"] {
            assert!(is_long_walk(value.as_bytes()), "{value}");
        }
        for value in ["asdf1234", "qwerty123", "qwertz1", "1q2w3e4r"] {
            assert!(!is_long_walk(value.as_bytes()), "{value}");
        }
    }
}
