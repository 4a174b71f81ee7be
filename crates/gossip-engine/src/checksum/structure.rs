//! Values that are documents: tokens of JSON, keys of DER.

use super::Verdict;
use crate::decode::base64;

/// Enough of a document to tell what it is.
const LOOK: usize = 192;
/// The key that RFC 8410 shows begins so.
const RFC_8410: [u8; 8] = [0xD4, 0xEE, 0x72, 0xDB, 0xF9, 0x13, 0x58, 0x4A];

/// An object that names its algorithm, an object, and a signature.
pub(super) fn verify_jwt(secret: &[u8]) -> Verdict {
    let mut parts = secret.split(|byte| *byte == b'.');
    let (Some(header), Some(payload)) = (parts.next(), parts.next()) else {
        return Verdict::Impossible;
    };
    let mut bytes = [0u8; LOOK];
    let decoded = decode_start(header, &mut bytes);
    // A value that only begins like base64 of JSON decodes to rubbish.
    if !decoded.starts_with(b"{") || !decoded.iter().all(|byte| is_text(*byte)) {
        return Verdict::Impossible;
    }
    let names_algorithm = memchr::memmem::find(decoded, b"\"alg\"").is_some();
    let header_is_long = header.len() > LOOK;
    let decoded = decode_start(payload, &mut bytes);
    let is_object = decoded.starts_with(b"{");
    if is_object && (names_algorithm || header_is_long) { Verdict::Valid } else { Verdict::Invalid }
}

fn is_text(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') || byte.is_ascii_whitespace()
}

/// The body between the marks. Encrypted keys are as they should be too, but worth less.
pub(super) fn verify_private_key(secret: &[u8]) -> Verdict {
    let Some(begin) = memchr::memmem::find(secret, b"KEY") else { return Verdict::Unknown };
    let Some(marks) = memchr::memmem::find(&secret[begin..], b"-----") else {
        return Verdict::Unknown;
    };
    let body = &secret[begin + marks + 5..];
    if is_documented(body) || memchr::memmem::find(&secret[..begin + marks], b"ENCRYPTED").is_some()
    {
        return Verdict::Impossible;
    }
    let mut text = [0u8; LOOK];
    let len = digits_of(body, &mut text);
    let mut bytes = [0u8; LOOK];
    let decoded = decode_start(&text[..len], &mut bytes);
    match decoded {
        _ if counts_up(decoded) || opens_nothing(decoded) => Verdict::Impossible,
        [0x30, 0x80..=0x84, ..] if decoded.len() > 24 => Verdict::Valid,
        // An EC key in DER is short enough for a one-byte length.
        [0x30, 0x2C..=0x7F, ..] => Verdict::Valid,
        _ if decoded.starts_with(b"openssh-key-v1\0") => Verdict::Valid,
        // PGP: the first packet is a secret key.
        [first, ..] if first & 0xFC == 0x94 || *first == 0xC5 => Verdict::Valid,
        _ => Verdict::Invalid,
    }
}

/// The first digits of a body, whatever stands before them on their lines: a log's time, the sign of a
/// comment. Line ends may be escaped.
fn digits_of(body: &[u8], digits: &mut [u8; LOOK]) -> usize {
    /// What stands before a line is shorter.
    const MIN_RUN: usize = 20;
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let mut len = 0;
    for line in body.split(|byte| *byte == b'\n') {
        for (at, part) in line.split(|byte| *byte == b'\\').enumerate() {
            let letter_of_escape = usize::from(at > 0).min(part.len());
            let runs = part[letter_of_escape..].split(|byte| !is_digit(byte));
            for run in runs.filter(|run| run.len() >= MIN_RUN) {
                let room = &mut digits[len..];
                let taken = run.len().min(room.len());
                room[..taken].copy_from_slice(&run[..taken]);
                len += taken;
            }
        }
        if len == digits.len() {
            break;
        }
    }
    len
}

/// Whether what follows the first mark is no key but something about one: prose, an ellipsis, an
/// encrypted body.
fn is_documented(body: &[u8]) -> bool {
    const MIN_LINE: usize = 32;
    let start = &body[..body.len().min(400)];
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let longest = start.split(|byte| !is_digit(byte)).map(<[u8]>::len).max().unwrap_or(0);
    let says = |text: &[u8]| memchr::memmem::find(start, text).is_some();
    longest < MIN_LINE || says(b"...") || says(b"ENCRYPTED")
}

/// Whether the secret is `00 01 02 …`: somebody wrote it down to have one.
fn counts_up(bytes: &[u8]) -> bool {
    const MAX_RISING: usize = 16;
    let mut rising = 1;
    bytes.windows(2).any(|pair| {
        rising = if pair[0].wrapping_add(1) == pair[1] { rising + 1 } else { 1 };
        rising >= MAX_RISING
    })
}

/// Whether a key in DER opens nothing: everybody has the one of RFC 8410, and anybody finds one of RSA (or
/// DSA) with 512 bits or fewer out within hours, which is why only examples are so short.
fn opens_nothing(der: &[u8]) -> bool {
    /// Bytes of a modulus, one of which is the sign.
    const MAX_SHORT: u8 = 65;
    // The version, and then the modulus by its tag and length.
    let is_short = |bytes: &[u8]| matches!(bytes, [2, 1, 0, 2, 16..=MAX_SHORT]);
    memchr::memmem::find(der, &RFC_8410).is_some() || der.windows(5).any(is_short)
}

pub(super) fn verify_base64_json(secret: &[u8]) -> Verdict {
    let Some(start) = memchr::memmem::find(secret, b"eyJ") else { return Verdict::Invalid };
    let mut bytes = [0u8; LOOK];
    let decoded = decode_start(&secret[start..], &mut bytes);
    let printable = decoded.iter().all(|byte| (0x20..0x7F).contains(byte));
    let names = decoded.starts_with(b"{\"") && memchr::memmem::find(decoded, b"\":").is_some();
    if printable && names { Verdict::Valid } else { Verdict::Invalid }
}

fn decode_start<'b>(text: &[u8], bytes: &'b mut [u8; LOOK]) -> &'b [u8] {
    let text = &text[..text.len().min(LOOK)];
    let len = base64::decode_into(text, bytes);
    &bytes[..len]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jwt_is_two_objects_and_a_signature() {
        let part = |text: &str| base64::encode(text.as_bytes(), base64::Alphabet::UrlSafe);
        let token = |header: &str, payload: &str| {
            verify_jwt(format!("{}.{}.sig", part(header), part(payload)).as_bytes())
        };
        assert_eq!(token(r#"{"alg":"HS256"}"#, r#"{"sub":"1"}"#), Verdict::Valid);
        assert_eq!(token(r#"{"alg":"HS256"}"#, "rubbish"), Verdict::Invalid);
        assert_eq!(token(r#"{"kid":"1"}"#, r#"{"sub":"1"}"#), Verdict::Invalid);
        assert_eq!(token("{\"\u{1}\u{2}", r#"{"sub":"1"}"#), Verdict::Impossible);
        assert_eq!(verify_jwt(b"eyJhbGciOiJIUzI1NiJ9"), Verdict::Impossible);
    }

    #[test]
    fn a_key_is_der_whatever_its_line_ends() {
        let der = [&[0x30, 0x82, 1, 2][..], &[7; 60]].concat();
        let body = base64::encode(&der, base64::Alphabet::Standard);
        for end in ["\n", "\r\n", "\\n", "\\r\\n"] {
            let text = format!("-----BEGIN RSA PRIVATE KEY-----{end}{body}{end}-----END");
            assert_eq!(verify_private_key(text.as_bytes()), Verdict::Valid, "{end:?}");
        }
        for lead in ["//! ", " * ", "2026-01-02 10:00 app: ", "Version: GnuPG v2\n\n"] {
            let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{lead}{body}\n{lead}-----END");
            assert_eq!(verify_private_key(text.as_bytes()), Verdict::Valid, "{lead:?}");
        }
        let counted: Vec<u8> = [0x30, 0x2E, 2, 1, 0].into_iter().chain(0..32).collect();
        let body = base64::encode(&counted, base64::Alphabet::Standard);
        let text = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END");
        assert_eq!(verify_private_key(text.as_bytes()), Verdict::Impossible);
        let published = [&[0x30, 0x2E, 2, 1, 0][..], &RFC_8410, &[7; 24]].concat();
        let short = [&[0x30, 0x82, 1, 0x3D, 2, 1, 0, 2, 65, 0][..], &[7; 64]].concat();
        let long = [&[0x30, 0x82, 2, 0x5D, 2, 1, 0, 2, 0x81, 0x81, 0][..], &[7; 128]].concat();
        for (der, verdict) in
            [(published, Verdict::Impossible), (short, Verdict::Impossible), (long, Verdict::Valid)]
        {
            let body = base64::encode(&der, base64::Alphabet::Standard);
            let text = format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END");
            assert_eq!(verify_private_key(text.as_bytes()), verdict);
        }
        let body = base64::encode(b"not a key at all, but long", base64::Alphabet::Standard);
        let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END");
        assert_eq!(verify_private_key(text.as_bytes()), Verdict::Invalid);
        for documented in ["MIIE...", "-----BEGIN is how it starts", "Proc-Type: 4,ENCRYPTED\n"] {
            let text = format!("-----BEGIN RSA PRIVATE KEY-----\n{documented}{body}...\n-----END");
            assert_eq!(verify_private_key(text.as_bytes()), Verdict::Impossible, "{documented}");
        }
    }
}
