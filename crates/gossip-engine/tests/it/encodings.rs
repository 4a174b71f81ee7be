//! Secrets that are written differently, and where they are said to be.

use gossip_engine::{Decoding, Encoding, Engine, Options, RuleSet, template};

use crate::support::{Found, builtin, scan};

fn token() -> String {
    template::expand("ghp_{base62:30}{crc32}", 42).unwrap().text
}

pub(crate) fn base64(bytes: &[u8], alphabet: &[u8; 64]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = if at <= chunk.len() {
                char::from(alphabet[(word >> (18 - 6 * at) & 63) as usize])
            } else {
                '='
            };
            text.push(digit);
        }
    }
    text
}

pub(crate) const STANDARD: &[u8; 64] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn only(found: Vec<Found>) -> Found {
    assert_eq!(found.len(), 1, "{found:?}");
    found.into_iter().next().unwrap()
}

#[test]
fn base64_of_either_alphabet_is_seen_at_every_alignment() {
    for alphabet in [STANDARD, URL_SAFE] {
        for shift in 0..6 {
            let inner = format!("{}token={}\n", "?".repeat(shift), token());
            let text = format!("data: {} end", base64(inner.as_bytes(), alphabet));
            let found = only(scan(builtin(), text.as_bytes()));
            assert_eq!(found.secret, token().as_bytes());
            assert_eq!(found.encoding, Encoding::Base64);
            // The span is the run of digits that holds the token: decode it back.
            let bits = (found.start - 6) * 6;
            let first = shift + "token=".len();
            assert!(bits <= first * 8 && first * 8 < bits + 6, "start {}", found.start);
            let end_bits = (found.end - 6) * 6;
            let end = (first + token().len()) * 8;
            assert!(end <= end_bits && end_bits < end + 6, "end {}", found.end);
        }
    }
}

#[test]
fn base64_in_lines_is_one_text_and_the_span_covers_the_line_end() {
    for width in [64, 76] {
        for before in 0..60 {
            let inner = format!("{}token={}\n{}", "?".repeat(before), token(), "x".repeat(80));
            let encoded = base64(inner.as_bytes(), STANDARD);
            let lines: Vec<_> = encoded.as_bytes().chunks(width).collect();
            let text = lines.join(&b"\n"[..]);
            let found = only(scan(builtin(), &text));
            assert_eq!(found.secret, token().as_bytes());
            let digit = (before + "token=".len()) * 4 / 3;
            assert_eq!(found.start, digit + digit / width, "width {width}, before {before}");
        }
    }
}

#[test]
fn base64_in_base64_is_seen_up_to_the_depth() {
    let once = base64(format!("k={}", token()).as_bytes(), STANDARD);
    let twice = base64(once.as_bytes(), STANDARD);
    let thrice = base64(twice.as_bytes(), STANDARD);
    assert_eq!(only(scan(builtin(), once.as_bytes())).secret, token().as_bytes());
    assert_eq!(only(scan(builtin(), twice.as_bytes())).secret, token().as_bytes());
    assert_eq!(only(scan(builtin(), thrice.as_bytes())).secret, token().as_bytes());
    let four = base64(thrice.as_bytes(), STANDARD);
    assert_eq!(scan(builtin(), four.as_bytes()), []);
}

#[test]
fn percent_encoding_is_seen_and_spans_the_escapes() {
    let token = token();
    let escaped = token.replace('_', "%5F");
    let text = format!("https://h.internal/?next=%2Fa%3Ft%3D{escaped}%26x");
    let found = only(scan(builtin(), text.as_bytes()));
    assert_eq!(found.secret, token.as_bytes());
    assert_eq!(found.encoding, Encoding::Percent);
    assert_eq!(&text[found.start..found.end], escaped);
}

#[test]
fn hexadecimal_is_seen_and_spans_its_digits() {
    let inner = format!("token = {}\n", token());
    for prefix in ["", "0x"] {
        let digits: String = inner.bytes().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("blob: {prefix}{digits};");
        let found = only(scan(builtin(), text.as_bytes()));
        assert_eq!(found.secret, token().as_bytes());
        assert_eq!(found.encoding, Encoding::Hex);
        let start = "blob: ".len() + prefix.len() + 2 * "token = ".len();
        assert_eq!((found.start, found.end), (start, start + 2 * token().len()));
    }
}

#[test]
fn escaped_characters_are_seen_whole_or_here_and_there() {
    let token = token();
    let u: String = token.chars().map(|c| format!("\\u{:04x}", c as u32)).collect();
    let x: String = token.bytes().map(|byte| format!("\\x{byte:02X}")).collect();
    let one = token.replace('_', "\\u005f");
    for escaped in [u, x, one] {
        let text = format!("var t = \"{escaped}\";");
        let found = only(scan(builtin(), text.as_bytes()));
        assert_eq!(found.secret, token.as_bytes());
        assert_eq!(found.encoding, Encoding::Escaped);
        assert_eq!(&text[found.start..found.end], escaped);
    }
}

#[test]
fn a_token_that_is_plain_in_a_percent_encoded_url_is_reported_once() {
    let text = format!("https://h.internal/?next=%2Fa&t={}&u=%20", token());
    let found = only(scan(builtin(), text.as_bytes()));
    assert_eq!(found.encoding, Encoding::Plain);
}

#[test]
fn utf16_is_seen_in_either_byte_order_with_and_without_a_mark() {
    let line = format!("password store\r\ntoken = \"{}\"\r\n", token());
    for big in [false, true] {
        for mark in ["", "\u{FEFF}"] {
            let text: Vec<u8> = format!("{mark}{line}")
                .encode_utf16()
                .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect();
            let found = only(scan(builtin(), &text));
            let start = 2 * (mark.chars().count() + line.find("ghp_").unwrap());
            assert_eq!((found.start, found.end), (start, start + 80), "big {big} mark {mark:?}");
            assert_eq!(found.secret, token().as_bytes());
            assert_eq!(found.encoding, Encoding::Utf16);
        }
    }
}

#[test]
fn a_powershell_command_in_base64_of_utf16_is_seen() {
    let command = format!("$env:TOKEN = '{}'", token());
    let utf16: Vec<u8> = command.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let text = format!("powershell -EncodedCommand {}", base64(&utf16, STANDARD));
    assert_eq!(only(scan(builtin(), text.as_bytes())).secret, token().as_bytes());
}

#[test]
fn nothing_is_decoded_when_that_is_switched_off() {
    let options = Options { decoding: Decoding::NONE, ..Options::default() };
    let engine = Engine::new(RuleSet::builtin(), options);
    let text = base64(format!("k={}", token()).as_bytes(), STANDARD);
    assert_eq!(scan(&engine, text.as_bytes()), []);
    assert_ne!(engine.policy_hash(), builtin().policy_hash());
}
