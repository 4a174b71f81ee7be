//! GitLab's secret detection report.

use std::collections::HashSet;
use std::io::{self, Write};

use gossip_runtime::RunSummary;
use serde_json::json;

use super::{Report, Shown, time};
use crate::explain::remedy;

/// The version of GitLab's report schemas that this follows.
const SCHEMA_VERSION: &str = "15.2.1";

#[derive(Default)]
pub(super) struct Gitlab {
    has_some: bool,
    ids: HashSet<u128>,
}

impl Report for Gitlab {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(out, "{{\n  \"version\": \"{SCHEMA_VERSION}\",\n  \"vulnerabilities\": [")
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        out.write_all(if self.has_some { b",\n" } else { b"\n" })?;
        self.has_some = true;
        let found = shown.found;
        let mut severity = found.severity.clone();
        severity[..1].make_ascii_uppercase();
        // It wants a commit, and takes this one for none.
        let commit = match &found.provenance {
            Some(from) => json!({
                "sha": from.commit, "author": from.author, "date": time::utc(from.date_ms),
            }),
            None => json!({ "sha": "0000000" }),
        };
        let solution = remedy(&found.rule).join(" ");
        let vulnerability = json!({
            "id": self.id(shown),
            "name": shown.description(),
            "description": format!(
                "{}. It {}. Rule {}, {} confidence.{}",
                shown.description().trim_end_matches('.'), shown.why(), found.rule, found.confidence,
                shown.brought_in_by().map_or(String::new(), |origin| format!(" History: {origin}.")),
            ),
            "severity": severity,
            "solution": solution,
            "raw_source_code_extract": shown.context(),
            "identifiers": [{
                "type": "gossip_rule_id",
                "name": format!("gossip rule {}", found.rule),
                "value": found.rule,
            }],
            "location": {
                "file": String::from_utf8_lossy(&shown.base_path),
                "start_line": found.line,
                "end_line": found.end_line.max(found.line),
                "commit": commit,
            },
        });
        write!(out, "    {}", serde_json::to_string(&vulnerability)?)
    }

    fn end(&mut self, out: &mut dyn Write, run: &RunSummary) -> io::Result<()> {
        let tool = json!({
            "id": "gossip",
            "name": "gossip",
            "vendor": { "name": "gossip" },
            "version": env!("CARGO_PKG_VERSION"),
        });
        let scan = json!({
            "type": "secret_detection",
            "status": if run.is_complete() { "success" } else { "failure" },
            "start_time": time::utc_without_zone(run.started_ms),
            "end_time": time::utc_without_zone(run.ended_ms.unwrap_or(run.started_ms)),
            "analyzer": tool,
            "scanner": tool,
        });
        writeln!(out, "\n  ],\n  \"scan\": {}\n}}", serde_json::to_string(&scan)?)
    }
}

impl Gitlab {
    /// A UUID that no other finding of the report has: GitLab keeps one of those that have the same. A secret
    /// that took the place of another has its fingerprint, and another commit brought it in; files of one name
    /// in two repositories have neither, and are told apart by their order.
    fn id(&mut self, shown: &Shown<'_>) -> String {
        let (print, rest) = shown.fingerprint.split_at(16);
        let commit = shown.found.provenance.as_ref().and_then(|from| from.commit.get(..16));
        let mut number = u128::from_str_radix(&format!("{print}{}", commit.unwrap_or(rest)), 16)
            .unwrap_or_default();
        while !self.ids.insert(number) {
            number = number.wrapping_add(1);
        }
        let digits = format!("{number:032x}");
        let at = |from: usize, to: usize| &digits[from..to];
        format!("{}-{}-{}-{}-{}", at(0, 8), at(8, 12), at(12, 16), at(16, 20), at(20, 32))
    }
}
