//! `gossip runs prune`.

use std::time::Duration;

use gossip_runtime::{Admin, Pruning, Reports};

use crate::Outcome;
use crate::args::{Args, PruneArgs};
use crate::failure::Failure;
use crate::output::{counted, write_runs};
use crate::say::say;
use crate::source::state_dir;

pub(crate) fn run(args: &Args, prune: &PruneArgs) -> Result<Outcome, Failure> {
    let state = state_dir(args)?;
    let PruneArgs { older_than, keep, other_rules: other_policies, .. } = *prune;
    let pruning = Pruning { older_than, keep, other_policies };
    let runs = if prune.yes {
        Admin::open(&state)?.prune(&pruning)?
    } else {
        Reports::open(&state)?.prunable(&pruning)?
    };
    write_runs(&runs, prune.output.format)?;
    let counted = counted(runs.len() as u64, "run");
    if prune.yes {
        say!("deleted {counted}");
    } else {
        say!("{counted} would be deleted; `--yes` deletes");
    }
    Ok(Outcome::Clean)
}

/// A length of time: `90s`, `45m`, `12h`, `30d`, `8w`.
pub(crate) fn parse_age(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let seconds = match &text[digits.len()..] {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return Err("an age is a number with s, m, h, d or w, such as 30d".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|error| format!("`{digits}`: {error}"))?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or("too long".to_owned())
}
