//! Values of elements and of tables.

use super::cursor::Cursor;
use super::values::bare;
use super::{Assignment, MAX_DECLARED, MAX_FIELD_NAME, MAX_VALUE, Syntax};
use crate::detect::file_kind::FileKind;
use crate::ignore_case;

/// What names an element, and does not only mark it: `<string name="…">`.
pub(super) const NAMING: &[&str] = &["name=", "key="];

/// What an element says of its value: where a standard describes it. No declaration has both.
const MAX_ATTRIBUTES: usize = 160;
const _: () = assert!(MAX_ATTRIBUTES <= MAX_DECLARED);

/// Whether the name that begins at `start` is that of an element, by itself or behind a namespace's:
/// `<name`, `<wsse:name`.
pub(super) fn opens(text: &[u8], start: usize) -> bool {
    const MAX_PREFIX: usize = 8;
    let before = &text[start.saturating_sub(MAX_PREFIX + 2)..start];
    let before = match before {
        [prefix @ .., b':'] => {
            let len = prefix.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
            &prefix[..prefix.len() - len]
        }
        _ => before,
    };
    before.last() == Some(&b'<')
}

/// Up to the tag that closes the element; the value may have a line of its own, and a tag.
pub(super) fn element(mut cursor: Cursor<'_>) -> Option<Assignment> {
    cursor.skip_blanks_and_lines();
    if cursor.eat(b"<value>") {
        cursor.skip_blanks_and_lines();
    }
    let is_verbatim = cursor.eat(b"<![CDATA[");
    let start = cursor.at;
    let rest = &cursor.text[start..cursor.text.len().min(start + MAX_VALUE)];
    let len = match is_verbatim {
        true => memchr::memmem::find(rest, b"]]>")?,
        false => rest.iter().take_while(|byte| !matches!(byte, b'<' | b'\n' | b'\r')).count(),
    };
    cursor.at += len;
    cursor.eat(b"]]>");
    cursor.skip_blanks_and_lines();
    let blanks = cursor.text[start..start + len].iter().rev().take_while(|byte| **byte == b' ');
    let value = start..start + len - blanks.count();
    let is_value = cursor.starts_with(b"</") && !value.is_empty();
    is_value.then_some(Assignment { value, syntax: Syntax::Element })
}

/// `<name encoding="x">value</name>`, `<string name="name" translatable="false">value</string>`: behind the
/// name.
pub(super) fn attributes(mut cursor: Cursor<'_>) -> Option<Assignment> {
    // What is in quotes may be an address.
    let mut in_quotes = false;
    let start = cursor.at;
    cursor.skip_while(MAX_ATTRIBUTES, |byte| {
        in_quotes ^= byte == b'"';
        byte != b'\n' && (in_quotes || !matches!(byte, b'<' | b'>' | b'/'))
    });
    // FileZilla, behind a password of its own.
    if ignore_case::contains(&cursor.text[start..cursor.at], "encoding=\"crypt\"") {
        return None;
    }
    if cursor.eat(b">") { element(cursor) } else { None }
}

/// `<key>name</key><string>value</string>`: the next element holds the value.
pub(super) fn neighbour(mut cursor: Cursor<'_>) -> Option<Assignment> {
    /// Elements that hold names. What any other holds is a value itself.
    const NAMES: [&[u8]; 6] = [b"</key>", b"</name>", b"</th>", b"</td>", b"</dt>", b"</label>"];
    if !NAMES.iter().any(|tag| cursor.eat(tag)) {
        return None;
    }
    cursor.skip_blanks_and_lines();
    let begins = cursor.eat(b"<");
    let len = cursor.skip_while(MAX_FIELD_NAME, |byte| byte.is_ascii_alphabetic());
    if begins && len > 0 && cursor.eat(b">") { element(cursor) } else { None }
}

/// `<b>name:</b> value`, `name: <code>value</code>`: behind the colon.
pub(super) fn emphasized(mut cursor: Cursor<'_>) -> Option<Assignment> {
    const TAGS: [&[u8]; 7] = [b"b>", b"strong>", b"em>", b"code>", b"kbd>", b"span>", b"tt>"];
    cursor.skip_blanks();
    if !cursor.eat(b"<") {
        return None;
    }
    cursor.eat(b"/");
    if !TAGS.iter().any(|tag| cursor.eat(tag)) {
        return None;
    }
    cursor.skip_blanks();
    cursor.eat(b"<code>");
    bare(cursor, Syntax::Element, FileKind::Unknown)
}

/// `| name | value |`, in prose.
pub(super) fn cell(mut cursor: Cursor<'_>, kind: FileKind) -> Option<Assignment> {
    if !matches!(kind, FileKind::Text | FileKind::Unknown) {
        return None;
    }
    cursor.skip_blanks();
    cursor.eat(b"`");
    let found = bare(cursor, Syntax::Cell, kind)?;
    let mut rest = Cursor { at: found.value.end, ..cursor };
    rest.eat(b"`");
    rest.skip_blanks();
    // Columns of words are beside columns of words.
    let has_digit = cursor.text[found.value.clone()].iter().any(u8::is_ascii_digit);
    (rest.peek() == Some(b'|') && has_digit).then_some(found)
}
