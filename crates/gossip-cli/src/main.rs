//! `gossip`: finds leaked secrets, and its progress never lies.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 nothing found,
//! 1 (or what `--exit-code` says) secrets found, 2 something went wrong or was interrupted.

mod admin;
mod args;
mod baseline;
mod config;
mod examples;
mod explain;
mod failure;
mod filter;
mod git;
mod git_args;
mod hook;
mod items;
mod mask;
mod missed;
mod output;
mod output_file;
mod places;
mod progress;
mod proof;
mod prune;
mod read_log;
mod report;
mod rules;
mod say;
mod scan;
mod show;
mod silence;
mod source;
mod source_args;

use std::borrow::Cow;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command, HookCommand, ProofCommand, RunsCommand};
use failure::Failure;
use say::say;

/// How a command that did its work ended.
enum Outcome {
    /// Nothing to worry about.
    Clean,
    /// Secrets were found, which is to be said with this code.
    Found(u8),
    /// Not everything could be done.
    Incomplete,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Clean => Self::SUCCESS,
            Outcome::Found(code) => Self::from(code),
            Outcome::Incomplete => Self::from(2),
        }
    }
}

fn main() -> ExitCode {
    if std::env::args_os().len() < 2 {
        // Who types the name alone wants to know what there is.
        let _ = write!(std::io::stderr(), "{}", Args::command().render_help());
        return ExitCode::from(2);
    }
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    start_logging(args.verbose, args.no_color);
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

/// Shows what is wrong with the words of a command, or the help that they ask for, as clap does. A word may
/// be a secret.
fn refuse(error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    let is_masked = error.use_stderr().then(|| mask::masked(text.as_bytes()));
    let Some(Cow::Owned(text)) = is_masked else { error.exit() };
    let _ = std::io::stderr().write_all(&text);
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

fn run(args: &Args) -> Result<Outcome, Failure> {
    match &args.command {
        Command::Scan(scan) => scan::run(args, scan),
        Command::Resume(resume) => scan::resume(args, resume),
        Command::Runs(runs) => match &runs.command {
            Some(RunsCommand::Prune(prune)) => prune::run(args, prune),
            None => show::runs(args, &runs.output),
        },
        Command::Show(show) => show::run(args, show),
        Command::Findings(findings) => show::findings(args, findings),
        Command::Baseline(baseline) => baseline::run(args, baseline),
        Command::Explain(explain) => explain::run(explain),
        Command::Cancel(run) => admin::cancel(args, run),
        Command::Unpark(run) => admin::unpark(args, run),
        Command::Rules(rules) => rules::run(rules),
        Command::Config(config) => rules::config(config),
        Command::Proof(proof) => {
            let ProofCommand::Verify { file } = &proof.command;
            proof::verify(file)
        }
        Command::Hook(hook) => {
            let HookCommand::Install { repository } = &hook.command;
            hook::install(repository)
        }
        Command::Doctor => admin::doctor(args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Args::command(), "gossip", &mut script);
            print(&script)
        }
        Command::Man => {
            let mut page = Vec::new();
            clap_mangen::Man::new(Args::command()).render(&mut page)?;
            print(&page)
        }
    }
}

fn print(bytes: &[u8]) -> Result<Outcome, Failure> {
    let mut out = output::stdout();
    out.write_all(bytes)?;
    out.flush()?;
    Ok(Outcome::Clean)
}

/// Logs are for finding out what went wrong; they hold no key and no secret.
fn start_logging(verbose: u8, no_color: bool) {
    let level = match verbose {
        0 => tracing::Level::ERROR,
        1 => tracing::Level::INFO,
        _ => tracing::Level::DEBUG,
    };
    let no_color = no_color || report::no_color();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal() && !no_color)
        // It would say on standard error that standard error is closed, and panic.
        .log_internal_errors(false)
        .with_max_level(level)
        .with_target(false)
        .init();
}
