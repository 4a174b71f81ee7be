//! What gives a name its value, and what may stand between that and the value.

use super::MAX_WRAPPER;
use super::cursor::Cursor;
use crate::detect::authorization;
use crate::ignore_case;

/// What stands between a name and its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
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

/// The operator at the cursor, which moves behind it.
pub(super) fn operator(cursor: &mut Cursor<'_>) -> Option<Operator> {
    let rest = &cursor.text[cursor.at.min(cursor.text.len())..];
    let (operator, len) = match rest {
        [b'=', b'=', b'=', ..] | [b'!', b'=', b'=', ..] => (Operator::Compare, 3),
        [b'=', b'=' | b'~', ..] | [b'!' | b'~', b'=', ..] | [b'<', b'>', ..] => {
            (Operator::Compare, 2)
        }
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
        // As wide as the characters of East Asia.
        [0xEF, 0xBC, 0x9A, ..] => (Operator::Colon, 3),
        [b',', ..] => (Operator::Comma, 1),
        [b'(', ..] => (Operator::Call, 1),
        [b'>', ..] => (Operator::Close, 1),
        _ => return None,
    };
    cursor.at += len;
    Some(operator)
}

/// `: &'static str = "…"`, `: string = "…"`, `: [u8; 16] = […]`, `: constant String := "…"`, `: STRING(32) := "…"`.
pub(super) fn skip_type(cursor: &mut Cursor<'_>) {
    let start = cursor.at;
    let mut brackets = 0usize;
    let in_type = |byte: u8| {
        match byte {
            b'[' => brackets += 1,
            b']' => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        byte.is_ascii_alphanumeric()
            || b"_<>&'[]()?.|: \t*".contains(&byte)
            || (byte == b';' && brackets > 0)
    };
    let len = cursor.skip_while(MAX_WRAPPER, in_type);
    // Ada and Pascal assign with a colon.
    let end = cursor.at - usize::from(cursor.text[start..cursor.at].ends_with(b" :"));
    let blank_before = len > 1 && matches!(cursor.text[end - 1], b' ' | b'\t');
    let assigns = cursor.starts_with(b"=") && !cursor.starts_with(b"==");
    if blank_before && assigns && !cursor.starts_with(b"=>") {
        cursor.at += 1;
        cursor.skip_blanks_and_lines();
    } else {
        cursor.at = start;
    }
}

/// `Authorization: Token …`: how something is authorized.
pub(super) fn skip_scheme(cursor: &mut Cursor<'_>, name: &[u8]) {
    if ignore_case::ends_with_any(name, &["authorization"]) {
        cursor.at += authorization::scheme(&cursor.text[cursor.at.min(cursor.text.len())..]);
    }
}

/// `|`, `>-`, `!!str`: how YAML writes what follows.
pub(super) fn skip_yaml_style(cursor: &mut Cursor<'_>) {
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
