//! Where a name's value stands: assignments, pairs, arguments, elements, flags, in any language.
//!
//! A name is followed by what closes it, an operator, what opens the value, and the value. Each step
//! has a bound, so that nothing beyond [`REACH_AFTER`] is looked at.

use std::ops::Range;

use super::file_kind::FileKind;
use super::name::MAX_SIDE;

/// Blanks between a name, its operator and its value.
const MAX_BLANKS: usize = 40;
/// A type or a function between the operator and the value.
const MAX_WRAPPER: usize = 48;
/// What may stand between a name and the `value` that goes with it.
const MAX_PAIR_GAP: usize = 64;
/// The longest value.
pub(super) const MAX_VALUE: usize = 512;

/// How far behind the credential word the answer can depend on the text.
pub(super) const REACH_AFTER: usize =
    MAX_SIDE + 4 * MAX_BLANKS + 3 * MAX_WRAPPER + MAX_PAIR_GAP + MAX_VALUE + 64;
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

/// Reads on behind a name.
struct Cursor<'t> {
    text: &'t [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts_with(&self, prefix: &[u8]) -> bool {
        self.text[self.at.min(self.text.len())..].starts_with(prefix)
    }

    fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.starts_with(prefix);
        self.at += if found { prefix.len() } else { 0 };
        found
    }

    fn skip_while(&mut self, max: usize, skip: impl Fn(u8) -> bool) -> usize {
        let rest = &self.text[self.at.min(self.text.len())..];
        let count = rest.iter().take(max).take_while(|byte| skip(**byte)).count();
        self.at += count;
        count
    }

    fn skip_blanks(&mut self) -> usize {
        self.skip_while(MAX_BLANKS, |byte| matches!(byte, b' ' | b'\t'))
    }

    fn skip_blanks_and_lines(&mut self) -> usize {
        self.skip_while(MAX_BLANKS, |byte| byte.is_ascii_whitespace())
    }

    /// Backslashes and a quote: how many backslashes, and which quote.
    fn eat_quote(&mut self) -> Option<(usize, u8)> {
        let start = self.at;
        let escapes = self.skip_while(3, |byte| byte == b'\\');
        match self.peek() {
            Some(quote @ (b'"' | b'\'' | b'`')) => {
                self.at += 1;
                Some((escapes, quote))
            }
            _ => {
                self.at = start;
                None
            }
        }
    }
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
        Operator::Colon if line_end == 0 && !quoted_name => return None,
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
        [b'=', b'>', ..] | [b':' | b'?', b'=', ..] => (Operator::Equals, 2),
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
    let is_flag = text[name.clone()].starts_with(b"--");
    if is_flag {
        return match quoted(Cursor { text, at: cursor.at }, Syntax::Flag) {
            Some(found) => Some(found),
            None if cursor.peek() == Some(b'-') => None,
            None => bare(&cursor, Syntax::Flag, kind),
        };
    }
    // SQL writes its words in capitals, or at least all alike.
    let word = &text[name.clone()];
    let is_sql = word.iter().all(|byte| byte.is_ascii_uppercase()) && cursor.peek() == Some(b'\'');
    if is_sql { quoted(cursor, Syntax::Sql) } else { blank(&cursor) }
}

/// A bare value with a digit in it, right behind a name.
fn blank(cursor: &Cursor<'_>) -> Option<Assignment> {
    let rest = &cursor.text[cursor.at..cursor.text.len().min(cursor.at + MAX_VALUE)];
    let in_value = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.+/=~:".contains(byte);
    let len = rest.iter().take_while(|byte| in_value(byte)).count();
    let ends =
        rest.get(len).is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`".contains(byte));
    let has_digit = rest[..len].iter().any(u8::is_ascii_digit);
    let value = cursor.at..cursor.at + len;
    (ends && has_digit).then_some(Assignment { value, syntax: Syntax::Blank })
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

/// A quoted value at the cursor, with or without a letter before the quote.
fn quoted(mut cursor: Cursor<'_>, syntax: Syntax) -> Option<Assignment> {
    cursor.skip_while(2, |byte| matches!(byte, b'[' | b'{' | b'('));
    let start = cursor.at;
    cursor.skip_while(2, |byte| b"bBrRuUfFLNq@$&".contains(&byte));
    let (escapes, quote) = match cursor.eat_quote() {
        Some(found) => found,
        None => {
            cursor.at = start;
            cursor.eat_quote()?
        }
    };
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

/// `wrapper("value")`, at most two of them: `Some(b64decode(b'…'))`.
fn wrapped(cursor: &Cursor<'_>) -> Option<Assignment> {
    let mut cursor = Cursor { text: cursor.text, at: cursor.at };
    for _ in 0..2 {
        let start = cursor.at;
        let in_wrapper = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:<>@[]&*! ".contains(&byte);
        cursor.skip_while(MAX_WRAPPER, in_wrapper);
        let name = &cursor.text[start..cursor.at];
        let reads = [b"env".as_slice(), b"get", b"read", b"load", b"config", b"param", b"prompt"];
        let is_reader = reads.iter().any(|word| crate::rules::contains_ignore_case(name, word));
        if name.is_empty() || is_reader || !cursor.eat(b"(") {
            return None;
        }
        cursor.skip_blanks();
        let inner = Cursor { text: cursor.text, at: cursor.at };
        if let Some(found) = quoted(inner, Syntax::Wrapped) {
            return Some(found);
        }
    }
    None
}

/// Numbers below 256 in braces or brackets, at least eight.
fn bytes(cursor: &Cursor<'_>) -> Option<Assignment> {
    const MIN_BYTES: usize = 8;
    let mut cursor = Cursor { text: cursor.text, at: cursor.at };
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
    let mut last = None;
    let mut rising = 0;
    while cursor.at < cursor.text.len().min(first + MAX_VALUE) {
        let digits = cursor.at;
        let hex = cursor.eat(b"0x") || cursor.eat(b"0X");
        let from = cursor.at;
        cursor.skip_while(3, |byte| byte.is_ascii_hexdigit());
        let number = std::str::from_utf8(&cursor.text[from..cursor.at]).ok()?;
        let Ok(value) = u8::from_str_radix(number, if hex { 16 } else { 10 }) else { break };
        rising += usize::from(
            last.is_some_and(|last: u8| value == last || value == last.wrapping_add(1)),
        );
        last = Some(value);
        count += 1;
        end = cursor.at;
        debug_assert!(digits < end);
        cursor.skip_blanks();
        if !cursor.eat(b",") {
            break;
        }
        cursor.skip_blanks_and_lines();
    }
    let counted = rising * 2 >= count;
    let found = Assignment { value: first..end, syntax: Syntax::Bytes };
    (count >= MIN_BYTES && !counted).then_some(found)
}

/// `name: NAME`, then `value: VALUE`; `key="NAME" value="VALUE"`.
fn pair(cursor: &Cursor<'_>, kind: FileKind) -> Option<Assignment> {
    let mut cursor = Cursor { text: cursor.text, at: cursor.at };
    let gap = cursor.skip_while(MAX_PAIR_GAP, |byte| {
        byte.is_ascii_whitespace() || matches!(byte, b',' | b'-' | b'"' | b'\'' | b'\\' | b':')
    });
    let word = cursor.text.get(cursor.at..cursor.at + 5)?;
    if gap == 0 || !word.eq_ignore_ascii_case(b"value") {
        return None;
    }
    cursor.at += 5;
    cursor.eat_quote();
    cursor.skip_blanks();
    if !(cursor.eat(b":") || cursor.eat(b"=")) {
        return None;
    }
    cursor.skip_blanks();
    match quoted(Cursor { text: cursor.text, at: cursor.at }, Syntax::Pair) {
        Some(found) => Some(found),
        None => bare(&cursor, Syntax::Pair, kind),
    }
}

/// Up to the tag that closes the element.
fn element(cursor: &Cursor<'_>) -> Option<Assignment> {
    let limit = cursor.text.len().min(cursor.at + MAX_VALUE);
    let rest = &cursor.text[cursor.at..limit];
    let len = rest.iter().position(|byte| matches!(byte, b'<' | b'\n'))?;
    let value = cursor.at..cursor.at + len;
    let found = Assignment { value, syntax: Syntax::Element };
    (rest[len..].starts_with(b"</") && len > 0).then_some(found)
}

/// A value without quotes: up to a blank, or to what ends an expression.
fn bare(cursor: &Cursor<'_>, syntax: Syntax, kind: FileKind) -> Option<Assignment> {
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
    let mut len = rest.iter().position(|byte| ends(*byte)).unwrap_or(rest.len());
    if len > MAX_VALUE {
        return None;
    }
    // An escaped line end, or the backslash that goes on with a command.
    if let Some(escape) = rest[..len].iter().position(|byte| *byte == b'\\') {
        len = escape;
    }
    while len > 0 && matches!(rest[len - 1], b',' | b'.') {
        len -= 1;
    }
    if !config && rest[..len].contains(&b'(') {
        return None;
    }
    if kind == FileKind::Code && is_identifier(&rest[..len]) {
        return None;
    }
    let value = cursor.at..cursor.at + len;
    let follows = Follows::of(text, value.end);
    let prose = follows == Follows::Prose && syntax != Syntax::Parameter;
    if len == 0 || prose || follows == Follows::Expression {
        return None;
    }
    Some(Assignment { value, syntax })
}

/// What a variable is called: a letter, and digits at its end at most.
fn is_identifier(value: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `@…@` marks the value that is to be found.
    fn check(marked: &str, word: &str, syntax: Syntax, kind: FileKind) {
        let text = marked.replace('@', "");
        let start = text.to_ascii_lowercase().find(word).unwrap();
        let name = name_around(text.as_bytes(), start..start + word.len()).unwrap();
        let found = assignment(text.as_bytes(), &name, kind);
        let value = marked.find('@').unwrap();
        let len = marked[value + 1..].find('@').unwrap();
        let found = found.unwrap_or_else(|| panic!("nothing in {text}"));
        assert_eq!((found.value, found.syntax), (value..value + len, syntax), "{text}");
    }

    #[test]
    fn values_are_found_in_every_syntax() {
        use FileKind::{Code, Config, Unknown};
        for (marked, syntax, kind) in [
            ("password = \"@kdxnyjwb@\"", Syntax::Quoted, Code),
            ("\"password\": \"@kdxnyjwb@\",", Syntax::Quoted, Config),
            ("\\\"password\\\": \\\"@kdxnyjwb@\\\"", Syntax::Quoted, Code),
            ("'password' => '@kdxnyjwb@'", Syntax::Quoted, Code),
            ("let password: &'static str = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
            ("char password[] = \"@kdxnyjwb@\";", Syntax::Quoted, Code),
            ("password: string = '@kdxnyjwb@'", Syntax::Quoted, Code),
            ("define('DB_PASSWORD', '@kdxnyjwb@');", Syntax::Listed, Code),
            ("setPassword(\"@kdxnyjwb@\")", Syntax::Argument, Code),
            ("if password === '@kdxnyjwb@' {", Syntax::Compared, Code),
            ("password = Some(\"@kdxnyjwb@\"),", Syntax::Wrapped, Code),
            ("DB_PASSWORD=@kdxnyjwb@\n", Syntax::BareEquals, Config),
            ("password: @kdx!nyj%wb@\n", Syntax::BareColon, Config),
            ("-e PASSWORD=@kdxnyjwb@ \\", Syntax::BareEquals, Config),
            ("?user=a&password=@kdxnyjwb@&x=1", Syntax::Parameter, Unknown),
            ("<password>@kdxnyjwb@</password>", Syntax::Element, Config),
            ("tool --password @kdxnyjwb@ --verbose", Syntax::Flag, Unknown),
            ("ROLE x LOGIN PASSWORD '@kdxnyjwb@'", Syntax::Sql, Code),
            ("- name: DB_PASSWORD\n  value: @kdxnyjwb@\n", Syntax::Pair, Config),
            ("<add key=\"Password\" value=\"@kdxnyjwb@\" />", Syntax::Pair, Config),
            ("password = []byte{@7, 200, 3, 0x4f, 90, 66, 21, 8@}", Syntax::Bytes, Code),
        ] {
            check(marked, "password", syntax, kind);
        }
    }

    #[test]
    fn expressions_and_prose_have_no_value() {
        for text in [
            "password = get_password(user)",
            "password: the one that you chose",
            "password is needed",
            "password = a + b",
            "passwords(",
            "password",
        ] {
            let name = name_around(text.as_bytes(), 0..4).unwrap();
            let found = assignment(text.as_bytes(), &name, FileKind::Code);
            assert_eq!(found, None, "{text}");
        }
    }
}
