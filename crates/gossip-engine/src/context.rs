//! What stands beside a secret in its line, with every secret in it masked.
//!
//! - N1: a context holds nothing that a rule at work or a built-in rule takes for a secret, be it
//!   reported or not; nor what is the same bytes.
//! - N2: nor any other word that could be a value.
//! - N3: both are decided with more of the text in sight than is shown: what makes a value of a word
//!   may lie further off.
//! - N4: a line that is crowded with secrets has no context: it would be masks, and a megabyte of such
//!   lines would take a second.

mod known;
mod values;

use std::ops::Range;

use crate::detect;
use crate::finding::Span;
use crate::position::Units;

pub(crate) use known::{BLOCK, Known, MARGIN};

/// Stands for what is masked.
pub(crate) const MASK: char = '…';

/// Characters of a line that are shown on either side of a secret.
const REACH: usize = 120;
/// Characters on either side of a secret that decide about what is shown (N3).
const SIGHT: usize = 256;
/// How many bytes that are, at most.
pub(crate) const SIGHT_BYTES: usize = 2 * SIGHT;
/// Shorter values are masked where they stand, but not wherever the same bytes are.
const REPEATED_LEN_MIN: usize = 4;
/// As many secrets in sight, in one line, are a crowd (N4).
const CROWD: usize = 24;

/// What stands beside a secret in its line, masked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Context<'s> {
    /// From the start of the line, or from some way before the secret.
    pub before: &'s str,
    /// To the end of the line, or to some way behind the secret.
    pub after: &'s str,
}

/// Where a secret stands in the text that is in sight of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sight {
    /// The secret, in the text.
    pub(crate) secret: Range<usize>,
    /// Its line, or as much of it as is in sight.
    line: Range<usize>,
    units: Units,
}

impl Units {
    /// As the characters beside a secret are written, so are its own. Secrets are ASCII, so of UTF-16 they
    /// tell the byte order, which other characters do not.
    fn of(secret: &[u8]) -> Self {
        match secret {
            [0, second, ..] if *second != 0 => Self::Utf16Be,
            [first, 0, ..] if *first != 0 => Self::Utf16Le,
            _ => Self::Bytes,
        }
    }

    const fn size(self) -> usize {
        match self {
            Self::Bytes => 1,
            Self::Utf16Le | Self::Utf16Be => 2,
        }
    }

    fn decode(self, bytes: &[u8], text: &mut String) {
        let unit = match self {
            Self::Bytes => return text.push_str(&String::from_utf8_lossy(bytes)),
            Self::Utf16Le => u16::from_le_bytes,
            Self::Utf16Be => u16::from_be_bytes,
        };
        let units = bytes.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let lossy = |c: Result<char, _>| c.unwrap_or(char::REPLACEMENT_CHARACTER);
        text.extend(char::decode_utf16(units).map(lossy));
    }
}

impl Sight {
    /// What is in sight of `secret`: a range of `text`, and where the secret stands in it.
    pub(crate) fn of(text: &[u8], secret: Range<usize>) -> (Range<usize>, Self) {
        let units = Units::of(&text[secret.clone()]);
        let unit = units.size();
        let reach = SIGHT * unit;
        let start = secret.start.saturating_sub(reach);
        let end = text.len().min(secret.end + reach);
        let is_end = |at: usize| line_ends_at(text, at, unit);
        let mut line = secret.clone();
        while line.start >= start + unit && !is_end(line.start - unit) {
            line.start -= unit;
        }
        while line.end + unit <= end && !is_end(line.end) {
            line.end += unit;
        }
        let inside = |range: Range<usize>| range.start - start..range.end - start;
        (start..end, Self { secret: inside(secret), line: inside(line), units })
    }

    /// What stands before and behind the secret, masked. `bytes` are what is in sight, of which the
    /// first is at `start` in the object; `spans` are what is taken for a secret there, and `value` is
    /// what the secret was decoded to.
    pub(crate) fn masked(
        &self,
        bytes: &[u8],
        start: u64,
        value: &[u8],
        spans: impl Iterator<Item = Span>,
    ) -> (String, String) {
        let Some(hidden) = self.hidden(bytes, start, value, spans) else {
            return (String::new(), String::new());
        };
        let unit = self.units.size();
        let text = |range: Range<usize>| decoded(&bytes[range.clone()], &hidden[range], self.units);
        let before = text(self.line.start..self.secret.start);
        let after = text(self.secret.end..self.line.end);
        let (mut before, mut after) = values::without(&before, &after);
        // What is in sight may begin or end within a word; so may what is shown.
        if self.line.start < unit && self.secret.start >= (SIGHT - 1) * unit {
            before = without_cut_word(&before, Side::Before).to_owned();
        }
        if self.line.end - self.secret.end + unit > SIGHT * unit {
            after = without_cut_word(&after, Side::After).to_owned();
        }
        let before = within_reach(&before, Side::Before).trim_start().to_owned();
        let after = within_reach(&after, Side::After).trim_end().to_owned();
        (before, after)
    }

    /// Which bytes are masked (N1); None in a crowd (N4).
    fn hidden(
        &self,
        bytes: &[u8],
        start: u64,
        value: &[u8],
        spans: impl Iterator<Item = Span>,
    ) -> Option<Vec<bool>> {
        let mut hidden = vec![false; bytes.len()];
        let mut repeated = vec![&bytes[self.secret.clone()], value];
        let inside = |at: u64| at.saturating_sub(start).min(bytes.len() as u64) as usize;
        for span in spans {
            let range = inside(span.start)..inside(span.end());
            hidden[range.clone()].fill(true);
            repeated.push(&bytes[range]);
        }
        // By what is masked, as one secret may be in `spans` more than once.
        let line = hidden[self.line.clone()].chunk_by(|a, b| a == b);
        if line.filter(|run| run[0]).count() >= CROWD {
            return None;
        }
        // What is written with escapes may stand beside as it is.
        let plain: Vec<_> = repeated.iter().filter_map(|value| detect::unescaped(value)).collect();
        repeated.extend(plain.iter().map(Vec::as_slice));
        let repeated = Repeated::of(repeated);
        // Nothing but the line is shown.
        for at in self.line.clone() {
            for value in repeated.starting(&bytes[at..self.line.end]) {
                hidden[at..at + value.len()].fill(true);
            }
        }
        Some(hidden)
    }
}

/// How many hashes of first bytes are told apart.
const HASHES: usize = 4096;

/// Values that are looked for at each place of a line, which may be full of them.
struct Repeated<'b> {
    /// Each with its first bytes, in order.
    values: Vec<(u32, &'b [u8])>,
    /// Which first bytes there are, by their hash: most places begin no value.
    firsts: [u64; HASHES / 64],
}

impl<'b> Repeated<'b> {
    fn of(values: Vec<&'b [u8]>) -> Self {
        let with_first = |value: &'b [u8]| Some((first(value)?, value));
        let mut values: Vec<_> = values.into_iter().filter_map(with_first).collect();
        // A line may repeat one value, which is not to be sorted.
        values.dedup();
        values.sort_unstable();
        values.dedup();
        let mut firsts = [0; HASHES / 64];
        for hash in values.iter().map(|(first, _)| Self::hash(*first)) {
            firsts[hash / 64] |= 1 << (hash % 64);
        }
        Self { values, firsts }
    }

    /// Those that `text` starts with.
    fn starting(&self, text: &[u8]) -> impl Iterator<Item = &'b [u8]> {
        let is_known = |first: &u32| {
            let hash = Self::hash(*first);
            self.firsts[hash / 64] & (1 << (hash % 64)) != 0
        };
        let begins = first(text).filter(is_known);
        let from = begins.map_or(self.values.len(), |begins| {
            self.values.partition_point(|(first, _)| *first < begins)
        });
        let values = self.values[from..].iter();
        let values = values.take_while(move |(first, _)| begins == Some(*first));
        values.map(|(_, value)| *value).filter(move |value| text.starts_with(value))
    }

    fn hash(first: u32) -> usize {
        (first.wrapping_mul(0x9e37_79b1) >> (32 - HASHES.ilog2())) as usize
    }
}

/// The first bytes of a value, None if it is too short to be looked for.
fn first(value: &[u8]) -> Option<u32> {
    value.first_chunk::<REPEATED_LEN_MIN>().map(|first| u32::from_le_bytes(*first))
}

/// Whether the unit at `at` is a line end: of UTF-16, in either byte order.
fn line_ends_at(text: &[u8], at: usize, unit: usize) -> bool {
    let unit = &text[at..at + unit];
    matches!(unit, [b'\n' | b'\r'] | [b'\n' | b'\r', 0] | [0, b'\n' | b'\r'])
}

/// Which end of a context touches the secret.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// As text, with one mask for each run of hidden bytes.
fn decoded(bytes: &[u8], hidden: &[bool], units: Units) -> String {
    let mut text = String::new();
    let runs = hidden.chunk_by(|a, b| a == b);
    let mut at = 0;
    for run in runs {
        let shown = &bytes[at..at + run.len()];
        at += run.len();
        if run[0] {
            text.push(MASK);
        } else {
            units.decode(shown, &mut text);
        }
    }
    text
}

/// What of a context is shown: no more than [`REACH`] characters.
fn within_reach(text: &str, side: Side) -> &str {
    let far = match side {
        Side::Before => text.char_indices().rev().nth(REACH - 1),
        Side::After => text.char_indices().nth(REACH),
    };
    match (far, side) {
        (Some((at, _)), Side::Before) if at > 0 => without_cut_word(&text[at..], side),
        (Some((at, _)), Side::After) => without_cut_word(&text[..at], side),
        _ => text,
    }
}

/// A word that is cut off could be the rest of a value, which nothing tells any more.
fn without_cut_word(text: &str, side: Side) -> &str {
    match side {
        Side::Before => text.find(values::is_delimiter).map_or("", |at| &text[at..]),
        Side::After => text.rfind(values::is_delimiter).map_or("", |at| &text[..at]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contexts_beside(text: &[u8], secret: Range<usize>, spans: &[Span]) -> (String, String) {
        let value = &text[secret.clone()];
        let (seen, sight) = Sight::of(text, secret);
        let start = seen.start as u64;
        sight.masked(&text[seen], start, value, spans.iter().copied())
    }

    fn contexts(text: &[u8], secret: Range<usize>) -> (String, String) {
        contexts_beside(text, secret, &[])
    }

    #[test]
    fn a_context_is_the_rest_of_the_line() {
        let text = "one\n  let key = \"hunter22\"; // prod\nthree".as_bytes();
        let at = memchr::memmem::find(text, b"hunter22").unwrap();
        let (before, after) = contexts(text, at..at + 8);
        assert_eq!((before.as_str(), after.as_str()), ("let key = \"", "\"; // prod"));
    }

    #[test]
    fn utf16_is_read_as_text() {
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            let text: Vec<u8> = "eins\nö = abc;\r\n".encode_utf16().flat_map(unit).collect();
            let (before, after) = contexts(&text, 18..24);
            assert_eq!((before.as_str(), after.as_str()), ("ö = ", ";"));
        }
    }

    /// One of their bytes is zero, the other one than in ASCII.
    #[test]
    fn characters_that_look_like_the_other_byte_order_do_not_turn_it() {
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            for first in ["\u{3000}", "\u{2000}", "\u{100}"] {
                let encoded =
                    |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(unit).collect() };
                let before = encoded(&format!("eins\n{first}password=swordfish t="));
                let text = [&before[..], &encoded("abc"), &encoded(&format!("{first}, pw=abc\n"))];
                let secret = before.len()..before.len() + 6;
                let (before, after) = contexts(&text.concat(), secret);
                assert!(before.ends_with("password=\u{2026} t="), "{before}");
                assert!(after.ends_with(", pw=\u{2026}"), "{after}");
            }
        }
    }

    #[test]
    fn what_could_be_another_value_is_masked() {
        let text = b"user=bob pin=Ab3dEf7h abc hunter22 again=hunter22x, x";
        let (before, after) = contexts(text, 26..34);
        assert_eq!(
            (before.as_str(), after.as_str()),
            ("user=bob pin=\u{2026} abc ", " again=\u{2026}x, x")
        );
    }

    #[test]
    fn a_word_that_is_cut_off_is_left_out() {
        let text = [&[b'a'; 900][..], b" k=SECRET ", &[b'b'; 900]].concat();
        let (before, after) = contexts(&text, 903..909);
        assert_eq!((before.as_str(), after.as_str()), ("k=", ""));
        // What is masked behind the cut makes the text shorter, and the word no less cut off.
        let text = [&b"a".repeat(200)[..], b" SECRET SECRET SECRET k=SECRET"].concat();
        let (before, _) = contexts(&text, 224..230);
        assert_eq!(before, "\u{2026} \u{2026} \u{2026} k=");
        // So does one that is cut off where sight ends.
        let hidden = b"SECRET ".repeat(80);
        let text = [&b"lettersonly"[..], b" ", &hidden, b"k=SECRET"].concat();
        let at = text.len() - 6;
        let (before, _) = contexts(&text, at..at + 6);
        assert!(!before.contains("SECRET") && !before.contains("only"), "{before}");
    }

    /// The name of a value may be too far off to be shown.
    #[test]
    fn a_value_is_masked_whose_name_is_out_of_reach() {
        let text = format!("password = \"swordfish, {}and more\", k=SECRET", "and ".repeat(50));
        let at = text.len() - 6;
        let (before, _) = contexts(text.as_bytes(), at..at + 6);
        assert_eq!(before, "password = \"\u{2026}\", k=");
    }

    /// What escapes stand for is the secret, too.
    #[test]
    fn a_secret_is_masked_as_it_is_written_and_as_it_is() {
        for text in [
            "password=\"zwetschg&#101;\"/> also zwetschge here",
            "\"password\": \"zwetschg\\u0065\", \"hint\": \"try zwetschge now\"",
            "mysql://app:zwetschge%2Dotter@db.acme.io/x and zwetschge-otter plain",
        ] {
            let start = text.find("zwetschg").unwrap();
            let len = text[start..].find(['"', '@']).unwrap();
            let (_, after) = contexts(text.as_bytes(), start..start + len);
            assert!(!after.contains("zwetschge"), "{after}");
        }
    }

    /// Secrets in other lines are none of the crowd, and a secret that several rules found is one.
    #[test]
    fn a_line_that_is_crowded_with_secrets_has_no_context() {
        let beside = |secrets: usize, end: &str| {
            let text = [&b"k=SECRET"[..], end.as_bytes(), &b"a=123456 ".repeat(secrets)].concat();
            let span = |at: usize| Span { start: (8 + end.len() + 2 + 9 * at) as u64, len: 6 };
            let spans: Vec<_> = (0..secrets).flat_map(|at| [span(at), span(at)]).collect();
            contexts_beside(&text, 2..8, &spans)
        };
        assert_eq!(beside(CROWD - 1, " ").0, "k=");
        assert_eq!(beside(CROWD, " ").0, "");
        assert_eq!(beside(CROWD, " ").1, "");
        assert_eq!(beside(CROWD, "\n").0, "k=");
    }

    #[test]
    fn candidates_around_are_masked_wherever_they_stand() {
        let text = b"a=first b=second c=third first";
        let spans = [Span { start: 2, len: 5 }, Span { start: 19, len: 5 }];
        let (before, after) = contexts_beside(text, 10..16, &spans);
        assert_eq!((before.as_str(), after.as_str()), ("a=\u{2026} b=", " c=\u{2026} \u{2026}"));
    }
}
