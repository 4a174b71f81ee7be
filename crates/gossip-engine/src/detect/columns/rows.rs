//! The rows of a table, of which one column is read.

use std::ops::Range;

use super::MAX_BYTES;

/// A line below the header, a note that goes on; where more are none of the table, it has ended.
const MAX_OTHERS: usize = 2;

/// Rows that have as many columns as the table.
pub(super) struct Rows<'t> {
    text: &'t [u8],
    at: usize,
    limit: usize,
    layout: Layout,
    columns: usize,
    /// How many lines in a row were none of the table.
    others: usize,
}

#[derive(Clone, Copy)]
enum Layout {
    /// One in each line, with this between cells.
    Lines(u8),
    /// `(1, 'a'), (2, 'b')`.
    Tuples,
}

impl<'t> Rows<'t> {
    pub(super) fn lines(text: &'t [u8], at: usize, separator: u8, columns: usize) -> Self {
        Self::new(text, at, Layout::Lines(separator), columns)
    }

    pub(super) fn tuples(text: &'t [u8], at: usize, columns: usize) -> Self {
        Self::new(text, at, Layout::Tuples, columns)
    }

    fn new(text: &'t [u8], at: usize, layout: Layout, columns: usize) -> Self {
        Self { text, at, limit: text.len().min(at + MAX_BYTES), layout, columns, others: 0 }
    }

    /// Where the value of one column is in each row, if it has one.
    pub(super) fn column(
        mut self,
        column: usize,
    ) -> impl Iterator<Item = Option<Range<usize>>> + use<'t> {
        std::iter::from_fn(move || match self.layout {
            Layout::Lines(separator) => self.line(separator, column),
            Layout::Tuples => self.tuple(column),
        })
    }

    /// The cell of the next line; none at the end of what is read.
    fn line(&mut self, separator: u8, column: usize) -> Option<Option<Range<usize>>> {
        let start = self.at;
        if start >= self.limit {
            return None;
        }
        // What is cut off at the end is not read, unless the text ends there.
        let line = memchr::memchr(b'\n', &self.text[start..self.limit]).map(|len| start + len);
        let end = line.or((self.limit == self.text.len()).then_some(self.limit))?;
        self.at = end + 1;
        let cell = cell(&self.text[start..end], separator, column, self.columns);
        self.others = if cell.is_some() { 0 } else { self.others + 1 };
        if self.others > MAX_OTHERS {
            return None;
        }
        Some(cell.map(|cell| start + cell.start..start + cell.end))
    }

    /// The cell of the next row in parentheses; none behind the last.
    fn tuple(&mut self, column: usize) -> Option<Option<Range<usize>>> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let rest = self.text.get(self.at..self.limit)?;
        let start = self.at + rest.iter().take_while(|byte| is_between(byte)).count();
        let inside = self.text[start..self.limit].strip_prefix(b"(")?;
        let (mut at, mut count, mut found) = (0, 0, None);
        loop {
            let value = value(inside, at)?;
            if count == column && value.is_quoted {
                found = Some(start + 1 + value.range.start..start + 1 + value.range.end);
            }
            (at, count) = (value.end + 1, count + 1);
            if inside[value.end] == b')' {
                break;
            }
        }
        self.at = start + 1 + at;
        Some(found.filter(|_| count == self.columns))
    }
}

/// Where in a row the value of a column is; quotes may hold what separates. None if the row has another
/// number of columns.
fn cell(row: &[u8], separator: u8, column: usize, columns: usize) -> Option<Range<usize>> {
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let (mut at, mut count) = (0, 0);
    let mut found = None;
    while at <= row.len() {
        let quoted = row.get(at) == Some(&b'"');
        let start = at + usize::from(quoted);
        let Some(end) = (if quoted { end_of_quotes(row, start, b'"') } else { Some(start) }) else {
            // It goes on in the next line, as notes do, which stand last.
            return found.filter(|_| count + 1 == columns);
        };
        let len = memchr::memchr(separator, &row[end..]).unwrap_or(row.len() - end);
        if count == column {
            let cell = start..if quoted { end } else { end + len };
            let blanks = cell.len() - row[cell.clone()].trim_ascii_start().len();
            let start = cell.start + blanks;
            found = Some(start..start + row[cell].trim_ascii().len());
        }
        (at, count) = (end + len + 1, count + 1);
    }
    found.filter(|_| count == columns)
}

/// A value of SQL.
struct Value {
    /// Within its quotes.
    range: Range<usize>,
    is_quoted: bool,
    /// Where the comma or the parenthesis behind it is.
    end: usize,
}

/// The value at `at`, which may be a call.
fn value(text: &[u8], at: usize) -> Option<Value> {
    let mut depth = 0usize;
    let mut quoted = None;
    let mut at = at;
    loop {
        match *text.get(at)? {
            quote @ (b'\'' | b'"') => {
                let end = end_of_quotes(text, at + 1, quote)?;
                if depth == 0 {
                    quoted = Some(at + 1..end);
                }
                at = end;
            }
            b'(' => depth += 1,
            b',' | b')' if depth == 0 => {
                let is_quoted = quoted.is_some();
                return Some(Value { range: quoted.unwrap_or(at..at), is_quoted, end: at });
            }
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// Where the quotes end that open before `start`; two in a row are one of the value.
fn end_of_quotes(text: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start;
    loop {
        at += memchr::memchr(quote, &text[at..])?;
        if text.get(at + 1) != Some(&quote) {
            return Some(at);
        }
        at += 2;
    }
}
