//! JSON, in one document or one object a line.

use std::io::{self, Write};

use gossip_contracts::connector::Provenance;
use gossip_runtime::RunSummary;
use serde::Serialize;

use super::{Report, Shown, time};
use crate::mask::masked;
use crate::output::path_of;

/// A finding in JSON. The path's exact bytes are given when they are not UTF-8.
#[derive(Serialize)]
pub(super) struct FindingJson<'f> {
    finding: &'f str,
    fingerprint: &'f str,
    rule: &'f str,
    description: &'f str,
    severity: &'f str,
    confidence: &'f str,
    reason: &'f str,
    why: &'f str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    line: u64,
    column: u64,
    end_line: u64,
    end_column: u64,
    start: u64,
    length: u64,
    secret: &'f str,
    context: String,
    first_seen: u64,
    #[serde(skip_serializing_if = "is_none")]
    versions: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    in_work_tree: bool,
    #[serde(flatten)]
    provenance: Option<ProvenanceJson<'f>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest_version: Option<OldestVersionJson<'f>>,
}

/// Of what the work tree has. What is beside it is of the work tree.
#[derive(Serialize)]
struct OldestVersionJson<'f> {
    line: u64,
    #[serde(flatten)]
    provenance: ProvenanceJson<'f>,
}

#[derive(Serialize)]
struct ProvenanceJson<'f> {
    commit: &'f str,
    author: &'f str,
    date: String,
    other_paths: Vec<String>,
    #[serde(skip_serializing_if = "is_none")]
    more_paths: u64,
}

impl<'f> From<&'f Shown<'f>> for FindingJson<'f> {
    fn from(shown: &'f Shown<'f>) -> Self {
        let found = shown.found;
        let (path, path_hex) = path_of(&shown.path);
        Self {
            finding: &found.finding,
            fingerprint: &shown.fingerprint,
            rule: &found.rule,
            description: &found.description,
            severity: &found.severity,
            confidence: &found.confidence,
            reason: &found.reason,
            why: shown.why(),
            path,
            path_hex,
            line: found.line,
            column: found.column,
            end_line: found.end_line,
            end_column: found.end_column,
            start: found.start,
            length: found.length,
            secret: &found.redacted,
            context: shown.context(),
            first_seen: found.first_seen.as_raw(),
            versions: found.versions,
            in_work_tree: found.is_in_work_tree,
            provenance: found.provenance.as_ref().map(ProvenanceJson::from),
            oldest_version: found.oldest.as_ref().map(|oldest| OldestVersionJson {
                line: oldest.line,
                provenance: ProvenanceJson::from(&oldest.provenance),
            }),
        }
    }
}

impl<'f> From<&'f Provenance> for ProvenanceJson<'f> {
    fn from(from: &'f Provenance) -> Self {
        let text = |path: &Vec<u8>| String::from_utf8_lossy(&masked(path)).into_owned();
        Self {
            commit: &from.commit,
            author: &from.author,
            date: time::utc(from.date_ms),
            other_paths: from.other_paths.iter().map(text).collect(),
            more_paths: from.more_paths,
        }
    }
}

fn is_none(number: &u64) -> bool {
    *number == 0
}

/// One array.
#[derive(Default)]
pub(super) struct Json {
    has_some: bool,
}

impl Report for Json {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "[")
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        out.write_all(if self.has_some { b",\n" } else { b"\n" })?;
        self.has_some = true;
        let json = serde_json::to_string_pretty(&FindingJson::from(shown))?;
        let lines: Vec<String> = json.lines().map(|line| format!("  {line}")).collect();
        out.write_all(lines.join("\n").as_bytes())
    }

    fn end(&mut self, out: &mut dyn Write, _: &RunSummary) -> io::Result<()> {
        writeln!(out, "{}", if self.has_some { "\n]" } else { "]" })
    }
}

/// One object a line.
pub(super) struct JsonLines;

impl Report for JsonLines {
    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut *out, &FindingJson::from(shown))?;
        writeln!(out)
    }
}
