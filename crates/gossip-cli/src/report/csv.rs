//! Comma-separated values (RFC 4180), for spreadsheets.

use std::io::{self, Write};

use super::{Report, Shown, time};

pub(super) struct Csv;

const COLUMNS: &str = "severity,confidence,rule,description,path,line,column,end_line,end_column,\
                       secret,context,why,fingerprint,commit,author,date,versions,\
                       in_work_tree,oldest_commit,oldest_line\r\n";

impl Report for Csv {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(COLUMNS.as_bytes())
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        let found = shown.found;
        let from = found.provenance.clone().unwrap_or_default();
        let oldest = found.oldest.as_ref();
        let date = if from.date_ms > 0 { time::utc(from.date_ms) } else { String::new() };
        let cells = [
            &found.severity,
            &found.confidence,
            &found.rule,
            &found.description,
            &String::from_utf8_lossy(&shown.path).into_owned(),
            &found.line.to_string(),
            &found.column.to_string(),
            &found.end_line.to_string(),
            &found.end_column.to_string(),
            &found.redacted,
            &shown.context(),
            &shown.why().to_owned(),
            &shown.fingerprint,
            &from.commit,
            &from.author,
            &date,
            &found.versions.to_string(),
            &(if found.is_in_work_tree { "true" } else { "" }).to_owned(),
            &oldest.map_or(String::new(), |oldest| oldest.provenance.commit.clone()),
            &oldest.map_or(String::new(), |oldest| oldest.line.to_string()),
        ];
        write!(out, "{}\r\n", cells.map(|cell| quoted(cell)).join(","))
    }
}

/// In quotes. What a spreadsheet would take for a formula gets an apostrophe, so that it is text.
fn quoted(cell: &str) -> String {
    let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let mark = if is_formula { "'" } else { "" };
    format!("\"{mark}{}\"", cell.replace('"', "\"\""))
}
