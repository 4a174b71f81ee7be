//! Lines and columns, computed when somebody asks.

/// A place in text, counted from one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Counted from one, by line feeds.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

impl Position {
    /// Where a text starts.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// How the characters of a text are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Units {
    /// UTF-8, or anything else of one byte a character. Bytes that go on with a character of UTF-8
    /// are not counted.
    #[default]
    Bytes,
    Utf16Le,
    Utf16Be,
}

/// Counts lines of text that passes by in pieces.
///
/// ```
/// use gossip_engine::{LineCounter, Position};
///
/// let text = "eins\nzwölf drei\nvier".as_bytes();
/// let mut lines = LineCounter::at_start_of(text);
/// assert_eq!(lines.position(text, 12), Position { line: 2, column: 7 });
/// lines.advance(&text[..17]);
/// assert_eq!(lines.position(&text[17..], 0), Position { line: 3, column: 1 });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounter {
    lines: u64,
    /// Characters since the last line end.
    column: u64,
    units: Units,
    /// Bytes of a byte order mark that are still to pass by: no editor counts it.
    mark_len: u8,
}

/// The units of a text are the two highest bits of its line's number as it is stored.
const UNITS_SHIFT: u32 = 62;

impl LineCounter {
    /// At the start of an object that begins with `head`: its first four bytes tell UTF-16.
    #[must_use]
    pub fn at_start_of(head: &[u8]) -> Self {
        let (units, mark_len) = match *head {
            [0xef, 0xbb, 0xbf, ..] => (Units::Bytes, 3),
            [0xff, 0xfe, ..] => (Units::Utf16Le, 2),
            [0xfe, 0xff, ..] => (Units::Utf16Be, 2),
            [a, 0, b, 0, ..] if a != 0 && b != 0 => (Units::Utf16Le, 0),
            [0, a, 0, b, ..] if a != 0 && b != 0 => (Units::Utf16Be, 0),
            _ => (Units::Bytes, 0),
        };
        Self { lines: 0, column: 0, units, mark_len }
    }

    pub(crate) fn raw(&self) -> (u64, u64) {
        (self.lines | (self.units as u64) << UNITS_SHIFT, self.column)
    }

    /// From what [`raw`](Self::raw) gave, in the middle of an object; `None` if nothing can be at
    /// such a line or column among `bytes`.
    pub(crate) fn from_raw(lines: u64, column: u64, bytes: u64) -> Option<Self> {
        let units = match lines >> UNITS_SHIFT {
            0 => Units::Bytes,
            1 => Units::Utf16Le,
            2 => Units::Utf16Be,
            _ => return None,
        };
        let lines = lines & ((1 << UNITS_SHIFT) - 1);
        (lines <= bytes && column <= bytes).then_some(Self { lines, column, units, mark_len: 0 })
    }

    /// In the middle of the same text, counting from there.
    pub(crate) fn restarted(&self) -> Self {
        Self { units: self.units, ..Self::default() }
    }

    /// What `counted` is, which was counted from here on.
    pub(crate) fn follow(&self, counted: Self) -> Self {
        let column = if counted.lines == 0 { self.column } else { 0 };
        Self { lines: self.lines + counted.lines, column: column + counted.column, ..counted }
    }

    /// The same for a position.
    pub(crate) fn place(&self, counted: Position) -> Position {
        let column = if counted.line == 1 { self.column } else { 0 };
        Position { line: self.lines + counted.line, column: column + counted.column }
    }

    /// Lets `text` pass by.
    pub fn advance(&mut self, text: &[u8]) {
        let mark_len = usize::from(self.mark_len).min(text.len());
        self.mark_len -= mark_len as u8;
        let text = &text[mark_len..];
        match self.units {
            Units::Bytes => self.advance_bytes(text),
            Units::Utf16Le => self.advance_pairs(text, u16::from_le_bytes),
            Units::Utf16Be => self.advance_pairs(text, u16::from_be_bytes),
        }
    }

    fn advance_bytes(&mut self, text: &[u8]) {
        let last_line = match memchr::memrchr(b'\n', text) {
            None => text,
            Some(last) => {
                self.lines += memchr::memchr_iter(b'\n', text).count() as u64;
                self.column = 0;
                &text[last + 1..]
            }
        };
        self.column += last_line.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u64;
    }

    fn advance_pairs(&mut self, text: &[u8], unit: fn([u8; 2]) -> u16) {
        for pair in text.chunks_exact(2) {
            match unit([pair[0], pair[1]]) {
                0x000a => {
                    self.lines += 1;
                    self.column = 0;
                }
                // The second half of a character that takes two units.
                0xdc00..=0xdfff => {}
                _ => self.column += 1,
            }
        }
    }

    /// The start of the unit that `offset`, counted from the start of the object, is in.
    pub(crate) fn unit_start(&self, offset: u64) -> u64 {
        if self.units == Units::Bytes { offset } else { offset & !1 }
    }

    /// The position of what comes next.
    pub(crate) fn here(&self) -> Position {
        Position { line: self.lines + 1, column: self.column + 1 }
    }

    /// The position of `offset` in `text`, which comes next.
    #[must_use]
    pub fn position(&self, text: &[u8], offset: usize) -> Position {
        let mut there = *self;
        there.advance(&text[..offset.min(text.len())]);
        there.here()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn is_at(text: &[u8], offset: usize, line: u64, column: u64) {
        let whole = LineCounter::at_start_of(text).position(text, offset);
        assert_eq!(whole, Position { line, column });
        // The same, however it passes by.
        for cut in (0..offset).step_by(2) {
            let mut lines = LineCounter::at_start_of(text);
            lines.advance(&text[..cut]);
            assert_eq!(lines.position(&text[cut..], offset - cut), whole, "cut at {cut}");
            // And counted from there; a byte order mark is at the start only.
            if cut > 3 {
                let mut rest = lines.restarted();
                let found = rest.position(&text[cut..], offset - cut);
                assert_eq!(lines.place(found), whole, "cut at {cut}");
                rest.advance(&text[cut..offset]);
                assert_eq!(lines.follow(rest).here(), whole, "cut at {cut}");
            }
        }
    }

    fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(unit).collect()
    }

    #[test]
    fn columns_are_characters_in_every_encoding() {
        let text = "naïve\nschlüssel 🔑 = x";
        let offset = text.find('x').unwrap();
        is_at(text.as_bytes(), offset, 2, 15);
        is_at(format!("\u{feff}{text}").as_bytes(), offset + 3, 2, 15);
        for unit in [u16::to_le_bytes, u16::to_be_bytes] {
            for mark in ["", "\u{feff}"] {
                let text = utf16(&format!("{mark}{text}"), unit);
                is_at(&text, text.len() - 2, 2, 15);
            }
        }
        is_at(b"\xef\xbb\xbfx", 3, 1, 1);
        is_at(&utf16("\u{feff}x", u16::to_le_bytes), 2, 1, 1);
    }

    /// U+0A0A and U+010A have the byte of a line end in them.
    #[test]
    fn a_byte_of_another_character_ends_no_line() {
        let text = utf16("ab \u{0a0a}\u{010a} x", u16::to_le_bytes);
        is_at(&text, text.len() - 2, 1, 7);
    }

    #[test]
    fn a_stored_counter_goes_on_where_it_was() {
        let text = utf16("one\ntwo three", u16::to_be_bytes);
        let mut lines = LineCounter::at_start_of(&text);
        lines.advance(&text[..12]);
        let (line, column) = lines.raw();
        let stored = LineCounter::from_raw(line, column, text.len() as u64).unwrap();
        assert_eq!(stored.position(&text[12..], 4), lines.position(&text[12..], 4));
        assert_eq!(LineCounter::from_raw(u64::MAX, 0, 100), None);
        assert_eq!(LineCounter::from_raw(101, 0, 100), None);
        assert_eq!(LineCounter::from_raw(1, 101, 100), None);
    }
}
