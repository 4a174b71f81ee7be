//! A git history, beside scanners that read one and git itself.
//!
//! It is made of published versions of crates, one commit a version, by `history.py`; of a quarter of
//! the versions another one, so that what grows with the history shows. `GOSSIP_BENCH_HISTORY` names
//! a repository to use instead.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gossip_bench::figure;

use super::{KINGFISHER, Tool, installed, measure as measure_tools, run, succeed, tool};

/// Versions of each crate: `history.py` names the crates.
const VERSIONS: usize = 60;
const ROUNDS: usize = 2;

pub(super) fn measure(place: &Path) {
    let (whole, quarter) = match std::env::var_os("GOSSIP_BENCH_HISTORY") {
        Some(path) => (PathBuf::from(path), None),
        None => (made(place, VERSIONS), Some(made(place, VERSIONS / 4))),
    };
    let bytes = blob_bytes(&whole);
    println!("# history: {} commits, {} objects", commits(&whole), objects(&whole));
    let tools = tools(place);
    measure_tools("history", place, &tools, &whole, bytes, ROUNDS);
    // What memory grows by with the history.
    for repository in [Some(&whole), quarter.as_ref()].into_iter().flatten() {
        let measured = run(place, &tools[0], repository);
        let name = format!("history-{}-commits-peak", commits(repository));
        figure(&name, measured.peak_mb, "MB", None);
    }
}

fn tools(place: &Path) -> Vec<Tool> {
    let (_, packages) = installed(place);
    let ours = ["scan", "--only-history", "--format", "jsonl", "--state-dir", "STATE", "TARGET"];
    let (two, one) = ([&ours[..], &["-j", "2"]].concat(), [&ours[..], &["-j", "1"]].concat());
    let betterleaks = ["git", "-j", "2", "--jsonl", "--no-banner", "--exit-code=0", "TARGET"];
    let gossip = || env!("CARGO_BIN_EXE_gossip").into();
    vec![
        tool("gossip", gossip(), &two, ""),
        tool("gossip-j1", gossip(), &one, ""),
        tool("kingfisher", packages.join("kingfisher/bin/kingfisher"), &KINGFISHER, "{\"rule\":"),
        tool("betterleaks", packages.join("betterleaks/bin/betterleaks"), &betterleaks, ""),
        // What only lists the objects, and what only writes the differences out.
        tool("git-rev-list", git(), &["-C", "TARGET", "rev-list", "--objects", "--all"], "\0"),
        tool("git-log", git(), &["-C", "TARGET", "log", "--all", "-p", "-U0"], "\0"),
    ]
}

fn git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|dir| dir.join("git")).find(|git| git.is_file());
    found.expect("git is installed")
}

/// A history of so many versions of each crate.
fn made(place: &Path, versions: usize) -> PathBuf {
    let path = place.join(format!("history-{versions}.git"));
    if path.is_dir() {
        return path;
    }
    let draft = place.join("history.draft");
    let _ = fs::remove_dir_all(&draft);
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(&draft).args(args);
        command
    };
    succeed(Command::new("git").args(["init", "-q", "--bare"]).arg(&draft));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/scan/history.py");
    let mut source = Command::new("python3");
    source.arg(script).arg(place.join("crates")).arg(versions.to_string());
    let mut source = source.stdout(Stdio::piped()).spawn().expect("python3 runs");
    let stream = source.stdout.take().expect("it is piped");
    succeed(git(&["fast-import", "--quiet"]).stdin(stream));
    assert!(source.wait().is_ok_and(|status| status.success()), "history.py failed");
    succeed(&mut git(&["gc", "-q"]));
    fs::rename(draft, &path).expect("the target directory can be written");
    path
}

fn said(repository: &Path, args: &[&str]) -> String {
    let mut command = Command::new("git");
    let output = command.arg("-C").arg(repository).args(args).output().expect("git runs");
    assert!(output.status.success(), "git {args:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn commits(repository: &Path) -> String {
    said(repository, &["rev-list", "--all", "--count"]).trim().to_owned()
}

fn objects(repository: &Path) -> usize {
    said(repository, &["rev-list", "--all", "--objects"]).lines().count()
}

fn blob_bytes(repository: &Path) -> u64 {
    let format = "--batch-check=%(objecttype) %(objectsize)";
    let listed = said(repository, &["cat-file", "--batch-all-objects", "--unordered", format]);
    let size = |line: &str| line.strip_prefix("blob ").and_then(|size| size.parse::<u64>().ok());
    listed.lines().filter_map(size).sum()
}
