//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use gossip_runtime::ScanOptions;

use crate::examples;
use crate::prune::parse_age;
use crate::source_args::SourceArgs;

/// Finds leaked secrets, and its progress never lies.
///
/// A scan that is interrupted, killed or unplugged goes on where it stopped when the same command
/// is run again. Files that have not changed since the last scan are not read again, and what was
/// found in them still counts.
///
/// Exit codes: 0 nothing found, 1 secrets found, 2 something went wrong or was interrupted.
#[derive(Debug, Parser)]
#[command(name = "gossip", version, max_term_width = 100, after_help = examples::GOSSIP)]
pub(crate) struct Args {
    /// Where scans are remembered [default: the platform's state directory]
    #[arg(long, global = true, value_name = "DIR", env = "GOSSIP_STATE_DIR")]
    pub(crate) state_dir: Option<PathBuf>,

    /// Says more on standard error; twice, much more
    #[arg(long, short, global = true, action = clap::ArgAction::Count, conflicts_with = "quiet")]
    pub(crate) verbose: u8,

    /// Says nothing on standard error but what went wrong, and what a configuration or ignore file
    /// beside the target takes away
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,

    /// Uses no colours; so does NO_COLOR, and output that is no terminal
    #[arg(long, global = true)]
    pub(crate) no_color: bool,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Scans directories, git repositories, files, buckets or standard input
    #[command(after_help = examples::SCAN)]
    Scan(ScanArgs),
    /// Goes on with an interrupted run
    #[command(after_help = examples::RESUME)]
    Resume(ResumeArgs),
    /// Lists runs, or deletes old ones
    #[command(after_help = examples::RUNS)]
    Runs(RunsArgs),
    /// Shows one run, and names what it should have scanned and did not
    #[command(after_help = examples::SHOW)]
    Show(ShowArgs),
    /// Shows what a run found
    #[command(after_help = examples::FINDINGS)]
    Findings(FindingsArgs),
    /// Writes down what a run found, so that later scans report what is new
    #[command(after_help = examples::BASELINE)]
    Baseline(BaselineArgs),
    /// Says what a rule finds, why, and what to do about it
    #[command(after_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Calls a run off
    #[command(after_help = examples::CANCEL)]
    Cancel(RunArgs),
    /// Sets the parked shards of a run going again
    #[command(after_help = examples::UNPARK)]
    Unpark(RunArgs),
    /// Lists, tests and checks rules
    #[command(after_help = examples::RULES)]
    Rules(RulesArgs),
    /// Checks configurations
    #[command(after_help = examples::CONFIG)]
    Config(ConfigArgs),
    /// Checks proofs of scans
    #[command(after_help = examples::PROOF)]
    Proof(ProofArgs),
    /// Scans before every commit of a git repository
    #[command(after_help = examples::HOOK)]
    Hook(HookArgs),
    /// Checks the state directory
    #[command(after_help = examples::DOCTOR)]
    Doctor,
    /// Prints a script that completes commands and options
    #[command(after_help = examples::COMPLETIONS)]
    Completions {
        /// For which shell
        shell: clap_complete::Shell,
    },
    /// Prints the manual page
    #[command(after_help = examples::MAN)]
    Man,
}

/// How runs and rules are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
}

/// How findings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// For people
    Text,
    /// One JSON document
    Json,
    /// One JSON object a line
    Jsonl,
    /// SARIF 2.1.0, for code scanning services and editors
    Sarif,
    /// Comma-separated values, for spreadsheets
    Csv,
    /// JUnit's XML, for build servers
    Junit,
    /// GitLab's secret detection report
    Gitlab,
    /// One page for browsers, with filters, that needs no network
    Html,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How results are written
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// What of the findings is reported, and how.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct ReportArgs {
    /// How findings are written [default: by the ending of --output, else text]
    #[arg(long, short, value_enum)]
    pub(crate) format: Option<ReportFormat>,

    /// Writes findings to FILE, whole or not at all; `-` for standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Leaves out findings that are less severe
    #[arg(long, value_name = "LEVEL", value_parser = ["low", "medium", "high", "critical"])]
    pub(crate) severity: Option<String>,

    /// Leaves out findings that are less sure
    #[arg(long, value_name = "LEVEL", value_parser = ["low", "medium", "high"])]
    pub(crate) confidence: Option<String>,

    /// Leaves out what this file of `gossip baseline` knows
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,

    /// Reports a secret once for each version of a file in a history that has it, instead of once
    #[arg(long)]
    pub(crate) all_versions: bool,

    /// Exits with this code when something is reported [default: 1]
    #[arg(long, value_name = "CODE")]
    pub(crate) exit_code: Option<u8>,

    /// Shows secrets redacted, which is the default: this option is for those who are used to it
    #[arg(long, value_name = "PERCENT", num_args = 0..=1, require_equals = true)]
    pub(crate) redact: Option<Option<u8>>,

    /// Uses no configuration or ignore file that is found in or above what is scanned
    #[arg(long)]
    pub(crate) no_local_config: bool,
}

/// What is scanned for, and where not.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "What is found")]
pub(crate) struct DetectionArgs {
    /// Uses this configuration [default: gossip.toml or .gitleaks.toml, from what is scanned up to
    /// the root of its repository]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Adds rules from a gitleaks-style TOML file; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,

    /// Leaves a rule out; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) disable_rule: Vec<String>,

    /// Uses no other rule; may be given more than once
    #[arg(long, value_name = "RULE")]
    pub(crate) only_rule: Vec<String>,

    /// Leaves out paths that this pattern matches, in gitignore's syntax; may be given more than once
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<String>,

    /// Scans only paths that this pattern matches, in gitignore's syntax; may be given more than once
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<String>,

    /// Leaves out files that are larger: bytes, or with k, M or G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_file_size: Option<u64>,
}

/// A number of bytes: `512`, `64k`, `10MB`, `1GiB`; all by 1024.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = text[digits.len()..].to_ascii_lowercase();
    let unit = unit.strip_suffix("ib").or(unit.strip_suffix('b')).unwrap_or(&unit);
    let shift = match unit {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("a size is a number of bytes, or one with k, M, G or T".to_owned()),
    };
    let number: u64 = digits.trim().parse().map_err(|error| format!("`{digits}`: {error}"))?;
    number.checked_shl(shift).filter(|size| size >> shift == number).ok_or("too large".to_owned())
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = None::<&str>)]
pub(crate) struct WorkArgs {
    /// Threads [default: one for each core]
    #[arg(long, short = 'j', value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,

    /// Leaves out what .gitignore files exclude
    #[arg(long)]
    pub(crate) gitignore: bool,

    /// Shows no progress bar
    #[arg(long)]
    pub(crate) no_progress: bool,

    /// Shows secrets in full; on a terminal only
    #[arg(long)]
    pub(crate) show_secrets: bool,

    /// Writes to FILE what was scanned, what was not and why, with a hash over all of it
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) detection: DetectionArgs,

    #[command(flatten)]
    pub(crate) report: ReportArgs,

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
    /// Starts over and reads everything again, whatever earlier scans of the same remember
    #[arg(long)]
    pub(crate) fresh: bool,

    #[command(flatten)]
    pub(crate) source: SourceArgs,

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
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<RunsCommand>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// Deletes runs that later ones have superseded
    ///
    /// A run can go once a later run of the same target, with the same rules and options, has
    /// finished. What was found stays, with the run that saw it first, and so does what need not be
    /// read again: both belong to the target. `gossip findings --new-since` still takes the numbers of
    /// deleted runs. Gone are their lines in `gossip runs`, and their shards.
    Prune(PruneArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    /// Only runs that ended so long ago, or longer: a number with s, m, h, d or w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    pub(crate) older_than: Option<Duration>,

    /// Keeps the newest N runs that have ended, of each target with the same rules and options
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) keep: usize,

    /// Also all runs with other rules or options than the newest finished run of their target, or by
    /// another version of gossip, with what they found and what they would not have to read again
    #[arg(long)]
    pub(crate) other_rules: bool,

    /// Deletes them; otherwise they are only listed
    #[arg(long)]
    pub(crate) yes: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
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

    /// Shows only what no run up to RUN had seen
    #[arg(long, value_name = "RUN")]
    pub(crate) new_since: Option<u64>,

    #[command(flatten)]
    pub(crate) report: ReportArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BaselineArgs {
    /// The run [default: the newest]
    pub(crate) run: Option<u64>,

    /// Writes it to FILE, whole or not at all; `-` for standard output
    #[arg(long, short, value_name = "FILE", default_value = "gossip-baseline.json")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// The rule
    pub(crate) rule: String,

    #[command(flatten)]
    pub(crate) rules: RuleSourceArgs,
}

/// Where rules come from, for commands that scan nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct RuleSourceArgs {
    /// Uses this configuration [default: gossip.toml or .gitleaks.toml, from the current directory up
    /// to the root of its repository]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Adds rules from a gitleaks-style TOML file; may be given more than once
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,

    /// Uses no configuration that is found in or above the current directory
    #[arg(long)]
    pub(crate) no_local_config: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RulesArgs {
    #[command(subcommand)]
    pub(crate) command: RulesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum RulesCommand {
    /// Lists the rules that a scan of the current directory would use
    List {
        #[command(flatten)]
        rules: RuleSourceArgs,

        #[command(flatten)]
        output: OutputArgs,
    },
    /// Scans one file, or standard input, and says which rules match
    Test {
        /// The file; `-` for standard input
        #[arg(value_name = "FILE", default_value = "-")]
        path: PathBuf,

        #[command(flatten)]
        rules: RuleSourceArgs,
    },
    /// Says what is wrong with a rule file, and whether its rules find their examples
    Check {
        /// The file
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Says which configuration a scan of a path would use, what it does, and what is wrong with it
    Check {
        /// What would be scanned, or the configuration itself
        #[arg(value_name = "PATH", default_value = ".")]
        path: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProofArgs {
    #[command(subcommand)]
    pub(crate) command: ProofCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProofCommand {
    /// Checks that a proof is whole and unchanged
    Verify {
        /// The file that `gossip scan --proof` wrote
        file: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct HookArgs {
    #[command(subcommand)]
    pub(crate) command: HookCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookCommand {
    /// Installs a pre-commit hook; one that is there already is left alone
    Install {
        /// The repository
        #[arg(value_name = "DIR", default_value = ".")]
        repository: PathBuf,
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
    fn sizes_are_bytes_or_have_a_unit() {
        for (text, size) in
            [("0", 0), ("512", 512), ("64k", 65_536), ("2MB", 2 << 20), ("1GiB", 1 << 30)]
        {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for text in ["", "k", "10x", "-1", "1.5M", "99999999999T"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
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
