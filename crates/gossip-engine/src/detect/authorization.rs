//! Credentials of HTTP: `Basic …`, `Bearer …`, `Token …`, wherever they stand.

use std::ops::Range;

use super::Detected;
use super::chosen;
use super::syntax::Assignment;
use super::value;
use crate::decode::base64;
use crate::finding::Reason;
use crate::ignore_case;
use crate::rules::Confidence;

pub(super) const ANCHORS: [&str; 2] = ["basic", "bearer"];
const MAX_BLANKS: usize = 8;
const MAX_TOKEN: usize = 1600;
const MIN_TOKEN: usize = 12;
/// What is sent without being encoded is a key, and as long.
const MIN_SENT: usize = 24;
/// What a token weighs at least; a UUID is one.
const UUID_BITS: f32 = 6.0;

pub(super) const REACH_AFTER: usize = MAX_BLANKS + MAX_TOKEN + 8;

/// Whether what follows a scheme, or a name that ends in it, can be its credentials.
pub(super) fn may_follow(word: &[u8], next: u8) -> bool {
    matches!(next, b' ' | b'\t' | b'"' | b'\'' | b'\\')
        || (word.eq_ignore_ascii_case(b"bearer") && b"=:".contains(&next))
}

pub(super) fn detect(text: &[u8], word: Range<usize>) -> Option<Detected> {
    // The tail of another word is no scheme.
    if word.start > 0 && text[word.start - 1].is_ascii_alphanumeric() {
        return None;
    }
    let rest = &text[word.end..text.len().min(word.end + REACH_AFTER)];
    // `Bearer x`, `bearer = "x"`.
    let is_basic = text[word.clone()].eq_ignore_ascii_case(b"basic");
    // HAProxy escapes the blank behind `Basic`.
    let others: &[u8] = if is_basic { b"\\" } else { b"=:\"'" };
    let separates = |byte: u8| matches!(byte, b' ' | b'\t') || others.contains(&byte);
    let blanks = rest.iter().take(MAX_BLANKS).take_while(|byte| separates(**byte)).count();
    if is_basic && matches!(rest.get(blanks), Some(b'"' | b'\'')) {
        return apart(text, word);
    }
    if blanks == 0 {
        return None;
    }
    let rest = &rest[blanks..];
    let len = end_of_token(rest);
    if len > MAX_TOKEN {
        return None;
    }
    let token = &rest[..len];
    // A function or a path follows on from a word, a token ends.
    if rest.get(len).is_some_and(|byte| matches!(byte, b'(' | b'$' | b'{' | b':')) {
        return None;
    }
    let confidence = match is_basic {
        true => {
            basic(token).or_else(|| if is_header(text, &word) { other(token) } else { None })?
        }
        false => bearer(token)?,
    };
    let start = word.end + blanks;
    let secret = start..start + len;
    Some(Detected { whole: word.start..secret.end, secret, confidence, reason: Reason::Header })
}

/// What stands in a string of its own, behind one that ends in the scheme, or that is it: `"Basic " + "…"`,
/// `"basic": "…"`. Nothing but a user's name and a password in base64 counts. It is seldom called, and inlined it
/// makes what is often called slower.
#[inline(never)]
fn apart(text: &[u8], word: Range<usize>) -> Option<Detected> {
    const MAX_LOGIN: usize = 300;
    let rest = &text[word.end..text.len().min(word.end + 4 * MAX_BLANKS + MAX_LOGIN)];
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let blanks = |from: usize| {
        rest.get(from..).map_or(0, |rest| rest.iter().take(MAX_BLANKS).take_while(is_blank).count())
    };
    let is_quote = |at: usize| matches!(rest.get(at), Some(b'"' | b'\''));
    let end = blanks(0);
    let sign = end + 1 + blanks(end + 1);
    let quote = sign + 1 + blanks(sign + 1);
    let joins = rest.get(sign).is_some_and(|byte| b":+.&,=".contains(byte));
    if !is_quote(end) || !joins || !is_quote(quote) {
        return None;
    }
    let start = quote + 1;
    let token = &rest[start..start + end_of_token(&rest[start..])];
    let confidence = if is_login(token) { basic(token)? } else { return None };
    let secret = word.end + start..word.end + start + token.len();
    Some(Detected { whole: word.start..secret.end, secret, confidence, reason: Reason::Header })
}

/// Whether this is base64 of a user's name and a password, neither of them empty.
fn is_login(token: &[u8]) -> bool {
    let mut bytes = [0; value::MAX_TEXT];
    let len = value::from_base64(token, &mut bytes);
    let in_user = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-@\\+".contains(byte);
    memchr::memchr(b':', &bytes[..len])
        .is_some_and(|colon| colon > 0 && colon + 1 < len && bytes[..colon].iter().all(in_user))
}

/// What authorizes, without the word for how: `Key value`.
pub(super) fn behind_scheme(text: &[u8], found: Assignment) -> Assignment {
    let value = &text[found.value.clone()];
    let scheme = scheme(value);
    match value[scheme..].contains(&b' ') {
        true => found,
        false => Assignment { value: found.value.start + scheme..found.value.end, ..found },
    }
}

/// How long the word for how something is authorized is at the start of `value`, with its blank. What
/// everybody calls so is found by itself.
pub(super) fn scheme(value: &[u8]) -> usize {
    const MAX_SCHEME: usize = 16;
    let in_scheme = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'-';
    let len = value.iter().take(MAX_SCHEME).take_while(in_scheme).count();
    let is_one = len > 0 && value.get(len) == Some(&b' ');
    if is_one && !ignore_case::is_any(&value[..len], &ANCHORS) { len + 1 } else { 0 }
}

/// Base64 of a user name and a password.
pub(super) fn basic(token: &[u8]) -> Option<Confidence> {
    let mut bytes = [0u8; 256];
    if !(8..=300).contains(&token.len()) {
        return None;
    }
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let digits = &token[..token.len() - padding];
    let len = base64::decode_into(digits, &mut bytes);
    let decoded = &bytes[..len];
    let is_text = is_text(decoded);
    let colon = memchr::memchr(b':', decoded)?;
    // An object has colons, too.
    if !is_text || len * 4 / 3 + 2 < digits.len() || decoded.starts_with(b"{") {
        return None;
    }
    let password = &decoded[colon + 1..];
    let user = &decoded[..colon];
    let secret = if password.is_empty() { user } else { password };
    let is_chosen = chosen::weigh(secret).is_some()
        || chosen::is_capitalised(secret)
        || chosen::is_pass_phrase(secret)
        || chosen::is_walk(secret);
    let least = if is_chosen { f32::MIN } else { -6.0 };
    let bits = value::weigh(secret, least)?.bits;
    match bits {
        bits if bits >= 4.0 => Some(Confidence::Medium),
        _ if secret.len() >= 4 => Some(Confidence::Low),
        _ => None,
    }
}

fn is_text(decoded: &[u8]) -> bool {
    decoded.iter().all(|byte| (b' '..=b'~').contains(byte))
}

/// Up to where a token ends; one colon may be in it: `2901224:96faf4…`.
fn end_of_token(rest: &[u8]) -> usize {
    const MIN_PART: usize = 20;
    let in_token = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/_.~=-".contains(byte);
    let first = rest.iter().take_while(in_token).count();
    let Some((b':', second)) = rest[first..].split_first() else { return first };
    let second = second.iter().take_while(in_token).count();
    if first > 0 && second >= MIN_PART { first + 1 + second } else { first }
}

/// Whether the scheme is written as in a header: the word has other meanings.
fn is_header(text: &[u8], word: &Range<usize>) -> bool {
    let before = &text[..word.start];
    text[word.start] == b'B'
        && (before.ends_with(b": ") || matches!(before.last(), Some(b'"' | b'\'')))
}

/// What is sent as it is, and not encoded, as some services want it: random, and no text in base64.
fn other(token: &[u8]) -> Option<Confidence> {
    const MIN_BITS: f32 = 16.0;
    let mut bytes = [0; value::MAX_TEXT];
    let len = value::from_base64(token, &mut bytes);
    let is_encoded = len > 0 && is_text(&bytes[..len]);
    let is_long = (MIN_SENT..=bytes.len()).contains(&token.len());
    (is_long && !is_encoded && value::weigh(token, MIN_BITS).is_some()).then_some(Confidence::Low)
}

fn bearer(token: &[u8]) -> Option<Confidence> {
    if token.len() < MIN_TOKEN {
        return None;
    }
    let weight = value::weigh(token, UUID_BITS)?;
    Some(if weight.bits >= 16.0 { Confidence::Medium } else { Confidence::Low })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "M6hUhDedl4h.mwXRcz0EGHx2qZybk3bX";

    fn found(text: &str) -> Option<&str> {
        let lower = text.to_ascii_lowercase();
        let find = |word: &&str| lower.find(*word).map(|start| start..start + word.len());
        let word = ANCHORS.iter().find_map(find).unwrap();
        detect(text.as_bytes(), word).map(|detected| &text[detected.secret])
    }

    #[test]
    fn tokens_may_be_uuids_or_have_a_colon() {
        for token in [
            "9b2f6c1e-7d34-4a58-b0c9-3e1f5a7d8c26",
            "290122400748583:96faf47dbfd05edade1e20ed4abc9869",
        ] {
            assert_eq!(found(&format!("Authorization: Bearer {token}")), Some(token));
        }
        assert_eq!(found("bearer 4jF5t3GECb: the rest"), None);
    }

    #[test]
    fn what_is_sent_as_it_is_counts_in_a_header() {
        assert_eq!(found(&format!("'Authorization': 'Basic {KEY}'")), Some(KEY));
        assert_eq!(found(&format!("Authorization: Basic {KEY}\n")), Some(KEY));
        for text in [
            format!("the basic {KEY} of it"),
            "Authorization: Basic login_and_password_removed".to_owned(),
            "Authorization: Basic dGhlIHVzZXIgaGFzIG5vIHBhc3N3b3Jk".to_owned(),
        ] {
            assert_eq!(found(&text), None, "{text}");
        }
    }

    #[test]
    fn a_login_in_base64_may_stand_apart() {
        // `app:4jF5t3GECb`.
        let login = "YXBwOjRqRjV0M0dFQ2I=";
        for text in [
            format!("AUTH = \"Basic \" + \"{login}\""),
            format!("\"basic\": \"{login}\","),
            format!("'Basic ' . '{login}'"),
        ] {
            assert_eq!(found(&text), Some(login), "{text}");
        }
        for text in [
            format!("\"basic\" and \"{login}\""),
            format!("\"basic\": {{ \"{login}\""),
            // `:4jF5t3GECb`, `app`, and no text.
            "\"basic\": \"OjRqRjV0M0dFQ2I=\"".to_owned(),
            "\"basic\": \"YXBwYXBwYXBw\"".to_owned(),
            "\"basic\": \"authentication\"".to_owned(),
            "'Basic ' . 'x".to_owned(),
            "\"basic\"".to_owned(),
        ] {
            assert_eq!(found(&text), None, "{text}");
        }
    }

    #[test]
    fn schemes_that_everybody_has_are_left() {
        assert_eq!(scheme(b"Token x"), 6);
        assert_eq!(scheme(b"Client-ID x"), 10);
        for value in [&b"Basic x"[..], b"bearer x", b"Token", b"4jF5 x", b" x"] {
            assert_eq!(scheme(value), 0);
        }
    }
}
