//! What a value looks like: random, or something that people write.
//!
//! The weight is in bits: how much likelier the value is by chance than as words, names, paths or
//! numbers. It is the sum of the letters' surprise ([`letters`]) and of what mixtures of
//! cases, digits and signs say. What cannot be a secret at all has no weight.

mod encoded;
mod form;
mod identifier;
mod letters;
mod public;
mod published;
mod sealed;
mod stand_in;
mod written;

pub(super) use encoded::{MAX_TEXT, from_base64};
pub(super) use form::{
    app_password_len, are_counted, ends_in_uuid, has_own_number, is_app_password, is_by_the_rules,
    is_uuid,
};
pub(super) use identifier::{
    is_camel_case, is_dotted, is_joined_name, is_named_hash, is_option, is_place, is_snake_case,
};
pub(super) use public::{is_address, may_be_public};
pub(super) use published::is_shown;
pub(super) use sealed::is_encrypted;
pub(super) use written::has_extension;

use crate::{ignore_case, judge};

/// A value's weight and what else the judge asks of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Weight {
    pub(super) bits: f32,
    pub(super) shape: Shape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Digits only.
    Number,
    Uuid,
    /// Hexadecimal digits, at least sixteen.
    Hex,
    /// Letters only.
    Letters,
    /// Letters, digits, signs.
    Mixed,
    /// Words with blanks between them.
    Phrase,
}

/// Whether a value is typed in order, stands for another one or is something else as a whole, whatever words it has.
pub(super) fn stands_in(value: &[u8]) -> bool {
    is_typed(value)
        || stand_in::is_expression(value)
        || stand_in::is_one_but_for_words(value, weight(value))
}

/// What somebody typed.
const TYPED_PARTS: &[&str] = &["12345", "abcdef", "qwert", "asdf"];

/// The weight of a value, or none if it cannot be a secret or weighs less than `least` bits.
pub(super) fn weigh(value: &[u8], least: f32) -> Option<Weight> {
    let weight = weigh_typed(value, least)?;
    (!is_typed(value)).then_some(weight)
}

/// Whether somebody typed the value, by the order of the alphabet or of the keyboard, or wrote it as text
/// that is only encoded. A service's key may have been, in an example.
pub(super) fn is_typed(value: &[u8]) -> bool {
    /// In a longer value such a part may stand by chance.
    const LEN_MAX: usize = 32;
    let digits = value.strip_prefix(b"0x").unwrap_or(value);
    (value.len() <= LEN_MAX && ignore_case::contains_any(value, TYPED_PARTS))
        || judge::looks_typed(value)
        || form::is_repeated(digits)
        || (form::is_hex(digits) && form::counts_up(digits))
        || encoded::is_example(value)
}

/// The same, but of a value in which the alphabet or the digits may stand in order.
pub(super) fn weigh_typed(value: &[u8], least: f32) -> Option<Weight> {
    // What is cheap to tell is looked at first, as most values are none.
    let is_printable = || value.iter().all(|byte| matches!(byte, b' '..=b'~'));
    if value.is_empty() || stand_in::is_expression(value) || !is_printable() {
        return None;
    }
    let mut buffer = [0; MAX_ESCAPED];
    let weight = weight(without_escapes(value, &mut buffer));
    (weight.bits >= least && !stand_in::is_one(value, weight)).then_some(weight)
}

/// Longer values have other signs than those of passwords in URLs.
const MAX_ESCAPED: usize = 128;

/// The value without what a URL cannot have: the digits of `caf%C3%A9` say nothing.
fn without_escapes<'v>(value: &'v [u8], buffer: &'v mut [u8; MAX_ESCAPED]) -> &'v [u8] {
    if !value.contains(&b'%') || value.len() > MAX_ESCAPED {
        return value;
    }
    let (mut at, mut len) = (0, 0);
    while let Some(&byte) = value.get(at) {
        let is_escape = matches!(&value[at..], [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
        if is_escape {
            at += 3;
            continue;
        }
        buffer[len] = byte;
        (at, len) = (at + 1, len + 1);
    }
    &buffer[..len]
}

fn has(value: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(value, part).is_some()
}

/// Whether the value's letters make words, whatever else it may be.
pub(super) fn is_wordlike(value: &[u8]) -> bool {
    const WORDS: f32 = -6.0;
    value.is_ascii() && weight(value).bits < WORDS
}

/// The weight of a value, whatever it stands for.
fn weight(value: &[u8]) -> Weight {
    if form::is_number(value) {
        let bits = if value.len() >= 5 && !judge::looks_typed(value) { 3.0 } else { -4.0 };
        return Weight { bits, shape: Shape::Number };
    }
    if is_uuid(value) || form::is_grouped_hex(value) {
        return Weight { bits: 6.0, shape: Shape::Uuid };
    }
    if form::is_hex(value) {
        let is_random = judge::entropy(value) >= 2.5 && !form::counts_up(value);
        let bits = if is_random { (value.len() as f32 / 2.0).min(24.0) } else { -4.0 };
        return Weight { bits, shape: Shape::Hex };
    }
    let mut bits = letters::letters_and_digits(value);
    let sign = |byte: &&u8| byte.is_ascii_punctuation() && !b"-_./:,'\"=+()\\".contains(byte);
    bits += 1.5 * value.iter().filter(sign).count().min(4) as f32;
    let blanks = value.iter().filter(|byte| **byte == b' ').count();
    let shape = if blanks > 0 {
        bits -= 2.0 * blanks as f32;
        Shape::Phrase
    } else if value.iter().all(u8::is_ascii_alphabetic) {
        Shape::Letters
    } else {
        Shape::Mixed
    };
    Weight { bits, shape }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(value: &str) -> f32 {
        weigh(value.as_bytes(), f32::MIN).map_or(f32::NEG_INFINITY, |weight| weight.bits)
    }

    #[test]
    fn random_values_weigh_more_than_what_people_write() {
        for value in [
            "kdxnyjwb",
            "Vq7xLm2p",
            "rltsk",
            "q8Zr2LmT0vXbN5wK",
            "soau!Hhbgsjrn",
            "wzmlIVdas",
            "GESRVTMCJBHPHYXZHSXXGIFDL6",
            "3b9d07c41fe86a52908d4f7be1c6a03d",
        ] {
            assert!(bits(value) > 3.0, "{value} {}", bits(value));
        }
        for value in [
            "MyController",
            "get_user_name",
            "com.acme.service",
            "XXH3_hashLong_64b_withSeed",
            "UTF-8",
            "caf%C3%A9",
            "foo(b%5Dc",
            "application/json",
            "the user is here",
            "Enter",
            "admin1",
            "v1.2.3",
            "hello_world",
            "ServiceAccountName",
            "2024-01-02",
        ] {
            assert!(bits(value) < 2.0, "{value} {}", bits(value));
        }
    }

    #[test]
    fn digits_that_repeat_or_count_are_typed_with_their_prefix_too() {
        for value in ["69".repeat(20), "00112233445566778899aabbccddeeff".to_owned()] {
            assert!(is_typed(value.as_bytes()), "{value}");
            assert!(is_typed(format!("0x{value}").as_bytes()), "{value}");
        }
        assert!(!is_typed(b"0x3b9d07c41fe86a52908d4f7be1c6a03d"));
    }

    #[test]
    fn numbers_with_a_type_are_numbers() {
        for value in ["1296188491u32", "826688587", "0x0B96", "17UL"] {
            assert_eq!(weight(value.as_bytes()).shape, Shape::Number, "{value}");
        }
        for value in ["1296188491u33", "u32", "0x3b9d07c41fe86a52908d4f7be1c6a03d"] {
            assert_ne!(weight(value.as_bytes()).shape, Shape::Number, "{value}");
        }
    }

    #[test]
    fn hexadecimal_digits_in_groups_weigh_as_a_uuid_does() {
        for value in ["0f3c-19ab-4d22c1-8e07bb-5a61f93d", "9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26"] {
            assert_eq!(weight(value.as_bytes()).shape, Shape::Uuid, "{value}");
        }
        for value in ["0f3c-19ab-4d22", "face-book-dead-beef-cafe-babe-feed", "2024-0a-01-0b-0c"] {
            assert_ne!(weight(value.as_bytes()).shape, Shape::Uuid, "{value}");
        }
    }

    #[test]
    fn signs_in_a_generated_value_mean_nothing() {
        assert!(bits("$k3v(%s9q=2m&x!w0z@p7+d()5r^t8b#n*1c-_f4hjl6yg_uaei") > 20.0);
        for value in
            ["$(get_the_name_of(the_user, 1) + 20 * 3 - 4 - x_y)", "%(user)s-%(host)s_1_2_3"]
        {
            assert_eq!(weigh(value.as_bytes(), f32::MIN), None, "{value}");
        }
    }
}
