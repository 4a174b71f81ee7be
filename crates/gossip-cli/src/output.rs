//! Findings and runs as text, JSON and JSON lines.

use std::io::{self, BufWriter, StdoutLock, Write};

use gossip_runtime::{ReportedFinding, RunSummary};
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::args::Format;
use crate::failure::Failure;
use crate::say::{harmless, shown_bytes};

/// A finding in JSON. The path's exact bytes are given when they are not UTF-8.
#[derive(Serialize)]
struct FindingJson<'f> {
    finding: &'f str,
    rule: &'f str,
    severity: &'f str,
    confidence: &'f str,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_hex: Option<String>,
    line: u64,
    column: u64,
    start: u64,
    length: u64,
    secret: &'f str,
}

impl<'f> From<&'f ReportedFinding> for FindingJson<'f> {
    fn from(found: &'f ReportedFinding) -> Self {
        let (path, path_hex) = path_of(&found.path);
        Self {
            finding: &found.finding,
            rule: &found.rule,
            severity: &found.severity,
            confidence: &found.confidence,
            path,
            path_hex,
            line: found.line,
            column: found.column,
            start: found.start,
            length: found.length,
            secret: &found.redacted,
        }
    }
}

/// A run in JSON.
#[derive(Serialize)]
struct RunJson {
    run: u64,
    target: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hex: Option<String>,
    status: String,
    started_ms: u64,
    ended_ms: Option<u64>,
    shards: ShardsJson,
    items: u64,
    bytes: u64,
    findings: u64,
    skipped: Vec<CountJson>,
    failed: Vec<CountJson>,
}

#[derive(Serialize)]
struct ShardsJson {
    active: u64,
    done: u64,
    split: u64,
    parked: u64,
}

#[derive(Serialize)]
struct CountJson {
    reason: String,
    count: u64,
}

impl From<&RunSummary> for RunJson {
    fn from(run: &RunSummary) -> Self {
        let counts = |counts: &[(String, u64)]| {
            let row = |(reason, count): &(String, u64)| CountJson {
                reason: reason.clone(),
                count: *count,
            };
            counts.iter().map(row).collect()
        };
        let (target, target_hex) = path_of(&run.target);
        Self {
            run: run.run.as_raw(),
            target,
            target_hex,
            status: run.status.to_string(),
            started_ms: run.started_ms,
            ended_ms: run.ended_ms,
            shards: ShardsJson {
                active: run.progress.active,
                done: run.progress.done,
                split: run.progress.split,
                parked: run.progress.parked,
            },
            items: run.items,
            bytes: run.bytes,
            findings: run.findings,
            skipped: counts(&run.skipped),
            failed: counts(&run.failed),
        }
    }
}

fn path_of(key: &[u8]) -> (String, Option<String>) {
    match std::str::from_utf8(key) {
        Ok(path) => (path.to_owned(), None),
        Err(_) => {
            let hex = key.iter().map(|byte| format!("{byte:02x}")).collect();
            (String::from_utf8_lossy(key).into_owned(), Some(hex))
        }
    }
}

pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes the findings that `give` hands over one by one; says how many. `secret` gives what to show
/// of one in text.
pub(crate) fn write_findings(
    format: Format,
    secret: impl Fn(&ReportedFinding) -> String,
    give: impl FnOnce(&mut dyn FnMut(&ReportedFinding) -> io::Result<()>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    let mut out = stdout();
    let mut written = 0;
    match format {
        Format::Text => {
            give(&mut |found| {
                written += 1;
                writeln!(
                    out,
                    "{}:{}:{}: {} ({}, {} confidence): {}",
                    shown_bytes(&found.path),
                    found.line,
                    found.column,
                    harmless(&found.rule),
                    found.severity,
                    found.confidence,
                    secret(found),
                )
            })?;
        }
        Format::Json => {
            let mut json = serde_json::Serializer::pretty(&mut out);
            let mut all = json.serialize_seq(None).map_err(io::Error::from)?;
            give(&mut |found| {
                written += 1;
                Ok(all.serialize_element(&FindingJson::from(found))?)
            })?;
            all.end().map_err(io::Error::from)?;
            writeln!(out)?;
        }
        Format::Jsonl => {
            give(&mut |found| {
                written += 1;
                serde_json::to_writer(&mut out, &FindingJson::from(found))?;
                writeln!(out)
            })?;
        }
    }
    out.flush()?;
    Ok(written)
}

/// Writes runs.
pub(crate) fn write_runs(runs: &[RunSummary], format: Format) -> io::Result<()> {
    let mut out = stdout();
    match format {
        Format::Text => {
            for run in runs {
                writeln!(out, "{}", run_line(run))?;
            }
        }
        Format::Json => {
            let all: Vec<RunJson> = runs.iter().map(Into::into).collect();
            serde_json::to_writer_pretty(&mut out, &all)?;
            writeln!(out)?;
        }
        Format::Jsonl => {
            for run in runs {
                serde_json::to_writer(&mut out, &RunJson::from(run))?;
                writeln!(out)?;
            }
        }
    }
    out.flush()
}

fn run_line(run: &RunSummary) -> String {
    format!(
        "run {}  {}  {}, {}  {}  {}",
        run.run,
        run.status,
        counted(run.items, "item"),
        indicatif::HumanBytes(run.bytes),
        counted(run.findings, "finding"),
        shown_bytes(&run.target),
    )
}

/// `1 item`, `2 items`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
