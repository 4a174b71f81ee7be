//! `gossip runs`, `gossip show` and `gossip findings`.

use std::io::Write;

use gossip_contracts::identity::RunId;
use gossip_runtime::{Reports, RunSummary};
use serde::Serialize;

use crate::Outcome;
use crate::args::{Args, FindingsArgs, OutputArgs, ShowArgs};
use crate::config::{Config, ReportSettings};
use crate::failure::Failure;
use crate::missed::{self, MissedJson};
use crate::output::{RunJson, incomplete, run_line, write_rows, write_runs};
use crate::places::Places;
use crate::report::ReportTo;
use crate::say::say;
use crate::silence::Silencer;
use crate::source::state_dir;

pub(crate) fn runs(args: &Args, output: &OutputArgs) -> Result<Outcome, Failure> {
    let runs = Reports::open(&state_dir(args)?)?.runs()?;
    if runs.is_empty() && !args.quiet {
        say!("there are no runs yet; `gossip scan PATH` makes one");
    }
    write_runs(&runs, output.format)?;
    Ok(Outcome::Clean)
}

pub(crate) fn run(args: &Args, show: &ShowArgs) -> Result<Outcome, Failure> {
    let (reports, run) = (Reports::open(&state_dir(args)?)?, RunId::from_raw(show.run));
    let summary = reports.run(run)?;
    let places = Places::of(&summary.target);
    // An item belongs to the newest run that covered it.
    let superseded_by = reports.superseded_by(run)?;
    let missed = match superseded_by {
        Some(_) => Vec::new(),
        None => missed::all(&reports, run)?,
    };
    let text = |out: &mut dyn Write, run: &RunSummary| {
        writeln!(out, "{}", run_line(run))?;
        if let Some(by) = superseded_by {
            writeln!(
                out,
                "  run {by} scanned the same again; `gossip show {by}` names what it missed"
            )?;
        }
        missed.iter().try_for_each(|missed| writeln!(out, "  {}", missed::line(missed, &places)))
    };
    let json = |run| ShownRun {
        run: RunJson::from(run),
        superseded_by: superseded_by.map(RunId::as_raw),
        missed: missed.iter().map(|missed| MissedJson::new(missed, &places)).collect(),
    };
    write_rows(&[summary], show.output.format, text, json)?;
    Ok(Outcome::Clean)
}

/// One run in JSON, with what it should have scanned and did not.
#[derive(Serialize)]
struct ShownRun {
    #[serde(flatten)]
    run: RunJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    superseded_by: Option<u64>,
    missed: Vec<MissedJson>,
}

/// The run that a command without a number means: the newest that has got as far as its shards.
pub(crate) fn newest(reports: &Reports) -> Result<RunId, Failure> {
    let newest = reports.newest_begun()?;
    newest.ok_or_else(|| Failure::new("there are no runs yet; `gossip scan PATH` makes one"))
}

pub(crate) fn findings(args: &Args, findings: &FindingsArgs) -> Result<Outcome, Failure> {
    let reports = Reports::open(&state_dir(args)?)?;
    let run = match findings.run {
        Some(run) => RunId::from_raw(run),
        None => newest(&reports)?,
    };
    let summary = reports.run(run)?;
    let places = Places::of(&summary.target);
    let since = findings.new_since.map(RunId::from_raw);
    since.map(|since| reports.check_was_begun(since)).transpose()?;
    let no_local = findings.report.no_local_config;
    let config = Config::find(None, &places.roots(), no_local)?;
    if let Some(config) = &config {
        config.say_effect_on_report(&findings.report);
    }
    let settings = ReportSettings::of(config.as_ref(), &findings.report);
    let mut silencer = Silencer::load(&places, &settings, config.as_ref(), no_local)?;
    let report = ReportTo {
        reports: &reports,
        run,
        places: &places,
        args: &findings.report,
        no_color: args.no_color,
        new_since: since,
        with_newer: false,
        secret: None,
    };
    let found = report.write(&mut silencer)?;
    silencer.say(args.quiet);
    if !summary.is_complete() {
        say!("{}", incomplete(&summary));
        return Ok(Outcome::Incomplete);
    }
    Ok(if found == 0 { Outcome::Clean } else { Outcome::Found(settings.exit_code) })
}
