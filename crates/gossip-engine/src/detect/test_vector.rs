//! Keys of test vectors: published to check a cipher with, and followed by what it works on.
//!
//! ```text
//! Key = 85d6…
//! Input = 4372…
//! ```

use super::name;
use super::syntax::{Assignment, Syntax};
use super::vocabulary;
use crate::ignore_case;

/// Behind the key, up to the next value.
const MAX_NAME: usize = 96;
const MAX_OPENING: usize = 32;
/// From the value of a nonce to the end of its line.
const MAX_NONCE: usize = 128;
const MIN_DIGITS: usize = 32;
/// Longer keys are not looked behind. As they are written: 128 bytes of an array are 768.
pub(super) const MAX_KEY: usize = 768;

/// How far behind the key the answer can depend on the text.
pub(super) const REACH: usize = MAX_NAME + MAX_NONCE + MAX_NAME + MAX_OPENING;

/// What a cipher works on and gives back. Salts, nonces and initialisation vectors are not here: they
/// stand beside keys that are in use, too.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "expected", "plaintext", "ciphertext", "input", "output", "mac", "aad", "digest", "label",
    "msg", "message", "pkcs", "public", "pub", "info", "ct", "pt",
];

const NONCES: &[&str] = &["nonce", "iv"];

/// Whether the next value after the key, or the one after a nonce, is that of a test vector.
pub(super) fn is_one(text: &[u8], key: &Assignment, is_explicit: bool) -> bool {
    let value = &text[key.value.clone()];
    if value.len() > MAX_KEY || (!is_digits(value) && key.syntax != Syntax::Bytes) {
        return false;
    }
    let rest = &text[key.value.end..text.len().min(key.value.end + REACH)];
    if !is_explicit && is_before_input(rest) {
        return true;
    }
    match next_name(rest) {
        Some(name) if is_of_vector(&rest[..name]) => holds_digits(&rest[name..]),
        // A nonce tells nothing by itself; what follows it does: digits that were encrypted, or anything
        // where code decodes the key.
        // What a program keeps stands beside the key that opens it, too, which has a longer name.
        Some(name)
            if !is_explicit
                && has_word(&rest[..name], NONCES)
                && is_encrypted_behind(&rest[name..]) =>
        {
            true
        }
        Some(name) if key.syntax == Syntax::Wrapped && has_word(&rest[..name], NONCES) => {
            let line = &rest[name..rest.len().min(name + MAX_NONCE)];
            let behind = memchr::memchr(b'\n', line).map(|end| &rest[name + end..]);
            behind.is_some_and(|rest| {
                next_name(rest).is_some_and(|name| has_word(&rest[..name], WORDS))
            })
        }
        _ => false,
    }
}

/// `NONCE: …`, which may be empty, and then `IN: …` in lines of their own: as BoringSSL writes its tests, and those
/// who took them.
fn is_before_input(rest: &[u8]) -> bool {
    let Some(nonce) = rest.strip_prefix(b"\nNONCE") else { return false };
    let line = &nonce[..nonce.len().min(MAX_NONCE)];
    let Some(end) = memchr::memchr(b'\n', line) else { return false };
    matches!(&nonce[end + 1..], [b'I', b'N', b':' | b'=', ..] | [b'I', b'N', b' ', b'=', ..])
}

/// Whether the value that follows the nonce's is what a cipher made, or was given, in digits.
fn is_encrypted_behind(nonce: &[u8]) -> bool {
    const ENCRYPTED: &[&str] =
        &["ciphertext", "plaintext", "ct", "pt", "tag", "cipher", "encrypted"];
    let nonce = &nonce[..nonce.len().min(MAX_NONCE)];
    let start = nonce.iter().position(u8::is_ascii_hexdigit).unwrap_or(nonce.len());
    let len = nonce[start..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let rest = &nonce[start + len..];
    len >= MIN_DIGITS / 2
        && next_name(rest).is_some_and(|name| {
            let value = &rest[name..rest.len().min(name + MAX_OPENING)];
            let mut runs = value.split(|byte| !byte.is_ascii_hexdigit());
            has_word(&rest[..name], ENCRYPTED) && runs.any(|run| run.len() >= MIN_DIGITS / 4)
        })
}

/// Keys of Ethereum are written with `0x`, and stand before addresses: they are none of these.
fn is_digits(value: &[u8]) -> bool {
    value.len() >= MIN_DIGITS && value.iter().all(u8::is_ascii_hexdigit)
}

/// Where the name of the next value ends, if a value follows that is written as one.
fn next_name(rest: &[u8]) -> Option<usize> {
    let name_end = rest.iter().take(MAX_NAME).position(|byte| matches!(byte, b'=' | b':'))?;
    // A type may stand between a name and its value.
    let opening = &rest[name_end..rest.len().min(name_end + MAX_OPENING)];
    let line_end = memchr::memchr(b'\n', opening).unwrap_or(opening.len());
    let opens = |byte: &u8| byte.is_ascii_digit() || b"\"'{[(".contains(byte);
    opening[..line_end].iter().any(opens).then_some(name_end)
}

/// Whether what follows is of digits, as what a cipher works on is written: `publicUrl: "https://…"` is not.
fn holds_digits(rest: &[u8]) -> bool {
    let opening = &rest[..rest.len().min(MAX_OPENING)];
    let quote = opening.iter().position(|byte| matches!(byte, b'"' | b'\''));
    let start = quote.map_or_else(
        || opening.iter().position(u8::is_ascii_alphanumeric).unwrap_or(opening.len()),
        |quote| quote + 1,
    );
    let behind = rest[start..].iter().find(|byte| !byte.is_ascii_hexdigit());
    !behind.is_some_and(|byte| byte.is_ascii_graphic() && !b"\"',;)]}".contains(byte))
}

/// Whether a vector has something of this name. What else is `public` than a key, or whose digest somebody
/// keeps, stands beside keys that are in use: `publicCode`, `asset_digest`.
fn is_of_vector(name: &[u8]) -> bool {
    let name = without_declaration(name);
    let mut before: Option<&[u8]> = None;
    let mut words = name::words(name).peekable();
    while let Some(word) = words.next() {
        let next = words.peek();
        let is_one = match word {
            _ if ignore_case::is_any(word, &["public", "pub"]) => {
                next.is_none_or(|next| !ignore_case::is_any(next, &["code", "id", "name", "url"]))
            }
            _ if ignore_case::is_any(word, &["digest"]) => {
                before.is_none_or(|before| before.len() < 5 || vocabulary::is_known(before))
            }
            _ => ignore_case::is_any(word, WORDS),
        };
        if is_one {
            return true;
        }
        before = Some(word);
    }
    false
}

/// Whether one of `those` is a word of the name. Languages write `public` and `pub` before names of anything.
fn has_word(name: &[u8], those: &[&str]) -> bool {
    name::words(without_declaration(name)).any(|word| ignore_case::is_any(word, those))
}

fn without_declaration(name: &[u8]) -> &[u8] {
    const DECLARING: [&[u8]; 7] =
        [b"const ", b"static ", b"final ", b"readonly ", b"let ", b"var ", b"public $"];
    let ends = DECLARING
        .iter()
        .filter_map(|word| memchr::memmem::rfind(name, word).map(|at| at + word.len()));
    &name[ends.max().unwrap_or(0)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `@…@` marks the key.
    fn check(marked: &str, syntax: Syntax) -> bool {
        let (text, key) = parse(marked, syntax);
        is_one(text.as_bytes(), &key, false)
    }

    fn parse(marked: &str, syntax: Syntax) -> (String, Assignment) {
        let start = marked.find('@').unwrap();
        let len = marked[start + 1..].find('@').unwrap();
        (marked.replace('@', ""), Assignment { value: start..start + len, syntax })
    }

    #[test]
    fn a_key_before_what_a_cipher_works_on_is_of_a_test_vector() {
        let hex = "@3b9d07c41fe86a52908d4f7be1c6a03d@";
        let nonce = "89dab80b7717c1db5db43786";
        for text in [
            format!("{{key: \"{hex}\", iv: \"{nonce}\", ct: \"5b97a9d4\"}}"),
            format!("let key = \"{hex}\";\nlet iv = \"{nonce}\";\nlet ciphertext = \"5b97a9d4"),
            format!("Key = {hex}\nInput = 89dab80b"),
            format!("secret = \"{hex}\"\npublic_key = \"89dab80b\""),
            format!("Key = {hex}\nDigest = 89dab80b"),
            format!("key: \"{hex}\",\n  expected_public: \"d75a\","),
            format!("let key = \"{hex}\";\nlet plaintext = \"00\";"),
            format!("KEY: {hex}\nNONCE: {nonce}\nIN: 5b97a9d4\n"),
            format!("KEY = {hex}\nNONCE = {nonce}\nIN = \"\"\n"),
            format!("KEY: {hex}\nNONCE: \nIN: 5b97a9d4\n"),
        ] {
            assert!(check(&text, Syntax::Quoted), "{text}");
        }
        let vector =
            format!("key: &hex!(\"{hex}\"),\n nonce: &hex!(\"3c81\"),\n plaintext: &hex!(\"\"),");
        assert!(check(&vector, Syntax::Wrapped));
        let array = "kKey[] = {\n @7, 200, 3@\n};\nstatic const uint8_t kExpectedTag[] = {1";
        assert!(check(array, Syntax::Bytes));
    }

    #[test]
    fn a_key_before_anything_else_is_not() {
        let hex = "@3b9d07c41fe86a52908d4f7be1c6a03d@";
        for text in [
            format!("KEY={hex}\nIV=89dab80b\n"),
            format!("KEY={hex}\nIV=89dab80b\nREGION=1\n"),
            format!("KEY={hex}\n"),
            format!("KEY={hex}\nOUTPUT_DIR=build\n"),
            format!("key = \"{hex}\";\nsend(message);\n"),
            format!("key: \"{hex}\",\nlabel: \"prod\",\n"),
            format!("SECRET_KEY={hex}\nPUBLIC_URL=http://localhost:3000\n"),
            "privateKey: \"@0x3b9d07c41fe86a52908d4f7be1c6a03d@\",\n public: \"04\"\n".to_owned(),
            format!("pub const KEY: &str = \"{hex}\";\npub const PREFIX: &str = \"wiz_\";\n"),
            format!("String KEY = \"{hex}\";\npublic static final String A = \"wiz\";\n"),
            format!("string gameSecret = \"{hex}\";\nstring publicCode = \"89dab80b\";\n"),
            format!("geocoder_key: {hex}\nasset_digest: 89dab80b7717c1db\n"),
            "key = \"@q8Zr2LmT0vXbN5wKcJ7dq8Zr2LmT0vXb@\"\ninput = 12\n".to_owned(),
        ] {
            assert!(!check(&text, Syntax::Quoted), "{text}");
        }
    }
}
