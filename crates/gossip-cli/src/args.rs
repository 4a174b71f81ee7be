//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Finds leaked secrets, and its progress never lies.
///
/// A scan that is interrupted, killed or unplugged goes on where it stopped when the same command
/// is run again. Files that have not changed since the last scan are not read again, and what was
/// found in them still counts.
///
/// Exit codes: 0 nothing found, 1 secrets found, 2 something went wrong or was interrupted.
#[derive(Debug, Parser)]
#[command(name = "gossip", version, max_term_width = 100)]
pub(crate) struct Args {
    /// Where scans are remembered [default: the platform's state directory]
    #[arg(long, global = true, value_name = "DIR", env = "GOSSIP_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Says more on standard error; twice, much more
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Scans a directory or a file
    Scan(ScanArgs),
    /// Goes on with an interrupted run
    Resume(ResumeArgs),
    /// Lists runs
    Runs(OutputArgs),
    /// Shows one run
    Show(ShowArgs),
    /// Shows what a run found
    Findings(FindingsArgs),
    /// Calls a run off
    Cancel(RunArgs),
    /// Sets the parked shards of a run going again
    Unpark(RunArgs),
    /// Lists and tests rules
    Rules(RulesArgs),
    /// Checks the state directory
    Doctor,
}

/// How findings and runs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How results are written
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WorkArgs {
    /// Threads [default: one for each core]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Adds rules from a gitleaks-style TOML file; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,

    /// Leaves out what .gitignore files exclude
    #[arg(long)]
    pub(crate) gitignore: bool,

    /// Shows no progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,

    /// Shows secrets in full; on a terminal only
    #[arg(long)]
    pub(crate) show_secrets: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ScanArgs {
    /// What to scan
    #[arg(value_name = "PATH")]
    pub(crate) path: PathBuf,

    /// Starts over and reads everything again, whatever earlier scans of PATH remember
    #[arg(long)]
    pub(crate) fresh: bool,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ResumeArgs {
    /// The run
    pub(crate) run: u64,

    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The run
    pub(crate) run: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The run
    pub(crate) run: u64,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FindingsArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<u64>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Lists the rules that a scan would use
    List {
        /// Adds rules from a gitleaks-style TOML file
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,

        #[command(flatten)]
        output: OutputArgs,
    },
    /// Scans one file, or standard input, and says which rules match
    Test {
        /// The file; `-` for standard input
        #[arg(value_name = "FILE", default_value = "-")]
        path: PathBuf,

        /// Adds rules from a gitleaks-style TOML file
        #[arg(long, value_name = "FILE")]
        rules: Vec<PathBuf>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }
}
