//! Every planted bug in turn: seeds until an oracle notices, and a table of who did, and when.

use std::ops::Range;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use gossip_coordination::planted::{Backend, Bug, select};
use gossip_simulator::{Memory, Options, Report, SimulatedBackend, Sqlite, run_seed};

/// Looks for the bugs whose name contains `name`, each on `seeds` until one fails, and prints the
/// table.
pub(crate) fn hunt(name: &str, seeds: Range<u64>, threads: u64) -> ExitCode {
    let bugs: Vec<Bug> =
        Bug::ALL.iter().copied().filter(|bug| named(*bug).contains(name)).collect();
    if bugs.is_empty() {
        eprintln!("no planted bug is called `{name}`");
        return ExitCode::from(2);
    }
    if !passes_without::<Memory>("memory", seeds.start, CONTROL_MEMORY, threads)
        || !passes_without::<Sqlite>("SQLite", seeds.start, CONTROL_SQLITE, threads)
    {
        return ExitCode::FAILURE;
    }
    println!("| bug | what a user would suffer | backend | noticed by | seed | operations |");
    println!("|---|---|---|---|---|---|");
    let mut found = Vec::new();
    for &bug in &bugs {
        select(Some(bug));
        let (backend, hunted) = match bug.backend() {
            Backend::Memory => ("memory", hunt_one::<Memory>(&seeds, threads)),
            Backend::Sqlite => ("SQLite", hunt_one::<Sqlite>(&seeds, threads)),
        };
        select(None);
        let (oracle, seed) = match &hunted.noticed {
            // A panic may say anything, and this is a table.
            Some((seed, kind)) => (kind.replace('|', "/"), seed.to_string()),
            None => ("**nobody**".to_owned(), "-".to_owned()),
        };
        let (name, harm, operations) = (named(bug), bug.harm(), hunted.operations);
        println!("| `{name}` | {harm} | {backend} | {oracle} | {seed} | {operations} |");
        if hunted.noticed.is_some() {
            found.push(operations);
        }
    }
    found.sort_unstable();
    println!(
        "\n{} of {} planted bugs were noticed, after a median of {} operations",
        found.len(),
        bugs.len(),
        found.get(found.len() / 2).map_or("-".to_owned(), u64::to_string),
    );
    if found.len() == bugs.len() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Seeds of the same build with no bug switched on: whatever is noticed there, the bugs are not the
/// cause of what is noticed with them.
const CONTROL_MEMORY: u64 = 500;
const CONTROL_SQLITE: u64 = 50;

fn passes_without<S: SimulatedBackend>(
    backend: &str,
    start: u64,
    count: u64,
    threads: u64,
) -> bool {
    select(None);
    let hunted = hunt_one::<S>(&(start..start.saturating_add(count)), threads);
    match hunted.noticed {
        None => {
            let operations = hunted.operations;
            println!("no bug, {backend}: {count} seeds, {operations} operations, nothing noticed");
            true
        }
        Some((seed, kind)) => {
            println!("FAILED: with no bug at all, {kind} spoke on {backend}, seed {seed}");
            false
        }
    }
}

fn named(bug: Bug) -> String {
    format!("{bug:?}")
}

struct Hunted {
    /// The first seed that failed, and the oracle that saw it, or the panic.
    noticed: Option<(u64, String)>,
    /// Operations up to there, those of earlier seeds included.
    operations: u64,
}

/// Seeds in order until one fails. Threads may run ahead; what they did beyond does not count.
fn hunt_one<S: SimulatedBackend>(seeds: &Range<u64>, threads: u64) -> Hunted {
    let (next, end) = (AtomicU64::new(seeds.start), AtomicU64::new(seeds.end));
    let reports: Mutex<Vec<Report>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end.load(Ordering::Relaxed) {
                        return;
                    }
                    let report = run_seed::<S>(seed, &Options::default());
                    if report.violation.is_some() {
                        end.fetch_min(seed + 1, Ordering::Relaxed);
                    }
                    reports.lock().unwrap_or_else(PoisonError::into_inner).push(report);
                }
            });
        }
    });
    let reports = reports.into_inner().unwrap_or_else(PoisonError::into_inner);
    let failed =
        reports.iter().filter_map(|report| Some((report.seed, report.violation.as_ref()?)));
    let noticed = failed.min_by_key(|(seed, _)| *seed).map(|(seed, seen)| (seed, seen.kind()));
    let end = end.into_inner();
    let counted = reports.iter().filter(|report| report.seed < end);
    Hunted { noticed, operations: counted.map(|report| report.operations).sum() }
}
