//! For people: a line for each finding that an editor or a terminal can follow, and its context,
//! grouped by file.

use std::io::{self, Write};

use super::{Report, Shown};
use crate::say::{harmless, shown_bytes};

pub(super) struct Text {
    is_coloured: bool,
    path: Option<Vec<u8>>,
}

impl Text {
    pub(super) fn new(is_coloured: bool) -> Self {
        Self { is_coloured, path: None }
    }

    fn painted(&self, code: &str, text: &str) -> String {
        if self.is_coloured { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

impl Report for Text {
    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        let found = shown.found;
        if self.path.as_ref().is_some_and(|path| *path != shown.path) {
            writeln!(out)?;
        }
        self.path = Some(shown.path.clone());
        let colour = match found.severity.as_str() {
            "critical" => "1;31",
            "high" => "31",
            "medium" => "33",
            _ => "36",
        };
        let place = format!("{}:{}:{}:", shown_bytes(&shown.path), found.line, found.column);
        let place = self.painted("1", &place);
        let rule = self.painted(colour, &harmless(&found.rule));
        let judged = format!("({}, {} confidence)", found.severity, found.confidence);
        writeln!(out, "{place} {rule} {judged}: {}", shown.secret)?;
        let context = shown.context();
        if !found.before.is_empty() || !found.after.is_empty() {
            writeln!(out, "    {}", self.painted("2", &harmless(&context)))?;
        }
        if let Some(line) = shown.brought_in_by() {
            writeln!(out, "    {}", self.painted("2", &harmless(&line)))?;
        }
        Ok(())
    }
}
