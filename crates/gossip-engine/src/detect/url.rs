//! Passwords in URLs of any scheme: `scheme://user:password@host`.

use std::ops::Range;

use super::Detected;
use super::chosen;
use super::value;
use crate::finding::Reason;
use crate::ignore_case;
use crate::rules::Confidence;

const MAX_SCHEME: usize = 32;
const MAX_USER: usize = 128;
const MAX_PASSWORD: usize = 256;

pub(super) const REACH_BEFORE: usize = MAX_SCHEME + 1;
pub(super) const REACH_AFTER: usize = MAX_USER + MAX_PASSWORD + 8;

/// Schemes of pages. A password of any other opens data.
const PAGES: &[&str] = &["http", "https", "ws", "wss", "git"];

/// What people write for a password in the example of a URL.
#[rustfmt::skip]
const STAND_INS: &[&str] = &[
    "pass", "password", "passwd", "passwort", "secret", "token", "pw", "pwd", "user", "root",
    "admin", "guest", "test", "1234", "foo", "bar", "baz", "pass123", "x-oauth-basic", "apikey",
    "key", "pswd", "mypass",
    "psw", "tiger", "hunter2",
];

/// What manuals show to tell how signs are escaped.
#[rustfmt::skip]
const ESCAPED_STAND_INS: &[&str] = &[
    "p@ss", "p@ssword", "p@ssw0rd", "p@$$word", "p@$$w0rd", "p@ss:word", "p@ss/word", "p@ss word",
    "pa$$word", "pass@word", "pass:word", "pass/word", "pass word", "pass@123", "p#ssword",
];

pub(super) fn detect(text: &[u8], word: Range<usize>) -> Option<Detected> {
    let floor = word.start.saturating_sub(MAX_SCHEME);
    let in_scheme =
        |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(**byte, b'+' | b'-' | b'.');
    let scheme = text[floor..word.start].iter().rev().take_while(in_scheme).count();
    if scheme < 2 {
        return None;
    }
    let start = word.start - scheme;
    let limit = text.len().min(word.end + MAX_USER + MAX_PASSWORD);
    let rest = &text[word.end..limit];
    let ends = |byte: u8| {
        byte.is_ascii_whitespace() || byte.is_ascii_control() || b"\"'`<>\\/".contains(&byte)
    };
    let user = rest
        .iter()
        .take(MAX_USER)
        .position(|byte| *byte == b':' || *byte == b'@' || ends(*byte))?;
    // The address of a user should be escaped, and seldom is: `https://app@acme.io:password@host`.
    let user = match rest[user] {
        b'@' => end_of_address(rest, user).unwrap_or(user),
        b'\\' => end_of_member(rest, user)?,
        _ => user,
    };
    if rest[user] == b'@' {
        return token(text, start, word.clone(), user);
    }
    if rest[user] != b':' {
        return None;
    }
    let password = &rest[user + 1..];
    // An `@` in a password is written as it is more often than not: the last one counts.
    let end = password.iter().position(|byte| ends(*byte)).unwrap_or(password.len());
    let at = memchr::memrchr(b'@', &password[..end])?;
    let host = password.get(at + 1).copied();
    // A host that is told later has a user and a password all the same.
    let is_told_later = host == Some(b'$') && !is_page(&text[start..word.start]);
    if at > MAX_PASSWORD || !(is_told_later || host.is_some_and(is_host)) {
        return None;
    }
    let (name, secret) = (&rest[..user], &password[..at]);
    // Those of GitHub and others stand in the user's place.
    if secret.is_empty() || secret == b"x-oauth-basic" {
        return token(text, start, word, user);
    }
    let scheme = &text[start..word.start];
    let confidence = judge(scheme, name, secret, &password[at + 1..])?;
    let secret_start = word.end + user + 1;
    let secret = secret_start..secret_start + at;
    Some(Detected { whole: start..secret.end + 1, secret, confidence, reason: Reason::Url })
}

/// `https://token@host`: what stands in a user's place, if no user is called so. Other schemes than
/// those of pages have names of containers there.
fn token(text: &[u8], start: usize, word: Range<usize>, len: usize) -> Option<Detected> {
    const MIN_LEN: usize = 20;
    /// Names and addresses of users have less.
    const MIN_BITS: f32 = 14.0;
    const MAX_HOST: usize = 64;
    let secret = word.end..word.end + len;
    let user = &text[secret.clone()];
    let in_token = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let host = &text[secret.end..text.len().min(secret.end + MAX_HOST)];
    // What its SDKs report to is public.
    let is_public = ignore_case::contains(host, "sentry");
    if len < MIN_LEN
        || !user.iter().all(in_token)
        || is_public
        || !is_page(&text[start..word.start])
    {
        return None;
    }
    value::weigh(user, MIN_BITS)?;
    let whole = start..secret.end;
    Some(Detected { whole, secret, confidence: Confidence::Low, reason: Reason::Url })
}

/// Hosts of examples, on which a word opens nothing.
const LOCAL: [&[u8]; 4] = [b"localhost", b"127.", b"example.", b"host"];

fn is_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'[' | b'(')
}

fn judge(scheme: &[u8], user: &[u8], password: &[u8], host: &[u8]) -> Option<Confidence> {
    let is_store = !is_page(scheme);
    let min = if is_store { 3 } else { 4 };
    let braces = |bytes: &[u8]| bytes.iter().any(|byte| b"${}<>*%[]()".contains(byte));
    let is_told_later = braces(user) && !is_escaped(user);
    if is_told_later
        || password.iter().any(|byte| b"{}<>()".contains(byte))
        || password.starts_with(b"$")
    {
        return None;
    }
    let mut bytes = [0; MAX_PASSWORD];
    let written = password;
    let password = unescaped(written, &mut bytes);
    let is_shown = password != written && ignore_case::is_any(password, ESCAPED_STAND_INS);
    if password.len() < min || is_shown || is_stand_in(user, password) {
        return None;
    }
    // A user's own name, or a word, opens a database as well as any; for pages it is an example.
    let needed = if is_store { -2.0 } else { 1.0 };
    // Several words are more often chosen than shown.
    let joints = password.iter().filter(|byte| **byte == b'-').count();
    let is_of_somebody = !user.is_empty() && !LOCAL.iter().any(|start| host.starts_with(start));
    let is_word = (is_store || joints >= 2)
        && !password.contains(&b'_')
        && chosen::is_word_of_login(password);
    let is_phrase = || chosen::is_capitalised(password) || chosen::is_pass_phrase(password);
    let is_made = is_of_somebody && (is_word || chosen::weigh(password).is_some() || is_phrase());
    let needed = if is_made || chosen::is_sure(password) { f32::MIN } else { needed };
    let bits = value::weigh(password, needed)?.bits;
    Some(if bits >= 8.0 { Confidence::Medium } else { Confidence::Low })
}

/// The colon behind a user of a domain of Windows, whose backslash is at `at`: `CORP\app:`.
fn end_of_member(rest: &[u8], at: usize) -> Option<usize> {
    const MAX_DOMAIN: usize = 15;
    let in_domain = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'-';
    if at > MAX_DOMAIN || !rest[..at].iter().all(in_domain) {
        return None;
    }
    let in_user = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    let slashes = rest[at..].iter().take(2).take_while(|byte| **byte == b'\\').count();
    let name = rest[at + slashes..].iter().take(MAX_USER).take_while(in_user).count();
    let colon = at + slashes + name;
    (name > 0 && rest.get(colon) == Some(&b':')).then_some(colon)
}

/// The colon behind the host of an address whose `@` is at `at`, if there is a password behind it.
fn end_of_address(rest: &[u8], at: usize) -> Option<usize> {
    let in_host = |byte: &&u8| byte.is_ascii_alphanumeric() || b".-".contains(byte);
    let host = rest[at + 1..].iter().take(MAX_USER - at).take_while(in_host).count();
    let colon = at + 1 + host;
    let (b':', password) = rest.get(colon..)?.split_first()? else { return None };
    let is_number = password.iter().take_while(|byte| **byte != b'@').all(u8::is_ascii_digit);
    (host > 0 && !is_number).then_some(colon)
}

/// `app%40acme.io`, `CORP%5Capp`: how a URL has the address of a user, or the domain of one.
fn is_escaped(user: &[u8]) -> bool {
    let mut bytes = [0; MAX_USER];
    let in_user = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+@\\$/: ".contains(byte);
    unescaped(user, &mut bytes).iter().all(in_user)
}

/// What escapes stand for in a user's name or a password; only signs are escaped. Anything else is as it is.
pub(super) fn unescaped<'b>(text: &'b [u8], bytes: &'b mut [u8]) -> &'b [u8] {
    if text.len() > bytes.len() {
        return text;
    }
    let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let (mut at, mut len) = (0, 0);
    while at < text.len() {
        let (byte, step) = match text[at] {
            b'%' => match (digit(at + 1), digit(at + 2)) {
                (Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
                _ => return text,
            },
            byte => (byte, 1),
        };
        if step > 1 && !byte.is_ascii_punctuation() && byte != b' ' {
            return text;
        }
        bytes[len] = byte;
        (at, len) = (at + step, len + 1);
    }
    &bytes[..len]
}

fn is_page(scheme: &[u8]) -> bool {
    let base = scheme.split(|byte| *byte == b'+').next().unwrap_or(scheme);
    ignore_case::is_any(base, PAGES)
}

fn is_stand_in(user: &[u8], password: &[u8]) -> bool {
    ignore_case::is_any(password, STAND_INS)
        || user.eq_ignore_ascii_case(password)
        || ignore_case::contains(password, "password")
        || password.starts_with(b"%") && password.iter().all(|byte| !byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(text: &str) -> bool {
        let at = text.find("://").unwrap();
        detect(text.as_bytes(), at..at + 3).is_some()
    }

    #[test]
    fn a_word_opens_what_is_no_page_and_not_here() {
        assert!(is_found("ecto://app:zwetschge@db01/shop"));
        assert!(is_found("https://app@acme.io:4jF5t3GECb@h.internal/"));
        assert!(!is_found("https://app@h.internal:8080/x@y"));
        assert!(is_found("smtp://app%40acme.io:4jF5t3GECb@smtp.acme.io:587"));
        assert!(!is_found("smtp://%USER%:4jF5t3GECb@smtp.acme.io:587"));
        assert!(is_found("http://CORP%5Capp:4jF5t3GECb%2F86@proxy.acme.io:8080"));
        assert!(is_found("http://CORP\\app:4jF5t3GECb@proxy.acme.io:8080"));
        assert!(is_found("http://CORP\\\\app:4jF5t3GECb@proxy.acme.io:8080"));
        assert!(!is_found("http://host\\napp:4jF5t3GECb@proxy.acme.io:8080"));
        assert!(is_found("http://app:4jF%405t3%25GECb@proxy.acme.io:8080"));
        assert!(!is_found("http://app:%50%41%53%53@proxy.acme.io:8080"));
        assert!(!is_found("http://app:p%40ssword@proxy.acme.io:8080"));
        assert!(is_found("https://app:otter-ladder-quiver@git.internal/"));
        assert!(is_found("mysql://app:zwetschge@${HOST}:3306/shop"));
        assert!(!is_found("mysql://app:$PASSWORD@${HOST}:3306/shop"));
        for text in [
            "https://app:zwetschge@h.internal/",
            "ecto://:zwetschge@db01/shop",
            "ecto://app:zwetschge@localhost/shop",
            "ecto://app:disabled@db01/shop",
            "ecto://app:some_name@db01/shop",
        ] {
            assert!(!is_found(text), "{text}");
        }
    }
}
