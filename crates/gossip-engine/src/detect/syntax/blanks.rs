//! Values that only blanks separate from their name: flags, directives, SQL, definitions.

use std::ops::Range;

use super::cursor::Cursor;
use super::notes::line_before;
use super::values::{bare, quoted};
use super::{Assignment, MAX_VALUE, MAX_WRAPPER, Syntax, is_constant, leads};
use crate::detect::file_kind::FileKind;
use crate::detect::services::MAX_BEFORE;
use crate::detect::value;
use crate::ignore_case;

/// A bare value behind a blank is as long, or has a digit.
const MIN_LETTERS: usize = 20;
/// PL/SQL declares a constant so, behind its name.
const CONSTANT: &[u8] = b"constant ";
/// What SQL writes before the value of a column or a variable.
const DEFAULT: &[u8] = b"default ";

/// How long the word is that says in a sentence what something is, with its blank: `is`, in six languages, and `was`.
fn says(rest: &[u8]) -> Option<usize> {
    const WORDS: [&str; 8] = ["is ", "was ", "es ", "est ", "ist ", "lautet ", "jest ", "é "];
    // Most words begin with none of these.
    let may_be = matches!(rest, [b'i' | b'w' | b'e' | b'l' | b'j' | 0xC3, ..]);
    let word = WORDS.iter().find(|word| may_be && rest.starts_with(word.as_bytes()));
    word.map(|word| word.len())
}

/// Whether a plain word follows the name and nothing that gives it a value, as in most logs: for these
/// [`assignment`](super::assignment) has no answer, and this is cheaper to tell.
pub(in crate::detect) fn is_prose(text: &[u8], name: &Range<usize>, kind: FileKind) -> bool {
    if text[name.end] != b' ' || text[name.start] == b'-' {
        return false;
    }
    let rest = &text[name.end + 1..text.len().min(name.end + 2 + MIN_LETTERS)];
    if says(rest).is_some() || rest.starts_with(CONSTANT) {
        return false;
    }
    let letters = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
    // A type may stand before `=`.
    let ends = match rest.get(letters) {
        Some(b' ') => {
            let next = &rest[letters + 1..];
            next.first().is_some_and(u8::is_ascii_alphanumeric) && !is_default(next)
        }
        // One word that a name begins the line of may be its value.
        Some(b'\n' | b'\r') => {
            let may_be_value = starts_line(text, name.start) || is_variable(&text[name.clone()]);
            kind != FileKind::Config || !may_be_value
        }
        // A directive's value may go on with these.
        Some(b',' | b';' | b')') => kind != FileKind::Config || !starts_line(text, name.start),
        _ => false,
    };
    letters > 0 && letters < MIN_LETTERS && ends
}

/// `DB_PASSWORD`: what the environment has.
fn is_variable(name: &[u8]) -> bool {
    is_constant(name) && name.contains(&b'_')
}

/// `--name value` and `PASSWORD 'value'`: nothing but blanks between.
pub(super) fn by_blank(
    cursor: Cursor<'_>,
    name: &Range<usize>,
    blanks: usize,
    quoted_name: bool,
    kind: FileKind,
) -> Option<Assignment> {
    if blanks == 0 || quoted_name {
        return None;
    }
    let text = cursor.text;
    let word = &text[name.clone()];
    // One dash is enough for PowerShell and Java; `-k` and the like are no names.
    let is_flag = word.starts_with(b"-") && !word.contains(&b'.');
    if is_flag {
        return match quoted(cursor, Syntax::Flag) {
            Some(found) => Some(found),
            None if cursor.peek() == Some(b'-') => None,
            None => bare(cursor, Syntax::Flag, kind),
        };
    }
    let rest = &text[cursor.at..text.len().min(cursor.at + MAX_WRAPPER)];
    let begun = rest.iter().take_while(|byte| is_plain(**byte)).count();
    if let Some(found) = typed(cursor, begun) {
        return Some(found);
    }
    if leads(text, name, &["define ", "\\set ", "(def ", "defvar *", "ameter *"])
        && let Some(found) = quoted(cursor, Syntax::Quoted)
    {
        return Some(found);
    }
    // Lisp: `(= name "value")`.
    if cursor.peek() == Some(b'"') && leads(text, name, &["(= "]) {
        return quoted(cursor, Syntax::Compared);
    }
    // Clojure: `:name "value"`; attributes of modules in Elixir: `@name "value"`.
    let is_marked = matches!(name.start.checked_sub(1).map(|at| text[at]), Some(b':' | b'@'));
    if is_marked && kind != FileKind::Text && cursor.peek() == Some(b'"') {
        return quoted(cursor, Syntax::Quoted);
    }
    // `password "…"` at the start of a line calls a function, as builds of Gradle do.
    if kind != FileKind::Text
        && matches!(cursor.peek(), Some(b'"' | b'\''))
        && (starts_line(text, name.start)
            || (kind == FileKind::Config && is_commented(text, name.start)))
        && let Some(found) = quoted(cursor, Syntax::Argument)
    {
        return Some(found);
    }
    // SQL writes its words in capitals, or at least all alike.
    let is_sql = word.iter().all(|byte| byte.is_ascii_uppercase()) && cursor.peek() == Some(b'\'');
    if is_sql {
        return quoted(cursor, Syntax::Sql);
    }
    // `OPTIONS (user 'app', password 'value')`.
    if cursor.peek() == Some(b'\'') && leads(text, name, &["(", ", "]) {
        let found = quoted(cursor, Syntax::Sql)?;
        let is_option = matches!(text.get(found.value.end + 1), Some(b')' | b','));
        return is_option.then_some(found);
    }
    if kind == FileKind::Config
        && starts_line(text, name.start)
        && let Some(found) = directive(cursor, kind)
    {
        return Some(found);
    }
    // Most of what is left is prose: a word, and then another.
    let found = match rest.get(begun) {
        _ if says(rest).is_some() => said(cursor, name, kind),
        Some(b' ') if !rest.starts_with(b"0 ") => None,
        next if kind == FileKind::Config && next.is_none_or(|next| may_go_on(*next)) => {
            behind_words(cursor, name, kind)
        }
        _ => None,
    };
    found.or_else(|| blank(cursor, begun, word))
}

/// Whether this may follow the letters and digits that a password begins with: paths, lists and calls
/// go on otherwise.
fn may_go_on(next: u8) -> bool {
    matches!(next, b'\n' | b'\r' | b' ' | b'"' | b'\'') || b"!@#$%^&*?+~-:".contains(&next)
}

/// `the name is "value"`, `the name is <b>value</b>`.
fn said(cursor: Cursor<'_>, name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    const MARKS: [&[u8]; 6] = [b"<b>", b"<strong>", b"<code>", b"<tt>", b"**", b"*"];
    let len = says(&cursor.text[cursor.at..]).unwrap_or(0);
    let mut value = Cursor { at: cursor.at + len, ..cursor };
    if MARKS.iter().any(|mark| value.eat(mark)) {
        let start = value.at;
        let len = value.skip_while(MAX_WRAPPER, |byte| byte.is_ascii_graphic() && byte != b'<');
        let marks = cursor.text[start..start + len].iter().rev().take_while(|byte| **byte == b'*');
        let end = start + len - marks.count();
        return Some(Assignment { value: start..end, syntax: Syntax::Said });
    }
    let opens = matches!(value.peek(), Some(b'"' | b'\'' | b'`' | b'\\'));
    if !opens || is_prose(cursor.text, name, kind) {
        return None;
    }
    quoted(value, Syntax::Said)
}

/// `SetEnv NAME value`: in quotes, or up to the end of the line.
fn behind_words(cursor: Cursor<'_>, name: &Range<usize>, kind: FileKind) -> Option<Assignment> {
    let text = cursor.text;
    // `password 0 value`: routers say so that it is not encrypted.
    let at = cursor.at + if cursor.starts_with(b"0 ") { 2 } else { 0 };
    let cursor = Cursor { text, at };
    let is_quoted = matches!(cursor.peek(), Some(b'"' | b'\''));
    let rest = &text[at..text.len().min(at + MAX_WRAPPER)];
    let ends_line =
        || rest.iter().find(|byte| byte.is_ascii_whitespace()).is_none_or(|byte| *byte != b' ');
    if !(is_quoted || ends_line()) || !follows_words(text, name.start) || is_prose(text, name, kind)
    {
        return None;
    }
    // `export PGUSER PGPASSWORD PGDATABASE`: names of variables.
    let line = line_before(text, name.start).trim_ascii_start();
    if [&b"export "[..], b"unset ", b"readonly "].iter().any(|word| line.starts_with(word)) {
        return None;
    }
    let found = if is_quoted { quoted(cursor, Syntax::Argument) } else { None };
    found.or_else(|| directive(cursor, kind))
}

/// Whether a few words stand before it on its line and nothing else, the first of them at its start:
/// `SetEnv NAME value`, `enable password value`.
fn follows_words(text: &[u8], start: usize) -> bool {
    let from = start.saturating_sub(MAX_BEFORE);
    let in_words = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'\t' | b'_' | b'-' | b'/' | b'$')
    };
    let len = text[from..start].iter().rev().take_while(in_words).count();
    let line = start - len;
    let begins = line == 0 || (line > from && text[line - 1] == b'\n');
    let first = text[line..start].iter().find(|byte| !matches!(byte, b' ' | b'\t'));
    begins && first.is_some_and(u8::is_ascii_alphabetic)
}

/// `password value`, and nothing more on the line.
fn directive(cursor: Cursor<'_>, kind: FileKind) -> Option<Assignment> {
    const MAX_DOTS: usize = 2;
    let mut found = bare(cursor, Syntax::Directive, kind)?;
    let mut rest = Cursor { at: found.value.end, ..cursor };
    // No sentence ends here: the dot is the password's.
    rest.skip_while(MAX_DOTS, |byte| byte == b'.');
    found.value.end = rest.at;
    rest.skip_blanks();
    matches!(rest.peek(), None | Some(b'\n' | b'\r')).then_some(found)
}

/// Whether nothing but blanks stands before it on its line.
pub(in crate::detect) fn starts_line(text: &[u8], start: usize) -> bool {
    let from = start.saturating_sub(MAX_BEFORE);
    let blanks = text[from..start].iter().rev().take_while(|byte| matches!(byte, b' ' | b'\t'));
    let line = start - blanks.count();
    line == 0 || (line > from && text[line - 1] == b'\n')
}

fn is_default(rest: &[u8]) -> bool {
    matches!(rest.first(), Some(b'd' | b'D'))
        && rest.get(..DEFAULT.len()).is_some_and(|word| word.eq_ignore_ascii_case(DEFAULT))
}

/// Whether nothing but the sign of a comment stands before it on its line.
fn is_commented(text: &[u8], start: usize) -> bool {
    const SIGNS: [&[u8]; 4] = [b"//", b"#", b";", b"--"];
    const MAX_SIGN: usize = 3;
    let from = start.saturating_sub(MAX_SIGN);
    let before = &text[from..start];
    let before = before.strip_suffix(b" ").unwrap_or(before);
    let sign = SIGNS.iter().find_map(|sign| before.strip_suffix(*sign));
    sign.is_some_and(|before| starts_line(text, from + before.len()))
}

/// `name string = "…"`: Go writes the type behind the name. `begun` bytes of it are known to be one.
fn typed(cursor: Cursor<'_>, begun: usize) -> Option<Assignment> {
    let first = &cursor.text[cursor.at..cursor.at + begun];
    let mut cursor = Cursor { at: cursor.at + begun, ..cursor };
    // `name As String = "…"`, `name CONSTANT VARCHAR2(30) := '…'`, `name TYPE string VALUE '…'`.
    if ignore_case::is_any(first, &["as", "constant"]) || first == b"TYPE" {
        cursor.skip_blanks();
    }
    let in_type = |byte: u8| is_plain(byte) || matches!(byte, b'*' | b'[' | b']' | b'(' | b')');
    let len = begun + cursor.skip_while(MAX_WRAPPER.saturating_sub(begun), in_type);
    let blanks = cursor.skip_blanks();
    if len == 0 || blanks == 0 {
        return None;
    }
    let _ = cursor.eat(b"NOT NULL ") || cursor.eat(b"not null ");
    let assigns = cursor.starts_with(b"=") && !cursor.starts_with(b"==");
    let assigns = assigns && !cursor.starts_with(b"=>");
    let len = match cursor.starts_with(b":=") {
        _ if assigns => 1,
        true => 2,
        false if is_default(&cursor.text[cursor.at..]) => DEFAULT.len(),
        // ABAP.
        false if cursor.starts_with(b"VALUE '") => b"VALUE ".len(),
        false => return None,
    };
    cursor.at += len;
    cursor.skip_blanks();
    quoted(cursor, Syntax::Quoted)
}

/// A value with a digit in it, or longer than words are, right behind a name: bare, or in quotes. `begun` bytes
/// of it are known to be one.
fn blank(mut cursor: Cursor<'_>, mut begun: usize, name: &[u8]) -> Option<Assignment> {
    // `the key is …`.
    let word = says(&cursor.text[cursor.at.min(cursor.text.len())..]);
    let is_said = word.is_some();
    if let Some(len) = word {
        cursor.at += len;
        begun = 0;
    }
    let quote = cursor.peek().filter(|byte| matches!(byte, b'"' | b'\'' | b'`' | b'~'));
    cursor.at += usize::from(quote.is_some());
    let rest = &cursor.text[cursor.at..cursor.text.len().min(cursor.at + MAX_VALUE)];
    let in_word = |byte: &&u8| byte.is_ascii_graphic() && **byte != b')' && Some(**byte) != quote;
    let (mut word, mut digits) = (0, 0);
    for byte in rest.iter().take_while(in_word) {
        word += 1;
        digits += usize::from(byte.is_ascii_digit());
    }
    // Most of what stands behind a name is prose; that quotes words, too.
    let is_random = || quote.is_some() && is_no_word(&rest[..word]);
    if digits == 0 && word < MIN_LETTERS && !is_random() {
        return None;
    }
    // `temp password Value1! for bob`: made as rules for passwords ask.
    if value::is_by_the_rules(&rest[..word]) {
        let value = cursor.at..cursor.at + word;
        return Some(Assignment { value, syntax: Syntax::Said });
    }
    // `with password "value"`; programs pass "utf8".
    let is_said = is_said || (quote.is_some() && !name.eq_ignore_ascii_case(b"pass"));
    let in_value = |byte: &u8| {
        let is_sign = b"-+/=~:".contains(byte) || (is_said && b"!@#$&*".contains(byte));
        is_plain(*byte) || (is_sign && Some(*byte) != quote)
    };
    let mut len = begun + rest[begun..].iter().take_while(|byte| in_value(byte)).count();
    // The dot of a sentence.
    while quote.is_none() && rest[..len].ends_with(b".") {
        len -= 1;
    }
    let ends = match (quote, rest.get(len)) {
        (Some(quote), next) => next == Some(&quote),
        (None, Some(b',' | b'.')) => ends_sentence(&rest[len..]),
        (None, Some(b'<')) => rest[len..].starts_with(b"</"),
        (None, next) => {
            next.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`;".contains(byte))
        }
    };
    let has_digit = || rest[..len].iter().any(u8::is_ascii_digit);
    let value = cursor.at..cursor.at + len;
    let syntax = if is_said { Syntax::Said } else { Syntax::Blank };
    (ends && (len >= MIN_LETTERS || has_digit() || is_random()))
        .then_some(Assignment { value, syntax })
}

/// Whether a sentence quotes this for what it is: no word, by its letters.
pub(in crate::detect) fn is_no_word(value: &[u8]) -> bool {
    const NO_WORD_BITS: f32 = 8.0;
    const MIN_LEN: usize = 6;
    value.len() >= MIN_LEN && value::weigh(value, NO_WORD_BITS).is_some()
}

/// Whether `rest` begins with signs that close a sentence or a part of it.
fn ends_sentence(rest: &[u8]) -> bool {
    let signs = rest.iter().take_while(|byte| matches!(byte, b',' | b'.')).count();
    signs > 0 && rest.get(signs).is_none_or(u8::is_ascii_whitespace)
}

/// `name:`, and the value in a line of its own further down.
pub(super) fn alone(cursor: Cursor<'_>) -> Option<Assignment> {
    let found = key(cursor, |byte| is_plain(byte) || b"-+/=~:".contains(&byte))?;
    let next = cursor.text.get(found.value.end);
    matches!(next, None | Some(b'\n' | b'\r')).then_some(found)
}

/// `rotate the name (value) soon`: behind the parenthesis. Dates and other numbers have dashes in them.
pub(super) fn in_parentheses(cursor: Cursor<'_>) -> Option<Assignment> {
    let text = cursor.text;
    let found = key(cursor, |byte| byte.is_ascii_alphanumeric() || b"_-+/=:".contains(&byte))?;
    let value = &text[found.value.clone()];
    let is_one = !value.contains(&b'-') || value::is_uuid(value);
    (is_one && text.get(found.value.end) == Some(&b')')).then_some(found)
}

/// What is as long as a key at the cursor, and no commit.
fn key(mut cursor: Cursor<'_>, is_in: impl Fn(u8) -> bool) -> Option<Assignment> {
    const MIN_LEN: usize = 16;
    const MAX_LEN: usize = 256;
    const COMMIT_LEN: usize = 40;
    let start = cursor.at;
    let len = cursor.skip_while(MAX_LEN, is_in);
    let value = start..start + len;
    let is_hex = || cursor.text[value.clone()].iter().all(u8::is_ascii_hexdigit);
    let is_commit = len == COMMIT_LEN && is_hex();
    (len >= MIN_LEN && !is_commit).then_some(Assignment { value, syntax: Syntax::Blank })
}

/// In a type as in a value: most of what stands behind a name and a blank is prose, and its first word
/// is read once for both.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.')
}
