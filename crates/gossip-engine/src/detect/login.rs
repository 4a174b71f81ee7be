//! A user and a password with a slash between them, as people note them down: `vpn: app / …`; and two strings of
//! code, the first of which is a user that machines have: `("10.0.0.1", "root", "…")`.
//!
//! Prose has a slash between any two words. So the line must speak of something that one logs in to, or
//! the user be called as users are, and the less it says, the more the value must look like a password.

use std::ops::Range;

use super::Detected;
use super::chosen;
use super::file_kind::FileKind;
use super::place;
use super::users;
use super::value;
use crate::finding::Reason;
use crate::ignore_case;
use crate::rules::Confidence;

#[rustfmt::skip]
pub(super) const ANCHORS: [&str; 9] = [
    " / ", "\"root\", \"", "'root', '", "\"admin\", \"", "'admin', '", "\"administrator\", \"", "'administrator', '", "\"sa\", \"",
    "'sa', '",
];

const MAX_USER: usize = 48;
/// What stands before the user in the line.
const MAX_CUE: usize = 56;
const MAX_MARKS: usize = 16;
const LEN: std::ops::RangeInclusive<usize> = 5..=48;

pub(super) const REACH_BEFORE: usize = MAX_CUE + MAX_USER + MAX_MARKS + 1;
pub(super) const REACH_AFTER: usize = MAX_MARKS + *LEN.end() + MAX_MARKS + 4;

/// What a value weighs at least that is hardly a word, a random one, and one of letters only.
const NO_WORD_BITS: f32 = 10.0;
const RANDOM_BITS: f32 = 16.0;
const RANDOM_LETTERS_BITS: f32 = 24.0;

/// What a line has that tells how to log in, in several languages.
#[rustfmt::skip]
const CUES: &[&str] = &[
    "acceso", "accès", "acesso", "account", "admin", "anmeld", "banco", "compte", "conta", "creds", "credential", "cuenta", "database",
    "datenbank", "db", "ftp", "hesab", "identifiant", "idrac", "ilo", "inlog", "konto", "log in", "log-in", "login", "logon", "nas",
    "panel", "password", "portal", "router", "sql", "ssh", "user", "usuario", "usuário", "vpn", "web console", "webmail", "wifi", "zugang", "testzugang",
];

pub(super) fn may_follow(word: &[u8], next: u8) -> bool {
    next.is_ascii_alphanumeric() || (word == b" / " && b"`*\"'<_".contains(&next))
}

pub(super) fn detect(text: &[u8], kind: FileKind, word: Range<usize>) -> Option<Detected> {
    match text[word.start] {
        b' ' => noted(text, kind, word),
        _ => passed(text, word),
    }
}

/// The string behind that of a user.
fn passed(text: &[u8], word: Range<usize>) -> Option<Detected> {
    let rest = &text[word.end..text.len().min(word.end + *LEN.end() + 1)];
    let len = memchr::memchr(text[word.end - 1], rest)?;
    let secret = word.end..word.end + len;
    let is_password = LEN.contains(&len) && looks(&rest[..len]) >= Looks::Random;
    is_password.then_some(detected(word.start, secret))
}

fn detected(start: usize, secret: Range<usize>) -> Detected {
    let (confidence, reason) = (Confidence::Low, Reason::Noted);
    Detected { whole: start..secret.end, secret, confidence, reason }
}

fn noted(text: &[u8], kind: FileKind, word: Range<usize>) -> Option<Detected> {
    let user = user_before(text, word.start)?;
    let secret = value_behind(text, word.end)?;
    let line = line_before(text, user.start);
    let (name, value) = (&text[user.clone()], &text[secret.clone()]);
    // `f(x, a.length / b)`: a parenthesis that is closed was opened before the user.
    let is_argument = text.get(secret.end) == Some(&b')') && !line.ends_with(b"(");
    if value.eq_ignore_ascii_case(name) || is_argument || is_member(value) || is_number(value) {
        return None;
    }
    // Before the cues, which are many.
    let looks = looks(value);
    if looks == Looks::Otherwise {
        return None;
    }
    let is_cued = CUES.iter().any(|cue| has_word(line, cue));
    let is_known = users::is_always(name);
    let is_user = is_known || is_account(name);
    // What is noted in a comment is noted as in any text.
    let kind = if place::is_comment(line) { FileKind::Unknown } else { kind };
    let is_password = match kind {
        // What is divided is no user, and what is documented was chosen as an example.
        FileKind::Code => is_known && looks >= Looks::ByTheRules,
        FileKind::Text if is_cued || is_user => looks >= Looks::Random,
        _ if is_cued && is_user => looks >= Looks::Made,
        // A word in capitals is no user that somebody logs in as: `log in with Google Workspace / Office365`.
        _ if (is_cued && introduces(line) && name[0].is_ascii_lowercase())
            || (is_user && ends(&text[secret.end..])) =>
        {
            looks >= Looks::Sure
        }
        _ if name[0].is_ascii_lowercase() && ends(&text[secret.end..]) => {
            looks >= Looks::ByTheRules
        }
        _ => false,
    };
    is_password.then_some(detected(user.start, secret))
}

/// How much a value looks like a password.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Looks {
    Otherwise,
    /// Made of words, as names are, too.
    Made,
    /// As no name is.
    Sure,
    Random,
    ByTheRules,
}

fn looks(value: &[u8]) -> Looks {
    let has_digit = value.iter().any(u8::is_ascii_digit);
    let weight = |least: f32| value::weigh(value, least).is_some();
    if value::is_by_the_rules(value) && weight(f32::MIN) {
        Looks::ByTheRules
    } else if weight(if has_digit { RANDOM_BITS } else { RANDOM_LETTERS_BITS }) {
        Looks::Random
    } else if has_digit && chosen::is_sure(value) && weight(f32::MIN) {
        Looks::Sure
    } else if (has_digit && weight(NO_WORD_BITS))
        || ((chosen::weigh(value).is_some() || chosen::is_pass_phrase(value)) && weight(f32::MIN))
    {
        Looks::Made
    } else {
        Looks::Otherwise
    }
}

/// `Uint16Array.BYTES_PER_ELEMENT`.
fn is_member(value: &[u8]) -> bool {
    let member = memchr::memchr(b'.', value).map(|dot| &value[dot + 1..]);
    member.is_some_and(|member| {
        member.iter().take(3).filter(|byte| byte.is_ascii_uppercase()).count() == 3
    })
}

/// The number of a commit, a container or a version: `3f4e5d6c7b8a`, `v14.2-alpine3`.
fn is_number(value: &[u8]) -> bool {
    let is_version =
        |three: &[u8]| three[0].is_ascii_digit() && three[1] == b'.' && three[2].is_ascii_digit();
    value.iter().all(u8::is_ascii_hexdigit) || value.windows(3).any(is_version)
}

/// Whether `cue` is a word of the line, or begins one unless it is short.
fn has_word(line: &[u8], cue: &str) -> bool {
    const SHORT: usize = 5;
    let is_letter =
        |at: Option<usize>| at.and_then(|at| line.get(at)).is_some_and(u8::is_ascii_alphabetic);
    ignore_case::find_iter(line, cue).any(|at| {
        let goes_on = cue.len() <= SHORT && is_letter(Some(at + cue.len()));
        !is_letter(at.checked_sub(1)) && !goes_on
    })
}

/// Whether what stands before a user says that one follows: `vpn: `, `(`, `log in with **`.
fn introduces(line: &[u8]) -> bool {
    let line = line.trim_ascii_end();
    let marked = line.last().is_none_or(|byte| b":(>`*\"'".contains(byte));
    marked
        || ignore_case::ends_with_any(
            line,
            &["login", "account", "with", "use", "utilisez", "konto"],
        )
}

/// Whether somebody's account may be called so: `eva.k`, `svc_backup`, `eva@acme.io`.
fn is_account(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| matches!(byte, b'.' | b'_' | b'@'));
    let is_word = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_lowercase);
    parts.clone().count() >= 2 && parts.all(is_word)
}

/// What marks text up around a user or a password.
const MARKS: [&str; 10] =
    ["**", "__", "`", "\"", "'", "<code>", "</code>", "<b>", "</b>", "<strong>"];

/// The user that ends at `end`, but for what marks it up.
fn user_before(text: &[u8], end: usize) -> Option<Range<usize>> {
    let floor = end.saturating_sub(MAX_USER + MAX_MARKS);
    let marks = MARKS.iter().find(|mark| text[floor..end].ends_with(mark.as_bytes()));
    let end = end - marks.map_or(0, |mark| mark.len());
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._@+-\\".contains(byte);
    let len = text[floor..end].iter().rev().take_while(in_name).count();
    let start = end - len;
    // A list of more than two, a path, a number.
    let before = start.checked_sub(1).map(|at| text[at]);
    let is_apart =
        before.is_none_or(|byte| byte.is_ascii_whitespace() || b"`*_\"'(>:=".contains(&byte));
    let is_listed = text[..start].ends_with(b" / ");
    let has_letter = text[start..end].iter().any(u8::is_ascii_alphabetic);
    ((2..=MAX_USER).contains(&len) && is_apart && !is_listed && has_letter).then_some(start..end)
}

/// The value at `start`, but for what marks it up and what ends a sentence.
fn value_behind(text: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &text[start..text.len().min(start + REACH_AFTER)];
    let mark = MARKS.iter().find(|mark| rest.starts_with(mark.as_bytes()));
    let opening = mark.map_or(0, |mark| mark.len());
    let in_value = |byte: &&u8| byte.is_ascii_graphic() && !b"`\"'<>(){}|,;\\/".contains(byte);
    let len = rest[opening..].iter().take_while(in_value).count();
    let value = &rest[opening..opening + len];
    let value = value.strip_suffix(b".").unwrap_or(value);
    let value = value.strip_suffix(b"**").unwrap_or(value);
    let behind = &rest[opening + len..];
    let goes_on = behind.first().is_some_and(|byte| b"({\\/".contains(byte));
    let is_listed = behind.starts_with(b" / ");
    (LEN.contains(&value.len()) && !goes_on && !is_listed)
        .then(|| start + opening..start + opening + value.len())
}

/// Whether nothing but the end of a line, of a sentence or of what is marked up follows a value.
fn ends(text: &[u8]) -> bool {
    !matches!(text, [b' ', b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9', ..])
}

/// The line up to `end`, as far as it is looked at.
fn line_before(text: &[u8], end: usize) -> &[u8] {
    let before = &text[end.saturating_sub(MAX_CUE)..end];
    &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(kind: FileKind, text: &str) -> Option<&str> {
        let find = |word: &&str| text.find(*word).map(|start| start..start + word.len());
        let word = ANCHORS.iter().find_map(find).unwrap();
        detect(text.as_bytes(), kind, word).map(|found| &text[found.secret])
    }

    #[test]
    fn a_user_and_a_password_are_noted_down() {
        for text in [
            "vpn: eva.k / zwetschge26",
            "the customer portal still uses (info / Zwetschge-26!)",
            "<li>Admin: <code>app</code> / <code>zwetschge26</code></li>",
            "log in with the account **app** / **zwetschge26**.",
            "SQL: sa / zwetschge2",
            "try svc_shop / zwetschge26",
        ] {
            let secret = found(FileKind::Unknown, text);
            assert!(
                secret.is_some_and(|value| value.to_lowercase().starts_with("zwetschge")),
                "{text}"
            );
            assert!(!secret.unwrap().ends_with(['*', '.', ')']), "{text}");
        }
        assert_eq!(found(FileKind::Code, "// test login: app / zwetschge26"), Some("zwetschge26"));
        let pair = "hosts = [(\"10.0.0.1\", \"root\", \"q8Zr2LmT0vKpW4xN\")]";
        assert_eq!(found(FileKind::Code, pair), Some("q8Zr2LmT0vKpW4xN"));
    }

    #[test]
    fn what_a_slash_separates_otherwise_is_none() {
        for text in [
            "x = buf.length / Uint16Array.BYTES_PER_ELEMENT",
            "f(x, max_len / zwetschge26)",
            "roles: admin / editor1 / viewer2",
            "linux / zwetschge26",
            "login: user / password",
            "admin: eva.k / eva.k",
            "x86_64 / arm64v8",
        ] {
            assert_eq!(found(FileKind::Unknown, text), None, "{text}");
        }
        // What is documented is an example, what is divided no user.
        assert_eq!(found(FileKind::Text, "vpn: eva.k / zwetschge26"), None);
        assert_eq!(found(FileKind::Text, "vpn: eva.k / Zwetschge26!"), Some("Zwetschge26!"));
        assert_eq!(found(FileKind::Code, "eva.k / zwetschge26"), None);
        for text in [
            "(\"root\", \"wheel\")",
            "x.on(\"admin\", \"Dashboard2024\")",
            "[\"admin\", \"editor42!\"]",
        ] {
            assert_eq!(found(FileKind::Code, text), None, "{text}");
        }
        for text in [
            "database: postgres / v14.2-alpine3",
            "Router model / WRT54GL",
            "docker user: service / 3f4e5d6c7b8a (healthy)",
            "the dashboard contains model / WRT54GL",
        ] {
            assert_eq!(found(FileKind::Unknown, text), None, "{text}");
        }
    }
}
