//! Secrets in names: what a built-in rule finds in a path, or in a line for people, is masked wherever it is
//! shown or written, as it is in the text of files.

use std::borrow::Cow;
use std::sync::{Mutex, OnceLock};

use gossip_engine::{BadChecksum, Engine, Options, RuleSet, Scratch};

/// A word that is shorter than this is no secret, unless something names it as one.
const WORD_MIN: usize = 8;

/// The same without what a rule takes for a secret. Most names cannot have one, and cost nothing.
pub(crate) fn masked(text: &[u8]) -> Cow<'_, [u8]> {
    if !may_have_secret(text) {
        return Cow::Borrowed(text);
    }
    static SCRATCH: Mutex<Option<Scratch>> = Mutex::new(None);
    let mut scratch = SCRATCH.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut found = Vec::new();
    engine().scan(scratch.get_or_insert_default(), text, None, &mut |secret| {
        let redacted = secret.secret().redact().to_string();
        // The length is of no use in a name.
        let shown = redacted.split_once(" (").map_or(redacted.as_str(), |(shown, _)| shown);
        let (start, len) = (secret.span().start as usize, secret.span().len as usize);
        found.push((start, start + len, shown.to_owned()));
    });
    if found.is_empty() {
        return Cow::Borrowed(text);
    }
    found.sort();
    let (mut masked, mut at) = (Vec::with_capacity(text.len()), 0);
    for (start, end, shown) in found {
        if start >= at {
            masked.extend_from_slice(&text[at..start]);
            masked.extend_from_slice(shown.as_bytes());
        }
        at = at.max(end);
    }
    masked.extend_from_slice(&text[at..]);
    Cow::Owned(masked)
}

/// Whether there is a word that mixes letters and digits, or something that stands beside a name.
fn may_have_secret(text: &[u8]) -> bool {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mixes = |word: &[u8]| {
        word.len() >= WORD_MIN
            && word.iter().any(u8::is_ascii_digit)
            && word.iter().any(u8::is_ascii_alphabetic)
    };
    text.iter().any(|byte| matches!(byte, b'=' | b'@'))
        || text.split(|byte| !is_of_word(byte)).any(mixes)
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
}
