//! Values that a dash or the like joins to their name.

use std::ops::Range;

use super::extent::in_name;
use super::{Assignment, Syntax, name_around};

/// `name-value`: what is behind the credential word are the digits of a key, and part of no name.
pub(in crate::detect) fn joined(
    text: &[u8],
    word: Range<usize>,
) -> Option<(Range<usize>, Assignment)> {
    const MIN_DIGITS: usize = 32;
    const MAX_DIGITS: usize = 128;
    let joint = *text.get(word.end)?;
    if !matches!(joint, b'-' | b'_' | b'.' | b':') {
        return None;
    }
    let start = word.end + 1;
    let rest = &text[start..text.len().min(start + MAX_DIGITS + 1)];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (len, syntax) = match digits {
        MIN_DIGITS.. => (digits, Syntax::Joined),
        _ if joint == b'-' => (groups(rest)?, Syntax::Label),
        _ => return None,
    };
    let ends = rest.get(len).is_none_or(|byte| !in_name(*byte) && !b"/@(=:".contains(byte));
    if len > MAX_DIGITS || !ends {
        return None;
    }
    let name = name_around(&text[..word.end], word)?;
    Some((name, Assignment { value: start..start + len, syntax }))
}

/// How long the letters and digits, in groups, at the start of `rest` are, if they are no words: those
/// have few digits.
fn groups(rest: &[u8]) -> Option<usize> {
    const MIN_LEN: usize = 20;
    if !rest.get(..MIN_LEN)?.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let in_group = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let len = rest.iter().take_while(in_group).count();
    let digits = rest[..len].iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_word = matches!(rest.get(letters), Some(b'-' | b'_'));
    // One long group of both cases is no word, either.
    let is_mixed = len >= 28
        && digits >= 2
        && rest[..len].iter().all(u8::is_ascii_alphanumeric)
        && rest[..len].iter().any(u8::is_ascii_uppercase)
        && rest[..len].iter().any(u8::is_ascii_lowercase);
    (len >= MIN_LEN && (digits * 5 >= len || is_mixed) && !is_word).then_some(len)
}
