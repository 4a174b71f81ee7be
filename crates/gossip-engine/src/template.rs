//! Examples of secrets that are no secrets: templates, expanded with a seed.
//!
//! Rule files must not contain anything that looks like a live credential, so they describe their
//! examples: `ghp_{base62:30}{crc32}`. Expanding the same template with the same seed gives the
//! same text.
//!
//! | in a template | becomes |
//! |---|---|
//! | `{kind:12}`, `{kind:8-20}` | so many random characters of a kind: `digit`, `hex`, `HEX`, `lower`, `upper`, `lowernum`, `uppernum`, `alpha`, `base62`, `base64`, `base64url`, `base32`, `base58`, `bech32` |
//! | `{uuid}` | a random UUID |
//! | `{crc32}` | the base 62 CRC-32 of the 30 characters before it |
//! | `{age}` | the data and checksum of an age key |
//! | `{nkey:SU}` | a NATS seed of a kind, with its checksum |
//! | `{jwt}` | a signed token with random claims |
//! | `{json64}` | base64 of a JSON object with random values |
//! | `{macaroon}` | what follows `pypi-` in an upload token |
//! | `{pem:LABEL}`, `{pem-escaped:LABEL}` | a private key, with line ends as they are or as `\n` |
//! | `[[…]]` | what is inside is the secret; without, all is |
//! | `{{`, `}}` | a brace |
//!
//! ```
//! let example = gossip_engine::template::expand("key = [[acme_{hex:8}]]", 1)?;
//! assert_eq!(example.text.len(), 19);
//! assert_eq!(example.secret, 6..19);
//! # Ok::<(), gossip_engine::template::TemplateError>(())
//! ```

use std::ops::Range;

use crate::checksum::{base62_of_crc32, bech32_checksum, nkey_seed};
use crate::decode::base64::{Alphabet, encode};

/// What a template became: text, and where the secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// All of it, secret included.
    pub text: String,
    /// Where in it the secret is.
    pub secret: Range<usize>,
}

/// Why a template cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A brace that is not closed.
    #[error("a brace is not closed")]
    Unclosed,
    /// Something in braces that has no meaning.
    #[error("`{{{0}}}` has no meaning")]
    Unknown(String),
}

/// Expands `template`.
///
/// # Errors
/// If it is not one.
pub fn expand(template: &str, seed: u64) -> Result<Expansion, TemplateError> {
    let mut random = Random(seed);
    let mut text = String::new();
    let mut secret = None;
    let mut rest = template;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{") {
            text.push('{');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("}}") {
            text.push('}');
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[[") {
            secret = Some(text.len()..text.len());
            rest = after;
        } else if let (Some(after), Some(secret)) = (rest.strip_prefix("]]"), &mut secret) {
            secret.end = text.len();
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (field, after) = after.split_once('}').ok_or(TemplateError::Unclosed)?;
            fill(field, &mut text, &mut random)?;
            rest = after;
        } else {
            text.push(next);
            rest = &rest[next.len_utf8()..];
        }
    }
    let secret = secret.unwrap_or(0..text.len());
    Ok(Expansion { text, secret })
}

fn fill(field: &str, text: &mut String, random: &mut Random) -> Result<(), TemplateError> {
    let (kind, argument) = field.split_once(':').unwrap_or((field, ""));
    match kind {
        "uuid" => {
            for (at, len) in [8, 4, 4, 4, 12].into_iter().enumerate() {
                text.push_str(if at == 0 { "" } else { "-" });
                random.characters(HEX, len, text);
            }
        }
        "crc32" => {
            let body = text.len().checked_sub(30).and_then(|start| text.get(start..));
            let body = body.ok_or_else(|| TemplateError::Unknown(field.to_owned()))?;
            let digits = base62_of_crc32(body.as_bytes());
            text.extend(digits.map(char::from));
        }
        "age" => {
            let mut data = String::new();
            random.characters(BECH32, 52, &mut data);
            text.push_str(&data);
            let check = bech32_checksum(b"AGE-SECRET-KEY-", data.as_bytes());
            text.extend(check.map(|digit| char::from(digit.to_ascii_uppercase())));
        }
        "jwt" => {
            let claims =
                format!(r#"{{"sub":"{}","iat":{}}}"#, random.below(99999), random.below(1 << 30));
            text.push_str(&encode(br#"{"alg":"HS256","typ":"JWT"}"#, Alphabet::UrlSafe));
            text.push('.');
            text.push_str(&encode(claims.as_bytes(), Alphabet::UrlSafe));
            text.push('.');
            random.characters(BASE62, 43, text);
        }
        "json64" => {
            let mut json = format!(r#"{{"iat":{},"url":""#, random.below(1 << 30));
            random.characters(BASE62, 150, &mut json);
            json.push_str("\"}");
            text.push_str(&encode(json.as_bytes(), Alphabet::Standard));
        }
        "nkey" => {
            let key = std::array::from_fn(|_| random.next() as u8);
            text.push_str(&nkey_seed(argument, &key));
        }
        "macaroon" => text.push_str(&encode(&macaroon(random), Alphabet::UrlSafe)),
        "pem" => text.push_str(&pem(argument, "\n", random)),
        "pem-escaped" => text.push_str(&pem(argument, "\\n", random)),
        _ => {
            let unknown = || TemplateError::Unknown(field.to_owned());
            let alphabet = alphabet(kind).ok_or_else(unknown)?;
            let (min, max) = argument.split_once('-').unwrap_or((argument, argument));
            let min: u64 = min.parse().map_err(|_| unknown())?;
            let max: u64 = max.parse().map_err(|_| unknown())?;
            let len = min + random.below(max.saturating_sub(min) + 1);
            random.characters(alphabet, len as usize, text);
        }
    }
    Ok(())
}

const HEX: &str = "0123456789abcdef";
const BASE62: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const BASE58: &str = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
const BECH32: &str = "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L";

fn alphabet(kind: &str) -> Option<&'static str> {
    Some(match kind {
        "digit" => "0123456789",
        "hex" => HEX,
        "HEX" => "0123456789ABCDEF",
        "lower" => "abcdefghijklmnopqrstuvwxyz",
        "upper" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "lowernum" => "0123456789abcdefghijklmnopqrstuvwxyz",
        "uppernum" => "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        "alpha" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
        "base62" => BASE62,
        "base64" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        "base64url" => "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
        "base32" => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
        "bech32" => BECH32,
        "base58" => BASE58,
        _ => return None,
    })
}

/// A DER sequence of random bytes under the label.
fn pem(label: &str, line_end: &str, random: &mut Random) -> String {
    let mut der = match label {
        "OPENSSH PRIVATE KEY" => b"openssh-key-v1\0\0\0\0\x04none".to_vec(),
        "PGP PRIVATE KEY BLOCK" => vec![0xC5, 0x86, 4, 0x60],
        _ => vec![0x30, 0x82, 0x02, 0x5C, 0x02, 0x01, 0x00],
    };
    der.extend((0..300).map(|_| random.next() as u8));
    let body = encode(&der, Alphabet::Standard);
    let mut text = format!("-----BEGIN {label}-----{line_end}");
    for line in body.as_bytes().chunks(64) {
        text.push_str(std::str::from_utf8(line).expect("base64 is ASCII"));
        text.push_str(line_end);
    }
    text + &format!("-----END {label}-----")
}

fn macaroon(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![2, 1, 8];
    bytes.extend(b"pypi.org");
    bytes.extend([2, 36]);
    bytes.extend((0..36).map(|_| random.next() as u8));
    bytes.push(0);
    bytes.extend([2, 20]);
    bytes.extend((0..20).map(|_| random.next() as u8));
    bytes.extend([0, 0, 6, 32]);
    bytes.extend((0..32).map(|_| random.next() as u8));
    bytes
}

/// SplitMix64: small, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut value = self.0;
        value = (value ^ (value >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        value = (value ^ (value >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        value ^ (value >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    fn characters(&mut self, alphabet: &str, len: usize, text: &mut String) {
        let alphabet = alphabet.as_bytes();
        for _ in 0..len {
            text.push(char::from(alphabet[self.below(alphabet.len() as u64) as usize]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_text() {
        let template = "x_{base62:20}-{hex:4-9}[[{uuid}]]{{}}";
        assert_eq!(expand(template, 7), expand(template, 7));
        assert_ne!(expand(template, 7), expand(template, 8));
    }

    #[test]
    fn the_mark_says_where_the_secret_is() {
        let example = expand("a=\"[[{digit:5}]]\"", 3).unwrap();
        assert_eq!(example.secret, 3..8);
        assert!(example.text[3..8].bytes().all(|byte| byte.is_ascii_digit()));
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(expand("{hex:4", 0), Err(TemplateError::Unclosed));
        assert_eq!(expand("{nope:4}", 0), Err(TemplateError::Unknown("nope:4".into())));
        assert_eq!(expand("{hex:x}", 0), Err(TemplateError::Unknown("hex:x".into())));
        assert_eq!(expand("ab{crc32}", 0), Err(TemplateError::Unknown("crc32".into())));
    }
}
