//! `gossip runs`, `gossip show` and `gossip findings`.

use gossip_contracts::identity::RunId;
use gossip_runtime::Reports;

use crate::Outcome;
use crate::args::{Args, FindingsArgs, OutputArgs, ShowArgs};
use crate::config::{Config, ReportSettings};
use crate::failure::Failure;
use crate::output::write_runs;
use crate::places::Places;
use crate::report::ReportTo;
use crate::silence::Silencer;
use crate::source::state_dir;

pub(crate) fn runs(args: &Args, output: &OutputArgs) -> Result<Outcome, Failure> {
    write_runs(&Reports::open(&state_dir(args)?)?.runs()?, output.format)?;
    Ok(Outcome::Clean)
}

pub(crate) fn run(args: &Args, show: &ShowArgs) -> Result<Outcome, Failure> {
    let summary = Reports::open(&state_dir(args)?)?.run(RunId::from_raw(show.run))?;
    write_runs(&[summary], show.output.format)?;
    Ok(Outcome::Clean)
}

/// The newest run.
pub(crate) fn newest(reports: &Reports) -> Result<RunId, Failure> {
    let newest = reports.newest()?;
    newest.ok_or_else(|| Failure::new("there are no runs yet; `gossip scan PATH` makes one"))
}

pub(crate) fn findings(args: &Args, findings: &FindingsArgs) -> Result<Outcome, Failure> {
    let reports = Reports::open(&state_dir(args)?)?;
    let run = match findings.run {
        Some(run) => RunId::from_raw(run),
        None => newest(&reports)?,
    };
    let places = Places::of(&reports.run(run)?.target);
    let since = findings.new_since.map(RunId::from_raw);
    since.map(|since| reports.check_was_begun(since)).transpose()?;
    let no_local = findings.report.no_local_config;
    let config = Config::find(None, &places.roots(), no_local)?;
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
    if !args.quiet {
        silencer.say();
    }
    Ok(if found == 0 { Outcome::Clean } else { Outcome::Found(settings.exit_code) })
}
