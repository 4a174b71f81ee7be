//! What stands beside a secret in its line, with every secret in it masked.
//!
//! Nothing of a candidate, reported or not, is left in a context, nor any other word that could be a
//! value.

use std::ops::Range;

use crate::decode::Encoding;
use crate::finding::Span;

/// Stands for what is masked.
pub(crate) const MASK: char = '…';

/// Characters of a line that are shown on either side of a secret.
const REACH: usize = 120;
/// Words of this length that mix letters and digits could be values.
const VALUE_LEN_MIN: usize = 8;

/// What stands beside a secret in its line, masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context<'s> {
    /// From the start of the line, or from some way before the secret.
    pub before: &'s str,
    /// To the end of the line, or to some way behind the secret.
    pub after: &'s str,
}

/// The bytes of `text` on either side of `secret` that belong to its line, as far as contexts reach.
pub(crate) fn beside(
    text: &[u8],
    secret: Range<usize>,
    encoding: Encoding,
) -> (Range<usize>, Range<usize>) {
    let unit = unit_len(encoding);
    let is_end = |at: usize| line_ends_at(text, at, unit);
    let mut start = secret.start;
    while start >= unit && secret.start - start < REACH * unit && !is_end(start - unit) {
        start -= unit;
    }
    let mut end = secret.end;
    while end + unit <= text.len() && end - secret.end < REACH * unit && !is_end(end) {
        end += unit;
    }
    (start..secret.start, secret.end..end)
}

fn unit_len(encoding: Encoding) -> usize {
    if encoding == Encoding::Utf16 { 2 } else { 1 }
}

/// Whether the unit at `at` is a line end: of UTF-16, in either byte order.
fn line_ends_at(text: &[u8], at: usize, unit: usize) -> bool {
    let unit = &text[at..at + unit];
    matches!(unit, [b'\n' | b'\r'] | [b'\n' | b'\r', 0] | [0, b'\n' | b'\r'])
}

/// Which end of a context touches the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

/// The masked text of `bytes`, the first of which is at `start` in the object. `spans` are the
/// candidates around, and `secret` is the one that the context belongs to.
pub(crate) fn masked(
    bytes: &[u8],
    start: u64,
    side: Side,
    encoding: Encoding,
    secret: &[u8],
    spans: impl Iterator<Item = Span>,
) -> String {
    let mut hidden = vec![false; bytes.len()];
    let mut hide = |range: Range<usize>| hidden[range].fill(true);
    for span in spans {
        let from = span.start.saturating_sub(start).min(bytes.len() as u64) as usize;
        let to = span.end().saturating_sub(start).min(bytes.len() as u64) as usize;
        hide(from..to);
    }
    if secret.len() >= 4 {
        for at in memchr::memmem::find_iter(bytes, secret) {
            hide(at..at + secret.len());
        }
    }
    let unit = unit_len(encoding);
    let text = decoded(bytes, &hidden, unit);
    let is_cut = bytes.len() >= REACH * unit;
    let text = if is_cut { without_cut_word(&text, side) } else { &text };
    let text = without_values(text);
    match side {
        Side::Before => text.trim_start().to_owned(),
        Side::After => text.trim_end().to_owned(),
    }
}

/// As text, with one mask for each run of hidden bytes.
fn decoded(bytes: &[u8], hidden: &[bool], unit: usize) -> String {
    let mut text = String::new();
    let runs = hidden.chunk_by(|a, b| a == b);
    let mut at = 0;
    for run in runs {
        let shown = &bytes[at..at + run.len()];
        at += run.len();
        if run[0] {
            text.push(MASK);
        } else if unit == 1 {
            text.push_str(&String::from_utf8_lossy(shown));
        } else {
            // Of the bytes of a character the one that is not zero comes first or second.
            let is_big = shown.first() == Some(&0);
            let unit = if is_big { u16::from_be_bytes } else { u16::from_le_bytes };
            let units = shown.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
            let lossy = |c: Result<char, _>| c.unwrap_or(char::REPLACEMENT_CHARACTER);
            text.extend(char::decode_utf16(units).map(lossy));
        }
    }
    text
}

/// Ends a word: what is between two of these may be a value.
fn is_delimiter(c: char) -> bool {
    c.is_whitespace()
        || c.is_control()
        || matches!(c, '\'' | '"' | '`')
        || "=:,;()[]{}<>&|".contains(c)
}

/// A word that is cut off could be the rest of a value, which nothing tells any more.
fn without_cut_word(text: &str, side: Side) -> &str {
    match side {
        Side::Before => text.find(is_delimiter).map_or("", |at| &text[at..]),
        Side::After => text.rfind(is_delimiter).map_or("", |at| &text[..at]),
    }
}

fn without_values(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(is_delimiter) {
        let (word, end) = match part.char_indices().next_back() {
            Some((at, last)) if is_delimiter(last) => part.split_at(at),
            _ => (part, ""),
        };
        if could_be_value(word) {
            out.push(MASK);
        } else {
            out.push_str(word);
        }
        out.push_str(end);
    }
    out
}

fn could_be_value(word: &str) -> bool {
    word.len() >= VALUE_LEN_MIN
        && word.contains(|c: char| c.is_ascii_digit())
        && word.contains(|c: char| c.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts(text: &[u8], secret: Range<usize>, encoding: Encoding) -> (String, String) {
        let (before, after) = beside(text, secret.clone(), encoding);
        let bytes = &text[secret];
        let context = |range: Range<usize>, side| {
            masked(&text[range.clone()], range.start as u64, side, encoding, bytes, [].into_iter())
        };
        (context(before, Side::Before), context(after, Side::After))
    }

    #[test]
    fn a_context_is_the_rest_of_the_line() {
        let text = "one\n  let key = \"hunter22\"; // prod\nthree".as_bytes();
        let at = memchr::memmem::find(text, b"hunter22").unwrap();
        let (before, after) = contexts(text, at..at + 8, Encoding::Plain);
        assert_eq!((before.as_str(), after.as_str()), ("let key = \"", "\"; // prod"));
    }

    #[test]
    fn utf16_is_read_as_text() {
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            let text: Vec<u8> = "eins\nö = abc;\r\n".encode_utf16().flat_map(unit).collect();
            let (before, after) = contexts(&text, 18..24, Encoding::Utf16);
            assert_eq!((before.as_str(), after.as_str()), ("ö = ", ";"));
        }
    }

    #[test]
    fn what_could_be_another_value_is_masked() {
        let text = b"user=bob pin=Ab3dEf7h abc hunter22 again=hunter22x, x";
        let (before, after) = contexts(text, 26..34, Encoding::Plain);
        assert_eq!(
            (before.as_str(), after.as_str()),
            ("user=bob pin=\u{2026} abc ", " again=\u{2026}x, x")
        );
    }

    #[test]
    fn a_word_that_is_cut_off_is_left_out() {
        let text = [&[b'a'; 500][..], b" k=SECRET ", &[b'b'; 500]].concat();
        let (before, after) = contexts(&text, 503..509, Encoding::Plain);
        assert_eq!((before.as_str(), after.as_str()), ("k=", ""));
        // What is masked behind the cut makes the text shorter, and the word no less cut off.
        let text = [&b"a".repeat(200)[..], b" SECRET SECRET SECRET k=SECRET"].concat();
        let (before, _) = contexts(&text, 224..230, Encoding::Plain);
        assert_eq!(before, "\u{2026} \u{2026} \u{2026} k=");
    }

    #[test]
    fn candidates_around_are_masked() {
        let text = b"a=first b=second c=third";
        let spans = [Span { start: 2, len: 5 }, Span { start: 19, len: 5 }];
        let before =
            masked(&text[..10], 0, Side::Before, Encoding::Plain, b"second", spans.into_iter());
        let after =
            masked(&text[16..], 16, Side::After, Encoding::Plain, b"second", spans.into_iter());
        assert_eq!((before.as_str(), after.as_str()), ("a=\u{2026} b=", " c=\u{2026}"));
    }
}
