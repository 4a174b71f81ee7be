//! Characters written as numbers: `%41`, `\x41`, `\u0041`.
//!
//! Percent signs are rare and looked for by themselves. Backslashes are not: the first stage of a
//! scan looks for the beginnings of such escapes ([`BACKSLASH_ANCHORS`]) with everything else.
//!
//! - X1: a run with percent signs belongs to the range in which it starts, one with backslashes to
//!   the range in which its first escape stands.

use std::ops::Range;

use crate::limits::MAX_ENCODED_RUN_LEN;

/// Escapes of visible characters begin like this.
pub(crate) const BACKSLASH_ANCHORS: [&str; 7] =
    ["\\u00", "\\x2", "\\x3", "\\x4", "\\x5", "\\x6", "\\x7"];
/// How far before its first escape a run with backslashes is read.
const MAX_BEFORE: usize = 512;

/// Whether `next` may follow an anchor.
pub(crate) fn may_follow(next: u8) -> bool {
    next.is_ascii_hexdigit()
}

/// Calls back with every run of visible characters in `text` that starts in `range` and has an
/// escape with a percent sign in it. Registers (`%eax`) and formats (`%02x`) are none.
pub(crate) fn percent_runs(
    text: &[u8],
    range: Range<usize>,
    on_run: &mut impl FnMut(Range<usize>),
) {
    let mut from = range.start;
    // A run may start in the range and have its first escape behind it.
    let until = (range.end + MAX_ENCODED_RUN_LEN).min(text.len());
    while let Some(found) = memchr::memchr(b'%', &text[from.min(until)..until]) {
        let at = from + found;
        let is_in_text = |byte: u8| (b' '..=b'~').contains(&byte) || byte.is_ascii_whitespace();
        if !escape(&text[at..]).is_some_and(|(byte, _)| is_in_text(byte)) {
            from = at + 1;
            continue;
        }
        let reach = at.saturating_sub(MAX_ENCODED_RUN_LEN / 2);
        let start = at - text[reach..at].iter().rev().take_while(|b| in_run(**b)).count();
        if start >= range.end {
            break;
        }
        let limit = text.len().min(start + MAX_ENCODED_RUN_LEN);
        let end = at + text[at..limit].iter().take_while(|byte| in_run(**byte)).count();
        if start >= range.start {
            on_run(start..end);
        }
        from = end.max(at + 1);
    }
}

/// The run whose first escape with a backslash stands at `at`, if it is the first.
pub(crate) fn backslash_run(text: &[u8], at: usize) -> Option<Range<usize>> {
    let is_escape = |at: usize| text[at] == b'\\' && escape(&text[at..]).is_some();
    let escaped = at.checked_sub(1).is_some_and(|before| text[before] == b'\\');
    if escaped || !is_escape(at) {
        return None;
    }
    let reach = at.saturating_sub(MAX_BEFORE);
    let start = at - text[reach..at].iter().rev().take_while(|b| in_run(**b)).count();
    if (start..at).rev().any(is_escape) {
        return None;
    }
    let limit = text.len().min(start + MAX_ENCODED_RUN_LEN);
    let len = text[at..limit].iter().take_while(|byte| in_run(**byte)).count();
    Some(start..at + len)
}

fn in_run(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`')
}

/// The character of an escape, and how long it is. Characters that no secret has are `?`.
fn escape(text: &[u8]) -> Option<(u8, usize)> {
    let number = |digits: &[u8]| {
        digits
            .iter()
            .try_fold(0, |number: u32, digit| Some(number << 4 | char::from(*digit).to_digit(16)?))
    };
    let (number, len) = match text {
        [b'%', digits @ ..] if digits.len() >= 2 => return Some((number(&digits[..2])? as u8, 3)),
        [b'\\', b'x', digits @ ..] if digits.len() >= 2 => (number(&digits[..2])?, 4),
        [b'\\', b'u', digits @ ..] if digits.len() >= 4 => (number(&digits[..4])?, 6),
        _ => return None,
    };
    Some((u8::try_from(number).unwrap_or(b'?'), len))
}

/// Decodes a run that begins at `origin`, with the start of every decoded byte.
pub(crate) fn decode(run: &[u8], origin: usize, out: &mut Vec<u8>, starts: &mut Vec<u32>) {
    out.clear();
    starts.clear();
    let mut at = 0;
    while at < run.len() {
        starts.push((origin + at) as u32);
        let (byte, len) = match run[at] {
            b'%' | b'\\' => escape(&run[at..]).unwrap_or((run[at], 1)),
            byte => (byte, 1),
        };
        out.push(byte);
        at += len;
    }
    starts.push((origin + run.len()) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_decoded_and_the_rest_stays() {
        let (mut out, mut starts) = (Vec::new(), Vec::new());
        decode(b"a%3Db%zz%4", 10, &mut out, &mut starts);
        assert_eq!(out, b"a=b%zz%4");
        assert_eq!(starts, [10, 11, 14, 15, 16, 17, 18, 19, 20]);
        decode(br"\x41\u0042\u4e2d\n\u00", 0, &mut out, &mut starts);
        assert_eq!(out, br"AB?\n\u00");
        assert_eq!(starts, [0, 4, 10, 16, 17, 18, 19, 20, 21, 22]);
    }

    #[test]
    fn a_percent_run_belongs_to_the_range_in_which_it_starts() {
        let text = b"see q=%20x%20y and \"k%3Dv\" 100% 5%of %eax,%02x %C3";
        let found = |range| {
            let mut found = Vec::new();
            percent_runs(text, range, &mut |run: Range<usize>| found.push(run));
            found
        };
        assert_eq!(found(0..text.len()), [4..14, 20..25]);
        assert_eq!(found(0..5), vec![4..14; 1]);
        assert_eq!(found(5..text.len()), vec![20..25; 1]);
    }

    #[test]
    fn a_backslash_run_is_that_of_its_first_escape() {
        let text = br#"see a\x41b\x42 "\u0041" \\x41 \n"#;
        let runs: Vec<_> = (0..text.len()).filter_map(|at| backslash_run(text, at)).collect();
        assert_eq!(runs, [4..14, 16..22]);
    }
}
