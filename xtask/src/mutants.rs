//! `cargo xtask mutants`: the coordination rules broken one at a time; some test has to notice.
//!
//! Which files are broken is in `.cargo/mutants.toml`. Changes that no test can notice are listed
//! in `bench/results/mutants.md`, each with the reason.

use std::path::Path;

use crate::args::Args;
use crate::command::Cmd;
use crate::failure::{Failure, OrFail, Result};
use crate::planted;
use crate::workspace::Workspace;

pub(crate) const HELP: &str = "\
Breaks the rules of coordination one at a time and runs the unit tests of their crate (cargo-mutants).
Fails when a change goes unnoticed that bench/results/mutants.md does not explain.

Usage: cargo xtask mutants [--shard K/N]
       cargo xtask mutants --planted [NAME] [--start S]

  --shard K/N   only the K-th of N parts, counted from 0; all of it takes most of an hour
  --planted     instead, runs the simulator on the bugs of crates/gossip-simulator/planted/, or on those
                whose name contains NAME, from seed S (1) on until each is noticed

What happened to each change is in mutants/mutants.out of the target directory.
";

const PACKAGES: [&str; 2] = ["gossip-coordination", "gossip-contracts"];
const EXPLAINED: &str = "bench/results/mutants.md";

pub(crate) fn run(mut args: Args) -> Result<()> {
    if args.flag("--planted") {
        let start = args.number("--start")?.unwrap_or(1);
        return planted::run(start, args.at_most_one_name()?);
    }
    let shard = args.value("--shard")?;
    args.nothing_left()?;
    if !Cmd::cargo().args(["mutants", "--version"]).capture()?.success {
        return Err(
            Failure::new("cargo-mutants is missing").fix("cargo install --locked cargo-mutants")
        );
    }
    let workspace = Workspace::load()?;
    let output = workspace.target_dir.join("mutants");
    let mut command = Cmd::cargo()
        .arg("mutants")
        .args(PACKAGES.map(|package| format!("--package={package}")))
        .args(["--no-shuffle", "--output"])
        .arg(&output)
        // The broken copy must not share a target directory with the tree that it was made of.
        .unset(&["CARGO_TARGET_DIR"])
        .dir(&workspace.root);
    if let Some(shard) = shard {
        command = command.args(["--shard", &shard]);
    }
    // It says "failed" for any change that went unnoticed; which ones may is ours to say.
    let all_noticed = command.args(["--", "--lib"]).succeeds()?;
    let list = |name: &str| read(&output.join("mutants.out").join(name));
    let unnoticed = [list("missed.txt")?, list("timeout.txt")?].concat();
    if !all_noticed && unnoticed.is_empty() {
        return Err(Failure::new("cargo-mutants did not get to its end"));
    }
    let explained = read(&workspace.root.join(EXPLAINED))?;
    let unexplained = unexplained(&unnoticed, &explained);
    if unexplained.is_empty() {
        println!("every change was noticed, or is explained in {EXPLAINED}");
        return Ok(());
    }
    unexplained.iter().for_each(|change| println!("unexplained: {change}"));
    Err(Failure::new(format!("{} changes went unnoticed", unexplained.len()))
        .fix(format!("write a test that notices, or say in {EXPLAINED} why none can")))
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).or_fail(|| format!("cannot read {}", path.display()))
}

/// The changes that `explained` does not name. Their lines and columns do not count.
fn unexplained<'u>(unnoticed: &'u str, explained: &str) -> Vec<&'u str> {
    let is_explained = |change: &str| explained.contains(&format!("`{}`", without_place(change)));
    unnoticed.lines().filter(|change| !is_explained(change)).collect()
}

/// `file.rs:12:34: what` as `file.rs: what`.
fn without_place(change: &str) -> String {
    let mut parts = change.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(what)) => format!("{file}:{what}"),
        _ => change.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_explained_wherever_it_stands_in_its_file() {
        let unnoticed = "a.rs:1:2: replace > with >= in f::g\nb.rs:3:4: delete !\n";
        let explained = "- `a.rs: replace > with >= in f::g`: both say the same.";
        assert_eq!(unexplained(unnoticed, explained), ["b.rs:3:4: delete !"]);
        assert!(unexplained("", "").is_empty());
    }
}
