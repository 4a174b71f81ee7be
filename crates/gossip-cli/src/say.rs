//! Standard error, for people: one line at a time, whatever is in it.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use crate::mask::{masked, masked_line};

/// Says a line. That nobody listens any more is no reason to stop.
macro_rules! say {
    ($($arg:tt)*) => {
        $crate::say::line(&format!($($arg)*))
    };
}
pub(crate) use say;

pub(crate) fn line(text: &str) {
    // In one write, so that lines of several processes do not mix.
    let masked = masked_line(text.as_bytes());
    let line = format!("gossip: {}\n", harmless(&String::from_utf8_lossy(&masked)));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// A path as it may be shown.
pub(crate) fn shown(path: &Path) -> String {
    shown_bytes(path.as_os_str().as_encoded_bytes())
}

/// A name as it may be shown: no secret, and no character that a terminal acts on.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    escaped_bytes(&masked(bytes))
}

/// Bytes without a character that a terminal acts on; those that are not UTF-8 as `\xff`.
pub(crate) fn escaped_bytes(bytes: &[u8]) -> String {
    let mut shown = String::new();
    for chunk in bytes.utf8_chunks() {
        shown.push_str(&harmless(chunk.valid()));
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
    }
    shown
}

/// Escapes what a terminal would obey, or what would make text look like another.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if is_harmful(character) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(character)));
            }
            _ => out.push(character),
        }
    }
    Cow::Owned(out)
}

fn is_harmful(character: char) -> bool {
    // Line and paragraph separators, marks and overrides of the direction, invisible ones.
    let reorders_or_hides = matches!(
        character,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
    );
    character.is_control() || reorders_or_hides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped_and_all_else_is_left() {
        for text in ["plain/path.txt", "naïve 中文 🙂 \\x1b", ""] {
            assert_eq!(shown_bytes(text.as_bytes()), text);
        }
        assert_eq!(shown_bytes(b"a\x1b[31m\n\r\tb\x7f"), "a\\u{1b}[31m\\n\\r\\tb\\u{7f}");
        assert_eq!(shown_bytes(b"bad\xff\xc3.env"), "bad\\xff\\xc3.env");
        assert_eq!(shown_bytes("\u{202e}gnp.\u{9b}".as_bytes()), "\\u{202e}gnp.\\u{9b}");
    }
}
