//! Lines and columns, computed when somebody asks.

/// A place in text, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line.
    pub line: u64,
    /// The column, in bytes.
    pub column: u64,
}

/// Counts lines of text that passes by in pieces.
///
/// ```
/// use gossip_engine::{LineCounter, Position};
///
/// let text = b"one\ntwo three\nfour";
/// let mut lines = LineCounter::new();
/// assert_eq!(lines.position(text, 8), Position { line: 2, column: 5 });
/// lines.advance(&text[..14]);
/// assert_eq!(lines.position(&text[14..], 0), Position { line: 3, column: 1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounter {
    lines: u64,
    /// Bytes since the last line end.
    column: u64,
}

impl LineCounter {
    /// At the start of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn raw(&self) -> (u64, u64) {
        (self.lines, self.column)
    }

    pub(crate) fn from_raw(lines: u64, column: u64) -> Self {
        Self { lines, column }
    }

    /// Lets `text` pass by.
    pub fn advance(&mut self, text: &[u8]) {
        match memchr::memrchr(b'\n', text) {
            None => self.column += text.len() as u64,
            Some(last) => {
                self.lines += memchr::memchr_iter(b'\n', text).count() as u64;
                self.column = (text.len() - last - 1) as u64;
            }
        }
    }

    /// The position of `offset` in `text`, which comes next.
    #[must_use]
    pub fn position(&self, text: &[u8], offset: usize) -> Position {
        let mut here = *self;
        here.advance(&text[..offset.min(text.len())]);
        Position { line: here.lines + 1, column: here.column + 1 }
    }
}
