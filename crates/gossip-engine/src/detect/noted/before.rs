//! What stands before a word on its line, and how much it says of a password that follows.

use super::words::{FIELDS, NAMES, OTHERS, PASSWORDS, SAYING, WITH};
use crate::detect::users;
use crate::detect::{value, vocabulary};
use crate::ignore_case;

/// What speaks for a password that follows, or against it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// The name of something else, whose value follows.
    Otherwise,
    /// Any words.
    Nothing,
    /// `is`, `with`, `use`.
    Said,
    /// Nothing stands before it: a line or a message of its own.
    Alone,
    /// A comma or a semicolon without a blank, as between the cells of an export.
    Cell,
    /// A colon, an arrow, a slash, a column.
    Sign,
    /// A word for a password, or for a code.
    Named,
    /// Somebody who may be a user: `eva.k`, `backup`.
    Account,
    /// A user, and nothing else: `root`, `eva@acme.io`, `user eva`.
    User,
}

/// Marks and tags are put around one value: so many at most.
const MAX_MARKS: usize = 4;
const MAX_TAG: usize = 24;

pub(super) fn cue(line: &[u8]) -> Cue {
    let line = match opened(line) {
        Opened::InField(name) if ignore_case::is_any(name, FIELDS) => return Cue::Alone,
        Opened::InField(_) => return Cue::Otherwise,
        // The first cell of a row names what the row is about.
        Opened::InCell(line) if line.trim_ascii().is_empty() => return Cue::Otherwise,
        Opened::InCell(line) => {
            return user_at_end(line.trim_ascii_end()).unwrap_or(Cue::Sign);
        }
        Opened::InExport(line) => return user_at_end(line).unwrap_or(Cue::Cell),
        Opened::InCall => return Cue::Otherwise,
        Opened::Behind(line) => line,
    };
    // A table that was exported.
    if let Some(row) = line.strip_suffix(b"\t")
        && row.contains(&b'\t')
    {
        return user_at_end(row).unwrap_or(Cue::Cell);
    }
    let blanks = line.len() - line.trim_ascii_end().len();
    let is_column = line.ends_with(b"\t") || blanks > 1;
    let line = line.trim_ascii_end();
    if is_alone(line) {
        return Cue::Alone;
    }
    let (name, has_sign) = without_sign(line);
    let word = last_word(name);
    // `we support WASIp2`: a word that only may be a user needs a sign behind it.
    if let Some(user) = user_at_end(name)
        && (user == Cue::User || has_sign || is_column)
    {
        return user;
    }
    if names_password(name, word) {
        return Cue::Named;
    }
    if ignore_case::is_any(word, OTHERS) && !ignore_case::is_any(word, SAYING) {
        return Cue::Otherwise;
    }
    if has_sign || is_column {
        return Cue::Sign;
    }
    if ignore_case::is_any(word, WITH)
        && let Some(user) = user_at_end(without_sign(before_last_word(name)).0)
    {
        return user;
    }
    // What is written in Chinese, Japanese or Korean has no blanks between its words.
    let is_east_asian = name.last().is_some_and(|byte| !byte.is_ascii()) && is_wide(name);
    if ignore_case::is_any(word, SAYING) || is_east_asian {
        if is_of_other(name) { Cue::Otherwise } else { Cue::Said }
    } else {
        Cue::Nothing
    }
}

/// What stands before the marks around a value.
enum Opened<'t> {
    Behind(&'t [u8]),
    /// In the field of this name: `"text": "`.
    InField(&'t [u8]),
    /// In a cell of a table, behind another one.
    InCell(&'t [u8]),
    /// In a cell of an export.
    InExport(&'t [u8]),
    /// In a call: `has("`.
    InCall,
}

fn opened(line: &[u8]) -> Opened<'_> {
    let mut line = line;
    let (mut is_cell, mut is_export) = (false, false);
    for _ in 0..MAX_MARKS {
        match line.last() {
            Some(b'"') => {
                let rest = &line[..line.len() - 1];
                if let Some(name) = field(rest) {
                    return Opened::InField(name);
                }
                line = rest;
            }
            Some(b'(') if line.iter().rev().nth(1).is_some_and(u8::is_ascii_alphanumeric) => {
                return Opened::InCall;
            }
            Some(b'`' | b'\'' | b'*' | b'_' | b'(' | b'[' | b'{' | b'@') => {
                line = &line[..line.len() - 1]
            }
            Some(b'>') => match tag(line) {
                Some(tag) if is_of_tag(&line[tag + 1..]) => return Opened::InField(b""),
                Some(tag) => {
                    is_cell |= matches!(&line[tag..], b"<td>" | b"</td>" | b"<th>");
                    line = &line[..tag];
                }
                None => break,
            },
            Some(b'|') => {
                is_cell = true;
                line = &line[..line.len() - 1];
            }
            Some(b' ') if line.ends_with(b"| ") => line = &line[..line.len() - 1],
            Some(b',' | b';') => {
                is_export = true;
                line = &line[..line.len() - 1];
            }
            _ => break,
        }
    }
    match (is_cell, is_export) {
        (_, true) => Opened::InExport(line),
        (true, false) => Opened::InCell(line),
        (false, false) => Opened::Behind(line),
    }
}

/// Whether an element is called as something else is: `UUID>`.
fn is_of_tag(tag: &[u8]) -> bool {
    const ENDS: &[&str] = &["hash", "id", "uuid"];
    let name = &tag[..tag.iter().take_while(|byte| byte.is_ascii_alphanumeric()).count()];
    ignore_case::is_any(name, OTHERS) || ignore_case::ends_with_any(name, ENDS)
}

/// Whether the line is of a mail's header that programs write: `X-Mailer: `, `DKIM-Signature: `.
pub(super) fn is_of_header(line: &[u8]) -> bool {
    #[rustfmt::skip]
    const HEADERS: &[&str] = &[
        "arc-", "authentication-results", "content-", "dkim-", "feedback-id", "in-reply-to", "list-", "message-id", "mime-version", "received",
        "references", "return-path", "thread-", "user-agent", "x-",
    ];
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'-';
    let len = line.iter().take_while(in_name).count();
    line.get(len) == Some(&b':') && ignore_case::starts_with_any(&line[..len], HEADERS)
}

/// Whether the end of `line` is within a tag, but in no attribute that holds what somebody wrote.
pub(super) fn is_in_tag(line: &[u8]) -> bool {
    let Some(start) = memchr::memrchr2(b'<', b'>', line) else { return false };
    if line[start] == b'>' || line.get(start + 1).is_some_and(|byte| matches!(byte, b'-' | b'=')) {
        return false;
    }
    let inside = &line[start..];
    let written = memchr::memmem::rfind(inside, b"=\"").and_then(|at| field(&inside[..=at]));
    !written.is_some_and(|name| ignore_case::is_any(name, FIELDS))
}

/// The name of the field whose value is opened behind `line`: `"text": `, ` body=`.
fn field(line: &[u8]) -> Option<&[u8]> {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let name = match line.trim_ascii_end().strip_suffix(b":") {
        Some(rest) => rest.strip_suffix(b"\"")?,
        None => line.strip_suffix(b"=")?,
    };
    let len = name.iter().rev().take_while(in_name).count();
    Some(&name[name.len() - len..])
}

/// Where the tag begins that ends the line.
fn tag(line: &[u8]) -> Option<usize> {
    let floor = line.len().saturating_sub(MAX_TAG);
    memchr::memrchr(b'<', &line[floor..]).map(|at| floor + at)
}

/// Whether nothing stands on the line but marks of lists and quotes, or when and by whom a message was sent.
fn is_alone(line: &[u8]) -> bool {
    let is_mark = |byte: &u8| byte.is_ascii_punctuation() || byte.is_ascii_digit() || *byte == b' ';
    let is_bullet = |line: &[u8]| matches!(line, [0xE2, _, _] | [0xC2, _]);
    // `14:31 <@eva>`.
    let nick = if line.ends_with(b">") { tag(line) } else { None };
    let line = nick.map_or(line, |nick| &line[..nick]);
    line.iter().all(is_mark) || is_bullet(line) || (line.starts_with(b"[") && line.ends_with(b"]"))
}

/// Whether the line ends in a word for a password.
fn names_password(line: &[u8], word: &[u8]) -> bool {
    // `PASS: test-7`: how a test ended.
    let is_result = word == b"PASS";
    let ends_so = |name: &&str| !name.is_ascii() && line.ends_with(name.as_bytes());
    (ignore_case::is_any(word, PASSWORDS) && !is_result) || PASSWORDS.iter().any(ends_so)
}

/// Whether what is said is of something else: `the codename will be`.
fn is_of_other(line: &[u8]) -> bool {
    const MAX_WORDS: usize = 3;
    let mut rest = line;
    (0..MAX_WORDS).any(|_| {
        let word = last_word(rest);
        rest = before_last_word(rest);
        ignore_case::is_any(word, NAMES)
    })
}

/// Without marks, and the sign at the end that gives a value to what is before it, if there is one.
fn without_sign(line: &[u8]) -> (&[u8], bool) {
    let (mut line, mut has_sign) = (line, false);
    while let Some(last) = line.last() {
        let (len, is_sign) = match line {
            [.., b'-' | b'=', b'>'] => (2, true),
            [.., b' ', b'-' | b'.'] => (1, true),
            [.., b':' | b'=' | b'/' | b'+' | b',' | b'|' | b'~' | b';'] => (1, true),
            // Arrows, dashes, and the colons and commas of East Asia.
            [.., 0xE2 | 0xEF, _, _] | [.., 0xE3, 0x80, _] => (3, true),
            [.., b'"' | b'`' | b'*' | b'\'' | b'@' | b'_' | b'}' | b')'] => (1, false),
            _ if last.is_ascii_whitespace() => (1, false),
            _ => break,
        };
        line = &line[..line.len() - len];
        has_sign |= is_sign;
    }
    (line, has_sign)
}

/// Whether the last character is one of Chinese, Japanese or Korean.
fn is_wide(line: &[u8]) -> bool {
    matches!(line, [.., 0xE3..=0xED, _, _])
}

fn in_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-@\\+/'".contains(byte) || !byte.is_ascii()
}

fn last_word(line: &[u8]) -> &[u8] {
    const WIDE_LEN: usize = 3;
    let len = line.iter().rev().take_while(|byte| in_word(byte)).count();
    let word = &line[line.len() - len..];
    // No blank stands between what is written in Chinese and a name in Latin letters.
    let wide = word.iter().rposition(|byte| *byte >= 0xE0);
    match wide.and_then(|at| word.get(at + WIDE_LEN..)) {
        Some(rest) if !rest.is_empty() => rest,
        _ => word,
    }
}

fn before_last_word(line: &[u8]) -> &[u8] {
    line[..line.len() - last_word(line).len()].trim_ascii_end()
}

/// Who logs in, if the line ends in somebody who does.
fn user_at_end(line: &[u8]) -> Option<Cue> {
    let word = last_word(line);
    let named = || {
        let before = last_word(without_sign(before_last_word(line)).0);
        ignore_case::is_any(before, users::LABELS)
    };
    let in_name =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(byte);
    let is_named = || word.len() >= 2 && word.iter().all(in_name) && named();
    user(word).or_else(|| is_named().then_some(Cue::User))
}

/// Whether a user may be called so: `root`, `eva.k`, `svc_backup`, `eva@acme.io`, `ACME\eva`.
pub(super) fn user(word: &[u8]) -> Option<Cue> {
    if ignore_case::is_any(word, users::OF_MACHINES) {
        return Some(Cue::User);
    }
    if ignore_case::is_any(word, users::ACCOUNTS) {
        return Some(Cue::Account);
    }
    if !is_account(word) {
        return None;
    }
    let at = memchr::memchr2(b'@', b'\\', word);
    let is_sure = at.is_some_and(|at| word[at] == b'\\' || word[at..].contains(&b'.'));
    // `window_mode`: what programs call something.
    let is_joined = at.is_none() && word.contains(&b'_');
    let is_of_service = ignore_case::starts_with_any(
        word,
        &["adm", "app", "db", "ftp", "srv", "svc", "usr", "user"],
    );
    match (is_sure, is_joined && !is_of_service) {
        (true, _) => Some(Cue::User),
        (false, true) => Some(Cue::Sign),
        (false, false) => Some(Cue::Account),
    }
}

fn is_account(word: &[u8]) -> bool {
    let in_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let is_part = |part: &[u8]| !part.is_empty() && part.iter().all(in_part);
    if !word.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'.') {
        return false;
    }
    let Some(joint) = word.iter().position(|byte| b"._@\\".contains(byte)) else { return false };
    // `main.rs`, `i.e`, `user_id`.
    let last = word.rsplit(|byte| matches!(byte, b'.' | b'_')).next().unwrap_or(word);
    let is_other = match word[joint] {
        b'.' => word.len() <= 3 || value::has_extension(word),
        b'_' => joint > 3 && vocabulary::is_known(last),
        _ => false,
    };
    if is_other {
        return false;
    }
    let (first, rest) = (&word[..joint], &word[joint + 1..]);
    let rest_is_name = || rest.split(|byte| matches!(byte, b'.' | b'_' | b'@')).all(is_part);
    match word[joint] {
        b'\\' => !rest.is_empty() && (is_part(first) || first == b".") && rest_is_name(),
        b'@' => is_part(first) && rest_is_name(),
        _ => {
            let is_small = |byte: &u8| !byte.is_ascii_uppercase();
            let is_host =
                word.iter().filter(|byte| **byte == b'.').count() > 1 && !word.contains(&b'@');
            // `v1.x`: a field of a variable.
            let is_variable = word[joint] == b'.' && first.iter().any(u8::is_ascii_digit);
            is_part(first)
                && rest_is_name()
                && word.iter().all(is_small)
                && !is_host
                && !is_variable
        }
    }
}
