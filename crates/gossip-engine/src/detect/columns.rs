//! Passwords in a column of a table, as browsers and password managers export them.
//!
//! ```text
//! name,url,username,password
//! Shop,https://shop.acme.io,app,…
//! ```

use std::ops::Range;

use super::Detected;
use super::file_kind::FileKind;
use super::name;
use super::named;
use super::syntax::Syntax;
use crate::finding::Reason;
use crate::ignore_case;

/// The word for a password behind what separates columns.
pub(super) const ANCHORS: [&str; 9] = [
    ",password",
    ";password",
    "\tpassword",
    ",\"password",
    ";\"password",
    ",login_password",
    ",passwort",
    ";passwort",
    ";kennwort",
];

const MAX_HEADER: usize = 256;
const MAX_COLUMNS: usize = 24;
/// So many bytes of rows are read; those of longer tables are many like these.
const MAX_BYTES: usize = 1536;

pub(super) const REACH_BEFORE: usize = 127;
pub(super) const REACH_AFTER: usize = MAX_HEADER + MAX_BYTES;

/// Of the other columns one says whose password it is, or of what.
#[rustfmt::skip]
const OTHERS: &[&str] = &[
    "user", "login", "name", "mail", "account", "host", "url", "site", "server", "title", "ssid",
    "domain", "benutzer", "ip",
];

/// Whether `next` ends the column's name.
pub(super) fn may_follow(next: u8) -> bool {
    b",;\t\"\r\n".contains(&next)
}

/// Calls back with every password of the rows below the header in which `word` stands.
pub(super) fn detect(text: &[u8], word: Range<usize>, on_found: &mut dyn FnMut(Detected)) {
    let Some(header) = header(text, &word) else { return };
    let separator = text[word.start];
    let column = separators(&text[header.start..word.end], separator);
    let columns = 1 + separators(&text[header.clone()], separator);
    let limit = text.len().min(header.end + MAX_BYTES);
    let mut start = header.end + 1;
    while start < limit {
        // What is cut off at the end is not read, unless the text ends there.
        let line = memchr::memchr(b'\n', &text[start..limit]).map(|len| start + len);
        let Some(end) = line.or((limit == text.len()).then_some(limit)) else { return };
        let line = &text[start..end];
        // Another header: its rows are read for its own word, and none twice.
        if ignore_case::contains_any(line, &["passw", "kennwort"]) {
            return;
        }
        if let Some(row) = row(line, separator, column, columns) {
            let secret = start + row.start..start + row.end;
            let value = &text[secret.clone()];
            let confidence = named::judge(name::LOGIN, Syntax::Quoted, FileKind::Config, value);
            if let Some(confidence) = confidence {
                let whole = secret.clone();
                on_found(Detected { whole, secret, confidence, reason: Reason::NamedPassword });
            }
        }
        start = end + 1;
    }
}

/// The line around `word`, if it has nothing but names of columns.
fn header(text: &[u8], word: &Range<usize>) -> Option<Range<usize>> {
    let floor = word.start.saturating_sub(REACH_BEFORE);
    let start = match memchr::memrchr(b'\n', &text[floor..word.start]) {
        Some(at) => floor + at + 1,
        None if floor == 0 => 0,
        None => return None,
    };
    let limit = text.len().min(word.end + MAX_HEADER);
    let end = word.end + memchr::memchr(b'\n', &text[word.end..limit])?;
    let in_name =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"_ .-/#\"".contains(byte) || !byte.is_ascii();
    let mut names = text[start..end].trim_ascii_end().split(|byte| *byte == text[word.start]);
    let is_header = names.clone().count() <= MAX_COLUMNS
        && names.clone().all(|name| name.trim_ascii_start().iter().all(in_name))
        && names.any(|name| ignore_case::contains_any(name, OTHERS));
    is_header.then_some(start..end)
}

fn separators(line: &[u8], separator: u8) -> usize {
    memchr::memchr_iter(separator, line).count()
}

/// Where in a row of so many columns the value of one is; quotes may hold what separates. None if the row
/// has another number of columns.
fn row(row: &[u8], separator: u8, column: usize, columns: usize) -> Option<Range<usize>> {
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let (mut at, mut count) = (0, 0);
    let mut found = None;
    while at <= row.len() {
        let quoted = row.get(at) == Some(&b'"');
        let start = at + usize::from(quoted);
        let Some(end) = (if quoted { end_of_quotes(row, start) } else { Some(start) }) else {
            // It goes on in the next line, as notes do, which stand last.
            return found.filter(|_| count + 1 == columns);
        };
        let len = memchr::memchr(separator, &row[end..]).unwrap_or(row.len() - end);
        if count == column {
            found = Some(start..if quoted { end } else { end + len });
        }
        (at, count) = (end + len + 1, count + 1);
    }
    found.filter(|_| count == columns)
}

/// Where the quotes end that open before `start`; two in a row are one of the value.
fn end_of_quotes(row: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr(b'"', &row[at..])?;
        if row.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        let start = text.find(ANCHORS[0]).or_else(|| text.find(ANCHORS[1])).unwrap();
        let mut found = Vec::new();
        let word = start..start + ANCHORS[0].len();
        detect(text.as_bytes(), word, &mut |detected| found.push(detected.secret));
        found.into_iter().map(|secret| &text[secret]).collect()
    }

    #[test]
    fn every_row_below_the_header_is_read() {
        let text = "name,url,username,password,note\r\n\
                    Shop,https://shop.acme.io,app,q8Zr2LmT,\r\n\
                    \"A, B\",https://b.acme.io,bob,\"x7,Qp2\"\"v\",old\r\n\
                    None,https://c.acme.io,bob,,\r\n\
                    Wiki,https://w.acme.io,eve,Sommer2024!,";
        assert_eq!(found(text), ["q8Zr2LmT", "x7,Qp2\"\"v", "Sommer2024!"]);
        assert_eq!(found("host;password;x\nh1;q8Zr2LmT;1\n"), ["q8Zr2LmT"]);
        // A note of two lines, a row that is none, an empty last cell.
        let text = "user,password,note\na,q8Zr2LmT,\"one\ntwo\"\n\nb,vT0mL2rZ,\n";
        assert_eq!(found(text), ["q8Zr2LmT", "vT0mL2rZ"]);
        // The rows of another header are its own.
        assert_eq!(found("user,password\nuser,password\na,q8Zr2LmT\n"), [""; 0]);
    }

    #[test]
    fn what_is_no_table_is_not_read() {
        for text in [
            "call(user,password,note)\na,q8Zr2LmT,b\n",
            "a,password,b\nx,q8Zr2LmT,y\n",
            "user,password,b\nx,q8Zr2LmT\n",
            "user,password,b\nx,${PASSWORD},y\n",
            "the user,password,b",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
