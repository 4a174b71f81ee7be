//! SARIF 2.1.0, for code scanning services and editors.

use std::collections::BTreeMap;
use std::io::{self, Write};

use gossip_runtime::{OldestVersion, RunSummary};
use serde_json::{Value, json};

use super::{Report, Shown, time};
use crate::explain::remedy;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

#[derive(Default)]
pub(super) struct Sarif {
    /// The rules of what was found, by id, with their place among them.
    rules: BTreeMap<String, (usize, Value)>,
    has_some: bool,
}

impl Report for Sarif {
    fn begin(&mut self, out: &mut dyn Write) -> io::Result<()> {
        write!(
            out,
            "{{\n  \"$schema\": \"{SCHEMA}\",\n  \"version\": \"2.1.0\",\n  \"runs\": [{{\n    \
             \"results\": ["
        )
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()> {
        out.write_all(if self.has_some { b",\n" } else { b"\n" })?;
        self.has_some = true;
        let found = shown.found;
        let next = self.rules.len();
        let (index, _) =
            self.rules.entry(found.rule.clone()).or_insert_with(|| (next, rule(shown)));
        let text =
            format!("{}: {}. It {}.", shown.description(), shown.found.redacted, shown.why());
        let mut properties = json!({
            "severity": found.severity,
            "confidence": found.confidence,
            "reason": found.reason,
        });
        if let Some(from) = &found.provenance {
            properties["commit"] = json!(from.commit);
            properties["author"] = json!(from.author);
            properties["date"] = json!(time::utc(from.date_ms));
        }
        if let Some(OldestVersion { line, provenance }) = &found.oldest {
            properties["oldest_version"] = json!({ "commit": provenance.commit, "line": line });
        }
        if found.versions > 0 {
            properties["versions"] = json!(found.versions);
        }
        if found.is_in_work_tree {
            properties["in_work_tree"] = json!(true);
        }
        let result = json!({
            "ruleId": found.rule,
            "ruleIndex": *index,
            "level": level(&found.severity),
            "message": { "text": text },
            "locations": [{
                "physicalLocation": {
                    "artifactLocation": { "uri": uri(&shown.base_path), "uriBaseId": "%SRCROOT%" },
                    "region": {
                        "startLine": found.line.max(1),
                        "startColumn": found.column.max(1),
                        "endLine": found.end_line.max(found.line).max(1),
                        "endColumn": found.end_column.max(1),
                        "snippet": { "text": shown.context() },
                    },
                },
            }],
            "partialFingerprints": { "gossip/v2": shown.fingerprint },
            "properties": properties,
        });
        write!(out, "      {}", serde_json::to_string(&result)?)
    }

    fn end(&mut self, out: &mut dyn Write, run: &RunSummary) -> io::Result<()> {
        let mut rules: Vec<_> = std::mem::take(&mut self.rules).into_values().collect();
        rules.sort_by_key(|(index, _)| *index);
        let rules: Vec<Value> = rules.into_iter().map(|(_, rule)| rule).collect();
        let tool = json!({
            "driver": {
                "name": "gossip",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            },
        });
        let invocation = json!({
            "executionSuccessful": run.is_complete(),
            "startTimeUtc": time::utc(run.started_ms),
            "endTimeUtc": time::utc(run.ended_ms.unwrap_or(run.started_ms)),
        });
        writeln!(
            out,
            "\n    ],\n    \"columnKind\": \"unicodeCodePoints\",\n    \"invocations\": [{}],\n    \
             \"tool\": {}\n  }}]\n}}",
            serde_json::to_string(&invocation)?,
            serde_json::to_string(&tool)?,
        )
    }
}

fn rule(shown: &Shown<'_>) -> Value {
    let found = shown.found;
    let steps = remedy(&found.rule);
    let listed: Vec<String> = steps.iter().map(|step| format!("- {step}")).collect();
    json!({
        "id": found.rule,
        "name": found.rule,
        "shortDescription": { "text": shown.description() },
        "help": { "text": steps.join("\n"), "markdown": listed.join("\n") },
        "defaultConfiguration": { "level": level(&found.severity) },
        "properties": {
            "tags": ["security", "secret"],
            "security-severity": security_severity(&found.severity),
        },
    })
}

fn level(severity: &str) -> &'static str {
    match severity {
        "critical" | "high" => "error",
        "medium" => "warning",
        _ => "note",
    }
}

/// As GitHub groups them.
fn security_severity(severity: &str) -> &'static str {
    match severity {
        "critical" => "9.5",
        "high" => "8.0",
        "medium" => "5.5",
        _ => "2.0",
    }
}

/// A path as a relative reference: every byte that is not plain is written as a number.
fn uri(path: &[u8]) -> String {
    let mut uri = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}
