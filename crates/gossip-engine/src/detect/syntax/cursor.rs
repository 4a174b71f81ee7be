//! A place in text that moves on.

use super::MAX_BLANKS;

/// Reads on behind a name. A copy looks ahead.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'t> {
    pub(super) text: &'t [u8],
    pub(super) at: usize,
}

impl Cursor<'_> {
    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    pub(super) fn starts_with(&self, prefix: &[u8]) -> bool {
        self.text[self.at.min(self.text.len())..].starts_with(prefix)
    }

    pub(super) fn eat(&mut self, prefix: &[u8]) -> bool {
        let found = self.starts_with(prefix);
        self.at += if found { prefix.len() } else { 0 };
        found
    }

    pub(super) fn skip_while(&mut self, max: usize, mut skip: impl FnMut(u8) -> bool) -> usize {
        let rest = &self.text[self.at.min(self.text.len())..];
        let count = rest.iter().take(max).take_while(|byte| skip(**byte)).count();
        self.at += count;
        count
    }

    pub(super) fn skip_blanks(&mut self) -> usize {
        self.skip_while(MAX_BLANKS, |byte| matches!(byte, b' ' | b'\t'))
    }

    pub(super) fn skip_blanks_and_lines(&mut self) -> usize {
        self.skip_while(MAX_BLANKS, |byte| byte.is_ascii_whitespace())
    }

    /// Backslashes and a quote: how many backslashes, and which quote.
    pub(super) fn eat_quote(&mut self) -> Option<(usize, u8)> {
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
