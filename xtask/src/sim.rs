//! `cargo xtask sim`: seeds of the coordination simulator, one or many.

use std::path::Path;

use crate::args::Args;
use crate::command::Cmd;
use crate::failure::{Failure, Result};
use crate::git::Identity;
use crate::workspace::Workspace;

pub(crate) const HELP: &str = "\
Runs the coordination protocol under faults that a seed draws, and holds every answer against oracles
and a model. docs/verification.md says how.

Usage: cargo xtask sim [--seeds N] [--start S] [--backend memory|sqlite|etcd] [--seen] [--twice]
       cargo xtask sim --seed N [--backend B] [--without A,B…] [--operations N] [--every] [--text]
                       [--twice]

  --seeds N       how many seeds (100), from S (1) on, on all cores
  --seen          say which answers were seen to which operations
  --seed N        one seed again; of a failing one the shortest story found is told
  --without A,B   leave these operations and faults out of what the seed draws
  --operations N  stop there
  --every         look at all records after every operation, not only now and then
  --text          tell everything that happened
  --twice         run each seed twice; both must tell the same story
";

/// The crate, and its program.
pub(crate) const PACKAGE: &str = "gossip-simulator";

/// Optimised, but every assertion stays on.
pub(crate) const PROFILE: &str = "soak";

/// What the test command runs.
pub(crate) struct Share {
    pub(crate) backend: &'static str,
    pub(crate) seeds: u64,
    /// Seeds that are run twice.
    twice: u64,
}

pub(crate) const SHARES: [Share; 3] = [
    Share { backend: "memory", seeds: 2_000, twice: 100 },
    Share { backend: "sqlite", seeds: 200, twice: 10 },
    Share { backend: "etcd", seeds: 600, twice: 10 },
];

impl Share {
    /// All seeds, which must see every kind of answer that they are known to see; and some of them
    /// twice. `simulator` is the program.
    pub(crate) fn commands(&self, simulator: &Path) -> [Cmd; 2] {
        [
            seeds(Cmd::new(simulator), self.backend, self.seeds, 1).arg("--kinds"),
            seeds(Cmd::new(simulator), self.backend, self.twice, 1).arg("--twice"),
        ]
    }
}

pub(crate) fn run(mut args: Args) -> Result<()> {
    let mut passed_on = Vec::new();
    for name in ["--seeds", "--start", "--seed", "--backend", "--without", "--operations"] {
        if let Some(value) = args.value(name)? {
            passed_on.extend([name.to_owned(), value]);
        }
    }
    for name in ["--every", "--text", "--seen", "--twice"] {
        if args.flag(name) {
            passed_on.push(name.to_owned());
        }
    }
    args.nothing_left()?;
    let root = Workspace::load()?.root;
    let command = simulator(&root).args(passed_on);
    if command.succeeds()? {
        return Ok(());
    }
    Err(failed(&root)?)
}

/// A seed without its commit says nothing.
pub(crate) fn failed(root: &Path) -> Result<Failure> {
    Ok(Failure::new(format!("the simulation failed at commit {}", Identity::read(root)?)))
}

/// The simulator without arguments.
fn simulator(root: &Path) -> Cmd {
    cargo(root, "run").arg("--")
}

/// Builds the simulator of the sources in `root`.
pub(crate) fn build(root: &Path) -> Cmd {
    cargo(root, "build")
}

fn cargo(root: &Path, verb: &str) -> Cmd {
    let options = ["--quiet", "--locked", "--profile", PROFILE, "--package", PACKAGE];
    Cmd::cargo().arg(verb).args(options).dir(root)
}

/// `count` seeds on `backend` from `start` on, by the optimised simulator of the sources in `root`.
pub(crate) fn sweep(root: &Path, backend: &str, count: u64, start: u64) -> Cmd {
    seeds(simulator(root), backend, count, start)
}

fn seeds(simulator: Cmd, backend: &str, count: u64, start: u64) -> Cmd {
    simulator.args(["--backend", backend]).args([
        "--seeds".to_owned(),
        count.to_string(),
        "--start".to_owned(),
        start.to_string(),
    ])
}

/// How many seeds a closing line of the simulator says were run.
pub(crate) fn count_in(line: &str) -> Option<u64> {
    let (_, rest) = line.strip_prefix("passed on ")?.split_once(": ")?;
    rest.split_once(" seeds,")?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_seeds_that_passed_are_counted() {
        let line = "passed on memory: 2000 seeds, 4444604 operations, 10.1 h simulated, 10.7 s";
        assert_eq!(count_in(line), Some(2000));
        assert_eq!(count_in("FAILED on memory: 2000 seeds, 5 operations"), None);
        assert_eq!(count_in("passed on nothing"), None);
    }

    #[test]
    fn the_share_of_the_test_command_pins_its_kinds_and_runs_some_seeds_twice() {
        for share in &SHARES {
            let [all, twice] =
                share.commands(Path::new("simulator")).map(|command| command.to_string());
            assert!(all.ends_with(&format!("--seeds {} --start 1 --kinds", share.seeds)), "{all}");
            assert!(twice.ends_with("--start 1 --twice"), "{twice}");
        }
    }

    #[test]
    fn a_sweep_names_backend_seeds_and_start() {
        let shown = sweep(Path::new("."), "sqlite", 5, 7).to_string();
        assert!(shown.ends_with("-- --backend sqlite --seeds 5 --start 7"), "{shown}");
    }
}
