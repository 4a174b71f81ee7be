//! `cargo xtask fuzz`: libFuzzer on the targets of `fuzz/`, a workspace of its own on nightly.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::args::Args;
use crate::asan::need_nightly;
use crate::command::Cmd;
use crate::failure::{Failure, Result};
use crate::servers::slots::Slots;
use crate::workspace::{self, Workspace};

pub(crate) const HELP: &str = "\
Runs libFuzzer (nightly) on one target of fuzz/, or on each in turn.

Usage: cargo xtask fuzz [TARGET] [--seconds N] [--list] [--no-install]

  --seconds N    for each target; 60 by default
  --list         lists the targets
  --no-install   do not install cargo-fuzz (into .servers/) when it is missing

Inputs that were worth keeping are in fuzz/corpus, crashing ones in fuzz/artifacts.
";

const SECONDS_DEFAULT: u64 = 60;

pub(crate) fn run(mut args: Args) -> Result<()> {
    let seconds = args.number("--seconds")?.unwrap_or(SECONDS_DEFAULT);
    let list = args.flag("--list");
    let may_install = !args.flag("--no-install");
    let only = args.at_most_one_name()?;
    let root = workspace::root()?;
    let mut targets = targets(&root)?;
    if list {
        targets.iter().for_each(|target| println!("{target}"));
        return Ok(());
    }
    if let Some(only) = only {
        if !targets.contains(&only) {
            return Err(Failure::new(format!("fuzz/ has no target `{only}`"))
                .fix("see `cargo xtask fuzz --list`"));
        }
        targets = vec![only];
    }
    if targets.is_empty() {
        println!("there is nothing to fuzz: no fuzz/ with targets");
        return Ok(());
    }
    let fuzzer = Fuzzer::find(&root, may_install)?;
    for target in &targets {
        println!("\n== fuzz {target}: {seconds} s ==");
        let started = SystemTime::now();
        if !fuzzer.command(target, seconds).succeeds()? {
            return Err(fuzzer.crash(target, started));
        }
    }
    println!("\n{} fuzz targets ran {seconds} s each, without a crash", targets.len());
    Ok(())
}

/// The names of all targets; none where there is no `fuzz/`.
pub(crate) fn targets(root: &Path) -> Result<Vec<String>> {
    let fuzz = Workspace::load_fuzz(root)?;
    let packages = fuzz.iter().flat_map(|fuzz| &fuzz.packages);
    Ok(packages.flat_map(|package| package.targets_of("bin")).map(|bin| bin.name.clone()).collect())
}

/// cargo-fuzz, ready to run.
pub(crate) struct Fuzzer {
    root: PathBuf,
    /// It is the one in `.servers/`, which cargo does not find by itself.
    ours: bool,
}

const SLOT: &str = "cargo-fuzz";

impl Fuzzer {
    pub(crate) fn find(root: &Path, may_install: bool) -> Result<Self> {
        need_nightly()?;
        let ours = !Cmd::cargo().args(["fuzz", "--version"]).capture()?.success;
        if ours {
            install(&Slots::of(root), may_install)?;
        }
        Ok(Self { root: root.to_owned(), ours })
    }

    /// `cargo fuzz run TARGET` on nightly, to be run in the checkout.
    fn start(&self, target: &str) -> Cmd {
        let command = if self.ours {
            // What cargo would set for a command of its own is that of another toolchain.
            Cmd::new(format!(".servers/{SLOT}/bin/cargo-fuzz"))
                .env("RUSTUP_TOOLCHAIN", "nightly")
                .unset(&["CARGO"])
        } else {
            Cmd::cargo().args(["+nightly", "fuzz"])
        };
        command.args(["run", target]).dir(&self.root)
    }

    /// One run of one target.
    pub(crate) fn command(&self, target: &str, seconds: u64) -> Cmd {
        let limit = format!("-max_total_time={seconds}");
        self.start(target).args(["--", &limit, "-print_final_stats=1"])
    }

    /// What to say about a run that failed: the input it left, and how to see it again.
    pub(crate) fn crash(&self, target: &str, started: SystemTime) -> Failure {
        let failure = Failure::new(format!("fuzz target `{target}` failed"));
        match newest_since(&self.root.join("fuzz/artifacts").join(target), started) {
            Some(name) => {
                let again = self.start(target).arg(format!("fuzz/artifacts/{target}/{name}"));
                failure.fix(format!("see it again: {again}"))
            }
            None => failure.fix(format!("it left no input; again: cargo xtask fuzz {target}")),
        }
    }
}

fn newest_since(dir: &Path, since: SystemTime) -> Option<String> {
    let entries = std::fs::read_dir(dir).ok()?.flatten();
    let changed =
        |entry: &std::fs::DirEntry| entry.metadata().and_then(|meta| meta.modified()).ok();
    let newest = entries.max_by_key(changed)?;
    (changed(&newest)? >= since).then(|| newest.file_name().to_string_lossy().into_owned())
}

/// Builds cargo-fuzz from crates.io into its slot, unless it is there.
fn install(slots: &Slots, may_install: bool) -> Result<()> {
    let complete = |dir: &Path| {
        let version = Cmd::new(dir.join("bin/cargo-fuzz")).arg("--version").capture();
        version.is_ok_and(|version| version.success).then_some(())
    };
    if complete(&slots.path(SLOT)).is_some() {
        return Ok(());
    }
    let by_hand = "cargo install --locked cargo-fuzz";
    if !may_install {
        return Err(Failure::new("cargo-fuzz is missing").fix(by_hand));
    }
    println!("cargo-fuzz: not found, building it (once for this checkout)");
    slots.fill(SLOT, complete, |dir| {
        let install = Cmd::cargo()
            .args(["install", "--locked", "--quiet", "cargo-fuzz", "--root"])
            .arg(dir)
            .env("CARGO_TARGET_DIR", dir.join("target"));
        install.run().map_err(|failure| failure.fix(by_hand))?;
        std::fs::remove_dir_all(dir.join("target")).ok();
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_artifact_of_this_run_is_found_and_an_older_one_is_not() {
        let dir = std::env::temp_dir().join(format!("gossip-xtask-fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("crash-1"), "x").unwrap();
        assert_eq!(newest_since(&dir, SystemTime::UNIX_EPOCH).as_deref(), Some("crash-1"));
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert_eq!(newest_since(&dir, later), None);
        std::fs::remove_dir_all(dir).unwrap();
    }
}
