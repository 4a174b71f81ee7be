//! Where a name's value stands: assignments, pairs, arguments, elements, flags, in any language.
//!
//! A name is followed by what closes it, an operator, what opens the value, and the value. Each step
//! has a bound, so that nothing beyond [`REACH_AFTER`] is looked at.

mod arguments;
mod blanks;
mod cursor;
mod extent;
mod joined;
mod markup;
mod notes;
mod operator;
#[cfg(test)]
mod tests;
mod values;

use std::ops::Range;

use super::NEAR_BEFORE as REACH;
use super::file_kind::FileKind;
use super::name::MAX_SIDE;
use super::vocabulary::{self, Role};
use crate::ignore_case;
use arguments::argument;
use blanks::{alone, by_blank, in_parentheses};
pub(super) use blanks::{is_no_word, is_prose, starts_line};
use cursor::Cursor;
pub(super) use extent::{name_around, phrase};
pub(super) use joined::joined;
use markup::{attributes, cell, element, neighbour};
pub(super) use notes::{is_in_comment, told, told_before};
use operator::{Operator, operator, skip_scheme, skip_type, skip_yaml_style};
use values::{
    bare, bytes, chosen_of_two, declared, fallback, is_variable, login, pair, quoted, wrapped,
};

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
            | 0xEF
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
            | b'{'
            | b'}'
    )
}

/// The value that belongs to `name`, if there is one.
pub(super) fn assignment(text: &[u8], name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    let Closing { mut cursor, quoted_name, brackets } = close(text, name)?;
    let closed = cursor.at;
    let may_be_closed = matches!(text.get(name.end), Some(b']' | b')' | b'"' | b'\''));
    if may_be_closed && let Some(found) = filled_in(text, name) {
        return Some(found);
    }
    // C++: `name{"value"}`.
    if cursor.starts_with(b"{\"") {
        return quoted(cursor, Syntax::Quoted);
    }
    let blanks = cursor.skip_blanks();
    // Scala and Kotlin: `"name" -> "value"`, `"name" to "value"`.
    if quoted_name && (cursor.eat(b"->") || (blanks > 0 && cursor.eat(b"to "))) {
        cursor.skip_blanks();
        return quoted(cursor, Syntax::Quoted);
    }
    // Gherkin: `I fill in "name" with "value"`.
    if quoted_name && blanks > 0 && cursor.starts_with(b"with \"") {
        cursor.at += b"with ".len();
        return quoted(cursor, Syntax::Argument);
    }
    // Org: `- name :: value`.
    if blanks > 0 && !quoted_name && cursor.eat(b":: ") {
        return bare(cursor, Syntax::BareColon, kind);
    }
    if blanks > 0
        && let Some(found) = annotated(cursor, kind)
            .or_else(|| property(cursor))
            .or_else(|| memoized(cursor, name, brackets))
    {
        return Some(found);
    }
    if quoted_name && let Some(found) = serialized(cursor) {
        return Some(found);
    }
    // `token -> value`, as people note something down.
    if blanks > 0 && !quoted_name && cursor.eat(b"-> ") {
        return bare(cursor, Syntax::Blank, kind);
    }
    // R: `name <- "value"`.
    if blanks > 0 && cursor.eat(b"<- ") {
        return quoted(cursor, Syntax::Quoted);
    }
    let Some(operator) = operator(&mut cursor) else {
        // `Credentials::new("user", …)`.
        if cursor.eat(b"::new") {
            return login(cursor, &text[name.clone()]);
        }
        return without_operator(cursor, name, closed, quoted_name, kind);
    };
    match operator {
        // `<name>…`, `<string name="name">…`.
        Operator::Close if markup::opens(text, name.start) => element(cursor),
        Operator::Close if quoted_name && leads(text, name, markup::NAMING) => element(cursor),
        Operator::Close => None,
        Operator::Or => {
            cursor.skip_blanks();
            quoted(cursor, Syntax::Compared)
        }
        Operator::Cell => cell(cursor, kind),
        // `get("password"), "x"`: what follows is an argument of another call.
        Operator::Comma if brackets > 0 => None,
        Operator::Call | Operator::Comma | Operator::Compare => {
            let found = argument(cursor, name, operator, closed, quoted_name, kind);
            // Nothing is called with a blank before the parenthesis.
            let is_call = operator != Operator::Call || blanks == 0;
            found.or_else(|| if is_call { None } else { in_parentheses(cursor) })
        }
        Operator::Colon if leads(text, name, &["${"]) => fallback(cursor),
        Operator::Equals | Operator::Colon => {
            assigned(cursor, name, operator, blanks, quoted_name, kind)
        }
    }
}

/// `name (prod) = value`.
fn annotated(mut cursor: Cursor<'_>, kind: FileKind) -> Option<Assignment> {
    if !cursor.eat(b"(") {
        return None;
    }
    cursor.skip_while(MAX_FIELD_NAME, |byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if !(cursor.eat(b") = ") || cursor.eat(b"): ")) {
        return None;
    }
    cursor.skip_blanks();
    bare(cursor, Syntax::Blank, kind)
}

/// C#: `name { get; set; } = "value"`.
fn property(mut cursor: Cursor<'_>) -> Option<Assignment> {
    if !cursor.eat(b"{") {
        return None;
    }
    cursor.skip_blanks();
    if !cursor.starts_with(b"get") {
        return None;
    }
    cursor.skip_while(MAX_BLANKS, |byte| !matches!(byte, b'}' | b'\n'));
    let is_closed = cursor.eat(b"}");
    cursor.skip_blanks();
    if !is_closed || !cursor.eat(b"=") {
        return None;
    }
    cursor.skip_blanks();
    quoted(cursor, Syntax::Quoted)
}

/// RSpec: `let(:name) { "value" }`.
fn memoized(mut cursor: Cursor<'_>, name: &Range<usize>, brackets: usize) -> Option<Assignment> {
    let is_let = leads(cursor.text, name, &["let(:", "let!(:", "subject(:"]);
    if brackets != 1 || !is_let || !cursor.eat(b"{ ") {
        return None;
    }
    let found = quoted(cursor, Syntax::Quoted)?;
    cursor.text[found.value.end..].get(1..3).is_some_and(|end| end == b" }").then_some(found)
}

/// PHP: `s:4:"name";s:12:"value";`, in a string or not.
fn serialized(mut cursor: Cursor<'_>) -> Option<Assignment> {
    const MAX_DIGITS: usize = 4;
    let opens = cursor.eat(b";s:")
        && cursor.skip_while(MAX_DIGITS, |byte| byte.is_ascii_digit()) > 0
        && cursor.eat(b":");
    if opens { quoted(cursor, Syntax::Quoted) } else { None }
}

/// How a name ends.
struct Closing<'t> {
    /// Behind what closes it.
    cursor: Cursor<'t>,
    quoted_name: bool,
    /// How many brackets, parentheses or asterisks close it.
    brackets: usize,
}

/// What closes the name; none if it is only put into a text.
fn close<'t>(text: &'t [u8], name: &Range<usize>) -> Option<Closing<'t>> {
    let mut cursor = Cursor { text, at: name.end };
    let quoted_name = cursor.eat_quote().is_some();
    if cursor.peek() == Some(b'[') && !quoted_name {
        cursor.at += 1;
        cursor.skip_while(8, |byte| byte.is_ascii_alphanumeric());
        cursor.eat(b"]");
    }
    // The asterisks are those of Markdown: `**Password**: …`.
    let brackets = cursor.skip_while(2, |byte| matches!(byte, b']' | b')' | b'*'));
    // Chef: `node['password']['app'] = "value"`, of one of several.
    if quoted_name && brackets == 1 && (cursor.starts_with(b"['") || cursor.starts_with(b"[\"")) {
        let start = cursor.at + 2;
        let mut inside = Cursor { text, at: start };
        inside.skip_while(MAX_FIELD_NAME, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
        // What is said of it: `errors['password']['message']`.
        if vocabulary::says(&text[start..inside.at], Role::DeniesBehind) {
            return None;
        }
        if inside.eat_quote().is_some() && inside.eat(b"]") {
            cursor = inside;
        }
    }
    // Perl: `$config{password} = "value"`, not `${password}`.
    if brackets == 0 && cursor.peek() == Some(b'}') {
        // Zabbix: `{$NAME}=value`.
        let is_macro = text[..name.start].ends_with(b"{$")
            && text.get(cursor.at + 1) == Some(&b'=')
            && !text[name.clone()].iter().any(u8::is_ascii_lowercase);
        if !is_macro && !is_subscript(text, name, quoted_name) {
            return None;
        }
        cursor.at += 1;
    }
    Some(Closing { cursor, quoted_name, brackets })
}

/// What stands behind `=` or `:`.
fn assigned(
    mut cursor: Cursor<'_>,
    name: &Range<usize>,
    operator: Operator,
    blanks: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    let text = cursor.text;
    if operator == Operator::Colon {
        cursor.eat(b"**");
        if let Some(found) = markup::emphasized(cursor) {
            return Some(found);
        }
    }
    let line_end = cursor.skip_blanks_and_lines();
    // Before anything else, as most of what code assigns has no value. Addresses stand in code, too.
    let is_parameter = text[..name.start].ends_with(b"&") || text[..name.start].ends_with(b"?");
    if kind == FileKind::Code && !is_parameter && is_variable(cursor) {
        return None;
    }
    let crossed = memchr::memchr(b'\n', &text[cursor.at - line_end..cursor.at]).is_some();
    if operator == Operator::Colon && !crossed {
        skip_type(&mut cursor);
        skip_scheme(&mut cursor, &text[name.clone()]);
    }
    if let Some(found) = login(cursor, &text[name.clone()]) {
        return Some(found);
    }
    let may_indent = crossed && operator == Operator::Colon;
    if let Some(found) = declared(cursor, quoted_name, may_indent, kind) {
        return Some(found);
    }
    if let Some(found) = quoted(cursor, Syntax::Quoted) {
        let place = names_before(text, name.start);
        let second = if place > 0 { behind(text, &found) } else { None };
        // `connect(user, name="value")` is none of several.
        let Some(mut found) = second else { return Some(found) };
        for _ in 1..place {
            found = behind(text, &found)?;
        }
        return Some(found);
    }
    if let Some(found) = bytes(cursor).or_else(|| wrapped(cursor)) {
        return Some(found);
    }
    if kind == FileKind::Code
        && !crossed
        && let Some(found) = chosen_of_two(cursor)
    {
        return Some(found);
    }
    // `x-api-key:`, and in the next line `- value`: headers as recordings of tests have them.
    if may_indent && kind == FileKind::Config && cursor.eat(b"- ") {
        skip_scheme(&mut cursor, &text[name.clone()]);
        return quoted(cursor, Syntax::Cell).or_else(|| bare(cursor, Syntax::Cell, kind));
    }
    if crossed {
        let is_note = matches!(kind, FileKind::Text | FileKind::Unknown);
        return if may_indent && is_note { alone(cursor) } else { None };
    }
    if operator == Operator::Colon {
        skip_yaml_style(&mut cursor);
    }
    let is_tight = blanks == 0 && line_end == 0;
    let syntax = bare_syntax(text, name, operator, is_tight, quoted_name);
    bare(cursor, syntax, kind)
}

/// How many names stand before it that are assigned together: `user, name = …`.
fn names_before(text: &[u8], start: usize) -> usize {
    const MAX_NAMES: usize = 3;
    const MAX_BEFORE: usize = 64;
    const _: () = assert!(MAX_SIDE + MAX_BEFORE <= REACH);
    let mut before = &text[start.saturating_sub(MAX_BEFORE)..start];
    for count in 0..MAX_NAMES {
        before = before.strip_suffix(b"$").unwrap_or(before);
        let Some(rest) = before.strip_suffix(b", ").or(before.strip_suffix(b",")) else {
            return count;
        };
        let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let len = rest.iter().rev().take_while(in_name).count();
        if len == 0 {
            return count;
        }
        before = &rest[..rest.len() - len];
    }
    MAX_NAMES
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
fn filled_in(text: &[u8], name: &Range<usize>) -> Option<Assignment> {
    const MAX_CLOSING: usize = 4;
    #[rustfmt::skip]
    const METHODS: [&[u8]; 10] = [
        b".type(", b".fill(", b".val(", b".set(", b".set ", b".setValue(", b".typeText(", b".sendKeys(",
        b".send_keys(", b".value = ",
    ];
    let name_end = name.end;
    let mut cursor = Cursor { text, at: name_end };
    cursor.skip_while(MAX_CLOSING, |byte| matches!(byte, b']' | b')' | b'"' | b'\''));
    // `page.type('input[name="password"]', 'value')`, `page.fill('input[name=password]', 'value')`,
    // `fill_in 'user[password]', with: 'value'`.
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let is_selector = match &text[name_end..cursor.at] {
        [b'"' | b'\'', b']', b'"' | b'\'' | b'`'] => true,
        [b']', b'"' | b'\'' | b'`'] => matches!(before, Some(b'=' | b'[')),
        _ => false,
    };
    if is_selector && (cursor.eat(b", with: ") || cursor.eat(b", ")) {
        return quoted(cursor, Syntax::Argument);
    }
    // What a variable is without a value: `var("NAME").unwrap_or("value")`.
    const OTHERWISE: [&[u8]; 4] =
        [b".unwrap_or(", b".unwrap_or_else(|_| ", b".orElse(", b".getOrElse("];
    if cursor.at > name_end && OTHERWISE.iter().any(|method| cursor.eat(method)) {
        return quoted(cursor, Syntax::Quoted);
    }
    // Kotlin: `getenv("NAME") ?: "value"`, in a line of its own as well.
    if matches!(&text[name_end..cursor.at], [b'"' | b'\'', b')']) {
        let mut behind = cursor;
        behind.skip_blanks_and_lines();
        if behind.eat(b"?: ") {
            return quoted(behind, Syntax::Quoted);
        }
    }
    let is_closed = cursor.at > name_end && cursor.peek() == Some(b'.');
    if is_closed {
        cursor.eat(b".clear()");
    }
    if is_closed && METHODS.iter().any(|method| cursor.eat(method)) {
        let found = quoted(cursor, Syntax::Argument)?;
        // What is pressed behind it.
        let value = &text[found.value.clone()];
        let len = value.strip_suffix(b"{enter}").map_or(value.len(), <[u8]>::len);
        return Some(Assignment { value: found.value.start..found.value.start + len, ..found });
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
        // `name:value` is a label, a time, a host: values of configurations stand apart. A wide colon has no
        // blank behind it.
        _ if is_tight && !quoted_name && text[name.end].is_ascii() => Syntax::Label,
        _ => Syntax::BareColon,
    }
}

/// Whether a name is written as those of constants are.
pub(super) fn is_constant(name: &[u8]) -> bool {
    name.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_')
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

/// What follows a name that no operator gives its value: a pair, an element, a flag, a directive.
fn without_operator(
    cursor: Cursor<'_>,
    name: &Range<usize>,
    closed: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    let text = cursor.text;
    if cursor.peek() == Some(b'<') && closed == cursor.at {
        return neighbour(cursor);
    }
    if cursor.at > closed && markup::opens(text, name.start) {
        return attributes(cursor);
    }
    if quoted_name && let Some(found) = declared(cursor, true, false, kind) {
        return Some(found);
    }
    if quoted_name
        && leads(text, name, markup::NAMING)
        && let Some(found) = attributes(cursor)
    {
        return Some(found);
    }
    let may_pair = quoted_name || matches!(cursor.peek(), Some(b'\n' | b'\r'));
    let pair = if may_pair { pair(Cursor { text, at: closed }, kind) } else { None };
    let blanks = cursor.at - closed;
    if blanks > 0
        && !quoted_name
        && let Some(found) = login(cursor, &text[name.clone()])
    {
        return Some(found);
    }
    pair.or_else(|| by_blank(cursor, name, blanks, quoted_name, kind))
}
