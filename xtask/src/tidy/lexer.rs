//! Just enough of Rust's lexical grammar to tell code, comments and strings apart.
//!
//! - X1: every view has the bytes of the source at the same offsets, except that blanked bytes are
//!   spaces; line breaks stay. So an offset or a line of a view is that of the source.

/// The source, seen without what a rule must not look at.
pub(super) struct Views {
    /// Strings are blank; comments are not.
    pub(super) without_strings: String,
    /// Strings and comments are blank.
    pub(super) code: String,
}

impl Views {
    pub(super) fn of(source: &str) -> Self {
        let mut without_strings = source.as_bytes().to_vec();
        let mut code = without_strings.clone();
        let mut at = 0;
        while at < source.len() {
            let (kind, length) = token(&source.as_bytes()[at..]);
            let range = at..at + length;
            if kind == Kind::Text {
                blank(&mut without_strings[range.clone()]);
            }
            if kind != Kind::Code {
                blank(&mut code[range]);
            }
            at += length;
        }
        let view = |bytes| String::from_utf8(bytes).expect("X1: whole tokens were blanked");
        Self { without_strings: view(without_strings), code: view(code) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Code,
    Comment,
    /// A string or character literal with its quotes.
    Text,
}

/// The token at the start of `rest`, which is not empty, and its length.
fn token(rest: &[u8]) -> (Kind, usize) {
    match rest {
        [b'/', b'/', ..] => (Kind::Comment, line_comment(rest)),
        [b'/', b'*', ..] => (Kind::Comment, block_comment(rest)),
        [b'"', ..] => (Kind::Text, string(rest)),
        [b'\'', ..] => match character(rest) {
            Some(length) => (Kind::Text, length),
            None => (Kind::Code, 1),
        },
        [first, ..] if is_word(*first) => {
            let word = rest.iter().take_while(|byte| is_word(**byte)).count();
            match (&rest[..word], raw_string(&rest[word..])) {
                (b"r" | b"br" | b"cr", Some(length)) => (Kind::Text, word + length),
                _ => (Kind::Code, word),
            }
        }
        _ => (Kind::Code, 1),
    }
}

/// Whether the byte is part of an identifier. All of a character beyond ASCII counts, so that no
/// character is cut.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

fn blank(bytes: &mut [u8]) {
    bytes.iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (at, depth) = (at + 2, depth + 1),
            [b'*', b'/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal, or none where the quote starts a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    if rest.get(1) == Some(&b'\\') {
        let end = rest.iter().skip(3).position(|byte| *byte == b'\'')?;
        return Some(3 + end + 1);
    }
    let first = std::str::from_utf8(rest.get(1..rest.len().min(5))?)
        .map_or_else(|error| std::str::from_utf8(&rest[1..1 + error.valid_up_to()]).ok(), Some)?;
    let length = 1 + first.chars().next()?.len_utf8();
    (rest.get(length) == Some(&b'\'')).then_some(length + 1)
}

/// The length of `#…"…"#…` with as many marks at the end as at the start.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let marks = rest.iter().take_while(|byte| **byte == b'#').count();
    if rest.get(marks) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.extend(std::iter::repeat_n(b'#', marks));
    let body = &rest[marks + 1..];
    let found = body.windows(end.len()).position(|window| window == end);
    Some(found.map_or(rest.len(), |at| marks + 1 + at + end.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> String {
        let views = Views::of(source);
        assert_eq!(views.code.len(), source.len(), "X1");
        assert_eq!(views.code.lines().count(), source.lines().count(), "X1");
        views.code.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_strings_are_blank_and_code_is_not() {
        assert_eq!(code("a // b\nc"), "a c");
        assert_eq!(code("a /* b /* c */ d */ e"), "a e");
        assert_eq!(code(r#"a("b \" c", d)"#), "a( , d)");
        assert_eq!(code(r###"a(r#"b " c"#, br"d", r##"e"# f"##)"###), "a( , , )");
        assert_eq!(code("let r = 1; /* never ends"), "let r = 1;");
        assert_eq!(code("bar\"x\""), "bar", "a word before a string is no prefix of a raw one");
    }

    #[test]
    fn lifetimes_are_code_and_characters_are_text() {
        assert_eq!(code("f::<'a>('b', '\\'', '\\u{1F600}', 'ä', '\"') // c"), "f::<'a>( , , , , )");
        assert_eq!(code("'outer: loop {}"), "'outer: loop {}");
        assert_eq!(code("&'static str"), "&'static str");
        assert_eq!(code("'ä' 'ä: '…'"), "'ä:");
    }

    #[test]
    fn comments_stay_where_only_strings_go() {
        let views = Views::of("a(\"b\") // \"c\" d");
        assert_eq!(views.without_strings, "a(   ) // \"c\" d");
    }
}
