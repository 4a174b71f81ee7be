//! A git history, beside scanners that read one and git itself.
//!
//! It is made of published versions of crates, one commit a version, by `history.py`; of a quarter of
//! the versions another one, so that what grows with the history shows. `GOSSIP_BENCH_HISTORY` names
//! repositories to use instead, with `:` between them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use gossip_bench::figure;

use super::{KINGFISHER, Tool, installed, measure as measure_tools, succeed, tool};

/// Versions of each crate: `history.py` names the crates.
const VERSIONS: usize = 60;
/// The others take long.
const ROUNDS: usize = 1;
/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(5);

pub(super) fn measure(place: &Path) {
    let repositories = match std::env::var_os("GOSSIP_BENCH_HISTORY") {
        Some(paths) => std::env::split_paths(&paths).collect(),
        None => vec![made(place, VERSIONS), made(place, VERSIONS / 4)],
    };
    for repository in &repositories {
        let objects = objects(repository);
        let name = format!("history-{}-commits", commits(repository));
        figure(&name, objects as f64, "objects", None);
        figure(&format!("{name}-memory"), memory_mb(place, repository), "MB", None);
    }
    let bytes = blob_bytes(&repositories[0]);
    measure_tools("history", place, &tools(place), &repositories[0], bytes, ROUNDS);
}

/// The most memory of its own that a scan had at once: without the packs, which are mapped, and which
/// a process's peak counts.
fn memory_mb(place: &Path, repository: &Path) -> f64 {
    let state = place.join("state");
    let _ = fs::remove_dir_all(&state);
    let mut command = Command::new(env!("CARGO_BIN_EXE_gossip"));
    command.args(["scan", "--only-history", "-q", "-j", "2", "--state-dir"]).arg(state);
    let mut child = command.arg(repository).stdout(Stdio::null()).spawn().expect("it is built");
    let mut peak = 0.0_f64;
    while child.try_wait().expect("it is a child").is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = own.and_then(|text| text.trim().trim_end_matches(" kB").parse::<f64>().ok());
        peak = peak.max(kib.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(LOOK);
    }
    peak
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
