//! Passwords in files of notes, chats, mails and tickets that no word announces: `root q8Zr2LmT`, or a
//! message that consists of nothing else.
//!
//! These files are few, so every word of them is read, and no literal is looked for. What counts is how a word
//! looks, and what stands before it on its line: the less this says, the more the word must look like a password.

mod before;
mod files;
mod shape;
mod words;

use std::ops::Range;

use before::Cue;
pub(super) use files::{is_note, of_folder};
use shape::Looks;

use super::Detected;
use crate::finding::Reason;
use crate::rules::Confidence;

/// How much a value must look like a password behind what says so much, at the end of its line or before it.
fn needed(cue: Cue, is_last: bool) -> Option<Looks> {
    match cue {
        Cue::Otherwise | Cue::Cell => None,
        Cue::Named | Cue::Account | Cue::User => Some(Looks::Word),
        Cue::Alone | Cue::Sign if is_last => Some(Looks::Made),
        Cue::Said | Cue::Sign => Some(Looks::Sure),
        Cue::Nothing | Cue::Alone => Some(Looks::Random),
    }
}

/// So many are looked for in one part of a file: where there are more, it is a list of words.
const MAX_FOUND: usize = 512;
/// Longer words are keys, addresses or text without blanks.
const MAX_WORD: usize = 64;
/// How much of its line before a word is looked at.
const MAX_BEFORE: usize = 96;
/// How much behind it.
const MAX_BEHIND: usize = 32;

/// What is before the line is looked at where nothing stands before a word: the line before, and how it ends.
const MAX_TAIL: usize = 42;
pub(super) const REACH_BEFORE: usize = 2 * MAX_WORD + MAX_BEFORE + MAX_TAIL;
pub(super) const REACH_AFTER: usize = MAX_WORD + MAX_BEHIND;

/// Calls back with the passwords that begin in `owned`.
pub(super) fn detect(text: &[u8], owned: Range<usize>, on_found: &mut dyn FnMut(Detected)) {
    let mut at = owned.start;
    // What begins before is told where it begins.
    if at > 0 && !is_gap(text[at - 1]) {
        at += Word::read(&text[at..]).len;
    }
    let mut left = MAX_FOUND;
    while at < owned.end && left > 0 {
        if is_gap(text[at]) {
            at += 1;
            continue;
        }
        let word = Word::read(&text[at..]);
        let place = at..at + word.len;
        at = place.end;
        if word.may_be_one()
            && let Some(secret) = password(text, place)
        {
            let whole = secret.clone();
            let (confidence, reason) = (Confidence::Low, Reason::Noted);
            on_found(Detected { whole, secret, confidence, reason });
            left -= 1;
        }
    }
}

/// What a byte is; most words are told by this to be words of a sentence.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < classes.len() {
        let byte = at as u8;
        // Blanks, quotes, tags, and most characters that are no letters of Europe.
        let is_gap = !byte.is_ascii_graphic()
            || matches!(byte, b'"' | b'`' | b'<' | b'>' | b'|' | b',' | b';' | b'{' | b'}');
        classes[at] |= if is_gap { GAP } else { 0 };
        classes[at] |= if byte.is_ascii_digit() { DIGIT } else { 0 };
        classes[at] |= if byte.is_ascii_uppercase() { CAPITAL } else { 0 };
        classes[at] |= if byte.is_ascii_lowercase() { SMALL } else { 0 };
        classes[at] |= if shape::is_sign(byte) { SIGN } else { 0 };
        at += 1;
    }
    classes
};
const GAP: u8 = 1;
const DIGIT: u8 = 2;
const CAPITAL: u8 = 4;
const SIGN: u8 = 8;
const SMALL: u8 = 16;

fn is_gap(byte: u8) -> bool {
    CLASSES[usize::from(byte)] & GAP != 0
}

/// A word, as far as a look at each of its bytes tells.
struct Word {
    len: usize,
    any: u8,
    capitals: usize,
}

impl Word {
    fn read(rest: &[u8]) -> Self {
        let mut word = Self { len: 0, any: 0, capitals: 0 };
        for byte in rest {
            let class = CLASSES[usize::from(*byte)];
            if class & GAP != 0 {
                break;
            }
            word.len += 1;
            word.any |= class;
            word.capitals += usize::from(class & CAPITAL != 0);
        }
        word
    }

    /// Whether it has what words of a sentence do not have.
    fn may_be_one(&self) -> bool {
        /// Of letters only so many are capitals in no name of a product.
        const CAPITALS_MIN: usize = 4;
        let is_unlike_words = self.any & (DIGIT | SIGN) != 0 || self.capitals >= CAPITALS_MIN;
        let has_letter = self.any & (CAPITAL | SMALL) != 0;
        (shape::LEN_MIN..=MAX_WORD).contains(&self.len) && has_letter && is_unlike_words
    }
}

/// The password in a word, if it is one.
fn password(text: &[u8], word: Range<usize>) -> Option<Range<usize>> {
    if is_part_of_word(text, &word) {
        return None;
    }
    let inside = without_marks(text, word.clone());
    // The signs may have been the marks.
    if !Word::read(&text[inside.clone()]).may_be_one() {
        return None;
    }
    candidate(text, &word, inside.clone()).or_else(|| behind_user(text, &inside))
}

/// Whether a letter that is no ASCII stands beside: what is cut out of a word is none.
fn is_part_of_word(text: &[u8], word: &Range<usize>) -> bool {
    let is_letter = |lead: Option<&u8>| lead.is_some_and(|lead| (0xC3..0xE0).contains(lead));
    let before = word.start.checked_sub(2).and_then(|at| text.get(at));
    is_letter(before) || is_letter(text.get(word.end))
}

/// Without the marks around a word, and what ends a sentence.
fn without_marks(text: &[u8], word: Range<usize>) -> Range<usize> {
    const PAIRS: [(u8, u8); 8] = [
        (b'(', b')'),
        (b'[', b']'),
        (b'{', b'}'),
        (b'*', b'*'),
        (b'_', b'_'),
        (b'\'', b'\''),
        (b'@', b'@'),
        (b'=', b'='),
    ];
    let mut word = word;
    loop {
        let inside = &text[word.clone()];
        let (Some(first), Some(last)) = (inside.first(), inside.last()) else { return word };
        if inside.len() > 2 && PAIRS.contains(&(*first, *last)) {
            word = word.start + 1..word.end - 1;
        } else if inside.ends_with(b"**") {
            word.end -= 2;
        } else if inside.starts_with(b"**") {
            word.start += 2;
        } else if b".,;:)]}'?".contains(last) || is_unpaired(inside) {
            word.end -= 1;
        } else if b"(['".contains(first) {
            word.start += 1;
        } else {
            return word;
        }
    }
}

/// Whether a mark that ends a phrase stands behind a word: `the *Great Guide*`.
fn is_unpaired(word: &[u8]) -> bool {
    match word.split_last() {
        Some((b'*' | b'_', word)) => word.iter().all(u8::is_ascii_alphabetic),
        _ => false,
    }
}

/// The whole word, if what stands before it and its looks say that it is a password.
fn candidate(text: &[u8], word: &Range<usize>, value: Range<usize>) -> Option<Range<usize>> {
    // Before anything else, as most words are in a dictionary.
    let looks = Looks::of(&text[value.clone()])?;
    let line = line_before(text, word.start);
    let behind = &text[word.end..text.len().min(word.end + MAX_BEHIND)];
    let cue = before::cue(line);
    let needed = needed(cue, ends(behind))?;
    let is_other = || {
        is_cut(text, word)
            || is_folded(text, word, line)
            || before::is_in_tag(line)
            || before::is_of_header(line)
            || ends_block(text, word.start, line)
    };
    (looks >= needed && !is_other()).then_some(value)
}

/// Whether a sign that separates words stands within what may be a longer password: a part of it would be shown.
fn is_cut(text: &[u8], word: &Range<usize>) -> bool {
    let [sign @ (b',' | b';' | b'"' | b'`' | b'{' | b'}'), next, ..] = text[word.end..] else {
        return false;
    };
    let is_cell = word.start.checked_sub(1).is_some_and(|at| text[at] == sign);
    let goes_on = next.is_ascii_alphanumeric() || shape::is_sign(next);
    goes_on && !(is_cell && matches!(sign, b',' | b';'))
}

/// Whether the line before goes on with this word, or the next one does, as lines of mails do.
fn is_folded(text: &[u8], word: &Range<usize>, line: &[u8]) -> bool {
    let before = &text[..word.start - line.len()];
    let ends_line = matches!(text.get(word.end), Some(b'\r' | b'\n'));
    (line.is_empty() && (before.ends_with(b"=\n") || before.ends_with(b"=\r\n")))
        || (ends_line && text[..word.end].ends_with(b"="))
}

/// Whether the line before is all of digits of base64, as those of attachments and signatures are.
fn ends_block(text: &[u8], at: usize, line: &[u8]) -> bool {
    const TAIL: usize = 40;
    const _: () = assert!(TAIL + 2 <= MAX_TAIL);
    let Some(end) = (at - line.len()).checked_sub(1) else { return false };
    let before = &text[end.saturating_sub(TAIL)..end];
    let before = before.strip_suffix(b"\r").unwrap_or(before);
    let in_block = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    line.trim_ascii().is_empty() && before.len() + 1 >= TAIL && before.iter().all(in_block)
}

/// `root:value`, `eva.k/value`: the value behind a user in the same word.
fn behind_user(text: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let inside = &text[word.clone()];
    let sign = inside.iter().position(|byte| matches!(byte, b':' | b'/'))?;
    let (user, value) = (&inside[..sign], &inside[sign + 1..]);
    let value = without_host(value);
    // `org.acme:acme-core2:1.0`
    if value.contains(&b':') {
        return None;
    }
    if is_cut(text, word) {
        return None;
    }
    let start = word.start + sign + 1;
    let needed = needed(before::user(user)?, true)?;
    (Looks::of(value)? >= needed).then_some(start..start + value.len())
}

/// Without the host that a client of a database is told to connect to: `value@host:1521/name`.
fn without_host(value: &[u8]) -> &[u8] {
    let in_host = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_:/".contains(byte);
    match memchr::memrchr(b'@', value) {
        Some(at) if value[at..].contains(&b':') && value[at + 1..].iter().all(in_host) => {
            &value[..at]
        }
        _ => value,
    }
}

/// Whether the line, or the message, ends behind a value but for marks and what is said of it in parentheses.
fn ends(behind: &[u8]) -> bool {
    // The string that holds a message.
    if matches!(behind, [b'"', b',' | b'}' | b']', ..]) {
        return true;
    }
    let is_mark = |byte: &&u8| b"\"`)]}*_'.,;!".contains(byte);
    let rest = &behind[behind.iter().take_while(is_mark).count()..];
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let rest = &rest[rest.iter().take_while(is_blank).count()..];
    rest.first().is_none_or(|byte| b"\r\n(<|".contains(byte))
}

/// What stands before `at` on its line, as far as it is looked at.
fn line_before(text: &[u8], at: usize) -> &[u8] {
    let before = &text[at.saturating_sub(MAX_BEFORE)..at];
    &before[memchr::memrchr(b'\n', before).map_or(0, |end| end + 1)..]
}

#[cfg(test)]
mod tests;
