//! Where a name's value stands: assignments, pairs, arguments, elements, flags, in any language.
//!
//! A name is followed by what closes it, an operator, what opens the value, and the value. Each step
//! has a bound, so that nothing beyond [`REACH_AFTER`] is looked at.

mod blanks;
mod cursor;
mod joined;
mod markup;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use super::file_kind::FileKind;
use super::name::MAX_SIDE;
use crate::ignore_case;
use blanks::by_blank;
pub(super) use blanks::{about, is_prose, starts_line};
use cursor::Cursor;
pub(super) use joined::joined;
use markup::{attributes, cell, element, neighbour};
use values::{bare, bytes, declared, fallback, login, pair, quoted, wrapped};

/// Blanks between a name, its operator and its value.
const MAX_BLANKS: usize = 40;
/// A type or a function between the operator and the value.
const MAX_WRAPPER: usize = 48;
/// What may stand between a name and the `value` that goes with it.
const MAX_PAIR_GAP: usize = 64;
/// What a declaration may say before its default: a few fields, each of a name and a line.
const MAX_DECLARED: usize = 400;
const MAX_FIELD_NAME: usize = 16;
/// What is longer is data, not a credential that somebody assigned.
pub(super) const MAX_VALUE: usize = 1024;

/// How far behind the credential word the answer can depend on the text.
pub(super) const REACH_AFTER: usize =
    MAX_SIDE + 4 * MAX_BLANKS + 3 * MAX_WRAPPER + MAX_PAIR_GAP + MAX_DECLARED + MAX_VALUE + 64;
/// How far before it.
pub(super) const REACH_BEFORE: usize = MAX_SIDE + MAX_LEAD;
/// What may stand right before a name and say how its value is written: `#define `, `-passout `.
const MAX_LEAD: usize = 10;

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
    /// `password value`, a line of its own.
    Directive,
    /// `| name | value |`.
    Cell,
    /// `auth=("user", "value")`.
    Login,
    /// `user=x password=value`, `User=x;Password=value` in a string.
    ConnectionString,
    /// `"x", "name", "value"`: somewhere in a call.
    Among,
    /// `the name is value`.
    Said,
    /// `name value`.
    Blank,
    /// `name-value`, of hexadecimal digits.
    Joined,
    /// `name-value`, `name:value`, of anything: a label, unless it is a service's key.
    Label,
    /// `?name=value&`.
    Parameter,
    /// `name=value`.
    BareEquals,
    /// `NAME=value`, as the environment has it.
    Variable,
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
            | b'*'
            | b'}'
    )
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
    // The asterisks are those of Markdown: `**Password**: …`.
    let closers = cursor.skip_while(2, |byte| matches!(byte, b']' | b')' | b'*'));
    // Perl: `$config{password} = "value"`, not `${password}`.
    if closers == 0 && cursor.peek() == Some(b'}') {
        if !is_subscript(text, name, quoted_name) {
            return None;
        }
        cursor.at += 1;
    }
    let closed = cursor.at;
    let may_be_closed = matches!(text.get(name.end), Some(b']' | b')' | b'"' | b'\''));
    if may_be_closed && let Some(found) = filled_in(text, name.end) {
        return Some(found);
    }
    let blanks = cursor.skip_blanks();
    // Scala and Kotlin: `"name" -> "value"`, `"name" to "value"`.
    if quoted_name && (cursor.eat(b"->") || (blanks > 0 && cursor.eat(b"to "))) {
        cursor.skip_blanks();
        return quoted(cursor, Syntax::Quoted);
    }
    // R: `name <- "value"`.
    if blanks > 0 && cursor.eat(b"<- ") {
        return quoted(cursor, Syntax::Quoted);
    }
    let Some(operator) = operator(&mut cursor) else {
        // `Credentials::new("user", …)`.
        if cursor.eat(b"::new") {
            return login(&cursor, &text[name.clone()]);
        }
        return without_operator(cursor, name, closed, quoted_name, kind);
    };
    match operator {
        // `<name>…`, `<string name="name">…`.
        Operator::Close if before == Some(b'<') => return element(&cursor),
        Operator::Close if quoted_name && leads(text, name, markup::NAMING) => {
            return element(&cursor);
        }
        Operator::Close => return None,
        Operator::Or => {
            cursor.skip_blanks();
            return quoted(cursor, Syntax::Compared);
        }
        Operator::Cell => return cell(&cursor, kind),
        // `get("password"), "x"`: what follows is an argument of another call.
        Operator::Comma if closers > 0 => return None,
        Operator::Call | Operator::Comma | Operator::Compare => {
            return argument(cursor, name, operator, closed, quoted_name, kind);
        }
        Operator::Equals | Operator::Colon => {}
    }
    if operator == Operator::Colon {
        if leads(text, name, &["${"]) {
            return fallback(&cursor);
        }
        cursor.eat(b"**");
    }
    let line_end = cursor.skip_blanks_and_lines();
    let crossed = memchr::memchr(b'\n', &text[cursor.at - line_end..cursor.at]).is_some();
    if operator == Operator::Colon && !crossed {
        skip_type(&mut cursor);
    }
    if let Some(found) = login(&cursor, &text[name.clone()]) {
        return Some(found);
    }
    let may_indent = crossed && operator == Operator::Colon;
    if let Some(found) = declared(&cursor, quoted_name, may_indent, kind) {
        return Some(found);
    }
    if let Some(found) = quoted(Cursor { text, at: cursor.at }, Syntax::Quoted) {
        let second = if is_second(text, name.start) { behind(text, &found) } else { None };
        return Some(second.unwrap_or(found));
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
    if operator == Operator::Colon {
        skip_yaml_style(&mut cursor);
    }
    let is_tight = blanks == 0 && line_end == 0;
    let syntax = bare_syntax(text, name, operator, is_tight, quoted_name);
    bare(&cursor, syntax, kind)
}

/// Whether another name stands before it: `user, name = …`.
fn is_second(text: &[u8], start: usize) -> bool {
    let before = text[..start].strip_suffix(b", ").and_then(<[u8]>::last);
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

/// The string behind this one, which is short, and a comma.
fn behind(text: &[u8], first: &Assignment) -> Option<Assignment> {
    let mut cursor = Cursor { text, at: first.value.end + 1 };
    if first.value.len() > MAX_PAIR_GAP || !cursor.eat(b",") {
        return None;
    }
    cursor.skip_blanks();
    let opens = matches!(cursor.peek(), Some(b'"' | b'\''));
    if opens { quoted(cursor, first.syntax) } else { None }
}

/// `get("#password").type("value")`: how programs fill in forms.
fn filled_in(text: &[u8], name_end: usize) -> Option<Assignment> {
    const MAX_CLOSING: usize = 4;
    const METHODS: [&[u8]; 6] =
        [b".type(", b".fill(", b".val(", b".setValue(", b".sendKeys(", b".send_keys("];
    let mut cursor = Cursor { text, at: name_end };
    cursor.skip_while(MAX_CLOSING, |byte| matches!(byte, b']' | b')' | b'"' | b'\''));
    let is_closed = cursor.at > name_end && cursor.peek() == Some(b'.');
    if is_closed && METHODS.iter().any(|method| cursor.eat(method)) {
        return quoted(cursor, Syntax::Argument);
    }
    None
}

/// The string at `at`, behind blanks.
pub(super) fn quoted_at(text: &[u8], at: usize, syntax: Syntax) -> Option<Assignment> {
    let mut cursor = Cursor { text, at };
    cursor.skip_blanks_and_lines();
    quoted(cursor, syntax)
}

/// `user:value`, of which the value is a password.
pub(super) fn password_of_user(text: &[u8], found: &Assignment) -> Option<Assignment> {
    const MAX_USER: usize = 32;
    let may_be = matches!(
        found.syntax,
        Syntax::Quoted
            | Syntax::Wrapped
            | Syntax::Argument
            | Syntax::Pair
            | Syntax::Flag
            | Syntax::Directive
            | Syntax::BareEquals
            | Syntax::Variable
            | Syntax::BareColon
            | Syntax::Blank
    );
    let value = &text[found.value.clone()];
    let in_user = |byte: &&u8| byte.is_ascii_alphanumeric() || b"._-@".contains(byte);
    let user = value.iter().take(MAX_USER + 1).take_while(in_user).count();
    let is_user = value.first().is_some_and(u8::is_ascii_alphabetic) && user <= MAX_USER;
    let password = value.get(user + 1..)?;
    let is_password = value[user] == b':'
        && !password.is_empty()
        && !password.iter().any(|byte| b":/ ,".contains(byte));
    let start = found.value.start + user + 1;
    (may_be && is_user && is_password)
        .then_some(Assignment { value: start..found.value.end, syntax: Syntax::Login })
}

/// How a value without quotes is written.
fn bare_syntax(
    text: &[u8],
    name: &Range<usize>,
    operator: Operator,
    is_tight: bool,
    quoted_name: bool,
) -> Syntax {
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let is_flag = text[name.start] == b'-' && text.get(name.start + 1) == Some(&b'-');
    match operator {
        Operator::Equals if matches!(before, Some(b'?' | b'&')) => Syntax::Parameter,
        Operator::Equals if is_flag && is_tight => Syntax::Flag,
        // `PASSWORD=value command`: a shell has no other names before a command.
        Operator::Equals if is_tight && is_constant(&text[name.clone()]) => Syntax::Variable,
        Operator::Equals => Syntax::BareEquals,
        Operator::Colon if is_tight && leads(text, name, &["-passin ", "-passout ", "-pass "]) => {
            Syntax::Flag
        }
        // `name:value` is a label, a time, a host: values of configurations stand apart.
        _ if is_tight && !quoted_name => Syntax::Label,
        _ => Syntax::BareColon,
    }
}

pub(super) fn is_constant(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
}

/// `Context.PASSWORD`.
fn is_member(name: &[u8]) -> bool {
    let dot = memchr::memrchr(b'.', name);
    dot.is_some_and(|dot| dot + 1 < name.len() && is_constant(&name[dot + 1..]))
}

/// Whether braces select what is called so, and do not put it into a text: `$x{name}`, `$x->{'name'}`.
fn is_subscript(text: &[u8], name: &Range<usize>, is_quoted: bool) -> bool {
    let opening = name.start.checked_sub(1 + usize::from(is_quoted));
    let before = opening.and_then(|at| at.checked_sub(1)).map(|at| text[at]);
    opening.is_some_and(|at| text[at] == b'{')
        && before.is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'>' | b'}'))
}

/// Whether one of these stands right before the name, or before the quote that opens it.
fn leads(text: &[u8], name: &Range<usize>, leads: &[&str]) -> bool {
    let before = &text[name.start.saturating_sub(MAX_LEAD)..name.start];
    let before = before.strip_suffix(b"\"").or(before.strip_suffix(b"'")).unwrap_or(before);
    ignore_case::ends_with_any(before, leads)
}

/// `|`, `>-`, `!!str`: how YAML writes what follows.
fn skip_yaml_style(cursor: &mut Cursor<'_>) {
    if cursor.eat(b"!!str ") {
        return;
    }
    let start = cursor.at;
    let is_block = matches!(cursor.peek(), Some(b'|' | b'>'));
    cursor.skip_while(3, |byte| b"|>-+".contains(&byte) || byte.is_ascii_digit());
    if is_block && matches!(cursor.peek(), Some(b'\n' | b'\r')) {
        cursor.skip_blanks_and_lines();
    } else {
        cursor.at = start;
    }
}

/// What follows a name that no operator gives its value: a pair, an element, a flag, a directive.
fn without_operator(
    cursor: Cursor<'_>,
    name: &Range<usize>,
    closed: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    let text = cursor.text;
    let before = name.start.checked_sub(1).map(|at| text[at]);
    if cursor.peek() == Some(b'<') && closed == cursor.at {
        return neighbour(&cursor);
    }
    if before == Some(b'<') && cursor.at > closed {
        return attributes(&cursor);
    }
    if quoted_name && let Some(found) = declared(&cursor, true, false, kind) {
        return Some(found);
    }
    let may_pair = quoted_name || matches!(cursor.peek(), Some(b'\n' | b'\r'));
    let pair = if may_pair { pair(&Cursor { text, at: closed }, kind) } else { None };
    let blanks = cursor.at - closed;
    if blanks > 0
        && !quoted_name
        && let Some(found) = login(&cursor, &text[name.clone()])
    {
        return Some(found);
    }
    pair.or_else(|| by_blank(cursor, text, name, blanks, quoted_name, kind))
}

/// Functions that compare what they are called with.
const COMPARING: &[&str] = &["cmp(", "compare(", "digest(", "equal(", "equals("];

/// `name("value")`, `"name", "value"`, `name == "value"`.
fn argument(
    mut cursor: Cursor<'_>,
    name: &Range<usize>,
    operator: Operator,
    closed: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    let text = cursor.text;
    if operator == Operator::Comma && !quoted_name {
        cursor.skip_blanks();
        return match leads(text, name, COMPARING) {
            true => quoted(cursor, Syntax::Compared),
            // `put(PASSWORD, "value")`.
            false if is_constant(&text[name.clone()]) || is_member(&text[name.clone()]) => {
                quoted(cursor, Syntax::Listed)
            }
            // Elixir: `put_env(:app, :name, "value")`. A label has no symbol before it.
            false if text[..name.start].ends_with(b", :") => quoted(cursor, Syntax::Listed),
            // Erlang: `{name, "value"}`.
            false if name.start.checked_sub(1).is_some_and(|at| text[at] == b'{') => {
                let found = quoted(cursor, Syntax::Listed)?;
                let closed = text.get(found.value.end + 1);
                (closed == Some(&b'}')).then_some(found)
            }
            false => None,
        };
    }
    if quoted_name && let Some(pair) = pair(&Cursor { text, at: closed }, kind) {
        return Some(pair);
    }
    if operator == Operator::Call
        && let Some(found) = login(&Cursor { text, at: cursor.at - 1 }, &text[name.clone()])
    {
        return Some(found);
    }
    cursor.skip_blanks_and_lines();
    let syntax = match operator {
        // `x.pass("…")` hands something on.
        Operator::Call if text[name.clone()].ends_with(b".pass") => return None,
        Operator::Call => Syntax::Argument,
        Operator::Comma if is_first_argument(text, name) => Syntax::Listed,
        // In a list of names each stands beside the next.
        Operator::Comma => Syntax::Among,
        _ => Syntax::Compared,
    };
    match quoted(Cursor { text, at: cursor.at }, syntax) {
        // `SecurityKey(bytes("value"))`.
        None if operator == Operator::Call => wrapped(&cursor),
        found => found,
    }
}

/// Whether a quoted name is the first argument of a call: `define('NAME', …`.
fn is_first_argument(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_OPENING: usize = 6;
    let from = name.start.saturating_sub(MAX_OPENING);
    let opening = &text[from..name.start];
    let inside = |byte: &&u8| matches!(**byte, b'"' | b'\'' | b'`' | b'\\' | b' ' | b':' | b'#');
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
    /// What a value is without: `x || "…"`.
    Or,
    /// A column of a table ends.
    Cell,
}

fn operator(cursor: &mut Cursor<'_>) -> Option<Operator> {
    let rest = &cursor.text[cursor.at.min(cursor.text.len())..];
    let (operator, len) = match rest {
        [b'=', b'=', b'=', ..] | [b'!', b'=', b'=', ..] => (Operator::Compare, 3),
        [b'=', b'=' | b'~', ..] | [b'!' | b'~', b'=', ..] => (Operator::Compare, 2),
        [b':', b':', b'=', ..] | [b'|', b'|', b'=', ..] | [b'?', b'?', b'=', ..] => {
            (Operator::Equals, 3)
        }
        [b':', b':', b':', b'=', ..] => (Operator::Equals, 4),
        [b'=', b'>', ..] | [b':' | b'?' | b'.', b'=', ..] => (Operator::Equals, 2),
        [b'|', b'|', ..] | [b'?', b'?', ..] | [b'o', b'r', b' ', ..] => (Operator::Or, 2),
        [b'|', b' ', ..] => (Operator::Cell, 1),
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

/// `: &'static str = "…"`, `: string = "…"`, `: [u8; 16] = […]`.
fn skip_type(cursor: &mut Cursor<'_>) {
    let start = cursor.at;
    let mut brackets = 0usize;
    let in_type = |byte: u8| {
        match byte {
            b'[' => brackets += 1,
            b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        byte.is_ascii_alphanumeric()
            || b"_<>&'[]?.|: \t*".contains(&byte)
            || (byte == b';' && brackets > 0)
    };
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
