//! Planning and reading a repository, beside `git`.
//!
//! `cargo xtask bench git -- REPO…`: several repositories, say a history and four times as much of it,
//! show what grows with what. Prints `name value unit ratio`; a ratio is to `git` doing the nearest
//! thing: `rev-list --objects --all` for planning, `cat-file --batch-all-objects --batch` for reading.
//! Memory is measured by the bench `scan`, which leaves the mapped packs out.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use gossip_bench::figure;
use gossip_contracts::connector::{Connector, NewRun, Page, RunName};
use gossip_contracts::coordination::{CursorUpdate, ShardSpecRef};
use gossip_contracts::identity::RunId;
use gossip_git::{GitOptions, GitSource};

const ROUNDS: usize = 3;
const THREADS: usize = 2;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    // `cargo test` runs benches too, without this flag.
    if !args.iter().any(|arg| arg == "--bench") {
        return;
    }
    let repositories: Vec<&String> = args.iter().filter(|arg| !arg.starts_with("--")).collect();
    if repositories.is_empty() {
        println!("# no repository: cargo xtask bench git -- REPO…");
    }
    for repository in repositories {
        measure(Path::new(repository));
    }
}

fn measure(repository: &Path) {
    let name = repository.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let place = tempfile::tempdir().expect("a temporary directory");
    let (mut plan_s, mut list_s) = (f64::MAX, f64::MAX);
    let mut source = None;
    for round in 0..ROUNDS {
        let list = seconds(|| git(repository, &["rev-list", "--objects", "--all"]));
        list_s = list_s.min(list);
        let manifests = place.path().join(round.to_string());
        let mut options = GitOptions::default();
        options.threads = THREADS;
        let opened = GitSource::open(repository, options, manifests).expect("a repository");
        let run = NewRun {
            run: RunName { number: RunId::from_raw(1), nonce: [1; 16] },
            last: None,
            settled: &|_| Ok(()),
            path_class: &|path| vec![u8::from(path.starts_with(b"test"))],
            is_left_out: &|_| false,
        };
        plan_s = plan_s.min(seconds(|| opened.begin(run).expect("a plan")));
        source = Some(opened);
    }
    let source = source.expect("there are rounds");
    let manifest = place.path().join("0/1.manifest");
    let manifest_bytes = manifest.metadata().expect("it was written").len() as f64;
    let objects = objects(repository);
    let per_100k = 100_000.0 / objects;
    figure(&format!("{name}-objects"), objects, "objects", None);
    figure(&format!("{name}-plan"), plan_s, "s", Some(plan_s / list_s));
    figure(&format!("{name}-plan-per-100k-objects"), plan_s * per_100k, "s", None);
    figure(
        &format!("{name}-manifest-per-100k-objects"),
        manifest_bytes * per_100k / 1e6,
        "MB",
        None,
    );

    let cat = ["cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch"];
    let (mut read_s, mut cat_s, mut bytes) = (f64::MAX, f64::MAX, 0);
    for _ in 0..ROUNDS {
        cat_s = cat_s.min(seconds(|| git(repository, &cat)));
        read_s = read_s.min(seconds(|| bytes = read_all(&source)));
    }
    figure(&format!("{name}-bytes"), bytes as f64 / 1e6, "MB", None);
    figure(&format!("{name}-read"), bytes as f64 / 1e6 / read_s, "MB/s", Some(read_s / cat_s));
}

fn seconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64()
}

fn git(repository: &Path, args: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(args).stdout(Stdio::null());
    assert!(command.status().expect("git is installed").success());
}

fn objects(repository: &Path) -> f64 {
    let mut command = Command::new("git");
    command.arg("-C").arg(repository).args(["count-objects", "-v"]);
    let output = command.output().expect("git is installed").stdout;
    let text = String::from_utf8(output).expect("text");
    let number =
        |line: &str| line.split_once(": ").and_then(|(_, number)| number.parse::<f64>().ok());
    let counted =
        text.lines().filter(|line| line.starts_with("count") || line.starts_with("in-pack"));
    counted.filter_map(number).sum()
}

/// Reads every row, the rows shared between threads.
fn read_all(source: &GitSource) -> u64 {
    let range = source.key_range();
    let points = source.split_points(range, CursorUpdate::initial(), THREADS - 1).expect("points");
    let mut bounds = vec![range.start()];
    bounds.extend(points.iter().map(|point| &**point));
    bounds.push(range.end());
    let total = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for part in bounds.windows(2) {
            let (start, end, total) = (part[0], part[1], &total);
            scope.spawn(move || {
                total.fetch_add(read_part(source, start, end), Ordering::Relaxed);
            });
        }
    });
    total.into_inner()
}

fn read_part(source: &GitSource, start: &[u8], end: &[u8]) -> u64 {
    let (mut page, mut buf, mut bytes) = (Page::new(), vec![0; 256 << 10], 0);
    let mut last: Option<Vec<u8>> = None;
    loop {
        let cursor = CursorUpdate::new(last.as_deref(), None);
        source.list(ShardSpecRef::new(start, end, b""), cursor, 256, &mut page).expect("a page");
        for entry in page.iter() {
            last = Some(entry.key.to_vec());
            let Ok(mut reader) = source.open(entry.key) else { continue };
            let mut offset = 0;
            loop {
                match reader.read_at(offset, &mut buf).expect("an object") {
                    0 => break,
                    len => offset += len as u64,
                }
            }
            bytes += offset;
        }
        if page.is_last() {
            return bytes;
        }
    }
}
