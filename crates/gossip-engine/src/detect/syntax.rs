//! Where a name's value stands: assignments, pairs, arguments, elements, flags, in any language.
//!
//! A name is followed by what closes it, an operator, what opens the value, and the value. Each step
//! has a bound, so that nothing beyond [`REACH_AFTER`] is looked at.

mod cursor;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use super::file_kind::FileKind;
use super::name::MAX_SIDE;
use super::services::MAX_BEFORE;
use cursor::Cursor;
use values::{bare, bytes, declared, element, pair, quoted, wrapped};

/// Blanks between a name, its operator and its value.
const MAX_BLANKS: usize = 40;
/// A type or a function between the operator and the value.
const MAX_WRAPPER: usize = 48;
/// What may stand between a name and the `value` that goes with it.
const MAX_PAIR_GAP: usize = 64;
/// What a declaration may say before its default: two fields, each of a name and a line.
const MAX_DECLARED: usize = 2 * (3 * MAX_BLANKS + MAX_FIELD_NAME + MAX_PAIR_GAP + 1);
const MAX_FIELD_NAME: usize = 16;
/// A bare value behind a blank is as long, or has a digit.
const MIN_LETTERS: usize = 20;
/// What is longer is data, not a credential that somebody assigned.
pub(super) const MAX_VALUE: usize = 1024;

/// How far behind the credential word the answer can depend on the text.
pub(super) const REACH_AFTER: usize =
    MAX_SIDE + 4 * MAX_BLANKS + 3 * MAX_WRAPPER + MAX_PAIR_GAP + MAX_DECLARED + MAX_VALUE + 64;
/// How far before it.
pub(super) const REACH_BEFORE: usize = MAX_SIDE + 6;

/// How the value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// `name = "value"`, `"name": "value"`.
    Quoted,
    /// `"name", "value"`.
    Listed,
    /// `name("value")`.
    Argument,
    /// `name == "value"`.
    Compared,
    /// `name = wrapper("value")`.
    Wrapped,
    /// `name: x, value: y`.
    Pair,
    /// `<name>value</name>`.
    Element,
    /// `--name value`.
    Flag,
    /// `PASSWORD 'value'`.
    Sql,
    /// `name value`.
    Blank,
    /// `name-value`, of hexadecimal digits.
    Joined,
    /// `name-value`, `name:value`, of anything: a label, unless it is a service's key.
    Label,
    /// `?name=value&`.
    Parameter,
    /// `NAME=value`.
    BareEquals,
    /// `name: value`.
    BareColon,
    /// `name = { 1, 2, 3 }`.
    Bytes,
}

/// A value beside a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) value: Range<usize>,
    pub(super) syntax: Syntax,
}

/// The name around the credential word at `word`. None if it is longer than a name is.
pub(super) fn name_around(text: &[u8], word: Range<usize>) -> Option<Range<usize>> {
    let floor = word.start.saturating_sub(MAX_SIDE);
    let back = text[floor..word.start].iter().rev().take_while(|byte| in_name(**byte)).count();
    let start = word.start - back;
    if start == floor && floor > 0 && in_name(text[floor - 1]) {
        return None;
    }
    let rest = &text[word.end..text.len().min(word.end + MAX_SIDE + 1)];
    let ahead = rest.iter().take_while(|byte| in_name(**byte)).count();
    if ahead > MAX_SIDE {
        return None;
    }
    let mut end = word.end + ahead;
    while end > word.end && matches!(text[end - 1], b'-' | b'.') {
        end -= 1;
    }
    Some(start..end)
}

/// Where the name begins if it is written as several words: `API key: …`, `secret access key …`. No
/// further back than `floor`.
pub(super) fn phrase(text: &[u8], name: &Range<usize>, floor: usize) -> usize {
    const WORDS: [&str; 10] = [
        "access",
        "account",
        "api",
        "app",
        "auth",
        "client",
        "encryption",
        "license",
        "private",
        "secret",
    ];
    const MAX_WORDS: usize = 3;
    let mut start = name.start;
    for _ in 0..MAX_WORDS {
        let Some((b' ', before)) = text[floor..start].split_last() else { break };
        let is_last = |word: &&str| {
            let rest = before.len().checked_sub(word.len());
            rest.is_some_and(|at| {
                before[at..].eq_ignore_ascii_case(word.as_bytes())
                    && !at.checked_sub(1).is_some_and(|at| before[at].is_ascii_alphanumeric())
            })
        };
        let Some(word) = WORDS.iter().find(|word| is_last(word)) else { break };
        start -= word.len() + 1;
    }
    start
}

/// `name-value`: what is behind the credential word are the digits of a key, and part of no name.
pub(super) fn joined(text: &[u8], word: Range<usize>) -> Option<(Range<usize>, Assignment)> {
    const MIN_DIGITS: usize = 32;
    const MAX_DIGITS: usize = 128;
    let joint = *text.get(word.end)?;
    if !matches!(joint, b'-' | b'_' | b'.' | b':') {
        return None;
    }
    let start = word.end + 1;
    let rest = &text[start..text.len().min(start + MAX_DIGITS + 1)];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (len, syntax) = match digits {
        MIN_DIGITS.. => (digits, Syntax::Joined),
        _ if joint == b'-' => (groups(rest)?, Syntax::Label),
        _ => return None,
    };
    let ends = rest.get(len).is_none_or(|byte| !in_name(*byte) && !b"/@(=:".contains(byte));
    if len > MAX_DIGITS || !ends {
        return None;
    }
    let name = name_around(&text[..word.end], word)?;
    Some((name, Assignment { value: start..start + len, syntax }))
}

/// How long the letters and digits, in groups, at the start of `rest` are, if they are no words: those
/// have few digits.
fn groups(rest: &[u8]) -> Option<usize> {
    const MIN_LEN: usize = 20;
    if !rest.get(..MIN_LEN)?.iter().any(u8::is_ascii_digit) {
        return None;
    }
    let in_group = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let len = rest.iter().take_while(in_group).count();
    let digits = rest[..len].iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_word = matches!(rest.get(letters), Some(b'-' | b'_'));
    (len >= MIN_LEN && digits * 5 >= len && !is_word).then_some(len)
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Whether something that gives a name its value can follow it.
#[inline]
pub(super) fn may_assign(next: u8) -> bool {
    matches!(
        next,
        b'"' | b'\''
            | b'`'
            | b'\\'
            | b']'
            | b')'
            | b' '
            | b'\t'
            | b'='
            | b':'
            | b'>'
            | b','
            | b'('
            | b'|'
            | b'?'
            | b'!'
            | b'['
            | b'\n'
            | b'\r'
            | b'<'
    )
}

/// Whether a plain word follows the name and nothing that gives it a value, as in most logs: for these
/// [`assignment`] has no answer, and this is cheaper to tell.
pub(super) fn is_prose(text: &[u8], name: &Range<usize>) -> bool {
    if text[name.end] != b' ' || text[name.start] == b'-' {
        return false;
    }
    let rest = &text[name.end + 1..text.len().min(name.end + 2 + MIN_LETTERS)];
    let letters = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    // A type may stand before `=`.
    let ends = match rest.get(letters) {
        Some(b' ') => rest.get(letters + 1).is_some_and(u8::is_ascii_alphanumeric),
        Some(b',' | b';' | b')' | b'\n' | b'\r') => true,
        _ => false,
    };
    letters > 0 && letters < MIN_LETTERS && ends
}

/// The value that belongs to `name`, if there is one.
pub(super) fn assignment(text: &[u8], name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let mut cursor = Cursor { text, at: name.end };
    let quoted_name = cursor.eat_quote().is_some();
    if cursor.peek() == Some(b'[') && !quoted_name {
        cursor.at += 1;
        cursor.skip_while(8, |byte| byte.is_ascii_alphanumeric());
        cursor.eat(b"]");
    }
    cursor.skip_while(2, |byte| matches!(byte, b']' | b')'));
    let closed = cursor.at;
    let blanks = cursor.skip_blanks();
    let Some(operator) = operator(&mut cursor) else {
        if quoted_name && let Some(found) = declared(&cursor) {
            return Some(found);
        }
        let may_pair = quoted_name || matches!(cursor.peek(), Some(b'\n' | b'\r'));
        let pair = if may_pair { pair(&Cursor { text, at: closed }, kind) } else { None };
        return pair.or_else(|| by_blank(cursor, text, name, blanks, quoted_name, kind));
    };
    match operator {
        Operator::Close => {
            if before != Some(b'<') {
                return None;
            }
            return element(&cursor);
        }
        Operator::Call | Operator::Comma | Operator::Compare => {
            if operator == Operator::Comma && !quoted_name {
                return None;
            }
            let pair = if quoted_name { pair(&Cursor { text, at: closed }, kind) } else { None };
            if pair.is_some() {
                return pair;
            }
            cursor.skip_blanks_and_lines();
            let syntax = match operator {
                // `x.pass("…")` hands something on.
                Operator::Call if text[name.clone()].ends_with(b".pass") => return None,
                Operator::Call => Syntax::Argument,
                Operator::Comma if is_first_argument(text, name) => Syntax::Listed,
                // In a list of names each stands beside the next.
                Operator::Comma => return None,
                _ => Syntax::Compared,
            };
            return quoted(cursor, syntax);
        }
        Operator::Equals | Operator::Colon => {}
    }
    let line_end = cursor.skip_blanks_and_lines();
    let crossed = memchr::memchr(b'\n', &text[cursor.at - line_end..cursor.at]).is_some();
    if operator == Operator::Colon && !crossed {
        skip_type(&mut cursor);
    }
    if let Some(found) = quoted(Cursor { text, at: cursor.at }, Syntax::Quoted) {
        return Some(found);
    }
    if let Some(found) = bytes(&cursor) {
        return Some(found);
    }
    if let Some(found) = wrapped(&cursor) {
        return Some(found);
    }
    if crossed {
        return None;
    }
    let parameter = matches!(before, Some(b'?' | b'&')) && operator == Operator::Equals;
    let syntax = match operator {
        _ if parameter => Syntax::Parameter,
        Operator::Equals => Syntax::BareEquals,
        // `name:value` is a label, a time, a host: values of configurations stand apart.
        Operator::Colon if line_end == 0 && !quoted_name => Syntax::Label,
        _ => Syntax::BareColon,
    };
    bare(&cursor, syntax, kind)
}

/// Whether a quoted name is the first argument of a call: `define('NAME', …`.
fn is_first_argument(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_OPENING: usize = 6;
    let from = name.start.saturating_sub(MAX_OPENING);
    let opening = &text[from..name.start];
    let inside = |byte: &&u8| matches!(**byte, b'"' | b'\'' | b'`' | b'\\' | b' ' | b':');
    let skipped = opening.iter().rev().take_while(inside).count();
    opening.iter().rev().nth(skipped) == Some(&b'(')
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equals,
    Colon,
    Compare,
    Comma,
    Call,
    Close,
}

fn operator(cursor: &mut Cursor<'_>) -> Option<Operator> {
    let rest = &cursor.text[cursor.at.min(cursor.text.len())..];
    let (operator, len) = match rest {
        [b'=', b'=', b'=', ..] | [b'!', b'=', b'=', ..] => (Operator::Compare, 3),
        [b'=', b'=' | b'~', ..] | [b'!', b'=', ..] => (Operator::Compare, 2),
        [b':', b':', b'=', ..] | [b'|', b'|', b'=', ..] => (Operator::Equals, 3),
        [b':', b':', b':', b'=', ..] => (Operator::Equals, 4),
        [b'=', b'>', ..] | [b':' | b'?' | b'.', b'=', ..] => (Operator::Equals, 2),
        [b'=', ..] => (Operator::Equals, 1),
        [b':', b':', ..] => return None,
        [b'?', b':', ..] => (Operator::Colon, 2),
        [b':', ..] => (Operator::Colon, 1),
        [b',', ..] => (Operator::Comma, 1),
        [b'(', ..] => (Operator::Call, 1),
        [b'>', ..] => (Operator::Close, 1),
        _ => return None,
    };
    cursor.at += len;
    Some(operator)
}

/// `--name value` and `PASSWORD 'value'`: nothing but blanks between.
fn by_blank(
    cursor: Cursor<'_>,
    text: &[u8],
    name: &Range<usize>,
    blanks: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    if blanks == 0 || quoted_name {
        return None;
    }
    let word = &text[name.clone()];
    // One dash is enough for PowerShell and Java; `-k` and the like are no names.
    let is_flag = word.starts_with(b"-") && !word.contains(&b'.');
    if is_flag {
        return match quoted(Cursor { text, at: cursor.at }, Syntax::Flag) {
            Some(found) => Some(found),
            None if cursor.peek() == Some(b'-') => None,
            None => bare(&cursor, Syntax::Flag, kind),
        };
    }
    let rest = &text[cursor.at..text.len().min(cursor.at + MAX_WRAPPER)];
    let begun = rest.iter().take_while(|byte| is_plain(**byte)).count();
    if let Some(found) = typed(&cursor, begun) {
        return Some(found);
    }
    // `password "…"` at the start of a line calls a function, as builds of Gradle do.
    if kind != FileKind::Text
        && matches!(cursor.peek(), Some(b'"' | b'\''))
        && starts_line(text, name.start)
        && let Some(found) = quoted(Cursor { text, at: cursor.at }, Syntax::Argument)
    {
        return Some(found);
    }
    // SQL writes its words in capitals, or at least all alike.
    let is_sql = word.iter().all(|byte| byte.is_ascii_uppercase()) && cursor.peek() == Some(b'\'');
    if is_sql { quoted(cursor, Syntax::Sql) } else { blank(&cursor, begun) }
}

/// Whether nothing but blanks stands before it on its line.
fn starts_line(text: &[u8], start: usize) -> bool {
    let from = start.saturating_sub(MAX_BEFORE);
    let blanks = text[from..start].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let line = start - blanks.count();
    line == 0 || (line > from && text[line - 1] == b'\n')
}

/// `name string = "…"`: Go writes the type behind the name. `begun` bytes of it are known to be one.
fn typed(cursor: &Cursor<'_>, begun: usize) -> Option<Assignment> {
    let mut cursor = Cursor { text: cursor.text, at: cursor.at + begun };
    let in_type = |byte: u8| is_plain(byte) || matches!(byte, b'*' | b'[' | b']');
    let len = begun + cursor.skip_while(MAX_WRAPPER.saturating_sub(begun), in_type);
    let blanks = cursor.skip_blanks();
    let assigns = cursor.starts_with(b"=") && !cursor.starts_with(b"==");
    if len == 0 || blanks == 0 || !assigns || cursor.starts_with(b"=>") {
        return None;
    }
    cursor.at += 1;
    cursor.skip_blanks();
    quoted(cursor, Syntax::Quoted)
}

/// A bare value with a digit in it, or longer than words are, right behind a name. `begun` bytes of it
/// are known to be one.
fn blank(cursor: &Cursor<'_>, begun: usize) -> Option<Assignment> {
    let rest = &cursor.text[cursor.at..cursor.text.len().min(cursor.at + MAX_VALUE)];
    let in_value =
        |byte: &u8| is_plain(*byte) || matches!(byte, b'-' | b'+' | b'/' | b'=' | b'~' | b':');
    let len = begun + rest[begun..].iter().take_while(|byte| in_value(byte)).count();
    let ends =
        rest.get(len).is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`".contains(byte));
    let has_digit = || rest[..len].iter().any(u8::is_ascii_digit);
    let value = cursor.at..cursor.at + len;
    (ends && (len >= MIN_LETTERS || has_digit()))
        .then_some(Assignment { value, syntax: Syntax::Blank })
}

/// In a type as in a value: most of what stands behind a name and a blank is prose, and its first word
/// is read once for both.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}

/// `: &'static str = "…"`, `: string = "…"`.
fn skip_type(cursor: &mut Cursor<'_>) {
    let start = cursor.at;
    let in_type = |byte: u8| byte.is_ascii_alphanumeric() || b"_<>&'[]?.|: \t*".contains(&byte);
    let len = cursor.skip_while(MAX_WRAPPER, in_type);
    let blank_before = len > 1 && matches!(cursor.text[cursor.at - 1], b' ' | b'\t');
    let assigns = cursor.starts_with(b"=") && !cursor.starts_with(b"==");
    if blank_before && assigns && !cursor.starts_with(b"=>") {
        cursor.at += 1;
        cursor.skip_blanks_and_lines();
    } else {
        cursor.at = start;
    }
}
