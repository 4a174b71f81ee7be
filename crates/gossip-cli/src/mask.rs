//! Secrets in names: what a built-in rule finds in a path, or in a line for people, is masked wherever it is
//! shown or written, as it is in the text of files.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock};

use gossip_engine::{BadChecksum, Engine, Options, RuleSet, Scratch};

/// A word of letters and digits that is shorter than this is no secret, unless something names it as one.
const MIXED_MIN: usize = 8;
/// The same for a word of one kind.
const WORD_MIN: usize = 16;
/// And for one behind a colon.
const NAMED_MIN: usize = 6;

/// A name without the words in which a rule finds a secret.
pub(crate) fn masked(name: &[u8]) -> Cow<'_, [u8]> {
    static SCRATCH: Mutex<Option<Scratch>> = Mutex::new(None);
    let mut scratch = SCRATCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut found = Vec::new();
    engine().scan(scratch.get_or_insert_default(), name, None, &mut |secret| {
        let redacted = secret.secret().redact().to_string();
        // The length is of no use in a name.
        let shown = redacted.split_once(" (").map_or(redacted.as_str(), |(shown, _)| shown);
        let (start, len) = (secret.span().start as usize, secret.span().len as usize);
        let (word_start, word_end) = word_around(name, start, start + len);
        // What stands before it in its word may be one, too: two tokens without a gap.
        let before = if word_start < start { "…" } else { "" };
        found.push((word_start, word_end, format!("{before}{shown}")));
    });
    if found.is_empty() {
        return Cow::Borrowed(name);
    }
    found.sort();
    let (mut masked, mut at) = (Vec::with_capacity(name.len()), 0);
    for (start, end, shown) in found {
        if start >= at {
            masked.extend_from_slice(&name[at..start]);
            masked.extend_from_slice(shown.as_bytes());
        }
        at = at.max(end);
    }
    masked.extend_from_slice(&name[at..]);
    Cow::Owned(masked)
}

/// The same of a line for people. Most have no name that a secret could be in, and cost nothing: setting up
/// the rules takes longer than most commands do.
pub(crate) fn masked_line(line: &[u8]) -> Cow<'_, [u8]> {
    if may_have_secret(line) { masked(line) } else { Cow::Borrowed(line) }
}

/// Bytes that a word is made of; an escaped one has `%`.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'%' | b'+')
}

/// From where to where the word goes that a secret is in, or the words at its ends.
fn word_around(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let before = text[..start].iter().rev().take_while(|byte| is_of_word(**byte)).count();
    let behind = text[end..].iter().take_while(|byte| is_of_word(**byte)).count();
    (start - before, end + behind)
}

/// Whether there is a long word, one that mixes letters and digits, or something that stands beside a name.
fn may_have_secret(text: &[u8]) -> bool {
    let is_long = |word: &[u8]| {
        let mixes = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
        word.len() >= if mixes { MIXED_MIN } else { WORD_MIN }
    };
    let is_named = |rest: &[u8]| {
        let word = rest.trim_ascii_start();
        word.iter().take_while(|byte| is_of_word(**byte)).count() >= NAMED_MIN
    };
    text.iter().any(|byte| matches!(byte, b'=' | b'@' | b'%'))
        || text.split(|byte| !is_of_word(*byte)).any(is_long)
        || text.split(|byte| *byte == b':').skip(1).any(is_named)
}

fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(|| {
        let (allow_comments, bad_checksum) = (false, BadChecksum::Distrust);
        let options = Options { allow_comments, bad_checksum, ..Options::default() };
        Engine::new(RuleSet::builtin(), options)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_names_are_masked_and_other_names_are_left() {
        let token = gossip_engine::template::expand("ghp_{base62:30}{crc32}", 1).unwrap().text;
        let path = format!("backup/{token}/{token}.txt");
        assert_eq!(masked(path.as_bytes()), "backup/ghp_…/ghp_….txt".as_bytes());
        for name in [
            "src/main.rs",
            "target/debug/deps/serde-0123456789abcdef.d",
            "commit message of 0123456789abcdef0123456789abcdef01234567",
            "naïve=\u{1f511}",
        ] {
            assert_eq!(masked(name.as_bytes()), name.as_bytes());
        }
        assert_eq!(&*masked(b"\xff=\xfe"), b"\xff=\xfe");
    }

    #[test]
    fn the_whole_word_around_a_secret_is_masked() {
        let [one, other] = [1, 2].map(|seed| {
            gossip_engine::template::expand("ghp_{base62:30}{crc32}", seed).unwrap().text
        });
        let escaped: String = one.bytes().map(|byte| format!("%{byte:02x}")).collect();
        for (name, shown) in [
            (format!("a/{one}{other}.txt"), "a/…ghp_….txt"),
            (format!("a/old-{one}.txt"), "a/…ghp_….txt"),
            ("AKIAQWERTYUIOPASDFGH.txt".to_owned(), "AKIA….txt"),
            (format!("a/{escaped}.txt"), "a/ghp_….txt"),
        ] {
            assert_eq!(String::from_utf8_lossy(&masked(name.as_bytes())), shown);
            let line = format!("a line about {name}");
            assert!(matches!(masked_line(line.as_bytes()), Cow::Owned(_)), "{name}");
        }
        for line in ["run 1: 3 items (0 unchanged), 45 B read, 1 finding", "interrupted; go on"] {
            assert!(!may_have_secret(line.as_bytes()), "{line}");
        }
        assert!(may_have_secret(b"password: hunters"));
    }
}
