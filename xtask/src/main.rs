//! Testing, soaking, fuzzing and measuring: `cargo xtask COMMAND`.
//!
//! Each command is a file. They share four small things: [`args`] (what was typed), [`command`]
//! (running a program and showing its line), [`failure`] (what is wrong and what to do) and
//! [`workspace`] (what cargo knows about this checkout).

mod accuracy;
mod args;
mod asan;
mod bench;
mod command;
mod date;
mod failure;
mod fuzz;
mod git;
mod mutants;
mod planted;
mod servers;
mod sim;
mod soak;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use args::Args;
use failure::{Failure, Result};

const HELP: &str = "\
Tests, soaks, fuzzes and measures gossip.

Usage: cargo xtask COMMAND [--help]

  test      format, clippy, tidy, tests, simulator, doctests, docs: what has to pass before a merge
  soak      the same tests with their full counts, resumable; recorded in bench/results/soaks.md
  tidy      the rules of the tree that no compiler checks
  servers   installs the real servers that tests talk to, and says where they are
  bench     runs one benchmark and keeps its figures in bench/results/
  accuracy  what gossip finds beside other scanners, on labelled and generated files
  fuzz      libFuzzer on every target of fuzz/ (nightly)
  asan      gossip-stdx's tests under AddressSanitizer (nightly)
  sim       the coordination protocol under faults drawn from seeds
  mutants   breaks the coordination rules one at a time; some test has to notice
";

fn main() -> ExitCode {
    match run(Args::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("xtask: {failure}");
            failure.exit_code()
        }
    }
}

fn run(mut args: Args) -> Result<()> {
    let (run, help): (fn(Args) -> Result<()>, &str) = match args.command().as_deref() {
        Some("test") => (test::run, test::HELP),
        Some("soak") => (soak::run, soak::HELP),
        Some("tidy") => (tidy::run, tidy::HELP),
        Some("servers") => (servers::run, servers::HELP),
        Some("bench") => (bench::run, bench::HELP),
        Some("fuzz") => (fuzz::run, fuzz::HELP),
        Some("accuracy") => (accuracy::run, accuracy::HELP),
        Some("asan") => (asan::run, asan::HELP),
        Some("mutants") => (mutants::run, mutants::HELP),
        Some("sim") => (sim::run, sim::HELP),
        None | Some("help" | "--help" | "-h") => {
            print!("{HELP}");
            return Ok(());
        }
        Some(other) => {
            return Err(Failure::usage(format!("there is no command `{other}`\n\n{HELP}")));
        }
    };
    if args.wants_help() {
        print!("{help}");
        return Ok(());
    }
    run(args)
}
