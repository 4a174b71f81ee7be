//! Examples at the end of every command's help. A test runs them through the parser.

pub(crate) const GOSSIP: &str = "\
Examples:
  gossip scan                             the current directory, with its history if it is a repository
  gossip scan --staged .                  what the next commit brings
  gossip scan . -o report.html            a page with filters; also .json, .sarif, .csv
  gossip explain github-token             what a rule finds, and what to do about it
  gossip hook install                     a scan before every commit";

pub(crate) const SCAN: &str = "\
Examples:
  gossip scan                             the current directory, with its history if it is a repository
  gossip scan src notes.txt               some files alone
  gossip scan --staged .                  what the next commit brings
  gossip scan --diff origin/main .        what a branch brings
  gossip scan --no-history .              files alone
  gossip scan s3://bucket/prefix          a bucket; credentials come from the environment
  kubectl logs web | gossip scan -        what is piped
  gossip scan . -o report.html            a page with filters; also .json, .sarif, .csv
  gossip scan . --baseline known.json     only what the baseline does not know
  gossip scan . --exclude 'vendor/' --severity high

The same command again goes on where an interrupted scan stopped, and reads only what has changed.
Exit codes: 0 nothing found, 1 secrets found, 2 something went wrong or was interrupted.";

pub(crate) const RESUME: &str = "\
Examples:
  gossip resume 3                         goes on with run 3; `gossip scan` of the same does that, too";

pub(crate) const RUNS: &str = "\
Examples:
  gossip runs                             every run, with what it covered and found
  gossip runs -f json
  gossip runs prune                       lists what can go
  gossip runs prune --older-than 30d --yes";

pub(crate) const SHOW: &str = "\
Examples:
  gossip show 3                           names what run 3 should have scanned and did not
  gossip show 3 -f json";

pub(crate) const FINDINGS: &str = "\
Examples:
  gossip findings                         what the newest run found
  gossip findings 3 -o report.sarif       what run 3 found, in another format
  gossip findings --new-since 2           what runs 1 and 2 had not seen
  gossip findings --all-versions -f csv   every version of a file in a history by itself";

pub(crate) const BASELINE: &str = "\
Examples:
  gossip baseline                         writes gossip-baseline.json from the newest run
  gossip baseline 3 -o known.json
  gossip scan . --baseline known.json     reports what is new";

pub(crate) const EXPLAIN: &str = "\
Examples:
  gossip explain github-token
  gossip rules list                       names every rule";

pub(crate) const CANCEL: &str = "\
Examples:
  gossip cancel 3                         what run 3 has found stays; nobody goes on with it";

pub(crate) const UNPARK: &str = "\
Examples:
  gossip unpark 3                         then scan the same again";

pub(crate) const RULES: &str = "\
Examples:
  gossip rules list
  gossip rules test notes.txt             which rules match, and where
  gossip rules check mine.toml            whether rules of your own find their examples";

pub(crate) const CONFIG: &str = "\
Examples:
  gossip config check                     which file a scan of this directory would use, and what it does
  gossip config check gossip.toml";

pub(crate) const PROOF: &str = "\
Examples:
  gossip scan . --proof proof.jsonl       writes one
  gossip proof verify proof.jsonl         checks that it is whole and unchanged";

pub(crate) const HOOK: &str = "\
Examples:
  gossip hook install                     in the repository of the current directory
  git commit --no-verify                  goes past it once";

pub(crate) const DOCTOR: &str = "\
Examples:
  gossip doctor                           checks every record of the state directory
  gossip doctor --state-dir /var/lib/gossip";

pub(crate) const COMPLETIONS: &str = "\
Examples:
  gossip completions bash > ~/.local/share/bash-completion/completions/gossip
  gossip completions zsh > ~/.zfunc/_gossip
  gossip completions fish > ~/.config/fish/completions/gossip.fish";

pub(crate) const MAN: &str = "\
Examples:
  gossip man > gossip.1
  gossip man | man -l -";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use crate::args::Args;

    /// An example that has rotted teaches something wrong.
    #[test]
    fn every_command_has_examples_that_it_takes() {
        let command = Args::command();
        let all = command.get_subcommands().filter(|command| command.get_name() != "help");
        for command in all.chain([&command]) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples = help.lines().filter_map(|line| line.strip_prefix("  "));
            let examples: Vec<&str> =
                examples.filter_map(|line| Some(&line[line.find("gossip ")?..])).collect();
            assert!(!examples.is_empty(), "{}", command.get_name());
            for example in examples {
                // What it does stands behind several blanks, and the shell takes the rest.
                let words = example.split("   ").next().unwrap_or_default();
                let words = words.split([' ']).take_while(|word| !matches!(*word, ">" | "|"));
                let parsed = Args::try_parse_from(words.map(|word| word.trim_matches('\'')));
                assert!(parsed.is_ok(), "{example}: {parsed:?}");
            }
        }
    }
}
