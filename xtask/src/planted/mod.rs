//! `cargo xtask mutants --planted`: bugs planted in the protocol on purpose; the simulator has to
//! notice each.
//!
//! Each bug is a file in `crates/gossip-simulator/planted/`. All of them are put into a scratch copy
//! of the sources, behind switches; one build of that copy is run once for each bug.

mod apply;
mod parse;
mod tree;

use std::path::{Path, PathBuf};

use crate::command::{Cmd, Stream};
use crate::failure::{Failure, Result};
use crate::sim;
use crate::workspace::Workspace;
use parse::{Backend, Bug};

/// Seeds without a violation after which a bug counts as missed.
const SEEDS_MAX: u64 = 2_000;

/// Seeds of the same build with no bug switched on: whatever is noticed there, the bugs are not the
/// cause of what is noticed with them.
const CONTROL: [(Backend, u64); 3] =
    [(Backend::Memory, 500), (Backend::Sqlite, 50), (Backend::Etcd, 50)];

/// What is wrong with the files of planted bugs, each with its path: one that cannot be read, or
/// that no longer finds its text exactly once.
pub(crate) fn check(root: &Path) -> Result<Vec<(PathBuf, String)>> {
    let (bugs, unreadable) = parse::read_all(root)?;
    let mut wrong: Vec<_> = unreadable.into_iter().map(|file| (file.path, file.why)).collect();
    if let Err(faults) = tree::patched(root, &bugs) {
        wrong.extend(faults.into_iter().map(|fault| (bugs[fault.bug].path(), fault.why)));
    }
    Ok(wrong)
}

/// Looks for the bugs whose name contains `name`, or for all, from seed `start` on.
pub(crate) fn run(start: u64, name: Option<String>) -> Result<()> {
    let workspace = Workspace::load()?;
    let name = name.unwrap_or_default();
    let (bugs, simulator) = build(&workspace)?;
    let wanted: Vec<_> = bugs.iter().filter(|bug| bug.name.contains(&name)).collect();
    if wanted.is_empty() {
        return Err(Failure::usage(format!("no planted bug is called `{name}`")));
    }
    for (backend, seeds) in CONTROL {
        let backend = backend.name();
        match hunt(&simulator, None, backend, start, seeds)? {
            Hunted::Nothing { operations } => {
                println!("no bug, {backend}: {seeds} seeds, {operations} operations, no violation");
            }
            Hunted::Violation { seed, kind, .. } => {
                let what = format!("without a bug: {kind} on {backend}, seed {seed}");
                return Err(Failure::new(what));
            }
        }
    }
    println!("| bug | what a user would suffer | backend | noticed by | seed | operations |");
    println!("|---|---|---|---|---|---|");
    let mut noticed = Vec::new();
    for bug in &wanted {
        let (name, harm) = (&bug.name, &bug.described.harm);
        let backend = bug.described.backend.name();
        match hunt(&simulator, Some(name), backend, start, SEEDS_MAX)? {
            Hunted::Violation { seed, operations, kind } => {
                // A panic may say anything, and this is a table.
                let kind = kind.replace('|', "/");
                println!("| `{name}` | {harm} | {backend} | {kind} | {seed} | {operations} |");
                noticed.push(operations);
            }
            Hunted::Nothing { operations } => {
                println!("| `{name}` | {harm} | {backend} | **nobody** | - | {operations} |");
            }
        }
    }
    noticed.sort_unstable();
    let median = noticed.get(noticed.len() / 2).map_or("-".to_owned(), u64::to_string);
    println!(
        "\n{} of {} planted bugs were noticed, after a median of {median} operations",
        noticed.len(),
        wanted.len(),
    );
    if noticed.len() == wanted.len() {
        return Ok(());
    }
    Err(Failure::new("the simulator missed a planted bug").fix(
        "find out why nobody notices: an operation or a fault that no seed draws, or an oracle that \
         does not look",
    ))
}

/// Every bug, and the simulator in which they are.
fn build(workspace: &Workspace) -> Result<(Vec<Bug>, PathBuf)> {
    let (bugs, unreadable) = parse::read_all(&workspace.root)?;
    let patched = tree::patched(&workspace.root, &bugs);
    let (true, Ok(patched)) = (unreadable.is_empty(), patched) else {
        return Err(Failure::new("planted bugs do not apply").fix("cargo xtask tidy names them"));
    };
    let scratch = workspace.target_dir.join("planted");
    let (tree, target) = (scratch.join("tree"), scratch.join("target"));
    let switch = apply::switch(bugs.iter().map(|bug| bug.name.as_str()));
    tree::write(&workspace.root, &tree, patched, &switch)?;
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    let command = sim::build(&tree)
        // Switches make parentheses and variables without use.
        .env("RUSTFLAGS", format!("{flags} -Awarnings").trim())
        .env("CARGO_TARGET_DIR", &target);
    let mut at_fault = Vec::new();
    let built = command.watch(|stream, line| {
        if stream == Stream::Stderr {
            at_fault.extend(bug_of(&tree, line).filter(|name| !at_fault.contains(name)));
        }
    })?;
    if !built {
        let failure = Failure::new("the copy with planted bugs does not compile");
        let files = at_fault.iter().map(|name| format!("{}/{name}.toml", parse::FOLDER));
        let files = files.collect::<Vec<_>>().join(", ");
        return Err(if files.is_empty() { failure } else { failure.fix(format!("see {files}")) });
    }
    Ok((bugs, target.join(sim::PROFILE).join(sim::PACKAGE)))
}

/// The bug that put the line into the copy to which a line of the compiler's points.
fn bug_of(tree: &Path, line: &str) -> Option<String> {
    let (_, place) = line.split_once("--> ").or_else(|| line.split_once("::: "))?;
    let mut place = place.split(':');
    let (file, number) = (place.next()?, place.next()?.parse().ok()?);
    let text = std::fs::read_to_string(tree.join(file)).ok()?;
    apply::bug_at(&text, number).map(str::to_owned)
}

/// What came of seeds in order until one fails.
#[derive(Debug, PartialEq, Eq)]
enum Hunted {
    /// The first that did, the operations up to there, those of earlier seeds included, and the
    /// oracle that saw it, or the panic.
    Violation { seed: u64, operations: u64, kind: String },
    /// None did.
    Nothing { operations: u64 },
}

/// Runs the simulator with one bug switched on, or none.
fn hunt(
    simulator: &Path,
    bug: Option<&str>,
    backend: &str,
    start: u64,
    seeds: u64,
) -> Result<Hunted> {
    let command = Cmd::new(simulator).args(["--until-violation", "--backend", backend]).args([
        "--start",
        &start.to_string(),
        "--seeds",
        &seeds.to_string(),
    ]);
    let command = match bug {
        Some(name) => command.env(apply::SELECTED, name),
        None => command.unset(&[apply::SELECTED]),
    };
    let said = command.capture()?;
    said.stdout.lines().find_map(hunted).ok_or_else(|| {
        Failure::new(format!("no verdict from {command}\n{}{}", said.stdout, said.stderr))
    })
}

/// The simulator's verdict on `--until-violation`.
fn hunted(line: &str) -> Option<Hunted> {
    if let Some(found) = line.strip_prefix("violation: seed ") {
        let (seed, rest) = found.split_once(", ")?;
        let (operations, kind) = rest.split_once(" operations, ")?;
        let (seed, operations) = (seed.parse().ok()?, operations.parse().ok()?);
        return Some(Hunted::Violation { seed, operations, kind: kind.to_owned() });
    }
    let (_, rest) = line.strip_prefix("no violation: ")?.split_once(" seeds, ")?;
    Some(Hunted::Nothing { operations: rest.strip_suffix(" operations")?.parse().ok()? })
}

/// All of it, as a command.
pub(crate) fn command(root: &Path) -> Cmd {
    Cmd::cargo().args(["xtask", "mutants", "--planted"]).dir(root)
}

/// How many bugs a closing line says were noticed, if all of them were.
pub(crate) fn count_in(line: &str) -> Option<u64> {
    let (noticed, rest) = line.split_once(" of ")?;
    let planted = rest.split_once(" planted bugs were noticed")?.0;
    (noticed == planted).then(|| noticed.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bugs_are_counted_only_when_all_were_noticed() {
        let line = "75 of 75 planted bugs were noticed, after a median of 256 operations";
        assert_eq!(count_in(line), Some(75));
        assert_eq!(count_in("74 of 75 planted bugs were noticed, after"), None);
        assert_eq!(count_in("1 of 1 things"), None);
    }

    #[test]
    fn a_verdict_names_seed_operations_and_whoever_noticed() {
        let panic = "violation: seed 7, 1204 operations, panic: A1: # free, # operations, gone";
        let kind = "panic: A1: # free, # operations, gone".to_owned();
        assert_eq!(hunted(panic), Some(Hunted::Violation { seed: 7, operations: 1204, kind }));
        let nothing = "no violation: 500 seeds, 1106042 operations";
        assert_eq!(hunted(nothing), Some(Hunted::Nothing { operations: 1_106_042 }));
        assert_eq!(hunted("passed on memory: 5 seeds, 9 operations"), None);
    }
}
