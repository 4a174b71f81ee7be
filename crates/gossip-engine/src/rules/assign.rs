//! The expression for a named value, whatever the language.
//!
//! `NAME = "VALUE"`, `NAME: VALUE`, `NAME => 'VALUE'`, `"NAME", "VALUE"`, `<NAME>VALUE</NAME>`,
//! `--NAME VALUE` is left out on purpose: a blank alone joins any two words of prose.

/// No match is longer.
pub(super) const MAX_LEN: usize = 2048;

/// The expression of the name alone, with which every match begins.
pub(super) fn name_expression(name: &str) -> String {
    format!("(?i:{name})")
}

/// The expression; its only group is the value. It begins with the name, so that the name is the
/// anchor and the expression is tried at its place only.
pub(super) fn expression(name: &str, value: &str) -> String {
    // After the name: its own tail (`_API_KEY`), then what closes a quoted or bracketed name.
    let tail = r#"[ \t\w.-]{0,24}(?:\\?["'`\])]{1,2}(?:\[["'][\w.-]{1,24}["']\])?)?\s{0,3}"#;
    let operator = r"(?:=>|:=|={1,3}|:{1,3}=?|\?=|>|,|\|\|?|\()";
    let opening = r#"[\s=]{0,9}(?:[rbuf@$]?\\?["'`({\[]{1,3}\s?)?"#;
    let end = r#"(?:[^A-Za-z0-9_+/~.=-]|[.=]?(?:["'`\s<;,)\]}\\]|\z)|\z)"#;
    let name = name_expression(name);
    format!("{name}{tail}{operator}{opening}({value}){end}")
}
