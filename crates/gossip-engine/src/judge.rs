//! What speaks against a match: too little entropy, a stand-in for a value, a comment that allows
//! it.

use crate::ignore_case;

/// Shannon entropy in bits per byte.
pub(crate) fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let len = bytes.len() as f64;
    let bits = |count: &u32| {
        let share = f64::from(*count) / len;
        -share * share.log2()
    };
    counts.iter().filter(|count| **count > 0).map(bits).sum()
}

/// Words that people write where a value belongs. All long enough not to turn up by chance.
const WORDS: [&str; 22] = [
    "example",
    "placeholder",
    "changeme",
    "change_me",
    "change-me",
    "your_",
    "your-",
    "yourkey",
    "yourtoken",
    "yoursecret",
    "yourapi",
    "insert_",
    "insert-",
    "replace_",
    "replace-",
    "redacted",
    "dummy",
    "xxxx",
    "lorem",
    "not_a_real",
    "notareal",
    "foobar",
];

/// Whether the value only shows where a value would be. `public_len` bytes at its start belong to
/// the format and are not looked at.
pub(crate) fn is_placeholder(secret: &[u8], public_len: usize) -> bool {
    let body = &secret[public_len.min(secret.len())..];
    ignore_case::contains_any(body, &WORDS)
        || memchr::memmem::find(body, b"${").is_some()
        || memchr::memmem::find(body, b"{{").is_some()
        || (body.first() == Some(&b'<') && body.last() == Some(&b'>'))
        || is_monotonous(body)
}

/// One character over and over, or few different ones: `abababab`, `00000001`.
fn is_monotonous(body: &[u8]) -> bool {
    const MAX_SAME: usize = 7;
    let mut same = 1;
    for pair in body.windows(2) {
        same = if pair[0] == pair[1] { same + 1 } else { 1 };
        if same >= MAX_SAME {
            return true;
        }
    }
    let mut seen = [false; 256];
    body.iter().for_each(|byte| seen[usize::from(*byte)] = true);
    body.len() >= 8 && seen.iter().filter(|seen| **seen).count() <= 3
}

/// Whether the alphabet or the digits stand in the value in order: somebody typed it. It may still
/// be in use.
pub(crate) fn looks_typed(secret: &[u8]) -> bool {
    const MAX_RISING: usize = 9;
    let mut rising = 1;
    secret.windows(2).any(|pair| {
        let next = pair[0].wrapping_add(1) == pair[1] || pair == b"90";
        rising = if next { rising + 1 } else { 1 };
        rising >= MAX_RISING
    })
}

/// Whether the value is a line of a block of base64, between two others of its length that begin in
/// another way: a token that only happens to begin so. The lines may be strings of a program.
pub(crate) fn is_line_of_block(text: &[u8], value: std::ops::Range<usize>) -> bool {
    const MIN_LINE: usize = 60;
    const MAX_LINE: usize = 80;
    const SHARED: usize = 4;
    if !(MIN_LINE..=MAX_LINE).contains(&value.len()) {
        return false;
    }
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let between = |byte: &u8| byte.is_ascii_whitespace() || b"\"',+".contains(byte);
    let behind = &text[value.end..text.len().min(value.end + 2 * MAX_LINE)];
    let behind = behind.strip_prefix(b"\\n").unwrap_or(behind);
    let next = &behind[behind.iter().take_while(|byte| between(byte)).count()..];
    let next = &next[..next.iter().take_while(|byte| is_digit(byte)).count()];
    let ahead = &text[value.start.saturating_sub(2 * MAX_LINE)..value.start];
    let ahead = &ahead[..ahead.len() - ahead.iter().rev().take_while(|byte| between(byte)).count()];
    let ahead = ahead.strip_suffix(b"\\n").unwrap_or(ahead);
    let last = ahead.iter().rev().take_while(|byte| is_digit(byte)).count();
    let last = &ahead[ahead.len() - last..];
    let value = &text[value];
    let is_other = |line: &[u8]| line.len() == value.len() && line[..SHARED] != value[..SHARED];
    is_other(next) && is_other(last)
}

/// Whether the value is part of a checksum, as lists of files write them: `sha256=r8_Drq…`, `sha512-…`.
pub(crate) fn is_in_checksum(text: &[u8], start: usize) -> bool {
    /// That of SHA-512 in base64.
    const MAX_LEN: usize = 88;
    const ALGORITHMS: [&[u8]; 4] = [b"sha1", b"sha256", b"sha384", b"sha512"];
    let before = &text[start.saturating_sub(MAX_LEN)..start];
    let in_checksum = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_+/".contains(byte);
    let run = before.iter().rev().take_while(|byte| in_checksum(byte)).count();
    let (before, run) = before.split_at(before.len() - run);
    let is_behind = before
        .strip_suffix(b"=")
        .is_some_and(|before| ALGORITHMS.iter().any(|algorithm| before.ends_with(algorithm)));
    let begins =
        |algorithm: &&[u8]| run.strip_prefix(*algorithm).is_some_and(|rest| rest.starts_with(b"-"));
    is_behind || ALGORITHMS.iter().any(begins)
}

/// Comments that allow what stands on their line.
const ALLOW_COMMENTS: [&[u8]; 2] = [b"gossip:allow", b"gitleaks:allow"];

/// Whether a line of these has a comment that allows a finding.
pub(crate) fn is_allowed_by_comment(lines: &[u8]) -> bool {
    memchr::memmem::find(lines, b":allow").is_some()
        && ALLOW_COMMENTS.iter().any(|comment| memchr::memmem::find(lines, comment).is_some())
}

/// The lines that `start..end` touches, as far as `reach` bytes on either side.
pub(crate) fn lines_around(text: &[u8], start: usize, end: usize, reach: usize) -> &[u8] {
    let from = start.saturating_sub(reach);
    let to = (end + reach).min(text.len());
    let line_start = memchr::memrchr(b'\n', &text[from..start]).map_or(from, |at| from + at + 1);
    let line_end = memchr::memchr(b'\n', &text[end..to]).map_or(to, |at| end + at);
    &text[line_start..line_end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_within_a_checksum_is_told() {
        for text in ["a.py,sha256=r8_", "sha512-abc/r8_", "x sha384-", "sha1=ab-cd_"] {
            assert!(is_in_checksum(text.as_bytes(), text.len()), "{text}");
        }
        for text in ["sha256: ", "sha512-abc ", "key=abc", "asha9-", "", "sha256=abc,"] {
            assert!(!is_in_checksum(text.as_bytes(), text.len()), "{text}");
        }
    }

    #[test]
    fn entropy_of_known_distributions() {
        assert_eq!(entropy(b"aaaa"), 0.0);
        assert_eq!(entropy(b"abab"), 1.0);
        assert_eq!(entropy(b"abcdefgh"), 3.0);
    }

    #[test]
    fn stand_ins_are_recognised_behind_their_prefix() {
        for text in [
            "your-key-here",
            "ghp_xxxxxxxxxxxxxxxx",
            "AKIAIOSFODNN7EXAMPLE",
            "${TOKEN}",
            "{{ var }}",
            "<api-key>",
            "aaaaaaaaaaaa",
            "sk_live_0000000000",
            "abababababab",
        ] {
            assert!(
                is_placeholder(text.as_bytes(), 4.min(text.len()))
                    || is_placeholder(text.as_bytes(), 0),
                "{text}"
            );
        }
        assert!(!is_placeholder(b"q8Zr2LmT0vXbN5wKcJ7d", 0));
        assert!(looks_typed(b"0123456789abcdef"));
        assert!(looks_typed(b"x.abcdefghi"));
        assert!(!looks_typed(b"q8Zr2LmT0vXbN5wKcJ7d"));
    }

    #[test]
    fn a_line_of_base64_is_told_from_a_token() {
        let line = |first: &str| format!("{first}{}", "a1B2".repeat(15));
        let value = line("EAAA");
        for (ahead, behind) in [("", "\n"), ("    ", "\r\n"), ("\"", "\\n\"\n")] {
            let lines = |all: [&str; 3]| all.map(|line| format!("{ahead}{line}{behind}")).concat();
            let check = |text: &str| {
                let start = text.find(&value).unwrap();
                is_line_of_block(text.as_bytes(), start..start + value.len())
            };
            assert!(check(&lines([&line("MIIE"), &value, &line("x7+/")])));
            assert!(!check(&lines(["token:", &value, &line("x7+/")])));
            assert!(!check(&lines([&value, &value, &value])), "a list of tokens");
            assert!(!check(&value));
        }
    }

    #[test]
    fn an_allow_comment_counts_on_its_own_line_only() {
        let text = b"a = 1 # gossip:allow\nb = 2\nc = 3 // gitleaks:allow\n";
        assert!(is_allowed_by_comment(lines_around(text, 4, 5, 1024)));
        assert!(!is_allowed_by_comment(lines_around(text, 25, 26, 1024)));
        assert!(is_allowed_by_comment(lines_around(text, 31, 32, 1024)));
        assert!(!is_allowed_by_comment(b"goSSip:allow"));
    }
}
