//! What a password is for, beside it: `user = "…"`, `host: …`, `--database …`.
//!
//! A word beside the name of a password may be a label, a type or an example. Where the user, the host
//! or the database is given as well, somebody logs in with it.

use std::ops::Range;

use super::NEAR_BEFORE;
use super::file_kind::FileKind;
use super::users;
use crate::ignore_case;
use crate::literals::is_in_word;

/// How far behind the password they are looked for.
pub(super) const REACH: usize = 128;

/// What the names end in of what a password is for, beside a user.
const NAMES: &[&str] =
    &["host", "hostname", "server", "database", "dbname", "db_name", "catalog", "account", "ssid"];
/// What is longer is no name of a user or a host.
const MAX_VALUE: usize = 64;
const MAX_BLANKS: usize = 16;

/// Whom or what a password is for, by what stands around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Given {
    Nothing,
    /// A user, a host or a database.
    Something,
    /// Who is called as the password is, which makes an example of it.
    Same,
}

/// What is given before the credential word at `word`, and behind the password at `value`.
pub(super) fn given(text: &[u8], kind: FileKind, word: usize, value: &Range<usize>) -> Given {
    let before = &text[word.saturating_sub(NEAR_BEFORE)..word];
    let line = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let behind = &text[value.end..text.len().min(value.end + REACH)];
    let password = &text[value.clone()];
    let mut given = Given::Nothing;
    let on_line = named_on_line(&before[line..]);
    for value in values(before, kind).chain(values(behind, kind)).chain(on_line) {
        if value.eq_ignore_ascii_case(password) {
            return Given::Same;
        }
        given = Given::Something;
    }
    given
}

/// Whose `name` stands before a password on its line, with nothing but a colon or a sign between: of lines of
/// their own each may be about something else. `add name=app password=…`, `{name: app, password: …}`.
fn named_on_line(line: &[u8]) -> Option<&[u8]> {
    const NAMES: [&[u8]; 2] = [b" name=", b"{name: "];
    let find = |name: &[u8]| memchr::memmem::find(line, name).map(|at| at + name.len());
    let rest = &line[NAMES.into_iter().find_map(find)?..];
    let in_value =
        |byte: &&u8| byte.is_ascii_lowercase() || b"_.@-".contains(byte) || byte.is_ascii_digit();
    let len = rest.iter().take(MAX_VALUE).take_while(in_value).count();
    let ends = matches!(rest.get(len), Some(b' ' | b','));
    (len > 0 && ends).then_some(&rest[..len])
}

/// The values that siblings are given in `text`.
fn values(text: &[u8], kind: FileKind) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < text.len() {
            let rest = &text[at..];
            let len = rest.iter().take_while(|byte| is_in_word(**byte)).count();
            let name = &rest[..len];
            at += len.max(1);
            // `User ID=app;Password=…`.
            let is_user_id = || {
                name.eq_ignore_ascii_case(b"id")
                    && ignore_case::ends_with_any(&text[..at - len], &["user "])
            };
            if len > 0
                && (users::is_field(name)
                    || ignore_case::ends_with_any(name, NAMES)
                    || is_user_id())
                && let Some(value) = value(&rest[len..], kind)
                && is_value(value, name)
            {
                return Some(value);
            }
        }
        None
    })
}

/// The value that a name is given by what stands behind it.
fn value(rest: &[u8], kind: FileKind) -> Option<&[u8]> {
    const OPERATORS: [&[u8]; 8] = [b"=>", b"->", b":=", b"=", b":", b",", b"(", b">"];
    // Quotes may be escaped: code and JSON stand in strings, too.
    let is_closing = |byte: &u8| matches!(byte, b'"' | b'\'' | b']' | b')' | b'\\');
    let closed = skip(rest, 3, is_closing);
    let (rest, blanks) = skip_blanks(closed);
    // Python: `user: str = "app"`.
    let rest = rest.strip_prefix(b": str ").unwrap_or(rest);
    let operator = OPERATORS.into_iter().find(|operator| rest.starts_with(operator));
    let (rest, behind) = skip_blanks(&rest[operator.map_or(0, <[u8]>::len)..]);
    if rest.starts_with(b"=") || (operator.is_none() && blanks == 0) {
        return None;
    }
    let rest = without_environment(rest);
    if let Some((quote @ (b'"' | b'\'' | b'`'), rest)) =
        skip(rest, 2, |byte| matches!(byte, b'@' | b'\\')).split_first()
    {
        let value = &rest[..rest.iter().take(MAX_VALUE).position(|byte| byte == quote)?];
        return Some(value.strip_suffix(b"\\").unwrap_or(value));
    }
    let is_tight = operator == Some(b"=") && blanks + behind == 0;
    if !is_tight && (kind != FileKind::Config || matches!(operator, Some(b"," | b"("))) {
        return None;
    }
    let in_value = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_.\\@-".contains(byte);
    let len = rest.iter().take(MAX_VALUE).take_while(in_value).count();
    let ends = rest.get(len).is_none_or(|byte| b" \t\r\n;,&\"'<".contains(byte));
    ends.then_some(&rest[..len])
}

/// `process.env.DB_USER || "app"`: what it is where the environment has none.
fn without_environment(rest: &[u8]) -> &[u8] {
    let Some(name) = rest.strip_prefix(b"process.env.") else { return rest };
    let name = &name[name.iter().take_while(|byte| is_in_word(**byte)).count()..];
    let or = skip_blanks(name).0;
    or.strip_prefix(b"||").map_or(rest, |value| skip_blanks(value).0)
}

/// Whether somebody or something is called so; what is told to people is written otherwise.
fn is_value(value: &[u8], name: &[u8]) -> bool {
    let is_label = value.first().is_some_and(u8::is_ascii_uppercase)
        && value.iter().skip(1).all(u8::is_ascii_lowercase);
    !value.is_empty()
        && value.iter().all(u8::is_ascii_graphic)
        && !is_label
        && !value.eq_ignore_ascii_case(name)
}

fn skip(text: &[u8], max: usize, of: impl Fn(&u8) -> bool) -> &[u8] {
    &text[text.iter().take(max).take_while(|byte| of(byte)).count()..]
}

fn skip_blanks(text: &[u8]) -> (&[u8], usize) {
    let rest = skip(text, MAX_BLANKS, |byte| matches!(byte, b' ' | b'\t'));
    (rest, text.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_given(before: &str, behind: &str) -> bool {
        let text = format!("{before}password = \"zwetschge\"{behind}");
        let end = before.len() + "password = \"zwetschge\"".len();
        let value = end - 10..end - 1;
        given(text.as_bytes(), FileKind::Code, before.len(), &value) == Given::Something
    }

    #[test]
    fn a_user_a_host_or_a_database_is_found_in_every_syntax() {
        for before in [
            "user = \"app\"\n",
            "connect(host='db', ",
            "{\"username\": \"app\", \"",
            ".option(\"user\", \"app\").option(\"",
            ".username(\"app\").",
            "Map(\"user\" -> \"app\", \"",
            "(user => 'app', ",
            "username 'app'\n",
            "@{@\"user\": @\"app\", @\"",
            "\"Server=db;Uid=app;",
            "db_user := `app`\n",
            "\"Data Source=db;User ID=app;",
            "db_user: str = \"app\"\n",
            "user: process.env.DB_USER || \"app\",\n",
            "{\\\"user\\\": \\\"app\\\", \\\"",
        ] {
            assert!(is_given(before, ""), "{before}");
        }
        assert!(is_given("", ",\n  database: \"shop\"\n"));
    }

    #[test]
    fn a_name_is_whose_it_is_on_the_same_line() {
        assert!(is_given("add name=app ", " service=l2tp"));
        assert!(is_given("- {name: app, ", "}"));
        assert!(!is_given("add name=app\n", ""));
        assert!(!is_given("name: app\n", ""));
        assert!(!is_given("add name=App ", ""));
        assert!(!is_given("add name=zwetschge ", ""));
    }

    #[test]
    fn labels_names_and_expressions_give_nothing() {
        for before in [
            "username: 'Benutzername',\n",
            "username: 'username',\n",
            "connect(user, ",
            "user = request.user\n",
            "host == \"db\" &&",
            "login: \"Log in here\",\n",
            "users, \"app\", ",
            "case user\ncase ",
            "host: \"db\", user: \"zwetschge\", ",
        ] {
            assert!(!is_given(before, ""), "{before}");
        }
    }
}
