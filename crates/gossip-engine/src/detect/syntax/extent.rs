//! Where a name begins and ends.

use std::ops::Range;

use crate::detect::name::MAX_SIDE;

/// The name around the credential word at `word`. None if it is longer than a name is.
pub(in crate::detect) fn name_around(text: &[u8], word: Range<usize>) -> Option<Range<usize>> {
    let floor = word.start.saturating_sub(MAX_SIDE);
    // East Asia joins words by nothing: `WiFi密码`.
    let is_apart = text[word.start] >= 0xE3;
    let before = text[floor..word.start].iter().rev();
    let start = word.start - before.take_while(|byte| !is_apart && in_name(**byte)).count();
    // `…\npassword: …` in a string: the letter belongs to the line's end.
    let is_escaped = start > floor && start < word.start && text[start - 1] == b'\\';
    let start = start + usize::from(is_escaped && matches!(text[start], b'n' | b'r' | b't'));
    if start == floor && floor > 0 && !is_apart && in_name(text[floor - 1]) {
        return None;
    }
    let rest = &text[word.end..text.len().min(word.end + MAX_SIDE + 1)];
    let ahead = rest.iter().take_while(|byte| in_name(**byte)).count();
    if ahead > MAX_SIDE {
        return None;
    }
    let mut end = word.end + ahead;
    while end > word.end && matches!(text[end - 1], b'-' | b'.') {
        end -= 1;
    }
    Some(start..end)
}

/// Where the name begins if it is written as several words: `API key: …`, `secret access key …`. No
/// further back than `floor`.
pub(in crate::detect) fn phrase(text: &[u8], name: &Range<usize>, floor: usize) -> usize {
    const WORDS: [&str; 10] = [
        "access",
        "account",
        "api",
        "app",
        "auth",
        "client",
        "encryption",
        "license",
        "private",
        "secret",
    ];
    const MAX_WORDS: usize = 3;
    let mut start = name.start;
    for _ in 0..MAX_WORDS {
        let Some((b' ', before)) = text[floor..start].split_last() else { break };
        let is_last = |word: &&str| {
            let rest = before.len().checked_sub(word.len());
            rest.is_some_and(|at| {
                before[at..].eq_ignore_ascii_case(word.as_bytes())
                    && !at.checked_sub(1).is_some_and(|at| before[at].is_ascii_alphanumeric())
            })
        };
        let Some(word) = WORDS.iter().find(|word| is_last(word)) else { break };
        start -= word.len() + 1;
    }
    start
}

/// Whether names have this byte, in any language.
pub(super) fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}
