//! Keys of services, beside a name that speaks of a credential and that of the service: these may have
//! been typed (`abcdef123456…`), or stand apart from their name by a blank only.
//!
//! No list has every service. So a word that the vocabulary does not know counts as the name of one,
//! if the value is longer and has the digits of a key. Passwords are chosen by people, and get none of
//! this.

use super::file_kind::FileKind;
use super::name::{self, KEY_BITS, Named, UNKNOWN_KEY_BITS};
use super::service;
use super::syntax::Syntax;
use super::value;
use crate::{ignore_case, judge};

/// What stands before the value: its name, and what is before that on the line.
pub(super) struct Names<'t> {
    pub(super) before: &'t [u8],
    pub(super) name: &'t [u8],
}

/// Whether `value` is the key of a service that stands in a list, or of one that does not.
pub(super) fn is_key(
    named: Named,
    syntax: Syntax,
    kind: FileKind,
    value: &[u8],
    names: &Names<'_>,
    is_listed: impl FnOnce() -> bool,
) -> bool {
    const MIN_LEN: usize = 12;
    let is_plain = value.first().is_some_and(u8::is_ascii_alphanumeric)
        && !value.iter().any(|byte| b" /(){}<>,;".contains(byte))
        && value.iter().filter(|byte| **byte == b':').count() < 2;
    // What was typed and looks like an address is one.
    let is_other = is_name_in_both_cases(value) || value::may_be_public(value);
    if value.len() < MIN_LEN || !is_plain || is_other {
        return false;
    }
    let Some(bits) = service::weigh_key(value, true) else { return false };
    is_listed() || (is_named(named, syntax, kind, names) && may_be_typed(syntax, value, bits))
}

/// Letters of both cases, as names have them, but not those of the alphabet in order.
fn is_name_in_both_cases(value: &[u8]) -> bool {
    let is_one_case =
        value.iter().all(u8::is_ascii_uppercase) || value.iter().all(u8::is_ascii_lowercase);
    value.iter().all(u8::is_ascii_alphabetic) && !is_one_case && !judge::looks_typed(value)
}

/// Whether a word that nobody knows names the value, or stands right before its name.
fn is_named(named: Named, syntax: Syntax, kind: FileKind, names: &Names<'_>) -> bool {
    let is_apart = match syntax {
        Syntax::Quoted | Syntax::Pair => false,
        // In code these are expressions.
        Syntax::BareEquals | Syntax::BareColon | Syntax::Variable if kind == FileKind::Code => {
            return false;
        }
        _ => true,
    };
    (named.bits >= UNKNOWN_KEY_BITS && name::has_unknown_word(names.name))
        || (named.bits >= KEY_BITS && is_apart && name::ends_in_unknown_word(names.before))
}

/// Whether the value has the length and the digits of a key, however it was made.
fn may_be_typed(syntax: Syntax, value: &[u8], bits: f32) -> bool {
    /// Of nothing but letters and digits.
    const MIN_LEN: usize = 16;
    const MIN_LEN_GROUPS: usize = 20;
    /// Without digits, or of nothing but digits.
    const MIN_LEN_ALIKE: usize = 28;
    const SURE_BITS: f32 = 10.0;
    /// Less have words with a number in them.
    const WORDS_BITS: f32 = -4.0;
    let may_be = matches!(
        syntax,
        Syntax::Quoted
            | Syntax::BareEquals
            | Syntax::Variable
            | Syntax::BareColon
            | Syntax::Pair
            | Syntax::Blank
            | Syntax::Joined
            | Syntax::Label
            | Syntax::Directive
            | Syntax::Flag
            | Syntax::Element
    );
    let padding = value.iter().rev().take_while(|byte| **byte == b'=').count();
    let value = &value[..value.len() - padding];
    let count = |of: fn(&u8) -> bool| value.iter().filter(|byte| of(byte)).count();
    let (digits, letters) = (count(u8::is_ascii_digit), count(u8::is_ascii_alphabetic));
    let signs = count(|byte| matches!(byte, b'-' | b'_' | b'.'));
    let min_len = if signs == 0 { MIN_LEN } else { MIN_LEN_GROUPS };
    let is_mixed =
        letters > 0 && digits * 6 >= value.len() && value.len() >= min_len && bits >= WORDS_BITS;
    let is_alike = match letters {
        0 => signs == 0,
        _ if digits > 0 => bits >= SURE_BITS,
        // Names are made of letters, too, but not of those of the alphabet in order.
        _ => judge::looks_typed(value),
    };
    may_be
        && !ignore_case::ends_with_any(value, &["key", "token", "secret"])
        && digits + letters + signs == value.len()
        && (is_mixed || (is_alike && value.len() >= MIN_LEN_ALIKE))
}

#[cfg(test)]
mod tests {
    use crate::detect::FileKind;
    use crate::detect::tests::found;

    #[test]
    fn a_typed_key_is_found_beside_a_word_that_nobody_knows() {
        let key = "abcd1234efgh5678ijkl9012mnop3456";
        for text in [
            format!("zorbify_key={key}"),
            format!("ZORBIFY_TOKEN = \"{key}\""),
            format!("zorbify SECRET {key}"),
            format!("zorbify SECRET={key}"),
            format!("zorbify secret access key {key}"),
            format!("zorbifyTOKEN:{key}"),
            format!("zorbifySECRET-{key}"),
            format!("zorbifytoken-{key}"),
            format!("zorbify PRIVATE {key}"),
            format!("zorbifyACCESS {key}"),
        ] {
            assert_eq!(found(FileKind::Unknown, &text), Some(key), "{text}");
        }
        for key in ["123e4567-e89b-12d3-a456-426614174000", "12345678901234567890123456789012"] {
            assert_eq!(found(FileKind::Unknown, &format!("zorbify_key={key}")), Some(key));
        }
    }

    #[test]
    fn words_numbers_and_what_is_no_service_are_no_keys() {
        let key = "abcd1234efgh5678ijkl9012mnop3456";
        for text in [
            format!("this token {key}"),
            format!("cache_key={key}"),
            format!("PRIVATE {key}"),
            "zorbify_key=abcdefgh".to_owned(),
            "zorbify_key = zorbifyIsTheNameOfAnything".to_owned(),
            "ZORBIFY_ACCESS = -1073738739i32".to_owned(),
            "zorbify key Zorbification1024x1024SizeKey".to_owned(),
            "zorbify-secure-key-exchange-x25519mlkem768".to_owned(),
            format!("zorbify_token = \"0x{}\"", "69".repeat(20)),
            "io.zorbifytoken:jjwt-orgjson:0.11.2".to_owned(),
        ] {
            assert_eq!(found(FileKind::Unknown, &text), None, "{text}");
        }
    }
}
