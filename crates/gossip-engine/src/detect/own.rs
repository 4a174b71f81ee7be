//! What of a value is somebody's own.
//!
//! People make up secrets of the words that say what they are: `quicktalk#secret`, `mysupersecret731`. Where nothing
//! but a secret stands, such a value counts if anything of it is neither what everybody takes nor asks for another
//! one.

use super::vocabulary;
use crate::ignore_case;

const LEN_MIN: usize = 6;
const LEN_MAX: usize = 64;
/// How many letters or digits are somebody's own.
const OWN_MIN: usize = 3;

/// Words that everybody takes: what is made of nothing else is an example.
#[rustfmt::skip]
const SHARED: &[&str] = &[
    "a", "access", "admin", "aws", "an", "and", "any", "api", "app", "application", "auth", "authentication", "backend", "base",
    "cat", "code", "cookie", "crypto", "default", "demo", "dev", "develop", "development", "django", "encrypt", "encryption",
    "env", "express", "fallback", "flask", "guest", "for", "hash", "in", "is", "json", "jwt", "key", "keyboard", "keys", "local",
    "long", "login", "master", "mern", "mega", "my", "network", "next", "node", "nodejs", "of", "only", "our", "pass", "password", "phrase",
    "private", "prod", "production", "project", "public", "react", "refresh", "salt", "secret", "secrets", "secure",
    "security", "server", "service", "session", "sessions", "sh", "shh", "shhh", "sign", "signing", "some", "strong", "string",
    "super", "that", "the", "this", "to", "token", "tokens", "top", "ultra", "user", "users", "value", "very", "web",
    "webtoken", "website", "wifi", "with", "wlan", "word",
];

/// Parts of a value that ask for another one in its place, or say what it is for.
#[rustfmt::skip]
const ASKING: &[&str] = &[
    "atleast", "at_least", "at-least", "change", "characters", "dummy", "enter", "example", "fake", "generate",
    "insert", "minimum", "mock", "must", "not_", "not-", "placeholder", "random", "replace", "sample", "something", "test",
    "todo", "whatever", "xxx", "your",
];

/// Whether somebody chose the value as a secret.
pub(super) fn is_chosen(value: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-#@!$^&*+=~?,; ".contains(byte);
    let blanks = value.iter().filter(|byte| **byte == b' ').count();
    // Where something is read from is called so.
    let is_constant = value.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_');
    (LEN_MIN..=LEN_MAX).contains(&value.len())
        && value.iter().all(is_plain)
        && value.first().is_some_and(u8::is_ascii_alphanumeric)
        && blanks <= 2
        && !is_constant
        && !asks(value)
        && (has_own_word(value) || has_own_number(value))
}

/// Whether the value asks for another one in its place.
fn asks(value: &[u8]) -> bool {
    ignore_case::contains_any(value, ASKING) || ignore_case::ends_with_any(value, &["here"])
}

fn has_own_word(value: &[u8]) -> bool {
    // A word by itself may be one that says what to do: `forgotten`.
    if vocabulary::is_known(value) {
        return false;
    }
    let runs = value.split(|byte| !byte.is_ascii_alphabetic());
    runs.filter(|run| run.len() >= OWN_MIN).any(|run| !is_shared(run))
}

/// Whether a run of letters is made of what everybody has: `mysupersecretkey`.
fn is_shared(run: &[u8]) -> bool {
    // Up to which letter it is, by what ends there.
    let mut reached = [false; LEN_MAX + 1];
    reached[0] = true;
    for end in 1..=run.len() {
        reached[end] = SHARED.iter().any(|word| {
            let start = end.checked_sub(word.len());
            start.is_some_and(|start| {
                reached[start] && run[start..end].eq_ignore_ascii_case(word.as_bytes())
            })
        });
    }
    reached[run.len()]
}

/// Whether it has digits that are no year and do not count up.
pub(super) fn has_own_number(value: &[u8]) -> bool {
    let numbers = value.split(|byte| !byte.is_ascii_digit());
    let is_year = |number: &[u8]| matches!(number, [b'1', b'9', _, _] | [b'2', b'0', _, _]);
    let counts =
        |number: &[u8]| number.windows(2).all(|pair| pair[1] == pair[0] + 1 || pair[1] == pair[0]);
    numbers
        .filter(|number| number.len() >= OWN_MIN)
        .any(|number| !is_year(number) && !counts(number))
}

/// Whether it is a number that somebody may have chosen: no port, no year, and no digits in order.
pub(super) fn is_number(value: &[u8]) -> bool {
    (6..=12).contains(&value.len()) && value.iter().all(u8::is_ascii_digit) && has_own_number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_of_it_is_somebodys_own() {
        for value in [
            "quicktalk#secret",
            "mysupersecret731",
            "thatsmyotter",
            "hereBeOtters",
            "otter token",
            "71934428",
        ] {
            assert!(is_chosen(value.as_bytes()), "{value}");
        }
        for value in [
            "secret",
            "mysupersecretkey",
            "jwt_secret_2025",
            "supersecret123",
            "keyboard cat",
            "your-otter",
            "otter_goes_here",
            "changeOtter",
            "OTTER_LADDER",
            "ABCSECRETKEY",
            "otter/ladder",
            "$otterladder",
            "12345678",
            "thisisasecret",
        ] {
            assert!(!is_chosen(value.as_bytes()), "{value}");
        }
    }
}
