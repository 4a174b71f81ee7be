//! Values beside their names in calls, lists and comparisons.

use std::ops::Range;

use super::cursor::Cursor;
use super::operator::Operator;
use super::values::{login, pair, quoted, wrapped};
use super::{Assignment, Syntax, is_constant, leads};
use crate::detect::file_kind::FileKind;

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
    if quoted_name && let Some(pair) = pair(Cursor { text, at: closed }, kind) {
        return Some(pair);
    }
    if operator == Operator::Call
        && let Some(found) = login(Cursor { text, at: cursor.at - 1 }, &text[name.clone()])
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
    match quoted(cursor, syntax) {
        // `SecurityKey(bytes("value"))`.
        None if operator == Operator::Call => wrapped(cursor),
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

/// `Context.PASSWORD`.
fn is_member(name: &[u8]) -> bool {
    let dot = memchr::memrchr(b'.', name);
    dot.is_some_and(|dot| dot + 1 < name.len() && is_constant(&name[dot + 1..]))
}
