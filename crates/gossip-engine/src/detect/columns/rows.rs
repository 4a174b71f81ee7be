//! The rows of a table, of which one column is read.

use std::ops::Range;

use super::{MAX_BYTES, MAX_COLUMNS, MAX_GAP, MAX_HEADER};
use crate::ignore_case;

/// A line below the header, a note that goes on; where more are none of the table, it has ended.
const MAX_OTHERS: usize = 2;

/// Rows that have as many columns as the table.
pub(super) struct Rows<'t> {
    text: &'t [u8],
    at: usize,
    limit: usize,
    layout: Layout<'t>,
    columns: usize,
    /// How many lines in a row were none of the table.
    others: usize,
}

#[derive(Clone, Copy)]
enum Layout<'t> {
    /// One in each line, with this between cells.
    Lines(Separator),
    /// `(1, 'a'), (2, 'b')`.
    Tuples,
    /// `INSERT INTO t VALUES (1, 'a'), (2, 'b');`, and further ones; columns are counted from the last.
    Statements(&'t [u8]),
    /// `<tr><td>a</td></tr>`; columns are counted from the last.
    Elements(Tags),
}

/// How a table is marked up: what closes the name of a column, a cell and a row.
#[derive(Clone, Copy)]
struct Tags {
    name: &'static [u8],
    cell: &'static [u8],
    row: &'static [u8],
}

const TAGS: [Tags; 4] = [
    Tags { name: b"</b></td>", cell: b"</td>", row: b"</tr>" },
    Tags { name: b"</strong></td>", cell: b"</td>", row: b"</tr>" },
    Tags { name: b"</th>", cell: b"</td>", row: b"</tr>" },
    Tags { name: b"</Cell>", cell: b"</Cell>", row: b"</Row>" },
];

fn count(text: &[u8], tag: &[u8]) -> usize {
    memchr::memmem::find_iter(text, tag).count()
}

impl<'t> Rows<'t> {
    pub(super) fn lines(text: &'t [u8], at: usize, separator: Separator, columns: usize) -> Self {
        Self::new(text, at, Layout::Lines(separator), columns)
    }

    pub(super) fn tuples(text: &'t [u8], at: usize, columns: usize) -> Self {
        Self::new(text, at, Layout::Tuples, columns)
    }

    /// The rows that statements insert into `table`, the first of which begins in `range`.
    pub(super) fn statements(text: &'t [u8], range: Range<usize>, table: &'t [u8]) -> Option<Self> {
        let between = &text[range.start..text.len().min(range.end)];
        let insert = ignore_case::find_iter(between, INSERT).next()?;
        let at = range.start + insert;
        let start = behind_values(&text[at..], table)?;
        Some(Self::new(text, at + start, Layout::Statements(table), 0))
    }

    /// The rows of a page or a sheet, and which column from the last it is in whose name `at` is.
    pub(super) fn elements(text: &'t [u8], at: usize) -> Option<(Self, usize)> {
        let rest = &text[at..text.len().min(at + MAX_HEADER)];
        let end = |tags: &Tags| {
            let end = memchr::memmem::find(rest, tags.row)?;
            // A name that is a cell like others is marked as one.
            let is_cell = tags.name != tags.cell && tags.name.ends_with(tags.cell);
            (!is_cell || rest.starts_with(tags.name)).then_some((*tags, end))
        };
        let (tags, end) = TAGS.iter().find_map(end)?;
        // A form has names and fields in each row.
        let names = if tags.name.ends_with(tags.cell) { count(&rest[..end], tags.name) } else { 0 };
        if count(&rest[..end], tags.cell) > names {
            return None;
        }
        // The first of them closes the cell of the name itself.
        let column = count(&rest[..end], tags.name).checked_sub(1)?;
        Some((Self::new(text, at + end + tags.row.len(), Layout::Elements(tags), 0), column))
    }

    fn new(text: &'t [u8], at: usize, layout: Layout<'t>, columns: usize) -> Self {
        Self { text, at, limit: text.len().min(at + MAX_BYTES), layout, columns, others: 0 }
    }

    /// Where the value of one column is in each row, if it has one.
    pub(super) fn column(
        mut self,
        column: usize,
    ) -> impl Iterator<Item = Option<Range<usize>>> + use<'t> {
        std::iter::from_fn(move || match self.layout {
            Layout::Lines(separator) => self.line(separator, column),
            Layout::Tuples => {
                let columns = self.columns;
                self.tuple(|count| (count == columns).then_some(column))
            }
            Layout::Statements(table) => self.statement(column, table),
            Layout::Elements(tags) => self.element(tags, column),
        })
    }

    /// The cell of the next line; none at the end of what is read.
    fn line(&mut self, separator: Separator, column: usize) -> Option<Option<Range<usize>>> {
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

    /// The text of a cell of the next row that is marked up; none behind the last.
    fn element(&mut self, tags: Tags, column: usize) -> Option<Option<Range<usize>>> {
        let rest = self.text.get(self.at..self.limit)?;
        let end = memchr::memmem::find(rest, tags.row)?;
        let row = &rest[..end];
        // Names: another table, whose rows are read for them.
        if tags.name != tags.cell && count(row, tags.name) > 0 {
            return None;
        }
        let cell = count(row, tags.cell).checked_sub(column + 1).and_then(|index| {
            let mut ends = memchr::memmem::find_iter(row, tags.cell);
            let start = match index {
                0 => 0,
                _ => ends.nth(index - 1)? + tags.cell.len(),
            };
            let cell = &row[start..ends.next()?];
            // Behind the last tag that opens, up to the first that closes.
            let close = memchr::memmem::find(cell, b"</").unwrap_or(cell.len());
            let open = memchr::memrchr(b'>', &cell[..close])? + 1;
            let inside = without_marks(cell, open..close);
            Some(self.at + start + inside.start..self.at + start + inside.end)
        });
        self.at += end + tags.row.len();
        Some(cell)
    }

    /// The cell of the next row in parentheses; none behind the last. `column` says which it is, of so many.
    fn tuple(&mut self, column: impl Fn(usize) -> Option<usize>) -> Option<Option<Range<usize>>> {
        let is_between = |byte: &u8| byte.is_ascii_whitespace() || *byte == b',';
        let rest = self.text.get(self.at..self.limit)?;
        let start = self.at + rest.iter().take_while(|byte| is_between(byte)).count();
        let inside = self.text[start..self.limit].strip_prefix(b"(")?;
        let mut values = [const { None }; MAX_COLUMNS];
        let (mut at, mut count) = (0, 0);
        loop {
            let value = value(inside, at)?;
            *values.get_mut(count)? = value.quoted;
            (at, count) = (value.end + 1, count + 1);
            if inside[value.end] == b')' {
                break;
            }
        }
        self.at = start + 1 + at;
        let found = column(count).and_then(|column| values[column].take());
        Some(found.map(|value| start + 1 + value.start..start + 1 + value.end))
    }

    /// The same, where each row may have a statement of its own.
    fn statement(&mut self, column: usize, table: &[u8]) -> Option<Option<Range<usize>>> {
        if let Some(rest) = self.text.get(self.at..self.limit)
            && let Some(next) = rest.strip_prefix(b";")
        {
            let blanks = next.len() - next.trim_ascii_start().len();
            self.at += 1 + blanks + behind_values(&next[blanks..], table)?;
        }
        self.tuple(|count| count.checked_sub(column + 1))
    }
}

const INSERT: &str = "insert into";

/// Where the rows begin of a statement that names no columns: behind `INSERT INTO t VALUES`.
fn behind_values(statement: &[u8], table: &[u8]) -> Option<usize> {
    const VALUES: &str = "values";
    if !ignore_case::starts_with_any(statement, &[INSERT]) {
        return None;
    }
    let statement = &statement[..statement.len().min(MAX_GAP)];
    let values = ignore_case::find_iter(statement, VALUES).next()?;
    let between = &statement[INSERT.len()..values];
    (!between.contains(&b'(') && name_at(between)? == table).then_some(values + VALUES.len())
}

/// The name of the table at the start of `text`, without its quotes and what it belongs to.
pub(super) fn name_at(text: &[u8]) -> Option<&[u8]> {
    const IF: &str = "if not exists ";
    let text = text.trim_ascii_start();
    let skipped = if ignore_case::starts_with_any(text, &[IF]) { IF.len() } else { 0 };
    let text = &text[skipped..];
    let in_name = |byte: &&u8| byte.is_ascii_alphanumeric() || b"_`\".[]$".contains(byte);
    let len = text.iter().take_while(in_name).count();
    let name = &text[..len];
    let name = &name[memchr::memrchr(b'.', name).map_or(0, |dot| dot + 1)..];
    let name = &name[within(name, |byte| b"`\"[]".contains(&byte))];
    (!name.is_empty()).then_some(name)
}

/// What stands between cells.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Byte(u8),
    /// The same one twice, as wikis have them.
    Twice(&'static [u8; 2]),
    /// Two or more, with which people align columns.
    Blanks,
}

impl Separator {
    /// What separates the names in a line of names, and the cells below: the one that it has most of.
    pub(super) fn of(line: &[u8]) -> (Self, Self) {
        match line {
            [b'|', b'|', ..] => return (Self::Twice(b"||"), Self::Byte(b'|')),
            [b'^', ..] => return (Self::Byte(b'^'), Self::Byte(b'|')),
            [b'!', ..] => return (Self::Twice(b"!!"), Self::Twice(b"||")),
            _ => {}
        }
        let count = |byte: u8| memchr::memchr_iter(byte, line).count();
        let counted = b"|\t;,".map(|byte| (count(byte), byte));
        let separator = match counted.into_iter().max_by_key(|(count, _)| *count) {
            Some((1.., byte)) => Self::Byte(byte),
            _ => Self::Blanks,
        };
        (separator, separator)
    }

    /// What stands between separators, in quotes or not. Blanks at the start and at the end separate nothing.
    pub(super) fn cells(self, line: &[u8]) -> impl Iterator<Item = Range<usize>> {
        let mut at = Some(0);
        let next = move || {
            let start = at?;
            let rest = &line[start..];
            let (len, gap) = match self {
                Self::Byte(byte) => (memchr::memchr(byte, rest), 1),
                Self::Twice(bytes) => (memchr::memmem::find(rest, bytes), bytes.len()),
                Self::Blanks => {
                    let len = memchr::memmem::find(rest, b"  ");
                    let blanks = rest[len.unwrap_or(rest.len())..].iter();
                    (len, blanks.take_while(|byte| **byte == b' ').count())
                }
            };
            let end = start + len.unwrap_or(rest.len());
            at = len.map(|_| end + gap);
            Some(start..end)
        };
        std::iter::from_fn(next).filter(move |cell| self != Self::Blanks || !cell.is_empty())
    }
}

/// Where in a row the value of a column is; quotes may hold what separates. None if the row has another
/// number of columns.
fn cell(row: &[u8], separator: Separator, column: usize, columns: usize) -> Option<Range<usize>> {
    let row = row.strip_suffix(b"\r").unwrap_or(row);
    let Separator::Byte(separator) = separator else {
        let cell = separator.cells(row).nth(column)?;
        let cell = without_marks(row, cell);
        return (separator.cells(row).count() == columns).then_some(cell);
    };
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
            found = Some(without_marks(row, start..if quoted { end } else { end + len }));
        }
        (at, count) = (end + len + 1, count + 1);
    }
    found.filter(|_| count == columns)
}

/// Without blanks and what Markdown and wikis mark code with.
fn without_marks(row: &[u8], cell: Range<usize>) -> Range<usize> {
    const MARKS: [&[u8]; 2] = [b"{noformat}", b"{code}"];
    let inside = within(&row[cell.clone()], |byte| byte.is_ascii_whitespace() || byte == b'`');
    let (start, end) = (cell.start + inside.start, cell.start + inside.end);
    let is_marked = |mark: &&&[u8]| {
        let inside = &row[start..end];
        inside.len() >= 2 * mark.len() && inside.starts_with(mark) && inside.ends_with(mark)
    };
    let mark = MARKS.iter().find(is_marked).map_or(0, |mark| mark.len());
    start + mark..end - mark
}

/// Without such bytes at both ends.
pub(super) fn within(text: &[u8], is_outside: impl Fn(u8) -> bool) -> Range<usize> {
    let start = text.iter().position(|byte| !is_outside(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_outside(*byte)).map_or(start, |last| last + 1);
    start..end
}

/// A value of SQL.
struct Value {
    /// Within its quotes, if it has any.
    quoted: Option<Range<usize>>,
    /// Where the comma or the parenthesis behind it is.
    end: usize,
}

/// Where the comma or the parenthesis is behind the value or the definition at `at`.
pub(super) fn end_of_value(text: &[u8], at: usize) -> Option<usize> {
    value(text, at).map(|value| value.end)
}

/// The value at `at`, which may be a call.
fn value(text: &[u8], at: usize) -> Option<Value> {
    let mut depth = 0usize;
    let mut quoted = None;
    let mut at = at;
    loop {
        match *text.get(at)? {
            // In a string of code its quotes are escaped.
            b'\\' if matches!(text.get(at + 1), Some(b'"')) => {
                let end = at + 2 + memchr::memmem::find(&text[at + 2..], b"\\\"")?;
                if depth == 0 {
                    quoted = Some(at + 2..end);
                }
                at = end + 1;
            }
            quote @ (b'\'' | b'"') => {
                let end = end_of_string(text, at + 1, quote)?;
                if depth == 0 {
                    quoted = Some(at + 1..end);
                }
                at = end;
            }
            b'(' => depth += 1,
            b',' | b')' if depth == 0 => {
                return Some(Value { quoted, end: at });
            }
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

/// The same in SQL, where a backslash may stand before one of the value.
fn end_of_string(text: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut from = start;
    loop {
        let end = end_of_quotes(text, from, quote)?;
        let escapes = text[start..end].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes % 2 == 0 {
            return Some(end);
        }
        from = end + 1;
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
