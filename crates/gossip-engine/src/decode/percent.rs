//! Percent-encoded runs: `%41`.

use std::ops::Range;

use crate::limits::MAX_ENCODED_RUN_LEN;

/// Calls back with every run of visible characters in `text` that starts in `range` and has an
/// escape in it.
pub(crate) fn runs(text: &[u8], range: Range<usize>, on_run: &mut impl FnMut(Range<usize>)) {
    let mut from = range.start;
    // A run may start in the range and have its first escape behind it.
    let until = (range.end + MAX_ENCODED_RUN_LEN).min(text.len());
    while let Some(found) = memchr::memchr(b'%', &text[from.min(until)..until]) {
        let at = from + found;
        if escape(&text[at..]).is_none() {
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

fn in_run(byte: u8) -> bool {
    byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'`')
}

fn escape(text: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    match text {
        [b'%', high, low, ..] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    }
}

/// Decodes a run that begins at `origin`, with the start of every decoded byte.
pub(crate) fn decode(run: &[u8], origin: usize, out: &mut Vec<u8>, starts: &mut Vec<u32>) {
    out.clear();
    starts.clear();
    let mut at = 0;
    while at < run.len() {
        starts.push((origin + at) as u32);
        match escape(&run[at..]) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(run[at]);
                at += 1;
            }
        }
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
    }

    #[test]
    fn a_run_belongs_to_the_range_in_which_it_starts() {
        let text = b"see q=%20x%20y and \"k%3Dv\" 100% 5%of";
        let found = |range| {
            let mut found = Vec::new();
            runs(text, range, &mut |run: Range<usize>| found.push(run));
            found
        };
        assert_eq!(found(0..text.len()), [4..14, 20..25]);
        assert_eq!(found(0..5), vec![4..14; 1]);
        assert_eq!(found(5..text.len()), vec![20..25; 1]);
    }
}
