//! `gossip hook install`: a scan before every commit.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Outcome;
use crate::failure::Failure;
use crate::say::{say, shown};

/// What makes a hook ours.
const MARK: &str = "# Installed by `gossip hook install`.";

/// git says in `GIT_INDEX_FILE` what the commit is made of, which `--staged` reads.
const COMMAND: &str = "gossip scan --staged --no-progress \"$(git rev-parse --show-toplevel)\"";

fn script() -> String {
    format!(
        "#!/bin/sh\n{MARK}\n# Scans what this commit brings.\n\
         # `git commit --no-verify` goes past it once.\n\
         exec {COMMAND}\n"
    )
}

pub(crate) fn install(repository: &Path) -> Result<Outcome, Failure> {
    let path = hooks_dir(repository)?.join("pre-commit");
    let fail = |error: std::io::Error| Failure::file(&path, &error);
    fs::create_dir_all(path.parent().unwrap_or(repository)).map_err(fail)?;
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o755).open(&path) {
        Ok(mut file) => file.write_all(script().as_bytes()).map_err(fail)?,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let text = fs::read(&path).map_err(fail)?;
            if !String::from_utf8_lossy(&text).contains(MARK) {
                return Err(Failure::new(format!(
                    "{} is there already; add this line to it: {COMMAND}",
                    shown(&path)
                )));
            }
            fs::write(&path, script()).map_err(fail)?;
        }
        Err(error) => return Err(fail(error)),
    }
    say!("{} scans before every commit", shown(&path));
    Ok(Outcome::Clean)
}

/// Where git looks for hooks: it knows of worktrees, and of `core.hooksPath`.
fn hooks_dir(repository: &Path) -> Result<PathBuf, Failure> {
    let mut git = Command::new("git");
    git.arg("-C").arg(repository).args(["rev-parse", "--git-path", "hooks"]);
    let output = git.output().map_err(|error| Failure::new(format!("git: {error}")))?;
    if !output.status.success() {
        return Err(Failure::new(format!("{} is in no git repository", shown(repository))));
    }
    let path = String::from_utf8_lossy(&output.stdout);
    Ok(repository.join(path.trim_end_matches('\n')))
}
