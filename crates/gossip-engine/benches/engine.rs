//! How fast the engine scans real sources and a log, one thread, bytes in memory.
//!
//! Each figure stands beside two references over the same bytes: counting line ends (about as fast
//! as bytes can be looked at) and one alternation of 20 patterns by the `regex` crate (what a search
//! tool does). The machines are noisy, so all take turns on batches of a megabyte, and a batch counts
//! by its best round. Prints `name value unit ratio`.

use std::path::Path;
use std::time::Instant;

use gossip_bench::corpus::{LogLines, TWENTY, registry_sources};
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

/// Text files of the cargo registry, up to `limit` bytes.
fn sources(limit: usize) -> Option<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    let mut left = limit;
    collect(&registry_sources()?, &mut files, &mut left);
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

fn log(len: usize) -> Vec<u8> {
    let mut log = String::with_capacity(len + 300);
    for line in LogLines::default() {
        if log.len() >= len {
            break;
        }
        log.push_str(&line);
        log.push('\n');
    }
    log.into_bytes()
}
