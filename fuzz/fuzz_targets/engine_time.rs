//! Arbitrary bytes over and over: no input makes a megabyte take long.
//!
//! A megabyte of each input would leave time for few. Two shorter texts of it tell how the time grows,
//! and a megabyte is scanned only where they say that it may take long.
#![no_main]

use std::cell::RefCell;
use std::sync::OnceLock;
use std::time::Duration;

use gossip_engine::{Engine, Options, RuleSet, Scratch};

const SHORT: usize = 1 << 10;
const LONG: usize = 8 << 10;
const MEGABYTE: usize = 1 << 20;
/// The long text is 2³ times the short one, a megabyte 2⁷ times the long one.
const GROWTHS: f64 = 7.0 / 3.0;
/// A second as it is built for users; instrumented code is an order of magnitude slower.
const LONGEST: Duration = Duration::from_secs(10);
/// Short times say little: what comes near is measured.
const SUSPECT: Duration = Duration::from_secs(4);

fn time(data: &[u8], len: usize) -> Duration {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    thread_local!(static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new()));
    let engine = ENGINE.get_or_init(|| Engine::new(RuleSet::builtin(), Options::default()));
    let text: Vec<u8> = data.iter().copied().cycle().take(len).collect();
    SCRATCH.with_borrow_mut(|scratch| {
        let started = worked();
        engine.scan(scratch, &text, Some(path(data)), &mut |_| {});
        worked().saturating_sub(started)
    })
}

/// What a file is called decides how it is read.
fn path(data: &[u8]) -> &'static [u8] {
    const PATHS: [&[u8]; 6] = [
        b"any/config.yml",
        b"any/code.py",
        b"any/notes",
        b"any/page.html",
        b"any/passwords.txt",
        b"notes/any.txt",
    ];
    PATHS[data.len() % PATHS.len()]
}

/// How long this thread has had a processor: a busy machine makes no input slow. Linux only.
fn worked() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells it");
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse().ok());
    Duration::from_nanos(nanoseconds.expect("it is the first number"))
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if data.is_empty() {
        return;
    }
    let (short, long) = (time(data, SHORT), time(data, LONG));
    let growth = long.as_secs_f64() / short.as_secs_f64().max(1e-6);
    if long.as_secs_f64() * growth.powf(GROWTHS) < SUSPECT.as_secs_f64() {
        return;
    }
    let taken = time(data, MEGABYTE);
    assert!(taken < LONGEST, "{taken:?} for a megabyte");
});
