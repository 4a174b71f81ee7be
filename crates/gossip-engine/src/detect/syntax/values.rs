//! The value itself: quoted, wrapped, bare, of numbers, or further on.

use std::ops::Range;

use super::cursor::Cursor;
use super::{
    Assignment, MAX_BLANKS, MAX_DECLARED, MAX_FIELD_NAME, MAX_PAIR_GAP, MAX_VALUE, MAX_WRAPPER,
    Syntax,
};
use crate::detect::file_kind::FileKind;
use crate::detect::value;
use crate::ignore_case;

/// A quoted value at the cursor, with or without a letter before the quote.
pub(super) fn quoted(mut cursor: Cursor<'_>, syntax: Syntax) -> Option<Assignment> {
    cursor.skip_while(2, |byte| matches!(byte, b'[' | b'{' | b'('));
    if cursor.at.checked_sub(1).is_some_and(|at| cursor.text[at] == b'(') {
        cursor.skip_blanks_and_lines();
    }
    if cursor.at >= 2 && cursor.text[cursor.at - 2..cursor.at] == *b"[[" {
        return between_brackets(cursor, syntax);
    }
    if matches!(cursor.peek(), Some(b'q' | b'%'))
        && let Some(found) = between_signs(cursor, syntax)
    {
        return Some(found);
    }
    // Erlang writes strings of bytes so: `<<"value">>`.
    if cursor.starts_with(b"<<\"") {
        cursor.at += 2;
    }
    let start = cursor.at;
    cursor.skip_while(2, |byte| b"bBrRuUfFLNq@$&".contains(&byte));
    let (escapes, quote) = match cursor.eat_quote() {
        Some(found) => found,
        None => {
            cursor.at = start;
            cursor.eat_quote()?
        }
    };
    // A string in a string: `"\"value\""`.
    let escapes = if escapes == 0 && cursor.eat(&[b'\\', quote]) { 1 } else { escapes };
    // Three quotes open a text of several lines.
    if cursor.starts_with(&[quote, quote]) {
        cursor.at += 2;
    }
    let start = cursor.at;
    let limit = cursor.text.len().min(start + MAX_VALUE + 1);
    let mut at = start;
    while at < limit {
        match cursor.text[at] {
            b'\n' => return None,
            b'\\' => {
                let run = cursor.text[at..limit].iter().take_while(|byte| **byte == b'\\').count();
                let closes = cursor.text.get(at + run) == Some(&quote) && run == escapes;
                if closes {
                    break;
                }
                at += run + usize::from(run % 2 == 1 && escapes == 0);
                continue;
            }
            byte if byte == quote && escapes == 0 => break,
            byte if byte == quote => return None,
            _ => at += 1,
        }
    }
    let found = Assignment { value: start..at, syntax };
    (at < limit && at > start).then_some(found)
}

/// `[[value]]`: a string of Lua. In a shell it is a condition, and begins with a blank.
fn between_brackets(cursor: Cursor<'_>, syntax: Syntax) -> Option<Assignment> {
    const MAX_LEN: usize = 128;
    let rest = &cursor.text[cursor.at..cursor.text.len().min(cursor.at + MAX_LEN)];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b']' | b'[' | b'"' | b'\'');
    let len = rest.iter().position(ends)?;
    let value = cursor.at..cursor.at + len;
    (len > 0 && rest[len..].starts_with(b"]]")).then_some(Assignment { value, syntax })
}

/// `q{value}`, `qq(value)`, `%q[value]`: a string of Perl or Ruby.
fn between_signs(mut cursor: Cursor<'_>, syntax: Syntax) -> Option<Assignment> {
    const MAX_LEN: usize = 128;
    cursor.eat(b"%");
    let is_string = cursor.eat(b"qq") || cursor.eat(b"q") || cursor.eat(b"Q");
    let close = match cursor.peek()? {
        b'{' => b'}',
        b'(' => b')',
        b'[' => b']',
        sign @ (b'|' | b'!' | b'/') => sign,
        _ => return None,
    };
    let start = cursor.at + 1;
    let rest = &cursor.text[start..cursor.text.len().min(start + MAX_LEN)];
    let len = rest.iter().position(|byte| *byte == close || *byte == b'\n')?;
    let value = start..start + len;
    (is_string && len > 0 && rest[len] == close).then_some(Assignment { value, syntax })
}

/// `wrapper("value")`, at most two of them: `Some(b64decode(b'…'))`.
pub(super) fn wrapped(mut cursor: Cursor<'_>) -> Option<Assignment> {
    // Java makes a decoder first.
    const DECODERS: [&[u8]; 2] =
        [b"Base64.getDecoder().decode(", b"Base64.getUrlDecoder().decode("];
    if DECODERS.iter().any(|decoder| cursor.eat(decoder)) {
        return quoted(cursor, Syntax::Wrapped);
    }
    // Python: the first of what is joined.
    if cursor.eat(b"\"\".join([") || cursor.eat(b"''.join([") {
        return quoted(cursor, Syntax::Wrapped);
    }
    let mut names = [&[][..]; 2];
    for wrapper in 0..names.len() {
        let start = cursor.at;
        let in_wrapper = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:<>@[]&*! ".contains(&byte);
        cursor.skip_while(MAX_WRAPPER, in_wrapper);
        names[wrapper] = &cursor.text[start..cursor.at];
        if names[wrapper].is_empty() || !cursor.eat(b"(") {
            return None;
        }
        cursor.skip_blanks();
        // Most calls are given no string, so what is called is looked at behind it.
        if let Some(found) = quoted(cursor, Syntax::Wrapped) {
            let is_other = |name: &&[u8]| is_reader(name) || is_of_tests(name);
            return (!names.iter().any(is_other)).then_some(found);
        }
    }
    None
}

/// Whether a function of this name returns what is kept elsewhere.
fn is_reader(name: &[u8]) -> bool {
    // The bytes of a string are the string.
    if ignore_case::ends_with_any(name, &["getbytes"]) {
        return false;
    }
    const READS: &[&str] = &["env", "get", "read", "load", "config", "param", "prompt"];
    name == b"var" || ignore_case::contains_any(name, READS)
}

/// Whether a function of this name is there for tests: `test::from_hex`.
fn is_of_tests(name: &[u8]) -> bool {
    let mut words = name.split(|byte| !byte.is_ascii_alphanumeric());
    words.any(|word| ignore_case::is_any(word, &["test", "tests"]))
}

/// Numbers below 256 in braces or brackets, as many as a key has.
pub(super) fn bytes(mut cursor: Cursor<'_>) -> Option<Assignment> {
    const KEY_LENS: [usize; 8] = [8, 16, 20, 24, 32, 48, 64, 128];
    const MAX_LEN: usize = 128;
    let in_type = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:<>[]&*! ;".contains(&byte);
    let start = cursor.at;
    cursor.skip_while(MAX_WRAPPER, in_type);
    // A list in brackets is eaten with the type: step back to its bracket.
    let open = if matches!(cursor.peek(), Some(b'{' | b'(')) {
        cursor.at
    } else {
        let eaten = &cursor.text[start..cursor.at];
        start + eaten.iter().rposition(|byte| *byte == b'[')?
    };
    cursor.at = open + 1;
    cursor.skip_blanks_and_lines();
    let first = cursor.at;
    let (mut count, mut end) = (0, cursor.at);
    let mut values = [0u8; MAX_LEN];
    while cursor.at < cursor.text.len().min(first + MAX_VALUE) {
        let digits = cursor.at;
        let hex = cursor.eat(b"0x") || cursor.eat(b"0X");
        let from = cursor.at;
        cursor.skip_while(3, |byte| byte.is_ascii_hexdigit());
        let number = std::str::from_utf8(&cursor.text[from..cursor.at]).ok()?;
        let Ok(value) = u8::from_str_radix(number, if hex { 16 } else { 10 }) else { break };
        if count == MAX_LEN {
            return None;
        }
        values[count] = value;
        count += 1;
        end = cursor.at;
        debug_assert!(digits < end);
        cursor.skip_blanks();
        if !cursor.eat(b",") {
            break;
        }
        cursor.skip_blanks_and_lines();
    }
    cursor.skip_blanks_and_lines();
    let closed = matches!(cursor.peek(), Some(b'}' | b']' | b')'));
    let values = &values[..count];
    // Places of a word in a text, or numbers in order.
    let is_sorted = values.windows(2).all(|pair| pair[0] < pair[1]);
    let is_counted = is_sorted || value::are_counted(values.iter().copied());
    let found = Assignment { value: first..end, syntax: Syntax::Bytes };
    (KEY_LENS.contains(&count) && closed && !is_counted).then_some(found)
}

/// `name: NAME`, then `value: VALUE`; `key="NAME" value="VALUE"`; a field may stand between them.
pub(super) fn pair(mut cursor: Cursor<'_>, kind: FileKind) -> Option<Assignment> {
    for _ in 0..2 {
        let gap = cursor.skip_while(MAX_PAIR_GAP, |byte| {
            byte.is_ascii_whitespace() || matches!(byte, b',' | b'-' | b'"' | b'\'' | b'\\' | b':')
        });
        // Of an application's manifest.
        cursor.eat(b"android:");
        let start = cursor.at;
        cursor.skip_while(MAX_FIELD_NAME, |byte| byte.is_ascii_alphabetic() || byte == b'_');
        let field = &cursor.text[start..cursor.at];
        cursor.eat_quote();
        cursor.skip_blanks();
        if gap == 0 || field.is_empty() || !(cursor.eat(b":") || cursor.eat(b"=")) {
            return None;
        }
        cursor.skip_blanks();
        if is_default(field) {
            return any(cursor, Syntax::Pair, kind);
        }
        // `key: token`, and then another name with a value of its own.
        if ignore_case::is_any(field, &["name"]) {
            return None;
        }
        skip_field(&mut cursor);
    }
    None
}

/// Whether a field of this name holds the value of what is declared.
fn is_default(field: &[u8]) -> bool {
    ignore_case::is_any(field, &["value", "default", "default_value"])
}

/// Up to the end of a field's value: that of its quotes, its word, or its line.
fn skip_field(cursor: &mut Cursor<'_>) {
    match cursor.eat_quote() {
        Some((_, quote)) => {
            cursor.skip_while(MAX_PAIR_GAP, |byte| byte != quote && byte != b'\n');
        }
        None => {
            cursor.skip_while(MAX_PAIR_GAP, |byte| !matches!(byte, b',' | b'\n'));
        }
    }
}

fn any(cursor: Cursor<'_>, syntax: Syntax, kind: FileKind) -> Option<Assignment> {
    match quoted(cursor, syntax) {
        Some(found) => Some(found),
        None => bare(cursor, syntax, kind),
    }
}

/// `variable "NAME" { default = "VALUE" }`, `"NAME": {"Type": "String", "Default": "VALUE"}`, and the
/// same in indented lines: the default may stand behind other fields.
pub(super) fn declared(
    cursor: Cursor<'_>,
    is_quoted: bool,
    may_indent: bool,
    kind: FileKind,
) -> Option<Assignment> {
    const MAX_FIELDS: usize = 6;
    let limit = cursor.text.len().min(cursor.at + MAX_DECLARED);
    let mut inside = Cursor { text: &cursor.text[..limit], at: cursor.at };
    inside.skip_blanks();
    let is_block = is_quoted && inside.eat(b"{");
    let is_indented = may_indent && kind == FileKind::Config;
    if !is_block && !is_indented {
        return None;
    }
    for _ in 0..MAX_FIELDS {
        inside.skip_blanks_and_lines();
        inside.eat_quote();
        let start = inside.at;
        inside.skip_while(MAX_FIELD_NAME, |byte| byte.is_ascii_alphabetic());
        let field = &inside.text[start..inside.at];
        inside.eat_quote();
        inside.skip_blanks();
        if field.is_empty() || !(inside.eat(b"=") || inside.eat(b":")) {
            return None;
        }
        inside.skip_blanks();
        if is_default(field) {
            let value = Cursor { at: inside.at, ..cursor };
            return match is_block {
                true => quoted(value, Syntax::Quoted),
                false => any(value, Syntax::Pair, kind),
            };
        }
        skip_field(&mut inside);
        inside.eat_quote();
        inside.eat(b",");
    }
    None
}

/// `isTest ? "VALUE" : ""`: what a name is given where a program runs. On other conditions people are told something.
pub(super) fn chosen_of_two(mut cursor: Cursor<'_>) -> Option<Assignment> {
    const MAX_CONDITION: usize = 64;
    const WHERE: &[&str] = &["debug", "dev", "env", "local", "prod", "stag", "test"];
    let start = cursor.at;
    let in_condition =
        |byte: u8| byte.is_ascii_alphanumeric() || b" _.=!&|'\"()[]$->".contains(&byte);
    cursor.skip_while(MAX_CONDITION, in_condition);
    let condition = &cursor.text[start..cursor.at];
    if !cursor.eat(b"? ") || !ignore_case::contains_any(condition, WHERE) {
        return None;
    }
    if cursor.eat(b"\"\" : ") || cursor.eat(b"'' : ") {
        return quoted(cursor, Syntax::Quoted);
    }
    let found = quoted(cursor, Syntax::Quoted)?;
    let behind = Cursor { at: found.value.end + 1, ..cursor };
    behind.starts_with(b" : ").then_some(found)
}

/// `${NAME:VALUE}`, `${NAME:-VALUE}`: what a variable is without a value.
pub(super) fn fallback(mut cursor: Cursor<'_>) -> Option<Assignment> {
    cursor.skip_while(1, |byte| matches!(byte, b'-' | b'='));
    // `${NAME:?what to say}`.
    if cursor.peek() == Some(b'?') {
        return None;
    }
    let start = cursor.at;
    let len = cursor.skip_while(MAX_VALUE, |byte| {
        byte.is_ascii_graphic() && !matches!(byte, b'}' | b'{' | b'$' | b'"' | b'\'')
    });
    let found = Assignment { value: start..start + len, syntax: Syntax::Quoted };
    (len > 0 && cursor.peek() == Some(b'}')).then_some(found)
}

/// `auth=("user", "VALUE")`, `Credential("user", "VALUE")`: what logs in has a user's name before it.
pub(super) fn login(cursor: Cursor<'_>, name: &[u8]) -> Option<Assignment> {
    const NAMES: &[&str] =
        &["auth", "credential", "credentials", "creds", "credentials.basic", "passwordtoken"];
    // Ruby calls without parentheses: `http.basic_auth "user", "VALUE"`.
    let is_bare_call = matches!(cursor.peek(), Some(b'"' | b'\''))
        && ignore_case::ends_with_any(name, &["basic_auth"]);
    let opens = matches!(cursor.peek(), Some(b'(' | b'[' | b'{')) || is_bare_call;
    if !opens || !ignore_case::ends_with_any(name, NAMES) {
        return None;
    }
    let (text, opening) = (cursor.text, cursor.peek());
    let mut cursor = Cursor { text, at: cursor.at + usize::from(!is_bare_call) };
    // Who somebody acts as may stand before a user's name, and be nobody.
    for _ in 0..2 {
        cursor.skip_blanks_and_lines();
        let (_, quote) = cursor.eat_quote()?;
        let len = cursor.skip_while(MAX_PAIR_GAP, |byte| byte != quote && byte != b'\n');
        cursor.eat_quote()?;
        let _ = cursor.eat(b".into()") || cursor.eat(b".to_string()") || cursor.eat(b".to_owned()");
        let blanks = cursor.skip_blanks();
        // Clojure lists without commas.
        let is_next = blanks > 0
            && opening == Some(b'[')
            && cursor.peek() == Some(b'"')
            && ignore_case::ends_with_any(name, &["basic-auth"]);
        if !is_next && !cursor.eat(b",") {
            return None;
        }
        if len > 0 {
            break;
        }
    }
    cursor.skip_blanks_and_lines();
    cursor.eat(b"Some(");
    let found = quoted(cursor, Syntax::Login)?;
    // Features of a package are listed so: `aws-auth = ["a", "b", "c"]`.
    let in_feature = |byte: &u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_' | b'/');
    let goes_on = opening == Some(b'[')
        && text.get(found.value.end + 1) == Some(&b',')
        && text[found.value.clone()].iter().all(in_feature);
    (!goes_on).then_some(found)
}

/// Whether a brace opens before `at` on its line.
fn is_in_map(text: &[u8], at: usize) -> bool {
    const MAX_BEFORE: usize = 64;
    let before = &text[at.saturating_sub(MAX_BEFORE)..at];
    let line = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    before[line..].contains(&b'{')
}

/// A value without quotes: up to a blank, or to what ends an expression.
pub(super) fn bare(cursor: Cursor<'_>, syntax: Syntax, kind: FileKind) -> Option<Assignment> {
    let text = cursor.text;
    let limit = text.len().min(cursor.at + MAX_VALUE + 1);
    let config = kind == FileKind::Config && syntax != Syntax::Parameter;
    let ends = |byte: u8| {
        byte.is_ascii_whitespace()
            || matches!(byte, b'"' | b'\'' | b'`' | b'<' | b'>' | b';')
            || (!config && matches!(byte, b',' | b')' | b']' | b'}' | b'&' | b'|'))
            || (syntax == Syntax::Parameter && byte == b'#')
    };
    let rest = &text[cursor.at..limit];
    if config && let Some(len) = value::app_password_len(rest) {
        return Some(Assignment { value: cursor.at..cursor.at + len, syntax });
    }
    let mut len = rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len());
    // `--set password=value,replicas=2`: another one follows.
    if let Some(comma) = rest[..len].iter().position(|byte| *byte == b',')
        && begins_assignment(&rest[comma + 1..len])
    {
        len = comma;
    }
    if len > MAX_VALUE {
        return None;
    }
    // An escaped line end, or the backslash that goes on with a command.
    if let Some(escape) = rest[..len].iter().position(|byte| *byte == b'\\') {
        len = escape;
    }
    // `{user: app, password: value}`.
    let closes_map = config && !rest[..len].contains(&b'{') && is_in_map(text, cursor.at);
    while len > 0 && (matches!(rest[len - 1], b',' | b'.') || (closes_map && rest[len - 1] == b'}'))
    {
        len -= 1;
    }
    if !config && rest[..len].contains(&b'(') {
        return None;
    }
    let value = cursor.at..cursor.at + len;
    let may_be_in_string = matches!(syntax, Syntax::BareEquals | Syntax::Variable);
    let in_string = kind == FileKind::Code && may_be_in_string && is_in_string(text, &value);
    // Addresses stand in strings, too.
    let may_be_variable = !in_string && syntax != Syntax::Parameter;
    if kind == FileKind::Code && may_be_variable && is_variable_name(&rest[..len]) {
        return None;
    }
    let follows = Follows::of(text, value.end);
    // What stands behind a flag or a variable's value is the rest of a command.
    let in_command = matches!(syntax, Syntax::Parameter | Syntax::Flag | Syntax::Variable);
    let prose = follows == Follows::Prose && !in_command;
    if len == 0 || prose || follows == Follows::Expression {
        return None;
    }
    let syntax = if in_string { Syntax::ConnectionString } else { syntax };
    Some(Assignment { value, syntax })
}

/// `name=`.
fn begins_assignment(rest: &[u8]) -> bool {
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.-[]".contains(byte);
    let len = rest.iter().take_while(in_name).count();
    len > 0 && rest.get(len) == Some(&b'=')
}

/// Whether `name=value` is followed by another one, or by the quote that closes a string: in code
/// nothing else is written so.
fn is_in_string(text: &[u8], value: &Range<usize>) -> bool {
    let rest = &text[value.end..text.len().min(value.end + MAX_BLANKS)];
    match rest {
        [b'"' | b'\'', ..] | [b';', b'"' | b'\'', ..] => true,
        [b' ', rest @ ..] => begins_assignment(rest),
        // The settings of a database have names of several words: `;Integrated Security=True`.
        [b';', rest @ ..] => rest.split(|byte| *byte == b' ').take(3).any(begins_assignment),
        _ => false,
    }
}

/// Whether code gives a name nothing but another: `key = other;`, `key: Type,`.
pub(super) fn is_variable(cursor: Cursor<'_>) -> bool {
    let rest = &cursor.text[cursor.at.min(cursor.text.len())..];
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
    let (name, rest) = rest.split_at(rest.iter().take(MAX_WRAPPER).take_while(in_name).count());
    let ends = matches!(rest, [b'\n' | b'\r' | b',' | b')', ..] | [b';', b'\n' | b'\r' | b' ', ..]);
    ends && is_variable_name(name)
}

/// What a variable is called: a letter, and digits at its end at most.
fn is_variable_name(value: &[u8]) -> bool {
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let stem = &value[..value.len() - digits];
    let in_stem = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.');
    !stem.is_empty() && stem.iter().all(in_stem)
}

#[derive(PartialEq, Eq)]
enum Follows {
    Nothing,
    /// More words: the value is the first of a sentence.
    Prose,
    /// The value is called, indexed or part of a sum.
    Expression,
}

impl Follows {
    fn of(text: &[u8], end: usize) -> Self {
        let rest = &text[end..text.len().min(end + MAX_BLANKS)];
        match rest.first() {
            Some(b'(' | b'[' | b'{') => return Self::Expression,
            Some(b' ' | b'\t') => {}
            _ => return Self::Nothing,
        }
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let word = &rest[blanks..];
        match word.first() {
            Some(b'+' | b'?' | b'*' | b'=' | b'(') => Self::Expression,
            Some(byte) if byte.is_ascii_alphanumeric() => {
                let len = word.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
                let assigns = word[..len].iter().any(|byte| matches!(byte, b'=' | b'/' | b'@'));
                if assigns { Self::Nothing } else { Self::Prose }
            }
            _ => Self::Nothing,
        }
    }
}
