//! Findings in every format: one writer each, fed one finding after the other, as there may be very
//! many.

mod csv;
mod gitlab;
mod html;
mod json;
mod junit;
mod sarif;
mod text;
mod time;
mod xml;

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::Path;

use gossip_contracts::connector::Provenance;
use gossip_contracts::identity::RunId;
use gossip_engine::Reason;
use gossip_runtime::{Fingerprints, ReportedFinding, Reports, RunSummary, Verdict};

use crate::args::{ReportArgs, ReportFormat};
use crate::failure::Failure;
use crate::mask::masked;
use crate::output::counted;
use crate::output_file::write_whole;
use crate::places::Places;
use crate::silence::{By, Silencer};

/// A finding with what only the report knows of it.
pub(crate) struct Shown<'f> {
    pub(crate) found: &'f ReportedFinding,
    /// As seen from where the command runs.
    pub(crate) path: Vec<u8>,
    /// From the root of the repository, or of what was scanned.
    pub(crate) base_path: Vec<u8>,
    pub(crate) fingerprint: String,
    /// What is shown of the secret: redacted, but for a terminal that was told otherwise.
    pub(crate) secret: String,
}

impl Shown<'_> {
    /// Its line, with every secret masked.
    fn context(&self) -> String {
        let ReportedFinding { before, after, redacted, .. } = self.found;
        // The length is said elsewhere.
        let masked = redacted.split_once(" (").map_or(redacted.as_str(), |(masked, _)| masked);
        format!("{before}{masked}{after}")
    }

    /// What it is, in a sentence.
    fn description(&self) -> &str {
        match self.found.description.as_str() {
            "" => &self.found.rule,
            description => description,
        }
    }

    /// Which commit brought it in, whose it is and when that was, if there is one, and how many versions
    /// have it.
    fn brought_in_by(&self) -> Option<String> {
        let ReportedFinding { provenance, versions, oldest, .. } = self.found;
        let oldest = oldest.as_ref().map(|oldest| &oldest.provenance);
        let Provenance { commit, author, date_ms, other_paths, more_paths, .. } =
            provenance.as_ref().or(oldest)?;
        let others = match other_paths.len() as u64 + more_paths {
            0 => String::new(),
            _ => format!("; also at {}", named(other_paths, *more_paths)),
        };
        let from = format!("commit {commit} by {author}, {}", time::utc(*date_ms));
        let number = counted(*versions, "version");
        Some(match oldest {
            Some(_) => format!("also in {number} of the history, from {from} on{others}"),
            None if *versions < 2 => format!("{from}{others}"),
            None => format!("in {number}, from {from} on{others}"),
        })
    }

    /// Why it was judged so, in words.
    fn why(&self) -> &str {
        match Reason::from_name(&self.found.reason) {
            Some(reason) => reason.explanation(),
            None => &self.found.reason,
        }
    }
}

/// The first few paths, and how many more there are.
fn named(paths: &[Vec<u8>], more: u64) -> String {
    const NAMED: usize = 3;
    let first: Vec<_> = paths
        .iter()
        .take(NAMED)
        .map(|path| String::from_utf8_lossy(&masked(path)).into_owned())
        .collect();
    match paths.len().saturating_sub(NAMED) as u64 + more {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Writes findings in one format.
trait Report {
    fn begin(&mut self, _out: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }

    fn finding(&mut self, out: &mut dyn Write, shown: &Shown<'_>) -> io::Result<()>;

    fn end(&mut self, _out: &mut dyn Write, _run: &RunSummary) -> io::Result<()> {
        Ok(())
    }
}

/// What decides how a report is written.
pub(crate) struct ReportTo<'a> {
    pub(crate) reports: &'a Reports,
    pub(crate) run: RunId,
    pub(crate) places: &'a Places,
    pub(crate) args: &'a ReportArgs,
    pub(crate) no_color: bool,
    /// Only what was first seen after this run.
    pub(crate) new_since: Option<RunId>,
    /// Newer runs of the same may have taken items over: they count, too.
    pub(crate) with_newer: bool,
    /// What to show of a secret, if not what the database has.
    pub(crate) secret: Option<&'a dyn Fn(&ReportedFinding) -> String>,
}

impl ReportTo<'_> {
    /// Writes what a run found; how much of it is reported.
    pub(crate) fn write(&self, silencer: &mut Silencer) -> Result<u64, Failure> {
        let output = self.args.output.as_deref();
        let format = self.args.format.unwrap_or_else(|| format_of(output));
        let to_terminal = output.is_none() && io::stdout().is_terminal();
        let is_coloured = to_terminal && !self.no_color && !no_color();
        let mut report = report(format, is_coloured);
        let summary = self.reports.run(self.run)?;
        write_whole(output, |out| {
            report.begin(out)?;
            let written = self.each(silencer, &mut |shown| report.finding(out, shown))?;
            report.end(out, &summary)?;
            Ok(written)
        })
    }

    fn each(
        &self,
        silencer: &mut Silencer,
        write: &mut dyn FnMut(&Shown<'_>) -> io::Result<()>,
    ) -> Result<u64, Failure> {
        let mut prints = Fingerprints::new();
        let mut written = 0;
        let silencer = RefCell::new(silencer);
        let judge = |found: &ReportedFinding| {
            let fingerprint = prints.next(found, &self.places.masked_in_repository(&found.path));
            let path = silencer.borrow().judge(found, self.places, &fingerprint);
            Verdict {
                is_reported: path.is_ok(),
                fingerprint,
                note: path.unwrap_or_else(By::to_note),
            }
        };
        let each = |found: &ReportedFinding, verdict: &Verdict| {
            if self.new_since.is_some_and(|run| found.first_seen <= run) {
                return Ok(());
            }
            if !verdict.is_reported {
                silencer.borrow_mut().count(By::from_note(verdict.note));
                return Ok(());
            }
            written += 1;
            let found = &at_path(found, verdict.note as usize);
            let base_path = self.places.masked_in_repository(&found.path);
            let path = masked(&self.places.as_seen(&found.path)).into_owned();
            let secret = self.secret.map_or_else(|| found.redacted.clone(), |secret| secret(found));
            let fingerprint = verdict.fingerprint.clone();
            write(&Shown { found, path, base_path, fingerprint, secret })
        };
        let versions = self.places.versions(self.args.all_versions);
        if self.with_newer {
            self.reports.each_finding_since(self.run, &versions, judge, each)??;
        } else {
            self.reports.each_finding(self.run, &versions, judge, each)??;
        }
        Ok(written)
    }
}

/// A finding at one of its paths: 0 is its own, and those after it are the other ones.
fn at_path(found: &ReportedFinding, path: usize) -> Cow<'_, ReportedFinding> {
    let mut found = Cow::Borrowed(found);
    if path > 0 {
        let ReportedFinding { path: own, provenance, .. } = found.to_mut();
        let other = provenance.as_mut().and_then(|from| from.other_paths.get_mut(path - 1));
        if let Some(other) = other {
            std::mem::swap(own, other);
        }
    }
    found
}

/// Whether the environment wants no colours.
pub(crate) fn no_color() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

fn format_of(output: Option<&Path>) -> ReportFormat {
    let ending = output.and_then(Path::extension).map(|ending| ending.to_string_lossy());
    match ending.as_deref() {
        Some("json") => ReportFormat::Json,
        Some("jsonl" | "ndjson") => ReportFormat::Jsonl,
        Some("sarif") => ReportFormat::Sarif,
        Some("csv") => ReportFormat::Csv,
        Some("xml") => ReportFormat::Junit,
        Some("html" | "htm") => ReportFormat::Html,
        _ => ReportFormat::Text,
    }
}

fn report(format: ReportFormat, is_coloured: bool) -> Box<dyn Report> {
    match format {
        ReportFormat::Text => Box::new(text::Text::new(is_coloured)),
        ReportFormat::Json => Box::new(json::Json::default()),
        ReportFormat::Jsonl => Box::new(json::JsonLines),
        ReportFormat::Sarif => Box::new(sarif::Sarif::default()),
        ReportFormat::Csv => Box::new(csv::Csv),
        ReportFormat::Junit => Box::new(junit::Junit::default()),
        ReportFormat::Gitlab => Box::new(gitlab::Gitlab::default()),
        ReportFormat::Html => Box::new(html::Html::default()),
    }
}
