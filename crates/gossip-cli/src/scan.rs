//! `gossip scan` and `gossip resume`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::connector::Connector;
use gossip_contracts::identity::{PolicyHash, RunId};
use gossip_engine::Engine;
use gossip_runtime::{
    Missed, ReportedFinding, Reports, RunSummary, Scan, ScanEnd, ScanError, ScanOutcome, ScanStats,
    StateDir, policy_hash,
};

use crate::args::{Args, ReportFormat, ResumeArgs, ScanArgs, WorkArgs};
use crate::config::{ReportSettings, Settings};
use crate::failure::Failure;
use crate::filter::Filtered;
use crate::output::counted;
use crate::output_file::check_place;
use crate::places::Places;
use crate::progress::Progress;
use crate::read_log::Logged;
use crate::report::ReportTo;
use crate::say::{escaped_bytes, say, shown, shown_bytes};
use crate::silence::Silencer;
use crate::source::{Pipes, Target, state_dir};
use crate::{Outcome, missed, proof};

pub(crate) fn run(args: &Args, scan: &ScanArgs) -> Result<Outcome, Failure> {
    let threads = scan.work.options(scan.fresh).threads;
    let state = || state_dir(args);
    let pipes = Pipes::default();
    let open = || Target::open_all(&scan.source, scan.work.gitignore, threads, &pipes, state);
    let target = open()?;
    let settings = settings(&scan.work, &target)?;
    if !args.quiet {
        for (part, repository) in Target::parts_of_repositories(&scan.source) {
            let repository = shown(&repository);
            say!(
                "{} is a part of the repository {repository}, whose history is not scanned: \
                 `gossip scan {repository}` does that",
                shown(&part)
            );
        }
    }
    execute(args, &scan.work, target, &settings, scan.fresh, Some(&open))
}

pub(crate) fn resume(args: &Args, resume: &ResumeArgs) -> Result<Outcome, Failure> {
    let state = state_dir(args)?;
    let summary = Reports::open(&state)?.run(RunId::from_raw(resume.run))?;
    let target = Target::reopen(&summary.target, resume.work.options(false).threads, &state)
        .map_err(|failure| Failure::new(format!("run {}: {failure}", resume.run)))?;
    if summary.ended_ms.is_some() {
        return Err(Failure::new(format!(
            "run {} has ended; `gossip scan {}` starts a new one",
            resume.run, target.again,
        )));
    }
    let settings = settings(&resume.work, &target)?;
    let again = target.again.clone();
    // A run says no more of how it was begun than its policy.
    let has_policy =
        |target: &Target| Ok::<_, Failure>(policy(target, &settings)? == summary.policy);
    let target = if has_policy(&target)? { target } else { target.with_binaries() };
    if !has_policy(&target)? {
        return Err(Failure::new(format!(
            "run {} was begun with other rules, with other options of what is scanned, or by another \
             version of gossip; give the same, or start a new run with `gossip scan {again}`",
            resume.run,
        )));
    }
    execute(args, &resume.work, target, &settings, false, None)
}

/// What a scan of `target` finds depends on.
fn policy(target: &Target, settings: &Settings) -> Result<PolicyHash, Failure> {
    let filtered = Filtered::new(&*target.source, &settings.filter)?;
    let classifier = if settings.filter.is_empty() {
        target.source.classifier()
    } else {
        Connector::classifier(&filtered)
    };
    Ok(policy_hash(&settings.engine(), classifier))
}

fn settings(work: &WorkArgs, target: &Target) -> Result<Settings, Failure> {
    let places = Places::of(&target.name);
    Settings::load(&places.roots(), &work.detection, work.report.no_local_config)
}

/// `reopen` opens the target once more, for a run after the one that is gone on with.
fn execute(
    args: &Args,
    work: &WorkArgs,
    mut target: Target,
    settings: &Settings,
    fresh: bool,
    reopen: Option<&dyn Fn() -> Result<Target, Failure>>,
) -> Result<Outcome, Failure> {
    let to_file = work.report.output.is_some();
    if work.show_secrets && (to_file || !std::io::stdout().is_terminal()) {
        return Err(Failure::new(
            "--show-secrets writes to a terminal only; leave it out, or do not redirect the output",
        ));
    }
    // Nobody wants to hear at the end of a long scan that its report has no place.
    let mut files = work.report.output.iter().chain(&work.proof);
    files.try_for_each(|file| check_place(file))?;
    // Everything that a report needs is read before anything is scanned.
    let places = Places::of(&target.name);
    let config = settings.config.as_ref();
    let report_settings = ReportSettings::of(config, &work.report);
    let no_local = work.report.no_local_config;
    let mut silencer = Silencer::load(&places, &report_settings, config, no_local)?;
    let (engine, (state, reports)) = prepare(args, settings)?;
    settings.say(&work.detection, &work.report, args.quiet);
    let (stats, stop) = (ScanStats::default(), stop_on_signal()?);
    let scanning = Scanning { args, work, settings, engine: &engine, state: &state, stop: &stop };
    let mut outcome = scanning.run(&target, fresh, &reports, &stats)?;
    // What it listed was decided when it began, which may have been long before this command did.
    if let Some(reopen) = reopen.filter(|_| outcome.end == ScanEnd::Finished)
        && target.source.has_newer().map_err(ScanError::from)?
    {
        if !args.quiet {
            say!("the target has changed since run {} began; what is new comes now", outcome.run);
        }
        target = reopen()?;
        outcome = scanning.run(&target, false, &reports, &stats)?;
    }

    let raw = |found: &ReportedFinding| {
        if found.is_inside { found.redacted.clone() } else { raw_secret(&target, found) }
    };
    let report = ReportTo {
        reports: &reports,
        run: outcome.run,
        places: &places,
        args: &work.report,
        no_color: args.no_color,
        new_since: None,
        with_newer: true,
        secret: work.show_secrets.then_some(&raw),
    };
    let findings = report.write(&mut silencer).map_err(|failure| {
        match to_file && !failure.is_closed_pipe() {
            true => Failure::new(format!(
                "{failure}; what was found is remembered: `gossip findings {} -o FILE` writes it",
                outcome.run
            )),
            false => failure,
        }
    })?;
    let not_reported = silencer.counts();
    // In the unit of the report, which may be versions.
    let found = findings.saturating_add(not_reported.of_findings());
    if let Some(path) = &work.proof {
        let (target, engine, filter) = (&target, &engine, &settings.filter);
        let scanned = proof::Scanned { target, engine, filter, findings: found, not_reported };
        proof::write(&reports, outcome.run, scanned, path)?;
    }
    let summary = reports.run(outcome.run)?;
    let RunSummary { items, skipped, failed, .. } = &summary;
    let has_nothing = *items == 0 && skipped.is_empty() && failed.is_empty();
    if outcome.end == ScanEnd::Finished && target.is_bucket() && has_nothing {
        // Most likely a prefix that was mistyped, which nobody would notice by the exit code.
        say!("{}: nothing is there; is the prefix right?", target.again);
    }
    let is_for_people = matches!(work.report.format, None | Some(ReportFormat::Text));
    let is_read = is_for_people || work.report.output.is_some() || std::io::stderr().is_terminal();
    let ended =
        Ended { outcome: &outcome, summary: &summary, stats: &stats, target: &target, found };
    ended.say(&reports, &places, is_read && !args.quiet)?;
    silencer.say(args.quiet);
    Ok(match outcome.end {
        ScanEnd::Finished if !summary.failed.is_empty() => Outcome::Incomplete,
        ScanEnd::Finished if findings == 0 => Outcome::Clean,
        ScanEnd::Finished => Outcome::Found(report_settings.exit_code),
        _ => Outcome::Incomplete,
    })
}

/// The engine, and where scans are remembered. Each takes some ten milliseconds, most of what a small
/// scan takes, and neither needs the other.
fn prepare(args: &Args, settings: &Settings) -> Result<(Engine, (StateDir, Reports)), Failure> {
    std::thread::scope(|scope| {
        let engine = scope.spawn(|| settings.engine());
        let state = state_dir(args)?;
        let reports = Reports::open(&state)?;
        let engine = engine.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((engine, (state, reports)))
    })
}

/// What is the same for all runs of a command.
struct Scanning<'s> {
    args: &'s Args,
    work: &'s WorkArgs,
    settings: &'s Settings,
    engine: &'s Engine,
    state: &'s StateDir,
    stop: &'s AtomicBool,
}

impl Scanning<'_> {
    fn run(
        &self,
        target: &Target,
        fresh: bool,
        reports: &Reports,
        stats: &ScanStats,
    ) -> Result<ScanOutcome, Failure> {
        let Self { args, work, settings, engine, state, stop } = *self;
        let filtered = Filtered::new(&*target.source, &settings.filter)?;
        let source: &dyn Connector =
            if settings.filter.is_empty() { &*target.source } else { &filtered };
        let logged = work.tuning.read_log.as_deref();
        let logged = logged.map(|path| Logged::new(source, path)).transpose()?;
        let source = logged.as_ref().map_or(source, |logged| logged);
        let (name, options) = (&target.name[..], &work.options(fresh));
        let scan = Scan { state, source, target: name, engine, options, stats, stop };
        // What the last scan of the same covered.
        let expected_bytes = reports.last_bytes(name)?.filter(|&bytes| bytes > 0);
        let progress = Progress { state, target: name, stats, expected_bytes };
        let is_silent = work.no_progress || args.quiet;
        let run = || scan.run();
        Ok(if is_silent { run() } else { progress.shown_during(run) }?)
    }
}

/// A first signal stops the scan in order; a second ends the process.
fn stop_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(2);
        }
        say!("stopping; press again to stop at once (nothing is lost either way)");
    })
    .map_err(|error| Failure::new(format!("signals cannot be handled: {error}")))?;
    Ok(stop)
}

/// The bytes of a finding as they are in the file now.
fn raw_secret(target: &Target, found: &ReportedFinding) -> String {
    let read = || {
        let mut reader = target.source.open(&found.key)?;
        let mut bytes = vec![0; found.length.min(64 << 10) as usize];
        let read = reader.read_at(found.start, &mut bytes)?;
        bytes.truncate(read);
        Ok::<_, gossip_contracts::connector::ConnectorError>(escaped_bytes(&bytes))
    };
    read().unwrap_or_else(|_| found.redacted.clone())
}

/// How a scan ended, for people, on standard error.
struct Ended<'e> {
    outcome: &'e ScanOutcome,
    summary: &'e RunSummary,
    stats: &'e ScanStats,
    target: &'e Target,
    /// Findings, reported or not.
    found: u64,
}

impl Ended<'_> {
    /// What went wrong, whatever was asked for; and the rest of it, `in_full`.
    fn say(&self, reports: &Reports, places: &Places, in_full: bool) -> Result<(), Failure> {
        let Self { outcome, summary, .. } = self;
        if in_full {
            self.say_summary();
        }
        let (run, path) = (outcome.run, &self.target.again);
        match outcome.end {
            ScanEnd::Finished => {}
            ScanEnd::Interrupted => say!("interrupted; the same command goes on where it was"),
            ScanEnd::Parked { shards } => {
                self.say_parked(reports, places, shards)?;
                say!("mend what is wrong, then `gossip unpark {run}` and `gossip scan {path}`");
            }
            ScanEnd::Cancelled => say!("run {run} was cancelled"),
        }
        if !summary.failed.is_empty() {
            say!("could not be read: {}", list(&summary.failed));
        }
        let out_of_reach: Vec<_> = summary
            .skipped
            .iter()
            .filter(|(reason, _)| Missed::is_reason(reason))
            .cloned()
            .collect();
        if !summary.failed.is_empty() || (in_full && !out_of_reach.is_empty()) {
            missed::say(reports, run, places, !in_full)?;
        }
        // Nothing went wrong there, but who sees nothing else takes it for scanned.
        if !in_full && !out_of_reach.is_empty() {
            say!("out of reach: {}; `gossip show {run}` names it", list(&out_of_reach));
        }
        Ok(())
    }

    fn say_summary(&self) {
        let Self { outcome, summary, stats, found, .. } = self;
        let run = outcome.run;
        if outcome.resumed {
            say!("went on with run {run}, which had not ended");
        }
        say!(
            "run {run}: {} ({} unchanged), {} read, {}",
            counted(summary.items, "item"),
            stats.unchanged(),
            indicatif::HumanBytes(stats.bytes()),
            counted(*found, "finding"),
        );
        if !summary.skipped.is_empty() {
            say!("not scanned: {}", list(&summary.skipped));
        }
    }

    fn say_parked(&self, reports: &Reports, places: &Places, shards: u64) -> Result<(), Failure> {
        /// From where on each could not be listed; the others are like them.
        const NAMED: usize = 3;
        let are = if shards == 1 { "is" } else { "are" };
        let mut reasons = self.stats.parked_for().join("; ");
        if reasons.is_empty() {
            reasons.push_str("an earlier scan could not list it");
        }
        say!("{} {are} parked: {reasons}", counted(shards, "shard"));
        for key in reports.parked_after(self.outcome.run)?.iter().take(NAMED) {
            let shown = self.target.source.shown_path(key);
            let shown = places.as_seen(shown.as_deref().unwrap_or(key));
            // Ranges begin with a NUL, which no name does.
            let shown = shown.strip_suffix(b"\0").unwrap_or(&shown);
            say!("  from {} on", shown_bytes(shown));
        }
        Ok(())
    }
}

/// Counts by reason, in one line.
fn list(counts: &[(String, u64)]) -> String {
    let parts: Vec<String> =
        counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    parts.join(", ")
}
