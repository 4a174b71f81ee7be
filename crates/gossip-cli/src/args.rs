//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use gossip_runtime::ScanOptions;

use crate::source_args::SourceArgs;

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
    /// Scans directories, files or standard input
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

    #[command(flatten)]
    pub(crate) tuning: TuningArgs,
}

impl WorkArgs {
    pub(crate) fn options(&self, fresh: bool) -> ScanOptions {
        let defaults = ScanOptions::default();
        let TuningArgs { checkpoint_bytes, checkpoint_items, checkpoint_ms, .. } = self.tuning;
        let TuningArgs { lease_ms, max_shard_retries, .. } = self.tuning;
        ScanOptions {
            threads: self.threads.map_or(defaults.threads, usize::from),
            checkpoint_bytes: checkpoint_bytes.unwrap_or(defaults.checkpoint_bytes),
            checkpoint_items: checkpoint_items.unwrap_or(defaults.checkpoint_items),
            checkpoint_ms: checkpoint_ms.unwrap_or(defaults.checkpoint_ms),
            lease_ms: lease_ms.unwrap_or(defaults.lease_ms),
            max_shard_retries: max_shard_retries.unwrap_or(defaults.max_shard_retries),
            fresh,
        }
    }
}

/// None of it changes what is found.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Tuning and diagnostics")]
pub(crate) struct TuningArgs {
    /// Checkpoints after so many bytes: what a killed worker reads again, at most [default: 8388608]
    #[arg(long, value_name = "BYTES", hide_short_help = true)]
    pub(crate) checkpoint_bytes: Option<u64>,

    /// Checkpoints after so many items [default: 512]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) checkpoint_items: Option<usize>,

    /// Checkpoints after so many milliseconds [default: 1000]
    #[arg(long, value_name = "MS", hide_short_help = true)]
    pub(crate) checkpoint_ms: Option<u64>,

    /// How long a worker's lease lasts without renewal; counts when a run begins [default: 30000]
    #[arg(long, value_name = "MS", hide_short_help = true,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lease_ms: Option<u64>,

    /// Parks a shard that so many workers have died of without progress; counts when a run begins
    /// [default: 20]
    #[arg(long, value_name = "N", hide_short_help = true,
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_shard_retries: Option<u32>,

    /// Appends a line to FILE for every read: a hash of the item, offset and bytes; no name, no content
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) read_log: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ScanArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,

    /// Starts over and reads everything again, whatever earlier scans of the same remember
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

    #[test]
    fn the_defaults_that_help_names_are_those_of_a_scan() {
        use clap::CommandFactory;
        let mut command = Args::command();
        let scan = command.find_subcommand_mut("scan").expect("there is a scan");
        let help = scan.render_long_help().to_string();
        let defaults = ScanOptions::default();
        for (option, default) in [
            ("--checkpoint-bytes", defaults.checkpoint_bytes),
            ("--checkpoint-items", defaults.checkpoint_items as u64),
            ("--checkpoint-ms", defaults.checkpoint_ms),
            ("--lease-ms", defaults.lease_ms),
            ("--max-shard-retries", u64::from(defaults.max_shard_retries)),
        ] {
            let (_, text) = help.split_once(option).expect("it has an entry");
            let text = text.split_once("[default: ").expect("it has a default").1;
            assert_eq!(text.split_once(']').unwrap().0, default.to_string(), "{option}");
        }
    }
}
