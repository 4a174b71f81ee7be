//! Text that is only encoded, in hexadecimal digits, base64 or base32: it looks random, and is judged as
//! the text that it is.

use super::form::{are_counted, digit};
use super::{is_typed, stand_in};
use crate::decode::base64;

/// No text in a value is longer than what is looked at.
pub(in crate::detect) const MAX_TEXT: usize = 256;

/// Whether the value is text that somebody wrote, and encoded: `dGhlIHNhbXBsZSBub25jZQ==`. What it says
/// is judged as if it stood there; a password in base64 stays one.
pub(super) fn is_example(value: &[u8]) -> bool {
    const LEN_MIN_COUNTED: usize = 16;
    let mut text = [0; MAX_TEXT];
    if value.len() < 8 || value.len() > MAX_TEXT {
        return false;
    }
    let len = if value.iter().all(u8::is_ascii_hexdigit) {
        from_hex(value, &mut text)
    } else if is_base32(value) {
        from_base32(value, &mut text)
    } else {
        from_base64(value, &mut text)
    };
    // Bytes that count are no text, and no key, either.
    if len >= LEN_MIN_COUNTED && are_counted(text[..len].iter().copied()) {
        return true;
    }
    let text = text[..len].trim_ascii_end();
    text.len() >= 4 && text.iter().all(|byte| (b' '..=b'~').contains(byte)) && says_nothing(text)
}

/// Only what says of itself that it is none: a phrase, a URL or a pair of names and values may be encoded
/// because it is secret.
fn says_nothing(text: &[u8]) -> bool {
    is_typed(text) || stand_in::tells(text)
}

/// Whole strings only: of what does not decode to its end there are no bytes.
pub(in crate::detect) fn from_base64(value: &[u8], out: &mut [u8]) -> usize {
    let digits = value.iter().take_while(|byte| **byte != b'=').count();
    let is_padded = value[digits..].iter().all(|byte| *byte == b'=') && value.len() - digits <= 2;
    let len = base64::decode_into(&value[..digits], out);
    if is_padded && digits % 4 != 1 && len == digits * 3 / 4 { len } else { 0 }
}

fn is_base32(value: &[u8]) -> bool {
    const LEN_MIN: usize = 16;
    let digits = value.iter().take_while(|byte| **byte != b'=').count();
    let is_digit = |byte: &u8| byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7');
    digits >= LEN_MIN
        && value[..digits].iter().all(is_digit)
        && value[digits..].iter().all(|byte| *byte == b'=')
}

fn from_base32(value: &[u8], out: &mut [u8]) -> usize {
    let (mut bits, mut held, mut len) = (0u32, 0, 0);
    for byte in value.iter().take_while(|byte| **byte != b'=') {
        let digit = if byte.is_ascii_digit() { byte - b'2' + 26 } else { byte - b'A' };
        bits = bits << 5 | u32::from(digit);
        held += 5;
        if held >= 8 && len < out.len() {
            held -= 8;
            out[len] = (bits >> held) as u8;
            len += 1;
        }
    }
    len
}

/// The bytes of hexadecimal digits; returns how many there are.
pub(super) fn from_hex(digits: &[u8], out: &mut [u8]) -> usize {
    let mut len = 0;
    for (pair, out) in digits.chunks_exact(2).zip(out) {
        let (Some(high), Some(low)) = (digit(pair[0]), digit(pair[1])) else { break };
        *out = high << 4 | low;
        len += 1;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn encoded_text_is_judged_as_text() {
        for value in [
            hex("the example of a key"),
            "dGhlIHNhbXBsZSBub25jZQ==".to_owned(),
            "bXktdGVzdC1zZWNyZXQ".to_owned(),
            "MDEyMzQ1Njc4OWFiY2RlZg==".to_owned(),
            "AQIDBAUGBwgBAgMEBQYHCAECAwQFBgcI".to_owned(),
            "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ".to_owned(),
            "KRSXG5CTMVRXEZLUKN2XAZLSKNSWG4TFOQ".to_owned(),
        ] {
            assert!(is_example(value.as_bytes()), "{value}");
        }
        for value in [
            // `Sommer2024!`, and random ones.
            "U29tbWVyMjAyNCE=".to_owned(),
            hex("q8Zr2LmT0vXbN5wK"),
            // A passphrase, and what opens a registry.
            hex("otter ladder quiver lantern"),
            "eyJhdXRocyI6eyJodHRwczovL3IuaW8iOnsiYXV0aCI6Ing3UTJ6In19fQ==".to_owned(),
            "q8Zr2LmT0vXbN5wKcJ7d".to_owned(),
            "WRN3PQX5UQXQVNQRWRN3PQX5".to_owned(),
            "3b9d07c41fe86a52908d4f7be1c6a03d".to_owned(),
        ] {
            assert!(!is_example(value.as_bytes()), "{value}");
        }
    }
}
