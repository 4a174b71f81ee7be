//! Values beside their names in calls, lists and comparisons.

use std::ops::Range;

use super::cursor::Cursor;
use super::operator::Operator;
use super::values::{bare, login, pair, quoted, wrapped};
use super::{Assignment, Syntax, is_constant, leads, quoted_at, starts_line};
use crate::detect::NEAR_BEFORE;
use crate::detect::calls;
use crate::detect::file_kind::FileKind;
use crate::detect::name::MAX_SIDE;
use crate::ignore_case;

/// Functions that compare what they are called with.
const COMPARING: &[&str] = &["cmp(", "compare(", "digest(", "equal(", "equals("];

/// `name("value")`, `"name", "value"`, `name == "value"`.
pub(super) fn argument(
    mut cursor: Cursor<'_>,
    name: &Range<usize>,
    operator: Operator,
    closed: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    let text = cursor.text;
    // YAML: `{name: NAME, value: x}`.
    if operator == Operator::Comma
        && !quoted_name
        && kind == FileKind::Config
        && let Some(pair) = pair(Cursor { text, at: closed }, kind)
    {
        return Some(pair);
    }
    // Capybara: `fill_in "name", with: "value"`.
    if operator == Operator::Comma
        && let Some(found) = with(cursor)
    {
        return Some(found);
    }
    if operator == Operator::Comma && !quoted_name {
        return behind_comma(cursor, name, kind);
    }
    if quoted_name && let Some(pair) = pair(Cursor { text, at: closed }, kind) {
        return Some(pair);
    }
    // PHP: `define('NAME', 'value')`; what passwords are called is defined so, too.
    let is_key = || ignore_case::contains_any(&text[name.clone()], &["key", "secret", "token"]);
    if operator == Operator::Comma && quoted_name && leads(text, name, &["define("]) && is_key() {
        return quoted_at(text, cursor.at, Syntax::Quoted);
    }
    if operator == Operator::Call
        && let Some(found) = login(Cursor { text, at: cursor.at - 1 }, &text[name.clone()])
    {
        return Some(found);
    }
    if operator == Operator::Call
        && let Some(found) = last_of_call(cursor, &text[name.clone()])
    {
        return Some(found);
    }
    cursor.skip_blanks_and_lines();
    let syntax = match operator {
        // `x.pass("…")` hands something on.
        Operator::Call if text[name.clone()].ends_with(b".pass") => return None,
        Operator::Call => Syntax::Argument,
        Operator::Comma
            if is_first_argument(text, name) || is_option(text, name) || is_setting(text, name) =>
        {
            Syntax::Listed
        }
        // In a list of names each stands beside the next.
        Operator::Comma => Syntax::Among,
        _ => Syntax::Compared,
    };
    match quoted(cursor, syntax) {
        // `VALUES (7, 'smtp_password', 'value')`: the last of a row, behind a name that is no word.
        Some(found) if syntax == Syntax::Among && is_value_of_row(text, name, &found) => {
            Some(Assignment { syntax: Syntax::Listed, ..found })
        }
        // `SecurityKey(bytes("value"))`.
        None if operator == Operator::Call => wrapped(cursor),
        found => found,
    }
}

/// `NAME, "value"`, where a name without quotes has its value behind a comma.
fn behind_comma(mut cursor: Cursor<'_>, name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    let text = cursor.text;
    let before = &text[..name.start];
    cursor.skip_blanks();
    // Go: `name, _ := hex.DecodeString("value")`.
    if kind != FileKind::Text && (cursor.eat(b"_ := ") || cursor.eat(b"err := ")) {
        return quoted(cursor, Syntax::Quoted).or_else(|| wrapped(cursor));
    }
    if leads(text, name, COMPARING) {
        return quoted(cursor, Syntax::Compared);
    }
    // `put(PASSWORD, "value")`.
    if is_constant(&text[name.clone()]) || is_member(&text[name.clone()]) {
        return quoted(cursor, Syntax::Listed).or_else(|| exported(cursor, name, kind));
    }
    // C: `strcpy(config.name, "value")`. Elixir: `put_env(:app, :name, "value")`; a label has no symbol before
    // it. Sinatra: `set :name, "value"`.
    if is_copied(text, name) || before.ends_with(b", :") || before.ends_with(b"set :") {
        return quoted(cursor, Syntax::Listed);
    }
    // Erlang: `{name, "value"}`.
    if !before.ends_with(b"{") {
        return None;
    }
    let found = quoted(cursor, Syntax::Listed)?;
    let behind = &text[text.len().min(found.value.end + 1)..];
    let behind = behind.strip_prefix(b">>").unwrap_or(behind);
    behind.starts_with(b"}").then_some(found)
}

/// What a field is filled in with: behind the comma.
fn with(mut cursor: Cursor<'_>) -> Option<Assignment> {
    if !(cursor.eat(b" with: ") || cursor.eat(b" :with => ")) {
        return None;
    }
    quoted(cursor, Syntax::Argument)
}

/// `DB_PASSWORD,value`: a table of names and values.
fn exported(cursor: Cursor<'_>, name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    let text = cursor.text;
    let is_first = text[name.clone()].contains(&b'_') && starts_line(text, name.start);
    if kind != FileKind::Unknown || !is_first || text[cursor.at - 1] != b',' {
        return None;
    }
    let found = bare(cursor, Syntax::BareEquals, kind)?;
    matches!(text.get(found.value.end), None | Some(b'\n' | b'\r')).then_some(found)
}

/// `authWithPassword("user", "value")`, `open_with_pass(path, mode, "value")`: who calls it so says what
/// comes last.
fn last_of_call(cursor: Cursor<'_>, name: &[u8]) -> Option<Assignment> {
    const MAX_BEFORE: usize = 3;
    const ENDS: &[&str] = &["withpassword", "with_password", "with_pass", "withpass"];
    let (text, mut at) = (cursor.text, cursor.at);
    if !ignore_case::ends_with_any(name, ENDS) {
        return None;
    }
    for place in 0..=MAX_BEFORE {
        match calls::behind_argument(text, at) {
            Some(behind) => at = behind,
            None if place == 0 => return None,
            None => break,
        }
    }
    let found = quoted_at(text, at, Syntax::Login)?;
    let rest = &text[text.len().min(found.value.end + 1)..];
    rest.starts_with(b")").then_some(found)
}

/// Whether it ends a row, or only whether it is loaded stands behind it: `(7, 'smtp_password', 'value', 'yes')`.
fn is_value_of_row(text: &[u8], name: &Range<usize>, found: &Assignment) -> bool {
    const LOADED: [&[u8]; 6] = [b"yes'", b"no'", b"on'", b"off'", b"auto'", b"auto-on'"];
    let rest = &text[text.len().min(found.value.end)..];
    let is_loaded = || {
        let rest = rest.strip_prefix(b"',")?;
        let rest = rest.strip_prefix(b" ").unwrap_or(rest).strip_prefix(b"'")?;
        LOADED
            .iter()
            .find_map(|word| rest.strip_prefix(*word))
            .filter(|rest| rest.starts_with(b")"))
    };
    text[name.clone()].contains(&b'_')
        && (is_last_of_row(text, name, found) || is_loaded().is_some())
}

fn is_last_of_row(text: &[u8], name: &Range<usize>, found: &Assignment) -> bool {
    const MAX_QUOTES: usize = 4;
    let mut behind = Cursor { text, at: found.value.end };
    // A string in a string ends with two quotes, one of them escaped.
    behind.skip_while(MAX_QUOTES, |byte| matches!(byte, b'"' | b'\'' | b'\\'));
    text[name.clone()].contains(&b'_') && behind.peek() == Some(b')')
}

/// Whether a quoted name is the first argument of a call: `define('NAME', …`.
fn is_first_argument(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_OPENING: usize = 24;
    let from = name.start.saturating_sub(MAX_OPENING);
    let opening = &text[from..name.start];
    // What the name is kept under: `setValue("db/name", …`.
    let in_path = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-');
    let path = match opening.last() {
        Some(b'/') => opening.iter().rev().take_while(in_path).count(),
        _ => 0,
    };
    let opening = &opening[..opening.len() - path];
    let inside = |byte: &&u8| matches!(**byte, b'"' | b'\'' | b'`' | b'\\' | b' ' | b':' | b'#');
    let skipped = opening.iter().rev().take_while(inside).count();
    opening.iter().rev().nth(skipped) == Some(&b'(')
}

/// Go: `flag.StringVar(&x, "name", "value", …)`, of which the value is what stands there without the option.
fn is_option(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_VARIABLE: usize = 32;
    const _: () = assert!(MAX_SIDE + MAX_VARIABLE <= NEAR_BEFORE);
    let before = &text[name.start.saturating_sub(MAX_VARIABLE)..name.start];
    memchr::memmem::find(before, b"StringVar(&").is_some()
}

/// Python: `config.set("section", "name", "value")`.
fn is_setting(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_SECTION: usize = 32;
    const _: () = assert!(MAX_SIDE + MAX_SECTION <= NEAR_BEFORE);
    let before = &text[name.start.saturating_sub(MAX_SECTION)..name.start];
    let section = memchr::memmem::rfind(before, b".set(").map(|at| &before[at..]);
    section.is_some_and(|section| section.iter().filter(|byte| **byte == b',').count() == 1)
}

/// Whether the name is where a string is copied to.
fn is_copied(text: &[u8], name: &Range<usize>) -> bool {
    const MAX_BEFORE: usize = 16;
    let before = &text[name.start.saturating_sub(MAX_BEFORE)..name.start];
    memchr::memmem::find(before, b"cpy(").is_some()
}

/// `Context.PASSWORD`.
fn is_member(name: &[u8]) -> bool {
    let dot = memchr::memrchr(b'.', name);
    dot.is_some_and(|dot| dot + 1 < name.len() && is_constant(&name[dot + 1..]))
}
