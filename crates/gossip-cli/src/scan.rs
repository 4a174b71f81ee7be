//! `gossip scan` and `gossip resume`.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gossip_contracts::identity::RunId;
use gossip_engine::Engine;
use gossip_runtime::{
    ReportedFinding, Reports, RunSummary, Scan, ScanEnd, ScanOutcome, ScanStats, policy_hash,
};

use crate::args::{Args, Format, ResumeArgs, ScanArgs, WorkArgs};
use crate::failure::Failure;
use crate::output::{counted, write_findings};
use crate::read_log::Logged;
use crate::say::{say, shown_bytes};
use crate::source::{Target, engine, state_dir};
use crate::{Outcome, progress};

pub(crate) fn run(args: &Args, scan: &ScanArgs) -> Result<Outcome, Failure> {
    let threads = scan.work.options(scan.fresh).threads;
    let state = || state_dir(args);
    let target = Target::open_all(&scan.source, scan.work.gitignore, threads, state)?;
    execute(args, &scan.work, &target, &engine(&scan.work.rules)?, scan.fresh)
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
    let engine = engine(&resume.work.rules)?;
    if policy_hash(&engine, target.source.classifier()) != summary.policy {
        return Err(Failure::new(format!(
            "run {} was begun with other rules or by another version of gossip; give the same \
             --rules, or start a new run with `gossip scan {}`",
            resume.run, target.again,
        )));
    }
    execute(args, &resume.work, &target, &engine, false)
}

fn execute(
    args: &Args,
    work: &WorkArgs,
    target: &Target,
    engine: &Engine,
    fresh: bool,
) -> Result<Outcome, Failure> {
    if work.show_secrets && !std::io::stdout().is_terminal() {
        return Err(Failure::new(
            "--show-secrets writes to a terminal only; leave it out, or do not redirect the output",
        ));
    }
    let state = state_dir(args)?;
    let reports = Reports::open(&state)?;
    let options = work.options(fresh);
    let logged = work.tuning.read_log.as_deref();
    let logged = logged.map(|path| Logged::new(&*target.source, path)).transpose()?;
    let (stats, stop) = (ScanStats::default(), stop_on_signal()?);
    let scan = Scan {
        state: &state,
        source: logged.as_ref().map_or(&*target.source, |logged| logged),
        target: &target.name,
        engine,
        options: &options,
        stats: &stats,
        stop: &stop,
    };
    // What the last scan of the same covered.
    let expected_bytes = reports.last_bytes(&target.name)?.filter(|&bytes| bytes > 0);
    let outcome = with_progress(work, &stats, expected_bytes, || scan.run())?;

    let shown = |found: &ReportedFinding| {
        let raw = work.show_secrets && !found.is_inside;
        if raw { raw_secret(target, found) } else { found.redacted.clone() }
    };
    let findings = write_findings(work.output.format, shown, |write| {
        Ok(reports.each_finding_since(outcome.run, write)??)
    })?;
    let summary = reports.run(outcome.run)?;
    say_end(work, &outcome, &summary, &stats, target);
    Ok(match outcome.end {
        ScanEnd::Finished if !summary.failed.is_empty() => Outcome::Incomplete,
        ScanEnd::Finished if findings == 0 => Outcome::Clean,
        ScanEnd::Finished => Outcome::Found,
        _ => Outcome::Incomplete,
    })
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

fn with_progress<R>(
    work: &WorkArgs,
    stats: &ScanStats,
    expected_bytes: Option<u64>,
    scan: impl FnOnce() -> R,
) -> R {
    if work.no_progress {
        return scan();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| progress::draw(stats, expected_bytes, &done));
        // However the scan ends: the scope waits for the bar.
        let _done = SetOnDrop(&done);
        scan()
    })
}

struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The bytes of a finding as they are in the file now.
fn raw_secret(target: &Target, found: &ReportedFinding) -> String {
    let read = || {
        let mut reader = target.source.open(&found.key)?;
        let mut bytes = vec![0; found.length.min(64 << 10) as usize];
        let read = reader.read_at(found.start, &mut bytes)?;
        bytes.truncate(read);
        Ok::<_, gossip_contracts::connector::ConnectorError>(shown_bytes(&bytes))
    };
    read().unwrap_or_else(|_| found.redacted.clone())
}

/// A summary for people, on standard error.
fn say_end(
    work: &WorkArgs,
    outcome: &ScanOutcome,
    summary: &RunSummary,
    stats: &ScanStats,
    target: &Target,
) {
    if work.output.format != Format::Text && !std::io::stderr().is_terminal() {
        return;
    }
    let run = outcome.run;
    if outcome.resumed {
        say!("went on with run {run}, which had not ended");
    }
    say!(
        "run {run}: {} ({} unchanged), {} read, {}",
        counted(summary.items, "item"),
        stats.unchanged(),
        indicatif::HumanBytes(stats.bytes()),
        counted(summary.findings, "finding"),
    );
    let list = |counts: &[(String, u64)]| {
        let parts: Vec<String> =
            counts.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        parts.join(", ")
    };
    if !summary.skipped.is_empty() {
        say!("not scanned: {}", list(&summary.skipped));
    }
    if !summary.failed.is_empty() {
        say!("could not be read: {}", list(&summary.failed));
    }
    let path = &target.again;
    match outcome.end {
        ScanEnd::Finished => {}
        ScanEnd::Interrupted => say!("interrupted; `gossip scan {path}` goes on"),
        ScanEnd::Parked { shards } => say!(
            "{shards} shards are parked; mend what is wrong, then `gossip unpark {run}` \
             and `gossip scan {path}`"
        ),
        ScanEnd::Cancelled => say!("run {run} was cancelled"),
    }
}
