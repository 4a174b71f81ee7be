//! `gossip runs`, `gossip show` and `gossip findings`.

use gossip_contracts::identity::RunId;
use gossip_runtime::{ReportedFinding, Reports};

use crate::Outcome;
use crate::args::{Args, FindingsArgs, OutputArgs, ShowArgs};
use crate::failure::Failure;
use crate::output::{write_findings, write_runs};
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

pub(crate) fn findings(args: &Args, findings: &FindingsArgs) -> Result<Outcome, Failure> {
    let reports = Reports::open(&state_dir(args)?)?;
    let run = match findings.run {
        Some(run) => reports.run(RunId::from_raw(run))?.run,
        None => reports
            .newest()?
            .ok_or_else(|| Failure::new("there are no runs yet; `gossip scan PATH` makes one"))?,
    };
    let shown = |found: &ReportedFinding| found.redacted.clone();
    let found = write_findings(findings.output.format, shown, |write| {
        Ok(reports.each_finding(run, write)??)
    })?;
    Ok(if found == 0 { Outcome::Clean } else { Outcome::Found })
}
