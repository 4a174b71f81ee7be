//! Runs seeds of the coordination simulator; `cargo xtask sim` calls it.

use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use gossip_simulator::{
    AnswerKinds, Etcd, Failures, Ingredient, Memory, Options, Report, SimulatedBackend, Sqlite,
    Violation, run_seed, shrink,
};

const USAGE: &str = "\
usage: gossip-simulator [--backend memory|sqlite|etcd] [--seeds N] [--start S] [--threads T] [--seen]
                        [--kinds] [--twice] [--until-violation]
       gossip-simulator --seed N [--backend B] [--without A,B…] [--operations N] [--every] [--text]
                        [--twice]";

/// What was asked for.
struct Args {
    backend: String,
    seeds: u64,
    start: u64,
    threads: u64,
    /// One seed, in full.
    seed: Option<u64>,
    /// Say which answers were seen to which operations.
    seen: bool,
    /// All kinds of answers that the test command's seeds see must be seen.
    kinds: bool,
    /// Run each seed twice; both must tell the same story.
    twice: bool,
    /// Say only which seed is the first with a violation, in a line that programs read.
    until_violation: bool,
    options: Options,
}

fn main() -> ExitCode {
    let args = match Args::parse(std::env::args().skip(1)) {
        Ok(args) => args,
        Err(fault) => {
            eprintln!("{fault}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // A panic of the backend is a finding; it is reported with its seed.
    std::panic::set_hook(Box::new(|_| {}));
    let passed = match args.backend.as_str() {
        "sqlite" => run::<Sqlite>(&args),
        "etcd" => run::<Etcd>(&args),
        _ => run::<Memory>(&args),
    };
    if passed { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Args {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        let mut args = Self {
            backend: "memory".to_owned(),
            seeds: 100,
            start: 1,
            threads: cores,
            seed: None,
            seen: false,
            kinds: false,
            twice: false,
            until_violation: false,
            options: Options::default(),
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(format!("{word} needs a value"));
            let number = |text: String| -> Result<u64, String> {
                text.parse().map_err(|_| format!("`{text}` is no number"))
            };
            match word.as_str() {
                "--backend" => args.backend = value()?,
                "--seeds" => args.seeds = number(value()?)?,
                "--start" => args.start = number(value()?)?,
                "--threads" => args.threads = number(value()?)?.max(1),
                "--seed" => args.seed = Some(number(value()?)?),
                "--operations" => args.options.operations_max = Some(number(value()?)?),
                "--every" => args.options.inspect_always = true,
                "--seen" => args.seen = true,
                "--kinds" => args.kinds = true,
                "--twice" => args.twice = true,
                "--until-violation" => args.until_violation = true,
                "--text" => args.options.with_text = true,
                "--without" => {
                    for name in value()?.split(',') {
                        let ingredient = Ingredient::named(name);
                        let ingredient = ingredient.ok_or(format!("nothing is called `{name}`"))?;
                        args.options.without.push(ingredient);
                    }
                }
                _ => return Err(format!("`{word}` has no meaning")),
            }
        }
        if !["memory", "sqlite", "etcd"].contains(&args.backend.as_str()) {
            return Err(format!("there is no backend `{}`", args.backend));
        }
        Ok(args)
    }
}

/// Whether nothing was violated.
fn run<S: SimulatedBackend>(args: &Args) -> bool {
    match args.seed {
        Some(seed) => replay::<S>(seed, args),
        None if args.until_violation => seek_violation::<S>(args),
        None => sweep::<S>(args),
    }
}

fn replay<S: SimulatedBackend>(seed: u64, args: &Args) -> bool {
    let report = run_once_or_twice::<S>(seed, args);
    report.lines.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: {}", report.swarm);
    println!(
        "{} operations, {} s simulated, trace {:016x}",
        report.operations,
        report.simulated / 1000,
        report.hash
    );
    if report.violation.is_none() {
        println!("nothing was violated");
        return true;
    }
    explain::<S>(&report, args);
    false
}

/// Runs the seeds in order, on all threads, each until it is told to stop.
fn for_each_seed(args: &Args, run: impl Fn(u64) -> ControlFlow<()> + Sync) {
    let next = AtomicU64::new(args.start);
    let end = args.start.saturating_add(args.seeds);
    std::thread::scope(|scope| {
        for _ in 0..args.threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end || run(seed).is_break() {
                        return;
                    }
                }
            });
        }
    });
}

/// Seeds up to the first with a violation; says which, by what, and after how many operations of
/// all seeds so far. Threads run ahead; what they did beyond does not count.
fn seek_violation<S: SimulatedBackend>(args: &Args) -> bool {
    let first = AtomicU64::new(u64::MAX);
    let reports: Mutex<Vec<Report>> = Mutex::default();
    for_each_seed(args, |seed| {
        if seed > first.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        let report = run_once_or_twice::<S>(seed, args);
        if report.violation.is_some() {
            first.fetch_min(seed, Ordering::Relaxed);
        }
        reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
        ControlFlow::Continue(())
    });
    let mut reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    reports.retain(|report| report.seed <= first.load(Ordering::Relaxed));
    let operations: u64 = reports.iter().map(|report| report.operations).sum();
    let found = reports.iter().find_map(|report| Some((report.seed, report.violation.as_ref()?)));
    match found {
        Some((seed, seen)) => {
            let kind = seen.kind().replace('\n', " ");
            println!("violation: seed {seed}, {operations} operations, {kind}");
        }
        None => println!("no violation: {} seeds, {operations} operations", reports.len()),
    }
    found.is_none()
}

/// Seeds one after the other, on all threads.
fn sweep<S: SimulatedBackend>(args: &Args) -> bool {
    let started = Instant::now();
    let totals = Mutex::new(Totals::default());
    for_each_seed(args, |seed| {
        let report = run_once_or_twice::<S>(seed, args);
        let mut totals = totals.lock().unwrap_or_else(PoisonError::into_inner);
        totals.add(report);
        match totals.failures.len() >= FAILURES_MAX {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    let mut totals = totals.into_inner().unwrap_or_else(PoisonError::into_inner);
    let seconds = started.elapsed().as_secs_f64();
    totals.failures.sort_by_key(|report| report.seed);
    for report in totals.failures.iter().skip(1) {
        println!("{}", headline(report));
    }
    if let Some(first) = totals.failures.first() {
        explain::<S>(first, args);
    }
    if args.seen {
        println!("{}", totals.seen);
    }
    println!(
        "{} on {}: {} seeds, {} operations, {:.1} h simulated, {seconds:.1} s, {:.0} operations/s, \
         {} kinds of answers",
        if totals.failures.is_empty() { "passed" } else { "FAILED" },
        args.backend,
        totals.seeds,
        totals.operations,
        totals.simulated as f64 / 3_600_000.0,
        totals.operations as f64 / seconds,
        totals.seen.count(),
    );
    let Failures { torn, torn_late, failed, full, unsaid, claims, overtaken } = totals.faults;
    if torn + failed > 0 {
        println!(
            "  changes torn by a crash: {torn}, {torn_late} of them in the second half of their seed; \
             failed in the store: {failed}, {full} for want of room; stored without saying so: \
             {unsaid}; of all these, claims: {claims}; another process came between: {overtaken}"
        );
    }
    let lost = if args.kinds { totals.seen.lost(kinds_of(&args.backend)) } else { Vec::new() };
    lost.iter().for_each(|kind| println!("FAILED: no seed saw `{kind}`"));
    lost.is_empty() && totals.failures.is_empty()
}

/// The answers that the test command's seeds see to each operation, as `--seen` lists them: a
/// simulation that no longer provokes a refusal says nothing about it.
fn kinds_of(backend: &str) -> &'static str {
    match backend {
        "sqlite" => include_str!("../kinds/sqlite.txt"),
        "etcd" => include_str!("../kinds/etcd.txt"),
        _ => include_str!("../kinds/memory.txt"),
    }
}

fn run_once_or_twice<S: SimulatedBackend>(seed: u64, args: &Args) -> Report {
    let mut report = run_seed::<S>(seed, &args.options);
    if args.twice && report.violation.is_none() {
        report.violation = differs::<S>(&report, &args.options);
    }
    report
}

/// What is wrong if the same seed does not tell the same story again.
fn differs<S: SimulatedBackend>(once: &Report, options: &Options) -> Option<Violation> {
    let again = run_seed::<S>(once.seed, options);
    let same = (once.hash, once.operations) == (again.hash, again.operations);
    (!same).then(|| Violation {
        oracle: "determinism",
        what: format!(
            "{} operations with trace {:016x}, and again {} with {:016x}",
            once.operations, once.hash, again.operations, again.hash
        ),
    })
}

/// Failing seeds after which a sweep ends.
const FAILURES_MAX: usize = 20;

#[derive(Default)]
struct Totals {
    seeds: u64,
    operations: u64,
    simulated: u64,
    seen: AnswerKinds,
    faults: Failures,
    failures: Vec<Report>,
}

impl Totals {
    fn add(&mut self, report: Report) {
        self.seeds += 1;
        self.operations += report.operations;
        self.simulated += report.simulated;
        self.seen.merge(&report.seen);
        self.faults.add(&report.failures);
        if report.violation.is_some() {
            self.failures.push(report);
        }
    }
}

fn headline(report: &Report) -> String {
    let violation = report.violation.as_ref().expect("this is said of a failure");
    let (oracle, what) = (violation.oracle, &violation.what);
    format!("seed {} after {} operations: {oracle}: {what}", report.seed, report.operations)
}

/// Lines of a trace that are shown; the end is what matters.
const LINES_MAX: usize = 60;

/// The failure, and the shortest story that was found of it.
fn explain<S: SimulatedBackend>(report: &Report, args: &Args) {
    println!("{}", headline(report));
    println!("  {}", report.swarm);
    let shrunk = shrink::<S>(report.seed, &args.options);
    if shrunk.report.violation.is_none() {
        // No story that is told now would be that of the failure.
        println!(
            "it did not fail again: trace {:016x}, and then {:016x}; the seed does not tell the same \
             story every time",
            report.hash, shrunk.report.hash
        );
        return;
    }
    let skipped = shrunk.report.lines.len().saturating_sub(LINES_MAX);
    println!("shortest prefix found: {}", headline(&shrunk.report));
    println!("  {}", shrunk.report.swarm);
    if skipped > 0 {
        println!("  … {skipped} lines before");
    }
    shrunk.report.lines.iter().skip(skipped).for_each(|line| println!("  {line}"));
    let without: Vec<String> =
        shrunk.options.without.iter().map(|it| format!("{it:?}").to_lowercase()).collect();
    let without = if without.is_empty() {
        String::new()
    } else {
        format!(" --without {}", without.join(","))
    };
    let every = if shrunk.options.inspect_always { " --every" } else { "" };
    println!(
        "again: cargo xtask sim --seed {} --backend {}{without}{every} --text",
        report.seed, args.backend
    );
}
