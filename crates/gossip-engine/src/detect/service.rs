//! Keys beside the name of the service that gave them out, however they are joined to it:
//! `clockify TOKEN x`, `cloudsmith x`, `blynk_api_key-x`.
//!
//! Behind the service's name come words that say what the value is, and what separates them; then
//! the value. Each is bounded, so that nothing beyond [`REACH_AFTER`] is looked at. Whether the
//! words speak of a credential decides how much the value must look like a key.
//!
//! Where the name is a word, the words behind it must speak of a credential, or the value must be
//! assigned to it.

use std::ops::Range;

use super::Detected;
use super::instead;
use super::services;
use super::value::{self, Shape};
use crate::finding::Reason;
use crate::judge;
use crate::rules::Confidence;

/// Between the service's name and the value.
const MAX_GAP: usize = 64;
/// Signed tokens with many claims are long.
const MAX_VALUE: usize = 1536;
/// A shorter name turns up in what was decoded from bytes that are no text: it needs a word, or the
/// sign of an assignment.
const MIN_NAME: usize = 5;
/// Words that are none of ours, beside one that is: `CLOCKIFY_KEY_MAIN=x`, `clockify main token x`.
const MAX_OTHER_WORDS: usize = 2;
const MAX_OTHER_WORD: usize = 12;
/// One letter and what separates it says nothing: `cloudsmith x …`.
const MAX_FILLER: usize = 2;

/// Before what was encrypted, or is a checksum.
#[rustfmt::skip]
const SEALED: [&str; 8] =
    ["enc", "encrypted", "secure", "sealed", "sha1", "sha256", "sha512", "md5"];

pub(super) const REACH_BEFORE: usize = 1;
pub(super) const REACH_AFTER: usize = MAX_GAP + MAX_VALUE + 8;

/// Words that say what the value is, and whether it is a credential.
#[rustfmt::skip]
const WORDS: &[(&str, bool)] = &[
    ("credentials", true), ("credential", true), ("account", false), ("private", true),
    ("secrets", true), ("service", false), ("project", false), ("access", true),
    ("bearer", true), ("login", true), ("client", false), ("consumer", false), ("secret", true), ("server", false),
    ("tokens", true), ("admin", false), ("oauth", true), ("token", true), ("auth", true),
    ("cloud", false), ("live", false), ("prod", false), ("test", false), ("user", false),
    ("code", false), ("keys", true), ("rest", false), ("api", true), ("app", false),
    ("bot", false), ("dev", false), ("key", true), ("pat", true), ("sdk", false), ("the", false),
    ("io", false), ("is", false), ("v1", false), ("v2", false), ("v3", false),
];

pub(super) fn anchors() -> impl Iterator<Item = &'static str> {
    services::announced()
}

/// Whether a service's name that `next` follows may be one: a separator or one of [`WORDS`] does.
pub(super) fn may_follow(next: u8) -> bool {
    is_separator(next) || (next.is_ascii_alphabetic() && b"acikopst".contains(&(next | 0x20)))
}

fn is_separator(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"_-.:=>\"'`([{)],|".contains(&byte)
}

pub(super) fn detect(text: &[u8], word: Range<usize>) -> Option<Detected> {
    if !begins_word(text, word.start) {
        return None;
    }
    let found = value_behind(text, word.clone())?;
    let value = &text[found.detected.secret.clone()];
    // `acme_key=acme_pt_...`: the rest is left out.
    let behind = &text[found.detected.secret.end..];
    if behind.starts_with(b"...") || behind.starts_with("…".as_bytes()) {
        return None;
    }
    // Lists of files give hashes to words, too.
    let between = &text[word.end..found.detected.secret.start];
    let is_listed = between.contains(&b':');
    let may_be_hash =
        is_listed && value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    let is_key = found.is_credential
        || (found.is_assigned && !may_be_hash)
        || !services::is_word(&text[word.clone()]);
    // A parameter of a request is sent because the service asks for it: `?app_id=`.
    let is_shared =
        super::may_be_shared(between) && !between.iter().any(|byte| b"?&".contains(byte));
    // `id="acme-9b2f6c1e-…"`, `acme,9b2f6c1e-…`: one of many that are called so.
    let is_numbered =
        !found.is_credential && matches!(between, b"-" | b",") && value::is_uuid(value);
    let is_other = is_shared || is_numbered || instead::is_in_type(text, &word, value);
    (is_key && !is_other).then_some(found.detected)
}

/// What stands behind a service's name.
struct Behind {
    detected: Detected,
    is_credential: bool,
    /// Nothing but the sign of an assignment stands between.
    is_assigned: bool,
}

fn value_behind(text: &[u8], word: Range<usize>) -> Option<Behind> {
    let limit = text.len().min(word.end + MAX_GAP);
    let mut at = word.end;
    let mut is_credential = false;
    let mut first_other = None;
    for _ in 0..=MAX_OTHER_WORDS {
        let words = known_words(text, at, limit);
        is_credential |= words.is_credential;
        at = words.end;
        if at == limit {
            return None;
        }
        // Joined to a word by nothing it is the word's tail.
        // Words that speak of none speak of something else: `crowdin-project: x`.
        let is_near = first_other.is_none_or(|other| at <= other + MAX_FILLER);
        let is_assigned = first_other.is_none() && is_assignment(&text[word.end..at]);
        let is_long = word.len() >= MIN_NAME || is_assigned;
        let is_named = is_credential || (is_long && !words.is_any && is_near);
        if words.is_separated
            && is_named
            && let Some(value) = value_at(text, at)
            && let Some(confidence) = judge(&text[value.clone()], is_credential, is_assigned)
        {
            // `example-token-0a9b…` is one stand-in, and not two words and a value.
            let from = first_other.unwrap_or(value.start);
            if judge::is_placeholder(&text[from..value.end], 0) {
                return None;
            }
            let whole = word.start..value.end;
            let reason = Reason::NamedSecret;
            let detected = Detected { whole, secret: value, confidence, reason };
            return Some(Behind { detected, is_credential, is_assigned });
        }
        // One word may stand before the one that speaks of a credential: `clockify main token x`.
        if !is_credential && first_other.is_some() {
            return None;
        }
        first_other = first_other.or(Some(at));
        at = end_of_other_word(text, at, limit)?;
    }
    None
}

/// The tail of another word names no service; the hump of a name in camel case does.
fn begins_word(text: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).map(|at| text[at]) else { return true };
    let is_hump = before.is_ascii_lowercase() && text[start].is_ascii_uppercase();
    !before.is_ascii_alphanumeric() || is_hump
}

/// Separators and words of ours.
struct Words {
    end: usize,
    is_any: bool,
    is_credential: bool,
    /// Something separates the last word from what follows.
    is_separated: bool,
}

fn known_words(text: &[u8], from: usize, limit: usize) -> Words {
    let mut words = Words { end: from, is_any: false, is_credential: false, is_separated: false };
    loop {
        let rest = &text[words.end..limit];
        let separators = rest.iter().take_while(|byte| is_separator(**byte)).count();
        words.end += separators;
        words.is_separated = separators > 0;
        if words.is_separated && is_run_of_key(&text[words.end..limit]) {
            return words;
        }
        let Some((word, is_credential)) = known_word(&text[words.end..limit]) else { return words };
        words.is_any = true;
        words.is_credential |= is_credential;
        words.end += word.len();
    }
}

/// Whether a word of ours that the text may begin with is only how a key begins: `apiQ7rw2nKx9TzLb4Vd`.
fn is_run_of_key(text: &[u8]) -> bool {
    const MIN_LEN: usize = 16;
    const MIN_DIGITS: usize = 2;
    let run = text.iter().take_while(|byte| byte.is_ascii_alphanumeric());
    let (len, digits) = run
        .fold((0, 0), |(len, digits), byte| (len + 1, digits + usize::from(byte.is_ascii_digit())));
    len >= MIN_LEN && digits >= MIN_DIGITS
}

/// Behind a word that is none of ours: `KEY_MAIN=x`, `token for you x`.
fn end_of_other_word(text: &[u8], at: usize, limit: usize) -> Option<usize> {
    let rest = &text[at..limit];
    let len = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    // No word begins with a digit.
    let ends = !rest.first().is_some_and(u8::is_ascii_digit)
        && rest.get(len).is_some_and(|byte| is_separator(*byte));
    // `ENCRYPTED[…]`, `secure: …`: what only a service that runs tests can read.
    let is_sealed = SEALED.iter().any(|word| rest[..len].eq_ignore_ascii_case(word.as_bytes()));
    (ends && len <= MAX_OTHER_WORD && !is_sealed).then_some(at + len)
}

/// One of [`WORDS`] at the start of `rest`, unless it goes on as another word.
fn known_word(rest: &[u8]) -> Option<(&'static str, bool)> {
    let found = WORDS.iter().find(|(word, _)| {
        rest.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
    })?;
    let next = rest.get(found.0.len());
    // `accessKey`, `secrettoken`, but not `apiary`: what follows is no letter, another of them, or a
    // hump.
    let last = rest[found.0.len() - 1];
    let goes_on = match last.is_ascii_digit() {
        // `v2uyoPKZ` is no version.
        true => next.is_some_and(u8::is_ascii_alphanumeric),
        false => {
            next.is_some_and(u8::is_ascii_lowercase)
                && last.is_ascii_lowercase()
                && known_word(&rest[found.0.len()..]).is_none()
        }
    };
    let is_digit = next.is_some_and(u8::is_ascii_digit);
    (!goes_on && !is_digit).then_some(*found)
}

/// The value at `start`, up to what cannot be part of a key.
fn value_at(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..text.len().min(start + MAX_VALUE + 1)];
    let in_value = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_-.+/~".contains(byte);
    let mut len = rest.iter().take_while(in_value).count();
    len += rest[len..].iter().take(3).take_while(|byte| **byte == b'=').count();
    // A name, a call, an address: what goes on is none.
    let goes_on = rest.get(len).is_some_and(|byte| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'(' | b'[' | b'{' | b'@' | b'$' | b':' | b'%')
    });
    if len > MAX_VALUE || goes_on {
        return None;
    }
    while len > 0 && matches!(rest[len - 1], b'.' | b'-') {
        len -= 1;
    }
    Some(start..start + len)
}

/// Whether nothing but the sign of an assignment or of a call stands between: `MAXMIND="x"`,
/// `env["MAXMIND"] = "x"`, `require("maxmind")("x")`.
fn is_assignment(gap: &[u8]) -> bool {
    let plain = |byte: &u8| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'`');
    let mut signs = gap.iter().copied().filter(|byte| !plain(byte));
    let first = match signs.next() {
        Some(b']') => signs.next().filter(|byte| *byte == b'='),
        Some(b')') => return signs.eq([b'(']),
        first => first,
    };
    matches!(first, Some(b'=' | b':')) && signs.all(|byte| matches!(byte, b'=' | b'>'))
}

fn judge(value: &[u8], is_credential: bool, is_assigned: bool) -> Option<Confidence> {
    if !is_credential && value::may_be_public(value) {
        return None;
    }
    let bits = match weigh_key(value, is_credential) {
        Some(bits) => bits,
        None if is_assigned => weigh_assigned(value)?,
        None => return None,
    };
    let is_sure = is_credential && bits >= 16.0 && !judge::looks_typed(value);
    Some(if is_sure { Confidence::Medium } else { Confidence::Low })
}

/// The weight of a value that looks like a key: of what is said to be a credential much does.
pub(super) fn weigh_key(value: &[u8], is_credential: bool) -> Option<f32> {
    const MIN_LEN: usize = 12;
    /// Of a value that is said to be a credential.
    const MIN_CREDENTIAL: usize = 8;
    const MIN_NUMBER: usize = 20;
    const MIN_LETTERS: usize = 20;
    /// Letters can be hexadecimal digits by chance, but not so many of them.
    const MIN_HEX_LETTERS: usize = 32;
    const MIN_TYPED: usize = 10;
    /// What ends in a dot and a few letters, and is shorter, is the name of a file.
    const MIN_FILE: usize = 24;
    let min_len = match is_credential {
        true if value::is_typed(value) => MIN_TYPED,
        true => MIN_CREDENTIAL,
        false => MIN_LEN,
    };
    let is_other = is_address(value)
        || is_class(value)
        || (value.len() < MIN_FILE && value::has_extension(value))
        || is_number_with_groups(value)
        || is_cut_uuid(value);
    if value.len() < min_len || is_other {
        return None;
    }
    let weight = value::weigh_typed(value, f32::MIN)?;
    if weight.shape == Shape::Mixed && is_identifier(value, weight.bits) {
        return None;
    }
    let is_plain = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte));
    let looks_like_key = match weight.shape {
        // A hash of anything looks like a key: without a word that says so it needs a key's length.
        Shape::Hex => is_credential || matches!(value.len(), 32 | 40 | 48 | 64),
        Shape::Uuid => true,
        Shape::Number => is_credential && value.len() >= MIN_NUMBER,
        Shape::Letters if value.iter().all(u8::is_ascii_hexdigit) => {
            is_credential && value.len() >= MIN_HEX_LETTERS
        }
        Shape::Letters => {
            let is_word = weight.bits < 2.0 && !judge::looks_typed(value);
            is_credential && value.len() >= MIN_LETTERS && !is_word
        }
        Shape::Mixed if is_credential => has_digit(value) && weight.bits >= typed_bits(value),
        // A signed token is one, whoever gave it out.
        Shape::Mixed => {
            (is_plain || value.starts_with(b"eyJ"))
                && has_digit(value)
                && value.len() >= 24
                && weight.bits >= 10.0
        }
        Shape::Phrase => false,
    };
    looks_like_key.then_some(weight.bits)
}

/// The weight of a value that keys seldom look like, but that is all that the service's name is given.
fn weigh_assigned(value: &[u8]) -> Option<f32> {
    const MIN_LEN: usize = 16;
    const MIN_DIGITS: usize = 2;
    const MIN_BITS: f32 = 12.0;
    /// Eight bytes in hexadecimal digits weigh as much as they can.
    const MIN_HEX_BITS: f32 = 8.0;
    /// Of letters only, or of base64 with all its signs.
    const MIN_LONG: usize = 20;
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    if value.len() < MIN_LEN || is_address(value) {
        return None;
    }
    let weight = value::weigh(value, MIN_HEX_BITS)?;
    let is_plain = value.iter().all(u8::is_ascii_alphanumeric);
    let is_base64 = value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(byte));
    let is_long = value.len() >= MIN_LONG && weight.bits >= MIN_BITS;
    let is_key = match weight.shape {
        Shape::Mixed if is_plain && digits >= MIN_DIGITS => weight.bits >= MIN_BITS,
        Shape::Mixed => is_base64 && is_long && digits >= MIN_DIGITS,
        Shape::Letters => is_long,
        // Twelve bytes are more often the id of a record.
        Shape::Hex => matches!(value.len(), MIN_LEN | 20 | 96 | 128),
        _ => false,
    };
    is_key.then_some(weight.bits)
}

/// What a value must weigh that may have been typed: `abcde12345abcde67890` is no name, whatever
/// its letters say, as names have few digits.
fn typed_bits(value: &[u8]) -> f32 {
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits * 4 >= value.len() { -12.0 } else { 0.0 }
}

/// `V2010.CallPage`: the last word is the name of a class.
fn is_class(value: &[u8]) -> bool {
    let last = memchr::memrchr(b'.', value).map(|dot| &value[dot + 1..]);
    last.is_some_and(|last| {
        last.len() >= 4
            && last[0].is_ascii_uppercase()
            && last.iter().all(u8::is_ascii_alphabetic)
            && last.iter().any(u8::is_ascii_lowercase)
            && value::is_wordlike(last)
    })
}

fn has_digit(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit)
}

/// `9b2f6c1e-7d34-4a58`: the start of a UUID. Whoever needs one has all of it.
fn is_cut_uuid(value: &[u8]) -> bool {
    const UUID_LEN: usize = 36;
    let fits = |(at, byte): (usize, &u8)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    value.contains(&b'-') && value.len() < UUID_LEN && value.iter().enumerate().all(fits)
}

/// `jira_oauth2`, `Msg91Api`, `HTTP2`: a name with a number in it; keys of its length have more digits.
fn is_identifier(value: &[u8], bits: f32) -> bool {
    const LEN_MAX: usize = 14;
    const MIN_DIGITS: usize = 3;
    const RANDOM_BITS: f32 = 4.0;
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    value.len() <= LEN_MAX && digits < MIN_DIGITS && bits < RANDOM_BITS
}

/// `0x19e8e0ef_236c`, `2016.3.0`: a number or a version as programs write them.
fn is_number_with_groups(value: &[u8]) -> bool {
    let is_version =
        value.contains(&b'.') && value.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.');
    is_version || (value.starts_with(b"0x") && value.contains(&b'_'))
}

/// `me/api/v1/…`: the first part of a path is a word in small letters, and base64 is not.
fn is_address(value: &[u8]) -> bool {
    let slash = memchr::memchr(b'/', value);
    slash.is_some_and(|at| value[..at].iter().all(u8::is_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<String> {
        let lower = text.to_ascii_lowercase();
        let (start, len) = anchors()
            .filter_map(|name| lower.find(name).map(|at| (at, name.len())))
            .max_by_key(|(_, len)| *len)?;
        let found = detect(text.as_bytes(), start..start + len)?;
        Some(text[found.secret].to_owned())
    }

    #[test]
    fn keys_are_found_however_they_are_joined() {
        let key = "k4vtqzjm83xwd0rby6hpnc5sgfa7lu2e";
        for text in [
            format!("clockify TOKEN {key}"),
            format!("clockify PRIVATE {key}"),
            format!("clockifySECRETkey-{key}"),
            format!("CLOCKIFY_API_KEY={key}"),
            format!("myClockifyToken:{key}"),
            format!("clockify:\n  api_key: {key}\n"),
            format!("CLOCKIFY_TOKEN_MAIN={key}"),
            format!("clockifySECRETmine-{key}"),
            format!("a clockify token for you: {key}"),
            format!("clockify main token {key}"),
            format!("the-clockify-access-{key}"),
            format!("clockify {key}"),
            format!("clockify login {key}"),
            format!("require('clockify')('{key}')"),
            format!("func getClockifyToken() string {{ return \"{key}\" }}"),
            format!("Asking the clockify API\n[DEBUG] using key={key}"),
            // Names that are words.
            format!("raven={key}"),
            format!("\"raven\": \"{key}\""),
            format!("raven SECRET {key}"),
            format!("os.environ['raven'] = '{key}'"),
        ] {
            assert_eq!(found(&text).as_deref(), Some(key), "{text}");
        }
        assert_eq!(found(&format!("CLOCKIFY_KEY={}", &key[..8])).as_deref(), Some(&key[..8]));
        assert_eq!(found("MAXMIND=\"q7Rw2nKx9TzLb4Vd\"").as_deref(), Some("q7Rw2nKx9TzLb4Vd"));
        assert_eq!(found("yelp='q7Rw2nKx9TzLb4Vd'").as_deref(), Some("q7Rw2nKx9TzLb4Vd"));
        let call = "require('clockify')('v2Rw2nKx9TzLb4Vd')";
        assert_eq!(found(call).as_deref(), Some("v2Rw2nKx9TzLb4Vd"));
        for value in ["qkZrLmTvXbNwKcJdHfPs", "q7Rw2nKx9TzLb4Vd/sD0+hJ8yMcEo6uPaXgFi3tBvQk="] {
            assert_eq!(found(&format!("clockify: \"{value}\"")).as_deref(), Some(value));
        }
        assert_eq!(found("tradier=7cdcc0b71b03cea9").as_deref(), Some("7cdcc0b71b03cea9"));
        let uuid = "9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26";
        assert_eq!(found(&format!("blazemeter {uuid}")).as_deref(), Some(uuid));
    }

    #[test]
    fn what_else_stands_beside_a_service_is_no_key() {
        for text in [
            "https://api.clockify.me/api/v1/workspaces/64a687e29ae1f428e7ebe303",
            "clockify = require('clockify-client')",
            "\"Zorb::Clockify::ApiKey\": \"3b9d07c41fe86a52\"",
            "clockify_token = get_token_from_environment(1)",
            "clockify_token=your-clockify-token-1",
            "CLOCKIFY_TOKEN: \"ENCRYPTED[3b9d07c41fe86a52908d4f7be1c6a03d]\"",
            "CLOCKIFY_API_KEY=example-token-0a9b8c7d6e5f4a3b",
            "clockify key management for beginners",
            "clockify token ${CLOCKIFY_TOKEN}",
            "clockify_host: clockify.internal.net",
            "X-Crowdin-Project: 0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "clockifying 0123456789abcdef0123456789abcdef",
            "clockify 2024-01-02T03:04:05",
            "raven k4vtqzjm83xwd0rby6hpnc5sgfa7lu2e",
            "clockify_token: ENCRYPTED[cfd48b16731c254067ef7b39a7083384]",
            "IClockifyKeys_Vtbl, 0x19e8e0ef_236c_40f9_b38f_9b7dd65d1ccc);",
            "clockify_key: short1",
            "clockify_key: 9b2f6c1e-7d34-4a58-b0c9",
            "maxmind q7Rw2nKx9TzLb4Vd",
            "maxmind = \"GeoLite2CityDatabase2\"",
            "maxmind = \"CountryDatabaseProvider\"",
            "maxmind = \"64a687e29ae1f428e7ebe303\"",
            "maxmind = geolite/databases/Country2025/12",
            "maxmind = \"0x3b9d07c41fe86a52908d4f7be1c6a03d3b9d07c4\"",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
