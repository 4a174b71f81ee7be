//! `gossip`: finds leaked secrets, and its progress never lies.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 nothing found,
//! 1 secrets found, 2 something went wrong or was interrupted.

mod admin;
mod args;
mod failure;
mod git;
mod git_args;
mod output;
mod progress;
mod read_log;
mod rules;
mod say;
mod scan;
mod show;
mod source;
mod source_args;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};
use failure::Failure;
use say::say;

/// How a command that did its work ended.
enum Outcome {
    /// Nothing to worry about.
    Clean,
    /// Secrets were found.
    Found,
    /// Not everything could be done.
    Incomplete,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::SUCCESS,
            Outcome::Found => Self::from(1),
            Outcome::Incomplete => Self::from(2),
        }
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    start_logging(args.verbose);
    match run(&args) {
        Ok(outcome) => outcome.into(),
        // Whoever reads our output has had enough.
        Err(failure) if failure.is_closed_pipe() => ExitCode::from(2),
        Err(failure) => {
            say!("{failure}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Scan(scan) => scan::run(args, scan),
        Command::Resume(resume) => scan::resume(args, resume),
        Command::Runs(runs) => show::runs(args, runs),
        Command::Show(show) => show::run(args, show),
        Command::Findings(findings) => show::findings(args, findings),
        Command::Cancel(run) => admin::cancel(args, run),
        Command::Unpark(run) => admin::unpark(args, run),
        Command::Rules(rules) => rules::run(rules),
        Command::Doctor => admin::doctor(args),
    }
}

/// Logs are for finding out what went wrong; they hold no key and no secret.
fn start_logging(verbose: u8) {
    let level = match verbose {
        0 => tracing::Level::ERROR,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !no_color)
        // It would say on standard error that standard error is closed, and panic.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_target(false)
        .init();
}
