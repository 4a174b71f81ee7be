//! Runs as text, JSON and JSON lines.

use std::io::{self, BufWriter, StdoutLock, Write};

use gossip_runtime::RunSummary;
use serde::Serialize;

use crate::args::Format;
use crate::mask::masked;
use crate::say::shown_bytes;
use crate::source::as_typed;

/// A run in JSON.
#[derive(Serialize)]
pub(crate) struct RunJson {
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
    /// Whether items, bytes and what was skipped lack what its shards covered.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_of_another_version: bool,
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
        let (target, target_hex) = path_of(&as_typed(&run.target));
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
            is_of_another_version: run.is_of_another_version,
            skipped: counts(&run.skipped),
            failed: counts(&run.failed),
        }
    }
}

/// Why what a run found may not be all that there is, in a line.
pub(crate) fn incomplete(run: &RunSummary) -> String {
    let (number, target) = (run.run, shown_bytes(&as_typed(&run.target)));
    if !run.is_done() {
        return format!(
            "run {number} of {target} is {}: it has not scanned everything",
            run.status
        );
    }
    let failed: u64 = run.failed.iter().map(|(_, count)| count).sum();
    format!(
        "run {number} of {target} could not read {}; `gossip show {number}` names them",
        counted(failed, "item")
    )
}

/// A path as text without secrets, and its bytes in hexadecimal where they are not UTF-8.
pub(crate) fn path_of(key: &[u8]) -> (String, Option<String>) {
    let key = &*masked(key);
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

/// Writes runs.
pub(crate) fn write_runs(runs: &[RunSummary], format: Format) -> io::Result<()> {
    write_rows(runs, format, |out, run| writeln!(out, "{}", run_line(run)), RunJson::from)
}

/// Writes rows: each as `text` has it, or as `json` of it.
pub(crate) fn write_rows<'r, R, J: Serialize>(
    rows: &'r [R],
    format: Format,
    text: impl Fn(&mut dyn Write, &'r R) -> io::Result<()>,
    json: impl Fn(&'r R) -> J,
) -> io::Result<()> {
    let mut out = stdout();
    match format {
        Format::Text => rows.iter().try_for_each(|row| text(&mut out, row))?,
        Format::Json => {
            let all: Vec<J> = rows.iter().map(json).collect();
            serde_json::to_writer_pretty(&mut out, &all)?;
            writeln!(out)?;
        }
        Format::Jsonl => {
            for row in rows {
                serde_json::to_writer(&mut out, &json(row))?;
                writeln!(out)?;
            }
        }
    }
    out.flush()
}

pub(crate) fn run_line(run: &RunSummary) -> String {
    let covered = if run.is_of_another_version {
        format!("begun by another version of gossip, `gossip cancel {}` calls it off", run.run)
    } else {
        format!("{}, {}", counted(run.items, "item"), indicatif::HumanBytes(run.bytes))
    };
    format!(
        "run {}  {}  {covered}  {}  {}",
        run.run,
        run.status,
        counted(run.findings, "finding"),
        shown_bytes(&as_typed(&run.target)),
    )
}

/// `1 item`, `2 items`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
