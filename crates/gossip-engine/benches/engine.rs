//! How fast the engine scans real sources and a log, one thread, bytes in memory.
//!
//! Each figure stands beside two references over the same bytes: counting line ends (about as fast
//! as bytes can be looked at) and one alternation of 20 patterns by the `regex` crate (what a search
//! tool does). The machines are noisy, so all take turns on batches of a megabyte, and a batch counts
//! by its best round. Prints `name value unit ratio`.

use std::path::{Path, PathBuf};
use std::time::Instant;

use gossip_bench::figure;
use gossip_engine::{Decoding, Engine, Options, RuleSet, Scratch};

const SOURCE_BYTES: usize = 160 << 20;
const LOG_BYTES: usize = 100 << 20;
const ROUNDS: usize = 5;

fn main() {
    let started = Instant::now();
    let engine = Engine::new(RuleSet::builtin(), Options::default());
    figure("engine-start", started.elapsed().as_secs_f64() * 1e3, "ms", None);
    match sources(SOURCE_BYTES) {
        Some(files) => measure("sources", &engine, &files),
        None => println!("# no cargo registry here: sources are skipped"),
    }
    let log = log(LOG_BYTES);
    let log: Vec<_> = log.chunks(1 << 20).map(<[u8]>::to_vec).collect();
    measure("log", &engine, &log);
}

fn measure(name: &str, engine: &Engine, files: &[Vec<u8>]) {
    let megabytes = files.iter().map(Vec::len).sum::<usize>() as f64 / 1e6;
    println!("# {name}: {} files, {megabytes:.0} MB", files.len());
    let plain_options = Options { decoding: Decoding::NONE, ..Options::default() };
    let plain = Engine::new(RuleSet::builtin(), plain_options);
    let twenty = regex::bytes::Regex::new(&TWENTY.join("|")).expect("the patterns are valid");
    let mut scratch = Scratch::new();
    let mut plain_scratch = Scratch::new();
    let mut findings = 0u64;
    let mut seconds = [0.0; 4];
    for batch in batches(files) {
        let mut best = [f64::MAX; 4];
        for round in 0..ROUNDS {
            let (mut lines, mut matches) = (0, 0);
            let count = |_: gossip_engine::Finding<'_>| findings += u64::from(round == 0);
            let mut count = count;
            let times = [
                time(batch, |file| lines += memchr::memchr_iter(b'\n', file).count()),
                time(batch, |file| matches += twenty.find_iter(file).count()),
                time(batch, |file| engine.scan(&mut scratch, file, None, &mut count)),
                time(batch, |file| plain.scan(&mut plain_scratch, file, None, &mut |_| ())),
            ];
            std::hint::black_box((lines, matches));
            for (best, time) in best.iter_mut().zip(times) {
                *best = best.min(time);
            }
        }
        for (sum, best) in seconds.iter_mut().zip(best) {
            *sum += best;
        }
    }
    let [lines, twenty, scan, undecoded] = seconds;
    figure(&format!("{name}-count-lines"), megabytes / lines, "MB/s", None);
    figure(&format!("{name}-regex-20"), megabytes / twenty, "MB/s", None);
    figure(&format!("{name}-scan"), megabytes / scan, "MB/s", Some(lines / scan));
    figure(&format!("{name}-scan-to-regex-20"), megabytes / scan, "MB/s", Some(twenty / scan));
    figure(
        &format!("{name}-scan-undecoded"),
        megabytes / undecoded,
        "MB/s",
        Some(lines / undecoded),
    );
    figure(&format!("{name}-findings"), findings as f64, "findings", None);
}

/// Files of about a megabyte together.
fn batches(files: &[Vec<u8>]) -> Vec<&[Vec<u8>]> {
    let mut batches = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        bytes += file.len();
        if bytes >= 1 << 20 || at + 1 == files.len() {
            batches.push(&files[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    batches
}

fn time(files: &[Vec<u8>], mut f: impl FnMut(&[u8])) -> f64 {
    let started = Instant::now();
    files.iter().for_each(|file| f(file));
    started.elapsed().as_secs_f64()
}

/// Shapes of tokens, as somebody would grep for them.
const TWENTY: [&str; 20] = [
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}",
    r"(?:AKIA|ASIA)[A-Z2-7]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    r"xox[bpars]-[A-Za-z0-9-]{10,}",
    r"sk_live_[A-Za-z0-9]{24,}",
    r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}",
    r"glpat-[A-Za-z0-9_-]{20}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
    r"dop_v1_[a-f0-9]{64}",
    r"shpat_[a-fA-F0-9]{32}",
    r"hooks\.slack\.com/services/[A-Za-z0-9/]{40,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}",
    r"sk-ant-api03-[A-Za-z0-9_-]{93}",
    r"hf_[A-Za-z]{34}",
    r"dckr_pat_[A-Za-z0-9_-]{27}",
    r"hvs\.[A-Za-z0-9_-]{90,}",
    r"postgres://[^:\s]+:[^@\s]+@",
];

/// Text files of the cargo registry, up to `limit` bytes.
fn sources(limit: usize) -> Option<Vec<Vec<u8>>> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")))?;
    let mut files = Vec::new();
    let mut left = limit;
    collect(&home.join("registry/src"), &mut files, &mut left);
    (!files.is_empty()).then_some(files)
}

fn collect(folder: &Path, files: &mut Vec<Vec<u8>>, left: &mut usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if *left == 0 {
            return;
        }
        if path.is_dir() {
            collect(&path, files, left);
        } else if let Ok(bytes) = std::fs::read(&path)
            && !bytes[..bytes.len().min(8000)].contains(&0)
        {
            *left = left.saturating_sub(bytes.len());
            files.push(bytes);
        }
    }
}

/// Lines of a web server and a service, from a seed.
fn log(len: usize) -> Vec<u8> {
    let mut state = 7u64;
    let mut random = move |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let levels = ["INFO", "DEBUG", "WARN", "ERROR"];
    let paths = ["/api/v1/users", "/static/app.js", "/login", "/health", "/oauth/token?grant=code"];
    let texts = [
        "request finished",
        "cache miss for key",
        "token refreshed for session",
        "retrying upload",
        "password check passed",
        "connection from pool returned",
    ];
    let mut log = String::with_capacity(len + 300);
    while log.len() < len {
        let level = levels[random(4) as usize];
        let path = paths[random(5) as usize];
        let text = texts[random(6) as usize];
        let line = format!(
            "2026-05-{:02}T{:02}:{:02}:{:02}.{:03}Z {level} [worker-{}] {text} method=GET path={path} \
             status={} duration_ms={} request_id={:08x}-{:04x}-{:04x}-{:04x}-{:08x} ip=10.{}.{}.{} \
             agent=\"Mozilla/5.0 (X11; Linux x86_64)\"\n",
            1 + random(28),
            random(24),
            random(60),
            random(60),
            random(1000),
            random(32),
            200 + random(300),
            random(900),
            random(1 << 31),
            random(1 << 16),
            random(1 << 16),
            random(1 << 16),
            random(1 << 31),
            random(256),
            random(256),
            random(256),
        );
        log.push_str(&line);
    }
    log.into_bytes()
}
