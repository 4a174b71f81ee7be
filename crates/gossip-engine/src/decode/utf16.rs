//! UTF-16 text, of either byte order, with a mark or without, anywhere in the bytes.
//!
//! Secrets are ASCII, so a run is ASCII characters whose other bytes are zero. Text without zero
//! bytes is recognised as having none by one search.

use std::ops::Range;

use crate::limits::MIN_UTF16_RUN_CHARS;

/// Calls back with every run of pairs that lies in `text` and reaches into `range`: its bytes, and
/// where in a pair the character is.
pub(crate) fn runs(text: &[u8], range: Range<usize>, on_run: &mut impl FnMut(Range<usize>, usize)) {
    let mut from = 0;
    while let Some(found) = memchr::memchr(0, &text[from..]) {
        let zero = from + found;
        // Of several zeros only the last can be part of a character; a hole in a file has billions.
        let zeros = text[zero..].iter().position(|byte| *byte != 0).unwrap_or(text.len() - zero);
        let zero = zero + zeros - 1;
        if !may_be_run(text, zero) {
            from = zero + 1;
            continue;
        }
        // Little-endian puts the character before the zero. Behind a character that is not ASCII,
        // whose zero it is, the next begins after it: both orders fit there, and files of UTF-16 are
        // aligned. Failing that, it is big-endian.
        let is_high_byte = zero % 2 == 1;
        let (start, count, character) = [
            zero.checked_sub(1).map(|start| (start, 0)),
            is_high_byte.then_some((zero + 1, 0)),
            Some((zero, 1)),
        ]
        .into_iter()
        .flatten()
        .map(|(start, character)| (start, pairs(text, start, character), character))
        .find(|(_, count, _)| *count >= MIN_UTF16_RUN_CHARS)
        .unwrap_or((zero, 0, 0));
        let end = start + count * 2;
        if count < MIN_UTF16_RUN_CHARS {
            from = zero + 1;
            continue;
        }
        if start < range.end && end > range.start {
            on_run(start..end, character);
        }
        from = end;
    }
}

/// Whether every second byte behind a zero is one, as in a run of either order that the zero is the
/// first of: in binary data most zeros are refused by this.
fn may_be_run(text: &[u8], zero: usize) -> bool {
    (1..MIN_UTF16_RUN_CHARS).all(|pair| text.get(zero + 2 * pair) == Some(&0))
}

/// How many pairs from `start` on hold an ASCII character, `character` bytes into the pair.
fn pairs(text: &[u8], start: usize, character: usize) -> usize {
    let is_text = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    text[start..]
        .chunks_exact(2)
        .take_while(|pair| is_text(pair[character]) && pair[1 - character] == 0)
        .count()
}

/// The characters of a run.
pub(crate) fn decode(run: &[u8], character: usize, out: &mut Vec<u8>) {
    out.clear();
    out.extend(run.chunks_exact(2).map(|pair| pair[character]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str, big: bool) -> Vec<u8> {
        let unit = |unit: u16| if big { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(unit).collect()
    }

    fn found(text: &[u8]) -> Vec<String> {
        let mut found = Vec::new();
        runs(text, 0..text.len(), &mut |run, character| {
            let mut out = Vec::new();
            decode(&text[run], character, &mut out);
            found.push(String::from_utf8(out).unwrap());
        });
        found
    }

    #[test]
    fn both_byte_orders_with_and_without_a_mark() {
        let line = "token = abcdef123456";
        for big in [false, true] {
            for mark in ["", "\u{FEFF}"] {
                let text = encoded(&format!("{mark}{line}"), big);
                assert_eq!(found(&text), [line], "big-endian {big}, mark {mark:?}");
            }
        }
    }

    #[test]
    fn text_of_one_byte_per_character_has_no_run() {
        assert_eq!(found(b"plain text, nothing else, really nothing"), [] as [&str; 0]);
        assert_eq!(found(&[0; 64]), [] as [&str; 0]);
    }

    #[test]
    fn a_run_ends_at_other_characters() {
        let text = encoded("first run of text \u{4E2D} second run of text", false);
        assert_eq!(found(&text), ["first run of text ", " second run of text"]);
    }

    /// The zero of `ü` was taken for the first byte of what follows, and spans began a byte early.
    #[test]
    fn a_run_behind_another_letter_begins_with_its_own_character() {
        for big in [false, true] {
            let text = encoded("schl\u{fc}ssel = abcdef123456", big);
            let mut starts = Vec::new();
            runs(&text, 0..text.len(), &mut |run, _| starts.push(run.start));
            assert_eq!(starts, [10], "big-endian {big}");
        }
    }
}
