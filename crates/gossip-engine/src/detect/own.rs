//! What of a value is somebody's own.
//!
//! People make up secrets of the words that say what they are: `quicktalk#secret`, `mysupersecret731`. Where nothing
//! but a secret stands, such a value counts if anything of it is neither what everybody takes nor asks for another
//! one.

mod words;

use std::ops::Range;
use std::sync::OnceLock;

use super::value;
use super::vocabulary;
use crate::ignore_case;
use words::{ASKING, SHARED};

const LEN_MIN: usize = 6;
const LEN_MAX: usize = 64;
/// How many letters are somebody's own.
const OWN_MIN: usize = 3;

/// Whether somebody chose the value as a secret.
pub(super) fn is_chosen(value: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-#@!$^&*+=~?,; ".contains(byte);
    let blanks = value.iter().filter(|byte| **byte == b' ').count();
    // Where something is read from is called so.
    let is_constant = value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    (LEN_MIN..=LEN_MAX).contains(&value.len())
        && value.iter().all(is_plain)
        && value.first().is_some_and(u8::is_ascii_alphanumeric)
        && blanks <= 2
        && !is_constant
        && !asks(value)
        && (has_own_word(value) || value::has_own_number(value))
        && !value::stands_in(value)
}

/// Whether the value asks for another one in its place.
fn asks(value: &[u8]) -> bool {
    ignore_case::contains_any(value, ASKING) || ignore_case::ends_with_any(value, &["here"])
}

fn has_own_word(value: &[u8]) -> bool {
    // A word by itself may be one that says what to do: `forgotten`.
    if vocabulary::is_known(value) {
        return false;
    }
    let runs = value.split(|byte| !byte.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= OWN_MIN).any(|run| !is_shared(run))
}

/// Whether a run of letters is made of what everybody has: `mysupersecretkey`.
fn is_shared(run: &[u8]) -> bool {
    let mut lower = [0; LEN_MAX];
    let run = match lower.get_mut(..run.len()) {
        Some(lower) => {
            lower.copy_from_slice(run);
            lower.make_ascii_lowercase();
            &*lower
        }
        None => return false,
    };
    // Which letters words of it end before.
    let mut ends = 1u128;
    for start in 0..run.len() {
        if ends >> start & 1 == 1 {
            let begun = &SHARED[of_letter(run[start])];
            let words = begun.iter().filter(|word| run[start..].starts_with(word.as_bytes()));
            words.for_each(|word| ends |= 1 << (start + word.len()));
        }
    }
    ends >> run.len() & 1 == 1
}

/// Where the words are that begin with a small letter.
fn of_letter(letter: u8) -> Range<usize> {
    static PLACES: OnceLock<[usize; 27]> = OnceLock::new();
    let places = PLACES.get_or_init(|| {
        std::array::from_fn(|at| {
            SHARED.partition_point(|word| usize::from(word.as_bytes()[0] - b'a') < at)
        })
    });
    let at = usize::from(letter - b'a');
    places[at]..places[at + 1]
}

/// Whether it is a number that somebody may have chosen: no port, no year, and no digits in order.
pub(super) fn is_number(value: &[u8]) -> bool {
    (6..=12).contains(&value.len())
        && value.iter().all(u8::is_ascii_digit)
        && value::has_own_number(value)
}

/// Whether it is eight hexadecimal digits, as some who host databases make passwords: few of them letters, so
/// that it is no word.
pub(super) fn is_digits(value: &[u8]) -> bool {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    value.len() == 8
        && (4..8).contains(&digits)
        && value.iter().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_order() {
        assert!(
            SHARED.is_sorted()
                && SHARED.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase()))
        );
    }

    #[test]
    fn something_of_it_is_somebodys_own() {
        for value in [
            "quicktalk#secret",
            "mysupersecret731",
            "thatsmyotter",
            "BeGoOtters",
            "otter token",
            "71934428",
            "otterpassword",
        ] {
            assert!(is_chosen(value.as_bytes()), "{value}");
        }
        for value in [
            "secret",
            "mysupersecretkey",
            "jwt_secret_2025",
            "supersecret123",
            "keyboard cat",
            "your-otter",
            "otter_goes_here",
            "changeOtter",
            "OTTER_LADDER",
            "ABCSECRETKEY",
            "otter/ladder",
            "$otterladder",
            "12345678",
            "thisisasecret",
            "undefined",
            "p@ssw0rd",
            "sha256",
            "abcdefghijklmnop",
            "zzzzzzzz",
            "deadbeefdeadbeefdeadbeef",
            "set-me",
            "put_it_in_vault",
            "dont-use-this",
            "min-32-chars-long",
            "256-bit-secret",
            "wrong-secret",
            "shhhhhh",
            "mi_clave_secreta",
            "geheimnis",
            "pk_live_51HxKq7ZrTbWmLpQd",
            "SW2YcwTIb9zpOOhoPsMm",
            "bypass",
            "nopassword",
        ] {
            assert!(!is_chosen(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn numbers_are_somebodys_own_unless_they_count() {
        assert!(is_number(b"71934428") && !is_number(b"12345678") && !is_number(b"2025"));
        assert!(is_digits(b"93714e0a") && !is_digits(b"deadbeef") && !is_digits(b"93714102"));
    }
}
