//! Base64 runs: where they are, and what they say.
//!
//! A run of at least twice a block's length covers some block whole, so only whole blocks are looked
//! for, sixteen bytes at a time and without branches. Lines of equal length that follow each other,
//! as tools write them, are one run.

use std::ops::Range;

use super::hex;
use crate::limits::{MAX_ENCODED_RUN_LEN, MIN_BASE64_RUN_LEN};

const INVALID: u8 = 0xFF;

/// Both alphabets at once: they differ in the last two characters only, which never mix.
const VALUES: [u8; 256] = {
    let mut values = [INVALID; 256];
    let mut at = 0;
    while at < 26 {
        values[b'A' as usize + at] = at as u8;
        values[b'a' as usize + at] = at as u8 + 26;
        at += 1;
    }
    at = 0;
    while at < 10 {
        values[b'0' as usize + at] = at as u8 + 52;
        at += 1;
    }
    values[b'+' as usize] = 62;
    values[b'-' as usize] = 62;
    values[b'/' as usize] = 63;
    values[b'_' as usize] = 63;
    values
};

const BLOCK: usize = 16;
/// Blocks that are looked at together.
const BATCH: usize = 64;
const _: () = assert!(MIN_BASE64_RUN_LEN >= 2 * BLOCK - 1);
/// Of a run with one whole block in it, one side or the other has half a block.
const _: () = assert!(MIN_BASE64_RUN_LEN - BLOCK >= BLOCK - 1);

/// Which of the blocks have no byte below all digits: blanks, line ends, quotes and brackets are, and
/// most blocks of text have one. Without branches, as a processor would guess them wrong. Returns how
/// many.
#[inline(never)]
fn without_low_bytes(blocks: &[[u8; BLOCK]], found: &mut [u8; BATCH]) -> usize {
    let mut count = 0;
    for (at, block) in blocks.iter().enumerate() {
        found[count % BATCH] = at as u8;
        count += usize::from(!block.iter().fold(false, |low, byte| low | (*byte < b'+')));
    }
    count
}

/// Whether all bytes are digits. Arithmetic instead of the table, so that the compiler takes all
/// bytes at once.
#[inline(always)]
fn are_digits<const LEN: usize>(bytes: &[u8; LEN]) -> bool {
    let mut others = 0u8;
    for &byte in bytes {
        let letter = (byte | 0x20).wrapping_sub(b'a') < 26;
        let slash_or_number = byte.wrapping_sub(b'/') < 11;
        let plus_or_minus = (byte == b'+') | (byte == b'-');
        others |= u8::from(!(letter | slash_or_number | plus_or_minus | (byte == b'_')));
    }
    others == 0
}

/// Whether dashes join words, names or the digits of a UUID, which logs have in each line. Of base64 one block
/// in thousands has a dash and letters of one case only.
#[inline(always)]
fn is_grouped(block: &[u8; BLOCK]) -> bool {
    let has = |kind: fn(u8) -> bool| block.iter().fold(false, |any, byte| any | kind(*byte));
    has(|byte| byte == b'-')
        && !(has(|byte| byte.is_ascii_uppercase()) && has(|byte| byte.is_ascii_lowercase()))
}

/// Whether a run that is long enough may go through the block at `at`: then at least half of a block
/// before it or behind it is part of the run. Long names go through whole blocks too, and most end
/// soon.
fn may_be_long(text: &[u8], at: usize) -> bool {
    let half = |from: usize| {
        let bytes = text.get(from..from + BLOCK / 2);
        bytes.and_then(|bytes| bytes.try_into().ok()).is_some_and(are_digits::<{ BLOCK / 2 }>)
    };
    half(at + BLOCK) || at.checked_sub(BLOCK / 2).is_some_and(half)
}

fn is_digit(byte: u8) -> bool {
    VALUES[usize::from(byte)] != INVALID
}

/// Calls back with every run in `text` that starts in `range` and may be base64 of something.
pub(crate) fn runs(
    text: &[u8],
    range: Range<usize>,
    on_run: &mut impl FnMut(Range<usize>, Digits),
) {
    // A run that starts at the end of the range has its first whole block behind it.
    let until = text.len().min(range.end + 2 * BLOCK - 1);
    let (blocks, _) = text[range.start..until].as_chunks::<BLOCK>();
    let mut found = [0; BATCH];
    let mut at = range.start;
    // Behind the run before.
    let mut free = at;
    for batch in blocks.chunks(BATCH) {
        let count = without_low_bytes(batch, &mut found);
        for &block in &found[..count] {
            let (block, at) = (&batch[usize::from(block)], at + usize::from(block) * BLOCK);
            if at >= free && are_digits(block) && !is_grouped(block) && may_be_long(text, at) {
                free = run_through(text, at, &range, on_run);
            }
        }
        at += batch.len() * BLOCK;
    }
}

/// Calls back with the run that goes through the block at `at`, if it is one of the range. Returns
/// where it ends.
fn run_through(
    text: &[u8],
    at: usize,
    range: &Range<usize>,
    on_run: &mut impl FnMut(Range<usize>, Digits),
) -> usize {
    let before = text[..at].iter().rev().take_while(|byte| is_digit(**byte)).count();
    let start = at - before;
    let end = at + BLOCK + digits(&text[at + BLOCK..]);
    // Most are names and paths, and shorter.
    if end - start < MIN_BASE64_RUN_LEN {
        return end;
    }
    let end = end_of_lines(text, start, end);
    // A run that starts before the range belongs to whoever has that range.
    if range.contains(&start) {
        let run = start..end.min(start + MAX_ENCODED_RUN_LEN);
        if let Some(kind) = kind(&text[run.clone()]) {
            on_run(run, kind);
        }
    }
    end
}

fn digits(text: &[u8]) -> usize {
    let (blocks, _) = text.as_chunks::<BLOCK>();
    let whole = blocks.iter().take_while(|block| are_digits(block)).count() * BLOCK;
    whole + text[whole..].iter().take_while(|byte| is_digit(**byte)).count()
}

/// Where a run whose first line is `start..end` ends: after the last of the lines that go on with
/// it. Only the last may be shorter than the first.
fn end_of_lines(text: &[u8], start: usize, end: usize) -> usize {
    const MIN_LINE_LEN: usize = 60;
    let len = end - start;
    if len < MIN_LINE_LEN || !len.is_multiple_of(4) {
        return end;
    }
    let mut end = end;
    while end - start < MAX_ENCODED_RUN_LEN {
        let rest = &text[end..];
        let Some(line_end) = [b"\n".as_slice(), b"\r\n"].into_iter().find(|e| rest.starts_with(e))
        else {
            break;
        };
        let indented = &rest[line_end.len()..];
        let indent = indented.iter().take(40).take_while(|byte| is_blank(**byte)).count();
        let next = digits(&indented[indent..]);
        if next == 0 || next > len {
            break;
        }
        end += line_end.len() + indent + next;
        if next < len {
            break;
        }
    }
    end
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// What a run's digits may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    Base64,
    Hex,
}

fn kind(run: &[u8]) -> Option<Digits> {
    if looks_encoded(run) {
        Some(Digits::Base64)
    } else if hex::is_run(&run[hex::prefix_len(run)..]) {
        Some(Digits::Hex)
    } else {
        None
    }
}

/// Encoded text has letters of both cases and digits; names, paths and hexadecimal do not.
fn looks_encoded(run: &[u8]) -> bool {
    let has = |kind: fn(u8) -> bool| {
        let (blocks, rest) = run[..run.len().min(256)].as_chunks::<BLOCK>();
        // Whole blocks without branches, all bytes at once.
        let in_block = |block: &[u8; BLOCK]| block.iter().fold(false, |any, b| any | kind(*b));
        blocks.iter().any(in_block) || rest.iter().any(|byte| kind(*byte))
    };
    has(|byte| byte.is_ascii_uppercase())
        && has(|byte| byte.is_ascii_digit())
        && has(|byte| byte.is_ascii_lowercase())
}

/// Whether decoded bytes may be text, UTF-16 included. Most runs that look encoded are names and
/// paths, which decode to rubbish, or pictures.
pub(crate) fn may_be_text(decoded: &[u8]) -> bool {
    const LOOK: usize = 48;
    let is_text = |byte: &&u8| matches!(**byte, b' '..=b'~' | b'\t' | b'\n' | b'\r' | 0);
    let mostly = |bytes: &[u8]| bytes.iter().filter(is_text).count() * 5 >= bytes.len() * 3;
    let start = &decoded[..decoded.len().min(LOOK)];
    let middle = &decoded[decoded.len() / 2..];
    mostly(start) || mostly(&middle[..middle.len().min(LOOK)])
}

/// Decodes up to the first character that is none, as far as `out` goes. Returns the length.
pub(crate) fn decode_into(text: &[u8], out: &mut [u8]) -> usize {
    let mut len = 0;
    let mut bits = 0u32;
    let mut held = 0;
    for &byte in text {
        let value = VALUES[usize::from(byte)];
        if value == INVALID || len == out.len() {
            break;
        }
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            out[len] = (bits >> held) as u8;
            len += 1;
        }
    }
    len
}

/// Decodes a run of one line into `out`, which is cleared first.
pub(crate) fn decode(run: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.resize(run.len() * 3 / 4, 0);
    let len = decode_into(run, out);
    out.truncate(len);
}

/// Decodes a run of several lines that begins at `origin`, with the place of every digit. False if
/// it is of one line only.
pub(crate) fn decode_lines(
    run: &[u8],
    origin: usize,
    out: &mut Vec<u8>,
    places: &mut Vec<u32>,
) -> bool {
    if memchr::memchr(b'\n', run).is_none() {
        return false;
    }
    out.clear();
    places.clear();
    let mut bits = 0u32;
    for (at, &byte) in run.iter().enumerate().filter(|(_, byte)| is_digit(**byte)) {
        bits = bits << 6 | u32::from(VALUES[usize::from(byte)]);
        places.push((origin + at) as u32);
        // The first of four digits completes no byte.
        let held = places.len() % 4;
        if held != 1 {
            out.push((bits >> [0, 0, 4, 2][held]) as u8);
        }
    }
    true
}

/// For templates and tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alphabet {
    Standard,
    UrlSafe,
}

/// Encodes without padding.
pub(crate) fn encode(bytes: &[u8], alphabet: Alphabet) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let digit = |value: usize| match (value, alphabet) {
        (62, Alphabet::Standard) => '+',
        (63, Alphabet::Standard) => '/',
        (62, Alphabet::UrlSafe) => '-',
        (63, Alphabet::UrlSafe) => '_',
        (value, _) => char::from(digits[value]),
    };
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().fold(0usize, |word, byte| word << 8 | usize::from(*byte));
        let bits = chunk.len() * 8;
        for at in 0..(bits).div_ceil(6) {
            let shift = bits as isize - 6 * (at as isize + 1);
            let value = if shift >= 0 { word >> shift } else { word << -shift };
            text.push(digit(value & 63));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(text: &[u8], range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        runs(text, range, &mut |run, digits| {
            assert_eq!(digits, Digits::Base64);
            found.push(run);
        });
        found
    }

    #[test]
    fn a_block_is_sixteen_digits() {
        for byte in 0..=u8::MAX {
            let mut block = [b'x'; BLOCK];
            block[usize::from(byte) % BLOCK] = byte;
            assert_eq!(are_digits(&block), is_digit(byte), "{byte}");
        }
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            for alphabet in [Alphabet::Standard, Alphabet::UrlSafe] {
                let mut out = Vec::new();
                decode(encode(&bytes, alphabet).as_bytes(), &mut out);
                prop_assert_eq!(&out, &bytes);
            }
        }

        #[test]
        fn lines_are_decoded_as_one_and_every_digit_has_its_place(
            bytes in prop::collection::vec(any::<u8>(), 100..300),
            width in prop::sample::select(vec![60usize, 64, 76]),
            line_end in prop::sample::select(vec!["\n", "\r\n", "\n  "]),
        ) {
            let encoded = encode(&bytes, Alphabet::Standard);
            let lines: Vec<_> = encoded
                .as_bytes()
                .chunks(width)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let text = lines.join(line_end);
            let end = end_of_lines(text.as_bytes(), 0, width);
            prop_assert_eq!(end, text.len());
            let (mut out, mut places) = (Vec::new(), Vec::new());
            prop_assert!(decode_lines(text.as_bytes(), 7, &mut out, &mut places));
            prop_assert_eq!(out, bytes);
            let digits: Vec<u8> =
                places.iter().map(|place| text.as_bytes()[*place as usize - 7]).collect();
            prop_assert_eq!(digits, encoded.as_bytes());
        }

        #[test]
        fn a_run_is_found_wherever_it_stands(
            before in "[ .!\"]{0,40}",
            length in MIN_BASE64_RUN_LEN..90,
            after in "[ .!\"]{0,40}",
        ) {
            let run: String = "aB3dE5gH".chars().cycle().take(length).collect();
            let text = format!("{before}{run}{after}");
            let expected = before.len()..before.len() + length;
            prop_assert_eq!(found(text.as_bytes(), 0..text.len()), vec![expected]);
        }

        #[test]
        fn ranges_that_meet_share_no_run(cut in 0usize..120) {
            let text = format!("{} {} ", "aB3d".repeat(12), "eF6h".repeat(15));
            let cut = cut.min(text.len());
            let mut both = found(text.as_bytes(), 0..cut);
            both.extend(found(text.as_bytes(), cut..text.len()));
            prop_assert_eq!(both, vec![0..48, 49..109]);
        }
    }
}
